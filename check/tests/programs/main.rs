//! Programs on whole cores: all kernels, random programs, what they cover; the instruction-set simulator against QEMU;
//! and what analyses and passes make of random programs.

mod compare_and_swap;
mod compiled;
mod coverage;
mod examples;
mod locks;
mod nops;
mod printf;
mod qemu;
mod random;
#[path = "../common/shapes.rs"]
mod shapes;
mod stack;
mod stack_machine;
mod sweep;
mod warp;
