//! Everything that stops the core: on core and simulator the same cause, pc, threads and address, with all threads to
//! blame, one of them, or the odd ones.

use crate::reference::BRANCH;
use crate::table::{TABLE, is_legal};
use bitvec::field::BitField;
use heddle_check::checked;
use heddle_check::commit::core_code;
use heddle_hdl::Code;
use heddle_simt::Shape;
use heddle_simt::address::{SCRATCHPAD, STACK};
use heddle_simt::csr;
use heddle_simt::isa::{Atomic, FaultCause};
use heddle_testbench::asm::*;
use heddle_testbench::grid::ThreadId;
use heddle_testbench::iss::{Cause, Iss};
use heddle_testbench::machine::{Machine, MachineError, ThreadExit};
use heddle_testbench::{Program, disassemble};
use std::io::Write;

/// Registers of programs here: the thread's number, and others.
const THREAD: u32 = 5;
const S: u32 = 6;
const T: u32 = 7;
/// Bytes of instruction memory.
const PROGRAM: u32 = 4 << 10;
/// More instructions than any program here executes.
const STEPS: u32 = 200;

/// An instruction that stops the core.
#[derive(Clone)]
struct Case {
    /// Before it.
    setup: Vec<u32>,
    word: u32,
    cause: FaultCause,
    address: Option<u32>,
}

impl Case {
    fn new(setup: &[u32], word: u32, cause: FaultCause, address: impl Into<Option<u32>>) -> Case {
        Case { setup: setup.to_vec(), word, cause, address: address.into() }
    }

    fn illegal(word: u32) -> Case {
        Case::new(&[], word, FaultCause::IllegalInstruction, None)
    }
}

/// Threads that come to the instruction; the others end.
#[derive(Clone, Copy, Debug)]
enum Who {
    All,
    One(u32),
    Odd,
}

impl Who {
    fn is(self, thread: u32) -> bool {
        match self {
            Who::All => true,
            Who::One(number) => thread == number,
            Who::Odd => thread % 2 == 1,
        }
    }
}

/// The program of an instruction, which is at `x`, and of what is before it.
fn program(setup: &[u32], word: u32, who: Who) -> Asm {
    let a = Asm::default().put([csrr(THREAD, MHARTID)]);
    let a = match who {
        Who::All => a,
        Who::One(thread) => a.put(li(T, thread)).branch(BNE, THREAD, T, "end"),
        Who::Odd => a.put([andi(T, THREAD, 1)]).branch(BEQ, T, ZERO, "end"),
    };
    let a = a.put(setup.iter().copied()).label("x").put([word]);
    a.put([addi(A0, ZERO, 0)]).label("end").put([addi(A0, ZERO, 0)]).exit()
}

/// What a thread comes to on the simulator: cause, pc and address as the core has them, or its exit code.
fn alone(iss: &mut Iss, thread: u32) -> Result<u32, (FaultCause, u32, Option<u32>)> {
    let mut before = 0;
    for _ in 0..STEPS {
        if let Some(code) = iss.hart(thread).exit() {
            return Ok(code);
        }
        match iss.step(thread) {
            Ok(step) => before = step.pc,
            // The core blames the jump, the simulator its target.
            Err(f) if f.cause == Cause::FetchOutside => return Err((FaultCause::FetchOutOfRange, before, Some(f.pc))),
            Err(f) => {
                let (code, address) = core_code(f.cause);
                return Err((code, f.pc, address));
            }
        }
    }
    panic!("thread {thread} does not end");
}

struct Bench {
    shape: Shape,
    machine: Machine,
}

impl Bench {
    /// Small memories, as every case loads them.
    fn new(lanes: u32, warps: u32) -> Bench {
        let memory = (16 << 10u32).max(lanes * warps * 128);
        let shape = Shape { memory, program: PROGRAM, stack: 64, ..Shape::new(lanes, warps) };
        let machine = Machine::new(&shape, Program::assembled(&[EBREAK], []), &checked()).unwrap();
        Bench { shape, machine }
    }

    fn name(&self) -> String {
        format!("{} lanes × {} warps", self.shape.lanes, self.shape.warps)
    }

