//! Every bad input is one line that names what is wrong and what would be right, a non-zero exit, and no file left.

use crate::common::*;

#[test]
fn shapes_that_cannot_be_built() {
    let place = Place::new();
    let bad = |options: &str| place.bad(&format!("run vecadd {options}"));
    assert_eq!(bad("--lanes 3"), "lanes = 3: must be a power of two from 1 to 64");
    assert_eq!(bad("--lanes 0"), "lanes = 0: must be a power of two from 1 to 64");
    assert_eq!(bad("--lanes 128"), "lanes = 128: must be a power of two from 1 to 64");
    assert_eq!(bad("--warps 65"), "warps = 65: must be a power of two from 1 to 64");
    assert!(bad("--warps 4294967295 --lanes 2").starts_with("warps = 4294967295"));
    assert!(bad("--memory 3000").starts_with("memory = 3000: must be a power of two"));
    assert!(bad("--memory 128M").starts_with("memory = 134217728: must be a power of two"));
    assert!(bad("--memory 64K").contains("memory = 65536"));
    assert!(bad("--memory 64Q").contains("--memory <BYTES>"));
    assert!(bad("--stack 100").starts_with("stack = 100: must be a power of two from 64"));
    assert!(bad("--program 1G").contains("--program <BYTES>"));
    assert_eq!(bad("--bus 512"), "wishbone.width = 512: must be a power of two from 32 to 256");
    assert!(bad("--divergence teleport").contains("possible values: path-table"));
    assert!(bad("--lanes many").contains("--lanes <N>"));
    assert!(bad("--engine steam").contains("interpreter"));
    assert!(bad("--max-cycles 0").contains("--max-cycles"));
}

#[test]
fn kernels_and_files_that_are_not_there() {
    let place = Place::new();
    assert_eq!(place.bad("run mandelbort"), "no kernel is called `mandelbort`; did you mean `mandelbrot`?");
    assert_eq!(place.bad("run zzz"), "no kernel is called `zzz`; `heddle kernels` lists them");
    assert!(place.bad("run none.elf").starts_with("cannot read none.elf: No such file"));
    assert!(place.bad("run ./").starts_with("cannot read ./: "));
    assert!(place.bad("run").contains("KERNEL|FILE.elf"));
    assert!(place.bad("ran vecadd").contains("run"));
}

#[test]
fn files_that_are_no_program_of_the_core() {
    let place = Place::new();
    let bad = |bytes: &[u8]| {
        place.file("p.elf", bytes);
        place.bad("run p.elf --lanes 1 --warps 1")
    };
    let with = |at, value| bad(&patched_word(ends(), at, value));
    assert_eq!(bad(b"#!/bin/sh\n"), "p.elf: not an ELF file");
    assert_eq!(bad(b""), "p.elf: not an ELF file");
    let mut wide = ends();
    wide[field::CLASS] = 2;
    assert!(bad(&wide).contains("64-bit ELF file"));
    assert!(bad(&patched(ends(), field::MACHINE, 62)).contains("not a RISC-V ELF file: machine 62"));
    assert!(bad(&patched(ends(), field::TYPE, 1)).contains("not a linked executable"));
    assert!(with(field::ENTRY, 0).contains("no entry point"));
    assert!(with(field::ENTRY, 0x400).contains("the entry point 0x00000400 is not in"));
    assert!(with(field::SEGMENT_FLAGS, 7).contains("writable and executable"));
    assert!(with(field::SEGMENT_SIZE, 1 << 20).contains("outside memory of"));
    let high = patched_word(ends(), field::SEGMENT_ADDRESS, 0x8000_0000);
    assert!(bad(&patched_word(high, field::ENTRY, 0x8000_0000)).contains("outside memory"));
    assert!(bad(&ends()[..90]).contains("truncated or damaged"));
    place.file("p.elf", &patched_word(ends(), field::SEGMENT_SIZE, 8 << 10));
    assert!(place.bad("run p.elf --lanes 1 --warps 1 --program 4K").contains("use at least"));
}

/// The page on fairness has the command and what it says.
#[test]
fn a_lock_that_hangs_is_named_as_on_the_page() {
    let place = Place::new();
    place.file("spin_lock.elf", heddle_testbench::kernels::find("spin_lock").unwrap().elf);
    let error = place.bad("run spin_lock.elf --lanes 4 --warps 2");
    let page = include_str!("../../../docs/reference/fairness.md");
    assert!(page.contains("heddle run testbench/programs/elf/spin_lock.elf --lanes 4 --warps 2\n"));
    assert!(page.contains(&format!("error: testbench/programs/elf/{error}\n")), "the page lacks: {error}");
}

