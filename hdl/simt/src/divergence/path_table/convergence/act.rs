//! The instructions on convergence barriers, in stage 8: what the entries say, and what is written.

use super::TableIn;
use super::checks::check;
use super::state::{BySync, Entry, Place, Store, Word, clear, has, set};
use crate::divergence::interface::{Ahead, Hint};
use crate::isa::HintKind;
use crate::pipeline::timing::ISSUE_TO_NEXT;
use heddle_hdl::prelude::*;

/// What the warden wants to read, where no instruction reads two entries; and, 1 bit, that those who wait where the
/// instruction that is ahead will act go on now.
pub struct Reads {
    pub valid: Deferred<Signal>,
    pub address: Deferred<Signal>,
    pub gone: Deferred<Signal>,
}

/// What is found of an instruction's barrier in the second cycle of stage 7, in registers.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Known<T> {
    /// The threads of its warp that have not ended, and the call depth of its active path.
    living: T,
    depth: T,
    /// 1 bit: threads wait there; who is expected there, and who waits.
    held: T,
    expected: T,
    waiters: T,
    /// 1 bit: those who wait there go on where this one does.
    same_place: T,
    /// 1 bit each: some of those who are expected come; others do not.
    some_arrive: T,
    others_lack: T,
    /// How many wait or arrive, or participate if the instruction counts them.
    count: T,
}

/// The entries that are read.
#[derive(Clone, Copy)]
pub struct Found {
    /// Of the barrier that is ahead.
    pub first: Entry<Signal>,
    /// Of the other one, or the warden's; and its address.
    pub other: Entry<Signal>,
    pub other_at: Signal,
}

