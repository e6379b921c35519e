//! The list divergence unit: the paths of each warp in any order, one an entry, and as many entries as there are lanes.
//!
//! An example of a mechanism with the plain interface: `docs/guide/add-a-mechanism.md` walks through it. A word of
//! `lists` holds all paths of a warp. An outcome takes the active path out of it and adds what has become of it:
//! threads that come to where a path is become part of that, others take a free entry. Then all entries are compared,
//! and the first path runs: the one at the greatest depth, of these the one at the least pc; paths that wait come after
//! all others. All this is one cycle, that of the outcome.
//!
//! | turn | what follows |
//! |---|---|
//! | outcome | the active path is replaced by taken and rest; the first path is steered |
//! | start | the new threads are the only path, and steered |
//! | wake | no path waits; the first is steered |
//!
//! What it does not do: it is not made for area or clock, both of which are bad with many lanes. Nothing is fair
//! between paths, as with the path tables.

use super::inspect::{self, State};
use super::{
    Events, Mechanism, MoreOut, OutcomeKind, Path, Side, Steer, Stop, UnitIn, UnitOut, assume_legal, depth_after, hold,
};
use crate::shape::Shape;
use heddle_hdl::prelude::*;
use std::cmp::Reverse;

/// The mechanism: paths in any order.
pub struct List;

impl Mechanism for List {
    fn name(&self) -> &'static str {
        "list"
    }

    fn number(&self) -> u8 {
        5
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        list(s)
    }

    /// In the order in which they run.
    fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<inspect::Path> {
        let entries = state.word(entries(s), "lists", warp.into()).into_iter().enumerate();
        let live = state.register(s.warps, "live").bit(warp);
        let valid = entries.filter(|(_, path)| live && path.valid == 1);
        let shown = |(k, Path { depth, pc, mask, waits, .. }): (usize, Path<Bits>)| inspect::Path {
            place: format!("list[{k}]"),
            depth: depth.low_u64(),
            pc: 4 * pc.low_u64() as u32,
            mask: mask.to_bitvec(s.lanes),
            waits: waits == 1,
        };
        let mut paths: Vec<_> = valid.map(shown).collect();
        paths.sort_by_key(|path| (path.waits, Reverse(path.depth), path.pc));
        paths
    }
}

/// The paths of a warp.
fn entries(s: &Shape) -> Vec<Path<Width>> {
    vec![Path::shape(s); s.lanes as usize]
}

/// What a warp runs.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct Active<T> {
    /// The entry of its path, one bit each.
    #[width(s.lanes)]
    entry: T,
    #[width(s.depth_bits)]
    depth: T,
    #[width(s.lanes)]
    mask: T,
}

/// A path and its entry, one bit each.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Choice<T> {
    entry: T,
    path: Path<T>,
}

impl Path<Signal> {
    /// The number that paths are sorted by, least first; entries without a path come last.
    fn order(self) -> Signal {
        cat(&[self.pc, !self.depth, self.waits, !self.valid])
    }

    /// Whether the threads of the two become one path.
    fn meets(self, other: Path<Signal>) -> Signal {
        self.valid & other.valid & self.order().eq(other.order())
    }
}

/// The list unit of a shape.
pub fn list(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    module("list", UnitIn::shape(s), |m, i| described(m, s, i))
}

