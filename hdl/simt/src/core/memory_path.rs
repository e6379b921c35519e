//! The way to memory and back: between resolve, the memory port, the scratchpad and write-back.
//!
//! ```text
//! Split:      resolve ─► stage 9 ─┬─► [request queue] ─► memory port
//!                                 └─► scratchpad
//! Serialise:  resolve ─► load-store unit ─► stage 9 ─┬─► memory port
//!                                                    └─► scratchpad
//! ```
//!
//! The reservations of `lr.w` stand beside stage 9, in a core with them.
//!
//! Under `Split` the scratchpad's answer finds its own instruction's cycle in stage 10 free, so it is always taken at
//! once. That is why it goes before the port's; under `Serialise`, they take turns.

use crate::memory::port::{Miss, Request, Response};
use crate::memory::scratchpad::{ScratchpadIn, ScratchpadOut, ScratchpadRequest, scratchpad};
use crate::pipeline::issue::{Issued, Reading};
use crate::pipeline::load_queue::{AnswerTags, LoadQueueIn, LoadQueueOut, Owner, load_queue};
use crate::pipeline::load_store::{LoadStoreIn, Whole, load_store};
use crate::pipeline::memory::{Access, MemoryIn, MemoryOut, memory};
use crate::pipeline::request_queue::{RequestQueueIn, request_queue};
use crate::pipeline::reservations::{ReservationsIn, ReservationsOut, reservations};
use crate::pipeline::resolve::Resolved;
use crate::scoreboard::Pending;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// What the way to memory needs, beside what comes from resolve.
pub struct Around {
    /// The instruction that issues, and the one that did in the cycle before.
    pub issued: Issued<Signal>,
    pub reading: Reading<Signal>,
    pub request_ready: Signal,
    pub response: Response<Signal>,
    pub miss: Option<Miss<Signal>>,
    /// Write-back takes the response.
    pub response_taken: Signal,
    /// What it writes late.
    pub late: Pending<Signal>,
    /// A launch begins.
    pub restart: Signal,
}

/// What it gives.
pub struct MemoryPath {
    /// For issue: there is a place for an access; for one that is answered, and its number.
    pub access_room: Signal,
    pub load_room: Signal,
    pub load_tag: Signal,
    /// Lanes that are chosen here wait for an entry of the load queue.
    pub waits_for_loads: Signal,
    /// The memory port.
    pub request: Request<Signal>,
    pub response_ready: Signal,
    /// For write-back.
    pub response: Response<Signal>,
    pub loads: LoadQueueOut<Signal>,
    /// The lanes of an access are chosen; they leave others behind.
    pub access: Signal,
    pub parts: Signal,
    /// Something is under way that may be waited for.
    pub under_way: Signal,
    /// Nothing is under way.
    pub idle: Signal,
}

/// Builds it.
pub fn memory_path(s: &Shape, m: Builder, resolved: &Resolved<Signal>, around: Around) -> MemoryPath {
    match (resolved.access, resolved.whole) {
        (Some(access), _) => split(s, m, access, resolved, around),
        (None, Some(whole)) => serialise(s, m, whole, around),
        (None, None) => unreachable!("resolve gives one of them"),
    }
}

