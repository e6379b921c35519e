//! The instruction-set simulator against QEMU: every instruction that both have, on random and extreme operands;
//! compiled C programs; random programs.
//!
//! A program leaves results in a buffer and writes the buffer to standard output, which in the simulator is the fault
//! of an `ecall` it does not have. Generated instructions are assembled by GNU as, so that checks decoding, too.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use fastrand::Rng;
use heddle_check::random::{self, DATA, Features};
use heddle_simt::Shape;
use heddle_testbench::{
    Program,
    asm::{A0, A7, ECALL, ZERO, addi, lui, sw},
    iss::{Cause, Iss},
};

const CASES: usize = 200;
const REGISTER: &[&str] = &[
    "add", "sub", "sll", "slt", "sltu", "xor", "srl", "sra", "or", "and", "mul", "mulh", "mulhsu", "mulhu", "div",
    "divu", "rem", "remu",
];
const IMMEDIATE: &[&str] = &["addi", "slti", "sltiu", "xori", "ori", "andi"];
const SHIFT: &[&str] = &["slli", "srli", "srai"];
const BRANCH: &[&str] = &["beq", "bne", "blt", "bge", "bltu", "bgeu"];
const LOAD: &[(&str, i32)] = &[("lb", 1), ("lh", 2), ("lw", 4), ("lbu", 1), ("lhu", 2)];
const STORE: &[(&str, i32)] = &[("sb", 1), ("sh", 2), ("sw", 4)];
const ATOMIC: &[&str] = &["add", "swap", "xor", "or", "and", "min", "max", "minu", "maxu"];
const SCRATCH_BYTES: i32 = 64;
const RANDOM_PROGRAMS: u64 = 40;

