//! The built-in kernels: C programs, and for each a driver that fills its inputs, launches it, and compares its results with
//! what the host computes for itself.
//!
//! A driver sees the machine as a [`Device`], so the same one runs on the instruction-set simulator, on the simulated core and
//! on anything else that has memory and can be launched.

use std::{error::Error, fmt, ops::Range};

use heddle_simt::Shape;
use thiserror::Error;

use crate::{
    grid::Grid,
    image::Image,
    program::{GRAIN, Program},
};

mod backprop;
mod bfs;
mod bitonic_large;
mod bitonic_small;
mod blocked_stencil;
mod cfd;
mod collatz;
mod common_call;
mod dispatch;
mod face_detection;
mod fft;
mod fixed;
mod gcd;
mod histogram;
mod hotspot;
mod if_else;
mod iteration_delay;
mod laplace3d;
mod loop_merge;
mod lu;
mod mandelbrot;
mod matmul;
mod matvec;
mod mcb;
mod mcgpu;
mod md5;
mod md5search;
mod monte_carlo;
mod motion;
mod needle;
mod nqueens;
mod particle_filter;
mod pathfinder;
mod pathtracer;
mod photon;
mod quasi_random;
mod quicksort;
mod raytrace;
mod reduce;
mod rsbench;
mod rsbench_single;
mod scan;
mod search;
mod sort;
mod spmv;
mod stencil3d;
mod striped_stencil;
mod suffix;
mod suffix_array;
mod transpose;
mod traverse;
mod two_point;
mod vecadd;
mod work_queue;
mod xsbench;

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

    /// Runs the threads of a grid of blocks from the entry point and returns when all have ended. Main memory stays from
    /// launch to launch. Fails if the device cannot run the grid, if an instruction stops the machine, if a thread's exit
    /// code is not 0, or if the device gives up waiting.
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

    /// Threads for each block: as many as `wanted` or the device [prefers](Device::preferred_threads), fewer if the core has no
    /// more, more if the share of the scratchpad would else be less than the program needs.
    fn block_threads(&self, wanted: u32) -> u32 {
        let all = self.threads();
        let mut threads = self.preferred_threads(wanted).min(all);
        let share = |threads| Grid { blocks: 1, threads }.scratchpad(self.shape());
        while threads < all && share(threads) < self.program().scratchpad() {
            threads *= 2;
        }
        threads
    }

    /// A grid with a thread for each of so many items, in blocks of [`block_threads`](Self::block_threads).
    fn grid_of(&self, items: usize, wanted: u32) -> Grid {
        let threads = self.block_threads(wanted);
        Grid { blocks: (items as u32).div_ceil(threads), threads }
    }

    /// Items of a kernel's work, a thread each: four for each thread of the core, so that blocks follow each other, but within
    /// these bounds.
    fn items(&self, least: usize, most: usize) -> usize {
        (4 * self.threads() as usize).clamp(least.min(most), most)
    }

    /// A grid for a kernel whose threads each take several pieces of work, one after another: the core's threads, within bounds.
    fn coarse_grid(&self) -> Grid {
        let workers = self.workers();
        self.grid_of(workers as usize, workers)
    }

    /// Pieces of work for a [`coarse_grid`](Self::coarse_grid): so many for each thread.
    fn pieces(&self, of_worker: usize) -> usize {
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

fn to_bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn from_bytes(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}

/// The memory between a program's data and the stacks, given to arrays whose size depends on the core.
struct Heap(Range<u32>);

impl Heap {
    fn new(device: &dyn Device) -> Heap {
        Heap(device.program().room(device.shape()))
    }

    /// Words that are left.
    fn words(&self) -> usize {
        self.0.len() / 4
    }

    /// Writes words to a place of their own, at a multiple of 64 words, and its address, which it returns, to a pointer.
    fn put(&mut self, device: &mut dyn Device, pointer: &str, words: &[u32]) -> Result<u32, KernelError> {
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

/// Why a kernel's run is not good.
#[derive(Debug, Error)]
pub enum KernelError {
    /// The core lacks something.
    #[error("the kernel needs {need}, which the core does not have")]
    Missing {
        /// What it lacks.
        need: Need,
    },
    /// Inputs and results do not fit between program and stacks.
    #[error("the kernel needs {wanted} bytes more for its data, the core has {left} left: use more memory")]
    Memory {
        /// Bytes of the next array.
        wanted: usize,
        /// Bytes before the stacks.
        left: usize,
    },
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

/// What a core may lack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Atomic memory operations.
    Atomics,
    /// Barriers.
    Barriers,
    /// A scratchpad.
    Scratchpad,
}

impl Need {
    fn is_met(self, shape: &Shape) -> bool {
        match self {
            Need::Atomics => shape.atomics,
            Need::Barriers => shape.barriers,
            Need::Scratchpad => shape.scratchpad > 0,
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Need::Atomics => "atomic memory operations",
            Need::Barriers => "barriers",
            Need::Scratchpad => "a scratchpad",
        })
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
    /// The program with less room for data, where it has one.
    pub small_elf: Option<&'static [u8]>,
    /// What it needs of the core.
    pub needs: &'static [Need],
    /// Fills inputs from a seed, launches, and checks, on a device that has `elf` loaded.
    pub drive: fn(&mut dyn Device, seed: u64) -> Result<Output, KernelError>,
}

impl Kernel {
    /// The program whose code, data and stacks fit in [`SMALL_MEMORY`]; or why there is none.
    pub fn small(&self) -> Result<&'static [u8], &'static str> {
        match TOO_LARGE.iter().find(|(name, _)| *name == self.name) {
            Some((_, why)) => Err(why),
            None => Ok(self.small_elf.unwrap_or(self.elf)),
        }
    }

    /// Whether a core has all that the kernel needs.
    pub fn suits(&self, shape: &Shape) -> bool {
        self.needs.iter().all(|need| need.is_met(shape))
    }
}

macro_rules! kernel {
    ($name:ident, $about:literal $(, $need:ident)*) => {
        Kernel {
            name: stringify!($name),
            about: $about,
            elf: include_bytes!(concat!("../../programs/elf/", stringify!($name), ".elf")),
            small_elf: small(stringify!($name)),
            needs: &[$(Need::$need),*],
            drive: |device, seed| {
                for need in [$(Need::$need),*] as [Need; _] {
                    if !need.is_met(device.shape()) {
                        return Err(KernelError::Missing { need });
                    }
                }
                $name::drive(device, seed)
            },
        }
    };
}

/// Bytes of memory that program, data and stacks of a [small](Kernel::small) kernel fit in, and of them those of the stacks.
pub const SMALL_MEMORY: u32 = 32 << 10;
/// 8 threads, 512 bytes each.
pub const SMALL_STACKS: u32 = 8 * 512;

/// The programs that are built for [`SMALL_MEMORY`], too: those that are too large for it otherwise and whose data can be less.
macro_rules! small {
    ($($name:ident)*) => {
        const fn small(name: &str) -> Option<&'static [u8]> {
            $(if same(name, stringify!($name)) {
                return Some(include_bytes!(concat!("../../programs/elf/small/", stringify!($name), ".elf")));
            })*
            None
        }
    };
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut k = 0;
    while k < a.len() && k < b.len() && a[k] == b[k] {
        k += 1;
    }
    k == a.len() && k == b.len()
}

small!(
    backprop bfs bitonic_small blocked_stencil cfd dispatch face_detection fft
    gcd histogram laplace3d matvec md5 md5search monte_carlo motion
    needle particle_filter pathfinder quasi_random rsbench rsbench_single scan search
    sort stencil3d striped_stencil suffix suffix_array transpose traverse two_point
    vecadd work_queue
);

/// Why a kernel has no program for [`SMALL_MEMORY`].
const TOO_LARGE: &[(&str, &str)] = &[
    ("mcgpu", "the voxels of a cube of 16 a side with their dose are 20 KiB, its program, tables and image 9 KiB"),
    ("pathtracer", "its tables of square roots and directions are 20 KiB, and the picture with its rays 21 KiB"),
    ("xsbench", "the nearest points of 68 nuclides at each of their energies are 72 KiB"),
];

/// Every built-in kernel.
pub const ALL: &[Kernel] = &[
    kernel!(vecadd, "vector addition: coherent, bound by memory accesses"),
    kernel!(histogram, "counts of bytes: atomic additions in the scratchpad", Scratchpad, Atomics, Barriers),
    kernel!(reduce, "sum: coherent, then a tree in the scratchpad", Scratchpad, Atomics, Barriers),
    kernel!(scan, "running sums of rows, in the scratchpad: many barriers", Scratchpad, Barriers),
    kernel!(transpose, "matrix transpose through squares in the scratchpad", Scratchpad, Barriers),
    kernel!(matvec, "matrix times vector: a warp a row, then a tree in the scratchpad", Scratchpad, Barriers),
    kernel!(
        matmul,
        "matrix product by tiles in the scratchpad: multiplications, broadcast loads",
        Scratchpad,
        Barriers
    ),
    kernel!(bitonic_small, "bitonic sort of lists in the scratchpad: short divergent branches", Scratchpad, Barriers),
    kernel!(
        bitonic_large,
        "bitonic sort of one list: a launch for what does not fit in the scratchpad",
        Scratchpad,
        Barriers
    ),
    kernel!(spmv, "sparse matrix times vector: loads that scatter"),
    kernel!(
        blocked_stencil,
        "five-point stencil by tiles in the scratchpad: divergent at their edges",
        Scratchpad,
        Barriers
    ),
    kernel!(striped_stencil, "five-point stencil along rows, in the scratchpad: coherent", Scratchpad, Barriers),
    kernel!(if_else, "a branch, both its sides, and where they meet"),
    kernel!(gcd, "greatest common divisors by subtraction: both sides of a branch"),
    kernel!(motion, "motion estimation: sums of absolute differences in the scratchpad", Scratchpad, Barriers),
    kernel!(mandelbrot, "Mandelbrot set in fixed point: loops of unequal length; makes a picture"),
    kernel!(collatz, "Collatz steps: loops of unequal length with a branch inside"),
    kernel!(nqueens, "ways to place nine queens: recursion, unequal call depths"),
    kernel!(dispatch, "calls through a table of functions: divergent jalr, divisions"),
    kernel!(sort, "insertion sort of a list a thread: loops that end on data, scattered accesses"),
    kernel!(search, "first occurrence of a word in lines of text: byte accesses, calls, early exits"),
    kernel!(lu, "LU decomposition by tiles: half of a warp takes rows, the other half columns", Barriers),
    kernel!(quicksort, "quicksort, a block a list: elements go down or up", Barriers),
    kernel!(bfs, "breadth-first search of a graph: branches without an else, loops of unequal length"),
    kernel!(pathfinder, "cheapest way down a grid: sides that lose a column each step", Scratchpad, Barriers),
    kernel!(needle, "Needleman-Wunsch alignment: diagonals of a tile, maxima of three", Scratchpad, Barriers),
    kernel!(hotspot, "heat of a chip: squares that lose their edge each step", Scratchpad, Barriers),
    kernel!(backprop, "training of a layer of neurons: a tree in the scratchpad, then coherent", Scratchpad, Barriers),
    kernel!(
        laplace3d,
        "Laplace's equation in a box: the surface goes another way than the inside",
        Scratchpad,
        Barriers
    ),
    kernel!(stencil3d, "seven-point stencil of a box: loads from scratchpad or memory", Scratchpad, Barriers),
    kernel!(suffix, "matching with a suffix tree: threads at nodes and threads on edges, loads that scatter"),
    kernel!(raytrace, "ray tracing in fixed point: spheres, floor or sky, shadows, reflections; makes a picture"),
    kernel!(photon, "photons in layers of tissue: steps that end in a layer or at its edge; atomic additions", Atomics),
    kernel!(suffix_array, "matching with suffixes in order: binary searches that compare unequal numbers of letters"),
    kernel!(two_point, "two-point angular correlation: histograms whose bin is searched for", Scratchpad),
    kernel!(face_detection, "a cascade of classifiers: windows of a picture that most stages reject"),
    kernel!(
        work_queue,
        "persistent threads whose managers take work from a queue: searches of unequal length",
        Scratchpad,
        Atomics,
        Barriers
    ),
    kernel!(md5, "MD5 of short messages: coherent, shifts and logic"),
    kernel!(monte_carlo, "an option's price by random paths in fixed point: coherent, multiplications"),
    kernel!(fft, "fast Fourier transforms in fixed point, in the scratchpad: coherent", Scratchpad, Barriers),
    kernel!(quasi_random, "points of Sobol's sequence: coherent"),
    kernel!(
        particle_filter,
        "particles that follow a disc through frames: running sums, draws; coherent",
        Scratchpad,
        Barriers
    ),
    kernel!(cfd, "gas around a body, on an unstructured mesh: coherent but at the body; loads that scatter"),
    kernel!(rsbench, "cross sections by resonances of 4 to 321 nuclides, several lookups a thread"),
    kernel!(rsbench_single, "the same, a thread a lookup: a loop of unequal length"),
    kernel!(xsbench, "cross sections by tables, several lookups a thread: loops of unequal length, loads that scatter"),
    kernel!(
        mcb,
        "particles in a square of zones, several a thread: loops of unequal length; atomic additions",
        Atomics
    ),
    kernel!(pathtracer, "path tracing in fixed point: paths that end by chance; makes a picture"),
    kernel!(mcgpu, "x-rays through voxels: loops in which few steps change a photon; atomic additions", Atomics),
    kernel!(md5search, "messages of MD5 digests, several searches a thread: long loops of unequal length"),
    kernel!(traverse, "rays through a tree of boxes, several a thread: loops of unequal length, loads that scatter"),
    kernel!(iteration_delay, "a loop with expensive code behind a condition that is rarely true"),
    kernel!(loop_merge, "a loop of unequal length, with expensive code, in a loop"),
    kernel!(common_call, "a branch whose sides call the same expensive function"),
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
fn check<T: Copy + PartialEq>(array: &'static str, want: &[T], got: &[T]) -> Result<(), KernelError>
where
    u32: From<T>,
{
    assert_eq!(want.len(), got.len(), "the driver reads what it checks");
    match want.iter().zip(got).position(|(want, got)| want != got) {
        None => Ok(()),
        Some(index) => Err(KernelError::Wrong { array, index, want: want[index].into(), got: got[index].into() }),
    }
}

/// `count` words made by a function of the generator.
fn words(count: usize, mut make: impl FnMut() -> u32) -> Vec<u32> {
    (0..count).map(|_| make()).collect()
}

#[cfg(test)]
mod tests {
    use std::{fs, io::Write, path::Path};

    use heddle_simt::isa;

    use super::*;
    use crate::iss::Iss;

    const SHAPES: [(u32, u32); 9] = [(1, 1), (2, 1), (1, 4), (8, 1), (4, 4), (8, 8), (64, 1), (8, 64), (64, 64)];

    /// A core that has all that kernels need.
    fn complete(lanes: u32, warps: u32) -> Shape {
        Shape { barriers: true, atomics: true, scratchpad: 64 << 10, ..Shape::new(lanes, warps) }
    }

    fn iss(kernel: &Kernel, shape: &Shape) -> Iss {
        let program = Program::parse(kernel.elf).unwrap();
        Iss::new(&program, shape).unwrap()
    }

    #[test]
    fn every_kernel_is_right_with_any_number_of_threads() {
        for kernel in ALL {
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

    #[test]
    fn kernels_run_in_the_least_stack() {
        let shape = Shape { stack: 512, ..complete(2, 2) };
        for kernel in ALL {
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
        for kernel in ALL {
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
        for kernel in ALL {
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
        for kernel in ALL {
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
        let all = complete(2, 2);
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
        for kernel in ALL {
            let program = Program::parse(kernel.elf).unwrap();
            let words = || (0..program.program_end()).step_by(4).filter_map(|pc| program.word(pc));
            let found = [
                (Need::Atomics, words().any(|word| word & 0x7f == 0x2f)),
                (Need::Barriers, words().any(|word| word == isa::BARRIER)),
                (Need::Scratchpad, program.scratchpad() > 0),
            ];
            for (need, found) in found {
                assert_eq!(kernel.needs.contains(&need), found, "{}: {need}", kernel.name);
            }
        }
    }

    /// Threads of a block that wait in two places may never meet on a stack.
    #[test]
    fn the_compiler_copies_no_barrier() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/kernels");
        for kernel in ALL {
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
}
