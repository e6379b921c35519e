//! Figure 7's trace, the four hazards of §3.2 and what else may happen to a pending write, bit by bit; then random
//! paths of random warps against a model that knows which threads await which registers.

use super::*;
use crate::pipeline::testing::packed;
use crate::scoreboard::testing::Needs;
use heddle_sim::Sim;

type Shown = Sim<DualScoreboardIn<Width>, RowOut<Signal>>;

const L: usize = LEFT as usize;
const R: usize = RIGHT as usize;

/// The scoreboard with its bits at the ports.
fn shown(s: &Shape) -> Shown {
    let mut t = Sim::new(
        &module("dual_scoreboard", DualScoreboardIn::shape(s), |m, i| described(m, s, i, &row_shown(s)))
            .check()
            .unwrap(),
    );
    t.reset();
    t
}

fn pending(p: Option<(u32, usize, u32)>) -> SidePending<Bits> {
    let (warp, side, rd) = p.unwrap_or((0, R, 5));
    SidePending { valid: p.is_some().into(), warp: warp.into(), side: (side as u32).into(), rd: rd.into() }
}

fn release(p: Option<(u32, usize, u32)>) -> Release<Bits> {
    let (warp, side, rd) = p.unwrap_or((0, R, 5));
    let slots = u128::from(p.is_some()) << (2 * warp + side as u32);
    Release { slots: slots.into(), registers: (1u64 << rd).into() }
}

fn change(warp: Option<u32>) -> PathsChange<Bits> {
    PathsChange { valid: warp.is_some().into(), warp: warp.unwrap_or(0).into() }
}

/// `rd <- [sources]`
fn needs(rd: Option<u32>, sources: &[u32]) -> Needs {
    let source = |k: usize| sources.get(k).copied();
    Needs { rs1: source(0), rs2: source(1), rd }
}

/// Of each side, the heads of all warps.
fn bits(heads: &[[Needs; 2]]) -> [Bits; 2] {
    [L, R].map(|side| packed(&heads.iter().map(|heads| heads[side].registers()).collect::<Vec<_>>()))
}

/// One warp, an event after the other.
struct Trace {
    t: Shown,
}

/// What happens in a cycle.
#[derive(Clone, Copy, Default)]
struct Cycle {
    issue: Option<(usize, u32)>,
    early: Option<(usize, u32)>,
    late: Option<(usize, u32)>,
    push: bool,
    pop: bool,
}

impl Trace {
    fn new() -> Trace {
        Trace { t: shown(&Shape::new(2, 1)) }
    }

    fn cycle(&mut self, c: Cycle, heads: [Needs; 2]) -> RowOut<Bits> {
        let of = |p: Option<(usize, u32)>| p.map(|(side, rd)| (0, side, rd));
        self.t.poke(DualScoreboardIn {
            heads: bits(&[heads]),
            issue: pending(of(c.issue)),
            early: release(of(c.early)),
            late: release(of(c.late)),
            push: change(c.push.then_some(0)),
            pop: change(c.pop.then_some(0)),
        });
        let out = self.t.peek();
        self.t.step();
        out
    }

    /// Whether an instruction could issue on a side; a cycle in which nothing happens.
    fn clear(&mut self, side: usize, head: Needs) -> bool {
        self.cycle(Cycle::default(), [head; 2]).clear[side] == 1
    }

    /// It issues on a side, for which it must be clear.
    fn issue(&mut self, side: usize, head: Needs) {
        assert!(self.clear(side, head), "{head:?} waits");
        self.cycle(Cycle { issue: head.rd.map(|rd| (side, rd)), ..Cycle::default() }, [head; 2]);
    }

    fn push(&mut self) {
        self.cycle(Cycle { push: true, ..Cycle::default() }, [needs(None, &[]); 2]);
    }

    fn pop(&mut self) {
        self.cycle(Cycle { pop: true, ..Cycle::default() }, [needs(None, &[]); 2]);
    }

    fn write_back(&mut self, side: usize, rd: u32) {
        self.cycle(Cycle { late: Some((side, rd)), ..Cycle::default() }, [needs(None, &[]); 2]);
    }

