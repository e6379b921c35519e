//! Which lanes of a memory access are served together with the first.
//!
//! The first lane that is left leads. If it accesses main memory, [`Coalescing`] decides:
//!
//! * `Aligned`: a lane is served if it accesses its own bank's word of the leader's line; or the leader's word, which needs
//!   no crossbar either. A store beside the leader's word only from the leader's very address (other bytes of that word need
//!   other byte enables), an atomic there not at all.
//! * `Full`: every lane of the line; of atomics, the lowest lane of each bank.
//!
//! If it accesses the scratchpad: in each bank, the lowest lane; and all that load the same word. Lanes in the other memory
//! are left.
//!
//! Stores and atomics must take effect as if the lanes came one after the other, the lowest first. A store's lane into its
//! own bank therefore needs all lanes below it to be served too, else one of them might access the same word later.
//! Stores of several served lanes to one byte are the network's to order ([`super::network`]).

use crate::shape::{Coalescing, Shape};
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CoalesceIn<T> {
    /// Lanes that are left; not empty.
    pub mask: T,
    /// The lowest of them, alone.
    pub leader: T,
    pub store: T,
    pub atomic: T,
    /// Where each lane accesses, and where the leader does: [`Shape::place_bits`] a lane.
    pub places: T,
    pub first: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CoalesceOut<T> {
    pub served: T,
    /// One bit a lane: its own bank's word, not the leader's.
    pub own: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneIn<T> {
    place: T,
    first: T,
    number: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneOut<T> {
    /// The leader's very place / word / line / memory.
    same: T,
    same_word: T,
    same_line: T,
    same_memory: T,
    /// The lane's own word of a line.
    own: T,
}

/// How one lane's place relates to the leader's.
fn lane(s: &Shape) -> TypedModule<LaneIn<Width>, LaneOut<Signal>> {
    let inputs = LaneIn { place: s.place_bits(), first: s.place_bits(), number: s.lane_bits() };
    module("coalesce_lane", inputs, |m, LaneIn { place, first, number }| {
        m.doc("One lane's place beside the leader's.");
        let line = 2 + s.lanes.ilog2();
        wire!(same_line = place.from_bit(line).eq(first.from_bit(line)));
        let yes = m.lit(1u32, 1);
        let bank = |place: Signal| place.slice(2, s.lane_bits());
        let (same_bank, own) =
            if s.lanes == 1 { (yes, yes) } else { (bank(place).eq(bank(first)), bank(place).eq(number)) };
        wire!(same_word = same_line & same_bank);
        let same = same_word & place.slice(0, 2).eq(first.slice(0, 2));
        let same_memory = if s.scratchpad > 0 { place.msb().eq(first.msb()) } else { yes };
        LaneOut { same, same_word, same_line, same_memory, own }
    })
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct BankIn<T> {
    /// One bit a lane: it accesses this bank.
    wanting: T,
    /// The lines of all lanes.
    lines: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct BankOut<T> {
    /// The lowest lane, alone, and its line.
    lowest: T,
    line: T,
}

/// The lane that a bank serves.
fn bank(s: &Shape, line_bits: Width) -> TypedModule<BankIn<Width>, BankOut<Signal>> {
    let inputs = BankIn { wanting: s.lanes, lines: line_bits * s.lanes };
    module("coalesce_bank", inputs, |m, BankIn { wanting, lines }| {
        m.doc("The lowest lane of a bank, and its line.");
        let lowest = wanting.lowest_one();
        BankOut { lowest, line: select_one_hot(&elements(lines, line_bits), lowest) }
    })
}

/// The block of a shape.
pub fn coalesce(s: &Shape) -> TypedModule<CoalesceIn<Width>, CoalesceOut<Signal>> {
    let places = s.place_bits() * s.lanes;
    let inputs = CoalesceIn { mask: s.lanes, leader: s.lanes, store: 1, atomic: 1, places, first: s.place_bits() };
    module("coalesce", inputs, |m, i| {
        m.doc("Which lanes of a memory access go together.");
        let numbers: Vec<Signal> = (0..s.lanes).map(|k| m.lit(k, s.lane_bits())).collect();
        let lanes = LaneIn { place: each(i.places), first: all(i.first), number: each(cat(&numbers)) };
        let lanes = m.replicate("lane", s.lanes, &lane(s), lanes);
        let writes = i.store | i.atomic;
        let own = lanes.own & !lanes.same_word;

        // Aligned: lanes of a store that could go, and those below which every lane could.
        let aligned = || {
            wire!(with_leader = i.atomic.mux(i.leader, lanes.same));
            wire!(storable = with_leader | (lanes.same_line & own));
            wire!(below_served = all_below(!i.mask | storable));
            wire!(together = i.mask & (with_leader | (storable & below_served)));
            covers(m, &i, &lanes);
            m.cover("store_left_behind_another", i.store & (i.mask & storable & !together).any());
            writes.mux(together, i.mask & lanes.same_line & (lanes.own | lanes.same_word))
        };
        let scratchpad = s.scratchpad > 0;
        let full = s.coalescing == Coalescing::Full;
        if !scratchpad && (!full || !s.atomics) {
            let served = if full { i.mask & lanes.same_line } else { aligned() };
            return CoalesceOut { served, own };
        }

        let to_scratchpad = if scratchpad { i.first.msb() } else { m.lit(0u32, 1) };
        wire!(candidates = i.mask & lanes.same_memory & (lanes.same_line | to_scratchpad.repeat(s.lanes)));
        let line = 2 + s.lanes.ilog2();
        let line_bits = s.place_bits() - line;
        let places = elements(i.places, s.place_bits());
        let lines: Vec<Signal> = places.iter().map(|p| p.from_bit(line)).collect();
        let of_lanes: Vec<Signal> = places.iter().map(|p| p.slice(2, s.lane_bits())).collect();
        wire!(wanted = wanted_banks(s, &of_lanes, candidates));
        let inputs = BankIn { wanting: each(wanted), lines: all(cat(&lines)) };
        let banks = m.replicate("bank", s.lanes, &bank(s, line_bits), inputs);
        wire!(lowest = elements(banks.lowest, s.lanes).into_iter().reduce(|a, b| a | b).expect("a bank"));
        wire!(
            main = match (full, s.atomics) {
                (true, true) => i.atomic.mux(lowest, candidates),
                (true, false) => candidates,
                (false, _) => aligned(),
            }
        );
        if !scratchpad {
            return CoalesceOut { served: main, own };
        }
        let same = |k: usize| {
            let of_bank = match s.lanes {
                1 => banks.line,
                _ => banks.line.select(places[k].slice(2, s.lane_bits()), line_bits),
            };
            of_bank.eq(lines[k])
        };
        wire!(same_word = cat(&(0..places.len()).map(same).collect::<Vec<_>>()));
        wire!(in_banks = writes.mux(lowest, candidates & same_word));
        m.cover("scratchpad_conflict", to_scratchpad & (candidates & !in_banks).any());
        m.cover("scratchpad_broadcast", to_scratchpad & (in_banks & !lowest).any());
        m.cover("both_memories", (i.mask & !lanes.same_memory).any());
        CoalesceOut { served: to_scratchpad.mux(in_banks, main), own }
    })
}

/// For each bank one bit a lane: a candidate whose bank it is.
pub fn wanted_banks(s: &Shape, banks: &[Signal], candidates: Signal) -> Signal {
    if s.lanes == 1 {
        return candidates;
    }
    let by_lane: Vec<Signal> = banks.iter().map(|bank| bank.decode(s.lanes)).collect();
    let bank = |b: u32| cat(&by_lane.iter().map(|banks| banks.bit(b)).collect::<Vec<_>>()) & candidates;
    cat(&(0..s.lanes).map(bank).collect::<Vec<_>>())
}

/// Why lanes are left.
fn covers(m: Builder, i: &CoalesceIn<Signal>, l: &LaneOut<Signal>) {
    let load = !(i.store | i.atomic);
    let some = |lanes: Signal| (i.mask & lanes).any();
    m.cover("load_left_for_another_line", load & some(!l.same_line));
    m.cover("load_left_for_another_bank", load & some(l.same_line & !l.own & !l.same_word));
    m.cover("store_left_for_another_line", i.store & some(!l.same_line));
    m.cover("store_left_for_another_bank", i.store & some(l.same_line & !l.own & !l.same_word));
    m.cover("store_left_for_other_bytes", i.store & some(l.same_word & !l.same));
    m.cover("several_lanes_load_one_word", load & some(l.same_word & !i.leader));
    m.cover("several_lanes_store_at_one_place", i.store & some(l.same & !i.leader));
}

/// Bit k is on when all bits below k are.
fn all_below(bits: Signal) -> Signal {
    // Adding 1 flips the ones at the bottom and the zero above them, and nothing else.
    bits ^ (bits + 1)
}
