//! Files that are no programs, and programs that mean harm: the loader takes any bytes and says in one line what is
//! wrong; what loads runs to its end, to a fault, or to the last of its cycles.
//!
//! Memory is limited, so that asking for much more than the file has ends the test. `HEDDLE_LONG=1` tries a hundred
//! times as many cases.

mod directives;
mod profiles;

use heddle_check::checked;
use heddle_sim::simulation::SimulationError;
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::iss::Iss;
use heddle_testbench::kernels::ALL;
use heddle_testbench::machine::{Machine, MachineError, MachineOptions};
use heddle_testbench::predict::{Options, PredictError, Prediction, predict};
use heddle_testbench::program::ProgramError;
use heddle_testbench::reconverge::analyse;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use rustix::process::{Resource, Rlimit, setrlimit};
use std::cell::{Cell, RefCell};

/// Bytes of address space that a test process may have: far less than a 32-bit size can ask for.
const MOST_SPACE: u64 = 3 << 30;

fn limit_memory() {
    setrlimit(Resource::As, Rlimit { current: Some(MOST_SPACE), maximum: Some(MOST_SPACE) }).unwrap();
}

fn cases(usual: u32) -> ProptestConfig {
    let long = std::env::var_os("HEDDLE_LONG").is_some();
    let cases = if long { 100 * usual } else { usual };
    let rng_seed = RngSeed::Fixed(1);
    eprintln!("seed {rng_seed}");
    ProptestConfig { cases, failure_persistence: None, rng_seed, ..ProptestConfig::default() }
}

/// Small, so that a launch is short; its machine is made once a test.
fn shape() -> Shape {
    Shape { memory: 128 << 10, program: 16 << 10, stack: 64, ..Shape::new(4, 2) }
}

/// Offsets and bytes of a file's fields.
type Fields = Vec<(usize, usize)>;

fn half(file: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([file[at], file[at + 1]]))
}

fn word(file: &[u8], at: usize) -> usize {
    u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize
}

