//! `heddle hash`: whether two versions of the description are the same hardware.

use crate::output::{print, print_json};
use crate::shape::{HardwareArgs, ShapeArgs};
use crate::study::area::cores::{priced, shape, with};
use anyhow::{Result, bail};
use clap::Args;
use heddle_hdl::canonical;
use heddle_simt::Shape;
use heddle_simt::system::system;
use serde::Serialize;

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
    /// Of every mechanism and option, in several shapes
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

/// Every mechanism and option in every shape, but those that a shape refuses.
fn all() -> Result<Vec<Row>> {
    let cores = SHAPES.into_iter().flat_map(|at| priced().map(move |options| with(at, options)));
    cores.filter_map(|options| shape(&options).ok()).map(|shape| Row::of(&shape)).collect()
}
