//! Mutants: a design with one small mistake in it, to find out whether tests would notice.
//!
//! A mutant changes one module definition, hence all its instances. Ports, names, state, properties and probes stay, so
//! that every number in a simulation's directory stays too. [`mutants`] lists those in the hardware of a design: logic
//! and state that an output of the top depends on, as reachability says. What reaches only properties, probes or
//! counters that no output shows is left alone.
//!
//! A mutant's name is `module:file:line:operation:change` with `#2` for the second such operation that the line makes,
//! or `module:thing:change` for registers, ports of memories, and instances. It says where in the source the mistake
//! is, and so means the same mistake in a module of another shape. Where a line makes more operations in one shape than
//! in another, as a loop over lanes does, the number is the round of the loop.

use crate::bits::Bits;
use crate::netlist::{Collision, Connection, Instance, Loc, Module, Node, NodeId, Op, ReadTiming};
use crate::order::{Loop, order};
use std::collections::HashMap;
use std::sync::Arc;

mod live;

/// One mistake in one module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mutant {
    /// See the module's documentation.
    pub name: String,
    /// The module's name.
    pub module: String,
    /// The nearest named thing that the mistake shows in first: a wire, a register, a port, a memory, an instance.
    pub signal: String,
    /// What kind of mistake it is, as `and:or`.
    pub kind: String,
    change: Change,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Change {
    /// The node computes something else of its operands.
    Op(NodeId, Op),
    /// The node is one of its operands.
    Operand(NodeId, usize),
    /// Two operands change places.
    Exchange(NodeId, usize, usize),
    /// The node is the inverse of what it was.
    Negate(NodeId),
    /// `a < b` becomes `a <= b`.
    OrEqual(NodeId),
    /// The second operand is one more.
    NextIndex(NodeId),
    /// A case has no such arm, so that the default is taken.
    DropArm(NodeId, usize),
    Reset(usize, Option<Bits>),
    /// In every cycle, or never.
    Enable(usize, bool),
    Write(usize, usize, bool),
    ExchangeWrites(usize, usize),
    ReadEnable(usize, usize, bool),
    Collision(usize, usize, Collision),
    /// Two inputs of an instance change places.
    Inputs(usize, usize),
}

/// Why a mutant by its name cannot be had of a design.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotHere {
    /// A name has other parts: module, place, operation and mistake, with colons between.
    #[error("`{0}` is no name of a mutant")]
    NoName(String),
    /// No module of the design has this name, the mutant's first part.
    #[error("the design has no module `{0}`")]
    NoModule(String),
    /// The module is there, but nothing in it that this mistake could be made in: the design has another configuration.
    #[error("this module `{module}` has no mutant `{name}`")]
    NoMutant {
        /// The module that it would be in.
        module: String,
        /// Of the mutant.
        name: String,
    },
    /// The mutant would have a combinational loop.
    #[error("`{name}` makes a {why}")]
    Loop {
        /// Of the mutant.
        name: String,
        /// The signals on the loop.
        why: Loop,
    },
}

/// The mutants of the hardware of a checked design, modules below before those who use them.
pub fn mutants(top: &Arc<Module>) -> Vec<Mutant> {
    let live = live::Live::new(top);
    let modules = top.modules();
    let mut all = Vec::new();
    for (k, m) in modules.iter().enumerate() {
        all.extend(of_module(m).into_iter().filter(|mutant| live.has(k, m, mutant)));
    }
    all
}

/// The design with the mutant that has this name.
pub fn apply(top: &Arc<Module>, name: &str) -> Result<Arc<Module>, NotHere> {
    let malformed = || NotHere::NoName(name.to_string());
    let (module, rest) = name.split_once(':').ok_or_else(malformed)?;
    if !rest.contains(':') || module.is_empty() {
        return Err(malformed());
    }
    let modules = top.modules();
    let found = modules.iter().find(|m| m.name == module);
    let found = found.ok_or_else(|| NotHere::NoModule(module.to_string()))?;
    let mutant = of_module(found).into_iter().find(|mutant| mutant.name == name);
    let not_here = || NotHere::NoMutant { module: module.to_string(), name: name.to_string() };
    mutant.ok_or_else(not_here)?.apply(top).map_err(|why| NotHere::Loop { name: name.to_string(), why })
}

