//! `heddle study blocks`: what it costs that the warps of a block wait for each other, by the size of blocks.

use super::age;
use super::draws::{self, Compared, DrawsArgs, Gain, Subject, mean};
use super::kept::KeptArgs;
use super::kernels::chosen;
use super::page;
use super::runs::{OtherBlocks, Run, usual};
use super::table::{gain, markdown, plain, share};
use super::told;
use crate::interrupt::Interrupt;
use crate::shape::ShapeArgs;
use anyhow::{Result, bail};
use clap::Args;
use heddle_simt::{Compaction, Divergence, Replay, Shape};
use heddle_testbench::Program;
use heddle_testbench::kernels::{Device, Kernel};
use heddle_testbench::machine::{CacheVisits, Summary};
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
    /// Write studies/blocks.md into this folder, too, of the usual core
    #[arg(long, value_name = "DIR", conflicts_with_all = ["kernels"])]
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
    #[serde(flatten)]
    of: Subject,
    /// With the stack, and blocks of the same size.
    #[serde(flatten)]
    compared: Compared,
    block_threads: u32,
    /// Arithmetic means over the draws.
    simt_efficiency: f64,
    /// Of all cycles, those without an issue in which warps wait in the divergence unit, whatever others wait for.
    idle_beside_unit: f64,
    /// Thread IPC over the stack's, if each of them that the stack has not had were a cycle more.
    explained: f64,
    /// What the data cache did in all draws, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    cache: Option<CacheVisits>,
}

fn beside_unit(s: &Summary) -> f64 {
    s.idle_beside_unit.expect("a simulation counts it") as f64
}

impl Row {
    fn new(of: Subject, block_threads: u32, [stack, own]: [&[Summary]; 2]) -> Row {
        Row {
            of,
            compared: Compared::new(&draws::ipc(stack), &draws::ipc(own)),
            block_threads,
            simt_efficiency: draws::average(own, |s| s.simt_efficiency),
            idle_beside_unit: draws::average(own, |s| beside_unit(s) / s.cycles as f64),
            explained: mean(stack.iter().zip(own).map(|(stack, own)| {
                let cycles = stack.cycles as f64;
                cycles / (cycles + beside_unit(own) - beside_unit(stack))
            })),
            cache: draws::counted(own, |s| s.cache),
        }
    }

    fn kernel(&self) -> &'static str {
        self.of.kernel.expect("a row is of one")
    }

    fn gain(&self) -> Gain {
        self.compared.gain().expect("the stack has run")
    }
}

/// Of a kernel on a variant.
fn of(kernel: &'static str, (variant, compaction): (&str, Option<Compaction>)) -> Subject {
    let divergence = if compaction.is_some() { Divergence::BLOCK_STACK } else { Divergence::STACK };
    Subject { study: STUDY, kernel: Some(kernel), set: None, variant: variant.into(), divergence: divergence.name() }
}

