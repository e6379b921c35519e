//! The page on coverage.

use super::{hit_on, summary};
use crate::output::ResultFile;
use anyhow::Result;
use heddle_testbench::coverage::Coverage;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

const PAGE: &str = "coverage.md";

/// Fails if the folder cannot be written.
pub fn check(folder: &Path) -> Result<()> {
    ResultFile::create(&folder.join(PAGE))?;
    Ok(())
}

/// Writes the page whole or not at all.
pub fn write(folder: &Path, coverage: &Coverage) -> Result<()> {
    let mut file = ResultFile::create(&folder.join(PAGE))?;
    file.writer().write_all(page(coverage).as_bytes())?;
    file.finish()
}

fn page(coverage: &Coverage) -> String {
    let mut text = format!(
        "# Coverage\n\n\
         A cover is a condition that the description names because tests should meet it. The kernels, {} random programs \
         and a few short ones (`testbench/src/coverage/directed.rs`) run on each shape; the hits of all instances of a \
         module are added up. `heddle cover --docs docs` writes this page, and a test fails if a cover is not hit that \
         has no reason for it (`testbench/tests/programs/coverage.rs`).\n\n\
         {}.\n\n## Not hit\n\n| module | cover | why |\n|---|---|---|\n",
        coverage.programs,
        summary(coverage)
    );
    for cover in coverage.covers.iter().filter(|c| c.hits == 0) {
        let _ =
            writeln!(text, "| {} | {} | {} |", cover.module, cover.name, cover.reason.unwrap_or("**not expected**"));
    }
    let _ = write!(text, "\n## Hit\n\n| module | cover | cycles | on |\n|---|---|---|---|\n");
    for cover in coverage.covers.iter().filter(|c| c.hits > 0) {
        let _ = writeln!(text, "| {} | {} | {} | {} |", cover.module, cover.name, cover.hits, hit_on(coverage, cover));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn a_page_lists_what_is_hit_and_why_the_rest_is_not() {
        let text = page(&example());
        assert!(text.contains("| ccs | b_alone | **not expected** |\n| ccs | one_waits | nothing waits |\n"), "{text}");
        assert!(text.ends_with("| ccs | a_alone | 1234 | all |\n| ccs | a_meets_b | 5 | 8 × 8 |\n"), "{text}");
        let folder = tempfile::tempdir().unwrap();
        check(folder.path()).unwrap();
        write(folder.path(), &example()).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join(PAGE)).unwrap(), text);
    }
}
