//! Stage 9, memory: the access goes out to the memory port or to the scratchpad.
//!
//! A request to the port is one line of `lanes` words: bank k holds word k; loads read the whole line. In the
//! scratchpad each bank has its own line.

use super::coalesce::CoalesceOut;
use super::network::{self, ToBanks};
use super::reservations::{ReservationsOut, Reserving, ReservingAccess};
use crate::memory::atomic::inverts;
use crate::memory::port::{Operation, Request};
use crate::memory::scratchpad::ScratchpadRequest;
use crate::shape::Shape;
use heddle_hdl::{all, case, each, elements, prelude::*};

/// A memory access of the lanes that are served together.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Access<T> {
    pub valid: T,
    /// An [`Operation`].
    pub operation: T,
    /// Of an atomic: an [`Atomic`](crate::isa::Atomic).
    pub function: T,
    /// Its data go to memory inverted, as [`inverts`] says.
    pub inverts: T,
    /// Entry of the load queue, of an access that is answered.
    pub tag: T,
    /// funct3: size and sign.
    pub size: T,
    /// Number of the line of `lanes` words in main memory.
    pub line: T,
    /// Served lanes.
    pub served: T,
    /// How their words go between lanes and banks: see [`network`].
    pub route: T,
    /// Two bits per lane: byte in the word.
    pub offset: T,
    /// 32 bits per lane: data to store.
    pub data: T,
    /// If there is a scratchpad.
    pub scratchpad: Option<ToScratchpad<T>>,
    /// In a core with reservations.
    pub reserving: Option<ReservingAccess<T>>,
}

/// The part of an access that only the scratchpad looks at.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ToScratchpad<T> {
    /// The access goes there, and not to the memory port.
    pub valid: T,
    /// [`Shape::scratchpad_line_bits`] a lane.
    pub lines: T,
}

impl Access<Width> {
    pub fn shape(s: &Shape) -> Access<Width> {
        let scratchpad =
            (s.scratchpad > 0).then(|| ToScratchpad { valid: 1, lines: s.scratchpad_line_bits() * s.lanes });
        Access {
            valid: 1,
            operation: Operation::WIDTH,
            function: 5,
            inverts: 1,
            tag: index_width(s.loads),
            size: 3,
            line: s.line_bits(),
            served: s.lanes,
            route: network::route_bits(s),
            offset: 2 * s.lanes,
            data: 32 * s.lanes,
            scratchpad,
            reserving: s.reservations.then(|| ReservingAccess::shape(s)),
        }
    }
}

/// What an instruction asks of memory, the same for all its lanes.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Asked<T> {
    #[width(Operation::WIDTH)]
    pub operation: T,
    #[width(5)]
    pub function: T,
    #[width(3)]
    pub size: T,
    /// In a core with reservations.
    #[width(Reserving::shape(s))]
    pub reserving: Option<Reserving<T>>,
}

impl Asked<Signal> {
    pub fn is_atomic(&self) -> Signal {
        self.operation.bit(Operation::IS_ATOMIC)
    }

    pub fn is_store(&self) -> Signal {
        self.operation.eq(Operation::Store)
    }

    /// It makes a reservation or needs one.
    pub fn is_reserving(&self) -> Option<Signal> {
        self.reserving.map(|Reserving { reserves, conditional }| reserves | conditional)
    }

    /// Memory answers.
    pub fn answers(&self) -> Signal {
        !self.operation.bit(Operation::SILENT)
    }
}

impl Access<Signal> {
    /// The access of the lanes that [`mod@super::coalesce`] chose; `first` is the leader's place, `rows` whose
    /// reservations are meant, in a core with them.
    pub fn of(
        s: &Shape,
        asked: Asked<Signal>,
        (lanes, rows): (Lanes<Signal>, Signal),
        first: Signal,
        chosen: CoalesceOut<Signal>,
    ) -> Access<Signal> {
        let line = 2 + s.lanes.ilog2();
        let places = elements(lanes.places, s.place_bits());
        let all = |field: &dyn Fn(Signal) -> Signal| cat(&places.iter().map(|&p| field(p)).collect::<Vec<_>>());
        let scratchpad = (s.scratchpad > 0)
            .then(|| ToScratchpad { valid: first.msb(), lines: all(&|p| p.slice(line, s.scratchpad_line_bits())) });
        let bank = |p: Signal| if s.lanes == 1 { p.bit(0).literal(0u32) } else { p.slice(2, s.lane_bits()) };
        let reserving =
            asked.reserving.map(|asked| ReservingAccess { asked, line: first.from_bit(line), banks: all(&bank), rows });
        Access {
            valid: lanes.valid,
            operation: asked.operation,
            function: asked.function,
            inverts: if s.atomics { asked.is_atomic() & inverts(asked.function) } else { lanes.valid.literal(0u32) },
            tag: lanes.tag,
            size: asked.size,
            line: first.slice(line, s.line_bits()),
            served: chosen.served,
            route: network::route(s, chosen.own, chosen.sender, lanes.places, first),
            offset: all(&|p| p.slice(0, 2)),
            data: lanes.data,
            scratchpad,
            reserving,
        }
    }
}