/// Lanes were chosen in resolve.
fn split(s: &Shape, m: Builder, access: Access<Signal>, resolved: &Resolved<Signal>, around: Around) -> MemoryPath {
    let issued = around.issued;
    let decided = decide(s, m, access, access.valid, &around);
    let sent = m.instance("memory", &memory(s), MemoryIn { access, decided });
    let pad = Pad::of(s, m, &sent, &around);
    let loads = LoadQueueIn {
        take: issued.answers,
        owner: Owner { slot: around.reading.slot, rd: around.reading.registers.rd },
        access,
        decided,
        more: m.zero(Pending::shape(s)),
        tag: pad.response.tag,
        give: around.response_taken,
        answers: None,
        missed: around.miss,
        written: Some(Owner { slot: around.late.slot, rd: around.late.rd }),
    };
    let loads = m.instance("load_queue", &load_queue(s), loads);
    if let Some(out) = pad.out {
        m.assert("scratchpad_answer_taken_at_once", !out.response.valid | around.response_taken);
    }
    let yes = m.lit(1u32, 1);
    let (request, empty, access_room) = if s.memory_stalls() {
        let inputs = RequestQueueIn { sent: sent.request, ready: around.request_ready };
        let queue = m.instance("request_queue", &request_queue(s), inputs);
        let takes = issued.accesses;
        let leaves = [queue.request.valid & around.request_ready, pad.sent(&sent)];
        (queue.request, queue.empty, credit(s, m, takes, &leaves).0)
    } else {
        m.assert("request_taken_at_once", !sent.request.valid | around.request_ready);
        (sent.request, yes, yes)
    };
    let parts = access.valid & resolved.outcome.rest.mask.any();
    probes(m, request, around.request_ready, access.served, sent.scratchpad, &pad);
    chosen(m, access, parts);
    MemoryPath {
        access_room,
        load_room: loads.room,
        load_tag: loads.next,
        waits_for_loads: m.lit(0u32, 1),
        request,
        response_ready: pad.port_ready(&around),
        response: pad.response,
        loads,
        access: access.valid,
        parts,
        under_way: !loads.empty,
        idle: empty & loads.empty,
    }
}

/// Lanes are chosen group by group.
fn serialise(s: &Shape, m: Builder, whole: Whole<Signal>, around: Around) -> MemoryPath {
    let issued = around.issued;
    let taken = m.deferred("access_taken", 1);
    let to_load_queue = m.deferred("to_load_queue", LoadQueueIn::shape(s));
    let loads = m.instance("load_queue", &load_queue(s), to_load_queue.value);
    let inputs = LoadStoreIn { whole, load_room: loads.room, load_tag: loads.next, taken: taken.value };
    let unit = m.instance("load_store", &load_store(s), inputs);
    let decided = decide(s, m, unit.access, taken.value, &around);
    let sent = m.instance("memory", &memory(s), MemoryIn { access: unit.access, decided });
    let pad = Pad::of(s, m, &sent, &around);
    taken.drive((sent.request.valid & around.request_ready) | pad.sent(&sent));
    to_load_queue.drive(LoadQueueIn {
        take: unit.answers,
        owner: Owner { slot: m.pipe("owner_slot", unit.serving.slot), rd: m.pipe("owner_rd", unit.serving.rd) },
        // Written down as it is sent: an answer comes later still.
        access: Access { valid: m.pipe_reset("was_chosen", unit.chosen.valid), ..unit.access },
        decided,
        more: unit.serving,
        tag: pad.response.tag,
        give: around.response_taken,
        answers: pad.tags(&around),
        missed: around.miss,
        written: None,
    });
    let takes = issued.accesses;
    probes(m, sent.request, around.request_ready, unit.access.served, sent.scratchpad, &pad);
    chosen(m, unit.chosen, unit.parts);
    let (access_room, used) = credit(s, m, takes, &[unit.left]);
    MemoryPath {
        access_room,
        load_room: m.lit(1u32, 1),
        load_tag: m.zero(index_width(s.loads)),
        waits_for_loads: unit.waits_for_loads,
        request: sent.request,
        response_ready: pad.port_ready(&around),
        response: pad.response,
        loads,
        access: unit.chosen.valid,
        parts: unit.parts,
        under_way: used.any() | !loads.empty,
        idle: unit.empty & loads.empty,
    }
}

/// What the reservations say of an access that is sent in this cycle, in a core with them.
fn decide(
    s: &Shape,
    m: Builder,
    access: Access<Signal>,
    sent: Signal,
    around: &Around,
) -> Option<ReservationsOut<Signal>> {
    let inputs = ReservationsIn { access, sent, restart: around.restart };
    s.reservations.then(|| m.instance("reservations", &reservations(s), inputs))
}

/// The scratchpad, if there is one, and the response that goes to write-back.
struct Pad {
    out: Option<ScratchpadOut<Signal>>,
    from_scratchpad: Signal,
    response: Response<Signal>,
}