impl Mutant {
    /// The design with this mistake. Fails if that makes a combinational loop.
    pub fn apply(&self, top: &Arc<Module>) -> Result<Arc<Module>, Loop> {
        let mut changed: HashMap<*const Module, Arc<Module>> = HashMap::new();
        for module in top.modules() {
            let mut copy = (*module).clone();
            for instance in &mut copy.instances {
                instance.module = changed[&Arc::as_ptr(&instance.module)].clone();
            }
            if module.name == self.module {
                self.change.make(&mut copy);
            }
            changed.insert(Arc::as_ptr(&module), Arc::new(copy));
        }
        let mutated = changed[&Arc::as_ptr(top)].clone();
        order(&mutated)?;
        Ok(mutated)
    }
}

/// All mutants of one module, of what serves only verification too.
fn of_module(m: &Module) -> Vec<Mutant> {
    let mut list = List { m, mutants: Vec::new() };
    let signals = Signals::new(m);
    // How many operations of a kind a source line has made so far.
    let mut made: HashMap<(&str, u32, &str), u32> = HashMap::new();
    for (k, node) in m.nodes.iter().enumerate() {
        let Some(operation) = operation(&node.op) else { continue };
        let (path, line) = (node.loc.file(), node.loc.line());
        let number = made.entry((path, line, operation)).or_insert(0);
        *number += 1;
        let number = if *number == 1 { String::new() } else { format!("#{number}") };
        let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
        let at = format!("{file}:{line}:{operation}{number}");
        let id = NodeId(k as u32);
        for (what, change) in of_node(m, id, node) {
            list.add(&at, operation, &what, signals.of(m, id), change);
        }
    }
    for (k, register) in m.registers.iter().enumerate() {
        let mut add = |what: &str, change| list.add(&register.name, "register", what, register.name.clone(), change);
        if let Some(reset) = &register.reset {
            add("reset_other", Change::Reset(k, Some(flip(reset, 0))));
            add("no_reset", Change::Reset(k, None));
        }
        add("never_enabled", Change::Enable(k, false));
        if register.enable.is_some() {
            add("always_enabled", Change::Enable(k, true));
        }
    }
    for (k, memory) in m.memories.iter().enumerate() {
        let mut add = |port: &str, p: usize, what: &str, change| {
            list.add(&format!("{}.{port}{p}", memory.name), port, what, memory.name.clone(), change);
        };
        for p in 0..memory.writes.len() {
            add("write", p, "always", Change::Write(k, p, true));
            add("write", p, "never", Change::Write(k, p, false));
            if p > 0 {
                add("write", p, "before_others", Change::ExchangeWrites(k, p));
            }
        }
        for (p, read) in memory.reads.iter().enumerate() {
            let ReadTiming::Sync { enable, collision, .. } = read.timing else { continue };
            add("read", p, "never", Change::ReadEnable(k, p, false));
            if enable.is_some() {
                add("read", p, "always", Change::ReadEnable(k, p, true));
            }
            match collision {
                Collision::ReadOld => add("read", p, "new_word", Change::Collision(k, p, Collision::ReadNew)),
                Collision::ReadNew => add("read", p, "old_word", Change::Collision(k, p, Collision::ReadOld)),
                Collision::Never => {}
            }
        }
    }
    for (k, instance) in m.instances.iter().enumerate() {
        for port in exchangeable_inputs(m, instance) {
            let at = format!("{}.{}", instance.name, instance.module.inputs[port].name);
            list.add(&at, "instance", "and_next_input", instance.name.clone(), Change::Inputs(k, port));
        }
    }
    list.mutants
}

/// The inputs of an instance whose value fits the next input too, and differs from what that one gets.
fn exchangeable_inputs(m: &Module, instance: &Instance) -> Vec<usize> {
    let kind = |c: &Connection| (matches!(c, Connection::All(_)), m.node(c.node()).width);
    let pairs = instance.inputs.windows(2).enumerate();
    let fits = pairs.filter(|(_, pair)| kind(&pair[0]) == kind(&pair[1]) && pair[0] != pair[1]);
    fits.map(|(port, _)| port).collect()
}

