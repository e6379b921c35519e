//! The cases: bodies for every instruction that leaves its thread alive.

use crate::harness::{Body, Input, Registers, Suite};
use crate::reference::{ATOMIC, BRANCH, REGISTER, loaded, operation, stored};
use heddle_simt::address::{SCRATCHPAD, STACK};
use heddle_simt::csr::{self, Source};
use heddle_testbench::asm::*;

/// All suites, for a core with all that is optional; `h` are the registers of the harness, and those that differ
/// between choices.
pub fn all(h: &Registers) -> Vec<Suite> {
    let first = [register_register(h), immediate(h), shifts_and_upper(h), branches(h), jumps(h)];
    let accesses = |region| [loads(h, region), stores(h, region), atomics(h, region)];
    let accesses = [Region::Main, Region::Scratchpad, Region::Stack].into_iter().flat_map(accesses);
    first.into_iter().chain(accesses).chain([barriers(h), system(h)]).collect()
}

/// Every immediate of format I that is an edge.
const IMMEDIATES: [i32; 15] = [0, 1, -1, 2, -2, 31, 32, 0x7f, -0x80, 0x555, -0x556, 0x7fe, 0x7ff, -0x7ff, -0x800];

/// Format R: with all operands apart, and each way in which registers can be the same.
pub fn register_register(h: &Registers) -> Suite {
    let mut bodies = vec![];
    for (_, funct7, funct3, f) in REGISTER {
        let op = |rd, rs1, rs2| r(funct7, rs2, rs1, funct3, rd, 0x33);
        let (a, b, d) = (h.a, h.b, h.result);
        bodies.extend([
            Body::new(&[op(d, a, b)], move |i| f(i.a, i.b)),
            Body::new(&[addi(d, a, 0), op(d, d, b)], move |i| f(i.a, i.b)),
            Body::new(&[addi(d, b, 0), op(d, a, d)], move |i| f(i.a, i.b)),
            Body::new(&[addi(d, a, 0), op(d, d, d)], move |i| f(i.a, i.a)),
            Body::new(&[op(d, ZERO, b)], move |i| f(0, i.b)),
            Body::new(&[op(d, a, ZERO)], move |i| f(i.a, 0)),
            // Nothing is written, and nothing forwarded.
            Body::new(&[op(ZERO, a, b), add(d, ZERO, ZERO)], |_| 0).about(0),
            // The second waits for the first.
            Body::new(&[op(d, a, b), op(d, d, a)], move |i| f(f(i.a, i.b), i.a)),
        ]);
    }
    Suite::new("register-register", h, bodies)
}

/// Format I but shifts.
fn immediate(h: &Registers) -> Suite {
    let mut bodies = vec![];
    for (name, funct3) in [("add", 0), ("slt", 2), ("sltu", 3), ("xor", 4), ("or", 6), ("and", 7)] {
        let f = operation(name);
        let op = |rd, rs1, imm: i32| addi(rd, rs1, imm) | funct3 << 12;
        for imm in IMMEDIATES {
            bodies.push(Body::new(&[op(h.result, h.a, imm)], move |i| f(i.a, imm as u32)));
        }
        for imm in [-1, 0x7ff] {
            bodies.extend([
                Body::new(&[addi(h.result, h.a, 0), op(h.result, h.result, imm)], move |i| f(i.a, imm as u32)),
                Body::new(&[op(h.result, ZERO, imm)], move |_| f(0, imm as u32)),
                Body::new(&[op(ZERO, h.a, imm), add(h.result, ZERO, ZERO)], |_| 0).about(0),
            ]);
        }
    }
    Suite::new("immediate", h, bodies)
}

