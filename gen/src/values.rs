//! Expressions: which values get a wire of their own, and the text of each.
//!
//! Verilog widens operands by context. Operators whose result can grow get a wire of their own, so that the context is
//! that wire; operators on equal widths nest safely. Wider operands are written out with sized zeros or sign bits.

use crate::liveness::Liveness;
use crate::{Options, foreign};
use heddle_hdl::Bits;
use heddle_hdl::netlist::{Collision, Connection, Memory, Module, NodeId, Op, ReadPort, ReadTiming};
use std::collections::{HashMap, HashSet};

/// The names of a module's values.
pub struct Names<'a> {
    m: &'a Module,
    /// The identifier of a node that has one.
    identifiers: Vec<Option<String>>,
    taken: HashSet<String>,
    /// How many places use each node.
    uses: Vec<u32>,
}

/// `[7:0] `, or nothing for one bit.
pub fn range(width: u32) -> String {
    if width == 1 { String::new() } else { format!("[{}:0] ", width - 1) }
}

/// A sized literal.
pub fn literal(value: &Bits, width: u32) -> String {
    format!("{width}'h{value:x}")
}

/// Text beyond this length gets a wire of its own.
const LONG: usize = 90;

impl<'a> Names<'a> {
    pub fn new(m: &'a Module, live: &Liveness, options: &Options) -> Names<'a> {
        let mut taken: HashSet<String> = ["clk", "rst"].map(String::from).into();
        taken.extend(m.nodes.iter().filter_map(|n| n.name.clone()));
        taken.extend(m.memories.iter().map(|x| x.name.clone()));
        taken.extend(m.instances.iter().map(|x| x.name.clone()));
        taken.extend(m.inputs.iter().chain(&m.outputs).map(|p| p.name.clone()));
        taken.extend(foreign::clock_pin(m).map(|pin| pin.pin.clone()));
        if options.probes {
            taken.extend(m.probes.iter().map(|p| format!("probe_{}", p.name)));
        }
        let mut names = Names { m, identifiers: vec![None; m.nodes.len()], taken, uses: uses(m, live) };
        names.choose();
        names
    }

    /// A name that nothing else in the module has.
    pub fn fresh(&mut self, wish: &str) -> String {
        let mut name = wish.to_string();
        let mut number = 1;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{wish}_{number}");
        }
        name
    }

    /// The node's identifier, if it has one.
    pub fn identifier(&self, id: NodeId) -> Option<&str> {
        self.identifiers[id.index()].as_deref()
    }

    /// The node's value: its identifier, a literal, or an expression in parentheses.
    pub fn value(&self, id: NodeId) -> String {
        if let Some(name) = self.identifier(id) {
            return name.to_string();
        }
        let node = self.m.node(id);
        let text = self.expression(id);
        // Unary operators are not atomic: `^~a` would be one operator, and not ours.
        let atomic = matches!(node.op, Op::Const(_) | Op::Slice(_) | Op::Cat | Op::ZExt | Op::SExt | Op::Buf);
        if atomic { text } else { format!("({text})") }
    }

    fn choose(&mut self) {
        let m = self.m;
        let mut must = vec![false; m.nodes.len()];
        for node in &m.nodes {
            match node.op {
                Op::Shl | Op::Shr | Op::Sar => must[node.args[1].index()] |= m.node(node.args[1]).width > 31,
                Op::Slice(_) | Op::CountOnes => must[node.args[0].index()] = true,
                Op::Select => node.args.iter().for_each(|a| must[a.index()] = true),
                Op::SExt if m.node(node.args[0]).width > 1 => must[node.args[0].index()] = true,
                Op::MulFullSigned => node.args.iter().for_each(|a| must[a.index()] = true),
                _ => {}
            }
        }
        for memory in &m.memories {
            for write in memory.writes.iter().filter(|w| m.node(w.enable).width > 1 || bypasses(memory)) {
                [write.enable, write.address, write.data].into_iter().for_each(|n| must[n.index()] = true);
            }
        }
        for instance in &m.instances {
            for c in &instance.inputs {
                if let Connection::Each(n) = c {
                    must[n.index()] = true;
                }
            }
        }
        // State, ports and what instances and memories give: one identifier each, however many nodes stand for it.
        let mut given: HashMap<(u8, u32, u32), String> = HashMap::new();
        for (index, node) in m.nodes.iter().enumerate() {
            let (key, wish) = match &node.op {
                Op::Input(port) => {
                    self.identifiers[index] = Some(m.inputs[*port as usize].name.clone());
                    continue;
                }
                Op::Reg(r) => {
                    self.identifiers[index] = Some(m.registers[*r as usize].name.clone());
                    continue;
                }
                Op::MemRead { mem, port } => {
                    ((0, *mem, *port), format!("{}_read{port}", m.memories[*mem as usize].name))
                }
                Op::InstOut { inst, port } => {
                    let instance = &m.instances[*inst as usize];
                    let port_name = &instance.module.outputs[*port as usize].name;
                    ((1, *inst, *port), format!("{}_{port_name}", instance.name))
                }
                _ => continue,
            };
            let name = match given.get(&key) {
                Some(name) => name.clone(),
                None => node.name.clone().unwrap_or_else(|| self.fresh(&wish)),
            };
            given.insert(key, name.clone());
            self.identifiers[index] = Some(name);
        }
        for (index, node) in m.nodes.iter().enumerate() {
            if self.identifiers[index].is_some() {
                continue;
            }
            let grows = matches!(
                node.op,
                Op::Add | Op::Sub | Op::Mul | Op::MulFull | Op::MulFullSigned | Op::Shl | Op::Shr | Op::Sar
            );
            let own = matches!(node.op, Op::CountOnes | Op::Case(_) | Op::Select);
            let cheap = matches!(node.op, Op::Const(_) | Op::Slice(_));
            let shared = self.uses[index] > 1 && !cheap;
            if node.name.is_none() && !(grows || own || shared || must[index]) {
                continue;
            }
            let name = node.name.clone().unwrap_or_else(|| self.fresh(&format!("n{index}")));
            self.identifiers[index] = Some(name);
        }
        self.break_long_ones();
    }

