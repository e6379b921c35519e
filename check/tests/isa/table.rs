//! The manual's encodings as a table, and that core, simulator and disassembler take for legal exactly what it has.

use heddle_hdl::Bits;
use heddle_sim::Sim;
use heddle_simt::Shape;
use heddle_simt::csr;
use heddle_simt::divergence::Stop;
use heddle_simt::isa;
use heddle_simt::pipeline::decode::{DecodeIn, decode};
use heddle_testbench::Program;
use heddle_testbench::disassemble;
use heddle_testbench::iss::{Cause, Iss};

/// The fixed bits of an instruction, and their values.
pub struct Row {
    pub mask: u32,
    pub value: u32,
}

const fn opcode(value: u32) -> Row {
    Row { mask: 0x7f, value }
}

const fn funct3(funct3: u32, opcode: u32) -> Row {
    Row { mask: 0x707f, value: funct3 << 12 | opcode }
}

const fn funct7(funct7: u32, funct3: u32, opcode: u32) -> Row {
    Row { mask: 0xfe00_707f, value: funct7 << 25 | funct3 << 12 | opcode }
}

const fn word(value: u32) -> Row {
    Row { mask: u32::MAX, value }
}

const fn funct5(funct5: u32) -> Row {
    Row { mask: 0xf800_707f, value: funct5 << 27 | 2 << 12 | 0x2f }
}

const fn hint(mask: u32, value: u32) -> Row {
    Row { mask, value: value | 0x0b }
}

/// RV32IMA with `fence.i`, `barrier`, the instructions on convergence barriers, warp primitives. Reads of CSRs are
/// apart.
#[rustfmt::skip]
pub const TABLE: [Row; 70] = [
    opcode(0x37), opcode(0x17), opcode(0x6f), funct3(0, 0x67),
    funct3(0, 0x63), funct3(1, 0x63), funct3(4, 0x63), funct3(5, 0x63), funct3(6, 0x63), funct3(7, 0x63),
    funct3(0, 0x03), funct3(1, 0x03), funct3(2, 0x03), funct3(4, 0x03), funct3(5, 0x03),
    funct3(0, 0x23), funct3(1, 0x23), funct3(2, 0x23),
    funct3(0, 0x13), funct3(2, 0x13), funct3(3, 0x13), funct3(4, 0x13), funct3(6, 0x13), funct3(7, 0x13),
    funct7(0, 1, 0x13), funct7(0, 5, 0x13), funct7(0x20, 5, 0x13),
    funct7(0, 0, 0x33), funct7(0x20, 0, 0x33), funct7(0, 1, 0x33), funct7(0, 2, 0x33), funct7(0, 3, 0x33),
    funct7(0, 4, 0x33), funct7(0, 5, 0x33), funct7(0x20, 5, 0x33), funct7(0, 6, 0x33), funct7(0, 7, 0x33),
    funct7(1, 0, 0x33), funct7(1, 1, 0x33), funct7(1, 2, 0x33), funct7(1, 3, 0x33),
    Row { mask: 0xfe00_407f, value: 0x0200_4033 }, // div, divu, rem, remu
    funct5(0x00), funct5(0x01), funct5(0x04), funct5(0x08), funct5(0x0c),
    funct5(0x10), funct5(0x14), funct5(0x18), funct5(0x1c), word(0x0000_000b),
    Row { mask: 0xf9f0_707f, value: 0x1000_202f }, funct5(0x03), // lr.w, sc.w
    funct3(0, 0x0f), funct3(1, 0x0f), word(0x0000_0073), word(0x0010_0073),
    hint(0xfff8_7fff, 0x1000), hint(0xfc08_7fff, 0x2000), hint(0xfff8_7fff, 0x0400_2000), hint(0xfff8_7fff, 0x3000),
    hint(0xfff8_707f, 0x4000), hint(0xff08_7fff, 0x5000), hint(0xff08_7fff, 0x6000),
    // Votes, shuffles, sync.
    Row { mask: 0xf9f0_707f, value: 0x2b }, Row { mask: 0xf800_707f, value: 0x102b },
    Row { mask: 0xe000_7fff, value: 0x702b },
    // Reads of two CSRs, for their neighbours.
    Row { mask: 0xffff_f07f, value: 0xf140_2073 }, Row { mask: 0xffff_f07f, value: 0xc000_3073 },
];

/// Whether a core with all that is optional has the instruction.
pub fn is_legal(word: u32) -> bool {
    let reads = word & 0x7f == 0x73 && word >> 13 & 1 == 1 && word >> 15 & 31 == 0;
    let known = csr::MAP.iter().any(|csr| u32::from(csr.address) == word >> 20);
    reads && known || TABLE.iter().any(|row| word & row.mask == row.value)
}

#[test]
fn core_and_simulator_and_disassembler_have_the_same_instructions() {
    let small = |shape| Shape { memory: 4 << 10, program: 1 << 10, stack: 64, ..shape };
    let [less, all] = [Shape::small(1, 1), Shape::new(1, 1)].map(small);
    let all = Shape { convergence_barriers: 5, reservations: true, warp_primitives: true, ..all };
    let mut decoders = [&less, &all].map(|shape| Sim::new(&decode(shape).check().unwrap()));
    let pc = || Bits::from(0u32);
    let seed = 3;
    let mut r = fastrand::Rng::with_seed(seed);
    let (mut legal, runs) = (0, 60_000);
    for n in 0..runs {
        let row = &TABLE[r.usize(..TABLE.len())];
        let word = match n % 4 {
            0 => r.u32(..),
            1 => r.u32(..) & !row.mask | row.value,
            2 => (r.u32(..) & !row.mask | row.value) ^ 1 << r.u32(..32),
            _ => r.u32(..) << 20 | r.u32(..8) << 12 | r.u32(..32) << 7 | 0x73,
        };
        let want = is_legal(word);
        for (shape, decoder) in [&less, &all].into_iter().zip(&mut decoders) {
            let want = want && (shape.atomics || word & 0x7f != 0x2f) && (shape.barriers || word != isa::BARRIER);
            let want = want && (shape.warp_primitives || word & 0x7f != isa::warp::OPCODE);
            decoder.poke(DecodeIn {
                word: word.into(),
                pc: pc(),
                stop: Stop { valid: false.into(), pc: pc() },
                uniform: None,
            });
            assert_eq!(decoder.peek().decoded.illegal == 0, want, "decoder, {word:#010x}, seed {seed}");
            let mut iss = Iss::new(&Program::assembled(&[word], []), shape).unwrap();
            let stops = iss.step(0).err().is_some_and(|fault| matches!(fault.cause, Cause::Illegal(_)));
            assert_eq!(!stops, want, "simulator, {word:#010x}, seed {seed}");
        }
        // The disassembler has names for writes of CSRs and for unknown ones, too.
        let named = !disassemble(word, 0).starts_with(".word");
        assert!(named == want || named && word & 0x7f == 0x73, "disassembler, {word:#010x}, seed {seed}");
        legal += u32::from(want);
    }
    assert!((runs / 4..runs * 3 / 4).contains(&legal), "{legal} of {runs} are legal");
}
