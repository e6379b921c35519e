//! What the barrier unit is for: no phase is lost.
//!
//! Each warp has a ghost count of the barriers it has passed since its block began. Any warp is followed. Blocks begin
//! in groups without live threads, their warps start in any order, reach barriers, and end, as they please.

use super::{BarrierIn, BarrierOut, described};
use crate::block::{same_group, whole_group};
use crate::proof::{cover, held, implies, index_of};
use crate::shape::Shape;
use heddle_hdl::{prelude::*, select};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ProofIn<T> {
    pub wake_ready: T,
    /// A block begins in the group of `slot`, if that has no live thread.
    pub begins: T,
    pub slot: T,
    /// One bit per slot: a warp of a block that has begun starts; reaches a barrier; ends.
    pub starts: T,
    pub arrives: T,
    pub ends: T,
    /// Number of a block's last warp; the slot that is followed.
    pub last: T,
    pub followed: T,
}

/// Bits of a ghost count: enough to tell counts that differ by one apart.
const PHASE: Width = 2;

/// The barrier unit with all that warps may do.
pub fn barrier_proof(s: &Shape) -> TypedModule<ProofIn<Width>, BarrierOut<Signal>> {
    let (warps, slot) = (s.warps, s.warp_bits());
    let inputs = ProofIn {
        wake_ready: 1,
        begins: 1,
        slot,
        starts: warps,
        arrives: warps,
        ends: warps,
        last: slot,
        followed: slot,
    };
    module("barrier_proof", inputs, |m, i| {
        let last = index_of(warps, held(m, "last_warp", i.last));
        let group = cat(&(0..slot).map(|bit| last.from_bit(bit).any()).collect::<Vec<_>>());
        let [live, waiting, coming] = ["live", "waiting", "coming"].map(|name| m.reg(name, warps).reset(0u32));
        wire!(filling = !whole_group(!coming.q, group));
        let inputs = BarrierIn { live: live.q, waiting: waiting.q, filling, group, wake_ready: i.wake_ready };
        let (out, inside) = described(m, s, inputs);

        wire!(here = same_group(index_of(warps, i.slot), group, warps).only_if(i.begins));
        wire!(may_begin = here & whole_group(!live.q & !coming.q, group));
        let of_block = (0..warps).map(|k| (m.lit(k, slot) & group).le(last));
        wire!(started = coming.q & i.starts);
        coming.next((coming.q & !started) | (may_begin & cat(&of_block.collect::<Vec<_>>())));
        wire!(running = live.q & !waiting.q);
        wire!(woken = out.wake.slot.decode(warps).only_if(out.wake.valid & i.wake_ready));
        live.next((live.q & !(running & i.ends)) | started);
        waiting.next((waiting.q & !woken) | (running & !i.ends & i.arrives));
        m.assert("warps_are_where_they_should", !((waiting.q & !live.q) | (coming.q & live.q)).any());

        // Barriers passed, of every slot.
        let phases: Vec<Signal> = (0..warps)
            .map(|k| {
                let phase = m.reg(&format!("phase_{k}"), PHASE).reset(0u32);
                let zero = phase.q.literal(0u32);
                phase.next_if(may_begin.bit(k) | woken.bit(k), may_begin.bit(k).mux(zero, phase.q + 1));
                phase.q
            })
            .collect();

        let me = index_of(warps, held(m, "slot_followed", i.followed));
        let of_me = |bits: Signal| bits.select(me, 1);
        let mine = same_group(me, group, warps);
        let phase = select(&phases, me);
        wire!(filled = !of_me(filling));
        let others = |f: &dyn Fn(u32) -> Signal| {
            cat(&(0..warps).map(|k| implies(mine.bit(k) & live.q.bit(k), f(k))).collect::<Vec<_>>()).all()
        };
        let behind = |k: u32| phases[k as usize].eq(phase);
        let ahead = |k: u32| phases[k as usize].eq(phase + 1);
        // Every live thread of the block has reached the barrier at which this warp waits.
        wire!(due = of_me(waiting.q) & filled & others(&|k| (behind(k) & waiting.q.bit(k)) | ahead(k)));
        m.assert("woken_when_all_have_arrived", implies(of_me(woken), due));
        let near = others(&|k| behind(k) | ahead(k) | phases[k as usize].eq(phase - 1));
        m.assert("phases_differ_by_at_most_one", implies(of_me(live.q), near));

        // All of a group have passed the same number, those of a release set counted ahead.
        let with_release = |k: u32| phases[k as usize] + inside.released.bit(k).zext(PHASE);
        let mine_with_release = phase + of_me(inside.released).zext(PHASE);
        let same = others(&|k| with_release(k).eq(mine_with_release));
        m.assert("a_release_set_is_all_live_warps", implies(of_me(live.q), same));
        for k in 0..warps {
            let passed = phases[k as usize].any() | inside.released.bit(k);
            m.assert(&format!("slot_{k}_passes_when_all_are_started"), implies(filling.bit(k), !passed));
        }
        m.assert("released_is_due", implies(of_me(inside.released), due));

        // Woken when every warp had its turn.
        let age = m.reg("age", count_width(2 * warps)).reset(0u32);
        age.next_if(i.wake_ready | !due, (age.q + 1).only_if(due & !of_me(woken)));
        m.assert("woken_in_a_bounded_time", age.q.le(warps));
        let was_due = m.pipe_reset("was_due", due & !of_me(woken));
        m.assert("due_is_released", implies(was_due, of_me(inside.released)));
        let last = index_of(warps, inside.offer.slot);
        // The one offered, and others that may be offered before this warp is.
        let turns = (me + !last).only_if(m.lit(warps > 1, 1)).zext(age.q.width()) + 1;
        let is_offered = inside.offer.valid & last.eq(me);
        let passing = of_me(inside.released).mux(is_offered | (age.q + turns).le(warps), !age.q.any());
        m.assert("turns_pass", passing);

        cover(m, "released", of_me(woken));
        cover(m, "second_barrier", of_me(woken) & phase.eq(1));
        if warps > 1 {
            let lapped = cat(&(0..warps).map(|k| mine.bit(k) & waiting.q.bit(k) & ahead(k)).collect::<Vec<_>>());
            cover(m, "lapped", of_me(live.q) & lapped.any());
            let ended = mine & !live.q & !filling;
            cover(m, "without_one_that_ended", of_me(woken) & ended.any() & last.any());
            cover(m, "waits_for_a_start", of_me(waiting.q) & !filled);
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
        for warps in [1, 2, 4, 8] {
            holds_at_random(&barrier_proof(&Shape::new(1, warps)).check().unwrap().netlist, 20_000);
        }
    }
}
