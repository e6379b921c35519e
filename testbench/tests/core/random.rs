//! Random programs on the bare core, with a memory that answers when and in what order it likes, against
//! [`Thread`] for every thread.

use crate::bench::shape;
use crate::model::Thread;
use heddle_hdl::*;
use heddle_sim::Sim;
use heddle_simt::core::{CoreIn, CoreOut, core};
use heddle_simt::divergence::Start;
use heddle_simt::pipeline::memory::Response;
use heddle_simt::{BankAddress, Shape};
use heddle_testbench::asm::*;

/// Threads' memory starts here.
const DATA: u32 = 0x1000;
/// Registers of random values; the base of the thread's memory; loop counters; scratch.
const VALUES: std::ops::Range<u32> = 5..14;
const BASE: u32 = 20;
const COUNTERS: u32 = 21;
const SCRATCH: [u32; 2] = [28, 29];
const FUNCTIONS: u32 = 4;

/// Writes random programs in which each thread has its own memory.
struct Writer {
    r: fastrand::Rng,
    labels: u32,
    /// Bytes from one word of a thread to its next.
    stride: u32,
}

impl Writer {
    fn value(&mut self) -> u32 {
        self.r.u32(VALUES)
    }

    fn label(&mut self) -> String {
        self.labels += 1;
        format!("l{}", self.labels)
    }

    fn program(&mut self, threads: u32) -> Asm {
        let mut a = Asm::default().put([csrr(BASE, MHARTID), lui(SCRATCH[0], 1)]);
        for value in VALUES {
            a = a.put([addi(value, BASE, self.r.i32(-2048..2048))]);
        }
        // Words of one thread side by side, or words of the same number of all threads.
        let shift = if self.stride == 4 { 5 } else { 2 };
        assert!(threads * 32 <= 0x2000 && self.stride <= 0x100);
        a = a.put([slli(BASE, BASE, shift), add(BASE, BASE, SCRATCH[0])]);
        for word in 0..8 {
            a = a.put([sw(VALUES.start + word % 3, BASE, (word * self.stride) as i32)]);
        }
        a = self.block(a, 12, 0, true).exit();
        for k in 0..FUNCTIONS {
            a = a.label(&format!("f{k}"));
            a = self.block(a, 3, 2, false).put([jalr(ZERO, RA, 0)]);
        }
        a
    }

    fn block(&mut self, mut a: Asm, items: u32, depth: u32, calls: bool) -> Asm {
        for _ in 0..items {
            a = match self.r.u32(..100) {
                0..40 => self.arithmetic(a),
                40..60 => self.access(a),
                60..78 if depth < 3 => self.forward(a, depth, calls),
                78..88 if depth < 2 => self.repeat(a, depth, calls),
                88..96 if calls => self.call(a),
                96..98 => self.leave(a),
                _ => self.arithmetic(a),
            };
        }
        a
    }

    fn arithmetic(&mut self, a: Asm) -> Asm {
        let (rd, rs1, rs2, funct3) = (self.value(), self.value(), self.value(), self.r.u32(..8));
        a.put([match self.r.u8(..10) {
            0..4 => r(0, rs2, rs1, funct3, rd, 0x33),
            4..6 => r(0x20, rs2, rs1, [0, 5][self.r.usize(..2)], rd, 0x33),
            6..8 => r(1, rs2, rs1, funct3, rd, 0x33),
            8 => r(0, self.r.u32(..32), rs1, funct3, rd, 0x13),
            _ => lui(rd, self.r.u32(..1 << 20)),
        }])
    }

    fn access(&mut self, a: Asm) -> Asm {
        let kind = [0, 1, 2, 4, 5][self.r.usize(..5)];
        let byte = self.r.u32(..4) >> (kind & 3) << (kind & 3);
        let offset = (self.r.u32(..8) * self.stride + byte) as i32;
        let register = self.value();
        a.put([if self.r.bool() {
            load(kind, register, BASE, offset)
        } else {
            store(kind & 3, register, BASE, offset)
        }])
    }

