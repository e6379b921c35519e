//! Beside stage 4, where a warp has two slots: which of the two may issue, and where each is.
//!
//! * At most one control instruction of a warp is unresolved. (`dual-path-execution.txt` §3.1: whoever diverges
//!   suspends the other)
//! * Under [`PathScheduler::Constrained`], one path of a warp is considered in a cycle, the same until it issues an
//!   instruction that takes long (one that memory answers, a divide, or one for whose outcome the front end waits) or
//!   is no more; then the other. (§3.3)
//! * An access that is issued again, for threads that were left unserved, on the side on which it issued before does
//!   not wait for registers, as nothing else of that side is under way to them; on the other side it waits for that
//!   side's own writes, under [`Replay::Split`](crate::shape::Replay::Split). Else it is a `jalr`, which waits there as
//!   if it had not issued before.
//! * A path that is suspended goes on behind the last instruction that it issued.

use super::issue::Issued;
use super::steer::Flush;
use crate::divergence::interface::{Steer, Unissued, by_side, by_slot, warp_of};
use crate::shape::{PathScheduler, Shape};
use heddle_hdl::prelude::*;

/// What issue must know where a warp has two slots.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct PairsIn<T> {
    pub flush: Flush<T>,
    /// 1 bit: a control instruction of the slot has come to the divergence unit.
    pub resolved: T,
    pub resolved_slot: T,
    /// One bit per warp: it may not issue control instructions.
    pub busy: T,
    /// One bit per slot: it has a path.
    pub active: T,
    /// 1 bit: what `steer` replays was issued on the other side.
    pub changes_side: T,
    /// One bit per slot: no register of its first instruction awaits a write of the slot's own. Under
    /// [`Replay::Split`](crate::shape::Replay::Split).
    pub own_clear: Option<T>,
}

impl PairsIn<Width> {
    pub fn shape(s: &Shape) -> Option<PairsIn<Width>> {
        let (resolved_slot, busy, active) = (s.slot_bits(), s.warps, s.slots());
        let own_clear = s.reissues_on_the_other_side().then(|| s.slots());
        let (resolved, changes_side) = (1, 1);
        let of = |flush| PairsIn { flush, resolved, resolved_slot, busy, active, changes_side, own_clear };
        Flush::shape(s).map(of)
    }
}

/// State and inputs.
pub(super) struct Pairs {
    i: PairsIn<Signal>,
    /// One bit per warp: a control instruction is unresolved.
    unresolved: Reg<Signal>,
    /// One bit per warp, under the constrained scheduler: the right path is considered.
    turn: Option<Reg<Signal>>,
    /// One bit per slot: what it replays was issued on the other side.
    changed_side: Reg<Signal>,
}

impl Pairs {
    pub fn new(s: &Shape, m: Builder, i: PairsIn<Signal>) -> Pairs {
        let unresolved = m.reg("unresolved", s.warps).reset(0u32);
        let constrained = s.path_scheduler == PathScheduler::Constrained;
        let turn = constrained.then(|| m.reg("turn", s.warps).reset(0u32));
        let changed_side = m.reg("changed_side", s.slots()).reset(0u32);
        Pairs { i, unresolved, turn, changed_side }
    }

    /// One bit per slot: if its first instruction is a replay, it need not wait for registers.
    pub fn may_replay(&self) -> Signal {
        let same_side = !self.changed_side.q;
        self.i.own_clear.map_or(same_side, |own_clear| same_side | own_clear)
    }

    /// One bit per slot: its first instruction, which has an outcome where `control` says so, may issue.
    pub fn may_issue(&self, control: Signal) -> Signal {
        let may_part = !(self.unresolved.q | self.i.busy);
        let may = !control | by_slot(may_part, may_part);
        self.considered().map_or(may, |considered| may & considered)
    }

    /// One bit per slot, under the constrained scheduler: it is the one of its warp that is considered.
    pub fn considered(&self) -> Option<Signal> {
        self.turn.as_ref().map(|turn| by_slot(!turn.q, turn.q))
    }

    /// Takes note of what issues; where the sibling of the slot goes on that was resolved in the cycle before.
    pub fn issue(self, s: &Shape, m: Builder, issued: &Issued<Signal>, steer: Steer<Signal>) -> Unissued<Signal> {
        let Pairs { i, unresolved, turn, changed_side } = self;
        let on = |valid: Signal, slot: Signal| warp_of(s, slot).decode(s.warps).only_if(valid);
        let Issued { valid, slot, pc, answers, divide, control, .. } = *issued;
        let sets = on(control, slot);
        let clears = on(i.resolved, i.resolved_slot);
        unresolved.next((unresolved.q & !clears) | sets);
        m.assert("one_control_instruction_of_a_warp", !(sets & unresolved.q).any());
        m.assert("resolved_was_unresolved", !(clears & !unresolved.q).any());
        if let Some(turn) = turn {
            let [left, right] = by_side(i.active, 1);
            wire!(changes = on(answers | divide | control, slot) | !choose(turn.q, right, left));
            let other_is_active = choose(turn.q, left, right);
            turn.next(turn.q ^ (changes & other_is_active));
            m.cover("path_changes", (changes & other_is_active).any());
        }

        let has_issued = m.reg("has_issued", s.slots()).reset(0u32);
        let following = m.memory("following", s.pc_bits(), s.slot_bits()).style(MemoryStyle::Distributed);
        following.write(valid, slot, pc + 1);
        let steered = steer.slot.decode(s.slots()).only_if(steer.valid);
        changed_side.next((changed_side.q & !steered) | steered.only_if(i.changes_side));
        has_issued.next((has_issued.q & !steered) | slot.decode(s.slots()).only_if(valid));
        wire!(sibling = i.resolved_slot ^ 1);
        m.cover("sibling_issues_when_it_is_suspended", i.flush.valid & valid & slot.eq(sibling));
        let sibling = m.pipe("sibling", sibling);
        Unissued { valid: has_issued.q.select(sibling, 1), pc: following.read(sibling) }
    }
}

/// Bit by bit: `on` where `which` is 1, `off` where it is 0.
fn choose(which: Signal, on: Signal, off: Signal) -> Signal {
    (which & on) | (!which & off)
}

#[cfg(test)]
mod tests;
