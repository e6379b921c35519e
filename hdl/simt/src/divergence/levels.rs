//! What the levels of a stack of reconvergence points hold, and how a branch makes one and a pop takes one: the logic
//! of [`super::stack`] and [`super::block_stack`], which keep the memories. The stack's page says what it is for.
//!
//! Everything here is of one group of threads, `lanes` of the shape: a warp, or a block seen as one wide warp.

use super::inspect::Path;
use super::{Outcome, Stop};
use crate::reconvergence::Reconvergence;
use crate::shape::Shape;
use heddle_hdl::prelude::*;
use heddle_hdl::select_one_hot;

/// Where threads reconverge.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Rpc<T> {
    /// 1 bit: nowhere, if it is 0.
    pub valid: T,
    /// 1 bit: where the function returns to, at one depth less. `known`: `pc` is right; it is not before the first
    /// return.
    pub returns: T,
    pub known: T,
    #[width(s.pc_bits())]
    pub pc: T,
    /// Call depth of the branch.
    #[width(s.depth_bits)]
    pub depth: T,
}

/// Where threads probably meet before their rpc, at the rpc's call depth.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Likely<T> {
    /// 1 bit: nowhere, if it is 0.
    pub valid: T,
    #[width(s.pc_bits())]
    pub pc: T,
    /// The level that gathers them.
    #[width(index_width(levels(s)))]
    pub level: T,
}

/// What runs.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Top<T> {
    #[width(s.pc_bits())]
    pub pc: T,
    #[width(s.depth_bits)]
    pub depth: T,
    #[width(s.lanes)]
    pub mask: T,
    pub rpc: Rpc<T>,
    /// With [`Shape::likely`].
    #[when(has_likely(s))]
    pub likely: Option<Likely<T>>,
}

/// What a branch has left. At least one of the three is valid.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Level<T> {
    pub sibling: Sibling<T>,
    pub group: Group<T>,
    /// With [`Shape::likely`].
    #[when(has_likely(s))]
    pub likely: Option<Gathering<T>>,
}

/// The side that has not run; its rpc is the top's.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Sibling<T> {
    pub valid: T,
    #[width(s.pc_bits())]
    pub pc: T,
    #[width(s.depth_bits)]
    pub depth: T,
    #[width(s.lanes)]
    pub mask: T,
}

/// Those that meet at the top's rpc, and where they go on to reconverge with others.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Group<T> {
    pub valid: T,
    #[width(s.lanes)]
    pub mask: T,
    pub rpc: Rpc<T>,
}

/// Those that have come to the likely-convergence point which the top has while this level is the uppermost; there are
/// some when the sibling has run.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Gathering<T> {
    /// 1 bit.
    pub valid: T,
    /// The point, if any, of the threads that the level parted. It is of a group outside of this level's, if that has
    /// one.
    pub outer: Likely<T>,
}

/// What a pop makes of the threads above a level.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Pop<T> {
    /// The new top; none of its threads is left.
    pub top: Top<T>,
    pub nobody: T,
    /// The likely point outside of the level.
    pub outer: Likely<T>,
    pub to_sibling: T,
    pub to_point: T,
    /// Out of the level's group.
    pub to_outer: T,
    /// Something is left of the level, and what.
    pub stays: T,
    pub left: Level<T>,
    /// The new top is at its rpc, too.
    pub arrives_again: T,
}

/// What an outcome does to the top's threads.
#[derive(Clone, Copy)]
pub struct Parting {
    /// 1 bit each: the threads go to two places, which are still to be left before they meet.
    pub parts: Signal,
    pub both_stay: Signal,
    /// The branch's threads reconverge where the top's do.
    pub same_group: Signal,
    /// A side is where the threads of the branch meet.
    pub taken_is_there: Signal,
    pub rest_is_there: Signal,
    /// Where they reconverge.
    pub meeting: Rpc<Signal>,
    /// There should be one more level, and there is none.
    pub full: Signal,
    /// The level that is pushed.
    pub pushes: Signal,
    pub pushed: Level<Signal>,
    /// It gathers those at a likely point.
    pub gathers: Signal,
    /// The likely point that the sides have, if any.
    pub towards: Likely<Signal>,
    /// The rest is at that point, and so goes first.
    pub rest_first: Signal,
    /// The side that goes on, if the threads do not diverge, is where the top's threads reconverge.
    pub is_at_tops: Signal,
    /// The side that goes on, and whether it is the taken one; its mask is right if the threads diverge. And all
    /// threads that are left.
    pub goes_as_taken: Signal,
    pub side: Sibling<Signal>,
    pub stay: Signal,
}