    /// The program must stop at `x`, with these lanes of a warp.
    fn stops(&mut self, case: &Case, who: Who) {
        let lanes = self.shape.lanes;
        let blamed: u64 = match who {
            Who::All => u64::MAX >> (64 - lanes),
            Who::One(thread) => 1 << (thread % lanes),
            Who::Odd if lanes == 1 => 1,
            Who::Odd => 0xaaaa_aaaa_aaaa_aaaa & u64::MAX >> (64 - lanes),
        };
        let source = program(&case.setup, case.word, who);
        let x = 4 * source.at("x") as u32;
        let text = format!("`{}` at {x:#x}, {who:?}, {}", disassemble(case.word, x), self.name());
        self.machine.load(source.program()).unwrap();
        let Err(MachineError::Fault(fault)) = self.machine.run() else { panic!("{text}: the core does not stop") };
        assert_eq!((fault.what, fault.pc), (case.cause.describe(), x), "{text}: {fault}");
        assert_eq!((fault.mask.load(), fault.address), (blamed, case.address), "{text}: {fault}");
        if let Who::One(thread) = who {
            assert_eq!(fault.warp, thread / lanes, "{text}: {fault}");
        }
        simulator_stops(case, who, &self.shape);
    }

    /// The program must end well.
    fn ends(&mut self, setup: &[u32], word: u32) {
        let source = program(setup, word, Who::All);
        let text = format!("`{}`, {}", disassemble(word, 0), self.name());
        self.machine.load(source.program()).unwrap();
        self.machine.run().unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut iss = Iss::new(&source.program(), &self.shape).unwrap();
        iss.run().unwrap_or_else(|error| panic!("{text}: {error} on the simulator"));
    }
}

fn simulator_stops(case: &Case, who: Who, shape: &Shape) {
    let source = program(&case.setup, case.word, who);
    let x = 4 * source.at("x") as u32;
    let mut iss = Iss::new(&source.program(), shape).unwrap();
    for thread in 0..shape.threads() {
        let want = if who.is(thread) { Err((case.cause, x, case.address)) } else { Ok(0) };
        let text = disassemble(case.word, x);
        assert_eq!(alone(&mut iss, thread), want, "`{text}` at {x:#x}, {who:?}: thread {thread} on the simulator");
    }
}

/// A conditional or unconditional jump by an offset.
fn branch(condition: u32, offset: i32) -> u32 {
    let o = offset as u32;
    0x63 | condition << 12 | (o >> 12 & 1) << 31 | (o >> 5 & 63) << 25 | (o >> 1 & 15) << 8 | (o >> 11 & 1) << 7
}

fn jal(rd: u32, offset: i32) -> u32 {
    let o = offset as u32;
    0x6f | rd << 7 | (o >> 20 & 1) << 31 | (o >> 1 & 0x3ff) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 0xff) << 12
}

