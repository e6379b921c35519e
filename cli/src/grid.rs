//! The options for the grid of a launch.

use crate::target::Target;
use anyhow::{Context, Result, bail};
use clap::Args;
use heddle_simt::Shape;
use heddle_testbench::grid::Grid;

#[derive(Args)]
pub struct GridArgs {
    /// Blocks that an ELF file is launched with [default: 1]
    #[arg(long, value_name = "N")]
    blocks: Option<u32>,
    /// Threads of a block [default: all threads of the core]
    #[arg(long, value_name = "N")]
    block_threads: Option<u32>,
}

impl GridArgs {
    /// The grid asked for, if there is one; refused if the core cannot run it.
    pub fn grid(&self, target: &Target, shape: &Shape) -> Result<Option<Grid>> {
        if self.blocks.is_none() && self.block_threads.is_none() {
            return Ok(None);
        }
        if let Some(kernel) = target.kernel {
            bail!("--blocks and --block-threads are for ELF files: the grid of {} is its driver's", kernel.name);
        }
        let threads = self.block_threads.unwrap_or(shape.threads());
        let grid = Grid { blocks: self.blocks.unwrap_or(1), threads };
        grid.check(shape, target.program.scratchpad()).with_context(|| target.name.clone())?;
        Ok(Some(grid))
    }
}
