//! A bridge to a bus: the memory port as a master on Wishbone B4, pipelined (revision B.4 of the specification, chapter
//! 3.1.3.2).
//!
//! A line goes over the bus in *beats* of the bus's width, and of a line only those with an enabled byte. A beat is
//! taken in a cycle with STB and without STALL, and answered with ACK or ERR in that cycle or any later one, in order.
//! As many may be under way as there are places in the queue of those that wait; one place holds what a beat is for,
//! and where it went.
//!
//! | request | beats |
//! |---|---|
//! | load | read; DAT_I goes to the line's place, one for each tag, and when the last beat is answered the response is complete |
//! | store | written, and forgotten when they are answered: until then, the bridge is not idle |
//! | atomic | each read and written back, with LOCK and alone on the bus |
//!
//! A request stays at the port until its last beat is taken, so nothing of it is held here. That makes STB, WE, ADR,
//! SEL and DAT_O combinational from what offers the request, a queue in the core or the cache.
//!
//! **Addresses** are of bytes, from 0 on, as many bits as memory has; those below the bus's width are 0. A system with
//! memory elsewhere puts its base above, and a bus that counts words takes the upper bits.
//!
//! **Errors.** A beat that is answered with ERR is over, like one with ACK, and its address goes to the core, which
//! stops. All other beats go on, so what earlier instructions stored arrives. Of an atomic operation whose read fails,
//! nothing is written.
//!
//! What it does not do: no RTY (a slave that has it is to be answered by whoever connects it; it may drive ERR), no
//! tags, no registered feedback bursts. It does not wait with a line until the bus would take all of it.

pub mod proof;
pub mod rules;
pub mod slave;
#[cfg(test)]
mod tests;

use super::atomic;
use super::port::{Operation, Response};
use super::{MainIn, MainOut};
use crate::queue::Queue;
use crate::shape::Shape;
use heddle_hdl::{elements, prelude::*};

/// What the master drives, by the specification's names.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ToSlave<T> {
    pub cyc_o: T,
    pub stb_o: T,
    pub we_o: T,
    /// With `cyc_o`, from the read to the answer of the write of an atomic operation.
    pub lock_o: T,
    /// Byte address, `address_bits`; the bits that choose a byte of the bus are 0.
    pub adr_o: T,
    /// One bit a byte.
    pub sel_o: T,
    pub dat_o: T,
}

/// What the slave drives.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct FromSlave<T> {
    pub stall_i: T,
    pub ack_i: T,
    pub err_i: T,
    pub dat_i: T,
}

/// An access that the bus refused.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct BusError<T> {
    pub valid: T,
    /// The beat's byte address, `address_bits`.
    #[width(s.address_bits())]
    pub address: T,
}

impl ToSlave<Width> {
    /// `width`: data bits.
    pub fn shape(s: &Shape, width: Width) -> ToSlave<Width> {
        let adr_o = s.address_bits();
        ToSlave { cyc_o: 1, stb_o: 1, we_o: 1, lock_o: 1, adr_o, sel_o: width / 8, dat_o: width }
    }
}

impl FromSlave<Width> {
    pub fn shape(width: Width) -> FromSlave<Width> {
        FromSlave { stall_i: 1, ack_i: 1, err_i: 1, dat_i: width }
    }
}

/// Beats that may be under way: all of as many loads as there are tags, but at most [`MOST_UNDER_WAY`], and no fewer
/// than fit into the smallest distributed memory.
fn under_way(beats: u32, tag_bits: Width) -> u32 {
    (beats << tag_bits).clamp(16, MOST_UNDER_WAY)
}

/// The most beats under way.
pub const MOST_UNDER_WAY: u32 = 64;

/// After 2 to this power less 1 beats, the bridge waits for all answers and lets go of CYC for a cycle: arbiters change
/// masters only then (RECOMMENDATION 3.05).
const TURN_BITS: Width = 8;