impl Rpc<Signal> {
    /// Where the threads of a branch at this depth meet.
    pub fn of_branch(meets: Reconvergence<Signal>, depth: Signal) -> Rpc<Signal> {
        let Reconvergence { rpc: pc, returns, .. } = meets;
        Rpc { valid: returns.literal(1u32), returns, known: !returns, pc, depth }
    }

    /// Whether the threads of a branch at this depth meet here, too.
    pub fn is_of(self, meets: Reconvergence<Signal>, depth: Signal) -> Signal {
        let same_pc = !self.returns & !meets.returns & self.pc.eq(meets.rpc);
        self.valid & self.depth.eq(depth) & (self.returns & meets.returns | same_pc)
    }

    /// Whether threads at this pc and depth have reached it.
    pub fn reached(self, pc: Signal, depth: Signal) -> Signal {
        let level = self.returns.mux(depth + 1, depth).eq(self.depth);
        self.valid & level & (!self.known | pc.eq(self.pc))
    }

    /// The same, now that threads at `pc` have reached it.
    pub fn found(self, reached: Signal, pc: Signal) -> Rpc<Signal> {
        Rpc { known: self.known | reached, pc: (reached & !self.known).mux(pc, self.pc), ..self }
    }

    /// The same, in the time of one comparison.
    pub fn reached_early(self, pc: Signal, depth: Signal) -> Signal {
        self.valid & is_deeper(depth, self.returns, self.depth) & (!self.known | pc.eq(self.pc))
    }

    /// As [`found`](Rpc::found), with a pc that does not wait for `reached`: while the place is not known, its pc means
    /// nothing, so it is `pc` all the time.
    pub fn found_early(self, reached: Signal, pc: Signal) -> Rpc<Signal> {
        Rpc { known: self.known | reached, pc: self.known.mux(self.pc, pc), ..self }
    }

    /// Whether threads at this depth come to it by going on.
    pub fn is_ahead(self, depth: Signal) -> Signal {
        self.valid & self.known & self.returns.mux(depth + 1, depth).eq(self.depth)
    }
}

/// Of pcs with a condition each, 1 bit, the one whose condition holds. Which one that is may come last: no pc waits for a
/// condition. At most one of them holds; if none does, 0.
pub fn pc_of(choices: &[(Signal, Signal)]) -> Signal {
    let (which, pcs): (Vec<_>, Vec<_>) = choices.iter().copied().unzip();
    select_one_hot(&pcs, cat(&which))
}

/// Whether `depth`, or one more if `by_one`, is `other`: without a carry, bit by bit. If the sum is `other`, a bit hands
/// a carry on exactly if it was on and is off.
pub fn is_deeper(depth: Signal, by_one: Signal, other: Signal) -> Signal {
    let width = depth.width();
    let handed_on = depth & !other;
    let carries = if width > 1 { cat(&[by_one, handed_on.slice(0, width - 1)]) } else { by_one };
    (depth ^ other).eq(carries)
}

/// The sides of an outcome of threads that reconverge with others at `own`, 1 bit each: whether they are there.
pub fn at_own(outcome: &Outcome<Signal>, (taken_depth, depth): (Signal, Signal), own: Rpc<Signal>) -> [Signal; 2] {
    [own.reached_early(outcome.taken.pc, taken_depth), own.reached_early(outcome.rest.pc, depth)]
}

