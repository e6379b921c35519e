//! The instructions on convergence barriers, in stage 8: what the entries say, and what is written.

use super::TableIn;
use super::state::{BySync, Entry, Store, Word, clear, has, set};
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
    pub in_use: Option<Signal>,
    pub stays: Option<Signal>,
    pub waited: Signal,
    pub waited_slot: Signal,
    /// 1 bit each: threads that waited go on with a `wait`, for all wait; or as many as it asks for; participants came
    /// to another place.
    pub completed: Signal,
    pub reached: Signal,
    pub fell_through: Signal,
}

/// A `sync`, 1 bit each unless stated.
#[derive(Clone, Copy)]
struct Arrival {
    /// It is one.
    valid: Signal,
    /// One bit per lane: the living threads that it names; those of them that come.
    participants: Signal,
    here: Signal,
    /// Not all that it names are here, some of whom may have ended: it has an outcome of the kind CONVERGE.
    lacks: Signal,
    /// They wait at the entry, or complete it; all are here, and the entry stays as it is; the entry is in use.
    enters: Signal,
    passes: Signal,
    queues: Signal,
    /// It changes the word of its warp.
    writes: Signal,
}

impl Store {
    /// Reads the entries of an instruction in the cycle before it, and does what it says.
    pub fn act(&self, i: &TableIn<Signal>) -> (Act, Reads) {
        let Store { m, s, entries, .. } = self;
        let n = s.convergence_barriers;
        let Hint { valid, slot, operation, barrier, operand, mask, next, sync: told } = i.hints.hint;
        let is = |code: u32| operation.eq(code);
        let (joins, waits, cancels) = (is(convergence::JOIN), is(convergence::WAIT), is(convergence::CANCEL));
        let syncs = told.map(|_| is(convergence::SYNC));
        wire!(is_count = is(convergence::COUNT));
        wire!(moves = is(convergence::MOVE));
        wire!(copies = moves | is(convergence::COPY));
        let other = operand.slice(0, s.barrier_bits());
        let word = self.words.read(slot);
        let at_b = barrier.decode(n);
        let at_c = other.decode(n);
        // Hints leave alone what is hard, or wanted by a sync.
        let barred = syncs
            .zip(word.by_sync)
            .map(|(syncs, BySync { hard, wanted })| has(hard | wanted, at_b | at_c.only_if(copies)) & !syncs);
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
        wire!(same_place = first_entry.pc.eq(next) & first_entry.depth.eq(i.depth));
        let soft = mask & barred.map_or(expected, |barred| expected.only_if(!barred));
        // Those of a sync participate as it says, if nobody waits there.
        let sync = syncs.zip(told).zip(word.by_sync).map(|((valid, named), BySync { hard, wanted })| {
            let (is_hard, is_wanted) = (has(hard, at_b), has(wanted, at_b));
            wire!(participants = named.all & living);
            wire!(same_threads = participants.eq(expected | waiters));
            wire!(all_here = !(participants & !named.here).any());
            wire!(queues = held & !(is_hard & same_place & same_threads) & !all_here);
            let (enters, passes, queues) = (valid & !queues & !all_here, valid & all_here, valid & queues);
            let writes = enters | (passes & is_wanted) | (queues & !is_hard & !is_wanted);
            Arrival { valid, participants, here: named.here, lacks: named.lacks, enters, passes, queues, writes }
        });
        // Of one barrier with itself there is nothing to copy.
        let acts = valid & !is_count & !(copies & other.eq(barrier));
        let changed_by = |sync: Arrival| acts & sync.valid.mux(sync.writes, !barred.expect("of hints"));
        wire!(changes = sync.map_or(acts, changed_by));
        wire!(here = !held | same_place);
        wire!(arrive = sync.map_or(soft, |sync| sync.valid.mux(sync.here, soft)));
        wire!(some_arrive = arrive.any());
        let waits_here = waits & some_arrive & here;
        wire!(enters = sync.map_or(waits_here, |sync| waits_here | sync.enters));
        wire!(falls = waits & some_arrive & !here);
        let left = expected & !mask;
        let left_by = |sync: Arrival| {
            let lacking = sync.participants & !sync.here & !waiters;
            sync.valid.mux(sync.enters.mux(lacking, expected), left)
        };
        wire!(still_expected = sync.map_or(left, left_by));
        let number = (waiters | is_count.mux(expected, arrive)).count_ones();
        let count = number;
        let wide = count.width().max(7);
        wire!(full = !still_expected.any());
        wire!(enough = operand.any() & count.zext(wide).ge(operand.zext(wide)));
        wire!(completes = enters & (full | enough));
        let stay = (waiters | arrive).only_if(enters);
        let passing = mask & !stay;
        let passing = sync.map_or(passing, |sync| sync.valid.mux(sync.here.only_if(sync.passes), passing));
        wire!(go = passing | stay.only_if(completes));
        wire!(
            waited = m.pipe_reset(
                "waited",
                valid & sync.map_or(waits, |sync| waits | sync.enters | (sync.passes & sync.lacks))
            )
        );

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
            by_sync: word.by_sync.zip(sync).map(|(BySync { hard, wanted }, sync)| BySync {
                hard: clear(set(hard, arrival.only_if(sync.enters)), at_b.only_if(completes)),
                wanted: clear(set(wanted, at_b.only_if(sync.queues)), at_b.only_if(sync.enters | sync.passes)),
            }),
        };
        // A hint is broken where a sync wants the barrier.
        let broken = sync.map(|sync| at_b.only_if(sync.queues));
        let changed = broken.map_or(changed, |broken| Word {
            tired: set(changed.tired, broken),
            look: set(changed.look, broken),
            ..changed
        });

