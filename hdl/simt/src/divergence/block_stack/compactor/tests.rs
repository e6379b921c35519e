//! Every set of threads at small sizes, random ones at large sizes, formed into warps until none is left, as a few
//! lines of Rust would.

use super::*;
use crate::divergence::Divergence;
use heddle_sim::Sim;

type Compactor = Sim<CompactorIn<Width>, CompactorOut<Signal>>;

fn begin(lanes: u32, warps: u32) -> (Shape, Compactor) {
    let s = Shape::new(lanes, warps).with_divergence(Divergence::BLOCK_STACK);
    let t = Sim::new(&compactor(&s).check().unwrap());
    (s, t)
}

fn lowest(warps: u64) -> u64 {
    warps & warps.wrapping_neg()
}

/// All static warps that have a thread.
fn present(threads: &[u64]) -> u64 {
    threads.iter().fold(0, |all, lane| all | lane)
}

/// What goes of each lane's static warps.
fn expected(threads: &[u64], fixed: bool) -> Vec<u64> {
    let first = lowest(present(threads));
    threads.iter().map(|&lane| if fixed { lane & first } else { lowest(lane) }).collect()
}

fn packed(threads: &[u64], warps: u32) -> Bits {
    let is_in = |k: u32| threads[(k / warps) as usize] >> (k % warps) & 1;
    let limbs = (0..(threads.len() as u32 * warps).div_ceil(64)).map(|limb| {
        let bits = 64 * limb..(64 * limb + 64).min(threads.len() as u32 * warps);
        bits.fold(0, |bits, k| bits | is_in(k) << (k % 64))
    });
    Bits::from_limbs(&limbs.collect::<Vec<_>>())
}

/// Forms warps of these threads, the static warps of each lane, until none is left.
fn forms(s: &Shape, t: &mut Compactor, threads: &[u64], fixed: bool) {
    let mut left = threads.to_vec();
    let most = threads.iter().map(|lane| lane.count_ones()).max().unwrap();
    let formed = if fixed { present(threads).count_ones() } else { most };
    for _ in 0..formed {
        t.poke(CompactorIn { threads: packed(&left, s.warps), fixed: fixed.into() });
        let out = t.peek();
        let goes = expected(&left, fixed);
        let first = present(&left).trailing_zeros();
        assert_eq!(out.first.low_u64(), u64::from(first), "{left:x?}");
        for (lane, &warp) in (0..).zip(&goes) {
            assert_eq!(out.mask.bit(lane), warp != 0, "lane {lane} of {left:x?}");
            let home =
                out.homes.as_ref().map_or(0, |homes| homes.extract(lane * s.warp_bits(), s.warp_bits()).low_u64());
            assert_eq!(home, if warp == 0 { 0 } else { warp.trailing_zeros().into() }, "lane {lane} of {left:x?}");
        }
        assert_eq!(out.mixes == 1, present(&goes).count_ones() > 1, "{left:x?}");
        left.iter_mut().zip(&goes).for_each(|(lane, goes)| *lane &= !goes);
        assert_eq!(out.left, packed(&left, s.warps));
    }
    assert_eq!(present(&left), 0, "{threads:x?} are more than {formed} warps");
}

#[test]
fn every_set_of_threads() {
    for (lanes, warps) in [(1, 1), (1, 4), (4, 1), (2, 2), (4, 2), (2, 4)] {
        let (s, mut t) = begin(lanes, warps);
        for set in 0..1u64 << s.threads() {
            let of_lane = |lane: u32| set >> (lane * warps) & ((1 << warps) - 1);
            let threads: Vec<u64> = (0..lanes).map(of_lane).collect();
            forms(&s, &mut t, &threads, false);
            forms(&s, &mut t, &threads, true);
        }
    }
}

#[test]
fn random_sets_of_threads() {
    for (seed, (lanes, warps)) in [(64, 32), (32, 32), (8, 64), (64, 1), (1, 64)].into_iter().enumerate() {
        println!("{lanes} lanes, {warps} warps, seed {seed}");
        let (s, mut t) = begin(lanes, warps);
        let mut r = fastrand::Rng::with_seed(seed as u64);
        for _ in 0..50 {
            let dense = r.u8(..8);
            let mut lane = |_| (0..warps).fold(0, |threads, warp| threads | u64::from(r.u8(..8) < dense) << warp);
            let threads: Vec<u64> = (0..lanes).map(&mut lane).collect();
            forms(&s, &mut t, &threads, r.bool());
        }
    }
}

/// `thread-block-compaction.txt` Figure 7, threads numbered from 1: C's {1, 6, 7} are one warp, B's {2, 3, 4, 5, 8}
/// two.
#[test]
fn figure_7() {
    let (s, mut t) = begin(4, 2);
    let mut warp = |threads: [u64; 4]| {
        t.poke(CompactorIn { threads: packed(&threads, s.warps), fixed: false.into() });
        let out = t.peek();
        let homes = out.homes.unwrap().low_u64();
        let threads = (0..4u32).map(|lane| out.mask.bit(lane).then(|| 1 + lane + 4 * (homes >> lane & 1) as u32));
        (threads.collect::<Vec<_>>(), out.left == 0)
    };
    assert_eq!(warp([0b01, 0b10, 0b10, 0b00]), (vec![Some(1), Some(6), Some(7), None], true));
    assert_eq!(warp([0b10, 0b01, 0b01, 0b11]), (vec![Some(5), Some(2), Some(3), Some(4)], false));
    assert_eq!(warp([0b00, 0b00, 0b00, 0b10]), (vec![None, None, None, Some(8)], true));
}
