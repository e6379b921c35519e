//! Modules: definitions, instances, replicated instances.

use crate::builder::{Builder, in_new_draft};
use crate::bundle::{Bundle, Signals, Width, join};
use crate::diagnostic::{Diagnostic, line};
use crate::netlist::{Connection, Instance, Module, Op, Port};
use crate::signal::Signal;
use std::panic::Location;
use std::sync::Arc;

/// A module definition that knows the structure of its ports: inputs `I` (widths) and outputs `O` (signals).
///
/// One definition can have many instances; [`TypedModule::check`] makes it a [`crate::Design`].
#[derive(Clone)]
pub struct TypedModule<I, O> {
    pub(crate) netlist: Arc<Module>,
    pub(crate) errors: Vec<Diagnostic>,
    pub(crate) inputs: I,
    /// Signals of this module; only their structure and widths are used outside it.
    pub(crate) outputs: O,
}

/// Describes a module: `inputs` gives the shape of the input ports, `body` computes the output bundle.
///
/// The names of the ports are the field names, nested fields joined by `_`. Values without a field name, as in a port
/// bundle that is a single signal or an array, are called `in`, `in_0`, `out`, `out_0` and so on.
#[track_caller]
pub fn module<I, O>(name: &str, inputs: I, body: impl FnOnce(Builder, I::With<Signal>) -> O) -> TypedModule<I, O>
where
    I: Bundle<Width> + Clone,
    I::With<Signal>: Signals,
    O: Signals,
{
    let loc = Location::caller();
    let shape = inputs.clone();
    let (outputs, mut draft) = in_new_draft(name, |m| {
        let inputs = shape.map("", &mut |n, width| {
            let n = &port_name("in", n);
            m.draft(loc, |d| {
                d.claim(n, loc);
                let index = d.module.inputs.len() as u32;
                let s = d.node(Op::Input(index), width, &[], loc);
                d.set_name(s, n);
                d.module.inputs.push(Port { name: n.to_string(), width, node: s.node, loc });
                s
            })
        });
        let outputs = body(m, inputs);
        outputs.visit("", &mut |n, s| {
            let n = &port_name("out", n);
            m.draft(loc, |d| {
                d.claim_output(n, *s, loc);
                if d.owns(*s, loc) {
                    d.module.outputs.push(Port { name: n.to_string(), width: s.width, node: s.node, loc });
                }
            })
        });
        m.draft(loc, |d| d.assert_no_collisions());
        outputs
    });
    let mut undriven: Vec<_> = draft.undriven.drain().collect();
    undriven.sort_by_key(|(node, _)| *node);
    for (node, (what, at)) in undriven {
        let name = draft.module.node(node).name.clone().unwrap_or_default();
        draft.error(at, format!("nothing drives the {what} `{name}` of module `{}`", draft.module.name));
    }
    if let Err(why) = crate::names::check(name) {
        draft.error(loc, why);
    }
    TypedModule { netlist: Arc::new(draft.module), errors: draft.errors, inputs, outputs }
}

/// The name of a port: the field's, after `prefix` if that alone is no name.
fn port_name(prefix: &str, field: &str) -> String {
    let named = field.starts_with(|c: char| !c.is_ascii_digit());
    if named { field.to_string() } else { join(prefix, field) }
}

/// What goes to an input of a replicated instance.
#[derive(Clone, Copy)]
pub enum LaneInput {
    /// One value for every replica.
    All(Signal),
    /// Packed values, the k-th for replica k.
    Each(Signal),
}

/// The same value (a signal or a bundle) for every replica.
pub fn all<B: Bundle<Signal>>(value: B) -> B::With<LaneInput> {
    value.map("", &mut |_, s| LaneInput::All(s))
}

/// The k-th part of `packed` (a signal or a bundle of packed signals) for replica k: as wide as all replicas' ports
/// together.
pub fn each<B: Bundle<Signal>>(packed: B) -> B::With<LaneInput> {
    packed.map("", &mut |_, s| LaneInput::Each(s))
}

