//! Memory as threads see it: main memory, the scratchpad of their block, their own stack.

use heddle_simt::{
    Shape,
    address::{SCRATCHPAD, STACK},
};

use super::{Cause, Hart};
use crate::program::{Program, ProgramError};

/// Where an access is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Place {
    /// Main memory, from this byte address; a stack is there, too.
    Main(u32),
    /// The scratchpad memory of the core, from this byte.
    Scratchpad(u32),
}

impl Place {
    /// The word that it lies in.
    pub fn word(self) -> Place {
        match self {
            Place::Main(byte) => Place::Main(byte & !3),
            Place::Scratchpad(byte) => Place::Scratchpad(byte & !3),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Memory {
    shape: Shape,
    program_end: u32,
    pub main: Vec<u8>,
    pub scratchpad: Vec<u8>,
}

impl Memory {
    /// With the program in main memory, and in the scratchpad what no program expects.
    pub fn new(program: &Program, shape: &Shape) -> Result<Memory, ProgramError> {
        Ok(Memory {
            shape: shape.clone(),
            program_end: program.program_end(),
            main: program.memory_image(shape)?,
            scratchpad: vec![0xad; shape.scratchpad as usize],
        })
    }

    /// Where a load of the thread in this hart goes.
    pub fn load_place(&self, hart: &Hart, address: u32, bytes: u32) -> Result<Place, Cause> {
        if !address.is_multiple_of(bytes) {
            return Err(Cause::MisalignedLoad(address));
        }
        self.place(hart, address).ok_or(Cause::LoadOutside(address))
    }

    /// Where a store or atomic of the thread in this hart goes.
    pub fn store_place(&self, hart: &Hart, address: u32, bytes: u32) -> Result<Place, Cause> {
        if !address.is_multiple_of(bytes) {
            Err(Cause::MisalignedStore(address))
        } else if address < self.program_end {
            Err(Cause::StoreToProgram(address))
        } else {
            self.place(hart, address).ok_or(Cause::StoreOutside(address))
        }
    }

    /// The address map. Aligned accesses lie in one word, so they are in one place if their first byte is.
    fn place(&self, hart: &Hart, address: u32) -> Option<Place> {
        let Shape { lanes, memory, stack, .. } = self.shape;
        if address < memory {
            Some(Place::Main(address))
        } else if address >= SCRATCHPAD && address - SCRATCHPAD < hart.scratchpad.len() as u32 {
            Some(Place::Scratchpad(hart.scratchpad.start + (address - SCRATCHPAD)))
        } else if (STACK..STACK + stack).contains(&address) {
            let (slot, lane) = (hart.number / lanes, hart.number % lanes);
            let (word, byte) = ((address - STACK) / 4, address % 4);
            let stacks = memory - self.shape.threads() * stack;
            Some(Place::Main(stacks + 4 * ((slot * stack / 4 + word) * lanes + lane) + byte))
        } else {
            None
        }
    }

    /// The bytes of an access, zero-extended.
    pub fn read(&self, place: Place, bytes: u32) -> u32 {
        let (memory, address) = match place {
            Place::Main(address) => (&self.main, address as usize),
            Place::Scratchpad(address) => (&self.scratchpad, address as usize),
        };
        match bytes {
            1 => memory[address].into(),
            2 => u16::from_le_bytes([memory[address], memory[address + 1]]).into(),
            _ => u32::from_le_bytes(memory[address..address + 4].try_into().expect("a word has four bytes")),
        }
    }

    /// Writes the low bytes of a value.
    pub fn write(&mut self, place: Place, bytes: u32, value: u32) {
        let bytes = bytes as usize;
        let there = match place {
            Place::Main(address) => &mut self.main[address as usize..][..bytes],
            Place::Scratchpad(address) => &mut self.scratchpad[address as usize..][..bytes],
        };
        there.copy_from_slice(&value.to_le_bytes()[..bytes]);
    }
}