/// A program, which writes `results`.
fn generate(rng: &mut Rng) -> String {
    let mut body = String::new();
    let mut words = 0;
    let mut case = |body: &mut String, lines: &str| {
        let _ = writeln!(body, "{lines}\n sw t2, 0(s0)\n addi s0, s0, 4");
        words += 1;
    };
    for _ in 0..CASES {
        let (a, b) = (operand(rng), operand(rng));
        let b = if rng.u32(..8) == 0 { a } else { b };
        let immediate = rng.i32(-2048..2048);
        let a = if rng.u32(..8) == 0 { immediate as u32 } else { a };
        let _ = writeln!(body, " li t0, {a:#x}\n li t1, {b:#x}");
        for name in REGISTER {
            case(&mut body, &format!(" {name} t2, t0, t1"));
        }
        for name in IMMEDIATE {
            case(&mut body, &format!(" {name} t2, t0, {immediate}"));
        }
        for name in SHIFT {
            case(&mut body, &format!(" {name} t2, t0, {}", rng.u32(..32)));
        }
        for name in BRANCH {
            case(&mut body, &format!(" li t2, 0\n {name} t0, t1, 1f\n li t2, 1\n1:"));
        }
        for (name, bytes) in STORE {
            let offset = rng.i32(-SCRATCH_BYTES / bytes..SCRATCH_BYTES / bytes) * bytes;
            case(&mut body, &format!(" {name} t0, {offset}(s1)\n lw t2, {}(s1)", offset & !3));
        }
        for (name, bytes) in LOAD {
            let offset = rng.i32(-SCRATCH_BYTES / bytes..SCRATCH_BYTES / bytes) * bytes;
            case(&mut body, &format!(" {name} t2, {offset}(s1)"));
        }
        for name in ATOMIC {
            let order = ["", ".rl", ".aq", ".aqrl"][rng.usize(..4)];
            let atomic = format!("amo{name}.w{order}");
            case(&mut body, &format!(" sw t0, 0(s1)\n {atomic} t2, t1, (s1)"));
            case(&mut body, " lw t2, 0(s1)");
            // Into nothing, into its address, into its operand.
            case(&mut body, &format!(" {atomic} x0, t1, (s1)\n lw t2, 0(s1)"));
            case(&mut body, &format!(" mv t2, s1\n {atomic} t2, t1, (t2)"));
            case(&mut body, &format!(" mv t2, t0\n {atomic} t2, t2, (s1)"));
        }
        // A pair; another word; nothing reserved; a second one. QEMU fails where the value has changed, so none stores.
        let order = ["", ".aq", ".aqrl"][rng.usize(..3)];
        case(&mut body, &format!(" sw t0, 0(s1)\n lr.w{order} t2, (s1)"));
        case(&mut body, " sc.w t2, t1, (s1)");
        case(&mut body, " lw t2, 0(s1)");
        case(&mut body, " sc.w t2, t0, (s1)");
        case(&mut body, " lr.w t2, (s1)\n addi t3, s1, 4\n sc.w.rl t2, t0, (t3)");
        case(&mut body, " lr.w t2, (s1)\n sc.w x0, t0, (s1)\n lw t2, 0(s1)");
        case(&mut body, &format!(" lui t2, {}", rng.u32(..1 << 20)));
        case(&mut body, &format!(" auipc t2, {}", rng.u32(..1 << 20)));
        case(&mut body, " jal t2, 1f\n1:");
        // An odd target: jalr clears bit 0. The link register is the base, too.
        case(&mut body, " la t2, 1f\n jalr t2, 1(t2)\n li t2, 0\n1:");
        case(&mut body, " mv t2, x0\n addi x0, t0, 1\n add t2, t2, x0");
    }
    for (jump, reach) in [("beq x0, x0,", 4000), ("j", 400_000)] {
        for _ in 0..8 {
            let gap = rng.u32(..reach) & !3;
            // Ahead over the gap, back over it, and ahead again to the end.
            case(&mut body, &format!(" {jump} 2f\n1: li t2, {gap}\n j 3f\n .space {gap}\n2: {jump} 1b\n li t2, 0\n3:"));
        }
    }
    let bytes = 4 * words;
    format!(
        ".globl _start\n.option norelax\n_start:\n la s0, results\n la s1, scratch\n{body}\n li a0, 1\n la a1, results\n li a2, {bytes}\n \
         li a7, 64\n ecall\n li a0, 0\n li a7, 93\n ecall\n.data\n.balign 4\n.zero {SCRATCH_BYTES}\nscratch: .zero {SCRATCH_BYTES}\n\
         .globl results\nresults: .zero {bytes}\n.size results, {bytes}\n"
    )
}

/// A word that is extreme one time in two.
fn operand(rng: &mut Rng) -> u32 {
    const EXTREMES: [u32; 8] = [0, 1, 2, 31, 0x7fff_ffff, 0x8000_0000, 0xffff_fffe, 0xffff_ffff];
    if rng.bool() { EXTREMES[rng.usize(..EXTREMES.len())] } else { rng.u32(..) }
}

/// What a tool leaves; `None`, said aloud, if it is not installed.
fn run(tool: &str, arguments: &[&str], folder: &Path) -> Option<Output> {
    match Command::new(tool).args(arguments).current_dir(folder).output() {
        Ok(output) => {
            assert!(output.status.success(), "{tool}: {}", String::from_utf8_lossy(&output.stderr));
            Some(output)
        }
        Err(_) => {
            let _ =
                writeln!(std::io::stderr(), "SKIPPED: instruction-set simulator against QEMU, {tool} not installed");
            None
        }
    }
}

/// Where a test may leave files.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR"))
}

