//! Barriers whose threads would wait for each other at two places (§4.3).
//!
//! In the paper two conflict if a live range of one overlaps one of the other, and neither is in the other. Then each
//! range has the place where the other ends, so we ask for that: at the wait of each, threads participate in the other.
//! Where ranges are of instructions, and two barriers are joined one after the other in a block, or on the edge to a
//! wait, that is easier to see than where their ranges begin.
//!
//! The barrier that the programmer asked for stays. In static deconfliction the other is not placed; in dynamic
//! deconfliction, threads leave the other before they wait. They may join it again behind the wait, which is not in the
//! paper: else threads that were released together with some of the warp meet the rest nowhere but at the barrier that
//! was asked for.

use super::place::{Barrier, Why};
use std::collections::BTreeSet;

/// What becomes of a post-dominator's barrier that conflicts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deconflict {
    /// It is not placed.
    Static,
    /// Threads leave it before they wait.
    #[default]
    Dynamic,
    /// They leave it so, and join it again behind the wait.
    Rejoin,
}

/// Whether threads that wait at each barrier may participate in the other.
pub fn conflict(a: &Barrier, b: &Barrier) -> bool {
    let meets = |a: &Barrier, range: &BTreeSet<u32>| a.waits.iter().chain(&a.calls).any(|wait| range.contains(wait));
    meets(a, &b.range()) && meets(b, &a.range())
}

/// Resolves all conflicts of post-dominators' barriers with others. Says which there were, by number before.
pub fn deconflict(barriers: &mut Vec<Barrier>, how: Deconflict) -> Vec<(usize, usize)> {
    let asked = |barrier: &Barrier| matches!(barrier.why, Why::Predicted(_) | Why::Function(_));
    let mut conflicts = Vec::new();
    for other in 0..barriers.len() {
        if barriers[other].why != Why::PostDominator {
            continue;
        }
        for one in 0..barriers.len() {
            let (a, b) = (&barriers[one], &barriers[other]);
            if asked(a) && conflict(a, b) {
                conflicts.push((one, other));
                let range = b.range();
                let waits = a.waits.iter().chain(&a.calls).copied();
                let waits: Vec<u32> = waits.filter(|wait| range.contains(wait)).collect();
                if how == Deconflict::Rejoin {
                    let again: Vec<u32> = waits.iter().copied().filter(|wait| a.waits.contains(wait)).collect();
                    barriers[other].rejoins.extend(again);
                }
                barriers[other].gives_way.extend(waits);
            }
        }
    }
    if how == Deconflict::Static {
        let mut number = 0;
        barriers.retain(|_| {
            number += 1;
            conflicts.iter().all(|&(_, other)| other != number - 1)
        });
    }
    conflicts
}
