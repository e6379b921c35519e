//! The builder: what a description talks to.
//!
//! While [`module`](crate::module) runs a description, its [`Draft`] lies on a thread-local stack; signals are handles into the top
//! one. A signal of another module (a finished one, or the parent's inside a child) is a located error.

use crate::bits::Bits;
use crate::bundle::{Bundle, Signals, Width};
use crate::diagnostic::{Diagnostic, line};
use crate::netlist::{Loc, Module, Node, NodeId, Op, Probe, Property, PropertyKind};
use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

/// A module that is being described.
pub(crate) struct Draft {
    pub(crate) id: u32,
    pub(crate) module: Module,
    pub(crate) errors: Vec<Diagnostic>,
    /// Names in use, and the number that the next wire of this name gets.
    names: HashMap<String, u32>,
    /// Registers and deferred wires that nothing drives yet.
    pub(crate) undriven: HashMap<NodeId, (&'static str, Loc)>,
    pub(crate) poisoned: HashSet<NodeId>,
}

thread_local! {
    static DRAFTS: RefCell<Vec<Draft>> = const { RefCell::new(Vec::new()) };
}

static NEXT_ID: AtomicU32 = AtomicU32::new(0);

/// Runs a description with a new draft on top of the stack, and takes the draft off again even if it panics.
pub(crate) fn in_new_draft<R>(name: &str, body: impl FnOnce(Builder) -> R) -> (R, Draft) {
    struct Guard;
    impl Drop for Guard {
        fn drop(&mut self) {
            if std::thread::panicking() {
                DRAFTS.with_borrow_mut(|d| d.pop());
            }
        }
    }
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    DRAFTS.with_borrow_mut(|d| d.push(Draft::new(id, name)));
    let guard = Guard;
    let result = body(Builder { id });
    drop(guard);
    (result, DRAFTS.with_borrow_mut(|d| d.pop()).expect("the draft that was pushed above"))
}

/// The module being described.
pub(crate) fn with_draft<R>(f: impl FnOnce(&mut Draft) -> R) -> R {
    DRAFTS.with_borrow_mut(|d| f(d.last_mut().expect("signals exist only while a module is being described")))
}

/// The module being described, with an error if `signal` is not of it.
pub(crate) fn with_draft_of<R>(signal: Signal, loc: Loc, f: impl FnOnce(&mut Draft) -> R) -> R {
    with_draft(|d| {
        d.owns(signal, loc);
        f(d)
    })
}

impl Draft {
    fn new(id: u32, name: &str) -> Draft {
        let module = Module {
            name: name.to_string(),
            doc: String::new(),
            inputs: vec![],
            outputs: vec![],
            nodes: vec![],
            registers: vec![],
            memories: vec![],
            instances: vec![],
            properties: vec![],
            probes: vec![],
        };
        let (names, undriven, poisoned) = (HashMap::new(), HashMap::new(), HashSet::new());
        Draft { id, module, errors: vec![], names, undriven, poisoned }
    }

    pub(crate) fn error(&mut self, loc: Loc, message: String) {
        self.errors.push(Diagnostic { loc: Some(loc), message });
    }

    /// Records an error if the signal belongs to another module.
    pub(crate) fn owns(&mut self, s: Signal, loc: Loc) -> bool {
        if s.module != self.id {
            let name = self.module.name.clone();
            self.error(loc, format!("a signal of another module is used in `{name}`; pass it through a port"));
        }
        s.module == self.id
    }

    pub(crate) fn handle(&self, node: NodeId) -> Signal {
        Signal { module: self.id, node, width: self.module.node(node).width }
    }

    pub(crate) fn node(&mut self, op: Op, width: Width, args: &[Signal], loc: Loc) -> Signal {
        if args.iter().any(|a| a.module != self.id) {
            args.iter().for_each(|&a| {
                self.owns(a, loc);
            });
            return self.poison(width, loc);
        }
        if width == 0 {
            self.error(loc, "a signal has at least 1 bit".into());
            return self.poison(1, loc);
        }
        self.push(op, width, args.iter().map(|a| a.node).collect(), loc)
    }

    fn push(&mut self, op: Op, width: Width, args: Vec<NodeId>, loc: Loc) -> Signal {
        let node = NodeId(self.module.nodes.len() as u32);
        self.module.nodes.push(Node { op, width, args, name: None, loc });
        Signal { module: self.id, node, width }
    }

    pub(crate) fn poison(&mut self, width: Width, loc: Loc) -> Signal {
        let s = self.push(Op::Poison, width.max(1), vec![], loc);
        self.poisoned.insert(s.node);
        s
    }

    pub(crate) fn literal(&mut self, value: Bits, width: Width, loc: Loc) -> Signal {
        if value.bit_length() > width {
            self.error(loc, format!("literal {value} needs {} bits, but has {width}", value.bit_length()));
            return self.poison(width, loc);
        }
        self.node(Op::Const(value), width, &[], loc)
    }

    /// The signal's name for messages.
    pub(crate) fn short_name(&self, s: Signal) -> String {
        let node = (s.module == self.id).then(|| self.module.node(s.node));
        match node {
            Some(Node { name: Some(name), .. }) => name.clone(),
            Some(Node { op: Op::Const(v), .. }) => format!("literal {v}"),
            _ => "unnamed value".to_string(),
        }
    }

