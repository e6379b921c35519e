//! The instruction-set simulator against QEMU: every instruction that both have, on random and extreme operands.
//!
//! One generated program stores the result of each case in a buffer and writes the buffer to standard output, which in the
//! simulator is the fault of an `ecall` it does not have. Instructions are assembled by GNU as, so this also checks decoding.

use std::{
    fmt::Write as _,
    fs,
    io::Write as _,
    path::Path,
    process::{Command, Output},
};

use fastrand::Rng;
use heddle_simt::Shape;
use heddle_testbench::{
    Program,
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
const SCRATCH_BYTES: i32 = 64;

/// A program and the number of words it leaves in `results`.
fn generate(rng: &mut Rng) -> (String, usize) {
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
    let text = format!(
        ".globl _start\n.option norelax\n_start:\n la s0, results\n la s1, scratch\n{body}\n li a0, 1\n la a1, results\n li a2, {bytes}\n \
         li a7, 64\n ecall\n li a0, 0\n li a7, 93\n ecall\n.data\n.balign 4\n.zero {SCRATCH_BYTES}\nscratch: .zero {SCRATCH_BYTES}\n\
         .globl results\nresults: .zero {bytes}\n.size results, {bytes}\n"
    );
    (text, words)
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

#[test]
fn every_instruction_does_what_it_does_in_qemu() {
    let seed = 1;
    let (text, words) = generate(&mut Rng::with_seed(seed));
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::write(folder.join("qemu.s"), text).unwrap();
    // QEMU cannot map page 0.
    let build = "-march=rv32im -mabi=ilp32 -nostdlib -static -Wl,-Ttext=0x10000 -o qemu.elf qemu.s";
    let build: Vec<&str> = build.split(' ').collect();
    if run("riscv64-unknown-elf-gcc", &build, folder).is_none() {
        return;
    }
    let Some(qemu) = run("qemu-riscv32", &["./qemu.elf"], folder) else { return };

    let program = Program::parse(&fs::read(folder.join("qemu.elf")).unwrap()).unwrap();
    let shape = Shape { memory: 8 << 20, program: 8 << 20, ..Shape::new(1, 1) };
    let mut iss = Iss::new(&program, &shape).unwrap();
    let fault = (0..1_000_000).find_map(|_| iss.step(0).err()).expect("the program ends");
    assert_eq!(fault.cause, Cause::Ecall(64), "{fault}");
    let start = program.symbol("results").unwrap().address as usize;
    let ours = &iss.memory()[start..start + 4 * words];
    assert_eq!(qemu.stdout.len(), ours.len());
    for (index, (ours, theirs)) in ours.chunks(4).zip(qemu.stdout.chunks(4)).enumerate() {
        assert_eq!(ours, theirs, "seed {seed}: word {index} of {words}, see qemu.s in {}", folder.display());
    }
}
