//! The machine as a device: its memory as bytes, in the banks of the simulation.

use super::{Machine, MachineError};
use crate::grid::Grid;
use crate::kernels::{Device, DeviceError};
use crate::printed::Printed;
use crate::program::Program;
use heddle_simt::Shape;
use std::ops::Range;

/// The words that a range of byte addresses touches: the address of each, and which of its bytes.
fn words(range: Range<u32>) -> impl Iterator<Item = (u32, Range<usize>)> {
    let Range { start, end } = range;
    let parts = (start / 4..end.div_ceil(4)).map(|word| 4 * word);
    parts.map(move |word| (word, start.saturating_sub(word) as usize..(end - word).min(4) as usize))
}

impl Device for Machine {
    fn program(&self) -> &Program {
        &self.program
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        for (word, part) in words(self.range(address, bytes.len())?) {
            let (bank, line) = self.place(word);
            let engine = self.simulation.engine();
            let mut whole = [0; 4];
            if part.len() < 4 {
                whole = (engine.memory_read(bank, line).low_u64() as u32).to_le_bytes();
            }
            let from = (word + part.start as u32 - address) as usize;
            let length = part.len();
            whole[part].copy_from_slice(&bytes[from..from + length]);
            engine.memory_load(bank, line, &[u64::from(u32::from_le_bytes(whole))]);
        }
        self.monitors.iter_mut().try_for_each(|monitor| monitor.write(address, bytes))
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        let range = self.range(address, length)?;
        let mut bytes = Vec::with_capacity(length);
        for (word, part) in words(range) {
            let (bank, line) = self.place(word);
            let whole = self.simulation.engine().memory_read(bank, line).low_u64() as u32;
            bytes.extend_from_slice(&whole.to_le_bytes()[part]);
        }
        Ok(bytes)
    }

    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        self.set_grid(grid)?;
        let result = self.run();
        let printed = Printed::taken(self).map(|printed| self.printed.add(printed));
        result?;
        printed
    }
}

impl Machine {
    fn range(&self, address: u32, length: usize) -> Result<Range<u32>, MachineError> {
        let end = u64::from(address) + length as u64;
        if end > u64::from(self.shape.memory) {
            return Err(MachineError::OutsideMemory { start: address, end, memory: self.shape.memory });
        }
        Ok(address..end as u32)
    }

    /// The bank and line of the word that holds a byte address.
    fn place(&self, address: u32) -> (usize, u64) {
        let (word, banks) = (address as usize / 4, &self.places.banks);
        (banks[word % banks.len()], (word / banks.len()) as u64)
    }

    /// All of memory against what a monitor says.
    pub(super) fn check_memory(&mut self) -> Result<(), MachineError> {
        let Some(want) = self.monitors.iter().find_map(|monitor| monitor.memory()) else { return Ok(()) };
        match self.simulation.engine().memories_differ(&self.places.banks, want) {
            Some((address, got)) => Err(MachineError::Memory { address, got, want: want[address] }),
            None => Ok(()),
        }
    }
}
