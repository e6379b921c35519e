use super::*;
use crate::csr;
use crate::divergence::Divergence;
use crate::isa::{Alu, EXIT, HintKind};
use crate::shape::Compaction;
use heddle_sim::Sim;

type Block = Sim<DecodeIn<Width>, DecodeOut<Signal>>;

/// What matters of an instruction, from the tables of the RISC-V manual.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Meaning {
    class: &'static str,
    /// Registers read and written; 0 where none.
    rs1: u32,
    rs2: u32,
    rd: u32,
    imm: u32,
    alu: Option<Alu>,
}

/// Match, mask, class, format, ALU operation: one row an instruction.
const TABLE: &[(u32, u32, &str, char, Alu)] = &[
    (0x37, 0x7f, "lui", 'U', Alu::Add),
    (0x17, 0x7f, "auipc", 'U', Alu::Add),
    (0x6f, 0x7f, "jal", 'J', Alu::Add),
    (0x67, 0x707f, "jalr", 'I', Alu::Add),
    (0x0063, 0x707f, "branch", 'B', Alu::Sub),
    (0x1063, 0x707f, "branch", 'B', Alu::Sub),
    (0x4063, 0x707f, "branch", 'B', Alu::Sub),
    (0x5063, 0x707f, "branch", 'B', Alu::Sub),
    (0x6063, 0x707f, "branch", 'B', Alu::Sub),
    (0x7063, 0x707f, "branch", 'B', Alu::Sub),
    (0x0003, 0x707f, "load", 'I', Alu::Add),
    (0x1003, 0x707f, "load", 'I', Alu::Add),
    (0x2003, 0x707f, "load", 'I', Alu::Add),
    (0x4003, 0x707f, "load", 'I', Alu::Add),
    (0x5003, 0x707f, "load", 'I', Alu::Add),
    (0x0023, 0x707f, "store", 'S', Alu::Add),
    (0x1023, 0x707f, "store", 'S', Alu::Add),
    (0x2023, 0x707f, "store", 'S', Alu::Add),
    (0x0013, 0x707f, "alu", 'I', Alu::Add),
    (0x2013, 0x707f, "alu", 'I', Alu::Slt),
    (0x3013, 0x707f, "alu", 'I', Alu::Sltu),
    (0x4013, 0x707f, "alu", 'I', Alu::Xor),
    (0x6013, 0x707f, "alu", 'I', Alu::Or),
    (0x7013, 0x707f, "alu", 'I', Alu::And),
    (0x1013, 0xfe00707f, "shift", 'I', Alu::Sll),
    (0x5013, 0xfe00707f, "shift", 'I', Alu::Srl),
    (0x40005013, 0xfe00707f, "shift", 'I', Alu::Sra),
    (0x00000033, 0xfe00707f, "alu", 'R', Alu::Add),
    (0x40000033, 0xfe00707f, "alu", 'R', Alu::Sub),
    (0x00001033, 0xfe00707f, "shift", 'R', Alu::Sll),
    (0x00002033, 0xfe00707f, "alu", 'R', Alu::Slt),
    (0x00003033, 0xfe00707f, "alu", 'R', Alu::Sltu),
    (0x00004033, 0xfe00707f, "alu", 'R', Alu::Xor),
    (0x00005033, 0xfe00707f, "shift", 'R', Alu::Srl),
    (0x40005033, 0xfe00707f, "shift", 'R', Alu::Sra),
    (0x00006033, 0xfe00707f, "alu", 'R', Alu::Or),
    (0x00007033, 0xfe00707f, "alu", 'R', Alu::And),
    (0x02000033, 0xfe00407f, "multiply", 'R', Alu::Add),
    (0x02004033, 0xfe00407f, "divide", 'R', Alu::Add),
    (0x0000202f, 0xf800707f, "atomic", 'A', Alu::Add),
    (0x0800202f, 0xf800707f, "atomic", 'A', Alu::Add),
    (0x2000202f, 0xf800707f, "atomic", 'A', Alu::Add),
    (0x4000202f, 0xf800707f, "atomic", 'A', Alu::Add),
    (0x6000202f, 0xf800707f, "atomic", 'A', Alu::Add),
    (0x8000202f, 0xf800707f, "atomic", 'A', Alu::Add),
    (0xa000202f, 0xf800707f, "atomic", 'A', Alu::Add),
    (0xc000202f, 0xf800707f, "atomic", 'A', Alu::Add),
    (0xe000202f, 0xf800707f, "atomic", 'A', Alu::Add),
    (0x0000000f, 0x707f, "fence", '-', Alu::Add),
    (0x0000100f, 0x707f, "fence", '-', Alu::Add),
    (0x0000000b, 0xffffffff, "barrier", '-', Alu::Add),
    (0x0000100b, 0xfff87fff, "hint", '-', Alu::Add),
    (0x0000200b, 0xfc087fff, "hint", '-', Alu::Add),
    (0x0400200b, 0xfff87fff, "hint", '-', Alu::Add),
    (0x0000300b, 0xfff87fff, "hint", '-', Alu::Add),
    (0x0000400b, 0xfff8707f, "count", 'C', Alu::Add),
    (0x0000500b, 0xff087fff, "hint", '-', Alu::Add),
    (0x0000600b, 0xff087fff, "hint", '-', Alu::Add),
    (0x0000002b, 0xf9f0707f, "vote", 'R', Alu::Add),
    (0x0000102b, 0xf800707f, "shuffle", 'R', Alu::Add),
    (0x0000702b, 0xe0007fff, "sync", 'R', Alu::Add),
    (0x00000073, 0xffffffff, "ecall", '-', Alu::Add),
    (0x00100073, 0xffffffff, "ebreak", '-', Alu::Add),
];

