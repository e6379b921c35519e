//! The path-table unit as a whole: every live thread of a warp is in exactly one path, which has the thread's pc and
//! depth.
//!
//! One thread is followed, any of them, by its pc and call depth as outcomes change them. The other assertions here
//! make the proof inductive: they say what the tables hold between the turns, for every slot, where those in the unit
//! look at the slot whose turn it is. The cold table's state is described in place, so that they can see it.

use super::cct;
use super::convergence::{self, BySync, Entry};
use super::order::{key, rank};
use super::{Inside, described};
use crate::divergence::interface::{Ahead, Hint, Hints};
use crate::divergence::path_table::cct::{Context, Read, entries};
use crate::divergence::path_table::turn::from_tables;
use crate::divergence::proof::{ProofIn, held_since};
use crate::divergence::{Announced, Outcome, Path, Side, Start, UnitIn, UnitOut, Wake, depth_after, kind};
use crate::isa::convergence as isa;
use crate::pipeline::primitives::Named;
use crate::pipeline::timing::{ISSUE_TO_OUTCOME, ISSUE_TO_RESOLVE, ISSUE_TO_SECOND};
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;
use heddle_hdl::select;

/// A slot's tables.
struct Slot {
    number: u32,
    live: Signal,
    x: Path<Signal>,
    y: Path<Signal>,
    cold: Vec<Path<Signal>>,
    count: Signal,
    returning: Signal,
    seeking: Signal,
    waiting: Signal,
    /// What the tables' bits differ by from those of the paths: in `waits`, and in whether they have given way.
    differ: (Signal, Option<Signal>),
    /// 1 bit: x does not run.
    parks: Signal,
    /// The threads at each convergence barrier, with where they go on.
    held: Vec<Path<Signal>>,
    /// 1 bit: an outcome of x will say that its threads wait, and those of `goes` go on, or stay in its path.
    pending: Signal,
    goes: Signal,
}

impl Slot {
    fn paths(&self) -> Vec<Path<Signal>> {
        [self.x, self.y].into_iter().chain(self.cold.iter().copied()).collect()
    }

    /// x has been steered to, and runs; said by registers alone, so that what is read from the tables is not part of
    /// where it is read.
    fn runs(&self) -> Signal {
        self.live & !self.returning & !self.seeking & !self.waiting
    }

    /// The threads of each path and of each convergence barrier, as they will be once an outcome that is on its way has
    /// come.
    fn masks(&self) -> Vec<Signal> {
        let mut masks: Vec<Signal> = self.paths().iter().map(|p| p.mask.only_if(p.valid)).collect();
        masks[0] = self.pending.mux(self.goes, masks[0]);
        masks.extend(self.held.iter().map(|p| p.mask.only_if(p.valid)));
        masks
    }

    fn holds(&self, m: Builder) -> Signal {
        let holds: Vec<Signal> = self.held.iter().map(|p| p.valid).collect();
        if holds.is_empty() { m.lit(0u32, 1) } else { cat(&holds).any() }
    }
}

/// The unit of a shape with every legal input: outcomes that were announced, of live slots that run, with threads of
/// the active path; starts of idle slots; wakes of those in which all wait.
pub fn path_table_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    harness(s, "path_table_proof", false, &|m, s, h| {
        follow(m, s, h);
        steers(m, h);
    })
}

/// The same, and what the sorter has done after [`sorted_after`] cycles without outcome and start, nor an announced
/// outcome.
pub fn sorter_proof(s: &Shape) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    harness(s, "sorter_proof", false, &|m, s, h| {
        let UnitIn { start, wake, .. } = h.told;
        let idle = m.reg("idle", count_width(sorted_after(s))).reset(0u32);
        wire!(enough = idle.q.eq(sorted_after(s)));
        let announced = h.announced.valid | h.tables.store.claim.q.outcome;
        idle.next(enough.mux(idle.q, idle.q + 1).only_if(!announced & !start.valid & !wake.valid));
        for slot in h.slots {
            let n = slot.number;
            // A path equal to an x that waits stays apart from it.
            let equal = |p: Path<Signal>| slot.parks & key(slot.x).eq(key(p));
            let behind_y = slot.cold.iter().map(|&p| implies(p.valid, key(slot.y).le(key(p)) | equal(p)));
            let sorted = !slot.returning & cat(&behind_y.collect::<Vec<_>>()).all();
            m.assert(&format!("slot_{n}_y_is_least_when_idle"), implies(enough, sorted));
            m.assert(&format!("slot_{n}_has_found_whether_all_wait"), implies(enough, !slot.seeking));
            cover(m, &format!("slot_{n}_sorted"), enough & slot.live & slot.count.any());
        }
    })
}

/// Cycles after which every path that was to return has, and the sorter has been through every stack: the rest of a
/// pass, with a cycle more for each exchange, a fetch and two cycles for each entry of each warp, then a pass of each.
pub fn sorted_after(s: &Shape) -> u32 {
    let (pass, returns) = (2 * entries(s) + 3, 2 * entries(s) + 2);
    pass + s.warps * (returns + pass)
}

/// What a proof sees.
struct Harness<'a> {
    i: &'a ProofIn<Signal>,
    slots: &'a [Slot],
    /// What the unit is told, and what it answers.
    told: UnitIn<Signal>,
    announced: Announced<Signal>,
    out: UnitOut<Signal>,
    tables: &'a Inside,
    cold: Option<&'a cct::Inside>,
    barriers: Option<&'a convergence::Inside>,
    /// The unit's `hold` one cycle ago, two, and so on, if the pipeline obeys it.
    late: &'a [Signal],
    /// 1 bit: an instruction on two barriers, which was named in the cycle before.
    comes: Signal,
}

