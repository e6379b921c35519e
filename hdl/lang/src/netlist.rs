//! The netlist: a description as plain data.
//!
//! This is what the language makes and what every back end reads. A [`Module`] is a list of nodes (a node's operands
//! have smaller or larger numbers; feedback goes only through registers, memories and deferred wires), registers,
//! memories, instances of other modules, and properties. Nothing in it refers to the builder.
//!
//! **Clock and reset** are implicit: one clock, one synchronous active-high reset, which every module has.
//!
//! **Foreign Verilog** is a module that says what it stands for ([`Module::foreign`]). What is in it is a stub. Only
//! Verilog for synthesis looks at that; to everything else it is a module as any other.
//!
//! **Start.** A register without a reset value and a memory without contents start from a seeded random value; a
//! register with a reset value starts from a random value too, until the first clock edge with reset.

use crate::bits::Bits;
use std::panic::Location;
use std::sync::Arc;

/// A node's place in [`Module::nodes`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u32);

impl NodeId {
    /// The same as a list's index.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where in the Rust source something was declared.
pub type Loc = &'static Location<'static>;

/// What a node computes from its operands ([`Node::args`]). Widths are in bits; results never exceed the node's width.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// A constant.
    Const(Bits),
    /// Input port `.0` of the module.
    Input(u32),
    /// Output port `port` of instance `inst`. For a replicated instance: all copies side by side, copy 0 lowest.
    InstOut {
        /// Its place in [`Module::instances`].
        inst: u32,
        /// Its place in the instance's [`Module::outputs`].
        port: u32,
    },
    /// The present value of register `.0`.
    Reg(u32),
    /// The data of read port `port` of memory `mem`.
    MemRead {
        /// Its place in [`Module::memories`].
        mem: u32,
        /// Its place in [`Memory::reads`].
        port: u32,
    },
    /// The operand under another name, or a deferred wire that has been driven.
    Buf,
    /// Bitwise; operands and result have one width.
    Not,
    /// Bitwise, like `Not`.
    And,
    /// Bitwise, like `Not`.
    Or,
    /// Bitwise, like `Not`.
    Xor,
    /// Modulo 2^width; operands and result have one width.
    Add,
    /// Modulo 2^width, like `Add`.
    Sub,
    /// Modulo 2^width, like `Add`.
    Mul,
    /// The full product of unsigned operands: as wide as both together.
    MulFull,
    /// As `MulFull`, of operands and a result in two's complement.
    MulFullSigned,
    /// To the left, zeros from below. Of every shift: args are value and amount (any width); an amount of the width or
    /// more gives 0, or copies of the sign.
    Shl,
    /// To the right, zeros from above.
    Shr,
    /// To the right, copies of the sign from above.
    Sar,
    /// 1 if they are equal. Of every comparison: operands have one width, and the result is 1 bit.
    Eq,
    /// 1 if they differ.
    Ne,
    /// 1 if the first is less, both unsigned.
    Lt,
    /// 1 if the first is less, both in two's complement.
    LtSigned,
    /// args: selector (1 bit), value if 1, value if 0.
    Mux,
    /// args: selector, default, then one value a label. Labels are distinct values that fit the selector.
    Case(Vec<Bits>),
    /// args: vector, index. The vector is elements of the node's width, element 0 lowest; an index beyond gives 0.
    Select,
    /// Bits `.0 .. .0 + width` of the operand.
    Slice(u32),
    /// The operands side by side, the first lowest.
    Cat,
    /// Wider by zeros.
    ZExt,
    /// Wider by copies of the most significant bit.
    SExt,
    /// 1 bit: whether any bit is set.
    Any,
    /// 1 bit: whether all bits are set.
    All,
    /// 1 bit: whether an odd number of bits is set.
    Parity,
    /// How many bits are set; the node's width holds the operand's width.
    CountOnes,
    /// Stands for a value that could not be built; only in modules that [`crate::TypedModule::check`] refuses.
    Poison,
}

/// One value of a module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    /// How the value is computed.
    pub op: Op,
    /// In bits, at least 1.
    pub width: u32,
    /// The operands, in the order that `op` has them; none for constants, inputs and state.
    pub args: Vec<NodeId>,
    /// Set for values that the description names. Unique in the module among nodes, ports, state and instances.
    pub name: Option<String>,
    /// Where the description made it.
    pub loc: Loc,
}

/// A port. For an input, `node` is its [`Op::Input`]; for an output, the value that drives it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Port {
    /// Unique in the module, as it is in Verilog.
    pub name: String,
    /// In bits, that of `node`.
    pub width: u32,
    /// The value that comes in or goes out.
    pub node: NodeId,
    /// Where the module was described.
    pub loc: Loc,
}

