//! Thread blocks: how blocks lie on the core's warp slots, for whoever deals with them.
//!
//! A block's warps occupy an aligned group of 2^k warp slots, the least that holds them, the same k for all blocks of a
//! launch. So the number of a slot falls in two: its low k bits are the warp's number in its block, the others say
//! which group. [`Grid::group`] has a one for each of those k bits.

use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// What a launch runs, the same from its first cycle to its last.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Grid<T> {
    /// Blocks of the grid, 32 bits.
    #[width(32)]
    pub blocks: T,
    /// Threads of a block, `count_width(threads)` bits: 1 … lanes × warps.
    #[width(count_width(s.threads()))]
    pub block_threads: T,
    /// Which bits of a slot's number are the warp's number in its block, `warp_bits`: ones at the bottom.
    #[width(s.warp_bits())]
    pub group: T,
}

/// One bit per slot: whether the bit of every slot of its group is on.
pub fn whole_group(slots: Signal, group: Signal) -> Signal {
    let count = slots.width();
    (0..count.ilog2()).fold(slots, |bits, level| {
        // Twice as wide a group, if there is one: both halves.
        let other = cat(&(0..count).map(|slot| bits.bit(slot ^ 1 << level)).collect::<Vec<_>>());
        bits & (other | (!group.bit(level)).repeat(count))
    })
}

/// One bit per slot: it is in the group of `slot`.
pub fn same_group(slot: Signal, group: Signal, count: u32) -> Signal {
    cat(&(0..count).map(|other| ((slot ^ other) & !group).eq(0)).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_sim::Sim;

    #[derive(Bundle, Clone, Copy, PartialEq, Debug)]
    struct In<T> {
        slots: T,
        slot: T,
        group: T,
    }

    #[derive(Bundle, Clone, Copy, PartialEq, Debug)]
    struct Out<T> {
        whole: T,
        same: T,
    }

    #[test]
    fn groups_of_every_size() {
        for (slots, seed) in [(1, 1), (2, 2), (8, 3), (64, 4)] {
            println!("{slots} slots, seed {seed}");
            let inputs = In { slots, slot: index_width(slots), group: index_width(slots) };
            let both = module("groups", inputs, |_, i| Out {
                whole: whole_group(i.slots, i.group),
                same: same_group(i.slot, i.group, slots),
            });
            let mut r = fastrand::Rng::with_seed(seed);
            let mut t = Sim::new(&both.check().unwrap());
            for _ in 0..500 {
                let size = 1u32 << r.u32(..=slots.ilog2());
                let all = u64::MAX >> (64 - slots);
                let (bits, slot) = (all & (r.u64(..) | r.u64(..) | r.u64(..) | r.u64(..)), r.u32(..slots));
                t.poke(In { slots: bits.into(), slot: slot.into(), group: (size - 1).into() });
                let members = |of: u32| (0..slots).filter(move |other| other / size == of / size);
                let out = t.peek();
                for slot in 0..slots {
                    assert_eq!(out.whole.bit(slot), members(slot).all(|k| bits >> k & 1 == 1), "{slot} of {bits:b}");
                }
                assert_eq!(out.same, members(slot).fold(0, |mask, k| mask | 1u64 << k), "{slot}, {size}");
            }
        }
    }
}
