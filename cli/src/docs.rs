//! `heddle docs`: the pages that commands write, and whether each is of the core as it is.
//!
//! What a page depends on is checked as it can be: the pages of studies carry hashes of their cores and programs ([`age`]), each row of
//! the page on area that of its core, and the other pages of evidence name covers, proofs and modules, which are there or not. The figures of
//! those are as old as the page, which the project's history tells.

pub mod names;
pub mod tree;

use crate::output::{print, print_json};
use crate::study::{age, area};
use anyhow::{Context, Result, bail};
use clap::Args;
use serde::Serialize;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Say how old the pages are that commands write, and write those anew that take less than a minute.
///
/// Those are the page on area with its charts, out of what was measured, and the line on each page of a study that says that it is of
/// an older core. Studies, proofs, covers and mutants are measured by commands of their own, which the table names.
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
    /// The commits since it was written, where the folder is one of a project with a history.
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
            age::renew(&self.docs)?;
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

    fn rows(&self) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for page in age::PAGES {
            let text = read(&self.docs, page)?;
            let now = age::now(&text).with_context(|| page.to_string())?.1;
            let is_old = age::is_marked(&text);
            let state = if is_old { "of an older core or older programs, and says so" } else { "of this core" };
            rows.push(self.row(page, age::marked(&text, &now) == text, state, age::command(&text)));
        }
        let (right, state) = match area::outdated(&self.docs)?[..] {
            [] => (true, "says of each row whether it is of this core"),
            _ => (false, "not what its results and this core make of it: `heddle docs` writes it"),
        };
        rows.push(self.row(area::PAGE, right, state, "heddle study area --docs docs".into()));
        for check in names::ALL {
            let gone = check.gone(&read(&self.docs, check.page)?)?;
            let state = match &gone[..] {
                [] => "names what there is".to_string(),
                [one, ..] => format!("names what is gone: {one}"),
            };
            rows.push(self.row(check.page, gone.is_empty(), &state, check.command.into()));
        }
        Ok(rows)
    }

    fn row(&self, page: &'static str, right: bool, state: &str, command: String) -> Row {
        Row { page, right, state: state.into(), commits: commits_since(&self.docs, page), command }
    }
}

/// A page's text.
pub fn read(root: &Path, page: &str) -> Result<String> {
    let path = root.join(page);
    fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
}

/// How many commits came since that which last wrote the page.
fn commits_since(root: &Path, page: &str) -> Option<u32> {
    let git = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_string()).filter(|text| !text.is_empty())
    };
    let last = git(&["log", "-1", "--format=%H", "--", page])?;
    git(&["rev-list", "--count", &format!("{last}..HEAD")])?.parse().ok()
}

fn table(rows: &[Row]) -> String {
    let widest = rows.iter().map(|row| row.page.len()).max().unwrap_or_default();
    let mut text = String::new();
    for Row { page, state, commits, command, .. } in rows {
        let age = match commits {
            None => String::new(),
            Some(0) => ", written by the last commit".into(),
            Some(1) => ", written a commit ago".into(),
            Some(commits) => format!(", written {commits} commits ago"),
        };
        text += &format!("{page:widest$}  {state}{age}; measured by `{command}`\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every page in the project is as it should be.
    #[test]
    fn pages_are_of_the_core_or_say_how_old_they_are() {
        let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs")).to_path_buf();
        let rows = Docs { check: true, docs, json: false }.rows().unwrap();
        let wrong: Vec<String> =
            rows.iter().filter(|row| !row.right).map(|row| format!("{}: {}", row.page, row.state)).collect();
        assert!(wrong.is_empty(), "`heddle docs` or the page's own command writes it anew:\n{}", wrong.join("\n"));
        assert_eq!(rows.len(), age::PAGES.len() + 1 + names::ALL.len());
    }

    #[test]
    fn a_table_says_how_old_a_page_is() {
        let row = |commits| Row {
            page: "evidence/x.md",
            right: true,
            state: "names what there is".into(),
            commits,
            command: "heddle x".into(),
        };
        let line = "evidence/x.md  names what there is, written 3 commits ago; measured by `heddle x`\n";
        assert_eq!(table(&[row(Some(3))]), line);
        assert_eq!(table(&[row(None)]), line.replace(", written 3 commits ago", ""));
        assert_eq!(table(&[row(Some(0))]), line.replace("written 3 commits ago", "written by the last commit"));
    }
}
