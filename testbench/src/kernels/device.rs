//! What a driver sees of a machine: a [`Device`] with memory that can be launched, and access to variables by name.

use super::KernelError;
use crate::grid::Grid;
use crate::program::{GRAIN, Program, from_bytes};
use heddle_simt::Shape;
use std::error::Error;
use std::ops::Range;

/// Whatever went wrong in a device, in its own words.
pub type DeviceError = Box<dyn Error + Send + Sync>;

/// A machine with a program loaded.
pub trait Device {
    /// The program that is loaded.
    fn program(&self) -> &Program;

    /// The core's configuration.
    fn shape(&self) -> &Shape;

    /// Writes memory from an address on. Fails outside memory.
    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Reads memory, `length` bytes from an address on. Fails outside memory.
    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError>;

    /// Runs the threads of a grid of blocks from the entry point and returns when all have ended. Main memory stays
    /// from launch to launch. Fails if the device cannot run the grid, if an instruction stops the machine, if a
    /// thread's exit code is not 0, or if the device gives up waiting.
    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError>;

    /// Threads that it runs at once, and the most that a block may have.
    fn threads(&self) -> u32 {
        self.shape().threads()
    }

    /// Threads that a block should have where the driver would give it `wanted`.
    fn preferred_threads(&self, wanted: u32) -> u32 {
        wanted
    }

    /// [`Device::launch_grid`] of one block of all [`Device::threads`].
    fn launch(&mut self) -> Result<(), DeviceError> {
        self.launch_grid(Grid::one_block(self.threads()))
    }
}

/// Access by name, for drivers: all of it fails if the program has no such symbol, or if the symbol is smaller.
impl dyn Device + '_ {
    /// Writes bytes to the start of a variable.
    pub fn write_bytes(&mut self, name: &str, bytes: &[u8]) -> Result<(), KernelError> {
        let address = self.variable(name, bytes.len())?;
        Ok(self.write(address, bytes)?)
    }

    /// Reads bytes from the start of a variable.
    pub fn read_bytes(&mut self, name: &str, length: usize) -> Result<Vec<u8>, KernelError> {
        let address = self.variable(name, length)?;
        Ok(self.read(address, length)?)
    }

    /// Writes words, little-endian, to the start of a variable.
    pub fn write_words(&mut self, name: &str, words: &[u32]) -> Result<(), KernelError> {
        self.write_bytes(name, &to_bytes(words))
    }

    /// Reads words, little-endian, from the start of a variable.
    pub fn read_words(&mut self, name: &str, count: usize) -> Result<Vec<u32>, KernelError> {
        Ok(from_bytes(&self.read_bytes(name, 4 * count)?))
    }

    /// Writes one word: an argument.
    pub fn write_word(&mut self, name: &str, word: u32) -> Result<(), KernelError> {
        self.write_words(name, &[word])
    }

    /// Words of a variable: how much the program has room for, which is less in a [small](Kernel::small) one.
    pub fn capacity(&self, name: &str) -> Result<usize, KernelError> {
        let symbol = self.program().symbol(name);
        Ok(symbol.ok_or_else(|| KernelError::NoSymbol { name: name.into() })?.size as usize / 4)
    }

    /// Threads for each block: as many as `wanted` or the device [prefers](Device::preferred_threads), fewer if the
    /// core has no more, more if the share of the scratchpad would else be less than the program needs.
    pub(crate) fn block_threads(&self, wanted: u32) -> u32 {
        let all = self.threads();
        let mut threads = self.preferred_threads(wanted).min(all);
        let share = |threads| Grid { blocks: 1, threads }.scratchpad(self.shape());
        while threads < all && share(threads) < self.program().scratchpad() {
            threads *= 2;
        }
        threads
    }

    /// A grid with a thread for each of so many items, in blocks of [`block_threads`](Self::block_threads).
    pub(super) fn grid_of(&self, items: usize, wanted: u32) -> Grid {
        let threads = self.block_threads(wanted);
        Grid { blocks: (items as u32).div_ceil(threads), threads }
    }

    /// Items of a kernel's work, a thread each: four for each thread of the core, so that blocks follow each other, but
    /// within these bounds.
    pub(super) fn items(&self, least: usize, most: usize) -> usize {
        (4 * self.threads() as usize).clamp(least.min(most), most)
    }

    /// A grid for a kernel whose threads each take several pieces of work, one after another: the core's threads,
    /// within bounds.
    pub(super) fn coarse_grid(&self) -> Grid {
        let workers = self.workers();
        self.grid_of(workers as usize, workers)
    }

    /// Pieces of work for a [`coarse_grid`](Self::coarse_grid): so many for each thread.
    pub(super) fn pieces(&self, of_worker: usize) -> usize {
        of_worker * self.workers() as usize
    }

    fn workers(&self) -> u32 {
        self.threads().clamp(16, 256)
    }

    fn variable(&self, name: &str, bytes: usize) -> Result<u32, KernelError> {
        let symbol = self.program().symbol(name);
        let symbol = symbol.ok_or_else(|| KernelError::NoSymbol { name: name.into() })?;
        if bytes > symbol.size as usize {
            return Err(KernelError::SymbolSize { name: name.into(), size: symbol.size, wanted: bytes });
        }
        Ok(symbol.address)
    }
}

pub fn to_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// The memory between a program's data and the stacks, given to arrays whose size depends on the core.
pub struct Heap(Range<u32>);

impl Heap {
    pub fn new(device: &dyn Device) -> Heap {
        Heap(device.program().room(device.shape()))
    }

    /// Words that are left.
    pub fn words(&self) -> usize {
        self.0.len() / 4
    }

    /// Writes words to a place of their own, at a multiple of 64 words, and its address, which it returns, to a
    /// pointer.
    pub fn put(&mut self, device: &mut dyn Device, pointer: &str, words: &[u32]) -> Result<u32, KernelError> {
        let address = self.0.start;
        if words.len() > self.words() {
            return Err(KernelError::Memory { wanted: 4 * words.len(), left: 4 * self.words() });
        }
        device.write(address, &to_bytes(words))?;
        device.write_word(pointer, address)?;
        self.0.start = (address + 4 * words.len() as u32).next_multiple_of(GRAIN as u32).min(self.0.end);
        Ok(address)
    }
}
