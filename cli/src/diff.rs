//! `heddle diff`: what is otherwise in two files that `--json` wrote.

mod rows;

use crate::output::{print, print_json};
use crate::study::table::{gain, plain};
use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use rows::{Kind, Row, Value, read};
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};

/// Compare two runs, two studies or two sweeps: what changed beyond the spread.
///
/// The files are what --json wrote, of the same command both. Rows of a study or a sweep are found by what they are of:
/// kernel, variant, options. A value with draws changed beyond the spread if it went the same way in each draw, where the
/// file has the draws; otherwise if the ranges of both files have nothing in common. A value without draws has no
/// spread, so that any difference counts.
///
/// Of a study and a sweep the columns are thread_ipc, cycles and gain unless --values names others; of a run they are all
/// values of its JSON, but the seconds that it took.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle run sort --json > a.json; heddle run sort --divergence stack --json > b.json; heddle diff a.json b.json
  heddle diff before.json after.json                       two studies or two sweeps, before and after a change
  heddle diff before.json after.json --values simt_efficiency,idle.memory
  heddle diff before.json after.json --all                 also what stayed within the spread
  heddle diff before.json after.json --exit-code           the exit code is 1 if something changed beyond it
  heddle diff before.json after.json --json | jq '.values[] | select(.ratio < 0.98)'")]
pub struct Diff {
    /// What it was
    #[arg(value_name = "BEFORE.json")]
    before: PathBuf,
    /// What it is
    #[arg(value_name = "AFTER.json")]
    after: PathBuf,
    /// Values to compare: keys of the JSON, with dots into it
    #[arg(long, value_name = "KEY,KEY", value_delimiter = ',')]
    values: Vec<String>,
    /// List also what changed within the spread
    #[arg(long)]
    all: bool,
    /// End with exit code 1 if a value changed beyond the spread, or a row is in one file only
    #[arg(long)]
    exit_code: bool,
    /// Print one JSON object with an array `values` instead of the table
    #[arg(long)]
    json: bool,
}

/// What --json prints.
#[derive(Serialize)]
struct Report {
    before: String,
    after: String,
    rows: usize,
    /// Rows of one file only.
    only_before: Vec<String>,
    only_after: Vec<String>,
    /// Values that are the same; that changed, and the range of each draw says nothing of it.
    same: usize,
    within: usize,
    beyond: usize,
    /// Values of which one file has draws that the other has not: these are left out.
    unpaired: usize,
    /// Texts of a run that are otherwise: the key, before, after.
    texts: Vec<[String; 3]>,
    /// Those that changed.
    values: Vec<Changed>,
}

#[derive(Serialize)]
struct Changed {
    /// What the row is of; empty for a run.
    row: String,
    value: String,
    before: Value,
    after: Value,
    /// After over before; none where before is 0 or one of them is missing.
    ratio: Option<f64>,
    beyond: bool,
}

/// Of a run, what the host's time says; compared only where it is asked for.
const OF_THE_HOST: &str = "seconds";

/// Values of studies and sweeps that are compared unless others are asked for.
const USUAL: [&str; 3] = ["thread_ipc", "cycles", "gain"];

impl Diff {
    pub fn run(self) -> Result<()> {
        let [before, after] = [file(&self.before)?, file(&self.after)?];
        let name = |path: &Path| path.display().to_string();
        let (from, to) = (name(&self.before), name(&self.after));
        ensure!(before.0 == after.0, "{from} is of {}, and {to} of {}: both must be of the same", before.0, after.0);
        let keys: Vec<String> = match (&before.0, &self.values[..]) {
            (Kind::Run, []) => Vec::new(),
            (_, []) => USUAL.map(String::from).to_vec(),
            (_, asked) => {
                let known = |key: &str| before.1.iter().chain(&after.1).any(|row| row.values.contains_key(key));
                match asked.iter().find(|key| !known(key)) {
                    Some(unknown) => bail!("neither file has a value {unknown}"),
                    None => asked.to_vec(),
                }
            }
        };
        let report = compared(from, to, &before.1, &after.1, &keys);
        if self.json {
            print_json(&report)?
        } else {
            print(&text(&report, self.all))?
        }
        let differs = report.beyond > 0 || !report.only_before.is_empty() || !report.only_after.is_empty();
        if self.exit_code && differs {
            bail!("{} values changed beyond the spread", report.beyond);
        }
        Ok(())
    }
}