/// What is special of a proof: its assertions.
type Specific<'a> = &'a dyn Fn(Builder, &Shape, &Harness);

/// The unit with legal inputs, and what all proofs of it assert. `obeys`: the pipeline does what `hold` says, and an
/// instruction that was named comes, as does an outcome that was announced; else it does as it likes.
fn harness(s: &Shape, name: &str, obeys: bool, specific: Specific) -> TypedModule<ProofIn<Width>, UnitOut<Signal>> {
    module(name, ProofIn::shape(s), |m, i| {
        let unit_in = m.deferred("unit_in", UnitIn::shape(s));
        let (mut cold, mut barriers) = (None, None);
        let place_cold = |m: Builder, i| {
            let (out, inside) = cct::described(m, s, i);
            cold = Some((out.entry, inside));
            out
        };
        let place_barriers = |m: Builder, i| {
            let (out, inside) = convergence::described(m, s, i);
            barriers = Some(inside);
            out
        };
        let (out, tables) = described(m, s, unit_in.value, place_cold, place_barriers);
        let inside = (cold.as_ref().map(|c| &c.1), barriers.as_ref());
        let slots: Vec<Slot> = (0..s.warps).map(|w| slot(m, s, w, &tables, inside)).collect();
        let late = if obeys { held_since(m, out.hold, ISSUE_TO_OUTCOME) } else { vec![] };
        let may = late.last().map_or(m.lit(1u32, 1), |&held| !held);

        let announced = m.deferred("announced", Announced { valid: 1, slot: s.warp_bits(), call: 1, ret: 1 });
        let was_announced = m.pipe_reset("was_announced", announced.value.valid);
        let number = index_of(s.warps, m.pipe("announced_slot", announced.value.slot));
        let x = tables.store.hct0.read(number);
        let slot_of = |signal: fn(&Slot) -> Signal| select(&slots.iter().map(signal).collect::<Vec<_>>(), number);
        let runs = slot_of(Slot::runs);
        let (taken, rest) = (x.mask & i.taken, x.mask & i.rest & !i.taken);
        let waits = i.unit.outcome.kind.eq(kind::WAIT);
        let never = waits & (m.lit(!s.barriers, 1) | !taken.any());
        // What is announced of the call depth is so, and only jumps change it.
        let (call, ret) =
            (m.pipe("call_announced", announced.value.call), m.pipe("ret_announced", announced.value.ret));
        let goes_on = never.mux(m.lit(kind::BRANCH, kind::BITS), i.unit.outcome.kind);
        // Nor does an outcome follow the steering in the next cycle.
        let just =
            m.pipe_reset("was_just_steered", out.steer.valid) & number.eq(m.pipe("just_steered", out.steer.slot));
        let outcome = Outcome {
            valid: if obeys { was_announced } else { i.unit.outcome.valid & was_announced & runs & may & !just },
            slot: number,
            kind: (call | ret).mux(m.lit(kind::JUMP, kind::BITS), goes_on),
            taken: Side { mask: taken, ..i.unit.outcome.taken },
            rest: Side { mask: rest, ..i.unit.outcome.rest },
            call,
            ret,
            meets: None,
            homes: None,
        };
        let idle = index_of(s.warps, i.unit.start.slot);
        let start = Start { valid: i.unit.start.valid & !out.live.select(idle, 1), slot: idle, ..i.unit.start };
        let woken = index_of(s.warps, i.unit.wake.slot);
        let wake = Wake { valid: i.unit.wake.valid & out.waiting.select(woken, 1), slot: woken };
        let taken_wake = m.pipe_reset("was_woken", wake.valid & out.wake_ready);
        let taken_wake = Wake { valid: taken_wake, slot: m.pipe("woken_slot", woken) };
        let asked = i.unit.announced.expect("outcomes are announced");
        let at = index_of(s.warps, asked.slot);
        // The path that runs is the same when the outcome comes.
        let deeper = asked.call & !tables.store.hct0.read(at).depth.slice(0, s.depth_bits).all();
        let asked = Announced { slot: at, call: deeper, ret: asked.ret & !deeper, ..asked };
        let mut told = UnitIn { start, wake, outcome, announced: Some(announced.value), ..i.unit };
        let mut comes = m.lit(0u32, 1);
        let announce = if let (Some(hints), Some(barriers)) = (&mut told.hints, &barriers) {
            let announce;
            (told.outcome, announce, comes) = hinted(
                m,
                s,
                (&slots, &late),
                hints,
                (outcome, asked),
                (barriers, tables.store.hct0.read(barriers.act.waited_slot).mask),
            );
            reads(m, s, hints, &slots, &tables, barriers);
            announce
        } else {
            asked
        };
        announced.drive(announce);
        let outcome = told.outcome;
        told.sequence = told.sequence.map(|sequence| sequence.legal(&outcome));
        unit_in.drive(told);

        for slot in &slots {
            between_turns(m, s, slot, &tables);
        }
        claims(m, s, &tables, inside, (was_announced, number, call, ret), taken_wake);
        if obeys {
            m.assert("who_was_announced_runs", implies(was_announced, runs));
        }
        if let Some((entry, cold)) = &cold {
            cold_reads(m, s, &slots, *entry, cold);
            if s.may_park() {
                sorter_passes(m, s, &slots, cold);
            }
        }
        let (cold, barriers) = inside;
        specific(
            m,
            s,
            &Harness {
                i: &i,
                slots: &slots,
                told,
                announced: announce,
                out,
                tables: &tables,
                cold,
                barriers,
                late: &late,
                comes,
            },
        );

        let any = |f: &dyn Fn(&Slot) -> Signal| cat(&slots.iter().map(f).collect::<Vec<_>>()).any();
        cover(
            m,
            "a_warp_ends",
            outcome.valid & x.mask.eq(tables.ghosts.ghost_live.read(number)) & !(taken | rest).any(),
        );
        if s.lanes > 1 {
            cover(m, "two_paths", any(&|slot| slot.live & slot.y.valid));
            cover(m, "paths_merge", out.events.merges.any());
        }
        if let Some(releases) = out.events.releases
            && s.lanes > 1
        {
            cover(m, "some_wait_and_others_run", any(&|slot| slot.live & slot.holds(m)));
            cover(m, "the_list_is_empty", any(&|slot| !slot.live & slot.holds(m)));
            cover(m, "released_complete", releases.complete);
            cover(m, "released_stuck", releases.stuck);
        }
        if s.barriers {
            cover(m, "all_wait", tables.store.waiting().any());
            if s.lanes > 1 {
                cover(m, "one_waits", any(&|slot| slot.y.valid & slot.y.waits & !slot.x.waits));
                cover(m, "two_paths_are_woken", any(&|slot| slot.waiting & slot.y.valid) & wake.valid & out.wake_ready);
            }
        }
        if cold.is_some() {
            cover(m, "a_cold_path", any(&|slot| slot.live & slot.count.any()));
            cover(m, "a_path_returns", out.events.extract);
            cover(m, "paths_are_exchanged", out.events.swap);
        }
        out
    })
}

