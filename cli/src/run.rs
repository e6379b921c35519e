//! `heddle run`: a program on the simulated core.

use crate::interrupt::{Interrupt, is_interruption};
use crate::launch::Launch;
use crate::outcome::Outcome;
use crate::output::{ResultFile, print, print_json};
use crate::profile::Recorded;
use crate::progress::Progress;
use crate::report::{Report, Variable};
use crate::saves::Saves;
use crate::size::SizeArgs;
use crate::target::{TARGET, Target};
use crate::timed::Timed;
use crate::timeline::{Record, parse_range};
use crate::trace::Trace;
use crate::viewers::{Traced, Watches};
use anyhow::{Context, Result, bail};
use clap::{ArgGroup, Args, ValueEnum};
use heddle_check::commit;
use heddle_simt::Shape;
use heddle_testbench::image::Image;
use heddle_testbench::kernels::{Device, Output};
use heddle_testbench::machine::{Machine, MachineOptions};
use std::io::{IsTerminal, Write as _, stderr, stdout};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// Run a program on the simulated core and say what the core did.
///
/// A built-in kernel gets its inputs, and its results are compared with what the host computes. C or assembly is built as
/// by `heddle build`; it, or an ELF file (RV32IMA, linked as docs/reference/programs.md says), is launched once, with one
/// block of all threads or with the blocks asked for; it succeeds if every thread's exit code is 0. A folder, as
/// `heddle new` makes one, has a host description, heddle.toml: what it is built of and launched with, and what should
/// come of it (docs/reference/host-description.md).
///
/// Ctrl-C ends the run with the report so far and a complete waveform; the exit code is then 130. A second Ctrl-C ends
/// it at once. Long runs show their progress if standard error is a terminal.
#[derive(Args)]
#[command(group = ArgGroup::new("shown").args(["timeline", "konata", "perfetto"]).multiple(true))]
#[command(after_help = "Examples:
  heddle run mandelbrot --image mandelbrot.png
  heddle run nqueens --lanes 4 --warps 1 --trace | less
  heddle run vecadd --size small --lanes 4 --warps 2 --memory 32K --stack 512
  heddle run if_else --lanes 4 --warps 2 --divergence block-stack --timeline if_else.svg
  heddle run matmul --cache 4K --memory-model latency=200,interval=8 --second-level 64K,latency=60
  heddle run collatz --json | jq .simt_efficiency
  heddle run photon --watch
  heddle run sort --konata sort.log --perfetto sort.json --window 1000..3000
  heddle run rsbench --elf faster.elf --convergence-barriers 16
  heddle run rsbench --lanes 32 --profile rsbench.json && heddle predict rsbench --auto --profile rsbench.json -o faster.elf
  heddle run prog.elf --check iss --lanes 4 --warps 1
  heddle run prog.elf --blocks 100 --block-threads 32
  heddle run prog.elf --set length=100 --show sum --wave prog.fst
  heddle run kernel.c fast.S --lanes 16 -- -O3
  heddle new mine && heddle run mine --lanes 32")]
pub struct Run {
    /// A built-in kernel (`heddle kernels` lists them), an RV32IMA ELF file, C and assembly, or a folder with a host
    /// description
    #[arg(value_name = TARGET, required = true)]
    target: Vec<String>,
    /// Run this program with the kernel's inputs and checks, such as what `heddle predict KERNEL` wrote
    #[arg(long, value_name = "FILE.elf")]
    elf: Option<PathBuf>,
    #[command(flatten)]
    size: SizeArgs,
    #[command(flatten)]
    launch: Launch,
    /// Compare every instruction of every thread with a second machine, see docs/evidence/trust.md
    #[arg(long, value_enum, value_name = "MACHINE")]
    check: Option<Reference>,
    /// Write the picture that the kernel makes
    #[arg(long, value_name = "FILE.png")]
    image: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write a waveform, .vcd or .fst, and beside it what GTKWave (.gtkw) and Surfer (.sucl) open it with
    #[arg(long, value_name = "FILE")]
    wave: Option<PathBuf>,
    /// Print every instruction that issues: cycle, warp, pc, mask (lane 0 leftmost), disassembly
    #[arg(long, conflicts_with = "json")]
    trace: bool,
    /// Draw while it runs, on a terminal, a line a warp: the path that each lane is in (lane 0 leftmost, `.` has ended), and
    /// where the first paths are; on a block stack, of which static warp of the block each lane's thread is (`.`: nobody
    /// runs there), and where threads of the block wait
    #[arg(long, conflicts_with = "trace")]
    watch: bool,
    /// Count the issues of every instruction, and their active lanes, for `heddle predict --auto`
    #[arg(long, value_name = "FILE.json")]
    profile: Option<PathBuf>,
    /// Draw which threads ran together: a line a visit of a basic block
    #[arg(long, value_name = "FILE.svg")]
    timeline: Option<PathBuf>,
    /// Write the stages of every instruction as a log for Konata, the pipeline viewer; see docs/guide/traces.md
    #[arg(long, value_name = "FILE.log")]
    konata: Option<PathBuf>,
    /// Write warps, blocks, barriers and accesses as a trace for Perfetto or Chrome; see docs/guide/traces.md
    #[arg(long, value_name = "FILE.json")]
    perfetto: Option<PathBuf>,
    /// The cycles that --timeline, --konata and --perfetto show, FROM..TO
    #[arg(long, value_name = "CYCLES", value_parser = parse_range, default_value = "0..", requires = "shown")]
    window: Range<u64>,
    /// Print the words of a variable after the run
    #[arg(long, value_name = "NAME")]
    show: Vec<String>,
    /// More flags for the compiler
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

/// A machine to compare with.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reference {
    /// The instruction-set simulator: pcs, register values, addresses and data, thread by thread
    Iss,
}

