//! The file of a sweep: TOML, and the line of each thing in it, for messages.

use anyhow::{Result, anyhow, bail};
use std::fmt;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeInteger, DeString, DeTable, DeValue};

/// A sweep as its file says it.
#[derive(Debug, PartialEq)]
pub struct File {
    pub command: At<String>,
    /// Seeds, from 1 on, that each combination runs with.
    pub draws: Option<At<u32>>,
    /// Combinations that no core can have, or that the program does not fit, are left out.
    pub skip_refused: bool,
    /// A product of values each; the sweep is all of them.
    pub groups: Vec<Group>,
    /// Combinations that have all of these are left out.
    pub excludes: Vec<Group>,
    pub table: TableSpec,
}

/// Options with their values, in the order of the file.
pub type Group = Vec<Dimension>;

#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    pub key: String,
    /// Of the key.
    pub line: usize,
    pub values: Vec<At<Value>>,
}

/// What an option is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    Flag(bool),
    /// Of an option that is given several times, several.
    Words(Vec<String>),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Flag(flag) => write!(f, "{flag}"),
            Value::Words(words) => f.write_str(&words.join(" ")),
        }
    }
}

/// Something, and its line.
#[derive(Clone, PartialEq, Debug)]
pub struct At<T> {
    pub line: usize,
    pub it: T,
}

/// What the table shows.
#[derive(Default, Debug, PartialEq)]
pub struct TableSpec {
    /// Options; each combination of their values has a row.
    pub rows: Vec<At<String>>,
    /// Keys of the command's JSON.
    pub columns: Vec<At<String>>,
    /// What each run is compared with, draw by draw: the run with these options instead.
    pub baseline: Group,
}

/// The text that is read, and what messages call it.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

/// Seeds of more draws are mistakes.
const MOST_DRAWS: u32 = 1000;

const KEYS: [&str; 6] = ["command", "draws", "skip_refused", "options", "exclude", "table"];

impl File {
    pub fn read(path: &Path) -> Result<File> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| anyhow!("cannot read {name}: {error}"))?;
        File::parse(&name, &text)
    }

    /// A text; messages begin with the name.
    pub fn parse(name: &str, text: &str) -> Result<File> {
        let source = Source { name, text };
        let table = DeTable::parse(text).map_err(|error| {
            let place = source.place(error.span().map_or(0, |span| span.start));
            anyhow!("{place}: {}", error.message().replace('\n', ", "))
        })?;
        let mut file = File {
            command: At { line: 0, it: String::new() },
            draws: None,
            skip_refused: false,
            groups: Vec::new(),
            excludes: Vec::new(),
            table: TableSpec::default(),
        };
        for (key, value) in entries(table.get_ref()) {
            let wrong = |wanted: &str| source.wrong(key, value, wanted);
            match key.get_ref().as_ref() {
                "command" => file.command = source.at(value, source.text(key, value)?),
                "draws" => {
                    let wanted = format!("a number from 1 to {MOST_DRAWS}");
                    let draws = integer(value.get_ref()).and_then(|draws| u32::try_from(draws).ok());
                    let draws = draws.filter(|draws| (1..=MOST_DRAWS).contains(draws));
                    file.draws = Some(source.at(value, draws.ok_or_else(|| wrong(&wanted))?));
                }
                "skip_refused" => {
                    file.skip_refused = value.get_ref().as_bool().ok_or_else(|| wrong("true or false"))?;
                }
                "options" => file.groups = source.groups(key, value)?,
                "exclude" => file.excludes = source.groups(key, value)?,
                "table" => file.table = source.table(key, value)?,
                other => return Err(source.unknown(key, other, &KEYS)),
            }
        }
        if file.command.line == 0 {
            bail!("{name}: `command` is missing: it says which command's options these are");
        }
        if file.groups.is_empty() {
            bail!("{name}: `options` is missing: a table of options and their values");
        }
        Ok(file)
    }
}