fn slot(
    m: Builder,
    s: &Shape,
    number: u32,
    tables: &Inside,
    (cold, barriers): (Option<&cct::Inside>, Option<&convergence::Inside>),
) -> Slot {
    let at = m.lit(number, s.warp_bits());
    let live = tables.store.live.q.bit(number);
    let entry_bits = index_width(entries(s));
    let none = m.zero(Path::shape(s));
    let bit = |bits: Option<Signal>| bits.map_or(m.lit(0u32, 1), |bits| bits.bit(number));
    let count = cold.map_or(m.lit(0u32, 1), |c| c.counts.read(at));
    // Paths as they are, not as the tables have them.
    let phase = tables.store.phases.as_ref().map_or(m.lit(0u32, 1), |phases| phases.read(at));
    let round = tables.store.rounds.as_ref().map(|rounds| rounds.read(at));
    let turned = |p: Path<Signal>| from_tables(m, s, (phase, round), p);
    let x = turned(tables.store.hct0.read(at).path(live));
    let cold_path = |c: &cct::Inside, k: u32| {
        let address = m.lit(number << entry_bits | k, entry_bits + s.warps.ilog2());
        turned(c.path(address).path(live & count.gt(k)))
    };
    let y = tables.store.hct1.as_ref().map_or(none, |t| t.read(at));
    Slot {
        number,
        live,
        x,
        differ: (phase, round),
        parks: x.waits | x.is_late(s),
        held: barriers.map_or(vec![], |barriers| held_at(m, s, number, barriers)),
        pending: barriers.map_or(m.lit(0u32, 1), |b| b.act.waited & b.act.waited_slot.eq(at)),
        goes: barriers.map_or(m.lit(0u32, s.lanes), |b| b.act.stays.map_or(b.act.goes, |stays| b.act.goes | stays)),
        y: turned(Path { valid: y.valid & live, ..y }),
        cold: cold.map_or(vec![], |c| (0..entries(s)).map(|k| cold_path(c, k)).collect()),
        count,
        returning: bit(cold.map(|c| c.returning)),
        seeking: bit(cold.map(|c| c.seeking)),
        waiting: tables.store.waiting().bit(number),
    }
}

/// The threads at the convergence barriers of a warp, as paths that wait.
fn held_at(m: Builder, s: &Shape, number: u32, barriers: &convergence::Inside) -> Vec<Path<Signal>> {
    let at = m.lit(number, s.warp_bits());
    let holds = barriers.store.words.read(at).holds;
    let path = |k: u32| {
        let entry = barriers.store.entries.read(barriers.store.address(at, m.lit(k, s.barrier_bits())));
        let (depth, waits) = (cat(&[entry.depth, m.lit(1u32, 1)]), m.lit(1u32, 1));
        Path {
            valid: holds.bit(k) & barriers.store.holding.q.bit(number),
            depth,
            pc: entry.pc,
            mask: entry.waiting,
            waits,
        }
    };
    (0..s.convergence_barriers).map(path).collect()
}

