//! Which control instructions of a warp are unresolved, and so which may issue.
//!
//! One of a warp, since whoever diverges suspends the other path, which must then stand between two instructions. With
//! [`Shape::unresolved`] = 2 a path may also issue a conditional branch while its sibling has a control instruction
//! under way. Then that one is resolved first, and if it suspends the path, the branch is *squashed*: it has no effect
//! when it comes to stage 8, and is issued again when the path goes on. A branch writes nothing, so no thread
//! notices; it counts as issued twice.
//!
//! Two control instructions of a warp are two cycles apart at least: the divergence unit reads a warp's words in the
//! cycle before an outcome.

use super::super::steer::Flush;
use super::super::timing::{ISSUE_TO_RESOLVE, STEER_TO_ISSUE};
use crate::divergence::interface::{OfSlot, by_side, by_slot};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// A path that comes to a slot issues after the branch that was squashed there has come to stage 8: it is steered a cycle
/// behind the flush at the earliest.
const _: () = assert!(STEER_TO_ISSUE >= ISSUE_TO_RESOLVE, "a squashed branch is still under way");

/// What is kept.
pub struct Unresolved {
    m: Builder,
    s: Shape,
    /// One bit per warp; where two may be, per slot.
    unresolved: Reg<Signal>,
    two: Option<Two>,
}

/// Where two may be.
struct Two {
    /// One bit per warp: a control instruction issued in the cycle before.
    just: Reg<Signal>,
    /// One bit per slot: its control instruction on the way to stage 8 has no effect.
    squashed: Reg<Signal>,
}

impl Unresolved {
    pub fn new(s: &Shape, m: Builder) -> Unresolved {
        let two = s.overlaps_control();
        let unresolved = m.reg("unresolved", if two { s.slots() } else { s.warps }).reset(0u32);
        let two = two.then(|| Two {
            just: m.reg("control_issued", s.warps).reset(0u32),
            squashed: m.reg("squashed", s.slots()).reset(0u32),
        });
        Unresolved { m, s: s.clone(), unresolved, two }
    }

    /// One bit per slot: its first instruction may issue if it is a control instruction; `branch` if it is a conditional
    /// branch. `busy`, one bit per warp: no control instruction of it may.
    pub fn may_issue(&self, branch: Option<Signal>, busy: Signal) -> Signal {
        let Some((two, branch)) = self.two.as_ref().zip(branch) else {
            let may = !(self.unresolved.q | busy);
            return by_slot(may, may);
        };
        let may = !(two.just.q | busy);
        by_slot(may, may) & !self.unresolved.q & (!self.of_sibling() | branch)
    }

    /// One bit per slot: its sibling has one.
    fn of_sibling(&self) -> Signal {
        let [left, right] = by_side(self.unresolved.q, 1);
        by_slot(right, left)
    }

    /// 1 bit: a slot has one that is to issue again, if the slot is suspended.
    pub fn goes_back(&self, slot: Signal) -> Option<Signal> {
        self.two.as_ref().map(|_| self.unresolved.q.select(slot, 1))
    }

    /// Takes note of one that issues, of one that is resolved, of a path that is suspended, and of one that is in stage
    /// 8. One bit per slot: if it is in stage 8 in this cycle, it has no effect.
    pub fn note(
        self,
        issues: OfSlot<Signal>,
        resolved: OfSlot<Signal>,
        flush: Flush<Signal>,
        arrives: Option<OfSlot<Signal>>,
    ) -> Option<Signal> {
        let Unresolved { m, s, unresolved, two } = self;
        let Some((two, arrives)) = two.zip(arrives) else {
            let (sets, clears) = (issues.warps(&s), resolved.warps(&s));
            unresolved.next((unresolved.q & !clears) | sets);
            m.assert("one_control_instruction_of_a_warp", !(sets & unresolved.q).any());
            m.assert("resolved_was_unresolved", !(clears & !unresolved.q).any());
            return None;
        };
        let (sets, clears) = (issues.slots(&s), resolved.slots(&s));
        let suspended = m.pipe_reset("suspended", OfSlot { valid: flush.valid, slot: flush.slot });
        wire!(goes_back = suspended.slots(&s) & unresolved.q);
        wire!(squashes = two.squashed.q | goes_back);
        let arrived = arrives.slots(&s);
        two.squashed.next(squashes & !arrived);
        two.just.next(issues.warps(&s));
        unresolved.next((unresolved.q & !clears & !goes_back) | sets);
        m.assert("one_control_instruction_of_a_slot", !(sets & unresolved.q).any());
        m.assert("resolved_was_unresolved", !(clears & !unresolved.q).any());
        m.assert("nothing_squashed_is_resolved", !(clears & two.squashed.q).any());
        m.assert("what_issues_is_not_squashed", !(squashes & sets).any());
        m.cover("both_sides_have_one", {
            let [left, right] = by_side(unresolved.q, 1);
            (left & right).any()
        });
        m.cover("squashed_at_once", (goes_back & arrived).any());
        m.cover("squashed_later", (two.squashed.q & arrived).any());
        Some(squashes)
    }
}
