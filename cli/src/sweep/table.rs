//! The table at the end: a row for each combination of the options that are its rows, with mean and range of what is in
//! them; and how much more that is than with the options of a baseline, draw by draw.

use super::command::Command;
use super::expand::Combination;
use super::file::{Dimension, File, Value};
use super::plan::Plan;
use super::store::Record;
use crate::study::draws::Gain;
use crate::study::table::plain;
use anyhow::{Result, anyhow, bail};
use serde_json::Value as Json;

/// What the table shows, checked.
pub struct Table {
    rows: Vec<String>,
    columns: Vec<String>,
    baseline: Vec<Dimension>,
}

const NONE: &str = "-";

impl Table {
    /// As the file says; otherwise rows are all options that have several values. `name` is the file's, for messages.
    pub fn new(name: &str, file: &File, command: Command) -> Result<Table> {
        let mut keys: Vec<&str> = Vec::new();
        for dimension in file.groups.iter().flatten() {
            if !keys.contains(&dimension.key.as_str()) {
                keys.push(&dimension.key);
            }
        }
        for row in &file.table.rows {
            if !keys.contains(&row.it.as_str()) {
                bail!("{name}:{}: rows: `{}` is none of the options above", row.line, row.it);
            }
        }
        let sample = command.sample();
        for column in &file.table.columns {
            let known = sample.as_ref().is_none_or(|sample| field(sample, &column.it).is_some());
            if !known {
                let keys = sample.as_ref().map(leaves).unwrap_or_default();
                let keys: Vec<String> = keys.into_iter().map(|(key, _)| key).collect();
                bail!(
                    "{name}:{}: columns: a result of `heddle {}` has no `{}`; it has {}",
                    column.line,
                    command.name(),
                    column.it,
                    keys.join(", ")
                );
            }
        }
        let values = |key: &str| {
            let of = |group: &Vec<Dimension>| {
                let found = group.iter().find(|dimension| dimension.key == key);
                found.map_or(vec![None], |dimension| {
                    dimension.values.iter().map(|value| Some(value.it.to_string())).collect()
                })
            };
            let mut values: Vec<Option<String>> = file.groups.iter().flat_map(of).collect();
            values.sort();
            values.dedup();
            values
        };
        for dimension in &file.table.baseline {
            let value = &dimension.values[0];
            if !values(&dimension.key).contains(&Some(value.it.to_string())) {
                bail!("{name}:{}: baseline: no combination has {} = {}", value.line, dimension.key, value.it);
            }
        }
        let varying = || keys.iter().filter(|key| values(key).len() > 1).map(|key| key.to_string()).collect::<Vec<_>>();
        let first = || keys.iter().take(1).map(|key| key.to_string()).collect();
        let rows = match &file.table.rows[..] {
            [] if varying().is_empty() => first(),
            [] => varying(),
            rows => rows.iter().map(|row| row.it.clone()).collect(),
        };
        let columns = match &file.table.columns[..] {
            [] => command.usual_columns().iter().map(|column| column.to_string()).collect(),
            columns => columns.iter().map(|column| column.it.clone()).collect(),
        };
        Ok(Table { rows, columns, baseline: file.table.baseline.clone() })
    }

    /// Side by side, for people.
    pub fn text(&self, plan: &Plan, records: &[Option<Record>]) -> Result<String> {
        Ok(plain(&self.lines(plan, records)?, self.rows.len()))
    }

    fn lines(&self, plan: &Plan, records: &[Option<Record>]) -> Result<Vec<Vec<String>>> {
        let mut heads = self.rows.clone();
        for column in &self.columns {
            heads.push(column.clone());
            if !self.baseline.is_empty() {
                heads.push("over baseline".into());
            }
        }
        heads.push("runs".into());
        let partners = partners(plan, &self.baseline);
        let mut lines = vec![heads];
        for (names, jobs) in self.groups(plan) {
            let good = |at: &usize| records[*at].as_ref().filter(|record| record.ok);
            let mut line = names;
            for column in &self.columns {
                let values: Vec<&Json> =
                    jobs.iter().filter_map(good).filter_map(|record| field(&record.result, column)).collect();
                if let (Some(record), true) = (jobs.iter().find_map(good), values.is_empty()) {
                    missing(record, column)?;
                }
                line.push(cell(&values));
                if !self.baseline.is_empty() {
                    line.push(Self::gain(plan, &partners, records, &jobs, column));
                }
            }
            let ended = jobs.iter().filter_map(good).count();
            line.push(if ended == jobs.len() { ended.to_string() } else { format!("{ended} of {}", jobs.len()) });
            lines.push(line);
        }
        Ok(lines)
    }