/// What the claim register says: what is claimed, and that the words that were read are those of the slot, as the
/// tables have them.
fn claims(
    m: Builder,
    s: &Shape,
    tables: &Inside,
    (cold, barriers): (Option<&cct::Inside>, Option<&convergence::Inside>),
    (was_announced, announced, call, ret): (Signal, Signal, Signal, Signal),
    taken: Wake<Signal>,
) {
    let (claim, words, stale) = (tables.store.claim.q, tables.store.words.q, tables.store.stale.q);
    let slot = claim.slot;
    m.assert("claimed_slot_is_there", slot.eq(index_of(s.warps, slot)));
    m.assert("announced_slot_is_there", announced.eq(index_of(s.warps, announced)));
    let of_announced = claim.outcome.eq(was_announced) & implies(was_announced, slot.eq(announced));
    m.assert("announced_outcome_is_claimed", of_announced);
    let of_woken = claim.wake.eq(taken.valid) & implies(taken.valid, slot.eq(taken.slot));
    m.assert("wake_that_was_taken_is_claimed", of_woken);
    m.assert("claimed_wake_is_of_one_that_waits", implies(claim.wake, tables.store.waiting().select(slot, 1)));
    let claims = [claim.outcome, claim.release, claim.wake, claim.sort];
    let twos = (1..claims.len()).flat_map(|k| (0..k).map(move |j| (j, k)));
    m.assert("nothing_else_is_claimed", !cat(&twos.map(|(j, k)| claims[j] & claims[k]).collect::<Vec<_>>()).any());

    let read = m.pipe_reset("has_read_words", m.lit(1u32, 1)) & !stale;
    m.assert("live_bit_of_the_claim", implies(read, words.live.eq(tables.store.live.q.select(slot, 1))));
    m.assert("hct0_of_the_claim", implies(read, tables.store.hct0.read(slot).same_as(words.hct0)));
    let depth = words.hct0.depth.slice(0, s.depth_bits);
    let counts = |change: Signal| was_announced & change & m.lit(s.order.counts_calls(), 1);
    let after = depth_after(counts(call), counts(ret), depth);
    m.assert("depth_after_the_claim", implies(read, words.after.eq(after)));
    let tabled = |name: &str, table: Option<Signal>, word: Option<Signal>| {
        if let Some((table, word)) = table.zip(word) {
            m.assert(&format!("{name}_of_the_claim"), implies(read, table.eq(word)));
        }
    };
    tabled("hct1", tables.store.hct1.as_ref().map(|t| t.read(slot).pack()), words.hct1.map(|word| word.pack()));
    tabled("phase", tables.store.phases.as_ref().map(|t| t.read(slot)), words.phase);
    tabled("round", tables.store.rounds.as_ref().map(|t| t.read(slot)), words.round);
    tabled("count", cold.map(|c| c.counts.read(slot)), cold.map(|c| c.counted));
    if let Some(c) = cold {
        let other = claim.release | claim.wake | claim.sort;
        let returns = implies(!claim.outcome, slot.eq(c.fetched.at) & !other);
        m.assert("head_that_was_fetched_has_the_turn", implies(c.fetched.valid, returns));
        m.assert("turn_is_kept_while_a_head_is_read", implies(c.reading.valid, !other));
        m.assert("sorter_is_where_it_scans", implies(claim.sort, slot.eq(c.scan) & !c.returning.any()));
    }
    if let Some(b) = barriers {
        m.assert("claimed_wake_is_of_one_without_barriers", implies(claim.wake, !b.store.holding.q.select(slot, 1)));
        m.assert("release_is_where_the_warden_is", implies(claim.release, slot.eq(b.store.at_slot.q)));
        m.assert("a_wait_is_announced", implies(b.act.waited, was_announced & announced.eq(b.act.waited_slot)));
    }
}

