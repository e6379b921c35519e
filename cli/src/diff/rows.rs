//! What a file has: rows with a name and values, each with its spread.

use crate::study::draws::mean;
use crate::sweep::table::leaves;
use serde::Serialize;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;
use std::fmt;

/// What wrote a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    Run,
    /// Its name.
    Study(String),
    Sweep,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Run => f.write_str("a run"),
            Kind::Study(name) => write!(f, "the study {name}"),
            Kind::Sweep => f.write_str("a sweep"),
        }
    }
}

/// A row of a study; all draws of a combination of a sweep; a run.
#[derive(Debug)]
pub struct Row {
    pub name: String,
    /// By their keys, with dots between them.
    pub values: BTreeMap<String, Value>,
    /// Of a run, what is no number.
    pub texts: BTreeMap<String, String>,
}

/// A number. A row that lacks it has none.
#[derive(Clone, PartialEq, Default, Serialize, Debug)]
pub struct Value {
    pub mean: Option<f64>,
    /// Its least and greatest, if there are draws.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// By number of the draw, where the file has them.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub draws: BTreeMap<u64, f64>,
}

impl Value {
    fn once(mean: f64) -> Value {
        Value { mean: Some(mean), ..Value::default() }
    }

    fn drawn(draws: BTreeMap<u64, f64>) -> Value {
        if draws.is_empty() {
            return Value::default();
        }
        let values = || draws.values().copied();
        let range = [values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max)];
        let range = (draws.len() > 1).then_some(range);
        Value { mean: Some(values().sum::<f64>() / draws.len() as f64), range, draws }
    }

    /// Both in the draws that both have, if they have draws; and whether one has more.
    pub fn paired(&self, other: &Value) -> (Value, Value, bool) {
        if self.draws.keys().eq(other.draws.keys()) {
            return (self.clone(), other.clone(), false);
        }
        let of = |own: &Value, other: &Value| {
            let both = own.draws.iter().filter(|(draw, _)| other.draws.contains_key(draw));
            Value::drawn(both.map(|(draw, value)| (*draw, *value)).collect())
        };
        (of(self, other), of(other, self), true)
    }

    /// The other over this: the geometric mean over draws, where both have the same ones, else of the means; none where that
    /// is no number.
    pub fn ratio(&self, other: &Value) -> Option<f64> {
        let pairs: Vec<(f64, f64)> = self.draws.values().copied().zip(other.draws.values().copied()).collect();
        let ratio = if pairs.is_empty() {
            other.mean? / self.mean?
        } else {
            mean(pairs.iter().map(|(before, after)| after / before))
        };
        ratio.is_finite().then_some(ratio)
    }

    /// Whether the other is beyond the spread of both. Those with draws have the same.
    pub fn differs(&self, other: &Value) -> bool {
        if !self.draws.is_empty() && !other.draws.is_empty() {
            let pairs = || self.draws.values().zip(other.draws.values());
            return pairs().all(|(before, after)| before < after) || pairs().all(|(before, after)| before > after);
        }
        match (self.range, other.range) {
            (Some([low, high]), Some([other_low, other_high])) => high < other_low || other_high < low,
            _ => self.mean != other.mean,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(mean) = self.mean else { return f.write_str("-") };
        match self.range {
            Some([least, greatest]) if least < greatest => {
                write!(f, "{} ({} … {})", number(mean), number(least), number(greatest))
            }
            _ => f.write_str(&number(mean)),
        }
    }
}

/// Four digits, or all of a whole number.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    if !(1e-6..1e15).contains(&value.abs()) {
        return format!("{value:.3e}");
    }
    let before = value.abs().log10().floor().max(-9.0) as i32 + 1;
    format!("{value:.*}", (4 - before).max(1) as usize)
}

/// Rows of what a command wrote; nothing if it is of no command whose figures can be compared.
pub fn read(json: &Json) -> Option<(Kind, Vec<Row>)> {
    let object = json.as_object()?;
    let Some(rows) = object.get("rows").and_then(Json::as_array) else {
        object.get("cycles")?;
        let texts = leaves(json).into_iter().filter_map(|(key, value)| Some((key, value.as_str()?.to_string())));
        return Some((Kind::Run, vec![Row { name: String::new(), values: once(json), texts: texts.collect() }]));
    };
    let rows: Vec<&Map<String, Json>> = rows.iter().map(Json::as_object).collect::<Option<_>>()?;
    if let Some(name) = object.get("study").and_then(Json::as_str) {
        return Some((Kind::Study(name.into()), numbered(rows.into_iter().map(of_study).collect())));
    }
    rows.first().is_none_or(|row| row.contains_key("options")).then(|| (Kind::Sweep, of_sweep(&rows)))
}

