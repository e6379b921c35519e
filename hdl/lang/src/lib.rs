pub mod bits;
pub mod netlist;
pub use bits::Bits;