/// Legal instructions on convergence barriers out of any: of slots that run and have no outcome in this cycle, of all
/// threads of the path, on the barriers that were named in the cycle before. Returns the outcome: a `wait` has its own,
/// and nobody else such a one; and which is announced: that of a `wait`, or as `asked`.
fn hinted(
    m: Builder,
    s: &Shape,
    (slots, late): (&[Slot], &[Signal]),
    hints: &mut Hints<Signal>,
    (outcome, asked): (Outcome<Signal>, Announced<Signal>),
    (barriers, all): (&convergence::Inside, Signal),
) -> (Outcome<Signal>, Announced<Signal>, Signal) {
    let n = s.convergence_barriers;
    let barrier = |index: Signal| {
        if n.is_power_of_two() { index_of(n, index) } else { index.lt(n).mux(index, index.literal(0u32)) }
    };
    let ahead = hints.ahead;
    let ahead = Ahead {
        slot: index_of(s.warps, ahead.slot),
        barrier: barrier(ahead.barrier),
        other: barrier(ahead.other),
        ..ahead
    };
    let names = m.deferred("names_another", 1);
    hints.ahead = Ahead { both: names.value, ..ahead };
    let named = m.pipe("named", ahead);
    let comes = m.pipe_reset("comes", names.value);
    let named = Ahead { both: comes, ..named };
    let hint = hints.hint;
    let at =
        |number: Signal, signal: fn(&Slot) -> Signal| select(&slots.iter().map(signal).collect::<Vec<_>>(), number);
    let next = m.pipe("next_of_wait", hint.next);

    let operation = if late.is_empty() {
        hint.operation
    } else {
        // What was named comes.
        let copies = hint.operation.bit(0).mux(m.lit(isa::COPY, 3), m.lit(isa::MOVE, 3));
        comes.mux(copies, hint.operation)
    };
    let may = |back: u32| late.get(back as usize - 1).map_or(m.lit(1u32, 1), |&held| !held);
    let copies = operation.eq(isa::COPY) | operation.eq(isa::MOVE);
    let is_sync = operation.eq(isa::SYNC) & m.lit(s.syncs(), 1);
    let known = operation.ne(0) & (operation.ne(isa::SYNC) | is_sync) & !(copies & !named.both);
    let of_named = |slot: Signal| outcome.valid & outcome.slot.eq(slot);
    let lacks = hints.hint.sync.map_or(m.lit(0u32, 1), |told| told.lacks);
    let is_wait = operation.eq(isa::WAIT) | (is_sync & lacks);
    let runs = at(named.slot, |slot| slot.runs() & !slot.pending);
    let free = runs & !(of_named(named.slot) & !barriers.act.waited);
    let valid = if late.is_empty() {
        hint.valid & known & free
    } else {
        comes | (hint.valid & known & free & may(ISSUE_TO_RESOLVE))
    };
    let stays = |slot: Signal| {
        let waits = valid & is_wait & named.slot.eq(slot);
        at(slot, |slot| slot.runs() & !slot.pending) & !of_named(slot) & !waits
    };
    names.drive(if late.is_empty() { ahead.both } else { ahead.both & stays(ahead.slot) & may(ISSUE_TO_SECOND) });
    let asked = if late.is_empty() {
        asked
    } else {
        // What was announced comes, and what was named does not have to give way to it.
        let named_too = names.value & asked.slot.eq(ahead.slot);
        Announced { valid: asked.valid & stays(asked.slot) & !named_too & may(ISSUE_TO_RESOLVE), ..asked }
    };
    let no = m.lit(0u32, 1);
    let of_wait = Announced { valid: m.lit(1u32, 1), slot: named.slot, call: no, ret: no };
    let announce = (valid & is_wait).mux(of_wait, asked);
    let operand = cat(&[named.other, hint.operand.from_bit(s.barrier_bits())]);
    let mask = at(named.slot, |slot| slot.x.mask);
    // Somebody executes a sync and names the same as it does; a sync has no threshold.
    let sync = hints.hint.sync.map(|told| {
        let first = mask.lowest_one();
        let all = told.all | first;
        // Those of whom all are here go on by a jump.
        let lacks = is_sync & lacks;
        let here = (told.here & mask & all) | first;
        Named { all: lacks.mux(all, here), here, lacks }
    });
    let operand = operand.only_if(!is_sync);
    hints.hint = Hint { valid, operation, slot: named.slot, barrier: named.barrier, operand, mask, sync, ..hint };
    // One without effect would be that of a core that has stopped.
    hints.present = if late.is_empty() { hints.present | valid } else { valid };
    cover(m, "waits", valid & is_wait);

    let usual = Outcome {
        valid: outcome.valid & !(m.lit(!late.is_empty(), 1) & comes & of_named(named.slot)),
        kind: outcome.kind.eq(kind::CONVERGE).mux(m.lit(kind::BRANCH, kind::BITS), outcome.kind),
        ..outcome
    };
    let stay = barriers.act.stays.unwrap_or(m.lit(0u32, s.lanes));
    let of_wait = Outcome {
        valid: m.lit(1u32, 1),
        slot: barriers.act.waited_slot,
        kind: m.lit(kind::CONVERGE, kind::BITS),
        taken: Side { mask: all & !stay, pc: next },
        rest: Side { mask: stay, ..outcome.rest },
        call: no,
        ret: no,
        ..outcome
    };
    (barriers.act.waited.mux(of_wait, usual), announce, comes)
}

/// What was read of the entries is what they hold, and where the words say that a barrier is held, threads wait.
fn reads(m: Builder, s: &Shape, hints: &Hints<Signal>, slots: &[Slot], tables: &Inside, b: &convergence::Inside) {
    let Ahead { slot, barrier, other, both } = m.pipe("reads", hints.ahead);
    let reset = m.pipe_reset("has_read", m.lit(1u32, 1));
    let is = |slot: Signal, barrier: Signal, entry: Entry<Signal>| {
        b.store.entries.read(b.store.address(slot, barrier)).same_as(entry)
    };
    m.assert("entry_in_stage_8", implies(reset, is(slot, barrier, b.act.found[0])));
    m.assert("other_entry_in_stage_8", implies(reset & both, is(slot, other, b.act.found[1])));
    m.assert(
        "entry_of_the_warden",
        implies(
            b.store.read.q,
            is(b.store.at_slot.q, b.store.read_barrier.q, b.act.found[1]) & b.store.at.q & !(reset & both),
        ),
    );
    m.assert(
        "entry_that_is_weighed",
        implies(b.store.weighed.q, b.store.read.q & b.visit.entry.same_as(b.act.found[1])),
    );
    let holds =
        (b.store.words.read(b.store.at_slot.q).holds & b.store.read_barrier.q.decode(s.convergence_barriers)).any();
    if let Some(BySync { hard, .. }) = b.store.words.read(b.store.at_slot.q).by_sync {
        let is_hard = (hard & b.store.read_barrier.q.decode(s.convergence_barriers)).any();
        let by_force = b.store.read.q & b.store.forced.q;
        let early = b.store.weighed.q & b.visit.reason.wanted & !b.visit.reason.complete;
        m.assert("the_warden_forces_no_sync", implies(by_force | early, !is_hard));
    }
    m.assert("who_is_to_be_released_waits", implies(b.store.weighed.q & b.visit.reason.wanted, holds));
    m.assert("warden_reads_a_barrier", b.store.read_barrier.q.zext(5).lt(s.convergence_barriers) | !b.store.read.q);
    m.assert("warden_is_somewhere", b.store.at_slot.q.eq(index_of(s.warps, b.store.at_slot.q)));
    for slot in slots {
        let n = slot.number;
        let w = m.lit(n, s.warp_bits());
        let (word, none) = (b.store.words.read(w), m.lit(0u32, s.lanes));
        let alive = b.store.alive.read(w).eq(tables.ghosts.ghost_live.read(w));
        m.assert(&format!("slot_{n}_alive"), implies(slot.live | b.store.holding.q.bit(n), alive));
        let held = slot.held.iter().fold(none, |all, p| all | p.mask.only_if(p.valid));
        let ghost = tables.ghosts.ghost_held.as_ref().expect("a table of those who wait").read(w);
        let after = slot.pending.mux((ghost | slot.x.mask) & !slot.goes, ghost);
        m.assert(&format!("slot_{n}_held_threads"), implies(slot.live | b.store.holding.q.bit(n), held.eq(after)));
        m.assert(&format!("slot_{n}_pending_runs"), implies(slot.pending, slot.live & !slot.parks & !slot.returning));
        let at = b.store.at.q & b.store.at_slot.q.eq(b.store.at_slot.q.literal(n));
        let known = slot.live | b.store.holding.q.bit(n) | b.store.looking.q.bit(n) | b.store.noted().bit(n) | at;
        let known = b.store.softly.as_ref().map_or(known, |softly| known | softly.q.bit(n));
        let within = !((word.look | word.old | word.tired) & !word.holds).any();
        let within = word.by_sync.map_or(within, |BySync { hard, .. }| {
            let not_hard = word.old | word.tired | !word.holds;
            within & !(hard & not_hard).any()
        });
        let told = b.store.holding.q.bit(n).eq(word.holds.any()) & b.store.looking.q.bit(n).eq(word.look.any());
        let told = b.store.softly.as_ref().map_or(told, |softly| told & softly.q.bit(n).eq(word.soft().any()));
        m.assert(&format!("slot_{n}_word_is_told"), implies(known, within & told));
        let somebody = slot.held.iter().map(|p| implies(p.valid, p.mask.any())).collect::<Vec<_>>();
        m.assert(&format!("slot_{n}_somebody_waits"), cat(&somebody).all());
    }
}

