//! A design as one flat netlist, made to be compiled.
//!
//! [`flatten`](flatten()) follows a design's hierarchy on demand and gives a [`Flat`]: nodes of at most 64 bits (a
//! wider value is a [`Word`] of several), each computation once, constants folded, and what nobody needs never made.
//! What is done with the values is a list of [`Action`]s: at a clock edge, or to show values ([`Purpose`]).
//!
//! State and everything the host sees is in numbered [`cells`].
//!
//! **Lanes.** The copies of a replicated instance can be made as one ([`lanes`]): a node then has as many lanes as
//! there are copies, and stands for the values of one thing in all of them. What is the same in all copies stays a node
//! of one lane; where such a node meets one with lanes, it counts for every lane.

mod builder;
pub mod cells;
mod flatten;
pub mod lanes;
pub mod recorder;
mod views;
mod wide;

pub use flatten::{Purpose, flatten};

/// Runs what recurses as deep as the longest combinational path.
fn on_deep_stack<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    const STACK: usize = 1 << 30;
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        thread.expect("a thread can be started").join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A node's place in [`Flat::nodes`]; operands have smaller numbers than their users.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Id(pub u32);

impl Id {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What a node computes. Unless said otherwise, operands and result have one width, no value has bits above its width,
/// and a node has lanes if one of its operands has: it computes the same in each.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    Const(u64),
    /// One constant a lane.
    Consts(Vec<u64>),
    /// Bits from `low` on of cell `cell`, as of before the edge: of all its lanes, or, in a node of one lane, of lane
    /// `lane`. Either all of a cell of up to 64 bits, or an aligned part of a wider one (see [`aligned`]).
    Cell {
        cell: u32,
        lane: u32,
        low: u32,
    },
    /// args: address. Bits from `low` on of a word of memory `memory`, as of before the edge; lanes and alignment as
    /// for cells.
    Read {
        memory: u32,
        lane: u32,
        low: u32,
    },
    /// What table `table` has at `offset` of the entry in hand (`compiled/tables.rs`); one lane, or 1 bit per lane.
    /// Flattening makes none.
    Kept {
        table: u32,
        offset: u32,
    },
    /// The value of one lane.
    Lane(u32),
    /// One operand a lane; the operands have one lane each.
    Gather,
    /// A value of one lane from one of 1 bit per lane, lane 0 lowest; and back.
    Pack,
    Unpack,
    /// args: vector, index (one lane). The value of the lane with that number, 0 if there is none; one lane.
    Pick,
    /// The values of all lanes ored; one lane.
    OrLanes,
    /// args: selector, value if on, value if off. The selector has lanes, and [`container`] bits of copies of its bit.
    Blend,
    Not,
    And,
    /// The first and not the second.
    AndNot,
    Or,
    Xor,
    Add,
    Sub,
    Mul,
    /// The upper half of the product of two 64-bit values.
    MulHigh,
    MulHighSigned,
    /// args: value, amount (any width). An amount of the width or more gives 0, or copies of the sign.
    Shl,
    Shr,
    Sar,
    /// Comparisons; the result is 1 bit, or, in lanes, copies of it.
    Eq,
    Ne,
    Lt,
    LtSigned,
    /// args: selector (1 bit), value if 1, value if 0.
    Mux,
    /// args: selector, default, then one value a label. Labels are distinct, ascending, and do not cover every value of
    /// the selector; there are at least two.
    Case(Vec<u64>),
    /// Bits from the given one on of a wider value.
    Slice(u32),
    /// The operands side by side, the first lowest.
    Cat,
    /// Wider by zeros, or by copies of the sign.
    ZExt,
    SExt,
    /// 1 bit: whether an odd number of bits is set.
    Parity,
    /// How many bits are set.
    CountOnes,
    /// The bits in the opposite order.
    Reverse,
}

impl Op {
    pub fn is_comparison(&self) -> bool {
        matches!(self, Op::Eq | Op::Ne | Op::Lt | Op::LtSigned)
    }