/// What a beat under way is for.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Beat<T> {
    /// The byte address without the bits below the bus's width.
    address: T,
    tag: T,
    /// DAT_I is part of a response.
    fills: T,
    /// And the last part.
    completes: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct RmwIn<T> {
    /// A beat of an atomic operation is to be carried out.
    valid: T,
    /// Beats are under way.
    waits: T,
    /// One is answered, and with ERR.
    answered: T,
    failed: T,
    /// An [`Atomic`](crate::isa::Atomic), 5 bits.
    code: T,
    /// DAT_I, and what the request has for the beat.
    words: T,
    operands: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct RmwOut<T> {
    locked: T,
    /// The beat's read, or its write, is to be taken.
    strobe: T,
    writes: T,
    /// What is written.
    result: T,
    /// The beat is over in this cycle.
    ends: T,
}

/// Read, modify, write: a beat of an atomic operation.
fn rmw(width: Width) -> TypedModule<RmwIn<Width>, RmwOut<Signal>> {
    let inputs = RmwIn { valid: 1, waits: 1, answered: 1, failed: 1, code: 5, words: width, operands: width };
    module("wishbone_rmw", inputs, |m, i| {
        m.doc("Read, modify, write: a beat of an atomic operation.");
        let locked = m.reg("locked", 1).reset(0u32);
        let writing = m.reg("writing", 1).reset(0u32);
        wire!(answered = locked.q & i.answered);
        wire!(ends = answered & (writing.q | i.failed));
        // Unlocked for a cycle between two beats: an arbiter may give the bus to another master.
        locked.next(locked.q.mux(!ends, i.valid & !i.waits));
        writing.next_if(answered, !ends);
        let words = m.pipe_if("words_read", answered, i.words);
        // The beat is written in any case.
        let operands = elements(words, 32).into_iter().zip(elements(i.operands, 32));
        let result = cat(&operands.map(|(word, operand)| atomic::after(i.code, word, operand)).collect::<Vec<_>>());
        RmwOut { locked: locked.q, strobe: locked.q & !i.waits, writes: writing.q, result, ends }
    })
}

/// The bridge of a shape to a bus of `width` data bits.
pub fn wishbone(s: &Shape, width: Width, tag_bits: Width) -> TypedModule<MainIn<Width>, MainOut<Signal>> {
    module("wishbone", MainIn::shape(s, tag_bits), |m, i| {
        m.doc(&format!("Bridge to a Wishbone bus, B4 pipelined, {width} bits."));
        let bus = i.wb.expect("MainIn::shape has the ports of a shape's bus");
        let request = i.request;
        let bytes = width / 8;
        let beats = 4 * s.lanes / bytes;
        wire!(responds = !request.operation.bit(Operation::SILENT));
        wire!(is_atomic = if s.atomics { request.operation.bit(Operation::IS_ATOMIC) } else { m.lit(0u32, 1) });

        // The beat of the request whose turn it is. Even one that asks for no byte has one, so that it is answered.
        let enables = elements(request.enables, bytes);
        let enabled: Vec<Signal> = enables.iter().map(|e| e.any()).collect();
        wire!(none = !request.enables.any());
        wire!(wanted = cat(&[&[enabled[0] | none], &enabled[1..]].concat()));
        let over = m.deferred("over", 1);
        let sent = m.reg("sent", beats).reset(0u32);
        wire!(left = wanted & !sent.q);
        wire!(beat = left.lowest_one());
        wire!(last = !(left & !beat).any());
        sent.next_if(over.value, (sent.q | beat).only_if(!last));
        let of_beat = |parts: Vec<Signal>| if beats == 1 { parts[0] } else { select_one_hot(&parts, beat) };
        wire!(data = of_beat(elements(request.data, width)));
        let address = if beats == 1 { request.line } else { cat(&[beat.one_hot_index(), request.line]) };

        // Beats under way. An answer may come in the cycle in which its beat is taken.
        let waits = m.deferred("waits", 1);
        let may_go = m.deferred("may_go", 1);
        let rmw_out = m.deferred("rmw", RmwOut { locked: 1, strobe: 1, writes: 1, result: width, ends: 1 });
        let RmwOut { locked, strobe, writes, result, ends } = rmw_out.value;
        wire!(stb = request.valid & is_atomic.mux(strobe, may_go.value));
        wire!(taken = stb & !bus.stall_i);
        wire!(answers = bus.ack_i | bus.err_i);
        wire!(answered = answers & (waits.value | taken));
        let fills = responds & !writes;
        let entry = Beat { address, tag: request.tag, fills, completes: responds & last & !is_atomic };
        let places = under_way(beats, tag_bits);
        let shape = Beat { address: address.width(), tag: tag_bits, fills: 1, completes: 1 };
        let queue = Queue::new(m, "beats", shape, places, taken & (waits.value | !answers), entry);
        queue.leaves(answers & queue.waits);
        waits.drive(queue.waits);
        wire!(cyc = stb | queue.waits | locked);
        let turn = m.reg("turn", TURN_BITS).reset(0u32);
        turn.next((turn.q + taken.zext(TURN_BITS)).only_if(cyc));
        may_go.drive(!queue.full & !turn.q.all());
        wire!(of = queue.waits.mux(queue.head, entry));
        rmw_out.drive(if s.atomics {
            let inputs = RmwIn {
                valid: request.valid & is_atomic,
                waits: queue.waits,
                answered,
                failed: bus.err_i,
                code: request.function,
                words: bus.dat_i,
                operands: data,
            };
            m.instance("rmw", &rmw(width), inputs)
        } else {
            m.zero(RmwOut { locked: 1, strobe: 1, writes: 1, result: width, ends: 1 })
        });
        over.drive(is_atomic.mux(ends, taken));

        // Responses.
        let lines = m.memory("lines", 32 * s.lanes, tag_bits).style(MemoryStyle::Distributed);
        let part = if beats == 1 { m.lit(1u32, 1) } else { of.address.slice(0, beats.ilog2()).decode(beats) };
        lines.write_granules(part.only_if(answered & of.fills), of.tag, bus.dat_i.repeat(beats));
        wire!(completes = (answered & of.completes) | (ends & last & responds));
        let complete = Queue::new(m, "complete", tag_bits, 1 << tag_bits, completes, of.tag);
        complete.leaves(complete.waits & i.response_ready);

        let byte_address = |address: Signal| cat(&[m.zero(bytes.ilog2()), address]);
        let error = m.stage("error", BusError { valid: answered & bus.err_i, address: byte_address(of.address) });
        m.cover("stalled", stb & bus.stall_i);
        m.cover("answered_at_once", answered & !queue.waits);
        m.cover("no_room", request.valid & !is_atomic & queue.full);
        m.cover("turn_ends", request.valid & turn.q.all());
        m.cover("skips_beats", over.value & last & !beat.msb());
        m.cover("response_held", complete.waits & !i.response_ready);
        m.cover("atomic_waits_for_others", request.valid & is_atomic & !locked & queue.waits);
        m.cover("atomic_fails", ends & !writes);
        MainOut {
            request_ready: over.value & last,
            response: Response { valid: complete.waits, tag: complete.head, data: lines.read(complete.head) },
            idle: !(queue.waits | complete.waits | locked),
            loaded: None,
            wb: Some(ToSlave {
                cyc_o: cyc,
                stb_o: stb,
                we_o: is_atomic.mux(writes, !responds),
                lock_o: locked,
                adr_o: byte_address(address),
                sel_o: of_beat(enables),
                dat_o: writes.mux(result, data),
            }),
            error: Some(error),
        }
    })
}