/// The manual's immediate, bit by bit: bit k of the immediate is bit `place(k)` of the word, or 0.
fn immediate(format: char, word: u32) -> u32 {
    let place = |k: u32| match (format, k) {
        ('I', 11..) | ('S', 11..) | ('B', 12..) | ('J', 20..) => Some(31),
        ('I', _) => Some(k + 20),
        ('S', 0..5) => Some(k + 7),
        ('S', _) => Some(k + 20),
        ('B', 0) | ('J', 0) => None,
        ('B', 11) => Some(7),
        ('B', 1..5) => Some(k + 7),
        ('B', _) => Some(k + 20),
        ('J', 12..20) => Some(k),
        ('J', 11) => Some(20),
        ('J', _) => Some(k + 20),
        ('U', 12..) => Some(k),
        _ => None,
    };
    (0..32).filter(|&k| place(k).is_some_and(|p| word >> p & 1 == 1)).map(|k| 1 << k).sum()
}

fn meaning(word: u32, s: &Shape) -> Meaning {
    let (rd, rs1, rs2, funct3) = (word >> 7 & 31, word >> 15 & 31, word >> 20 & 31, word >> 12 & 7);
    let illegal = Meaning { class: "illegal", ..Meaning::default() };
    if word & 0x7f == 0x73 && funct3 != 0 {
        let known = csr::map(s.counters).any(|csr| u32::from(csr.address) == word >> 20);
        let reads = matches!(funct3, 2 | 3 | 6 | 7) && rs1 == 0;
        return if known && reads {
            Meaning { class: "csr", rd, alu: Some(Alu::Add), ..Meaning::default() }
        } else {
            illegal
        };
    }
    let Some(&(_, _, class, format, operation)) = TABLE.iter().find(|row| word & row.1 == row.0) else {
        return illegal;
    };
    let built = match class {
        "multiply" | "divide" => s.multiply,
        "barrier" => s.barriers,
        "atomic" => s.atomics,
        "vote" | "shuffle" | "sync" => s.warp_primitives,
        _ => true,
    };
    if !built {
        return illegal;
    }
    let mut m = Meaning { class, imm: immediate(format, word), alu: Some(operation), ..Meaning::default() };
    if matches!(format, 'R' | 'I' | 'S' | 'B' | 'A') {
        m.rs1 = rs1;
    }
    if matches!(format, 'R' | 'S' | 'B' | 'A') {
        m.rs2 = rs2;
    }
    if matches!(format, 'R' | 'I' | 'U' | 'J' | 'A' | 'C') {
        m.rd = rd;
    }
    if class == "ecall" {
        (m.rs1, m.rs2, m.imm) = (17, 10, EXIT);
    }
    m
}

/// A flag of a warp primitive, in a core with them.
fn primitive(of: &Option<Primitive<Bits>>, flag: fn(&Primitive<Bits>) -> &Bits) -> &Bits {
    of.as_ref().map_or(&Bits::ZERO, flag)
}

fn seen(d: &Decoded<Bits>) -> Meaning {
    let flags = [
        (&d.branch, "branch"),
        (&d.jal, "jal"),
        (&d.jalr, "jalr"),
        (&d.load, "load"),
        (&d.store, "store"),
        (&d.atomic, "atomic"),
        (&d.multiply, "multiply"),
        (&d.divide, "divide"),
        (&d.csr, "csr"),
        (&d.barrier, "barrier"),
        (primitive(&d.primitive, |primitive| &primitive.votes), "vote"),
        (primitive(&d.primitive, |primitive| &primitive.shuffles), "shuffle"),
        (primitive(&d.primitive, |primitive| &primitive.syncs), "sync"),
        (&d.ecall, "ecall"),
        (&d.ebreak, "ebreak"),
        (&d.illegal, "illegal"),
    ];
    let on: Vec<&str> = flags.into_iter().filter(|(flag, _)| **flag == 1).map(|(_, name)| name).collect();
    assert!(on.len() <= 1, "{on:?}");
    let field = |b: &Bits| b.low_u64() as u32;
    Meaning {
        class: on.first().copied().unwrap_or("alu"),
        rs1: field(&d.rs1),
        rs2: field(&d.rs2),
        rd: field(&d.rd),
        imm: field(&d.imm),
        alu: Alu::from_bits(&d.alu),
    }
}