    /// The registers with P and with S, left and right.
    fn holds(&mut self, expected: [[&[u32]; 2]; 2]) {
        let out = self.cycle(Cycle::default(), [needs(None, &[]); 2]);
        let set = |registers: &[u32]| registers.iter().fold(0u64, |bits, r| bits | 1 << r);
        let [[left, left_shadow], [right, right_shadow]] = expected.map(|side| side.map(set));
        assert_eq!(out.pending.map(|p| p.low_u64()), [left, right], "P");
        assert_eq!(out.shadow.map(|p| p.low_u64()), [left_shadow, right_shadow], "S");
        assert_eq!(out.quiet == 1, left | right == 0);
    }
}

/// The code of Figure 6, as Figure 7 runs it: A; B beside C; D beside E; F; G. Two bits of each register after every
/// step.
#[test]
fn figure_7() {
    let add = |rd, a, b| needs(Some(rd), &[a, b]);
    let load = |rd| needs(Some(rd), &[]);
    let mut t = Trace::new();
    // (a) Path A loads r0 on the left; the branch to B and C copies P to S.
    t.issue(L, load(0));
    t.holds([[&[0], &[]], [&[], &[]]]);
    t.push();
    t.holds([[&[0], &[0]], [&[], &[]]]);
    // (b) Path C, on the right, sees the write from before the divergence; B goes on.
    assert!(!t.clear(R, add(5, 0, 2)));
    t.issue(L, load(1));
    t.holds([[&[0, 1], &[0]], [&[], &[]]]);
    assert!(!t.clear(R, add(5, 0, 2)));
    // (c) A's load clears both bits; C goes on, and diverges; B's load gets its shadow.
    t.write_back(L, 0);
    t.holds([[&[1], &[]], [&[], &[]]]);
    t.issue(R, add(5, 0, 2));
    t.holds([[&[1], &[]], [&[5], &[]]]);
    t.write_back(R, 5);
    t.push();
    t.holds([[&[1], &[1]], [&[], &[]]]);
    // D, on the left, and E both wait for r1, which is not theirs: the conservative part.
    assert!(!t.clear(L, add(4, 1, 3)));
    assert!(!t.clear(R, add(4, 1, 3)));
    t.write_back(L, 1);
    t.holds([[&[], &[]], [&[], &[]]]);
    // r4 is each path's own.
    t.issue(L, add(4, 1, 3));
    t.issue(R, add(4, 1, 3));
    t.holds([[&[4], &[]], [&[4], &[]]]);
    t.write_back(R, 4);
    t.holds([[&[4], &[]], [&[], &[]]]);
    t.write_back(L, 4);
    t.pop();
    // (d) F loads r7 on the right; when B and F have reconverged, G sees it on the left.
    t.issue(R, load(7));
    t.holds([[&[], &[]], [&[7], &[]]]);
    t.pop();
    t.holds([[&[], &[]], [&[7], &[7]]]);
    assert!(!t.clear(L, add(8, 1, 7)));
    t.write_back(R, 7);
    t.issue(L, add(8, 1, 7));
    t.holds([[&[8], &[]], [&[], &[]]]);
    t.write_back(L, 8);
    t.holds([[&[], &[]], [&[], &[]]]);
}

/// §3.2, 1: a write from before a divergence is seen on both sides, and so is its end.
#[test]
fn hazard_1_writes_before_a_divergence() {
    for side in [L, R] {
        let mut t = Trace::new();
        t.issue(side, needs(Some(9), &[]));
        t.push();
        for reader in [L, R] {
            assert!(!t.clear(reader, needs(None, &[9])));
            assert!(!t.clear(reader, needs(None, &[1, 9])));
            assert!(!t.clear(reader, needs(Some(9), &[])), "writes in order");
            assert!(t.clear(reader, needs(Some(8), &[7, 6])));
        }
        t.write_back(side, 9);
        for reader in [L, R] {
            assert!(t.clear(reader, needs(Some(9), &[9, 9])));
        }
    }
}

/// §3.2, 2: a write from before a reconvergence is seen on the side that goes on, whichever that is.
#[test]
fn hazard_2_writes_before_a_reconvergence() {
    for (writer, reader) in [(L, L), (L, R), (R, L), (R, R)] {
        let mut t = Trace::new();
        t.push();
        t.issue(writer, needs(Some(9), &[]));
        t.pop();
        assert!(!t.clear(reader, needs(None, &[9])));
        t.write_back(writer, 9);
        assert!(t.clear(reader, needs(None, &[9])));
    }
}

