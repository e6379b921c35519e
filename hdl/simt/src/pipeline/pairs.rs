//! Beside stage 4, where a warp has two slots: which of the two may issue, and where each is.
//!
//! * At most one control instruction of a warp is unresolved, or two ([`unresolved`]). (`dual-path-execution.txt` §3.1:
//!   whoever diverges suspends the other)
//! * Under [`PathScheduler::Constrained`], one path of a warp is considered in a cycle, the same until it issues an
//!   instruction that takes long (one that memory answers, a divide, or one for whose outcome the front end waits) or
//!   is no more; then the other. Under [`PathScheduler::ConstrainedMiss`], an access takes long if the cache answers it
//!   late, which is known when it has looked at its tags. (§3.3) A miss
//!   that is known when the other path is considered already counts for nothing.
//! * An access that is issued again, for threads that were left unserved, on the side on which it issued before does
//!   not wait for registers, as nothing else of that side is under way to them; on the other side it waits for that
//!   side's own writes, under [`Replay::Split`](crate::shape::Replay::Split). Else it is a `jalr`, which waits there as
//!   if it had not issued before.
//! * A path that is suspended goes on behind the last instruction that it issued.
//!
//! [`PathScheduler::Constrained`]: crate::shape::PathScheduler::Constrained
//! [`PathScheduler::ConstrainedMiss`]: crate::shape::PathScheduler::ConstrainedMiss

use super::issue::Issued;
use super::steer::Flush;
use crate::divergence::interface::{OfSlot, Steer, Unissued, by_side, by_slot, side_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;
use unresolved::Unresolved;

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
    /// A slot one of whose accesses the cache answers late. Under [`PathScheduler::ConstrainedMiss`].
    ///
    /// [`PathScheduler::ConstrainedMiss`]: crate::shape::PathScheduler::ConstrainedMiss
    pub missed: Option<OfSlot<T>>,
    /// A control instruction is in stage 8. Where [two](Shape::unresolved) of a warp may be unresolved.
    pub arrives: Option<OfSlot<T>>,
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
        let missed = s.tells_misses().then(|| OfSlot::shape(s));
        let arrives = s.overlaps_control().then(|| OfSlot::shape(s));
        let of =
            |flush| PairsIn { flush, resolved, resolved_slot, busy, active, missed, arrives, changes_side, own_clear };
        Flush::shape(s).map(of)
    }
}

/// What the rest of the core must know.
pub(super) struct Noted {
    /// Where the sibling of the slot goes on that was resolved in the cycle before.
    pub unissued: Unissued<Signal>,
    /// One bit per slot: its control instruction in stage 8 has no effect. Where two of a warp may be unresolved.
    pub squashes: Option<Signal>,
}

/// State and inputs.
pub(super) struct Pairs {
    i: PairsIn<Signal>,
    unresolved: Unresolved,
    /// One bit per warp, under the constrained scheduler: the right path is considered.
    turn: Option<Reg<Signal>>,
    /// One bit per slot: what it replays was issued on the other side.
    changed_side: Reg<Signal>,
}

impl Pairs {
    pub fn new(s: &Shape, m: Builder, i: PairsIn<Signal>) -> Pairs {
        let unresolved = Unresolved::new(s, m);
        let turn = s.path_scheduler.is_constrained().then(|| m.reg("turn", s.warps).reset(0u32));
        let changed_side = m.reg("changed_side", s.slots()).reset(0u32);
        Pairs { i, unresolved, turn, changed_side }
    }

    /// One bit per slot: if its first instruction is a replay, it need not wait for registers.
    pub fn may_replay(&self) -> Signal {
        let same_side = !self.changed_side.q;
        self.i.own_clear.map_or(same_side, |own_clear| same_side | own_clear)
    }

    /// One bit per slot: its first instruction, which has an outcome where `control` says so, and is a conditional branch
    /// where `branch` does, may issue.
    pub fn may_issue(&self, control: Signal, branch: Option<Signal>) -> Signal {
        let may = !control | self.unresolved.may_issue(branch, self.i.busy);
        self.considered().map_or(may, |considered| may & considered)
    }

    /// One bit per slot, under the constrained scheduler: it is the one of its warp that is considered.
    pub fn considered(&self) -> Option<Signal> {
        self.turn.as_ref().map(|turn| by_slot(!turn.q, turn.q))
    }

    /// Takes note of what issues.
    pub fn issue(self, s: &Shape, m: Builder, issued: &Issued<Signal>, steer: Steer<Signal>) -> Noted {
        let Pairs { i, unresolved, turn, changed_side } = self;
        let on = |valid: Signal| OfSlot { valid, slot: issued.slot }.warps(s);
        let Issued { valid, slot, pc, answers, divide, control, .. } = *issued;
        if let Some(turn) = turn {
            let [left, right] = by_side(i.active, 1);
            // A load that misses does so when its path may not be considered any more.
            let long = i.missed.map_or(on(answers | divide | control), |missed| {
                let stays = turn.q ^ side_of(s, missed.slot).repeat(s.warps);
                let misses = missed.warps(s) & !stays;
                m.cover("a_path_misses_in_its_turn", misses.any());
                on(divide | control) | misses
            });
            wire!(changes = long | !choose(turn.q, right, left));
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
        let behind = following.read(sibling);
        let pc = unresolved.goes_back(sibling).map_or(behind, |back| behind - back.zext(s.pc_bits()));
        let unissued = Unissued { valid: has_issued.q.select(sibling, 1), pc };
        let issues = OfSlot { valid: control, slot };
        let resolved = OfSlot { valid: i.resolved, slot: i.resolved_slot };
        Noted { unissued, squashes: unresolved.note(issues, resolved, i.flush, i.arrives) }
    }
}

/// Bit by bit: `on` where `which` is 1, `off` where it is 0.
fn choose(which: Signal, on: Signal, off: Signal) -> Signal {
    (which & on) | (!which & off)
}

mod unresolved;

#[cfg(test)]
mod tests;
