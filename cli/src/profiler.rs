//! `heddle profile`: which source lines cost how many cycles, and why.
//!
//! | file | what it has |
//! |---|---|
//! | `report.rs` | what a profile says, as JSON; `make.rs`: from what a run cost |
//! | `text.rs` | the lines that cost most, for people |
//! | `sources.rs` | the text of source lines |
//! | `page.rs` | the page; `charts.rs`: its pictures |

mod charts;
mod make;
mod page;
mod report;
mod sources;
mod text;

use crate::interrupt::{Interrupt, is_interruption};
use crate::launch::Launch;
use crate::output::{ResultFile, print};
use crate::profile::{Recorder, read_as};
use crate::progress::Progress;
use crate::size::SizeArgs;
use crate::target::{TARGET, Target};
use crate::timeline::parse_range;
use crate::viewers::Watches;
use anyhow::{Context, Result, bail};
use clap::Args;
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::compile::quoted;
use heddle_testbench::costs::{Account, Costs};
use heddle_testbench::machine::{self, Cycle, Machine, TraceLine, Watch};
use report::Report;
use sources::Sources;
use std::io::Write as _;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Say which source lines of a program cost how many cycles, and why.
///
/// The program runs as under `heddle run`; Ctrl-C ends it with its costs so far, and a run that fails or reaches
/// --max-cycles has them too. Printed are the ten lines that cost most: how often their instructions issued, how many
/// lanes were active then, and the cycles in which nothing issued since warps waited for them, by cause; the branch that
/// diverges most, where its threads reconverge, and what `heddle predict --auto` would do there; and the access that
/// coalesces worst. docs/guide/profile.md says what each number is.
///
/// --html writes a page that opens from disk: source and instructions beside each other, branches, accesses to memory, and
/// what lanes and warps did over time. Programs need debug information for lines, which `heddle build` gives them; others
/// have addresses instead.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle profile nqueens
  heddle profile mine --html mine.html                           a folder of `heddle new`
  heddle profile kernel.c --lanes 32 --warps 16 --html kernel.html
  heddle profile sort --divergence stack --json > stack.json
  heddle profile sort --against stack.json --html sort.html      two mechanisms side by side
  heddle profile photon --html photon.html --window 1000..3000   these cycles in detail
  heddle profile spmv --cache 4K --memory-model latency=100 --json | jq '.accesses[] | select(.misses > 0)'")]
