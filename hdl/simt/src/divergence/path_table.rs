//! The path-table divergence unit: the paths of a warp in order, as in Simty.
//!
//! `path-lists-simty.txt` §3.2; `docs/reference/path-tables.md` has the picture. Each warp has its two first paths in
//! hot context tables, x in HCT0 and y in HCT1; all others are in the cold context table ([`cct`]). Whatever changes a
//! warp's paths passes the compact-and-sort unit ([`ccs`]), one thing a cycle:
//!
//! | turn | a | b | c | what follows |
//! |---|---|---|---|---|
//! | outcome | taken | rest | HCT1 | x, y to HCT0, HCT1; z to the CCT; steers to x |
//! | return | HCT0 | head of the CCT | (invalid) | the same; never a z |
//! | start | the new path | – | – | the same; never y or z |
//! | wake | HCT0 | – | HCT1 | steers to x; the slot's phase changes |
//! | release | HCT0, kept first if it runs | threads of a convergence barrier | HCT1 | as an outcome; steers to x if it is not HCT0 |
//! | sort | HCT0, kept first | an entry of the CCT | HCT1 | y and z are exchanged if b belongs before c |
//! | sort, a waits | HCT0 | the same | HCT1 | x, y, z written if b is not z; steers to x if it does not wait |
//!
//! Whose turn it is, is chosen in the cycle before ([`Claim`]), so that HCT0, HCT1 and all else that it needs of the
//! tables are in registers when it comes. An outcome, which is announced, always has its turn; then a return, a
//! release, a wake, the sorter. A start needs nothing of the tables: it takes the turn of the sorter or one that is not
//! used.
//!
//! What a turn writes is not there yet for a turn of the same slot in the next cycle, whose words are *stale*. An
//! outcome or a return never follows that soon: an outcome not on the steering, a return not on what made its slot
//! return. The sorter and releases keep off a slot that is announced, the sorter also one that is to be woken, and all
//! while the warden is somewhere; they wait a cycle where their words are stale.
//!
//! After an outcome that leaves only x while the CCT holds paths of the warp, the slot is steered by the last return
//! that follows. HCT1 is invalid only if the CCT has no path of the warp, or while a return is under way.
//!
//! A path waits if its bit in the tables differs from its slot's phase. A wake comes when all paths of a slot wait, so
//! one change of the phase makes all of them run, and their order among each other stays.
//!
//! With convergence barriers ([`convergence`]) threads may leave the list for another table. A slot may then be live
//! with an empty list; and a path that has given way comes after all that have not. Such an x does not run: the slot is
//! seeking, as if it waited. If all that could run have given way, a new *round* begins, in which none has: a bit per
//! slot, as the phase.
//!
//! What it does not do: but for that, nothing is fair between paths. A path may wait forever for one before it, so
//! locks between threads of a warp may not make progress.

use super::inspect::{self, State};
use super::{
    Announced, Capabilities, Events, Hints, Mechanism, MoreOut, Path, Steer, Stop, UnitIn, UnitOut, assume_announced,
    assume_legal, depth_after, hold, kind,
};
use crate::proof::Proof;
use crate::shape::{Merge, Replay, Shape, ShapeError};
use ccs::{CcsIn, ccs};
use cct::{CctIn, CctOut, Context, cct, entries};
use convergence::{Release, TableIn, TableOut, convergence_table};
use heddle_hdl::Errors;
use heddle_hdl::prelude::*;
use invariant::{Ghosts, Turn, every_thread_in_one_path, paths_wait_with_their_threads};

/// The mechanism: sorted path tables.
pub struct PathTable;

