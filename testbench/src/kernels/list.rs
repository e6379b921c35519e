//! Every built-in kernel: its name, what it exercises, its programs and what they need.

use super::locks::*;
use super::*;
use crate::nearest::{nearest, suggestion};
// The same inputs and results as of the kernel without warp primitives.
use super::matvec as warp_matvec;
use super::scan::warp_scan;
use thiserror::Error;

macro_rules! kernel {
    ($name:ident, $about:literal $(, $need:ident)*) => {
        Kernel {
            name: stringify!($name),
            about: $about,
            elf: include_bytes!(concat!("../../programs/elf/", stringify!($name), ".elf")),
            debug: include_bytes!(concat!("../../programs/elf/debug/", stringify!($name), ".debug")),
            small_elf: small(stringify!($name)),
            small_debug: small_debug(stringify!($name)),
            needs: &[$(Need::$need),*],
            drive: |device, seed| {
                for need in [$(Need::$need),*] as [Need; _] {
                    if !need.is_met(device.shape()) {
                        return Err(KernelError::Missing { need });
                    }
                }
                $name::drive(device, seed)
            },
            drive_unasked: $name::drive,
        }
    };
}

/// Bytes of memory that program, data and stacks of a [small](Kernel::small) kernel fit in, and of them those of the
/// stacks.
pub const SMALL_MEMORY: u32 = 32 << 10;

/// 8 threads, 512 bytes each.
pub const SMALL_STACKS: u32 = 8 * 512;

/// The programs that are built for [`SMALL_MEMORY`], too: those that are too large for it otherwise and whose data can
/// be less.
macro_rules! small {
    ($($name:ident)*) => {
        const fn small(name: &str) -> Option<&'static [u8]> {
            $(if same(name, stringify!($name)) {
                return Some(include_bytes!(concat!("../../programs/elf/small/", stringify!($name), ".elf")));
            })*
            None
        }

        const fn small_debug(name: &str) -> Option<&'static [u8]> {
            $(if same(name, stringify!($name)) {
                return Some(include_bytes!(concat!("../../programs/elf/debug/small/", stringify!($name), ".debug")));
            })*
            None
        }
    };
}

small!(
    backprop bfs bitonic_small blocked_stencil cas_queue cfd dispatch face_detection
    fft gcd histogram laplace3d lock_and_barrier lu matvec mcs_lock md5
    md5search monte_carlo motion needle particle_filter pathfinder quasi_random quicksort rsbench rsbench_single scan search
    sort stencil3d striped_stencil suffix suffix_array transpose traverse two_point
    vecadd warp_matvec warp_scan work_queue
);

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut k = 0;
    while k < a.len() && k < b.len() && a[k] == b[k] {
        k += 1;
    }
    k == a.len() && k == b.len()
}

/// Why a kernel has no program for [`SMALL_MEMORY`].
pub const TOO_LARGE: &[(&str, &str)] = &[
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
    kernel!(lu, "LU decomposition by tiles: half of a warp takes rows, the other half columns", Scratchpad, Barriers),
    kernel!(quicksort, "quicksort, a block a list: elements go down or up", Barriers),
    kernel!(bfs, "breadth-first search of a graph: branches without an else, loops of unequal length"),
    kernel!(pathfinder, "cheapest way down a grid: sides that lose a column each step", Scratchpad, Barriers),
    kernel!(needle, "Needleman-Wunsch alignment: diagonals of a tile, maxima of three", Scratchpad, Barriers),
    kernel!(hotspot, "heat of a chip: squares that lose their edge each step", Scratchpad, Barriers),
    kernel!(
        dxtc,
        "texture compression: sixteen threads prepare, all try ways to part pixels, a tree finds the best",
        Scratchpad,
        Barriers
    ),
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

/// Programs whose threads compete, by locks or without: apart from the others, since they need what is optional, and
/// what they measure is how threads wait. A lock's threads wait for others of their warp, so they need a core that is
/// [fair](Shape::fair).
pub const LOCKS: &[Kernel] = &[
    kernel!(spin_lock, "a counter under a lock of one word", Fair, Atomics),
    kernel!(ticket_lock, "the same, in the order of asking", Fair, Atomics),
    kernel!(
        mcs_lock,
        "the same, by a queue in which each thread waits for a word of its own",
        Fair,
        Atomics,
        Reservations
    ),
    kernel!(producer_consumer, "pairs of threads that hand numbers over, one at a time", Fair, Atomics),
    kernel!(nested_locks, "transfers between accounts, under the locks of both", Fair, Atomics),
    kernel!(lock_in_loop, "a lock behind a condition in a loop of unequal length", Fair, Atomics),
    kernel!(lock_and_barrier, "a sum of a block under a lock, then a barrier", Fair, Atomics, Barriers),
    kernel!(cas_queue, "a queue by compare-and-swap, without a lock", Atomics, Reservations),
    kernel!(hash_table, "counts of keys in a table that is filled by compare-and-swap", Atomics, Reservations),
];

/// Kernels of [`ALL`] with warp primitives instead of the scratchpad.
pub const WARP: &[Kernel] = &[
    kernel!(warp_matvec, "matvec, with its sums by shuffles", WarpPrimitives),
    kernel!(warp_scan, "scan, a warp a row, by shuffles", WarpPrimitives),
];

/// Every kernel and every lock program.
pub fn every() -> impl Iterator<Item = &'static Kernel> {
    ALL.iter().chain(LOCKS).chain(WARP)
}

/// No kernel has this name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("no kernel is called `{name}`{}", suggestion(*.nearest))]
pub struct UnknownKernel {
    /// What was asked for.
    pub name: String,
    /// The kernel that was probably meant.
    pub nearest: Option<&'static str>,
}

/// The kernel of a name.
pub fn find(name: &str) -> Result<&'static Kernel, UnknownKernel> {
    if let Some(kernel) = every().find(|kernel| kernel.name == name) {
        return Ok(kernel);
    }
    Err(UnknownKernel { name: name.into(), nearest: nearest(name, every().map(|kernel| kernel.name)) })
}
