//! Evaluation order of a design's combinational logic over the whole hierarchy, and combinational loops.
//!
//! The order is a list of [`Unit`]s. A unit is a node in one scope or, where a node only moves bits (`Slice`, `Cat`,
//! `Buf`, `ZExt`, ports of instances), the bits of it that somebody uses. Bits are followed one piece at a time, so a
//! chain from copy to copy of a replicated instance through its packed output is an order and not a loop; and an
//! instance may feed an output back to an input that the output does not depend on.
//!
//! Scopes are numbered depth-first, a module before its instances, copy by copy (scope 0 is the top).

use crate::netlist::{Connection, Module, Node, NodeId, Op, ReadTiming};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// All units of a design, each after those that it needs.
pub struct Order {
    /// In an order in which they can be computed: the parts of a unit come before it.
    pub units: Vec<Unit>,
    /// The module of each scope.
    pub scopes: Vec<Arc<Module>>,
    /// For each scope and node: the unit that is the whole node.
    whole: Vec<Vec<u32>>,
}

impl Order {
    /// The number of the unit that computes a node's whole value.
    pub fn unit(&self, scope: usize, node: NodeId) -> usize {
        self.whole[scope][node.index()] as usize
    }
}

/// Bits `low .. low + width` of a node. Units of nodes that compute something are always the whole node.
#[derive(Clone, Debug)]
pub struct Unit {
    /// Its place in [`Order::scopes`].
    pub scope: u32,
    /// Of that scope's module.
    pub node: NodeId,
    /// The lowest bit.
    pub low: u32,
    /// In bits.
    pub width: u32,
    /// Where the value comes from. For a node that only moves bits ([`moves_bits`]): the parts, side by side, the
    /// first lowest, zeros above. For others: one for each operand; an asynchronous memory read has its address. Empty
    /// for constants, registers, synchronous reads, and the top's inputs.
    pub args: Vec<Piece>,
}

/// Bits `low .. low + width` of the value of unit `unit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Its place in [`Order::units`].
    pub unit: u32,
    /// The lowest bit.
    pub low: u32,
    /// In bits.
    pub width: u32,
}

/// Whether a node in this scope (`top`: in scope 0) is made of bits of other nodes without change.
pub fn moves_bits(op: &Op, top: bool) -> bool {
    match op {
        Op::Buf | Op::Slice(_) | Op::Cat | Op::ZExt | Op::InstOut { .. } => true,
        Op::Input(_) => !top,
        _ => false,
    }
}

/// A combinational loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Loop {
    /// Each feeds the next, and the last feeds the first. Paths from the top, with the bits where only some are
    /// concerned; values without a name as `path (file:line)`.
    pub signals: Vec<String>,
}

impl fmt::Display for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "combinational loop: ")?;
        self.signals.iter().try_for_each(|s| write!(f, "{s} -> "))?;
        f.write_str(&self.signals[0])
    }
}

impl std::error::Error for Loop {}

/// The order of all nodes of the design, or one of its loops. Takes time and memory in proportion to the flattened
/// design.
pub fn order(top: &Arc<Module>) -> Result<Order, Loop> {
    let mut search = Search::new(top);
    for scope in 0..search.scopes.len() {
        for node in 0..search.scopes[scope].module.nodes.len() {
            let width = search.scopes[scope].module.nodes[node].width;
            let unit = search.unit(scope, NodeId(node as u32), 0, width);
            search.finish(unit)?;
        }
    }
    Ok(search.into_order())
}

struct Scope {
    module: Arc<Module>,
    /// The instance's name with the copy's number; empty for the top.
    name: String,
    /// Scope, instance, copy.
    parent: Option<(usize, usize, u32)>,
    /// For each instance, the scope of each copy.
    children: Vec<Vec<usize>>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum State {
    New,
    /// Being finished: what it needs is, or is about to be.
    Open,
    Done,
}

/// Depth-first search along "needs".
struct Search {
    scopes: Vec<Scope>,
    units: Vec<Unit>,
    states: Vec<State>,
    /// Units in the order in which they were finished.
    done: Vec<u32>,
    whole: Vec<Vec<u32>>,
    parts: HashMap<(u32, NodeId, u32, u32), u32>,
}

const NO_UNIT: u32 = u32::MAX;

impl Search {
    fn new(top: &Arc<Module>) -> Search {
        let mut scopes = Vec::new();
        add_scopes(&mut scopes, top, String::new(), None);
        let whole = scopes.iter().map(|s| vec![NO_UNIT; s.module.nodes.len()]).collect();
        Search { scopes, units: Vec::new(), states: Vec::new(), done: Vec::new(), whole, parts: HashMap::new() }
    }

    fn node(&self, scope: usize, node: NodeId) -> &Node {
        self.scopes[scope].module.node(node)
    }

