//! A workflow for Snakemake, whose executors take it to a cluster: a job a piece of the sweep, and one for the table.

use super::command::Command;
use super::whole;
use crate::folder::write_files;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// Writes the workflow of so many pieces, with a copy of the file. Where paths in it begin, and this command, are named
/// whole; results are in the workflow's folder unless they have one.
pub fn write(
    folder: &Path,
    file: &Path,
    paths: &Path,
    results: Option<&Path>,
    pieces: usize,
    batch_runs: u32,
    command: Command,
) -> Result<()> {
    let program = std::env::current_exe().context("cannot tell where this command is")?;
    let results = results.map_or_else(|| Ok(PathBuf::from("results")), std::path::absolute)?;
    let text = include_str!("snakemake/Snakefile")
        .replace("{file}", &file.display().to_string())
        .replace("{program}", &quoted(&program))
        .replace("{paths}", &quoted(&whole(paths)?))
        .replace("{results}", &quoted(&results))
        .replace("{threads_of_a_piece}", if command == Command::Study { "workflow.cores" } else { "1" })
        .replace("{pieces}", &pieces.to_string())
        .replace("{batch_runs}", &batch_runs.to_string());
    let sweep = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    write_files(folder, &[("sweep.toml", &sweep), ("Snakefile", text.as_bytes())])
}

/// As a text of Python.
fn quoted(path: &Path) -> String {
    format!("{:?}", path.display().to_string())
}