fn shifts_and_upper(h: &Registers) -> Suite {
    let mut bodies = vec![];
    for (name, funct7, funct3) in [("sll", 0, 1), ("srl", 0, 5), ("sra", 0x20, 5)] {
        let f = operation(name);
        for by in 0..32 {
            bodies.push(Body::new(&[r(funct7, by, h.a, funct3, h.result, 0x13)], move |i| f(i.a, by)));
        }
        let twice = r(funct7, 1, h.result, funct3, h.result, 0x13);
        bodies.push(Body::new(&[addi(h.result, h.a, 0), twice, twice], move |i| f(i.a, 2)));
        bodies.push(Body::new(&[r(funct7, 5, h.a, funct3, ZERO, 0x13), add(h.result, ZERO, ZERO)], |_| 0).about(0));
    }
    for upper in [0, 1, 2, 0x55555, 0x7fffe, 0x7ffff, 0x80000, 0x80001, 0xaaaaa, 0xffffe, 0xfffff] {
        bodies.push(Body::new(&[lui(h.result, upper)], move |_| upper << 12));
        let auipc = |rd: u32| upper << 12 | rd << 7 | 0x17;
        bodies.push(Body::new(&[auipc(h.result)], move |i| i.pc.wrapping_add(upper << 12)));
        bodies.push(Body::new(&[lui(ZERO, upper), add(h.result, ZERO, ZERO)], |_| 0).about(0));
        bodies.push(Body::new(&[auipc(ZERO), add(h.result, ZERO, ZERO)], |_| 0).about(0));
    }
    Suite::new("shifts and upper immediates", h, bodies)
}

/// Each condition, ahead and back, near and as far as it goes; operands in all ways.
fn branches(h: &Registers) -> Suite {
    let d = h.result;
    let value = |taken: bool| if taken { 1 } else { 2 };
    let mut bodies = vec![];
    for (_, funct3, f) in BRANCH {
        let ahead = |rs1, rs2, gap: usize| {
            let a = Asm::default().branch(funct3, rs1, rs2, "taken").put([addi(d, ZERO, 2)]).jal(ZERO, "end");
            a.put(vec![NOP; gap]).label("taken").put([addi(d, ZERO, 1)]).label("end").words()
        };
        let back = |rs1, rs2, gap: usize| {
            let a = Asm::default().jal(ZERO, "branch").label("taken").put([addi(d, ZERO, 1)]).jal(ZERO, "end");
            let a = a.put(vec![NOP; gap]).label("branch").branch(funct3, rs1, rs2, "taken").put([addi(d, ZERO, 2)]);
            a.label("end").words()
        };
        for (rs1, rs2) in [(h.a, h.b), (h.a, h.a), (h.a, ZERO), (ZERO, h.b), (ZERO, ZERO)] {
            let of = move |i: &Input| {
                let operand = |register| if register == rs1 && rs1 != ZERO { i.a } else { 0 };
                let second = if rs2 == ZERO {
                    0
                } else if rs2 == rs1 {
                    i.a
                } else {
                    i.b
                };
                value(f(operand(rs1), second))
            };
            bodies.push(Body::new(&ahead(rs1, rs2, 0), of).about(0));
            bodies.push(Body::new(&back(rs1, rs2, 0), of).about(3));
        }
        // To the next instruction: both sides are one path.
        let next = Asm::default().branch(funct3, h.a, h.b, "next").label("next").put([addi(d, ZERO, 3)]).words();
        bodies.push(Body::new(&next, |_| 3).about(0));
        // A loop of (a mod 4) + 1 turns.
        let turns = Asm::default().put([andi(h.s, h.a, 3), addi(d, ZERO, 0)]).label("again").put([addi(d, d, 1)]);
        let turns = turns.put([addi(h.s, h.s, -1)]).branch(5, h.s, ZERO, "again").words();
        bodies.push(Body::new(&turns, |i| i.a % 4 + 1));
        // Right behind the instruction that makes its operand.
        let late = Asm::default().put([mul(h.s, h.a, h.b)]).branch(funct3, h.s, h.a, "taken").put([addi(d, ZERO, 2)]);
        let late = late.jal(ZERO, "end").label("taken").put([addi(d, ZERO, 1)]).label("end").words();
        bodies.push(Body::new(&late, move |i| value(f(i.a.wrapping_mul(i.b), i.a))).about(1));
        // 4092 bytes ahead and 4096 back are the extremes.
        if funct3 == 0 || funct3 == 6 {
            let of = move |i: &Input| value(f(i.a, i.b));
            bodies.push(Body::new(&ahead(h.a, h.b, 1020), of).about(0));
            bodies.push(Body::new(&back(h.a, h.b, 1021), of).about(1024));
        }
    }
    Suite::new("branches", h, bodies)
}

