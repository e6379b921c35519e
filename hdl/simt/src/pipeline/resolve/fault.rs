//! Whether the instruction is at fault, why, and which lanes are to blame.

use super::super::place::Wrong;
use super::outcome::Target;
use super::{Fault, Stage};
use crate::divergence::interface::warp_of;
use crate::isa::{FaultCause, HintKind};
use heddle_hdl::{elements, prelude::*};

/// A cause and its lanes: what the priority choice among faults gives.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Blame<T> {
    pub cause: T,
    pub mask: T,
}

/// Whether there is a fault.
pub struct Blamed {
    /// 1 bit each: there is; the instruction takes effect.
    pub fault: Signal,
    pub good: Signal,
    pub blame: Blame<Signal>,
}

impl Stage<'_> {
    /// The first cause that there is, if any.
    pub fn blame(&self, target: &Target) -> Blamed {
        let &Stage { m, s, i, d, mask, .. } = self;
        let instruction = &i.executed.instruction;
        let Wrong { misaligned, outside, in_program } = i.executed.wrong;
        wire!(misaligned = mask & misaligned);
        wire!(outside = mask & outside);
        wire!(in_program = mask & in_program);
        wire!(bad = misaligned.any().mux(misaligned, outside.any().mux(outside, in_program)));
        wire!(target_misaligned = target.address.slice(0, 2).any());
        wire!(target_outside = target.address.from_bit(s.pc_bits() + 2).any());
        wire!(bad_ecall = mask & !i.executed.taken);
        let absent = i.executed.named.map(|named| {
            wire!(holds_nobody = d.syncs() & !d.converges_by(HintKind::Sync));
            let parts = named.lacks | named.here.ne(mask);
            (holds_nobody & parts, m.code(FaultCause::NamedIsAbsent), named.here)
        });
        let mut arms = vec![
            (d.illegal, m.code(FaultCause::IllegalInstruction), mask),
            (d.ebreak, m.code(FaultCause::Breakpoint), mask),
            (d.ecall & bad_ecall.any(), m.code(FaultCause::UnknownEcall), bad_ecall),
            (target.jumps & target_misaligned, m.code(FaultCause::FetchMisaligned), mask),
            (target.jumps & target_outside, m.code(FaultCause::FetchOutOfRange), mask),
            (d.load & misaligned.any(), m.code(FaultCause::LoadMisaligned), bad),
            (misaligned.any(), m.code(FaultCause::StoreMisaligned), bad),
            (d.load & outside.any(), m.code(FaultCause::LoadOutOfRange), bad),
            (outside.any(), m.code(FaultCause::StoreOutOfRange), bad),
            (in_program.any(), m.code(FaultCause::StoreToProgram), bad),
        ];
        arms.extend(absent);
        let comes = instruction.valid & !i.stopped;
        wire!(counts = i.squashed.map_or(comes, |squashed| comes & !squashed));
        wire!(fault = counts & arms.iter().map(|(c, _, _)| *c).reduce(|a, b| a | b).expect("causes"));
        let none = Blame { cause: m.lit(0u32, FaultCause::WIDTH), mask };
        let blame = pick(arms.into_iter().map(|(condition, cause, mask)| (condition, Blame { cause, mask })), none);
        wire!(good = counts & !fault);
        Blamed { fault, good, blame }
    }

    /// The fault, registered. Of a target, those are to blame who would go there, who are known late: `goers`, in stage
    /// 9. So is the first lane that is to blame for an access, whose address is chosen there from the `results`.
    pub fn fault(&self, target: &Target, blamed: &Blamed, goers: Signal, results: Signal) -> Fault<Signal> {
        let &Stage { m, s, i, d, .. } = self;
        let instruction = &i.executed.instruction;
        let fault = Fault {
            valid: blamed.fault,
            cause: blamed.blame.cause,
            slot: warp_of(s, instruction.slot),
            pc: d.pc,
            mask: blamed.blame.mask,
            homes: instruction.homes,
            address: target.address,
        };
        let blamed = m.stage_if("s9_fault", instruction.valid, fault);
        let of_target = m.pipe("s9_of_target", d.jal | d.jalr | d.branch);
        let to_blame = of_target.mux(goers, blamed.mask);
        let of_access = m.pipe("s9_of_access", self.memory);
        wire!(accessed = select_one_hot(&elements(results, 32), blamed.mask.lowest_one()));
        Fault { mask: to_blame, address: of_access.mux(accessed, blamed.address), ..blamed }
    }
}
