use std::collections::HashMap;
use std::{fs, io::Write, path::Path};

use heddle_simt::isa;

use super::*;
use crate::grid::Grid;
use crate::iss::Iss;
use crate::program::Program;

/// Those that are right on the instruction-set simulator by itself: it runs each thread alone, without others to vote or shuffle with.
fn alone() -> impl Iterator<Item = &'static Kernel> {
    ALL.iter().chain(LOCKS)
}

const SHAPES: [(u32, u32); 9] = [(1, 1), (2, 1), (1, 4), (8, 1), (4, 4), (8, 8), (64, 1), (8, 64), (64, 64)];

/// A core that has all that kernels need.
fn complete(lanes: u32, warps: u32) -> Shape {
    Shape {
        barriers: true,
        atomics: true,
        reservations: true,
        fair: true,
        scratchpad: 64 << 10,
        ..Shape::new(lanes, warps)
    }
}

fn iss(kernel: &Kernel, shape: &Shape) -> Iss {
    let program = Program::parse(kernel.elf).unwrap();
    Iss::new(&program, shape).unwrap()
}

#[test]
fn every_kernel_is_right_with_any_number_of_threads() {
    for kernel in alone() {
        let mut counts = Vec::new();
        for (lanes, warps) in SHAPES {
            let mut iss = iss(kernel, &complete(lanes, warps));
            let seed = 1 + lanes as u64 * warps as u64;
            let output = (kernel.drive)(&mut iss, seed);
            let output = output.unwrap_or_else(|e| panic!("{} {lanes}x{warps} seed {seed}: {e}", kernel.name));
            assert!(output.checked > 0);
            counts.push(format!("{}: {}", lanes * warps, iss.executed()));
        }
        let _ = writeln!(std::io::stderr(), "instructions of {} by threads: {}", kernel.name, counts.join(", "));
    }
}

/// On the simulator threads come one after the other, so kernels that share work take somewhat more or fewer there.
#[test]
fn the_page_has_the_instructions_of_every_kernel() {
    let page = include_str!("../../../docs/reference/programs.md");
    let mut figures: HashMap<&str, f64> = page
        .lines()
        .filter_map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            let [_, name, _, instructions, ..] = cells[..] else { return None };
            Some((name.trim_matches('`'), instructions.strip_suffix(" k")?.parse().ok()?))
        })
        .collect();
    let mut wrong = String::new();
    for kernel in ALL {
        let mut iss = iss(kernel, &complete(8, 8));
        (kernel.drive)(&mut iss, 1).unwrap();
        let (found, told) = (iss.executed() as f64 / 1e3, figures.remove(kernel.name).unwrap_or(0.0));
        if (found - told).abs() > 0.5 + 0.02 * found {
            wrong += &format!("{}: {found:.0} k, the page has {told} k\n", kernel.name);
        }
    }
    assert!(wrong.is_empty() && figures.is_empty(), "docs/reference/programs.md:\n{wrong}no kernel: {figures:?}");
}

#[test]
fn kernels_run_in_the_least_stack() {
    let shape = Shape { stack: 512, ..complete(2, 2) };
    for kernel in alone() {
        (kernel.drive)(&mut iss(kernel, &shape), 7).unwrap();
    }
}

fn small_iss(kernel: &Kernel, lanes: u32, warps: u32) -> Option<Iss> {
    let program = Program::parse(kernel.small().ok()?).unwrap();
    Some(Iss::new(&program, &Shape { stack: 512, ..complete(lanes, warps) }).unwrap())
}

/// With more threads than there is data for, too.
#[test]
fn small_kernels_are_right() {
    for kernel in alone() {
        for (lanes, warps) in [(1, 1), (4, 2), (16, 16)] {
            let Some(mut iss) = small_iss(kernel, lanes, warps) else { continue };
            let output = (kernel.drive)(&mut iss, 5);
            let output = output.unwrap_or_else(|e| panic!("{} {lanes}x{warps}: {e}", kernel.name));
            assert!(output.checked > 0);
        }
    }
}

/// Small ones fit, and those that have no small one do not.
#[test]
fn small_kernels_fit() {
    let end = |elf| Program::parse(elf).unwrap().segments().iter().map(|segment| segment.end()).max().unwrap();
    let room = u64::from(SMALL_MEMORY - SMALL_STACKS);
    for kernel in every() {
        match kernel.small() {
            Ok(elf) => assert!(end(elf) <= room, "{}: {} bytes", kernel.name, end(elf)),
            Err(_) => assert!(end(kernel.elf) > room, "{} fits", kernel.name),
        }
        assert!(kernel.small_elf.is_none() || end(kernel.elf) > room, "{} needs no small one", kernel.name);
    }
    assert!(TOO_LARGE.iter().all(|(name, _)| find(name).is_ok_and(|kernel| kernel.small_elf.is_none())));
}

