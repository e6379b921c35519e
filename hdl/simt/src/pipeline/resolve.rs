//! Stage 8, resolve: what the instruction did to its path.
//!
//! * Branch: which threads took it.
//! * `jalr`: the first thread leads; threads with the leader's target are served, the others stay at this pc.
//! * Memory access: the first thread leads; the lanes whose words lie in the leader's line are served as far as the banks
//!   allow without a crossbar (`aligned`: a lane's own word of the line, or the leader's word), the others stay at this pc.
//! * Faults: the core stops, and nothing of the instruction happens.
//!
//! Stores of several lanes to one word: the highest-numbered lane's value stays. A lane stores into its own bank only if
//! all lanes below it are served too (else one of them could write the same word later), and beside the leader's word only
//! from the leader's very address (other bytes of that word need other byte enables).

use super::execute::Executed;
use crate::divergence::{Outcome, Side, kind};
use crate::isa::{Decoded, cause};
use crate::scoreboard::Pending;
use crate::shape::Shape;
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ResolveIn<T> {
    pub executed: Executed<T>,
    /// First byte address that may be stored to, a multiple of 256; 32 bits.
    pub program_end: T,
}

/// What goes on to stage 9, registered unless stated.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Resolved<T> {
    pub outcome: Outcome<T>,
    pub access: Access<T>,
    pub result: Computed<T>,
    pub exit: Exit<T>,
    pub fault: Fault<T>,
    /// Threads whose instruction took effect; empty where there was none.
    pub committed: T,
    /// Not registered: a result whose write is two stages away, for the scoreboard.
    pub early: Pending<T>,
}

/// A memory access of the served lanes.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Access<T> {
    pub valid: T,
    pub store: T,
    /// Entry of the load queue, of a load.
    pub tag: T,
    /// funct3: size and sign.
    pub size: T,
    /// Number of the line of `lanes` words.
    pub line: T,
    /// Served lanes.
    pub served: T,
    /// One bit a lane: it accesses its own word of the line, else the leader's.
    pub own: T,
    /// Bank of the leader's word, `lane_bits`.
    pub bank: T,
    /// Two bits a lane: byte in the word.
    pub offset: T,
    /// 32 bits a lane: data to store.
    pub data: T,
}

impl Access<Width> {
    pub fn shape(s: &Shape) -> Access<Width> {
        Access {
            valid: 1,
            store: 1,
            tag: index_width(s.loads),
            size: 3,
            line: s.line_bits(),
            served: s.lanes,
            own: s.lanes,
            bank: s.lane_bits(),
            offset: 2 * s.lanes,
            data: 32 * s.lanes,
        }
    }
}

/// A result that the pipeline itself writes back in stage 10.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Computed<T> {
    pub valid: T,
    pub slot: T,
    pub rd: T,
    pub mask: T,
    /// The multiplier has the result, else `data`.
    pub multiply: T,
    pub data: T,
}

impl Computed<Width> {
    pub fn shape(s: &Shape) -> Computed<Width> {
        Computed { valid: 1, slot: s.warp_bits(), rd: 5, mask: s.lanes, multiply: 1, data: 32 * s.lanes }
    }
}

/// Threads that end, with their exit codes.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Exit<T> {
    pub valid: T,
    pub slot: T,
    pub mask: T,
    /// 32 bits a lane.
    pub codes: T,
}