/// §3.2, 3: a write past the divergence is not the other path's; only the next push or pop takes it for one.
#[test]
fn hazard_3_writes_past_a_divergence() {
    for (writer, other) in [(L, R), (R, L)] {
        let mut t = Trace::new();
        t.push();
        t.issue(writer, needs(Some(9), &[]));
        assert!(t.clear(other, needs(Some(9), &[9])));
        assert!(!t.clear(writer, needs(None, &[9])));
        t.push();
        assert!(!t.clear(other, needs(None, &[9])));
        t.write_back(writer, 9);
        assert!(t.clear(other, needs(None, &[9])));
    }
}

/// §3.2, 4: writes of one register on both sides at once are not confused: each ends its own.
#[test]
fn hazard_4_one_register_on_both_sides() {
    for (first, second) in [(L, R), (R, L)] {
        let mut t = Trace::new();
        t.push();
        t.issue(L, needs(Some(9), &[]));
        t.issue(R, needs(Some(9), &[]));
        t.write_back(first, 9);
        assert!(t.clear(first, needs(None, &[9])));
        assert!(!t.clear(second, needs(None, &[9])));
        t.pop();
        assert!(!t.clear(first, needs(None, &[9])), "from here the registers are one thread's");
        t.write_back(second, 9);
        assert!(t.clear(first, needs(None, &[9])) && t.clear(second, needs(None, &[9])));
    }
}

/// A copy over shadow bits that are set keeps them, because their P is set: however often the stack changes, the write
/// is awaited on both sides, and its one release ends that.
#[test]
fn later_copies_lose_nothing() {
    let mut t = Trace::new();
    t.issue(L, needs(Some(3), &[]));
    t.push();
    t.issue(R, needs(Some(4), &[]));
    for copies in 0..6 {
        if copies % 2 == 0 {
            t.push()
        } else {
            t.pop()
        }
        t.holds([[&[3], &[3]], [&[4], &[4]]]);
    }
    for side in [L, R] {
        assert!(!t.clear(side, needs(None, &[3])) && !t.clear(side, needs(None, &[4])));
    }
    t.write_back(L, 3);
    t.holds([[&[], &[]], [&[4], &[4]]]);
    t.write_back(R, 4);
    t.holds([[&[], &[]], [&[], &[]]]);
}

/// What issues in the cycle of a push is copied; what is released in it is not; what issues again as its last write
/// ends is pending.
#[test]
fn all_at_once() {
    let mut t = Trace::new();
    t.issue(L, needs(Some(1), &[]));
    t.issue(L, needs(Some(2), &[]));
    t.issue(L, needs(Some(3), &[]));
    let c = Cycle { issue: Some((R, 4)), early: Some((L, 1)), late: Some((L, 2)), push: true, pop: false };
    t.cycle(c, [needs(None, &[]); 2]);
    t.holds([[&[3], &[3]], [&[4], &[4]]]);
    t.cycle(Cycle { issue: Some((L, 3)), early: Some((L, 3)), ..Cycle::default() }, [needs(None, &[]); 2]);
    t.holds([[&[3], &[]], [&[4], &[4]]]);
    t.cycle(Cycle { issue: Some((L, 3)), late: Some((L, 3)), pop: true, ..Cycle::default() }, [needs(None, &[]); 2]);
    t.holds([[&[3], &[3]], [&[4], &[4]]]);
}

/// Its limit: a path that diverges again and again, and has a load under way at each pop, holds the other one back
/// where that uses the same register number, as long as it does so and no longer.
#[test]
fn a_path_that_keeps_diverging_holds_the_other_back() {
    let mut t = Trace::new();
    let other = needs(Some(6), &[9]);
    t.push();
    for _ in 0..20 {
        t.push();
        t.pop();
        t.issue(R, needs(Some(9), &[]));
        assert!(t.clear(L, other), "not for what is the other's own");
        t.push();
        t.pop();
        assert!(!t.clear(L, other));
        t.write_back(R, 9);
    }
    assert!(t.clear(L, other));
}