/// What an instruction does.
#[derive(Clone, Copy)]
pub struct Act {
    /// 1 bit: the instruction writes its entry, and the word of its warp.
    pub changes: Signal,
    pub word: Word<Signal>,
    pub found: Found,
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
pub struct Arrival {
    /// It is one.
    pub valid: Signal,
    /// One bit per lane: the living threads that it names; those of them that come.
    pub participants: Signal,
    pub here: Signal,
    /// Not all that it names are here, some of whom may have ended: it has an outcome of the kind CONVERGE.
    pub lacks: Signal,
    /// They wait at the entry, or complete it; all are here, and the entry stays as it is; the entry is in use.
    pub enters: Signal,
    pub passes: Signal,
    pub queues: Signal,
    /// It changes the word of its warp.
    pub writes: Signal,
}

/// The instruction, and what the entries say of it.
pub struct Seen {
    /// See [`Hint`].
    pub valid: Signal,
    pub slot: Signal,
    pub barrier: Signal,
    pub operand: Signal,
    pub mask: Signal,
    pub next: Signal,
    /// 1 bit each: which it is.
    pub joins: Signal,
    pub waits: Signal,
    pub cancels: Signal,
    pub counts: Signal,
    pub moves: Signal,
    pub copies: Signal,
    /// The word of its warp; its barrier and its other one in that, one-hot.
    pub word: Word<Signal>,
    pub at_b: Signal,
    pub at_c: Signal,
    /// With warp primitives, 1 bit: it is a hint on a barrier that hints leave alone.
    pub barred: Option<Signal>,
    /// See [`Known`].
    pub living: Signal,
    pub depth: Signal,
    pub held: Signal,
    pub expected: Signal,
    pub waiters: Signal,
    pub same_place: Signal,
    pub count: Signal,
    pub some_arrive: Signal,
    pub others_lack: Signal,
    /// Who participates in the other barrier.
    other_participants: Signal,
}

/// Who goes on, and who stays.
pub struct Decided {
    /// 1 bit: the instruction writes its entry.
    pub changes: Signal,
    /// Those who arrive; 1 bit, not of a `sync`: there are some.
    pub arrive: Signal,
    pub some_arrive: Signal,
    /// 1 bit each: they wait at the entry, or complete it; they find it in use at another place.
    pub enters: Signal,
    pub falls: Signal,
    /// Who is expected then.
    pub still_expected: Signal,
    /// 1 bit each: nobody else is expected, if it enters; those who wait go on.
    pub full: Signal,
    pub completes: Signal,
    /// Who goes on.
    pub go: Signal,
}

const _: () = assert!(ISSUE_TO_NEXT >= 2, "an instruction would change what was looked up for the next");

impl Store {
    /// Looks up what is known of an instruction's barrier in the cycle before it, and does what it says.
    pub fn act(&self, i: &TableIn<Signal>) -> (Act, Reads) {
        let Store { m, .. } = self;
        let (seen, found, reads) = self.see(i);
        let sync = self.arrival(i, &seen);
        let decided = self.decide(&seen, sync);
        let Seen { valid, slot, mask, waits, held, .. } = seen;
        let Decided { changes, falls, full, completes, .. } = decided;
        wire!(
            waited = m.pipe_reset(
                "waited",
                valid & sync.map_or(waits, |sync| waits | sync.enters | (sync.passes & sync.lacks))
            )
        );
        let (entry, word) = self.written(&seen, &decided, sync);
        check(self, i, &seen, &decided, sync, entry);
        let of_other = found.other_at.eq(self.address(slot, seen.operand.slice(0, self.s.barrier_bits())));
        let is_other = valid & (seen.moves | seen.copies);
        m.assert("the_other_is_read", !is_other | (of_other & self.entry(found.other_at).same_as(found.other)));

        let counted = |what: Signal| what & valid;
        let act = Act {
            changes,
            word,
            found,
            count: seen.count,
            goes: m.pipe("go_on", decided.go),
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

    /// Looks up the barrier that is ahead: its entry was addressed a cycle ago. Nothing of it changes in this cycle but
    /// that the warden lets go on who waits there: its warp has no other instruction in the stage before or behind, and no
    /// outcome.
    fn look_up(&self, i: &TableIn<Signal>, entry: Entry<Signal>, gone: Signal) -> Known<Signal> {
        let Store { m, s, .. } = self;
        let Ahead { slot, barrier, mask, next, counts, .. } = i.hints.ahead;
        let (word, at) = (self.words.read(slot), barrier.decode(s.convergence_barriers));
        wire!(living = self.alive.read(slot));
        wire!(held = has(word.holds, at) & !gone);
        wire!(expected = entry.expected & living.only_if(has(word.expects, at)));
        wire!(waiters = entry.place.waiting.only_if(held));
        let arrive = expected & mask;
        m.pipe(
            "known",
            Known {
                living,
                depth: i.depth,
                held,
                expected,
                waiters,
                same_place: entry.place.pc.eq(next) & entry.place.depth.eq(i.depth),
                some_arrive: arrive.any(),
                others_lack: (expected & !mask).any(),
                count: (waiters | counts.mux(expected, arrive)).count_ones(),
            },
        )
    }

    /// The instruction, and what is known of it; the entries that are read.
    fn see(&self, i: &TableIn<Signal>) -> (Seen, Found, Reads) {
        let Store { m, s, .. } = self;
        let n = s.convergence_barriers;
        let Hint { valid, slot, operation, barrier, operand, mask, next, sync: told } = i.hints.hint;
        let is = |kind: HintKind| operation.eq(kind);
        let syncs = told.map(|_| is(HintKind::Sync));
        wire!(is_count = is(HintKind::Count));
        wire!(moves = is(HintKind::Move));
        wire!(copies = moves | is(HintKind::Copy));
        let other = operand.slice(0, s.barrier_bits());
        let word = self.words.read(slot);
        let (at_b, at_c) = (barrier.decode(n), other.decode(n));
        // Hints leave alone what is hard, or wanted by a sync.
        let barred = syncs
            .zip(word.by_sync)
            .map(|(syncs, BySync { hard, wanted })| has(hard | wanted, at_b | at_c.only_if(copies)) & !syncs);
        let reads = Reads {
            gone: m.deferred("warden_releases_ahead", 1),
            valid: m.deferred("warden_reads", 1),
            address: m.deferred("warden_address", s.warps.ilog2() + s.barrier_bits()),
        };
        let (first, ahead) = (i.hints.first, i.hints.ahead);
        let (first_entry, _) =
            self.read_ahead("address_ahead", m.lit(1u32, 1), self.address(first.slot, first.barrier));
        let second_address = ahead.both.mux(self.address(ahead.slot, ahead.other), reads.address.value);
        let reads_second = ahead.both | reads.valid.value;
        let (second_entry, second_at) = self.read_ahead("second_address", reads_second, second_address);
        let known = self.look_up(i, first_entry, reads.gone.value);
        let Known { living, depth, held, expected, waiters, same_place, some_arrive, others_lack, count } = known;
        wire!(
            other_participants = (second_entry.expected & living.only_if(has(word.expects, at_c)))
                | second_entry.place.waiting.only_if(has(word.holds, at_c))
        );
        let seen = Seen {
            valid,
            slot,
            barrier,
            operand,
            mask,
            next,
            joins: is(HintKind::Join),
            waits: is(HintKind::Wait),
            cancels: is(HintKind::Cancel),
            counts: is_count,
            moves,
            copies,
            word,
            at_b,
            at_c,
            barred,
            living,
            depth,
            held,
            expected,
            waiters,
            same_place,
            count,
            some_arrive,
            others_lack,
            other_participants,
        };
        (seen, Found { first: first_entry, other: second_entry, other_at: second_at }, reads)
    }

    /// A `sync`: those of it participate as it says, if nobody waits there.
    fn arrival(&self, i: &TableIn<Signal>, seen: &Seen) -> Option<Arrival> {
        let Hint { operation, sync: told, .. } = i.hints.hint;
        let &Seen { word, at_b, living, held, expected, waiters, same_place, .. } = seen;
        told.zip(word.by_sync).map(|(named, BySync { hard, wanted })| {
            let valid = operation.eq(HintKind::Sync);
            let (is_hard, is_wanted) = (has(hard, at_b), has(wanted, at_b));
            wire!(participants = named.all & living);
            wire!(same_threads = participants.eq(expected | waiters));
            wire!(all_here = !(participants & !named.here).any());
            wire!(queues = held & !(is_hard & same_place & same_threads) & !all_here);
            let (enters, passes, queues) = (valid & !queues & !all_here, valid & all_here, valid & queues);
            let writes = enters | (passes & is_wanted) | (queues & !is_hard & !is_wanted);
            Arrival { valid, participants, here: named.here, lacks: named.lacks, enters, passes, queues, writes }
        })
    }

    /// Who arrives at the entry, and who goes on.
    fn decide(&self, seen: &Seen, sync: Option<Arrival>) -> Decided {
        let s = &self.s;
        let &Seen { valid, barrier, operand, mask, waits, counts, copies, barred, .. } = seen;
        let &Seen { held, expected, waiters, same_place, count, others_lack, .. } = seen;
        // Of one barrier with itself there is nothing to copy.
        let other = operand.slice(0, s.barrier_bits());
        let acts = valid & !counts & !(copies & other.eq(barrier));
        let changed_by = |sync: Arrival| acts & sync.valid.mux(sync.writes, !barred.expect("of hints"));
        wire!(changes = sync.map_or(acts, changed_by));
        let soft = mask & barred.map_or(expected, |barred| expected.only_if(!barred));
        wire!(here = !held | same_place);
        wire!(arrive = sync.map_or(soft, |sync| sync.valid.mux(sync.here, soft)));
        wire!(some_arrive = barred.map_or(seen.some_arrive, |barred| seen.some_arrive & !barred));
        let waits_here = waits & some_arrive & here;
        wire!(enters = sync.map_or(waits_here, |sync| waits_here | sync.enters));
        wire!(falls = waits & some_arrive & !here);
        let left = expected & !mask;
        let lacking = |sync: Arrival| sync.participants & !sync.here & !waiters;
        let left_by = |sync: Arrival| sync.valid.mux(sync.enters.mux(lacking(sync), expected), left);
        wire!(still_expected = sync.map_or(left, left_by));
        let wide = count.width().max(7);
        let some_lack = |sync: Arrival| sync.valid.mux(lacking(sync).any(), others_lack);
        wire!(full = !sync.map_or(others_lack, some_lack));
        wire!(enough = operand.any() & count.zext(wide).ge(operand.zext(wide)));
        wire!(completes = enters & (full | enough));
        let stay = (waiters | arrive).only_if(enters);
        let passing = mask & !stay;
        let passing = sync.map_or(passing, |sync| sync.valid.mux(sync.here.only_if(sync.passes), passing));
        wire!(go = passing | stay.only_if(completes));
        Decided { changes, arrive, some_arrive, enters, falls, still_expected, full, completes, go }
    }

    /// The entry and the word as they are written.
    fn written(&self, seen: &Seen, decided: &Decided, sync: Option<Arrival>) -> (Entry<Signal>, Word<Signal>) {
        let &Seen { joins, cancels, copies, moves, word, at_b, at_c, waiters, .. } = seen;
        let &Decided { changes, arrive, enters, falls, completes, still_expected, .. } = decided;
        let copied = seen.other_participants & !waiters;
        let after = pick([(joins, seen.expected | seen.mask), (copies, copied)], still_expected);
        let address = self.address(seen.slot, seen.barrier);
        self.expected.write(changes, address, after);
        let place = Place { waiting: waiters | arrive, depth: seen.depth, pc: seen.next };
        self.places.write(changes & enters, address, place);
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
        (Entry { expected: after, place }, changed)
    }
}
