//! Levels: one is pushed, or popped, or its sibling comes up beside the path that is left of the top.

use super::super::Unissued;
use super::super::levels::{Rpc, Sibling};
use super::claim::Next;
use super::forwarding;
use super::state::{Level, Pushed, Store, Top};
use super::turn::{Moved, Turn};
use heddle_hdl::prelude::*;

/// What a pop makes of the top.
pub struct Popped {
    pub top: Top<Signal>,
    /// The uppermost level.
    pub head: Level<Signal>,
    /// What was pushed in the cycle before; none with one lane.
    pub pushed: Option<Pushed>,
    /// 1 bit: the threads of the group run.
    pub group_runs: Signal,
    /// 1 bit each: the sibling is the right side, the group the other; the sibling comes to the top, the group does.
    pub right: Signal,
    pub sibling_comes: Signal,
    pub group_comes: Signal,
}

impl Store {
    /// Reads the level of the next turn, and pops that of this one. A level is written in the cycle after its push,
    /// when the pipeline says how far the sibling has come.
    pub fn pop(&self, turn: &Turn, next: &Next, moved: &Moved, unissued: &Unissued<Signal>) -> Popped {
        let Store { m, s, pushed_warps, words, .. } = self;
        let m = *m;
        let Turn { top, takes, pops, count, .. } = *turn;
        pushed_warps.next(turn.at.only_if(moved.pushes));
        let pushed = self.levels.as_ref().map(|_| {
            let level = m.pipe("pushed_level", moved.pushed);
            let sibling = Sibling { pc: unissued.valid.mux(unissued.pc, level.sibling.pc), ..level.sibling };
            let address = m.pipe("pushed_address", self.address(count, turn.warp));
            Pushed { valid: pushed_warps.q.any(), address, level: Level { sibling, ..level } }
        });
        let remaining = words.q.threads;
        let head = self.levels.as_ref().map(|levels| {
            let address = self.address(next.count - 1, next.warp);
            let head = levels.read_sync_if(next.pops | next.takes, address, Collision::Never);
            if let Some(Pushed { valid, address, level }) = pushed {
                levels.write(valid, address, level);
            }
            head
        });
        let head = head.unwrap_or_else(|| m.zero(Level::shape(s)));
        let of_group = top.rpc.returns.mux(top.rpc.depth - 1, top.rpc.depth);
        let group_mask = head.group.mask & remaining;
        let group_rpc = head.rpc(&top);
        let is_there = |rpc: Rpc<Signal>| rpc.reached_early(top.rpc.pc, of_group);
        wire!(arrives_again = head.group.valid & forwarding::of_group(&top, &head, is_there));
        wire!(group_runs = head.group.valid & group_mask.any() & !arrives_again);
        let group = Sibling { valid: group_runs, pc: top.rpc.pc, depth: of_group, mask: group_mask };
        let found = group_rpc.found_early(arrives_again, top.rpc.pc);
        let right = forwarding::side_of_sibling(takes, &top, &head);
        let popped = forwarding::popped(takes, &top, &head, right, group, found);
        let sibling_comes = top.forwarded.map_or(head.sibling.valid, |f| !f.valid & !f.taken);
        let group_comes = takes.map_or(group_runs, |takes| group_runs & !takes);

        m.assert("pops_of_popping_warps", !pops | (self.popping.q.select(turn.warp, 1) & count.any()));
        m.assert("a_level_has_something", !pops | head.sibling.valid | head.group.valid);
        m.assert("a_group_meets_somewhere", !(pops & head.group.valid & group_mask.any()) | top.rpc.known);
        if s.lanes > 1 {
            let suspends = moved.pushes & moved.sibling.valid;
            m.cover("suspends_a_sibling", suspends);
            m.cover("suspends_a_sibling_that_has_not_issued", suspends & !unissued.valid);
            m.cover("pops_a_group", pops & group_runs);
            m.cover("pops_a_sibling", pops & head.sibling.valid);
            m.cover("pops_both", pops & head.sibling.valid & group_runs);
            m.cover("part_of_a_group_has_ended", pops & group_runs & (head.group.mask & !remaining).any());
        }
        if let Some((takes, f)) = takes.zip(top.forwarded) {
            m.assert("what_is_not_taken_is_there", !(turn.renews() & !f.taken) | head.sibling.valid);
            m.cover("forwards", takes & head.group.valid);
            m.cover("gives_way", self.claim.q.take.unwrap_or(m.lit(0u32, 1)) & turn.gives_way);
            m.cover("comes_up_for_good", takes & !head.group.valid);
            m.cover("pops_around_the_forwarded", pops & f.valid);
        }
        Popped { top: popped, head, pushed, group_runs, right, sibling_comes, group_comes }
    }
}
