//! The page on the study.

use super::super::table::{markdown, share};
use super::{LATE_WARPS, LATENCY, Report, Row};
use crate::report::si;

/// The page with what is in braces left open.
const TEXT: &str = include_str!("page.md");

/// The page, of both cores.
pub fn page(report: &Report) -> String {
    let core = format!("{} lanes × {} warps, {}", report.lanes, report.warps, report.divergence);
    let (first, late) = report.cores();
    TEXT.replace("{core}", &core)
        .replace("{options}", &report.core)
        .replace("{late}", report.late.as_deref().unwrap_or_default())
        .replace("{late_warps}", &LATE_WARPS.to_string())
        .replace("{latency}", &LATENCY.to_string())
        .replace("{count}", &first.len().to_string())
        .replace("{table}", markdown(&lines(report)).trim_end())
        .replace("{unfilled}", &unfilled(first))
        .replace("{late_unfilled}", &unfilled(late))
}

/// A line a kernel; of the second core, if there is one, figures at the end.
pub fn lines(report: &Report) -> Vec<Vec<String>> {
    let head = [
        "kernel",
        "threads",
        "cycles",
        "thread IPC",
        "SIMT efficiency",
        "bound",
        "of the bound",
        "idle, mainly",
        "SIMTight",
        "ratio",
    ];
    let (first, late) = report.cores();
    let mut lines = vec![head.map(String::from).to_vec()];
    if !late.is_empty() {
        let figures = ["thread IPC", "of the bound", "idle, mainly", "ratio"];
        lines[0].extend(figures.map(|figure| format!("{figure}, late memory")));
    }
    let ratio = |row: &Row| format!("{:.2}", row.ratio());
    let ipc = |row: &Row| format!("{:.2}", row.compared.thread_ipc);
    for (number, row) in first.iter().enumerate() {
        let mut line = vec![
            row.kernel().to_string(),
            row.threads.to_string(),
            si(row.cycles as f64),
            ipc(row),
            share(row.simt_efficiency),
            format!("{:.1}", row.bound),
            share(row.share_of_bound),
            row.idle_text(),
            row.simtight_ipc.to_string(),
            ratio(row),
        ];
        if let Some(row) = late.get(number) {
            line.extend([ipc(row), share(row.share_of_bound), row.idle_text(), ratio(row)]);
        }
        lines.push(line);
    }
    lines
}

/// The threads of the core, and which kernels cannot fill it.
fn unfilled(rows: &[Row]) -> String {
    let few = rows.iter().filter(|row| row.threads < row.core_threads.into());
    let few: Vec<String> = few.map(|row| format!("`{}` ({})", row.kernel(), row.threads)).collect();
    let threads = rows.first().map_or(0, |row| row.core_threads);
    match few.as_slice() {
        [] => format!("{threads} threads, and no launch has fewer"),
        few => format!("{threads} threads, and launches of these have fewer: {}", few.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn a_page_has_the_cores_and_a_line_a_kernel() {
        let text = page(&example());
        assert!(text.contains("2 kernels on 32 lanes × 16 warps, path-table"), "{text}");
        let gcd = "| gcd | 256 | 2.0k | 3.00 | 10.0 % | 3.2 | 90.0 % | scoreboard 7.5 % | 4 | 0.75 \
                   | 1.50 | 45.0 % | memory 50.0 % | 0.38 |\n";
        assert!(text.contains(gcd), "{text}");
        for core in ["`--lanes 32 --warps 16 --coalescing full`", "`--lanes 32 --warps 64 --coalescing full`"] {
            assert!(text.contains(core), "{text}");
        }
        assert!(!text.contains('{'), "{text}");
    }

    #[test]
    fn kernels_with_fewer_threads_than_the_core_are_named() {
        let mut report = example();
        let (first, late) = report.cores();
        assert_eq!(unfilled(first), "512 threads, and launches of these have fewer: `gcd` (256)");
        let both = "2048 threads, and launches of these have fewer: `vecadd` (1024), `gcd` (256)";
        assert_eq!(unfilled(late), both);
        assert!(page(&report).contains(both), "{}", page(&report));
        report.rows[1].threads = 512;
        assert_eq!(unfilled(report.cores().0), "512 threads, and no launch has fewer");
    }
}
