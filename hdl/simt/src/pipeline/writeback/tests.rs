use super::*;
use crate::pipeline::load_queue::{Conditional, Route};
use crate::pipeline::testing::{fields, packed};
use crate::shape::Coalescing;
use heddle_sim::Sim;

/// What a lane gets from a word: aligned and extended.
fn loaded(word: u32, offset: u32, size: u32) -> u32 {
    let bytes = word.to_le_bytes();
    let (at, half) = (offset as usize, (offset & 2) as usize);
    match size {
        0 => bytes[at] as i8 as u32,
        4 => u32::from(bytes[at]),
        1 => i16::from_le_bytes([bytes[half], bytes[half + 1]]) as u32,
        5 => u32::from(u16::from_le_bytes([bytes[half], bytes[half + 1]])),
        _ => word,
    }
}

/// What has a result of the pipeline.
#[derive(Clone, Copy, PartialEq, Debug)]
enum From {
    Lanes,
    Product,
    Word,
}

const FROM: [From; 3] = [From::Lanes, From::Product, From::Word];

/// Three sources ask for the write port; the model says who gets it and what is written.
#[test]
fn priority_alignment_and_bubbles() {
    let full = |lanes, warps| Shape { coalescing: Coalescing::Full, ..Shape::small(lanes, warps) };
    let shapes = [
        Shape::small(1, 1),
        full(2, 2),
        Shape::small(8, 8),
        Shape { reservations: true, ..Shape::small(8, 2) },
        Shape { multiply: false, ..full(8, 1) },
        Shape { reservations: true, ..full(16, 4) },
        Shape { reservations: true, ..Shape::small(16, 1) },
        Shape { multiply: false, ..Shape::small(32, 2) },
        full(64, 1),
    ];
    for (seed, s) in (1..).zip(shapes) {
        let Shape { lanes, warps, coalescing, .. } = s;
        println!("{}, seed {seed}", s.options());
        let mut r = fastrand::Rng::with_seed(seed);
        let mut t = Sim::new(&writeback(&s).check().unwrap());
        let all = u64::MAX >> (64 - lanes);
        // What comes during reset is not written.
        t.poke_port("computed_valid", true);
        t.poke_port("computed_mask", all);
        t.reset();
        // What is computed is written in the cycle after its input; what is late waits for a free one.
        let mut held: Option<(u32, u32, u64, Vec<u32>)> = None;
        let mut stage_10: Option<(u32, u32, u64, From, Vec<u32>)> = None;
        let mut waited = 0;
        let (mut bubbles, mut last_bubble) = (0, None::<u32>);
        for step in 0..1200u32 {
            let words = |r: &mut fastrand::Rng| -> Vec<u32> { (0..lanes).map(|_| r.u32(..)).collect() };
            // Busy times and quiet times.
            let busy = step / 100 % 2 == 0;
            let next = (r.u8(..20) < if busy { 19 } else { 5 })
                .then(|| (r.u32(..warps), r.u32(1..32), r.u64(..) & all, FROM[r.usize(..3)], words(&mut r)));
            let (response, quotient) = (r.bool(), s.multiply && r.bool());
            let (line, quotients) = (words(&mut r), words(&mut r));
            let products = match &stage_10 {
                Some((.., From::Product, data)) => data.clone(),
                _ => vec![0; lanes as usize],
            };
            let conditional = s.reservations && r.bool();
            let fails = r.u64(..) & all;
            let size = if conditional { WORD } else { [0, 1, 2, 4, 5][r.usize(..5)] };
            let (load_slot, load_rd, served, own) = (r.u32(..warps), r.u32(..3), r.u64(..) & all, r.u64(..) & all);
            // Without a crossbar, a lane has its own bank's word or the leader's.
            let bank = r.u32(..lanes);
            let crossbar = coalescing == Coalescing::Full;
            let banks: Vec<u32> = (0..lanes)
                .map(|k| match crossbar {
                    true => r.u32(..lanes),
                    false => {
                        if own >> k & 1 == 1 {
                            k
                        } else {
                            bank
                        }
                    }
                })
                .collect();
            let one_hot = |bank: u32| (0..lanes).map(move |k| u32::from(k == bank));
            let route = match crossbar && lanes > 1 {
                true if network::kept_bits(&s) == lanes * s.lane_bits() => fields(&banks, s.lane_bits()),
                true => fields(&banks.iter().flat_map(|&bank| one_hot(bank)).collect::<Vec<_>>(), 1),
                false => {
                    let own_lanes: Vec<u32> = (0..lanes).map(|k| (own >> k & 1) as u32).collect();
                    fields(&[own_lanes, one_hot(bank).collect()].concat(), 1)
                }
            };
            let aligned = |r: &mut fastrand::Rng| r.u32(..4) >> (size & 3) << (size & 3);
            let offsets: Vec<u32> = (0..lanes).map(|_| aligned(&mut r)).collect();
            let (quotient_slot, quotient_rd, quotient_mask) = (r.u32(..warps), r.u32(1..4), r.u64(..) & all);
            let last = r.bool();

            let short = |word: u32| word & ((1 << s.common_bits()) - 1);
            let zero = Computed::shape(&s).map("", &mut |_, _| Bits::ZERO);
            let offset = offsets.iter().enumerate().fold(0u128, |bits, (k, &o)| bits | u128::from(o) << (2 * k));
            let route = Route {
                size: size.into(),
                served: served.into(),
                route,
                offset: offset.into(),
                conditional: s.reservations.then(|| Conditional { valid: conditional.into(), fails: fails.into() }),
            };
            let mut inputs = WritebackIn {
                computed: next.as_ref().map_or(zero, |(slot, rd, mask, from, data)| Computed {
                    valid: true.into(),
                    slot: (*slot).into(),
                    rd: (*rd).into(),
                    mask: (*mask).into(),
                    multiply: (*from == From::Product).into(),
                    common: (*from == From::Word).into(),
                    word: short(data[0]).into(),
                    data: packed(data),
                }),
                products: packed(&products),
                response: Response { valid: response.into(), tag: 0u32.into(), data: packed(&line) },
                load: Load { slot: load_slot.into(), rd: load_rd.into(), route },
                owners: None,
                load_last: last.into(),
                quotient: Quotient {
                    valid: quotient.into(),
                    slot: quotient_slot.into(),
                    rd: quotient_rd.into(),
                    mask: quotient_mask.into(),
                    data: packed(&vec![0; lanes as usize]),
                },
            };
            t.poke(inputs.clone());
            // The divider shows its words in the same cycle, unless an answer goes first.
            assert_eq!(t.peek().quotient_shown == 1, !response);
            if !response {
                inputs.quotient.data = packed(&quotients);
                t.poke(inputs);
            }
            let out = t.peek();
            let writes_late = held.is_some() && stage_10.is_none();
            let free = held.is_none() || writes_late;
            // Nobody waits for a load without a register.
            let (load_goes, quotient_goes) = (response && load_rd != 0 && free, quotient && free && !response);
            assert_eq!(out.quotient_taken == 1, quotient_goes);
            assert_eq!(out.response_taken == 1, load_goes || (response && load_rd == 0));
            assert_eq!(out.empty == 1, held.is_none());
            let (slot, rd, mask, data) = match (&stage_10, &held) {
                (Some((slot, rd, mask, From::Word, data)), _) => {
                    (*slot, *rd, *mask, vec![short(data[0]); lanes as usize])
                }
                (Some((slot, rd, mask, _, data)), _) => (*slot, *rd, *mask, data.clone()),
                (None, Some((slot, rd, mask, data))) => (*slot, *rd, *mask, data.clone()),
                (None, None) => (0, 0, 0, vec![0; lanes as usize]),
            };
            assert_eq!(out.write.lanes, mask);
            for k in (0..lanes).filter(|k| mask >> k & 1 == 1) {
                assert_eq!((out.write.warp.low_u64(), out.write.rd.low_u64()), (slot.into(), rd.into()));
                assert_eq!(out.write.data.extract(32 * k, 32), u64::from(data[k as usize]), "lane {k}");
            }
            // Whether it is the last of its register is said as it is written.
            let releases = writes_late && last;
            assert_eq!(out.late.valid == 1, releases);
            if releases {
                assert_eq!((out.late.slot.low_u64(), out.late.rd.low_u64()), (slot.into(), rd.into()));
            }
            let bubble = waited == WAIT_BEFORE_BUBBLE && last_bubble.is_none_or(|last| step - last > ISSUE_TO_WRITE);
            assert_eq!(out.bubble == 1, bubble, "waited {waited}");
            bubbles += u32::from(bubble);
            last_bubble = if bubble { Some(step) } else { last_bubble };
            let waits = held.is_some() && !writes_late;
            let value = |k: usize| match conditional {
                true => (fails >> k & 1) as u32,
                false => loaded(line[banks[k] as usize], offsets[k], size),
            };
            held = match (load_goes, quotient_goes) {
                (true, _) => Some((load_slot, load_rd, served, (0..lanes as usize).map(value).collect())),
                (_, true) => Some((quotient_slot, quotient_rd, quotient_mask, quotients)),
                _ if writes_late => None,
                _ => held,
            };
            waited = if waits { WAIT_BEFORE_BUBBLE.min(waited + 1) } else { 0 };
            t.step();
            stage_10 = next;
        }
        assert!(bubbles > 10, "{bubbles} bubbles");
    }
}