/// A register. At a clock edge: the reset value if reset is on and there is one; else `next` if `enable` (or no
/// enable).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// Unique in the module, as it is in Verilog and in paths.
    pub name: String,
    /// In bits, that of `next` and `out`.
    pub width: u32,
    /// What it is after an edge with reset; None: reset does not touch it.
    pub reset: Option<Bits>,
    /// 1 bit; while it is 0 and reset is off, the register stays as it is. None: it takes `next` at every edge.
    pub enable: Option<NodeId>,
    /// The value that it takes.
    pub next: NodeId,
    /// The [`Op::Reg`] node.
    pub out: NodeId,
    /// Where it was declared.
    pub loc: Loc,
}

/// A memory of `1 << address_width` words of `width` bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Unique in the module, as it is in Verilog and in paths.
    pub name: String,
    /// Of a word, in bits.
    pub width: u32,
    /// Of an address, in bits: every address is of a word.
    pub address_width: u32,
    /// First contents, from address 0; words beyond the list are zero. None: seeded random.
    pub init: Option<Vec<Bits>>,
    /// In the order of their declaration.
    pub reads: Vec<ReadPort>,
    /// Where two ports write one bit at one edge, the later port in this list wins. No port writes while reset is on.
    pub writes: Vec<WritePort>,
    /// What kind of storage the author has in mind; a back end may pass it on as an attribute.
    pub style: MemoryStyle,
    /// Where it was declared.
    pub loc: Loc,
}

/// What kind of storage a memory is meant to be; it changes no value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MemoryStyle {
    /// The tool decides.
    Auto,
    /// Block RAM.
    Block,
    /// Distributed (LUT) RAM.
    Distributed,
}

/// A read port of a memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReadPort {
    /// `address_width` bits.
    pub address: NodeId,
    /// The [`Op::MemRead`] node.
    pub out: NodeId,
    /// When the data is there.
    pub timing: ReadTiming,
}

/// When a read port's data is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReadTiming {
    /// The data follows the address in the same cycle; a write shows from the next cycle on.
    Async,
    /// The data is registered: the word that `address` selects at the clock edge where `enable` (or no enable) is on;
    /// otherwise the old data stays, or with `or_zero` becomes 0. Reset does not touch it.
    Sync {
        /// 1 bit; None: a read at every edge.
        enable: Option<NodeId>,
        /// What is read of a word that is written at the same edge.
        collision: Collision,
        /// Without `enable`, the data becomes 0.
        or_zero: bool,
    },
}

/// What a synchronous read gives when the word is written at the same clock edge.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Collision {
    /// The word before the write.
    ReadOld,
    /// The word after the write.
    ReadNew,
    /// The description promises that it does not happen; the language adds the assertion, and the value is ReadOld's.
    Never,
}

/// A write port: at a clock edge, granule g of the word is written where bit g of `enable` is on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WritePort {
    /// As wide as the word has granules: 1 for whole words, 4 for the bytes of a 32-bit word.
    pub enable: NodeId,
    /// `address_width` bits.
    pub address: NodeId,
    /// A whole word, `width` bits; only the granules that are enabled are looked at.
    pub data: NodeId,
}

/// Instances of a module: one, or `replicas` identical ones side by side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instance {
    /// Unique in the module; a part of the paths of what is in the instance.
    pub name: String,
    /// What it is an instance of.
    pub module: Arc<Module>,
    /// None: a plain instance. Some(n), n ≥ 1: a replicated instance; its outputs are n times as wide.
    pub replicas: Option<u32>,
    /// One for each input port of the module, in order.
    pub inputs: Vec<Connection>,
    /// Where it was placed.
    pub loc: Loc,
}

/// What drives an input port of an instance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Connection {
    /// The value itself; every replica sees the same one.
    All(NodeId),
    /// Replicas times the port's width; replica k sees its k-th part. Only in replicated instances.
    Each(NodeId),
}

impl Instance {
    /// How many copies there are; 1 for a plain instance.
    pub fn copies(&self) -> u32 {
        self.replicas.unwrap_or(1)
    }
}

impl Connection {
    /// The value, whole or in parts.
    pub fn node(self) -> NodeId {
        match self {
            Connection::All(n) | Connection::Each(n) => n,
        }
    }
}

/// What a property says of its value.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum PropertyKind {
    /// Must be 1 at every clock edge where reset is off.
    Assert,
    /// May be taken as 1 at every clock edge where reset is off (checked in simulation like an assertion).
    Assume,
    /// Should be 1 at some clock edge where reset is off.
    Cover,
}

/// A statement about a 1-bit value, read at the clock edge together with the registers' inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Property {
    /// What it says.
    pub kind: PropertyKind,
    /// Unique among the properties of the module.
    pub name: String,
    /// 1 bit.
    pub node: NodeId,
    /// Where it was stated.
    pub loc: Loc,
}

