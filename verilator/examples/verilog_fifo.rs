//! A queue written in Verilog, driven from Rust beside one of Rust's own.
//!
//! `cargo run -p heddle-verilated --example verilog_fifo`, in a folder where it may write `fifo.vcd`.

use heddle_verilated::{BuildError, Verilog};
use std::collections::VecDeque;
use std::path::Path;

fn main() -> Result<(), BuildError> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/fifo.v");
    let mut fifo =
        Verilog::new("fifo").file(source).parameter("WIDTH", 16).visible("fifo", "words").waves(true).model()?;
    fifo.wave(Path::new("fifo.vcd"))?;
    fifo.set("rst", 1);
    fifo.step();
    fifo.set("rst", 0);
    fifo.eval();

    let mut model = VecDeque::new();
    for cycle in 0..1000u64 {
        let (push, pop) = (cycle % 3 != 0, cycle % 5 < 2);
        assert_eq!(fifo.get("empty") == 1, model.is_empty());
        assert_eq!(fifo.get("full") == 1, model.len() == 4);
        if let Some(&first) = model.front() {
            assert_eq!(fifo.get("out"), first);
        }
        let room = model.len() < 4;
        fifo.set("push", push.into());
        fifo.set("pop", pop.into());
        fifo.set("in", 7 * cycle);
        fifo.step();
        fifo.eval();
        if pop {
            model.pop_front();
        }
        if push && room {
            model.push_back(7 * cycle);
        }
    }
    println!(
        "{} cycles, no difference; word 0 is {}; fifo.vcd has the waveform",
        fifo.cycles(),
        fifo.memory_read("words", 0)
    );
    Ok(())
}
