//! `heddle reconverge`: where the threads of a program reconverge.

mod dot;
pub mod picture;

use crate::output::{ResultFile, print, print_json};
use crate::target::{TARGET, Target};
use anyhow::{Context, Result};
use clap::Args;
use heddle_testbench::reconverge::{Analysis, Block, Branch, FunctionBlocks, Kind, Reconvergence, SideEntry, analyse};
use heddle_testbench::{Program, disassemble};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Show where threads that diverge at a branch reconverge.
///
/// For every control-flow instruction: its reconvergence pc (the immediate post-dominator, or behind the return),
/// whether all threads of a block take it alike, where they are likely to reconverge earlier, and whether there are
/// instructions on both its sides. docs/reference/reconvergence.md says what each means, and what is assumed.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle reconverge nqueens
  heddle reconverge prog.elf --json
  heddle reconverge collatz --svg collatz.svg --dot collatz.dot")]
pub struct Reconverge {
    /// A built-in kernel or an ELF file
    #[arg(value_name = TARGET)]
    target: String,
    /// All of it as JSON, with the blocks of each function and the table that the hardware reads
    #[arg(long)]
    json: bool,
    /// Draw the blocks of all functions
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// The same graph for Graphviz
    #[arg(long, value_name = "FILE")]
    dot: Option<PathBuf>,
}

/// A program and what was found out about it.
pub struct Found {
    pub program: Program,
    pub analysis: Analysis,
    /// More lines of a block, by its start.
    pub lines: BTreeMap<u32, Vec<String>>,
    /// Instructions to mark beside the blocks.
    pub ranges: Vec<BTreeSet<u32>>,
}

#[derive(Serialize)]
struct Report<'a> {
    program: &'a str,
    functions: Vec<NamedFunction<'a>>,
    branches: Vec<Row<'a>>,
    unknown: &'a [u32],
    side_table: Vec<SideRow>,
}

#[derive(Serialize)]
struct NamedFunction<'a> {
    name: String,
    #[serde(flatten)]
    function: &'a FunctionBlocks,
}

#[derive(Serialize)]
struct Row<'a> {
    instruction: String,
    #[serde(flatten)]
    branch: &'a Branch,
}

#[derive(Serialize)]
struct SideRow {
    pc: u32,
    #[serde(flatten)]
    entry: SideEntry,
}

impl Reconverge {
    pub fn run(self) -> Result<()> {
        let target = Target::find(&self.target)?;
        let create = |path: &Option<PathBuf>| path.as_deref().map(ResultFile::create).transpose();
        let (svg, dot) = (create(&self.svg)?, create(&self.dot)?);
        let analysis = analyse(&target.program).with_context(|| target.name.clone())?;
        let found = Found { program: target.program, analysis, lines: BTreeMap::new(), ranges: vec![] };
        if let (Some(file), Some(path)) = (svg, &self.svg) {
            write(file, path, &picture::picture(&found))?;
        }
        if let (Some(file), Some(path)) = (dot, &self.dot) {
            write(file, path, &dot::dot(&found))?;
        }
        if self.json { print_json(&found.report(&target.name)) } else { print(&found.table()) }
    }
}

fn write(mut file: ResultFile, path: &Path, text: &str) -> Result<()> {
    file.writer().write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    file.finish()
}

fn address(pc: u32) -> String {
    format!("{pc:#x}")
}

fn reconvergence(rpc: Reconvergence) -> String {
    match rpc {
        Reconvergence::At(pc) => address(pc),
        Reconvergence::Return => "return".into(),
    }
}

impl Found {
    fn name(&self, function: u32) -> String {
        self.program.nearest_symbol(function).unwrap_or_else(|| address(function))
    }

    fn instruction(&self, pc: u32) -> String {
        disassemble(self.program.word(pc).unwrap_or(0), pc)
    }

    /// What a picture says in a block: where it begins, how its last instruction goes on.
    fn lines(&self, block: &Block) -> Vec<String> {
        let count = (block.end - block.start) / 4;
        let plural = if count == 1 { "" } else { "s" };
        let mut lines = vec![format!("{}  {count} instruction{plural}", address(block.start))];
        let last = block.end - 4;
        match self.analysis.branch(last) {
            Some(branch) => {
                lines.push(self.instruction(last));
                if matches!(branch.kind, Kind::Branch | Kind::IndirectJump | Kind::IndirectCall) {
                    let likely = branch.likely.map_or(String::new(), |likely| format!(", likely {}", address(likely)));
                    let rpc = reconvergence(branch.rpc);
                    lines.push(if branch.uniform { "uniform".into() } else { format!("RPC {rpc}{likely}") });
                }
            }
            None if block.exits => lines.push(self.instruction(last)),
            None => {}
        }
        lines.extend(self.lines.get(&block.start).into_iter().flatten().cloned());
        lines
    }

    /// The branch that ends a block, if threads may diverge there.
    fn parting(&self, block: &Block) -> Option<&Branch> {
        let branch = self.analysis.branch(block.end - 4);
        branch.filter(|branch| !branch.uniform && matches!(branch.kind, Kind::Branch | Kind::IndirectJump))
    }

    fn report<'a>(&'a self, name: &'a str) -> Report<'a> {
        let Analysis { functions, branches, unknown, .. } = &self.analysis;
        let table = self.analysis.side_table().into_iter().enumerate();
        Report {
            program: name,
            functions: functions.iter().map(|f| NamedFunction { name: self.name(f.entry), function: f }).collect(),
            branches: branches.iter().map(|b| Row { instruction: self.instruction(b.pc), branch: b }).collect(),
            unknown,
            side_table: table.filter_map(|(n, entry)| Some(SideRow { pc: 4 * n as u32, entry: entry? })).collect(),
        }
    }

    fn table(&self) -> String {
        let yes = |flag: bool| if flag { "yes" } else { "-" }.to_string();
        let heading = ["pc", "instruction", "function", "RPC", "uniform", "likely", "interleavable"].map(String::from);
        let row = |branch: &Branch| {
            [
                address(branch.pc),
                self.instruction(branch.pc),
                self.name(branch.function),
                reconvergence(branch.rpc),
                yes(branch.uniform),
                branch.likely.map_or("-".into(), address),
                yes(branch.interleavable),
            ]
        };
        let rows: Vec<[String; 7]> = [heading].into_iter().chain(self.analysis.branches.iter().map(row)).collect();
        let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: [usize; 7] = std::array::from_fn(width);
        let mut text = String::new();
        for row in &rows {
            let line: String = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}  ")).collect();
            let _ = writeln!(text, "{}", line.trim_end());
        }
        for &pc in &self.analysis.unknown {
            let _ = writeln!(text, "{}: {}: its targets are not known", address(pc), self.instruction(pc));
        }
        text
    }
}