/// Why the core stops.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Fault<T> {
    pub valid: T,
    /// One of [`cause`].
    pub cause: T,
    pub slot: T,
    /// Instruction number.
    pub pc: T,
    pub mask: T,
    /// Of jumps, the target; of memory accesses, the address of the first lane in `mask`.
    pub address: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneIn<T> {
    address: T,
    leader: T,
    number: T,
    size: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LaneOut<T> {
    /// The leader's very address / word / line.
    same: T,
    same_word: T,
    same_line: T,
    /// The lane's own word of a line.
    own: T,
    misaligned: T,
}

/// How one lane's address relates to the leader's.
fn lane(s: &Shape) -> TypedModule<LaneIn<Width>, LaneOut<Signal>> {
    let inputs = LaneIn { address: 32, leader: 32, number: s.lane_bits(), size: 2 };
    module("resolve_lane", inputs, |m, LaneIn { address, leader, number, size }| {
        m.doc("One lane's address beside the leader's.");
        let bank_bits = s.lanes.ilog2();
        wire!(same_line = address.from_bit(2 + bank_bits).eq(leader.from_bit(2 + bank_bits)));
        let yes = m.lit(1u32, 1);
        let bank = |a: Signal| a.slice(2, bank_bits);
        let (same_bank, own) = match bank_bits {
            0 => (yes, yes),
            _ => (bank(address).eq(bank(leader)), bank(address).eq(number)),
        };
        wire!(same_word = same_line & same_bank);
        let offset = address.slice(0, 2);
        let misaligned = (size.eq(1) & offset.bit(0)) | (size.eq(2) & offset.any());
        LaneOut { same: same_word & offset.eq(leader.slice(0, 2)), same_word, same_line, own, misaligned }
    })
}

pub fn resolve(s: &Shape) -> TypedModule<ResolveIn<Width>, Resolved<Signal>> {
    module("resolve", ResolveIn { executed: Executed::shape(s), program_end: 32 }, |m, i| {
        m.doc("Stage 8: outcomes, served lanes, faults.");
        let Executed { issued, result, taken, target, data, exits } = i.executed;
        let d = issued.decoded;
        let mask = issued.mask;
        wire!(memory = d.load | d.store);

        wire!(leader = mask.lowest_one());
        wire!(leader_address = select_one_hot(&elements(result, 32), leader));
        let numbers: Vec<Signal> = (0..s.lanes).map(|k| m.lit(k, s.lane_bits())).collect();
        let lanes = m.replicate(
            "lane",
            s.lanes,
            &lane(s),
            LaneIn {
                address: each(result),
                leader: all(leader_address),
                number: each(cat(&numbers)),
                size: all(d.funct3.slice(0, 2)),
            },
        );

        wire!(served_load = mask & lanes.same_line & (lanes.own | lanes.same_word));
        // Lanes of a store that could go, and those below which every lane could.
        wire!(storable = lanes.same | (lanes.same_line & lanes.own & !lanes.same_word));
        wire!(below_served = all_below(!mask | storable));
        wire!(served_store = mask & (lanes.same | (storable & below_served)));
        // A jalr target is even: bit 0 of the sum does not count.
        wire!(same_target = same_target(result, leader_address, s.lanes));
        wire!(served = d.store.mux(served_store, d.load.mux(served_load, d.jalr.mux(mask & same_target, mask))));
        wire!(taken_branch = mask & taken);

        let even = cat(&[m.lit(0u32, 1), leader_address.from_bit(1)]);
        wire!(jump_target = d.jalr.mux(even, target));
        wire!(jumps = d.jal | d.jalr | (d.branch & taken_branch.any()));
        let pc_end = s.pc_bits() + 2;
        wire!(target_misaligned = jump_target.slice(0, 2).any());
        wire!(target_outside = jump_target.from_bit(pc_end).any());
        wire!(misaligned = served & lanes.misaligned);
        // Served lanes share a line, so they differ in the bits below only.
        let in_line = 2 + s.lanes.ilog2();
        let places: Vec<Signal> = elements(result, 32).into_iter().map(|a| a.slice(0, in_line)).collect();
        wire!(first_misaligned = select_one_hot(&places, misaligned.lowest_one()));
        wire!(
            blamed_address =
                misaligned.any().mux(cat(&[first_misaligned, leader_address.from_bit(in_line)]), leader_address)
        );
        wire!(outside = leader_address.from_bit(s.address_bits()).any());
        // A line is at most 256 bytes, to which the program's end is aligned.
        wire!(in_program = leader_address.from_bit(8).lt(i.program_end.from_bit(8)));
        wire!(bad_ecall = mask & !exits);

        let code = |c: u32| m.lit(c, cause::BITS);
        let arms = [
            (d.illegal, code(cause::ILLEGAL_INSTRUCTION), mask),
            (d.ebreak, code(cause::BREAKPOINT), mask),
            (d.ecall & bad_ecall.any(), code(cause::UNKNOWN_ECALL), bad_ecall),
            (jumps & target_misaligned, code(cause::FETCH_MISALIGNED), d.branch.mux(taken_branch, served)),
            (jumps & target_outside, code(cause::FETCH_OUT_OF_RANGE), d.branch.mux(taken_branch, served)),
            (d.load & misaligned.any(), code(cause::LOAD_MISALIGNED), misaligned),
            (d.store & misaligned.any(), code(cause::STORE_MISALIGNED), misaligned),
            (d.load & outside, code(cause::LOAD_OUT_OF_RANGE), served),
            (d.store & outside, code(cause::STORE_OUT_OF_RANGE), served),
            (d.store & in_program, code(cause::STORE_TO_PROGRAM), served),
        ];
        wire!(fault = issued.valid & arms.iter().map(|(c, _, _)| *c).reduce(|a, b| a | b).expect("causes"));
        let none = Blame { cause: code(0), mask };
        let blame = pick(arms.map(|(condition, cause, mask)| (condition, Blame { cause, mask })), none);
        wire!(good = issued.valid & !fault);

        let next = d.pc + 1;
        let pc_of = |address: Signal| address.slice(2, s.pc_bits());
        wire!(outcome_kind = outcome_kind(m, &d));
        let outcome = Outcome {
            valid: good & d.control,
            slot: issued.slot,
            kind: outcome_kind,
            taken: Side {
                mask: d.branch.mux(taken_branch, served.only_if(!d.ecall)),
                pc: (d.jal | d.jalr | d.branch).mux(pc_of(jump_target), next),
            },
            rest: Side {
                mask: d.branch.mux(mask & !taken, (mask & !served).only_if(!d.ecall)),
                pc: d.branch.mux(next, d.pc),
            },
            call: d.call,
            ret: d.ret,
        };
        let bank = match s.lanes.ilog2() {
            0 => m.lit(0u32, 1),
            bits => leader_address.slice(2, bits),
        };
        let line = leader_address.slice(2 + s.lanes.ilog2(), s.line_bits());
        let offsets: Vec<Signal> = elements(result, 32).into_iter().map(|a| a.slice(0, 2)).collect();
        let access = Access {
            store: d.store,
            valid: good & memory,
            tag: issued.tag,
            size: d.funct3,
            line,
            served,
            own: lanes.own & !lanes.same_word,
            bank,
            offset: cat(&offsets),
            data,
        };

        // Return address of a jump; the same for all lanes.
        let link = cat(&[m.lit(0u32, 2), next]).zext(32).repeat(s.lanes);
        wire!(pipeline_write = d.writes & !d.load & !d.divide);
        let computed = Computed {
            valid: good & pipeline_write,
            slot: issued.slot,
            rd: d.rd,
            mask: served,
            multiply: d.multiply,
            data: (d.jal | d.jalr).mux(link, result),
        };
        let exit = Exit { valid: good & d.ecall, slot: issued.slot, mask, codes: data };
        let fault = Fault {
            valid: fault,
            cause: blame.cause,
            slot: issued.slot,
            pc: d.pc,
            mask: blame.mask,
            address: memory.mux(blamed_address, jump_target),
        };
        m.assert("mask_not_empty", !issued.valid | mask.any());
        m.assert("leader_served", !issued.valid | (served & leader).any());
        m.probe("commit_lanes", served.only_if(good));
        m.probe("commit_slot", issued.slot);
        m.probe("commit_pc", d.pc);
        covers(m, &d, good, mask, &lanes);
        m.cover("several_lanes_load_one_word", good & d.load & (mask & lanes.same_word & !leader).any());
        m.cover("several_lanes_store_at_one_address", good & d.store & (mask & lanes.same & !leader).any());
        m.cover("store_replayed_behind_another", good & d.store & (mask & storable & !served).any());
        m.cover("jalr_diverges", good & d.jalr & (mask & !served).any());
        m.cover("branch_diverges", good & d.branch & taken_branch.any() & (mask & !taken).any());
        m.cover("branch_taken_by_all", good & d.branch & !(mask & !taken).any());
        m.cover("branch_taken_by_none", good & d.branch & !taken_branch.any());
        for (name, number) in FAULTS {
            m.cover(name, fault.valid & blame.cause.eq(*number));
        }
        Resolved {
            outcome: m.stage("s9_outcome", outcome),
            access: m.stage("s9_access", access),
            result: m.stage("s9_result", computed),
            exit: m.stage("s9_exit", exit),
            fault: m.stage("s9_fault", fault),
            committed: m.pipe_reset("s9_committed", served.only_if(good)),
            early: Pending { valid: issued.valid & pipeline_write, slot: issued.slot, rd: d.rd },
        }
    })
}

/// The causes of faults, as covers name them.
const FAULTS: &[(&str, u32)] = &[
    ("fault_illegal_instruction", cause::ILLEGAL_INSTRUCTION),
    ("fault_breakpoint", cause::BREAKPOINT),
    ("fault_unknown_ecall", cause::UNKNOWN_ECALL),
    ("fault_fetch_misaligned", cause::FETCH_MISALIGNED),
    ("fault_fetch_out_of_range", cause::FETCH_OUT_OF_RANGE),
    ("fault_load_misaligned", cause::LOAD_MISALIGNED),
    ("fault_store_misaligned", cause::STORE_MISALIGNED),
    ("fault_load_out_of_range", cause::LOAD_OUT_OF_RANGE),
    ("fault_store_out_of_range", cause::STORE_OUT_OF_RANGE),
    ("fault_store_to_program", cause::STORE_TO_PROGRAM),
];

/// Why lanes of a memory access are left for a replay.
fn covers(m: Builder, d: &Decoded<Signal>, good: Signal, mask: Signal, l: &LaneOut<Signal>) {
    let (load, store) = (good & d.load, good & d.store);
    let some = |lanes: Signal| (mask & lanes).any();
    m.cover("load_replayed_for_another_line", load & some(!l.same_line));
    m.cover("load_replayed_for_another_bank", load & some(l.same_line & !l.own & !l.same_word));
    m.cover("store_replayed_for_another_line", store & some(!l.same_line));
    m.cover("store_replayed_for_another_bank", store & some(l.same_line & !l.own & !l.same_word));
    m.cover("store_replayed_for_other_bytes", store & some(l.same_word & !l.same));
}

/// A cause and its lanes: what the priority choice among faults gives.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Blame<T> {
    cause: T,
    mask: T,
}

fn outcome_kind(m: Builder, d: &Decoded<Signal>) -> Signal {
    let code = |k: u32| m.lit(k, kind::BITS);
    pick(
        [
            (d.branch, code(kind::BRANCH)),
            (d.jal | d.jalr, code(kind::JUMP)),
            (d.load | d.store, code(kind::MEMORY)),
            (d.ecall, code(kind::EXIT)),
            (d.barrier, code(kind::WAIT)),
        ],
        code(kind::ARRIVED),
    )
}

/// Bit k is on when all bits below k are.
fn all_below(bits: Signal) -> Signal {
    // Adding 1 flips the ones at the bottom and the zero above them, and nothing else.
    bits ^ (bits + 1)
}

/// One bit a lane: its `jalr` target is the leader's.
fn same_target(result: Signal, leader: Signal, lanes: u32) -> Signal {
    let same = (0..lanes).map(|k| result.slice(32 * k + 1, 31).eq(leader.from_bit(1)));
    cat(&same.collect::<Vec<_>>())
}

pub mod proof;
#[cfg(test)]
mod tests;