impl Mechanism for PathTable {
    fn name(&self) -> &'static str {
        "path-table"
    }

    fn number(&self) -> u8 {
        0
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { convergence_barriers: true, announced: true, ..Capabilities::NONE }
    }

    fn check(&self, s: &Shape) -> Result<(), ShapeError> {
        let refused = |why| Err(ShapeError::new("merge", s.merge.name(), why));
        match (s.merge, s.convergence_barriers, s.replay) {
            (Merge::Barriers, 0, _) => refused("needs convergence_barriers of at least 1"),
            (Merge::Barriers, _, Replay::Split) => {
                refused("needs replay = serialise: a path that an access splits would never be whole again")
            }
            _ => Ok(()),
        }
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        path_table(s)
    }

    fn proofs(&self) -> Result<Vec<Proof>, Errors> {
        proofs::proofs()
    }

    /// HCT0, HCT1, then the cold context table from its bottom, with what is about to be written there.
    fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<inspect::Path> {
        let slot = u64::from(warp);
        let live = state.register(s.warps, live_name(s)).bit(warp);
        // A path waits if its bit is not that of its warp's phase.
        let phase = live && s.barriers && state.word(1, "phases", slot).bit(0);
        let shown = |place: String, path: Context<Bits>| inspect::Path {
            place,
            depth: path.depth.extract(0, s.depth_bits).low_u64(),
            pc: 4 * path.pc.low_u64() as u32,
            mask: path.mask.to_bitvec(s.lanes),
            waits: s.barriers && path.waits.bit(0) != phase,
        };
        let mut paths = Vec::new();
        if live {
            paths.push(shown("HCT0".into(), state.word(Context::shape(s), "hct0", slot)));
        }
        if live && s.lanes > 1 {
            let second = state.word(Path::shape(s), "hct1", slot);
            paths.extend((second.valid == 1).then(|| shown("HCT1".into(), Context::of(second))));
        }
        if live && s.lanes > 2 {
            let cold = cct::held(s, &state.within("cct"), warp).into_iter().enumerate();
            paths.extend(cold.map(|(k, path)| shown(format!("CCT[{k}]"), path)));
        }
        if s.convergence_barriers > 0 {
            paths.extend(convergence::held(s, &state.within("convergence"), warp));
        }
        paths
    }
}

/// The register with a bit per slot that has paths: with convergence barriers, a slot may be live while its list is
/// empty.
fn live_name(s: &Shape) -> &'static str {
    if s.convergence_barriers > 0 { "listed" } else { "live" }
}

/// The path-table unit of a shape.
pub fn path_table(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    let cold = |m: Builder, i: CctIn<Signal>| m.instance("cct", &cct(s), i);
    let table = |m: Builder, i: TableIn<Signal>| m.instance("convergence", &convergence_table(s), i);
    module("path_table", UnitIn::shape(s), |m, i| described(m, s, i, cold, table).0)
}

/// Whose turn it is, chosen in the cycle before. With no bit set it is that of a path that returns, or of nobody.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Claim<T> {
    slot: T,
    /// 1 bit: an outcome was announced. If it does not come, the turn is lost.
    outcome: T,
    /// 1 bit: threads of a convergence barrier may be released.
    release: T,
    /// 1 bit: a wake was taken.
    wake: T,
    /// 1 bit: the sorter.
    sort: T,
}

/// A slot's words in the tables, read in the cycle before, as the tables have them now.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Words<T> {
    live: T,
    phase: Option<T>,
    round: Option<T>,
    hct0: Context<T>,
    /// The call depth of x's threads that take the branch, if an outcome was announced; else x's.
    after: T,
    hct1: Option<Path<T>>,
}

/// The tables, as a proof sees them.
struct Inside {
    claim: Claim<Signal>,
    words: Words<Signal>,
    stale: Signal,
    live: Signal,
    /// One bit per slot: all its paths wait.
    waiting: Signal,
    /// Outcomes and instructions that have come while something is put off.
    outcomes: Signal,
    phases: Option<Mem<Width>>,
    rounds: Option<Mem<Width>>,
    hct0: Mem<Context<Width>>,
    hct1: Option<Mem<Path<Width>>>,
    ghost_live: Mem<Width>,
    ghost_cold: Mem<Width>,
    ghost_held: Option<Mem<Width>>,
    ghost_waits: Option<Mem<Width>>,
}

