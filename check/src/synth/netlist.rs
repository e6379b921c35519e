//! What Yosys made of the core: cells counted.

use super::boards::{Board, Room};
use super::family::{Column, Family};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Cells by what they are, as [`Family`] counts them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cells {
    /// Tables of four inputs that are taken: by logic, by carry cells, by distributed RAM.
    pub luts: u32,
    /// Tables of logic.
    pub lut4: u32,
    /// Carry cells.
    pub carry: u32,
    /// Flip-flops.
    pub ff: u32,
    /// Cells of distributed RAM.
    pub distributed_ram: u32,
    /// Block RAMs.
    pub bram: u32,
    /// Multipliers.
    pub dsp: u32,
}

/// Those of the whole, flat.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Flat {
    /// Without block RAM of main and instruction memory, but with the logic at its pins.
    #[serde(flatten)]
    pub cells: Cells,
    /// Tables of those in the module `core`: all but those that the rest takes without it; of a module alone, all.
    pub core_luts: u32,
    /// Block RAMs of main and instruction memory.
    pub memory_bram: u32,
}

/// A module's, where the hierarchy is kept.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// Its name.
    pub module: String,
    /// How often it is there.
    pub copies: u32,
    /// Of one copy, without the modules in it.
    #[serde(flatten)]
    pub cells: Cells,
}

/// A netlist as Yosys writes it.
#[derive(Deserialize)]
pub(super) struct Netlist {
    modules: BTreeMap<String, Module>,
}

#[derive(Deserialize)]
struct Module {
    cells: BTreeMap<String, Cell>,
}

#[derive(Deserialize)]
struct Cell {
    #[serde(rename = "type")]
    kind: String,
}

impl Netlist {
    /// The cells of a flat top, in which names of the system begin with a prefix. `rest` is the same top without what is
    /// in the module `core`.
    pub fn flat(&self, family: &Family, top: &str, prefix: &str, rest: Option<&Netlist>) -> Result<Flat, String> {
        let module = self.module(top)?;
        let (memory, own): (Vec<_>, Vec<_>) = module.cells.iter().partition(|cell| is_memory(family, prefix, cell));
        let cells = count(family, own.iter().map(|(_, cell)| *cell));
        let rest = rest.map(|rest| rest.module(top)).transpose()?;
        let rest_luts = rest.map_or(0, |rest| count(family, rest.cells.values()).luts);
        Ok(Flat { cells, core_luts: cells.luts.saturating_sub(rest_luts), memory_bram: memory.len() as u32 })
    }

    /// The modules below the top and the top, by name, and the sum of all.
    pub fn rows(&self, family: &Family, top: &str) -> Result<Vec<Row>, String> {
        let mut copies = BTreeMap::new();
        self.count_copies(top, &mut copies)?;
        let row = |(name, copies): (&str, u32)| {
            let cells = count(family, self.module(name)?.cells.values());
            Ok(Row { module: name.to_string(), copies, cells })
        };
        let mut rows = copies.into_iter().map(row).collect::<Result<Vec<_>, String>>()?;
        let all = rows.iter().fold(Cells::default(), |all, row| all.plus(&row.cells, row.copies));
        rows.push(Row { module: format!("{top}, all"), copies: 1, cells: all });
        Ok(rows)
    }

    /// Adds a copy of the module and of those in it.
    fn count_copies<'a>(&'a self, name: &'a str, copies: &mut BTreeMap<&'a str, u32>) -> Result<(), String> {
        *copies.entry(name).or_default() += 1;
        for cell in self.module(name)?.cells.values() {
            // Modules without cells are those of the device.
            if self.modules.get(&cell.kind).is_some_and(|module| !module.cells.is_empty()) {
                self.count_copies(&cell.kind, copies)?;
            }
        }
        Ok(())
    }

    fn module(&self, name: &str) -> Result<&Module, String> {
        self.modules.get(name).ok_or_else(|| format!("it has no module `{name}`"))
    }
}

/// Whether it is block RAM of main or instruction memory: Yosys names that after the memory.
fn is_memory(family: &Family, prefix: &str, (name, cell): &(&String, &Cell)) -> bool {
    let Some(name) = name.strip_prefix(prefix) else { return false };
    let main = || name.starts_with("memory.main.bank[") && name.contains("].replica.words.");
    let memory = name.starts_with("instructions.") || main();
    memory && family.column(&cell.kind).is_some_and(|(column, _)| column == Column::Bram)
}

fn count<'a>(family: &Family, all: impl Iterator<Item = &'a Cell>) -> Cells {
    let mut cells = Cells::default();
    for (column, luts) in all.filter_map(|cell| family.column(&cell.kind)) {
        cells.luts += luts;
        *match column {
            Column::Lut4 => &mut cells.lut4,
            Column::Carry => &mut cells.carry,
            Column::Ff => &mut cells.ff,
            Column::DistributedRam => &mut cells.distributed_ram,
            Column::Bram => &mut cells.bram,
            Column::Dsp => &mut cells.dsp,
        } += 1;
    }
    cells
}

impl Cells {
    /// With so many copies of others.
    pub fn plus(&self, other: &Cells, times: u32) -> Cells {
        Cells {
            luts: self.luts + times * other.luts,
            lut4: self.lut4 + times * other.lut4,
            carry: self.carry + times * other.carry,
            ff: self.ff + times * other.ff,
            distributed_ram: self.distributed_ram + times * other.distributed_ram,
            bram: self.bram + times * other.bram,
            dsp: self.dsp + times * other.dsp,
        }
    }
}

