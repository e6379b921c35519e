//! `heddle host`: a program on a core that is reached through a serial port.

mod line;
mod report;

use crate::grid::GridArgs;
use crate::interrupt::{Interrupt, is_interruption};
use crate::launch::Setting;
use crate::mechanisms::mechanisms;
use crate::outcome::Outcome;
use crate::output::{print, print_json, tell};
use crate::run::{image_file, on_terminal, show, write_image};
use crate::size::SizeArgs;
use crate::target::{TARGET, Target};
use anyhow::{Result, bail};
use clap::Args;
use heddle_simt::isa::reservation;
use heddle_simt::{Shape, csr, isa};
use heddle_testbench::Program;
use heddle_testbench::kernels::Output;
use heddle_testbench::remote::port::patience;
use heddle_testbench::remote::{Board, Client, ClientError, Patience, Port};
use line::Watched;
use report::{Core, Report};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Run a program on a board, over a serial port, and say how it went.
///
/// The board must have a core with its host (docs/reference/host.md): a bitstream of `heddle synth --bitstream`, or a
/// simulation of one, `heddle board`. It is asked first what core it has. Then the program is loaded and compared by
/// its checksum, and runs: a built-in kernel gets its inputs, and its results are read back and compared with what this
/// computer makes of them; an ELF file is launched once, and succeeds if every thread's exit code is 0. Without a
/// program, it only says what is there. A program that does not fit is refused; one that has instructions which the
/// core lacks is run with a warning.
///
/// The board tells cycles, exit codes and a fault; and what `heddle run` counts, if its core was built with --metrics.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle host --port /dev/ttyUSB0                    what is there
  heddle host --port /dev/ttyUSB0 collatz
  heddle host --port /dev/ttyUSB0 vecadd --size small       for a core with 32 KiB
  heddle host --port /dev/ttyUSB0 mandelbrot --image mandelbrot.png
  heddle host --port /dev/ttyUSB0 prog.elf --blocks 100 --block-threads 8 --set length=100 --show sum
  heddle host --port /dev/ttyACM0 --baud 1000000 nqueens --json
  heddle host --port /dev/ttyUSB0 gcd --json         metrics, too, of a core built with --metrics
  heddle board colorlight-i5 --pty                   a board that is simulated, and prints the path of its port")]
pub struct Host {
    /// A built-in kernel (`heddle kernels` lists them), an RV32IMA ELF file, a source, or a folder with a host description
    #[arg(value_name = TARGET)]
    target: Option<String>,
    /// The serial port
    #[arg(long, value_name = "PATH")]
    port: PathBuf,
    /// Bits a second on the line: what the board was built for
    #[arg(long, default_value_t = 115_200, value_name = "N", value_parser = clap::value_parser!(u32).range(50..=20_000_000))]
    baud: u32,
    #[command(flatten)]
    size: SizeArgs,
    #[command(flatten)]
    grid: GridArgs,
    /// Write a word of an ELF file's variable before the launch
    #[arg(long, value_name = "NAME=VALUE", value_parser = Setting::parse)]
    set: Vec<Setting>,
    /// Seed of a kernel's inputs
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// Give a launch up after so many seconds
    #[arg(long, default_value_t = 60.0, value_name = "SECONDS", value_parser = seconds)]
    timeout: f64,
    /// Ask again if no answer comes in so many seconds
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS", value_parser = seconds)]
    patience: f64,
    /// Write the picture that the kernel makes
    #[arg(long, value_name = "FILE.png")]
    image: Option<PathBuf>,
    /// Print the words of a variable after the run
    #[arg(long, value_name = "NAME")]
    show: Vec<String>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
}

impl Host {
    pub fn run(self) -> Result<()> {
        self.check()?;
        let mut target = self.target.as_deref().map(|name| self.size.of(Target::find(name)?)).transpose()?;
        if let Some(target) = &mut target {
            Setting::check(&self.set, target)?;
        }
        let seen = target.as_ref().map(Outcome::create).transpose()?;
        let image = target.as_ref().map(|target| image_file(self.image.as_deref(), target)).transpose()?.flatten();
        let interrupt = Interrupt::catch()?;
        let patience = patience(self.baud, self.reply(), Duration::from_secs_f64(self.timeout));
        let line = Watched::new(Port::open(&self.port, self.baud)?, &interrupt);
        let begun = Instant::now();
        let client = interrupt.or(Client::meet(line, patience, mechanisms()).map_err(|error| self.unanswered(error)))?;
        let (shape, clock_khz) = (client.shape()?, client.clock_khz());
        let core = Core::new(&shape, clock_khz);
        let Some(target) = target else { return if self.json { print_json(&core) } else { print(&core.text()) } };
        if shape.bus_width().is_some() {
            bail!("memory of the core is on a bus: its host can neither fill nor read it");
        }
        self.size.check(&target, &shape)?;
        for lacks in lacking(&target.program, &shape) {
            tell(&format!("warning: {}: the program has {lacks}, and the core has not\n", target.name));
        }
        let mut target = self.grid.of(target, &shape)?;
        target.end_at(&interrupt);
        let mut report = Report::new(target.name.clone(), &self.port, self.baud, core);
        report.expectation = target.expectation();
        let result = self.on(client, patience, &shape, &target, seen, &mut report);
        report.seconds = begun.elapsed().as_secs_f64();
        if !self.json {
            print(&report.printed.text())?;
        }
        let outcome = match interrupt.or(result) {
            Ok(outcome) => outcome,
            Err(error) => {
                report.failed(&error, is_interruption(&error));
                if self.json {
                    print_json(&report)?;
                } else {
                    print(&report.results())?;
                }
                return Err(error.context(report.kernel));
            }
        };
        report.checked = outcome.checked;
        if let (Some(file), Some(picture)) = (image, &outcome.image) {
            write_image(file, picture)?;
        }
        if let (Some(picture), false) = (&outcome.image, self.json) {
            print(&on_terminal(picture))?;
        }
        if self.json { print_json(&report) } else { print(&report.text()) }
    }