/// What a live slot's tables hold at every cycle.
fn between_turns(m: Builder, s: &Shape, slot: &Slot, tables: &Inside) {
    let n = slot.number;
    let at = m.lit(n, s.warp_bits());
    let live = slot.live | slot.holds(m);
    let masks = slot.masks();
    let none = m.lit(0u32, s.lanes);
    let (mut seen, mut twice) = (none, none);
    for &mask in &masks {
        twice = twice | (seen & mask);
        seen = seen | mask;
    }
    m.assert(&format!("slot_{n}_paths_are_disjoint"), !twice.any());
    m.assert(&format!("slot_{n}_paths_are_complete"), implies(live, seen.eq(tables.ghosts.ghost_live.read(at))));
    let full: Vec<Signal> = slot.paths().iter().map(|p| implies(p.valid, p.mask.any())).collect();
    m.assert(&format!("slot_{n}_paths_are_not_empty"), cat(&full).all());
    let all_wait = slot.paths().into_iter().map(|p| implies(p.valid, p.waits));
    let all_wait = cat(&all_wait.collect::<Vec<_>>()).all();
    m.assert(&format!("slot_{n}_waits_with_all_its_paths"), implies(slot.waiting, slot.live & all_wait));
    let busy = slot.returning | slot.seeking | slot.waiting;
    m.assert(&format!("slot_{n}_finds_out_whether_all_wait"), implies(slot.live & slot.parks, busy));
    m.assert(&format!("slot_{n}_waits_or_not"), implies(slot.waiting, !slot.returning & !slot.seeking));
    m.assert(
        &format!("slot_{n}_seeks_where_x_waits"),
        implies(slot.seeking, slot.live & slot.parks & slot.count.any()),
    );
    if let Some(ghost_waits) = &tables.ghosts.ghost_waits {
        let waits = slot.paths().into_iter().map(|p| p.mask.only_if(p.valid & p.waits));
        let waits = waits.fold(none, |all, mask| all | mask);
        m.assert(&format!("slot_{n}_ghost_waits"), implies(live, waits.eq(ghost_waits.read(at))));
    }
    let y_waits = implies(slot.y.valid & slot.x.waits, slot.y.waits)
        & implies(slot.y.valid & slot.parks, slot.y.waits | slot.y.is_late(s));
    m.assert(&format!("slot_{n}_y_waits_if_x_does"), implies(slot.live, y_waits));
    if slot.cold.is_empty() {
        // But for a path that came from a convergence barrier beside one that runs, or that one in an LR/SC sequence.
        let beside = s.convergence_barriers > 0 || s.keeps_sequences();
        let sorted = before(s, slot.x, slot.y) | (m.lit(beside, 1) & !slot.parks);
        m.assert(&format!("slot_{n}_is_sorted"), implies(slot.y.valid, sorted));
        m.assert(&format!("slot_{n}_has_no_cold_thread"), implies(live, !tables.ghosts.ghost_cold.read(at).any()));
        return;
    }
    let cold = masks[2..2 + slot.cold.len()].iter().fold(none, |all, &mask| all | mask);
    m.assert(&format!("slot_{n}_cold_threads"), implies(live, cold.eq(tables.ghosts.ghost_cold.read(at))));
    m.assert(&format!("slot_{n}_count_is_bounded"), implies(slot.live, slot.count.le(entries(s))));
    let empty = !slot.live & slot.holds(m);
    m.assert(&format!("slot_{n}_without_a_path_has_no_cold_one"), implies(empty, !slot.count.any() & !slot.returning));
    // A wake does not write x, so it must be the first of those that are woken.
    let first = implies(slot.y.valid & slot.parks, before(s, slot.x, slot.y));
    m.assert(&format!("slot_{n}_x_that_does_not_run_is_first"), first);
    let alone = implies(slot.live & !slot.y.valid, slot.returning | !slot.count.any());
    m.assert(&format!("slot_{n}_alone_is_returning"), alone);
    let returns = slot.live & !slot.y.valid & slot.count.any();
    m.assert(&format!("slot_{n}_returning_has_a_path"), implies(slot.returning, returns));
}