impl Run {
    pub fn run(self) -> Result<()> {
        let (mut target, shape) = self.on_core(self.program()?)?;
        if self.watch && !stderr().is_terminal() {
            bail!("--watch draws on a terminal, and standard error is none; see --trace and --timeline");
        }
        self.apart()?;
        let interrupt = Interrupt::catch()?;
        target.end_at(&interrupt);
        let mut image = image_file(self.image.as_deref(), &target)?;
        let seen = Outcome::create(&target)?;
        let timeline = self.timeline(&target, &shape)?;
        let profile =
            self.profile.as_deref().map(|path| Recorded::create(path, &target.program, shape.lanes, &interrupt));
        let profile = profile.transpose()?;
        let viewers = self.viewers(&target, &shape)?;
        let options = MachineOptions { wave: self.wave.clone(), ..self.options() };
        let mut machine =
            Machine::new(&shape, target.program.clone(), &options).with_context(|| target.name.clone())?;
        let saves = self.wave.as_deref().map(Saves::create).transpose()?;
        let mut watches = Watches::default();
        if self.trace {
            watches.add(Box::new(Trace::new(shape.lanes, &interrupt)));
        } else {
            let progress = Progress::new(&shape, self.launch.limit.max_cycles, &interrupt);
            let by_warp = |progress: Progress| progress.by_warp(&shape, &target.program);
            watches.add(Box::new(if self.watch { by_warp(progress) } else { progress }));
        }
        timeline.iter().for_each(|(_, record)| watches.add(Box::new(Record::watch(record, &interrupt))));
        profile.iter().for_each(|profile| watches.add(profile.watch()));
        viewers.iter().for_each(|viewer| watches.add(viewer.watch()));
        machine.watch(Box::new(watches));

        let (mut report, result) = self.measure(&mut machine, &target, self.launch.shape.seed);
        let finished = self.seen(&mut machine, &target, seen, &result, &mut report);
        let directory = machine.simulation().directory().clone();
        machine.finish()?;
        finished?;
        saves.map_or(Ok(()), |saves| saves.finish(&directory, &target.program))?;
        if let Some((mut file, record)) = timeline {
            file.writer().write_all(Record::svg(&record)?.as_bytes())?;
            file.finish()?;
        }
        viewers.into_iter().try_for_each(Traced::finish)?;
        // Nobody may read it any more; files come all the same, and a trace before it.
        if !self.json {
            print(&report.printed.text())?;
        }

        let outcome = match result {
            Ok(outcome) => outcome,
            Err(error) => {
                report.ok = false;
                report.error = Some(format!("{error:#}"));
                if self.json {
                    print_json(&report)?;
                } else if report.interrupted {
                    print(&report.text())?;
                } else {
                    print(&report.results())?;
                }
                return Err(error.context(report.kernel));
            }
        };
        report.checked = outcome.checked;
        profile.map_or(Ok(()), Recorded::finish)?;
        if let (Some(file), Some(picture)) = (image.take(), &outcome.image) {
            write_image(file, picture)?;
        }
        if let (Some(picture), false) = (&outcome.image, self.json) {
            print(&on_terminal(picture))?;
        }
        if self.json { print_json(&report) } else { print(&report.text()) }
    }

    /// What runs.
    pub fn program(&self) -> Result<Target> {
        self.size.program(Target::built(&self.target, &self.flags)?, self.elf.as_deref())
    }

    /// It as it is launched on the core, and the core; refused if that cannot be.
    pub fn on_core(&self, target: Target) -> Result<(Target, Shape)> {
        self.launch.on_core(target, &self.size)
    }

    /// How it is simulated, without a waveform.
    pub fn options(&self) -> MachineOptions {
        let mut options = self.launch.options();
        if self.check == Some(Reference::Iss) {
            options.monitors.push(commit::monitor);
        }
        options
    }

