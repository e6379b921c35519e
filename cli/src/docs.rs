//! `heddle docs`: the pages that commands write, and whether each is of the core as it is.
//!
//! Each page carries the hash of what its figures come from, and the commit at which they were measured
//! ([`age`](mod@age)): those of studies of their cores and programs ([`study::age`](crate::study::age)), those of
//! [`evidence`](mod@evidence) of their cores or proofs, that of study time of all studies, and each row of the page on
//! area that of its core. What pages of evidence name is there or not.

pub mod age;
pub mod evidence;
pub mod tree;

use crate::output::{print, print_json};
use crate::study::{age as study, area, per_area};
use crate::sweep::page as study_time;
use age::Stamp;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Say how old the pages are that commands write, and write those anew that take less than a minute.
///
/// Those are the page on area with its charts, out of what was measured, and the line on each other page that says that
/// it is of an older core. Studies, their time, proofs, covers, mutants and speed are measured by commands of their own,
/// which the table names.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle docs                   write anew what takes less than a minute, and say how old the rest is
  heddle docs --check           write nothing; exit code 1 if a page is not as it should be
  heddle docs --check --json")]
pub struct Docs {
    /// Write nothing, and fail if a page tells of what is gone, or does not say that it is of an older core
    #[arg(long)]
    check: bool,
    /// The root of the tree of pages
    #[arg(long, value_name = "DIR", default_value = "docs")]
    docs: PathBuf,
    /// Print an array of objects instead of a table
    #[arg(long)]
    json: bool,
}

/// A page and its state.
#[derive(Serialize)]
struct Row {
    page: &'static str,
    /// It is as it should be: else it has to be written anew.
    right: bool,
    state: String,
    /// What its figures are of: a hash. Rows of the page on area have one each.
    measured: Option<String>,
    /// The commits since it was measured, where the folder is one of a project with a history.
    commits: Option<u32>,
    /// What measures it.
    command: String,
}

impl Docs {
    pub fn run(self) -> Result<()> {
        if !self.docs.join("README.md").is_file() {
            bail!("{} is no tree of pages: it has no README.md; name its root with --docs", self.docs.display());
        }
        if !self.check {
            let hashes = study::renew(&self.docs)?;
            self.mark_evidence(&hashes)?;
        }
        let rows = self.rows()?;
        if self.json {
            print_json(&rows)?;
        } else {
            print(&table(&rows))?;
        }
        let wrong: Vec<&str> = rows.iter().filter(|row| !row.right).map(|row| row.page).collect();
        match wrong[..] {
            [] => Ok(()),
            [page, ..] => bail!("{} of {} pages are not as they should be: {page}", wrong.len(), rows.len()),
        }
    }

    /// Has each page of evidence say whether it is of the core as it is.
    fn mark_evidence(&self, hashes: &[String]) -> Result<()> {
        let mark = |page: &'static str, now: &str| {
            let text = read(&self.docs, page)?;
            let marked = age::marked(&text, now);
            if marked == text { Ok(()) } else { tree::write(&self.docs, [(page, marked.as_str())]) }
        };
        evidence::ALL.iter().try_for_each(|evidence| mark(evidence.page, &(evidence.now)()?))?;
        mark(study_time::PAGE, &study_time::hash(hashes))
    }

    fn rows(&self) -> Result<Vec<Row>> {
        let (mut rows, mut hashes, mut commands) = (Vec::new(), Vec::new(), BTreeSet::new());
        for page in study::PAGES {
            let text = read(&self.docs, page)?;
            let now = study::now(&text).with_context(|| page.to_string())?.1;
            let row = self.row(page, &text, &now, Vec::new(), study::command(&text));
            let other = page == per_area::PAGE && !per_area::is_of(&text, &self.docs)?;
            let state = if other {
                "of other figures than those of area.json: its command writes it".into()
            } else {
                row.state
            };
            rows.push(Row { right: row.right && !other, state, ..row });
            hashes.push(now);
            commands.insert(study::command(&text));
        }
        let (right, state) = match area::outdated(&self.docs)?[..] {
            [] => (true, "says of each row whether it is of this core"),
            _ => (false, "not what its results and this core make of it: `heddle docs` writes it"),
        };
        let command = "heddle study area --docs docs".to_string();
        let state = state.to_string();
        rows.push(Row { page: area::PAGE, right, state, measured: None, commits: None, command });
        for evidence in &evidence::ALL {
            let text = read(&self.docs, evidence.page)?;
            let gone = evidence.gone(&text)?;
            rows.push(self.row(evidence.page, &text, &(evidence.now)()?, gone, evidence.command.into()));
        }
        let text = read(&self.docs, study_time::PAGE)?;
        let now = study_time::hash(&hashes);
        let gone = study_time::gone(&text, &commands);
        rows.push(self.row(study_time::PAGE, &text, &now, gone, study_time::COMMAND.into()));
        Ok(rows)
    }

    /// Of a page with a stamp, which names what is gone.
    fn row(&self, page: &'static str, text: &str, now: &str, gone: Vec<String>, command: String) -> Row {
        let stamp = Stamp::of(text);
        let says = age::marked(text, now) == text;
        let age = match (says, age::is_marked(text), &stamp) {
            (false, false, _) => "not of this core, and does not say so: `heddle docs` writes it",
            (false, true, _) => "says that it is not of this core, and is: `heddle docs` writes it",
            (true, false, _) => "of this core",
            (true, true, None) => "not known to be of this core, and says so",
            (true, true, Some(_)) => "of an older core or older programs, and says so",
        };
        let state = gone.first().map_or(age.to_string(), |one| format!("{age}; names what is gone: {one}"));
        let commits = stamp.as_ref().and_then(|stamp| stamp.commits_since(&self.docs));
        let measured = stamp.map(|stamp| stamp.hash);
        Row { page, right: says && gone.is_empty(), state, measured, commits, command }
    }
}