        m.assert("an_instruction_is_present", !valid | i.hints.present);
        m.assert("who_waits_is_alive", !valid | !(waiters & !living).any());
        m.assert("who_executes_does_not_wait", !valid | !(waiters & mask).any());
        m.assert("who_executes_is_alive", !valid | !(mask & !living).any());
        m.assert("somebody_waits_where_it_says_so", !valid | !held | waiters.any());
        let as_before = entry.waiting.only_if(held).eq(waiters) & entry.expected.eq(still_expected);
        m.assert("only_who_falls_through_leaves", !(valid & falls) | (as_before & go.eq(mask)));
        let nobody = m.lit(0u32, s.lanes);
        m.assert("only_who_waits_stays", !(valid & waits) | (mask & !go & !expected).eq(nobody));
        if let Some((sync, BySync { hard, wanted })) = sync.zip(word.by_sync) {
            let Arrival { valid: is_sync, participants, here, enters, passes, queues, .. } = sync;
            let (is_sync, enters, queues) = (valid & is_sync, valid & enters, valid & queues);
            m.assume("a_sync_has_no_threshold", !is_sync | !operand.any());
            let of_it = (here & mask & participants).eq(here) & here.any();
            m.assume("who_is_here_of_a_sync_executes_it", !is_sync | of_it);
            m.assert("hard_where_threads_wait", !valid | !(hard & !word.holds).any());
            let all = waiters | here;
            m.assert("who_syncs_goes_on_when_all_are_there", !(enters & completes) | all.eq(participants));
            let at_sync = valid & waits & has(hard, at_b);
            m.assert("a_hint_leaves_a_sync_alone", !at_sync | (go.eq(mask) & !changes));
            let same = entry.waiting.only_if(held).eq(waiters) & entry.expected.eq(expected);
            m.assert("who_queues_leaves_the_entry_alone", !(queues & changes) | same);
            m.cover("sync_arrives_first", enters & !held);
            m.cover("sync_completes", enters & held & full);
            m.cover("sync_passes_beside_others", valid & passes & held);
            m.cover("sync_finds_threads_that_wait_softly", queues & !has(hard, at_b));
            m.cover("sync_of_others", queues & has(hard, at_b) & same_place);
            m.cover("hint_at_a_sync", at_sync);
            m.cover("hint_where_a_sync_queues", valid & waits & has(wanted, at_b) & expected.any());
        }
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
            in_use: sync.map(|sync| sync.queues),
            stays: sync.map(|sync| m.pipe("stays", (mask & !sync.here).only_if(sync.valid))),
            waited,
            waited_slot: m.pipe("waited_slot", slot),
            completed: counted(completes & full & held),
            reached: counted(completes & !full),
            fell_through: counted(falls),
        };
        (act, reads)
    }
}