fn file(path: &Path) -> Result<(Kind, Vec<Row>)> {
    let name = path.display();
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
    let json = serde_json::from_str(&text).map_err(|error| anyhow::anyhow!("{name} is no JSON: {error}"))?;
    read(&json).with_context(|| format!("{name} is nothing that `heddle run`, `study` or `sweep` writes with --json"))
}

fn compared(from: String, to: String, before: &[Row], after: &[Row], keys: &[String]) -> Report {
    let missing = |rows: &[Row], others: &[Row]| -> Vec<String> {
        let there = |row: &&Row| others.iter().any(|other| other.name == row.name);
        rows.iter().filter(|row| !there(row)).map(|row| row.name.clone()).collect()
    };
    let mut report = Report {
        before: from,
        after: to,
        rows: 0,
        only_before: missing(before, after),
        only_after: missing(after, before),
        same: 0,
        within: 0,
        beyond: 0,
        unpaired: 0,
        texts: Vec::new(),
        values: Vec::new(),
    };
    for old in before {
        let Some(new) = after.iter().find(|row| row.name == old.name) else { continue };
        report.rows += 1;
        let other = |(key, text): (&String, &String)| {
            let new = new.texts.get(key).filter(|new| *new != text)?;
            Some([key.clone(), text.clone(), new.clone()])
        };
        report.texts.extend(old.texts.iter().filter_map(other));
        let all: Vec<&String> = if keys.is_empty() {
            let of_new = new.values.keys().filter(|key| !old.values.contains_key(*key));
            old.values.keys().chain(of_new).filter(|key| *key != OF_THE_HOST).collect()
        } else {
            keys.iter().collect()
        };
        for key in all {
            let [old_value, new_value] = [old, new].map(|row| row.values.get(key).cloned().unwrap_or_default());
            let (old_value, new_value, unpaired) = old_value.paired(&new_value);
            report.unpaired += usize::from(unpaired);
            if old_value == new_value {
                report.same += usize::from(old_value.mean.is_some());
                continue;
            }
            let beyond = old_value.differs(&new_value);
            *if beyond { &mut report.beyond } else { &mut report.within } += 1;
            let ratio = old_value.ratio(&new_value);
            let (row, value) = (old.name.clone(), key.clone());
            report.values.push(Changed { row, value, before: old_value, after: new_value, ratio, beyond });
        }
    }
    report
}

