//! `heddle hash`: whether two versions of the description are the same hardware.

use crate::output::{print, print_json};
use crate::shape::{HardwareArgs, ShapeArgs};
use crate::study::area::cores::{priced, shape, with};
use anyhow::{Result, bail};
use clap::{Arg, Args, Command};
use heddle_hdl::canonical;
use heddle_simt::system::system;
use heddle_simt::{Divergence, Shape};
use serde::Serialize;
use std::collections::HashSet;

/// Print the canonical hash of the core's hardware.
///
/// It stays when the description is only written in another way: modules, names of signals and state, and how bits are
/// put together into signals, registers and memories do not count. So a change that is to change no behaviour is
/// checked by the hashes before and after it.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle hash --lanes 16 --warps 4
  heddle hash --all > before      then change the description, and:
  heddle hash --all | diff before -")]
pub struct Hash {
    /// Of every mechanism with every option, and of some in several shapes
    #[arg(long)]
    all: bool,
    /// Print an array of objects instead of a table
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// The shapes of --all: one lane, more lanes than warps, as many, and fewer.
const SHAPES: [&str; 4] = [
    "--lanes 1 --warps 1 --memory 64K",
    "--lanes 2 --warps 8 --memory 64K",
    "--lanes 8 --warps 8 --memory 128K",
    "--lanes 32 --warps 2 --memory 128K",
];

/// That of options one by one.
const SHAPE: &str = "--lanes 4 --warps 4 --memory 64K";

/// A line of the table.
#[derive(Serialize)]
struct Row {
    hash: String,
    core: String,
}

impl Row {
    fn of(shape: &Shape) -> Result<Row> {
        let hash = canonical::hash(&system(shape).check()?.netlist)?;
        Ok(Row { hash: format!("{hash:016x}"), core: shape.options() })
    }
}

impl Hash {
    pub fn run(self) -> Result<()> {
        let rows = match self.shape.asked() {
            shape if self.all && (shape.is_some() || self.hardware.metrics) => {
                bail!("--all has cores of its own: leave the options of a core away")
            }
            _ if self.all => all()?,
            None => vec![Row::of(&self.hardware.of(&Shape::default()))?],
            Some(args) => vec![Row::of(&self.hardware.of(&args.shape()?))?],
        };
        if self.json {
            return print_json(&rows);
        }
        print(&rows.iter().map(|row| format!("{} {}\n", row.hash, row.core)).collect::<String>())
    }
}

/// What options with a number are tried with.
const NUMBERS: [(&str, &str); 15] = [
    ("levels", "2"),
    ("unresolved", "2"),
    ("capt", "8"),
    ("slack", "1"),
    ("depth-bits", "4"),
    ("convergence-barriers", "2"),
    ("patience", "32"),
    ("buffer", "4"),
    ("issue-interval", "4"),
    ("alu-latency", "8"),
    ("loads", "16"),
    ("requests", "4"),
    ("scratchpad", "16K"),
    ("cache", "4K,ways=2"),
    ("bus", "64"),
];

/// Options that are not tried: the shapes have them, or they are of programs and simulations.
const NOT_TRIED: [&str; 9] =
    ["lanes", "warps", "divergence", "memory", "program", "stack", "second-level", "memory-model", "seed"];

/// Options that need each other, beside those that are priced.
const TOGETHER: [&str; 5] = [
    "--divergence dual-path --path-scheduler constrained-miss --cache 4K",
    "--divergence dual-path --unresolved 2 --scoreboard exact",
    "--divergence block-stack --compaction predict --capt 8,history=counter",
    "--divergence block-stack --compaction predict --likely on --slack 2",
    "--convergence-barriers 2 --merge barriers --replay serialise",
];

/// Each value of each option that has few, and one of each that has a number.
fn values() -> Vec<String> {
    let options = ShapeArgs::augment_args(Command::new("core"));
    let of = |argument: &Arg| {
        let name = argument.get_long()?;
        let number = NUMBERS.iter().find(|(of, _)| *of == name).map(|(_, value)| value.to_string());
        let names = argument.get_possible_values().into_iter().map(|value| value.get_name().to_string());
        let is_switch = argument.get_value_names().is_some_and(|names| names[0] == "on|off");
        let switch = ["on", "off"].into_iter().filter(|_| is_switch).map(String::from);
        let tried = number.into_iter().chain(names).chain(switch).filter(|_| !NOT_TRIED.contains(&name));
        Some(tried.map(|value| format!("--{name} {value}")).collect::<Vec<_>>())
    };
    options.get_arguments().filter_map(of).flatten().collect()
}

/// What is priced in every shape, and every option with every mechanism in one; but those that a shape refuses.
fn all() -> Result<Vec<Row>> {
    let priced = SHAPES.into_iter().flat_map(|at| priced().map(move |options| with(at, options)));
    let mechanisms = Divergence::ALL.iter().map(|mechanism| format!("--divergence {}", mechanism.name()));
    let values = values();
    let each = mechanisms.flat_map(|mechanism| {
        let with_option: Vec<String> = values.iter().map(|value| format!("{mechanism} {value}")).collect();
        [mechanism].into_iter().chain(with_option)
    });
    let others = each.chain(TOGETHER.map(String::from)).map(|options| with(SHAPE, &options));
    let mut seen = HashSet::new();
    let shapes = priced.chain(others).filter_map(|options| shape(&options).ok());
    shapes.filter(|shape| seen.insert(shape.options())).map(|shape| Row::of(&shape)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_is_tried_or_none_of_hardware() {
        let values = values();
        for argument in ShapeArgs::augment_args(Command::new("core")).get_arguments() {
            let Some(name) = argument.get_long() else { continue };
            let tried = values.iter().any(|value| value.starts_with(&format!("--{name} ")));
            assert_ne!(tried, NOT_TRIED.contains(&name), "{name}");
        }
        for options in TOGETHER {
            assert!(shape(&with(SHAPE, options)).is_ok(), "{options}");
        }
        let is_there = |options: &&String| {
            let with = |mechanism: &Divergence| with(SHAPE, &format!("--divergence {} {options}", mechanism.name()));
            let alone = Divergence::ALL.iter().any(|mechanism| shape(&with(mechanism)).is_ok());
            alone || TOGETHER.iter().any(|together| together.contains(options.as_str()))
        };
        let lost: Vec<&String> = values.iter().filter(|options| !is_there(options)).collect();
        assert!(lost.is_empty(), "{lost:?}");
    }
}