/// x may be before y: in a sorted list only by its key. In no list are they in one place.
fn before(s: &Shape, x: Path<Signal>, y: Path<Signal>) -> Signal {
    if s.order.is_stack() { rank(s, x).le(rank(s, y)) & key(x).ne(key(y)) } else { key(x).lt(key(y)) }
}

/// What the sorter has passed of a slot that is seeking waits.
fn sorter_passes(m: Builder, s: &Shape, slots: &[Slot], c: &cct::Inside) {
    // If x waits, all wait; if it has given way, all wait or have.
    let parks = |slot: &Slot, p: Path<Signal>| p.waits | (p.is_late(s) & !slot.x.waits);
    for slot in slots {
        let n = slot.number;
        let here = if s.warps > 1 { c.scan.eq(n) } else { m.lit(1u32, 1) };
        let width = slot.count.width();
        let passed = |k: usize| {
            let k = m.lit(k as u32, width);
            let under_way = |read: Read<Signal>| read.valid & read.at.eq(k);
            c.index.gt(k) & !under_way(c.scanned) & !under_way(c.compared)
        };
        let waits = (0..slot.cold.len()).map(|k| implies(passed(k) & slot.cold[k].valid, parks(slot, slot.cold[k])));
        let all = cat(&waits.collect::<Vec<_>>()).all();
        m.assert(&format!("slot_{n}_has_passed_paths_that_wait"), implies(here & slot.seeking & !slot.returning, all));
    }
}

/// What the cold table has read is what it holds.
fn cold_reads(m: Builder, s: &Shape, slots: &[Slot], entry: Context<Signal>, c: &cct::Inside) {
    let is = |slot: &Slot, number: Signal| if s.warps > 1 { number.eq(slot.number) } else { m.lit(1u32, 1) };
    for slot in slots {
        let n = slot.number;
        let width = slot.count.width();
        let is_entry = |read: Context<Signal>, which: Signal| {
            let read = Context::of(from_tables(m, s, slot.differ, read.path(slot.live)));
            let held = |k: usize| slot.cold[k].valid & Context::of(slot.cold[k]).same_as(read);
            cat(&(0..slot.cold.len()).map(|k| which.eq(m.lit(k as u32, width)) & held(k)).collect::<Vec<_>>()).any()
        };
        let reads = [("was_read", c.read, c.reading, c.scanned), ("is_there", entry, c.fetched, c.compared)];
        for (name, read, returns, sorts) in reads {
            let head = returns.valid & is(slot, returns.at);
            let is_head = slot.returning & is_entry(read, slot.count - 1);
            m.assert(&format!("slot_{n}_head_{name}"), implies(head, is_head));
            let sorted = sorts.valid & is(slot, c.scan);
            let of_sorter = slot.live & slot.y.valid & is_entry(read, sorts.at);
            m.assert(&format!("slot_{n}_entry_{name}"), implies(sorted, of_sorter));
        }
    }
    let there = |number: Signal| number.eq(index_of(s.warps, number));
    m.assert("slots_are_there", there(c.scan) & there(c.reading.at) & there(c.fetched.at));
    let both = |returns: Read<Signal>, sorts: Read<Signal>| returns.valid & sorts.valid;
    let of_one = !(both(c.reading, c.scanned) | both(c.reading, c.compared))
        & !(both(c.fetched, c.scanned) | both(c.fetched, c.compared));
    m.assert("heads_or_the_sorter", of_one);
    let next = |later: Signal, at: Signal| later.eq(at + 1);
    m.assert("sorter_goes_up", implies(c.scanned.valid, next(c.index, c.scanned.at)));
    let after = c.scanned.valid.mux(c.scanned.at, c.index);
    m.assert("sorter_compares_in_order", implies(c.compared.valid, next(after, c.compared.at)));
}

/// A slot is steered once after each outcome that leaves it live, at once, or when its paths have returned, one was
/// found that can run, or all that wait are woken; and to x, which can run.
fn steers(m: Builder, h: &Harness) {
    let (UnitIn { start, outcome, .. }, out) = (h.told, &h.out);
    let steer = out.steer;
    for slot in h.slots {
        let n = slot.number;
        let is = |number: Signal| number.eq(number.literal(n));
        let (acts, begins) = (outcome.valid & is(outcome.slot), start.valid & out.start_ready & is(start.slot));
        let steered = steer.valid & is(steer.slot);
        let owes = m.reg(&format!("owes_{n}"), 1).reset(0u32);
        owes.next((owes.q | acts | begins) & !steered);
        m.assert(&format!("slot_{n}_is_steered"), implies(slot.live, owes.q.eq(slot.returning | slot.parks)));
        m.assert(&format!("slot_{n}_without_a_path_is_to_be_steered"), implies(!slot.live & slot.holds(m), owes.q));
        m.assert(&format!("slot_{n}_is_steered_once"), implies(steered, owes.q | acts | begins));
        let to_x = slot.live & !slot.parks & slot.x.pc.eq(m.pipe(&format!("steered_pc_{n}"), steer.pc));
        m.assert(&format!("slot_{n}_is_steered_to_x"), implies(m.pipe_reset(&format!("steered_{n}"), steered), to_x));
    }
}

