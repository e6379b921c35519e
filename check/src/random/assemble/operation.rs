//! Operations and accesses.

use super::{BARRIERS, BASE, COMPUTE, DATA, SCRATCH, SHARED, SPREAD, THREAD, Writer, value};
use crate::random::program::{Access, Op, Shared, WORDS};
use heddle_hdl::Code;
use heddle_simt::address::{SCRATCHPAD, STACK};
use heddle_simt::csr;
use heddle_simt::isa::{Atomic, Shuffle, Vote};
use heddle_testbench::asm::*;

impl Writer<'_> {
    pub(super) fn op(&mut self, op: &Op) {
        match *op {
            Op::Compute(kind, rd, a, b) if self.features.warp_primitives && self.features.races && kind % 5 == 0 => {
                let (function, rd, a, b) = (usize::from(kind / 5) % 4, value(rd), value(a), value(b));
                match kind / 5 / 4 % 4 {
                    0 => self.put([vote(Vote::ALL[function], rd, a)]),
                    1 => {
                        // Those who are together name each other.
                        let [lower, upper] = SCRATCH;
                        self.put([addi(lower, ZERO, 1), vote(Vote::BallotUpper, upper, lower)]);
                        self.put([vote(Vote::Ballot, lower, lower), sync(u32::from(kind) % 16, lower, upper)]);
                    }
                    // Of a lane nearby, or of any.
                    2 => self.put([andi(SCRATCH[0], b, 7), shuffle(Shuffle::ALL[function], rd, a, SCRATCH[0])]),
                    _ => self.put([shuffle(Shuffle::ALL[function], rd, a, b)]),
                }
            }
            Op::Compute(kind, rd, a, b) => {
                let (funct7, funct3) = COMPUTE[kind as usize % COMPUTE.len()];
                self.put([r(funct7, value(b), value(a), funct3, value(rd), 0x33)]);
            }
            Op::Immediate(kind, rd, a, immediate) => {
                let (rd, a) = (value(rd), value(a));
                let immediate = u32::from(immediate as u16) & 0xfff;
                // Shifts have an amount and a bit that says which; the others take all 12 bits.
                let field = match kind % 9 {
                    1 | 5 => immediate & 31,
                    8 => 0x400 | immediate & 31,
                    _ => immediate,
                };
                let funct3 = if kind % 9 == 8 { 5 } else { u32::from(kind % 9) };
                self.put([field << 20 | r(0, 0, a, funct3, rd, 0x13)]);
            }
            Op::Upper(pc, rd, upper) => {
                let opcode = if pc { 0x17 } else { 0x37 };
                self.put([upper << 12 | value(rd) << 7 | opcode]);
            }
            Op::Own(stack, access, register, word, byte) => self.own(stack, access, value(register), word, byte),
            Op::Share(shared, access, register, by, spread, apart) => {
                if self.features.threads && self.features.races {
                    self.share(shared, access, value(register), value(by), SPREAD[spread as usize], apart);
                }
            }
            Op::Late(kind, rd, a, over) => {
                let (rd, a) = (value(rd), value(a));
                self.put([r(1, THREAD, a, 4 + u32::from(kind), rd, 0x33)]);
                self.put([if over { addi(rd, a, 1) } else { add(a, rd, a) }]);
            }
            Op::Csr(at, rd) => {
                if self.features.threads && self.features.races {
                    let csr = &csr::MAP[at as usize % csr::MAP.len()];
                    if self.features.counters || !csr.source.counts() {
                        self.put([csrr(value(rd), u32::from(csr.address))]);
                    }
                }
            }
            Op::Fence => self.put([0x0ff0_000f]),
            Op::Barrier => {
                if self.features.barriers {
                    let over = self.fresh("over");
                    self.branch(BEQ, BARRIERS, ZERO, &over);
                    self.put([addi(BARRIERS, BARRIERS, -1), BARRIER]);
                    self.place(&over);
                }
            }
            Op::Call(which) => {
                let callee = self.callee(which);
                let over = self.fresh("over");
                self.pay_for_call(&over);
                self.jump(self.link(callee), &format!("f{callee}"));
                self.place(&over);
            }
            Op::CallEither(by, f, g, through_link) => self.call_either(value(by), f, g, through_link),
            Op::Scatter(rd, by, bits) => self.scatter(value(rd), value(by), bits),
            Op::Leave(a, b, bits) => {
                let over = self.fresh("stay");
                let mask = (1 << bits) - 1;
                self.put([andi(SCRATCH[0], value(a), mask), andi(SCRATCH[1], value(b), mask)]);
                self.branch(BNE, SCRATCH[0], SCRATCH[1], &over);
                self.leave();
                self.place(&over);
            }
        }
    }

    /// An access to one of the thread's words: `instruction` gets the base register and the offset.
    pub(super) fn access(&mut self, word: u8, instruction: impl Fn(u32, i32) -> u32) {
        let stride = if self.program.interleaved { 4 * self.threads } else { 4 };
        let offset = (u32::from(word) * stride) as i32;
        if offset < 2044 {
            self.put([instruction(BASE, offset)]);
        } else {
            self.put(li(SCRATCH[0], offset as u32));
            self.put([add(SCRATCH[0], SCRATCH[0], BASE), instruction(SCRATCH[0], 0)]);
        }
    }

    /// An access as the machine has it, and the mask of its address. Atomics have no offset, and may be two instructions.
    fn access_at(&self, access: Access, register: u32) -> (i32, impl Fn(u32, i32) -> Vec<u32> + use<>) {
        let access = match access {
            Access::Atomic(..) if !self.features.atomics => Access::Load(2),
            other => other,
        };
        let funct3 = |kind: u8| [0, 1, 2, 4, 5][kind as usize];
        let aligned = |funct3: u32| !((1 << (funct3 & 3)) - 1);
        let mask = match access {
            Access::Load(kind) => aligned(funct3(kind)),
            Access::Store(size) => aligned(u32::from(size)),
            Access::Atomic(..) => aligned(2),
        };
        let reservations = self.features.reservations;
        let instruction = move |base, offset| match access {
            Access::Load(kind) => vec![load(funct3(kind), register, base, offset)],
            Access::Store(size) => vec![store(u32::from(size), register, base, offset)],
            // Some of them, in a core with reservations.
            Access::Atomic(4, _) if reservations => vec![lr(register, base)],
            Access::Atomic(5, operand) if reservations => vec![sc(register, value(operand), base)],
            Access::Atomic(6..8, operand) if reservations => {
                vec![lr(register, base), sc(register, value(operand), base)]
            }
            Access::Atomic(operation, operand) => {
                vec![amo(Atomic::ALL[operation as usize] as u32, register, value(operand), base)]
            }
        };
        (mask, instruction)
    }

    fn own(&mut self, stack: bool, access: Access, register: u32, word: u8, byte: u8) {
        let (mask, instruction) = self.access_at(access, register);
        let byte = i32::from(byte) & mask;
        if stack && self.has_stack_words() {
            self.put([lui(SCRATCH[0], STACK >> 12), addi(SCRATCH[0], SCRATCH[0], 4 * i32::from(word) + byte)]);
            self.put(instruction(SCRATCH[0], 0));
        } else if matches!(access, Access::Atomic(..)) {
            self.access(word, |base, offset| addi(SCRATCH[1], base, offset + byte));
            self.put(instruction(SCRATCH[1], 0));
        } else {
            self.access(word, |base, offset| instruction(base, offset + byte)[0]);
        }
    }

    fn share(&mut self, shared: Shared, access: Access, register: u32, by: u32, spread: i32, apart: u8) {
        let (mask, instruction) = self.access_at(access, register);
        let (base, bytes) = match shared {
            // Of the smallest block.
            Shared::Scratchpad if self.features.scratchpad => (SCRATCHPAD, self.shape.scratchpad / self.shape.warps),
            _ => (DATA + 4 * u32::from(WORDS) * self.threads, SHARED),
        };
        // The mask of an `andi` is positive.
        let within = bytes.min(1 << 11) as i32 - 1;
        self.put([add(SCRATCH[1], by, THREAD), andi(SCRATCH[1], SCRATCH[1], spread)]);
        self.put([slli(SCRATCH[1], SCRATCH[1], 2 * u32::from(apart)), andi(SCRATCH[1], SCRATCH[1], within & mask)]);
        self.put(li(SCRATCH[0], base));
        self.put([add(SCRATCH[0], SCRATCH[0], SCRATCH[1])]);
        self.put(instruction(SCRATCH[0], 0));
    }

    fn scatter(&mut self, rd: u32, by: u32, bits: u8) {
        let (places, over) = (self.fresh("places"), self.fresh("over"));
        self.address(SCRATCH[0], &places);
        self.put([add(SCRATCH[1], by, THREAD), andi(SCRATCH[1], SCRATCH[1], (1 << bits) - 1)]);
        self.put([slli(SCRATCH[1], SCRATCH[1], 3), add(SCRATCH[0], SCRATCH[0], SCRATCH[1]), jalr(ZERO, SCRATCH[0], 0)]);
        self.place(&places);
        for place in 0..1 << bits {
            self.put([addi(rd, rd, place)]);
            self.jump(ZERO, &over);
        }
        self.place(&over);
    }

    /// This function or a later one.
    fn callee(&self, which: u8) -> usize {
        let left = self.program.functions.len() - self.function;
        self.function + which as usize % left
    }

    /// Both must have the same link register; the second is the first otherwise.
    fn call_either(&mut self, by: u32, f: u8, g: u8, through_link: bool) {
        let f = self.callee(f);
        let link = self.link(f);
        let g = Some(self.callee(g)).filter(|&g| self.link(g) == link).unwrap_or(f);
        let over = self.fresh("over");
        self.pay_for_call(&over);
        let target = if through_link { link } else { SCRATCH[0] };
        let chosen = self.fresh("chosen");
        self.address(target, &format!("f{f}"));
        self.address(SCRATCH[1], &format!("f{g}"));
        self.branch(BLT, by, ZERO, &chosen);
        self.put([addi(target, SCRATCH[1], 0)]);
        self.place(&chosen);
        self.put([jalr(link, target, 0)]);
        self.place(&over);
    }
}
