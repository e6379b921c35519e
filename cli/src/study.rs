//! `heddle study`: experiments on the core, a file each, and what they share.

mod chart;
mod compaction;
mod core;
pub mod draws;
mod dual_path;
mod kernels;
mod page;
pub mod runs;
mod simtight;
mod speculative;
mod stacked;
pub mod table;

use anyhow::Result;
use clap::{Args, Subcommand};

/// Run experiments on the core.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle study simtight
  heddle study dual-path
  heddle study compaction
  heddle study speculative
  heddle study simtight vecadd gcd --warps 8 --json")]
pub struct Study {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Simtight(simtight::Simtight),
    DualPath(dual_path::DualPath),
    Compaction(compaction::Compaction),
    Speculative(speculative::Speculative),
}

impl Study {
    pub fn run(self) -> Result<()> {
        match self.what {
            What::Simtight(study) => study.run(),
            What::DualPath(study) => study.run(),
            What::Compaction(study) => study.run(),
            What::Speculative(study) => study.run(),
        }
    }
}
