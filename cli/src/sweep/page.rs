//! The page on what studies take.

use super::command::Command;
use super::plan::{Plan, Planned};
use super::store::Record;
use crate::bench::page::processor;
use crate::docs::{age::Stamp, read, tree};
use crate::study::{age, table};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::Path;

pub const PAGE: &str = "evidence/study-time.md";
pub const COMMAND: &str = "heddle sweep examples/sweeps/studies.toml --results DIR --docs docs";
/// The page with `{table}` and `{processor}` left open.
const TEXT: &str = include_str!("page.md");

/// The hash of studies: of each one's [hash](age::hash), in whatever order they run.
pub fn hash<S: AsRef<str>>(studies: &[S]) -> String {
    let studies: BTreeSet<&str> = studies.iter().map(AsRef::as_ref).collect();
    format!("{:x}", md5::compute(studies.into_iter().collect::<Vec<_>>().join("\n")))
}

/// Fails, before any work, if the page could not be written: the sweep must have every study with the options of its
/// page in this tree, and nothing else.
pub(super) fn check(plan: &Plan, root: &Path) -> Result<()> {
    if plan.command != Command::Study {
        bail!("--docs is of sweeps of `study`, and this one is of `{}`", plan.command.name());
    }
    let commands =
        age::PAGES.iter().map(|page| Ok(age::command(&read(root, page)?))).collect::<Result<BTreeSet<_>>>()?;
    let lines = || plan.combinations.iter().map(line);
    if lines().any(|line| line == LESS) {
        bail!("--docs is of every study with the options of its page: `{LESS}` wants `sensitivity = true`");
    }
    let swept: BTreeSet<String> = lines().map(|line| of_page(&line)).collect();
    if let Some(other) = commands.symmetric_difference(&swept).next() {
        let which = if swept.contains(other) { "of no page" } else { "of a page, and not in the sweep" };
        bail!("--docs is of every study with the options of its page: `{other}` is {which}");
    }
    tree::check(root, [PAGE])
}

/// Writes the page, of studies that all ran now.
pub(super) fn write(plan: &Plan, records: &[Option<Record>], root: &Path) -> Result<()> {
    let hashes: Vec<&str> = plan.batches.iter().filter_map(|batch| batch.studied()).collect();
    let stamp = Stamp::now(root, hash(&hashes), None);
    let page = page(plan, records)?;
    tree::write(root, [(PAGE, stamp.on(&page).as_str())])
}

fn page(plan: &Plan, records: &[Option<Record>]) -> Result<String> {
    let mut rows = vec![vec!["study".into(), "processor time".into()]];
    let mut all = 0.0;
    for (job, record) in plan.jobs.iter().zip(records) {
        let record = record.as_ref().context("a study is missing")?;
        let seconds = record.result["processor_seconds"].as_f64().context("a study does not say what it took")?;
        all += seconds;
        rows.push(vec![format!("`{}`", line(&plan.combinations[job.combination])), minutes(seconds)]);
    }
    rows.push(vec!["**all**".into(), minutes(all)]);
    let text = TEXT.replace("{table}", table::markdown(&rows).trim_end());
    Ok(text.replace("{processor}", &processor()))
}

/// The commands on the page that are those of no study's page, and those of studies' pages that it lacks.
pub fn gone(text: &str, commands: &BTreeSet<String>) -> Vec<String> {
    let named = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    let named: BTreeSet<String> = named.map(|(command, _)| of_page(command)).collect();
    named.symmetric_difference(commands).cloned().collect()
}

/// Dual path without what its page has, too.
const LESS: &str = "heddle study dual-path";

/// The command that writes a study's page, of the line that says what it is; a page has what `--sensitivity` adds.
fn of_page(line: &str) -> String {
    format!("{} --docs docs", line.replace(" --sensitivity", ""))
}

fn minutes(seconds: f64) -> String {
    format!("{:.1} min", seconds / 60.0)
}

/// `heddle study order --draws 8`. The page's command finds files from the project's folder.
fn line(planned: &Planned) -> String {
    let words = planned.words.iter().filter(|word| !word.starts_with("--area="));
    format!("heddle study {}", words.map(|word| word.replace('=', " ")).collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sweep::file::File;
    use crate::sweep::store::testing::record;
    use serde_json::json;
    use std::fs;

    fn plan(text: &str) -> Plan {
        Plan::new("s.toml", &File::parse("s.toml", text).unwrap(), Path::new("")).unwrap()
    }

    /// That of area keeps its rows in a file of its own.
    #[test]
    fn the_example_has_every_study_with_the_options_of_its_page() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let path = root.join("examples/sweeps/studies.toml");
        let file = File::parse("studies.toml", &fs::read_to_string(&path).unwrap()).unwrap();
        let plan_of = |file: &File| Plan::new("studies.toml", file, path.parent().unwrap()).unwrap();
        check(&plan_of(&file), &root.join("docs")).unwrap();
        let less = fs::read_to_string(&path).unwrap().replace("sensitivity = true", "");
        let less = File::parse("studies.toml", &less).unwrap();
        let error = check(&plan_of(&less), &root.join("docs")).unwrap_err().to_string();
        assert!(error.ends_with("`heddle study dual-path` wants `sensitivity = true`"), "{error}");
        let small = plan("command = \"study\"\n[options]\nstudy = \"order\"\ndraws = 7\n");
        let error = check(&small, &root.join("docs")).unwrap_err().to_string();
        assert!(error.starts_with("--docs is of every study with the options of its page: `heddle study "), "{error}");
    }

    #[test]
    fn the_page_has_a_line_for_each_study_and_the_sum() {
        let plan = plan("command = \"study\"\n[options]\nstudy = [\"locks\", \"order\"]\ndraws = 2\n");
        let took = |seconds: f64| Some(record(&[], 1, json!({ "processor_seconds": seconds })));
        let page_of = |records: &[Option<Record>]| page(&plan, records);
        let text = page_of(&[took(60.0), took(93.0)]).unwrap();
        let table =
            [("`heddle study locks --draws 2`", "1.0"), ("`heddle study order --draws 2`", "1.6"), ("**all**", "2.5")];
        let table = table.map(|(study, minutes)| format!("| {study} | {minutes} min |\n")).concat();
        assert!(text.contains(&table), "{text}");
        assert!(text.contains("They ran one after another on "), "{text}");
        let commands = |studies: &[&str]| {
            studies.iter().map(|study| format!("heddle study {study} --draws 2 --docs docs")).collect::<BTreeSet<_>>()
        };
        assert_eq!(gone(&text, &commands(&["locks", "order"])), [""; 0]);
        assert_eq!(gone(&text, &commands(&["locks"])), ["heddle study order --draws 2 --docs docs"]);
        assert_eq!(of_page("heddle study dual-path --sensitivity"), "heddle study dual-path --docs docs");
        let more = gone(&text, &commands(&["blocks", "locks", "order"]));
        assert_eq!(more, ["heddle study blocks --draws 2 --docs docs"]);
        assert!(page_of(&[took(60.0), None]).is_err());
    }

    #[test]
    fn the_hash_is_of_all_studies_in_any_order() {
        assert_eq!(hash(&["a", "b"]), hash(&["b", "a", "b"]));
        assert_ne!(hash(&["a", "b"]), hash(&["a", "c"]));
    }
}
