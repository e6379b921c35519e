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
//! Whose turn it is, is chosen in the cycle before ([`state::Claim`]), so that HCT0, HCT1 and all else that it needs of the
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
//! with an empty list.
//!
//! Where paths [give way](mod@super::fairness), one that has comes after all that have not. Such an x does not run: the
//! slot is seeking, as if it waited. If all that could run have given way, a new *round* begins, in which none has: a bit
//! per slot, as the phase. With [`Shape::fair`] a path that waits has not given way, whatever the round, so those that
//! wait meet each other, and a wake begins with the first round.
//!
//! What it does not do: without [`Shape::fair`], nothing is fair between paths. A path may wait forever for one before
//! it, so locks between threads of a warp may not make progress.

pub mod ccs;
pub mod cct;
mod checks;
mod claim;
pub mod convergence;
mod invariant;
pub mod order;
mod state;
mod turn;
mod update;

use super::inspect::{self, State};
use super::{Capabilities, Events, Mechanism, MoreOut, Path, UnitIn, UnitOut, assume_announced, assume_legal, hold};
use crate::proof::Proof;
use crate::shape::{Merge, Replay, Shape, ShapeError};
use cct::{CctIn, CctOut, Context, cct};
use convergence::{TableIn, TableOut, convergence_table};
use heddle_hdl::Errors;
use heddle_hdl::prelude::*;
use invariant::Ghosts;
use state::Store;
use turn::{Sorted, Turn};

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
        Capabilities { convergence_barriers: true, fair: true, orders: true, announced: true, ..Capabilities::NONE }
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
            // Between a wait and its outcome, its threads are in both.
            let mut held = convergence::held(s, &state.within("convergence"), warp);
            for path in &mut held {
                paths.iter().for_each(|listed| path.mask &= !listed.mask.clone());
            }
            held.retain(|path| path.mask.any());
            paths.extend(held);
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

/// What a proof must see of the unit.
struct Inside {
    store: Store,
    /// Outcomes and instructions that have come while something is put off.
    outcomes: Signal,
    ghosts: Ghosts,
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
    let UnitIn { start, wake, outcome, .. } = &i;
    let announced = i.announced.expect("outcomes are announced");
    let store = Store::new(m, s, place_cold, place_barriers);
    let next = store.claim_next(&announced, wake);
    let turn = store.turn(&next, (start, wake), outcome, &announced);
    let sorted = store.sort(&turn, start, (outcome, i.sequence));
    let new_round = store.update(&next, &turn, &sorted, (start, outcome));
    let changes = turn.updates | turn.wakes | store.cold.swap | new_round.unwrap_or(m.lit(0u32, 1));
    store.read_next(&next, &turn, &announced, changes);
    let time = store.give_way((&turn, &sorted), (start, outcome), new_round);
    store.tell_barriers(i.hints, (&turn, &sorted), (start, outcome), time.map(|(tick, _)| tick));

    // Outcomes that come while something else waits for its turn. A head in its register needs only one cycle without
    // an outcome: it is asked for in one cycle, and again if that one is lost.
    let put_off = store.put_off(&next, &turn, start, wake);
    let asked = |hold: Signal| hold & store.cold.returned & !put_off;
    let told = i.hints.map_or(outcome.valid, |hints| outcome.valid | hints.hint.valid);
    let (hold, outcomes) = hold(m, told, |hold| (store.cold.due | put_off) & !asked(hold));
    m.cover("holds_for_a_cycle", asked(hold));

    let steer = store.steer(&turn, &sorted, outcome, new_round);
    // With threads at convergence barriers a slot is live, and it waits for nobody else. One whose wake was taken waits
    // no more.
    let waits_on = if s.barriers { store.waiting() & !turn.at.only_if(turn.wakes) } else { store.waiting() };
    let (live, waiting) = store.barriers_or((store.live.q, waits_on), |barriers| {
        (store.live.q | barriers.holding, waits_on & !barriers.holding)
    });
    assume_legal(m, s, &i, (live, waiting), sorted.active.mask, (turn.starts, next.woken));
    assume_announced(m, &i, (turn.claim.outcome, turn.claim.slot), steer);
    store.check(&turn, &sorted, (start, outcome), steer);
    let ghosts = store.check_invariant(&turn, &sorted, (start, outcome), new_round);
    if let Some(hints) = &i.hints {
        store.check_barriers(hints, &turn, &sorted, (outcome, steer), new_round);
    }
    m.probe("updates", turn.updates);
    m.probe("slot", turn.slot);
    m.probe("x", sorted.x);
    m.probe("y", sorted.ccs.y);
    m.probe("z", sorted.ccs.z);
    let out = UnitOut {
        start_ready: turn.start_ready,
        wake_ready: next.wake_ready,
        live,
        waiting,
        stop: store.stops.read(i.decode_slot),
        mask: store.hct0.read(i.issue_slot).mask,
        steer,
        hold,
        more: MoreOut {
            count: store.barriers.map(|barriers| barriers.count),
            in_use: store.barriers.and_then(|barriers| barriers.in_use),
            ..MoreOut::NONE
        },
        events: events(&store, &turn, &sorted, outcome.valid, time.map(|(_, gave_way)| gave_way)),
    };
    (out, Inside { store, outcomes, ghosts })
}

/// What is counted.
fn events(store: &Store, turn: &Turn, sorted: &Sorted, outcome: Signal, gave_way: Option<Signal>) -> Events<Signal> {
    let Store { m, s, cold, .. } = store;
    let wide = s.lane_bits() + 1;
    let valid = cat(&[sorted.x.valid, sorted.ccs.y.valid, sorted.ccs.z.valid]);
    let paths = cold.count.zext(wide) + valid.count_ones().zext(wide);
    Events {
        merges: sorted.ccs.merges.only_if(turn.updates),
        insert: cold.insert,
        extract: cold.extract,
        swap: cold.swap,
        paths: paths.only_if(outcome),
        releases: store.barriers.map(|barriers| barriers.releases),
        gave_way,
        ..Events::none(*m, s)
    }
}

pub mod proof;
pub mod proofs;
#[cfg(test)]
mod tests;
