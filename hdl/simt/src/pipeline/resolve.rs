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

mod fault;
mod outcome;
pub mod proof;
mod serve;
#[cfg(test)]
mod tests;

use super::decoded::Decoded;
use super::execute::Executed;
use super::load_store::Whole;
use super::memory::{Access, Lanes};
use crate::divergence::interface::{Jump, Outcome, SequenceTold, warp_of};
use crate::isa::{FaultCause, HintKind};
use crate::shape::{Replay, Shape};
use fault::Blamed;
use heddle_hdl::{elements, prelude::*};
use outcome::Target;
use serve::Served;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ResolveIn<T> {
    pub executed: Executed<T>,
    /// An earlier instruction was at fault: this one has no effect.
    pub stopped: T,
    /// Nor has it if its path was suspended, where [two](Shape::unresolved) control instructions of a warp may be
    /// unresolved.
    pub squashed: Option<T>,
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
    /// All lanes have the same, `word`: the return address of a jump, or what `count` counts.
    pub common: T,
    #[width(s.common_bits())]
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
    /// A [`FaultCause`].
    #[width(FaultCause::WIDTH)]
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

/// What the parts of the stage look at: the instruction, and what is told beside it.
struct Stage<'a> {
    m: Builder,
    s: &'a Shape,
    i: &'a ResolveIn<Signal>,
    d: Decoded<Signal>,
    /// The threads that execute it.
    mask: Signal,
    /// 1 bit: it is an access to memory.
    memory: Signal,
    /// Under [`Replay::Split`].
    split: bool,
}

pub fn resolve(s: &Shape) -> TypedModule<ResolveIn<Width>, Resolved<Signal>> {
    let jump = s.divergence.capabilities().mixes_warps.then(|| Jump::shape(s));
    let count = (s.convergence_barriers > 0).then(|| count_width(s.lanes));
    let in_use = s.syncs().then_some(1);
    let squashed = s.overlaps_control().then_some(1);
    module("resolve", ResolveIn { executed: Executed::shape(s), stopped: 1, squashed, jump, count, in_use }, |m, i| {
        m.doc("Stage 8: outcomes, served lanes, faults.");
        let instruction = i.executed.instruction;
        let d = instruction.decoded;
        wire!(memory = d.accesses());
        let split = s.replay == Replay::Split;
        let stage = Stage { m, s, i: &i, d, mask: instruction.mask, memory, split };
        let target = stage.target();
        let served = stage.serve(&target);
        let blamed = stage.blame(&target);
        let outcome = stage.outcome(&target, &served, blamed.good);
        let result = stage.result(served.served, blamed.good);
        stage.check(&target, &served, &blamed);
        // Whether there is a fault is known late: what goes on with `valid` does not wait for it.
        let here = instruction.valid;
        let outcome = m.stage_if("s9_outcome", here, outcome);
        let (begins, ends) = ("s9_sequence_begins", "s9_sequence_ends");
        Resolved {
            outcome,
            sequence: stage
                .sequence(&target, &served, blamed.good)
                .map(|s| SequenceTold { begins: m.pipe_reset(begins, s.begins), ends: m.pipe_reset(ends, s.ends) }),
            access: stage.access(&served, blamed.good).map(|a| m.stage_if("s9_access", here, a)),
            whole: stage.whole(&served, blamed.good).map(|w| m.stage_if("s9_whole", here, w)),
            fault: stage.fault(&target, &blamed, outcome.taken.mask, result.data),
            result,
            exit: m.stage_if("s9_exit", here, stage.exit(blamed.good)),
            committed: m.pipe_reset("s9_committed", served.served.only_if(blamed.good)),
        }
    })
}

