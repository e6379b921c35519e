//! Where a value comes from when all that only moves bits is left out. Two items with one origin are one value: as a
//! port and what is connected to it, on every level of the hierarchy. The compiled engine keeps such a value once, and a
//! waveform has its changes once.

use crate::directory::Directory;
use crate::engine::Item;
use heddle_hdl::Bits;
use heddle_hdl::netlist::{Connection, NodeId, Op};

/// See the module's documentation.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Origin {
    /// Bits `low .. low + width` of a node in a scope.
    Node { scope: usize, node: NodeId, low: u32, width: u32 },
    /// That many bits that never change.
    Constant { value: Bits, width: u32 },
}

/// Finds origins.
pub struct Origins<'a> {
    directory: &'a Directory,
    /// For each scope below the top: the instance in its parent, and the copy.
    places: Vec<(usize, u32)>,
}

/// Bits `low .. low + width` of a node.
struct Part {
    scope: usize,
    node: NodeId,
    low: u32,
    width: u32,
}

impl Origins<'_> {
    pub fn new(directory: &Directory) -> Origins<'_> {
        let mut places = vec![(0, 0); directory.scopes.len()];
        for scope in &directory.scopes {
            for (instance, copies) in scope.children.iter().enumerate() {
                for (copy, &child) in (0..).zip(copies) {
                    places[child] = (instance, copy);
                }
            }
        }
        Origins { directory, places }
    }

    pub fn of(&self, item: Item) -> Origin {
        let d = self.directory;
        let module = |scope: usize| &d.scopes[scope].module;
        let (scope, node) = match item {
            Item::Output(k) => (0, d.top.outputs[k].node),
            Item::Signal(k) => (d.signals[k].scope, NodeId(d.signals[k].index as u32)),
            Item::Register(k) => (d.registers[k].scope, d.register(k).out),
            Item::ReadRegister(k) => {
                let entry = &d.read_registers[k];
                (entry.scope, module(entry.scope).memories[entry.index].reads[entry.port].out)
            }
            Item::Probe(k) => (d.probes[k].scope, module(d.probes[k].scope).probes[d.probes[k].index].node),
        };
        let mut part = Part { scope, node, low: 0, width: module(scope).node(node).width };
        loop {
            part = match self.before(&part) {
                Ok(part) => part,
                Err(origin) => return origin,
            };
        }
    }

    /// Where the bits of a node that moves them are before that; if they are not in one piece there, or if the node
    /// computes, they are at their origin.
    fn before(&self, part: &Part) -> Result<Part, Origin> {
        let &Part { scope, node, low, width } = part;
        let place = &self.directory.scopes[scope];
        let n = place.module.node(node);
        let at = |node| Ok(Part { scope, node, low, width });
        let here = || Err(Origin::Node { scope, node, low, width });
        match &n.op {
            Op::Buf => at(n.args[0]),
            Op::Slice(from) => Ok(Part { scope, node: n.args[0], low: from + low, width }),
            Op::ZExt if low + width <= place.module.node(n.args[0]).width => at(n.args[0]),
            Op::Cat => {
                let mut start = 0;
                for &arg in &n.args {
                    let end = start + place.module.node(arg).width;
                    if start <= low && low + width <= end {
                        return Ok(Part { scope, node: arg, low: low - start, width });
                    }
                    start = end;
                }
                here()
            }
            &Op::InstOut { inst, port } => {
                let copies = &place.children[inst as usize];
                let output = &self.directory.scopes[copies[0]].module.outputs[port as usize];
                let copy = low / output.width;
                let low = low - copy * output.width;
                match low + width <= output.width {
                    true => Ok(Part { scope: copies[copy as usize], node: output.node, low, width }),
                    false => here(),
                }
            }
            &Op::Input(port) => {
                let Some(parent) = place.parent else { return here() };
                let (instance, copy) = self.places[scope];
                match self.directory.scopes[parent].module.instances[instance].inputs[port as usize] {
                    Connection::All(node) => Ok(Part { scope: parent, node, low, width }),
                    Connection::Each(node) => Ok(Part { scope: parent, node, low: copy * n.width + low, width }),
                }
            }
            Op::Const(value) => Err(Origin::Constant { value: value.extract(low, width), width }),
            _ => here(),
        }
    }
}