    /// `pc is 32 bits (fetch.rs:31)`.
    pub(crate) fn describe(&self, s: Signal) -> String {
        let bits = if s.width == 1 { "bit" } else { "bits" };
        let at = if s.module == self.id { format!(" ({})", line(self.module.node(s.node).loc)) } else { String::new() };
        format!("{} is {} {bits}{at}", self.short_name(s), s.width)
    }

    /// Claims a name for a port, state or instance; a clash is an error.
    pub(crate) fn claim(&mut self, name: &str, loc: Loc) {
        self.legal(name, loc);
        if self.names.insert(name.to_string(), 1).is_some() {
            let module = self.module.name.clone();
            self.error(loc, format!("the name `{name}` stands twice in module `{module}`"));
        }
    }

    fn legal(&mut self, name: &str, loc: Loc) {
        if let Err(why) = crate::names::check(name) {
            self.error(loc, why);
        }
    }

    /// Names a wire. A wire that has a name already gets an alias; a second wire of one name gets a number.
    pub(crate) fn name_wire(&mut self, s: Signal, name: &str, loc: Loc) -> Signal {
        if s.module != self.id {
            return s;
        }
        self.legal(name, loc);
        let mut unique = name.to_string();
        while let Some(next) = self.names.get_mut(&unique) {
            unique = format!("{name}_{next}");
            *next += 1;
        }
        self.names.insert(unique.clone(), 1);
        let named = match self.module.node(s.node) {
            Node { name: None, op, .. } if *op != Op::Poison => s,
            _ => self.push(Op::Buf, s.width, vec![s.node], loc),
        };
        self.module.nodes[named.node.index()].name = Some(unique);
        named
    }

    /// Gives a node a name that was claimed before.
    pub(crate) fn set_name(&mut self, s: Signal, name: &str) {
        self.module.nodes[s.node.index()].name = Some(name.to_string());
    }
}

/// The module being described: where its state, instances and properties are declared.
#[derive(Clone, Copy)]
pub struct Builder {
    id: u32,
}

impl Builder {
    /// The draft of this builder's module; an error in whatever is on top if a parent's builder is used in a child.
    pub(crate) fn draft<R>(self, loc: Loc, f: impl FnOnce(&mut Draft) -> R) -> R {
        with_draft(|d| {
            if d.id != self.id {
                d.error(loc, "the builder of another module is used here".into());
            }
            f(d)
        })
    }

    /// A literal; an error if the value needs more bits than `width`.
    #[track_caller]
    pub fn lit(self, value: impl Into<Bits>, width: Width) -> Signal {
        crate::bundle::literal(value.into(), width)
    }

    /// A literal for every leaf of a shape.
    #[track_caller]
    pub fn value<V: Bundle<Bits>>(self, shape: V::With<Width>, value: V) -> V::With<Signal>
    where
        V::With<Width>: Bundle<Width, With<Signal> = V::With<Signal>>,
    {
        let mut values = Vec::new();
        value.visit("", &mut |_, v| values.push(v.clone()));
        let mut values = values.into_iter();
        shape.map("", &mut |_, w| self.lit(values.next().unwrap_or_default(), w))
    }

    /// All zeros of a shape.
    #[track_caller]
    pub fn zero<I: Bundle<Width>>(self, shape: I) -> I::With<Signal> {
        shape.map("", &mut |_, w| self.lit(0u32, w))
    }

    /// Says what the module is, in one line.
    #[track_caller]
    pub fn doc(self, text: &str) {
        self.draft(Location::caller(), |d| d.module.doc = text.to_string());
    }

    /// Must be 1 at every clock edge without reset.
    #[track_caller]
    pub fn assert(self, name: &str, holds: Signal) {
        self.property(PropertyKind::Assert, name, holds, Location::caller());
    }
    /// May be relied on to be 1 at every clock edge without reset; simulation checks it.
    #[track_caller]
    pub fn assume(self, name: &str, holds: Signal) {
        self.property(PropertyKind::Assume, name, holds, Location::caller());
    }
    /// Should be 1 at some clock edge.
    #[track_caller]
    pub fn cover(self, name: &str, happens: Signal) {
        self.property(PropertyKind::Cover, name, happens, Location::caller());
    }

    fn property(self, kind: PropertyKind, name: &str, s: Signal, loc: Loc) {
        self.draft(loc, |d| {
            if s.width != 1 {
                let what = d.describe(s);
                d.error(loc, format!("property `{name}` must be 1 bit: {what}"));
            }
            if d.module.properties.iter().any(|p| p.name == name) {
                d.error(loc, format!("two properties are called `{name}`"));
            }
            if d.owns(s, loc) {
                d.module.properties.push(Property { kind, name: name.to_string(), node: s.node, loc });
            }
        });
    }

    /// Shows a value (or each leaf of a bundle) to simulations under a name, without a port.
    #[track_caller]
    pub fn probe<B: Signals>(self, name: &str, value: B) {
        let loc = Location::caller();
        value.visit(name, &mut |n, s| {
            self.draft(loc, |d| {
                if d.module.probes.iter().any(|p| p.name == n) {
                    d.error(loc, format!("two probes are called `{n}`"));
                }
                if d.owns(*s, loc) {
                    d.module.probes.push(Probe { name: n.to_string(), node: s.node });
                }
            });
        });
    }
}