impl Builder {
    /// An instance of a module.
    #[track_caller]
    pub fn instance<I, O>(self, name: &str, definition: &TypedModule<I, O>, inputs: I::With<Signal>) -> O
    where
        I: Bundle<Width>,
        I::With<Signal>: Signals,
        O: Signals,
    {
        let connections = inputs.leaves().into_iter().map(LaneInput::All).collect();
        self.place(name, definition, None, connections)
    }

    /// `count` identical instances side by side, one construct. Every output is all replicas' values packed, replica 0
    /// lowest; an input is [`all`] (one value) or [`each`] (packed values).
    #[track_caller]
    pub fn replicate<I, O>(
        self,
        name: &str,
        count: u32,
        definition: &TypedModule<I, O>,
        inputs: I::With<LaneInput>,
    ) -> O
    where
        I: Bundle<Width>,
        I::With<LaneInput>: Bundle<LaneInput>,
        O: Signals,
    {
        let mut connections = Vec::new();
        inputs.visit("", &mut |_, c| connections.push(*c));
        self.place(name, definition, Some(count), connections)
    }

    #[track_caller]
    pub(crate) fn place<I, O: Signals>(
        self,
        name: &str,
        definition: &TypedModule<I, O>,
        replicas: Option<u32>,
        connections: Vec<LaneInput>,
    ) -> O {
        let loc = Location::caller();
        let count = replicas.unwrap_or(1).max(1);
        let inst = self.draft(loc, |d| {
            d.claim(name, loc);
            d.inherit(&definition.errors);
            if replicas == Some(0) {
                d.error(loc, format!("`{name}` is replicated 0 times"));
            }
            let ports = definition.netlist.inputs.len();
            d.same_count(&format!("inputs of `{name}`"), ports, connections.len(), loc);
            d.place_clock_source(name, &definition.netlist, replicas, loc);
            let mut inputs = Vec::new();
            for (port, connection) in definition.netlist.inputs.iter().zip(connections) {
                let (s, width, connection) = match connection {
                    LaneInput::All(s) => (s, port.width, Connection::All(s.node)),
                    LaneInput::Each(s) => (s, port.width * count, Connection::Each(s.node)),
                };
                if d.owns(s, loc) && s.width != width {
                    let (what, at) = (d.describe(s), line(port.loc));
                    let port = &port.name;
                    let bits = if width == 1 { "bit" } else { "bits" };
                    d.error_about(
                        &[s],
                        loc,
                        format!("input `{port}` of `{name}` is {width} {bits} ({at}), but {what}"),
                    );
                }
                inputs.push(connection);
            }
            let inst = d.module.instances.len() as u32;
            let module = definition.netlist.clone();
            d.module.instances.push(Instance { name: name.to_string(), module, replicas, inputs, loc });
            inst
        });
        let mut port = 0;
        definition.outputs.clone().map("", &mut |n, s| {
            self.draft(loc, |d| {
                let unsound = definition.netlist.nodes.get(s.node.index()).is_none_or(|n| n.op == Op::Poison);
                let op = if unsound { Op::Poison } else { Op::InstOut { inst, port } };
                let out = d.node(op, s.width * count, &[], loc);
                port += 1;
                d.name_wire(out, &join(name, n), loc)
            })
        })
    }
}

impl crate::builder::Draft {
    /// Takes over the mistakes of a module that has an instance here.
    fn inherit(&mut self, errors: &[Diagnostic]) {
        for e in errors {
            if !self.errors.contains(e) {
                self.errors.push(e.clone());
            }
        }
    }

    /// An output may have the name of the wire or register that drives it, if that is the very same signal.
    fn claim_output(&mut self, name: &str, s: Signal, loc: crate::netlist::Loc) {
        let same = s.module == self.id && self.module.node(s.node).name.as_deref() == Some(name);
        let is_input = self.module.inputs.iter().any(|p| p.name == name);
        let twice = self.module.outputs.iter().any(|p| p.name == name);
        if twice || is_input || !same {
            self.claim(name, loc);
        } else {
            self.keep_name(name);
        }
    }
}