    /// The unit of these bits of a node.
    fn unit(&mut self, scope: usize, node: NodeId, low: u32, width: u32) -> u32 {
        let new = self.units.len() as u32;
        let unit = if width == self.node(scope, node).width {
            let slot = &mut self.whole[scope][node.index()];
            if *slot == NO_UNIT {
                *slot = new;
            }
            *slot
        } else {
            *self.parts.entry((scope as u32, node, low, width)).or_insert(new)
        };
        if unit == new {
            self.units.push(Unit { scope: scope as u32, node, low, width, args: Vec::new() });
            self.states.push(State::New);
        }
        unit
    }

    /// Where to find bits of a node.
    fn piece(&mut self, scope: usize, node: NodeId, low: u32, width: u32) -> Piece {
        let n = self.node(scope, node);
        if moves_bits(&n.op, scope == 0) {
            Piece { unit: self.unit(scope, node, low, width), low: 0, width }
        } else {
            let all = n.width;
            Piece { unit: self.unit(scope, node, 0, all), low, width }
        }
    }

    /// Finishes a unit and all that it needs.
    fn finish(&mut self, unit: u32) -> Result<(), Loop> {
        // Units being finished, each needed by the one before, with the number of the next piece to look at.
        let mut stack: Vec<(u32, usize)> = Vec::new();
        let mut next = Some(unit);
        loop {
            if let Some(unit) = next.take() {
                match self.states[unit as usize] {
                    State::New => {
                        self.states[unit as usize] = State::Open;
                        self.units[unit as usize].args = self.args(unit);
                        stack.push((unit, 0));
                    }
                    State::Open => return Err(self.describe(&stack, unit)),
                    State::Done => {}
                }
            }
            let Some((unit, position)) = stack.last_mut() else { return Ok(()) };
            match self.units[*unit as usize].args.get(*position) {
                Some(piece) => {
                    *position += 1;
                    next = Some(piece.unit);
                }
                None => {
                    self.states[*unit as usize] = State::Done;
                    self.done.push(*unit);
                    stack.pop();
                }
            }
        }
    }

    fn args(&mut self, unit: u32) -> Vec<Piece> {
        let Unit { scope, node, low, width, .. } = self.units[unit as usize];
        let scope = scope as usize;
        let module = self.scopes[scope].module.clone();
        let n = module.node(node);
        match &n.op {
            Op::Buf => n.args.iter().map(|&a| self.piece(scope, a, low, width)).collect(),
            Op::Slice(from) => n.args.iter().map(|&a| self.piece(scope, a, from + low, width)).collect(),
            Op::Cat | Op::ZExt => {
                let parts: Vec<_> = n.args.iter().map(|&a| (scope, a, module.node(a).width)).collect();
                self.pieces(&parts, low, width)
            }
            Op::InstOut { inst, port } => {
                let driver = &module.instances[*inst as usize].module.outputs[*port as usize];
                let copies = &self.scopes[scope].children[*inst as usize];
                let parts: Vec<_> = copies.iter().map(|&copy| (copy, driver.node, driver.width)).collect();
                self.pieces(&parts, low, width)
            }
            Op::Input(port) => match self.scopes[scope].parent {
                None => Vec::new(),
                Some((parent, instance, copy)) => {
                    let connection = self.scopes[parent].module.instances[instance].inputs[*port as usize];
                    let from = match connection {
                        Connection::All(_) => low,
                        Connection::Each(_) => copy * n.width + low,
                    };
                    vec![self.piece(parent, connection.node(), from, width)]
                }
            },
            Op::MemRead { mem, port } => {
                let read = &module.memories[*mem as usize].reads[*port as usize];
                match read.timing {
                    ReadTiming::Async => vec![self.piece(scope, read.address, 0, module.node(read.address).width)],
                    ReadTiming::Sync { .. } => Vec::new(),
                }
            }
            _ => n.args.iter().map(|&a| self.piece(scope, a, 0, module.node(a).width)).collect(),
        }
    }

    /// Bits `low .. low + width` of parts (scope, node, width) that lie side by side, the first lowest.
    fn pieces(&mut self, parts: &[(usize, NodeId, u32)], low: u32, width: u32) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut start = 0;
        for &(scope, node, part_width) in parts {
            let from = low.max(start);
            let to = (low + width).min(start + part_width);
            if from < to {
                pieces.push(self.piece(scope, node, from - start, to - from));
            }
            start += part_width;
        }
        pieces
    }

    /// The loop that closes where the unit on top of the stack needs `unit`, which is on the stack too.
    fn describe(&self, stack: &[(u32, usize)], unit: u32) -> Loop {
        let first = stack.iter().position(|(u, _)| *u == unit).expect("an open unit is on the stack");
        let mut signals: Vec<String> = stack[first..].iter().rev().map(|(u, _)| self.name(*u)).collect();
        signals.dedup();
        Loop { signals }
    }