pub struct Profiler {
    /// A built-in kernel (`heddle kernels` lists them), an RV32IMA ELF file, C and assembly, or a folder with a host
    /// description
    #[arg(value_name = TARGET, required = true)]
    target: Vec<String>,
    /// Run this program with the kernel's inputs and checks
    #[arg(long, value_name = "FILE.elf")]
    elf: Option<PathBuf>,
    #[command(flatten)]
    size: SizeArgs,
    #[command(flatten)]
    launch: Launch,
    /// Print one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write a page for a browser
    #[arg(long, value_name = "FILE.html")]
    html: Option<PathBuf>,
    /// Show another run beside this one: what --json printed for it
    #[arg(long, value_name = "FILE.json")]
    against: Option<PathBuf>,
    /// The cycles that pictures over time show, FROM..TO
    #[arg(long, value_name = "CYCLES", value_parser = parse_range, default_value = "0..")]
    window: Range<u64>,
    /// More flags for the compiler
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

impl Profiler {
    pub fn run(self) -> Result<()> {
        if self.json && self.against.is_some() && self.html.is_none() {
            bail!("--against is for the table and for --html; --json has this run alone");
        }
        let against = self.against.as_deref().map(read).transpose()?;
        let html = self.html.as_deref().map(ResultFile::create).transpose()?;
        let target = self.size.program(Target::built(&self.target, &self.flags)?, self.elf.as_deref())?;
        let (mut target, shape) = self.launch.on_core(target, &self.size)?;
        let interrupt = Interrupt::catch()?;
        target.end_at(&interrupt);
        let options = self.launch.options();
        let mut machine =
            Machine::new(&shape, target.program.clone(), &options).with_context(|| target.name.clone())?;
        let ledger = Ledger::new(&target.program, &shape, self.window.clone(), &interrupt);
        let recorder = Recorder::new(&target.program, shape.lanes, &interrupt);
        let mut watches = Watches::default();
        watches.add(Box::new(Progress::new(&shape, self.launch.limit.max_cycles, &interrupt)));
        watches.add(Box::new(ledger.clone()));
        watches.add(Box::new(recorder.clone()));
        machine.watch(Box::new(watches));
        let result = self.launch.drive(&mut machine, &target, self.launch.shape.seed);
        let (summary, printed) = (machine.summary(), machine.printed().text());
        machine.finish()?;
        let interrupted = result.as_ref().is_err_and(is_interruption);
        let error = result.err().map(|error| error.context(target.name.clone()));
        if summary.cycles == 0
            && let Some(error) = error
        {
            return Err(error);
        }

        let costs = ledger.costs()?;
        let lines = target.lines();
        let mut sources = Sources::of(&target, self.elf.as_deref());
        let mut report = make::report(&target, &shape, &lines, &costs, summary);
        report.command = command();
        report.seed = self.launch.shape.seed;
        report.predict = make::advice(&target.elf, &target.program, recorder.profile()?, &lines);
        match &error {
            Some(_) if interrupted => {
                report.notes.push("the run was interrupted: this is what it had cost by then".into())
            }
            Some(_) => report.notes.push("the run failed: this is what it had cost by then".into()),
            None => {}
        }
        report.error = error.as_ref().map(|error| format!("{error:#}"));
        if report.time.bins == 0 {
            report.notes.push("no cycle of the run is in --window".into());
        }
        report.notes.extend(make::notes(&target.name, &lines, &costs));
        report.notes.extend(sources.notes(&report));
        if let (Some(mut file), Some(path)) = (html, &self.html) {
            let page = page::page(&report, against.as_ref(), &mut sources)?;
            file.writer().write_all(page.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
            file.finish()?;
        }
        if self.json {
            print(&report.json()?)?
        } else {
            print(&(printed + &text::text(&report, against.as_ref())))?
        }
        error.map_or(Ok(()), Err)
    }
}

/// This command, as it can be typed.
fn command() -> String {
    let words: Vec<String> = std::env::args_os().skip(1).map(|word| quoted(&word.to_string_lossy())).collect();
    format!("heddle {}", words.join(" "))
}

/// The profile in a file.
fn read(path: &Path) -> Result<Report> {
    read_as(path, "`heddle profile --json` prints", Report::check)
}

/// Accounts for a run; clones account for the same.
#[derive(Clone)]
struct Ledger {
    account: Arc<Mutex<Option<Account>>>,
    launch: u32,
    interrupt: Interrupt,
}

impl Ledger {
    fn new(program: &Program, shape: &Shape, range: Range<u64>, interrupt: &Interrupt) -> Ledger {
        let account = Arc::new(Mutex::new(Some(Account::new(program, shape, range))));
        Ledger { account, launch: 0, interrupt: interrupt.clone() }
    }

    fn account(&self) -> MutexGuard<'_, Option<Account>> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was counted, once.
    fn costs(&self) -> Result<Costs> {
        Ok(self.account().take().context("the costs were taken before")?.costs())
    }
}

impl Watch for Ledger {
    fn issued(&mut self, line: TraceLine) {
        self.account().iter_mut().for_each(|account| account.issued(&line));
    }

    fn wants_trace(&self) -> bool {
        true
    }

    fn cycle(&mut self, cycle: &Cycle) {
        self.account().iter_mut().for_each(|account| account.cycle(cycle));
    }

    fn wants_cycles(&self) -> bool {
        true
    }

    fn progress(&mut self, progress: machine::Progress) -> ControlFlow<()> {
        if std::mem::replace(&mut self.launch, progress.launch) != progress.launch {
            self.account().iter_mut().for_each(Account::launched);
        }
        self.interrupt.poll()
    }
}
