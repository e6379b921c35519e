//! The stack from its ports: whatever it is told about reconvergence, threads are where outcomes sent them; told right,
//! they meet there.

use super::*;
use crate::divergence::testing::{P, Plan, Slot, Told, Watch, all_hit};
use crate::divergence::{Divergence, OutcomeKind};
use crate::reconvergence::{Meet, Reconvergence};
use std::collections::BTreeMap;

fn shape(lanes: u32, warps: u32) -> Shape {
    Shape { barriers: false, ..Shape::new(lanes, warps).with_divergence(Divergence::STACK) }
}

fn plan(s: &Shape) -> Plan {
    stack(s).check().unwrap()
}

/// Says of each outcome, at random, where its threads reconverge: often where one of the sides goes, or where others
/// meet.
fn told_at_random(watch: &mut Watch) {
    let r = &mut watch.pipeline.random;
    let meet = if r.u8(..4) == 0 { Meet::Return } else { Meet::At(r.u32(..14)) };
    let likely = r.bool().then(|| r.u32(..14));
    watch.pipeline.meets = Some(Reconvergence::new(meet, false, likely));
}

fn side(pc: u64, mask: u64) -> P {
    P { pc, mask, ..P::default() }
}

/// The slot runs these threads at a pc, towards a stop pc.
fn runs(watch: &mut Watch, pc: u64, mask: u64, stop: Option<u64>) {
    watch.settle(0);
    let (x, at) = watch.asked(0);
    assert_eq!((x.pc, x.mask, at), (pc, mask, stop));
}

fn tell(watch: &mut Watch, kind: OutcomeKind, taken: P, rest: P, meets: (u64, Option<u32>)) {
    watch.pipeline.meets = Some(Reconvergence::new(Meet::At(meets.0 as u32), false, meets.1));
    watch.tell(Told { kind, taken, rest, ..Told::default() });
}

/// A stack of one warp of four threads that run at 0.
fn begin(s: &Shape) -> Watch {
    let mut watch = Watch::new(&plan(s), s, 1);
    watch.pipeline.meets = Some(Reconvergence::new(Meet::At(0), false, None));
    watch.cycle(None, Some((0, side(0, 0b1111))));
    watch
}

#[test]
fn threads_are_where_outcomes_sent_them() {
    let mut covers = BTreeMap::new();
    for (k, lanes) in [1, 2, 4, 8, 64].into_iter().enumerate() {
        for (warps, likely) in [(1, false), (2, true), (2, false), (16, true), (16, false)] {
            let s = Shape { likely, ..shape(lanes, warps) };
            let mut watch = Watch::new(&plan(&s), &s, 10 * k as u64 + u64::from(warps));
            for cycle in 0..4000 {
                told_at_random(&mut watch);
                watch.random_cycle([20, 100][cycle / 64 % 2], |_, _, _, _| {});
            }
            watch.pipeline.count_covers(&mut covers);
        }
    }
    all_hit(&covers);
}

/// `thread-block-compaction.txt` §2.2.2: `if (a) { if (b) B; else C; D } else E; F`. D and F are where threads
/// reconverge.
#[test]
fn nested_branches() {
    let (a, b, c, d, e, f) = (0, 10, 20, 30, 40, 50);
    let none = P::default();
    let mut watch = begin(&shape(4, 1));
    runs(&mut watch, a, 0b1111, None);
    tell(&mut watch, OutcomeKind::Branch, side(b, 0b0111), side(e, 0b1000), (f, None));
    runs(&mut watch, b, 0b0111, Some(f));
    tell(&mut watch, OutcomeKind::Branch, side(c, 0b0001), side(b + 1, 0b0110), (d, None));
    runs(&mut watch, c, 0b0001, Some(d));
    tell(&mut watch, OutcomeKind::Arrived, side(d, 0b0001), none, (0, None));
    runs(&mut watch, b + 1, 0b0110, Some(d));
    tell(&mut watch, OutcomeKind::Jump, side(d, 0b0110), none, (0, None));
    runs(&mut watch, d, 0b0111, Some(f));
    tell(&mut watch, OutcomeKind::Jump, side(f, 0b0111), none, (0, None));
    runs(&mut watch, e, 0b1000, Some(f));
    tell(&mut watch, OutcomeKind::Arrived, side(f, 0b1000), none, (0, None));
    runs(&mut watch, f, 0b1111, None);
    tell(&mut watch, OutcomeKind::Exit, none, none, (0, None));
    watch.settle(0);
    assert_eq!(watch.pipeline.slots[0], Slot::Idle);
}

