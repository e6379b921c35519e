use super::*;
use crate::memory::port::Operation;
use crate::pipeline::testing::{fields, packed};
use crate::shape::{Coalescing, Replay};
use heddle_sim::Sim;
use std::collections::VecDeque;

/// An instruction in the queue.
#[derive(Clone, Debug)]
struct Waiting {
    number: u32,
    slot: u32,
    rd: u32,
    operation: Operation,
    mask: u64,
    places: Vec<u32>,
}

/// What was chosen and waits for memory.
#[derive(Clone, PartialEq, Debug)]
struct Sent {
    number: u32,
    served: u64,
}

/// Instructions of all kinds come, as far as there is room; memory and the load queue are ready now and then. Every
/// lane of every instruction goes once, the instructions in order, the lowest lane that is left always among those that
/// go.
fn in_order_and_once(s: &Shape, seed: u64) {
    println!(
        "{:?}, {} lanes, {} places, {} of scratchpad, seed {seed}",
        s.coalescing, s.lanes, s.requests, s.scratchpad
    );
    let mut r = fastrand::Rng::with_seed(seed);
    let mut t = Sim::new(&load_store(s).check().unwrap());
    t.reset();
    let all = u64::MAX >> (64 - s.lanes);
    let mut queue: VecDeque<Waiting> = VecDeque::new();
    let mut held: Option<Sent> = None;
    let (mut number, mut parts) = (0, 0);
    for _ in 0..3000 {
        let (load_room, tag) = (r.u8(..4) > 0, r.u32(..s.loads));
        let taken = held.is_some() && r.u8(..3) > 0;
        let comes = (queue.len() < s.requests as usize && r.bool()).then(|| {
            number += 1;
            let operation = Operation::ALL[r.usize(..4)];
            let spread = [1, s.lanes, 4 * s.lanes][r.usize(..3)];
            let place = |r: &mut fastrand::Rng| {
                let pad = u32::from(s.scratchpad > 0 && r.u8(..3) == 0) << (s.place_bits() - 1);
                pad | (4 * r.u32(..spread))
            };
            Waiting {
                number: number % (1 << 20),
                slot: r.u32(..s.warps),
                rd: r.u32(..32),
                operation,
                mask: Some(r.u64(..) & all).filter(|&m| m != 0).unwrap_or(all),
                places: (0..s.lanes).map(|_| place(&mut r)).collect(),
            }
        });
        let idle = Whole::shape(s).map("", &mut |_, _| Bits::ZERO);
        let whole = comes.as_ref().map_or(idle, |w| Whole {
            homes: None,
            valid: true.into(),
            slot: w.slot.into(),
            rd: w.rd.into(),
            asked: Asked { operation: w.operation.into(), function: 0u32.into(), size: 2u32.into(), reserving: None },
            mask: w.mask.into(),
            places: fields(&w.places, s.place_bits()),
            data: packed(&vec![w.number; s.lanes as usize]),
        });
        t.poke(LoadStoreIn { whole, load_room: load_room.into(), load_tag: tag.into(), taken: taken.into() });
        let out = t.peek();

        assert_eq!(out.access.valid == 1, held.is_some());
        if let Some(sent) = &held {
            let got = (out.access.data.low_u64() as u32, out.access.served.low_u64());
            assert_eq!(got, (sent.number, sent.served));
        }
        assert_eq!(out.empty == 1, queue.is_empty() && held.is_none());
        assert_eq!(out.serving.valid == 1, !queue.is_empty());
        let goes = (held.is_none() || taken) && queue.front().is_some_and(|w| load_room || !w.operation.answers());
        assert_eq!(out.chosen.valid == 1, goes);
        if taken {
            held = None;
        }
        if goes {
            let first = queue.front_mut().unwrap();
            let served = out.chosen.served.low_u64();
            assert_eq!(served & !first.mask, 0, "{served:x} of {first:x?}");
            assert_ne!(served & (first.mask & first.mask.wrapping_neg()), 0, "the leader: {first:x?}");
            assert_eq!(out.answers == 1, first.operation.answers());
            assert_eq!((out.serving.slot, out.serving.rd), (first.slot.into(), first.rd.into()));
            assert_eq!(out.chosen.tag, u64::from(tag));
            held = Some(Sent { number: first.number, served });
            first.mask &= !served;
            assert_eq!((out.left == 1, out.parts == 1), (first.mask == 0, first.mask != 0));
            parts += u32::from(first.mask != 0);
            if first.mask == 0 {
                queue.pop_front();
            }
        } else {
            assert_eq!((out.left == 1, out.answers == 1, out.parts == 1), (false, false, false));
        }
        queue.extend(comes);
        t.step();
    }
    assert!(s.lanes == 1 || parts > 100, "{parts} parts");
    assert!(t.cover_hits("full") > 0);
}

#[test]
fn lanes_go_in_order_and_once() {
    for (lanes, requests, scratchpad, seed) in [(1, 2, 0, 1), (2, 4, 1024, 2), (8, 8, 0, 3), (32, 2, 4096, 4)] {
        for coalescing in [Coalescing::Aligned, Coalescing::Full] {
            let replay = Replay::Serialise;
            let s = Shape { requests, scratchpad, coalescing, replay, atomics: true, ..Shape::new(lanes, 2) };
            in_order_and_once(&s, seed);
        }
    }
}
