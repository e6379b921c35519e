//! Programs on whole cores: all kernels, random programs, what they cover; and the instruction-set simulator against QEMU.

mod committed;
mod coverage;
mod examples;
mod qemu;
mod random;
#[path = "../common/shapes.rs"]
mod shapes;
mod sweep;
