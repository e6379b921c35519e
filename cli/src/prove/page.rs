//! The page on proofs.

use super::{Row, by_property};
use std::fmt::Write as _;

pub const PAGE: &str = "evidence/proofs.md";
/// The page with `{table}` and `{version}` left open.
const TEXT: &str = include_str!("page.md");

pub fn page(rows: &[Row], version: &str) -> String {
    TEXT.replace("{table}", &tables(rows)).replace("{version}", version)
}

/// A section for each block and property, with a line for each shape.
fn tables(rows: &[Row]) -> String {
    let mut text = String::new();
    for block in by_property(rows) {
        let _ = write!(
            text,
            "**`{}`.** {}\n\n| proof | lanes × warps | engine | depth | time | covers | result |\n|---|---|---|---|---|---|---|\n",
            block[0].block, block[0].says
        );
        for row in block {
            let Some(outcome) = &row.result else { continue };
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} | {:.0} s | {} | {} |",
                row.name, row.shape, row.engine, row.depth, outcome.seconds, outcome.covers, outcome.result
            );
        }
        text.push('\n');
    }
    text.trim_end().to_string()
}