struct List<'a> {
    m: &'a Module,
    mutants: Vec<Mutant>,
}

impl List<'_> {
    fn add(&mut self, at: &str, operation: &str, what: &str, signal: String, change: Change) {
        let name = format!("{}:{at}:{what}", self.m.name);
        let kind = format!("{operation}:{what}");
        self.mutants.push(Mutant { name, module: self.m.name.clone(), signal, kind, change });
    }
}

/// The operation's name; None for what is not mutated as a node.
fn operation(op: &Op) -> Option<&'static str> {
    Some(match op {
        Op::Const(_) => "const",
        Op::Not => "not",
        Op::And => "and",
        Op::Or => "or",
        Op::Xor => "xor",
        Op::Add => "add",
        Op::Sub => "sub",
        Op::Mul => "mul",
        Op::MulFull => "mul_full",
        Op::MulFullSigned => "mul_full_signed",
        Op::Shl => "shl",
        Op::Shr => "shr",
        Op::Sar => "sar",
        Op::Eq => "eq",
        Op::Ne => "ne",
        Op::Lt => "lt",
        Op::LtSigned => "lt_signed",
        Op::Mux => "mux",
        Op::Case(_) => "case",
        Op::Select => "select",
        Op::Slice(_) => "slice",
        Op::Cat => "cat",
        Op::ZExt => "zext",
        Op::SExt => "sext",
        Op::Any => "any",
        Op::All => "all",
        Op::Parity => "parity",
        Op::CountOnes => "count_ones",
        Op::Input(_) | Op::InstOut { .. } | Op::Reg(_) | Op::MemRead { .. } | Op::Buf | Op::Poison => return None,
    })
}

/// The mistakes at a node, by name.
fn of_node(m: &Module, id: NodeId, node: &Node) -> Vec<(String, Change)> {
    let mut list: Vec<(String, Change)> = Vec::new();
    let mut add = |what: &str, change| list.push((what.to_string(), change));
    let to = |op: Op| Change::Op(id, op);
    let width = |k: usize| m.node(node.args[k]).width;
    let same = |a: usize, b: usize| node.args[a] == node.args[b];
    match &node.op {
        Op::Const(value) => {
            for (what, other) in other_constants(value, node.width) {
                add(what, to(Op::Const(other)));
            }
        }
        Op::Not => add("same", to(Op::Buf)),
        Op::And | Op::Or if !same(0, 1) => {
            let (what, other) = if node.op == Op::And { ("or", Op::Or) } else { ("and", Op::And) };
            add(what, to(other));
            add("without_second", Change::Operand(id, 0));
            add("without_first", Change::Operand(id, 1));
        }
        Op::Xor => {
            add("or", to(Op::Or));
            add("and", to(Op::And));
        }
        Op::Add if node.width > 1 => add("sub", to(Op::Sub)),
        Op::Sub if node.width > 1 => add("add", to(Op::Add)),
        Op::Mul => add("add", to(Op::Add)),
        Op::MulFull => add("signed", to(Op::MulFullSigned)),
        Op::MulFullSigned => add("unsigned", to(Op::MulFull)),
        Op::Shl => add("shr", to(Op::Shr)),
        Op::Shr => {
            add("shl", to(Op::Shl));
            add("sar", to(Op::Sar));
        }
        Op::Sar => add("shr", to(Op::Shr)),
        Op::Eq => add("ne", to(Op::Ne)),
        Op::Ne => add("eq", to(Op::Eq)),
        Op::Lt | Op::LtSigned => {
            let (what, other) = if node.op == Op::Lt { ("signed", Op::LtSigned) } else { ("unsigned", Op::Lt) };
            add(what, to(other));
            add("ge", Change::Negate(id));
            add("le", Change::OrEqual(id));
        }
        Op::Mux if !same(1, 2) => {
            add("exchanged", Change::Exchange(id, 1, 2));
            add("always_first", Change::Operand(id, 1));
            add("always_second", Change::Operand(id, 2));
        }
        Op::Case(labels) => {
            for (k, _) in labels.iter().enumerate().filter(|(k, _)| !same(1, k + 2)) {
                add(&format!("without_arm_{k}"), Change::DropArm(id, k));
            }
            for k in (1..labels.len()).filter(|k| !same(k + 1, k + 2)) {
                add(&format!("arms_{}_{k}", k - 1), Change::Exchange(id, k + 1, k + 2));
            }
        }
        Op::Select if width(0) > node.width => add("next", Change::NextIndex(id)),
        Op::Slice(low) => {
            if *low > 0 {
                add("lower", to(Op::Slice(low - 1)));
            }
            if low + node.width < width(0) {
                add("higher", to(Op::Slice(low + 1)));
            }
        }
        Op::Cat => {
            for k in (1..node.args.len()).filter(|k| !same(k - 1, *k)) {
                add(&format!("parts_{}_{k}", k - 1), Change::Exchange(id, k - 1, k));
            }
        }
        Op::ZExt => add("sext", to(Op::SExt)),
        Op::SExt => add("zext", to(Op::ZExt)),
        Op::Any if width(0) > 1 => add("all", to(Op::All)),
        Op::All if width(0) > 1 => add("any", to(Op::Any)),
        Op::Parity if width(0) > 1 => add("any", to(Op::Any)),
        Op::CountOnes => {
            let high = m.node(node.args[0]).width;
            // The count of a single bit is that bit.
            if high > 1 && node.width > 1 {
                add("plus_1", Change::NextIndex(id));
            }
        }
        _ => {}
    }
    list
}