/// Whether they are where the threads of the branch meet, in the time of one comparison. If that is at `own`
/// (`same_group`), it has the branch's pc, too; where the function returns to, only `own` can be known.
pub fn at_branchs(
    outcome: &Outcome<Signal>,
    meets: Reconvergence<Signal>,
    (taken_depth, depth): (Signal, Signal),
    own: Rpc<Signal>,
    same_group: Signal,
) -> [Signal; 2] {
    let not_elsewhere = !(same_group & own.known) | outcome.taken.pc.eq(own.pc);
    let at_pc = meets.returns.mux(not_elsewhere, outcome.taken.pc.eq(meets.rpc));
    [at_pc & is_deeper(taken_depth, meets.returns, depth), !meets.returns & outcome.rest.pc.eq(meets.rpc)]
}

/// Where those meet who go on or, if they part and are no longer of one group, the threads of the branch. `found`: they
/// are there.
pub fn meeting(
    meets: Reconvergence<Signal>,
    depth: Signal,
    own: Rpc<Signal>,
    of_branch: Signal,
    (found, pc): (Signal, Signal),
) -> Rpc<Signal> {
    let branchs = Rpc::of_branch(meets, depth).found_early(found, pc);
    of_branch.mux(branchs, own.found_early(found, pc))
}

impl Likely<Signal> {
    /// The point, if `keeps`; else none.
    pub fn only_if(self, keeps: Signal) -> Likely<Signal> {
        Likely { valid: self.valid & keeps, ..self }
    }
}

/// The threads of a warp on a stack, as they are found in its state from the top down: each in the first place that
/// claims it.
pub struct Found {
    /// The threads that have no place yet.
    left: u64,
    lanes: u32,
    paths: Vec<Path>,
}

impl Found {
    /// None of these threads, of a warp with so many lanes.
    pub fn new(threads: &Bits, lanes: u32) -> Found {
        Found { left: threads.low_u64(), lanes, paths: Vec::new() }
    }

    /// Those of the mask at this pc and depth, if any are left.
    pub fn add(&mut self, place: &str, (pc, depth): (u64, u64), mask: u64, waits: bool) {
        let mask = mask & self.left;
        self.left &= !mask;
        if mask != 0 {
            let mask = Bits::from(mask).to_bitvec(self.lanes);
            self.paths.push(Path { place: place.into(), depth, pc: 4 * pc as u32, mask, waits });
        }
    }

    /// A side, if there is one.
    pub fn add_sibling(&mut self, place: &str, sibling: &Sibling<Bits>, waits: bool) {
        if sibling.valid == 1 {
            self.add(place, (sibling.pc.low_u64(), sibling.depth.low_u64()), sibling.mask.low_u64(), waits);
        }
    }

    /// All paths; threads that have no place yet have come to `rpc`.
    pub fn rest_at(mut self, rpc: &Rpc<Bits>) -> Vec<Path> {
        self.add("met", rpc.place(), u64::MAX, false);
        self.paths
    }
}

impl Rpc<Bits> {
    /// Pc and depth; in a function that no thread has returned from, nobody has come there.
    pub fn place(&self) -> (u64, u64) {
        (self.pc.low_u64(), self.depth.low_u64().saturating_sub(self.returns.low_u64()))
    }
}

/// Levels of a warp.
pub fn levels(s: &Shape) -> u32 {
    s.levels.unwrap_or(s.lanes - 1).min(s.lanes - 1)
}

/// Whether there are branches that part, and likely points for them.
pub fn has_likely(s: &Shape) -> bool {
    s.likely && s.lanes > 1
}

/// What pcs and depths say of the sides of a branch, if it parts the top's threads.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Compared<T> {
    /// They are two places.
    pub apart: T,
    /// The branch's threads reconverge where the top's do.
    pub same_group: T,
    /// A side is where the branch's threads reconverge.
    pub taken_is_there: T,
    pub rest_is_there: T,
    /// A side is where the top's threads do.
    pub taken_is_at_tops: T,
    pub rest_is_at_tops: T,
    /// With [`Shape::likely`]: the branch makes a likely point.
    #[when(has_likely(s))]
    pub gathers: Option<T>,
    /// The side that does not take the branch is at the one that the sides have, and so goes first.
    #[when(has_likely(s))]
    pub rest_first: Option<T>,
}