impl Source<'_> {
    fn line(&self, at: usize) -> usize {
        1 + self.text.as_bytes()[..at.min(self.text.len())].iter().filter(|byte| **byte == b'\n').count()
    }

    fn place(&self, at: usize) -> String {
        format!("{}:{}", self.name, self.line(at))
    }

    fn at<T, V>(&self, value: &Spanned<V>, it: T) -> At<T> {
        At { line: self.line(value.span().start), it }
    }

    fn wrong(&self, key: &Spanned<DeString>, value: &Spanned<DeValue>, wanted: &str) -> anyhow::Error {
        let text = self.text.get(value.span()).unwrap_or_default();
        let text = text.lines().next().unwrap_or_default();
        anyhow!("{}: {} = {text}: wanted is {wanted}", self.place(value.span().start), key.get_ref())
    }

    fn unknown(&self, key: &Spanned<DeString>, name: &str, known: &[&str]) -> anyhow::Error {
        anyhow!("{}: there is no key `{name}`; those are {}", self.place(key.span().start), known.join(", "))
    }

    fn text(&self, key: &Spanned<DeString>, value: &Spanned<DeValue>) -> Result<String> {
        let text = value.get_ref().as_str();
        text.map(String::from).ok_or_else(|| self.wrong(key, value, "a text in quotes"))
    }

    /// A table, or a list of them.
    fn groups(&self, key: &Spanned<DeString>, value: &Spanned<DeValue>) -> Result<Vec<Group>> {
        match value.get_ref() {
            DeValue::Table(table) => Ok(vec![self.group(table)?]),
            DeValue::Array(tables) => {
                let group = |table: &Spanned<DeValue>| match table.get_ref() {
                    DeValue::Table(table) => self.group(table),
                    _ => Err(self.wrong(key, table, "a table of options")),
                };
                tables.iter().map(group).collect()
            }
            _ => Err(self.wrong(key, value, "a table of options")),
        }
    }

    fn group(&self, table: &DeTable) -> Result<Group> {
        let dimension = |(key, value): (&Spanned<DeString>, &Spanned<DeValue>)| {
            let values = match value.get_ref() {
                DeValue::Array(values) if values.is_empty() => {
                    return Err(self.wrong(key, value, "a value or several"));
                }
                DeValue::Array(values) => {
                    values.iter().map(|value| Ok(self.at(value, self.value(key, value)?))).collect::<Result<_>>()?
                }
                _ => vec![self.at(value, self.value(key, value)?)],
            };
            Ok(Dimension { key: key.get_ref().to_string(), line: self.line(key.span().start), values })
        };
        entries(table).into_iter().map(dimension).collect()
    }

    /// A value of an option; of one that is given several times, a list.
    fn value(&self, key: &Spanned<DeString>, value: &Spanned<DeValue>) -> Result<Value> {
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(Value::Flag(*flag)),
            DeValue::Array(words) => {
                let word = |value: &Spanned<DeValue>| {
                    word(value.get_ref()).ok_or_else(|| self.wrong(key, value, "a number or a text in quotes"))
                };
                Ok(Value::Words(words.iter().map(word).collect::<Result<_>>()?))
            }
            other => match word(other) {
                Some(word) => Ok(Value::Words(vec![word])),
                None => Err(self.wrong(key, value, "a number, a text in quotes, true or false")),
            },
        }
    }

    fn table(&self, key: &Spanned<DeString>, value: &Spanned<DeValue>) -> Result<TableSpec> {
        let DeValue::Table(table) = value.get_ref() else { return Err(self.wrong(key, value, "a table")) };
        let mut spec = TableSpec::default();
        for (key, value) in entries(table) {
            match key.get_ref().as_ref() {
                "rows" => spec.rows = self.names(key, value)?,
                "columns" => spec.columns = self.names(key, value)?,
                "baseline" => match value.get_ref() {
                    DeValue::Table(table) => spec.baseline = self.group(table)?,
                    _ => return Err(self.wrong(key, value, "a table of options, such as { divergence = \"stack\" }")),
                },
                other => return Err(self.unknown(key, other, &["rows", "columns", "baseline"])),
            }
        }
        if let Some(several) = spec.baseline.iter().find(|dimension| dimension.values.len() > 1) {
            bail!("{}:{}: baseline: {}: wanted is one value", self.name, several.line, several.key);
        }
        Ok(spec)
    }

    fn names(&self, key: &Spanned<DeString>, value: &Spanned<DeValue>) -> Result<Vec<At<String>>> {
        let Some(names) = value.get_ref().as_array().filter(|names| !names.is_empty()) else {
            return Err(self.wrong(key, value, "a list of names"));
        };
        names.iter().map(|name| Ok(self.at(name, self.text(key, name)?))).collect()
    }
}

