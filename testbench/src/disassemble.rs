//! The text of one RV32IMA + Zicsr instruction, `barrier`, convergence barrier or warp primitive, as an assembler would accept it, with
//! the usual pseudo-instructions.
//!
//! One table, first match wins. CSRs have the names of the CSR map. Words that are no instruction of the core read
//! `.word 0x…`.

use heddle_simt::csr;

/// Names of the registers x0 to x31 in the ABI.
pub const REGISTERS: [&str; 32] = [
    "zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", "a0", "a1", "a2", "a3", "a4", "a5", "a6", "a7", "s2",
    "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "t3", "t4", "t5", "t6",
];

/// The text of an instruction that lies at `pc` (bytes), such as `addi a0,sp,-16`. Targets are absolute addresses in
/// hexadecimal.
pub fn disassemble(word: u32, pc: u32) -> String {
    let Some(&(_, _, name, operands)) = TABLE.iter().find(|(mask, value, ..)| word & mask == *value) else {
        return format!(".word {word:#010x}");
    };
    let mut text = format!("{name}{}", order(word));
    if !operands.is_empty() {
        text.push(' ');
    }
    for letter in operands.chars() {
        text.push_str(&operand(letter, word, pc));
    }
    text
}

/// Whether the word is one of the core's instructions.
pub fn is_instruction(word: u32) -> bool {
    TABLE.iter().any(|(mask, value, ..)| word & mask == *value)
}

/// What follows the name of an atomic operation.
fn order(word: u32) -> &'static str {
    if word & 0x7f == 0x2f { ["", ".rl", ".aq", ".aqrl"][(word >> 25 & 3) as usize] } else { "" }
}

/// One operand; letters are those of the GNU assembler's table, and `m`, `n` and `k` for convergence
/// barriers. What is not a letter of an operand stands for itself.
fn operand(letter: char, word: u32, pc: u32) -> String {
    let register = |low: u32| REGISTERS[(word >> low & 31) as usize].to_string();
    let immediate = word as i32 >> 20;
    match letter {
        'd' => register(7),
        's' => register(15),
        't' => register(20),
        'j' | 'o' => immediate.to_string(),
        '>' => format!("{:#x}", word >> 20 & 31),
        'q' => ((word as i32 >> 25) << 5 | (word >> 7 & 31) as i32).to_string(),
        'u' => format!("{:#x}", word >> 12),
        'p' => format!("{:#x}", pc.wrapping_add(branch_offset(word))),
        'a' => format!("{:#x}", pc.wrapping_add(jump_offset(word))),
        'm' => format!("b{}", word >> 15 & 15),
        'k' => format!("b{}", word >> 25 & 15),
        'n' => format!("b{}", word >> 20 & 15),
        'Z' => (word >> 15 & 31).to_string(),
        'E' => {
            let address = (word >> 20) as u16;
            csr::find(address).map_or_else(|| format!("{address:#x}"), |csr| csr.name.to_string())
        }
        'P' => fence_set(word >> 24),
        'Q' => fence_set(word >> 20),
        literal => literal.to_string(),
    }
}

pub(crate) fn branch_offset(word: u32) -> u32 {
    let sign = (word as i32 >> 31) as u32;
    sign << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 63) << 5 | (word >> 8 & 15) << 1
}

pub(crate) fn jump_offset(word: u32) -> u32 {
    let sign = (word as i32 >> 31) as u32;
    sign << 20 | (word >> 12 & 255) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 1023) << 1
}

fn fence_set(bits: u32) -> String {
    let set: String = "iorw".chars().enumerate().filter(|(i, _)| bits >> (3 - i) & 1 == 1).map(|(_, c)| c).collect();
    if set.is_empty() { "0".into() } else { set }
}

