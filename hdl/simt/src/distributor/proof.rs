//! What the distributor is for: each warp of each block is started exactly once, with its threads, where nobody is.
//!
//! Any warp of any block of any grid is followed, and any group of slots. Slots come to life with a start; when they
//! end, when their registers are written and when a start is taken is free.

use super::{DistributorIn, DistributorOut, described};
use crate::block::same_group;
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ProofIn<T> {
    pub distributor: DistributorIn<T>,
    /// Threads of a block less 1.
    #[width(index_width(s.threads()))]
    pub last_thread: T,
    /// One bit per slot: its threads end; a write of it begins, if it is live; its writes are done.
    #[width(s.warps)]
    pub ends: T,
    #[width(s.warps)]
    pub begins: T,
    #[width(s.warps)]
    pub written: T,
    /// The block and the warp in it that are followed, and a slot of the group that is.
    #[width(32)]
    pub this_block: T,
    #[width(s.warp_bits())]
    pub this_warp: T,
    #[width(s.warp_bits())]
    pub this_slot: T,
}

/// The distributor with all legal inputs.
pub fn distributor_proof(s: &Shape) -> TypedModule<ProofIn<Width>, DistributorOut<Signal>> {
    module("distributor_proof", ProofIn::shape(s), |m, i| {
        let live = m.reg("live", s.warps).reset(0u32);
        let pending = m.reg("pending", s.warps).reset(0u32);
        let last_thread = index_of(s.threads(), i.last_thread);
        let given = i.distributor;
        let (out, inside) = described(
            m,
            s,
            DistributorIn {
                blocks: given.blocks.any().mux(given.blocks, given.blocks.literal(1u32)),
                block_threads: last_thread.zext(given.block_threads.width()) + 1,
                live: live.q,
                quiet: !pending.q,
                idle: given.idle & !(live.q | pending.q).any(),
                ..given
            },
        );
        let DistributorOut { start, block, grid, .. } = out;
        wire!(taken = start.valid & given.start_ready);
        let at = start.slot.decode(s.warps);
        live.next((live.q & !i.ends) | at.only_if(taken));
        pending.next((pending.q & !i.written) | (i.begins & live.q));
        wire!(used = live.q | pending.q);

        // What is known of a launch under way.
        let warp_of = |slot: Signal| slot & grid.group;
        let last = inside.last;
        let (busy, next) = (inside.busy, inside.next);
        let lanes_bits = s.lanes.ilog2();
        let last_of_grid = grid.block_threads - 1;
        let last_warp = if s.warps > 1 { last_of_grid.slice(lanes_bits, s.warps.ilog2()) } else { last.literal(0u32) };
        let smeared = (0..s.warp_bits()).map(|bit| last.from_bit(bit).any());
        let threads_of = |warp: Signal| {
            let exists = |lane: u32| {
                let thread = if lanes_bits == 0 { warp } else { cat(&[m.lit(lane, lanes_bits), warp]) };
                thread.zext(32).lt(grid.block_threads.zext(32))
            };
            cat(&(0..s.lanes).map(exists).collect::<Vec<_>>())
        };
        let fits = grid.block_threads.any() & grid.block_threads.le(s.threads());
        let launch = grid.blocks.any() & fits & last.eq(last_warp) & grid.group.eq(cat(&smeared.collect::<Vec<_>>()));
        m.assert("launch_is_kept", implies(inside.running, launch & next.le(grid.blocks)));
        m.assert("last_mask_is_kept", implies(inside.running, inside.last_mask.eq(threads_of(last))));
        m.assert("busy_in_a_launch", implies(busy, inside.running & next.any() & block.eq(next - 1)));
        m.assert("warp_is_of_the_block", implies(busy, warp_of(start.slot).le(last)));
        m.assert("slots_are_there", implies(busy, start.slot.eq(index_of(s.warps, start.slot))));

        // One warp of one block.
        let wanted = held(m, "block_followed", i.this_block);
        let warp = index_of(s.warps, held(m, "warp_followed", i.this_warp));
        let once = m.reg("once", 1).reset(0u32);
        wire!(now = taken & block.eq(wanted) & warp_of(start.slot).eq(warp));
        once.next((once.q & !out.restart) | now);
        m.assert("started_at_most_once", implies(now, !once.q));
        wire!(exists = wanted.lt(grid.blocks) & warp.le(last));
        m.assert("started_if_it_exists", implies(now, exists));
        wire!(under_way = busy & wanted.eq(next - 1));
        let so_far = under_way.mux(warp.lt(warp_of(start.slot)), wanted.lt(next));
        m.assert("started_in_order", implies(inside.running, once.q.eq(so_far & warp.le(last))));
        wire!(finished = m.pipe_reset("was_running", inside.running) & !inside.running);
        m.assert("all_started_at_the_end", implies(finished, once.q.eq(exists)));
        m.assert("its_threads_start", implies(now, start.mask.eq(threads_of(warp))));

        // Where it starts.
        m.assert("starts_where_nobody_is", implies(taken, !(at & used).any()));
        let to_come = |slot: u32| {
            let number = m.lit(slot, s.warp_bits());
            same_group(start.slot, grid.group, s.warps).bit(slot) & number.ge(start.slot)
        };
        let to_come = cat(&(0..s.warps).map(to_come).collect::<Vec<_>>());
        m.assert("slots_stay_free_until_their_start", implies(busy, !(to_come & used).any()));
        let group = same_group(index_of(s.warps, held(m, "slot_followed", i.this_slot)), grid.group, s.warps);
        wire!(here = taken & (at & group).any());
        let owner = m.pipe_if("owner", here, block);
        wire!(is_first = !warp_of(start.slot).any());
        m.assert("a_block_begins_in_a_free_group", implies(here & is_first, !(group & used).any()));
        m.assert("a_group_has_one_block", implies(here & !is_first, block.eq(owner)));
        let mine = (start.slot.decode(s.warps) & group).any();
        m.assert("owner_is_under_way", implies(busy & mine & !is_first, owner.eq(block)));

        cover(m, "a_launch_ends", finished);
        cover(m, "a_second_block", taken & block.eq(1));
        if s.warps > 1 {
            cover(m, "a_block_of_several_warps", now & !is_first);
            cover(m, "beside_another_block", taken & is_first & live.q.any());
        }
        if s.lanes > 1 {
            cover(m, "a_partial_warp", now & !start.mask.all());
        }
        out
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;

    #[test]
    fn holds_at_random_inputs() {
        for (lanes, warps) in [(1, 1), (1, 4), (4, 1), (2, 2), (4, 8)] {
            holds_at_random(&distributor_proof(&Shape::new(lanes, warps)).check().unwrap().netlist, 5000);
        }
    }
}
