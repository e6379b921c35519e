//! What is known of a core, as cells of a table.

use crate::study::area::results::{Found, Outcome, Results};
use crate::study::area::{Nows, Of};
use crate::study::table::markdown;
use heddle_check::synth::{Board, Cells, Flat, Timing, median};
use std::fmt::Write as _;

/// What is known of a core.
#[derive(Default)]
pub struct Figures<'a> {
    pub flat: Option<&'a Flat>,
    runs: Vec<Timing>,
    /// Why there are none, or no clock.
    why: Option<String>,
    older: bool,
}

impl<'a> Figures<'a> {
    pub fn of(results: &'a Results, now: &Nows, board: &'static Board, core: &str) -> Figures<'a> {
        let all =
            results.all().iter().filter(|found| (found.board.as_str(), found.core.as_str()) == (board.name, core));
        let of_core: Vec<&Found> = all.filter(|found| found.of != Of::Modules).collect();
        let hash = now[&(board.name, core.to_string())].hash(Of::Cells);
        // All of one core: as it is, or as it was when the cells were counted, or the first seed ran.
        let is_now = of_core.iter().any(|found| found.hash == hash);
        let Some(shown) = (if is_now { Some(hash) } else { of_core.first().map(|found| found.hash.as_str()) }) else {
            return Figures::default();
        };
        let mut figures = Figures { older: !is_now, ..Figures::default() };
        for found in of_core.into_iter().filter(|found| found.hash == shown) {
            match &found.outcome {
                Outcome::Cells(flat) => figures.flat = Some(flat),
                Outcome::Timing(timing) => figures.runs.push(timing.clone()),
                Outcome::Full(over) => figures.why = Some(format!("does not fit: {over}")),
                Outcome::Failed(why) => figures.why = Some(format!("failed: {why}")),
                Outcome::Modules(_) => {}
            }
        }
        figures
    }

    pub fn is_older(&self) -> bool {
        self.older
    }

    pub fn mhz(&self) -> Option<f64> {
        median(&self.runs).map(|run| run.mhz)
    }

    /// The slowest and the fastest run, in MHz, if there are several.
    pub fn range(&self) -> Option<[f64; 2]> {
        let all = || self.runs.iter().map(|run| run.mhz);
        (self.runs.len() > 1).then(|| [all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max)])
    }

    /// There is one run of place and route and no second: another seed's clock may be another.
    pub fn is_single(&self) -> bool {
        self.runs.len() == 1
    }

    /// The median, and the range of several.
    pub fn clock(&self, board: &Board) -> String {
        let Some(mhz) = self.mhz() else { return String::new() };
        let bound = if board.family.clock_is_bound { "< " } else { "" };
        match self.range() {
            None => format!("{bound}{mhz:.1} MHz"),
            Some([least, most]) => format!("{bound}{mhz:.1} MHz ({least:.1} … {most:.1})"),
        }
    }

    pub fn path(&self) -> String {
        match median(&self.runs).map(|run| &run.path[..]) {
            Some([first, .., last]) => format!("`{first}` → `{last}`"),
            Some([only]) => format!("`{only}`"),
            _ => String::new(),
        }
    }

    /// Nothing for what is of the core as it is and complete.
    pub fn note(&self, clock: bool) -> String {
        let missing = match (self.flat, self.runs.is_empty(), &self.why) {
            (_, _, Some(why)) => why.clone(),
            (None, ..) => "not measured".into(),
            (Some(_), true, None) if clock => "clock not measured".into(),
            _ => String::new(),
        };
        let older = if self.older { "of an older core" } else { "" };
        [older, &missing].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")
    }
}

/// A row whose note says that something is missing, so that a line below the table says how to find it.
fn is_missing(line: &[String]) -> bool {
    line.last().is_some_and(|note| note.contains("not measured") || note.contains("older"))
}

pub fn row<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(String::from).to_vec()
}

/// A table, and how to find what is missing.
pub fn table(lines: &[Vec<String>], part: &str) -> String {
    let mut text = markdown(lines);
    if lines.iter().any(|line| is_missing(line)) {
        let _ = writeln!(
            text,
            "\n`heddle study area --part {part} --docs docs` finds what is not measured, or of an older core."
        );
    }
    text
}

/// `+8 %`; nothing of nothing.
pub fn more(of: u32, than: Option<u32>) -> String {
    match than {
        Some(than) if than > 0 && than != of => {
            format!(" ({:+.0} %)", 100.0 * (f64::from(of) / f64::from(than) - 1.0))
        }
        _ => String::new(),
    }
}

pub fn number(value: Option<u32>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

/// Flip-flops, distributed RAM, block RAM and multipliers.
pub fn others(flat: Option<&Flat>) -> [String; 4] {
    let cell = |of: fn(&Cells) -> u32| number(flat.map(|flat| of(&flat.cells)));
    let bram = flat.map_or_else(String::new, |flat| format!("{}+{}", flat.cells.bram, flat.memory_bram));
    [cell(|c| c.ff), cell(|c| c.distributed_ram), bram, cell(|c| c.dsp)]
}
