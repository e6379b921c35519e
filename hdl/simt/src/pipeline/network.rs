//! The network between lanes and memory banks, as small as the shape allows.
//!
//! | network | when | to the lanes | to the banks |
//! |---|---|---|---|
//! | leader | `aligned`, no scratchpad; or one lane | the own bank's word or the leader's | the own lane or, in the leader's bank, the highest at its place |
//! | words | a scratchpad, `aligned` | any bank's word | the highest served lane that wants the bank |
//! | bytes | `full` | any bank's word | byte by byte the highest served lane that stores it |
//!
//! A *route* says where the served lanes find their words: with the leader network one bit per lane (its own bank), the
//! lane that sends to the leader's bank, alone, and the number of that bank; else each lane's bank. A load keeps of it
//! what the way back needs: with the leader network, one bit per lane and one bit per bank; else, up to
//! `MOST_ONE_HOT_LANES` lanes, one bit per lane and bank. With more than `LANES_IN_FRONT` lanes, the leader network
//! is in two halves, [one behind the gather register](leader_behind).

use crate::shape::{Coalescing, Replay, Shape};
use heddle_hdl::{all, each, elements, gather, prelude::*};

/// The kinds of networks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Network {
    Leader,
    Words,
    Bytes,
}

impl Network {
    fn of(s: &Shape) -> Network {
        match s.coalescing {
            _ if s.lanes == 1 => Network::Leader,
            Coalescing::Full => Network::Bytes,
            Coalescing::Aligned if s.scratchpad > 0 => Network::Words,
            Coalescing::Aligned => Network::Leader,
        }
    }
}

/// Bits of a route.
pub fn route_bits(s: &Shape) -> Width {
    match Network::of(s) {
        Network::Leader => 2 * s.lanes + s.lane_bits(),
        Network::Words | Network::Bytes => s.lanes * s.lane_bits(),
    }
}

/// Up to so many lanes, a load keeps one bit per lane and bank of a route that is each lane's bank. Above, where these
/// bits, as many as the square of the lanes, are a thousand and more, it was not tried.
const MOST_ONE_HOT_LANES: u32 = 16;

/// Bits of a route that a load keeps.
pub fn kept_bits(s: &Shape) -> Width {
    match Network::of(s) {
        Network::Leader => 2 * s.lanes,
        _ if s.lanes <= MOST_ONE_HOT_LANES => s.lanes * s.lanes,
        Network::Words | Network::Bytes => route_bits(s),
    }
}

/// A route as [`to_lanes`] and [`Leader::of`] want it. What is decoded here comes out of the memory in which it is
/// kept, in front of which no tool can make multiplexers, one behind the other, of a choice that is two tables deep.
pub fn kept(s: &Shape, route: Signal) -> Signal {
    match Network::of(s) {
        Network::Leader => cat(&[route.slice(0, s.lanes), leaders_bank(s, route)]),
        _ if s.lanes <= MOST_ONE_HOT_LANES => {
            cat(&elements(route, s.lane_bits()).into_iter().map(|bank| bank.decode(s.lanes)).collect::<Vec<_>>())
        }
        Network::Words | Network::Bytes => route,
    }
}

/// One bit per bank, of a route of the leader network.
fn leaders_bank(s: &Shape, route: Signal) -> Signal {
    route.from_bit(2 * s.lanes).decode(s.lanes)
}

