//! A Heddle core in a design of rust-hdl: a loader writes a program of two instructions, launches a block of threads,
//! and shows on two lamps that they are done and whether the core stopped with a fault.
//!
//! ```sh
//! heddle gen --lanes 4 --warps 2 --memory 64K --program 16K --out build --rust-hdl    # in this folder
//! cargo run
//! verilator --lint-only -Wno-lint --top-module top -f build/heddle.f build/top.v
//! ```
//!
//! The second writes `build/top.v`, the Verilog of this design. The core's own Verilog comes before it.

#[path = "../build/heddle.rs"]
mod heddle;

use heddle::Heddle;
use rust_hdl::prelude::*;
use std::process::ExitCode;

/// What the loader does next.
#[derive(Copy, Clone, PartialEq, Debug, LogicState)]
enum State {
    Reset,
    First,
    Second,
    Launch,
    Run,
}

/// `li a7, 93` and `ecall`, which end a thread. Widths are those of the shape in the example's first line: 64 KiB of
/// memory, 16 KiB of program, and at most 4 × 2 threads in a block.
#[derive(LogicBlock)]
struct Loader {
    clk: Signal<In, Clock>,
    done: Signal<Out, Bit>,
    fault: Signal<Out, Bit>,
    core: Heddle,
    state: DFF<State>,
    first: Constant<Bits<32>>,
    second: Constant<Bits<32>>,
}

impl Default for Loader {
    fn default() -> Loader {
        Loader {
            clk: Signal::default(),
            done: Signal::default(),
            fault: Signal::default(),
            core: Heddle::default(),
            state: DFF::default(),
            first: Constant::new(bits(0x05d0_0893)),
            second: Constant::new(bits(0x0000_0073)),
        }
    }
}

impl Logic for Loader {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clk, state);
        self.core.clk.next = self.clk.val();
        self.core.rst.next = false;
        self.core.load_valid.next = false;
        self.core.load_address.next = 0.into();
        self.core.load_word.next = self.first.val();
        self.core.launch.next = false;
        self.core.entry.next = 0.into();
        self.core.blocks.next = 1.into();
        self.core.block_threads.next = 8.into();
        self.core.program_end.next = 256.into();
        match self.state.q.val() {
            State::Reset => {
                self.core.rst.next = true;
                self.state.d.next = State::First;
            }
            State::First => {
                self.core.load_valid.next = true;
                self.state.d.next = State::Second;
            }
            State::Second => {
                self.core.load_valid.next = true;
                self.core.load_address.next = 4.into();
                self.core.load_word.next = self.second.val();
                self.state.d.next = State::Launch;
            }
            State::Launch => {
                self.core.launch.next = true;
                self.state.d.next = State::Run;
            }
            State::Run => {}
        }
        self.done.next = self.core.done.val() & (self.state.q.val() == State::Run);
        self.fault.next = self.core.fault_valid.val();
    }
}

fn main() -> ExitCode {
    let mut top = Loader::default();
    top.clk.connect();
    top.connect_all();
    // A Yosys on the path would check it, too: `yosys_validate("top", &text)`.
    let text = generate_verilog(&top);
    match std::fs::write("build/top.v", &text) {
        Ok(()) => {
            println!("build/top.v: {} lines", text.lines().count());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("cannot write build/top.v: {error}");
            ExitCode::FAILURE
        }
    }
}
