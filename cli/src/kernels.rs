//! `heddle kernels`: the built-in programs.

use crate::output::{print, print_json};
use anyhow::Result;
use clap::Args;
use heddle_testbench::kernels::ALL;
use serde::Serialize;

/// List the built-in programs.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle kernels
  for k in $(heddle kernels --names); do heddle run $k --lanes 16; done")]
pub struct Kernels {
    /// Names only, one a line
    #[arg(long, conflicts_with = "json")]
    names: bool,
    /// An array of objects with `name` and `about`
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Row {
    name: &'static str,
    about: &'static str,
}

impl Kernels {
    pub fn run(self) -> Result<()> {
        if self.json {
            let rows: Vec<Row> = ALL.iter().map(|k| Row { name: k.name, about: k.about }).collect();
            return print_json(&rows);
        }
        let width = ALL.iter().map(|k| k.name.len()).max().unwrap_or(0) + 2;
        let line =
            |name: &str, about: &str| if self.names { format!("{name}\n") } else { format!("{name:<width$}{about}\n") };
        print(&ALL.iter().map(|k| line(k.name, k.about)).collect::<String>())
    }
}