    /// Gives identifiers inside expressions that would be too long. Operands are looked at before their users.
    fn break_long_ones(&mut self) {
        for id in topological(self.m, (0..self.m.nodes.len() as u32).map(NodeId)) {
            if self.identifier(id).is_none()
                && !matches!(self.m.node(id).op, Op::Const(_) | Op::Poison)
                && self.expression(id).len() > LONG
            {
                self.identifiers[id.index()] = Some(self.fresh(&format!("n{}", id.0)));
            }
        }
    }

    /// What the node computes, from its operands' values.
    pub fn expression(&self, id: NodeId) -> String {
        let m = self.m;
        let node = m.node(id);
        let width = node.width;
        let of = |k: usize| m.node(node.args[k]).width;
        let v = |k: usize| self.value(node.args[k]);
        let binary = |symbol: &str| format!("{} {symbol} {}", v(0), v(1));
        let zeros = |n: u32| format!("{n}'d0");
        match &node.op {
            Op::Const(value) => literal(value, width),
            Op::Input(_) | Op::Reg(_) | Op::InstOut { .. } | Op::MemRead { .. } => {
                self.identifier(id).expect("state and ports have identifiers").to_string()
            }
            Op::Buf => v(0),
            Op::Not => format!("~{}", v(0)),
            Op::And => binary("&"),
            Op::Or => binary("|"),
            Op::Xor => binary("^"),
            Op::Add => binary("+"),
            Op::Sub => binary("-"),
            Op::Mul => binary("*"),
            Op::MulFull => format!("{{{}, {}}} * {{{}, {}}}", zeros(of(1)), v(0), zeros(of(0)), v(1)),
            Op::MulFullSigned => {
                let signed = |k: usize, by: u32| {
                    let x = v(k);
                    let sign = if of(k) == 1 { x.clone() } else { format!("{x}[{}]", of(k) - 1) };
                    format!("$signed({{{{{by}{{{sign}}}}}, {x}}})")
                };
                format!("{} * {}", signed(0, of(1)), signed(1, of(0)))
            }
            Op::Shl => format!("{} << {}", v(0), self.amount(node.args[1])),
            Op::Shr => format!("{} >> {}", v(0), self.amount(node.args[1])),
            Op::Sar => format!("$signed({}) >>> {}", v(0), self.amount(node.args[1])),
            Op::Eq => binary("=="),
            Op::Ne => binary("!="),
            Op::Lt => binary("<"),
            Op::LtSigned => format!("$signed({}) < $signed({})", v(0), v(1)),
            Op::Mux => format!("{} ? {} : {}", v(0), v(1), v(2)),
            Op::Case(_) => unreachable!("a case has an always block"),
            Op::Select => unreachable!("an element has declarations before it"),
            Op::Slice(low) => {
                let x = v(0);
                match (of(0), width) {
                    (1, _) => x,
                    (_, 1) => format!("{x}[{low}]"),
                    _ => format!("{x}[{}:{low}]", low + width - 1),
                }
            }
            Op::Cat if node.args.len() > 1 && node.args.iter().all(|a| *a == node.args[0]) => {
                format!("{{{}{{{}}}}}", node.args.len(), v(0))
            }
            Op::Cat => {
                let parts: Vec<String> = (0..node.args.len()).rev().map(v).collect();
                format!("{{{}}}", parts.join(", "))
            }
            Op::ZExt => format!("{{{}, {}}}", zeros(width - of(0)), v(0)),
            Op::SExt if of(0) == 1 => format!("{{{width}{{{}}}}}", v(0)),
            Op::SExt => {
                let x = v(0);
                format!("{{{{{}{{{x}[{}]}}}}, {x}}}", width - of(0), of(0) - 1)
            }
            Op::Any => format!("|{}", v(0)),
            Op::All => format!("&{}", v(0)),
            Op::Parity => format!("^{}", v(0)),
            Op::CountOnes => {
                let x = v(0);
                let bit = |k: u32| if of(0) == 1 { x.clone() } else { format!("{x}[{k}]") };
                let pad = |b: String| if width == 1 { b } else { format!("{{{}, {b}}}", zeros(width - 1)) };
                let bits: Vec<String> = (0..of(0)).map(|k| pad(bit(k))).collect();
                bits.join(" + ")
            }
            Op::Poison => unreachable!("a checked design has no poison"),
        }
    }