    /// Some threads skip a block, or do another one.
    fn forward(&mut self, a: Asm, depth: u32, calls: bool) -> Asm {
        let (over, end) = (self.label(), self.label());
        let (condition, x, y) = ([0, 1, 4, 5, 6, 7][self.r.usize(..6)], self.value(), self.value());
        let items = self.r.u32(1..4);
        let a = self.block(a.branch(condition, x, y, &over), items, depth + 1, calls);
        if self.r.bool() {
            return a.label(&over);
        }
        self.block(a.jal(ZERO, &end).label(&over), items, depth + 1, calls).label(&end)
    }

    /// A loop of 1 to 4 turns, as each thread has it.
    fn repeat(&mut self, a: Asm, depth: u32, calls: bool) -> Asm {
        let (again, counter) = (self.label(), COUNTERS + depth);
        let a = a.put([andi(counter, self.value(), 3)]).label(&again);
        let items = self.r.u32(1..4);
        self.block(a, items, depth + 1, calls).put([addi(counter, counter, -1)]).branch(BLT, ZERO, counter, &again)
    }

    /// A direct call, or one through a register that differs between threads.
    fn call(&mut self, a: Asm) -> Asm {
        let mut function = || format!("f{}", self.r.u32(..FUNCTIONS));
        let (f, g) = (function(), function());
        if self.r.bool() {
            return a.jal(RA, &f);
        }
        let (over, value) = (self.label(), self.value());
        let target = if self.r.bool() { RA } else { SCRATCH[0] };
        let a = a.la(target, &f).la(SCRATCH[1], &g).branch(BLT, value, ZERO, &over);
        a.put([addi(target, SCRATCH[1], 0)]).label(&over).put([jalr(RA, target, 0)])
    }

    /// Few threads end here.
    fn leave(&mut self, a: Asm) -> Asm {
        let over = self.label();
        let (x, y) = (self.value(), self.value());
        a.put([andi(SCRATCH[0], x, 7), andi(SCRATCH[1], y, 7)])
            .branch(BNE, SCRATCH[0], SCRATCH[1], &over)
            .exit()
            .label(&over)
    }
}

/// A core with instructions and memory outside.
struct Bare<'a> {
    t: &'a mut Sim<CoreIn<Width>, CoreOut<Signal>>,
    s: Shape,
    program: Vec<u32>,
    memory: Vec<u8>,
    r: fastrand::Rng,
    /// Loads under way: tag and line of data.
    under_way: Vec<(u64, Vec<u8>)>,
    /// The response that is offered and not taken yet.
    offered: Option<(u64, Vec<u8>)>,
    /// Of 8: how likely a load that waits is answered in a cycle.
    eager: u8,
}

fn bits(bytes: &[u8]) -> Bits {
    let limb = |c: &[u8]| c.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b));
    Bits::from_limbs(&bytes.chunks(8).map(limb).collect::<Vec<u64>>())
}