/// A value that simulations show from outside under its name, without being a port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Probe {
    /// Unique among the probes of the module.
    pub name: String,
    /// The value, of any width.
    pub node: NodeId,
}

/// A module that stands in Verilog that is not made here: a cell of a vendor, or somebody's own module. The module that
/// has this is its stub.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Foreign {
    /// Its name in Verilog, as are those of ports, parameters and attributes. [`crate::names::verilog`] writes them.
    pub name: String,
    /// The names of the stub's inputs, then of its outputs, in their order.
    pub ports: Vec<String>,
    /// Ports that take the clock; the stub takes it implicitly.
    pub clocks: Vec<String>,
    /// Ports that take the reset.
    pub resets: Vec<ForeignReset>,
    /// It makes the clock of the whole design.
    pub clock_source: Option<ClockSource>,
    /// Name and value, the same for every instance.
    pub parameters: Vec<(String, Parameter)>,
    /// Of every instance.
    pub attributes: Vec<(String, Parameter)>,
    /// Where it was declared.
    pub loc: Loc,
}

/// A port of foreign Verilog that takes the reset.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ForeignReset {
    /// Its name in Verilog.
    pub port: String,
    /// The port is 0 in reset.
    pub active_low: bool,
}

/// How foreign Verilog makes the clock of the design.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClockSource {
    /// The port that gives it.
    pub output: String,
    /// The port that takes the clock of the board, and the input of the top module that this is. None: an oscillator.
    pub input: Option<ClockPin>,
}

/// See [`ClockSource`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClockPin {
    /// The foreign module's input.
    pub port: String,
    /// The input of the top module.
    pub pin: String,
}

/// The value of a parameter or an attribute of foreign Verilog.
#[derive(Clone, PartialEq, Debug)]
pub enum Parameter {
    /// 32 bits, signed.
    Integer(i32),
    /// Printable ASCII.
    Text(String),
    /// A value of so many bits.
    Bits(Bits, u32),
    /// Finite.
    Real(f64),
}

/// Reals are finite, so that each equals itself.
impl Eq for Parameter {}

/// One module definition. State that no output depends on (it serves only properties and probes) is verification-only
/// ("ghost"); back ends find it by reachability.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// One definition of a design has this name, in Verilog too.
    pub name: String,
    /// What the module is, one line: becomes the comment above the Verilog module.
    pub doc: String,
    /// Without clock and reset, which every module has.
    pub inputs: Vec<Port>,
    /// In the order of the description's bundle.
    pub outputs: Vec<Port>,
    /// All values; [`NodeId`] is a place in this list.
    pub nodes: Vec<Node>,
    /// In the order of their declaration, as the next five lists.
    pub registers: Vec<Register>,
    /// Arrays of words.
    pub memories: Vec<Memory>,
    /// Of other modules, which are below this one.
    pub instances: Vec<Instance>,
    /// Assertions, assumptions and covers.
    pub properties: Vec<Property>,
    /// What simulations can look at without a port.
    pub probes: Vec<Probe>,
    /// Named nodes that synthesis keeps as they are: the attribute `keep` in Verilog. Nothing to simulations.
    pub kept: Vec<NodeId>,
    /// What the module stands for, if it is a stub.
    pub foreign: Option<Foreign>,
    /// The value that is the reset in hardware. Only in the top module. Simulations give the reset themselves.
    pub reset: Option<NodeId>,
}

impl Module {
    /// A module with nothing in it.
    pub fn empty(name: impl Into<String>) -> Module {
        Module {
            name: name.into(),
            doc: String::new(),
            inputs: vec![],
            outputs: vec![],
            nodes: vec![],
            registers: vec![],
            memories: vec![],
            instances: vec![],
            properties: vec![],
            probes: vec![],
            kept: vec![],
            foreign: None,
            reset: None,
        }
    }

    /// A node of this module; panics if `id` is another module's and too large.
    pub fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }

    /// How the clock is made in hardware, if an instance here makes it.
    pub fn clock_source(&self) -> Option<&ClockSource> {
        self.instances.iter().find_map(|i| i.module.foreign.as_ref()?.clock_source.as_ref())
    }

    /// Every module below this one, each once, instances before those who use them; this one last.
    pub fn modules(self: &Arc<Module>) -> Vec<Arc<Module>> {
        fn visit(m: &Arc<Module>, seen: &mut std::collections::HashSet<*const Module>, out: &mut Vec<Arc<Module>>) {
            if seen.insert(Arc::as_ptr(m)) {
                m.instances.iter().for_each(|i| visit(&i.module, seen, out));
                out.push(m.clone());
            }
        }
        let mut out = Vec::new();
        visit(self, &mut std::collections::HashSet::new(), &mut out);
        out
    }
}
