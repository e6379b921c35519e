//! The page on simulation speed, with its chart.

use super::chart::chart;
use super::row::{Row, count};
use crate::docs::age::Stamp;
use crate::docs::evidence::of_cores;
use crate::docs::tree;
use crate::report::si;
use anyhow::Result;
use heddle_simt::Shape;
use std::fmt::Write as _;
use std::path::Path;

pub const PAGE: &str = "evidence/simulation-speed.md";
const CHART: &str = "evidence/simulation-speed.svg";

/// Fails if they cannot be written into the tree of pages.
pub fn check(docs: &Path) -> Result<()> {
    tree::check(docs, [PAGE, CHART])
}

/// Writes page and chart, each whole or not at all.
pub fn write(docs: &Path, rows: &[Row], shapes: &[Shape], verilator: &str) -> Result<()> {
    let page = Stamp::now(docs, of_cores(shapes)?, None).on(&page(rows, verilator));
    tree::write(docs, [(CHART, chart(rows).as_str()), (PAGE, &page)])
}

/// Rows of one shape are together.
fn page(rows: &[Row], verilator: &str) -> String {
    let mut text = format!(
        "# Simulation speed\n\n\
         Cycles a second of every engine on the core, and the ratio to the best of Verilator's builds with one thread. \
         [How it is measured](../reference/simulator.md#how-fast).\n\n\
         Written by `{}` on {}, {verilator}.\n\n\
         ![Speed of each engine, relative to Verilator](simulation-speed.svg)\n",
        command(),
        processor()
    );
    for shape in rows.chunk_by(|a, b| a.is_on_the_core_of(b)) {
        let kernels: Vec<&str> = shape.chunk_by(|a, b| a.kernel == b.kernel).map(|k| k[0].kernel.as_str()).collect();
        let _ = write!(
            text,
            "\n## {}\n\n| engine | {} | compile | nodes | code B | state B |\n|---|{}---|---|---|---|\n",
            shape[0].core(),
            kernels.join(" | "),
            "---|".repeat(kernels.len())
        );
        for first in shape.iter().take_while(|row| row.kernel == kernels[0]) {
            let _ = write!(text, "| {} |", first.engine);
            for row in shape.iter().filter(|row| row.engine == first.engine) {
                let _ = write!(text, " {}, {} |", si(row.cycles_per_second), row.ratio());
            }
            let [nodes, code, state] = [first.nodes, first.code_bytes, first.state_bytes].map(count);
            let _ = writeln!(text, " {} | {nodes} | {code} | {state} |", first.compile());
        }
    }
    text
}

/// The command line.
fn command() -> String {
    ["heddle".to_string()].into_iter().chain(std::env::args().skip(1)).collect::<Vec<_>>().join(" ")
}

/// What the system calls it, and how many.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or(std::env::consts::ARCH, |(_, model)| model);
    let count = std::thread::available_parallelism().map_or(1, |n| n.get());
    format!("{count} cores of {model}")
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::examples;
    use super::*;

    #[test]
    fn a_page_has_a_table_a_shape_and_a_column_a_kernel() {
        let text = page(&examples(), "Verilator 5");
        assert_eq!(text.matches("\n## ").count(), 2);
        assert!(
            text.contains(
                "| engine | gcd | sort | compile | nodes | code B | state B |\n|---|---|---|---|---|---|---|\n"
            )
        );
        assert!(
            text.contains("| compiled | 2.50M, 2.50x | 1.50M, 1.50x | 0.21 s | 12.3k | 99.0k | 600.0k |\n"),
            "{text}"
        );
    }

    #[test]
    fn page_and_chart_are_written_into_the_tree() {
        let folder = tempfile::tempdir().unwrap();
        check(folder.path()).unwrap();
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);
        write(folder.path(), &examples(), &[Shape::small(2, 1)], "Verilator 5").unwrap();
        for name in [PAGE, CHART] {
            assert!(folder.path().join(name).is_file(), "{name}");
        }
    }
}
