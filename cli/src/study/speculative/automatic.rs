//! Automatic detection of regions, on kernels of all kinds: in the graph alone, and with what a run did. (Figure 10)

use super::super::runs::{Run, profiles};
use super::variants::{self, PATH_TABLE};
use super::{Comparison, Studied};
use crate::interrupt::Interrupt;
use crate::study::draws::Draw;
use anyhow::{Context, Result};
use heddle_simt::Shape;
use heddle_testbench::kernels::{ALL, Kernel};

/// Inputs and times of memory of the runs that are profiled, which no draw has.
const PROFILED: Draw = Draw { inputs: 1_000_001, memory: 1_000_001 };

/// All that the core can run.
pub fn kernels(shape: &Shape) -> Vec<&'static Kernel> {
    ALL.iter().filter(|kernel| kernel.suits(shape)).collect()
}

/// Each kernel on path tables, without barriers and with those that are found without a profile.
pub fn in_the_graph(kernels: &[&'static Kernel], shape: &Shape, barriers: u32) -> Result<Vec<Comparison>> {
    let shape = PATH_TABLE.shape(shape)?;
    let comparison = |&kernel: &&'static Kernel| {
        let studied = Studied { name: kernel.name, paper: "", thresholds: &[] };
        let variants = variants::in_the_graph(barriers);
        Comparison::new(studied, kernel, &PATH_TABLE, &shape, variants).context(kernel.name)
    };
    kernels.iter().map(comparison).collect()
}

/// Each kernel on path tables, without and with barriers. Runs all to profile them.
pub fn comparisons(
    kernels: &[&'static Kernel],
    shape: &Shape,
    barriers: u32,
    seed: u64,
    interrupt: &Interrupt,
) -> Result<Vec<Comparison>> {
    let shape = PATH_TABLE.shape(shape)?;
    let profiled = |&kernel: &&'static Kernel| Run { draw: Some(PROFILED), ..Run::new(kernel, shape.clone()) };
    let runs: Vec<Run> = kernels.iter().map(profiled).collect();
    let profiles = profiles(&runs, seed, interrupt)?;
    let comparison = |(&kernel, profile): (&&'static Kernel, _)| {
        let studied = Studied { name: kernel.name, paper: "", thresholds: &[] };
        let variants = variants::automatic(barriers, profile);
        Comparison::new(studied, kernel, &PATH_TABLE, &shape, variants).context(kernel.name)
    };
    kernels.iter().zip(profiles).map(comparison).collect()
}
