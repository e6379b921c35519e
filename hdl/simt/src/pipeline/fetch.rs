//! Stage 2, fetch: presents the pc to instruction memory, which answers in stage 3.

use super::steer::Fetch;
use crate::shape::Shape;
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct FetchIn<T> {
    pub chosen: Fetch<T>,
    /// Decode stops this slot's front end: younger fetches of the slot are squashed.
    pub stop_valid: T,
    pub stop_slot: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct FetchOut<T> {
    /// What this stage holds.
    pub fetching: Fetch<T>,
    /// What stage 3 holds, beside the word that instruction memory gives.
    pub decoding: Fetch<T>,
}

pub fn fetch(s: &Shape) -> TypedModule<FetchIn<Width>, FetchOut<Signal>> {
    let inputs = FetchIn { chosen: Fetch::shape(s), stop_valid: 1, stop_slot: s.warp_bits() };
    module("fetch", inputs, |m, i| {
        m.doc("Stage 2: the pc goes to instruction memory.");
        let fetching = m.stage("fetching", i.chosen);
        wire!(squashed = i.stop_valid & i.stop_slot.eq(fetching.slot));
        let decoding = m.stage("decoding", Fetch { valid: fetching.valid & !squashed, ..fetching });
        FetchOut { fetching, decoding }
    })
}