/// What a program writes in QEMU, which is what it writes in the simulator; `None` without the tools. `source` is a
/// file of assembly or C.
fn same_in_both(name: &str, source: &Path, options: &str) -> Option<Vec<u8>> {
    let folder = folder();
    let elf = format!("{name}.elf");
    let fixed = "-march=rv32ima -mabi=ilp32 -nostdlib -static -o";
    let build: Vec<&str> = fixed.split(' ').chain([elf.as_str(), source.to_str().unwrap()]).collect();
    run("riscv64-unknown-elf-gcc", &[build, options.split(' ').collect()].concat(), &folder)?;
    let theirs = run("qemu-riscv32", &[&format!("./{elf}")], &folder)?.stdout;

    let program = Program::parse(&fs::read(folder.join(&elf)).unwrap()).unwrap();
    let shape = Shape { memory: 8 << 20, program: 8 << 20, reservations: true, ..Shape::new(1, 1) };
    let mut iss = Iss::new(&program, &shape).unwrap();
    let fault = (0..50_000_000).find_map(|_| iss.step(0).err()).expect("the program ends");
    assert_eq!(fault.cause, Cause::Ecall(64), "{name}: {fault}");
    let [start, bytes] = [11, 12].map(|register| iss.hart(0).register(register) as usize);
    let ours = &iss.memory()[start..start + bytes];
    assert_eq!(theirs.len(), ours.len(), "{name}");
    for (index, (ours, theirs)) in ours.chunks(4).zip(theirs.chunks(4)).enumerate() {
        assert_eq!(ours, theirs, "word {index} of {}, see {elf} in {}", bytes / 4, folder.display());
    }
    Some(theirs)
}

#[test]
fn every_instruction_does_what_it_does_in_qemu() {
    let source = folder().join("qemu.s");
    fs::write(&source, generate(&mut Rng::with_seed(1))).unwrap();
    // Not at address 0, so that targets above and below the program are tried.
    same_in_both("qemu", &source, "-Wl,-Ttext=0x10000");
}

#[test]
fn compiled_programs_do_what_they_do_in_qemu() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/qemu/programs.c");
    let mut before = None;
    for level in ["0", "1", "2", "3", "s"] {
        let options = format!("-O{level} -ffreestanding -fno-tree-loop-distribute-patterns -Wl,-Ttext=0x10000 -lgcc");
        let Some(written) = same_in_both(&format!("programs-{level}"), &source, &options) else { return };
        assert!(written.len() > 4000, "{} bytes", written.len());
        let before = before.get_or_insert_with(|| written.clone());
        assert!(*before == written, "-O{level} computes something else than -O0");
    }
}

#[test]
fn random_programs_do_what_they_do_in_qemu() {
    const END: u32 = 2 * DATA;
    let shape = Shape { memory: END, program: DATA, stack: 64, ..Shape::new(1, 1) };
    let exit = [addi(A0, ZERO, 0), addi(A7, ZERO, 93), ECALL];
    for seed in 0..RANDOM_PROGRAMS {
        let mut words = random::program(seed).assemble(&shape, Features::ONE_HART).words();
        // Every exit becomes a jump to the end, which writes memory with the registers behind the thread's words.
        let end = words.len();
        let exits: Vec<usize> = (0..end - 2).filter(|&at| words[at..at + 3] == exit).collect();
        assert!(!exits.is_empty(), "seed {seed}");
        for at in exits {
            let offset = 4 * (end - at) as u32;
            words[at] = 0x6f | (offset >> 1 & 0x3ff) << 21 | (offset >> 11 & 1) << 20 | (offset >> 12 & 0xff) << 12;
        }
        words.push(lui(28, DATA >> 12));
        let defined = [6, 7, 8, 9, 11, 12, 20, 21, 22, 23];
        words.extend(defined.map(|register| sw(register, 28, 256 + 4 * register as i32)));
        words.extend([addi(A0, ZERO, 1), lui(11, DATA >> 12), addi(12, ZERO, 512), addi(A7, ZERO, 64), ECALL]);
        words.extend(exit);
        assert!(4 * words.len() < DATA as usize, "seed {seed}");
        let mut text = ".globl _start\n_start:\n".to_string();
        for word in words {
            let _ = writeln!(text, " .word {word:#010x}");
        }
        let _ = writeln!(text, ".bss\n.zero {}", END - DATA);
        let name = format!("random-{seed}");
        let source = folder().join(format!("{name}.s"));
        fs::write(&source, text).unwrap();
        if same_in_both(&name, &source, &format!("-Wl,-Ttext=0 -Wl,--section-start=.bss={DATA:#x}")).is_none() {
            return;
        }
    }
}
