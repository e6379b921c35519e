//! Stage 2, fetch: instruction memory, which got the pc in stage 1, answers; the word is registered for stage 3.

use super::steer::{Flush, Steered};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct FetchIn<T> {
    pub chosen: Steered<T>,
    /// The instruction at the pc in this stage, 32 bits.
    #[width(32)]
    pub word: T,
    /// 1 bit: the side table calls it uniform.
    #[when(s.passes())]
    pub uniform: Option<T>,
    /// Decode stops this slot's front end: younger fetches of the slot, in stages 1 and 2, are squashed.
    pub stop_valid: T,
    #[width(s.slot_bits())]
    pub stop_slot: T,
    #[width(Flush::shape(s))]
    pub flush: Option<Flush<T>>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct FetchOut<T> {
    /// What this stage holds.
    pub fetching: Steered<T>,
    /// What stage 3 holds, its instruction word, and whether it is uniform.
    pub fetched: Steered<T>,
    pub fetched_word: T,
    pub fetched_uniform: Option<T>,
}

pub fn fetch(s: &Shape) -> TypedModule<FetchIn<Width>, FetchOut<Signal>> {
    module("fetch", FetchIn::shape(s), |m, i| {
        m.doc("Stage 2: the word comes from instruction memory.");
        let fetching = m.stage_always("fetching", i.chosen);
        // Of this cycle, and of that in which this was chosen.
        let stop = Flush { valid: i.stop_valid, slot: i.stop_slot };
        let squashed = [Some(stop), i.flush].into_iter().flatten().enumerate().map(|(k, stop)| {
            let before = m.stage_always(&format!("stopped_{k}"), stop);
            stop.drops(fetching.slot) | before.drops(fetching.slot)
        });
        wire!(squashed = squashed.reduce(|a, b| a | b).expect("decode stops"));
        m.cover("squashed", fetching.valid & squashed);
        let fetched = m.stage_always("decoding", Steered { valid: fetching.valid & !squashed, ..fetching });
        let fetched_uniform = i.uniform.map(|uniform| m.pipe("decoding_uniform", uniform));
        FetchOut { fetching, fetched, fetched_word: m.pipe("decoding_word", i.word), fetched_uniform }
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
            // (slot, pc) in stages 2 and 3; what decode stopped a cycle ago, and the word in stage 2.
            let mut second: Option<(u32, u32)> = None;
            let mut third: Option<(u32, u32)> = None;
            let (mut stopped, mut last_word) = (None, 0);
            for _ in 0..1000 {
                let chosen = (r.u8(..4) > 0).then(|| (r.u32(..warps), r.u32(..1 << s.pc_bits())));
                let stop = r.bool().then(|| r.u32(..warps));
                let (slot, pc) = chosen.unwrap_or_default();
                let word = r.u32(..);
                t.poke(FetchIn {
                    chosen: Steered { valid: chosen.is_some().into(), slot: slot.into(), pc: pc.into() },
                    word: word.into(),
                    uniform: None,
                    stop_valid: stop.is_some().into(),
                    stop_slot: stop.unwrap_or(0).into(),
                    flush: None,
                });
                let out = t.peek();
                let seen = |f: Steered<Bits>| (f.valid == 1).then(|| (f.slot.low_u64() as u32, f.pc.low_u64() as u32));
                assert_eq!((seen(out.fetching), seen(out.fetched)), (second, third));
                assert!(third.is_none() || out.fetched_word == u64::from(last_word));
                t.step();
                third = second.filter(|&(slot, _)| stop != Some(slot) && stopped != Some(slot));
                (second, stopped, last_word) = (chosen, stop, word);
            }
        }
    }
}
