//! The built-in kernels: C programs, and for each a driver that fills its inputs, launches it, and compares its results with
//! what the host computes for itself.
//!
//! A driver sees the machine as a [`Device`], so the same one runs on the instruction-set simulator, on the simulated core and
//! on anything else that has memory and can be launched.

use std::error::Error;

use thiserror::Error;

use crate::{grid::Grid, image::Image, program::Program};

mod bitonic;
mod collatz;
mod dispatch;
mod gcd;
mod mandelbrot;
mod matmul;
mod nqueens;
mod reduce;
mod search;
mod sort;
mod vecadd;

/// Whatever went wrong in a device, in its own words.
pub type DeviceError = Box<dyn Error + Send + Sync>;

/// A machine with a program loaded.
pub trait Device {
    /// The program that is loaded.
    fn program(&self) -> &Program;

    /// Threads that it runs at once, and the most that a block may have.
    fn threads(&self) -> u32;

    /// Writes memory from an address on. Fails outside memory.
    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError>;

    /// Reads memory, `length` bytes from an address on. Fails outside memory.
    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError>;

    /// Runs the threads of a grid of blocks from the entry point and returns when all have ended. Main memory stays from
    /// launch to launch. Fails if the device cannot run the grid, if an instruction stops the machine, if a thread's exit
    /// code is not 0, or if the device gives up waiting.
    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError>;

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
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.write_bytes(name, &bytes)
    }

    /// Reads words, little-endian, from the start of a variable.
    pub fn read_words(&mut self, name: &str, count: usize) -> Result<Vec<u32>, KernelError> {
        let bytes = self.read_bytes(name, 4 * count)?;
        let words = bytes.chunks_exact(4);
        Ok(words.map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect())
    }

    /// Writes one word: an argument.
    pub fn write_word(&mut self, name: &str, word: u32) -> Result<(), KernelError> {
        self.write_words(name, &[word])
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

/// Why a kernel's run is not good.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The device failed.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The program lacks a variable that the driver sets or reads.
    #[error("the program has no symbol `{name}`")]
    NoSymbol {
        /// The variable.
        name: String,
    },
    /// A variable is smaller than the driver needs.
    #[error("`{name}` has {size} bytes, {wanted} are needed")]
    SymbolSize {
        /// The variable.
        name: String,
        /// Bytes it has.
        size: u32,
        /// Bytes wanted.
        wanted: usize,
    },
    /// A result differs from the host's.
    #[error("wrong result: {array}[{index}] is {got:#x} ({got}), should be {want:#x} ({want})")]
    Wrong {
        /// The variable.
        array: &'static str,
        /// The first element that is wrong.
        index: usize,
        /// What the host computed.
        want: u32,
        /// What the device computed.
        got: u32,
    },
}

/// What a checked run leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Results that were compared with the host's and are right.
    pub checked: usize,
    /// The picture, of kernels that make one.
    pub image: Option<Image>,
}

impl Output {
    fn checked(checked: usize) -> Output {
        Output { checked, image: None }
    }
}

/// A built-in kernel.
#[derive(Debug)]
pub struct Kernel {
    /// Name on the command line.
    pub name: &'static str,
    /// What it does and exercises, in a line.
    pub about: &'static str,
    /// The ELF file.
    pub elf: &'static [u8],
    /// Fills inputs from a seed, launches, and checks, on a device that has `elf` loaded.
    pub drive: fn(&mut dyn Device, seed: u64) -> Result<Output, KernelError>,
}

macro_rules! kernel {
    ($name:ident, $about:literal) => {
        Kernel {
            name: stringify!($name),
            about: $about,
            elf: include_bytes!(concat!("../../programs/elf/", stringify!($name), ".elf")),
            drive: $name::drive,
        }
    };
}

/// Every built-in kernel.
pub const ALL: &[Kernel] = &[
    kernel!(vecadd, "vector addition: coherent, bound by memory accesses"),
    kernel!(reduce, "sum as a tree: coherent, a launch a level"),
    kernel!(matmul, "matrix product: coherent, multiplications and broadcast loads"),
    kernel!(mandelbrot, "Mandelbrot set in fixed point: loops of unequal length; makes a picture"),
    kernel!(collatz, "Collatz steps: loops of unequal length with a branch inside"),
    kernel!(gcd, "greatest common divisors by subtraction: both sides of a branch"),
    kernel!(bitonic, "bitonic sort: a launch a stage, strides that coalesce or not"),
    kernel!(nqueens, "ways to place nine queens: recursion, unequal call depths"),
    kernel!(dispatch, "calls through a table of functions: divergent jalr, divisions"),
    kernel!(sort, "insertion sort of a list a thread: loops that end on data, scattered accesses"),
    kernel!(search, "first occurrence of a word in lines of text: byte accesses, calls, early exits"),
];

