//! Which instruction it is, kind by kind.

use super::super::decoded::{Converges, Decoded};
use super::super::reservations::Reserving;
use super::Fields;
use crate::csr;
use crate::isa::{Atomic, CUSTOM, HintKind, convergence, reservation, warp};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Jumps and branches.
pub struct Jumps {
    pub jal: Signal,
    pub jalr: Signal,
    pub branch: Signal,
    pub any: Signal,
}

impl Jumps {
    pub fn of(f: &Fields) -> Jumps {
        let &Fields { opcode, funct3, .. } = f;
        wire!(jal = opcode.eq(0x6f));
        wire!(jalr = opcode.eq(0x67) & funct3.eq(0));
        wire!(branch = opcode.eq(0x63) & funct3.ne(2) & funct3.ne(3));
        wire!(jumps = jal | jalr | branch);
        Jumps { jal, jalr, branch, any: jumps }
    }
}

/// Accesses to memory. To memory, `lr.w` is a load, and `sc.w` an exchange.
pub struct Accesses {
    pub load: Signal,
    pub store: Signal,
    pub atomic: Signal,
    pub any: Signal,
    /// The address is `rs1`, without an immediate.
    pub without_offset: Signal,
    pub reserving: Option<Reserving<Signal>>,
    /// Memory answers.
    pub answers: Signal,
    /// The function of an atomic operation, else 0.
    pub function: Signal,
}

impl Accesses {
    pub fn of(m: Builder, s: &Shape, f: &Fields) -> Accesses {
        let &Fields { word, opcode, funct3, rd, rs2, .. } = f;
        wire!(plain_load = opcode.eq(0x03) & funct3.ne(3) & funct3.lt(6));
        wire!(store = opcode.eq(0x23) & funct3.lt(3));
        let function = word.slice(27, 5);
        wire!(atomic_known = any_of(Atomic::ALL.iter().map(|&one| function.eq(one))));
        wire!(of_memory = opcode.eq(0x2f) & funct3.eq(2) & atomic_known & m.lit(s.atomics, 1));
        let reserving = Reserving::shape(s).map(|_| {
            let is = |code: u32| opcode.eq(0x2f) & funct3.eq(2) & function.eq(code);
            wire!(reserves = is(reservation::LOAD_RESERVED) & rs2.eq(0));
            wire!(conditional = is(reservation::STORE_CONDITIONAL));
            Reserving { reserves, conditional }
        });
        let (load, atomic, without_offset) = match reserving {
            Some(Reserving { reserves, conditional }) => {
                (plain_load | reserves, of_memory | conditional, of_memory | conditional | reserves)
            }
            None => (plain_load, of_memory, of_memory),
        };
        wire!(accesses = load | store | atomic);
        let (answers, function) = match reserving {
            Some(Reserving { conditional, .. }) => (
                load | conditional | (of_memory & rd.ne(0)),
                conditional.mux(function.literal(Atomic::Swap), function.only_if(of_memory)),
            ),
            None => (load | (of_memory & rd.ne(0)), function.only_if(of_memory)),
        };
        Accesses { load, store, atomic, any: accesses, without_offset, reserving, answers, function }
    }
}

/// What computes a result.
pub struct Computes {
    pub op_imm: Signal,
    pub op: Signal,
    pub muldiv: Signal,
    /// `funct3` is that of a shift.
    pub shift: Signal,
    pub csr: Signal,
    /// One of these but for a shift, which may be none.
    pub any: Signal,
    /// `lui` or `auipc`; `auipc`.
    pub upper: Signal,
    pub auipc: Signal,
}

