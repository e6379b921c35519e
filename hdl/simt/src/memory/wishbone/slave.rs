//! A slave on the bus, for simulation only: memory that answers when its timing says.
//!
//! It takes a beat every `interval` cycles at most and stalls otherwise. A beat takes effect when it is answered:
//! `latency` cycles after it was taken at the earliest, and in order, so a late answer holds up those behind it. With
//! `jitter`, an answer is up to that much later and a stall up to 3 cycles longer, both drawn from a shift register
//! that starts at the seed. The host may set both, as those of the [model](super::super::model).
//!
//! Beside it stand the [`rules`](super::rules), so every simulation of a whole core checks them.

use super::super::model::{Jitter, SetJitter, jitter};
use super::rules::{RulesIn, rules};
use super::{FromSlave, MOST_UNDER_WAY, ToSlave};
use crate::queue::Queue;
use crate::shape::{Shape, SlaveModel};
use heddle_hdl::{all, each, prelude::*};

/// Bits of the time at which an answer is due: more than latency, jitter and all that wait together.
const TIME: Width = 16;

/// A beat that waits for its answer.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Beat<T> {
    due: T,
    we: T,
    adr: T,
    sel: T,
    dat: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct BankIn<T> {
    address: T,
    enables: T,
    data: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct BankOut<T> {
    word: T,
}

/// The words at one place of the bus's width.
fn bank(bits: Width) -> TypedModule<BankIn<Width>, BankOut<Signal>> {
    module("wishbone_slave_bank", BankIn { address: bits, enables: 4, data: 32 }, |m, i| {
        m.doc("The words at one place of the bus's width.");
        let words = m.memory("words", 32, bits);
        words.write_granules(i.enables, i.address, i.data);
        BankOut { word: words.read(i.address) }
    })
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct SlaveIn<T> {
    pub bus: ToSlave<T>,
    /// If there is jitter.
    pub set_jitter: Option<SetJitter<T>>,
}

/// The slave of a shape's bus of `width` data bits.
pub fn slave(s: &Shape, width: Width, model: SlaveModel) -> TypedModule<SlaveIn<Width>, FromSlave<Signal>> {
    let SlaveModel { timing: t, error } = model;
    let inputs = SlaveIn { bus: ToSlave::shape(s, width), set_jitter: SetJitter::shape(t) };
    module("wishbone_slave", inputs, |m, SlaveIn { bus, set_jitter }| {
        m.doc("A slave on the bus, for simulation only.");
        let now = m.reg("now", TIME).reset(0u32);
        now.next(now.q + 1);
        let longest = t.jitter.min(3);
        let pause = m.reg("pause", count_width(t.interval - 1 + longest)).reset(0u32);
        let full = m.deferred("full", 1);
        wire!(stall = pause.q.any() | full.value);
        wire!(taken = bus.cyc_o & bus.stb_o & !stall);
        let random = set_jitter.map(|set| jitter(m, t, set, taken));
        let up_to = |most: u32, low: u32, width: Width| match random {
            Some(Jitter { random, most: set }) => {
                let bits = count_width(most);
                (random.slice(low, bits) & set.slice(0, bits)).zext(width)
            }
            None => m.zero(width),
        };
        let stalls = pause.q.literal(t.interval - 1) + up_to(longest, 0, pause.q.width());
        pause.next_if(taken | pause.q.any(), taken.mux(stalls, pause.q - 1));

        let due = now.q + t.latency + up_to(t.jitter, 8, TIME);
        let beat = Beat { due, we: bus.we_o, adr: bus.adr_o, sel: bus.sel_o, dat: bus.dat_o };
        let shape = Beat { due: TIME, we: 1, adr: s.address_bits(), sel: width / 8, dat: width };
        let queue = Queue::new(m, "beats", shape, MOST_UNDER_WAY, taken, beat);
        full.drive(queue.full);
        let head = queue.head;
        wire!(answers = queue.waits & !(now.q - head.due).msb());
        queue.leaves(answers);

        let low = (width / 8).ilog2();
        let refused = |address: u32| head.adr.from_bit(low).eq(address >> low);
        wire!(fails = error.map_or(m.lit(0u32, 1), refused));
        let inputs = BankIn {
            address: all(head.adr.from_bit(low)),
            enables: each(head.sel.only_if(answers & head.we & !fails)),
            data: each(head.dat),
        };
        let banks = m.replicate("bank", width / 32, &bank(s.address_bits() - low), inputs);
        FromSlave { stall_i: stall, ack_i: answers & !fails, err_i: answers & fails, dat_i: banks.word }
    })
}

/// The slave on a shape's bus, and the rules beside it.
pub fn attach(
    m: Builder,
    s: &Shape,
    width: Width,
    model: SlaveModel,
    master: ToSlave<Signal>,
    set_jitter: Option<SetJitter<Signal>>,
) -> FromSlave<Signal> {
    let slave = m.instance("slave", &slave(s, width, model), SlaveIn { bus: master, set_jitter });
    m.instance("rules", &rules(s, width), RulesIn { master, slave });
    slave
}
