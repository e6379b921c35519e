//! Lanes: one description, replicated side by side, and control that is there once for all of them.
//!
//! `cargo run -p heddle-sim --example lanes`

use heddle_hdl::{all, each, elements, prelude::*};
use heddle_sim::Sim;

#[derive(Bundle, Clone, Copy)]
struct LaneIn<T> {
    active: T,
    add: T,
}
#[derive(Bundle, Clone, Copy)]
struct LaneOut<T> {
    sum: T,
}

/// One lane: it adds to its sum while it is active.
fn lane() -> TypedModule<LaneIn<Width>, LaneOut<Signal>> {
    module("lane", LaneIn { active: 1, add: 8 }, |m, i| {
        let sum = m.reg("sum", 8).reset(0u32);
        sum.next_if(i.active, sum.q + i.add);
        LaneOut { sum: sum.q }
    })
}

#[derive(Bundle, Clone, Copy)]
struct In<T> {
    mask: T,
    add: T,
}
#[derive(Bundle, Clone, Copy)]
struct Out<T> {
    sums: T,
    largest: T,
}

/// `lanes` of them: each has its own bit of the mask, and all add the same.
fn row(lanes: u32) -> TypedModule<In<Width>, Out<Signal>> {
    module("row", In { mask: lanes, add: 8 }, |m, i| {
        let out = m.replicate("lane", lanes, &lane(), LaneIn { active: each(i.mask), add: all(i.add) });
        // An output of all lanes is their values packed, lane 0 lowest; ordinary Rust builds a chain over them.
        let largest = elements(out.sum, 8).into_iter().reduce(|a, b| a.gt(b).mux(a, b)).expect("a row has lanes");
        Out { sums: out.sum, largest }
    })
}

fn main() {
    let mut t = Sim::new(&row(4).check().unwrap());
    t.reset();
    for (mask, add) in [(0b1111u8, 1u8), (0b0110, 2), (0b0100, 4)] {
        t.poke(In { mask: mask.into(), add: add.into() });
        t.step();
        println!("mask {mask:04b}, add {add}: sums {:08x}, largest {}", t.peek().sums, t.peek().largest);
    }
    println!("the sum of lane 2 is {}", t.register("lane[2].sum"));
}
