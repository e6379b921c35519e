//! The block-stack divergence unit: thread block compaction. All warps of a block share a stack of reconvergence points; where its
//! threads part, they form new warps.
//!
//! `thread-block-compaction.txt` §3. A *dynamic warp* is what a slot runs: threads of any of the block's static warps, each in its own
//! lane. All dynamic warps of a block run between the same two places: from where they were formed to the next branch
//! that may part them, or to where threads meet. There each *arrives*, and waits for the others.
//!
//! ```text
//!  outcome ─► goes on alone (no branch that parts) ─► steer
//!     │
//!     └─► arrives: its threads join the block's two targets, in any order of warps
//!                       │ when the last warp of the block has arrived, and no register awaits a write
//!                       ▼
//!               the stack: push, pop ─► what runs next: pc, threads ─► compactor ─► a warp a cycle: slot, threads ─► steer
//!                 (super::levels)                                    (compactor.rs)
//! ```
//!
//! * A branch that the side table calls uniform is no place to wait, unless [`Compaction::Always`]. A warp whose threads part there all
//!   the same waits for the others. If they are at another branch, the table was wrong: the core stops with a fault.
//! * Each thread that arrives is put on its side at once. So the stack sees one branch of the whole block, as [`super::stack`] sees one
//!   of a warp; sides without threads are never pushed.
//! * A `jalr` that may part is served for the target of the first warp's first thread ([`MixedOut::jump`]).
//! * At a barrier all live threads of the block must arrive. If some of them are in the stack, they never come: a fault.
//! * When threads are formed anew, no register of any warp of the block awaits a write; so no instruction reads a register that another
//!   dynamic warp still owes, and a slot's homes stay while a write of it is under way.
//! * An entry with all live threads of the block, and any with [`Compaction::Off`], has the static warps.
//!
//! The paper's warp count is a bit a slot here, `running`: the count is 0 when none is on. It holds the two targets of a branch
//! as the block's two uppermost entries; here they become entries when the last warp has arrived.
//!
//! With [`Compaction::Predict`] some of the warps that arrive go on at once, [`ahead`] of their block.
//!
//! Each of [`Shape::levels`] is a branch that parted the block's threads. A program that needs more stops with a fault.
//!
//! Masks of a block have a bit a thread of the core, `lanes` groups of `warps` bits: those of a lane are side by side. Blocks that are
//! resident together share the words of masks, each has the bits of its own warps.

pub mod ahead;
pub mod capt;
pub mod compactor;

use super::inspect::{Parked, Path, State};
use super::levels::{
    Gathering, Group, Level, Likely, Parting, Pop, Rpc, Sibling, Top, has_likely, is_at_point, levels, part, pop,
    stop_of,
};
use super::{
    Announced, Capabilities, Culprit, Events, Jump, Mechanism, MixedIn, MixedOut, MoreOut, Outcome, Refused, Side,
    Steer, Stop, UnitIn, UnitOut, assume_announced, assume_legal, depth_after, hold, kind,
};
use crate::arbiter::{places_above, round_robin};
use crate::block::{same_group, whole_group};
use crate::isa::cause;
use crate::proof::Proof;
use crate::reconvergence::Reconvergence;
use crate::shape::{Compaction, Shape};
use ahead::{Ahead, Arriving, Branch, Others, Turn};
use compactor::{CompactorIn, compactor};
use heddle_hdl::prelude::*;
use heddle_hdl::{Errors, elements};
use std::ops::Range;

/// What a slot runs.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Warp<T> {
    mask: T,
    /// The static warp of each lane.
    homes: Option<T>,
}

/// Where the first warp of a block has arrived, and so all.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct Place<T> {
    /// One of [`place`].
    #[width(place::BITS)]
    kind: T,
    /// The pc of the instruction, or for what is no branch, behind it.
    #[width(s.pc_bits())]
    pc: T,
    #[width(s.depth_bits)]
    depth: T,
    /// Of a branch or jump.
    jump: T,
    call: T,
    ret: T,
    #[width(s.pc_bits())]
    target: T,
    meets: Reconvergence<T>,
}

/// The kinds of places where warps arrive.
mod place {
    pub const BITS: u32 = 2;
    /// A branch or jump.
    pub const BRANCH: u32 = 0;
    /// The rpc of the top.
    pub const RPC: u32 = 1;
    /// Its likely-convergence point.
    pub const POINT: u32 = 2;
    pub const BARRIER: u32 = 3;
}

/// What the stack does for a block.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Step<T> {
    valid: T,
    /// The block's lowest slot.
    block: T,
    /// All have arrived; else the uppermost level is popped.
    arrived: T,
    /// The words of the block are there, and the level that is popped.
    read: T,
}

