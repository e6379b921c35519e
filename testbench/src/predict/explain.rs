//! What was placed where, and why.

use super::linked::Linked;
use super::place::{Barrier, Place, Why};
use serde::Serialize;

/// A barrier as it was placed. Addresses are those of the input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Placement {
    /// What it is for.
    pub what: String,
    /// Its number, or its three.
    pub numbers: Vec<u32>,
    /// 0 is none.
    pub threshold: u32,
    /// What is where: the instruction, where it stands, why.
    pub instructions: Vec<Row>,
    /// Instructions that threads execute as participants.
    pub live: Vec<u32>,
}

/// What stands at one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row {
    /// `join`, `wait`, `rejoin` or `cancel`.
    pub instruction: &'static str,
    /// Before the instruction here, or behind it if `to` is given.
    pub pc: u32,
    /// On the edge to here.
    pub to: Option<u32>,
    /// The same, for people.
    pub place: String,
    /// Why it stands there.
    pub why: &'static str,
}

/// What a barrier is for.
pub fn title(why: &Why) -> String {
    match why {
        Why::Predicted(name) => format!("the barrier of {name}"),
        Why::Region(name) => format!("the barrier behind the region of {name}"),
        Why::Function(name) => format!("the barrier of function {name}"),
        Why::PostDominator => "a post-dominator's barrier".into(),
    }
}

pub fn placement(linked: &Linked, barrier: &Barrier, numbers: &[u32]) -> Placement {
    let mut instructions = Vec::new();
    let mut row = |instruction, place: Place, why| {
        let (pc, to) = match place {
            Place::Before(pc) => (pc, None),
            Place::Edge(from, to) => (from, Some(to)),
        };
        let place = match to {
            None => linked.place(pc),
            Some(to) => format!("{} -> {}", linked.place(pc), linked.place(to)),
        };
        instructions.push(Row { instruction, pc, to, place, why });
    };
    let (join, wait) = match barrier.why {
        Why::Predicted(_) => ("the region begins", "threads are predicted to come here"),
        Why::Function(_) => ("the region begins", "threads are predicted to call this function"),
        Why::Region(_) => ("dominates the region", "post-dominates the region"),
        Why::PostDominator => ("threads may diverge from here on", "post-dominates the branches"),
    };
    barrier.joins.iter().for_each(|&place| row("join", place, join));
    for &pc in &barrier.waits {
        row("wait", Place::Before(pc), wait);
        if barrier.rejoins.contains(&pc) {
            row("rejoin", Place::Before(pc), "who has waited may come here again");
        }
    }
    barrier.cancels.iter().for_each(|&place| row("cancel", place, "from here on nobody comes to the wait"));
    for &pc in &barrier.gives_way {
        row("cancel", Place::Before(pc), "conflicts with the wait here");
        if barrier.rejoins.contains(&pc) {
            row("rejoin", Place::Before(pc), "behind the wait");
        }
    }
    Placement {
        what: title(&barrier.why),
        numbers: numbers.to_vec(),
        threshold: barrier.threshold,
        instructions,
        live: barrier.range().into_iter().collect(),
    }
}

impl Placement {
    /// As lines.
    pub fn text(&self) -> String {
        let numbers: Vec<String> = self.numbers.iter().map(|number| format!("b{number}")).collect();
        let threshold = if self.threshold > 0 { format!(", threshold {}", self.threshold) } else { String::new() };
        let mut text =
            format!("{}: {}{threshold}, live at {} instructions\n", numbers.join(" "), self.what, self.live.len());
        for Row { instruction, pc, to, place, why } in &self.instructions {
            let address = to.map_or_else(|| format!("{pc:#x}"), |to| format!("{pc:#x} -> {to:#x}"));
            text.push_str(&format!("  {instruction:<6} {address:<16} {place:<28} {why}\n"));
        }
        text
    }
}
