//! What resolve, and the memory stage behind it, do with the threads of an instruction.
//!
//! The served threads and those that are left are the instruction's threads, each in one of the two; the first one is
//! always served, so replays come to an end. What is served lies in the accessed line, at the place that the access
//! says. Of stores, each byte gets the value of the highest lane that writes it: a lane is served only together with
//! all lower ones that write one of its bytes, and among the served ones the highest wins. Of atomics, at most one lane
//! a word is served, and none before a lower one.

use super::super::memory::{Access, MemoryIn, memory};
use super::{ResolveIn, Resolved, resolve};
use crate::divergence::OutcomeKind;
use crate::memory::atomic::inverts;
use crate::memory::port::Request;
use crate::pipeline::collect::Instruction;
use crate::pipeline::decoded::Decoded;
use crate::pipeline::execute::Executed;
use crate::pipeline::network;
use crate::pipeline::place::Wrong;
use crate::pipeline::timing::RESOLVE_TO_OUTCOME;
use crate::proof::{cover, implies};
use crate::shape::Shape;
use heddle_hdl::{case, elements, prelude::*, select};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct ProofIn<T> {
    #[width(ResolveIn { executed: Executed::shape(s), stopped: 1, squashed: None, jump: None, count: None, in_use: None })]
    pub resolve: ResolveIn<T>,
    /// Which instruction it is, 3 bits.
    #[width(3)]
    pub sort: T,
    /// A lane, and a byte of the line, any of which is looked at.
    #[width(s.lane_bits())]
    pub lane: T,
    #[width(2 + s.lane_bits())]
    pub place: T,
    /// A line that comes back.
    #[width(32 * s.lanes)]
    pub line: T,
}

/// An instruction, and what becomes of it.
struct Seen<'a> {
    m: Builder,
    s: &'a Shape,
    i: &'a ProofIn<Signal>,
    /// 1 bit: its outcome shows now.
    valid: Signal,
    was: Executed<Signal>,
    o: Resolved<Signal>,
    access: Access<Signal>,
    request: Request<Signal>,
    /// 1 bit: it has an outcome, and its threads go on.
    goes_on: Signal,
    /// Of the lane that is looked at: where its access goes; 1 bit: it is served.
    address: Signal,
    is_served: Signal,
}

/// Resolve and memory with every instruction: at most one of the kinds that exclude each other, and at least one
/// thread.
pub fn resolve_proof(s: &Shape) -> TypedModule<ProofIn<Width>, Resolved<Signal>> {
    module("resolve_proof", ProofIn::shape(s), |m, i| {
        let executed = legal(m, s, &i);
        let o = m.instance(
            "resolve",
            &resolve(s),
            ResolveIn { executed, stopped: m.lit(0u32, 1), squashed: None, jump: None, count: None, in_use: None },
        );
        let access = o.access.expect("under split");
        let request = m.instance("memory", &memory(s), MemoryIn { access, decided: None }).request;

        // The instruction whose outcome shows now.
        let name = |name: &str, left: u32| format!("{name}{}", "_then".repeat(left as usize));
        let stages = || (0..RESOLVE_TO_OUTCOME).rev();
        let instruction = executed.instruction;
        let valid = stages().fold(instruction.valid, |valid, left| m.pipe_reset(&name("was_valid", left), valid));
        let was = stages().fold(executed, |was, left| m.pipe(&name("was", left), was));
        wire!(goes_on = o.outcome.valid & !was.instruction.decoded.ecall);
        let address = select(&elements(was.result, 32), i.lane);
        wire!(is_served = access.valid & access.served.select(i.lane, 1));
        let seen = Seen { m, s, i: &i, valid, was, o, access, request, goes_on, address, is_served };
        seen.goes_where();
        seen.accesses_where();
        seen.waits_for_lower_lanes();
        let (writers, written) = seen.writes();
        seen.covers(writers, written);
        seen.o
    })
}

/// A legal instruction.
fn legal(m: Builder, s: &Shape, i: &ProofIn<Signal>) -> Executed<Signal> {
    let given = i.resolve.executed.instruction;
    let sort = i.sort.decode(8);
    let [branch, jal, jalr, load, store, ecall, multiply, last] = [0, 1, 2, 3, 4, 5, 6, 7].map(|k| sort.bit(k));
    let atomic = last & m.lit(s.atomics, 1);
    let accesses = load | store | atomic;
    let control = branch | jal | jalr | accesses | ecall | given.decoded.control;
    let size = given.decoded.funct3.slice(0, 2);
    let illegal = given.decoded.illegal | ((load | store) & size.eq(3)) | (atomic & size.ne(2));
    let answers = load | (atomic & given.decoded.answers);
    let decoded =
        Decoded { branch, jal, jalr, load, store, atomic, answers, ecall, multiply, control, illegal, ..given.decoded };
    let instruction = Instruction { valid: given.valid & given.mask.any(), decoded, ..given };
    let results = elements(i.resolve.executed.result, 32);
    let by_lane = |wrong: &dyn Fn(Signal) -> Signal| {
        cat(&results.iter().map(|&address| wrong(address) & accesses).collect::<Vec<_>>())
    };
    let wrong = Wrong {
        misaligned: by_lane(&|a| (size.eq(1) & a.bit(0)) | (size.eq(2) & a.slice(0, 2).any())),
        outside: by_lane(&|a| a.from_bit(s.address_bits()).any()),
        in_program: i.resolve.executed.wrong.in_program & accesses.repeat(s.lanes),
    };
    let leader = instruction.mask.lowest_one();
    let leader_result = select_one_hot(&results, leader);
    Executed { instruction, leader, leader_result, wrong, ..i.resolve.executed }
}

