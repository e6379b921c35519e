//! The page on the study.

use super::Report;
use crate::report::si;
use std::fmt::Write as _;

/// The page with what is in braces left open.
const TEXT: &str = include_str!("page.md");

/// The page.
pub fn page(report: &Report) -> String {
    let core = format!("{} lanes × {} warps, {}", report.lanes, report.warps, report.divergence);
    let text = TEXT.replace("{core}", &core).replace("{options}", &report.core);
    text.replace("{count}", &report.rows.len().to_string()).replace("{table}", table(report).trim_end())
}

fn table(report: &Report) -> String {
    let mut text = String::from(
        "| kernel | cycles | thread IPC | SIMT efficiency | bound | of the bound | SIMTight | ratio | idle, mainly |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for row in &report.rows {
        let _ = writeln!(
            text,
            "| `{}` | {} | {:.2} | {:.1} % | {:.1} | {:.1} % | {} | {:.2} | {} |",
            row.kernel(),
            si(row.cycles as f64),
            row.compared.thread_ipc,
            100.0 * row.simt_efficiency,
            row.bound,
            100.0 * row.share_of_bound,
            row.simtight_ipc,
            row.ratio(),
            row.idle_text()
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn a_page_has_the_core_and_a_line_a_kernel() {
        let text = page(&example());
        assert!(text.contains("32 lanes × 16 warps, path-table"), "{text}");
        assert!(
            text.contains("| `gcd` | 2.0k | 3.00 | 10.0 % | 3.2 | 90.0 % | 4 | 0.75 | scoreboard 7.5 % |\n"),
            "{text}"
        );
        assert!(text.contains("`--lanes 32 --warps 16 --coalescing full`"), "{text}");
        assert!(!text.contains('{'), "{text}");
    }
}
