//! The pass on whole programs, and that programs are laid out again without changing what they do.

use super::*;
use crate::Program;
use crate::iss::Iss;
use crate::kernels::{self, Kernel};
use crate::program::Symbol;
use crate::reconverge::instruction::{Flow, Instruction};
use heddle_simt::Shape;
use object::build::elf::{Builder, SectionData};
use object::elf::{R_RISCV_BRANCH, R_RISCV_JAL, R_RISCV_PCREL_HI20};
use std::collections::BTreeMap;

pub mod compile;
mod kernels_with_barriers;
mod placing;
mod relocate;
mod warps;

fn with_all(lanes: u32, warps: u32) -> Shape {
    Shape { atomics: true, barriers: true, scratchpad: 64 << 10, program: 256 << 10, ..Shape::new(lanes, warps) }
}

fn run(kernel: &Kernel, elf: &[u8]) -> u64 {
    let program = Program::parse(elf).unwrap();
    let mut iss = Iss::new(&program, &with_all(4, 2)).unwrap();
    (kernel.drive)(&mut iss, 1).unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
    iss.executed()
}

#[test]
fn kernels_with_nops_everywhere_give_their_results() {
    for kernel in kernels::ALL {
        let plain = run(kernel, kernel.elf);
        for nops in [0, 1, 3] {
            let (elf, dropped) = padded(kernel.elf, nops).unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
            assert_eq!(dropped, [""; 0]);
            let executed = run(kernel, &elf);
            assert!(nops == 0 || executed > 2 * plain, "{}: {executed} with nops, {plain} without", kernel.name);
        }
    }
}

/// Laid out with nothing inserted, a program is the same.
#[test]
fn nothing_inserted_changes_nothing() {
    for kernel in kernels::ALL {
        let (elf, _) = padded(kernel.elf, 0).unwrap();
        assert_eq!(Program::parse(&elf), Program::parse(kernel.elf), "{}", kernel.name);
    }
}

/// So far do branches go that each must become two instructions.
#[test]
fn branches_that_no_longer_reach_become_jumps() {
    let kernel = kernels::find("nqueens").unwrap();
    let (elf, _) = padded(kernel.elf, 150).unwrap();
    let program = Program::parse(&elf).unwrap();
    assert!(program.program_end() > 32 << 10);
    run(kernel, &elf);
}

#[test]
fn what_is_laid_out_cannot_be_laid_out_again() {
    let (elf, _) = padded(kernels::ALL[0].elf, 1).unwrap();
    assert_eq!(padded(&elf, 1).unwrap_err(), PredictError::NoRelocations);
}

/// Position-independent, with a global offset table, jump tables of differences, and debug information.
#[test]
fn position_independent_programs_with_nops_everywhere_give_their_results() {
    let Some(compiler) = compile::compiler("position-independent programs") else { return };
    for name in ["bitonic_large", "dispatch", "nqueens", "work_queue", "photon"] {
        let kernel = kernels::find(name).unwrap();
        let elf = compiler.kernel(name, &["-fPIC", "-g"]);
        run(kernel, &elf);
        for nops in [1, 3] {
            // Frames' rows may be too far apart, and are dropped then.
            let (padded, _) = padded(&elf, nops).unwrap_or_else(|error| panic!("{name}: {error}"));
            run(kernel, &padded);
            assert_eq!(lines(&compiler, &elf), lines(&compiler, &padded), "{name}");
        }
    }
    let source = r#"
        #include "heddle.h"
        HEDDLE_BUFFER(uint32_t, out, 4096);
        static uint32_t f(uint32_t x) { return x * 3; }
        static uint32_t g(uint32_t x) { return x + 7; }
        uint32_t (*const table[])(uint32_t) = {f, g, f, g};
        uint32_t (*chosen)(uint32_t) = g;
        __attribute__((noinline)) uint32_t name(uint32_t x) {
          switch (x) {
            case 0: return 17; case 1: return x * x + 5; case 2: return ~x; case 3: return table[x & 3](x);
            case 4: return 99 - x; case 5: return chosen(x); case 6: return x << 3; case 7: return 1234;
            default: return x;
          }
        }
        int main(void) { uint32_t t = heddle_thread(); out[t] = name(t); return 0; }
    "#;
    for flags in [&["-fPIC", "-g"][..], &["-g"], &["-fPIC", "-O1"], &["-mcmodel=medany", "-g"]] {
        let elf = compiler.program(source, flags);
        for nops in [0, 1, 2, 40] {
            let (padded, _) = padded(&elf, nops).unwrap();
            let mut iss = Iss::new(&Program::parse(&padded).unwrap(), &with_all(4, 4)).unwrap();
            iss.run().unwrap();
            let out = Program::parse(&padded).unwrap().symbol("out").unwrap().address;
            let word = |n: u32| u32::from_le_bytes(iss.memory()[(out + 4 * n) as usize..][..4].try_into().unwrap());
            let got: Vec<u32> = (0..10).map(word).collect();
            assert_eq!(got, [17, 6, !2, 10, 95, 12, 48, 1234, 8, 9], "{flags:?} and {nops} nops");
        }
    }
}

