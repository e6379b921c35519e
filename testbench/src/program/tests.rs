use proptest::prelude::*;

use super::*;
use heddle_simt::address::SCRATCHPAD;

const VECADD: &[u8] = include_bytes!("../../programs/elf/vecadd.elf");
const HISTOGRAM: &[u8] = include_bytes!("../../programs/elf/histogram.elf");

// Offsets in the ELF header, and of the fields of a program header.
const CLASS: usize = 4;
const DATA: usize = 5;
const TYPE: usize = 16;
const MACHINE: usize = 18;
const ENTRY: usize = 24;
const PHOFF: usize = 28;
const FLAGS: usize = 36;
const PHNUM: usize = 44;
const P_OFFSET: usize = 4;
const P_VADDR: usize = 8;
const P_FILESZ: usize = 16;
const P_MEMSZ: usize = 20;
const P_FLAGS: usize = 24;

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn patched(at: usize, value: u32) -> Vec<u8> {
    let mut bytes = VECADD.to_vec();
    bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    bytes
}

fn patched_byte(at: usize, value: u8) -> Vec<u8> {
    let mut bytes = VECADD.to_vec();
    bytes[at] = value;
    bytes
}

/// Offset of a field of the n-th loaded segment's header: 0 is the program, 1 is data.
fn header_field(n: usize, field: usize) -> usize {
    let start = word(VECADD, PHOFF) as usize;
    let headers = (0..VECADD[PHNUM] as usize).map(|i| start + 32 * i);
    let mut loaded = headers.filter(|&h| word(VECADD, h) == 1);
    loaded.nth(n).unwrap() + field
}

#[test]
fn a_written_file_is_read_back() {
    for bytes in [VECADD, HISTOGRAM] {
        let program = Program::parse(bytes).unwrap();
        let again = Program::parse(&program.elf()).unwrap();
        assert_eq!(again, Program { symbols: vec![], ..program });
    }
}

#[test]
fn arrays_in_the_scratchpad_have_a_place_and_no_contents() {
    let program = Program::parse(HISTOGRAM).unwrap();
    assert_eq!(program.scratchpad(), 1024);
    assert_eq!(program.symbol("bins").unwrap().address, SCRATCHPAD);
    assert!(program.segments().iter().all(|segment| segment.end() < SCRATCHPAD.into()));
    let error = program.check(&Shape { scratchpad: 512, ..Shape::default() }).unwrap_err().to_string();
    assert_eq!(error, "a block of the program needs 1024 bytes of scratchpad, the core has 512: use at least 1024");
    program.check(&Shape { scratchpad: 1024, ..Shape::default() }).unwrap();

    let mut bytes = patched(header_field(1, P_VADDR), SCRATCHPAD + 256);
    bytes[header_field(1, P_FILESZ)] = 4;
    assert_eq!(self::error(&bytes), ProgramError::ScratchpadContents { start: SCRATCHPAD + 256 });
    bytes[header_field(1, P_FILESZ)..][..4].fill(0);
    assert_eq!(Program::parse(&bytes).unwrap().scratchpad(), 256 + word(VECADD, header_field(1, P_MEMSZ)));
}

#[test]
fn between_data_and_stacks_there_is_room() {
    let shape = Shape::new(2, 2);
    let program = Program::parse(VECADD).unwrap();
    let room = program.room(&shape);
    assert_eq!((room.start % 256, room.end), (0, shape.memory - 4 * shape.stack));
    assert!((0..256).contains(&(room.start as i64 - program.segments()[1].end() as i64)));
    let full = Program { segments: vec![Segment { size: room.end - 1, ..program.segments()[1].clone() }], ..program };
    assert!(full.room(&shape).is_empty());
}

fn error(bytes: &[u8]) -> ProgramError {
    Program::parse(bytes).unwrap_err()
}

