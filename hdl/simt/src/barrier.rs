//! The barrier unit: wakes the warps of a block when all its live threads wait.
//!
//! ```text
//!   live, waiting ──► arrived = waiting & !released ─► all of the group: arrived or not live; filled ──► released ─► offer,
//!                               ▲                                                                          │         one a
//!                               └──────────────────────────────────────────────────────────────────────────┘         cycle
//! ```
//!
//! The divergence unit says of each warp whether all its live threads wait. When those of a block do, and all its warps
//! have been started, they form the block's *release set*. Its warps are woken one a cycle, in turn with those of other
//! blocks. A warp that was woken may be at the next barrier before the last one of the set is woken; so nobody of a set
//! counts as arrived before it is woken, and a block has no second set before the first is empty. Warps without live
//! threads do not count.
//!
//! The warp to be woken is a register, the *offer*: which one it is decides what a divergence unit reads, moves and
//! writes in the cycle in which it takes the wake. The next is chosen while it is taken, or while there is none.
//!
//! What it does not do: it does not know which barrier instruction a thread waits at. Threads of a block that wait at
//! different ones go on together.

use crate::arbiter::{places_above, round_robin};
use crate::block::whole_group;
use crate::divergence::interface::Wake;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct BarrierIn<T> {
    /// One bit per warp slot: it has live threads; all of them wait.
    #[width(s.warps)]
    pub live: T,
    #[width(s.warps)]
    pub waiting: T,
    /// One bit per slot: not all warps of its block have been started.
    #[width(s.warps)]
    pub filling: T,
    /// See [`crate::block::Grid`].
    #[width(s.warp_bits())]
    pub group: T,
    /// `wake` is taken in this cycle.
    pub wake_ready: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct BarrierOut<T> {
    pub wake: Wake<T>,
}

/// What a proof sees: the release sets, one bit per slot; and the offer, whose slot is the last one offered if it is
/// not valid.
struct Inside {
    released: Signal,
    offer: Wake<Signal>,
}

/// The barrier unit of a shape.
pub fn barrier(s: &Shape) -> TypedModule<BarrierIn<Width>, BarrierOut<Signal>> {
    module("barrier", BarrierIn::shape(s), |m, i| described(m, s, i).0)
}

fn described(m: Builder, s: &Shape, i: BarrierIn<Signal>) -> (BarrierOut<Signal>, Inside) {
    m.doc("Wakes the warps of a block when all its live threads wait.");
    let released = m.reg("released", s.warps).reset(0u32);
    wire!(arrived = i.waiting & !released.q);
    wire!(ready = (arrived | !i.live) & !i.filling);
    wire!(complete = whole_group(ready, i.group) & i.live);

    // The last warp that was offered, and whether it still is.
    let offered = m.reg("offered", 1).reset(0u32);
    let slot = m.reg("offered_slot", s.warp_bits()).reset(s.warps - 1);
    let wake = Wake { valid: offered.q, slot: slot.q };
    wire!(last = slot.q.decode(s.warps));
    wire!(offer = last.only_if(offered.q));
    wire!(others = (released.q | complete) & !offer);
    wire!(renews = !offered.q | i.wake_ready);
    offered.next_if(renews, others.any());
    wire!(choice = round_robin(others, places_above(last)));
    slot.next_if(renews & others.any(), choice.one_hot_index());
    released.next((released.q & !offer.only_if(i.wake_ready)) | complete);

    m.assert("only_waiting_warps_are_released", !(released.q & !(i.live & i.waiting)).any());
    m.assert("a_warp_is_released_once", !(released.q & complete).any());
    m.assert("an_offer_is_released", !wake.valid | (offer & released.q).any());
    m.assert("one_of_the_released_is_offered", wake.valid | !released.q.any());
    wire!(all_wait = i.live.any() & !(i.live & !i.waiting).any() & !i.filling.any());
    m.assert("somebody_is_woken_if_all_wait", !all_wait | released.q.any() | complete.any());
    m.cover("block_is_released", complete.any());
    m.cover("ended_warp_does_not_count", (whole_group(ready, i.group) & !i.live).any() & complete.any());
    m.cover("warp_laps_another", (whole_group(arrived | released.q | !i.live, i.group) & arrived).any());
    m.cover("waits_for_a_start", whole_group(arrived | !i.live, i.group).any() & (arrived & i.filling).any());
    m.cover("wake_has_no_turn", wake.valid & !i.wake_ready);
    (BarrierOut { wake }, Inside { released: released.q, offer: wake })
}

pub mod proof;
#[cfg(test)]
mod tests;