impl Bare<'_> {
    fn run(&mut self) {
        let program_end = (self.program.len() as u32 * 4).next_multiple_of(256);
        let zero = |shape: &Response<Width>| shape.map("", &mut |_, _| Bits::ZERO);
        let response = zero(&Response::shape(&self.s));
        let start = Start::shape(&self.s).map("", &mut |_, _| Bits::ZERO);
        let (restart, fetched) = (Bits::ZERO, Bits::ZERO);
        let mut inputs = CoreIn { start, restart, fetched, response, program_end: program_end.into() };
        self.t.poke(inputs.clone());
        self.t.reset();
        let mut started = 0;
        for cycle in 0..200_000 {
            if self.offered.is_none() && !self.under_way.is_empty() && self.r.u8(..8) < self.eager {
                let k = self.r.usize(..self.under_way.len());
                self.offered = Some(self.under_way.swap_remove(k));
            }
            if let Some((tag, line)) = &self.offered {
                inputs.response = Response { valid: true.into(), tag: (*tag).into(), data: bits(line) };
            } else {
                inputs.response.valid = Bits::ZERO;
            }
            inputs.restart = (cycle == 0).into();
            let mask = u64::MAX >> (64 - self.s.lanes);
            let starts = cycle > 0 && started < self.s.warps;
            inputs.start = Start {
                valid: starts.into(),
                slot: if starts { started } else { 0 }.into(),
                pc: 0u32.into(),
                mask: mask.into(),
            };
            self.t.poke(inputs.clone());
            let out = self.t.peek();
            assert_eq!(out.fault.valid, 0, "cause {} at {}", out.fault.cause, out.fault.pc);
            started += u32::from(starts && out.start_ready == 1);
            if started == self.s.warps && out.idle == 1 && cycle > 2 * self.s.warps {
                return;
            }
            if out.response_ready == 1 {
                self.offered = None;
            }
            self.serve(&out);
            inputs.fetched = self.program.get(out.fetch_pc.low_u64() as usize).copied().unwrap_or(0).into();
            self.t.step();
        }
        panic!("the program does not end");
    }

    fn serve(&mut self, out: &CoreOut<Bits>) {
        let request = &out.request;
        let width = 4 * self.s.lanes as usize;
        let at = request.line.low_u64() as usize * width;
        if request.valid == 1 && request.store == 1 {
            for k in (0..width).filter(|&k| request.enables.bit(k as u32)) {
                self.memory[at + k] = request.data.extract(8 * k as u32, 8).low_u64() as u8;
            }
        } else if request.valid == 1 {
            self.under_way.push((request.tag.low_u64(), self.memory[at..at + width].to_vec()));
        }
    }
}

/// Runs `programs` random programs on a shape; every thread must end with the registers and memory it would have alone.
fn check(s: &Shape, programs: u64) {
    let mut t = Sim::new(&core(s).check().unwrap());
    for seed in 0..programs {
        println!("{} × {}, seed {seed}", s.lanes, s.warps);
        let mut r = fastrand::Rng::with_seed(seed);
        let stride = if r.bool() { 4 } else { (4 * s.threads()).min(0x100) };
        let program = Writer { r: r.fork(), labels: 0, stride }.program(s.threads()).words();
        assert!(program.len() as u32 * 4 <= DATA);
        t.simulation().engine().start(seed);
        let mut bare = Bare {
            t: &mut t,
            s: s.clone(),
            program: program.clone(),
            memory: vec![0; s.memory as usize],
            eager: r.u8(1..=8),
            r,
            under_way: vec![],
            offered: None,
        };
        bare.run();
        for number in 0..s.threads() {
            let (warp, lane) = (number / s.lanes, number % s.lanes);
            let mut thread = Thread::new(number);
            thread.run(&program);
            for register in VALUES.chain([RA, BASE]) {
                let path = format!("collect.lane[{lane}].registers");
                let got = bare.t.memory_read(&path, u64::from(warp << 5 | register)).low_u64() as u32;
                let want = thread.registers[register as usize];
                if register != RA || want != 0 {
                    assert_eq!(got, want, "x{register} of thread {number}, seed {seed}");
                }
            }
            for (&at, &byte) in &thread.memory {
                assert!(at >= DATA);
                assert_eq!(bare.memory[at as usize], byte, "byte {at:#x} of thread {number}, seed {seed}");
            }
        }
    }
}

#[test]
fn one_lane() {
    check(&shape(1, 1), 12);
    check(&shape(1, 4), 6);
}

#[test]
fn few_lanes() {
    check(&shape(2, 1), 10);
    check(&shape(2, 8), 5);
    check(&shape(4, 2), 12);
}

#[test]
fn eight_lanes_and_a_short_load_queue() {
    check(&Shape { loads: 2, ..shape(8, 2) }, 8);
    check(&shape(8, 4), 4);
}

#[test]
fn sixteen_lanes_with_an_address_for_each_bank() {
    check(&Shape { bank_address: BankAddress::PerLane, buffer: 8, ..shape(16, 2) }, 4);
}

#[test]
fn sixty_four_lanes() {
    check(&shape(64, 1), 2);
}
