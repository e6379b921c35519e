//! `heddle study blocks`: what it costs that the warps of a block wait for each other, by the size of blocks.

use super::age;
use super::draws::{self, DrawsArgs, Gain};
use super::kept::KeptArgs;
use super::kernels::chosen;
use super::page;
use super::runs::{Run, usual};
use super::table::{markdown, plain, share};
use crate::interrupt::Interrupt;
use crate::output::{print, print_json};
use crate::shape::ShapeArgs;
use anyhow::{Error, Result, bail};
use clap::Args;
use heddle_simt::{Compaction, Divergence, Replay, Shape};
use heddle_testbench::Program;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{Device, DeviceError, Kernel};
use heddle_testbench::machine::Summary;
use serde::Serialize;
use std::path::PathBuf;
use std::sync::Arc;

/// Kernels on the block stack and on a stack per warp, with the threads of the core as one block, as two, as four and so
/// on down to a warp a block; nothing else differs.
///
/// Compaction needs large blocks, and waiting needs other blocks to run meanwhile: this is what one costs the other.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle study blocks                                   six kernels on 8 lanes and 8 warps
  heddle study blocks collatz --warps 32 --draws 1      one of them, on a core with more warps
  heddle study blocks --json | jq '.rows[] | {kernel, block_threads, variant, gain}'
  heddle study blocks --docs docs                       tables as a page",
    mut_arg("divergence", |arg| arg.hide(true)),
    mut_arg("compaction", |arg| arg.hide(true)),
    mut_arg("replay", |arg| arg.hide(true)),
)]
pub struct Blocks {
    /// Some of the kernels
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    draws: DrawsArgs,
    #[command(flatten)]
    kept: KeptArgs,
    /// Print one JSON object with an array `rows` instead of tables
    #[arg(long)]
    json: bool,
    /// Write studies/blocks.md into this folder, too
    #[arg(long, value_name = "DIR", conflicts_with = "kernels")]
    docs: Option<PathBuf>,
}

const STUDY: &str = "blocks";

/// Kernels without barriers, launched as one block of all threads.
const KERNELS: [&str; 6] = ["collatz", "gcd", "mandelbrot", "nqueens", "photon", "search"];

/// A stack per warp first, which others are compared with: its warps never wait for each other.
const VARIANTS: [(&str, Option<Compaction>); 4] = [
    ("stack", None),
    ("block stack, off", Some(Compaction::Off)),
    ("block stack", Some(Compaction::SkipUniform)),
    ("block stack, predict", Some(Compaction::Predict)),
];

#[derive(Serialize)]
struct Report {
    study: &'static str,
    lanes: u32,
    warps: u32,
    /// The options of the core with a stack per warp.
    core: String,
    draws: u32,
    /// By kernel, size of blocks and variant.
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    kernel: &'static str,
    block_threads: u32,
    variant: &'static str,
    /// Arithmetic means over the draws.
    thread_ipc: f64,
    simt_efficiency: f64,
    /// The share of cycles without an issue because the divergence unit holds warps back.
    idle_divergence: f64,
    /// Thread IPC over the stack's with blocks of the same size: mean, least, greatest of the draws.
    gain: [f64; 3],
}

impl Row {
    fn new(kernel: &'static str, block_threads: u32, variant: &'static str, draws: [&[Summary]; 2]) -> Row {
        let [stack, own] = draws;
        let Gain { mean, least, greatest } = Gain::paired(&draws::ipc(stack), &draws::ipc(own));
        Row {
            kernel,
            block_threads,
            variant,
            thread_ipc: draws::average(own, |s| s.thread_ipc),
            simt_efficiency: draws::average(own, |s| s.simt_efficiency),
            idle_divergence: draws::average(own, |s| s.idle.divergence as f64 / s.cycles as f64),
            gain: [mean, least, greatest],
        }
    }
}

