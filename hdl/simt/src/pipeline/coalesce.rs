//! Which lanes of a memory access are served together with the first.
//!
//! The first lane that is left leads. If it accesses main memory, [`Coalescing`] decides:
//!
//! * `Aligned`: a lane is served if it accesses its own bank's word of the leader's line; or the leader's word, which
//!   needs no crossbar either. A store beside the leader's word only from the leader's very address (other bytes of
//!   that word need other byte enables), an atomic there not at all.
//! * `Full`: every lane of the line; of atomics, the lowest lane of each bank.
//!
//! If it accesses the scratchpad: in each bank, the lowest lane; and all that load the same word. Lanes in the other
//! memory are left.
//!
//! Stores and atomics must take effect as if the lanes came one after the other, the lowest first. A store's lane into
//! its own bank therefore needs all lanes below it to be served too, else one of them might access the same word later.
//! Stores of several served lanes to one byte are the network's to order ([`super::network`]).

use crate::shape::{Coalescing, Shape};
use heddle_hdl::{all, each, elements, prelude::*};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct CoalesceIn<T> {
    /// Lanes that are left; not empty.
    #[width(s.lanes)]
    pub mask: T,
    /// The lowest of them, alone.
    #[width(s.lanes)]
    pub leader: T,
    pub store: T,
    pub atomic: T,
    /// 1 bit: only lanes of the leader's line go, in the scratchpad, too. In a core with
    /// [reservations](super::reservations).
    #[when(s.reservations)]
    pub one_line: Option<T>,
    /// Where each lane accesses, and where the leader does: [`Shape::place_bits`] a lane.
    #[width(s.place_bits() * s.lanes)]
    pub places: T,
    #[width(s.place_bits())]
    pub first: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct CoalesceOut<T> {
    pub served: T,
    /// One bit per lane: its own bank's word, not the leader's.
    pub own: T,
    /// One bit per lane: its place is in the leader's word.
    pub with_leader: T,
    /// The highest lane at the leader's very place, alone; of an atomic, the leader. With the leader network, it is
    /// what sends to the leader's bank. It is known before the served lanes are.
    pub sender: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct LaneIn<T> {
    #[width(s.place_bits())]
    place: T,
    #[width(s.place_bits())]
    first: T,
    #[width(s.lane_bits())]
    number: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneOut<T> {
    /// The leader's very place / word / line.
    same: T,
    same_word: T,
    same_line: T,
    /// The lane's own word of a line.
    own: T,
}

/// How one lane's place relates to the leader's.
fn lane(s: &Shape) -> TypedModule<LaneIn<Width>, LaneOut<Signal>> {
    module("coalesce_lane", LaneIn::shape(s), |m, LaneIn { place, first, number }| {
        m.doc("One lane's place beside the leader's.");
        let line = 2 + s.lanes.ilog2();
        wire!(same_line = place.from_bit(line).eq(first.from_bit(line)));
        let yes = m.lit(1u32, 1);
        let bank = |place: Signal| place.slice(2, s.lane_bits());
        let (same_bank, own) =
            if s.lanes == 1 { (yes, yes) } else { (bank(place).eq(bank(first)), bank(place).eq(number)) };
        wire!(same_word = same_line & same_bank);
        let same = same_word & place.slice(0, 2).eq(first.slice(0, 2));
        LaneOut { same, same_word, same_line, own }
    })
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct PairsIn<T> {
    #[width(s.place_bits())]
    place: T,
    #[width(s.place_bits() * s.lanes)]
    places: T,
    /// One bit per lane: it is lower than this one.
    #[width(s.lanes)]
    lower: T,
}

/// Pairs with lower lanes, one bit for each.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct PairsOut<T> {
    same_bank: T,
    /// The same word, if both are in the scratchpad.
    same_word: T,
}

/// How one lane's place relates to those of the lanes below it. Every pair of lanes has comparators of its own: they
/// are ready before the leader's place is, and smaller than multiplexers that give each bank per lane and each lane its
/// bank's.
fn pairs(s: &Shape) -> TypedModule<PairsIn<Width>, PairsOut<Signal>> {
    module("coalesce_pairs", PairsIn::shape(s), |m, PairsIn { place, places, lower }| {
        m.doc("One lane's place beside those of the lanes below.");
        let line = 2 + s.lanes.ilog2();
        let places = elements(places, s.place_bits());
        let alike = |field: &dyn Fn(Signal) -> Signal| {
            cat(&places.iter().map(|&other| field(place).eq(field(other))).collect::<Vec<_>>())
        };
        wire!(same_bank = if s.lanes == 1 { lower } else { lower & alike(&|p| p.slice(2, s.lane_bits())) });
        let same_word = match s.scratchpad {
            0 => same_bank,
            _ => same_bank & alike(&|p| p.slice(line, s.scratchpad_line_bits())),
        };
        PairsOut { same_bank, same_word }
    })
}

/// The block of a shape.
pub fn coalesce(s: &Shape) -> TypedModule<CoalesceIn<Width>, CoalesceOut<Signal>> {
    module("coalesce", CoalesceIn::shape(s), |m, i| {
        m.doc("Which lanes of a memory access go together.");
        let numbers: Vec<Signal> = (0..s.lanes).map(|k| m.lit(k, s.lane_bits())).collect();
        let lanes = LaneIn { place: each(i.places), first: all(i.first), number: each(cat(&numbers)) };
        let lanes = m.replicate("lane", s.lanes, &lane(s), lanes);
        let writes = i.store | i.atomic;
        let (own, with_leader) = (lanes.own & !lanes.same_word, lanes.same_word);
        wire!(at_leaders = i.mask & i.atomic.mux(i.leader, lanes.same));
        wire!(sender = highest_one(at_leaders));

        // Aligned: lanes of a store that could go, and those below which every lane could.
        let aligned = || {
            wire!(storable = at_leaders | (lanes.same_line & own));
            wire!(below_served = !(i.mask & !storable).any_below());
            wire!(together = i.mask & (at_leaders | (storable & below_served)));
            // Before the first access, `first` may be anybody's.
            let is_leaders = (i.leader & lanes.same).any();
            let from_its_place = (together & !own).eq(at_leaders);
            m.assert("the_leaders_bank_is_written_from_its_place", !(writes & is_leaders) | from_its_place);
            covers(m, &i, &lanes);
            m.cover("store_left_behind_another", i.store & (i.mask & storable & !together).any());
            writes.mux(together, i.mask & lanes.same_line & (lanes.own | lanes.same_word))
        };
        let scratchpad = s.scratchpad > 0;
        let full = s.coalescing == Coalescing::Full;
        if !scratchpad && (!full || !s.atomics) {
            let served = if full { i.mask & lanes.same_line } else { aligned() };
            return CoalesceOut { served, own, with_leader, sender };
        }

        let lower: Vec<Signal> = (0..s.lanes).map(|k| m.lit(Bits::ones(k), s.lanes)).collect();
        let pairs = PairsIn { place: each(i.places), places: all(i.places), lower: each(cat(&lower)) };
        let pairs = m.replicate("pairs", s.lanes, &self::pairs(s), pairs);
        let some_lower = |rows: Signal, lanes: Signal| {
            cat(&elements(rows, s.lanes).into_iter().map(|row| (row & lanes).any()).collect::<Vec<_>>())
        };

        if !scratchpad {
            wire!(candidates = i.mask & lanes.same_line);
            let served = candidates & !(some_lower(pairs.same_bank, candidates) & i.atomic.repeat(s.lanes));
            return CoalesceOut { served, own, with_leader, sender };
        }

        wire!(
            in_scratchpad = cat(&elements(i.places, s.place_bits()).into_iter().map(|p| p.msb()).collect::<Vec<_>>())
        );
        wire!(to_scratchpad = i.first.msb());
        let together = i.one_line.map_or(i.mask, |one| i.mask & (lanes.same_line | !one.repeat(s.lanes)));
        wire!(of_scratchpad = together & in_scratchpad);
        let shared = full && s.atomics;
        wire!(
            candidates =
                if shared { to_scratchpad.mux(of_scratchpad, i.mask & lanes.same_line) } else { of_scratchpad }
        );
        wire!(lowest = candidates & !some_lower(pairs.same_bank, candidates));
        wire!(
            main = match (full, s.atomics) {
                (true, true) => i.atomic.mux(lowest, candidates),
                (true, false) => i.mask & lanes.same_line,
                (false, _) => aligned(),
            }
        );
        wire!(with_lowest = candidates & some_lower(pairs.same_word, lowest));
        wire!(in_banks = lowest | with_lowest.only_if(!writes));
        m.cover("scratchpad_conflict", to_scratchpad & (candidates & !in_banks).any());
        m.cover("scratchpad_broadcast", to_scratchpad & (in_banks & !lowest).any());
        m.cover("both_memories", of_scratchpad.any() & (i.mask & !in_scratchpad).any());
        CoalesceOut { served: to_scratchpad.mux(in_banks, main), own, with_leader, sender }
    })
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

/// The highest bit that is on, alone.
fn highest_one(bits: Signal) -> Signal {
    let turned = |bits: Signal| cat(&elements(bits, 1).into_iter().rev().collect::<Vec<_>>());
    turned(turned(bits).lowest_one())
}