/// Mask, value, mnemonic, operands.
type Row = (u32, u32, &'static str, &'static str);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    // Pseudo-instructions, the strictest first.
    (0xffff_ffff, 0x0000_0013, "nop", ""),
    (0x000f_f07f, 0x0000_0013, "li", "d,j"),
    (0xfff0_707f, 0x0000_0013, "mv", "d,s"),
    (0xfff0_707f, 0xfff0_4013, "not", "d,s"),
    (0xfff0_707f, 0x0ff0_7013, "zext.b", "d,s"),
    (0xfff0_707f, 0x0010_3013, "seqz", "d,s"),
    (0xfe0f_f07f, 0x4000_0033, "neg", "d,t"),
    (0xfe0f_f07f, 0x0000_3033, "snez", "d,t"),
    (0xfff0_707f, 0x0000_2033, "sltz", "d,s"),
    (0xfe0f_f07f, 0x0000_2033, "sgtz", "d,t"),
    (0x01f0_707f, 0x0000_0063, "beqz", "s,p"),
    (0x01f0_707f, 0x0000_1063, "bnez", "s,p"),
    (0x000f_f07f, 0x0000_5063, "blez", "t,p"),
    (0x01f0_707f, 0x0000_5063, "bgez", "s,p"),
    (0x01f0_707f, 0x0000_4063, "bltz", "s,p"),
    (0x000f_f07f, 0x0000_4063, "bgtz", "t,p"),
    (0x0000_0fff, 0x0000_006f, "j", "a"),
    (0x0000_0fff, 0x0000_00ef, "jal", "a"),
    (0xffff_ffff, 0x0000_8067, "ret", ""),
    (0xfff0_7fff, 0x0000_0067, "jr", "s"),
    (0x0000_7fff, 0x0000_0067, "jr", "o(s)"),
    (0xfff0_7fff, 0x0000_00e7, "jalr", "s"),
    (0x0000_7fff, 0x0000_00e7, "jalr", "o(s)"),
    (0xfff0_707f, 0x0000_0067, "jalr", "d,s"),
    (0xffff_ffff, 0x0ff0_000f, "fence", ""),
    (0xffff_ffff, 0xc000_1073, "unimp", ""),
    (0xffff_f07f, 0xc000_2073, "rdcycle", "d"),
    (0xffff_f07f, 0xc020_2073, "rdinstret", "d"),
    (0xffff_f07f, 0xc800_2073, "rdcycleh", "d"),
    (0xffff_f07f, 0xc820_2073, "rdinstreth", "d"),
    (0x000f_f07f, 0x0000_2073, "csrr", "d,E"),
    (0x0000_7fff, 0x0000_1073, "csrw", "E,s"),
    (0x0000_7fff, 0x0000_2073, "csrs", "E,s"),
    (0x0000_7fff, 0x0000_3073, "csrc", "E,s"),
    (0x0000_7fff, 0x0000_5073, "csrwi", "E,Z"),
    (0x0000_7fff, 0x0000_6073, "csrsi", "E,Z"),
    (0x0000_7fff, 0x0000_7073, "csrci", "E,Z"),
    // RV32I.
    (0x0000_007f, 0x0000_0037, "lui", "d,u"),
    (0x0000_007f, 0x0000_0017, "auipc", "d,u"),
    (0x0000_007f, 0x0000_006f, "jal", "d,a"),
    (0x0000_707f, 0x0000_0067, "jalr", "d,o(s)"),
    (0x0000_707f, 0x0000_0063, "beq", "s,t,p"),
    (0x0000_707f, 0x0000_1063, "bne", "s,t,p"),
    (0x0000_707f, 0x0000_4063, "blt", "s,t,p"),
    (0x0000_707f, 0x0000_5063, "bge", "s,t,p"),
    (0x0000_707f, 0x0000_6063, "bltu", "s,t,p"),
    (0x0000_707f, 0x0000_7063, "bgeu", "s,t,p"),
    (0x0000_707f, 0x0000_0003, "lb", "d,o(s)"),
    (0x0000_707f, 0x0000_1003, "lh", "d,o(s)"),
    (0x0000_707f, 0x0000_2003, "lw", "d,o(s)"),
    (0x0000_707f, 0x0000_4003, "lbu", "d,o(s)"),
    (0x0000_707f, 0x0000_5003, "lhu", "d,o(s)"),
    (0x0000_707f, 0x0000_0023, "sb", "t,q(s)"),
    (0x0000_707f, 0x0000_1023, "sh", "t,q(s)"),
    (0x0000_707f, 0x0000_2023, "sw", "t,q(s)"),
    (0x0000_707f, 0x0000_0013, "addi", "d,s,j"),
    (0x0000_707f, 0x0000_2013, "slti", "d,s,j"),
    (0x0000_707f, 0x0000_3013, "sltiu", "d,s,j"),
    (0x0000_707f, 0x0000_4013, "xori", "d,s,j"),
    (0x0000_707f, 0x0000_6013, "ori", "d,s,j"),
    (0x0000_707f, 0x0000_7013, "andi", "d,s,j"),
    (0xfe00_707f, 0x0000_1013, "slli", "d,s,>"),
    (0xfe00_707f, 0x0000_5013, "srli", "d,s,>"),
    (0xfe00_707f, 0x4000_5013, "srai", "d,s,>"),
    (0xfe00_707f, 0x0000_0033, "add", "d,s,t"),
    (0xfe00_707f, 0x4000_0033, "sub", "d,s,t"),
    (0xfe00_707f, 0x0000_1033, "sll", "d,s,t"),
    (0xfe00_707f, 0x0000_2033, "slt", "d,s,t"),
    (0xfe00_707f, 0x0000_3033, "sltu", "d,s,t"),
    (0xfe00_707f, 0x0000_4033, "xor", "d,s,t"),
    (0xfe00_707f, 0x0000_5033, "srl", "d,s,t"),
    (0xfe00_707f, 0x4000_5033, "sra", "d,s,t"),
    (0xfe00_707f, 0x0000_6033, "or", "d,s,t"),
    (0xfe00_707f, 0x0000_7033, "and", "d,s,t"),
    (0x0000_707f, 0x0000_000f, "fence", "P,Q"),
    (0x0000_707f, 0x0000_100f, "fence.i", ""),
    (0xffff_ffff, 0x0000_0073, "ecall", ""),
    (0xffff_ffff, 0x0010_0073, "ebreak", ""),
    // M.
    (0xfe00_707f, 0x0200_0033, "mul", "d,s,t"),
    (0xfe00_707f, 0x0200_1033, "mulh", "d,s,t"),
    (0xfe00_707f, 0x0200_2033, "mulhsu", "d,s,t"),
    (0xfe00_707f, 0x0200_3033, "mulhu", "d,s,t"),
    (0xfe00_707f, 0x0200_4033, "div", "d,s,t"),
    (0xfe00_707f, 0x0200_5033, "divu", "d,s,t"),
    (0xfe00_707f, 0x0200_6033, "rem", "d,s,t"),
    (0xfe00_707f, 0x0200_7033, "remu", "d,s,t"),
    // A.
    (0xf9f0_707f, 0x1000_202f, "lr.w", "d,(s)"),
    (0xf800_707f, 0x1800_202f, "sc.w", "d,t,(s)"),
    (0xf800_707f, 0x0000_202f, "amoadd.w", "d,t,(s)"),
    (0xf800_707f, 0x0800_202f, "amoswap.w", "d,t,(s)"),
    (0xf800_707f, 0x2000_202f, "amoxor.w", "d,t,(s)"),
    (0xf800_707f, 0x4000_202f, "amoor.w", "d,t,(s)"),
    (0xf800_707f, 0x6000_202f, "amoand.w", "d,t,(s)"),
    (0xf800_707f, 0x8000_202f, "amomin.w", "d,t,(s)"),
    (0xf800_707f, 0xa000_202f, "amomax.w", "d,t,(s)"),
    (0xf800_707f, 0xc000_202f, "amominu.w", "d,t,(s)"),
    (0xf800_707f, 0xe000_202f, "amomaxu.w", "d,t,(s)"),
    // Our own.
    (0xffff_ffff, 0x0000_000b, "barrier", ""),
    (0xfff0_707f, 0x0000_002b, "ballot", "d,s"),
    (0xfff0_707f, 0x0200_002b, "ballot.upper", "d,s"),
    (0xfff0_707f, 0x0400_002b, "any", "d,s"),
    (0xfff0_707f, 0x0600_002b, "all", "d,s"),
    (0xfe00_707f, 0x0000_102b, "shuffle", "d,s,t"),
    (0xfe00_707f, 0x0200_102b, "shuffle.xor", "d,s,t"),
    (0xfe00_707f, 0x0400_102b, "shuffle.up", "d,s,t"),
    (0xfe00_707f, 0x0600_102b, "shuffle.down", "d,s,t"),
    (0xe000_7fff, 0x0000_702b, "sync", "k,s,t"),
    (0xfff8_7fff, 0x0000_100b, "join", "m"),
    (0xfff8_7fff, 0x0000_200b, "wait", "m"),
    (0xfc08_7fff, 0x0000_200b, "wait", "m,j"),
    (0xfff8_7fff, 0x0400_200b, "wait", "m,j"),
    (0xfff8_7fff, 0x0000_300b, "cancel", "m"),
    (0xfff8_707f, 0x0000_400b, "count", "d,m"),
    (0xff08_7fff, 0x0000_500b, "copy", "m,n"),
    (0xff08_7fff, 0x0000_600b, "move", "m,n"),
    // Zicsr.
    (0x0000_707f, 0x0000_1073, "csrrw", "d,E,s"),
    (0x0000_707f, 0x0000_2073, "csrrs", "d,E,s"),
    (0x0000_707f, 0x0000_3073, "csrrc", "d,E,s"),
    (0x0000_707f, 0x0000_5073, "csrrwi", "d,E,Z"),
    (0x0000_707f, 0x0000_6073, "csrrsi", "d,E,Z"),
    (0x0000_707f, 0x0000_7073, "csrrci", "d,E,Z"),
];

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, io::Write, path::Path, process::Command};

    use super::*;
    use crate::{Program, kernels};

    #[test]
    fn examples() {
        let texts = [
            (0xfe01_0113, "addi sp,sp,-32"),
            (0x0000_8067, "ret"),
            (0xf140_22f3, "csrr t0,mhartid"),
            (0xfc80_2373, "csrr t1,log2stack"),
            (0x3000_2373, "csrr t1,0x300"),
            (0x0091_2a23, "sw s1,20(sp)"),
            (0xffff_f0b7, "lui ra,0xfffff"),
            (0x4015_5513, "srai a0,a0,0x1"),
            (0x0000_0000, ".word 0x00000000"),
            (0xfff7_0293, "addi t0,a4,-1"),
            (0x0330_000f, "fence rw,rw"),
            (0x0000_100f, "fence.i"),
            (0x00b5_252f, "amoadd.w a0,a1,(a0)"),
            (0x86c5_a5af, "amomin.w.aqrl a1,a2,(a1)"),
            (0x1005_252f, "lr.w a0,(a0)"),
            (0x1ab5_252f, "sc.w.rl a0,a1,(a0)"),
            (0x10b5_252f, ".word 0x10b5252f"), // lr.w with an operand
            (0x0000_000b, "barrier"),
            (0x0005_852b, "ballot a0,a1"),
            (0x04c5_952b, "shuffle.up a0,a1,a2"),
            (0x06c5_f02b, "sync b3,a1,a2"),
            (0x06c5_f0ab, ".word 0x06c5f0ab"), // into ra
            (0x0000_008b, ".word 0x0000008b"),
            (0x0001_900b, "join b3"),
            (0x0009_900b, ".word 0x0009900b"), // join b19
            (0x0011_900b, ".word 0x0011900b"), // with bits where a threshold would be
            (0x0081_a00b, "wait b3,8"),
            (0x0411_a00b, ".word 0x0411a00b"), // wait b3,65
            (0x0000_208b, ".word 0x0000208b"), // into ra
            (0x0000_700b, ".word 0x0000700b"),
        ];
        for (word, text) in texts {
            assert_eq!(disassemble(word, 0), text);
        }
    }

    #[test]
    fn targets_are_absolute() {
        assert_eq!(disassemble(0xf99f_f0ef, 0x90), "jal 0x28");
        assert_eq!(disassemble(0xfc04_1ae3, 0xa0), "bnez s0,0x74");
        assert_eq!(disassemble(0xffdf_f06f, 0), "j 0xfffffffc");
    }

    /// How Debian's objdump 2.40 would write it: `add a0,a0,1` for `addi` and such, and no names for our CSRs and
    /// the barrier. It writes `0x` before some targets only, so both lose it.
    fn as_objdump_writes(text: &str) -> String {
        if text == "barrier" {
            return ".word 0000000b".into();
        }
        let (name, operands) = text.split_once(' ').unwrap_or((text, ""));
        let shortened = ["addi", "xori", "ori", "andi", "slli", "srli", "srai"].contains(&name);
        let plain = if shortened || name.starts_with("csr") { name.trim_end_matches('i') } else { name };
        let operands: Vec<String> = operands
            .split(',')
            .map(|operand| match csr::MAP.iter().find(|csr| csr.name == operand && csr.address >= 0xfc0) {
                Some(csr) => format!("{:#x}", csr.address),
                None => operand.to_string(),
            })
            .collect();
        format!("{plain} {}", operands.join(",")).replace("0x", "").trim().to_string()
    }

    /// The lines of objdump with arguments, as address, word and text; `None`, said aloud, if there is no objdump.
    fn objdump(arguments: &[&OsStr]) -> Option<Vec<(u32, u32, String)>> {
        let Ok(output) = Command::new("riscv64-unknown-elf-objdump").args(arguments).output() else {
            let _ =
                writeln!(std::io::stderr(), "SKIPPED: disassembly against riscv64-unknown-elf-objdump, not installed");
            return None;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let listing = String::from_utf8(output.stdout).unwrap();
        let lines = listing.lines().filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let [pc, word, text @ ..] = fields.as_slice() else { return None };
            let hexadecimal = |field: &str| u32::from_str_radix(field.trim().trim_end_matches(':'), 16).unwrap();
            let text = text.join(" ");
            let text = text.split(['#', '<']).next().unwrap().trim();
            Some((hexadecimal(pc), hexadecimal(word), text.replace("0x", "")))
        });
        Some(lines.collect())
    }

    #[test]
    fn committed_programs_read_as_in_objdump() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/elf");
        for kernel in kernels::ALL {
            let path = folder.join(format!("{}.elf", kernel.name));
            let Some(lines) = objdump(&["-d".as_ref(), path.as_ref()]) else { return };
            let program = Program::parse(kernel.elf).unwrap();
            assert!(lines.len() > 20, "objdump lists {}", kernel.name);
            for (pc, word, text) in lines {
                assert_eq!(program.word(pc), Some(word));
                assert_eq!(as_objdump_writes(&disassemble(word, pc)), text, "{} at {pc:#x}: {word:#010x}", kernel.name);
            }
        }
    }

    #[test]
    fn every_row_reads_as_in_objdump_with_random_operands() {
        let seed = 20;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut words = Vec::new();
        for &(mask, value, name, operands) in TABLE.iter().filter(|row| !matches!(row.1 & 0x7f, 0x0b | 0x2b)) {
            // The bits of a fence that the manual reserves are ignored here and by the core, but not by objdump.
            for _ in 0..if name.starts_with("fence") { 0 } else { 50 } {
                let mut word = value | rng.u32(..) & !mask;
                if operands.contains('E') {
                    let csr = &csr::MAP[rng.usize(..csr::MAP.len())];
                    word = word & 0x000f_ffff | (csr.address as u32) << 20;
                }
                words.push(word);
            }
        }
        let path = std::env::temp_dir().join(format!("heddle-disassemble-{}.bin", std::process::id()));
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        std::fs::write(&path, bytes).unwrap();
        let options = ["-D", "-z", "-b", "binary", "-m", "riscv:rv32"].map(OsStr::new);
        let lines = objdump(&[options.as_slice(), &[path.as_ref()]].concat());
        std::fs::remove_file(&path).unwrap();
        let Some(lines) = lines else { return };
        assert_eq!(lines.len(), words.len());
        for (pc, word, text) in lines {
            assert_eq!(as_objdump_writes(&disassemble(word, pc)), text, "seed {seed}, {word:#010x} at {pc:#x}");
        }
    }
}
