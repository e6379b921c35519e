use super::*;
use crate::program::Program;
use heddle_simt::Shape;
use std::collections::BTreeSet;

/// A word whose opcode is one that there is, and mostly an instruction.
fn random_word(r: &mut fastrand::Rng) -> u32 {
    let opcodes = [0x37, 0x17, 0x6f, 0x67, 0x63, 0x03, 0x23, 0x2f, 0x0b, 0x2b, 0x13, 0x33, 0x0f, 0x73];
    let word = r.u32(..) & !0x7f | r.choice(opcodes).unwrap();
    match word & 0x7f {
        0x33 => word & 0x01ff_ffff | r.choice([0, 1, 0x20]).unwrap() << 25,
        // Accesses near their base, jumps that are aligned.
        0x03 | 0x23 => word & 0x01ff_ffff,
        0x67 => word & 0x00ff_8fff,
        0x63 => word & !0x100,
        0x6f => word & !0x0020_0000,
        0x2f => word & 0xffff_8fff | 2 << 12,
        0x73 => r.choice([0xf140_2073, 0xc000_2073, 0xc020_2073]).unwrap() | word & 0xf80,
        _ => word,
    }
}

/// Threads of two warps, in any order of the lanes' warps, do together what each does alone; and what they do not do
/// together changes nothing.
#[test]
fn together_is_one_after_the_other() {
    let small = Shape { memory: 64 << 10, program: 1 << 10, stack: 64, scratchpad: 1024, ..Shape::new(8, 2) };
    let shape = Shape { reservations: true, warp_primitives: true, ..small };
    let program = Program::assembled(&[0; 64], []);
    let (mut done, mut faults, mut kinds) = (0, 0, BTreeSet::new());
    for seed in 0..4000 {
        let mut r = fastrand::Rng::with_seed(seed);
        let mut iss = Iss::new(&program, &shape).unwrap();
        let word = random_word(&mut r);
        iss.instructions[5] = super::super::Instruction::decode(word, &shape);
        for hart in &mut iss.harts {
            hart.pc = 20;
            for register in &mut hart.registers[1..] {
                *register = match r.u32(..4) {
                    0 => r.u32(..),
                    1 => r.u32(0x8000..0x8040) & !3,
                    2 => 0x4000_0000 + r.u32(..32) * 4,
                    _ => 0x8000,
                };
            }
        }
        let mut harts = Vec::new();
        for lane in 0..8 {
            if r.u32(..4) > 0 {
                harts.push(lane + 8 * r.u32(..2));
            }
        }
        if harts.is_empty() {
            continue;
        }
        let mut alone = iss.clone();
        let before = iss.clone();
        let mut together = Together::default();
        let stepped = iss.step_together(&harts, &mut together);
        if stepped == Ok(false) {
            assert!(iss.harts == before.harts && iss.memory() == before.memory(), "{word:#010x} did something");
            continue;
        }
        let mut count = 0;
        for (place, &hart) in harts.iter().enumerate() {
            match alone.step(hart) {
                Ok(step) => {
                    assert_eq!(step.rd, together.rd.map(|rd| (rd, together.values[place])), "{word:#010x}");
                    assert_eq!((step.counter, step.exit, step.barrier), (together.counter, None, false));
                    assert_eq!(step.access.as_ref(), together.accesses.get(place));
                    count += 1;
                }
                Err(fault) => {
                    assert_eq!(stepped, Err((place, fault)), "{word:#010x}");
                    faults += 1;
                    break;
                }
            }
        }
        assert_eq!(count == harts.len(), stepped == Ok(true), "{word:#010x}");
        assert!(iss.harts == alone.harts && iss.memory() == alone.memory(), "{word:#010x}");
        assert_eq!((iss.scratchpad(), iss.executed()), (alone.scratchpad(), alone.executed()), "{word:#010x}");
        done += 1;
        kinds.insert(word & 0x7f);
    }
    assert!(done > 1500 && faults > 50 && kinds.len() >= 10, "{done} done, {faults} faults, {kinds:x?}");
}