/// What the memories say of a slot and its block, read when an outcome of it was announced.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct OfSlot<T> {
    #[width(Warp { mask: s.lanes, homes: s.homes_bits() })]
    warp: Warp<T>,
    #[width(s.depth_bits)]
    depth: T,
    /// The depth of those that take the branch.
    #[width(s.depth_bits)]
    after: T,
    #[width(Ends::shape(s))]
    ends: Ends<T>,
    #[width(Place::shape(s))]
    first: Place<T>,
}

/// What they say of the block that the stack does something for, read in the cycle before.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct OfBlock<T> {
    #[width(count_width(levels(&as_one_warp(s))))]
    count: T,
    #[width(Place::shape(s))]
    place: Place<T>,
    #[width(Ends::shape(s))]
    ends: Ends<T>,
}

/// Threads that are being formed into warps.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Formed<T> {
    valid: T,
    /// As they are in static warps.
    fixed: T,
    /// The block's lowest slot.
    block: T,
    /// Those that are left.
    top: Top<T>,
}

/// A block's threads, where they meet: the part of a [`Top`] that is kept while warps run.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Ends<T> {
    rpc: Rpc<T>,
    likely: Option<Likely<T>>,
}

impl Ends<Width> {
    fn shape(s: &Shape) -> Ends<Width> {
        let Top { rpc, likely, .. } = Top::shape(&as_one_warp(s));
        Ends { rpc, likely }
    }
}

/// A [`Level`] without its masks.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Held<T> {
    sibling: T,
    pc: T,
    depth: T,
    group: T,
    rpc: Rpc<T>,
    likely: Option<Gathering<T>>,
    /// The branch, where it is [predicted](ahead).
    branch: Option<Branch<T>>,
}

impl Held<Width> {
    fn shape(s: &Shape) -> Held<Width> {
        let Level { sibling, group, likely } = Level::shape(s);
        let branch = s.predicts().then(|| Branch::shape(s));
        Held { sibling: 1, pc: sibling.pc, depth: sibling.depth, group: 1, rpc: group.rpc, likely, branch }
    }
}

impl Held<Signal> {
    fn of(level: Level<Signal>, branch: Option<Branch<Signal>>) -> Held<Signal> {
        let Level { sibling, group, likely } = level;
        let (pc, depth) = (sibling.pc, sibling.depth);
        Held { sibling: sibling.valid, pc, depth, group: group.valid, rpc: group.rpc, likely, branch }
    }

    fn with(self, sibling: Signal, group: Signal) -> Level<Signal> {
        Level {
            sibling: Sibling { valid: self.sibling, pc: self.pc, depth: self.depth, mask: sibling },
            group: Group { valid: self.group, mask: group, rpc: self.rpc },
            likely: self.likely,
        }
    }
}

/// The shape whose one warp has the threads of all blocks: what [`super::levels`] sees.
fn as_one_warp(s: &Shape) -> Shape {
    Shape { lanes: s.threads(), levels: Some(block_levels(s)), ..s.clone() }
}

/// Levels of a block's stack.
pub fn block_levels(s: &Shape) -> u32 {
    s.levels.unwrap_or(DEFAULT_LEVELS).min(s.threads() - 1)
}

/// Levels of a block's stack, unless said otherwise. The paper's programs need 14 entries at most, but for one with 38 (Table 3);
/// ours, one with 69.
pub const DEFAULT_LEVELS: u32 = 128;

/// The mechanism: a stack a block.
pub struct BlockStack;

