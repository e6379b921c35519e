//! What proof harnesses share.
//!
//! A harness is a module in a file `proof.rs` beside the block that it is about. It instantiates the block, or contains its
//! description where it must see its state, and asserts at its ports what the block is for. It makes legal inputs for the
//! block out of its own, any of which are allowed: so the block's assumptions are proven too, random simulation needs no
//! constraints, and no proof is empty because its assumptions contradict each other. `docs/proofs.md` lists the proofs.

use heddle_hdl::prelude::*;

/// What `choice` was in the first cycle after reset, from then on: in a proof, any value that stays.
pub fn held<B: Signals>(m: Builder, name: &str, choice: B) -> B {
    let chosen = m.reg(&format!("{name}_chosen"), 1).reset(0u32);
    chosen.next(m.lit(1u32, 1));
    let kept = m.pipe_if(name, !chosen.q, choice.clone());
    chosen.q.mux(kept, choice)
}

/// `a` implies `b`.
pub fn implies(a: Signal, b: Signal) -> Signal {
    !a | b
}

/// An index into `count` things, a power of two: 0 if there is only one, though an index has a bit then, too.
pub fn index_of(count: u32, index: Signal) -> Signal {
    if count > 1 { index } else { index.literal(0u32) }
}

/// What the names of harnesses' covers begin with; the block's own may want another shape or a longer run.
pub const COVER: &str = "proof_";

/// Should be reached, or the proof may say nothing.
pub fn cover(m: Builder, name: &str, happens: Signal) {
    m.cover(&format!("{COVER}{name}"), happens);
}

#[cfg(test)]
pub mod testing {
    use heddle_hdl::Bits;
    use heddle_hdl::netlist::{Module, Property, PropertyKind};
    use heddle_sim::simulation::{Options, Simulation};
    use std::sync::Arc;

    /// Random inputs for `cycles` cycles, a restart every 500: no assertion and no assumption of the harness or the
    /// block fails. Some cover of the harness happens; the proof looks for all.
    pub fn holds_at_random(harness: &Arc<Module>, cycles: u64) {
        let seed = 1;
        println!("{}, seed {seed}", harness.name);
        let mut random = fastrand::Rng::with_seed(seed);
        let mut t = Simulation::new(harness, &Options { seed, ..Options::default() }).unwrap();
        for cycle in 0..cycles {
            for (input, port) in harness.inputs.iter().enumerate() {
                let limbs: Vec<u64> = (0..port.width.div_ceil(64)).map(|_| random.u64(..)).collect();
                t.engine().poke(input, &Bits::from_limbs(&limbs).extract(0, port.width));
            }
            let step = if cycle % 500 == 0 { t.reset() } else { t.step() };
            step.unwrap_or_else(|error| panic!("{}: {error}", harness.name));
        }
        let own = |p: &&Property| p.kind == PropertyKind::Cover && p.name.starts_with(super::COVER);
        let hits = harness.properties.iter().filter(own).map(|cover| {
            let property = t.directory().properties.find(&cover.name).unwrap();
            t.engine().cover_hits(property)
        });
        assert!(hits.max().unwrap() > 0, "{}: inputs are far from all covers", harness.name);
    }
}