fn set(file: &mut [u8], (at, bytes): (usize, usize), value: u32) {
    file[at..at + bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
}

const PHOFF: usize = 28;
const SHOFF: usize = 32;
const PHNUM: usize = 44;

/// Of the file's header, the program headers, the section headers, the first symbols, and the first relocations.
fn fields(file: &[u8]) -> [Fields; 5] {
    let identity = (4..8).map(|at| (at, 1));
    let header = [(16, 2), (18, 2), (20, 4), (24, 4), (28, 4), (32, 4), (36, 4)].into_iter();
    let counts = (40..52).step_by(2).map(|at| (at, 2));
    let words = |start: usize, bytes: usize| (start..start + bytes).step_by(4).map(|at| (at, 4)).collect::<Fields>();
    let sections = words(word(file, SHOFF), 40 * half(file, 48));
    let contents = |kind: usize, most: usize| {
        let section = sections.chunks(10).find(|section| word(file, section[1].0) == kind);
        let section = section.expect("symbols and relocations");
        words(word(file, section[4].0), word(file, section[5].0).min(most))
    };
    let (symbols, relocations) = (contents(2, 16 * 16), contents(4, 12 * 64));
    [
        identity.chain(header).chain(counts).collect(),
        words(word(file, PHOFF), 32 * half(file, PHNUM)),
        sections,
        symbols,
        relocations,
    ]
}

/// A kernel's file with fields set, bytes changed, and its end cut off.
#[derive(Clone, Debug)]
struct Damage {
    kernel: Index,
    fields: Vec<(usize, Index, u32)>,
    bytes: Vec<(Index, u8)>,
    cut: Option<Index>,
}

fn extremes() -> impl Strategy<Value = u32> {
    let near = |edge: u32| (0u32..9).prop_map(move |by| edge.wrapping_add(by).wrapping_sub(4));
    prop_oneof![
        near(0),
        near(0x100),
        near(0x1000),
        near(64 << 20),
        near(0x8000_0000),
        near(0xffff),
        (0u32..0x4000),
        any::<u32>(),
    ]
}

fn damage() -> impl Strategy<Value = Damage> {
    let fields = prop::collection::vec((0..5usize, any::<Index>(), extremes()), 0..4);
    let bytes = prop::collection::vec((any::<Index>(), any::<u8>()), 0..4);
    let cut = prop::option::weighted(0.1, any::<Index>());
    (any::<Index>(), fields, bytes, cut).prop_map(|(kernel, fields, bytes, cut)| Damage { kernel, fields, bytes, cut })
}

impl Damage {
    fn file(&self) -> Vec<u8> {
        let mut file = ALL[self.kernel.index(ALL.len())].elf.to_vec();
        let places = fields(&file);
        for (group, place, value) in &self.fields {
            set(&mut file, *place.get(&places[*group]), *value);
        }
        for (at, value) in &self.bytes {
            let at = at.index(file.len());
            file[at] = *value;
        }
        if let Some(length) = self.cut {
            file.truncate(length.index(file.len()));
        }
        file
    }
}

/// The message of an error is a line with something in it.
fn one_line(error: &dyn std::error::Error) -> Result<(), TestCaseError> {
    let text = error.to_string();
    prop_assert!(!text.trim().is_empty() && !text.contains('\n'), "{:?}", text);
    Ok(())
}

/// Does everything that can be done with a file but run it. What was loaded, if it fits [`shape`].
fn load(file: &[u8]) -> Result<Option<Program>, TestCaseError> {
    let program = match Program::parse(file) {
        Ok(program) => program,
        Err(error) => {
            one_line(&error)?;
            return Ok(None);
        }
    };
    let (entry, end) = (program.entry(), program.program_end());
    prop_assert!(program.word(entry).is_some(), "the entry {:#x} is not in the program of {:#x} bytes", entry, end);
    prop_assert_eq!(program.word(end), None);
    for symbol in program.symbols().iter().take(20) {
        program.nearest_symbol(symbol.address.wrapping_add(symbol.size));
        prop_assert!(program.symbol(&symbol.name).is_some());
    }
    analyse(&program).err().map_or(Ok(()), |error| one_line(&error))?;
    for shape in [shape(), Shape::new(64, 64), Shape { lanes: 3, ..shape() }] {
        let fits = program.check(&shape);
        let (memory, instructions) = (program.memory_image(&shape), program.instruction_image(&shape));
        prop_assert_eq!(memory.as_ref().err(), fits.as_ref().err());
        prop_assert_eq!(instructions.as_ref().err(), fits.as_ref().err());
        fits.as_ref().err().map_or(Ok(()), |error| one_line(error))?;
        if let (Ok(memory), Ok(instructions)) = (memory, instructions) {
            prop_assert_eq!(memory.len(), shape.memory as usize);
            prop_assert_eq!(instructions.len(), shape.program as usize / 4);
            for (k, &instruction) in instructions.iter().enumerate() {
                prop_assert_eq!(instruction, program.word(4 * k as u32).unwrap_or(0));
                prop_assert!(program.word(4 * k as u32).is_none_or(|w| w as usize == word(&memory, 4 * k)));
            }
        }
    }
    Ok(program.check(&shape()).is_ok().then_some(program))
}

/// What the post-link pass makes of a file is loaded, and can be run; or it is refused in a line.
fn place_barriers(file: &[u8], options: &Options) -> Result<Result<Prediction, PredictError>, TestCaseError> {
    let predicted = predict(file, options);
    match &predicted {
        Ok(Prediction { elf, notes, .. }) => {
            prop_assert!(notes.iter().all(|note| !note.contains(char::is_control)), "{:?}", notes);
            let program = Program::parse(elf);
            prop_assert!(program.is_ok(), "{:?}", program);
            if let Ok(mut iss) = Iss::new(&program.unwrap(), &shape()) {
                iss.set_limit(1500);
                iss.run().err().map_or(Ok(()), |error| one_line(&error))?;
            }
        }
        Err(error) => one_line(error)?,
    }
    Ok(predicted)
}

fn post_dominators() -> Options {
    Options { pdom: true, ..Options::default() }
}

/// The machine of [`shape`], which runs one program after the other.
fn machine() -> Machine {
    let options = MachineOptions { max_cycles: 1500, ..checked() };
    Machine::new(&shape(), Program::assembled(&[0], []), &options).unwrap()
}

/// Runs a program on the core and on the instruction-set simulator. Nothing may be wrong with the core.
fn run(machine: &mut Machine, program: &Program) -> Result<(), TestCaseError> {
    machine.load(program.clone()).unwrap();
    let result = machine.run();
    result.as_ref().err().map_or(Ok(()), |error| one_line(error))?;
    match result {
        Ok(()) => {}
        Err(
            MachineError::Fault(_)
            | MachineError::ExitCodes { .. }
            | MachineError::Endless { .. }
            | MachineError::Hangs { .. },
        ) => {}
        // A limit of the core, which programs can pass.
        Err(MachineError::Simulation(SimulationError::Failed(failed))) if failed.path.ends_with(DEPTH) => {}
        Err(error) => prop_assert!(false, "{}", error),
    }
    let mut iss = Iss::new(program, &shape()).unwrap();
    iss.set_limit(1500);
    iss.run().err().map_or(Ok(()), |error| one_line(&error))
}

const DEPTH: &str = "call_depth_does_not_overflow";

#[test]
fn damaged_programs_are_refused_or_run() {
    limit_memory();
    let machine = RefCell::new(machine());
    let ran = Cell::new(0);
    let result = TestRunner::new(cases(3000)).run(&damage(), |damage| {
        let Some(program) = load(&damage.file())? else { return Ok(()) };
        ran.set(ran.get() + 1);
        run(&mut machine.borrow_mut(), &program)
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(ran.get() > 100, "only {} programs ran", ran.get());
}

#[test]
fn barriers_are_placed_in_damaged_programs_or_they_are_refused() {
    limit_memory();
    let placed = Cell::new(0);
    let result = TestRunner::new(cases(1000)).run(&damage(), |damage| {
        placed.set(placed.get() + u32::from(place_barriers(&damage.file(), &post_dominators())?.is_ok()));
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    assert!(placed.get() > 100, "barriers were placed in {} programs only", placed.get());
}

#[test]
fn any_bytes_can_be_passed() {
    limit_memory();
    let header = Just(b"\x7fELF\x01\x01\x01".to_vec());
    let bytes = (prop::option::of(header), prop::collection::vec(any::<u8>(), 0..300));
    let result = TestRunner::new(cases(2000)).run(&bytes, |(header, rest)| {
        let file = [header.unwrap_or_default(), rest].concat();
        load(&file)?;
        place_barriers(&file, &post_dominators()).map(drop)
    });
    result.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn files_cut_anywhere_are_damaged() {
    limit_memory();
    for kernel in [&ALL[0], &ALL[ALL.len() - 1]] {
        for length in 0..kernel.elf.len() {
            match Program::parse(&kernel.elf[..length]) {
                Err(ProgramError::Damaged { .. }) => {}
                Err(ProgramError::NotElf) if length < 4 => {}
                other => panic!("{} of {} bytes: {other:?}", kernel.name, length),
            }
        }
    }
}

/// A file of so many program headers, all with the same contents, each at an address of its own.
fn many_segments(count: u32, contents: u32, step: u32) -> Vec<u8> {
    let mut file = ALL[0].elf[..52].to_vec();
    set(&mut file, (PHOFF, 4), 52);
    set(&mut file, (PHNUM, 2), count);
    set(&mut file, (SHOFF, 4), 0);
    set(&mut file, (48, 4), 0);
    let start = 52 + 32 * count;
    for k in 0..count {
        let header = [1, start, step.wrapping_mul(k), 0, contents, contents, 5, 4];
        file.extend(header.into_iter().flat_map(u32::to_le_bytes));
    }
    file.resize((start + contents) as usize, 0);
    file
}

#[test]
fn segments_that_share_contents_take_no_more_than_memory() {
    limit_memory();
    let error = Program::parse(&many_segments(60_000, 1 << 20, 1 << 20)).unwrap_err();
    assert!(error.to_string().contains("more contents than the file"), "{error}");
}

#[test]
fn many_segments_do_not_make_images_slow() {
    let program = Program::parse(&many_segments(60_000, 4, 8)).unwrap();
    let shape = Shape { program: 512 << 10, memory: 1 << 20, ..Shape::new(1, 1) };
    let started = std::time::Instant::now();
    program.instruction_image(&shape).unwrap();
    assert!(started.elapsed().as_secs() < 2, "{:?}", started.elapsed());
}

#[test]
fn symbols_that_share_a_name_take_no_more_than_the_file() {
    limit_memory();
    // Symbols and one long name behind the file, in its own symbol table's place.
    let (count, name) = (20_000, 500_000);
    let mut file = ALL[0].elf.to_vec();
    let sections = fields(&file)[2].clone();
    let kind = |section: &&[(usize, usize)]| word(&file, section[1].0);
    let symbols = sections.chunks(10).find(|s| kind(s) == 2).unwrap();
    let strings = &sections[10 * word(&file, symbols[6].0)..][..10];
    let start = file.len() as u32;
    for (section, at, size) in [(symbols, start, 16 * count), (strings, start + 16 * count, name + 2)] {
        set(&mut file, section[4], at);
        set(&mut file, section[5], size);
    }
    // A function at 0 whose name is byte 1 of the strings on.
    file.extend([1u32, 0, 0, 0xfff1_0012].map(u32::to_le_bytes).concat().repeat(count as usize));
    file.extend([vec![0], vec![b'x'; name as usize], vec![0]].concat());
    let error = Program::parse(&file).unwrap_err();
    assert!(error.to_string().contains("longer names than the file"), "{error}");
}

/// An instruction that is likely to be legal, with small registers and offsets.
fn instruction() -> impl Strategy<Value = u32> {
    let opcodes = [0x37u32, 0x17, 0x6f, 0x67, 0x63, 0x03, 0x23, 0x13, 0x33, 0x0f, 0x73];
    let shaped =
        (prop::sample::select(opcodes.to_vec()), any::<u32>(), any::<u32>()).prop_map(|(opcode, word, kept)| {
            let few = 0b0000_0011_1111_0011_1111_0011_1000_0000;
            opcode | word & if kept & 3 == 0 { !0x7f } else { few | 0x7000 }
        });
    let csr = (any::<u32>(), prop::sample::select(heddle_simt::csr::MAP.to_vec()));
    prop_oneof![
        12 => shaped,
        1 => csr.prop_map(|(word, csr)| 0x2073 | u32::from(csr.address) << 20 | word & 0xf80),
        1 => any::<u32>(),
    ]
}

#[test]
fn random_instructions_end_somehow() {
    limit_memory();
    let machine = RefCell::new(machine());
    let words = prop::collection::vec(instruction(), 1..300);
    let result = TestRunner::new(cases(1500))
        .run(&words, |words| run(&mut machine.borrow_mut(), &Program::assembled(&words, [])));
    result.unwrap_or_else(|error| panic!("{error}"));
}
