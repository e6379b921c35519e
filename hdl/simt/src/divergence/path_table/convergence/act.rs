//! The instructions on convergence barriers, in stage 8: what the entries say, and what is written.

use super::TableIn;
use super::state::{Entry, Store, Word, clear, has, set};
use crate::divergence::interface::Hint;
use crate::isa::convergence;
use heddle_hdl::prelude::*;

/// What the warden wants to read, where no instruction reads two entries.
pub struct Reads {
    pub valid: Deferred<Signal>,
    pub address: Deferred<Signal>,
}

/// What an instruction does.
#[derive(Clone, Copy)]
pub struct Act {
    /// 1 bit: the instruction writes its entry, and the word of its warp.
    pub changes: Signal,
    pub word: Word<Signal>,
    /// The entry of its barrier; that of its other one, or the warden's.
    pub found: [Entry<Signal>; 2],
    /// See [`super::TableOut`].
    pub count: Signal,
    pub goes: Signal,
    pub waited: Signal,
    pub waited_slot: Signal,
    /// 1 bit each: threads that waited go on with a `wait`, for all wait; or as many as it asks for; participants came
    /// to another place.
    pub completed: Signal,
    pub reached: Signal,
    pub fell_through: Signal,
}

impl Store {
    /// Reads the entries of an instruction in the cycle before it, and does what it says.
    pub fn act(&self, i: &TableIn<Signal>) -> (Act, Reads) {
        let Store { m, s, entries, .. } = self;
        let n = s.convergence_barriers;
        let Hint { valid, slot, operation, barrier, operand, mask, next } = i.hints.hint;
        let is = |code: u32| operation.eq(code);
        let (joins, waits, cancels) = (is(convergence::JOIN), is(convergence::WAIT), is(convergence::CANCEL));
        wire!(is_count = is(convergence::COUNT));
        wire!(moves = is(convergence::MOVE));
        wire!(copies = moves | is(convergence::COPY));
        let other = operand.slice(0, s.barrier_bits());
        // Of one barrier with itself there is nothing to copy.
        wire!(changes = valid & !is_count & !(copies & other.eq(barrier)));
        let word = self.words.read(slot);
        let at_b = barrier.decode(n);
        let at_c = other.decode(n);
        wire!(living = self.alive.read(slot));
        let reads = Reads {
            valid: m.deferred("warden_reads", 1),
            address: m.deferred("warden_address", s.warps.ilog2() + s.barrier_bits()),
        };
        let ahead = i.hints.ahead;
        let first_entry = entries.read_sync(self.address(ahead.slot, ahead.barrier), Collision::ReadNew);
        let second_address = ahead.both.mux(self.address(ahead.slot, ahead.other), reads.address.value);
        let second_entry = entries.read_sync_if(ahead.both | reads.valid.value, second_address, Collision::ReadNew);
        wire!(held = has(word.holds, at_b));
        wire!(expected = first_entry.expected & living.only_if(has(word.expects, at_b)));
        wire!(waiters = first_entry.waiting.only_if(held));
        wire!(
            other_participants = (second_entry.expected & living.only_if(has(word.expects, at_c)))
                | second_entry.waiting.only_if(has(word.holds, at_c))
        );

        // A wait.
        wire!(arrive = mask & expected);
        wire!(same_place = first_entry.pc.eq(next) & first_entry.depth.eq(i.depth));
        wire!(here = !held | same_place);
        wire!(some_arrive = arrive.any());
        wire!(enters = waits & some_arrive & here);
        wire!(falls = waits & some_arrive & !here);
        wire!(still_expected = expected & !mask);
        let number = (waiters | is_count.mux(expected, arrive)).count_ones();
        let count = number;
        let wide = count.width().max(7);
        wire!(full = !still_expected.any());
        wire!(enough = operand.any() & count.zext(wide).ge(operand.zext(wide)));
        wire!(completes = enters & (full | enough));
        let stay = (waiters | arrive).only_if(enters);
        wire!(go = (mask & !stay) | stay.only_if(completes));
        wire!(waited = m.pipe_reset("waited", valid & waits));

        // What is written.
        let copied = other_participants & !waiters;
        let after = pick([(joins, expected | mask), (copies, copied)], still_expected);
        let arrived = Entry { expected: after, waiting: waiters | arrive, depth: i.depth, pc: next };
        let entry = enters.mux(arrived, Entry { expected: after, ..first_entry });
        entries.write(changes, self.address(slot, barrier), entry);
        let at_both = at_b | at_c.only_if(moves);
        let arrival = at_b.only_if(enters);
        let changed = Word {
            expects: clear(set(word.expects, at_b), at_c.only_if(moves)),
            holds: clear(set(word.holds, arrival), at_b.only_if(completes)),
            old: clear(word.old, arrival),
            tired: clear(word.tired, arrival),
            look: clear(word.look | (word.holds & at_both.only_if(cancels | falls | copies)), at_b.only_if(completes)),
        };

        m.assert("an_instruction_is_present", !valid | i.hints.present);
        m.assert("who_waits_is_alive", !valid | !(waiters & !living).any());
        m.assert("who_executes_does_not_wait", !valid | !(waiters & mask).any());
        m.assert("who_executes_is_alive", !valid | !(mask & !living).any());
        m.assert("somebody_waits_where_it_says_so", !valid | !held | waiters.any());
        let as_before = entry.waiting.only_if(held).eq(waiters) & entry.expected.eq(still_expected);
        m.assert("only_who_falls_through_leaves", !(valid & falls) | (as_before & go.eq(mask)));
        let nobody = m.lit(0u32, s.lanes);
        m.assert("only_who_waits_stays", !(valid & waits) | (mask & !go & !expected).eq(nobody));
        m.cover("joins", changes & joins);
        m.cover("cancels_where_others_wait", changes & cancels & held);
        m.cover("counts_some", valid & is_count & count.any());
        m.cover("copies", changes & copies & !moves);
        m.cover("moves_with_waiting_threads", changes & moves & held);
        m.cover("completes_with_others", valid & completes & full & held);
        m.cover("completes_by_threshold", valid & completes & !full);
        m.cover("waits_without_participants", valid & waits & !some_arrive);
        m.cover("waits_with_some_participants", valid & enters & (mask & !arrive).any());
        m.cover("falls_through", valid & falls);

        let counted = |what: Signal| what & valid;
        let act = Act {
            changes,
            word: changed,
            found: [first_entry, second_entry],
            count,
            goes: m.pipe("go_on", go),
            waited,
            waited_slot: m.pipe("waited_slot", slot),
            completed: counted(completes & full & held),
            reached: counted(completes & !full),
            fell_through: counted(falls),
        };
        (act, reads)
    }
}
