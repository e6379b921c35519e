//! The stack from its ports: whatever it is told about meeting, threads are where outcomes sent them; told right, they meet
//! there.

use super::*;
use crate::divergence::Divergence;
use crate::divergence::testing::{P, Plan, Slot, Told, Watch, all_hit};
use crate::reconvergence::{Meet, Reconvergence};
use std::collections::BTreeMap;

fn shape(lanes: u32, warps: u32) -> Shape {
    Shape { barriers: false, ..Shape::new(lanes, warps).with_divergence(Divergence::Stack) }
}

fn plan(s: &Shape) -> Plan {
    stack(s).check().unwrap()
}

/// Says of each outcome, at random, where its threads meet: often where one of the sides goes, or where others meet.
fn told_at_random(watch: &mut Watch) {
    let r = &mut watch.pipeline.random;
    let meet = if r.u8(..4) == 0 { Meet::Return } else { Meet::At(r.u32(..14)) };
    watch.pipeline.meets = Some(Reconvergence::new(meet, false, None));
}

#[test]
fn threads_are_where_outcomes_sent_them() {
    let mut covers = BTreeMap::new();
    for (k, lanes) in [1, 2, 4, 8, 64].into_iter().enumerate() {
        for warps in [1, 2, 16] {
            let s = shape(lanes, warps);
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

/// `thread-block-compaction.txt` §2.2.2: `if (a) { if (b) B; else C; D } else E; F`. D and F are where threads meet.
#[test]
fn nested_branches() {
    let s = shape(4, 1);
    let mut watch = Watch::new(&plan(&s), &s, 1);
    let (a, b, c, d, e, f) = (0, 10, 20, 30, 40, 50);
    let side = |pc: u64, mask: u64| P { pc, mask, ..P::default() };
    let runs = |watch: &mut Watch, pc: u64, mask: u64, stop: Option<u64>| {
        watch.settle(0);
        let (x, at) = watch.asked(0);
        assert_eq!((x.pc, x.mask, at), (pc, mask, stop));
    };
    let tell = |watch: &mut Watch, kind: u32, taken: P, rest: P, meet: u64| {
        watch.pipeline.meets = Some(Reconvergence::new(Meet::At(meet as u32), false, None));
        watch.tell(Told { kind, taken, rest, ..Told::default() });
    };
    let none = P::default();
    watch.pipeline.meets = Some(Reconvergence::new(Meet::At(0), false, None));
    watch.cycle(None, Some((0, side(a, 0b1111))));
    runs(&mut watch, a, 0b1111, None);
    tell(&mut watch, kind::BRANCH, side(b, 0b0111), side(e, 0b1000), f);
    runs(&mut watch, b, 0b0111, Some(f));
    tell(&mut watch, kind::BRANCH, side(c, 0b0001), side(b + 1, 0b0110), d);
    runs(&mut watch, c, 0b0001, Some(d));
    tell(&mut watch, kind::ARRIVED, side(d, 0b0001), none, 0);
    runs(&mut watch, b + 1, 0b0110, Some(d));
    tell(&mut watch, kind::JUMP, side(d, 0b0110), none, 0);
    runs(&mut watch, d, 0b0111, Some(f));
    tell(&mut watch, kind::JUMP, side(f, 0b0111), none, 0);
    runs(&mut watch, e, 0b1000, Some(f));
    tell(&mut watch, kind::ARRIVED, side(f, 0b1000), none, 0);
    runs(&mut watch, f, 0b1111, None);
    tell(&mut watch, kind::EXIT, none, none, 0);
    watch.settle(0);
    assert_eq!(watch.pipeline.slots[0], Slot::Idle);
}

/// At a barrier all threads of a warp wait together, or nobody is woken: siblings cannot come there.
#[test]
fn threads_wait_together_or_for_ever() {
    let s = Shape { barriers: true, ..shape(4, 1) };
    let side = |pc: u64, mask: u64| P { pc, mask, ..P::default() };
    let wait = |pc: u64, mask: u64| {
        let taken = P { waits: true, ..side(pc, mask) };
        Told { kind: kind::WAIT, taken, ..Told::default() }
    };
    let begin = || {
        let mut watch = Watch::new(&plan(&s), &s, 1);
        watch.pipeline.meets = Some(Reconvergence::new(Meet::At(20), false, None));
        watch.cycle(None, Some((0, side(0, 0b1111))));
        watch
    };
    let mut watch = begin();
    watch.tell(wait(1, 0b1111));
    watch.settle(0);
    assert_eq!(watch.pipeline.slots[0], Slot::Parked);
    watch.pipeline.wake = Some(0);
    watch.cycle(None, None);
    watch.settle(0);
    assert_eq!((watch.pipeline.slots[0], watch.asked(0).0), (Slot::Runs, side(1, 0b1111)));

    let mut watch = begin();
    watch.tell(Told { kind: kind::BRANCH, taken: side(10, 0b0011), rest: side(1, 0b1100), ..Told::default() });
    watch.tell(wait(11, 0b0011));
    (0..20).for_each(|_| watch.cycle(None, None));
    assert!(matches!(watch.pipeline.slots[0], Slot::Waits(_)), "{:?}", watch.pipeline.slots);
}
