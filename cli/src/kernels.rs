//! `heddle kernels`: the built-in programs.

use crate::output::{print, print_json};
use anyhow::{Context, Result};
use clap::Args;
use heddle_testbench::Program;
use heddle_testbench::kernels::{ALL, Kernel, LOCKS, WARP, every};
use heddle_testbench::program::Segment;
use serde::Serialize;
use std::fmt::Write as _;

/// List the built-in programs.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle kernels
  heddle kernels --sizes                                     which fit in 32 KiB
  for k in $(heddle kernels --names); do heddle run $k --lanes 16; done")]
pub struct Kernels {
    /// Names only, one per line, of those that end on every core
    #[arg(long, conflicts_with = "json")]
    names: bool,
    /// How many bytes program and data have, of the usual size and of `--size small`, or why there is no small one
    #[arg(long, conflicts_with = "names")]
    sizes: bool,
    /// An array of objects with `name`, `about`, `needs`, `bytes`, and `small_bytes` or `no_small`
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    about: &'static str,
    /// What the core must have.
    needs: Vec<String>,
    /// Of program and data.
    bytes: u64,
    small_bytes: Option<u64>,
    /// Why there is no small one.
    no_small: Option<&'static str>,
}

impl Row {
    fn of(kernel: &'static Kernel) -> Result<Row> {
        let bytes = |elf| -> Result<u64> {
            let program = Program::parse(elf).context(kernel.name)?;
            Ok(program.segments().iter().map(Segment::end).max().unwrap_or(0))
        };
        let small = kernel.small();
        Ok(Row {
            name: kernel.name,
            about: kernel.about,
            needs: kernel.needs.iter().map(ToString::to_string).collect(),
            bytes: bytes(kernel.elf)?,
            small_bytes: small.ok().map(bytes).transpose()?,
            no_small: small.err(),
        })
    }
}

impl Kernels {
    pub fn run(self) -> Result<()> {
        if self.json || self.sizes {
            let rows = every().map(Row::of).collect::<Result<Vec<Row>>>()?;
            return if self.json { print_json(&rows) } else { print(&sizes(&rows)) };
        }
        let width = every().map(|k| k.name.len()).max().unwrap_or(0) + 2;
        let line =
            |name: &str, about: &str| if self.names { format!("{name}\n") } else { format!("{name:<width$}{about}\n") };
        let lines = |kernels: &[Kernel]| kernels.iter().map(|k| line(k.name, k.about)).collect::<String>();
        let others = if self.names {
            String::new()
        } else {
            format!(
                "\nthreads that wait for each other, with --fair on --reservations on:\n{}\nwith --warp-primitives on:\n{}",
                lines(LOCKS),
                lines(WARP)
            )
        };
        print(&(lines(ALL) + &others))
    }
}

fn sizes(rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    let mut text = format!("{:width$} {:>8} {:>8}\n", "bytes", "usual", "small");
    for Row { name, bytes, small_bytes, no_small, .. } in rows {
        let small = small_bytes.map_or("-".to_string(), |bytes| bytes.to_string());
        let why = no_small.map_or_else(String::new, |why| format!("  {why}"));
        let _ = writeln!(text, "{name:width$} {bytes:>8} {small:>8}{why}");
    }
    text
}