    fn name(&self, unit: u32) -> String {
        let Unit { scope, node, low, width, .. } = self.units[unit as usize];
        let module = &self.scopes[scope as usize].module;
        let n = module.node(node);
        let local = match (&n.op, &n.name) {
            (Op::Input(port), _) => module.inputs[*port as usize].name.clone(),
            (_, Some(name)) => name.clone(),
            (Op::InstOut { inst, port }, None) => {
                let instance = &module.instances[*inst as usize];
                format!("{}.{}", instance.name, instance.module.outputs[*port as usize].name)
            }
            _ => match module.outputs.iter().find(|o| o.node == node) {
                Some(output) => output.name.clone(),
                None => format!("({}:{})", n.loc.file(), n.loc.line()),
            },
        };
        let range = match width {
            _ if width == n.width => String::new(),
            1 => format!("[{low}]"),
            _ => format!("[{}:{low}]", low + width - 1),
        };
        let mut path = local + &range;
        let mut at = scope as usize;
        while let Some((parent, ..)) = self.scopes[at].parent {
            path = format!("{}.{path}", self.scopes[at].name);
            at = parent;
        }
        path
    }

    /// Renumbers the units by the order in which they were finished.
    fn into_order(self) -> Order {
        let mut place = vec![NO_UNIT; self.units.len()];
        self.done.iter().enumerate().for_each(|(k, &unit)| place[unit as usize] = k as u32);
        let mut units: Vec<Option<Unit>> = self.units.into_iter().map(Some).collect();
        let units = self.done.iter().map(|&u| {
            let mut unit = units[u as usize].take().expect("every unit is finished once");
            unit.args.iter_mut().for_each(|piece| piece.unit = place[piece.unit as usize]);
            unit
        });
        let units = units.collect();
        let whole = self.whole.into_iter().map(|s| s.into_iter().map(|u| place[u as usize]).collect()).collect();
        let scopes = self.scopes.into_iter().map(|scope| scope.module).collect();
        Order { units, scopes, whole }
    }
}

