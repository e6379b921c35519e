//! The file of a host description: its tables, and the line of each thing in it.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use toml::Spanned;

use super::DescriptionError;
use super::elements::Type;
use super::picture::Colours;
use crate::nearest::{nearest, suggestion};

/// Names with something.
pub type Named<T> = BTreeMap<Spanned<String>, T>;

/// A host description as its file says it.
#[derive(Clone, Debug)]
pub struct Description {
    name: String,
    folder: PathBuf,
    text: String,
    pub(super) tables: Tables,
}

/// An option of the core, as `heddle run` names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CoreOption {
    /// Its name without dashes.
    pub key: String,
    /// What it is given.
    pub value: String,
    /// Where it stands.
    pub place: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Tables {
    pub build: Build,
    pub core: Named<Spanned<Word>>,
    pub grid: Grid,
    pub arguments: Named<i128>,
    pub buffers: Named<Buffer>,
    pub check: Option<Spanned<Check>>,
    pub results: Seen,
    pub pictures: Named<Picture>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Build {
    pub sources: Option<Spanned<Vec<String>>>,
    pub flags: Vec<String>,
}

/// What is to be seen of buffers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Seen {
    pub print: Vec<Spanned<String>>,
    pub save: Named<Spanned<String>>,
}

/// A value of an option.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "wanted is a number or a text in quotes; `on` and `off` are texts")]
pub enum Word {
    Number(i64),
    Text(String),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Grid {
    pub blocks: Option<NonZeroU32>,
    pub block_threads: Option<NonZeroU32>,
    /// A thread for each of so many.
    pub items: Option<Spanned<u32>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Buffer {
    #[serde(rename = "type")]
    pub element: Type,
    pub length: Option<Spanned<usize>>,
    pub fill: Option<Spanned<Fill>>,
    pub from: Option<Spanned<i128>>,
    pub to: Option<Spanned<i128>>,
    pub step: Option<Spanned<i128>>,
    pub seed: Option<Spanned<u64>>,
    pub values: Option<Spanned<Vec<i128>>>,
    pub file: Option<Spanned<String>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fill {
    Zeros,
    Counting,
    Random,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Check {
    /// A function that computes what the buffers should hold.
    pub reference: Option<Spanned<String>>,
    pub buffers: Vec<Spanned<String>>,
    /// Buffers, and files of what they should hold.
    pub files: Named<Spanned<String>>,
}

impl Check {
    /// It compares nothing.
    pub fn is_empty(&self) -> bool {
        self.reference.is_none() && self.buffers.is_empty() && self.files.is_empty()
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Picture {
    pub width: Spanned<u32>,
    pub height: Spanned<u32>,
    #[serde(default)]
    pub colours: Colours,
    pub from: Option<i128>,
    pub to: Option<i128>,
    pub file: Option<Spanned<String>>,
}

impl Description {
    /// Reads the file. Paths in it begin at its folder.
    pub fn read(path: &Path) -> Result<Description, DescriptionError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|why| DescriptionError { place: format!("cannot read {name}"), what: why.to_string() })?;
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        Description::parse(&name, folder, text)
    }

    /// A text; messages begin with the name.
    pub fn parse(name: &str, folder: PathBuf, text: String) -> Result<Description, DescriptionError> {
        let mut description = Description { name: name.into(), folder, text, tables: Tables::default() };
        let parsed = toml::from_str(&description.text);
        description.tables = parsed.map_err(|error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            description.wrong(at, explained(error.message()))
        })?;
        if let Some(sources) = description.tables.build.sources.as_ref().filter(|sources| sources.get_ref().is_empty())
        {
            return Err(description.wrong(sources.span().start, "sources = []: wanted is at least one source"));
        }
        Ok(description)
    }

    /// The C and assembly that the program is made of: `kernel.c` unless it says others.
    pub fn sources(&self) -> Vec<PathBuf> {
        let path = |source: &String| self.path(source);
        match &self.tables.build.sources {
            Some(sources) => sources.get_ref().iter().map(path).collect(),
            None => vec![self.path("kernel.c")],
        }
    }

    /// More for the compiler.
    pub fn flags(&self) -> &[String] {
        &self.tables.build.flags
    }

    /// The core that it asks for.
    pub fn core(&self) -> Vec<CoreOption> {
        let option = |(key, value): (&Spanned<String>, &Spanned<Word>)| CoreOption {
            key: key.get_ref().clone(),
            value: match value.get_ref() {
                Word::Number(number) => number.to_string(),
                Word::Text(text) => text.clone(),
            },
            place: self.place(key.span().start),
        };
        self.tables.core.iter().map(option).collect()
    }

    /// The file's name, as messages have it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// All of it.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// A path that the file names.
    pub(super) fn path(&self, named: &str) -> PathBuf {
        self.folder.join(named)
    }

    pub(super) fn wrong(&self, at: usize, what: impl Into<String>) -> DescriptionError {
        DescriptionError { place: self.place(at), what: what.into() }
    }

    fn place(&self, at: usize) -> String {
        let before = &self.text.as_bytes()[..at.min(self.text.len())];
        format!("{}:{}", self.name, 1 + before.iter().filter(|byte| **byte == b'\n').count())
    }
}

/// What the parser says, in a line; of a field that does not exist, with the one that was probably meant.
fn explained(message: &str) -> String {
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((wrong, wanted)) = line.rsplit_once(", expected ") {
        let plain = match wanted {
            "i128" => "a whole number",
            "u32" => "a whole number from 0 to 4294967295",
            "a nonzero u32" => "a whole number from 1 to 4294967295",
            "u64" | "usize" => "a whole number from 0",
            "a sequence" => "a list",
            "a string" => "a text in quotes",
            "a map" => "a table",
            _ if wanted.starts_with("struct ") => "a table",
            other => other,
        };
        if plain != wanted {
            return format!("{wrong}, expected {plain}");
        }
    }
    let mut names = line.split('`').skip(1).step_by(2);
    match (line.starts_with("unknown field") || line.starts_with("unknown variant"), names.next()) {
        (true, Some(unknown)) => format!("{line}{}", suggestion(nearest(unknown, names))),
        _ => line,
    }
}
