use super::super::policy::{Front, Meeting};
use super::*;

/// The blocks of Figure 1 of dual-path-execution.txt, of three instructions each but for F, which has one.
const B: u32 = 0x0c;
const C: u32 = 0x18;
const D: u32 = 0x24;
const E: u32 = 0x30;
const F: u32 = 0x3c;
const G: u32 = 0x40;

/// The last instructions of A and C, which part threads, and where these meet.
const BRANCHES: [(u32, u32); 2] = [(B - 4, G), (D - 4, F)];

/// What comes of an outcome: levels that are popped, threads, pc.
type Goes = Vec<(u64, Vec<u32>, u32)>;

/// A warp of four threads.
struct Warps(Subdivision);

impl Warps {
    /// They are at the branch of A.
    fn new(threshold: u32) -> Warps {
        let mut warps = Warps(Subdivision::new(4, 1, threshold, BTreeMap::from([(B - 4, 3), (D - 4, 1)])));
        assert_eq!(warps.go(0, &[(&[0, 1, 2, 3], 0)], &[]), [(0, vec![0, 1, 2, 3], 0)]);
        warps
    }

    /// Threads go to these places from the instruction before `next`, or end.
    fn go(&mut self, next: u32, going: &[(&[u32], u32)], ended: &[u32]) -> Goes {
        let mut going: Vec<Thread> = going.iter().flat_map(|(harts, pc)| threads(harts, *pc)).collect();
        going.sort_by_key(|thread| thread.hart);
        let meets = BRANCHES.iter().find(|(branch, _)| branch + 4 == next);
        let meets = meets.map(|&(_, pc)| Meeting { at: Reconvergence::At(pc), depth: 0 });
        let warps = self.0.outcome(&Outcome { going, ended: ended.to_vec(), next, meets });
        warps.into_iter().map(|(pops, warp)| (pops, warp.harts, warp.pc)).collect()
    }

    /// Threads that stand at a place are joined by others.
    fn join(&mut self, standing: &[u32], comes: &[u32], [here, there]: [u32; 2]) -> bool {
        self.0.joins(&warp(here, standing), &warp(there, comes))
    }

    /// Splits, a bit a lane.
    fn splits(&self) -> Vec<u64> {
        self.0.table[0].clone()
    }
}

fn warp(pc: u32, harts: &[u32]) -> Warp {
    Warp { harts: harts.to_vec(), pc, whole: false, front: Front::default() }
}

fn threads(harts: &[u32], pc: u32) -> Vec<Thread> {
    harts.iter().map(|&hart| Thread { hart, pc, depth: 0, calls: 0 }).collect()
}

/// With a threshold of 2 the branch of A, behind which G has three instructions, leaves the warp on its stack; that of
/// C has F behind it. (Figure 3)
#[test]
fn figure_3() {
    let mut warps = Warps::new(2);
    assert_eq!(warps.go(B, &[(&[0], B), (&[1, 2, 3], C)], &[]), [(0, vec![1, 2, 3], C)]);
    assert_eq!(warps.splits(), [0; 0]);
    assert!(warps.0.is_one(&warp(C, &[1, 2, 3])));
    // Both sides are entries, and their RPC is the stack's: they run past F each for itself.
    assert_eq!(warps.go(D, &[(&[1], D), (&[2, 3], E)], &[]), [(0, vec![1], D), (0, vec![2, 3], E)]);
    assert_eq!(warps.splits(), [0b0010, 0b1100]);
    assert_eq!(warps.0.paths(&warp(D, &[1])), 2);
    assert!(!warps.0.is_one(&warp(D, &[1])));
    assert!(!warps.0.stops(&warp(E, &[2, 3]), F) && warps.0.stops(&warp(F, &[2, 3]), G));
    assert_eq!(warps.go(E, &[(&[1], F)], &[]), [(0, vec![1], F)]);
    // One has come to G: it is no entry any more. The other is still a split, whose entry is not the stack's top.
    assert_eq!(warps.go(G, &[(&[1], G)], &[]), []);
    assert_eq!(warps.splits(), [0b1100]);
    assert!(!warps.0.is_one(&warp(E, &[2, 3])));
    // So is the other: the stack goes on with B, and then with all.
    assert_eq!(warps.go(G, &[(&[2, 3], G)], &[]), [(1, vec![0], B)]);
    assert_eq!(warps.splits(), [0; 0]);
    assert_eq!(warps.go(C, &[(&[0], G)], &[]), [(1, vec![0, 1, 2, 3], G)]);
}

