//! `heddle gen`: the core as Verilog.
