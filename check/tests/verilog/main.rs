//! The generated Verilog: in Verilator beside the simulation, in provers, and in synthesis; and the netlist.

mod lockstep;
mod netlist;
mod prove;
mod synth;