/// In the order of the text.
fn entries<'a, 'i>(table: &'a DeTable<'i>) -> Vec<(&'a Spanned<DeString<'i>>, &'a Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

fn integer(value: &DeValue) -> Option<i64> {
    let number: &DeInteger = value.as_integer()?;
    i64::from_str_radix(number.as_str(), number.radix()).ok()
}

/// As it stands on a command line.
fn word(value: &DeValue) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(_) => Some(integer(value)?.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_string()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<File> {
        File::parse("s.toml", text)
    }

    #[test]
    fn options_are_in_the_order_of_the_file() {
        let file = parse(
            "command = \"run\"\ndraws = 3\n[options]\nwarps = [2, 0x10]\nlanes = 8\nno-checks = [true, false]\n\
             set = [[\"a=1\", \"b=2\"], [\"a=3\"]]\n",
        )
        .unwrap();
        let text = |dimension: &Dimension| {
            let values = dimension.values.iter().map(|value| value.it.to_string()).collect::<Vec<_>>();
            format!("{} {}: {}", dimension.line, dimension.key, values.join(", "))
        };
        let texts: Vec<String> = file.groups[0].iter().map(text).collect();
        assert_eq!(texts, ["4 warps: 2, 16", "5 lanes: 8", "6 no-checks: true, false", "7 set: a=1 b=2, a=3"]);
        assert_eq!((file.command.it.as_str(), file.draws), ("run", Some(At { line: 2, it: 3 })));
    }

    #[test]
    fn groups_and_excludes_are_one_or_several() {
        let rest = "[[options]]\nlanes = 1\n[[options]]\nlanes = 2\n[table]\nrows = [\"lanes\"]\n";
        let file = parse(&format!("command = \"run\"\nexclude = [{{ lanes = [1, 2], warps = 4 }}]\n{rest}")).unwrap();
        assert_eq!((file.groups.len(), file.excludes.len(), file.excludes[0].len()), (2, 1, 2));
        assert_eq!(file.table.rows, [At { line: 8, it: "lanes".into() }]);
    }

    #[test]
    fn each_mistake_is_a_line_with_its_place() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        let with = |text: &str| error(&format!("command = \"run\"\n{text}\n"));
        assert_eq!(
            error("[options]\nlanes = 8\n"),
            "s.toml: `command` is missing: it says which command's options these are"
        );
        assert_eq!(with(""), "s.toml: `options` is missing: a table of options and their values");
        for (text, wanted) in [
            (
                "draw = 8",
                "s.toml:2: there is no key `draw`; those are command, draws, skip_refused, options, exclude, table",
            ),
            ("draws = 0", "s.toml:2: draws = 0: wanted is a number from 1 to 1000"),
            ("draws = \"8\"", "s.toml:2: draws = \"8\": wanted is a number from 1 to 1000"),
            ("skip_refused = 1", "s.toml:2: skip_refused = 1: wanted is true or false"),
            ("options = 3", "s.toml:2: options = 3: wanted is a table of options"),
            ("options = [1]", "s.toml:2: options = 1: wanted is a table of options"),
            ("[options]\nlanes = []", "s.toml:3: lanes = []: wanted is a value or several"),
            (
                "[options]\nlanes = { a = 1 }",
                "s.toml:3: lanes = { a = 1 }: wanted is a number, a text in quotes, true or false",
            ),
            ("[options]\nset = [[true]]", "s.toml:3: set = true: wanted is a number or a text in quotes"),
            (
                "[options]\na = 1\n[table]\nrow = 1",
                "s.toml:5: there is no key `row`; those are rows, columns, baseline",
            ),
            ("[options]\na = 1\n[table]\nrows = \"a\"", "s.toml:5: rows = \"a\": wanted is a list of names"),
            ("[options]\na = 1\n[table]\nbaseline = { a = [1, 2] }", "s.toml:5: baseline: a: wanted is one value"),
        ] {
            assert_eq!(with(text), wanted);
        }
        let broken = with("lanes = [8");
        assert!(broken.starts_with("s.toml:2: ") && !broken.contains('\n'), "{broken}");
        assert!(with("draws = 1\ndraws = 2").starts_with("s.toml:3: "));
    }
}
