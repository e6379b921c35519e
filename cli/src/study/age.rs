//! Whether a study's page is of the core as it is: its [stamp](Stamp) has hashes of what its figures come from.
//!
//! These are the [hardware](canonical) of all cores and the programs that ran on them. Inputs that drivers make, the
//! cycle model of other mechanisms and programs made with a profile are not in it. A core may be written in
//! another way and be as fast: so the stamp has the cycles of some of the runs, too, and a page stays new if the
//! programs are what they were and these runs still take as many.

use super::Study;
use super::area;
use super::runs::{Run, each, usual};
use crate::docs::age::{Stamp, marked};
use crate::interrupt::Interrupt;
use crate::output::ResultFile;
use anyhow::{Context, Result};
use clap::{Args, FromArgMatches};
use heddle_hdl::canonical;
use heddle_simt::Shape;
use heddle_testbench::machine::design;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

pub const PAGES: [&str; 10] = [
    "studies/mechanisms.md",
    "studies/simtight.md",
    "studies/dual-path.md",
    "studies/compaction.md",
    "studies/blocks.md",
    "studies/per-area.md",
    "studies/speculative.md",
    "studies/order.md",
    "studies/locks.md",
    "studies/warp-primitives.md",
];

/// So many.
const SAMPLED: usize = 6;

/// Has each page say whether it is of the core as it is.
///
/// It is not if programs of its study are others than when it was written, or its cores are and some of its runs take
/// more or fewer cycles than then; or if it does not say which those were. It then gets a line that says so, which goes
/// when the study is run again. The page on area says it of each row. Returns the hash of each of [`PAGES`].
pub fn renew(docs: &Path) -> Result<Vec<String>> {
    let interrupt = Interrupt::catch()?;
    let mut hashes = Vec::new();
    for name in PAGES {
        let path = docs.join(name);
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let page = || path.display().to_string();
        let (runs, now) = now(&text).with_context(page)?;
        let mut stamped = text.clone();
        if Stamp::of(&text).is_some_and(|stamp| is_worth_a_look(&stamp, &now)) {
            stamped = restamped(&text, &now, &sample(&runs, &interrupt).with_context(page)?);
        }
        let aged = marked(&stamped, &now);
        hashes.push(now);
        if aged != text {
            let mut file = ResultFile::create(&path)?;
            file.writer().write_all(aged.as_bytes())?;
            file.finish()?;
        }
    }
    area::renew(docs)?;
    Ok(hashes)
}

/// Whether cycles of a sample may tell more than the hashes: the programs are the same, and the cores are not.
fn is_worth_a_look(stamp: &Stamp, now: &str) -> bool {
    let programs = |hash: &str| hash.split_once('-').map(|(_, programs)| programs.to_string());
    stamp.hash != now && programs(&stamp.hash) == programs(now)
}

/// The cycles of some of the runs, evenly from all; 0 for one that ends with a fault.
fn sample(runs: &[Run], interrupt: &Interrupt) -> Result<String> {
    let count = SAMPLED.min(runs.len());
    let some: Vec<Run> = (0..count).map(|k| runs[k * runs.len() / count].clone()).collect();
    let cycles = each(&some, &usual(1), None, interrupt)?
        .into_iter()
        .map(|run| run.map_or(0, |summary| summary.cycles).to_string());
    Ok(cycles.collect::<Vec<_>>().join(" "))
}

/// The page, with the hash of now if its sample is what it was.
fn restamped(page: &str, now: &str, sample: &str) -> String {
    match Stamp::of(page) {
        Some(stamp) if stamp.sample.as_deref() == Some(sample) => Stamp { hash: now.into(), ..stamp }.on(page),
        _ => page.to_string(),
    }
}

/// Hashes of the cores and of the programs of these runs.
pub fn hash(runs: &[Run]) -> Result<String> {
    let mut shapes: Vec<&Shape> = Vec::new();
    for run in runs {
        if !shapes.contains(&&run.shape) {
            shapes.push(&run.shape);
        }
    }
    let mut cores = md5::Context::new();
    for shape in shapes {
        cores.consume(canonical::hash(&design(shape)?)?.to_le_bytes());
    }
    let mut programs = md5::Context::new();
    let elfs: BTreeSet<&Arc<[u8]>> = runs.iter().map(|run| &run.elf).collect();
    elfs.into_iter().for_each(|elf| programs.consume(elf));
    Ok(format!("{:x}-{:x}", cores.finalize(), programs.finalize()))
}

/// The page of these runs, for this tree of pages.
pub fn of_now(root: &Path, page: &str, runs: &[Run], interrupt: &Interrupt) -> Result<String> {
    Ok(Stamp::now(root, hash(runs)?, Some(sample(runs, interrupt)?)).on(page))
}

/// What the study of the page would measure now, and its hash.
pub fn now(page: &str) -> Result<(Vec<Run>, String)> {
    let runs = written_by(page)?.runs()?;
    let hash = hash(&runs)?;
    Ok((runs, hash))
}

const WRITTEN: &str = "Written by `heddle ";

/// The command that the page says that it is written by; nothing if it does not say.
pub fn command(page: &str) -> String {
    let line = page.split_once(WRITTEN).and_then(|(_, rest)| rest.split_once('`'));
    line.map_or_else(String::new, |(line, _)| format!("heddle {line}"))
}

/// The study that its command line on the page says.
fn written_by(page: &str) -> Result<Study> {
    let command = command(page);
    let line = command.strip_prefix("heddle ");
    let line = line.with_context(|| format!("the page has no line that begins with {WRITTEN}"))?;
    let matches = Study::augment_args(clap::Command::new("study")).try_get_matches_from(line.split_whitespace())?;
    Ok(Study::from_arg_matches(&matches)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::What;
    use heddle_testbench::kernels::find;

    fn stamped(page: &str, hash: &str, sample: &str) -> String {
        Stamp { hash: hash.into(), commit: Some("12ab".into()), sample: Some(sample.into()) }.on(page)
    }

    #[test]
    fn a_core_that_is_as_fast_leaves_a_page_new() {
        let page = stamped("# Title\n\nText.\n", "a-b", "12 3");
        let is_worth_a_look = |now: &str| is_worth_a_look(&Stamp::of(&page).unwrap(), now);
        assert!(
            is_worth_a_look("c-b") && !is_worth_a_look("a-b") && !is_worth_a_look("a-c") && !is_worth_a_look("c-c")
        );
        assert_eq!(restamped(&page, "c-b", "12 3"), stamped("# Title\n\nText.\n", "c-b", "12 3"));
        assert_eq!(restamped(&page, "c-b", "12 4"), page);
        // It was old, and the core is as fast again as it was.
        let old = marked(&page, "c-b");
        assert_eq!(marked(&restamped(&old, "d-b", "12 3"), "d-b"), stamped("# Title\n\nText.\n", "d-b", "12 3"));
        let run = |kernel: &str| Run::new(find(kernel).unwrap(), Shape::small(2, 1));
        let interrupt = Interrupt::catch().unwrap();
        let alone = sample(&[run("gcd")], &interrupt).unwrap();
        assert!(alone.parse::<u64>().unwrap() > 1000, "{alone}");
        let many: Vec<Run> = (0..2 * SAMPLED).map(|k| run(if k == 2 { "collatz" } else { "gcd" })).collect();
        let many = sample(&many, &interrupt).unwrap();
        let cycles: Vec<&str> = many.split(' ').collect();
        assert!(cycles.len() == SAMPLED && cycles[0] == alone && cycles[1] != alone && cycles[2] == alone, "{many}");
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