/// What would become of the sides of a branch if it parted the top's threads.
#[derive(Clone, Copy)]
pub struct Sides {
    /// Where they reconverge.
    pub meeting: Rpc<Signal>,
    /// The branch makes a likely point; and the one that the sides have, if any, whose level is not known.
    pub gathers: Signal,
    pub towards: Likely<Signal>,
    /// The side that goes first: it is at the likely point, or it is the taken one, if that is not there.
    pub rest_first: Signal,
    pub taken_first: Signal,
}

/// Compares the sides of an outcome of the top's threads, whose taken threads have this call depth afterwards.
pub fn compare(
    m: Builder,
    s: &Shape,
    outcome: &Outcome<Signal>,
    taken_depth: Signal,
    top: &Top<Signal>,
) -> Compared<Signal> {
    let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads reconverge") };
    let (taken, rest) = (outcome.taken, outcome.rest);
    let same_group = top.rpc.is_of(meets, top.depth);
    let of_branch = Rpc::of_branch(meets, top.depth);
    // Each side is compared with both places, before it is known which of them counts.
    let there = |rpc: Rpc<Signal>| [rpc.reached(taken.pc, taken_depth), rpc.reached(rest.pc, top.depth)];
    let (at_tops, at_branchs) = (there(top.rpc), there(of_branch));
    let [taken_is_there, rest_is_there] = [0, 1].map(|side| same_group.mux(at_tops[side], at_branchs[side]));
    let [taken_is_at_tops, rest_is_at_tops] = at_tops;
    let both_stay = !taken_is_there & !rest_is_there;
    let at_point = has_likely(s).then(|| {
        let point = top.likely.unwrap_or(m.zero(Likely::shape(s)));
        let same_point = same_group & point.valid & point.pc.eq(meets.likely_pc);
        let gathers = both_stay & meets.likely & !same_point;
        let towards = towards(meets, point, gathers, same_group);
        (gathers, both_stay & towards.valid & rest.pc.eq(towards.pc))
    });
    let (gathers, rest_first) = at_point.unzip();
    wire!(apart = taken.pc.ne(rest.pc) | taken_depth.ne(top.depth));
    Compared {
        apart,
        same_group,
        taken_is_there,
        rest_is_there,
        taken_is_at_tops,
        rest_is_at_tops,
        gathers,
        rest_first,
    }
}

/// The likely point of a branch's sides: its own, if it `gathers`; else the top's, if that is of their group.
fn towards(meets: Reconvergence<Signal>, point: Likely<Signal>, gathers: Signal, same_group: Signal) -> Likely<Signal> {
    let told = Likely { valid: gathers.literal(1u32), pc: meets.likely_pc, level: point.level.literal(0u32) };
    gathers.mux(told, point.only_if(same_group))
}

/// The sides of a branch, of which so much is known.
pub fn sides(
    m: Builder,
    s: &Shape,
    meets: Reconvergence<Signal>,
    top: &Top<Signal>,
    compared: Compared<Signal>,
) -> Sides {
    let Compared { same_group, taken_is_there, .. } = compared;
    let [gathers, rest_first] = [compared.gathers, compared.rest_first].map(|bit| bit.unwrap_or(m.lit(0u32, 1)));
    Sides {
        meeting: same_group.mux(top.rpc, Rpc::of_branch(meets, top.depth)),
        gathers,
        towards: towards(meets, top.likely.unwrap_or(m.zero(Likely::shape(s))), gathers, same_group),
        rest_first,
        taken_first: !taken_is_there & !rest_first,
    }
}

/// What an outcome of the top's threads does, with `count` levels below; `taken_depth` is the call depth of those that
/// take the branch.
pub fn part(
    m: Builder,
    s: &Shape,
    outcome: &Outcome<Signal>,
    taken_depth: Signal,
    top: Top<Signal>,
    count: Signal,
) -> Parting {
    part_compared(m, s, outcome, taken_depth, top, count, compare(m, s, outcome, taken_depth, &top))
}