/// What the lanes bring to an access.
#[derive(Clone, Copy, Debug)]
pub struct Lanes<T> {
    pub valid: T,
    pub tag: T,
    /// [`Shape::place_bits`] a lane.
    pub places: T,
    /// 32 bits per lane.
    pub data: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct MemoryIn<T> {
    pub access: Access<T>,
    /// Which lanes of it write, and its operation, in a core with [reservations](super::reservations).
    #[when(s.reservations)]
    pub decided: Option<ReservationsOut<T>>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MemoryOut<T> {
    pub request: Request<T>,
    /// If there is a scratchpad.
    pub scratchpad: Option<ScratchpadRequest<T>>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct AlignIn<T> {
    size: T,
    /// The access reads: whole words.
    reads: T,
    /// The value goes to memory inverted.
    inverts: T,
    offset: T,
    value: T,
}

fn align() -> TypedModule<AlignIn<Width>, ToBanks<Signal>> {
    let inputs = AlignIn { size: 2, reads: 1, inverts: 1, offset: 2, value: 32 };
    module("align", inputs, |m, AlignIn { size, reads, inverts, offset, value }| {
        m.doc("Puts a lane's data at its bytes of the word.");
        let byte = value.slice(0, 8).repeat(4);
        let half = value.slice(0, 16).repeat(2);
        let halves = offset.bit(1).mux(m.lit(0b1100u32, 4), m.lit(0b0011u32, 4));
        let arms =
            [(0u32, ToBanks { data: byte, enables: offset.decode(4) }), (1, ToBanks { data: half, enables: halves })];
        let whole = m.lit(0b1111u32, 4);
        let sent = case(size, &arms, ToBanks { data: value, enables: whole });
        ToBanks { data: sent.data ^ inverts.repeat(32), enables: reads.mux(whole, sent.enables) }
    })
}

/// The stage. Combinational.
pub fn memory(s: &Shape) -> TypedModule<MemoryIn<Width>, MemoryOut<Signal>> {
    module("memory", MemoryIn::shape(s), |m, MemoryIn { access, decided }| {
        m.doc("Stage 9: requests to memory.");
        let inputs = AlignIn {
            size: all(access.size.slice(0, 2)),
            reads: all(access.operation.eq(Operation::Load)),
            inverts: all(access.inverts),
            offset: each(access.offset),
            value: each(access.data),
        };
        let sent = m.replicate("align", s.lanes, &align(), inputs);
        let sent = decided.map_or(sent, |ReservationsOut { writes, .. }| {
            let enables = elements(sent.enables, 4).into_iter().zip(elements(writes, 1));
            let enables = enables.map(|(enables, writes)| enables.only_if(writes)).collect::<Vec<_>>();
            ToBanks { enables: cat(&enables), ..sent }
        });
        let operation = decided.map_or(access.operation, |decided| decided.operation);
        let banks = network::to_banks(s, m, access.served, access.route, sent);
        let to_scratchpad = access.scratchpad;
        let request = Request {
            valid: to_scratchpad.map_or(access.valid, |to| access.valid & !to.valid),
            operation,
            function: access.function,
            tag: access.tag,
            line: access.line,
            enables: banks.enables,
            data: banks.data,
        };
        let scratchpad = to_scratchpad.map(|to| ScratchpadRequest {
            valid: access.valid & to.valid,
            operation,
            function: access.function,
            tag: access.tag,
            lines: network::scratchpad_lines(s, m, access.served, access.route, to.lines),
            enables: banks.enables,
            data: banks.data,
        });
        MemoryOut { request, scratchpad }
    })
}