/// A page's text.
pub fn read(root: &Path, page: &str) -> Result<String> {
    let path = root.join(page);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

fn table(rows: &[Row]) -> String {
    let widest = rows.iter().map(|row| row.page.len()).max().unwrap_or_default();
    let mut text = String::new();
    for Row { page, state, measured, commits, command, .. } in rows {
        let core = measured
            .as_ref()
            .map_or_else(String::new, |hash| format!("; measured on {}", hash.get(..8).unwrap_or(hash)));
        let age = match commits {
            None => String::new(),
            Some(0) => ", at the last commit".into(),
            Some(1) => ", a commit ago".into(),
            Some(commits) => format!(", {commits} commits ago"),
        };
        text += &format!("{page:widest$}  {state}{core}{age}, by `{command}`\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    /// Every page in the project is as it should be. With `HEDDLE_LONG=1`, also of the core as it is.
    #[test]
    fn pages_are_of_the_core_or_say_how_old_they_are() {
        let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs"));
        let rows = Docs { check: true, docs: docs.into(), json: false }.rows().unwrap();
        assert_eq!(rows.len(), study::PAGES.len() + 2 + evidence::ALL.len());
        let told = |is: &dyn Fn(&Row) -> bool| {
            let rows = rows.iter().filter(|row| is(row));
            rows.map(|row| format!("{}: {}; `{}`\n", row.page, row.state, row.command)).collect::<String>()
        };
        let wrong = told(&|row| !row.right);
        assert!(wrong.is_empty(), "`heddle docs` or the page's own command writes it anew:\n{wrong}");
        if std::env::var_os("HEDDLE_LONG").is_none() {
            let _ =
                writeln!(std::io::stderr(), "SKIPPED: pages of an older core are wrong, which HEDDLE_LONG=1 asks for");
            return;
        }
        let old = told(&|row| age::is_marked(&read(docs, row.page).unwrap()));
        assert!(old.is_empty(), "the page's own command measures it anew:\n{old}");
    }

    #[test]
    fn a_table_says_how_old_a_page_is() {
        let row = |commits| Row {
            page: "evidence/x.md",
            right: true,
            state: "of this core".into(),
            measured: Some("0123456789".into()),
            commits,
            command: "heddle x".into(),
        };
        let line = "evidence/x.md  of this core; measured on 01234567, 3 commits ago, by `heddle x`\n";
        assert_eq!(table(&[row(Some(3))]), line);
        assert_eq!(table(&[row(None)]), line.replace(", 3 commits ago", ""));
        assert_eq!(table(&[row(Some(0))]), line.replace("3 commits ago", "at the last commit"));
        let without = Row { measured: None, ..row(None) };
        assert_eq!(table(&[without]), "evidence/x.md  of this core, by `heddle x`\n");
    }
}
