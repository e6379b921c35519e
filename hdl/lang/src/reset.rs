//! Instances that something inside the design resets, beside the design's own reset.
//!
//! The language has one reset, and no module sees it. A module whose instance is to be reset alone is made anew, with
//! an input more: where that is 1, registers with a reset value take it, no memory is written, and no property is
//! looked at, as in a reset; so for all instances in it. What holds no such state stays as it is.

use crate::bits::Bits;
use crate::builder::Builder;
use crate::bundle::{Bundle, Signals, Width};
use crate::module::{LaneInput, TypedModule};
use crate::netlist::{Connection, Loc, Module, Node, NodeId, Op, Port, PropertyKind};
use crate::signal::Signal;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::Arc;

/// The input that resets a module alone.
pub const LOCAL_RESET: &str = "local_rst";

impl Builder {
    /// An instance of a module that is also reset where `reset` (1 bit) is 1. Its definition has another port then, so
    /// the same one without it needs another name.
    #[track_caller]
    pub fn instance_with_reset<I, O>(
        self,
        name: &str,
        definition: &TypedModule<I, O>,
        reset: Signal,
        inputs: I::With<Signal>,
    ) -> O
    where
        I: Bundle<Width> + Clone,
        I::With<Signal>: Signals,
        O: Signals,
    {
        let loc = Location::caller();
        self.draft(loc, |d| {
            d.is_bit(&format!("the reset of `{name}`"), reset, loc);
            let foreign = definition.netlist.modules().into_iter().find_map(|m| {
                let foreign = m.foreign.as_ref()?;
                (!foreign.resets.is_empty()).then(|| foreign.name.clone())
            });
            if let Some(foreign) = foreign {
                d.error(
                    loc,
                    format!("`{name}` has the foreign module `{foreign}` in it, which only the design resets"),
                );
            }
        });
        let mut connections: Vec<LaneInput> = inputs.leaves().into_iter().map(LaneInput::All).collect();
        let netlist = resettable(&definition.netlist, loc);
        if netlist.inputs.len() > definition.netlist.inputs.len() {
            connections.push(LaneInput::All(reset));
        }
        self.place(name, &TypedModule { netlist, ..definition.clone() }, None, connections)
    }
}

/// The module with the input [`LOCAL_RESET`] last, or the same if it has nothing to reset.
pub fn resettable(top: &Arc<Module>, loc: Loc) -> Arc<Module> {
    let mut made: HashMap<*const Module, Arc<Module>> = HashMap::new();
    for module in top.modules() {
        let new = with_input(&module, &made, loc);
        made.insert(Arc::as_ptr(&module), new);
    }
    made[&Arc::as_ptr(top)].clone()
}

/// Of one module, when those of its instances are made.
fn with_input(old: &Arc<Module>, made: &HashMap<*const Module, Arc<Module>>, loc: Loc) -> Arc<Module> {
    let below = |k: usize| &made[&Arc::as_ptr(&old.instances[k].module)];
    let changed = |k: &usize| below(*k).inputs.len() > old.instances[*k].module.inputs.len();
    let instances: Vec<usize> = (0..old.instances.len()).filter(changed).collect();
    let holds = old.registers.iter().any(|r| r.reset.is_some())
        || old.memories.iter().any(|m| !m.writes.is_empty())
        || !old.properties.is_empty()
        || !instances.is_empty();
    if !holds || old.foreign.is_some() {
        return old.clone();
    }
    let mut m = Module::clone(old);
    let node = |m: &mut Module, op: Op, width: u32, args: &[NodeId]| {
        m.nodes.push(Node { op, width, args: args.to_vec(), name: None, loc });
        NodeId(m.nodes.len() as u32 - 1)
    };
    let reset = node(&mut m, Op::Input(old.inputs.len() as u32), 1, &[]);
    m.nodes[reset.index()].name = Some(LOCAL_RESET.into());
    m.inputs.push(Port { name: LOCAL_RESET.into(), width: 1, node: reset, loc });
    for k in 0..m.registers.len() {
        let r = m.registers[k].clone();
        let Some(value) = r.reset else { continue };
        // Without an enable: synthesis finds the reset first, and then what holds the value.
        let mut next = r.next;
        if let Some(enable) = r.enable {
            next = node(&mut m, Op::Mux, r.width, &[enable, next, r.out]);
        }
        let value = node(&mut m, Op::Const(value), r.width, &[]);
        m.registers[k].next = node(&mut m, Op::Mux, r.width, &[reset, value, next]);
        m.registers[k].enable = None;
    }
    for k in 0..m.memories.len() {
        for port in 0..m.memories[k].writes.len() {
            let enable = m.memories[k].writes[port].enable;
            let width = m.node(enable).width;
            let none = node(&mut m, Op::Const(Bits::ZERO), width, &[]);
            m.memories[k].writes[port].enable = node(&mut m, Op::Mux, width, &[reset, none, enable]);
        }
    }
    for k in 0..m.properties.len() {
        let value = m.properties[k].node;
        m.properties[k].node = match m.properties[k].kind {
            PropertyKind::Cover => {
                let not = node(&mut m, Op::Not, 1, &[reset]);
                node(&mut m, Op::And, 1, &[not, value])
            }
            PropertyKind::Assert | PropertyKind::Assume => node(&mut m, Op::Or, 1, &[reset, value]),
        };
    }
    for k in instances {
        m.instances[k].module = below(k).clone();
        m.instances[k].inputs.push(Connection::All(reset));
    }
    Arc::new(m)
}