    /// Whether it is made anew wherever it is used, because that costs no more than keeping it.
    pub fn is_at_hand(&self) -> bool {
        matches!(self, Op::Const(_) | Op::Consts(_) | Op::Cell { .. } | Op::Kept { .. })
    }
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Node {
    pub op: Op,
    /// 1 to 64.
    pub width: u32,
    /// 1 for a plain value, at most [`lanes::MOST`].
    pub lanes: u32,
    pub args: Vec<Id>,
}

/// The bits that a value of this width takes up in each lane.
pub fn container(width: u32) -> u32 {
    if width <= 32 { 32 } else { 64 }
}

/// A value of any width: limbs of 64 bits, the lowest first; the last has the remaining bits.
pub type Word = Vec<Id>;

/// How many limbs a word of this width has.
pub fn limbs(width: u32) -> u32 {
    width.div_ceil(64)
}

/// The width of limb `limb` of a word of width `width`.
pub fn limb_width(width: u32, limb: u32) -> u32 {
    (width - limb * 64).min(64)
}

/// Whether this part of something of 64 bits or more can be loaded and stored by itself: a limb, or an aligned part of
/// 8, 16 or 32 bits.
pub fn aligned(low: u32, width: u32) -> bool {
    low.is_multiple_of(64) || matches!(width, 8 | 16 | 32) && low.is_multiple_of(width)
}

/// One change of state. Where a cell or memory has lanes, `lane` says which one is changed; None for all (and where it
/// has none).
#[derive(Clone, Debug)]
pub enum Effect {
    /// Bits from `low` on of a cell become the value; aligned.
    Store { cell: u32, lane: Option<u32>, low: u32, value: Id },
    /// A memory word takes `data` (parts with their lowest bit), where `mask` is on if there is one, in the lanes where
    /// `enable` is on if there is one.
    Write { memory: u32, lane: Option<u32>, address: Id, enable: Option<Id>, parts: Vec<Part> },
    /// A cell takes a memory word as it is after all writes of this edge, in the lanes where `enable` is on if there is
    /// one. Memory and cell have the same lanes.
    ReadNew { memory: u32, lane: Option<u32>, address: Id, enable: Option<Id>, cell: u32 },
    /// A 64-bit cell counts up by the value, which is 1 bit.
    Count { cell: u32, lane: Option<u32>, value: Id },
    /// If the value is 0, so becomes the cell, and the run ends ([`cells::Cells::failed`]).
    Check { cell: u32, lane: Option<u32>, value: Id },
}

/// Aligned bits of a memory word that are written.
#[derive(Clone, Debug)]
pub struct Part {
    pub low: u32,
    pub data: Id,
    pub mask: Option<Id>,
}

/// Effects that happen together if `guard` (or none) is on. The guard has one lane.
#[derive(Clone, Debug)]
pub struct Action {
    pub guard: Option<Id>,
    pub effects: Vec<Effect>,
}

impl Effect {
    /// The nodes that it uses. For memories: the address; the enable, if there is one; for each part its data and its
    /// mask, if it has one.
    pub fn operands(&self) -> Vec<Id> {
        match self {
            Effect::Store { value, .. } | Effect::Count { value, .. } | Effect::Check { value, .. } => vec![*value],
            Effect::ReadNew { address, enable, .. } => [*address].into_iter().chain(*enable).collect(),
            Effect::Write { address, enable, parts, .. } => {
                let parts = parts.iter().flat_map(|p| [p.data].into_iter().chain(p.mask));
                [*address].into_iter().chain(*enable).chain(parts).collect()
            }
        }
    }
}

impl Action {
    /// The nodes that its effects use.
    pub fn operands(&self) -> Vec<Id> {
        self.effects.iter().flat_map(Effect::operands).collect()
    }
}

/// What a function does with a flat netlist. All values are those from before the actions.
#[derive(Clone, Debug, Default)]
pub struct Flat {
    pub nodes: Vec<Node>,
    /// Lists of actions. Those of one list happen in its order; the lists may be put in any order.
    pub actions: Vec<Vec<Action>>,
    /// Actions after all others.
    pub late: Vec<Action>,
}

impl Flat {
    pub fn node(&self, id: Id) -> &Node {
        &self.nodes[id.index()]
    }

    /// For each node, whether an action needs it, itself or by way of others.
    pub fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        let actions = self.actions.iter().flatten().chain(&self.late);
        actions.flat_map(|a| a.operands().into_iter().chain(a.guard)).for_each(|id| needed[id.index()] = true);
        for k in (0..needed.len()).rev() {
            if needed[k] {
                self.nodes[k].args.iter().for_each(|a| needed[a.index()] = true);
            }
        }
        needed
    }

    pub fn constant(&self, id: Id) -> Option<u64> {
        match self.node(id).op {
            Op::Const(value) => Some(value),
            _ => None,
        }
    }
}
