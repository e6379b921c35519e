//! The work distributor: hands the blocks of a launch to free groups of warp slots, block after block.
//!
//! A launch gives the size of the grid and of a block; from them come, once, the warps of a block, the group of slots
//! that a block occupies ([`crate::block`]), and the threads of its last warp, which may be some of the lanes only.
//! Then, until no block is left, a free group is chosen and the block's warps are started, one a cycle; the next group
//! is chosen in the cycle of the last start.
//!
//! A group is free when no slot of it has a live thread or a register with a write under way: a late load of the block
//! before must not hit the registers of the next. Of several free groups the lowest is chosen. Any would do: blocks do
//! not wait for a certain group, so none can starve, and the lowest needs no state.
//!
//! What it does not do: blocks start in order of their numbers but end in any; a block may count on nothing about
//! others. A grid of 0 blocks and blocks that the core does not hold are for the host to refuse.

use crate::block::{Grid, same_group, whole_group};
use crate::divergence::interface::Start;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct DistributorIn<T> {
    /// Begins a launch of what `entry`, `blocks` and `block_threads` say; taken when none is under way.
    pub launch: T,
    /// Instruction number of the first instruction, `pc_bits`.
    #[width(s.pc_bits())]
    pub entry: T,
    /// See [`Grid`].
    #[width(32)]
    pub blocks: T,
    #[width(Grid::shape(s).block_threads)]
    pub block_threads: T,
    /// `start` is taken in this cycle.
    pub start_ready: T,
    /// One bit per slot: it has live threads.
    #[width(s.warps)]
    pub live: T,
    /// One bit per slot: no register of it has a write under way.
    #[width(s.warps)]
    pub quiet: T,
    /// Nothing is live or under way, memory included.
    pub idle: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct DistributorOut<T> {
    /// A warp of the block `block` (32 bits); stays until `start_ready`.
    pub start: Start<T>,
    #[width(32)]
    pub block: T,
    /// One bit per slot: it is of the group whose block is being started, until the last of its starts is taken.
    #[width(s.warps)]
    pub filling: T,
    /// Warps are still to be started.
    pub more: T,
    /// Of the launch under way.
    pub grid: Grid<T>,
    /// A launch begins.
    pub restart: T,
    /// The launch has ended; until the next begins.
    pub done: T,
}

/// What a proof sees.
struct Inside {
    /// A launch is under way.
    running: Signal,
    /// A block is being started; blocks that were chosen or are done.
    busy: Signal,
    next: Signal,
    /// Number of a block's last warp, and its lanes.
    last: Signal,
    last_mask: Signal,
}

/// The distributor of a shape.
pub fn distributor(s: &Shape) -> TypedModule<DistributorIn<Width>, DistributorOut<Signal>> {
    module("distributor", DistributorIn::shape(s), |m, i| described(m, s, i).0)
}

fn described(m: Builder, s: &Shape, i: DistributorIn<Signal>) -> (DistributorOut<Signal>, Inside) {
    m.doc("Hands the blocks of a launch to free groups of warp slots.");
    let running = m.reg("running", 1).reset(0u32);
    wire!(restart = i.launch & !running.q);

    // What a block is.
    let last_thread = i.block_threads - 1;
    let number = |low: u32, count: u32, width: Width| match count.ilog2() {
        0 => m.lit(0u32, width),
        bits => last_thread.slice(low, bits),
    };
    wire!(last_warp = number(s.lanes.ilog2(), s.warps, s.warp_bits()));
    wire!(last_lane = number(0, s.lanes, s.lane_bits()));
    wire!(group = cat(&(0..s.warp_bits()).map(|bit| last_warp.from_bit(bit).any()).collect::<Vec<_>>()));
    wire!(lanes = cat(&(0..s.lanes).map(|lane| last_lane.ge(lane)).collect::<Vec<_>>()));
    let entry = m.pipe_if("entry_held", restart, i.entry);
    let grid = Grid { blocks: i.blocks, block_threads: i.block_threads, group };
    let grid = m.pipe_if("grid", restart, grid);
    let last = m.pipe_if("last", restart, last_warp);
    let last_mask = m.pipe_if("last_mask", restart, lanes);

    // The block that is being started.
    let busy = m.reg("busy", 1).reset(0u32);
    let slot = m.reg("slot", s.warp_bits());
    wire!(is_last = (slot.q & grid.group).eq(last));
    wire!(started = busy.q & i.start_ready);
    wire!(completed = started & is_last);
    let all_lanes = m.lit(Bits::ones(s.lanes), s.lanes);
    let start = Start { valid: busy.q, slot: slot.q, pc: entry, mask: is_last.mux(last_mask, all_lanes) };
    wire!(filling = same_group(slot.q, grid.group, s.warps).only_if(busy.q));

    // The next one.
    let next = m.reg("next", 32);
    wire!(left = running.q & next.q.ne(grid.blocks));
    let firsts = cat(&(0..s.warps).map(|slot| (grid.group & slot).eq(0)).collect::<Vec<_>>());
    wire!(free = whole_group(!i.live & i.quiet, grid.group) & firsts & !filling);
    wire!(choice = free.lowest_one());
    wire!(chosen = left & free.any() & (!busy.q | completed));
    busy.next((busy.q & !completed) | chosen);
    slot.next_if(chosen | started, chosen.mux(choice.one_hot_index(), slot.q + 1));
    let zero = next.q.literal(0u32);
    next.next_if(restart | chosen, restart.mux(zero, next.q + 1));
    let block = m.pipe_if("block", chosen, next.q);

    wire!(finished = running.q & !left & !busy.q & i.idle);
    running.next((running.q & !finished) | restart);
    let done = m.reg("done", 1).reset(0u32);
    done.next((done.q & !restart) | finished);

    let at = slot.q.decode(s.warps);
    m.assert("starts_on_a_free_slot", !busy.q | !(at & (i.live | !i.quiet)).any());
    m.assume("a_grid_has_blocks", !restart | i.blocks.any());
    let fits = i.block_threads.any() & i.block_threads.le(s.threads());
    m.assume("a_block_fits_the_core", !restart | fits);
    m.cover("next_block_in_the_cycle_of_the_last_start", chosen & busy.q);
    m.cover("no_group_is_free", left & !busy.q & !free.any());
    m.cover("waits_for_registers", left & !busy.q & !free.any() & !i.live.any());
    m.cover("last_warp_is_partial", started & is_last & !last_mask.all());
    m.cover("several_groups_are_free", chosen & (free & !choice).any());
    let inside = Inside { running: running.q, busy: busy.q, next: next.q, last, last_mask };
    let more = left | busy.q;
    (DistributorOut { start, block, filling, more, grid, restart, done: done.q }, inside)
}

pub mod proof;
#[cfg(test)]
mod tests;