/// Every cause, at its edges. Instructions are at `x`, whose address depends on `who`; so cases with jumps by an offset
/// are made for one `who`.
fn cases(shape: &Shape, x: u32) -> Vec<Case> {
    let end = shape.memory;
    let mut cases =
        vec![Case::illegal(0), Case::illegal(u32::MAX), Case::new(&[], EBREAK, FaultCause::Breakpoint, None)];
    for a7 in [0, 1, 92, 94, 93 + 256, u32::MAX - 92] {
        cases.push(Case::new(&li(A7, a7), ECALL, FaultCause::UnknownEcall, None));
    }
    for csr in csr::MAP {
        let (address, x1) = (u32::from(csr.address) << 20, 1 << 15);
        for (funct3, source) in [(1, 0), (1, x1), (2, x1), (3, x1), (5, 0), (5, x1), (6, x1), (7, x1), (4, 0)] {
            cases.push(Case::illegal(address | source | funct3 << 12 | S << 7 | 0x73));
        }
        for bit in 20..32 {
            let other = address ^ 1 << bit;
            if csr::MAP.iter().all(|c| u32::from(c.address) << 20 != other) {
                cases.push(Case::illegal(other | 2 << 12 | S << 7 | 0x73));
            }
        }
    }
    // Jumps: misaligned before outside.
    let to = |offset: i32| x.wrapping_add(offset as u32);
    let outside = |offset: i32| to(offset) >= PROGRAM;
    let jump =
        |target: u32| if target.is_multiple_of(4) { FaultCause::FetchOutOfRange } else { FaultCause::FetchMisaligned };
    for offset in [2, 6, -2, -6, -4094, 4094, -4096] {
        for (_, condition, taken) in BRANCH {
            let operand = if taken(0, 0) { ZERO } else { THREAD };
            let setup = if operand == ZERO { vec![] } else { vec![addi(THREAD, ZERO, 1)] };
            let (rs1, rs2) = if matches!(condition, 4 | 6) { (ZERO, operand) } else { (operand, ZERO) };
            let x = if setup.is_empty() { x } else { x + 4 };
            let target = x.wrapping_add(offset as u32);
            let word = branch(condition, offset) | rs1 << 15 | rs2 << 20;
            cases.push(Case { setup, word, cause: jump(target), address: Some(target) });
        }
    }
    for offset in [2, -2, 0xffffe, -0xffffe, PROGRAM as i32, -0x10_0000] {
        for rd in [ZERO, 1, S] {
            assert!(offset % 4 != 0 || outside(offset));
            cases.push(Case::new(&[], jal(rd, offset), jump(to(offset)), to(offset)));
        }
    }
    for target in [2, 3, 0x102, PROGRAM, PROGRAM + 2, 0x8000_0000, 0xffff_fffc, 0xffff_ffff] {
        for (rd, imm) in [(ZERO, 0), (1, 0x7ff), (T, -0x800)] {
            let setup = li(T, target.wrapping_sub(imm as u32));
            cases.push(Case::new(&setup, jalr(rd, T, imm), jump(target & !1), target & !1));
        }
    }
    // Accesses: misaligned, outside, into the program.
    for (funct3, bytes) in [(0, 1), (1, 2), (2, 4), (4, 1), (5, 2)] {
        let mut at = |address: u32, load_cause: Option<FaultCause>, store_cause: FaultCause| {
            for imm in [0, 1, -0x800, 0x7ff] {
                let setup = li(T, address.wrapping_sub(imm as u32));
                if let Some(load_cause) = load_cause {
                    cases.push(Case::new(&setup, load(funct3, S, T, imm), load_cause, address));
                }
                if funct3 < 4 {
                    cases.push(Case::new(&setup, store(funct3, S, T, imm), store_cause, address));
                }
                if funct3 == 2 && imm == 0 {
                    cases.extend(
                        Atomic::ALL
                            .iter()
                            .map(|&operation| Case::new(&setup, amo(operation as u32, S, S, T), store_cause, address)),
                    );
                }
            }
        };
        for offset in 1..4 {
            if offset % bytes != 0 {
                for base in [0, 0x1000, end - 4, end, SCRATCHPAD, STACK, 0xffff_fffc] {
                    at(base + offset, Some(FaultCause::LoadMisaligned), FaultCause::StoreMisaligned);
                }
            }
        }
        let windows = [SCRATCHPAD - bytes, SCRATCHPAD + shape.scratchpad, STACK - bytes, STACK + shape.stack];
        for address in [end, end + 4, 0u32.wrapping_sub(bytes)].into_iter().chain(windows) {
            at(address, Some(FaultCause::LoadOutOfRange), FaultCause::StoreOutOfRange);
        }
        for address in [0, 0x80, 0x100 - bytes] {
            at(address, None, FaultCause::StoreToProgram);
        }
    }
    cases
}

/// All cases in all threads, and each `part`th in some of them. `x` is behind the choice of threads.
fn causes(lanes: u32, warps: u32, part: usize) {
    let mut bench = Bench::new(lanes, warps);
    let threads = bench.shape.threads();
    let mut whos = vec![Who::All, Who::One(0), Who::One(threads - 1), Who::One(threads / 2)];
    if threads > 1 {
        whos.push(Who::Odd);
    }
    for (n, who) in whos.into_iter().enumerate() {
        let start = 4 * program(&[], 0, who).at("x") as u32;
        for case in cases(&bench.shape, start).iter().skip((n + lanes as usize) % part).step_by(part) {
            bench.stops(case, who);
        }
    }
}

#[test]
fn every_cause_in_all_threads_and_in_some() {
    causes(1, 1, 1);
    causes(4, 2, 1);
    for (lanes, warps) in [(1, 16), (2, 1), (2, 64), (4, 8), (8, 1), (8, 8), (16, 4), (32, 2)] {
        causes(lanes, warps, 23);
    }
    causes(64, 32, 101);
    if std::env::var_os("HEDDLE_LONG").is_some() {
        causes(64, 1, 23);
    } else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: causes on 64 lanes × 1 warp, which HEDDLE_LONG=1 asks for");
    }
}

/// Each fixed bit of each instruction the other way: another instruction, or illegal.
#[test]
fn encodings_beside_legal_ones_are_illegal() {
    let mut bench = Bench::new(4, 2);
    let mut illegal = 0;
    for row in TABLE {
        for bit in (0..32).filter(|bit| row.mask >> bit & 1 == 1) {
            let word = (row.value | 0x0062_8300 & !row.mask) ^ 1 << bit;
            if !is_legal(word) {
                bench.stops(&Case::illegal(word), if bit % 2 == 0 { Who::All } else { Who::One(bit % 8) });
                illegal += 1;
            }
        }
    }
    assert!(illegal > 300, "{illegal}");
}