/// One more, one less, and another highest bit; each value once.
fn other_constants(value: &Bits, width: u32) -> Vec<(&'static str, Bits)> {
    if width == 1 {
        return vec![("inverted", flip(value, 0))];
    }
    let one = Bits::from(1u32).to_big();
    let more = Bits::from_big(value.to_big() + &one).truncate(width);
    let less = Bits::from_big(value.to_big() + Bits::ones(width).to_big()).truncate(width);
    let mut others = vec![("plus_1", more)];
    for (what, other) in [("minus_1", less), ("high_bit", flip(value, width - 1))] {
        if others.iter().all(|(_, known)| *known != other) {
            others.push((what, other));
        }
    }
    others
}

fn flip(value: &Bits, bit: u32) -> Bits {
    let mask = Bits::from(1u32).to_big() << bit;
    Bits::from_big(value.to_big() ^ mask)
}

/// Where values go to.
struct Signals {
    /// For each node, the first node that it is an operand of.
    users: Vec<Option<NodeId>>,
    /// Registers, ports, memories, instances and properties, by the nodes that go to them directly.
    named: HashMap<NodeId, String>,
}

impl Signals {
    fn new(m: &Module) -> Signals {
        let mut users = vec![None; m.nodes.len()];
        for (k, node) in m.nodes.iter().enumerate() {
            node.args.iter().for_each(|a| _ = users[a.index()].get_or_insert(NodeId(k as u32)));
        }
        let mut named = HashMap::new();
        let mut goes_to = |id: NodeId, name: String| _ = named.entry(id).or_insert(name);
        for r in &m.registers {
            [Some(r.next), r.enable].into_iter().flatten().for_each(|id| goes_to(id, r.name.clone()));
        }
        m.outputs.iter().for_each(|p| goes_to(p.node, p.name.clone()));
        for memory in &m.memories {
            let writes = memory.writes.iter().flat_map(|w| [w.enable, w.address, w.data]);
            let reads = memory.reads.iter().map(|r| r.address);
            writes.chain(reads).for_each(|id| goes_to(id, memory.name.clone()));
        }
        for instance in &m.instances {
            for (port, connection) in instance.module.inputs.iter().zip(&instance.inputs) {
                goes_to(connection.node(), format!("{}.{}", instance.name, port.name));
            }
        }
        m.properties.iter().for_each(|p| goes_to(p.node, p.name.clone()));
        Signals { users, named }
    }

