//! The text of source lines: of built-in kernels from this program, of others from their files.

use super::report::Report;
use crate::target::Target;
use heddle_testbench::compile::is_source;
use heddle_testbench::kernels::SOURCES;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::time::SystemTime;

/// No source that is shown is larger.
const MOST_BYTES: u64 = 4 << 20;

/// Finds sources.
pub struct Sources {
    is_built_in: bool,
    /// When the program was built, if it is a file.
    built: Option<SystemTime>,
    texts: BTreeMap<String, Option<Vec<String>>>,
}

impl Sources {
    /// Of a program; of the one in a file, if that is given.
    pub fn of(target: &Target, elf: Option<&Path>) -> Sources {
        let is_built_in = target.has_own_lines();
        let path = elf.unwrap_or(Path::new(&target.name));
        // Others are built as they are asked for.
        let is_program = !is_built_in && !is_source(path) && (elf.is_some() || target.described.is_none());
        let built = fs::metadata(path).ok().filter(|_| is_program).and_then(|data| data.modified().ok());
        Sources { is_built_in, built, texts: BTreeMap::new() }
    }

    /// The lines of a file, unless it is missing.
    pub fn lines(&mut self, file: &str) -> Option<&[String]> {
        if !self.texts.contains_key(file) {
            let text = self.find(file).map(|text| text.lines().map(String::from).collect());
            self.texts.insert(file.into(), text);
        }
        self.texts[file].as_deref()
    }

    fn find(&self, file: &str) -> Option<String> {
        if self.is_built_in {
            return SOURCES.iter().find(|(name, _)| file.ends_with(name)).map(|(_, text)| text.to_string());
        }
        let path = Path::new(file);
        let is_fit = fs::metadata(path).is_ok_and(|data| data.is_file() && !self.is_newer(&data));
        let mut bytes = Vec::new();
        let read = is_fit.then(|| File::open(path).and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes)));
        read?.ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn is_newer(&self, data: &fs::Metadata) -> bool {
        self.built.is_some_and(|built| data.modified().is_ok_and(|modified| modified > built))
    }

    /// Which sources have moved or changed since the build, in a line.
    pub fn notes(&mut self, report: &Report) -> Option<String> {
        let files: BTreeSet<&String> = report.lines.iter().filter_map(|line| line.place.file.as_ref()).collect();
        let is_there = |file: &&String| fs::metadata(file.as_str()).is_ok();
        let lost: Vec<&String> = files.into_iter().filter(|file| self.lines(file).is_none()).collect();
        let (changed, moved): (Vec<&String>, Vec<&String>) = lost.into_iter().partition(is_there);
        let named = |files: Vec<&String>, what: &str| {
            let names = files.iter().map(|file| file.as_str()).collect::<Vec<_>>().join(", ");
            (!files.is_empty()).then(|| format!("{names} {what}"))
        };
        let of = [named(moved, "cannot be read"), named(changed, "changed since the build")];
        let text = of.into_iter().flatten().collect::<Vec<_>>().join("; ");
        (!text.is_empty()).then(|| format!("lines without text: {text}"))
    }
}