impl Blocks {
    pub fn run(self) -> Result<()> {
        self.docs.as_deref().map(|folder| page::check(folder, STUDY, &[])).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let (kernels, shapes, runs) = (self.kernels()?, self.shapes()?, self.runs()?);
        let results = draws::all_as(&runs, self.draws, &usual(self.shape.seed), kept.as_ref(), &interrupt)?;
        let (stack, sizes) = (&shapes[0], sizes(&shapes[0]));
        let mut rows = Vec::new();
        for (k, kernel) in kernels.iter().enumerate() {
            for (n, &threads) in sizes.iter().enumerate() {
                let drawn = |variant: usize| &results[(variant * kernels.len() + k) * sizes.len() + n][..];
                for (v, (name, _)) in VARIANTS.iter().enumerate() {
                    rows.push(Row::new(kernel.name, threads, name, [drawn(0), drawn(v)]));
                }
            }
        }
        let (lanes, warps, core) = (stack.lanes, stack.warps, stack.options());
        let report = Report { study: STUDY, lanes, warps, core, draws: self.draws.draws, rows };
        if let Some(folder) = &self.docs {
            let page = age::of_now(folder, &text(&report), &runs, &interrupt)?;
            page::write(folder, STUDY, &page, &[])?;
        }
        if self.json { print_json(&report) } else { print(&tables(&report)) }
    }

    /// By variant, kernel and size of blocks: a machine runs all kernels before the next is built.
    pub fn runs(&self) -> Result<Vec<Run>> {
        let kernels = self.kernels()?;
        let mut runs = Vec::new();
        for shape in self.shapes()? {
            for kernel in &kernels {
                Program::parse(kernel.elf)?.check(&shape)?;
                runs.extend(sizes(&shape).into_iter().map(|threads| in_blocks(kernel, &shape, threads)));
            }
        }
        Ok(runs)
    }

    fn kernels(&self) -> Result<Vec<&'static Kernel>> {
        Ok(chosen(&self.kernels, &KERNELS)?.into_iter().map(|(_, kernel)| kernel).collect())
    }

    /// The core of each variant.
    fn shapes(&self) -> Result<Vec<Shape>> {
        let of = |(_, compaction): (_, Option<Compaction>)| {
            let (divergence, compaction) = match compaction {
                None => (Divergence::STACK, self.shape.compaction),
                Some(compaction) => (Divergence::BLOCK_STACK, Some(compaction)),
            };
            let replay = Some(Replay::Serialise);
            ShapeArgs { divergence, compaction, replay, ..self.shape.clone() }.shape()
        };
        let shapes = VARIANTS.into_iter().map(of).collect::<Result<Vec<Shape>>>()?;
        if shapes[0].warps == 1 {
            bail!("a core of one warp has no blocks of several: 2 warps or more are needed");
        }
        Ok(shapes)
    }
}

/// Threads of a block: all of the core, half of them, down to a warp's.
fn sizes(shape: &Shape) -> Vec<u32> {
    (0..=shape.warps.ilog2()).map(|halved| shape.threads() >> halved).collect()
}

fn in_blocks(kernel: &'static Kernel, shape: &Shape, threads: u32) -> Run {
    let drive = move |device: &mut dyn Device, seed| {
        (kernel.drive)(&mut InBlocks { device, threads }, seed).map(drop).map_err(Error::from)
    };
    let run = Run::of(kernel.name.into(), kernel.elf.into(), shape.clone(), Arc::new(drive));
    // What is kept of a run is found by it.
    Run { block_threads: Some(threads), ..run }
}

/// A launch of one block of all threads is one of several: all of them are resident together, so they are the threads
/// that they were.
struct InBlocks<'a> {
    device: &'a mut dyn Device,
    threads: u32,
}

impl Device for InBlocks<'_> {
    fn program(&self) -> &Program {
        self.device.program()
    }

    fn shape(&self) -> &Shape {
        self.device.shape()
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(address, bytes)
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        self.device.read(address, length)
    }

    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        let all = self.shape().threads();
        let split = Grid { blocks: all / self.threads, threads: self.threads };
        self.device.launch_grid(if grid == Grid::one_block(all) { split } else { grid })
    }

    fn preferred_threads(&self, wanted: u32) -> u32 {
        self.device.preferred_threads(wanted)
    }
}

/// A line for each kernel and size of blocks.
fn table(report: &Report) -> Vec<Vec<String>> {
    let heads = VARIANTS[1..].iter().map(|(name, _)| format!("{name}: over the stack"));
    let waits = VARIANTS[1..].iter().map(|(name, _)| format!("{name}: waits"));
    let first = ["kernel", "threads of a block", "blocks", "stack: thread IPC"].map(String::from);
    let mut lines = vec![first.into_iter().chain(heads).chain(waits).collect::<Vec<_>>()];
    for rows in report.rows.chunks(VARIANTS.len()) {
        let (of, threads) = (&rows[0], report.lanes * report.warps);
        let gain = |row: &Row| {
            let [mean, least, greatest] = row.gain;
            let gain = Gain { mean, least, greatest };
            if greatest - least < 5e-4 {
                super::table::gain(mean)
            } else {
                format!("{} ({})", gain.text(), gain.range())
            }
        };
        let mut line = vec![of.kernel.to_string(), of.block_threads.to_string()];
        line.extend([(threads / of.block_threads).to_string(), format!("{:.2}", of.thread_ipc)]);
        line.extend(rows[1..].iter().map(gain));
        line.extend(rows[1..].iter().map(|row| share(row.idle_divergence)));
        lines.push(line);
    }
    lines
}

