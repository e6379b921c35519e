//! `heddle new`: a folder with a kernel to begin with.

use crate::folder::{Entry, write_folder};
use crate::output::print;
use crate::target::FOLDER_FILE;
use anyhow::{Context, Result, bail};
use clap::Args;
use heddle_testbench::compile::quoted;
use heddle_testbench::kernels;
use std::path::PathBuf;

/// Make a folder with a kernel in C, a host description and a README.
///
/// The kernel runs as it is: `heddle run NAME` builds it, fills its buffers, launches it, and compares its results with
/// those of a reference function in the same file. docs/reference/host-description.md has all that the description may
/// say.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle new mine && heddle run mine
  heddle run mine --lanes 32 --warps 2 --divergence stack
  heddle run mine --set length=64 --trace | less
  heddle build mine -o mine.elf")]
pub struct New {
    /// The folder; it may be there if it is empty
    #[arg(value_name = "NAME")]
    name: PathBuf,
}

const KERNEL: &str = include_str!("new/kernel.c");
const DESCRIPTION: &str = include_str!("new/heddle.toml");
const README: &str = include_str!("new/README.md");

impl New {
    pub fn run(self) -> Result<()> {
        let Some(shown) = self.name.to_str().filter(|name| !name.contains(char::is_control)) else {
            bail!("{:?}: wanted is a name in UTF-8, without line breaks and other control characters", self.name);
        };
        if self.name.is_dir() {
            let mut entries = self.name.read_dir().with_context(|| format!("cannot read {shown}"))?;
            if entries.next().is_some() {
                bail!("{shown} is there and not empty: name another folder, or empty this one");
            }
        }
        // A kernel's name is a kernel, and what begins with a dash an option.
        let typed = |name: &str| {
            let here = if name.starts_with('-') || kernels::find(name).is_ok() { "./" } else { "" };
            quoted(&format!("{here}{name}"))
        };
        let run = typed(shown);
        let title = self.name.file_name().unwrap_or("kernel".as_ref()).to_string_lossy();
        let elf = typed(&format!("{title}.elf"));
        let filled = |text: &str| text.replace("{name}", &title).replace("{elf}", &elf).replace("{run}", &run);
        let files = [("kernel.c", KERNEL), (FOLDER_FILE, DESCRIPTION), ("README.md", README)];
        let entries = files.map(|(name, text)| Entry { name: name.into(), text: filled(text) });
        write_folder(&self.name, &entries)?;
        print(&format!(
            "{shown}: kernel.c, {FOLDER_FILE}, README.md\n\n  heddle run {run}    builds it, runs it, and checks its results\n"
        ))
    }
}
