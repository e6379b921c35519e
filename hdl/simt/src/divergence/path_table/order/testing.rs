//! What orders that are stacks make of three paths, said as lists.

use crate::divergence::testing::P;
use crate::shape::Order;
use std::cmp::Reverse;

/// Whose turn it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// `a` and `b` have become of the active path.
    Outcome,
    /// `b` comes back behind `a`.
    Return,
    /// `b` is from below `c`.
    Seek,
    /// `b` comes from a convergence barrier, behind `a`, which runs.
    Release,
}

/// The list: the sides of a branch, then what was there; a path that is in the place of one before it is part of that.
pub fn stacked(order: Order, turn: Turn, [a, b, c]: [P; 3]) -> Vec<P> {
    let (there, both) = (|p: &P| p.mask != 0, a.mask != 0 && b.mask != 0);
    let threads = |p: P| p.mask.count_ones();
    let branch = turn == Turn::Outcome && both;
    let b_first = match order {
        Order::Swap => both && b.pc < a.pc,
        Order::Minority => branch && (threads(b), b.pc) < (threads(a), a.pc),
        _ => branch && (Reverse(threads(b)), b.pc) < (Reverse(threads(a)), a.pc),
    };
    let mut list = match turn {
        Turn::Seek => vec![a, c, b],
        Turn::Outcome | Turn::Return if b_first => vec![b, a, c],
        _ => vec![a, b, c],
    };
    list.retain(there);
    let fixed = if turn == Turn::Release { vec![list.remove(0)] } else { vec![] };
    let jumps_beyond = order == Order::Swap && turn == Turn::Outcome && !both && list.len() == 2;
    if jumps_beyond && list[1].pc < list[0].pc {
        list.swap(0, 1);
    }
    list.sort_by_key(|p| p.waits);
    let mut merged: Vec<P> = Vec::new();
    for p in list {
        match merged.iter_mut().find(|q| q.key() == p.key()) {
            Some(q) => q.mask |= p.mask,
            None => merged.push(p),
        }
    }
    [fixed, merged].concat()
}
