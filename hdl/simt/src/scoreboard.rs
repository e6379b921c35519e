//! The scoreboard: which registers await a write.
//!
//! One pending bit a (warp, register); where several writes of one register are under way (a replayed load), the load
//! queue counts them and releases the last. It stands beside the divergence unit behind an interface of its own, which
//! carries masks, because mechanisms that run two paths of a warp at once need another one.

use crate::shape::Shape;
use heddle_hdl::*;

/// What the head of a slot's buffer needs: the registers it reads and writes.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Needs<T> {
    pub rs1: T,
    pub rs2: T,
    pub rd: T,
    pub use1: T,
    pub use2: T,
    pub writes: T,
}

impl Needs<Width> {
    pub fn shape() -> Needs<Width> {
        Needs { rs1: 5, rs2: 5, rd: 5, use1: 1, use2: 1, writes: 1 }
    }
}

/// A register of a slot that gets or has got its value.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Pending<T> {
    pub valid: T,
    pub slot: T,
    pub rd: T,
}

impl Pending<Width> {
    pub fn shape(s: &Shape) -> Pending<Width> {
        Pending { valid: 1, slot: s.warp_bits(), rd: 5 }
    }
}

#[derive(Bundle, Clone, PartialEq, Debug)]
pub struct ScoreboardIn<T> {
    /// For each slot, the head of its buffer.
    pub heads: Vec<Needs<T>>,
    /// An instruction that writes a register issues.
    pub issue: Pending<T>,
    /// Threads of `issue`: unused here, for scoreboards that keep paths apart.
    pub issue_mask: T,
    /// A write whose time is fixed: the value is there for whoever issues from the next cycle on.
    pub early: Pending<T>,
    /// The last late write (load, divide) of the register is done.
    pub late: Pending<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct ScoreboardOut<T> {
    /// One bit a slot: no register of its head is pending.
    pub clear: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct RowIn<T> {
    needs: Needs<T>,
    /// One bit a register.
    set: T,
    early: T,
    late: T,
}

/// One slot's pending bits.
fn row() -> TypedModule<RowIn<Width>, ScoreboardOut<Signal>> {
    module("scoreboard_row", RowIn { needs: Needs::shape(), set: 32, early: 32, late: 32 }, |m, i| {
        m.doc("The pending bits of one slot's registers.");
        let pending = m.reg("pending", 32).reset(0u32);
        pending.next((pending.q & !(i.early | i.late)) | i.set);
        let waits = |register: Signal, used: Signal| pending.q.select(register, 1) & used;
        m.assert("set_once_unless_replayed", (i.early & i.late).any().eq(0));
        m.assert("released_was_pending", !((i.early | i.late) & !pending.q).any());
        let n = i.needs;
        let clear = !(waits(n.rs1, n.use1) | waits(n.rs2, n.use2) | waits(n.rd, n.writes));
        ScoreboardOut { clear }
    })
}

pub fn scoreboard(s: &Shape) -> TypedModule<ScoreboardIn<Width>, ScoreboardOut<Signal>> {
    let pending = Pending::shape(s);
    let inputs = ScoreboardIn {
        heads: vec![Needs::shape(); s.warps as usize],
        issue: pending,
        issue_mask: s.lanes,
        early: pending,
        late: pending,
    };
    module("scoreboard", inputs, |m, i| {
        m.doc("Which registers of which slot await a write.");
        // A decoded register number, gated by the slot.
        let on = |name: &str, p: Pending<Signal>| {
            let registers = p.rd.decode(32).named(name);
            let rows: Vec<Signal> =
                (0..s.warps).map(|w| registers.only_if(p.valid & p.slot.eq(p.slot.literal(w)))).collect();
            each(cat(&rows))
        };
        let column = |f: fn(&Needs<Signal>) -> Signal| each(cat(&i.heads.iter().map(f).collect::<Vec<_>>()));
        let needs = Needs {
            rs1: column(|n| n.rs1),
            rs2: column(|n| n.rs2),
            rd: column(|n| n.rd),
            use1: column(|n| n.use1),
            use2: column(|n| n.use2),
            writes: column(|n| n.writes),
        };
        let (set, early, late) = (on("issued", i.issue), on("released", i.early), on("arrived", i.late));
        let rows = m.replicate("row", s.warps, &row(), RowIn { needs, set, early, late });
        ScoreboardOut { clear: rows.clear }
    })
}
