//! The warden: it visits warps where something is to be looked at, and releases threads.

use super::TableIn;
use super::act::{Act, Reads};
use super::state::{BySync, Entry, Store, Word, clear, has};
use crate::arbiter::{places_above, round_robin};
use heddle_hdl::prelude::*;

/// Why threads that wait at the barrier that was read are to be released, if they are.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Reason<T> {
    pub wanted: T,
    pub complete: T,
    pub tired: T,
}

/// What the warden does in a cycle.
#[derive(Clone, Copy)]
pub struct Visit {
    /// One bit per warp: it is to be visited.
    pub due: Signal,
    /// One bit per warp: reasons to look at it are noted now.
    pub noted: Signal,
    /// What was weighed: a barrier's entry.
    pub entry: Entry<Signal>,
    pub reason: Reason<Signal>,
    /// 1 bit: it decides about it; and releases its threads.
    pub decides: Signal,
    pub releases: Signal,
    /// 1 bit: it writes the word of its warp.
    pub acts: Signal,
    pub word: Word<Signal>,
    /// 1 bit: there is something to look at, and nothing is decided in this cycle.
    pub put_off: Signal,
}

impl Store {
    /// Chooses a warp, then a barrier of it, weighs it, decides.
    pub fn visit(&self, i: &TableIn<Signal>, act: &Act, reads: Reads) -> Visit {
        let Store { m, s, read, weighed, forced, read_barrier, at, at_slot, exited, ticked, last, .. } = self;
        let slot = i.hints.hint.slot;
        let ahead = i.hints.ahead;
        let second_entry = act.found.other;
        wire!(stuck = i.stopped & self.softly.as_ref().map_or(self.holding.q, |softly| softly.q));
        wire!(due = (self.looking.q | stuck | exited.q | ticked.q) & !i.busy);
        let here_at = at_slot.q.decode(s.warps);
        let of_warp = |bits: Signal| (bits & here_at).any();
        let visited = self.words.read(at_slot.q);
        wire!(is_disturbed = act.changes & slot.eq(at_slot.q));
        wire!(withdraws = at.q & of_warp(i.busy));
        wire!(notes = at.q & !read.q & !withdraws & !i.hints.present & of_warp(exited.q | ticked.q));
        wire!(chooses = at.q & !read.q & !withdraws & !is_disturbed & !ahead.both & !of_warp(exited.q | ticked.q));
        let order = places_above(last.read(at_slot.q).decode(s.convergence_barriers));
        wire!(nobody_runs = of_warp(stuck));
        wire!(looks = visited.look.any());
        // Which one it would be does not wait for whether somebody runs.
        wire!(choice = round_robin(looks.mux(visited.look, visited.soft()), order));
        let choice_number = choice.one_hot_index();
        wire!(finds = chooses & (looks | (nobody_runs & choice.any())));
        reads.valid.drive(finds);
        reads.address.drive(self.address(at_slot.q, choice_number));
        read_barrier.next_if(finds, choice_number);
        forced.next_if(finds, !looks);

        let at_read = read_barrier.q.decode(s.convergence_barriers);
        let alive = self.alive.read(at_slot.q);
        wire!(survivors = second_entry.expected & alive.only_if(has(visited.expects, at_read)));
        wire!(complete = !survivors.any());
        wire!(tired = has(visited.tired, at_read));
        wire!(wanted = has(visited.holds, at_read) & (forced.q | complete | tired));
        // What is found in tables is weighed in a cycle of its own: a release goes through the CCS and on to stage 1.
        let reason = m.pipe("reason", Reason { wanted, complete, tired });
        let weighed_entry = m.pipe("weighed_entry", second_entry);
        wire!(decides = weighed.q & !i.hints.present);
        // A turn that is free is of no warp to withdraw from.
        wire!(releases = decides & reason.wanted & i.free);
        wire!(passes = decides & !reason.wanted & !withdraws);
        wire!(has_decided = releases | passes);
        wire!(warden_acts = notes | has_decided);
        last.write(has_decided, at_slot.q, read_barrier.q);
        let ahead_at = self.address(ahead.slot, ahead.barrier);
        reads.gone.drive(releases & self.address(at_slot.q, read_barrier.q).eq(ahead_at));
        wire!(again = is_disturbed | ahead.both);
        wire!(stays_read = read.q & !withdraws & !releases & !passes & !again);
        read.next(finds | stays_read);
        weighed.next(stays_read);
        wire!(leaves = withdraws | has_decided | (chooses & !finds));
        wire!(next_warp = round_robin(due, places_above(here_at)));
        at.next((at.q & !leaves) | (!at.q & due.any()));
        at_slot.next_if(!at.q & due.any(), next_warp.one_hot_index());

        let done = at_read.only_if(has_decided);
        let gone = at_read.only_if(releases);
        let older = visited.soft().only_if(notes & of_warp(ticked.q));
        let kept = Word {
            expects: visited.expects,
            holds: clear(visited.holds, gone),
            old: clear(visited.old | older, gone),
            tired: clear(visited.tired | (visited.old & older), gone),
            look: clear(visited.look | visited.holds.only_if(notes), done),
            by_sync: visited.by_sync.map(|by_sync| BySync { hard: clear(by_sync.hard, gone), ..by_sync }),
        };

        m.assert("what_is_looked_at_holds", !at.q | !(visited.look & !visited.holds).any());
        m.assume("a_free_turn_is_of_no_busy_warp", !(decides & i.free & withdraws));
        let its_own = act.found.other_at.eq(self.address(at_slot.q, read_barrier.q));
        m.assert("the_warden_reads_its_own_entry", !read.q | its_own);
        let as_stored = self.entry(act.found.other_at).same_as(second_entry);
        m.assert("what_the_warden_reads_is_so", !read.q | as_stored);
        m.assert("who_is_released_is_alive", !releases | !(weighed_entry.place.waiting & !alive).any());
        m.assert("somebody_is_released", !releases | weighed_entry.place.waiting.any());
        let same = weighed_entry.place.waiting.eq(second_entry.place.waiting) & read.q;
        m.assert("what_was_weighed_is_as_it_was", !decides | withdraws | same);
        if let Some(BySync { hard, .. }) = visited.by_sync {
            let early = releases & !reason.complete;
            m.assert("who_syncs_is_released_when_all_are_there", !early | !has(hard, at_read));
            m.cover("released_when_the_last_named_thread_has_ended", releases & has(hard, at_read));
        }
        m.cover("released_complete", releases & reason.complete);
        m.cover("released_stuck", releases & !reason.complete & !reason.tired);
        m.cover("released_by_patience", releases & !reason.complete & reason.tired);
        m.cover("looked_for_nothing", passes);
        m.cover("warden_is_disturbed", read.q & again);
        m.cover("warden_withdraws", withdraws);
        m.cover("release_waits_for_its_turn", decides & reason.wanted & !withdraws & !i.free);
        m.cover("release_waits_for_an_instruction", weighed.q & i.hints.present & !is_disturbed);

        wire!(put_off = due.any() & !has_decided);
        Visit {
            due,
            noted: here_at.only_if(notes),
            entry: weighed_entry,
            reason,
            decides: has_decided,
            releases,
            acts: warden_acts,
            word: kept,
            put_off,
        }
    }
}