    /// The values of rows, and the jobs that have them; sorted by the first row's value, then the next's, each in the
    /// order of the file.
    fn groups(&self, plan: &Plan) -> Vec<(Vec<String>, Vec<usize>)> {
        let mut groups: Vec<(Vec<String>, Vec<usize>)> = Vec::new();
        for (at, job) in plan.jobs.iter().enumerate() {
            let combination = &plan.combinations[job.combination].combination;
            let name = |row: &String| combination.value(row).map_or(NONE.into(), Value::to_string);
            let names: Vec<String> = self.rows.iter().map(name).collect();
            match groups.iter_mut().find(|(other, _)| *other == names) {
                Some((_, jobs)) => jobs.push(at),
                None => groups.push((names, vec![at])),
            }
        }
        let places: Vec<Vec<usize>> = groups
            .iter()
            .map(|(names, _)| {
                let place = |(row, name): (usize, &String)| groups.iter().position(|(other, _)| other[row] == *name);
                names.iter().enumerate().filter_map(place).collect()
            })
            .collect();
        let mut sorted: Vec<_> = places.into_iter().zip(groups).collect();
        sorted.sort_by(|(place, _), (other, _)| place.cmp(other));
        sorted.into_iter().map(|(_, group)| group).collect()
    }

    /// Over the runs with the options of the baseline instead, which are otherwise the same.
    fn gain(
        plan: &Plan,
        partners: &[Option<usize>],
        records: &[Option<Record>],
        jobs: &[usize],
        column: &str,
    ) -> String {
        let draws = plan.jobs.len() / plan.combinations.len();
        let value = |at: usize| number(field(&records[at].as_ref().filter(|record| record.ok)?.result, column)?);
        let pair = |at: &usize| {
            let combination = plan.jobs[*at].combination;
            let partner = partners[combination]?;
            // Every combination has as many draws.
            let before = *at + partner * draws - combination * draws;
            Some((before != *at, value(before)?, value(*at)?))
        };
        let pairs: Vec<(bool, f64, f64)> =
            jobs.iter().filter_map(pair).filter(|(_, before, _)| *before != 0.0).collect();
        if pairs.iter().all(|(is_another, ..)| !is_another) {
            return String::new();
        }
        let (before, after): (Vec<f64>, Vec<f64>) = pairs.into_iter().map(|(_, before, after)| (before, after)).unzip();
        let gain = Gain::paired(&before, &after);
        let same = gain.greatest - gain.least < 0.0005;
        if same { crate::study::table::gain(gain.mean) } else { format!("{} ({})", gain.text(), gain.range()) }
    }
}

/// Of each combination, the one that has these options and of the others, those that it has, the same. Of several, the
/// one that has most.
fn partners(plan: &Plan, options: &[Dimension]) -> Vec<Option<usize>> {
    let all: Vec<&Combination> = plan.combinations.iter().map(|planned| &planned.combination).collect();
    let having: Vec<usize> = (0..all.len()).filter(|at| all[*at].has(options)).collect();
    let partner = |one: &&Combination| {
        let agreeing = having.iter().rev().filter(|at| all[**at].agrees(one, options));
        agreeing.max_by_key(|at| all[**at].0.len()).copied()
    };
    all.iter().map(partner).collect()
}

/// A key of a result that the command was not known to have.
fn missing(record: &Record, column: &str) -> Result<()> {
    let keys: Vec<String> = leaves(&record.result).into_iter().map(|(key, _)| key).collect();
    match field(&record.result, column) {
        Some(_) => Ok(()),
        None if column.split('.').next().is_some_and(|first| record.result.get(first).is_some()) => Ok(()),
        None => Err(anyhow!("columns: a result has no `{column}`; it has {}", keys.join(", "))),
    }
}

/// The value at a key, or at keys with dots between them.
pub fn field<'a>(result: &'a Json, key: &str) -> Option<&'a Json> {
    key.split('.').try_fold(result, |value, key| value.get(key))
}