/// `jal` and `jalr` with each kind of register, ahead and back.
fn jumps(h: &Registers) -> Suite {
    let mut bodies = vec![];
    let [x, y] = [h.free()[0], h.free()[2]];
    // Link registers, the one of the harness too, and others.
    let kinds = [ZERO, 1, 5, x, y];
    for rd in kinds {
        bodies.push(jal(h, rd, true));
        bodies.push(jal(h, rd, false));
        for rs1 in [1, 5, x, y] {
            bodies.push(jalr_to(h, rd, rs1, 0, true));
            bodies.push(jalr_to(h, rd, rs1, 0, false));
        }
    }
    // Every immediate at an edge; the target is even, whatever the sum is.
    for imm in [1, -1, 4, -4, 5, 0x7fe, 0x7ff, -0x7ff, -0x800] {
        for rd in [ZERO, x] {
            bodies.push(jalr_to(h, rd, y, imm, true));
        }
    }
    // Every lane to its own place, and from there on.
    let d = h.result;
    for rd in [ZERO, x] {
        let mut a = Asm::default().put([csrr(h.s, MHARTID), andi(h.s, h.s, 7), slli(h.s, h.s, 3), h.t << 7 | 0x17]);
        a = a.put([add(h.t, h.t, h.s), jalr(rd, h.t, 12)]);
        for place in 0..8 {
            a = a.put([addi(d, ZERO, place)]).jal(ZERO, "end");
        }
        bodies.push(Body::new(&a.label("end").words(), |i| i.thread % 8).about(5));
    }
    Suite::new("jumps", h, bodies)
}

fn is_link(register: u32) -> bool {
    matches!(register, 1 | 5)
}

/// Saves the harness's link register and ends with it in place again, one call deeper than the caller as before.
fn jump(h: &Registers, rd: u32, before: &[u32], ahead: bool, put: impl Fn(Asm) -> Asm, up: bool) -> Body {
    let keep = h.free()[1];
    // A register that holds the address of the instruction after it makes the call that `rd` counted return.
    let returns = [rd << 7 | 0x17, jalr(ZERO, rd, 8)];
    let place = |a: Asm| {
        let a = a.label("target").put([addi(h.result, rd, 0)]);
        if up { a.put(returns) } else { a }.jal(ZERO, "end")
    };
    let a = Asm::default().put([addi(keep, h.link, 0)]).put(before.iter().copied());
    let a = if ahead { a } else { place(a.jal(ZERO, "jump")) };
    let a = put(a.label("jump")).label("next").put([addi(h.result, ZERO, 99)]).jal(ZERO, "end");
    let a = if ahead { place(a) } else { a };
    let a = a.label("end").put([addi(h.link, keep, 0)]);
    let tested = a.at("next") as usize - 1;
    Body::new(&a.words(), move |i| if rd == ZERO { 0 } else { i.pc + 4 }).about(tested)
}

fn jal(h: &Registers, rd: u32, ahead: bool) -> Body {
    jump(h, rd, &[], ahead, |a| a.jal(rd, "target"), is_link(rd))
}

/// A `jalr` whose sum of `rs1` and the immediate is the target, or the odd address behind it.
fn jalr_to(h: &Registers, rd: u32, rs1: u32, imm: i32, ahead: bool) -> Body {
    let call = is_link(rd) && (!is_link(rs1) || rd == rs1);
    let ret = is_link(rs1) && !is_link(rd);
    // What looks like a return needs a call before it.
    let before = if ret { vec![h.link << 7 | 0x40_006f] } else { vec![] };
    // From the auipc to the target, by how `jump` lays them out.
    let distance = match ahead {
        true => 24,
        false if call => -16,
        false => -8,
    };
    // In two steps, as one does not reach the extremes.
    let base = distance - (imm & !1);
    let put = |a: Asm| {
        let a = a.put([rs1 << 7 | 0x17, addi(rs1, rs1, base / 2), addi(rs1, rs1, base - base / 2)]);
        a.put([jalr(rd, rs1, imm)])
    };
    jump(h, rd, &before, ahead, put, call)
}