/// Adds a scope and all below it; the recursion is as deep as the hierarchy.
fn add_scopes(
    scopes: &mut Vec<Scope>,
    module: &Arc<Module>,
    name: String,
    parent: Option<(usize, usize, u32)>,
) -> usize {
    let scope = scopes.len();
    scopes.push(Scope { module: module.clone(), name, parent, children: Vec::new() });
    for (k, instance) in module.instances.iter().enumerate() {
        let copies = (0..instance.copies()).map(|copy| {
            let name = match instance.replicas {
                None => instance.name.clone(),
                Some(_) => format!("{}[{copy}]", instance.name),
            };
            add_scopes(scopes, &instance.module, name, Some((scope, k, copy)))
        });
        let copies = copies.collect();
        scopes[scope].children.push(copies);
    }
    scope
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlist::{Instance, Port, Register};
    use std::panic::Location;

    /// A module under construction, as plain data.
    struct Draft(Module);

    impl Draft {
        fn new(name: &str) -> Draft {
            Draft(Module::empty(name))
        }

        #[track_caller]
        fn node(&mut self, op: Op, width: u32, args: &[NodeId]) -> NodeId {
            let loc = Location::caller();
            self.0.nodes.push(Node { op, width, args: args.to_vec(), name: None, loc });
            NodeId(self.0.nodes.len() as u32 - 1)
        }

        fn named(&mut self, name: &str, op: Op, width: u32, args: &[NodeId]) -> NodeId {
            let id = self.node(op, width, args);
            self.0.nodes[id.index()].name = Some(name.into());
            id
        }

        fn input(&mut self, name: &str, width: u32) -> NodeId {
            let node = self.node(Op::Input(self.0.inputs.len() as u32), width, &[]);
            self.0.inputs.push(Port { name: name.into(), width, node, loc: Location::caller() });
            node
        }

        fn output(&mut self, name: &str, node: NodeId) {
            let width = self.0.nodes[node.index()].width;
            self.0.outputs.push(Port { name: name.into(), width, node, loc: Location::caller() });
        }

        fn instance(&mut self, name: &str, module: &Arc<Module>, replicas: Option<u32>, inputs: Vec<Connection>) {
            let (name, module, loc) = (name.into(), module.clone(), Location::caller());
            self.0.instances.push(Instance { name, module, replicas, inputs, loc });
        }

        fn module(self) -> Arc<Module> {
            Arc::new(self.0)
        }
    }

    /// out = in + 1.
    fn increment() -> Arc<Module> {
        let mut d = Draft::new("increment");
        let input = d.input("in", 4);
        let one = d.node(Op::Const(1u8.into()), 4, &[]);
        let sum = d.named("sum", Op::Add, 4, &[input, one]);
        d.output("out", sum);
        d.module()
    }

    /// Three lanes; lane k's input is lane k - 1's output, the first lane's is the last one's (`ring`) or 0.
    fn chain(ring: bool) -> Arc<Module> {
        let mut d = Draft::new("chain");
        let outs = d.node(Op::InstOut { inst: 0, port: 0 }, 12, &[]);
        let first = if ring { d.node(Op::Slice(8), 4, &[outs]) } else { d.node(Op::Const(0u8.into()), 4, &[]) };
        let rest = d.node(Op::Slice(0), 8, &[outs]);
        let ins = d.node(Op::Cat, 12, &[first, rest]);
        d.instance("lane", &increment(), Some(3), vec![Connection::Each(ins)]);
        d.output("outs", outs);
        d.module()
    }

    #[test]
    fn a_chain_through_a_packed_output_is_no_loop() {
        let order = order(&chain(false)).unwrap();
        for (k, unit) in order.units.iter().enumerate() {
            assert!(unit.args.iter().all(|piece| (piece.unit as usize) < k));
        }
        let sum = NodeId(2);
        assert!(order.unit(1, sum) < order.unit(2, sum) && order.unit(2, sum) < order.unit(3, sum));
        let outs = &order.units[order.unit(0, NodeId(0))];
        assert_eq!(
            outs.args.iter().map(|p| p.unit as usize).collect::<Vec<_>>(),
            [1, 2, 3].map(|s| order.unit(s, sum))
        );
    }

    #[test]
    fn a_ring_through_a_packed_output_is_a_loop() {
        let mut signals = order(&chain(true)).err().unwrap().signals;
        for k in 0..3 {
            for local in ["in", "sum"] {
                let path = format!("lane[{k}].{local}");
                assert_eq!(signals.iter().filter(|s| **s == path).count(), 1, "{path} in {signals:?}");
            }
        }
        signals.retain(|s| !s.starts_with("lane[") && !s.starts_with("lane.out["));
        assert!(signals.iter().all(|s| s.contains("order.rs:")), "{signals:?}");
    }

    #[test]
    fn a_loop_is_listed_in_the_direction_of_flow() {
        let mut d = Draft::new("top");
        let a = d.named("a", Op::Not, 1, &[NodeId(2)]);
        let b = d.named("b", Op::Not, 1, &[a]);
        d.named("c", Op::Not, 1, &[b]);
        assert_eq!(order(&d.module()).err().unwrap().to_string(), "combinational loop: b -> c -> a -> b");
    }

    #[test]
    fn a_wire_that_drives_itself_is_a_loop() {
        let mut d = Draft::new("top");
        d.named("w", Op::Buf, 4, &[NodeId(0)]);
        assert_eq!(order(&d.module()).err().unwrap().signals, ["w"]);
    }

    #[test]
    fn bits_of_a_wire_may_feed_other_bits_of_it() {
        let mut d = Draft::new("top");
        let a = d.input("a", 1);
        let w = NodeId(2);
        let low = d.node(Op::Slice(0), 3, &[w]);
        d.named("w", Op::Cat, 4, &[a, low]);
        assert!(order(&d.module()).is_ok());
    }

    #[test]
    fn an_instance_may_feed_an_input_that_the_output_does_not_need() {
        let mut inner = Draft::new("cross");
        let (a, b) = (inner.input("a", 1), inner.input("b", 1));
        let (x, y) = (inner.node(Op::Not, 1, &[a]), inner.node(Op::Not, 1, &[b]));
        inner.output("x", x);
        inner.output("y", y);
        let inner = inner.module();
        for back in [0, 1] {
            let mut d = Draft::new("top");
            let a = d.input("a", 1);
            let x = d.node(Op::InstOut { inst: 0, port: 0 }, 1, &[]);
            let y = d.node(Op::InstOut { inst: 0, port: 1 }, 1, &[]);
            let b = if back == 0 { x } else { y };
            d.instance("cross", &inner, None, vec![Connection::All(a), Connection::All(b)]);
            d.output("y", y);
            assert_eq!(order(&d.module()).is_ok(), back == 0);
        }
    }

    #[test]
    fn registers_end_a_path() {
        let mut d = Draft::new("counter");
        let q = d.node(Op::Reg(0), 4, &[]);
        let next = d.node(Op::Not, 4, &[q]);
        let loc = Location::caller();
        d.0.registers.push(Register { name: "q".into(), width: 4, reset: None, enable: None, next, out: q, loc });
        assert!(order(&d.module()).is_ok());
    }

    #[test]
    fn long_chains_do_not_recurse() {
        let mut d = Draft::new("long");
        let n = 200_000;
        for k in 0..n {
            d.node(Op::Not, 1, &[NodeId(k + 1)]);
        }
        d.input("a", 1);
        assert_eq!(order(&d.module()).unwrap().units.len(), n as usize + 1);
    }
}