/// Lanes of one access, of which only the odd ones are misaligned.
#[test]
fn lanes_are_blamed_one_by_one() {
    for (lanes, warps) in [(2, 1), (8, 2), (64, 1)] {
        let mut bench = Bench::new(lanes, warps);
        let setup = [csrr(T, LANE), andi(S, T, 1), slli(T, T, 2), add(T, T, S)];
        let load = Case::new(&setup, load(1, S, T, 0x400), FaultCause::LoadMisaligned, 0x405);
        bench.machine.load(program(&load.setup, load.word, Who::All).program()).unwrap();
        let Err(MachineError::Fault(fault)) = bench.machine.run() else { panic!("the core does not stop") };
        let odd = 0xaaaa_aaaa_aaaa_aaaa & u64::MAX >> (64 - lanes);
        assert_eq!((fault.mask.load(), fault.address), (odd, load.address), "{fault}");
        let mut iss = Iss::new(&program(&load.setup, load.word, Who::All).program(), &bench.shape).unwrap();
        for thread in 0..lanes {
            let want = match thread % 2 {
                0 => Ok(0),
                _ => Err((
                    load.cause,
                    4 * program(&load.setup, load.word, Who::All).at("x") as u32,
                    Some(0x401 + 4 * thread),
                )),
            };
            assert_eq!(alone(&mut iss, thread), want, "thread {thread}");
        }
    }
}

/// What a condition rules out is no fault, and neither is the last that is allowed.
#[test]
fn the_last_that_is_allowed() {
    for (lanes, warps) in [(1, 1), (2, 64), (8, 8), (64, 1)] {
        let mut bench = Bench::new(lanes, warps);
        let end = bench.shape.memory;
        for (_, condition, taken) in BRANCH {
            let rs1 = if taken(0, 0) { T } else { ZERO };
            // Not taken: x7 = 1 differs from 0; it is more than 0.
            let operands = if matches!(condition, 5 | 7) { rs1 << 20 } else { rs1 << 15 };
            for offset in [2, -2, 4094, -4096] {
                bench.ends(&[addi(T, ZERO, 1)], branch(condition, offset) | operands);
            }
        }
        for (funct3, bytes) in [(0, 1), (1, 2), (2, 4), (4, 1), (5, 2)] {
            let pad = SCRATCHPAD + bench.shape.scratchpad - bytes;
            let stack = STACK + bench.shape.stack - bytes;
            for address in [0, 0x100, end - bytes, SCRATCHPAD, pad, STACK, stack] {
                bench.ends(&li(T, address), load(funct3, S, T, 0));
                if funct3 < 4 && address > 0 {
                    bench.ends(&li(T, address), store(funct3, S, T, 0));
                }
                if funct3 == 2 && address > 0 {
                    bench.ends(&li(T, address), amo(Atomic::Add as u32, S, S, T));
                }
            }
        }
    }
}

/// Code that runs on over the end of a program finds words of 0.
#[test]
fn the_end_of_a_program_is_illegal() {
    let mut bench = Bench::new(4, 2);
    let words = [NOP; 64];
    let program = Program::assembled(&words, []);
    bench.machine.load(program.clone()).unwrap();
    let Err(MachineError::Fault(fault)) = bench.machine.run() else { panic!("the core does not stop") };
    assert_eq!((fault.what, fault.pc), (FaultCause::IllegalInstruction.describe(), 256), "{fault}");
    let mut iss = Iss::new(&program, &bench.shape).unwrap();
    assert_eq!(alone(&mut iss, 5), Err((FaultCause::IllegalInstruction, 256, None)));
}

/// `ecall` ends each thread with its own code.
#[test]
fn every_thread_has_its_exit_code() {
    for (lanes, warps) in [(1, 1), (1, 16), (2, 64), (4, 2), (8, 8), (32, 2), (64, 32)] {
        let mut bench = Bench::new(lanes, warps);
        let factor = 0x9e37_79b1;
        let source = Asm::default().put([csrr(THREAD, MHARTID)]).put(li(T, factor));
        let program = source.put([mul(A0, THREAD, T)]).exit().program();
        let want: Vec<ThreadExit> = (1..bench.shape.threads())
            .map(|thread| ThreadExit { thread: ThreadId { block: 0, thread }, code: thread.wrapping_mul(factor) })
            .collect();
        bench.machine.load(program.clone()).unwrap();
        match bench.machine.run() {
            Ok(()) => assert!(want.is_empty()),
            Err(MachineError::ExitCodes { first, count }) => {
                assert_eq!((first, count as usize), (want.clone(), want.len()))
            }
            Err(error) => panic!("{error}"),
        }
        let mut iss = Iss::new(&program, &bench.shape).unwrap();
        for exit in want {
            assert_eq!(alone(&mut iss, exit.thread.thread), Ok(exit.code));
        }
    }
}