impl Seen<'_> {
    fn decoded(&self) -> Decoded<Signal> {
        self.was.instruction.decoded
    }

    /// 1 bit: it writes memory.
    fn stores(&self) -> Signal {
        self.decoded().store | self.decoded().atomic
    }

    /// The bank of an address.
    fn bank_of(&self, address: Signal) -> Signal {
        let bank_bits = self.s.lanes.ilog2();
        if bank_bits == 0 { self.m.lit(0u32, 1) } else { address.slice(2, bank_bits) }
    }

    /// 1 bit: an access to it is aligned.
    fn aligned(&self, address: Signal) -> Signal {
        let one = self.m.lit(1u32, 1);
        let size = self.decoded().funct3.slice(0, 2);
        case(size, &[(0u32, one), (1, !address.bit(0)), (2, !address.slice(0, 2).any())], one)
    }

    /// The bytes of its word that an access to it covers.
    fn covered(&self, address: Signal) -> Signal {
        let m = self.m;
        let two = address.bit(1).mux(m.lit(0b1100u32, 4), m.lit(0b0011u32, 4));
        let size = self.decoded().funct3.slice(0, 2);
        case(size, &[(0u32, address.slice(0, 2).decode(4)), (1, two)], m.lit(0b1111u32, 4))
    }

    /// Which threads go where.
    fn goes_where(&self) {
        let &Seen { m, valid, was, o, access, goes_on, .. } = self;
        let (d, mask) = (self.decoded(), was.instruction.mask);
        let (taken, rest) = (o.outcome.taken, o.outcome.rest);
        wire!(memory_or_jalr = d.accesses() | d.jalr);
        m.assert("outcome_or_fault", implies(valid & d.control, o.outcome.valid ^ o.fault.valid));
        let happens = o.outcome.valid | access.valid | o.result.valid | o.exit.valid | o.committed.any();
        m.assert("nothing_happens_at_a_fault", !(o.fault.valid & happens));
        m.assert("nothing_comes_from_nothing", valid | !(happens | o.fault.valid));
        m.assert("access_has_an_outcome", implies(access.valid, o.outcome.valid & d.accesses()));

        m.assert("sides_are_disjoint", implies(goes_on, !(taken.mask & rest.mask).any()));
        m.assert("sides_partition_the_mask", implies(goes_on, (taken.mask | rest.mask).eq(mask)));
        let ends = o.outcome.kind.eq(OutcomeKind::Exit) & !(taken.mask | rest.mask).any() & o.exit.mask.eq(mask);
        m.assert("all_threads_end", implies(o.outcome.valid & d.ecall, ends));
        m.assert("leader_is_served", implies(goes_on & !d.branch, (taken.mask & mask.lowest_one()).any()));
        m.assert("served_go_on", implies(access.valid, access.served.eq(taken.mask) & o.committed.eq(taken.mask)));
        m.assert("results_of_the_served", implies(o.result.valid & goes_on & !d.branch, o.result.mask.eq(taken.mask)));
        m.assert("left_stay_at_this_pc", implies(goes_on & memory_or_jalr, rest.pc.eq(d.pc)));
        m.assert("served_accesses_go_to_the_next", implies(access.valid, taken.pc.eq(d.pc + 1)));
        m.assert("branches_are_taken_where_true", implies(goes_on & d.branch, taken.mask.eq(mask & was.taken)));
    }

    /// Where the access of the lane that is looked at goes.
    fn accesses_where(&self) {
        let &Seen { m, s, i, o, access, goes_on, address, is_served, .. } = self;
        let (d, taken, bank_bits) = (self.decoded(), o.outcome.taken, s.lanes.ilog2());
        m.assert(
            "served_lie_in_the_line",
            implies(is_served, address.slice(2 + bank_bits, s.line_bits()).eq(access.line)),
        );
        m.assert("served_lie_in_memory", implies(is_served, !address.from_bit(s.address_bits()).any()));
        let words = network::to_lanes(s, m, i.line, network::kept(s, access.route), None);
        let word = if bank_bits == 0 { i.line } else { i.line.select(self.bank_of(address), 32) };
        m.assert("served_read_their_word", implies(is_served, words.select(i.lane, 32).eq(word)));
        let offset = select(&elements(access.offset, 2), i.lane);
        m.assert("served_have_their_offset", implies(is_served, offset.eq(address.slice(0, 2))));
        m.assert("served_are_aligned", implies(is_served, self.aligned(address)));
        let jumps = d.jalr & goes_on & taken.mask.select(i.lane, 1);
        let target = address.slice(2, s.pc_bits());
        m.assert(
            "served_jump_to_their_target",
            implies(jumps, target.eq(taken.pc) & !address.from_bit(s.pc_bits() + 2).any()),
        );
    }

    /// It is served only together with all lower lanes that write one of its bytes, and of an atomic with none.
    fn waits_for_lower_lanes(&self) {
        let &Seen { m, i, was, access, address, is_served, .. } = self;
        let (d, mask, writes) = (self.decoded(), was.instruction.mask, self.stores());
        let addresses = elements(was.result, 32);
        let (word, bytes) = (address.from_bit(2), self.covered(address));
        // A lane that is not aligned stops the core when it leads.
        let overlap = |a: Signal| self.aligned(a) & a.from_bit(2).eq(word) & (self.covered(a) & bytes).any();
        let earlier = addresses.iter().enumerate().map(|(k, &a)| overlap(a) & i.lane.gt(k as u32) & mask.bit(k as u32));
        wire!(lower = cat(&earlier.collect::<Vec<_>>()));
        m.assert("lower_lanes_write_no_later", implies(is_served & writes, !(lower & !access.served).any()));
        m.assert("an_atomic_a_word", implies(is_served & d.atomic, !(lower & access.served).any()));
    }

    /// Which lanes write the byte that is looked at, and with what; 1 bit: some do.
    fn writes(&self) -> (Signal, Signal) {
        let &Seen { m, s, i, was, access, request, .. } = self;
        let (d, writes) = (self.decoded(), self.stores());
        let size = d.funct3.slice(0, 2);
        let bank = i.place.slice(2, s.lane_bits());
        let in_word = i.place.slice(0, 2);
        let mut writers = Vec::new();
        let mut value = m.lit(0u32, 8);
        for (k, (&a, data)) in elements(was.result, 32).iter().zip(elements(was.data, 32)).enumerate() {
            let here = access.served.bit(k as u32) & self.bank_of(a).eq(bank) & self.covered(a).select(in_word, 1);
            let unit = case(size, &[(0u32, m.lit(0u32, 2)), (1, cat(&[in_word.bit(0), m.lit(0u32, 1)]))], in_word);
            value = here.mux(data.select(unit, 8), value);
            writers.push(here);
        }
        wire!(written = cat(&writers).any() & access.valid & writes);
        wire!(byte_of_lanes = value);
        let enabled = request.enables.select(cat(&[in_word, bank]), 1);
        m.assert("bytes_are_enabled_for_writers", implies(access.valid & writes, enabled.eq(written)));
        let stored = request.data.select(cat(&[in_word, bank]), 8);
        let inverted = d.atomic & inverts(access.function);
        m.assert("highest_lane_wins", implies(written, stored.eq(byte_of_lanes ^ inverted.repeat(8))));
        let answers = d.load | (d.atomic & d.answers);
        let operation = request.operation.eq(cat(&[!answers, d.atomic]));
        let line = implies(request.valid, request.line.eq(access.line) & operation);
        m.assert("request_is_the_access", request.valid.eq(access.valid) & line);
        (cat(&writers), written)
    }

    fn covers(&self, writers: Signal, written: Signal) {
        let &Seen { m, s, o, access, goes_on, .. } = self;
        let d = self.decoded();
        let (taken, rest) = (o.outcome.taken, o.outcome.rest);
        cover(m, "stores", access.valid & d.store);
        cover(m, "faults", o.fault.valid);
        if s.lanes > 1 {
            cover(m, "branch_diverges", goes_on & d.branch & taken.mask.any() & rest.mask.any());
            cover(m, "jalr_diverges", goes_on & d.jalr & rest.mask.any());
            cover(m, "load_is_replayed", access.valid & d.load & rest.mask.any());
            cover(m, "store_is_replayed", access.valid & d.store & rest.mask.any());
            cover(m, "two_lanes_store_one_byte", writers.count_ones().gt(1) & written);
            cover(m, "several_lanes_are_served", access.valid & access.served.count_ones().gt(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::testing::holds_at_random;

    #[test]
    fn holds_at_random_inputs() {
        for lanes in [1, 4] {
            holds_at_random(&resolve_proof(&Shape::new(lanes, 1)).check().unwrap().netlist, 20_000);
        }
    }
}