/// No kernel has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no kernel is called `{name}`{}", suggestion(*.nearest))]
pub struct UnknownKernel {
    /// What was asked for.
    pub name: String,
    /// The kernel that was probably meant.
    pub nearest: Option<&'static str>,
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

/// The kernel of a name.
pub fn find(name: &str) -> Result<&'static Kernel, UnknownKernel> {
    if let Some(kernel) = ALL.iter().find(|kernel| kernel.name == name) {
        return Ok(kernel);
    }
    let likeness = |kernel: &&Kernel| strsim::jaro_winkler(&name.to_lowercase(), kernel.name);
    let nearest = ALL.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b))).filter(|kernel| likeness(kernel) > 0.7);
    Err(UnknownKernel { name: name.into(), nearest: nearest.map(|kernel| kernel.name) })
}

/// Compares results with the host's.
fn check(array: &'static str, want: &[u32], got: &[u32]) -> Result<(), KernelError> {
    assert_eq!(want.len(), got.len(), "the driver reads what it checks");
    match want.iter().zip(got).position(|(want, got)| want != got) {
        None => Ok(()),
        Some(index) => Err(KernelError::Wrong { array, index, want: want[index], got: got[index] }),
    }
}

/// `count` words made by a function of the generator.
fn words(count: usize, mut make: impl FnMut() -> u32) -> Vec<u32> {
    (0..count).map(|_| make()).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use heddle_simt::Shape;

    use super::*;
    use crate::iss::Iss;

    const SHAPES: [(u32, u32); 9] = [(1, 1), (2, 1), (1, 4), (8, 1), (4, 4), (8, 8), (64, 1), (8, 64), (64, 64)];

    fn iss(kernel: &Kernel, shape: &Shape) -> Iss {
        let program = Program::parse(kernel.elf).unwrap();
        Iss::new(&program, shape).unwrap()
    }

    #[test]
    fn every_kernel_is_right_with_any_number_of_threads() {
        for kernel in ALL {
            let mut counts = Vec::new();
            for (lanes, warps) in SHAPES {
                let mut iss = iss(kernel, &Shape::new(lanes, warps));
                let seed = 1 + lanes as u64 * warps as u64;
                let output = (kernel.drive)(&mut iss, seed);
                let output = output.unwrap_or_else(|e| panic!("{} {lanes}x{warps} seed {seed}: {e}", kernel.name));
                assert!(output.checked > 0);
                counts.push(format!("{}: {}", lanes * warps, iss.executed()));
            }
            let _ = writeln!(std::io::stderr(), "instructions of {} by threads: {}", kernel.name, counts.join(", "));
        }
    }

    #[test]
    fn kernels_run_in_the_least_stack() {
        let shape = Shape { stack: 512, ..Shape::new(2, 2) };
        for kernel in ALL {
            (kernel.drive)(&mut iss(kernel, &shape), 7).unwrap();
        }
    }

    /// A device that spoils one byte after the last launch, wherever the driver looks for results.
    struct Spoiled(Iss);

    impl Device for Spoiled {
        fn program(&self) -> &Program {
            self.0.program()
        }

        fn threads(&self) -> u32 {
            self.0.threads()
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
        for kernel in ALL {
            let mut device = Spoiled(iss(kernel, &Shape::new(8, 1)));
            let error = (kernel.drive)(&mut device, 3).unwrap_err();
            assert!(matches!(error, KernelError::Wrong { index: 0, .. }), "{}: {error}", kernel.name);
        }
    }

    #[test]
    fn a_program_without_the_variables_is_refused() {
        let mut device = iss(&ALL[1], &Shape::new(1, 1));
        let error = (ALL[0].drive)(&mut device, 0).unwrap_err();
        assert_eq!(error.to_string(), "the program has no symbol `a`");
        let device: &mut dyn Device = &mut device;
        let error = device.write_words("half", &[1, 2]).unwrap_err();
        assert_eq!(error.to_string(), "`half` has 4 bytes, 8 are needed");
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
}