fn described(m: Builder, s: &Shape, i: UnitIn<Signal>) -> UnitOut<Signal> {
    m.doc("Divergence unit: a list of paths in any order.");
    let UnitIn { start, wake, outcome, .. } = i;
    let live = m.reg("live", s.warps).reset(0u32);
    let waiting = s.barriers.then(|| m.reg("waiting", s.warps).reset(0u32));
    let lists = m.memory("lists", entries(s), s.warp_bits()).style(MemoryStyle::Distributed);
    let active = m.memory("active", Active::shape(s), s.warp_bits()).style(MemoryStyle::Distributed);
    let stops = m.memory("stops", Stop::shape(s), s.warp_bits()).style(MemoryStyle::Distributed);

    // Whose turn it is.
    wire!(start_ready = !outcome.valid);
    wire!(starts = start.valid & start_ready);
    let wake_possible = m.lit(s.barriers, 1);
    wire!(wake_ready = start_ready & !start.valid & wake_possible);
    wire!(wakes = wake.valid & wake_ready);
    wire!(updates = outcome.valid | starts | wakes);
    wire!(slot = pick([(outcome.valid, outcome.slot), (start.valid, start.slot)], wake.slot));
    let x = active.read(slot);

    // What comes into the list: taken or those that start, and rest.
    let runs = m.lit(0u32, 1);
    let depth = depth_after(outcome.call, outcome.ret, x.depth);
    let Side { mask, pc } = outcome.taken;
    let taken = Path { valid: outcome.valid & mask.any(), depth, pc, mask, waits: outcome.kind.eq(OutcomeKind::Wait) };
    let Side { mask, pc } = outcome.rest;
    let rest = Path { valid: outcome.valid & mask.any(), depth: x.depth, pc, mask, waits: runs };
    let begun = Path { valid: starts, depth: depth.literal(0u32), pc: start.pc, mask: start.mask, waits: runs };
    let first = starts.mux(begun, taken.as_built(s));

    // What stays in it.
    let mut paths = lists.read(slot);
    for (k, path) in (0..).zip(&mut paths) {
        let goes = starts | (outcome.valid & x.entry.bit(k));
        *path = Path { valid: path.valid & !goes, waits: path.waits & !wakes, ..*path };
    }
    let (paths, first_meets) = add(paths, first);
    let (paths, rest_meets) = add(paths, rest);
    lists.write(updates, slot, paths.clone());

    // Which runs, and where it may reconverge with others.
    let chosen = least(&paths);
    let Path { valid: any, depth, pc, mask, waits } = chosen.path;
    active.write(updates, slot, Active { entry: chosen.entry, depth, mask });
    stops.write(updates, slot, stop_of(chosen, &paths));
    let at = slot.decode(s.warps);
    live.next_if(updates, (live.q & !at) | at.only_if(any));
    let waiting = waiting.map_or(m.lit(0u32, s.warps), |waiting| {
        waiting.next_if(updates, (waiting.q & !at) | at.only_if(any & waits));
        waiting.q
    });
    wire!(replay = rest.valid & outcome.kind.eq(OutcomeKind::Memory) & mask.eq(rest.mask));
    let steer = Steer { valid: updates & any & !waits, slot, pc, replay };

    // Checks.
    let ghost_live = m.memory("ghost_live", s.lanes, s.warp_bits());
    let stay = outcome.taken.mask | outcome.rest.mask;
    let threads = starts.mux(start.mask, ghost_live.read(slot) & !(x.mask & !stay).only_if(outcome.valid));
    ghost_live.write(outcome.valid | starts, slot, threads);
    assume_legal(m, s, &i, (live.q, waiting), x.mask, (starts, wakes));
    let masks = || paths.iter().map(|path| path.mask.only_if(path.valid));
    let union = masks().reduce(|a, b| a | b).expect("a lane");
    let parity = masks().reduce(|a, b| a ^ b).expect("a lane");
    m.assert("every_live_thread_is_in_one_path", !updates | (union.eq(threads) & parity.eq(threads)));
    let deepest = x.depth.all() & outcome.call & outcome.taken.mask.any();
    m.assert("call_depth_does_not_overflow", !(outcome.valid & deepest));
    m.cover("warp_ends", updates & !any);
    m.cover("replays", steer.valid & replay);
    m.cover("start_waits", start.valid & !start_ready);
    if s.barriers {
        m.cover("all_wait", updates & any & waits);
    }
    if s.lanes > 1 {
        m.cover("sides_meet", outcome.valid & rest_meets & rest.meets(first));
        m.cover("taken_meets_another", first_meets);
        m.cover("path_ends_and_others_go_on", outcome.valid & !stay.any() & any);
    }

    wire!(put_off = (start.valid | (wake.valid & wake_possible)) & !start_ready);
    let (hold, _) = hold(m, outcome.valid, |_| put_off);
    m.probe("updates", updates);
    m.probe("slot", slot);
    let valid = cat(&paths.iter().map(|path| path.valid).collect::<Vec<_>>());
    let events = Events {
        merges: cat(&[first_meets, rest_meets]).count_ones(),
        paths: valid.count_ones().zext(s.lane_bits() + 1).only_if(outcome.valid),
        ..Events::none(m, s)
    };
    UnitOut {
        start_ready,
        wake_ready,
        live: live.q,
        waiting,
        stop: stops.read(i.decode_slot),
        mask: active.read(i.issue_slot).mask,
        steer,
        hold,
        more: MoreOut::NONE,
        events,
    }
}

/// The paths with one more, and whether it met another. There is an entry for it: no thread is in two paths.
fn add(paths: Vec<Path<Signal>>, new: Path<Signal>) -> (Vec<Path<Signal>>, Signal) {
    let meets: Vec<Signal> = paths.iter().map(|path| path.meets(new)).collect();
    wire!(met = cat(&meets).any());
    let free = cat(&paths.iter().map(|path| !path.valid).collect::<Vec<_>>()).lowest_one();
    let entry = |((k, path), meets): ((u32, Path<Signal>), Signal)| {
        let longer = Path { mask: path.mask | new.mask.only_if(meets), ..path };
        (new.valid & !met & free.bit(k)).mux(new, longer)
    };
    ((0..).zip(paths).zip(meets).map(entry).collect(), met)
}

/// The first of the paths.
fn least(paths: &[Path<Signal>]) -> Choice<Signal> {
    let lanes = paths.len() as u32;
    let one = |k: u32| paths[0].mask.literal(1u64 << k);
    let mut choices: Vec<_> = (0..lanes).map(|k| Choice { entry: one(k), path: paths[k as usize] }).collect();
    while choices.len() > 1 {
        let first = |pair: &[Choice<Signal>]| pair[0].path.order().lt(pair[1].path.order()).mux(pair[0], pair[1]);
        choices = choices.chunks(2).map(first).collect();
    }
    choices[0]
}

/// The least pc of the other paths at its depth that can run.
fn stop_of(chosen: Choice<Signal>, paths: &[Path<Signal>]) -> Stop<Signal> {
    let stop = |(k, path): (u32, &Path<Signal>)| {
        let beside =
            path.valid & !chosen.entry.bit(k) & path.depth.eq(chosen.path.depth) & path.waits.eq(chosen.path.waits);
        Stop { valid: beside, pc: path.pc }
    };
    let nearer = |a: Stop<Signal>, b: Stop<Signal>| (!b.valid | (a.valid & a.pc.lt(b.pc))).mux(a, b);
    (0..).zip(paths).map(stop).reduce(nearer).expect("a lane")
}

#[cfg(test)]
mod tests;