impl Blocks {
    pub fn run(self) -> Result<()> {
        self.docs.as_deref().map(|folder| page::check(folder, self.shape.given(), STUDY, &[])).transpose()?;
        let kept = self.kept.open()?;
        let interrupt = Interrupt::catch()?;
        let (kernels, shapes, runs) = (self.kernels()?, self.shapes()?, self.runs()?);
        let results = draws::all_as(&runs, self.draws, &usual(self.shape.seed), kept.as_ref(), &interrupt)?;
        let (stack, sizes) = (&shapes[0], sizes(&shapes[0]));
        let mut rows = Vec::new();
        for (k, kernel) in kernels.iter().enumerate() {
            for (n, &threads) in sizes.iter().enumerate() {
                let drawn = |variant: usize| &results[(variant * kernels.len() + k) * sizes.len() + n][..];
                for (v, variant) in VARIANTS.into_iter().enumerate() {
                    rows.push(Row::new(of(kernel.name, variant), threads, [drawn(0), drawn(v)]));
                }
            }
        }
        let (lanes, warps, core) = (stack.lanes, stack.warps, stack.options());
        let report = Report { study: STUDY, lanes, warps, core, draws: self.draws.draws, rows };
        if let Some(folder) = &self.docs {
            let page = age::of_now(folder, &text(&report), &runs, &interrupt)?;
            page::write(folder, STUDY, &page, &[])?;
        }
        told(self.json, &report, tables)
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
    let run = Run::new(kernel, shape.clone());
    let drive = run.drive.clone();
    let split = move |device: &mut dyn Device, seed| drive(&mut OtherBlocks { device, threads, also_one: true }, seed);
    let name = format!("{} in blocks of {threads}", kernel.name);
    Run { name, drive: Arc::new(split), block_threads: Some(threads), ..run }
}

/// A line for each kernel and size of blocks.
fn table(report: &Report) -> Vec<Vec<String>> {
    let heads = VARIANTS[1..].iter().map(|(name, _)| format!("{name}: over the stack"));
    let beside = VARIANTS[1..].iter().map(|(name, _)| format!("{name}: beside the unit"));
    let first = ["kernel", "threads of a block", "blocks", "stack: thread IPC"].map(String::from);
    let mut lines = vec![first.into_iter().chain(heads).chain(beside).collect::<Vec<_>>()];
    for rows in report.rows.chunks(VARIANTS.len()) {
        let (of, threads) = (&rows[0], report.lanes * report.warps);
        let mut line = vec![of.kernel().to_string(), of.block_threads.to_string()];
        line.extend([(threads / of.block_threads).to_string(), format!("{:.2}", of.compared.thread_ipc)]);
        line.extend(rows[1..].iter().map(|row| row.gain().with_range()));
        line.extend(rows[1..].iter().map(|row| share(row.idle_beside_unit)));
        lines.push(line);
    }
    lines
}

/// What the largest and the smallest blocks cost without compaction: waiting and the unit, and the unit alone.
fn price(report: &Report) -> String {
    let of = |kernel: &str, threads: u32| {
        let is_it =
            |row: &&Row| row.kernel() == kernel && row.block_threads == threads && row.of.variant == VARIANTS[1].0;
        report.rows.iter().find(is_it).expect("every kernel runs in blocks of every size")
    };
    let mut kernels: Vec<&str> = report.rows.iter().map(Row::kernel).collect();
    kernels.dedup();
    let line = |kernel: &&str| {
        let [large, small] = [report.lanes * report.warps, report.lanes].map(|threads| of(kernel, threads));
        format!(
            "* `{kernel}`: {} of cycles are idle beside the unit with one block, {} with a warp a block; thread IPC is {} \
             and {} over the stack's, and would be {} and {} by those cycles alone.\n",
            share(large.idle_beside_unit),
            share(small.idle_beside_unit),
            gain(large.gain().mean),
            gain(small.gain().mean),
            gain(large.explained),
            gain(small.explained),
        )
    };
    kernels.iter().map(line).collect()
}

/// Whether less is lost with smaller blocks, without compaction.
fn falls(report: &Report) -> String {
    let mut loses_more: Vec<&str> = Vec::new();
    let off: Vec<&Row> = report.rows.iter().filter(|row| row.of.variant == VARIANTS[1].0).collect();
    for [large, small] in off.array_windows() {
        let same_kernel = large.kernel() == small.kernel();
        if same_kernel && small.gain().mean <= large.gain().mean && !loses_more.contains(&large.kernel()) {
            loses_more.push(large.kernel());
        }
    }
    match loses_more[..] {
        [] => "It does, with each halving, on every kernel.".into(),
        _ => format!("It does not with each halving on {}.", loses_more.join(", ")),
    }
}

/// How far cycles idle beside the unit are from what is lost, without compaction.
fn explains(report: &Report) -> String {
    let off = report.rows.iter().filter(|row| row.of.variant == VARIANTS[1].0);
    let misses = |row: &Row| 100.0 * (row.explained - row.gain().mean).abs();
    let worst = off.max_by(|a, b| misses(a).total_cmp(&misses(b))).expect("there are kernels");
    format!(
        "thread IPC is off by {:.1} points of a hundred at most, on `{}` in blocks of {} threads, which do {}",
        misses(worst),
        worst.kernel(),
        worst.block_threads,
        gain(worst.gain().mean)
    )
}

fn tables(report: &Report) -> String {
    format!("{}\n{}\nwithout compaction\n{}", report.core, plain(&table(report), 1), price(report))
}

fn text(report: &Report) -> String {
    include_str!("blocks/page.md")
        .replace("{core}", &format!("{} lanes × {} warps", report.lanes, report.warps))
        .replace("{options}", &report.core)
        .replace("{draws}", &report.draws.to_string())
        .replace("{falls}", &falls(report))
        .replace("{explains}", &explains(report))
        .replace("{price}", price(report).trim_end())
        .replace("{table}", markdown(&table(report)).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{CommandFactory, FromArgMatches, Parser};
    use heddle_testbench::grid::Grid;
    use heddle_testbench::kernels::DeviceError;

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

    /// A device that notes what is launched, and cannot run it.
    struct Notes {
        program: Program,
        shape: Shape,
        grids: Vec<Grid>,
    }

    impl Device for Notes {
        fn program(&self) -> &Program {
            &self.program
        }

        fn shape(&self) -> &Shape {
            &self.shape
        }

        fn write(&mut self, _: u32, _: &[u8]) -> Result<(), DeviceError> {
            Ok(())
        }

        fn read(&mut self, _: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
            Ok(vec![0; length])
        }

        fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
            self.grids.push(grid);
            Err("noted".into())
        }
    }

    #[test]
    fn every_kernel_is_launched_in_blocks_of_the_size() {
        for kernel in study("").kernels().unwrap() {
            let shape = Shape::new(8, 8);
            let mut notes =
                Notes { program: Program::parse(kernel.elf).unwrap(), shape: shape.clone(), grids: Vec::new() };
            let run = in_blocks(kernel, &shape, 16);
            (run.drive)(&mut notes, 1).unwrap_err();
            assert_eq!(notes.grids, [Grid { blocks: 4, threads: 16 }], "{}", kernel.name);
        }
    }

    #[test]
    fn the_page_has_each_kernel_in_blocks_of_each_size() {
        let draws = |thread_ipc, divergence| {
            let mut summary = Summary { thread_ipc, cycles: 100, ..Summary::default() };
            summary.idle_beside_unit = Some(divergence);
            vec![summary; 2]
        };
        let report = |ipcs: [f64; 3]| {
            let mut rows = Vec::new();
            for (threads, ipc) in [16, 8, 4].into_iter().zip(ipcs) {
                for (k, variant) in VARIANTS.into_iter().enumerate() {
                    let own = draws(if k == 0 { 4.0 } else { ipc }, u64::from(threads) * u64::from(k > 0));
                    rows.push(Row::new(of("gcd", variant), threads, [&draws(4.0, 0), &own]));
                }
            }
            Report { study: STUDY, lanes: 4, warps: 4, core: "--lanes 4".into(), draws: 2, rows }
        };
        assert_eq!(falls(&report([2.0, 3.0, 3.0])), "It does not with each halving on gcd.");
        let report = report([2.0, 2.5, 3.0]);
        let table = table(&report);
        assert_eq!(table[1][..7], ["gcd", "16", "1", "4.00", "-50.0 %", "-50.0 %", "-50.0 %"]);
        assert_eq!((table.len(), table[3][1..3].join(" "), table[3][7].as_str()), (4, "4 4".into(), "4.0 %"));
        let page = text(&report);
        assert!(
            page.contains("`gcd`: 16.0 % of cycles are idle beside the unit with one block, 4.0 % with a warp a block"),
            "{page}"
        );
        assert!(
            page.contains(
                "thread IPC is off by 36.2 points of a hundred at most, on `gcd` in blocks of 16 threads, which do -50.0 %."
            ),
            "{page}"
        );
        assert!(page.contains("It does, with each halving") && !page.contains(['{', '}']), "{page}");
    }
}