/// Every value that is no object, by its keys with dots between them.
pub fn leaves<'a>(result: &'a Json) -> Vec<(String, &'a Json)> {
    let Json::Object(fields) = result else { return Vec::new() };
    let below = |(key, value): (&String, &'a Json)| match value {
        Json::Object(_) => leaves(value).into_iter().map(|(inner, value)| (format!("{key}.{inner}"), value)).collect(),
        value => vec![(key.clone(), value)],
    };
    fields.iter().flat_map(below).collect()
}

fn number(value: &Json) -> Option<f64> {
    value.as_f64()
}

/// Mean and range of numbers; another value if it is the only one.
fn cell(values: &[&Json]) -> String {
    let numbers: Vec<f64> = values.iter().filter_map(|value| number(value)).collect();
    match (&numbers[..], values) {
        (_, []) => NONE.into(),
        ([], [first, rest @ ..]) if rest.iter().all(|other| other == first) => match first {
            Json::String(text) => text.clone(),
            Json::Null => NONE.into(),
            other => other.to_string(),
        },
        ([], _) => "various".into(),
        (numbers, _) => {
            let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
            let least = numbers.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            if least == greatest {
                figure(least)
            } else {
                format!("{} ({} … {})", figure(mean), figure(least), figure(greatest))
            }
        }
    }
}