impl Flat {
    /// What the board has too little of for it.
    pub fn over(&self, board: &Board) -> Option<String> {
        let Room { luts, ff, bram, dsp } = board.room;
        let wanted = [
            ("LUTs", self.cells.luts, luts),
            ("flip-flops", self.cells.ff, ff),
            ("block RAMs", self.cells.bram + self.memory_bram, bram),
            ("multipliers", self.cells.dsp, dsp),
        ];
        let over = wanted.into_iter().filter(|(_, wanted, there)| wanted > there);
        let over: Vec<String> =
            over.map(|(what, wanted, there)| format!("{wanted} {what} wanted, {there} there")).collect();
        (!over.is_empty()).then(|| over.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synth::family::{ECP5, GOWIN, ICE40};

    /// A netlist of one module `heddle` with cells of these names and types.
    fn flat(family: &Family, cells: &[(&str, &str)], rest: &[(&str, &str)]) -> Flat {
        let rest = netlist(rest);
        netlist(cells).flat(family, "heddle", "", Some(&rest)).unwrap()
    }

    fn netlist(cells: &[(&str, &str)]) -> Netlist {
        let cell = |(name, kind): &(&str, &str)| {
            format!(r#""{name}": {{"hide_name": 0, "type": "{kind}", "connections": {{"A": [1, "0"]}}}}"#)
        };
        let cells = cells.iter().map(cell).collect::<Vec<_>>().join(", ");
        let text = format!(
            r#"{{"creator": "Yosys", "modules": {{"LUT4": {{"cells": {{}}}}, "heddle": {{"ports": {{}}, "cells": {{{cells}}}, "netnames": {{}}}}}}}}"#
        );
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn cells_are_counted_and_the_large_memories_apart() {
        let found = flat(
            &ECP5,
            &[
                ("core.issue.choice_LUT4_Z", "LUT4"),
                ("core.execute.sum_CCU2C_S0", "CCU2C"),
                ("core.issue.row[0].replica.words.0.0", "TRELLIS_DPR16X4"),
                ("core.issue.pc_TRELLIS_FF_Q", "TRELLIS_FF"),
                ("core.issue.wide_PFUMX_Z", "PFUMX"),
                ("core.collect.lane[0].replica.registers.0.0", "DP16KD"),
                ("core.execute.product_MULT18X18D_P0", "MULT18X18D"),
                ("distributor.next_LUT4_Z", "LUT4"),
                ("instructions.0.0", "DP16KD"),
                ("instructions.0.0_DOA_LUT4_A", "LUT4"),
                ("memory.main.bank[3].replica.words.0.1", "DP16KD"),
                ("core", "$scopeinfo"),
            ],
            &[("core", "core"), ("distributor.next_LUT4_Z", "LUT4"), ("instructions.0.0_DOA_LUT4_A", "LUT4")],
        );
        let cells = Cells { luts: 3 + 2 + 6, lut4: 3, carry: 1, ff: 1, distributed_ram: 1, bram: 1, dsp: 1 };
        assert_eq!(found, Flat { cells, core_luts: 3 + 2 + 6 - 2, memory_bram: 2 });
    }

    #[test]
    fn families_count_their_own_cells() {
        let found = flat(&ICE40, &[("a", "SB_LUT4"), ("b", "SB_CARRY"), ("c", "SB_DFFESR"), ("d", "SB_RAM40_4K")], &[]);
        assert_eq!(found.cells, Cells { luts: 1, lut4: 1, carry: 1, ff: 1, bram: 1, ..Cells::default() });
        let found =
            flat(&GOWIN, &[("a", "LUT3"), ("b", "ALU"), ("c", "DFFRE"), ("d", "RAM16SDP4"), ("e", "MUX2_LUT5")], &[]);
        assert_eq!(found.cells, Cells { luts: 10, lut4: 1, carry: 1, ff: 1, distributed_ram: 1, ..Cells::default() });
    }

    #[test]
    fn what_is_over_is_named_with_both_numbers() {
        let board = Board::find("colorlight-i5").unwrap();
        let cells = Cells { luts: 24288, bram: 10, ..Cells::default() };
        let found = Flat { cells, core_luts: 0, memory_bram: 46 };
        assert_eq!(found.over(board), None);
        let found = Flat { cells: Cells { luts: 24289, dsp: 32, ..cells }, memory_bram: 47, ..found };
        let over = "24289 LUTs wanted, 24288 there; 57 block RAMs wanted, 56 there; 32 multipliers wanted, 28 there";
        assert_eq!(found.over(board).as_deref(), Some(over));
    }

    #[test]
    fn modules_are_counted_with_their_copies() {
        let text = r#"{"modules": {
            "LUT4": {"cells": {}},
            "core": {"cells": {"a": {"type": "alu"}, "b": {"type": "pair"}, "x": {"type": "LUT4"}}},
            "pair": {"cells": {"a": {"type": "alu"}, "b": {"type": "alu"}}},
            "alu": {"cells": {"x": {"type": "LUT4"}, "y": {"type": "CCU2C"}}},
            "unused": {"cells": {"x": {"type": "LUT4"}}}}}"#;
        let netlist: Netlist = serde_json::from_str(text).unwrap();
        let rows = netlist.rows(&ECP5, "core").unwrap();
        let found: Vec<_> = rows.iter().map(|row| (row.module.as_str(), row.copies, row.cells.luts)).collect();
        assert_eq!(found, [("alu", 3, 3), ("core", 1, 1), ("pair", 1, 0), ("core, all", 1, 10)]);
        assert_eq!(netlist.rows(&ECP5, "heddle").unwrap_err(), "it has no module `heddle`");
    }
}
