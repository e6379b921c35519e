//! Stage 8, resolve: what the instruction did to its path.
//!
//! * Branch: which threads took it.
//! * `jalr`: the first thread leads; threads with the leader's target are served, the others stay at this pc.
//! * Memory access: under [`Replay::Split`], the lanes that [`mod@super::coalesce`] chooses are served and go on, the
//!   others stay at this pc; under [`Replay::Serialise`], all go on, and [`super::load_store`] serves them in turn.
//! * `sync` at a barrier that the core has: those that the first thread names are served, the others stay at this pc.
//!   If not all of them are here, the divergence unit keeps the served ones until they are; if the barrier is in use,
//!   nobody is served.
//! * Faults: the core stops, and nothing of the instruction or of any behind it happens. A memory access is at fault if
//!   it is for any of its threads.

use super::coalesce::{CoalesceIn, CoalesceOut, coalesce};
use super::decoded::Decoded;
use super::execute::Executed;
use super::load_store::Whole;
use super::memory::{Access, Lanes};
use super::place::Wrong;
use crate::address::SCRATCHPAD;
use crate::divergence::interface::{Jump, Outcome, SequenceTold, Side, kind, warp_of};
use crate::isa::{cause, convergence};
use crate::shape::{Replay, Shape};
use heddle_hdl::{elements, prelude::*};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ResolveIn<T> {
    pub executed: Executed<T>,
    /// An earlier instruction was at fault: this one has no effect.
    pub stopped: T,
    /// Where the block goes, for units that have
    /// [lanes of several warps](crate::divergence::Capabilities::mixes_warps).
    pub jump: Option<Jump<T>>,
    /// What `count` counts, `count_width(lanes)`, in a core with convergence barriers.
    pub count: Option<T>,
    /// The barrier of the `sync` is in use, in a core with warp primitives and convergence barriers.
    pub in_use: Option<T>,
}

/// What goes on to stage 9, registered unless stated, but for the address of a fault.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Resolved<T> {
    pub outcome: Outcome<T>,
    /// Where something is kept of LR/SC sequences.
    pub sequence: Option<SequenceTold<T>>,
    /// An access to memory: of the served lanes under [`Replay::Split`], of all under [`Replay::Serialise`].
    pub access: Option<Access<T>>,
    pub whole: Option<Whole<T>>,
    pub result: Computed<T>,
    pub exit: Exit<T>,
    pub fault: Fault<T>,
    /// Threads whose instruction took effect; empty where there was none.
    pub committed: T,
}

/// A result that the pipeline itself writes back in stage 10.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Computed<T> {
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    #[width(5)]
    pub rd: T,
    #[width(s.lanes)]
    pub mask: T,
    /// The multiplier has the result.
    pub multiply: T,
    /// All lanes have the same, `word`: the return address of a jump, or what `count` counts; 32 bits.
    pub common: T,
    #[width(32)]
    pub word: T,
    /// Else it is here, 32 bits per lane.
    #[width(32 * s.lanes)]
    pub data: T,
}

/// Threads that end, with their exit codes.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Exit<T> {
    pub valid: T,
    #[width(s.warp_bits())]
    pub slot: T,
    #[width(s.lanes)]
    pub mask: T,
    /// The static warp of each lane, where a slot [mixes](Shape::mixes) them.
    #[width(s.homes_bits())]
    pub homes: Option<T>,
    /// 32 bits per lane.
    #[width(32 * s.lanes)]
    pub codes: T,
}

/// Why the core stops.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Fault<T> {
    pub valid: T,
    /// One of [`cause`].
    #[width(cause::BITS)]
    pub cause: T,
    #[width(s.warp_bits())]
    pub slot: T,
    /// Instruction number.
    #[width(s.pc_bits())]
    pub pc: T,
    #[width(s.lanes)]
    pub mask: T,
    /// The static warp of each lane, where a slot [mixes](Shape::mixes) them.
    #[width(s.homes_bits())]
    pub homes: Option<T>,
    /// Of jumps, the target; of memory accesses, the address of the first lane in `mask`.
    #[width(32)]
    pub address: T,
}