/// One thread's pc and depth, in whatever path it is.
fn follow(m: Builder, s: &Shape, h: &Harness) {
    let Harness { i, slots, told, out, tables, .. } = h;
    let UnitIn { start, outcome, .. } = *told;
    let next = told.hints.map_or(m.lit(0u32, s.pc_bits()), |hints| m.pipe("next_of_hint", hints.hint.next));
    let slot = index_of(s.warps, held(m, "slot_followed", i.slot));
    let lane = index_of(s.lanes, held(m, "lane_followed", i.lane));
    let alive = m.reg("thread_lives", 1).reset(0u32);
    let pc = m.reg("pc", s.pc_bits());
    let depth = m.reg("depth", s.depth_bits);
    let has = |mask: Signal| mask.select(lane, 1);

    let here = |p: Path<Signal>| p.valid & has(p.mask);
    let mine = |slots: &Slot| slot.eq(slots.number);
    let active = cat(&slots.iter().map(|slot| mine(slot) & here(slot.x)).collect::<Vec<_>>()).any();
    wire!(acts = outcome.valid & outcome.slot.eq(slot) & active);
    let waits = m.reg("waits", 1).reset(0u32);
    wire!(begins = start.valid & out.start_ready & start.slot.eq(slot));
    // In the cycle after the one in which the wake was taken.
    wire!(wakes = tables.store.claim.q.wake & tables.store.claim.q.slot.eq(slot));
    wire!(goes = acts & has(outcome.taken.mask));
    wire!(stays = acts & has(outcome.rest.mask));
    let counts = m.lit(s.order.counts_calls(), 1);
    let (call, ret) = (outcome.call & counts, outcome.ret & counts);
    let deeper = pick([(call, depth.q + 1), (ret & depth.q.any(), depth.q - 1)], depth.q);
    alive.next(pick([(begins, has(start.mask)), (acts, goes | stays)], alive.q));
    pc.next(pick([(begins, start.pc), (goes, outcome.taken.pc), (stays, outcome.rest.pc)], pc.q));
    depth.next(pick([(begins, depth.q.literal(0u32)), (goes, deeper)], depth.q));

    let never = m.lit(0u32, 1);
    waits.next(pick([(begins | wakes, never), (goes, outcome.kind.eq(kind::WAIT))], waits.q));

    for slot in *slots {
        let places = cat(&slot.masks().into_iter().map(has).collect::<Vec<_>>());
        let one = places.any() & places.eq(places.lowest_one());
        let n = slot.number;
        m.assert(&format!("thread_of_slot_{n}_is_in_one_path"), implies(mine(slot), alive.q.mux(one, !places.any())));
        let deep = |p: Path<Signal>| p.depth.slice(0, s.depth_bits);
        let at = |p: Path<Signal>| deep(p).eq(depth.q) & p.waits.eq(waits.q);
        // Before its outcome a thread that waits is in its path, and where it goes on is where the barrier has it.
        let moved = slot.pending & here(slot.x);
        let paths = slot.paths().into_iter().map(|p| implies(here(p), p.pc.eq(pc.q) & at(p)));
        let to = moved.mux(next, pc.q);
        let held = slot.held.iter().map(|&p| implies(here(p), p.pc.eq(to) & deep(p).eq(depth.q) & !waits.q));
        let joins = slot.pending & has(slot.goes) & !here(slot.x);
        let goes_on = implies(joins, pc.q.eq(next) & depth.q.eq(deep(slot.x)) & !waits.q);
        let right = cat(&paths.chain(held).chain([goes_on]).collect::<Vec<_>>()).all();
        m.assert(&format!("thread_of_slot_{n}_keeps_pc_and_depth"), implies(mine(slot), right));
    }
}

pub mod fair;
pub mod release;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;
    use crate::shape::Order;

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, warps, barriers, convergence_barriers) in [
            (1, 1, false, 0),
            (2, 2, false, 0),
            (4, 2, false, 0),
            (8, 2, false, 0),
            (1, 2, true, 0),
            (2, 2, true, 0),
            (4, 2, true, 0),
            (8, 1, true, 0),
            (1, 2, true, 1),
            (2, 1, false, 1),
            (2, 2, true, 2),
            (4, 1, false, 1),
            (4, 2, true, 2),
            (8, 1, true, 3),
        ] {
            let s = Shape { program: 16, depth_bits: 1, barriers, ..Shape::new(lanes, warps) };
            let s = Shape { convergence_barriers, patience: 32, ..s };
            for order in [Order::DepthPc, Order::Pc, Order::Swap, Order::Minority, Order::Majority] {
                let reservations = warps == 2;
                let s = Shape { order, reservations, ..s.clone() };
                holds_at_random(&path_table_proof(&s).check().unwrap().netlist, 20_000);
            }
            if convergence_barriers > 0 {
                let s = Shape { warp_primitives: true, ..s.clone() };
                holds_at_random(&path_table_proof(&s).check().unwrap().netlist, 20_000);
            }
            let s = Shape { fair: true, order: Order::BreadthFirst, ..s };
            holds_at_random(&path_table_proof(&s).check().unwrap().netlist, 20_000);
            let s = Shape { order: Order::DepthPc, ..s };
            for patience in [2, 8, 32] {
                let s = Shape { patience, ..s.clone() };
                holds_at_random(&path_table_proof(&s).check().unwrap().netlist, 20_000);
            }
        }
    }
}