/// File and number of each line of source, in order of the addresses where debug information says that they begin.
fn lines(compiler: &compile::Compiler, elf: &[u8]) -> Vec<String> {
    let text = compiler.run("readelf", &["--debug-dump=decodedline"], elf);
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        matches!(fields[..], [file, _, address, ..] if file.ends_with(".c") && address.starts_with("0x"))
            .then(|| format!("{} {}", fields[0], fields[1]))
    };
    let lines: Vec<String> = text.lines().filter_map(row).collect();
    assert!(lines.len() > 10, "{text}");
    lines
}

#[test]
fn symbols_and_sizes_move_along() {
    let kernel = kernels::find("dispatch").unwrap();
    let before = Program::parse(kernel.elf).unwrap();
    let after = Program::parse(&padded(kernel.elf, 2).unwrap().0).unwrap();
    let functions = |program: &Program| -> BTreeMap<String, (u32, u32)> {
        let functions = program.symbols().iter().filter(|symbol| symbol.function && symbol.size > 0);
        functions.map(|symbol| (symbol.name.clone(), (symbol.address, symbol.size))).collect()
    };
    let (before, after) = (functions(&before), functions(&after));
    assert!(before.len() > 2 && before.keys().eq(after.keys()));
    let mut moved: Vec<(u32, u32)> = after.values().copied().collect();
    moved.sort_unstable();
    for pair in moved.windows(2) {
        assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{moved:x?}");
    }
    assert!(before.iter().all(|(name, (_, size))| after[name].1 >= 3 * size), "{before:?} {after:?}");
}

#[test]
fn what_cannot_be_laid_out_is_refused_in_a_line() {
    let Some(compiler) = compile::compiler("refusals") else { return };
    let refused = |elf: &[u8]| padded(elf, 1).unwrap_err().to_string();
    let source = "volatile int x = 3; int main(void) { return x - 3; }";
    let flags = "link with -Wl,--emit-relocs -Wl,--no-relax";
    let relaxed = refused(&compiler.linked(source, &["-msmall-data-limit=8"], &["-Wl,--emit-relocs"]));
    assert!(relaxed.ends_with(flags), "{relaxed}");
    let without = refused(&compiler.linked(source, &[], &["-Wl,--no-relax"]));
    assert_eq!(without, format!("the file has no relocations, so it cannot be laid out again: {flags}"));
    let elf =
        compiler.program("int f(int x) { while (x & 1) x /= 3; return x; } int main(void) { return f(2); }", &["-O0"]);
    for (kind, what) in
        [(R_RISCV_BRANCH, "a branch at 0x"), (R_RISCV_JAL, "jal at 0x"), (R_RISCV_PCREL_HI20, "auipc at 0x")]
    {
        let mut builder = Builder::read32(elf.as_slice()).unwrap();
        for section in builder.sections.iter_mut() {
            if let SectionData::Relocation(relocations) = &mut section.data {
                relocations.retain(|relocation| relocation.r_type != kind);
            }
        }
        let mut without = Vec::new();
        builder.write(&mut without).unwrap();
        let message = refused(&without);
        assert!(message.starts_with(what) && message.ends_with(flags), "{message}");
    }
}
