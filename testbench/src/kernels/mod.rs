//! The built-in kernels: C programs, and for each a driver that fills its inputs, launches it, and compares its results
//! with what the host computes for itself.
//!
//! A driver sees the machine as a [`Device`], so the same one runs on the instruction-set simulator, on the simulated
//! core and on anything else that has memory and can be launched.

use std::fmt;

use heddle_simt::Shape;
use thiserror::Error;

use crate::described::DriverError;
use crate::image::Image;

mod backprop;
mod bfs;
mod bitonic_large;
mod bitonic_small;
mod blocked_stencil;
mod cfd;
mod collatz;
mod common_call;
mod device;
mod dispatch;
mod dxtc;
mod face_detection;
mod fft;
mod fixed;
mod gcd;
mod histogram;
mod hotspot;
mod if_else;
mod iteration_delay;
mod laplace3d;
mod list;
mod locks;
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
mod sources;
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

pub use device::{Device, DeviceError};
pub use list::{ALL, LOCKS, SMALL_MEMORY, SMALL_STACKS, UnknownKernel, WARP, every, find};

use crate::program::from_bytes;
use device::{Heap, to_bytes};
pub use sources::SOURCES;

use list::TOO_LARGE;

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
    /// What a host description says is not so.
    #[error(transparent)]
    Described(#[from] DriverError),
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
    /// Paths that give way to each other.
    Fair,
    /// `lr.w` and `sc.w`.
    Reservations,
    /// Votes, shuffles and `sync`.
    WarpPrimitives,
}

impl Need {
    fn is_met(self, shape: &Shape) -> bool {
        match self {
            Need::Atomics => shape.atomics,
            Need::Barriers => shape.barriers,
            Need::Scratchpad => shape.scratchpad > 0,
            Need::Fair => shape.fair,
            Need::Reservations => shape.reservations,
            Need::WarpPrimitives => shape.warp_primitives,
        }
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Need::Atomics => "atomic memory operations",
            Need::Barriers => "barriers",
            Need::Scratchpad => "a scratchpad",
            Need::Fair => "paths that give way to each other (--fair on)",
            Need::Reservations => "`lr.w` and `sc.w` (--reservations on)",
            Need::WarpPrimitives => "warp primitives (--warp-primitives on)",
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
    /// An ELF file with the debug information of `elf`.
    pub debug: &'static [u8],
    /// The program with less room for data, where it has one.
    pub small_elf: Option<&'static [u8]>,
    /// An ELF file with the debug information of `small_elf`.
    pub small_debug: Option<&'static [u8]>,
    /// What it needs of the core.
    pub needs: &'static [Need],
    /// Fills inputs from a seed, launches, and checks, on a device that has `elf` loaded.
    pub drive: fn(&mut dyn Device, seed: u64) -> Result<Output, KernelError>,
    /// The same, where the core may lack what it needs.
    pub drive_unasked: fn(&mut dyn Device, seed: u64) -> Result<Output, KernelError>,
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
        self.lacks(shape).is_none()
    }

    /// What a core lacks for the kernel, if it lacks something.
    pub fn lacks(&self, shape: &Shape) -> Option<Need> {
        self.needs.iter().copied().find(|need| !need.is_met(shape))
    }
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
mod tests;