/// Of the blocks behind branches: no more than N instructions.
#[test]
fn the_threshold_says_which_branches_subdivide() {
    for (threshold, outer, inner) in [(0, false, false), (1, false, true), (2, false, true), (3, true, true)] {
        let mut warps = Warps::new(threshold);
        warps.go(B, &[(&[0], B), (&[1, 2, 3], C)], &[]);
        assert_eq!(!warps.splits().is_empty(), outer, "{threshold}");
        let mut warps = Warps::new(threshold);
        warps.go(B, &[(&[0, 1, 2, 3], C)], &[]);
        assert_eq!(warps.splits(), [0; 0], "nothing has parted them");
        warps.go(D, &[(&[0, 1], D), (&[2, 3], E)], &[]);
        assert_eq!(!warps.splits().is_empty(), inner, "{threshold}");
    }
}

/// Where a branch is not known, or its threads reconverge behind a return, the stack is used.
#[test]
fn without_a_block_behind_there_is_no_subdivision() {
    let mut warps = Warps::new(u32::MAX);
    assert_eq!(warps.go(F, &[(&[0], E), (&[1, 2, 3], F)], &[]), [(0, vec![0], E)]);
    assert_eq!(warps.splits(), [0; 0]);
}

/// A branch of a split makes more of them, though the block behind it is long, and a side that has come to the RPC none.
#[test]
fn once_subdivided_every_branch_subdivides() {
    let mut warps = Warps::new(1);
    warps.go(B, &[(&[0, 1, 2, 3], C)], &[]);
    warps.go(D, &[(&[0], D), (&[1, 2, 3], E)], &[]);
    let parted = warps.go(B, &[(&[1], B), (&[2, 3], C)], &[]);
    assert_eq!(parted, [(0, vec![1], B), (0, vec![2, 3], C)]);
    assert_eq!(warps.splits(), [0b0001, 0b0010, 0b1100]);
    assert_eq!(warps.0.paths(&warp(C, &[2, 3])), 3);
    // On the bottom of the stack there is no RPC: only a pc brings them together.
    assert_eq!(warps.go(C, &[(&[1], G)], &[]), [(0, vec![1], G)]);
    assert_eq!(warps.splits(), [0b0001, 0b1100, 0b0010]);
}

/// With all threads of the top in one split, the warp is on its stack again, and the threshold counts again.
#[test]
fn splits_at_one_pc_become_one() {
    let mut warps = Warps::new(2);
    warps.go(B, &[(&[0], B), (&[1, 2, 3], C)], &[]);
    warps.go(D, &[(&[1], D), (&[2, 3], E)], &[]);
    assert!(!warps.join(&[1], &[2, 3], [D, D + 4]));
    assert_eq!(warps.go(D, &[(&[2], D), (&[3], E)], &[]), [(0, vec![2], D), (0, vec![3], E)]);
    assert!(warps.join(&[2], &[3], [F, F]));
    assert_eq!(warps.splits(), [0b0010, 0b1100]);
    assert!(warps.join(&[2, 3], &[1], [F, F]));
    assert_eq!(warps.splits(), [0; 0]);
    assert!(warps.0.is_one(&warp(F, &[1, 2, 3])));
    assert_eq!(warps.go(B, &[(&[1], B), (&[2, 3], C)], &[]), [(0, vec![2, 3], C)]);
}

/// Another call depth is another place, if the pc is one.
#[test]
fn splits_of_two_activations_stay_apart() {
    let mut warps = Warps::new(1);
    warps.go(D, &[(&[0, 1], D), (&[2, 3], E)], &[]);
    let deeper = |hart| Thread { hart, pc: F, depth: 1, calls: 0 };
    let called = Outcome { going: [2, 3].map(deeper).to_vec(), ended: Vec::new(), next: F, meets: None };
    assert_eq!(warps.0.outcome(&called), [(0, warp(F, &[2, 3]))]);
    assert!(!warps.join(&[0, 1], &[2, 3], [F, F]));
    // Nor are those of a split one, if a branch sends them to one pc at two depths.
    let going = vec![Thread { hart: 0, pc: G, depth: 0, calls: 0 }, Thread { hart: 1, pc: G, depth: 1, calls: 0 }];
    let parted = warps.0.outcome(&Outcome { going, ended: Vec::new(), next: G, meets: None });
    assert_eq!(parted, [(0, warp(G, &[0])), (0, warp(G, &[1]))]);
}

