//! The generated Verilog: in Verilator beside the simulation, and in provers.

mod lockstep;
mod prove;
