//! The generated Verilog: in Verilator beside the simulation, in provers, and in synthesis.

mod lockstep;
mod prove;
mod synth;
