//! `heddle study`: experiments on the core, a file each, and what they share.

pub mod age;
pub mod area;
mod blocks;
mod chart;
mod compaction;
mod core;
pub mod draws;
mod dual_path;
mod fit;
mod kept;
mod kernels;
mod locks;
mod mechanisms;
mod order;
mod page;
pub mod per_area;
pub mod runs;
mod simtight;
mod speculative;
mod stacked;
pub mod table;
mod warp;
mod workloads;

use crate::bench::now;
use crate::output::{print, print_json};
use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use runs::Run;
use rustix::time::ClockId;
use serde::Serialize;
use std::path::PathBuf;

/// A study's report, and what it took.
#[derive(Serialize)]
struct Told<'a, R> {
    #[serde(flatten)]
    report: &'a R,
    /// Of this process, all its threads: neither what was kept before is in it, nor the C compiler.
    processor_seconds: f64,
}

/// Prints what a study found, as JSON or as text.
fn told<R: Serialize>(json: bool, report: &R, text: impl Fn(&R) -> String) -> Result<()> {
    if json {
        let processor_seconds = now(ClockId::ProcessCPUTime).as_secs_f64();
        print_json(&Told { report, processor_seconds })
    } else {
        print(&text(report))
    }
}

/// Run experiments on the core.
///
/// Rows of --json have keys that studies share: `study`, `kernel` or, of several, `set`, `variant`, `divergence` and
/// `thread_ipc`; `gain` over what the study compares with, where there is such a thing; `range`, `gain_range` and `draws`,
/// which a run without draws has not. A program that stops the core has `failed` in place of figures. What else a row has
/// is the study's own. Beside the rows is `processor_seconds`, what the command took. Rows of `area` are of cores.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle study mechanisms
  heddle study simtight
  heddle study dual-path
  heddle study compaction
  heddle study speculative
  heddle study order gcd sort --draws 1
  heddle study locks
  heddle study warp
  heddle study area --docs docs --limit 60
  heddle study per-area
  heddle study blocks collatz
  heddle study simtight vecadd gcd --warps 8 --json
  heddle study mechanisms gcd --draws 2 --json | jq -c '.rows[] | [.study, .kernel, .variant, .thread_ipc, .gain_range]'")]
pub struct Study {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Mechanisms(mechanisms::Mechanisms),
    Simtight(simtight::Simtight),
    DualPath(dual_path::DualPath),
    Compaction(compaction::Compaction),
    Speculative(speculative::Speculative),
    Order(order::Orders),
    Locks(locks::Locks),
    Warp(warp::Warp),
    Area(area::Area),
    PerArea(per_area::PerArea),
    Blocks(blocks::Blocks),
}

impl Study {
    pub fn run(self) -> Result<()> {
        match self.what {
            What::Mechanisms(study) => study.run(),
            What::Simtight(study) => study.run(),
            What::DualPath(study) => study.run(),
            What::Compaction(study) => study.run(),
            What::Speculative(study) => study.run(),
            What::Order(study) => study.run(),
            What::Locks(study) => study.run(),
            What::Warp(study) => study.run(),
            What::Area(study) => study.run(),
            What::PerArea(study) => study.run(),
            What::Blocks(study) => study.run(),
        }
    }

    /// Files that figures come from, too.
    pub fn files(&self) -> Vec<PathBuf> {
        match &self.what {
            What::PerArea(study) => vec![study.area_file()],
            _ => Vec::new(),
        }
    }

    /// What its figures come from.
    pub fn runs(&self) -> Result<Vec<Run>> {
        match &self.what {
            What::Mechanisms(study) => study.runs(),
            What::Simtight(study) => study.runs(),
            What::DualPath(study) => study.runs(),
            What::Compaction(study) => study.runs(),
            What::Speculative(study) => study.runs(),
            What::Order(study) => study.runs(),
            What::Locks(study) => study.runs(),
            What::Warp(study) => study.runs(),
            What::PerArea(study) => study.runs(),
            What::Blocks(study) => study.runs(),
            What::Area(_) => bail!("its page is of cores, not of runs"),
        }
    }
}
