//! What proof harnesses share.
//!
//! A harness is a module in a file `proof.rs` beside the block that it is about. It instantiates the block, or contains
//! its description where it must see its state, and asserts at its ports what the block is for. It makes legal inputs
//! for the block out of its own, any of which are allowed: so the block's assumptions are proven too, random simulation
//! needs no constraints, and no proof is empty because its assumptions contradict each other. `docs/evidence/proofs.md`
//! lists the proofs.

use crate::shape::{Order, Shape};
use heddle_hdl::Errors;
use heddle_hdl::netlist::Module;
use heddle_hdl::prelude::*;
use std::sync::Arc;

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

/// How far a proof goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Method {
    /// All runs of any length, by k-induction; k is the depth.
    Induction,
    /// All runs of up to `depth` cycles from reset.
    Bounded,
}

impl Method {
    /// As the tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Method::Induction => "k-induction",
            Method::Bounded => "bounded",
        }
    }
}

/// A block of one shape, and what is proven of it.
#[derive(Clone)]
pub struct Proof {
    /// Block, lanes and warps, such as `ccs-8x1`.
    pub name: String,
    /// The block's file, of this crate in `hdl/simt/src`.
    pub block: &'static str,
    /// What holds, in a sentence.
    pub says: &'static str,
    /// As the tables show it.
    pub shape: String,
    /// How far it goes.
    pub method: Method,
    /// Of the method, in cycles.
    pub depth: u32,
    /// Cycles within which every cover of the harness happens.
    pub cover_depth: u32,
    /// Of the few of its block that run with the tests: each takes less than a minute.
    pub quick: bool,
    /// The harness.
    pub harness: Arc<Module>,
}

/// What is proven of a block: its proofs differ in shape.
pub struct Block {
    /// What names of its proofs begin with.
    pub name: &'static str,
    /// See [`Proof::block`].
    pub block: &'static str,
    /// See [`Proof::says`].
    pub says: &'static str,
    /// See [`Proof::method`].
    pub method: Method,
    /// See [`Proof::cover_depth`].
    pub cover_depth: u32,
}

impl Block {
    /// Its proof at a shape, of this depth; whether it is a [quick](Proof::quick) one; and its harness.
    pub fn at<I, O>(
        &self,
        s: &Shape,
        depth: u32,
        quick: bool,
        harness: fn(&Shape) -> TypedModule<I, O>,
    ) -> Result<Proof, Errors>
    where
        I: Bundle<Width> + Clone,
        O: Signals,
    {
        let waits = if s.barriers { ("b", ", barriers") } else { ("", "") };
        let (letters, converges) = match s.convergence_barriers {
            0 => (String::new(), String::new()),
            n => (format!("c{n}"), format!(", {n} convergence barrier{}", if n > 1 { "s" } else { "" })),
        };
        let (order, in_order) = match s.order {
            Order::DepthPc => (String::new(), String::new()),
            order => (format!("-{}", order.name()), format!(", {}", order.name())),
        };
        let syncs = if s.warp_primitives { ("s", ", sync") } else { ("", "") };
        // Elsewhere a unit is the same.
        let reserves = if s.keeps_sequences() { ("r", ", LR/SC sequences") } else { ("", "") };
        Ok(Proof {
            name: format!("{}-{}x{}{}{letters}{}{}{order}", self.name, s.lanes, s.warps, waits.0, syncs.0, reserves.0),
            block: self.block,
            says: self.says,
            shape: format!("{} × {}{}{converges}{}{}{in_order}", s.lanes, s.warps, waits.1, syncs.1, reserves.1),
            method: self.method,
            depth,
            cover_depth: self.cover_depth,
            quick,
            harness: harness(s).check()?.netlist,
        })
    }
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