#[test]
fn a_good_program_has_two_segments_and_its_symbols() {
    let program = Program::parse(VECADD).unwrap();
    let [text, data] = program.segments() else {
        panic!("{:?}", program.segments());
    };
    assert!(text.executable && !text.writable && data.writable && !data.executable);
    assert_eq!(program.entry(), program.symbol("_start").unwrap().address);
    let a = program.symbol("a").unwrap();
    assert_eq!((a.size, a.address % 256), (65536, 0));
    assert!(a.address >= program.program_end());
    program.check(&Shape::new(64, 64)).unwrap();
}

#[test]
fn nearest_symbols() {
    let program = Program::parse(VECADD).unwrap();
    let main = program.symbol("main").unwrap();
    let name = |a| program.nearest_symbol(a).unwrap();
    assert_eq!(name(main.address), "main");
    assert_eq!(name(main.address + 0x10), "main+0x10");
    assert_eq!(name(program.symbol("b").unwrap().address + 4), "b+0x4");
    assert_eq!(program.nearest_symbol(0x7fff_0000), None);
    assert_eq!(program.symbol("no such name"), None);
}

#[test]
fn images_hold_the_segments_and_zeros() {
    let shape = Shape::new(1, 1);
    let program = Program::parse(VECADD).unwrap();
    let memory = program.memory_image(&shape).unwrap();
    let instructions = program.instruction_image(&shape).unwrap();
    assert_eq!(memory.len(), shape.memory as usize);
    assert_eq!(instructions.len(), shape.program as usize / 4);
    let end = program.program_end() as usize;
    for (i, &instruction) in instructions[..end / 4].iter().enumerate() {
        assert_eq!(instruction, word(&memory, 4 * i));
    }
    assert!(instructions[end / 4..].iter().all(|&w| w == 0));
    let length = program.symbol("length").unwrap().address as usize;
    assert_eq!(word(&memory, length), 16384);
}

#[test]
fn foreign_files_are_named() {
    assert_eq!(error(b"#!/bin/sh"), ProgramError::NotElf);
    assert_eq!(error(b""), ProgramError::NotElf);
    assert_eq!(error(&patched_byte(CLASS, 2)), ProgramError::Class64);
    assert_eq!(error(&patched_byte(DATA, 2)), ProgramError::BigEndian);
    assert_eq!(error(&patched_byte(MACHINE, 62)), ProgramError::Machine { machine: 62 });
    for kind in [1, 3] {
        assert_eq!(error(&patched_byte(TYPE, kind)), ProgramError::NotExecutable { kind: kind as u16 });
    }
    assert_eq!(error(&patched_byte(FLAGS, 1)), ProgramError::Compressed);
    assert_eq!(error(&patched_byte(FLAGS, 4)), ProgramError::FloatAbi);
}

#[test]
fn damaged_files_are_named() {
    for length in [4, 5, 20, 60, 100, VECADD.len() / 2, VECADD.len() - 1] {
        let e = error(&VECADD[..length]);
        assert!(matches!(e, ProgramError::Damaged { .. }), "{length}: {e}");
    }
    for field in [P_OFFSET, P_FILESZ] {
        let e = error(&patched(header_field(0, field), 0xffff_fff0));
        assert!(matches!(e, ProgramError::Damaged { .. }), "{e}");
    }
    let e = error(&patched(header_field(0, P_MEMSZ), 4));
    assert!(e.to_string().contains("more contents than memory"), "{e}");
}

#[test]
fn entry_points_are_checked() {
    assert_eq!(error(&patched(PHNUM, 0)), ProgramError::NoSegments);
    assert_eq!(error(&patched(ENTRY, 0x4000_0000)), ProgramError::EntryOutside { entry: 0x4000_0000 });
    assert_eq!(error(&patched(ENTRY, 2)), ProgramError::EntryMisaligned { entry: 2 });
    let mut moved = patched(header_field(0, P_VADDR), 0x10);
    assert_eq!(error(&moved), ProgramError::NoEntry);
    moved[ENTRY] = 0x10;
    assert_eq!(Program::parse(&moved).unwrap().entry(), 0x10);
}

