//! The page on coverage.

use super::{hit_on, summary};
use heddle_check::coverage::Coverage;
use std::fmt::Write as _;

pub const PAGE: &str = "evidence/coverage.md";

pub fn page(coverage: &Coverage) -> String {
    let mut text = format!(
        "# Coverage\n\n\
         A cover is a condition that the description names because tests should meet it. The kernels, {} random programs \
         and a few short ones (`check/src/coverage/directed.rs`) run on each shape; the hits of all instances of a \
         module are added up. `heddle cover --docs docs` writes this page, and a test fails if a cover is not hit that \
         has no reason for it (`check/tests/programs/coverage.rs`).\n\n\
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
    }
}
