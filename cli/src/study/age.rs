//! Whether a study's page is of the core as it is: the last line of the page has a hash of what its figures come from.
//!
//! That is the Verilog of all cores, without comments, and the programs that ran on them. Inputs that drivers make, the cycle model of dynamic warp
//! formation and programs made with a profile are not in it.

use super::Study;
use super::runs::Run;
use crate::output::{ResultFile, print};
use anyhow::{Context, Result};
use clap::{Args, FromArgMatches};
use heddle_simt::Shape;
use heddle_testbench::machine::design;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

/// Say on the pages of studies which of them are of an older core.
///
/// A page is if cores or programs of its study are others than when it was written, or if it does not say which those were. It then
/// gets a line that says so, which goes when the study is run again.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle study age --docs docs")]
pub struct Age {
    /// The folder of the pages
    #[arg(long, value_name = "DIR")]
    docs: PathBuf,
}

pub const PAGES: [&str; 4] = ["study-simtight.md", "study-dual-path.md", "study-compaction.md", "study-speculative.md"];

const MEASURED: &str = "Cores and programs that were measured: ";
const OLD: &str =
    "> **Not of the core and programs as they are now**, or not known to be: what is measured now may differ.";

impl Age {
    pub fn run(self) -> Result<()> {
        for name in PAGES {
            let path = self.docs.join(name);
            let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let now = now(&text).with_context(|| path.display().to_string())?;
            let aged = marked(&text, &now);
            if aged != text {
                let mut file = ResultFile::create(&path)?;
                file.writer().write_all(aged.as_bytes())?;
                file.finish()?;
            }
            let age = if aged.contains(OLD) { "not known to be of this core, and says so" } else { "of this core" };
            print(&format!("{}: {age} ({now})\n", path.display()))?;
        }
        Ok(())
    }
}

/// A hash of the cores and programs of these runs.
pub fn hash(runs: &[Run]) -> Result<String> {
    let mut shapes: Vec<&Shape> = Vec::new();
    for run in runs {
        if !shapes.contains(&&run.shape) {
            shapes.push(&run.shape);
        }
    }
    let mut context = md5::Context::new();
    for shape in shapes {
        let files = heddle_gen::verilog(&design(shape)?, &heddle_gen::Options::default());
        for (name, text) in files.sources.iter().chain(&files.images) {
            context.consume(name);
            for line in text.lines() {
                context.consume(line.split("//").next().unwrap_or_default().trim_end());
                context.consume("\n");
            }
        }
    }
    let programs: BTreeSet<&Arc<[u8]>> = runs.iter().map(|run| &run.elf).collect();
    programs.into_iter().for_each(|elf| context.consume(elf));
    Ok(format!("{:x}", context.finalize()))
}

/// The page of runs with this hash.
pub fn stamped(page: &str, hash: &str) -> String {
    format!("{}\n\n{MEASURED}`{hash}`.\n", page.trim_end())
}

/// The hash of what the study of the page would measure now.
pub fn now(page: &str) -> Result<String> {
    hash(&written_by(page)?.runs()?)
}

/// The page with the line that says that it is old, or without, as it should be.
pub fn marked(page: &str, now: &str) -> String {
    let without: String = page.replacen(&format!("{OLD}\n\n"), "", 1);
    if page.lines().any(|line| line == format!("{MEASURED}`{now}`.")) {
        return without;
    }
    let (title, rest) = without.split_once("\n\n").unwrap_or((&without, ""));
    format!("{title}\n\n{OLD}\n\n{rest}")
}

/// The study that its command line on the page says.
fn written_by(page: &str) -> Result<Study> {
    let start = "Written by `heddle ";
    let line = page.split_once(start).and_then(|(_, rest)| rest.split_once('`'));
    let (line, _) = line.with_context(|| format!("the page has no line that begins with {start}"))?;
    let matches = Study::augment_args(clap::Command::new("study")).try_get_matches_from(line.split_whitespace())?;
    Ok(Study::from_arg_matches(&matches)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::What;
    use heddle_testbench::kernels::find;

    #[test]
    fn a_page_says_that_it_is_old_and_no_longer_once_it_is_new() {
        let page = stamped("# Title\n\nText.\n", "abc");
        assert_eq!(page, "# Title\n\nText.\n\nCores and programs that were measured: `abc`.\n");
        assert_eq!(marked(&page, "abc"), page);
        let old = marked(&page, "def");
        assert!(old.starts_with(&format!("# Title\n\n{OLD}\n\nText.\n")), "{old}");
        assert_eq!((marked(&old, "def"), marked(&old, "abc")), (old.clone(), page));
        // Nobody knows of what core.
        assert!(marked("# Title\n\nText.\n", "abc").contains(OLD));
    }

    #[test]
    fn cores_and_programs_make_the_hash() {
        let run = |kernel: &str, shape: &Shape| Run::new(find(kernel).unwrap(), shape.clone());
        let [small, other] = [Shape::small(2, 1), Shape { depth_bits: 9, ..Shape::small(2, 1) }];
        let hash = |runs: &[Run]| hash(runs).unwrap();
        let one = hash(&[run("gcd", &small)]);
        assert_eq!(one, hash(&[run("gcd", &small), run("gcd", &small)]));
        assert_ne!(one, hash(&[run("gcd", &other)]));
        assert_ne!(one, hash(&[run("collatz", &small)]));
    }

    #[test]
    fn the_study_is_that_of_the_command_on_the_page() {
        let study = written_by("# A\n\nWritten by `heddle study dual-path --warps 2 --docs docs`; more").unwrap();
        assert!(matches!(study.what, What::DualPath(_)));
        assert!(written_by("# A").is_err() && written_by("Written by `heddle study nonsense`").is_err());
    }
}
