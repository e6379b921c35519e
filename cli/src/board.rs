//! `heddle board`: a board that is simulated.

use crate::engine::Engine;
use crate::interrupt::Interrupt;
use crate::output::print;
use crate::shape::{HardwareArgs, ShapeArgs};
use crate::synth::{board, boards, usual};
use anyhow::{Context, Result};
use clap::Args;
use heddle_check::synth::Board;
use heddle_sim::Checks;
use heddle_sim::simulation::{Options, Simulation};
use heddle_simt::host::Identity;
use heddle_simt::host::uart::LEAST_DIVISOR;
use heddle_simt::hosted::over_uart;
use heddle_testbench::remote::served::serve;
use heddle_testbench::remote::simulated::Pins;
use heddle_testbench::remote::terminal::Terminal;
use std::io::{self, Write as _};

/// Simulate a board behind a pseudo-terminal, for `heddle host` or anything else that opens a serial port.
///
/// What is simulated is what is on the FPGA, but for PLL and pins: the core with its host and UART. Standard output
/// gets one line, the path of the port. It runs until Ctrl-C, or SIGTERM; then the port is gone, as if it were
/// unplugged.
///
/// Any baud rate is right, since no bits go over a pseudo-terminal. Within the simulation a bit takes --divisor cycles,
/// by default far fewer than on a board, so that bytes do not take longer than programs. Time on the line says nothing
/// about a board, therefore; cycles of launches are the board's.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle board colorlight-i5 --pty                   prints a path such as /dev/pts/3
  heddle host --port /dev/pts/3 collatz              in another terminal
  heddle board icebreaker --pty --divisor 104        bits of 104 cycles: 115200 baud at 12 MHz
  heddle board ulx3s-85f --pty --lanes 4 --warps 2 --memory 32K --stack 512
  heddle board colorlight-i5 --pty --metrics         with counters, for what `heddle host` reports
  heddle board --list                                the boards")]
pub struct BoardArgs {
    /// The board; without any option of the core, the core is the board's usual one
    #[arg(value_name = "NAME", value_parser = board(), required_unless_present = "list")]
    board: Option<&'static Board>,
    /// Behind a pseudo-terminal, whose path is printed
    #[arg(long, required_unless_present = "list")]
    pty: bool,
    /// Cycles of a bit in the simulated UART
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u32).range(LEAST_DIVISOR as i64..))]
    divisor: u32,
    /// What simulates
    #[arg(long, value_enum, default_value_t = Engine::default(), value_name = "ENGINE")]
    engine: Engine,
    /// List the boards and do no more
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    hardware: HardwareArgs,
}

impl BoardArgs {
    pub fn run(self) -> Result<()> {
        let Some(board) = self.board.filter(|_| !self.list) else { return print(&boards()) };
        self.engine.check()?;
        let shape = match self.shape.asked() {
            Some(shape) => shape.shape()?,
            None => usual(board)?,
        };
        let (shape, seed) = (self.hardware.of(&shape), self.shape.seed);
        let interrupt = Interrupt::catch()?;
        let clock_khz = board.oscillator.khz;
        let design = over_uart(&shape, Identity { clock_khz }, self.divisor).check()?;
        let options = Options { engine: self.engine.kind(), seed, checks: Checks::Assertions, wave: None };
        let mut pins = Pins::new(Simulation::new(&design.netlist, &options)?, clock_khz, self.divisor)?;
        let terminal = Terminal::new().context("cannot make a pseudo-terminal")?;
        print(&format!("{}\n", terminal.path().display()))?;
        let (name, path) = (board.name, terminal.path().display());
        let _ = writeln!(io::stderr(), "{name}, simulated: {}; heddle host --port {path}", shape.options());
        serve(&mut pins, &terminal, &|| interrupt.poll().is_break())?;
        interrupt.or(Ok(()))
    }
}
