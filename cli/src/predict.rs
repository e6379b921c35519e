//! `heddle predict`: convergence barriers placed in a linked program.

use crate::launch::Launch;
use crate::output::{ResultFile, print, print_json};
use crate::profile;
use crate::reconverge::{Found, picture};
use crate::study::draws::DrawsArgs;
use crate::target::{TARGET, Target};
use crate::tune::{Tuning, tune};
use anyhow::{Context, Result};
use clap::{Arg, Args, ValueEnum};
use heddle_testbench::Program;
use heddle_testbench::predict::{Automatic, Deconflict, Options, Placement, Prediction, Soft, predict};
use heddle_testbench::reconverge::{Analysis, analyse};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;

/// Place convergence barriers where a program's directives ask for them.
///
/// The program is linked with `--emit-relocs --no-relax`, as the built-in kernels are; HEDDLE_PREDICT,
/// HEDDLE_RECONVERGE and HEDDLE_PREDICT_FUNCTION of heddle.h say where threads are expected to come together. The file
/// that is written does the same on every core. docs/reference/predict.md says what is placed, and why.
#[derive(Args)]
#[command(
    mut_args(of_runs),
    mut_arg("draws", |arg| arg.default_value("3")),
    mut_arg("convergence_barriers", |arg| arg.help("Convergence barriers of a warp: 1 … 16 [default: 16]")),
    mut_arg("memory_model", |arg| arg.help("Memory behind the cache, with a jitter of 31 unless it says another [default: memory on the chip]")),
    mut_arg("seed", |arg| arg.help("Seed of random start values")),
    after_help = "Examples:
  heddle predict prog.elf -o faster.elf
  heddle predict prog.elf --explain --svg prog.svg
  heddle predict nqueens --pdom -o nqueens-pdom.elf
  heddle run mcb --lanes 32 --profile mcb.json && heddle predict mcb --auto --profile mcb.json --ignore-directives -o mcb.elf
  heddle predict prog.elf -o soft.elf --threshold 8
  heddle predict mcgpu -o tuned.elf --tune --lanes 32 --memory-model latency=200
  heddle predict md5search -o tuned.elf --tune --auto --ignore-directives --lanes 32
  heddle predict rsbench -o out.elf && heddle run rsbench --elf out.elf --convergence-barriers 16"
)]
pub struct Predict {
    /// A built-in kernel, an ELF file, a source, or a folder with a host description
    #[arg(value_name = TARGET)]
    target: String,
    /// The file to write
    #[arg(short, long, value_name = "OUT.elf", required_unless_present_any = ["explain", "json", "svg"])]
    out: Option<PathBuf>,
    /// Barriers at the post-dominators of all branches where threads may diverge, too
    #[arg(long)]
    pdom: bool,
    /// Look for loop merge and iteration delay where no directive stands, and place barriers where they should pay
    #[arg(long)]
    auto: bool,
    /// What runs did, as `heddle run --profile` writes it, in place of guesses
    #[arg(long, value_name = "FILE.json", requires = "auto")]
    profile: Option<PathBuf>,
    /// Place nothing that directives ask for: what a compiler does that knows none
    #[arg(long)]
    ignore_directives: bool,
    /// What becomes of such a barrier if it conflicts with one that was asked for
    #[arg(long, value_enum, default_value_t = How::Dynamic, value_name = "HOW", requires = "pdom")]
    deconflict: How,
    /// How thresholds are built
    #[arg(long, value_enum, default_value_t = Threshold::Wait, value_name = "HOW")]
    soft: Threshold,
    /// In place of the thresholds of all directives, 1 to 64
    #[arg(long, value_name = "THREADS")]
    threshold: Option<u32>,
    /// Run the program with each region left alone, with thresholds of 2, 4, 8 … threads, and waiting for all; place
    /// what takes the fewest cycles, or no region if none gains in every draw
    #[arg(long, conflicts_with = "threshold")]
    tune: bool,
    #[command(flatten)]
    draws: DrawsArgs,
    /// Print what was placed where, and why
    #[arg(long)]
    explain: bool,
    /// The same as JSON
    #[arg(long, conflicts_with = "explain")]
    json: bool,
    /// Draw the blocks of all functions with the live ranges of barriers
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    launch: Launch,
}