/// Those that changed, the greatest change of a value first; then what there is beside them.
fn text(report: &Report, all: bool) -> String {
    let mut changed: Vec<&Changed> = report.values.iter().filter(|value| all || value.beyond).collect();
    let size = |of: &Changed| of.ratio.map_or(f64::INFINITY, |ratio| if ratio > 0.0 { ratio.ln().abs() } else { 1e9 });
    changed.sort_by(|a, b| size(b).total_cmp(&size(a)));
    let mut text = String::new();
    if !changed.is_empty() {
        let named = changed.iter().any(|of| !of.row.is_empty());
        let line = |row: String, rest: [String; 4]| {
            let row = named.then_some(row);
            row.into_iter().chain(rest).collect::<Vec<String>>()
        };
        let mut lines = vec![line("row".into(), ["value", "before", "after", "change"].map(String::from))];
        for of in changed {
            let change = of.ratio.map_or("-".into(), gain);
            let change = if of.beyond { change } else { format!("{change}, within the spread") };
            lines.push(line(of.row.clone(), [of.value.clone(), of.before.to_string(), of.after.to_string(), change]));
        }
        text = plain(&lines, if named { 2 } else { 1 });
        text.push('\n');
    }
    for (rows, file) in [(&report.only_before, &report.before), (&report.only_after, &report.after)] {
        for row in rows {
            text += &format!("only in {file}: {row}\n");
        }
    }
    for [key, before, after] in &report.texts {
        text += &format!("{key}: {before} before, {after} after\n");
    }
    if report.unpaired > 0 {
        text += &format!("draws that only one file has are left out, in {} values\n", report.unpaired);
    }
    let Report { rows, same, within, beyond, .. } = report;
    let rows = if *rows == 1 { "1 row".into() } else { format!("{rows} rows") };
    text + &format!(
        "{rows} in both: {beyond} values changed beyond the spread, {within} within it, {same} are the same\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(before: serde_json::Value, after: serde_json::Value, keys: &[&str]) -> Report {
        let [before, after] = [before, after].map(|json| read(&json).unwrap().1);
        let keys: Vec<String> = keys.iter().map(|key| key.to_string()).collect();
        compared("a.json".into(), "b.json".into(), &before, &after, &keys)
    }

    #[test]
    fn of_a_run_every_value_that_is_otherwise_counts() {
        let run = |cycles: u32, memory: u32| json!({ "cycles": cycles, "lanes": 8, "idle": { "memory": memory }, "seconds": cycles });
        let report = of(run(100, 0), run(90, 5), &[]);
        assert_eq!((report.rows, report.beyond, report.within, report.same), (1, 2, 0, 1));
        let text = text(&report, false);
        let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["value", "before", "after", "change"]);
        assert_eq!(lines[1], ["idle.memory", "0", "5", "-"]);
        assert_eq!(lines[2], ["cycles", "100", "90", "-10.0", "%"]);
        assert_eq!(
            text.lines().last(),
            Some("1 row in both: 2 values changed beyond the spread, 0 within it, 1 are the same")
        );
    }

    #[test]
    fn ranges_that_meet_are_within_the_spread() {
        let study = |kernel: &str, ipc: f64, range: [f64; 2]| {
            json!({ "study": "s", "rows": [
                { "study": "s", "kernel": kernel, "variant": "v", "thread_ipc": ipc, "range": range, "draws": 2 }
            ] })
        };
        let report = of(study("gcd", 1.0, [0.9, 1.1]), study("gcd", 1.1, [1.05, 1.2]), &["thread_ipc"]);
        assert_eq!((report.beyond, report.within), (0, 1));
        assert!(!text(&report, false).contains("thread_ipc"));
        assert!(text(&report, true).contains("within the spread"));
        let report = of(study("gcd", 1.0, [0.9, 1.1]), study("gcd", 1.3, [1.2, 1.4]), &["thread_ipc"]);
        assert_eq!((report.beyond, report.within), (1, 0));
        assert!(text(&report, false).contains("1 (0.9000 … 1.100)"), "{}", text(&report, false));
        let report = of(study("gcd", 1.0, [0.9, 1.1]), study("sort", 1.0, [0.9, 1.1]), &["thread_ipc"]);
        assert_eq!((report.rows, report.beyond), (0, 0));
        assert!(text(&report, false).starts_with("only in a.json: gcd v\nonly in b.json: sort v\n0 rows"));
    }

    #[test]
    fn draws_that_go_the_same_way_are_beyond_it() {
        let sweep = |cycles: [u32; 2]| {
            let row = |(draw, cycles): (u32, u32)| {
                json!({ "key": "k", "options": { "kernel": "gcd", "lanes": 4 }, "draw": draw, "ok": true,
                    "result": { "cycles": cycles } })
            };
            json!({ "runs": 2, "rows": (1..).zip(cycles).map(row).collect::<Vec<_>>() })
        };
        let report = of(sweep([100, 200]), sweep([90, 190]), &["cycles"]);
        assert_eq!((report.rows, report.beyond, report.within), (1, 1, 0));
        assert_eq!(report.values[0].row, "kernel=gcd lanes=4");
        let report = of(sweep([100, 200]), sweep([110, 190]), &["cycles"]);
        assert_eq!((report.beyond, report.within), (0, 1));
        // A draw that failed is compared with nothing.
        let mut failed = sweep([50, 7]);
        failed["rows"][1]["ok"] = false.into();
        let report = of(sweep([100, 200]), failed, &["cycles"]);
        assert_eq!((report.values[0].ratio, report.unpaired), (Some(0.5), 1));
        assert!(text(&report, false).contains("draws that only one file has are left out"));
    }
}