/// Memory that an access goes to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Region {
    Main,
    Scratchpad,
    /// All threads at the same addresses.
    Stack,
}

/// A word of the thread's own in the stack.
const STACK_WORD: u32 = STACK + 36;

impl Region {
    /// Of the names, that for this region.
    fn name(self, [main, scratchpad, stack]: [&'static str; 3]) -> &'static str {
        match self {
            Region::Main => main,
            Region::Scratchpad => scratchpad,
            Region::Stack => stack,
        }
    }

    /// The address of the thread's word side by side with those of its neighbours.
    fn own(self, i: &Input) -> u32 {
        match self {
            Region::Main => i.shape.memory / 2 + 4 * i.thread,
            Region::Scratchpad => SCRATCHPAD + 4 * i.thread,
            Region::Stack => STACK_WORD,
        }
    }
}

/// `register` = a word of the thread's own: side by side with those of its neighbours, or apart.
fn own_word(h: &Registers, register: u32, apart: bool, region: Region) -> Vec<u32> {
    match region {
        Region::Main => {
            let (shift, quarter) = if apart { (6, 3) } else { (2, 2) };
            let own = [csrr(register, MHARTID), slli(register, register, shift)];
            // Two quarters of memory are not of rows: `memory` is a CSR.
            let size = [csrr(h.t, 0xfc7), r(0, 2, h.t, 5, h.t, 0x13)]; // srli
            [&own[..], &size, &vec![add(register, register, h.t); quarter]].concat()
        }
        Region::Scratchpad => {
            // (Lane + lanes) × warps + warp: apart by as many words as there are warps, behind the others.
            let far = [csrr(register, LANE), csrr(h.t, 0xfc0), add(register, register, h.t), csrr(h.t, 0xfc1)];
            let far =
                [&far[..], &[mul(register, register, h.t), csrr(h.t, 0xfc2), add(register, register, h.t)]].concat();
            let number = if apart { far } else { vec![csrr(register, MHARTID)] };
            let place = [slli(register, register, 2), lui(h.t, SCRATCHPAD >> 12), add(register, register, h.t)];
            [&number[..], &place].concat()
        }
        Region::Stack => li(register, STACK_WORD).to_vec(),
    }
}

/// funct3, bytes, sign.
const LOADS: [(u32, u32, bool); 5] = [(0, 1, true), (1, 2, true), (2, 4, true), (4, 1, false), (5, 2, false)];

/// Immediates of an access at an offset, and whether the lanes' words are apart: all of them in main memory.
fn reaches(offset: i32, region: Region) -> Vec<(i32, bool)> {
    match region {
        Region::Main => vec![(offset, false), (offset, true), (0x7ff, false), (-0x800, false), (-1, false), (0, false)],
        Region::Scratchpad => vec![(offset, false), (offset, true)],
        Region::Stack => vec![(offset, false), (-0x800, false)],
    }
}

fn loads(h: &Registers, region: Region) -> Suite {
    let (s, t, d) = (h.s, h.t, h.result);
    let mut bodies = vec![];
    for (funct3, bytes, is_signed) in LOADS {
        for offset in (0..4).step_by(bytes as usize) {
            let want = move |i: &Input| loaded(i.a, offset, bytes, is_signed);
            for (imm, apart) in reaches(offset as i32, region) {
                let base = offset as i32 - imm;
                let mut words = own_word(h, s, apart, region);
                words.extend([
                    sw(h.a, s, 0),
                    addi(s, s, base / 2),
                    addi(s, s, base - base / 2),
                    load(funct3, d, s, imm),
                ]);
                bodies.push(Body::new(&words, want));
            }
            // Of the program: the same word for all lanes.
            let constant = 0x8123_f084;
            let a = Asm::default().put([t << 7 | 0x17, load(funct3, d, t, 12 + offset as i32)]).jal(ZERO, "end");
            let words = a.put([constant]).label("end").words();
            bodies.push(Body::new(&words, move |_| loaded(constant, offset, bytes, is_signed)).about(1));
        }
        // Each lane its own byte or half of its word.
        let mut words = own_word(h, s, false, region);
        words.extend([
            sw(h.a, s, 0),
            csrr(t, MHARTID),
            andi(t, t, 4 - bytes as i32),
            add(s, s, t),
            load(funct3, d, s, 0),
        ]);
        bodies.push(Body::new(&words, move |i| loaded(i.a, i.thread % 4 / bytes * bytes, bytes, is_signed)));
        // Into its own base, into nothing, and with a use right behind.
        let begin = [own_word(h, s, false, region), vec![sw(h.a, s, 0)]].concat();
        let about = begin.len();
        let with = |words: &[u32]| [&begin[..], words].concat();
        let want = move |i: &Input| loaded(i.a, 0, bytes, is_signed);
        bodies.extend([
            Body::new(&with(&[load(funct3, s, s, 0), addi(d, s, 0)]), want).about(about),
            Body::new(&with(&[load(funct3, ZERO, s, 0), add(d, ZERO, ZERO)]), |_| 0).about(about),
            Body::new(&with(&[load(funct3, d, s, 0), add(d, d, d)]), move |i| want(i).wrapping_mul(2)).about(about),
        ]);
    }
    Suite::new(region.name(["loads", "loads from the scratchpad", "loads from the stack"]), h, bodies)
}

fn stores(h: &Registers, region: Region) -> Suite {
    let (s, t, d) = (h.s, h.t, h.result);
    let mut bodies = vec![];
    for (funct3, bytes) in [(0, 1), (1, 2), (2, 4)] {
        for offset in (0..4).step_by(bytes as usize) {
            for (imm, apart) in reaches(offset as i32, region) {
                let base = offset as i32 - imm;
                let mut words = own_word(h, s, apart, region);
                words.extend([sw(h.b, s, 0), addi(t, s, base / 2), addi(t, t, base - base / 2)]);
                words.extend([store(funct3, h.a, t, imm), lw(d, s, 0)]);
                let tested = words.len() - 2;
                bodies.push(Body::new(&words, move |i| stored(i.b, offset, bytes, i.a)).about(tested));
            }
        }
        // Each lane its own byte or half of its word.
        let mut words = own_word(h, s, false, region);
        words.extend([sw(h.b, s, 0), csrr(t, MHARTID), andi(t, t, 4 - bytes as i32), add(t, s, t)]);
        words.extend([store(funct3, h.a, t, 0), lw(d, s, 0)]);
        let tested = words.len() - 2;
        let want = move |i: &Input| stored(i.b, i.thread % 4 / bytes * bytes, bytes, i.a);
        bodies.push(Body::new(&words, want).about(tested));
        // Of x0, and of its own base.
        for data in [ZERO, s] {
            let mut words = own_word(h, s, false, region);
            words.extend([sw(h.b, s, 0), store(funct3, data, s, 0), lw(d, s, 0)]);
            let tested = words.len() - 2;
            let want = move |i: &Input| stored(i.b, 0, bytes, if data == ZERO { 0 } else { region.own(i) });
            bodies.push(Body::new(&words, want).about(tested));
        }
        // Data that was made right before, read back right behind in bytes.
        let mut words = own_word(h, s, true, region);
        words.extend([sw(h.b, s, 0), mul(t, h.a, h.b), store(funct3, t, s, 0), load(4, d, s, 0)]);
        let tested = words.len() - 2;
        bodies.push(Body::new(&words, |i| i.a.wrapping_mul(i.b) & 0xff).about(tested));
    }
    Suite::new(region.name(["stores", "stores to the scratchpad", "stores to the stack"]), h, bodies)
}

/// Old values and new ones, with registers the same in each way. Lanes that meet on a word are `shared.rs`'s.
fn atomics(h: &Registers, region: Region) -> Suite {
    let (s, t, d) = (h.s, h.t, h.result);
    let mut bodies = vec![];
    for (_, funct5, f) in ATOMIC {
        let op = |rd, rs2, rs1| amo(funct5, rd, rs2, rs1);
        // Behind a store of a to the thread's word.
        let mut case = |apart: bool, words: &[u32], tested: usize, want: Box<dyn Fn(&Input) -> u32>| {
            let begin = [own_word(h, s, apart, region), vec![sw(h.a, s, 0)]].concat();
            let tested = begin.len() + tested;
            bodies.push(Body { words: [&begin[..], words].concat(), tested, want });
        };
        let new = move |i: &Input| f(i.a, i.b);
        let ways: &[bool] = if region == Region::Stack { &[false] } else { &[false, true] };
        for &apart in ways {
            case(apart, &[op(d, h.b, s)], 0, Box::new(|i| i.a));
            case(apart, &[op(d, h.b, s), lw(d, s, 0)], 0, Box::new(new));
            case(apart, &[op(ZERO, h.b, s), lw(d, s, 0)], 0, Box::new(new));
        }
        if region != Region::Main {
            continue;
        }
        case(false, &[op(ZERO, h.b, s), add(d, ZERO, ZERO)], 0, Box::new(|_| 0));
        case(false, &[op(s, h.b, s), addi(d, s, 0)], 0, Box::new(|i| i.a));
        case(false, &[addi(d, h.b, 0), op(d, d, s)], 1, Box::new(|i| i.a));
        case(false, &[op(ZERO, s, s), lw(d, s, 0)], 0, Box::new(move |i| f(i.a, region.own(i))));
        case(false, &[op(s, s, s), addi(d, s, 0)], 0, Box::new(|i| i.a));
        case(false, &[op(d, ZERO, s), lw(t, s, 0), r(0, t, d, 4, d, 0x33)], 0, Box::new(move |i| i.a ^ f(i.a, 0)));
        // Used at once; the operand from an instruction right before; one behind the other on one word.
        case(false, &[op(d, h.b, s), add(d, d, h.b)], 0, Box::new(|i| i.a.wrapping_add(i.b)));
        case(
            false,
            &[mul(t, h.a, h.b), op(ZERO, t, s), lw(d, s, 0)],
            1,
            Box::new(move |i| f(i.a, i.a.wrapping_mul(i.b))),
        );
        case(false, &[op(ZERO, h.b, s), op(d, h.b, s)], 1, Box::new(new));
        case(false, &[op(d, h.b, s), op(ZERO, d, s), lw(d, s, 0)], 1, Box::new(move |i| f(f(i.a, i.b), i.a)));
        // Asks for order, which there is anyway.
        for order in 1..4 {
            case(false, &[op(d, h.b, s) | order << 25, lw(d, s, 0)], 0, Box::new(new));
        }
    }
    Suite::new(region.name(["atomics", "atomics in the scratchpad", "atomics in the stack"]), h, bodies)
}

/// Threads come to each barrier by the way of the suite, so some wait on paths of their own for others of their warp.
/// The core is one block.
fn barriers(h: &Registers) -> Suite {
    let (s, t, d) = (h.s, h.t, h.result);
    let mut bodies = vec![];
    for count in 1..6 {
        let words = [&[addi(d, h.a, 0)][..], &vec![BARRIER; count], &[add(d, d, h.b)]].concat();
        bodies.push(Body::new(&words, |i| i.a.wrapping_add(i.b)).about(1));
    }
    // Of a value that comes late.
    bodies.push(Body::new(&[mul(d, h.a, h.b), BARRIER], |i| i.a.wrapping_mul(i.b)));
    // Each stores a word, and reads that of the thread whose number has the other bits behind the barrier.
    let mut words = own_word(h, s, false, Region::Main);
    words.extend([csrr(t, MHARTID), slli(t, t, 4), sw(t, s, 0), BARRIER]);
    let tested = words.len() - 1;
    // The sum of both addresses is the same for all threads.
    words.extend([csrr(t, 0xfc6), addi(t, t, -1), slli(t, t, 2), r(0x20, s, t, 0, s, 0x33)]);
    words.extend([csrr(t, 0xfc7), add(s, s, t), lw(d, s, 0), BARRIER]);
    bodies.push(Body::new(&words, |i| (i.shape.threads() - 1 - i.thread) << 4).about(tested));
    Suite::new("barriers", h, bodies)
}

/// Reads of CSRs in all their forms, and fences.
fn system(h: &Registers) -> Suite {
    let d = h.result;
    let mut bodies = vec![];
    for csr in csr::MAP {
        let address = u32::from(csr.address);
        let read = |funct3: u32, rd: u32| address << 20 | funct3 << 12 | rd << 7 | 0x73;
        for funct3 in [2, 3, 6, 7] {
            let source = csr.source;
            match source {
                Source::CycleLow | Source::InstructionsLow => {
                    // Grows.
                    let words = [&[read(funct3, h.s)][..], &[NOP; 12], &[read(funct3, d), r(0, d, h.s, 3, d, 0x33)]];
                    bodies.push(Body::new(&words.concat(), |_| 1).about(13));
                }
                _ => bodies.push(Body::new(&[read(funct3, d)], move |i| csr_value(source, i))),
            }
        }
        bodies.push(Body::new(&[read(2, ZERO), add(d, ZERO, ZERO)], |_| 0).about(0));
    }
    // The fields of a fence that the manual reserves are ignored: no register is read or written.
    for fence in [0x0ff0_000f, 0x0000_000f, 0x8330_000f, 0x0100_000f, 0xfff0_800f, 0x0000_100f, 0xfff0_900f] {
        bodies.push(Body::new(&[addi(d, h.a, 0), fence | d << 7, addi(d, d, 1)], |i| i.a.wrapping_add(1)).about(1));
    }
    Suite::new("system", h, bodies)
}

/// By the table in `docs/reference/programs.md`; the upper halves of counters stay 0.
fn csr_value(source: Source, i: &Input) -> u32 {
    match source {
        Source::Thread | Source::ThreadInBlock => i.thread,
        Source::Warp => i.thread / i.shape.lanes,
        Source::Lane => i.thread % i.shape.lanes,
        Source::Lanes => i.shape.lanes,
        Source::Warps => i.shape.warps,
        Source::Threads => i.shape.lanes * i.shape.warps,
        Source::MemoryBytes => i.shape.memory,
        Source::Log2StackBytes => (0..32).find(|&k| 1 << k == i.shape.stack).expect("a power of two"),
        Source::Blocks => 1,
        Source::BlockThreads => i.shape.lanes * i.shape.warps,
        Source::Block | Source::CycleHigh | Source::InstructionsHigh => 0,
        Source::CycleLow | Source::InstructionsLow => unreachable!("counters grow"),
    }
}

/// Each register that the harness leaves free as rd, rs1 and rs2, with all of them looked at afterwards.
pub fn each_register(h: &Registers) -> Suite {
    let free = h.free();
    let n = free.len();
    let mut bodies = vec![];
    for (name, funct7, funct3) in [("add", 0, 0), ("sub", 0x20, 0), ("mulhu", 1, 3), ("remu", 1, 7)] {
        let f = operation(name);
        for k in 0..n {
            let (rd, rs1, rs2) = (k, (k + 5) % n, (k + 11) % n);
            let fill = free.iter().map(|&x| addi(x, h.a, 64 * x as i32));
            let tested = r(funct7, free[rs2], free[rs1], funct3, free[rd], 0x33);
            // result = result * 32 - result + register, for each register.
            let fold = |&x: &u32| {
                [slli(h.t, h.result, 5), r(0x20, h.result, h.t, 0, h.result, 0x33), add(h.result, h.result, x)]
            };
            let words: Vec<u32> =
                fill.chain([tested, addi(h.result, ZERO, 0)]).chain(free.iter().flat_map(fold)).collect();
            let (free, sum) = (free.clone(), operation("add"));
            let want = move |i: &Input| {
                let mut values: Vec<u32> = free.iter().map(|x| sum(i.a, 64 * x)).collect();
                values[rd] = f(values[rs1], values[rs2]);
                values.iter().fold(0, |folded: u32, &value| sum(folded.wrapping_mul(31), value))
            };
            bodies.push(Body::new(&words, want).about(n));
        }
    }
    Suite::new("each register", h, bodies)
}