/// The options of a launch are for runs, but the number of barriers is of the pass, too.
fn of_runs(arg: Arg) -> Arg {
    let runs = DrawsArgs::augment_args(Launch::augment_args(clap::Command::new("")));
    let is = |other: &&Arg| other.get_id() == arg.get_id() && other.get_id() != "convergence_barriers";
    if runs.get_arguments().any(|other| is(&other)) { arg.requires("tune") } else { arg }
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum How {
    /// It is not placed
    Static,
    /// Threads leave it before they wait at the other
    Dynamic,
    /// They leave it so, and join it again behind that wait
    Rejoin,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Threshold {
    /// Into the wait
    Wait,
    /// Of three barriers and a count, as Figure 6 of the paper has it
    Count,
}

#[derive(Serialize)]
struct Report<'a> {
    program: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    tuning: Option<&'a Tuning>,
    inserted: usize,
    placements: &'a [Placement],
    notes: &'a [String],
}

impl Predict {
    pub fn run(self) -> Result<()> {
        let target = Target::find(&self.target)?;
        let elf = target.elf.clone();
        let profile = self.profile.as_deref().map(profile::read).transpose()?;
        let create = |path: &Option<PathBuf>| path.as_deref().map(ResultFile::create).transpose();
        let (out, svg) = (create(&self.out)?, create(&self.svg)?);
        let mut options = Options {
            barriers: self.launch.shape.convergence_barriers.unwrap_or(Options::default().barriers),
            directives: !self.ignore_directives,
            automatic: self.auto.then_some(Automatic { profile }),
            pdom: self.pdom,
            deconflict: match self.deconflict {
                How::Static => Deconflict::Static,
                How::Dynamic => Deconflict::Dynamic,
                How::Rejoin => Deconflict::Rejoin,
            },
            soft: match self.soft {
                Threshold::Wait => Soft::Wait,
                Threshold::Count => Soft::Count,
            },
            threshold: self.threshold,
            choices: BTreeMap::new(),
        };
        let tuning = self.tune.then(|| tune(target, &elf, &options, self.launch, self.draws)).transpose()?;
        if let Some(tuning) = &tuning {
            options.choices = tuning.choices();
        }
        let prediction = predict(&elf, &options).with_context(|| self.target.clone())?;
        if let (Some(mut file), Some(path)) = (svg, &self.svg) {
            let picture = picture::picture(&found(&elf, &prediction)?);
            file.writer().write_all(picture.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
            file.finish()?;
        }
        if let (Some(mut file), Some(path)) = (out, &self.out) {
            file.writer().write_all(&prediction.elf).with_context(|| format!("cannot write {}", path.display()))?;
            file.finish()?;
        }
        let Prediction { placements, notes, inserted, .. } = &prediction;
        if self.json {
            return print_json(&Report {
                program: &self.target,
                tuning: tuning.as_ref(),
                inserted: *inserted,
                placements,
                notes,
            });
        }
        let mut text = tuning.as_ref().map_or(String::new(), Tuning::text);
        if self.explain {
            placements.iter().for_each(|placement| text.push_str(&placement.text()));
        }
        notes.iter().for_each(|note| text.push_str(&format!("note: {note}\n")));
        let plural = |count: usize| if count == 1 { "" } else { "s" };
        let (barriers, instructions) = (placements.len(), *inserted);
        text.push_str(&format!(
            "{}: {barriers} barrier{}, {instructions} instruction{} inserted\n",
            self.target,
            plural(barriers),
            plural(instructions)
        ));
        print(&text)
    }
}

/// The graph of the input, with what is placed in each block and a bar for each barrier.
fn found(elf: &[u8], prediction: &Prediction) -> Result<Found> {
    let program = Program::parse(elf)?;
    let analysis = analyse(&program)?;
    let mut lines: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for Placement { numbers, instructions, .. } in &prediction.placements {
        for row in instructions {
            let to = row.to.map_or(String::new(), |to| format!(" -> {to:#x}"));
            let line = format!("{} b{} at {:#x}{to}", row.instruction, numbers[0], row.pc);
            for start in blocks_with(&analysis, row.pc) {
                lines.entry(start).or_default().push(line.clone());
            }
        }
    }
    let ranges = prediction.placements.iter().map(|placement| placement.live.iter().copied().collect()).collect();
    Ok(Found { program, analysis, lines, ranges })
}

/// The starts of the blocks that an instruction is in: functions may share code.
fn blocks_with(analysis: &Analysis, pc: u32) -> Vec<u32> {
    let blocks = analysis.functions.iter().flat_map(|function| &function.blocks);
    let mut starts: Vec<u32> = blocks.filter(|block| (block.start..block.end).contains(&pc)).map(|b| b.start).collect();
    starts.sort_unstable();
    starts.dedup();
    starts
}