impl Computes {
    pub fn of(m: Builder, s: &Shape, f: &Fields) -> Computes {
        let &Fields { word, opcode, funct3, funct7, rs1, .. } = f;
        wire!(lui = opcode.eq(0x37));
        wire!(auipc = opcode.eq(0x17));
        wire!(upper = lui | auipc);
        wire!(shift = funct3.eq(1) | funct3.eq(5));
        wire!(plain = funct7.eq(0));
        wire!(alternative = funct7.eq(0x20));
        wire!(shift_ok = plain | (alternative & funct3.eq(5)));
        wire!(op_imm = opcode.eq(0x13) & (!shift | shift_ok));
        let is_op = opcode.eq(0x33);
        wire!(op = is_op & (plain | (alternative & (funct3.eq(0) | funct3.eq(5)))));
        wire!(muldiv = is_op & funct7.eq(1) & m.lit(s.multiply, 1));
        wire!(system = opcode.eq(0x73));
        wire!(csr_known = any_of(csr::map(s.counters).map(|c| word.slice(20, 12).eq(u32::from(c.address)))));
        // Reading only: csrrs, csrrc, csrrsi, csrrci with nothing to set or clear.
        wire!(csr = system & funct3.bit(1) & rs1.eq(0) & csr_known);
        wire!(computes = op_imm | op | muldiv | csr);
        Computes { op_imm, op, muldiv, shift, csr, any: computes, upper, auipc }
    }
}

/// What the threads of a warp do together.
pub struct Between {
    pub votes: Signal,
    pub shuffles: Signal,
    pub syncs: Signal,
    pub any: Signal,
}

impl Between {
    pub fn of(m: Builder, s: &Shape, f: &Fields) -> Between {
        let &Fields { opcode, funct3, funct7, rd, rs2, .. } = f;
        wire!(between_lanes = opcode.eq(warp::OPCODE) & m.lit(s.warp_primitives, 1));
        wire!(votes = between_lanes & funct3.eq(warp::VOTE) & funct7.lt(4) & rs2.eq(0));
        wire!(shuffles = between_lanes & funct3.eq(warp::SHUFFLE) & funct7.lt(4));
        wire!(syncs = between_lanes & funct3.eq(warp::SYNC) & funct7.lt(convergence::BARRIERS) & rd.eq(0));
        wire!(of_warp = votes | shuffles | syncs);
        Between { votes, shuffles, syncs, any: of_warp }
    }
}

/// Instructions on convergence barriers: `rs1` is the barrier, the immediate the other one or the threshold.
pub struct Hints {
    /// `count`; any of them.
    pub counts: Signal,
    pub any: Signal,
    /// On barriers that the core has, with `sync`; one that keeps threads waiting there.
    pub here: Option<Converges<Signal>>,
    pub waits_here: Signal,
}

impl Hints {
    /// `syncs` says that it is a `sync`, whose barrier is in `funct7`.
    pub fn of(m: Builder, s: &Shape, f: &Fields, syncs: Signal) -> Hints {
        let &Fields { word, opcode, funct3, funct7, rd, rs1, .. } = f;
        wire!(custom = opcode.eq(CUSTOM) & !rs1.msb());
        let operand = word.slice(20, 12);
        let is = |kind: HintKind| funct3.eq(kind);
        wire!(counts = custom & is(HintKind::Count) & operand.eq(0));
        wire!(joins = (is(HintKind::Join) | is(HintKind::Cancel)) & operand.eq(0));
        wire!(waits = is(HintKind::Wait) & operand.le(convergence::MOST_THRESHOLD));
        wire!(copies = (is(HintKind::Copy) | is(HintKind::Move)) & operand.lt(convergence::BARRIERS));
        wire!(converges = counts | (custom & (joins | waits | copies) & rd.eq(0)));
        let here = Decoded::shape(s).converges.map(|shape| {
            let barriers = s.convergence_barriers;
            let has = |number: Signal| match barriers {
                convergence::BARRIERS => m.lit(1u32, 1),
                _ => number.lt(barriers),
            };
            let barrier = syncs.mux(funct7.slice(0, shape.barrier), rs1.slice(0, shape.barrier));
            let hints = converges & has(rs1.slice(0, 4)) & (!copies | has(operand.slice(0, 4)));
            Converges { valid: hints | (syncs & has(funct7.slice(0, 4))), barrier }
        });
        wire!(waits_here = here.map_or(m.lit(0u32, 1), |here| here.valid & (waits | syncs)));
        Hints { counts, any: converges, here, waits_here }
    }
}

pub fn any_of(conditions: impl IntoIterator<Item = Signal>) -> Signal {
    conditions.into_iter().reduce(|a, b| a | b).expect("at least one condition")
}
