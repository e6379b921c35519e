use super::super::policy::Front;
use super::*;

fn warp(pc: u32, harts: &[u32]) -> Warp {
    Warp { harts: harts.to_vec(), pc, whole: false, front: Front::default() }
}

fn threads(harts: &[u32], pc: u32) -> Vec<Thread> {
    harts.iter().map(|&hart| Thread { hart, pc, depth: 0, calls: 0 }).collect()
}

/// Of 4 lanes and three static warps of the threads 0-3, 4-7 and 8-11.
fn pool(warps: &[&[u32]]) -> Vec<Vec<u32>> {
    let mut formation = Formation::new(4, 3, false);
    let mut pool = Vec::new();
    for harts in warps {
        formation.enter(&mut pool, warp(0x40, harts));
    }
    pool.into_iter().map(|warp| warp.harts).collect()
}

/// Numbers in Figure 7 of thread-block-compaction.txt begin at 1.
#[test]
fn threads_join_where_their_lane_is_free() {
    assert_eq!(pool(&[&[0], &[5, 6]]), [vec![0, 5, 6]]);
    assert_eq!(pool(&[&[1, 2, 3], &[4, 7]]), [vec![4, 1, 2, 3], vec![7]]);
    // Those that find their lane taken begin the warp that is open from then on.
    assert_eq!(pool(&[&[0, 1], &[4, 6], &[9]]), [vec![0, 1, 6], vec![4, 9]]);
}

#[test]
fn whole_warps_and_other_pcs_are_apart() {
    let mut formation = Formation::new(4, 3, false);
    let mut pool = vec![Warp { whole: true, ..warp(0x40, &[0]) }, warp(0x44, &[1])];
    formation.enter(&mut pool, warp(0x40, &[6]));
    formation.enter(&mut pool, Warp { whole: true, ..warp(0x40, &[11]) });
    assert_eq!(pool.iter().map(|warp| warp.harts.len()).collect::<Vec<_>>(), [1; 4]);
}

#[test]
fn the_majority_goes_until_none_of_it_can() {
    let mut formation = Formation::new(4, 3, false);
    let mut pool = vec![warp(0x10, &[0, 1, 2]), warp(0x20, &[4, 5]), warp(0x20, &[8, 9])];
    assert_eq!(formation.choose(&pool, &[0, 1, 2]), 1);
    // It goes on with this pc, though most are elsewhere now.
    pool.remove(1);
    assert_eq!(formation.choose(&pool, &[0, 1]), 1);
    pool.remove(1);
    pool.push(warp(0x24, &[4, 5]));
    assert_eq!(formation.choose(&pool, &[0, 1]), 0);
    // Those who can go are few, but their place has most.
    pool.push(warp(0x24, &[8, 9]));
    pool.remove(0);
    pool.push(warp(0x10, &[0, 1, 2]));
    assert_eq!(formation.choose(&pool, &[1]), 1);
}

#[test]
fn a_static_warp_is_whole_again_when_all_have_come() {
    let mut formation = Formation::new(4, 2, true);
    let meets = Some(Meeting { at: Reconvergence::At(0x80), depth: 0 });
    let mut outcome = |going: Vec<Thread>, ended: &[u32], meets| {
        let warps = formation.outcome(&Outcome { going, ended: ended.to_vec(), next: 0x14, meets });
        warps.into_iter().map(|(_, warp)| (warp.harts, warp.pc, warp.whole)).collect::<Vec<_>>()
    };
    for first in [0, 4] {
        let all: Vec<u32> = (first..first + 4).collect();
        assert_eq!(outcome(threads(&all, 0), &[], None), [(all, 0, true)]);
    }
    // Warp 0 parts: thread 0 is where they reconverge, the others are free to join.
    let parted = [threads(&[0], 0x80), threads(&[1], 0x14), threads(&[2, 3], 0x40)].concat();
    assert_eq!(outcome(parted, &[], meets), [(vec![1], 0x14, false), (vec![2, 3], 0x40, false)]);
    // So does warp 1, and some of both arrive in one warp. An inner branch makes no barrier.
    let parted = [threads(&[4, 5], 0x14), threads(&[6, 7], 0x80)].concat();
    assert_eq!(outcome(parted, &[], meets), [(vec![4, 5], 0x14, false)]);
    let inner = Some(Meeting { at: Reconvergence::At(0x30), depth: 0 });
    assert_eq!(outcome([threads(&[1], 0x80), threads(&[4], 0x30)].concat(), &[], inner), [(vec![4], 0x30, false)]);
    // At another call depth the place is not theirs.
    let deeper = vec![Thread { hart: 5, pc: 0x80, depth: 1, calls: 0 }];
    assert_eq!(outcome(deeper, &[], None), [(vec![5], 0x80, false)]);
    // Thread 3 ends, and thread 2 was the last to come.
    assert_eq!(outcome(Vec::new(), &[3], None), []);
    assert_eq!(outcome(threads(&[2], 0x80), &[], None), [(vec![0, 1, 2], 0x80, true)]);
    assert_eq!(outcome(threads(&[4, 5], 0x80), &[], None), [(vec![4, 5, 6, 7], 0x80, true)]);
}

#[test]
fn a_static_warp_that_returns_to_several_places_meets_where_the_next_function_returns() {
    let mut formation = Formation::new(4, 1, true);
    let mut outcome = |going: &[(&[u32], u32, u32)]| {
        let at = |&(harts, pc, depth): &(&[u32], u32, u32)| {
            harts.iter().map(|&hart| Thread { hart, pc, depth, calls: 0 }).collect::<Vec<_>>()
        };
        let going = going.iter().flat_map(at).collect();
        let warps = formation.outcome(&Outcome { going, ended: Vec::new(), next: 0x14, meets: None });
        warps.into_iter().map(|(_, warp)| (warp.harts, warp.pc, warp.whole)).collect::<Vec<_>>()
    };
    assert_eq!(outcome(&[(&[0, 1, 2, 3], 0, 2)]), [(vec![0, 1, 2, 3], 0, true)]);
    let parted = [(vec![0, 1], 0x10, false), (vec![2, 3], 0x20, false)];
    assert_eq!(outcome(&[(&[0, 1], 0x10, 2), (&[2, 3], 0x20, 2)]), parted);
    assert_eq!(outcome(&[(&[0, 1], 0x80, 1)]), []);
    let still = [(vec![0, 1], 0x80, false), (vec![2, 3], 0x84, false)];
    assert_eq!(outcome(&[(&[2, 3], 0x84, 1)]), still);
    assert_eq!(outcome(&[(&[0, 1], 0x90, 0)]), []);
    assert_eq!(outcome(&[(&[2, 3], 0x90, 0)]), [(vec![0, 1, 2, 3], 0x90, true)]);
}