    /// The name of the node, or of what it goes to through nodes without a name.
    fn of(&self, m: &Module, mut id: NodeId) -> String {
        for _ in 0..m.nodes.len() {
            let name = m.node(id).name.as_ref().or_else(|| self.named.get(&id));
            match (name, self.users[id.index()]) {
                (Some(name), _) => return name.clone(),
                (None, Some(user)) => id = user,
                (None, None) => break,
            }
        }
        "nothing".to_string()
    }
}

impl Change {
    fn make(&self, m: &mut Module) {
        match self {
            Change::Op(id, op) => m.nodes[id.index()].op = op.clone(),
            Change::Operand(id, k) => {
                let node = &mut m.nodes[id.index()];
                (node.op, node.args) = (Op::Buf, vec![node.args[*k]]);
            }
            Change::Exchange(id, a, b) => m.nodes[id.index()].args.swap(*a, *b),
            Change::Negate(id) => {
                let copy = moved(m, *id);
                let node = &mut m.nodes[id.index()];
                (node.op, node.args) = (Op::Not, vec![copy]);
            }
            Change::OrEqual(id) => {
                m.nodes[id.index()].args.swap(0, 1);
                Change::Negate(*id).make(m);
            }
            Change::NextIndex(id) if m.node(*id).op == Op::Select => {
                let index = m.node(*id).args[1];
                m.nodes[id.index()].args[1] = one_more(m, index);
            }
            Change::NextIndex(id) => {
                let copy = moved(m, *id);
                let more = one_more(m, copy);
                let node = &mut m.nodes[id.index()];
                (node.op, node.args) = (Op::Buf, vec![more]);
            }
            Change::DropArm(id, arm) => {
                let node = &mut m.nodes[id.index()];
                node.args.remove(2 + arm);
                if let Op::Case(labels) = &mut node.op {
                    labels.remove(*arm);
                }
                if node.args.len() == 2 {
                    (node.op, node.args) = (Op::Buf, vec![node.args[1]]);
                }
            }
            Change::Reset(k, reset) => m.registers[*k].reset = reset.clone(),
            Change::Enable(k, always) => {
                let loc = m.registers[*k].loc;
                m.registers[*k].enable = if *always { None } else { Some(constant(m, Bits::ZERO, 1, loc)) };
            }
            Change::Write(k, p, always) => {
                let enable = m.memories[*k].writes[*p].enable;
                let (width, loc) = (m.node(enable).width, m.memories[*k].loc);
                let value = if *always { Bits::ones(width) } else { Bits::ZERO };
                m.memories[*k].writes[*p].enable = constant(m, value, width, loc);
            }
            Change::ExchangeWrites(k, p) => m.memories[*k].writes.swap(p - 1, *p),
            Change::ReadEnable(k, p, always) => {
                let loc = m.memories[*k].loc;
                let value = if *always { None } else { Some(constant(m, Bits::ZERO, 1, loc)) };
                if let ReadTiming::Sync { enable, .. } = &mut m.memories[*k].reads[*p].timing {
                    *enable = value;
                }
            }
            Change::Collision(k, p, other) => {
                if let ReadTiming::Sync { collision, .. } = &mut m.memories[*k].reads[*p].timing {
                    *collision = *other;
                }
            }
            Change::Inputs(k, port) => m.instances[*k].inputs.swap(*port, port + 1),
        }
    }
}

/// A node that computes what this one does, so that this one, which has the name and the users, can do something else.
fn moved(m: &mut Module, id: NodeId) -> NodeId {
    let copy = Node { name: None, ..m.node(id).clone() };
    push(m, copy)
}

fn one_more(m: &mut Module, id: NodeId) -> NodeId {
    let Node { width, loc, .. } = *m.node(id);
    let one = constant(m, Bits::from(1u32), width, loc);
    push(m, Node { op: Op::Add, width, args: vec![id, one], name: None, loc })
}

fn constant(m: &mut Module, value: Bits, width: u32, loc: Loc) -> NodeId {
    push(m, Node { op: Op::Const(value), width, args: vec![], name: None, loc })
}

fn push(m: &mut Module, node: Node) -> NodeId {
    m.nodes.push(node);
    NodeId(m.nodes.len() as u32 - 1)
}

#[cfg(test)]
mod tests;