/// A write under way.
#[derive(Clone, Debug)]
struct Write {
    warp: u32,
    side: usize,
    rd: u32,
    /// The threads that get it.
    threads: u64,
    /// The warp's paths have changed since it issued.
    before: bool,
}

/// The paths of a warp as a dual-path stack has them: the top entry last, a mask per side; nobody in a mask means that
/// it is done.
#[derive(Clone, Debug, Default)]
struct Warp {
    stack: Vec<[u64; 2]>,
}

impl Warp {
    fn top(&self) -> [u64; 2] {
        self.stack.last().copied().unwrap_or_default()
    }

    /// Threads end.
    fn end(&mut self, threads: u64) {
        for entry in &mut self.stack {
            *entry = entry.map(|mask| mask & !threads);
        }
    }

    /// Any change that is no push and no pop: a path ends or arrives. Then a push or a pop, if there is cause.
    fn run(&mut self, r: &mut fastrand::Rng) -> Change {
        let side = r.usize(..2);
        let mask = self.top()[side];
        match r.u32(..16) {
            0 if mask != 0 => self.end(mask & (r.u64(..) | r.u64(..))),
            1..4 if mask != 0 && self.stack.len() > 1 => self.stack.last_mut().unwrap()[side] = 0,
            4..7 if mask != 0 && self.stack.len() < 8 => {
                let taken = mask & r.u64(..);
                self.stack.push(if r.bool() { [taken, mask & !taken] } else { [mask & !taken, taken] });
                return Change::Push;
            }
            _ if self.top() == [0, 0] && self.stack.len() > 1 => {
                self.stack.pop();
                return Change::Pop;
            }
            _ => {}
        }
        Change::None
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Change {
    None,
    Push,
    Pop,
}

/// Paths diverge, reconverge and end at random; writes end in any order. No thread ever reads or writes a register that
/// a write of its own is under way to; nobody waits but for a write on its side, or one on the other from before the
/// last push or pop; and when all writes have ended, nobody waits.
#[test]
fn random_paths() {
    for (lanes, warps, seed) in [(1, 1, 1), (4, 1, 2), (2, 2, 3), (64, 4, 4), (8, 8, 5), (4, 64, 6)] {
        println!("{lanes} × {warps}, seed {seed}");
        let s = Shape::new(lanes, warps);
        let mut r = fastrand::Rng::with_seed(seed);
        let mut t = Sim::new(&dual_scoreboard(&s).check().unwrap());
        t.reset();
        let everyone = u64::MAX >> (64 - lanes);
        let mut model = vec![Warp::default(); warps as usize];
        let mut writes: Vec<Write> = vec![];
        let (mut waited, mut passed, mut drained) = (0, 0, 0);
        for cycle in 0..if warps == 64 { 2000 } else { 8000 } {
            let drains = cycle % 400 >= 300;
            let heads: Vec<[Needs; 2]> = (0..warps).map(|_| [(); 2].map(|_| Needs::random(&mut r))).collect();
            let used = |n: &Needs, register: u32| n.names(register);

            // One warp in a few does something; that is one push and one pop at most.
            let mut after = model.clone();
            let (mut push, mut pop) = (None, None);
            for w in 0..warps {
                let warp = &mut after[w as usize];
                let idle = writes.iter().all(|write| write.warp != w);
                if warp.top() == [0, 0] && warp.stack.len() <= 1 && idle && !drains {
                    warp.stack = vec![if r.bool() { [everyone, 0] } else { [0, everyone] }];
                } else if r.u32(..warps) < 2 {
                    let mut next = warp.clone();
                    let slot = match next.run(&mut r) {
                        Change::None => None,
                        Change::Push => Some(&mut push),
                        Change::Pop => Some(&mut pop),
                    };
                    if slot.as_ref().is_none_or(|slot| slot.is_none()) {
                        *warp = next;
                        slot.into_iter().for_each(|slot| *slot = Some(w));
                    }
                }
            }

            // The last of some writes end: the fixed one early, the other late.
            let mut order: Vec<usize> = (0..writes.len()).collect();
            r.shuffle(&mut order);
            let odds = if drains { 4 } else { 2 };
            let mut ends = |odds: u8| if r.u8(..4) < odds { order.pop() } else { None };
            let (early, late) = (ends(odds), ends(odds / 2));

            // A head that is clear issues; or a replay, for more threads of a write under way.
            let (w, side) = (r.u32(..warps), r.usize(..2));
            let mask = model[w as usize].top()[side];
            let head = heads[w as usize][side];
            let holds_back =
                |write: &Write, w: u32, side: usize| write.warp == w && (write.side == side || write.before);
            let ports = |issue: Option<(u32, usize, u32)>| DualScoreboardIn {
                heads: bits(&heads),
                issue: pending(issue),
                early: release(early.map(|k| (writes[k].warp, writes[k].side, writes[k].rd))),
                late: release(late.map(|k| (writes[k].warp, writes[k].side, writes[k].rd))),
                push: change(push),
                pop: change(pop),
            };
            let waits = writes.iter().any(|write| holds_back(write, w, side) && used(&head, write.rd));
            let replayed = writes.iter().position(|write| (write.warp, write.side) == (w, side));
            let issue = if drains || mask == 0 {
                None
            } else if head.rd.is_some() && !waits {
                head.rd
            } else {
                replayed.filter(|_| r.u8(..8) == 0).map(|k| writes[k].rd)
            };
            t.poke(ports(issue.map(|rd| (w, side, rd))));
            let out = t.peek();
            for w in 0..warps {
                let quiet = writes.iter().all(|write| write.warp != w);
                assert_eq!(out.quiet.bit(w), quiet, "cycle {cycle}, warp {w}");
            }
            let mut k = 0;
            writes.retain(|_| {
                k += 1;
                ![early, late].contains(&Some(k - 1))
            });
            if let Some(rd) = issue {
                match writes.iter_mut().find(|write| (write.warp, write.side, write.rd) == (w, side, rd)) {
                    Some(write) => write.threads |= mask,
                    None => writes.push(Write { warp: w, side, rd, threads: mask, before: false }),
                }
            }
            for changed in [push, pop].into_iter().flatten() {
                writes.iter_mut().filter(|write| write.warp == changed).for_each(|write| write.before = true);
            }
            model = after;

            // A head is looked up for the next cycle.
            for w in 0..warps {
                let own: Vec<&Write> = writes.iter().filter(|write| write.warp == w).collect();
                for side in [L, R] {
                    let n = &heads[w as usize][side];
                    let mask = model[w as usize].top()[side];
                    let theirs = own.iter().any(|write| write.threads & mask != 0 && used(n, write.rd));
                    let waits = own.iter().any(|write| holds_back(write, w, side) && used(n, write.rd));
                    let clear = out.clear[side].bit(w);
                    assert!(!(clear && theirs), "cycle {cycle}: {n:?} of {mask:#x} goes before one of {own:?}");
                    assert_eq!(clear, !waits, "cycle {cycle}, warp {w}, side {side}: {n:?}, {own:?}");
                    let waits = own.iter().any(|write| write.side == side && used(n, write.rd));
                    if let Some(own_clear) = &out.own_clear {
                        assert_eq!(own_clear[side].bit(w), !waits, "cycle {cycle}, warp {w}, side {side}, its own");
                    }
                    waited += u32::from(theirs);
                    passed += u32::from(clear && own.iter().any(|write| used(n, write.rd)));
                }
            }
            drained += u32::from(drains && writes.is_empty());
            t.step();
        }
        println!("{waited} waits, {passed} passes, {drained} cycles drained");
        assert!(waited > 100 && drained > 100 && (lanes == 1 || passed > 100));
        // Of 64 warps, each has too little time for all of these.
        if warps == 64 {
            continue;
        }
        let directory = t.simulation().directory().clone();
        for cover in ["copies_again", "copies_what_issues", "waits_for_a_shadow_only", "waits_for_its_own_only"] {
            for side in ["left", "right"] {
                let is = |path: &str| path.ends_with(&format!("{side}_{cover}"));
                let rows = directory.properties.iter().enumerate().filter(|(_, property)| is(&property.path));
                let hits: u64 = rows.map(|(k, _)| t.simulation().engine().cover_hits(k)).sum();
                assert!(hits > 0, "{side}_{cover}");
            }
        }
    }
}
