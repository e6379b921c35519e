//! The rules of Wishbone B4, pipelined, as assertions. Numbers are the specification's.
//!
//! | assertion | rule |
//! |---|---|
//! | `stb_with_cyc` | STB only within a cycle (RULE 3.25) |
//! | `cyc_until_answered` | a cycle lasts until all that was taken is answered (RULE 3.25, chapter 3.1.3.2) |
//! | `stalled_stb_stays` | what is stalled stays asserted (chapter 3.1.3.2) |
//! | `stalled_request_stays` | and so do WE, ADR, SEL, LOCK, and DAT_O of a write (RULE 3.60 with chapter 3.1.3.2) |
//! | `lock_with_cyc` | LOCK only within a cycle (chapter 2.2.3, LOCK_O) |
//! | `locked_until_answered` | LOCK holds until all that was taken with it is answered (chapter 2.2.3, LOCK_O) |
//! | `address_of_the_width` | ADR has no bits below the port's size (chapter 3.5) |
//! | `one_answer` | ACK and ERR never together (RULE 3.45) |
//! | `answers_were_asked_for` | no more answers than requests, the one taken in this cycle included (RULE 3.35, PERMISSION 3.35) |
//!
//! What a slave says outside a cycle does not count (RULE 3.30). What is not looked at: reset (RULE 3.20), in which no
//! assertion is, and whether every request is answered some day.

use super::{FromSlave, MOST_UNDER_WAY, ToSlave};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct RulesIn<T> {
    pub master: ToSlave<T>,
    pub slave: FromSlave<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct RulesOut<T> {
    /// Requests that wait for an answer.
    pub under_way: T,
}

/// What stays while it is stalled.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Stalled<T> {
    we: T,
    lock: T,
    adr: T,
    sel: T,
    dat: T,
}

/// The rules of a bus of `width` data bits.
pub fn rules(s: &Shape, width: Width) -> TypedModule<RulesIn<Width>, RulesOut<Signal>> {
    let inputs = RulesIn { master: ToSlave::shape(s, width), slave: FromSlave::shape(width) };
    module("wishbone_rules", inputs, |m, RulesIn { master, slave }| {
        m.doc("The rules of Wishbone B4, pipelined.");
        let ToSlave { cyc_o: cyc, stb_o: stb, we_o: we, lock_o: lock, adr_o: adr, sel_o: sel, dat_o: dat } = master;
        let bits = count_width(2 * MOST_UNDER_WAY);
        let under_way = m.reg("under_way", bits).reset(0u32);
        wire!(waits = under_way.q.any());
        wire!(taken = cyc & stb & !slave.stall_i);
        wire!(answered = cyc & (slave.ack_i | slave.err_i));
        under_way.next(under_way.q + taken.zext(bits) - answered.zext(bits));

        let was_stalled = m.pipe_reset("was_stalled", cyc & stb & slave.stall_i);
        let now = Stalled { we, lock, adr, sel, dat: dat.only_if(we) };
        let before = m.pipe("before", now);
        let was_locked = m.pipe_reset("was_locked", lock);

        m.assert("stb_with_cyc", !stb | cyc);
        m.assert("cyc_until_answered", !waits | cyc);
        m.assert("stalled_stb_stays", !was_stalled | stb);
        m.assert("stalled_request_stays", !(was_stalled & stb) | now.same_as(before));
        m.assert("lock_with_cyc", !lock | cyc);
        m.assert("locked_until_answered", !(was_locked & waits) | lock);
        m.assert("address_of_the_width", !stb | !adr.slice(0, (width / 8).ilog2()).any());
        m.assert("one_answer", !(cyc & slave.ack_i & slave.err_i));
        m.assert("answers_were_asked_for", !answered | waits | taken);
        m.assert("under_way_can_be_counted", !under_way.q.all());
        m.cover("several_under_way", under_way.q.gt(1));
        m.cover("locked", lock);
        RulesOut { under_way: under_way.q }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_sim::simulation::{Options, Simulation};

    fn shape() -> Shape {
        Shape { memory: 4 << 10, stack: 64, ..Shape::new(2, 1) }
    }

    /// What happens in a cycle: letters for what is asserted, and an address.
    /// C CYC, S STB, W WE, L LOCK, w STALL, A ACK, E ERR.
    type Cycle = (&'static str, u32);

    /// The assertion that fails, without the module, if one does.
    fn broken(cycles: &[Cycle]) -> Option<String> {
        let mut t = Simulation::new(&rules(&shape(), 32).check().unwrap().netlist, &Options::default()).unwrap();
        t.reset().unwrap();
        for &(asserted, address) in cycles {
            let on = |letter: char| Bits::from(asserted.contains(letter));
            let values = RulesIn {
                master: ToSlave {
                    cyc_o: on('C'),
                    stb_o: on('S'),
                    we_o: on('W'),
                    lock_o: on('L'),
                    adr_o: address.into(),
                    sel_o: 15u32.into(),
                    dat_o: address.into(),
                },
                slave: FromSlave { stall_i: on('w'), ack_i: on('A'), err_i: on('E'), dat_i: Bits::ZERO },
            };
            let mut input = 0;
            values.visit("", &mut |_, value: &Bits| {
                t.engine().poke(input, value);
                input += 1;
            });
            if let Err(error) = t.step() {
                return Some(error.to_string());
            }
        }
        None
    }

    #[test]
    fn what_is_allowed() {
        let allowed: &[&[Cycle]] = &[
            // Two reads, answered later; one with an error.
            &[("CS", 0), ("CS", 4), ("C", 0), ("CA", 0), ("CE", 0), ("", 0)],
            // Answers at once, by a slave that always has ACK asserted.
            &[("A", 0), ("CSA", 4), ("CSA", 8), ("A", 0)],
            // A write that is stalled.
            &[("CSWw", 4), ("CSWw", 4), ("CSW", 4), ("CA", 0)],
            // Read, modify, write.
            &[("CSL", 4), ("CLA", 0), ("CSWL", 4), ("CLA", 0), ("", 0)],
        ];
        for cycles in allowed {
            assert_eq!(broken(cycles), None, "{cycles:?}");
        }
    }

    #[test]
    fn every_violation_is_caught() {
        let wrong: &[(&str, &[Cycle])] = &[
            ("stb_with_cyc", &[("S", 0)]),
            ("cyc_until_answered", &[("CS", 0), ("", 0)]),
            ("cyc_until_answered", &[("CS", 0), ("CS", 4), ("CA", 0), ("", 0)]),
            ("stalled_stb_stays", &[("CSw", 0), ("C", 0)]),
            ("stalled_request_stays", &[("CSw", 0), ("CS", 4)]),
            ("stalled_request_stays", &[("CSw", 0), ("CSW", 0)]),
            ("stalled_request_stays", &[("CSw", 0), ("CSL", 0)]),
            ("lock_with_cyc", &[("L", 0)]),
            ("locked_until_answered", &[("CSL", 0), ("C", 0)]),
            ("address_of_the_width", &[("CS", 2)]),
            ("one_answer", &[("CS", 0), ("CAE", 0)]),
            ("answers_were_asked_for", &[("CSw", 0), ("CSwA", 0)]),
            ("answers_were_asked_for", &[("CS", 0), ("CA", 0), ("CA", 0)]),
        ];
        for (rule, cycles) in wrong {
            let error = broken(cycles).unwrap_or_else(|| panic!("{cycles:?} is not caught"));
            assert!(error.contains(rule), "{cycles:?}: {error}, should be {rule}");
        }
    }
}