pub fn resolve(s: &Shape) -> TypedModule<ResolveIn<Width>, Resolved<Signal>> {
    let jump = s.divergence.capabilities().mixes_warps.then(|| Jump::shape(s));
    let count = (s.convergence_barriers > 0).then(|| count_width(s.lanes));
    let in_use = s.syncs().then_some(1);
    module("resolve", ResolveIn { executed: Executed::shape(s), stopped: 1, jump, count, in_use }, |m, i| {
        m.doc("Stage 8: outcomes, served lanes, faults.");
        let Executed { instruction, leader, leader_result, result, wrong, taken, target, data, named } = i.executed;
        let d = instruction.decoded;
        let mask = instruction.mask;
        wire!(memory = d.accesses());

        let Wrong { misaligned, outside, in_program } = wrong;
        wire!(misaligned = mask & misaligned);
        wire!(outside = mask & outside);
        wire!(in_program = mask & in_program);
        wire!(bad = misaligned.any().mux(misaligned, outside.any().mux(outside, in_program)));

        let split = s.replay == Replay::Split;
        wire!(places = cat(&elements(result, 32).into_iter().map(|r| place_of(s, r)).collect::<Vec<_>>()));
        let first = place_of(s, leader_result);
        let chosen = split.then(|| {
            let inputs = CoalesceIn {
                mask,
                leader,
                store: d.store,
                atomic: d.atomic,
                one_line: d.asked().is_reserving(),
                places,
                first,
            };
            m.instance("coalesce", &coalesce(s), inputs)
        });
        // A jalr target is even: bit 0 of the sum does not count.
        let target_of_all = i
            .jump
            .map_or(leader_result, |jump| jump.valid.mux(cat(&[m.lit(0u32, 2), jump.pc]).zext(32), leader_result));
        // Most of a target is compared as a place, too.
        wire!(
            same_target = match (chosen, i.jump) {
                (Some(chosen), None) => chosen.with_leader & same(result, leader_result, |r| beside_word(s, r)),
                _ => same(result, target_of_all, |r| r.from_bit(1)),
            }
        );
        let serving = chosen.map_or(mask, |c: CoalesceOut<Signal>| c.served);
        let all_but_memory = d.jalr.mux(mask & same_target, mask);
        let sync = i.in_use.zip(named).map(|(in_use, named)| {
            wire!(valid = d.converges_by(convergence::SYNC));
            wire!(lacks = valid & named.lacks);
            Sync { valid, lacks, queues: lacks & in_use, here: named.here }
        });
        let all_but_memory =
            sync.map_or(all_but_memory, |sync| sync.valid.mux(sync.here.only_if(!sync.queues), all_but_memory));
        wire!(served = memory.mux(serving, all_but_memory));
        wire!(taken_branch = mask & taken);

        let even = cat(&[m.lit(0u32, 1), target_of_all.from_bit(1)]);
        wire!(jump_target = d.jalr.mux(even, target));
        wire!(jumps = d.jal | d.jalr | (d.branch & taken_branch.any()));
        let told = d.jalr & i.jump.map_or(m.lit(0u32, 1), |jump| jump.valid);
        let pc_end = s.pc_bits() + 2;
        wire!(target_misaligned = jump_target.slice(0, 2).any());
        wire!(target_outside = jump_target.from_bit(pc_end).any());
        wire!(bad_ecall = mask & !taken);

        let code = |c: u32| m.lit(c, cause::BITS);
        let absent = named.map(|named| {
            wire!(holds_nobody = d.syncs() & !d.converges_by(convergence::SYNC));
            let parts = named.lacks | named.here.ne(mask);
            (holds_nobody & parts, code(cause::NAMED_IS_ABSENT), named.here)
        });
        let mut arms = vec![
            (d.illegal, code(cause::ILLEGAL_INSTRUCTION), mask),
            (d.ebreak, code(cause::BREAKPOINT), mask),
            (d.ecall & bad_ecall.any(), code(cause::UNKNOWN_ECALL), bad_ecall),
            (jumps & target_misaligned, code(cause::FETCH_MISALIGNED), mask),
            (jumps & target_outside, code(cause::FETCH_OUT_OF_RANGE), mask),
            (d.load & misaligned.any(), code(cause::LOAD_MISALIGNED), bad),
            (misaligned.any(), code(cause::STORE_MISALIGNED), bad),
            (d.load & outside.any(), code(cause::LOAD_OUT_OF_RANGE), bad),
            (outside.any(), code(cause::STORE_OUT_OF_RANGE), bad),
            (in_program.any(), code(cause::STORE_TO_PROGRAM), bad),
        ];
        arms.extend(absent);
        wire!(counts = instruction.valid & !i.stopped);
        wire!(fault = counts & arms.iter().map(|(c, _, _)| *c).reduce(|a, b| a | b).expect("causes"));
        let none = Blame { cause: code(0), mask };
        let blame = pick(arms.into_iter().map(|(condition, cause, mask)| (condition, Blame { cause, mask })), none);
        wire!(good = counts & !fault);

        let next = d.pc + 1;
        let pc_of = |address: Signal| address.slice(2, s.pc_bits());
        wire!(outcome_kind = outcome_kind(m, &d, sync, split));
        // Where a barrier is in use, those who do not come for it try next.
        let goes = sync.map_or(served, |sync| sync.queues.mux(mask & !sync.here, served));
        let straight_on = sync.map_or(next, |sync| sync.queues.mux(d.pc, next));
        let outcome = Outcome {
            valid: good & d.control,
            slot: instruction.slot,
            kind: outcome_kind,
            taken: Side {
                mask: d.branch.mux(taken_branch, goes.only_if(!d.ecall)),
                pc: (d.jal | d.jalr | d.branch).mux(pc_of(jump_target), straight_on),
            },
            rest: Side {
                mask: d.branch.mux(mask & !taken, (mask & !goes).only_if(!d.ecall)),
                pc: d.branch.mux(next, d.pc),
            },
            call: d.call,
            ret: d.ret,
            meets: None,
            homes: instruction.homes,
        };
        wire!(accesses = good & memory);
        let sequence = d.reserving.filter(|_| s.keeps_sequences()).map(|reserving| {
            let backwards = d.imm.msb() & (d.jal | (d.branch & taken_branch.any()));
            let waits = d.barrier | d.converges_by(convergence::WAIT) | d.syncs();
            let all = reserving.conditional & !(mask & !served).any();
            let ends = backwards | d.jalr | d.ecall | waits | all;
            SequenceTold { begins: good & reserving.reserves, ends: good & ends }
        });
        let access = chosen.map(|chosen| {
            let lanes = Lanes { valid: accesses, tag: instruction.tag, places, data };
            let rows = instruction.homes.unwrap_or(warp_of(s, instruction.slot));
            Access::of(s, d.asked(), (lanes, rows), first, chosen)
        });
        let whole = (!split).then(|| Whole {
            valid: accesses,
            slot: instruction.slot,
            homes: instruction.homes.filter(|_| s.reservations),
            rd: d.rd,
            asked: d.asked(),
            mask,
            places,
            data,
        });

        let link = cat(&[m.lit(0u32, 2), next]).zext(32);
        wire!(links = d.jal | d.jalr);
        let counts = d.converges_by(convergence::COUNT);
        let (common, word) = match i.count {
            Some(count) => (links | counts, links.mux(link, count.zext(32))),
            None => (links, link),
        };
        wire!(pipeline_write = d.computes());
        // Without enables, unlike the other registers: an enable would wait for the check for faults, and the results
        // of an access at fault are needed for its address.
        let computed = Computed {
            valid: m.pipe_reset("s9_result_valid", good & pipeline_write),
            slot: m.pipe("s9_result_slot", instruction.slot),
            rd: m.pipe("s9_result_rd", d.rd),
            mask: m.pipe("s9_result_mask", served),
            multiply: m.pipe("s9_result_multiply", d.multiply),
            common: m.pipe("s9_result_common", common),
            word: m.pipe("s9_result_word", word),
            data: m.pipe("s9_result_data", result),
        };
        let exit = Exit {
            valid: good & d.ecall,
            slot: warp_of(s, instruction.slot),
            mask,
            homes: instruction.homes,
            codes: data,
        };
        let fault = Fault {
            valid: fault,
            cause: blame.cause,
            slot: warp_of(s, instruction.slot),
            pc: d.pc,
            mask: blame.mask,
            homes: instruction.homes,
            address: jump_target,
        };
        m.assert("mask_not_empty", !instruction.valid | mask.any());
        let of_leader = select_one_hot(&elements(result, 32), leader);
        m.assert("the_leaders_result_is_its_own", !instruction.valid | leader_result.eq(of_leader));
        let queues = sync.map_or(m.lit(0u32, 1), |sync| sync.queues);
        m.assert("leader_served", !good | told | queues | (served & leader).any());
        m.probe("commit_lanes", served.only_if(good));
        m.probe("commit_slot", warp_of(s, instruction.slot));
        if let Some(homes) = instruction.homes {
            m.probe("commit_homes", homes);
        }
        m.probe("commit_pc", d.pc);
        m.cover("behind_a_fault", instruction.valid & i.stopped);
        m.cover("jalr_diverges", good & d.jalr & (mask & !served).any());
        m.cover("branch_diverges", good & d.branch & taken_branch.any() & (mask & !taken).any());
        m.cover("branch_taken_by_all", good & d.branch & !(mask & !taken).any());
        m.cover("branch_taken_by_none", good & d.branch & !taken_branch.any());
        if let Some(sync) = sync {
            let lacks = sync.lacks;
            m.cover("fault_named_is_absent", fault.valid & blame.cause.eq(cause::NAMED_IS_ABSENT));
            m.cover("sync_of_a_part", good & lacks & !sync.queues & (mask & !served).any());
            m.cover("sync_of_all", good & sync.valid & served.eq(mask));
            m.cover("sync_of_all_beside_others", good & sync.valid & !lacks & (mask & !served).any());
            m.cover("sync_queues", good & sync.queues);
        }
        for (name, number) in FAULTS {
            m.cover(name, fault.valid & blame.cause.eq(*number));
        }
        // Whether there is a fault is known late: what goes on with `valid` does not wait for it.
        let here = instruction.valid;
        let blamed = m.stage_if("s9_fault", here, fault);
        // Of a target, those are to blame who would go there, who are known late. So is the first lane that is to blame
        // for an access, whose address is chosen in stage 9.
        let outcome = m.stage_if("s9_outcome", here, outcome);
        let of_target = m.pipe("s9_of_target", d.jal | d.jalr | d.branch);
        let to_blame = of_target.mux(outcome.taken.mask, blamed.mask);
        let of_access = m.pipe("s9_of_access", memory);
        wire!(accessed = select_one_hot(&elements(computed.data, 32), blamed.mask.lowest_one()));
        let (begins, ends) = ("s9_sequence_begins", "s9_sequence_ends");
        Resolved {
            outcome,
            sequence: sequence
                .map(|s| SequenceTold { begins: m.pipe_reset(begins, s.begins), ends: m.pipe_reset(ends, s.ends) }),
            access: access.map(|a| m.stage_if("s9_access", here, a)),
            whole: whole.map(|w| m.stage_if("s9_whole", here, w)),
            result: computed,
            exit: m.stage_if("s9_exit", here, exit),
            fault: Fault { mask: to_blame, address: of_access.mux(accessed, blamed.address), ..blamed },
            committed: m.pipe_reset("s9_committed", served.only_if(good)),
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

/// A cause and its lanes: what the priority choice among faults gives.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Blame<T> {
    cause: T,
    mask: T,
}

/// A `sync` at a barrier that the core has, 1 bit; some of whom it names are not here; then that barrier is in use; and
/// who comes for it.
#[derive(Clone, Copy)]
struct Sync {
    valid: Signal,
    lacks: Signal,
    queues: Signal,
    here: Signal,
}

/// With `split`, a memory access is an outcome of its own kind.
fn outcome_kind(m: Builder, d: &Decoded<Signal>, sync: Option<Sync>, split: bool) -> Signal {
    let code = |k: u32| m.lit(k, kind::BITS);
    let mut kinds = vec![];
    if let Some(Sync { valid, lacks, queues, .. }) = sync {
        kinds.extend([(queues, code(kind::QUEUE)), (lacks, code(kind::CONVERGE)), (valid, code(kind::JUMP))]);
    }
    kinds.extend([
        (d.branch, code(kind::BRANCH)),
        (d.jal | d.jalr, code(kind::JUMP)),
        (d.accesses() & m.lit(split, 1), code(kind::MEMORY)),
        (d.ecall, code(kind::EXIT)),
        (d.barrier, code(kind::WAIT)),
        (d.converges_by(convergence::WAIT), code(kind::CONVERGE)),
    ]);
    pick(kinds, code(kind::ARRIVED))
}

/// The place of a result that is one.
fn place_of(s: &Shape, result: Signal) -> Signal {
    match s.scratchpad {
        0 => result.slice(0, s.place_bits()),
        _ => cat(&[result.slice(0, s.place_bits() - 1), result.bit(SCRATCHPAD.ilog2())]),
    }
}

/// The bits of a target that its place's word does not have, but for bit 0.
fn beside_word(s: &Shape, target: Signal) -> Signal {
    let low = s.place_bits() - u32::from(s.scratchpad > 0);
    cat(&[target.bit(1), target.from_bit(low)])
}

/// One bit per lane: `part` of its result is that of the leader's.
fn same(result: Signal, leader: Signal, part: impl Fn(Signal) -> Signal) -> Signal {
    let lanes = elements(result, 32).into_iter().map(|lane| part(lane).eq(part(leader)));
    cat(&lanes.collect::<Vec<_>>())
}

pub mod proof;
#[cfg(test)]
mod tests;