impl Mechanism for BlockStack {
    fn name(&self) -> &'static str {
        "block-stack"
    }

    fn number(&self) -> u8 {
        4
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            reconverges: true,
            likely_points: true,
            mixes_warps: true,
            splits: false,
            announced: true,
            ..Capabilities::NONE
        }
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        block_stack(s)
    }

    fn proofs(&self) -> Result<Vec<Proof>, Errors> {
        proofs::proofs()
    }

    /// Threads of several warps run together.
    fn paths(&self, _: &Shape, _: &State, _: u32) -> Vec<Path> {
        Vec::new()
    }

    /// Threads that wait at a barrier, and those that have not run since a branch parted them.
    fn parked(&self, s: &Shape, state: &State, block: Range<u32>) -> Vec<Parked> {
        let first = u64::from(block.start);
        // A lane's warps are side by side.
        let of_warp = |warp| (0..s.lanes).map(move |lane| (lane * s.warps + warp, warp * s.lanes + lane));
        let parked = |mask: Bits, waits: bool, pc: &Bits| {
            let pc = 4 * pc.low_u64() as u32;
            let threads = block.clone().flat_map(of_warp).filter(|(bit, _)| mask.bit(*bit));
            threads.map(|(_, thread)| Parked { thread, waits, pc }).collect::<Vec<_>>()
        };
        let mut found = Vec::new();
        let first_arrived = state.word(Place::shape(s), "places", first);
        if state.register(s.warps, "recorded").bit(block.start) && first_arrived.kind == u64::from(place::BARRIER) {
            found.extend(parked(state.register(s.threads(), "taken"), true, &first_arrived.pc));
        }
        if s.threads() > 1 {
            let most = block_levels(s);
            let count = state.word(count_width(most), "counts", first).low_u64().min(most.into());
            for level in 0..count {
                let held = state.word(Held::shape(&as_one_warp(s)), "levels", first << index_width(most) | level);
                if held.sibling == 1 {
                    found.extend(parked(state.word(s.threads(), "siblings", level), false, &held.pc));
                }
            }
        }
        found
    }

    fn live_threads(&self, s: &Shape, state: &State) -> u32 {
        state.register(s.threads(), "live_threads").count_ones()
    }
}

/// The block-stack unit of a shape.
pub fn block_stack(s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
    module("block_stack", UnitIn::shape(s), |m, i| described(m, s, i).0)
}

/// The state, for proofs.
struct Inside {
    warps: Mem<Warp<Width>>,
    depths: Mem<Width>,
    places: Mem<Place<Width>>,
    ends: Mem<Ends<Width>>,
    of_slot: OfSlot<Signal>,
    counts: Mem<Width>,
    running: Signal,
    recorded: Signal,
    /// One bit a slot: its warp is ahead.
    ahead: Signal,
    /// One bit a thread: it has arrived; it is being formed into a warp.
    arrived: Signal,
    forming: Signal,
    /// Words of masks of levels: siblings, groups, and those at likely points.
    levels: Vec<Mem<Width>>,
}