/// What the largest and the smallest blocks cost without compaction: the price of waiting alone.
fn price(report: &Report) -> String {
    let of = |kernel: &str, threads: u32| {
        let is_it = |row: &&Row| row.kernel == kernel && row.block_threads == threads && row.variant == VARIANTS[1].0;
        report.rows.iter().find(is_it).expect("every kernel runs in blocks of every size")
    };
    let mut kernels: Vec<&str> = report.rows.iter().map(|row| row.kernel).collect();
    kernels.dedup();
    let line = |kernel: &&str| {
        let [large, small] = [report.lanes * report.warps, report.lanes].map(|threads| of(kernel, threads));
        format!(
            "* `{kernel}`: {} of cycles are waited with one block, {} with a warp a block; thread IPC is {} and {} over \
             the stack's.\n",
            share(large.idle_divergence),
            share(small.idle_divergence),
            super::table::gain(large.gain[0]),
            super::table::gain(small.gain[0]),
        )
    };
    kernels.iter().map(line).collect()
}

fn tables(report: &Report) -> String {
    format!("{}\n{}\nwaiting alone, without compaction\n{}", report.core, plain(&table(report), 1), price(report))
}

fn text(report: &Report) -> String {
    include_str!("blocks/page.md")
        .replace("{core}", &format!("{} lanes × {} warps", report.lanes, report.warps))
        .replace("{options}", &report.core)
        .replace("{draws}", &report.draws.to_string())
        .replace("{price}", price(report).trim_end())
        .replace("{table}", markdown(&table(report)).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, FromArgMatches, Parser};

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        blocks: Blocks,
    }

    fn study(line: &str) -> Blocks {
        let matches = Line::command().no_binary_name(true).get_matches_from(line.split_whitespace());
        Line::from_arg_matches(&matches).unwrap().blocks
    }

    #[test]
    fn blocks_are_halved_down_to_a_warp_and_nothing_else_differs() {
        let runs = study("collatz --lanes 4 --warps 4").runs().unwrap();
        let sizes: Vec<u32> = runs.iter().map(|run| run.block_threads.unwrap()).collect();
        assert_eq!(sizes, [16, 8, 4].repeat(VARIANTS.len()));
        assert!(runs.iter().all(|run| (run.shape.lanes, run.shape.warps) == (4, 4)));
        let error = study("--lanes 4 --warps 1").runs().err().unwrap().to_string();
        assert_eq!(error, "a core of one warp has no blocks of several: 2 warps or more are needed");
    }

    #[test]
    fn the_page_has_each_kernel_in_blocks_of_each_size() {
        let draws = |thread_ipc, divergence| {
            let mut summary = Summary { thread_ipc, cycles: 100, ..Summary::default() };
            summary.idle.divergence = divergence;
            vec![summary; 2]
        };
        let mut rows = Vec::new();
        for threads in [16, 8, 4] {
            for (k, (name, _)) in VARIANTS.into_iter().enumerate() {
                let own = draws(if k == 0 { 4.0 } else { 2.0 }, u64::from(threads) * u64::from(k > 0));
                rows.push(Row::new("gcd", threads, name, [&draws(4.0, 0), &own]));
            }
        }
        let report = Report { study: STUDY, lanes: 4, warps: 4, core: "--lanes 4".into(), draws: 2, rows };
        let table = table(&report);
        assert_eq!(table[1][..7], ["gcd", "16", "1", "4.00", "-50.0 %", "-50.0 %", "-50.0 %"]);
        assert_eq!((table.len(), table[3][1..3].join(" "), table[3][7].as_str()), (4, "4 4".into(), "4.0 %"));
        let page = text(&report);
        assert!(
            page.contains("`gcd`: 16.0 % of cycles are waited with one block, 4.0 % with a warp a block"),
            "{page}"
        );
        assert!(!page.contains(['{', '}']), "{page}");
    }
}
