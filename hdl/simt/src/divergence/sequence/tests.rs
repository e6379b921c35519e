use super::longest;
use crate::divergence::testing::{P, Told, Watch};
use crate::divergence::{Divergence, OutcomeKind};
use crate::shape::{Order, Replay, Shape};

/// The unit with the threads of each warp of two in two paths; thread 0 runs, at 10, and thread 1 is at 20.
fn parted(s: &Shape) -> Watch {
    let mut watch = Watch::new(&s.divergence.mechanism().unit(s).check().unwrap(), s, 1);
    for slot in 0..s.warps as usize {
        watch.cycle(None, Some((slot, P { mask: 0b11, ..P::default() })));
        let sides = [P { pc: 20, mask: 0b10, ..P::default() }, P { pc: 10, mask: 0b01, ..P::default() }];
        watch.tell(Told { slot, kind: OutcomeKind::Branch, taken: sides[0], rest: sides[1], ..Told::default() });
    }
    watch
}

/// The path of a slot that runs has an outcome and goes on: whether it is the one that runs then.
fn goes_on_at(watch: &mut Watch, slot: usize, begins: bool, ends: bool) -> bool {
    watch.settle(slot);
    let (x, _) = watch.asked(slot);
    watch.tell(Told { slot, kind: OutcomeKind::Jump, taken: x, begins, ends, ..Told::default() });
    watch.settle(slot);
    watch.asked(slot).0.mask == x.mask
}

/// The same of slot 0.
fn goes_on(watch: &mut Watch, begins: bool, ends: bool) -> bool {
    goes_on_at(watch, 0, begins, ends)
}

fn fair() -> impl Iterator<Item = Shape> {
    let s = Shape { fair: true, patience: 2, reservations: true, barriers: false, ..Shape::new(2, 1) };
    [
        s.clone(),
        Shape { replay: Replay::Serialise, ..s.clone() },
        Shape { order: Order::BreadthFirst, ..s.clone() },
        Shape { divergence: Divergence::ARBITER, ..s },
    ]
    .into_iter()
}

/// With an `lr.w` when its time is over, a path goes on until its sequence ends, or has been as long as one can be.
#[test]
fn a_path_gives_way_behind_its_sequence() {
    for s in fair() {
        for ends in [None, Some(0), Some(1), Some(5)] {
            let mut watch = parted(&s);
            let turn = (1..).take_while(|_| goes_on(&mut watch, false, false)).count();
            let mut watch = parted(&s);
            assert!((0..turn).all(|_| goes_on(&mut watch, false, false)), "{}", s.options());
            assert!(goes_on(&mut watch, true, false), "{}: with lr.w", s.options());
            let more = ends.unwrap_or(longest(&s) - 1);
            for k in 0..more {
                assert!(goes_on(&mut watch, false, false), "{}: {k} of {more}", s.options());
            }
            assert!(!goes_on(&mut watch, false, ends.is_some()), "{}: {more}", s.options());
        }
    }
}

/// A sequence that was there when time was over does not keep the next from being whole, but there is no third.
#[test]
fn only_one_more_sequence_begins() {
    for s in fair().filter(|s| !s.order.takes_turns()) {
        let mut watch = parted(&s);
        let mut whole = longest(&s) - 1;
        assert!(goes_on(&mut watch, true, false));
        assert!(goes_on(&mut watch, false, false) && goes_on(&mut watch, false, false), "{}", s.options());
        assert!(goes_on(&mut watch, true, false), "{}: another", s.options());
        while whole > 5 {
            assert!(goes_on(&mut watch, false, false), "{}: {whole}", s.options());
            whole -= 1;
        }
        for _ in 0..whole {
            assert!(goes_on(&mut watch, true, false), "{}: begins no more", s.options());
        }
        assert!(!goes_on(&mut watch, true, false), "{}: a third", s.options());
    }
}

/// A path whose sequence began when its time was over does not take it from those after it.
#[test]
fn each_path_has_a_sequence_of_its_own() {
    for s in fair() {
        let mut watch = parted(&s);
        for turn in 0..6 {
            let outcomes = (1..).take_while(|_| goes_on(&mut watch, true, false)).count() as u32;
            assert!(outcomes >= longest(&s), "{}: {outcomes} in turn {turn}", s.options());
        }
    }
}

/// A sequence of one warp is not one of another, and outlasts the turns of that.
#[test]
fn warps_have_sequences_of_their_own() {
    for s in fair().map(|s| Shape { warps: 2, ..s }) {
        for slot in [0, 1] {
            let mut watch = parted(&s);
            let turn = (1..).take_while(|_| goes_on_at(&mut watch, slot, false, false)).count();
            let mut watch = parted(&s);
            assert!((0..turn).all(|_| goes_on_at(&mut watch, slot, false, false)), "{}", s.options());
            assert!(goes_on_at(&mut watch, slot, true, false), "{}: with lr.w", s.options());
            for k in 0..longest(&s) - 1 {
                // The other gives way as ever.
                let turns = (1..).take_while(|_| goes_on_at(&mut watch, 1 - slot, false, false)).count();
                assert!(turns <= turn, "{}: slot {}, {turns}", s.options(), 1 - slot);
                assert!(goes_on_at(&mut watch, slot, false, false), "{}: slot {slot}, {k}", s.options());
            }
            assert!(!goes_on_at(&mut watch, slot, false, false), "{}: slot {slot}", s.options());
        }
    }
}

/// In a sequence, a path jumps beyond another in the list, and stays first; once the sequence is over it is not.
#[test]
fn a_path_that_jumps_beyond_another_stays_first() {
    for order in [Order::DepthPc, Order::Pc, Order::Swap] {
        for sequence in [false, true] {
            let s = Shape { reservations: true, order, ..Shape::new(2, 1) };
            let mut watch = parted(&s);
            assert!(goes_on(&mut watch, sequence, false));
            watch.settle(0);
            let (x, _) = watch.asked(0);
            let beyond = |pc| P { pc, ..x };
            watch.tell(Told { kind: OutcomeKind::Jump, taken: beyond(30), ..Told::default() });
            watch.settle(0);
            assert_eq!(watch.asked(0).0.mask, if sequence { 0b01 } else { 0b10 }, "{}", s.options());
            if sequence {
                watch.tell(Told { kind: OutcomeKind::Memory, taken: beyond(31), ends: true, ..Told::default() });
                watch.settle(0);
                assert_eq!(watch.asked(0).0.mask, 0b10, "{}", s.options());
            }
        }
    }
}