#[test]
fn programs_that_go_wrong() {
    let place = Place::new();
    let bad = |code: &[u32], options: &str| {
        place.file("p.elf", &elf(code));
        place.bad(&format!("run p.elf --lanes 2 --warps 2 {options}"))
    };
    let endless = bad(&[LOOP], "--max-cycles 500");
    let stuck = "threads 0-3 of block 0 go round 0x00000004 for ever";
    assert!(endless.starts_with("p.elf: the program hangs, ") && endless.ends_with(stuck), "{endless}");
    let codes = bad(&[thread_number(A0), li(A7, 93), ECALL], "");
    assert_eq!(
        codes,
        "p.elf: exit code not 0: thread 1 of block 0 with 1, thread 2 of block 0 with 2, thread 3 of block 0 with 3"
    );
    let breakpoint = bad(&[EBREAK], "");
    assert!(breakpoint.contains("at 0x00000004") && breakpoint.contains("lanes 0x3"), "{breakpoint}");
    let illegal = bad(&[0xffff_ffff], "");
    assert!(illegal.contains("illegal instruction"), "{illegal}");
    assert!(bad(&[li(A7, 1), ECALL], "").contains("ecall"));
}

#[test]
fn grids_that_cannot_be_launched() {
    let place = Place::new();
    place.file("p.elf", &ends());
    let bad = |options: &str| place.bad(&format!("run p.elf --lanes 2 --warps 2 {options}"));
    assert_eq!(bad("--blocks 0"), "p.elf: a grid of no blocks: at least 1 is needed");
    assert_eq!(bad("--block-threads 5"), "p.elf: blocks of 5 threads: the core has 4");
    assert!(bad("--blocks 4294967296").contains("4294967296"));
    assert!(bad("--blocks 4294967295").starts_with("p.elf: 4294967295 blocks of 4 threads are more than"));
    assert!(place.bad("run vecadd --blocks 2").ends_with("are for ELF files: the grid of vecadd is its driver's"));
}

#[test]
fn results_that_cannot_be_written() {
    let place = Place::new();
    place.file("file", b"");
    assert!(
        place.bad("run mandelbrot --image none/m.png").ends_with("cannot write none/m.png: there is no such folder")
    );
    assert!(place.bad("run mandelbrot --image file/m.png").starts_with("cannot write file/m.png"));
    assert!(place.bad("run mandelbrot --image .").starts_with("cannot write ."));
    assert_eq!(
        place.bad("run vecadd --image v.png"),
        "--image is for mandelbrot, raytrace, pathtracer: vecadd makes no picture"
    );
    assert!(place.bad("run vecadd --wave none/v.vcd").contains("none/v.vcd"));
    assert!(place.bad("run vecadd --wave v.txt").contains("must end in .vcd or .fst"));
}

#[test]
fn what_cannot_be_watched() {
    let place = Place::new();
    let none = "--watch draws on a terminal, and standard error is none; see --trace and --timeline";
    assert_eq!(place.bad("run gcd --watch"), none);
    assert!(place.bad("run gcd --watch --trace").contains("--trace"));
}

#[test]
fn coverage_that_cannot_be_measured_or_written() {
    let place = Place::new();
    assert!(place.bad("cover --warps 3").starts_with("warps = 3"));
    assert!(place.bad("cover --docs none").ends_with("none/evidence/coverage.md: there is no such folder"));
    let of_one = place.bad("cover --lanes 1 --divergence stack --docs .");
    assert_eq!(of_one, "--docs is of the usual cores: leave --lanes=1 --divergence=stack away");
    assert!(place.bad("cover --lanes 1 --memory 128K").contains("on 1 × 8: "));
}

#[test]
fn variables_that_are_not_there() {
    let place = Place::new();
    assert!(place.bad("run vecadd --set length=1").contains("--set is for ELF files"));
    place.file("p.elf", &ends());
    let bad = |options: &str| place.bad(&format!("run p.elf --lanes 1 --warps 1 {options}"));
    assert_eq!(bad("--set n=1"), "p.elf: --set: the program has no symbol `n`");
    assert_eq!(bad("--show n"), "--show: the program has no symbol `n`");
    assert!(bad("--set n").contains("NAME=VALUE"));
    assert!(bad("--set n=ten").contains("`ten` is not a 32-bit number"));
}

#[test]
fn programs_that_cannot_be_analysed() {
    let place = Place::new();
    place.file("p.elf", &elf(&[0x4000_006f]));
    let outside = "p.elf: the instruction at 0x00000004 leads to 0x00000404, where the program has no instruction";
    assert_eq!(place.bad("reconverge p.elf"), outside);
    assert_eq!(place.bad("reconverge p.elf --svg p.svg --dot p.dot"), outside);
    assert_eq!(place.bad("reconverge nquens"), "no kernel is called `nquens`; did you mean `nqueens`?");
    assert!(place.bad("reconverge none.elf").starts_with("cannot read none.elf: No such file"));
    assert!(place.bad("reconverge").contains("KERNEL|FILE.elf"));
    place.file("text", b"#!/bin/sh\n");
    assert_eq!(place.bad("reconverge text"), "text: not an ELF file");
    let folder = "cannot write none/p.svg: there is no such folder";
    assert_eq!(place.bad("reconverge nqueens --svg none/p.svg"), folder);
    assert!(place.bad("reconverge nqueens --svg a.svg --dot .").starts_with("cannot write ."));
}