    /// Refuses options of a program where none is named.
    fn check(&self) -> Result<()> {
        let of_program = [
            ("--size", self.size.is_given()),
            ("--blocks or --block-threads", self.grid.is_given()),
            ("--set", !self.set.is_empty()),
            ("--image", self.image.is_some()),
            ("--show", !self.show.is_empty()),
        ];
        match of_program.iter().find(|(_, is_given)| self.target.is_none() && *is_given) {
            Some((option, _)) => bail!("{option} is for a program: name one to run"),
            None => Ok(()),
        }
    }

    fn reply(&self) -> Duration {
        Duration::from_secs_f64(self.patience)
    }

    /// Loads the program and runs it.
    fn on(
        &self,
        client: Client<Watched<Port>>,
        patience: Patience,
        shape: &Shape,
        target: &Target,
        seen: Option<Outcome>,
        report: &mut Report,
    ) -> Result<Output> {
        let mut board = Board::over(client, patience, shape, target.program.clone())?;
        let result = Setting::write(&self.set, &mut board).and_then(|()| Ok(target.drive(&mut board, self.seed)?));
        let result = match (result, seen) {
            (Err(error), _) if !Outcome::is_seen(&error) => Err(error),
            (result, seen) => {
                let told = seen.map(|seen| seen.write(target, &mut board)).transpose()?.unwrap_or_default();
                (report.variables, report.saved) = (told.variables, told.saved);
                report.variables.extend(show(&self.show, &mut board)?);
                result
            }
        };
        (report.cycles, report.launches, report.metrics) = (board.cycles(), board.launches(), board.summary());
        report.printed = board.printed().clone();
        report.retries = board.client().retries();
        (report.sent, report.received) = board.client().line().counts();
        result
    }

    /// What it may mean that there is no host at the other end.
    fn unanswered(&self, error: ClientError) -> anyhow::Error {
        let is_silent = matches!(error, ClientError::Lost { .. } | ClientError::Babble);
        let error = anyhow::Error::from(error);
        let port = self.port.display();
        if is_silent {
            return error
                .context(format!("no host of a core on {port} at {} baud: is the bitstream on the board?", self.baud));
        }
        error.context(port.to_string())
    }
}

/// What words of the program may be instructions of and the core lacks; some may be data.
fn lacking(program: &Program, shape: &Shape) -> Vec<&'static str> {
    let words = || (0..program.program_end()).step_by(4).filter_map(|pc| program.word(pc));
    let multiplies = words().any(|word| word & 0xfe00_007f == 0x0200_0033);
    let is_atomic = words().any(|word| word & 0x707f == 0x202f && !reservation::has(word));
    let reserves = words().any(reservation::has);
    let of_warp = words().any(isa::warp::has);
    let waits = words().any(|word| word == isa::BARRIER);
    let reads = |word: u32| word & 0x7f == 0x73 && word >> 12 & 3 != 0;
    let counter = |word: u32| csr::find((word >> 20) as u16).is_some_and(|csr| csr.source.counts());
    let counts = words().any(|word| reads(word) && counter(word));
    let kinds = [
        (multiplies && !shape.multiply, "multiplications or divisions"),
        (is_atomic && !shape.atomics, "atomic memory operations"),
        (reserves && !shape.reservations, "`lr.w` or `sc.w`"),
        (of_warp && !shape.warp_primitives, "warp primitives"),
        (waits && !shape.barriers, "barriers"),
        (counts && !shape.counters, "reads of counters of cycles or instructions"),
    ];
    kinds.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what).collect()
}

fn seconds(text: &str) -> Result<f64, String> {
    let number = text.parse().ok().filter(|seconds| (0.001..=1e6).contains(seconds));
    number.ok_or_else(|| "wanted is a number of seconds, 0.001 to 1000000".into())
}