fn described(m: Builder, s: &Shape, i: UnitIn<Signal>) -> (UnitOut<Signal>, Inside) {
    m.doc("Divergence unit: a stack of reconvergence points a block, whose threads form new warps where they part.");
    let wide = as_one_warp(s);
    let UnitIn { start, outcome, .. } = i;
    let Some(of_block) = i.mixed else { unreachable!("a unit for blocks is told of them") };
    let (slot_bits, threads) = (s.warp_bits(), s.threads());
    let MixedIn { group, filling, quiet, .. } = of_block;
    let (never, one, nobody) = (m.lit(0u32, 1), m.lit(1u32, 1), m.lit(0u32, threads));
    let block_of = |slot: Signal| slot & !group;
    let spread = |mask: Signal, homes: Option<Signal>, slot: Signal| {
        let warps = homes.map_or(vec![slot; s.lanes as usize], |homes| elements(homes, slot_bits));
        let lanes = (0..).zip(warps).map(|(lane, warp)| warp.decode(s.warps).only_if(mask.bit(lane)));
        cat(&lanes.collect::<Vec<_>>())
    };
    let bit = |slot: Signal, on: Signal| slot.decode(s.warps).only_if(on);
    let by_warp = |threads: Signal| elements(threads, s.warps).into_iter().reduce(|a, b| a | b).expect("a lane");

    // Of slots.
    let distributed = |name: &str, width: Width| m.memory(name, width, slot_bits).style(MemoryStyle::Distributed);
    let warp_shape = Warp { mask: s.lanes, homes: s.homes_bits() };
    let warps = m.memory("warps", warp_shape, slot_bits).style(MemoryStyle::Distributed);
    let depths = distributed("depths", s.depth_bits);
    let stops = m.memory("stops", Stop { valid: 1, pc: s.pc_bits() }, slot_bits).style(MemoryStyle::Distributed);
    let running = m.reg("running", s.warps).reset(0u32);
    let arrived = m.reg("arrived", s.warps).reset(0u32);
    // Of blocks.
    let live = m.reg("live_threads", threads).reset(0u32);
    let taken = m.reg("taken", threads).reset(0u32);
    let rest = m.reg("rest", threads).reset(0u32);
    let recorded = m.reg("recorded", s.warps).reset(0u32);
    let places = m.memory("places", Place::shape(s), slot_bits).style(MemoryStyle::Distributed);
    let ends = m.memory("ends", Ends::shape(s), slot_bits).style(MemoryStyle::Distributed);
    let step = m.reg("step", Step { valid: 1, block: slot_bits, arrived: 1, read: 1 }).reset_zero();
    let ahead = s.predicts().then(|| Ahead::new(m, s, &wide));
    let formed = m.reg("formed", Formed { valid: 1, fixed: 1, block: slot_bits, top: Top::shape(&wide) }).reset_zero();

    // Whose turn it is: an outcome's; else that of the next warp that is formed; else a start's.
    wire!(forms = formed.q.valid & !outcome.valid);
    wire!(start_ready = !outcome.valid & !formed.q.valid & !step.q.valid);
    wire!(starts = start.valid & start_ready);

    // An outcome: the warp goes on alone, or arrives.
    let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads meet") };
    let is = |kind: u32| outcome.valid & outcome.kind.eq(kind);
    wire!(block = block_of(outcome.slot));
    let next_of_slot = m.reg("of_slot", OfSlot::shape(s));
    let of_slot = next_of_slot.q;
    let OfSlot { warp, depth, after: taken_depth, ends: before, first } = of_slot;
    let all_go = outcome.taken.mask.any();
    wire!(splits = all_go & outcome.rest.mask.any());
    wire!(jumps = is(kind::JUMP));
    wire!(branches = is(kind::BRANCH));
    wire!(may_part = !meets.uniform | splits | (branches & m.lit(s.compaction == Compaction::Always, 1)));
    wire!(parts = (branches | jumps) & may_part);
    wire!(parting_branch = branches & parts);
    wire!(moves = ((branches | jumps) & !may_part) | is(kind::ARRIVED));
    let gone = Side { mask: taken_depth, pc: outcome.taken.pc };
    let stayed = Side { mask: depth, pc: outcome.rest.pc };
    let Side { mask: to_depth, pc: to } = all_go.mux(gone, stayed);
    wire!(is_first = !recorded.q.select(block, 1));
    let found = !is_first & first.kind.eq(place::RPC);
    let rpc = before.rpc.found(found, first.pc);
    wire!(meets_here = moves & rpc.reached(to, to_depth));
    let would_be = Top { pc: to, depth: to_depth, mask: warp.mask, rpc, likely: before.likely };
    wire!(at_point = moves & !meets_here & is_at_point(&would_be).unwrap_or(never));
    wire!(goes_on = moves & !meets_here & !at_point);
    wire!(waits = is(kind::WAIT));
    wire!(exits = is(kind::EXIT));
    wire!(arrives = outcome.valid & !goes_on);

    // Or it arrives, and goes ahead.
    let top_here = Top { depth, ..would_be };
    let arriving =
        Arriving { outcome: &outcome, taken_depth, top: top_here, parting: parting_branch, splits, block, is_first };
    let going = ahead.as_ref().map(|ahead| ahead.goes(m, &arriving));
    wire!(goes_ahead = going.map_or(never, |going| going.goes));
    let code = |kind: u32| m.lit(kind, place::BITS);
    let here = Place {
        kind: pick(
            [(meets_here, code(place::RPC)), (at_point, code(place::POINT)), (waits, code(place::BARRIER))],
            code(place::BRANCH),
        ),
        pc: parts.mux(outcome.rest.pc, to),
        depth: parts.mux(depth, to_depth),
        jump: jumps & parts,
        call: outcome.call,
        ret: outcome.ret,
        target: outcome.taken.pc,
        meets,
    };
    // A jump's pc is its own, a branch's is that behind it.
    let same_kind = here.kind.eq(first.kind) & here.jump.eq(first.jump);
    let same = same_kind & here.pc.eq(first.pc) & here.depth.eq(first.depth);
    wire!(records = arrives & !exits & is_first);
    wire!(elsewhere = arrives & !exits & !is_first & !same);
    places.write(records, block, here);

    // The words of an outcome that is announced. Where the first of its block has arrived may be said just now.
    let Announced { valid: announced, slot: next_slot, call, ret } = i.announced.expect("outcomes are announced");
    wire!(next_block = block_of(next_slot));
    let next_depth = depths.read(next_slot);
    next_of_slot.next(OfSlot {
        warp: warps.read(next_slot),
        depth: next_depth,
        after: depth_after(call, ret, next_depth),
        ends: ends.read(next_block),
        first: (records & block.eq(next_block)).mux(here, places.read(next_block)),
    });

    let moved = spread(warp.mask, warp.homes, outcome.slot);
    let on_sides = |side: Side<Signal>| spread(side.mask, warp.homes, outcome.slot);
    let joins_taken = on_sides(outcome.taken).only_if(parts | waits) | moved.only_if(at_point);
    let joins_rest = on_sides(outcome.rest).only_if(parts);

    // Which block goes on: the last of its warps has arrived, and no write is under way.
    let after = m.reg("after", s.warps).reset(0u32);
    let is_ahead = ahead.as_ref().map_or(m.lit(0u32, s.warps), Ahead::slots);
    wire!(still = whole_group(((!running.q & quiet) | is_ahead) & !filling, group));
    let in_hand = |slot: Signal, valid: Signal| same_group(slot, group, s.warps).only_if(valid);
    wire!(busy = in_hand(step.q.block, step.q.valid) | in_hand(formed.q.block, formed.q.valid));
    wire!(choice = round_robin(arrived.q & still & !busy, after.q));

    // The stack. All threads of a block do one thing, or a level is popped.
    let Step { block: at, .. } = step.q;
    let free = !formed.q.valid;
    wire!(due = step.q.valid & step.q.arrived & step.q.read & free);
    wire!(pops = step.q.valid & !step.q.arrived & step.q.read & free);
    let own_slots = same_group(at, group, s.warps);
    wire!(own_columns = own_slots.repeat(s.lanes));
    let counts = distributed("counts", count_width(levels(&wide)));
    // Of the block that is chosen next, unless the words of this one are still to be read or used.
    wire!(chosen_block = block_of(choice.one_hot_index()));
    wire!(to_read = (step.q.valid & !step.q.read).mux(at, chosen_block));
    let count_now = counts.read(to_read);
    let of_block_now = OfBlock { count: count_now, place: places.read(to_read), ends: ends.read(to_read) };
    let next_of_block = m.reg("of_block", OfBlock::shape(s));
    let OfBlock { count, place: told, ends: kept } = next_of_block.q;
    wire!(all_taken = taken.q & own_columns);
    wire!(all_rest = rest.q & own_columns);
    wire!(all_live = live.q & own_columns);
    let is_recorded = recorded.q.select(at, 1);
    wire!(part_waits = due & is_recorded & told.kind.eq(place::BARRIER) & all_taken.ne(all_live));
    let keeps = step.q.valid & step.q.read & (!free | part_waits);
    next_of_block.next_if(!keeps, of_block_now);
    wire!(begins = due & !part_waits);
    wire!(together = is_recorded & begins);
    let of_kind = |kind: u32| together & told.kind.eq(kind);
    wire!(branch = of_kind(place::BRANCH));
    wire!(barrier = of_kind(place::BARRIER));
    wire!(met = of_kind(place::RPC));
    wire!(point = of_kind(place::POINT));
    let whole = Outcome {
        valid: branch | barrier,
        slot: at,
        kind: told.jump.mux(m.lit(kind::JUMP, kind::BITS), m.lit(kind::BRANCH, kind::BITS)),
        taken: Side { mask: all_taken.only_if(branch | barrier), pc: barrier.mux(told.pc, told.target) },
        rest: Side { mask: all_rest.only_if(branch), pc: told.pc },
        call: told.call & branch,
        ret: told.ret & branch,
        meets: Some(told.meets),
        homes: None,
    };
    let rpc = kept.rpc.found(met, told.pc);
    let top = Top { pc: told.pc, depth: told.depth, mask: all_taken | all_rest, rpc, likely: kept.likely };
    wire!(depth_of_taken = depth_after(whole.call, whole.ret, top.depth));
    let parting = part(m, &wide, &whole, depth_of_taken, top, count);
    let Parting { parts: apart, meeting, taken_is_there, full, pushes, pushed, gathers, towards, side, stay, .. } =
        parting;
    let branch_of = |taken: Signal| ahead.as_ref().map(|ahead| ahead.branch(at, told.pc, taken));
    wire!(at_rpc = whole.valid & !apart & parting.is_at_tops);
    let reached = meeting.found(at_rpc | taken_is_there, taken_is_there.mux(whole.taken.pc, side.pc));
    let next = Top {
        pc: side.pc,
        depth: side.depth,
        mask: apart.mux(side.mask, stay),
        rpc: reached,
        likely: top.likely.map(|_| point.mux(kept.likely.unwrap_or(towards), towards)),
    };

    // Memories of levels: what is a block's own, and the words of masks, which blocks share.
    let index_bits = index_width(levels(&wide));
    let entry = |level: Signal| {
        let level = level.slice(0, index_bits);
        if s.warps > 1 { cat(&[level, at]) } else { level }
    };
    let mut words = Vec::new();
    let (popped, left_of_it) = if threads > 1 {
        let held = m.memory("levels", Held::shape(&wide), index_bits + s.warps.ilog2());
        let masks = |name| m.memory(name, threads, index_bits).style(MemoryStyle::Distributed);
        let (siblings, groups) = (masks("siblings"), masks("groups"));
        let gathered = has_likely(&wide).then(|| masks("gathered"));
        let (below, above) = ((count - 1).slice(0, index_bits), count.slice(0, index_bits));
        let own = |masks: &Mem<Width>, level: Signal| masks.read(level) & own_columns;
        let put = |masks: &Mem<Width>, enable: Signal, level: Signal, mask: Signal| {
            masks.write(enable, level, (masks.read(level) & !own_columns) | (mask & own_columns));
        };
        let read = held.read_sync_if(step.q.valid & !step.q.read, entry(count_now - 1), Collision::Never);
        let head = read.with(own(&siblings, below), own(&groups, below));
        let at_point = gathered.as_ref().map_or(nobody, |gathered| own(gathered, below));
        let popped = pop(m, &wide, top, head, at_point, all_live, pops);
        put(&siblings, pushes, above, pushed.sibling.mask);
        put(&groups, pushes, above, pushed.group.mask);
        let pushed = Held::of(pushed, branch_of(!parting.goes_as_taken));
        let held_next = pushes.mux(pushed, Held::of(popped.left, read.branch));
        held.write(pushes | (pops & popped.stays), entry(pushes.mux(count, count - 1)), held_next);

        let comes = pops.mux(popped.top, next);
        let comes_to_point = is_at_point(&comes).unwrap_or(never);
        let joins = point | (((whole.valid & !at_rpc) | (pops & !popped.arrives_again)) & comes_to_point);
        if let (Some(gathered), Some(now)) = (&gathered, kept.likely) {
            let level = pick([(pops, popped.outer.level), (point, now.level)], towards.level);
            let some = point.mux(all_taken, comes.mask).only_if(joins);
            put(gathered, gathers | joins, level, own(gathered, level).only_if(!gathers) | some);
            m.cover("joins_after_a_pop", pops & joins);
            m.cover("arrives_at_a_likely_point", point);
        }
        let stays = pops & popped.stays;
        m.assert("a_sibling_is_live", !(pops & popped.to_sibling) | !(head.sibling.mask & !all_live).any());
        words = [siblings, groups].into_iter().chain(gathered).collect();
        (popped, (comes, joins, stays, read.branch))
    } else {
        (m.zero(Pop::shape(&wide)), (next, never, never, None))
    };
    let (comes, joins, stays, branch_held) = left_of_it;
    wire!(joins = joins);
    let left = count + pushes.zext(count.width()) - (pops & !stays).zext(count.width());
    wire!(acts = begins | pops);
    wire!(nobody_left = !comes.mask.any());
    wire!(must_pop = (acts & (joins | nobody_left)) | at_rpc | (pops & popped.arrives_again));
    wire!(pops_next = must_pop & left.any());
    let now_ends = Ends { rpc: comes.rpc, likely: comes.likely };
    let begun = m.zero(Ends { rpc: Rpc::shape(s), likely: comes.likely.map(|_| Likely::shape(&wide)) });
    ends.write(acts | starts, acts.mux(at, block_of(start.slot)), acts.mux(now_ends, begun));
    counts.write(acts | starts, acts.mux(at, block_of(start.slot)), left.only_if(acts));
    wire!(forms_next = acts & !must_pop);

    let chosen = Step { valid: choice.any(), block: chosen_block, arrived: one, read: one };
    let pop_next = Step { valid: one, block: at, arrived: never, read: never };
    let read = Step { read: one, ..step.q };
    wire!(done = !step.q.valid | (acts & !pops_next));
    let continues = acts.mux(pop_next, (!step.q.read).mux(read, step.q));
    step.next(done.mux(chosen, continues));
    after.next_if(done & choice.any(), places_above(choice));

    // New warps, one a cycle.
    let Formed { fixed, block: of_formed, top: forming, .. } = formed.q;
    let compacted = m.instance("compactor", &compactor(s), CompactorIn { threads: forming.mask, fixed });
    wire!(last = forms & !compacted.left.any());
    // A slot whose warp has arrived since may still owe a write.
    let unused = same_group(of_formed, group, s.warps) & !running.q & !arrived.q;
    wire!(into = fixed.mux(compacted.first, unused.lowest_one().one_hot_index()));
    let again = Formed { valid: !last, top: Top { mask: compacted.left, ..forming }, ..formed.q };
    let off = m.lit(s.compaction == Compaction::Off, 1);
    let to_form = comes.mask & !ahead.as_ref().map_or(nobody, Ahead::threads);
    let static_again = comes.mask.eq(all_live) & to_form.eq(comes.mask);
    let top = Top { mask: to_form, ..comes };
    let new = Formed { valid: to_form.any(), fixed: off | static_again, block: at, top };
    formed.next_if(forms | forms_next, forms.mux(again, new));

    // What slots run.
    let at_start = Warp { mask: start.mask, homes: s.homes_bits().map(|_| start.slot.repeat(s.lanes)) };
    let compact = Warp { mask: compacted.mask, homes: compacted.homes };
    let (wide_start, lanes_of) = (m.zero(Top::shape(&wide)), |top: Top<Signal>| Top { mask: warp.mask, ..top });
    let alone = Top { rpc: before.rpc, ..would_be };
    let runs = pick(
        [(starts, lanes_of(Top { pc: start.pc, ..wide_start })), (forms, lanes_of(forming))],
        going.map_or(alone, |going| going.goes.mux(going.at, alone)),
    );
    let slot = pick([(starts, start.slot), (forms, into)], outcome.slot);
    let part_of_it = Warp { mask: going.map_or(warp.mask, |going| going.side.mask), ..warp };
    warps.write(starts | forms | goes_ahead, slot, pick([(starts, at_start), (forms, compact)], part_of_it));
    wire!(steers = starts | forms | goes_on | goes_ahead);
    depths.write(steers, slot, runs.depth);
    stops.write(steers, slot, going.map_or(stop_of(runs), |going| going.goes.mux(going.stop, stop_of(runs))));
    running.next((running.q | bit(slot, starts | forms)) & !bit(outcome.slot, arrives & !goes_ahead));
    let begun_here = own_slots.only_if(begins);
    arrived.next((arrived.q | bit(outcome.slot, arrives)) & !begun_here);
    recorded.next((recorded.q | bit(block, records)) & !begun_here);
    let clears = own_columns.only_if(begins);
    taken.next((taken.q | joins_taken) & !clears);
    rest.next((rest.q | joins_rest) & !clears);
    let begins_live = spread(start.mask, at_start.homes, start.slot).only_if(starts);
    live.next((live.q | begins_live) & !moved.only_if(exits));

    let of = branch_of(parting.goes_as_taken).zip(branch_held).map(|(new, held)| pops.mux(held, new));
    if let (Some(ahead), Some(going), Some(of)) = (ahead, going, of) {
        let turn = Turn {
            slots: own_slots,
            begins,
            branch: branch & !told.jump,
            apart,
            goes_as_taken: parting.goes_as_taken,
            pops,
            to_sibling: popped.to_sibling,
            of,
            count,
            forms: forms_next,
            threads: comes.mask,
        };
        let forming = forming.mask.only_if(formed.q.valid);
        ahead.check(m, Others { running: running.q, live: live.q, forming });
        ahead.follows(m, (&arriving, going, on_sides(going.side)), turn, of_block.restart);
    }

    // What simulations look at.
    m.probe("passes", branches | jumps);
    m.probe("passes_jump", jumps);
    m.probe("passes_parts", parts);
    m.probe("passes_arrives", arrives);
    m.probe("passes_ahead", goes_ahead);
    m.probe("passes_slot", outcome.slot);
    m.probe("passes_taken", outcome.taken.mask);
    m.probe("passes_rest", outcome.rest.mask);
    m.probe("acts", acts);
    m.probe("acts_block", at);
    m.probe("acts_count", count);
    m.probe("acts_begins", begins);
    m.probe("acts_at_branch", branch);
    m.probe("acts_apart", apart);
    m.probe("acts_as_taken", parting.goes_as_taken);
    m.probe("acts_leaves_sibling", pushes & pushed.sibling.valid);
    m.probe("acts_to_sibling", pops & popped.to_sibling);
    m.probe("acts_forms", forms_next);
    m.probe("forms", forms);

    // What the core asks.
    let issued = warps.read(i.issue_slot);
    let resolving = block_of(of_block.resolving);
    let theirs = places.read(resolving);
    // Nothing else decides whether a jump that may part arrives; so stage 8 waits for nothing else.
    wire!(just_now = jumps & parts & is_first & block.eq(resolving) & outcome.rest.pc.eq(of_block.pc));
    let known = recorded.q.select(resolving, 1) & theirs.jump & theirs.pc.eq(of_block.pc);
    let jump = Jump { valid: just_now | known, pc: just_now.mux(outcome.taken.pc, theirs.target) };

    let refuses = elsewhere | full | part_waits;
    let causes = [
        (elsewhere, m.lit(cause::NOT_UNIFORM, cause::BITS)),
        (part_waits, m.lit(cause::BARRIER_OF_A_PART, cause::BITS)),
    ];
    let cause = pick(causes, m.lit(cause::STACK_OVERFLOW, cause::BITS));
    let whose = elsewhere.mux(outcome.slot, at);
    let blamed = warps.read(whose);
    // The instruction before the place, unless that is a jump, which may be executed again.
    let pc = elsewhere.mux(outcome.rest.pc - branches.zext(s.pc_bits()), told.pc - (!told.jump).zext(s.pc_bits()));
    let because = Some(Culprit { slot: whose, pc, mask: blamed.mask, homes: blamed.homes });
    let refused = Some(Refused { valid: refuses, cause, because });

    // Checks.
    wire!(is_live = by_warp(live.q) | running.q | arrived.q);
    assume_legal(m, s, &i, (is_live, m.lit(0u32, s.warps)), warp.mask, (starts, never));
    let was_announced = (m.pipe_reset("told_ahead", announced), m.pipe("told_ahead_slot", next_slot));
    let steer = Steer { valid: steers, slot, pc: runs.pc, replay: never };
    assume_announced(m, &i, was_announced, steer);
    let goes_with_block = running.q & !is_ahead & !m.pipe_reset("was_ahead", is_ahead);
    m.assume("outcome_of_a_warp_that_runs", !outcome.valid | goes_with_block.select(outcome.slot, 1));
    m.assert("a_warp_is_formed_where_none_runs", !forms | !running.q.select(into, 1));
    m.assert("a_warp_is_formed_where_no_write_is_due", !forms | quiet.select(into, 1));
    m.assert("a_warp_is_formed_in_its_block", !forms | block_of(into).eq(of_formed));
    m.assert("formed_threads_are_live", !(forming.mask & !live.q).any() | !formed.q.valid);
    m.assert("sides_are_apart", !(taken.q & rest.q).any());
    m.assert(
        "nobody_arrives_twice",
        !(joins_taken & (taken.q | rest.q)).any() & !(joins_rest & (taken.q | rest.q)).any(),
    );
    m.assert("who_arrives_is_live", !((joins_taken | joins_rest) & !live.q).any());
    m.assert(
        "jumps_go_where_the_first_goes",
        !(arrives & jumps & parts & !is_first & all_go & same) | first.target.eq(outcome.taken.pc),
    );
    m.assert("live_threads_go_on", !(done & step.q.valid & must_pop & !left.any()) | !all_live.any());
    m.cover("goes_on_alone", goes_on & (branches | jumps));
    m.cover("meets_where_it_returns", met & kept.rpc.returns);
    m.cover("a_block_ends", acts & must_pop & !left.any());
    m.cover("pops_again", pops & pops_next);
    m.cover("arrives_while_the_stack_acts", arrives & acts);
    m.cover("waits_for_writes", (arrived.q & !still).any() & whole_group(!running.q & !filling, group).any());
    m.cover("warps_are_static_again", forms_next & new.fixed & pops);
    m.cover("jumps_with_the_first", known & is(kind::JUMP));
    if s.barriers {
        m.cover("part_of_a_block_waits", part_waits);
        m.cover("barrier", barrier);
    }
    if s.warps > 1 {
        m.cover("warps_are_mixed", forms & !fixed & compacted.mixes);
    }
    m.cover("not_uniform", elsewhere);

    wire!(put_off = formed.q.valid | (start.valid & !start_ready));
    let (hold, _) = hold(m, outcome.valid, |_| put_off);
    let events = Events { levels: left.zext(s.levels_bits()).only_if(acts), ..Events::none(m, s) };
    let inside = Inside {
        warps,
        depths,
        places,
        ends,
        of_slot,
        counts,
        running: running.q,
        recorded: recorded.q,
        ahead: is_ahead,
        arrived: taken.q | rest.q,
        forming: forming.mask.only_if(formed.q.valid),
        levels: words,
    };
    let out = UnitOut {
        start_ready,
        wake_ready: never,
        live: is_live,
        waiting: m.lit(0u32, s.warps),
        stop: stops.read(i.decode_slot),
        mask: issued.mask,
        steer,
        hold,
        more: MoreOut {
            refused,
            mixed: Some(MixedOut {
                homes: issued.homes,
                written_homes: s.homes_bits().and_then(|_| warps.read(of_block.written).homes),
                ahead: s.predicts().then_some(is_ahead),
                jump,
            }),
            ..MoreOut::NONE
        },
        events,
    };
    (out, inside)
}

pub mod proof;
pub mod proofs;
#[cfg(test)]
mod tests;