/// Four digits or so; all of a large number's before the point.
fn figure(value: f64) -> String {
    match value.abs() {
        _ if value.fract() == 0.0 => format!("{value:.0}"),
        size if size >= 1000.0 => format!("{value:.0}"),
        size if size >= 100.0 => format!("{value:.1}"),
        size if size >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::testing::record;
    use super::*;
    use serde_json::json;
    use std::path::Path;

    const OPTIONS: &str = "command = \"run\"\ndraws = 2\n[options]\nkernel = \"gcd\"\nlanes = [2, 4]\nwarps = 1\n";

    fn table(text: &str) -> Result<(Table, Plan)> {
        let file = File::parse("s.toml", &format!("{OPTIONS}{text}"))?;
        let plan = Plan::new("s.toml", &file, Path::new(""))?;
        Ok((Table::new("s.toml", &file, plan.command)?, plan))
    }

    /// Of two lanes and two draws, then four lanes.
    fn records(cycles: [u64; 4]) -> Vec<Option<Record>> {
        let of = |cycles| Some(record(&[], 1, json!({ "cycles": cycles, "idle": { "memory": 1.5 }, "core": "x" })));
        cycles.map(of).to_vec()
    }

    #[test]
    fn a_row_has_mean_and_range_over_draws() {
        let (table, plan) = table("[table]\ncolumns = [\"cycles\", \"idle.memory\", \"core\"]\n").unwrap();
        let lines = table.lines(&plan, &records([100, 300, 50, 50])).unwrap();
        assert_eq!(lines[0], ["lanes", "cycles", "idle.memory", "core", "runs"]);
        assert_eq!(lines[1], ["2", "200 (100 … 300)", "1.500", "x", "2"]);
        assert_eq!(lines[2], ["4", "50", "1.500", "x", "2"]);
    }

    #[test]
    fn rows_are_in_the_order_of_their_options() {
        let text = "command = \"run\"\n[[options]]\nwarps = [2, 1]\nkernel = [\"sort\", \"gcd\"]\n\
                    [[options]]\nkernel = \"sort\"\nwarps = 4\n[table]\nrows = [\"kernel\", \"warps\"]\n";
        let file = File::parse("s.toml", text).unwrap();
        let plan = Plan::new("s.toml", &file, Path::new("")).unwrap();
        let groups = Table::new("s.toml", &file, plan.command).unwrap().groups(&plan);
        let names: Vec<String> = groups.into_iter().map(|(names, _)| names.join(" ")).collect();
        assert_eq!(names, ["sort 2", "sort 1", "sort 4", "gcd 2", "gcd 1"]);
    }

    #[test]
    fn others_are_over_the_baseline_draw_by_draw() {
        let (table, plan) = table("[table]\ncolumns = [\"cycles\"]\nbaseline = { lanes = 2 }\n").unwrap();
        let lines = table.lines(&plan, &records([100, 300, 200, 600])).unwrap();
        assert_eq!(lines[0], ["lanes", "cycles", "over baseline", "runs"]);
        assert_eq!(lines[1], ["2", "200 (100 … 300)", "", "2"]);
        assert_eq!(lines[2], ["4", "400 (200 … 600)", "+100.0 %", "2"]);
        let lines = table.lines(&plan, &records([100, 300, 50, 600])).unwrap();
        assert_eq!(lines[2][2], "none (-50.0 … +100.0 %)");
    }

    #[test]
    fn a_baseline_need_not_have_all_options() {
        let groups = "command = \"run\"\n[[options]]\nkernel = [\"gcd\", \"sort\"]\ndivergence = \"stack\"\n\
                      [[options]]\nkernel = [\"gcd\", \"sort\"]\ndivergence = \"stack\"\nlikely = \"on\"\n\
                      [[options]]\nkernel = \"sort\"\ndivergence = \"path-table\"\nfair = \"on\"\n\
                      [table]\nbaseline = { divergence = \"stack\" }\n";
        let file = File::parse("s.toml", groups).unwrap();
        let plan = Plan::new("s.toml", &file, Path::new("")).unwrap();
        assert_eq!(partners(&plan, &file.table.baseline), [Some(0), Some(1), Some(2), Some(3), Some(1)]);
    }

    #[test]
    fn what_failed_or_is_missing_is_in_no_mean() {
        let (table, plan) = table("[table]\nrows = [\"kernel\"]\ncolumns = [\"cycles\"]\n").unwrap();
        let mut records = records([100, 300, 70, 80]);
        records[1].as_mut().unwrap().ok = false;
        records[2] = None;
        assert_eq!(table.lines(&plan, &records).unwrap()[1], ["gcd", "90 (80 … 100)", "2 of 4"]);
        assert_eq!(table.lines(&plan, &[None, None, None, None]).unwrap()[1], ["gcd", NONE, "0 of 4"]);
    }

    #[test]
    fn names_are_checked_before_anything_runs() {
        let error = |text: &str| table(text).err().unwrap().to_string();
        assert_eq!(error("[table]\nrows = [\"lane\"]\n"), "s.toml:8: rows: `lane` is none of the options above");
        let unknown = error("[table]\ncolumns = [\"ipc\"]\n");
        assert!(
            unknown.starts_with("s.toml:8: columns: a result of `heddle run` has no `ipc`; it has accesses, "),
            "{unknown}"
        );
        assert!(unknown.contains("cache.hits") && unknown.contains("thread_ipc"), "{unknown}");
        let error = error("[table]\nbaseline = { lanes = 8 }\n");
        assert_eq!(error, "s.toml:8: baseline: no combination has lanes = 8");
    }

    /// Whatever is changed in a file, it is a sweep or an error of one line.
    #[test]
    fn any_text_is_a_sweep_or_an_error() {
        use proptest::prelude::*;
        let text = format!(
            "{OPTIONS}[[exclude]]\nlanes = 2\nwarps = [2, 1]\n[table]\nrows = [\"lanes\"]\nbaseline = {{ lanes = 4 }}\n"
        );
        let characters: Vec<char> = text.chars().collect();
        let other =
            prop_oneof![any::<char>(), proptest::sample::select("[]{}=.,\"'\n#0-_".chars().collect::<Vec<_>>())];
        let change = (0..characters.len(), 0..4usize, proptest::collection::vec(other, 0..3));
        proptest!(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) }, |((at, less, more) in change)| {
            let mut changed = characters.clone();
            changed.splice(at..(at + less).min(characters.len()), more);
            let changed: String = changed.into_iter().collect();
            let table = || -> Result<Table> {
                let file = File::parse("s.toml", &changed)?;
                let plan = Plan::new("s.toml", &file, Path::new(""))?;
                Table::new("s.toml", &file, plan.command)
            };
            if let Err(error) = table() {
                prop_assert!(error.to_string().starts_with("s.toml"), "{changed}: {error}");
            }
        });
        let nothing = File::parse("s.toml", "command = \"hash\"\n[options]\n").unwrap();
        assert!(Table::new("s.toml", &nothing, Command::Hash).unwrap().rows.is_empty());
    }

    #[test]
    fn figures_have_four_digits_or_so() {
        let texts = [12345.6, 123.45, 12.345, 1.2345, 0.12345, 7.0].map(figure);
        assert_eq!(texts, ["12346", "123.5", "12.35", "1.234", "0.123", "7"]);
        assert_eq!(cell(&[&json!("a"), &json!("b")]), "various");
        assert_eq!(cell(&[&Json::Null]), NONE);
    }
}