/// `thread-block-compaction.txt` §4, Example 2 and Figure 10: `while (A) { if (A) B; else if (C) break (D); E } F`.
/// Threads 0 and 1 meet at E, long before F, where 2 and 3 wait.
#[test]
fn likely_points() {
    let (b, c, d, e, f) = (10, 20, 30, 40, 50);
    let none = P::default();
    let told = (f, Some(e as u32));
    let mut watch = begin(&Shape { likely: true, ..shape(4, 1) });
    tell(&mut watch, OutcomeKind::Branch, side(c, 0b1110), side(b, 0b0001), told);
    runs(&mut watch, c, 0b1110, Some(e));
    tell(&mut watch, OutcomeKind::Branch, side(d, 0b1100), side(e, 0b0010), told);
    runs(&mut watch, d, 0b1100, Some(e));
    tell(&mut watch, OutcomeKind::Jump, side(f, 0b1100), none, told);
    runs(&mut watch, b, 0b0001, Some(e));
    tell(&mut watch, OutcomeKind::Arrived, side(e, 0b0001), none, told);
    runs(&mut watch, e, 0b0011, Some(f));
    tell(&mut watch, OutcomeKind::Jump, side(0, 0b0011), none, told);
    runs(&mut watch, 0, 0b0011, Some(f));
    // Once more: this time, both come to E, and thread 0 leaves at C after that.
    tell(&mut watch, OutcomeKind::Branch, side(c, 0b0010), side(b, 0b0001), told);
    runs(&mut watch, c, 0b0010, Some(e));
    tell(&mut watch, OutcomeKind::Branch, none, side(e, 0b0010), told);
    runs(&mut watch, b, 0b0001, Some(e));
    tell(&mut watch, OutcomeKind::Jump, side(e, 0b0001), none, told);
    runs(&mut watch, e, 0b0011, Some(f));
    tell(&mut watch, OutcomeKind::Branch, side(0, 0b0001), side(f, 0b0010), told);
    runs(&mut watch, 0, 0b0001, Some(f));
    tell(&mut watch, OutcomeKind::Branch, side(f, 0b0001), none, told);
    runs(&mut watch, f, 0b1111, None);
}

/// When all threads of a group have come to the likely point, nobody is left to be waited for at the group's rpc.
#[test]
fn all_threads_at_a_likely_point() {
    let (b, c, e, f) = (10, 20, 40, 50);
    let mut watch = begin(&Shape { likely: true, ..shape(4, 1) });
    tell(&mut watch, OutcomeKind::Branch, side(c, 0b1110), side(b, 0b0001), (f, Some(e as u32)));
    tell(&mut watch, OutcomeKind::Arrived, side(e, 0b1110), P::default(), (0, None));
    runs(&mut watch, b, 0b0001, Some(e));
    tell(&mut watch, OutcomeKind::Arrived, side(e, 0b0001), P::default(), (0, None));
    runs(&mut watch, e, 0b1111, None);
}

/// Threads in a function that was called at 0.
fn deep(pc: u64, mask: u64) -> P {
    P { depth: 1, ..side(pc, mask) }
}

fn call(pc: u64, mask: u64) -> Told {
    Told { kind: OutcomeKind::Jump, taken: deep(pc, mask), call: true, ..Told::default() }
}

fn ret(pc: u64, mask: u64) -> Told {
    Told { kind: OutcomeKind::Jump, taken: side(pc, mask), ret: true, ..Told::default() }
}

fn branch(taken: P, rest: P) -> Told {
    Told { kind: OutcomeKind::Branch, taken, rest, ..Told::default() }
}

fn tell_of(watch: &mut Watch, told: Told, meet: Meet) {
    watch.pipeline.meets = Some(Reconvergence::new(meet, false, None));
    watch.tell(told);
}

/// A branch within a function to the next instruction says nothing about where the function returns to.
#[test]
fn a_branch_that_parts_nobody_is_no_return() {
    let mut watch = begin(&shape(4, 1));
    tell_of(&mut watch, call(10, 0b1111), Meet::At(1));
    tell_of(&mut watch, branch(deep(20, 0b0011), deep(11, 0b1100)), Meet::Return);
    tell_of(&mut watch, branch(deep(21, 0b0001), deep(21, 0b0010)), Meet::At(21));
    runs(&mut watch, 21, 0b0011, None);
    tell_of(&mut watch, ret(1, 0b0011), Meet::Return);
    runs(&mut watch, 11, 0b1100, None);
    tell_of(&mut watch, ret(1, 0b1100), Meet::Return);
    runs(&mut watch, 1, 0b1111, None);
}

/// Threads of a branch within the function meet before those that meet where it returns to.
#[test]
fn a_branch_on_a_side_that_returns() {
    let mut watch = begin(&shape(4, 1));
    tell_of(&mut watch, call(10, 0b1111), Meet::At(1));
    tell_of(&mut watch, branch(deep(20, 0b0111), deep(11, 0b1000)), Meet::Return);
    runs(&mut watch, 20, 0b0111, None);
    tell_of(&mut watch, branch(deep(25, 0b0001), deep(21, 0b0110)), Meet::At(30));
    runs(&mut watch, 25, 0b0001, Some(30));
    tell_of(&mut watch, Told { kind: OutcomeKind::Arrived, taken: deep(30, 0b0001), ..Told::default() }, Meet::At(0));
    runs(&mut watch, 21, 0b0110, Some(30));
    tell_of(&mut watch, Told { kind: OutcomeKind::Jump, taken: deep(30, 0b0110), ..Told::default() }, Meet::At(0));
    runs(&mut watch, 30, 0b0111, None);
    tell_of(&mut watch, ret(1, 0b0111), Meet::Return);
    runs(&mut watch, 11, 0b1000, None);
    tell_of(&mut watch, ret(1, 0b1000), Meet::Return);
    runs(&mut watch, 1, 0b1111, None);
}