/// The same of an outcome whose sides have been compared before.
pub fn part_compared(
    m: Builder,
    s: &Shape,
    outcome: &Outcome<Signal>,
    taken_depth: Signal,
    top: Top<Signal>,
    count: Signal,
    compared: Compared<Signal>,
) -> Parting {
    let Some(meets) = outcome.meets else { unreachable!("a stack is told where threads reconverge") };
    let (taken, rest) = (outcome.taken, outcome.rest);
    wire!(parts = outcome.valid & taken.mask.any() & rest.mask.any() & compared.apart);
    let never = m.lit(0u32, 1);
    let if_parted = sides(m, s, meets, &top, compared);
    wire!(same_group = compared.same_group);
    let meeting = parts.mux(if_parted.meeting, top.rpc).named("meeting");
    wire!(taken_is_there = parts & compared.taken_is_there);
    wire!(rest_is_there = parts & compared.rest_is_there);
    wire!(both_stay = parts & !taken_is_there & !rest_is_there);

    // A side that is at the likely point goes there first.
    wire!(leaves = parts & (!same_group | both_stay));
    let full = if levels(s) < s.lanes - 1 { leaves & count.eq(levels(s)) } else { never };
    wire!(pushes = leaves & !full);
    wire!(gathers = pushes & if_parted.gathers);
    let point = top.likely.unwrap_or(m.zero(Likely::shape(s)));
    let here = count.slice(0, index_width(levels(s)));
    let level = gathers.mux(here, point.level);
    let towards = parts.mux(Likely { level, ..if_parted.towards }, point);
    wire!(rest_first = parts & if_parted.rest_first);
    wire!(goes_as_taken = taken.mask.any() & (!parts | if_parted.taken_first));
    let went = Sibling { valid: both_stay, pc: taken.pc, depth: taken_depth, mask: taken.mask };
    let stayed = Sibling { valid: both_stay, pc: rest.pc, depth: top.depth, mask: rest.mask };
    let side = goes_as_taken.mux(went, stayed);
    wire!(is_at_tops = taken.mask.any().mux(compared.taken_is_at_tops, compared.rest_is_at_tops));
    wire!(stay = taken.mask | rest.mask);
    let group = Group { valid: !same_group, mask: stay, rpc: top.rpc };
    let likely = top.likely.map(|outer| Gathering { valid: gathers, outer });
    let pushed = Level { sibling: rest_first.mux(went, stayed), group, likely };

    m.assert("a_push_has_room", !pushes | count.lt(levels(s)));
    let deepest = top.depth.all() & outcome.call & taken.mask.any();
    m.assert("call_depth_does_not_overflow", !(outcome.valid & deepest));
    m.assert("sides_that_are_there_are_one", !(taken_is_there & rest_is_there));
    if levels(s) < s.lanes - 1 {
        m.cover("no_level_is_left", full);
    }
    m.cover("same_group", parts & same_group);
    m.cover("same_group_without_a_push", parts & same_group & !pushes);
    m.cover("one_side_is_there", taken_is_there | rest_is_there);
    m.cover("sides_go_to_one_place", outcome.valid & taken.mask.any() & rest.mask.any() & !compared.apart);
    if has_likely(s) {
        m.cover("gathers", gathers);
        m.cover("same_point", both_stay & meets.likely & !if_parted.gathers);
        m.cover("the_rest_is_at_the_point", rest_first);
    }
    Parting {
        parts,
        both_stay,
        same_group,
        taken_is_there,
        rest_is_there,
        meeting,
        full,
        pushes,
        pushed,
        gathers,
        towards,
        rest_first,
        is_at_tops,
        goes_as_taken,
        side,
        stay,
    }
}