/// All numbers that a value has.
fn once(json: &Json) -> BTreeMap<String, Value> {
    leaves(json).into_iter().filter_map(|(key, value)| Some((key, Value::once(value.as_f64()?)))).collect()
}

/// Keys of a study's row that say what another of its values may be, or are of the row's name.
const BESIDE: [&str; 4] = ["range", "gain_range", "draws", "study"];

/// Its name is every text that it has.
fn of_study(row: &Map<String, Json>) -> Row {
    let texts = row.iter().filter(|(key, _)| !["study", "failed", "core"].contains(&key.as_str()));
    let name: Vec<&str> = texts.filter_map(|(_, value)| value.as_str()).collect();
    let own: Map<String, Json> =
        row.iter().filter(|(key, _)| !BESIDE.contains(&key.as_str())).map(|(k, v)| (k.clone(), v.clone())).collect();
    let mut values = once(&Json::Object(own));
    let range = |key: &str| {
        let [least, greatest] = &row.get(key)?.as_array()?[..] else { return None };
        Some([least.as_f64()?, greatest.as_f64()?])
    };
    for (key, of_range) in [("thread_ipc", "range"), ("gain", "gain_range")] {
        if let (Some(value), Some(range)) = (values.get_mut(key), range(of_range)) {
            value.range = Some(range);
        }
    }
    Row { name: name.join(" "), values, texts: BTreeMap::new() }
}

/// Rows of one name get a number.
fn numbered(mut rows: Vec<Row>) -> Vec<Row> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for row in &mut rows {
        let count = seen.entry(row.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            row.name += &format!(" #{count}");
        }
    }
    rows
}

/// Values of each draw that ran, by its number.
type Drawn = Vec<(u64, BTreeMap<String, Value>)>;

/// The draws of a combination are one row; of those that failed nothing is there.
fn of_sweep(rows: &[&Map<String, Json>]) -> Vec<Row> {
    let mut combinations: Vec<(String, Drawn)> = Vec::new();
    for row in rows {
        let option = |(key, value): (&String, &Json)| {
            format!("{key}={}", value.as_str().map_or_else(|| value.to_string(), String::from))
        };
        let options = row.get("options").and_then(Json::as_object);
        let name = options.into_iter().flatten().map(option).collect::<Vec<_>>().join(" ");
        let draw = row.get("draw").and_then(Json::as_u64).unwrap_or(0);
        let result = row.get("result").filter(|_| row.get("ok").and_then(Json::as_bool) != Some(false));
        let of_draw = (draw, result.map(once).unwrap_or_default());
        match combinations.iter_mut().find(|(other, _)| *other == name) {
            Some((_, draws)) => draws.push(of_draw),
            None => combinations.push((name, vec![of_draw])),
        }
    }
    let row = |(name, draws): (String, Drawn)| {
        let mut values: BTreeMap<String, BTreeMap<u64, f64>> = BTreeMap::new();
        for (draw, of_draw) in draws {
            for (key, value) in of_draw {
                values.entry(key).or_default().extend(value.mean.map(|mean| (draw, mean)));
            }
        }
        let values = values.into_iter().map(|(key, draws)| (key, Value::drawn(draws))).collect();
        Row { name, values, texts: BTreeMap::new() }
    };
    combinations.into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn numbers_have_four_digits() {
        let texts = [0.123456, 12.3456, 123456.75, 3.0, 0.0, -1.5, 1e300, 1e-9].map(number);
        assert_eq!(texts, ["0.1235", "12.35", "123456.8", "3", "0", "-1.500", "1.000e300", "1.000e-9"]);
    }

    #[test]
    fn files_are_told_apart() {
        let kind = |json: Json| read(&json).map(|(kind, rows)| (kind, rows.len()));
        assert_eq!(kind(json!({ "cycles": 5 })), Some((Kind::Run, 1)));
        assert_eq!(kind(json!({ "study": "order", "rows": [] })), Some((Kind::Study("order".into()), 0)));
        assert_eq!(kind(json!({ "rows": [{ "options": {}, "result": { "cycles": 1 } }] })), Some((Kind::Sweep, 1)));
        for other in [json!([1]), json!({ "a": 1 }), json!({ "rows": [{ "a": 1 }] }), json!({ "rows": [7] })] {
            assert_eq!(kind(other), None);
        }
    }

    #[test]
    fn rows_of_one_name_are_told_apart() {
        let row = |cycles: u32| json!({ "study": "s", "kernel": "gcd", "set": null, "cycles": cycles, "draws": 3 });
        let (_, rows) = read(&json!({ "study": "s", "rows": [row(1), row(2)] })).unwrap();
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["gcd", "gcd #2"]);
        assert_eq!(rows[0].values.keys().map(String::as_str).collect::<Vec<_>>(), ["cycles"]);
    }
}