/// Of a `jalr` that returns, the leader's threads are where the others come to.
#[test]
fn a_return_in_two_parts() {
    let mut watch = begin(&shape(4, 1));
    tell_of(&mut watch, call(10, 0b1111), Meet::At(1));
    tell_of(&mut watch, Told { rest: deep(10, 0b1100), ..ret(1, 0b0011) }, Meet::Return);
    runs(&mut watch, 10, 0b1100, None);
    tell_of(&mut watch, ret(1, 0b1100), Meet::Return);
    runs(&mut watch, 1, 0b1111, None);
}

/// A function that some call last before the others wait: those that meet where it returns to are there, too.
#[test]
fn a_return_to_where_others_wait() {
    let mut watch = begin(&shape(4, 1));
    tell_of(&mut watch, branch(side(5, 0b0111), side(1, 0b1000)), Meet::At(6));
    tell_of(&mut watch, call(20, 0b0111), Meet::At(6));
    runs(&mut watch, 20, 0b0111, None);
    tell_of(&mut watch, branch(deep(30, 0b0001), deep(21, 0b0110)), Meet::Return);
    runs(&mut watch, 30, 0b0001, None);
    tell_of(&mut watch, ret(6, 0b0001), Meet::Return);
    runs(&mut watch, 21, 0b0110, None);
    tell_of(&mut watch, ret(6, 0b0110), Meet::Return);
    runs(&mut watch, 1, 0b1000, Some(6));
    tell_of(&mut watch, Told { kind: OutcomeKind::Arrived, taken: side(6, 0b1000), ..Told::default() }, Meet::At(0));
    runs(&mut watch, 6, 0b1111, None);
}

/// A function that calls itself: those of the inner activation meet where that returns to, not where the outer one
/// does.
#[test]
fn an_inner_activation_returns_before_the_outer_one() {
    let mut watch = begin(&shape(4, 1));
    let deeper = |pc: u64, mask: u64| P { depth: 2, ..side(pc, mask) };
    let inner_ret = |mask: u64| Told { taken: deep(21, mask), ..ret(21, mask) };
    tell_of(&mut watch, call(10, 0b1111), Meet::At(1));
    tell_of(&mut watch, branch(deep(20, 0b0111), deep(11, 0b1000)), Meet::Return);
    tell_of(&mut watch, Told { taken: deeper(10, 0b0111), ..call(10, 0b0111) }, Meet::At(21));
    tell_of(&mut watch, branch(deeper(20, 0b0001), deeper(11, 0b0110)), Meet::Return);
    runs(&mut watch, 20, 0b0001, None);
    tell_of(&mut watch, inner_ret(0b0001), Meet::Return);
    runs(&mut watch, 11, 0b0110, None);
    tell_of(&mut watch, inner_ret(0b0110), Meet::Return);
    runs(&mut watch, 21, 0b0111, None);
    tell_of(&mut watch, ret(1, 0b0111), Meet::Return);
    runs(&mut watch, 11, 0b1000, None);
    tell_of(&mut watch, ret(1, 0b1000), Meet::Return);
    runs(&mut watch, 1, 0b1111, None);
}

/// At a barrier all threads of a warp wait together, or nobody is woken: siblings cannot come there.
#[test]
fn threads_wait_together_or_for_ever() {
    let s = Shape { barriers: true, ..shape(4, 1) };
    let wait = |pc: u64, mask: u64| {
        let taken = P { waits: true, ..side(pc, mask) };
        Told { kind: OutcomeKind::Wait, taken, ..Told::default() }
    };
    let mut watch = begin(&s);
    watch.tell(wait(1, 0b1111));
    watch.settle(0);
    assert_eq!(watch.pipeline.slots[0], Slot::Parked);
    watch.pipeline.wake = Some(0);
    watch.cycle(None, None);
    watch.settle(0);
    assert_eq!((watch.pipeline.slots[0], watch.asked(0).0), (Slot::Runs, side(1, 0b1111)));

    let mut watch = begin(&s);
    watch.pipeline.meets = Some(Reconvergence::new(Meet::At(20), false, None));
    watch.tell(Told { kind: OutcomeKind::Branch, taken: side(10, 0b0011), rest: side(1, 0b1100), ..Told::default() });
    watch.tell(wait(11, 0b0011));
    (0..20).for_each(|_| watch.cycle(None, None));
    assert!(matches!(watch.pipeline.slots[0], Slot::Waits(_)), "{:?}", watch.pipeline.slots);
}