fn decode_one(t: &mut Block, word: u32, pc: u32, stop: Option<u32>) -> DecodeOut<Bits> {
    let stop = Stop { valid: stop.is_some().into(), pc: stop.unwrap_or(7).into() };
    t.poke(DecodeIn { word: word.into(), pc: pc.into(), stop, uniform: None });
    t.peek()
}

fn compare(t: &mut Block, word: u32, s: &Shape) {
    let DecodeOut { decoded: d, registers, .. } = decode_one(t, word, 5, None);
    let mut want = meaning(word, s);
    let got = seen(&d);
    let class = want.class;
    assert_eq!(d.a_pc == 1, class == "auipc", "{word:#010x}");
    // A division whose result goes to x0 has no work for the divider.
    let hint = matches!(class, "hint" | "count");
    if matches!(class, "lui" | "auipc" | "fence") || hint || class == "divide" && want.rd == 0 {
        want.class = "alu";
    }
    // The multiplier shifts, if there is one.
    if class == "shift" {
        want.class = if s.multiply { "multiply" } else { "alu" };
    }
    // Where an instruction has no immediate, or uses no ALU result, the field is free.
    let of_warp = matches!(class, "vote" | "shuffle" | "sync");
    if of_warp {
        // Their first operand plus 0.
        assert_eq!((d.imm.low_u64(), d.b_imm.low_u64()), (0, 1), "{word:#010x}");
        let function = d.primitive.as_ref().expect("a core with them").function.low_u64();
        assert_eq!(function, u64::from(word >> 25 & 3), "{word:#010x}");
    }
    let has_imm = matches!(class, "lui" | "auipc" | "jal" | "jalr" | "branch" | "load" | "store" | "atomic" | "ecall")
        || matches!(class, "alu" | "shift") && word & 0x7f == 0x13;
    let has_alu = !matches!(class, "jal" | "divide" | "fence" | "hint" | "barrier" | "ecall" | "ebreak" | "illegal");
    want = Meaning { imm: if has_imm { want.imm } else { got.imm }, ..want };
    want = Meaning { alu: if has_alu { want.alu } else { got.alu }, ..want };
    assert_eq!(got, want, "{word:#010x}");
    assert_eq!(d.use1 == 1, got.rs1 != 0, "{word:#010x}");
    assert_eq!(d.use2 == 1, got.rs2 != 0, "{word:#010x}");
    assert_eq!(d.writes == 1, got.rd != 0, "{word:#010x}");
    if class != "illegal" {
        let used = [got.rs1, got.rs2, got.rd].iter().fold(0, |bits, register| bits | 1u64 << register);
        assert_eq!(registers.low_u64() & !1, used & !1, "{word:#010x}");
    }
    if class == "csr" {
        assert_eq!(d.imm.low_u64() & 0xfff, u64::from(word >> 20));
    }
    if class != "illegal" {
        let b_register = matches!(class, "branch" | "multiply" | "divide") || word & 0x7f == 0x33;
        assert_eq!(d.b_imm == 0, b_register, "{word:#010x}");
    }
    let accesses = matches!(class, "load" | "store" | "atomic");
    let controls = ["branch", "jal", "jalr", "barrier", "ecall", "ebreak", "illegal"];
    let (barrier, operand) = (word >> 15 & 15, word >> 20);
    let kind = HintKind::from_bits(word >> 12 & 7);
    let copies = matches!(kind, Some(HintKind::Copy | HintKind::Move));
    let hint_there = hint && barrier < s.convergence_barriers && (!copies || operand < s.convergence_barriers);
    let of_sync = word >> 25 & 15;
    let sync_there = class == "sync" && of_sync < s.convergence_barriers;
    if let Some(converges) = &d.converges {
        assert_eq!(converges.valid == 1, hint_there || sync_there, "{word:#010x}");
        let named = if sync_there { of_sync } else { barrier };
        assert!(converges.valid == 0 || converges.barrier == u64::from(named), "{word:#010x}");
    }
    if hint {
        // What does nothing adds 0 to 0.
        assert_eq!(d.imm, u64::from(operand), "{word:#010x}");
    }
    let waits = hint_there && kind == Some(HintKind::Wait) || sync_there;
    let control = controls.contains(&class) || waits || accesses && s.replay == Replay::Split;
    assert_eq!(d.control == 1, control, "{word:#010x}");
    assert_eq!(d.answers == 1, class == "load" || class == "atomic" && want.rd != 0, "{word:#010x}");
    if class == "atomic" {
        assert_eq!(d.function, u64::from(word >> 27), "{word:#010x}");
    }
    let (rd, rs1) = (word >> 7 & 31, word >> 15 & 31);
    let link = |register: u32| register == 1 || register == 5;
    let (call, ret) = match class {
        "jal" => (link(rd), false),
        "jalr" => match (link(rd), link(rs1)) {
            (true, true) => (rd == rs1, false),
            (call, ret) => (call, ret),
        },
        _ => (false, false),
    };
    assert_eq!((d.call == 1, d.ret == 1), (call, ret), "{word:#010x}");
    assert_eq!((d.funct3.low_u64(), d.pc.low_u64(), d.last.low_u64()), (u64::from(word >> 12 & 7), 5, 0));
}

