//! The options for the grid of a launch.

use crate::target::Target;
use anyhow::{Context, Result, bail};
use clap::Args;
use heddle_simt::Shape;
use heddle_testbench::described::GridSpec;
use heddle_testbench::grid::Grid;

#[derive(Args)]
pub struct GridArgs {
    /// Blocks that a program of one's own is launched with [default: 1, or what its host description says]
    #[arg(long, value_name = "N")]
    blocks: Option<u32>,
    /// Threads of a block [default: all threads of the core, or what its host description says]
    #[arg(long, value_name = "N")]
    block_threads: Option<u32>,
}

impl GridArgs {
    /// Whether any of it is asked for.
    pub fn is_given(&self) -> bool {
        self.blocks.is_some() || self.block_threads.is_some()
    }

    /// The target with the grid asked for, if there is one; refused if the core cannot run it.
    pub fn of(&self, mut target: Target, shape: &Shape) -> Result<Target> {
        if let Some(described) = &mut target.described {
            let GridSpec { blocks, block_threads, items } = described.driver.grid();
            let items = items.filter(|_| self.blocks.is_none());
            let spec =
                GridSpec { blocks: self.blocks.or(blocks), block_threads: self.block_threads.or(block_threads), items };
            // A driver chooses the size of blocks by the device, if it may.
            if spec.block_threads.is_some() || spec.items.is_none() {
                let grid = spec.on(shape.threads(), |wanted| wanted);
                grid.check(shape, target.program.scratchpad()).with_context(|| target.name.clone())?;
            }
            described.driver.set_grid(spec);
            return Ok(target);
        }
        if self.blocks.is_none() && self.block_threads.is_none() {
            return Ok(target);
        }
        if let Some(kernel) = target.kernel {
            bail!("--blocks and --block-threads are for ELF files: the grid of {} is its driver's", kernel.name);
        }
        let threads = self.block_threads.unwrap_or(shape.threads());
        let grid = Grid { blocks: self.blocks.unwrap_or(1), threads };
        grid.check(shape, target.program.scratchpad()).with_context(|| target.name.clone())?;
        target.grid = Some(grid);
        Ok(target)
    }
}
