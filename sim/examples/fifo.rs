//! A queue with its properties: assertions are checked in every cycle of every simulation, covers say what tests have
//! met.
//!
//! `cargo run -p heddle-sim --example fifo`; with `--verilog`, it prints Verilog for a prover
//! (docs/reference/simulator.md says how).

use heddle_hdl::prelude::*;
use heddle_sim::{Sim, ToVerilog};

#[derive(Bundle, Clone, Copy)]
struct In<T> {
    push: T,
    data: T,
    pop: T,
}
#[derive(Bundle, Clone, Copy)]
struct Out<T> {
    full: T,
    valid: T,
    oldest: T,
}

/// A queue of 2^`address_width` words of 8 bits. `oldest` is the word that a pop takes, if there is one: `valid`.
fn fifo(address_width: Width) -> TypedModule<In<Width>, Out<Signal>> {
    let places = 1u32 << address_width;
    module("fifo", In { push: 1, data: 8, pop: 1 }, |m, i| {
        let head = m.reg("head", address_width).reset(0u32);
        let count = m.reg("count", count_width(places)).reset(0u32);
        wire!(full = count.q.eq(places));
        wire!(valid = count.q.any());
        let words = m.memory("words", 8, address_width);
        words.write(i.push, head.q + count.q.slice(0, address_width), i.data);
        head.next_if(i.pop, head.q + 1);
        count.next(count.q + i.push.zext(count.q.width()) - i.pop.zext(count.q.width()));
        // What users must do; what then always holds; what tests should meet.
        m.assume("pushed_only_if_there_is_room", !i.push | !full);
        m.assume("popped_only_if_valid", !i.pop | valid);
        m.assert("within_bounds", count.q.le(places));
        m.cover("fills", full);
        m.cover("empties", i.pop & !i.push & count.q.eq(1));
        Out { full, valid, oldest: words.read(head.q) }
    })
}

fn main() {
    let design = fifo(2).check().unwrap();
    if std::env::args().any(|a| a == "--verilog") {
        return print!("{}", design.verilog());
    }
    let mut t = Sim::new(&design);
    t.reset();
    for (push, pop) in [(1u8, 0u8), (1, 0), (1, 1), (1, 0), (1, 0), (0, 1), (0, 1), (0, 1), (0, 1), (0, 1)] {
        let cycle = t.cycle();
        t.poke(In { push: push.into(), data: (cycle * 16).into(), pop: pop.into() });
        let Out { full, valid, oldest } = t.peek();
        println!("cycle {cycle}: push {push}, pop {pop}, full {full}, valid {valid}, oldest {oldest}");
        if let Err(failure) = t.try_step() {
            println!("{failure}");
        }
    }
    println!("full at {} edges, emptied at {}", t.cover_hits("fills"), t.cover_hits("empties"));
}
