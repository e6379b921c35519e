//! A block against its mapped netlist: Yosys proves that both are the same machine.
//!
//! Registers are paired by their names. If each pair and each input is equal in a cycle, each output is, and each pair
//! in the next cycle: so for runs of any length, from any state that both have. Memories are registers on both sides,
//! before they are mapped: what the mapping to RAM does is for [`simulate`](super::simulate).

use super::boards::Board;
use super::run::{Error, Synthesis, Workplace, at};
use super::tools::YOSYS;
use crate::kept::Kept;
use std::fs;

/// The cells of a family as Yosys describes them to itself.
fn library(board: &Board) -> Result<&'static str, Error> {
    match board.family.name {
        "ECP5" => Ok("+/lattice/cells_sim_ecp5.v"),
        "iCE40" => Ok("+/ice40/cells_sim.v"),
        other => Err(Error::NoModels(other)),
    }
}

const MAPPED: &str = "mapped.v";

impl Synthesis<'_> {
    /// Proves that the module `block`, with all that is in it, is what Yosys maps `mapped` to, the design's Verilog or
    /// another with a block of that name: how many outputs and bits of registers are proven equal. An error says how
    /// many are not.
    pub fn is_equivalent(&self, block: &str, mapped: &str) -> Result<u32, Error> {
        let steps = steps(self.board, block)?;
        let kept = Kept::of("synthesis", "equivalence", (&self.verilog, mapped, &steps, YOSYS.title()));
        self.session.kept(&kept, || {
            let work = Workplace::new(&[("heddle.v", &self.verilog), (MAPPED, mapped)])?;
            self.session.yosys("synthesis", work.path(), &steps)?;
            let log = work.path().join("yosys.log");
            let printed = fs::read_to_string(&log).map_err(at(&log))?;
            let unreadable = || Error::Unreadable(YOSYS.title(), "it does not tell what is proven".into());
            proven(&printed).ok_or_else(unreadable)
        })
    }

    /// The Verilog of the design.
    pub fn verilog(&self) -> &str {
        &self.verilog
    }
}

/// Yosys' steps.
fn steps(board: &Board, block: &str) -> Result<Vec<String>, Error> {
    let library = library(board)?;
    // Names of ports and of registers stay, others go: what a wire inside is called after is not always equal, such as
    // a bit that nobody reads.
    let names = "rename -hide w:* t:$*dff* %co1:+[Q] %d";
    let read = |file: &str| {
        [&format!("read_verilog {file}"), &format!("hierarchy -top {block}"), "proc", "flatten", "memory_map"]
            .map(String::from)
            .into_iter()
            .chain(["opt -full", names].map(String::from))
    };
    let synth = format!("{} -top {block}", board.synth);
    let cells = format!("techmap -wb -D EQUIV -autoproc -map {library}");
    let copy = |design: &str| format!("design -copy-from {design} -as {design} {block}");
    Ok(read("heddle.v")
        .chain(["async2sync", "design -stash gold"].map(String::from))
        .chain(read(MAPPED))
        .chain([&synth, &cells, "async2sync", "design -stash gate", &copy("gold"), &copy("gate")].map(String::from))
        .chain(
            ["equiv_make gold gate equiv", "equiv_simple equiv", "equiv_induct equiv", "equiv_status -assert equiv"]
                .map(String::from),
        )
        .collect())
}

/// What the last status says: `Of those cells 33 are proven and 0 are unproven.`
fn proven(log: &str) -> Option<u32> {
    let line = log.lines().rfind(|line| line.contains("Of those cells"))?;
    line.split_once("Of those cells ")?.1.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_how_many_are_proven() {
        let log =
            "Found 68 $equiv cells in equiv:\n  Of those cells 68 are proven and 0 are unproven.\n  Equivalence!\n";
        assert_eq!((proven(log), proven("")), (Some(68), None));
    }
}
