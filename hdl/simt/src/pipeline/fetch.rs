//! Stage 2, fetch: presents the pc to instruction memory, which answers in stage 3.

use super::steer::{Fetch, Flush};
use crate::shape::Shape;
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct FetchIn<T> {
    pub chosen: Fetch<T>,
    /// Decode stops this slot's front end: younger fetches of the slot are squashed.
    pub stop_valid: T,
    pub stop_slot: T,
    pub flush: Option<Flush<T>>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct FetchOut<T> {
    /// What this stage holds.
    pub fetching: Fetch<T>,
    /// What stage 3 holds, beside the word that instruction memory gives.
    pub decoding: Fetch<T>,
}

pub fn fetch(s: &Shape) -> TypedModule<FetchIn<Width>, FetchOut<Signal>> {
    let inputs = FetchIn { chosen: Fetch::shape(s), stop_valid: 1, stop_slot: s.slot_bits(), flush: Flush::shape(s) };
    module("fetch", inputs, |m, i| {
        m.doc("Stage 2: the pc goes to instruction memory.");
        let fetching = m.stage("fetching", i.chosen);
        let flushed = i.flush.map_or(m.lit(0u32, 1), |flush| flush.drops(fetching.slot));
        wire!(squashed = (i.stop_valid & i.stop_slot.eq(fetching.slot)) | flushed);
        m.cover("squashed", fetching.valid & squashed);
        let decoding = m.stage("decoding", Fetch { valid: fetching.valid & !squashed, ..fetching });
        FetchOut { fetching, decoding }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_hdl::Bits;
    use heddle_sim::Sim;

    #[test]
    fn two_stages_and_the_squash_between_them() {
        for (warps, seed) in [(1, 1), (2, 2), (8, 3)] {
            println!("{warps} warps, seed {seed}");
            let s = Shape::new(2, warps);
            let mut r = fastrand::Rng::with_seed(seed);
            let mut t = Sim::new(&fetch(&s).check().unwrap());
            t.reset();
            // (slot, pc) in stages 2 and 3.
            let mut second: Option<(u32, u32)> = None;
            let mut third: Option<(u32, u32)> = None;
            for _ in 0..1000 {
                let chosen = (r.u8(..4) > 0).then(|| (r.u32(..warps), r.u32(..1 << s.pc_bits())));
                let stop = r.bool().then(|| r.u32(..warps));
                let (slot, pc) = chosen.unwrap_or_default();
                t.poke(FetchIn {
                    chosen: Fetch { valid: chosen.is_some().into(), slot: slot.into(), pc: pc.into() },
                    stop_valid: stop.is_some().into(),
                    stop_slot: stop.unwrap_or(0).into(),
                    flush: None,
                });
                let out = t.peek();
                let seen = |f: Fetch<Bits>| (f.valid == 1).then(|| (f.slot.low_u64() as u32, f.pc.low_u64() as u32));
                assert_eq!((seen(out.fetching), seen(out.decoding)), (second, third));
                t.step();
                third = second.filter(|&(slot, _)| stop != Some(slot));
                second = chosen;
            }
        }
    }
}
