//! `heddle bench wave`: what a waveform costs.

use super::kernel;
use super::runner::now;
use crate::output::{print, print_json};
use crate::report::si;
use crate::shape::ShapeArgs;
use crate::target::Target;
use anyhow::{Context, Result};
use clap::Args;
use heddle_hdl::netlist::Module;
use heddle_simt::Shape;
use heddle_testbench::machine::{Machine, MachineOptions, design};
use rustix::time::ClockId;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

/// Cycles per second without a waveform, with .fst and with .vcd, and how large the files are.
///
/// What counts is time from the first launch to the complete file, without the compiling before. Each figure is the
/// best of several rounds, in which they take turns. Files lie in the system's folder for temporary ones, and go away.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle bench wave                                     vecadd on three shapes of the core
  heddle bench wave gcd --lanes 4 --warps 2 --json      one kernel on 4 lanes and 2 warps",
    mut_arg("lanes", |arg| arg.help("Threads of a warp; with neither this nor --warps: 4 × 2, 8 × 8, 64 × 4")),
    mut_arg("warps", |arg| arg.help("Warps of the core")),
)]
pub struct Wave {
    /// Built-in kernels
    #[arg(value_name = "KERNEL", default_values = ["vecadd"])]
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

/// Lanes and warps of the cores, unless one is asked for.
const SHAPES: [(u32, u32); 3] = [(4, 2), (8, 8), (64, 4)];

/// The formats, by the ends of files' names.
const FORMATS: [Option<&str>; 3] = [None, Some("fst"), Some("vcd")];

/// The best of a kernel's runs on a shape.
#[derive(Serialize, Clone)]
struct Row {
    lanes: u32,
    warps: u32,
    kernel: String,
    /// Nothing: without a waveform.
    wave: Option<&'static str>,
    cycles: u64,
    /// By wall time.
    cycles_per_second: f64,
    /// Processor time of all threads.
    processor_seconds: f64,
    /// Of the file.
    bytes: Option<u64>,
}

impl Wave {
    pub fn run(self) -> Result<()> {
        let targets: Vec<Target> = self.kernels.iter().map(|name| kernel(name)).collect::<Result<_>>()?;
        let shapes = self.shape.or(&SHAPES)?;
        for (shape, target) in shapes.iter().flat_map(|shape| targets.iter().map(move |target| (shape, target))) {
            target.program.check(shape).with_context(|| target.name.clone())?;
        }
        let folder = tempfile::tempdir().context("cannot make a folder for waveforms")?;
        let mut rows = Vec::new();
        for shape in &shapes {
            let design = design(shape)?;
            for target in &targets {
                rows.extend(self.rows(shape, &design, target, folder.path()).with_context(|| target.name.clone())?);
            }
        }
        if self.json { print_json(&rows) } else { print(&table(&rows)) }
    }

    fn rows(&self, shape: &Shape, design: &Arc<Module>, target: &Target, folder: &Path) -> Result<Vec<Row>> {
        let mut best: Vec<Option<Row>> = vec![None; FORMATS.len()];
        for _ in 0..self.rounds {
            for (format, best) in FORMATS.into_iter().zip(&mut best) {
                let row = measure(shape, design, target, self.shape.seed, format, folder)?;
                match best {
                    None => *best = Some(row),
                    Some(best) => {
                        best.cycles_per_second = best.cycles_per_second.max(row.cycles_per_second);
                        best.processor_seconds = best.processor_seconds.min(row.processor_seconds);
                    }
                }
            }
        }
        Ok(best.into_iter().flatten().collect())
    }
}

/// One run.
fn measure(
    shape: &Shape,
    design: &Arc<Module>,
    target: &Target,
    seed: u64,
    format: Option<&'static str>,
    folder: &Path,
) -> Result<Row> {
    let path = format.map(|format| folder.join(format!("wave.{format}")));
    let options = MachineOptions { seed, wave: path.clone(), ..MachineOptions::default() };
    let mut machine = Machine::with_design(shape, design, target.program.clone(), &options)?;
    // So that what settles is compiled.
    machine.simulation().engine().settle();
    // Of all threads: the waveform's is one.
    let processor_time = || now(ClockId::ProcessCPUTime);
    let (started, processor) = (Instant::now(), processor_time());
    target.drive(&mut machine, seed)?;
    let cycles = machine.summary().cycles;
    machine.finish()?;
    let (wall, processor) = (started.elapsed(), processor_time() - processor);
    Ok(Row {
        lanes: shape.lanes,
        warps: shape.warps,
        kernel: target.name.clone(),
        wave: format,
        cycles,
        cycles_per_second: cycles as f64 / wall.as_secs_f64(),
        processor_seconds: processor.as_secs_f64(),
        bytes: path.map(|path| path.metadata().map(|data| data.len())).transpose()?,
    })
}

fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut line = |cells: [&str; 8]| {
        let [kernel, lanes, warps, wave, cycles, speed, processor, bytes] = cells;
        let _ = writeln!(
            text,
            "{kernel:<12}{lanes:>6}{warps:>6}  {wave:<10}{cycles:>9}{speed:>10}{processor:>13}{bytes:>9}"
        );
    };
    line(["kernel", "lanes", "warps", "waveform", "cycles", "cycles/s", "processor s", "bytes"]);
    for row in rows {
        line([
            &row.kernel,
            &row.lanes.to_string(),
            &row.warps.to_string(),
            row.wave.unwrap_or("none"),
            &row.cycles.to_string(),
            &si(row.cycles_per_second),
            &format!("{:.2}", row.processor_seconds),
            &row.bytes.map_or("-".into(), |bytes| si(bytes as f64)),
        ]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_a_line_a_row() {
        let none = Row {
            lanes: 4,
            warps: 2,
            kernel: "vecadd".into(),
            wave: None,
            cycles: 118_916,
            cycles_per_second: 1e6,
            processor_seconds: 0.119,
            bytes: None,
        };
        let fst = Row { wave: Some("fst"), cycles_per_second: 250e3, bytes: Some(16_200_000), ..none.clone() };
        let text = table(&[none, fst]);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1], ["vecadd", "4", "2", "none", "118916", "1.00M", "0.12", "-"]);
        assert_eq!(words[2], ["vecadd", "4", "2", "fst", "118916", "250.0k", "0.12", "16.20M"]);
        assert!(text.lines().all(|line| line.len() == text.lines().next().unwrap().len()), "{text}");
    }
}