    /// Runs it on a machine that has it loaded: what the core did, and what came of it.
    pub fn measure(&self, machine: &mut Machine, target: &Target, seed: u64) -> (Report, Result<Output>) {
        let mut timed = Timed::new(machine);
        let result = self.launch.drive(&mut timed, target, seed);
        let time = timed.time;
        let name = target.name.clone();
        let mut report = Report::new(name, machine.shape(), self.launch.engine, seed, time, machine.summary());
        report.interrupted = result.as_ref().is_err_and(is_interruption);
        report.expectation = target.expectation();
        report.compared = self.check.map(|_| machine.compared());
        report.printed = machine.printed().clone();
        (report, result)
    }

    /// The variables that are asked for.
    pub fn shown(&self, machine: &mut Machine) -> Result<Vec<Variable>> {
        show(&self.show, machine)
    }

    /// What is asked for of the machine after the run, into the report and into files.
    fn seen(
        &self,
        machine: &mut Machine,
        target: &Target,
        seen: Outcome,
        result: &Result<Output>,
        report: &mut Report,
    ) -> Result<()> {
        let wrong = result.as_ref().is_err_and(Outcome::is_seen);
        if result.is_ok() || wrong {
            let told = seen.write(target, machine)?;
            (report.variables, report.saved) = (told.variables, told.saved);
        }
        if result.is_ok() || wrong || report.interrupted {
            report.variables.extend(self.shown(machine)?);
        }
        Ok(())
    }

    /// Its file, and what it is to show.
    fn timeline(&self, target: &Target, shape: &Shape) -> Result<Option<(ResultFile, Arc<Mutex<Record>>)>> {
        let Some(path) = &self.timeline else { return Ok(None) };
        let (lanes, warps, unit) = (shape.lanes, shape.warps, shape.divergence.name());
        let title = format!("{} on {lanes} lanes × {warps} warps, {unit}", target.name);
        let record = Record::new(title, &target.program, self.window.clone())?;
        Ok(Some((ResultFile::create(path)?, record)))
    }

    /// Refuses one file for two results.
    fn apart(&self) -> Result<()> {
        let files = [
            ("--wave", &self.wave),
            ("--image", &self.image),
            ("--profile", &self.profile),
            ("--timeline", &self.timeline),
            ("--konata", &self.konata),
            ("--perfetto", &self.perfetto),
        ];
        for (at, (option, path)) in files.iter().enumerate().filter(|(_, (_, path))| path.is_some()) {
            if let Some((other, _)) = files[..at].iter().find(|(_, other)| other == path) {
                bail!("{other} and {option} would write the same file");
            }
        }
        Ok(())
    }

    /// The traces for viewers.
    fn viewers(&self, Target { program, .. }: &Target, shape: &Shape) -> Result<Vec<Traced>> {
        let konata = self.konata.iter().map(|path| Traced::konata(path, program, shape, self.window.clone()));
        let perfetto = self.perfetto.iter().map(|path| Traced::perfetto(path, program, shape, self.window.clone()));
        konata.chain(perfetto).collect()
    }
}

/// The file for the picture, so that a bad path is refused before the run.
pub fn image_file(path: Option<&Path>, target: &Target) -> Result<Option<ResultFile>> {
    let Some(path) = path else { return Ok(None) };
    match &target.described {
        Some(described) if !described.driver.draws() => bail!("--image: {} has no [pictures]", target.name),
        None if target.kernel.is_none_or(|kernel| !PICTURES.contains(&kernel.name)) => {
            bail!("--image is for {}: {} makes no picture", PICTURES.join(", "), target.name)
        }
        _ => Ok(Some(ResultFile::create(path)?)),
    }
}

/// The words of these variables.
pub fn show(names: &[String], device: &mut dyn Device) -> Result<Vec<Variable>> {
    let variable = |name: &String| {
        let symbol =
            device.program().symbol(name).with_context(|| format!("--show: the program has no symbol `{name}`"))?;
        let words = device.read_words(name, symbol.size as usize / 4)?;
        let words = words.into_iter().map(i128::from).collect();
        Ok(Variable { name: name.clone(), words, decimal: false })
    };
    names.iter().map(variable).collect()
}

/// The kernels that make a picture.
const PICTURES: [&str; 3] = ["mandelbrot", "raytrace", "pathtracer"];

/// Pixels of the file a side, of one pixel of the picture: small pictures are drawn large.
fn scale(picture: &Image) -> u32 {
    (640 / picture.width.max(picture.height).max(1)).clamp(1, 8)
}

/// The picture as text, unless no terminal is so wide.
pub fn on_terminal(picture: &Image) -> String {
    const WIDEST: u32 = 160;
    if picture.width <= WIDEST { picture.text(stdout().is_terminal()) } else { String::new() }
}

pub fn write_image(mut file: ResultFile, picture: &Image) -> Result<()> {
    picture.write_png(file.writer(), scale(picture)).context("cannot write the picture")?;
    file.finish()
}
