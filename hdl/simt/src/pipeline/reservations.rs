//! The reservations of `lr.w`, and whether an `sc.w` succeeds.
//!
//! It stands in stage 9 beside the way to memory, where accesses pass in the order in which they take effect, and it
//! decides: memories see a load for `lr.w`, and an exchange of the lanes that succeed for `sc.w` (a load if none does,
//! for it is answered). So all memories and buses are alike, and none knows of it.
//!
//! ```text
//! access ─► line ─► set ─► [ versions ] ─┬─► version + 1, if it writes
//!             │                          ▼
//!             └──────────► [ lane: held, where, version ] ─► holds ─► succeeds
//! ```
//!
//! * A thread *holds* its reservation from its `lr.w` to its next `sc.w` or `lr.w`. With it are kept the word, and the
//!   version of the word's *set*: all lines that share an entry of the table of versions.
//! * Whatever writes into a set advances its version. A reservation of another version is lost: there is no search for
//!   it.
//! * A version that begins anew may be one that was there before. All reservations are lost then, which happens once in
//!   2^[`VERSION`] writes of a set at most.
//! * A store to the scratchpad may write several lines at once. Then all reservations in the scratchpad are lost.
//!
//! So an `sc.w` fails only if somebody wrote, or the thread had no reservation of that word; another `lr.w` never takes
//! one away. Lanes that go together access different words of one line ([`mod@super::coalesce`]) and succeed together;
//! of lanes at one word the lowest goes first, and the others find its write.
//!
//! What it does not do: it does not see what the host or other masters of a bus write.

use super::memory::Access;
use crate::memory::port::Operation;
use crate::shape::Shape;
use heddle_hdl::{all, each, elements, prelude::*};

/// Sets of lines.
pub const SETS: u32 = 64;

/// Bits of a set's version.
pub const VERSION: Width = 12;

/// What an instruction asks for.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Reserving<T> {
    /// 1 bit: it is `lr.w`, a load; `sc.w`, an exchange that may fail.
    pub reserves: T,
    pub conditional: T,
}

impl Reserving<Width> {
    /// In a core with reservations.
    pub fn shape(s: &Shape) -> Option<Reserving<Width>> {
        s.reservations.then_some(Reserving { reserves: 1, conditional: 1 })
    }
}

/// The same of an access, and for whom.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ReservingAccess<T> {
    #[width(Reserving { reserves: 1, conditional: 1 })]
    pub asked: Reserving<T>,
    /// The leader's line, in the scratchpad if its upper bit is on.
    #[width(line_bits(s))]
    pub line: T,
    /// The bank of each lane's word, [`Shape::lane_bits`] a lane.
    #[width(s.lanes * s.lane_bits())]
    pub banks: T,
    /// Whose reservations: the warp; or where a slot [mixes](Shape::mixes) them, each lane's static warp.
    #[width(rows_bits(s))]
    pub rows: T,
}

/// Bits of a line with the memory that it is in: [`Shape::place_bits`] without the word of a line.
fn line_bits(s: &Shape) -> Width {
    s.place_bits() - 2 - s.lanes.ilog2()
}