impl Stage<'_> {
    /// The access of the served lanes.
    fn access(&self, served: &Served, good: Signal) -> Option<Access<Signal>> {
        let &Stage { s, i, d, .. } = self;
        let instruction = &i.executed.instruction;
        wire!(accesses = good & self.memory);
        served.chosen.map(|chosen| {
            let lanes = Lanes { valid: accesses, tag: instruction.tag, places: served.places, data: i.executed.data };
            let rows = instruction.homes.unwrap_or(warp_of(s, instruction.slot));
            Access::of(s, d.asked(), (lanes, rows), served.first, chosen)
        })
    }

    /// The access of all lanes, under [`Replay::Serialise`].
    fn whole(&self, served: &Served, good: Signal) -> Option<Whole<Signal>> {
        let &Stage { s, i, d, mask, .. } = self;
        let instruction = &i.executed.instruction;
        (!self.split).then(|| Whole {
            valid: good & self.memory,
            slot: instruction.slot,
            homes: instruction.homes.filter(|_| s.reservations),
            rd: d.rd,
            asked: d.asked(),
            mask,
            places: served.places,
            data: i.executed.data,
        })
    }

    /// The result, registered. Without enables, unlike the other registers: an enable would wait for the check for
    /// faults, and the results of an access at fault are needed for its address.
    fn result(&self, served: Signal, good: Signal) -> Computed<Signal> {
        let &Stage { m, s, i, d, .. } = self;
        let link = cat(&[m.lit(0u32, 2), d.pc + 1]).zext(s.common_bits());
        wire!(links = d.jal | d.jalr);
        let counts = d.converges_by(HintKind::Count);
        let (common, word) = match i.count {
            Some(count) => (links | counts, links.mux(link, count.zext(s.common_bits()))),
            None => (links, link),
        };
        wire!(pipeline_write = d.computes());
        Computed {
            valid: m.pipe_reset("s9_result_valid", good & pipeline_write),
            slot: m.pipe("s9_result_slot", i.executed.instruction.slot),
            rd: m.pipe("s9_result_rd", d.rd),
            mask: m.pipe("s9_result_mask", served),
            multiply: m.pipe("s9_result_multiply", d.multiply),
            common: m.pipe("s9_result_common", common),
            word: m.pipe("s9_result_word", word),
            data: m.pipe("s9_result_data", i.executed.result),
        }
    }

    /// The threads that end.
    fn exit(&self, good: Signal) -> Exit<Signal> {
        let &Stage { s, i, d, mask, .. } = self;
        let instruction = &i.executed.instruction;
        Exit {
            valid: good & d.ecall,
            slot: warp_of(s, instruction.slot),
            mask,
            homes: instruction.homes,
            codes: i.executed.data,
        }
    }

    /// What holds, what the commit check looks at, and what tests should meet.
    fn check(&self, target: &Target, served: &Served, blamed: &Blamed) {
        let &Stage { m, s, i, d, mask, .. } = self;
        let Executed { instruction, leader, leader_result, result, taken, .. } = i.executed;
        let &Target { taken_branch, .. } = target;
        let &Served { sync, served, .. } = served;
        let good = blamed.good;
        m.assert("mask_not_empty", !instruction.valid | mask.any());
        let of_leader = select_one_hot(&elements(result, 32), leader);
        m.assert("the_leaders_result_is_its_own", !instruction.valid | leader_result.eq(of_leader));
        let told = d.jalr & i.jump.map_or(m.lit(0u32, 1), |jump| jump.valid);
        let queues = sync.map_or(m.lit(0u32, 1), |sync| sync.queues);
        m.assert("leader_served", !good | told | queues | (served & leader).any());
        m.probe("commit_lanes", served.only_if(good));
        m.probe("commit_slot", warp_of(s, instruction.slot));
        if let Some(homes) = instruction.homes {
            m.probe("commit_homes", homes);
        }
        m.probe("commit_pc", d.pc);
        // Of a branch those that do not take it, of others those that stay.
        m.probe("commit_rest", (mask & !d.branch.mux(taken, served)).only_if(good));
        m.cover("behind_a_fault", instruction.valid & i.stopped);
        m.cover("jalr_diverges", good & d.jalr & (mask & !served).any());
        m.cover("branch_diverges", good & d.branch & taken_branch.any() & (mask & !taken).any());
        m.cover("branch_taken_by_all", good & d.branch & !(mask & !taken).any());
        m.cover("branch_taken_by_none", good & d.branch & !taken_branch.any());
        if let Some(sync) = sync {
            let lacks = sync.lacks;
            m.cover("fault_named_is_absent", blamed.fault & blamed.blame.cause.eq(FaultCause::NamedIsAbsent));
            m.cover("sync_of_a_part", good & lacks & !sync.queues & (mask & !served).any());
            m.cover("sync_of_all", good & sync.valid & served.eq(mask));
            m.cover("sync_of_all_beside_others", good & sync.valid & !lacks & (mask & !served).any());
            m.cover("sync_queues", good & sync.queues);
        }
        for (name, cause) in FAULTS {
            m.cover(name, blamed.fault & blamed.blame.cause.eq(*cause));
        }
    }
}

/// The causes of faults, as covers name them.
const FAULTS: &[(&str, FaultCause)] = &[
    ("fault_illegal_instruction", FaultCause::IllegalInstruction),
    ("fault_breakpoint", FaultCause::Breakpoint),
    ("fault_unknown_ecall", FaultCause::UnknownEcall),
    ("fault_fetch_misaligned", FaultCause::FetchMisaligned),
    ("fault_fetch_out_of_range", FaultCause::FetchOutOfRange),
    ("fault_load_misaligned", FaultCause::LoadMisaligned),
    ("fault_store_misaligned", FaultCause::StoreMisaligned),
    ("fault_load_out_of_range", FaultCause::LoadOutOfRange),
    ("fault_store_out_of_range", FaultCause::StoreOutOfRange),
    ("fault_store_to_program", FaultCause::StoreToProgram),
];