    /// A shift amount. Tools take no more than 31 bits of it; a larger amount shifts everything out just the same.
    fn amount(&self, id: NodeId) -> String {
        let amount = self.value(id);
        match self.m.node(id).width {
            ..=31 => amount,
            width => format!("((|{amount}[{}:31]) ? 31'h7fffffff : {amount}[30:0])", width - 1),
        }
    }

    /// Element of a vector: declarations that come before, and the expression. The vector is padded with zeros, or cut,
    /// to as many elements as the index can name; index bits beyond that make the element zero.
    pub fn select(&mut self, id: NodeId, declarations: &mut Vec<String>) -> String {
        let node = self.m.node(id);
        let (vector, index, width) = (node.args[0], node.args[1], node.width);
        let (vector_width, index_bits) = (self.m.node(vector).width, self.m.node(index).width);
        let needed = (vector_width / width).next_power_of_two().trailing_zeros().max(1);
        let bits = needed.min(index_bits);
        let mut base = self.value(vector);
        let padded = width << bits;
        if padded > vector_width {
            let name = self.fresh(&format!("n{}_padded", id.0));
            declarations.push(format!("wire {}{name} = {{{}'d0, {base}}};", range(padded), padded - vector_width));
            base = name;
        }
        if padded < vector_width {
            let name = self.fresh(&format!("n{}_named", id.0));
            let cut = if padded == 1 { "[0]".to_string() } else { format!("[{}:0]", padded - 1) };
            declarations.push(format!("wire {}{name} = {base}{cut};", range(padded)));
            base = name;
        }
        let whole = self.value(index);
        let low = match (index_bits, bits) {
            (i, b) if i == b => whole.clone(),
            (_, 1) => format!("{whole}[0]"),
            _ => format!("{whole}[{}:0]", bits - 1),
        };
        let element = if width == 1 {
            format!("{base}[{low}]")
        } else if width.is_power_of_two() {
            format!("{base}[{{{low}, {}'d0}} +: {width}]", width.trailing_zeros())
        } else {
            let name = self.fresh(&format!("n{}_at", id.0));
            let at_bits = 32 - (padded - 1).leading_zeros();
            let wide = format!("{{{}'d0, {low}}}", at_bits - bits);
            declarations.push(format!("wire {}{name} = {wide} * {at_bits}'d{width};", range(at_bits)));
            format!("{base}[{name} +: {width}]")
        };
        if index_bits > bits {
            format!("(|{whole}[{}:{bits}]) ? {width}'d0 : {element}", index_bits - 1)
        } else {
            element
        }
    }
}

/// Some read takes the word of a write at the same edge: the write's operands stand in several places.
fn bypasses(memory: &Memory) -> bool {
    let new = |r: &ReadPort| matches!(r.timing, ReadTiming::Sync { collision: Collision::ReadNew, .. });
    memory.reads.iter().any(new)
}

/// How many places of the live part use each node.
fn uses(m: &Module, live: &Liveness) -> Vec<u32> {
    let mut uses = vec![0; m.nodes.len()];
    let mut count = |id: NodeId| uses[id.index()] += 1;
    for (index, node) in m.nodes.iter().enumerate() {
        if live.nodes[index] {
            node.args.iter().for_each(|a| count(*a));
        }
    }
    for r in &m.registers {
        count(r.next);
        r.enable.into_iter().for_each(&mut count);
    }
    for x in &m.memories {
        for read in &x.reads {
            count(read.address);
            if let ReadTiming::Sync { enable: Some(e), .. } = read.timing {
                count(e);
            }
        }
        for w in &x.writes {
            [w.enable, w.address, w.data].into_iter().for_each(&mut count);
        }
    }
    m.outputs.iter().for_each(|p| count(p.node));
    m.instances.iter().flat_map(|i| &i.inputs).for_each(|c| count(c.node()));
    m.reset.into_iter().for_each(count);
    uses
}

/// The nodes that `roots` need and they themselves, operands first.
pub fn topological(m: &Module, roots: impl IntoIterator<Item = NodeId>) -> Vec<NodeId> {
    let mut done = HashMap::new();
    let mut order = Vec::new();
    for root in roots {
        let mut stack = vec![(root, 0)];
        while let Some((id, next)) = stack.pop() {
            if next == 0 && done.insert(id, ()).is_some() {
                continue;
            }
            match m.node(id).args.get(next) {
                Some(&arg) => {
                    stack.push((id, next + 1));
                    if !done.contains_key(&arg) {
                        stack.push((arg, 0));
                    }
                }
                None => order.push(id),
            }
        }
    }
    order
}
