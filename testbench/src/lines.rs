//! The source line of an instruction, by the DWARF that a compiler writes into an ELF file with `-g`. `gimli` and
//! `addr2line` read it; any bytes are safe to pass.

use crate::Program;
use addr2line::Context;
use addr2line::gimli::{DwarfSections, EndianSlice, LittleEndian, SectionId};
use object::{Object, ObjectSection};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Where an instruction comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Frame {
    /// The function that it is part of, or that was inlined.
    pub function: Option<String>,
    /// The file as the compiler names it.
    pub file: String,
    /// From 1.
    pub line: u32,
}

/// The lines of a program.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    frames: BTreeMap<u32, Vec<Frame>>,
}

impl Lines {
    /// Of a program, by the ELF file that it is in or by another with its debug information. Empty without such.
    pub fn read(elf: &[u8], program: &Program) -> Lines {
        let Ok(file) = object::File::parse(elf) else { return Lines::default() };
        let section = |id: SectionId| -> Result<Cow<[u8]>, object::Error> {
            file.section_by_name(id.name()).map_or(Ok(Cow::default()), |section| section.uncompressed_data())
        };
        let Ok(sections) = DwarfSections::load(section) else { return Lines::default() };
        let dwarf = sections.borrow(|section| EndianSlice::new(section, LittleEndian));
        let Ok(context) = Context::from_dwarf(dwarf) else { return Lines::default() };
        let code = program.segments().iter().filter(|segment| segment.executable);
        let pcs = code.flat_map(|segment| (segment.address..segment.end() as u32).step_by(4));
        let frames = pcs.map(|pc| (pc, frames(&context, pc))).filter(|(_, frames)| !frames.is_empty());
        Lines { frames: frames.collect() }
    }

    /// Whether there is no debug information.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The files that instructions come from.
    pub fn files(&self) -> BTreeSet<&str> {
        self.frames.values().flatten().map(|frame| frame.file.as_str()).collect()
    }

    /// Where the instruction at an address comes from: its line, then that of the call that was inlined, and so on.
    pub fn frames(&self, pc: u32) -> &[Frame] {
        self.frames.get(&pc).map_or(&[], Vec::as_slice)
    }
}

fn frames(context: &Context<EndianSlice<LittleEndian>>, pc: u32) -> Vec<Frame> {
    let mut found = Vec::new();
    let Ok(mut frames) = context.find_frames(pc.into()).skip_all_loads() else { return found };
    while let Ok(Some(frame)) = frames.next() {
        let Some((file, line)) = frame.location.and_then(|at| Some((at.file?.to_string(), at.line?))) else { continue };
        let function = frame.function.and_then(|function| Some(function.raw_name().ok()?.into_owned()));
        found.push(Frame { function, file, line });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels;

    #[test]
    fn a_kernel_has_lines_and_its_program_has_none() {
        let kernel = kernels::find("photon").unwrap();
        let program = Program::parse(kernel.elf).unwrap();
        assert!(Lines::read(kernel.elf, &program).is_empty());
        let lines = Lines::read(kernel.debug, &program);
        let entry = program.symbol("main").expect("the kernel has a main").address;
        let frame = &lines.frames(entry)[0];
        assert_eq!((frame.file.ends_with("kernels/photon.c"), frame.function.as_deref()), (true, Some("main")));
        let inlined = lines.frames.values().filter(|frames| frames.len() > 1);
        assert!(inlined.clone().all(|frames| frames.last().is_some_and(|last| last.file.ends_with("photon.c"))));
        assert!(inlined.count() > 0);
        for (name, text) in kernels::SOURCES {
            assert!(!text.is_empty(), "{name}");
        }
        let known = |file: &str| kernels::SOURCES.iter().any(|(name, _)| file.ends_with(name));
        assert!(lines.frames.values().flatten().all(|frame| known(&frame.file)));
    }

    #[test]
    fn any_bytes_are_safe() {
        let kernel = kernels::find("gcd").unwrap();
        let program = Program::parse(kernel.elf).unwrap();
        for (seed, cut) in (0..200).map(|k| (k, k as usize * 13 % kernel.debug.len())) {
            let mut bytes = kernel.debug.to_vec();
            let mut random = fastrand::Rng::with_seed(seed);
            (0..20).for_each(|_| bytes[random.usize(..kernel.debug.len())] = random.u8(..));
            Lines::read(&bytes, &program);
            Lines::read(&kernel.debug[..cut], &program);
        }
    }
}