/// The unit, with a cold table that `place_cold` makes, and a table of convergence barriers.
fn described(
    m: Builder,
    s: &Shape,
    i: UnitIn<Signal>,
    place_cold: impl FnOnce(Builder, CctIn<Signal>) -> CctOut<Signal>,
    place_barriers: impl FnOnce(Builder, TableIn<Signal>) -> TableOut<Signal>,
) -> (UnitOut<Signal>, Inside) {
    m.doc("Divergence unit: sorted path tables.");
    let UnitIn { start, wake, outcome, .. } = i;
    let with_barriers = s.convergence_barriers > 0;
    let live = m.reg(live_name(s), s.warps).reset(0u32);
    let hct0 = m.memory("hct0", Context::shape(s), s.warp_bits()).style(MemoryStyle::Distributed);
    let stops = m.memory("stops", Stop { valid: 1, pc: s.pc_bits() }, s.warp_bits()).style(MemoryStyle::Distributed);
    let (cold, cold_in) = cold_table(m, s, place_cold);
    let barriers_in = with_barriers.then(|| m.deferred("to_barriers", TableIn::shape(s)));
    let barriers = barriers_in.as_ref().map(|inputs| place_barriers(m, inputs.value));

    // Whose turn comes next.
    let no = m.lit(0u32, 1);
    let claim = m.reg("claim", Claim { slot: s.warp_bits(), outcome: 1, release: 1, wake: 1, sort: 1 }).reset_zero();
    let Announced { valid: announced, slot: announced_slot, call, ret } = i.announced.expect("outcomes are announced");
    wire!(unclaimed = !announced & !cold.must.valid);
    let visits = barriers.map_or(no, |barriers| barriers.visits);
    wire!(wake_ready = unclaimed & !visits & m.lit(s.barriers, 1));
    wire!(woken = wake.valid & wake_ready);
    let mut claims = vec![(announced, announced_slot), (cold.must.valid, cold.must.at)];
    claims.extend(barriers.map(|barriers| (visits, barriers.release.slot)));
    claims.extend(s.barriers.then_some((wake.valid, wake.slot)));
    wire!(next_slot = pick(claims, cold.next));
    claim.next(Claim {
        slot: next_slot,
        outcome: announced,
        release: unclaimed & visits,
        wake: woken,
        sort: unclaimed & !visits & !woken & cold.next_sorts,
    });
    let claim = claim.q;

    // Whose turn it is.
    let stale = m.reg("stale", 1).reset(0u32);
    // Somebody else may have the next turn, and needs the tables as they are: of this slot, or wherever the warden is.
    let here = |valid: Signal, slot: Signal| valid & slot.eq(claim.slot);
    wire!(announced_here = here(announced, announced_slot));
    let woken_here = here(wake.valid, wake.slot) & m.lit(s.barriers, 1);
    wire!(gives_way = announced_here | woken_here | visits);
    wire!(returns = cold.returned & !claim.outcome);
    let ready = !claim.outcome & !cold.returned & !claim.wake;
    wire!(start_ready = barriers.map_or(ready, |barriers| ready & !barriers.writes));
    wire!(starts = start.valid & start_ready);
    let wakes = claim.wake;
    let releases = barriers.map_or(no, |barriers| barriers.release.valid);
    // A release adds to the list, and lets a path that runs do so.
    let begins = outcome.valid | returns | starts;
    wire!(updates = if barriers.is_some() { begins | releases } else { begins });
    wire!(slot = starts.mux(start.slot, claim.slot));

    // What it needs of the tables. A start needs nothing, and its slot is not that of the words.
    let at = slot.decode(s.warps);
    let hct1 = (s.lanes > 1).then(|| m.memory("hct1", Path::shape(s), s.warp_bits()).style(MemoryStyle::Distributed));
    // The phase of a slot: its paths wait if their bit differs from it. A start sets it to 0, a wake changes it. The
    // round: its paths have given way, or have not.
    let bits = |name: &str| m.memory(name, 1, s.warp_bits()).style(MemoryStyle::Distributed);
    let phases = s.barriers.then(|| bits("phases"));
    let rounds = barriers.map(|_| bits("rounds"));
    let shape = Words {
        live: 1,
        phase: phases.as_ref().map(|_| 1),
        round: rounds.as_ref().map(|_| 1),
        hct0: Context::shape(s),
        after: s.depth_bits,
        hct1: hct1.as_ref().map(|_| Path::shape(s)),
    };
    // With a reset: without one, Yosys has the address in a register instead, and the read in the cycle of the turn.
    let next_words = m.reg("words", shape).reset_zero();
    let words = next_words.q;
    wire!(slot_live = words.live & !starts);
    wire!(phase = words.phase.map_or(no, |phase| phase & !starts));
    let round = words.round.map(|round| round & !starts);
    wire!(phase_changes = wakes | starts);
    wire!(next_phase = wakes & !phase);
    if let Some(phases) = &phases {
        phases.write(phase_changes, slot, next_phase);
    }
    // Between the tables and the CCS, either way.
    let turned = |p: Path<Signal>| {
        let depth = round.map_or(p.depth, |round| p.depth ^ cat(&[m.lit(0u32, s.depth_bits), round]));
        Path { depth, waits: p.waits ^ phase, ..p }.as_built(s)
    };
    // A call depth, and above it whether the path has given way.
    let deep = |depth: Signal| if barriers.is_some() { depth.slice(0, s.depth_bits) } else { depth };
    let ranked = |depth: Signal, late: Signal| if barriers.is_some() { cat(&[depth, !late]) } else { depth };

    // What passes the CCS.
    wire!(active = turned(words.hct0.path(slot_live)));
    let runs = m.lit(0u32, 1);
    let depth = deep(active.depth);
    let converges = outcome.kind.eq(kind::CONVERGE);
    let goes = barriers.map_or(outcome.taken.mask, |barriers| converges.mux(barriers.goes, outcome.taken.mask));
    let late = barriers.map_or(runs, |barriers| barriers.gives_way);
    let taken = Path {
        valid: goes.any(),
        depth: ranked(words.after, late),
        pc: outcome.taken.pc,
        mask: goes,
        waits: outcome.kind.eq(kind::WAIT),
    }
    .as_built(s);
    let side = outcome.rest;
    let rest = Path { valid: side.mask.any(), depth: ranked(depth, late), pc: side.pc, mask: side.mask, waits: runs };
    wire!(a = outcome.valid.mux(taken, Path { depth: ranked(words.after, active.is_late(s)), ..active }));
    let from_cold = turned(cold.entry.path(returns | cold.sorts));
    let second_path = barriers.map_or(from_cold, |barriers| {
        let Release { depth, pc, mask, .. } = barriers.release;
        let released = Path { valid: releases, depth: ranked(depth, runs), pc, mask, waits: runs };
        releases.mux(released, from_cold)
    });
    wire!(b = outcome.valid.mux(rest, second_path));
    let second = words.hct1.unwrap_or_else(|| m.zero(Path::shape(s)));
    wire!(c = turned(Path { valid: second.valid & slot_live, ..second }));
    let idles = if barriers.is_some() { active.waits | active.is_late(s) } else { active.waits };
    wire!(parked = idles & !begins);
    let sorted = m.instance("ccs", &ccs(s), CcsIn { a, b, c, a_first: slot_live & !begins & !parked });
    let (y, z) = (sorted.y, sorted.z);
    // At a start none of the three is valid, and the new path is x: the sort gives zeros, and nothing waits for it.
    let begun = Path {
        valid: start.mask.any(),
        depth: ranked(depth.literal(0u32), runs),
        pc: start.pc,
        mask: start.mask,
        waits: runs,
    };
    let either = |sorted: Signal, begun: Signal| sorted | begun.only_if(starts);
    wire!(
        x = Path {
            valid: either(sorted.x.valid, begun.valid),
            depth: either(sorted.x.depth, begun.depth),
            pc: either(sorted.x.pc, begun.pc),
            mask: either(sorted.x.mask, begun.mask),
            waits: either(sorted.x.waits, begun.waits),
        }
    );
    wire!(x_waits = x.valid & x.waits);
    // It does not run, unless all do not.
    let x_parks = if barriers.is_some() { x.valid & (x.waits | x.is_late(s)) } else { x_waits };

    // Where it goes.
    live.next_if(updates, (live.q & !at) | at.only_if(x.valid));
    wire!(x_changes = updates | (cold.swap & parked));
    let new_x = Context::of(turned(x));
    hct0.write(x_changes, slot, new_x);
    wire!(y_changes = updates | cold.swap);
    let new_y = turned(y);
    if let Some(hct1) = &hct1 {
        hct1.write(y_changes, slot, new_y);
    }
    stops.write(y_changes, slot, Stop { valid: sorted.y_ahead, pc: y.pc });
    if let Some(cold_in) = &cold_in {
        cold_in.drive(CctIn {
            announced: claim.outcome,
            outcome: outcome.valid | releases,
            start: starts,
            wake: wakes,
            sort: claim.sort,
            gives_way,
            stale: stale.q,
            slot: claim.slot,
            start_slot: start.slot,
            next_slot,
            has_y: c.valid,
            alone: x.valid & !y.valid,
            x_waits: x_parks,
            z: turned(z),
            before_y: if s.may_park() { sorted.b_before_c & z.valid } else { sorted.b_before_c },
        });
    }
    let seen = if cold_in.is_some() { cold.seen } else { updates };
    let waiting = if s.barriers {
        let waiting = m.reg("list_waits", s.warps).reset(0u32);
        wire!(all_wait = x_waits & seen);
        waiting.next_if(updates | wakes | all_wait, (waiting.q & !at) | at.only_if(all_wait));
        waiting.q
    } else {
        m.lit(0u32, s.warps)
    };

    // All that could run have given way: now they have not.
    let new_round = rounds.as_ref().zip(round).map(|(rounds, round)| {
        wire!(new_round = x.valid & x.is_late(s) & (wakes | (seen & !x.waits)));
        rounds.write(new_round | starts, slot, new_round & !round);
        new_round
    });

    // What the next turn finds in the tables: what they hold before this cycle's write.
    let changes = updates | wakes | cold.swap | new_round.unwrap_or(no);
    stale.next(changes & slot.eq(next_slot));
    let stale = stale.q;
    let x_next = hct0.read(next_slot);
    next_words.next(Words {
        live: live.q.select(next_slot, 1),
        phase: phases.as_ref().map(|phases| phases.read(next_slot)),
        round: rounds.as_ref().map(|rounds| rounds.read(next_slot)),
        hct0: x_next,
        after: depth_after(announced & call, announced & ret, deep(x_next.depth)),
        hct1: hct1.as_ref().map(|hct1| hct1.read(next_slot)),
    });
    let holding = barriers.map_or(m.lit(0u32, s.warps), |barriers| barriers.holding);
    if let Some(inputs) = &barriers_in {
        let hints = i.hints.expect("told of instructions on convergence barriers");
        let stay = outcome.taken.mask | outcome.rest.mask;
        inputs.drive(TableIn {
            depth: deep(hct0.read(hints.hint.slot).depth),
            hints,
            outcome: outcome.valid,
            outcome_slot: outcome.slot,
            ended: active.mask & !stay,
            free: claim.release & !announced_here & !stale,
            turn: updates,
            turn_slot: slot,
            alone: !y.valid & !cold.count.any(),
            new_round: new_round.expect("rounds with barriers"),
            start: starts,
            start_slot: start.slot,
            start_mask: start.mask,
            stopped: !live.q | waiting,
            busy: cold.busy.unwrap_or(m.lit(0u32, s.warps)),
        });
    }

    // Outcomes that come while something else waits for its turn. A head in its register needs only one cycle without
    // an outcome: it is asked for in one cycle, and again if that one is lost.
    let wake_waits = wake.valid & !wake_ready & m.lit(s.barriers, 1);
    let host_waits = (start.valid & !start_ready) | wake_waits;
    wire!(put_off = barriers.map_or(host_waits, |barriers| host_waits | barriers.put_off));
    let asked = |hold: Signal| hold & cold.returned & !put_off;
    let told = i.hints.map_or(outcome.valid, |hints| outcome.valid | hints.hint.valid);
    let (hold, outcomes) = hold(m, told, |hold| (cold.due | put_off) & !asked(hold));

    let wide = s.lane_bits() + 1;
    let paths = cold.count.zext(wide) + cat(&[x.valid, y.valid, z.valid]).count_ones().zext(wide);
    let events = Events {
        merges: sorted.merges.only_if(updates),
        insert: cold.insert,
        extract: cold.extract,
        swap: cold.swap,
        paths: paths.only_if(outcome.valid),
        releases: barriers.map(|barriers| barriers.releases),
        ..Events::none(m, s)
    };
    // A release beside a path that runs leaves it alone.
    let beside = releases & slot_live & !parked;
    let steers = if barriers.is_some() { updates & !beside } else { updates };
    let steered = (steers & x.valid & !x_parks & !cold.more_returns) | wakes | (cold.swap & parked & !x_parks);
    let steer = Steer {
        valid: new_round.map_or(steered, |new_round| steered | new_round),
        slot,
        pc: x.pc,
        replay: outcome.valid & outcome.kind.eq(kind::MEMORY) & sorted.x_is_b,
    };

    // With threads at convergence barriers per slot is live, and it waits for nobody else. One whose wake was taken
    // waits no more.
    let waits_on = if s.barriers { waiting & !at.only_if(wakes) } else { waiting };
    let (all_live, all_waiting) =
        if with_barriers { (live.q | holding, waits_on & !holding) } else { (live.q, waits_on) };
    assume_legal(m, s, &i, (all_live, all_waiting), active.mask, (starts, woken));
    assume_announced(m, &i, (claim.outcome, claim.slot), steer);
    let uses = outcome.valid | returns | releases | wakes | cold.sorts;
    m.assert("nobody_uses_stale_words", !(uses & stale));
    m.assert("who_is_woken_waits", !wakes | waiting.select(slot, 1));
    m.assert("one_claim", cat(&[claim.outcome, claim.release, claim.wake, claim.sort]).count_ones().le(1));
    if let Some(barriers) = barriers {
        let here = claim.release & claim.slot.eq(barriers.release.slot);
        m.assert("a_release_has_the_turn", !releases | here);
    }
    m.cover("announced_outcome_does_not_come", claim.outcome & !outcome.valid);
    let deepest = depth.all() & outcome.call & taken.valid;
    m.assert("call_depth_does_not_overflow", !(outcome.valid & deepest));
    m.assert("third_path_goes_to_the_cold_table", !(updates & z.valid) | cold.insert);
    m.cover("returned_path_merges", returns & sorted.merges.any());
    m.cover("returned_path_is_first", returns & sorted.x_is_b);
    m.cover("replays", steer.replay);
    let arrives = outcome.valid & outcome.kind.eq(kind::ARRIVED);
    m.cover("arrives_and_merges", arrives & sorted.merges.any());
    m.cover("arrives_and_meets_none", arrives & !sorted.merges.any());
    m.cover("path_ends_and_others_go_on", outcome.valid & !a.valid & !b.valid & x.valid);
    let together = outcome.valid & y.valid & x.depth.eq(y.depth);
    m.cover("runs_towards_y", together & sorted.y_ahead);
    m.cover("runs_deeper_than_y", outcome.valid & y.valid & x.depth.ne(y.depth));
    m.cover("calls", outcome.valid & outcome.call & taken.valid);
    m.cover("returns_from_a_call", outcome.valid & outcome.ret & taken.valid & active.depth.any());
    m.cover("start_waits", start.valid & !start_ready);
    m.cover("warp_ends", outcome.valid & !x.valid);
    m.cover("holds_for_a_cycle", asked(hold));
    m.cover("returns_at_depth_zero", outcome.valid & outcome.ret & taken.valid & !active.depth.any());
    if cold_in.is_some() {
        m.cover("warp_goes_on_with_a_cold_path", outcome.valid & !a.valid & !b.valid & cold.more_returns);
    }
    let turn = Turn {
        outcome,
        starts,
        begun: start.mask,
        returns,
        slot,
        stale,
        slot_live,
        active,
        second: c,
        b,
        x,
        z,
        goes,
        releases,
    };
    let Ghosts { ghost_live, ghost_cold, ghost_held, all } = every_thread_in_one_path(m, s, &turn, &cold);
    let ghost_waits = s.barriers.then(|| {
        m.assume("outcome_of_a_path_that_runs", !outcome.valid | !active.waits);
        m.cover("wakes_two_paths", wakes & y.valid);
        m.cover("arrives_at_a_waiting_path", outcome.valid & x_waits & sorted.merges.any());
        m.cover("runs_beside_a_waiting_path", outcome.valid & !x.waits & y.valid & y.waits);
        m.cover("returned_path_runs", returns & active.waits & !x.waits);
        paths_wait_with_their_threads(m, s, &turn, wakes, waiting.select(slot, 1), all)
    });

    if let Some((Hints { hint, .. }, barriers)) = i.hints.zip(barriers) {
        let runs = |slot: Signal| live.q.select(slot, 1) & !waiting.select(slot, 1);
        m.assume("outcome_of_a_path_of_the_list", !outcome.valid | runs(outcome.slot));
        let of_path = runs(hint.slot) & hint.mask.eq(hct0.read(hint.slot).mask);
        m.assume("hints_of_the_active_path", !hint.valid | of_path);
        m.assume("no_hint_after_an_outcome", !(hint.valid & outcome.valid & hint.slot.eq(outcome.slot)));
        let follows = outcome.valid & converges & outcome.slot.eq(barriers.waited_slot);
        let all_taken = outcome.taken.mask.eq(active.mask) & !outcome.rest.mask.any();
        m.assume(
            "a_wait_and_its_outcome",
            (barriers.waited | (outcome.valid & converges)).eq(barriers.waited & follows),
        );
        m.assume("all_threads_of_a_path_wait", !(outcome.valid & converges) | all_taken);
        m.probe("release", barriers.release);
        m.cover("released_beside_a_path_that_runs", beside);
        m.cover("released_to_an_empty_list", releases & !slot_live);
        m.cover("released_third_path", releases & z.valid);
        m.cover("list_becomes_empty", outcome.valid & !x.valid & holding.select(slot, 1));
        m.cover("new_round", new_round.expect("rounds with barriers"));
        if s.barriers {
            m.cover("released_before_paths_that_wait", releases & slot_live & parked);
        }
    }

    m.probe("updates", updates);
    m.probe("slot", slot);
    m.probe("x", x);
    m.probe("y", y);
    m.probe("z", z);
    let out = UnitOut {
        start_ready,
        wake_ready,
        live: all_live,
        waiting: all_waiting,
        stop: stops.read(i.decode_slot),
        mask: hct0.read(i.issue_slot).mask,
        steer,
        hold,
        more: MoreOut { count: barriers.map(|barriers| barriers.count), ..MoreOut::NONE },
        events,
    };
    let live = live.q;
    (
        out,
        Inside {
            claim,
            words,
            stale,
            live,
            waiting,
            outcomes,
            phases,
            rounds,
            hct0,
            hct1,
            ghost_live,
            ghost_cold,
            ghost_held,
            ghost_waits,
        },
    )
}

/// The cold table and its inputs, to be driven; with fewer than 4 lanes there is none, and its outputs are zeros.
fn cold_table(
    m: Builder,
    s: &Shape,
    place: impl FnOnce(Builder, CctIn<Signal>) -> CctOut<Signal>,
) -> (CctOut<Signal>, Option<Deferred<CctIn<Signal>>>) {
    if entries(s) == 0 {
        return (m.zero(CctOut::shape(s)), None);
    }
    let inputs = m.deferred("to_cct", CctIn::shape(s));
    (place(m, inputs.value), Some(inputs))
}

pub mod ccs;
pub mod cct;
pub mod convergence;
mod invariant;
pub mod proof;
pub mod proofs;
#[cfg(test)]
mod tests;
