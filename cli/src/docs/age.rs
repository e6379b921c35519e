//! How old a measured page is: its last line says of which cores and programs its figures are, and at which commit they
//! were measured.
//!
//! A page that is not of the core as it is says so under its title. So whoever reads it knows, and
//! `heddle docs --check` fails on a page that does not say it.

use std::path::Path;
use std::process::Command;

const MEASURED: &str = "Cores and programs that were measured: ";
const COMMIT: &str = ", at commit ";
const SAMPLE: &str = "; cycles of some of the runs: ";
const OLD: &str =
    "> **Not of the core and programs as they are now**, or not known to be: what is measured now may differ.";

/// What a page says of its cores and programs.
#[derive(Clone, PartialEq, Debug)]
pub struct Stamp {
    /// Of what its figures come from.
    pub hash: String,
    /// Where the tree of pages is in a project with a history.
    pub commit: Option<String>,
    /// What runs that are cheap gave.
    pub sample: Option<String>,
}

impl Stamp {
    /// Of a page that is written now, into this tree of pages.
    pub fn now(root: &Path, hash: String, sample: Option<String>) -> Stamp {
        Stamp { hash, commit: git(root, &["rev-parse", "--short", "HEAD"]), sample }
    }

    /// That of a page; none if it has none.
    pub fn of(page: &str) -> Option<Stamp> {
        let line = page.lines().find_map(|line| line.strip_prefix(MEASURED))?.strip_suffix('.')?;
        let (line, sample) = split(line, SAMPLE);
        let (hash, commit) = split(line, COMMIT);
        let code = |text: &str| text.trim_matches('`').to_string();
        Some(Stamp { hash: code(hash), commit: commit.map(code), sample: sample.map(code) })
    }

    /// The page with this stamp instead of its own.
    pub fn on(&self, page: &str) -> String {
        let lines: Vec<&str> = page.lines().filter(|line| !line.starts_with(MEASURED)).collect();
        format!("{}\n\n{}\n", lines.join("\n").trim_end(), self.line())
    }

    /// The commits since the one at which the page was measured.
    pub fn commits_since(&self, root: &Path) -> Option<u32> {
        let commit = self.commit.as_ref()?;
        git(root, &["rev-list", "--count", &format!("{commit}..HEAD")])?.parse().ok()
    }

    fn line(&self) -> String {
        let part = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}`{value}`"));
        let [commit, sample] = [part(COMMIT, &self.commit), part(SAMPLE, &self.sample)].map(Option::unwrap_or_default);
        format!("{MEASURED}`{}`{commit}{sample}.", self.hash)
    }
}

fn split<'a>(line: &'a str, at: &str) -> (&'a str, Option<&'a str>) {
    line.split_once(at).map_or((line, None), |(before, behind)| (before, Some(behind)))
}

/// The page with the line that says that it is old, or without, as it should be.
pub fn marked(page: &str, now: &str) -> String {
    let without: String = page.replacen(&format!("{OLD}\n\n"), "", 1);
    if Stamp::of(page).is_some_and(|stamp| stamp.hash == now) {
        return without;
    }
    let (title, rest) = without.split_once("\n\n").unwrap_or((&without, ""));
    format!("{title}\n\n{OLD}\n\n{rest}")
}

/// Whether the page says that it is old.
pub fn is_marked(page: &str) -> bool {
    page.contains(OLD)
}

/// What git says of the project that the folder is in.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_string()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};

    fn stamp(hash: &str) -> Stamp {
        Stamp { hash: hash.into(), commit: Some("12ab".into()), sample: Some("12 3".into()) }
    }

    #[test]
    fn a_page_has_its_stamp_as_last_line() {
        let page = stamp("abc").on("# Title\n\nText.\n");
        let line =
            "Cores and programs that were measured: `abc`, at commit `12ab`; cycles of some of the runs: `12 3`.\n";
        assert_eq!(page, format!("# Title\n\nText.\n\n{line}"));
        assert_eq!(Stamp::of(&page), Some(stamp("abc")));
        let short = Stamp { commit: None, sample: None, ..stamp("def") };
        let other = short.on(&page);
        assert_eq!(other, "# Title\n\nText.\n\nCores and programs that were measured: `def`.\n");
        assert_eq!((Stamp::of(&other), Stamp::of("# Title\n")), (Some(short), None));
    }

    #[test]
    fn a_page_says_that_it_is_old_and_no_longer_once_it_is_new() {
        let page = stamp("abc").on("# Title\n\nText.\n");
        assert_eq!(marked(&page, "abc"), page);
        let old = marked(&page, "def");
        assert!(old.starts_with(&format!("# Title\n\n{OLD}\n\nText.\n")), "{old}");
        assert!(is_marked(&old) && !is_marked(&page));
        assert_eq!((marked(&old, "def"), marked(&old, "abc")), (old.clone(), page));
        // Nobody knows of what core.
        assert!(is_marked(&marked("# Title\n\nText.\n", "abc")));
    }

    #[test]
    fn commits_are_counted_where_there_is_a_history() {
        let root = tempfile::tempdir().unwrap();
        let stamp = Stamp::now(root.path(), "abc".into(), None);
        assert_eq!((stamp.commit.clone(), stamp.commits_since(root.path())), (None, None));
        if Command::new("git").arg("--version").output().is_err() {
            let _ = writeln!(io::stderr(), "SKIPPED: git is not installed");
            return;
        }
        let run = |arguments: &[&str]| {
            let author = ["-c", "user.name=a", "-c", "user.email=a@b.c"];
            let mut git = Command::new("git");
            git.arg("-C").arg(root.path()).args(author).args(arguments);
            // Nothing of the user's own settings, such as signatures.
            git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
            assert!(git.output().unwrap().status.success(), "{git:?}");
        };
        let commit = || run(&["commit", "--quiet", "--allow-empty", "-m", "x"]);
        run(&["init", "--quiet"]);
        commit();
        let stamp = Stamp::now(root.path(), "abc".into(), None);
        assert_eq!(stamp.commits_since(root.path()), Some(0));
        commit();
        commit();
        assert_eq!(stamp.commits_since(root.path()), Some(2));
    }
}