/// Every row of the table with random operands; every word near one of them; random words.
#[test]
fn every_instruction_and_random_words() {
    for (with, seed, convergence_barriers) in [(true, 1, 0), (false, 2, 0), (true, 3, 1), (false, 4, 5), (true, 5, 16)]
    {
        println!("seed {seed}");
        let mut r = fastrand::Rng::with_seed(seed);
        let replay = if with { Replay::Split } else { Replay::Serialise };
        let base = Shape { multiply: with, barriers: with, atomics: with, ..Shape::default() };
        let s = Shape { convergence_barriers, replay, warp_primitives: seed != 1, ..base };
        let mut t = Sim::new(&decode(&s).check().unwrap());
        for &(bits, mask, ..) in TABLE {
            (0..100).for_each(|_| compare(&mut t, bits | r.u32(..) & !mask, &s));
            (0..32).for_each(|k| compare(&mut t, bits ^ 1 << k, &s));
        }
        for funct3 in 0..8 {
            for address in 0..0x1000 {
                let rs1 = if r.u8(..4) == 0 { r.u32(..32) } else { 0 };
                compare(&mut t, address << 20 | rs1 << 15 | funct3 << 12 | r.u32(..32) << 7 | 0x73, &s);
            }
        }
        for _ in 0..10_000 {
            compare(&mut t, r.u32(..), &s);
            compare(&mut t, r.u32(..) | 3, &s);
        }
    }
}

/// Jumps between all pairs of link and other registers: what counts as call and return.
#[test]
fn calls_and_returns() {
    let s = Shape::default();
    let mut t = Sim::new(&decode(&s).check().unwrap());
    for (rd, rs1) in (0..32).flat_map(|rd| (0..32).map(move |rs1| (rd, rs1))) {
        compare(&mut t, rs1 << 15 | rd << 7 | 0x67, &s);
        compare(&mut t, rs1 << 15 | rd << 7 | 0x6f, &s);
    }
}

#[test]
fn the_instruction_before_the_stop_pc_is_last_and_stops_the_front_end() {
    let mut t = Sim::new(&decode(&Shape::default()).check().unwrap());
    let end = 1 << Shape::default().pc_bits();
    for pc in [0, 1, 99, end - 1] {
        for (stop, last) in
            [(None, false), (Some((pc + 1) % end), true), (Some(pc), false), (Some((pc + 2) % end), false)]
        {
            let d = decode_one(&mut t, 0x13, pc, stop).decoded;
            assert_eq!((d.last == 1, d.control == 1), (last, last), "{pc} {stop:?}");
        }
    }
}

/// Branches and jumps pass that are uniform, but for calls, returns and other indirect jumps.
#[test]
fn what_a_warp_that_is_ahead_passes() {
    let s = Shape { compaction: Compaction::Predict, slack: 2, ..Shape::new(2, 2) };
    let s = s.with_divergence(Divergence::BLOCK_STACK);
    let mut t = Sim::new(&decode(&s).check().unwrap());
    let (beq, jal, call, jalr, ret, addi) =
        (0x0020_8463, 0x0080_006f, 0x0080_00ef, 0x0002_8067, 0x0000_8067, 0x0010_0093);
    for (word, passes) in [(beq, 1), (jal, 1), (call, 0), (jalr, 0), (ret, 0), (addi, 0), (EXIT, 0)] {
        for uniform in [0, 1] {
            let stop = Stop { valid: 0u32.into(), pc: 0u32.into() };
            t.poke(DecodeIn { word: word.into(), pc: 5u32.into(), stop, uniform: Some(uniform.into()) });
            assert_eq!(t.peek().passes.unwrap(), passes & uniform, "{word:#010x}");
        }
    }
}