#[test]
fn layouts_are_checked() {
    let data = Program::parse(VECADD).unwrap().segments()[1].address;
    assert_eq!(error(&patched(header_field(1, P_VADDR), 8)), ProgramError::Overlap { first: 0, second: 8 });
    assert!(matches!(error(&patched(header_field(0, P_FLAGS), 7)), ProgramError::WritableProgram { start: 0, .. }));
    let mut above = patched(header_field(0, P_VADDR), 0x10_0000);
    above[ENTRY..ENTRY + 4].copy_from_slice(&0x10_0000u32.to_le_bytes());
    assert!(matches!(
        error(&above),
        ProgramError::DataInProgram { data: d, .. } if d == data
    ));
    // A read-only segment that reaches the end of the address space.
    let mut high = patched(header_field(0, P_VADDR), 0xffff_ff00);
    let memsz = header_field(0, P_MEMSZ);
    high[memsz..memsz + 4].copy_from_slice(&0x1000u32.to_le_bytes());
    high[ENTRY..ENTRY + 4].copy_from_slice(&0xffff_ff00u32.to_le_bytes());
    let flags = header_field(1, P_FLAGS);
    high[flags] = 4;
    assert!(matches!(error(&high), ProgramError::SegmentOutside { start: 0xffff_ff00, .. }));
}

#[test]
fn fit_is_checked_against_the_shape() {
    let program = Program::parse(VECADD).unwrap();
    let shape = Shape::new(8, 8);
    let message = |shape: Shape| program.check(&shape).unwrap_err().to_string();

    let small = message(Shape { memory: 128 << 10, ..shape.clone() });
    assert!(small.contains("outside memory of 131072 bytes: use at least 262144"), "{small}");
    let crowded = message(Shape { memory: 256 << 10, ..shape.clone() });
    assert!(crowded.contains("in the stacks"), "{crowded}");
    assert!(message(Shape { lanes: 3, ..shape.clone() }).starts_with("lanes = 3"));

    let large = Program::parse(&patched(header_field(0, P_MEMSZ), 0x200)).unwrap_err();
    assert!(matches!(large, ProgramError::Overlap { .. }), "{large}");
    let mut bytes = patched(header_field(0, P_MEMSZ), 0x1_0004);
    let vaddr = header_field(1, P_VADDR);
    bytes[vaddr..vaddr + 4].copy_from_slice(&0x2_0000u32.to_le_bytes());
    let large = Program::parse(&bytes).unwrap().check(&shape).unwrap_err();
    assert_eq!(
        large.to_string(),
        "the program ends at 0x00010100 but program memory is 65536 bytes: use at least 131072"
    );

    let far = Program::parse(&patched(vaddr, 0xf000_0000)).unwrap();
    let far = far.check(&shape).unwrap_err().to_string();
    assert!(far.contains("no memory would hold it"), "{far}");
}

#[test]
fn a_file_without_sections_loads_without_symbols() {
    let mut bytes = patched(32, 0);
    bytes[48..52].fill(0);
    let program = Program::parse(&bytes).unwrap();
    assert!(program.symbols().is_empty());
    assert_eq!(program.nearest_symbol(0), None);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(
        changes in prop::collection::vec((0..VECADD.len(), any::<u8>()), 1..12),
        header_changes in prop::collection::vec((0..160usize, any::<u8>()), 0..6),
        length in 0..=VECADD.len(),
        cut in any::<bool>(),
    ) {
        let mut bytes = VECADD.to_vec();
        for (at, value) in changes.into_iter().chain(header_changes) {
            // The first half of the identification stays, or nearly every case would end there.
            if at >= 8 {
                bytes[at] = value;
            }
        }
        if cut {
            bytes.truncate(length);
        }
        if let Ok(program) = Program::parse(&bytes) {
            let shape = Shape::new(8, 8);
            let fits = program.check(&shape).is_ok();
            prop_assert_eq!(program.memory_image(&shape).is_ok(), fits);
            prop_assert_eq!(program.instruction_image(&shape).is_ok(), fits);
            program.nearest_symbol(0x40);
            program.word(0xffff_fffc);
        }
    }
}
