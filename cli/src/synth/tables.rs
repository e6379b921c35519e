//! The tables that it prints.

use super::{Built, Modules};
use heddle_check::synth::boards::Room;
use heddle_check::synth::{Board, Cells, Flat, Row};
use std::fmt::Write as _;

/// The table of boards.
pub fn boards() -> String {
    let mut text = format!(
        "{:<16} {:<22} {:>7} {:>11} {:>11} {:>12}  the core unless it is chosen\n",
        "board", "device", "LUTs", "flip-flops", "block RAMs", "multipliers"
    );
    for Board { name, device, room: Room { luts, ff, bram, dsp }, shape, .. } in Board::ALL {
        let _ = writeln!(text, "{name:<16} {device:<22} {luts:>7} {ff:>11} {bram:>11} {dsp:>12}  {shape}");
    }
    text
}

/// The columns of cells, and their numbers.
fn columns(cells: &Cells) -> [(&'static str, u32); 6] {
    let Cells { luts: _, lut4, carry, ff, distributed_ram, bram, dsp } = *cells;
    [
        ("LUT4", lut4),
        ("carry", carry),
        ("FF", ff),
        ("distributed RAM", distributed_ram),
        ("block RAM", bram),
        ("multipliers", dsp),
    ]
}

/// The width of a column.
fn wide(title: &str) -> usize {
    (title.len() + 2).max(8)
}

fn titles() -> String {
    columns(&Cells::default()).map(|(title, _)| format!("{title:>0$}", wide(title))).concat()
}

/// Of whole cores.
pub fn table(rows: &[Built]) -> String {
    let first = rows.iter().map(|row| named(row).len()).max().unwrap_or(0);
    let mut text = format!("{:first$}{:>8}{:>8}{}     MHz  critical path\n", "", "LUTs", "in core", titles());
    for row in rows {
        let Built { flat: Flat { cells, core_luts, memory_bram }, .. } = row;
        let _ = write!(text, "{:first$}{:>8}{core_luts:>8}", named(row), cells.luts);
        for (title, number) in columns(cells) {
            let number = if title == "block RAM" { format!("{number}+{memory_bram}") } else { number.to_string() };
            let _ = write!(text, "{number:>0$}", wide(title));
        }
        let bound = if row.fmax_is_bound { "<" } else { "" };
        let mhz = row.fmax_mhz.map_or_else(String::new, |mhz| format!("{bound}{mhz:.1}"));
        let path = match &row.critical_path[..] {
            _ if !row.fits => row.over.iter().map(|over| format!("does not fit: {over}")).collect(),
            [first, .., last] => format!("{first} -> {last}"),
            other => other.concat(),
        };
        let _ = writeln!(text, "{}", format!("{mhz:>8}  {path}").trim_end());
    }
    text
}

/// The paths that limit the clocks, step by step.
pub fn paths(rows: &[Built]) -> String {
    let mut text = String::new();
    for row in rows.iter().filter(|row| !row.critical_path.is_empty()) {
        let _ = writeln!(text, "\n{}", named(row));
        let times = row.critical_path_ns.iter().map(|ns| format!("{ns:.2}")).chain(std::iter::repeat(String::new()));
        for (name, time) in row.critical_path.iter().zip(times) {
            let _ = writeln!(text, "{time:>8}  {name}");
        }
    }
    text
}

/// What is built: the options of the core, and which module of it alone.
fn named(row: &Built) -> String {
    match &row.module {
        Some(module) => format!("{}, {module} alone", row.configuration),
        None => row.configuration.clone(),
    }
}

/// Of the modules of a core.
pub fn modules_table(of: &Modules) -> String {
    let mut text = format!("{}\n{:<18}{:>8}{:>8}{}\n", of.configuration, "module", "copies", "LUTs", titles());
    for Row { module, copies, cells } in &of.modules {
        let _ = write!(text, "{module:<18}{copies:>8}{:>8}", cells.luts);
        for (title, number) in columns(cells) {
            let _ = write!(text, "{number:>0$}", wide(title));
        }
        text.push('\n');
    }
    text
}
