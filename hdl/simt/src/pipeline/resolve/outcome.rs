//! Where threads go: the target of a jump or a branch, and the outcome towards the divergence unit.

use super::super::decoded::Decoded;
use super::Stage;
use super::serve::{Served, Sync};
use crate::divergence::interface::{Outcome, OutcomeKind, SequenceTold, Side};
use crate::isa::HintKind;
use heddle_hdl::prelude::*;

/// Where those go that jump.
pub struct Target {
    /// 32 bits: where a `jalr` leads all that it serves.
    pub of_all: Signal,
    /// 32 bits: where the instruction leads.
    pub address: Signal,
    /// Threads that take the branch; 1 bit: somebody jumps.
    pub taken_branch: Signal,
    pub jumps: Signal,
}

impl Stage<'_> {
    /// Of a `jalr`, the leader's target, or the one that is told. Bit 0 of its sum does not count.
    pub fn target(&self) -> Target {
        let &Stage { m, i, d, mask, .. } = self;
        let leader_result = i.executed.leader_result;
        let target_of_all = i
            .jump
            .map_or(leader_result, |jump| jump.valid.mux(cat(&[m.lit(0u32, 2), jump.pc]).zext(32), leader_result));
        wire!(taken_branch = mask & i.executed.taken);
        let even = cat(&[m.lit(0u32, 1), target_of_all.from_bit(1)]);
        wire!(jump_target = d.jalr.mux(even, i.executed.target));
        wire!(jumps = d.jal | d.jalr | (d.branch & taken_branch.any()));
        Target { of_all: target_of_all, address: jump_target, taken_branch, jumps }
    }

    /// The outcome.
    pub fn outcome(&self, target: &Target, served: &Served, good: Signal) -> Outcome<Signal> {
        let &Stage { m, s, i, d, mask, .. } = self;
        let instruction = &i.executed.instruction;
        let &Served { sync, served, .. } = served;
        let next = d.pc + 1;
        let pc_of = |address: Signal| address.slice(2, s.pc_bits());
        wire!(outcome_kind = outcome_kind(m, &d, sync, self.split));
        // Where a barrier is in use, those who do not come for it try next.
        let goes = sync.map_or(served, |sync| sync.queues.mux(mask & !sync.here, served));
        let straight_on = sync.map_or(next, |sync| sync.queues.mux(d.pc, next));
        Outcome {
            valid: good & d.control,
            slot: instruction.slot,
            kind: outcome_kind,
            taken: Side {
                mask: d.branch.mux(target.taken_branch, goes.only_if(!d.ecall)),
                pc: (d.jal | d.jalr | d.branch).mux(pc_of(target.address), straight_on),
            },
            rest: Side {
                mask: d.branch.mux(mask & !i.executed.taken, (mask & !goes).only_if(!d.ecall)),
                pc: d.branch.mux(next, d.pc),
            },
            call: d.call,
            ret: d.ret,
            meets: None,
            homes: instruction.homes,
        }
    }

    /// What becomes of an LR/SC sequence, where something is kept of them.
    pub fn sequence(&self, target: &Target, served: &Served, good: Signal) -> Option<SequenceTold<Signal>> {
        let &Stage { s, d, mask, .. } = self;
        d.reserving.filter(|_| s.keeps_sequences()).map(|reserving| {
            let backwards = d.imm.msb() & (d.jal | (d.branch & target.taken_branch.any()));
            let waits = d.barrier | d.converges_by(HintKind::Wait) | d.syncs();
            let all = reserving.conditional & !(mask & !served.served).any();
            let ends = backwards | d.jalr | d.ecall | waits | all;
            SequenceTold { begins: good & reserving.reserves, ends: good & ends }
        })
    }
}

/// With `split`, a memory access is an outcome of its own kind.
fn outcome_kind(m: Builder, d: &Decoded<Signal>, sync: Option<Sync>, split: bool) -> Signal {
    let mut kinds = vec![];
    if let Some(Sync { valid, lacks, queues, .. }) = sync {
        kinds.extend([
            (queues, m.code(OutcomeKind::Queue)),
            (lacks, m.code(OutcomeKind::Converge)),
            (valid, m.code(OutcomeKind::Jump)),
        ]);
    }
    kinds.extend([
        (d.branch, m.code(OutcomeKind::Branch)),
        (d.jal | d.jalr, m.code(OutcomeKind::Jump)),
        (d.accesses() & m.lit(split, 1), m.code(OutcomeKind::Memory)),
        (d.ecall, m.code(OutcomeKind::Exit)),
        (d.barrier, m.code(OutcomeKind::Wait)),
        (d.converges_by(HintKind::Wait), m.code(OutcomeKind::Converge)),
    ]);
    pick(kinds, m.code(OutcomeKind::Arrived))
}