/// A device that spoils one byte after the last launch, wherever the driver looks for results.
struct Spoiled(Iss);

impl Device for Spoiled {
    fn program(&self) -> &Program {
        self.0.program()
    }

    fn shape(&self) -> &Shape {
        self.0.shape()
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.0.write(address, bytes)
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        let mut bytes = self.0.read(address, length)?;
        bytes[0] ^= 1;
        Ok(bytes)
    }

    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        self.0.launch_grid(grid)
    }
}

#[test]
fn wrong_results_are_caught() {
    for kernel in alone() {
        let mut device = Spoiled(iss(kernel, &complete(8, 1)));
        let error = (kernel.drive)(&mut device, 3).unwrap_err();
        assert!(matches!(error, KernelError::Wrong { index: 0, .. }), "{}: {error}", kernel.name);
    }
}

#[test]
fn a_program_without_the_variables_is_refused() {
    let mut device = iss(find("histogram").unwrap(), &complete(1, 1));
    let error = (find("vecadd").unwrap().drive)(&mut device, 0).unwrap_err();
    assert_eq!(error.to_string(), "the program has no symbol `sum`");
    let device: &mut dyn Device = &mut device;
    let error = device.write_words("length", &[1, 2]).unwrap_err();
    assert_eq!(error.to_string(), "`length` has 4 bytes, 8 are needed");
}

#[test]
fn a_core_that_lacks_something_is_refused() {
    let kernel = find("reduce").unwrap();
    let error = |shape: Shape| {
        assert!(!kernel.suits(&shape));
        (kernel.drive)(&mut iss(kernel, &shape), 1).unwrap_err().to_string()
    };
    let all = Shape { reservations: false, ..complete(2, 2) };
    assert!(kernel.suits(&all));
    assert_eq!(
        error(Shape { atomics: false, ..all.clone() }),
        "the kernel needs atomic memory operations, which the core does not have"
    );
    assert_eq!(
        error(Shape { barriers: false, ..all.clone() }),
        "the kernel needs barriers, which the core does not have"
    );
    assert!(!kernel.suits(&Shape { scratchpad: 0, ..all.clone() }));
    assert!(find("vecadd").unwrap().suits(&Shape { barriers: false, atomics: false, scratchpad: 0, ..all }));
}

#[test]
fn needs_are_those_of_the_program() {
    // `lr.w` and `sc.w` among those of the opcode.
    let reserves = |word: u32| word >> 28 == 1;
    for kernel in every() {
        let program = Program::parse(kernel.elf).unwrap();
        let words = || (0..program.program_end()).step_by(4).filter_map(|pc| program.word(pc));
        let found = [
            (Need::Atomics, words().any(|word| word & 0x7f == 0x2f)),
            (Need::Reservations, words().any(|word| word & 0x7f == 0x2f && reserves(word))),
            (Need::WarpPrimitives, words().any(isa::warp::has)),
            (Need::Barriers, words().any(|word| word == isa::BARRIER)),
            (Need::Scratchpad, program.scratchpad() > 0),
        ];
        // Which programs wait for threads of their warp, the words do not tell.
        for (need, found) in found {
            assert_eq!(kernel.needs.contains(&need), found, "{}: {need}", kernel.name);
        }
    }
}

/// Threads of a block that wait in two places may never meet on a stack.
#[test]
fn the_compiler_copies_no_barrier() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/kernels");
    for kernel in every() {
        let mut source = fs::read_to_string(folder.join(kernel.name).with_extension("c")).unwrap();
        if source.contains("\"bitonic.h\"") {
            source += &fs::read_to_string(folder.join("bitonic.h")).unwrap();
        }
        let program = Program::parse(kernel.elf).unwrap();
        let words = (0..program.program_end()).step_by(4).filter_map(|pc| program.word(pc));
        let barriers = words.filter(|&word| word == isa::BARRIER).count();
        assert_eq!(barriers, source.matches("heddle_barrier()").count(), "{}", kernel.name);
    }
}

#[test]
fn blocks_grow_until_their_share_of_the_scratchpad_is_enough() {
    let threads = |scratchpad, wanted| {
        let shape = Shape { scratchpad, ..complete(8, 8) };
        let device: &mut dyn Device = &mut iss(find("histogram").unwrap(), &shape);
        device.block_threads(wanted)
    };
    assert_eq!(threads(8 << 10, 8), 8);
    assert_eq!(threads(4 << 10, 8), 16);
    assert_eq!(threads(1 << 10, 8), 64);
    assert_eq!(threads(8 << 10, 1000), 64);
}

#[test]
fn names_are_found_or_the_nearest_is_suggested() {
    assert_eq!(find("gcd").unwrap().name, "gcd");
    assert_eq!(
        find("mandlebrot").unwrap_err().to_string(),
        "no kernel is called `mandlebrot`; did you mean `mandelbrot`?"
    );
    assert_eq!(find("xyz").unwrap_err().nearest, None);
}
