//! `heddle cover`: which covers of the description the programs hit.

mod page;

use crate::docs::age::Stamp;
use crate::docs::evidence::of_cores;
use crate::docs::tree;
use crate::output::{print, print_json};
use crate::report::si;
use crate::shape::ShapeArgs;
use anyhow::{Result, bail};
use clap::Args;
use heddle_check::coverage::{Cover, Coverage, Extent, measure, shapes};
use heddle_testbench::kernels::{ALL, Kernel, find};
use indicatif::ProgressBar;
pub use page::PAGE;
use std::fmt::Write;
use std::path::PathBuf;
use std::time::Duration;

/// Run programs and say which covers of the description they hit.
///
/// A cover is a condition that the description names because tests should meet it: a choice of a multiplexer, a hazard,
/// a cause of a replay, a fault. The kernels, random programs and a few short ones run on each shape; hits of all
/// instances of a module are added up.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle cover                          on shapes from 1 × 16 to 64 × 1 and 4 × 64
  heddle cover --lanes 16 --warps 4     on one shape
  heddle cover gcd bfs --programs 0     with two kernels and the short programs
  heddle cover --programs 200 --json
  heddle cover --docs docs              the same, as a page",
    mut_arg("lanes", |arg| arg.help("Threads of a warp; with no option of the core: several shapes")),
    mut_arg("warps", |arg| arg.help("Warps of the core")),
)]
pub struct CoverArgs {
    /// Kernels that run [default: all]
    #[arg(value_name = "KERNEL")]
    kernels: Vec<String>,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Random programs on each shape
    #[arg(long, default_value_t = 20, value_name = "N")]
    programs: u64,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Fail if a cover is not hit that has no reason for it, or is hit in spite of one
    #[arg(long)]
    strict: bool,
    /// Write evidence/coverage.md into this folder, too; it is of all kernels
    #[arg(long, value_name = "DIR", conflicts_with = "kernels")]
    docs: Option<PathBuf>,
}

impl CoverArgs {
    pub fn run(self) -> Result<()> {
        if self.docs.is_some() && self.shape.asked().is_some() {
            bail!("--docs is of the usual cores: leave {} away", self.shape.given().join(" "));
        }
        let shapes = match self.shape.asked() {
            Some(one) => vec![one.shape()?],
            None => shapes(),
        };
        let kernels: Vec<&Kernel> = match &self.kernels[..] {
            [] => ALL.iter().collect(),
            names => names.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
        };
        self.docs.as_deref().map(|docs| tree::check(docs, [PAGE])).transpose()?;
        let progress = ProgressBar::new_spinner();
        progress.enable_steady_tick(Duration::from_millis(100));
        let coverage = measure(&shapes, &kernels, self.programs, self.shape.seed, Extent::All, &|what| {
            progress.set_message(what.to_string())
        });
        progress.finish_and_clear();
        let coverage = coverage?;
        if let Some(docs) = &self.docs {
            let stamp = Stamp::now(docs, of_cores(&shapes)?, None);
            tree::write(docs, [(PAGE, stamp.on(&page::page(&coverage)).as_str())])?;
        }
        if self.json {
            print_json(&coverage)?
        } else {
            print(&text(&coverage))?
        }
        if self.strict { strict(&coverage) } else { Ok(()) }
    }
}

/// Refuses covers that are not as expected.
fn strict(coverage: &Coverage) -> Result<()> {
    let names = |covers: Vec<&Cover>| covers.iter().map(|c| format!("{}.{}", c.module, c.name)).collect::<Vec<_>>();
    let missing = names(coverage.missing().collect());
    let surprising = names(coverage.surprising().collect());
    if !missing.is_empty() {
        bail!("covers that are not hit: {}", missing.join(", "));
    }
    if !surprising.is_empty() {
        bail!("covers that are hit, though there is a reason why not: {}", surprising.join(", "));
    }
    Ok(())
}

/// The shapes that hit a cover, in words.
fn hit_on(coverage: &Coverage, cover: &Cover) -> String {
    match cover.hit_on.len() {
        0 => "–".into(),
        n if n == coverage.shapes.len() => "all".into(),
        _ => cover.hit_on.join("; "),
    }
}

/// How many are hit.
fn summary(coverage: &Coverage) -> String {
    let hit = coverage.covers.iter().filter(|c| c.hits > 0).count();
    format!("{hit} of {} covers are hit on the shapes {}", coverage.covers.len(), coverage.shapes.join("; "))
}

fn text(coverage: &Coverage) -> String {
    let mut text = String::new();
    let width = |f: fn(&Cover) -> usize| coverage.covers.iter().map(f).max().unwrap_or(0);
    let (module, name) = (width(|c| c.module.len()), width(|c| c.name.len()));
    let _ = writeln!(text, "{:<module$}  {:<name$}  {:>7}  on", "module", "cover", "hits");
    for cover in &coverage.covers {
        let (hits, shapes) = (si(cover.hits as f64), hit_on(coverage, cover));
        let _ = writeln!(text, "{:<module$}  {:<name$}  {hits:>7}  {shapes}", cover.module, cover.name);
    }
    let _ = writeln!(text, "\n{}.", summary(coverage));
    for cover in coverage.covers.iter().filter(|c| c.hits == 0) {
        let reason = cover.reason.unwrap_or("NOT EXPECTED");
        let _ = writeln!(text, "not hit: {}.{}: {reason}", cover.module, cover.name);
    }
    for cover in coverage.surprising() {
        let _ = writeln!(text, "hit, against the reason why not: {}.{}", cover.module, cover.name);
    }
    text
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// One cover that is hit, one that is not, one with a reason.
    pub fn example() -> Coverage {
        let cover = |name: &str, hits, hit_on: &[&str], reason| Cover {
            module: "ccs".into(),
            name: name.into(),
            hits,
            hit_on: hit_on.iter().map(|s| s.to_string()).collect(),
            reason,
        };
        Coverage {
            shapes: vec!["8 × 8".into(), "1 × 1".into()],
            programs: 3,
            seed: 1,
            covers: vec![
                cover("a_alone", 1234, &["8 × 8", "1 × 1"], None),
                cover("a_meets_b", 5, &["8 × 8"], None),
                cover("b_alone", 0, &[], None),
                cover("one_waits", 0, &[], Some("nothing waits")),
            ],
        }
    }

    #[test]
    fn the_table_says_where_covers_were_hit_and_which_were_not() {
        let text = text(&example());
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1], ["ccs", "a_alone", "1.2k", "all"]);
        assert_eq!(words[2], ["ccs", "a_meets_b", "5", "8", "×", "8"]);
        assert!(text.contains("2 of 4 covers are hit on the shapes 8 × 8; 1 × 1.\n"), "{text}");
        assert!(
            text.ends_with("not hit: ccs.b_alone: NOT EXPECTED\nnot hit: ccs.one_waits: nothing waits\n"),
            "{text}"
        );
    }

    #[test]
    fn strict_refuses_what_is_not_as_expected() {
        let error = |coverage: &Coverage| strict(coverage).unwrap_err().to_string();
        let mut coverage = example();
        assert_eq!(error(&coverage), "covers that are not hit: ccs.b_alone");
        coverage.covers[2].hits = 1;
        assert!(strict(&coverage).is_ok());
        coverage.covers[3].hits = 1;
        assert!(error(&coverage).ends_with("reason why not: ccs.one_waits"));
    }
}
