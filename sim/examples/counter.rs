//! A counter: described, checked, and simulated cycle by cycle.
//!
//! `cargo run -p heddle-sim --example counter`

use heddle_hdl::prelude::*;
use heddle_sim::Sim;

/// The input ports. `In<Width>` is their shape, `In<Signal>` hardware, `In<Bits>` the values of a cycle.
#[derive(Bundle, Clone, Copy)]
struct In<T> {
    enable: T,
}
#[derive(Bundle, Clone, Copy)]
struct Out<T> {
    count: T,
    wraps: T,
}

/// Counts the cycles in which `enable` is on. The width is a value, so one function describes counters of all widths.
fn counter(width: Width) -> TypedModule<In<Width>, Out<Signal>> {
    module("counter", In { enable: 1 }, |m, i| {
        // A register has an output, `q`, and takes its next value at the clock edge; reset makes it 0.
        let count = m.reg("count", width).reset(0u32);
        count.next_if(i.enable, count.q + 1);
        Out { count: count.q, wraps: i.enable & count.q.all() }
    })
}

fn main() {
    // `check` finds all mistakes, such as operands of different widths; here, there is none.
    let design = counter(2).check().unwrap();
    let mut t = Sim::new(&design);
    t.reset();
    for enable in [true, true, false, true, true, true] {
        // A cycle: set the inputs, look at the outputs, make the clock edge.
        t.poke(In { enable: enable.into() });
        let out = t.peek();
        println!("cycle {}: enable {}, count {}, wraps {}", t.cycle(), u8::from(enable), out.count, out.wraps);
        t.step();
    }
}