/// The route of an access: `own` and `sender` as the coalescer says, the lanes' places and the leader's.
pub fn route(s: &Shape, own: Signal, sender: Signal, places: Signal, first: Signal) -> Signal {
    let bank = |place: Signal| if s.lanes == 1 { place.bit(0).literal(0u32) } else { place.slice(2, s.lane_bits()) };
    match Network::of(s) {
        Network::Leader => cat(&[own, sender, bank(first)]),
        _ => cat(&elements(places, s.place_bits()).into_iter().map(bank).collect::<Vec<_>>()),
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct WordIn<T> {
    own: T,
    word: T,
    leader_word: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct WordOut<T> {
    wanted: T,
}

fn own_or_leader() -> TypedModule<WordIn<Width>, WordOut<Signal>> {
    module("network_lane", WordIn { own: 1, word: 32, leader_word: 32 }, |m, WordIn { own, word, leader_word }| {
        m.doc("One lane's word of a line: its own bank's or the leader's.");
        WordOut { wanted: own.mux(word, leader_word) }
    })
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneIn<T> {
    /// One bit per bank, one of them on at most.
    bank: T,
    line: T,
}

fn any_bank(s: &Shape) -> TypedModule<LaneIn<Width>, WordOut<Signal>> {
    module("network_lane", LaneIn { bank: s.lanes, line: 32 * s.lanes }, |m, LaneIn { bank, line }| {
        m.doc("One lane's word of a line: any bank's.");
        WordOut { wanted: select_one_hot(&elements(line, 32), bank) }
    })
}

/// Up to so many lanes, the leader network is in front of the gather register. With 8, it took fewer tables there.
const LANES_IN_FRONT: u32 = 8;

/// Whether the [gather register](super::gather) is between what the banks give and the choice of the leader network, so
/// that a word of block RAM, which comes late, only has to become the leader's there, and need not reach all lanes. Not
/// where answers are put together in that register, each chosen in its own way.
pub fn leader_behind(s: &Shape) -> bool {
    Network::of(s) == Network::Leader && s.lanes > LANES_IN_FRONT && s.replay == Replay::Split
}

/// What the register holds then, beside the word of each bank.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Leader<T> {
    /// The leader's.
    #[width(32)]
    pub word: T,
    /// One bit per lane: it gets its own bank's.
    #[width(s.lanes)]
    pub own: T,
}

impl Leader<Signal> {
    /// Of a line, by a route that was [`kept`].
    pub fn of(s: &Shape, line: Signal, kept: Signal) -> Leader<Signal> {
        Leader { word: select_one_hot(&elements(line, 32), kept.from_bit(s.lanes)), own: kept.slice(0, s.lanes) }
    }

    /// All lanes get the word beside it where `all` is 1.
    pub fn own_if(self, all: Signal) -> Leader<Signal> {
        Leader { own: self.own | all.repeat(self.own.width()), ..self }
    }

    /// Each lane's word, of those of the banks and this.
    pub fn choose(self, s: &Shape, m: Builder, words: Signal) -> Signal {
        let inputs = WordIn { own: each(self.own), word: each(words), leader_word: all(self.word) };
        m.replicate("network", s.lanes, &own_or_leader(), inputs).wanted
    }
}

/// A line's words as the lanes want them, 32 bits per lane each, by a route that was [`kept`]. If there is an
/// `only_if`, they are zeros unless it is on, so that they can be joined with what comes from elsewhere.
pub fn to_lanes(s: &Shape, m: Builder, line: Signal, kept: Signal, only_if: Option<Signal>) -> Signal {
    let gated = |signal: Signal| only_if.map_or(signal, |on| signal.only_if(on));
    match Network::of(s) {
        Network::Leader if s.lanes == 1 => gated(line),
        // Words come late, out of block RAM, and there are many: what chooses them is gated, so no word is.
        Network::Leader => {
            wire!(kept = gated(kept));
            Leader::of(s, line, kept).choose(s, m, line)
        }
        _ if s.lanes <= MOST_ONE_HOT_LANES => {
            let inputs = LaneIn { bank: each(gated(kept)), line: all(line) };
            m.replicate("network", s.lanes, &any_bank(s), inputs).wanted
        }
        Network::Words | Network::Bytes => gated(gather(line, 32, kept, s.lane_bits())),
    }
}

/// What lanes send to a bank.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ToBanks<T> {
    /// 32 bits, and 4 bits: bytes that are meant.
    pub data: T,
    pub enables: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LeaderBankIn<T> {
    /// The lane uses its own bank, and for what.
    own: T,
    lane: ToBanks<T>,
    /// This is the leader's bank, and what goes there.
    is_leader: T,
    leader: ToBanks<T>,
}

fn leader_bank() -> TypedModule<LeaderBankIn<Width>, ToBanks<Signal>> {
    let sent = ToBanks { data: 32, enables: 4 };
    module("network_bank", LeaderBankIn { own: 1, lane: sent, is_leader: 1, leader: sent }, |m, i| {
        m.doc("What a bank of the line gets: the own lane's or the leader's.");
        let lane = ToBanks { enables: i.lane.enables.only_if(i.own), ..i.lane };
        i.is_leader.mux(i.leader, lane)
    })
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct BankIn<T> {
    /// One bit per lane, the highest lane first: a served lane that accesses this bank.
    #[width(s.lanes)]
    wanting: T,
    /// What all lanes send, in the same order.
    #[width(32 * s.lanes)]
    words: T,
    #[width(4 * s.lanes)]
    bytes: T,
}

fn bank(s: &Shape) -> TypedModule<BankIn<Width>, ToBanks<Signal>> {
    module("network_bank", BankIn::shape(s), |m, BankIn { wanting, words, bytes }| {
        let (words, bytes) = (elements(words, 32), elements(bytes, 4));
        if Network::of(s) == Network::Words {
            m.doc("What a bank gets: the word of the highest lane that wants it.");
            wire!(winner = wanting.lowest_one());
            return ToBanks { data: select_one_hot(&words, winner), enables: select_one_hot(&bytes, winner) };
        }
        m.doc("What a bank gets: each byte from the highest lane that sends it.");
        let byte = |j: u32| {
            let sends = wanting & cat(&bytes.iter().map(|b| b.bit(j)).collect::<Vec<_>>());
            let of_lanes: Vec<Signal> = words.iter().map(|w| w.slice(8 * j, 8)).collect();
            (select_one_hot(&of_lanes, sends.lowest_one()), sends.any())
        };
        let (data, enables): (Vec<Signal>, Vec<Signal>) = (0..4).map(byte).unzip();
        ToBanks { data: cat(&data), enables: cat(&enables) }
    })
}

/// What the served lanes send, bank by bank. `sent` is aligned in its words, lane by lane.
pub fn to_banks(s: &Shape, m: Builder, served: Signal, route: Signal, sent: ToBanks<Signal>) -> ToBanks<Signal> {
    if Network::of(s) == Network::Leader {
        let own = route.slice(0, s.lanes);
        // The banks are far away: who sends was found before stage 9.
        let sender = route.slice(s.lanes, s.lanes);
        wire!(leader_data = select_one_hot(&elements(sent.data, 32), sender));
        wire!(leader_bytes = select_one_hot(&elements(sent.enables, 4), sender));
        wire!(leader_bank = leaders_bank(s, route));
        let inputs = LeaderBankIn {
            own: each(served & own),
            lane: ToBanks { data: each(sent.data), enables: each(sent.enables) },
            is_leader: each(leader_bank),
            leader: ToBanks { data: all(leader_data), enables: all(leader_bytes) },
        };
        return m.replicate("bank", s.lanes, &self::leader_bank(), inputs);
    }
    wire!(wanting = wanted(s, served, route));
    let (words, bytes) = (downwards(sent.data, 32), downwards(sent.enables, 4));
    let inputs = BankIn { wanting: each(wanting), words: all(words), bytes: all(bytes) };
    m.replicate("bank", s.lanes, &bank(s), inputs)
}

/// For each bank one bit per lane, the highest lane first: a served lane that accesses it. Not with the leader network.
fn wanted(s: &Shape, served: Signal, route: Signal) -> Signal {
    let route = downwards(route, s.lane_bits());
    let by_lane: Vec<Signal> = elements(route, s.lane_bits()).iter().map(|bank| bank.decode(s.lanes)).collect();
    let served = downwards(served, 1);
    let bank = |b: u32| cat(&by_lane.iter().map(|banks| banks.bit(b)).collect::<Vec<_>>()) & served;
    cat(&(0..s.lanes).map(bank).collect::<Vec<_>>())
}

/// What lanes have, the highest lane first. So the highest is what [`Signal::lowest_one`] finds, at no cost.
fn downwards(of_lanes: Signal, width: Width) -> Signal {
    cat(&elements(of_lanes, width).into_iter().rev().collect::<Vec<_>>())
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LineIn<T> {
    wanting: T,
    lines: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LineOut<T> {
    line: T,
}

/// The scratchpad line of each bank: its highest served lane's. With one lane, the lane's.
pub fn scratchpad_lines(s: &Shape, m: Builder, served: Signal, route: Signal, lines: Signal) -> Signal {
    if s.lanes == 1 {
        return lines;
    }
    let width = s.scratchpad_line_bits();
    let pick = module("network_line", LineIn { wanting: s.lanes, lines: width * s.lanes }, |m, i| {
        m.doc("The line that a bank of the scratchpad accesses.");
        LineOut { line: select_one_hot(&elements(i.lines, width), i.wanting.lowest_one()) }
    });
    let inputs = LineIn { wanting: each(wanted(s, served, route)), lines: all(downwards(lines, width)) };
    m.replicate("line", s.lanes, &pick, inputs).line
}