fn rows_bits(s: &Shape) -> Width {
    s.homes_bits().unwrap_or(s.warp_bits())
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ReservationsIn<T> {
    /// The access in stage 9; only of a core with reservations.
    pub access: Access<T>,
    /// 1 bit: it takes effect in this cycle. Until then it stays as it is.
    pub sent: T,
    /// 1 bit: a launch begins; nothing is under way.
    pub restart: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ReservationsOut<T> {
    /// One bit per lane: it writes what it would, or is no `sc.w`; where all fail, which load then, too.
    #[width(s.lanes)]
    pub writes: T,
    /// One bit per lane: its `sc.w` fails.
    #[width(s.lanes)]
    pub fails: T,
    /// The operation that goes to memory.
    #[width(Operation::WIDTH)]
    pub operation: T,
}

/// A reservation: the word, with the scratchpad as the upper bit of its line, and the version of its set.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct Reservation<T> {
    #[width(line_bits(s))]
    line: T,
    #[width(s.lane_bits())]
    bank: T,
    #[width(VERSION)]
    version: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct LaneIn<T> {
    #[width(s.warp_bits())]
    row: T,
    /// What it would reserve, or must have reserved.
    here: Reservation<T>,
    /// 1 bit: its `lr.w` takes effect; its `sc.w` does.
    makes: T,
    ends: T,
    /// 1 bit: all reservations are lost; those in the scratchpad are.
    lost: T,
    #[when(s.scratchpad > 0)]
    lost_in_scratchpad: Option<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneOut<T> {
    /// 1 bit: the thread has this reservation.
    holds: T,
}

/// The reservations of a lane's threads, one per warp.
fn lane(s: &Shape) -> TypedModule<LaneIn<Width>, LaneOut<Signal>> {
    module("reservations_lane", LaneIn::shape(s), |m, i| {
        m.doc("The reservations of one lane of every warp.");
        let places = m.memory("places", Reservation::shape(s), s.warp_bits()).style(MemoryStyle::Distributed);
        places.write(i.makes, i.row, i.here);
        let at = i.row.decode(s.warps);
        // A bit per warp, and one for those in the scratchpad, which may be lost alone.
        let to_scratchpad = i.lost_in_scratchpad.map(|_| i.here.line.msb());
        let held = |name: &str, made: Signal, lost: Signal| {
            let held = m.reg(name, s.warps).reset(0u32);
            held.next(((held.q & !at.only_if(i.makes | i.ends)) | at.only_if(made)).only_if(!lost));
            (held.q & at).any()
        };
        let in_main = to_scratchpad.map_or(i.makes, |pad| i.makes & !pad);
        let main = held("held", in_main, i.lost);
        let held = match to_scratchpad.zip(i.lost_in_scratchpad) {
            Some((pad, lost)) => main | held("held_in_scratchpad", i.makes & pad, i.lost | lost),
            None => main,
        };
        LaneOut { holds: held & places.read(i.row).same_as(i.here) }
    })
}

pub fn reservations(s: &Shape) -> TypedModule<ReservationsIn<Width>, ReservationsOut<Signal>> {
    module("reservations", ReservationsIn::shape(s), |m, i| {
        m.doc("Reservations of lr.w, and whether sc.w succeeds.");
        let access = i.access;
        let ReservingAccess { asked, line, banks, rows } =
            access.reserving.expect("an access of a core with reservations");
        let pad = access.scratchpad.map(|to| to.valid);
        let versions = m.memory("versions", VERSION, SETS.ilog2()).style(MemoryStyle::Distributed);
        wire!(set = set_of(line));
        wire!(version = versions.read(set));

        let lost = m.deferred("lost", 1);
        let lost_in_scratchpad = pad.map(|_| m.deferred("lost_in_scratchpad", 1));
        let row = if s.mixes() { each(rows) } else { all(rows) };
        let of_lanes = |does: Signal| each(access.served.only_if(does & i.sent));
        let inputs = LaneIn {
            row,
            here: Reservation { line: all(line), bank: each(banks), version: all(version) },
            makes: of_lanes(asked.reserves),
            ends: of_lanes(asked.conditional),
            lost: all(lost.value),
            lost_in_scratchpad: lost_in_scratchpad.as_ref().map(|lost| all(lost.value)),
        };
        let holds = m.replicate("lane", s.lanes, &lane(s), inputs).holds;

        wire!(succeeds = access.served & holds);
        wire!(some_succeed = succeeds.any());
        wire!(fails = asked.conditional & !some_succeed);
        // A load and an exchange are answered both; only the exchange is atomic.
        wire!(
            sent_operation =
                cat(&[access.operation.bit(Operation::SILENT), access.operation.bit(Operation::IS_ATOMIC) & !fails])
        );
        wire!(advances = i.sent & sent_operation.ne(Operation::Load));
        let scattered = access.scratchpad.map(|to| {
            let leaders = line.slice(0, s.scratchpad_line_bits());
            let apart = elements(to.lines, s.scratchpad_line_bits()).into_iter().map(|line| line.ne(leaders));
            wire!(scattered = to.valid & (cat(&apart.collect::<Vec<_>>()) & access.served).any());
            scattered
        });
        wire!(of_one_set = scattered.map_or(advances, |scattered| advances & !scattered));
        versions.write(of_one_set, set, version + 1);
        wire!(wraps = of_one_set & version.all());
        lost.drive(wraps | i.restart);
        if let Some((lost, scattered)) = lost_in_scratchpad.zip(scattered) {
            lost.drive(advances & scattered);
            m.cover("lost_in_the_scratchpad", advances & scattered);
            m.assert(
                "lanes_with_a_reservation_are_of_one_line",
                !(i.sent & scattered & (asked.reserves | asked.conditional)),
            );
        }

        let decided = i.sent & asked.conditional;
        m.assume("restart_while_nothing_is_sent", !(i.restart & i.sent));
        m.assert("one_of_them", !(access.valid & asked.reserves & asked.conditional));
        m.assert("a_reservation_is_a_load", !(i.sent & asked.reserves) | access.operation.eq(Operation::Load));
        m.assert("a_condition_is_atomic", !decided | access.operation.eq(Operation::Atomic));
        m.probe("decided", access.served.only_if(decided));
        m.probe("succeed", succeeds);
        m.probe("rows", rows);
        m.probe("wrapped", wraps);
        m.cover("succeeds", decided & some_succeed);
        m.cover("several_succeed", decided & succeeds.count_ones().gt(1));
        m.cover("some_fail", decided & some_succeed & (access.served & !holds).any());
        m.cover("fails", i.sent & fails);
        ReservationsOut {
            writes: succeeds | m.lit(Bits::ones(s.lanes), s.lanes).only_if(!asked.conditional | fails),
            fails: !holds,
            operation: sent_operation,
        }
    })
}

/// The set of a line: stacks and arrays are powers of two apart, so all bits count.
fn set_of(line: Signal) -> Signal {
    let bits = SETS.ilog2();
    let chunks = (0..line.width().div_ceil(bits)).map(|k| {
        let width = bits.min(line.width() - bits * k);
        line.slice(bits * k, width).zext(bits)
    });
    chunks.reduce(|a, b| a ^ b).expect("a line has bits")
}

/// The same of a line's number, for who checks.
pub fn set_of_line(s: &Shape, line: u32, in_scratchpad: bool) -> u32 {
    let mut line = line | u32::from(in_scratchpad) << (line_bits(s) - 1);
    let mut set = 0;
    while line != 0 {
        set ^= line & (SETS - 1);
        line >>= SETS.ilog2();
    }
    set
}

#[cfg(test)]
mod tests;
