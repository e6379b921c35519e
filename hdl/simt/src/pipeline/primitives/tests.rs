use super::*;
use crate::pipeline::testing::packed;
use heddle_sim::Sim;

/// Every function, with any lanes present: what each lane gets, in the words of the page.
#[test]
fn votes_and_shuffles() {
    for (lanes, seed) in [(1u32, 1), (2, 2), (4, 3), (8, 4), (32, 5), (64, 6)] {
        println!("{lanes} lanes, seed {seed}");
        let s = Shape { warp_primitives: true, ..Shape::new(lanes, 1) };
        let mut r = fastrand::Rng::with_seed(seed);
        let mut t = Sim::new(&primitives(&s).check().unwrap());
        for _ in 0..600 {
            let mask = loop {
                let mask = r.u64(..) >> (64 - lanes);
                if mask != 0 {
                    break if r.u8(..4) == 0 { u64::MAX >> (64 - lanes) } else { mask };
                }
            };
            // Now and then threads that name the same.
            let few = r.u8(..4) == 0;
            let values: Vec<u32> = (0..lanes)
                .map(|_| match r.bool() {
                    true => 0,
                    false if few => mask as u32,
                    false => r.u32(..),
                })
                .collect();
            let operands: Vec<u32> = (0..lanes)
                .map(|_| match r.u8(..8) {
                    _ if few => (mask >> 32) as u32,
                    0 => r.u32(..),
                    _ => r.u32(..lanes + 1),
                })
                .collect();
            let (votes, function) = (r.bool(), r.u32(..4));
            let primitive = Primitive {
                votes: votes.into(),
                shuffles: (!votes).into(),
                syncs: false.into(),
                function: function.into(),
            };
            let leader = mask & mask.wrapping_neg();
            let inputs = PrimitivesIn {
                primitive,
                mask: mask.into(),
                leader: leader.into(),
                values: packed(&values),
                operands: packed(&operands),
            };
            t.poke(inputs);
            t.settle();
            let out = t.peek();
            let here = |lane: u64| lane < u64::from(lanes) && mask >> lane & 1 == 1;
            let ballot: u64 = (0..lanes).filter(|&k| here(k.into()) && values[k as usize] != 0).map(|k| 1 << k).sum();
            for k in 0..lanes {
                let (own, asked) = (values[k as usize], u64::from(operands[k as usize]));
                let source = match Shuffle::ALL[function as usize] {
                    Shuffle::Index => Some(asked),
                    Shuffle::Xor => Some(u64::from(k) ^ asked),
                    Shuffle::Up => u64::from(k).checked_sub(asked),
                    Shuffle::Down => Some(u64::from(k) + asked),
                };
                let shuffled = source.filter(|&lane| here(lane)).map_or(own, |lane| values[lane as usize]);
                let voted = match Vote::ALL[function as usize] {
                    Vote::Ballot => ballot as u32,
                    Vote::BallotUpper => (ballot >> 32) as u32,
                    Vote::Any => u32::from(ballot != 0),
                    Vote::All => u32::from(ballot == mask),
                };
                let want = if votes { voted } else { shuffled };
                assert_eq!(out.result.extract(32 * k, 32), u64::from(want), "lane {k}, function {function}, {votes}");
            }
            let named = |k: u32| {
                let named = u64::from(values[k as usize]) | u64::from(operands[k as usize]) << 32;
                named & u64::MAX >> (64 - lanes) | 1 << k
            };
            let all = named(mask.trailing_zeros());
            let same =
                (0..lanes).filter(|&k| (mask & all) >> k & 1 == 1 && named(k) == all).map(|k| 1u64 << k).sum::<u64>();
            assert_eq!((out.named.all.low_u64(), out.named.here.low_u64()), (all, same));
            assert_eq!(out.named.lacks == 1, all & !same != 0);
        }
    }
}