/// What becomes of the level `head` when nobody of the top is left above it: its sibling runs, else those at the likely
/// point, else the group. If nobody is at the likely point when the sibling goes, the sibling has none to meet there.
/// `gathered` are those at the point, `live` all threads that have not ended; `pops` says whether it is.
pub fn pop(
    m: Builder,
    s: &Shape,
    top: Top<Signal>,
    head: Level<Signal>,
    gathered: Signal,
    live: Signal,
    pops: Signal,
) -> Pop<Signal> {
    let (sibling, group) = (head.sibling, head.group);
    let never = m.lit(0u32, 1);
    let depth = top.rpc.depth;
    let nowhere = m.zero(Likely::shape(s));
    let point = top.likely.unwrap_or(nowhere);
    let Gathering { valid: gathering, outer } = head.likely.unwrap_or(Gathering { valid: never, outer: nowhere });
    wire!(some_gathered = gathering & gathered.any());
    wire!(to_sibling = sibling.valid);
    wire!(to_point = !to_sibling & gathering);
    wire!(of_group = group.mask & live);
    wire!(to_outer = !to_sibling & (!gathering | (group.valid & gathered.eq(of_group))));
    wire!(group_stays = group.valid & !to_outer);
    wire!(gathering_stays = to_sibling & some_gathered);
    wire!(stays = group_stays | gathering_stays);
    let likely = head.likely.map(|gathering| Gathering { valid: gathering_stays, ..gathering });
    let left = Level { sibling: Sibling { valid: never, ..sibling }, likely, ..head };

    let group_depth = top.rpc.returns.mux(depth - 1, depth);
    let others = Sibling { pc: top.rpc.pc, depth: group_depth, mask: of_group, ..sibling };
    let likely_ones = Sibling { pc: point.pc, depth, mask: gathered, ..sibling };
    let Sibling { pc, depth, mask, .. } = pick([(to_sibling, sibling), (to_point, likely_ones)], others);
    wire!(arrives_again = to_outer & group.rpc.reached(pc, depth));
    let rpc = to_outer.mux(group.rpc.found(arrives_again, pc), top.rpc);
    let keeps = to_sibling & (!gathering | some_gathered);
    let likely = head.likely.map(|_| keeps.mux(point, outer.only_if(!group_stays)));

    // None of a sibling ends before it is the top, and somebody is at a point when its sibling has gone.
    wire!(nobody = !to_sibling & !to_point & !of_group.any());

    m.assert("none_of_the_top_is_left", !pops | nobody.eq(!mask.any()));
    m.assert("a_level_has_something", !pops | to_sibling | to_point | group.valid);
    m.assert("a_group_meets_somewhere", !(pops & to_outer & !to_point & mask.any()) | top.rpc.known);
    m.cover("pops_a_sibling", pops & to_sibling);
    m.cover("pops_a_group", pops & to_outer & !to_point);
    m.cover("part_of_a_group_has_ended", pops & !to_sibling & (group.mask & !live).any());
    m.cover("a_whole_group_has_ended", pops & to_outer & !mask.any());
    if head.likely.is_some() {
        m.assert("those_at_a_point_are_some", !(pops & to_point) | mask.any());
        m.cover("pops_those_at_a_point", pops & to_point & !to_outer);
        m.cover("all_are_at_the_point", pops & to_point & to_outer & group.valid);
        m.cover("nobody_is_at_the_point", pops & to_sibling & gathering & !stays);
    }
    let top = Top { pc, depth, mask, rpc, likely };
    Pop { top, nobody, outer, to_sibling, to_point, to_outer, stays, left, arrives_again }
}

/// Whether threads at this place have come to the likely point of the top that they are.
pub fn is_at_point(top: &Top<Signal>) -> Option<Signal> {
    top.likely.map(|point| point.valid & top.pc.eq(point.pc) & top.depth.eq(top.rpc.depth))
}

/// Where a top comes to by going on: its rpc, or before it the likely point.
pub fn stop_of(top: Top<Signal>) -> Stop<Signal> {
    let Top { pc, depth, rpc, .. } = top;
    let meets = rpc.is_ahead(depth);
    top.likely.map_or(Stop { valid: meets, pc: rpc.pc }, |likely| {
        let may_join = likely.valid & depth.eq(rpc.depth) & pc.lt(likely.pc);
        let first = may_join & !(meets & pc.lt(rpc.pc) & rpc.pc.lt(likely.pc));
        Stop { valid: meets | may_join, pc: first.mux(likely.pc, rpc.pc) }
    })
}
