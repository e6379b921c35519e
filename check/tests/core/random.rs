//! Random programs on the bare core, with a memory that answers when and in what order it likes.

use heddle_check::commit::CommitCheck;
use heddle_check::random::{self, Features};
use heddle_hdl::prelude::*;
use heddle_sim::Sim;
use heddle_simt::core::{CoreIn, CoreOut, core};
use heddle_simt::divergence::Start;
use heddle_simt::memory::atomic::sent;
use heddle_simt::memory::port::{Operation, Response};
use heddle_simt::{BankAddress, Shape, block};
use heddle_testbench::grid::Grid;
use heddle_testbench::iss::atomic;

/// A core with instructions and memory outside.
struct Bare<'a> {
    t: &'a mut Sim<CoreIn<Width>, CoreOut<Signal>>,
    s: Shape,
    seed: u64,
    program: Vec<u32>,
    memory: Vec<u8>,
    r: fastrand::Rng,
    /// Loads under way: tag and line of data.
    under_way: Vec<(u64, Vec<u8>)>,
    /// The response that is offered and not taken yet.
    offered: Option<(u64, Vec<u8>)>,
    check: CommitCheck,
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
        let threads = self.s.threads();
        let grid = block::Grid { blocks: 1u32.into(), block_threads: threads.into(), group: (self.s.warps - 1).into() };
        let mut inputs = CoreIn {
            start,
            block: Bits::ZERO,
            filling: Bits::ones(self.s.warps),
            more: Bits::ZERO,
            grid,
            restart: Bits::ZERO,
            fetched: Bits::ZERO,
            request_ready: 1u32.into(),
            response,
            miss: None,
            program_end: program_end.into(),
            meets: None,
            uniform: None,
            bus_error: None,
        };
        self.t.poke(inputs.clone());
        self.t.reset();
        self.check.launch(self.t.simulation().engine(), Grid::one_block(threads), 0).unwrap();
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
            inputs.filling = if started < self.s.warps { Bits::ones(self.s.warps) } else { Bits::ZERO };
            inputs.start = Start {
                valid: starts.into(),
                slot: if starts { started } else { 0 }.into(),
                pc: 0u32.into(),
                mask: mask.into(),
            };
            self.t.poke(inputs.clone());
            let out = self.t.peek();
            self.check.cycle(self.t.simulation().engine(), self.seed).unwrap_or_else(|mismatch| panic!("{mismatch}"));
            assert_eq!(out.fault.valid, 0, "cause {} at {}", out.fault.cause, out.fault.pc);
            started += u32::from(starts && out.start_ready == 1);
            if started == self.s.warps && out.idle == 1 && cycle > 2 * self.s.warps {
                let ended = self.check.end(self.t.simulation().engine(), self.seed);
                return ended.unwrap_or_else(|mismatch| panic!("{mismatch}"));
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
        if request.valid == 0 {
            return;
        }
        let operation = Operation::from_bits(&request.operation).expect("every number of 2 bits is one");
        let line = &mut self.memory[at..at + width];
        if operation.answers() {
            self.under_way.push((request.tag.low_u64(), line.to_vec()));
        }
        if operation == Operation::Store {
            for k in (0..width).filter(|&k| request.enables.bit(k as u32)) {
                line[k] = request.data.extract(8 * k as u32, 8).low_u64() as u8;
            }
        } else if operation != Operation::Load {
            for (k, word) in (0..).step_by(4).zip(line.chunks_exact_mut(4)).filter(|(k, _)| request.enables.bit(*k)) {
                let old = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                let function = request.function.low_u64() as u32;
                let operand = sent(function, request.data.extract(8 * k, 32).low_u64() as u32);
                let new = atomic(function, old, operand).expect("an operation that there is");
                word.copy_from_slice(&new.to_le_bytes());
            }
        }
    }
}

/// Runs random programs on a shape, each thread's instructions and all of memory beside the instruction-set simulator.
fn check(s: &Shape, programs: u64) {
    let mut t = Sim::new(&core(s).check().unwrap());
    for seed in 1000..1000 + programs {
        println!("{} × {}, seed {seed}", s.lanes, s.warps);
        let mut r = fastrand::Rng::with_seed(seed);
        let asm = random::program(seed).assemble(s, Features::of(s));
        let program = asm.program();
        t.simulation().engine().start(seed);
        let check = CommitCheck::new(t.simulation().directory(), &program, s).unwrap();
        let memory = program.memory_image(s).unwrap();
        let (program, eager) = (asm.words(), r.u8(1..=8));
        let mut bare =
            Bare { t: &mut t, s: s.clone(), seed, program, memory, check, eager, r, under_way: vec![], offered: None };
        bare.run();
        assert!(bare.memory == bare.check.iss().memory(), "memory differs, seed {seed}");
    }
}

/// Memory for random programs, and hardly more.
fn shape(lanes: u32, warps: u32) -> Shape {
    Shape { memory: 64 << 10, program: 16 << 10, stack: 64, ..Shape::new(lanes, warps) }
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