/// Threads that end are nowhere; who is left of the top's threads is on the stack.
#[test]
fn who_ends_leaves_its_split() {
    let mut warps = Warps::new(1);
    warps.go(D, &[(&[0, 1], D), (&[2, 3], E)], &[]);
    assert_eq!(warps.go(E, &[(&[0], F)], &[1]), [(0, vec![0], F)]);
    assert_eq!(warps.splits(), [0b1100, 0b0001]);
    assert_eq!(warps.go(F, &[], &[2, 3]), []);
    assert_eq!(warps.splits(), [0; 0]);
    assert_eq!(warps.go(B, &[], &[0]), []);
    // The next block's threads begin on a stack that is empty.
    assert_eq!(warps.go(0, &[(&[0, 1, 2], 0)], &[]), [(0, vec![0, 1, 2], 0)]);
    assert_eq!(warps.0.stacks.top(0).0.len(), 3);
}

/// Those of a warp that were at two barriers go on together as two.
#[test]
fn a_wake_goes_on_with_each_split() {
    let mut warps = Warps::new(1);
    warps.go(D, &[(&[0, 1], D), (&[2, 3], E)], &[]);
    let woken = warps.go(0, &[(&[0, 1], E), (&[2, 3], F)], &[]);
    assert_eq!(woken, [(0, vec![0, 1], E), (0, vec![2, 3], F)]);
    assert_eq!(warps.splits(), [0b0011, 0b1100]);
    // At one, they are one warp.
    assert_eq!(warps.go(0, &[(&[0, 1, 2, 3], G)], &[]), [(0, vec![0, 1, 2, 3], G)]);
    assert_eq!(warps.splits(), [0; 0]);
}

#[test]
#[should_panic(expected = "splits are disjoint")]
fn a_thread_in_two_splits_is_noticed() {
    let mut warps = Warps::new(1);
    warps.go(D, &[(&[0, 1], D), (&[2, 3], E)], &[]);
    warps.0.table[0][0] |= 0b0100;
    warps.go(D, &[(&[0], D), (&[1], E)], &[]);
}

#[test]
#[should_panic(expected = "who is in no split has arrived")]
fn a_thread_in_no_split_is_noticed() {
    let mut warps = Warps::new(1);
    warps.go(D, &[(&[0, 1], D), (&[2, 3], E)], &[]);
    warps.0.table[0][1] = 0b1000;
    warps.go(D, &[(&[0], D), (&[1], E)], &[]);
}

#[test]
fn each_split_and_each_warp_on_its_stack_has_its_turn() {
    let mut warps = Subdivision::new(4, 3, 1, BTreeMap::from([(D - 4, 1)]));
    let all = |slot: u32| (4 * slot..4 * slot + 4).collect::<Vec<_>>();
    for slot in 0..3 {
        warps.outcome(&Outcome { going: threads(&all(slot), 0), ended: Vec::new(), next: 0, meets: None });
    }
    let meets = Some(Meeting { at: Reconvergence::At(F), depth: 0 });
    let parted = [threads(&[4, 5], D), threads(&[6, 7], E)].concat();
    warps.outcome(&Outcome { going: parted, ended: Vec::new(), next: D, meets });
    let pool = [warp(0, &all(0)), warp(E, &[6, 7]), warp(D, &[4, 5]), warp(0, &all(2))];
    let turns: Vec<usize> = (0..5).map(|_| warps.choose(&pool, &[0, 1, 2, 3])).collect();
    assert_eq!(turns, [2, 1, 3, 0, 2]);
}

#[test]
fn of_two_front_ends_that_which_can_issue_first_stays() {
    let front = |from, fetched: &[u64], issued| Front {
        from,
        fetched: fetched.iter().copied().collect(),
        issued,
        ..Front::default()
    };
    let keeps = |one: &Front, other: &Front| {
        let [a, b] = [(one, 0), (other, 1)].map(|(front, hart)| Warp { front: front.clone(), ..warp(E, &[hart]) });
        let [both, reversed] = [a.clone().and(b.clone()), b.and(a)];
        assert_eq!((both.harts, reversed.harts), (vec![0, 1], vec![0, 1]));
        both.front == *one && reversed.front == *one
    };
    // A buffer with something in it; the older; that which has not issued in this cycle; who is steered first.
    assert!(keeps(&front(9, &[9], None), &front(2, &[], None)));
    assert!(keeps(&front(3, &[3, 5], None), &front(4, &[4], None)));
    assert!(keeps(&front(4, &[4], None), &front(3, &[3], Some(8))));
    assert!(keeps(&front(4, &[], None), &front(5, &[], None)));
}
