//! Results one by one: as CSV, for spreadsheets and pandas, and as JSON.

use super::plan::{Job, Plan};
use super::store::Record;
use super::table::leaves;
use anyhow::Result;
use serde::Serialize;
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// A run of a sweep as JSON has it.
#[derive(Serialize)]
pub struct Row<'a> {
    /// The name of its file, without `.json`.
    key: &'a str,
    #[serde(flatten)]
    record: &'a Record,
}

/// Those that there are.
pub fn rows<'a>(plan: &'a Plan, records: &'a [Option<Record>]) -> Vec<Row<'a>> {
    let row = |(job, record): (&'a Job, &'a Option<Record>)| Some(Row { key: &job.key, record: record.as_ref()? });
    plan.jobs.iter().zip(records).filter_map(row).collect()
}

/// A line a run: its options, draw, whether it is good and why not; then every value of its result by its keys with dots
/// between them, but those that the options say.
pub fn csv(plan: &Plan, records: &[Option<Record>]) -> Result<Vec<u8>> {
    let mut options: Vec<&str> = Vec::new();
    for (key, _) in plan.combinations.iter().flat_map(|planned| &planned.combination.0) {
        if !options.contains(&key.as_str()) {
            options.push(key);
        }
    }
    const OWN: [&str; 3] = ["draw", "ok", "error"];
    let all = records.iter().flatten().flat_map(|record| leaves(&record.result)).map(|(key, _)| key);
    let values: BTreeSet<String> =
        all.filter(|key| !options.contains(&key.as_str()) && !OWN.contains(&key.as_str())).collect();
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(options.iter().copied().chain(OWN).chain(values.iter().map(String::as_str)))?;
    for record in records.iter().flatten() {
        let of_options = options.iter().map(|key| record.options.get(*key).map_or_else(String::new, text));
        let own = [record.draw.map_or_else(String::new, |draw| draw.to_string()), record.ok.to_string()];
        let own = own.into_iter().chain([record.error.clone().unwrap_or_default()]);
        let has = leaves(&record.result);
        let of_result = values.iter().map(|key| {
            let found = has.iter().find(|(other, _)| other == key);
            found.map_or_else(String::new, |(_, value)| text(value))
        });
        writer.write_record(of_options.chain(own).chain(of_result))?;
    }
    Ok(writer.into_inner()?)
}

/// A text as it is, nothing for null, JSON for the others.
fn text(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        Json::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::File;
    use super::super::store::testing::record;
    use super::*;
    use serde_json::json;
    use std::path::Path;

    #[test]
    fn a_line_has_options_and_every_value() {
        let text = "command = \"run\"\ndraws = 2\n[options]\nlanes = 2\nwarps = 1\nkernel = \"gcd\"\n";
        let file = File::parse("s.toml", text).unwrap();
        let plan = Plan::new("s.toml", &file, Path::new("")).unwrap();
        let options = [("lanes", "2"), ("warps", "1"), ("kernel", "gcd")];
        let result =
            json!({ "lanes": 2, "cycles": 5, "idle": { "memory": 1 }, "cache": null, "ok": true, "core": "a, \"b\"" });
        let mut failed = record(&options, 2, json!({ "cycles": 7 }));
        (failed.ok, failed.error) = (false, Some("wrong".into()));
        let records = [Some(record(&options, 1, result)), Some(failed), None];
        let written = String::from_utf8(csv(&plan, &records).unwrap()).unwrap();
        let lines: Vec<&str> = written.lines().collect();
        assert_eq!(lines[0], "lanes,warps,kernel,draw,ok,error,cache,core,cycles,idle.memory");
        assert_eq!(lines[1], "2,1,gcd,1,true,,,\"a, \"\"b\"\"\",5,1");
        assert_eq!(lines[2], "2,1,gcd,2,false,wrong,,,7,");
        assert_eq!((lines.len(), rows(&plan, &records[..2]).len()), (3, 2));
    }
}
