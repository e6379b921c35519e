//! Verilog of a design, on the standard output.
//!
//! `cargo run -p heddle-sim --example verilog > blinker.v`

use heddle_hdl::prelude::*;
use heddle_sim::ToVerilog;

#[derive(Bundle, Clone, Copy)]
struct In<T> {
    faster: T,
}
#[derive(Bundle, Clone, Copy)]
struct Out<T> {
    led: T,
}

/// A light that is on every other 2^`width` cycles, or four times as often.
fn blinker(width: Width) -> TypedModule<In<Width>, Out<Signal>> {
    module("blinker", In { faster: 1 }, |m, i| {
        m.doc("A light that blinks, and does so faster on request.");
        let count = m.reg("count", width + 1).reset(0u32);
        wire!(step = i.faster.mux(m.lit(4u32, width + 1), m.lit(1u32, width + 1)));
        count.next(count.q + step);
        Out { led: count.q.msb() }
    })
}

fn main() {
    match blinker(24).check() {
        Ok(design) => print!("{}", design.verilog()),
        // A description that is wrong has one line for each mistake, with the place in this file.
        Err(mistakes) => {
            eprintln!("{mistakes}");
            std::process::exit(1);
        }
    }
}