impl Pad {
    fn of(s: &Shape, m: Builder, sent: &MemoryOut<Signal>, around: &Around) -> Pad {
        let Some(request) = sent.scratchpad else {
            return Pad { out: None, from_scratchpad: m.lit(0u32, 1), response: around.response };
        };
        let taken = m.deferred("scratchpad_answer_taken", 1);
        let inputs = ScratchpadIn { request, response_ready: taken.value };
        let out = m.instance("scratchpad", &scratchpad(s), inputs);
        let mut first = out.response.valid;
        if s.two_answers() {
            // Answers of one access may come in every cycle: the other takes turns with them.
            let port_next = m.reg("port_next", 1).reset(0u32);
            first = first & !(port_next.q & around.response.valid);
            port_next.next(first & around.response.valid & around.response_taken);
        }
        wire!(from_scratchpad = first);
        taken.drive(from_scratchpad & around.response_taken);
        Pad { out: Some(out), from_scratchpad, response: from_scratchpad.mux(out.response, around.response) }
    }

    /// The port's response is taken.
    fn port_ready(&self, around: &Around) -> Signal {
        around.response_taken & !self.from_scratchpad
    }

    /// The entries of both responses.
    fn tags(&self, around: &Around) -> Option<AnswerTags<Signal>> {
        let (port, from_scratchpad) = (around.response.tag, self.from_scratchpad);
        self.out.map(|out| AnswerTags { scratchpad: out.response.tag, port, from_scratchpad })
    }

    /// The scratchpad takes a request.
    fn sent(&self, sent: &MemoryOut<Signal>) -> Signal {
        let both = self.out.zip(sent.scratchpad);
        both.map_or(sent.request.valid.literal(0u32), |(out, request)| out.ready & request.valid)
    }
}

/// Whether one more instruction may issue that will need a place among [`Shape::requests`], and the places in use.
fn credit(s: &Shape, m: Builder, takes: Signal, leaves: &[Signal]) -> (Signal, Signal) {
    let width = count_width(s.requests);
    let used = m.reg("places_used", width).reset(0u32);
    let left = leaves.iter().fold(m.zero(width), |sum, &leaves| sum + leaves.zext(width));
    match leaves {
        // Whether one leaves is known late.
        &[leaves] => used.next_if(takes ^ leaves, takes.mux(used.q + 1, used.q - 1)),
        _ => used.next(used.q + takes.zext(width) - left),
    }
    m.assert("a_place_was_free", !takes | used.q.ne(s.requests));
    m.assert("places_leave_that_were_used", left.le(used.q));
    (used.q.ne(s.requests), used.q)
}

/// The lanes of an access that were chosen, whether they leave others behind, and where they go, for those who watch.
fn chosen(m: Builder, access: Access<Signal>, parts: Signal) {
    m.probe("access_valid", access.valid);
    m.probe("access_served", access.served);
    m.probe("access_parts", parts);
    if let Some(to) = access.scratchpad {
        m.probe("access_to_scratchpad", to.valid);
    }
}

/// What goes to memory, for those who watch.
fn probes(
    m: Builder,
    request: Request<Signal>,
    ready: Signal,
    lanes: Signal,
    scratchpad: Option<ScratchpadRequest<Signal>>,
    pad: &Pad,
) {
    m.probe("request_sent", request.valid & ready);
    m.probe("request_operation", request.operation);
    m.probe("request_function", request.function);
    m.probe("request_line", request.line);
    m.probe("request_enables", request.enables);
    m.probe("request_data", request.data);
    m.probe("request_lanes", lanes);
    if let Some((out, request)) = pad.out.zip(scratchpad) {
        m.probe("scratchpad_sent", request.valid & out.ready);
        m.probe("scratchpad_operation", request.operation);
        m.probe("scratchpad_function", request.function);
        m.probe("scratchpad_lines", request.lines);
        m.probe("scratchpad_enables", request.enables);
        m.probe("scratchpad_data", request.data);
    }
}
