//! `heddle bench check`: what `heddle run --check iss` costs.

use super::runner::{Launches, processor_time};
use crate::output::{print, print_json};
use crate::report::si;
use crate::shape::ShapeArgs;
use crate::target::Target;
use anyhow::{Context, Result, bail};
use clap::Args;
use heddle_check::{commit, compaction};
use heddle_simt::Shape;
use heddle_testbench::kernels::{self, Device};
use heddle_testbench::machine::{Machine, MachineOptions, design};
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Duration;

/// Cycles per second of a core with and without a comparison with the instruction-set simulator, in one run.
///
/// Both machines run each program in turn, for several rounds of which the best counts. What is measured is processor
/// time of launches from their first cycle to their last comparison, without compiling and without the host's work on
/// inputs and results.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle bench check                                    every kernel that ends on every core, on 8 lanes and 8 warps
  heddle bench check nqueens sort --divergence stack    two kernels on another mechanism
  heddle bench check gcd --lanes 32 --json | jq '.[].ratio'")]
pub struct Check {
    /// Built-in kernels [default: all that end on every core]
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Print an array of objects instead of a table
    #[arg(long)]
    json: bool,
    /// Rounds, of which the best counts
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// A kernel's speeds.
#[derive(Serialize, Clone, Default)]
struct Row {
    lanes: u32,
    warps: u32,
    kernel: String,
    /// Of all its launches.
    cycles: u64,
    /// Thread instructions that are compared.
    compared: u64,
    unchecked_cycles_per_second: f64,
    checked_cycles_per_second: f64,
    /// Of the second to the first.
    ratio: f64,
}

/// Processor time that a figure of one round is taken over; a short program runs again and again.
const SAMPLE: Duration = Duration::from_millis(150);

impl Check {
    pub fn run(self) -> Result<()> {
        let names = match self.kernels.is_empty() {
            true => kernels::ALL.iter().map(|kernel| kernel.name.to_string()).collect(),
            false => self.kernels.clone(),
        };
        let targets: Vec<Target> = names.iter().map(|name| super::kernel(name)).collect::<Result<_>>()?;
        let shape = self.shape.shape()?;
        let targets: Vec<Target> = match self.kernels.is_empty() {
            true => targets.into_iter().filter(|target| target.program.check(&shape).is_ok()).collect(),
            false => targets,
        };
        for target in &targets {
            target.program.check(&shape).with_context(|| target.name.clone())?;
        }
        let Some(first) = targets.first() else { bail!("no kernel fits on this core") };
        let design = design(&shape)?;
        let machine = |monitors| {
            let options = MachineOptions { seed: self.shape.seed, monitors, ..MachineOptions::default() };
            Machine::with_design(&shape, &design, first.program.clone(), &options)
        };
        let unchecked = machine(vec![compaction::monitor])?;
        let mut machines = [unchecked, machine(vec![compaction::monitor, commit::monitor])?];
        let rows = targets.iter().map(|target| self.row(&mut machines, target, &shape)).collect::<Result<Vec<_>>>()?;
        if self.json { print_json(&rows) } else { print(&table(&rows)) }
    }

    fn row(&self, machines: &mut [Machine; 2], target: &Target, shape: &Shape) -> Result<Row> {
        // The engines compile what they need when they need it.
        for machine in machines.iter_mut() {
            self.once(machine, target)?;
        }
        let (mut best, mut cycles) = ([0.0; 2], 0);
        for _ in 0..self.rounds {
            for (machine, best) in machines.iter_mut().zip(&mut best) {
                let speed;
                (cycles, speed) = self.speed(machine, target)?;
                *best = f64::max(*best, speed);
            }
        }
        let [unchecked, checked] = best;
        Ok(Row {
            lanes: shape.lanes,
            warps: shape.warps,
            kernel: target.name.clone(),
            cycles,
            compared: machines[1].compared(),
            unchecked_cycles_per_second: unchecked,
            checked_cycles_per_second: checked,
            ratio: checked / unchecked,
        })
    }

    /// Cycles of the program, and cycles a second.
    fn speed(&self, machine: &mut Machine, target: &Target) -> Result<(u64, f64)> {
        let (mut all, mut time) = (0, Duration::ZERO);
        loop {
            let (cycles, once) = self.once(machine, target)?;
            time += once;
            all += cycles;
            if time >= SAMPLE {
                return Ok((cycles, all as f64 / time.as_secs_f64()));
            }
        }
    }

    /// Cycles of the program, and the time that its launches take.
    fn once(&self, machine: &mut Machine, target: &Target) -> Result<(u64, Duration)> {
        machine.load(target.program.clone())?;
        let mut time = Duration::ZERO;
        let launch = |machine: &mut Machine, grid| {
            let started = processor_time();
            let result = machine.launch_grid(grid);
            time += processor_time() - started;
            result
        };
        target.drive(&mut Launches { machine, launch }, self.shape.seed).with_context(|| target.name.clone())?;
        Ok((machine.summary().cycles, time))
    }
}

/// A line a kernel, and the worst at the end.
fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut line = |kernel: &str, cycles: &str, unchecked: &str, checked: &str, ratio: &str| {
        let _ = writeln!(text, "{kernel:<18}{cycles:>9}{unchecked:>12}{checked:>12}{ratio:>8}");
    };
    line("kernel", "cycles", "unchecked/s", "checked/s", "ratio");
    for row in rows {
        let speeds = [row.unchecked_cycles_per_second, row.checked_cycles_per_second].map(si);
        line(&row.kernel, &si(row.cycles as f64), &speeds[0], &speeds[1], &format!("{:.2}", row.ratio));
    }
    if let Some(worst) = rows.iter().min_by(|a, b| a.ratio.total_cmp(&b.ratio)) {
        let _ = writeln!(text, "worst: {} at {:.2}", worst.kernel, worst.ratio);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_a_kernel_and_names_the_worst() {
        let row = |kernel: &str, ratio| Row {
            kernel: kernel.into(),
            cycles: 1000,
            unchecked_cycles_per_second: 1e6,
            checked_cycles_per_second: 1e6 * ratio,
            ratio,
            ..Row::default()
        };
        let text = table(&[row("gcd", 0.75), row("sort", 0.5)]);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1], ["gcd", "1.0k", "1.00M", "750.0k", "0.75"]);
        assert_eq!(words[3], ["worst:", "sort", "at", "0.50"]);
    }
}
