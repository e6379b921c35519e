//! The page on proofs.

use super::Row;
use crate::output::ResultFile;
use anyhow::Result;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

const PAGE: &str = "proofs.md";
/// The page with `{table}` and `{version}` left open.
const TEXT: &str = include_str!("page.md");

/// Fails if the folder cannot be written.
pub fn check(folder: &Path) -> Result<()> {
    ResultFile::create(&folder.join(PAGE)).map(drop)
}

/// Writes the page, whole or not at all.
pub fn write(folder: &Path, rows: &[Row], version: &str) -> Result<()> {
    let mut file = ResultFile::create(&folder.join(PAGE))?;
    file.writer().write_all(page(rows, version).as_bytes())?;
    file.finish()
}

fn page(rows: &[Row], version: &str) -> String {
    TEXT.replace("{table}", &tables(rows)).replace("{version}", version)
}

/// A section for each block and property, with a line for each shape.
fn tables(rows: &[Row]) -> String {
    let mut text = String::new();
    for block in rows.chunk_by(|a, b| a.says == b.says) {
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
