//! The builder: what a description talks to.
//!
//! While [`module`](crate::module) runs a description, its [`Draft`] lies on a thread-local stack; signals are handles
//! into the top one. A signal of another module (a finished one, or the parent's inside a child) is a located error.

use crate::bits::Bits;
use crate::bundle::{Bundle, Signals, Width, join};
use crate::diagnostic::{Diagnostic, line};
use crate::netlist::{Loc, Module, Node, NodeId, Op, Probe, Property, PropertyKind};
use crate::signal::Signal;
use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::Location;
use std::sync::atomic::{AtomicU32, Ordering};

/// A module that is being described.
pub(crate) struct Draft {
    pub(crate) id: u32,
    pub(crate) module: Module,
    pub(crate) errors: Vec<Diagnostic>,
    names: HashMap<String, NameUse>,
    /// Registers and deferred wires that nothing drives yet.
    pub(crate) undriven: HashMap<NodeId, (&'static str, Loc)>,
}

/// Who has a name.
struct NameUse {
    /// The wire that has it, which gives way to a port, state or instance; None for those.
    wire: Option<NodeId>,
    /// The number that the next wire of this name gets.
    next: u32,
}

thread_local! {
    static DRAFTS: RefCell<Vec<Draft>> = const { RefCell::new(Vec::new()) };
}

static NEXT_ID: AtomicU32 = AtomicU32::new(0);

/// Runs a description with a new draft on top of the stack, and takes the draft off again even if it panics.
pub(crate) fn in_new_draft<R>(name: &str, body: impl FnOnce(Builder) -> R) -> (R, Draft) {
    /// Cuts the stack back to this height.
    struct Guard(usize);
    impl Drop for Guard {
        fn drop(&mut self) {
            DRAFTS.with_borrow_mut(|d| d.truncate(self.0));
        }
    }
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let _guard = Guard(DRAFTS.with_borrow(Vec::len));
    DRAFTS.with_borrow_mut(|d| d.push(Draft::new(id, name)));
    let result = body(Builder { id });
    (result, DRAFTS.with_borrow_mut(|d| d.pop()).expect("the draft that was pushed above"))
}

/// The module being described. Panics if there is none: a signal was kept beyond its description.
#[track_caller]
pub(crate) fn with_draft<R>(f: impl FnOnce(&mut Draft) -> R) -> R {
    let outside = DRAFTS.with_borrow(|d| d.is_empty());
    assert!(!outside, "signals exist only while a module is being described");
    DRAFTS.with_borrow_mut(|d| f(d.last_mut().expect("not empty")))
}

/// The module being described, with an error if `signal` is not of it.
#[track_caller]
pub(crate) fn with_draft_of<R>(signal: Signal, loc: Loc, f: impl FnOnce(&mut Draft) -> R) -> R {
    with_draft(|d| {
        d.owns(signal, loc);
        f(d)
    })
}

impl Draft {
    fn new(id: u32, name: &str) -> Draft {
        Draft { id, module: Module::empty(name), errors: vec![], names: HashMap::new(), undriven: HashMap::new() }
    }

    /// Records a mistake; the same one only once, however many leaves or loop rounds make it.
    pub(crate) fn error(&mut self, loc: Loc, message: String) {
        let new = Diagnostic { loc: Some(loc), message };
        if !self.errors.contains(&new) {
            self.errors.push(new);
        }
    }

    /// Records a mistake in the use of these signals, unless one of them comes from an earlier mistake: a poisoned
    /// signal or one of another module.
    pub(crate) fn error_about(&mut self, signals: &[Signal], loc: Loc, message: String) {
        let mut sound = true;
        for &s in signals {
            sound &= self.owns(s, loc) && !self.is_poison(s);
        }
        if sound {
            self.error(loc, message);
        }
    }

    pub(crate) fn is_poison(&self, s: Signal) -> bool {
        s.module == self.id && self.module.node(s.node).op == Op::Poison
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
        let mut sound = true;
        for &a in args {
            sound &= self.owns(a, loc) && !self.is_poison(a);
        }
        if !sound {
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
        self.push(Op::Poison, width.max(1), vec![], loc)
    }

    pub(crate) fn literal(&mut self, value: Bits, width: Width, loc: Loc) -> Signal {
        if value.bit_length() > width {
            self.error(loc, format!("literal {value} needs {} bits and is to have {width}", value.bit_length()));
            return self.poison(width, loc);
        }
        self.node(Op::Const(value), width, &[], loc)
    }

    /// The signal's name for messages, or that of the signal that it is a slice of.
    pub(crate) fn known_name(&self, s: Signal) -> Option<String> {
        if s.module != self.id {
            return None;
        }
        let node = self.module.node(s.node);
        match (&node.name, &node.op) {
            (Some(name), _) => Some(name.clone()),
            (None, Op::Slice(low)) => {
                let whole = self.module.node(node.args[0]).name.as_ref()?;
                Some(format!("{whole}.slice({low}, {})", s.width))
            }
            _ => None,
        }
    }

    /// `pc is 32 bits (fetch.rs:31)`.
    pub(crate) fn describe(&self, s: Signal) -> String {
        let bits = if s.width == 1 { "bit" } else { "bits" };
        let at = if s.module == self.id { format!(" ({})", line(self.module.node(s.node).loc)) } else { String::new() };
        let node = (s.module == self.id).then(|| self.module.node(s.node));
        let name = match (self.known_name(s), node) {
            (Some(name), _) => name,
            (None, Some(Node { op: Op::Const(value), .. })) => format!("literal {value}"),
            _ => "unnamed value".into(),
        };
        format!("{name} is {} {bits}{at}", s.width)
    }

    /// Claims a name for a port, state or instance; a clash is an error.
    pub(crate) fn claim(&mut self, name: &str, loc: Loc) {
        self.legal(name, loc);
        match self.names.get(name).map(|n| n.wire) {
            None => {}
            Some(Some(wire)) => {
                let number = self.numbered(name);
                self.module.nodes[wire.index()].name = Some(number.clone());
                self.names.insert(number, NameUse { wire: Some(wire), next: 1 });
            }
            Some(None) => {
                let module = self.module.name.clone();
                self.error(loc, format!("the name `{name}` stands twice in module `{module}`"));
            }
        }
        self.names.entry(name.to_string()).or_insert(NameUse { wire: None, next: 1 }).wire = None;
    }

    /// Makes a wire keep its name: it is also the name of a port.
    pub(crate) fn keep_name(&mut self, name: &str) {
        if let Some(user) = self.names.get_mut(name) {
            user.wire = None;
        }
    }

    /// `name` if it is free, else with the first number that makes it so.
    fn numbered(&mut self, name: &str) -> String {
        let mut unique = name.to_string();
        while self.names.contains_key(&unique) {
            let taken = self.names.get_mut(name).expect("only a taken name is numbered");
            unique = join(name, &taken.next.to_string());
            taken.next += 1;
        }
        unique
    }

    /// Records an error unless tools accept the name.
    fn legal(&mut self, name: &str, loc: Loc) {
        if let Err(why) = crate::names::check(name) {
            self.error(loc, why);
        }
    }

    /// Names a wire. A wire that has another name already gets an alias; a second wire of one name gets a number.
    pub(crate) fn name_wire(&mut self, s: Signal, name: &str, loc: Loc) -> Signal {
        if s.module != self.id || self.module.node(s.node).name.as_deref() == Some(name) {
            return s;
        }
        self.legal(name, loc);
        let unnamed = self.module.node(s.node).name.is_none();
        let named = if unnamed { s } else { self.node(Op::Buf, s.width, &[s], loc) };
        let unique = self.numbered(name);
        self.names.insert(unique.clone(), NameUse { wire: Some(named.node), next: 1 });
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
    #[track_caller]
    pub(crate) fn draft<R>(self, loc: Loc, f: impl FnOnce(&mut Draft) -> R) -> R {
        with_draft(|d| {
            if !self.is_of(d) {
                d.error(loc, "the builder of another module is used here".into());
            }
            f(d)
        })
    }

    /// Whether this is the builder of the draft.
    pub(crate) fn is_of(self, draft: &Draft) -> bool {
        self.id == draft.id
    }

    /// A literal; an error if the value needs more bits than `width`.
    #[track_caller]
    pub fn lit(self, value: impl Into<Bits>, width: Width) -> Signal {
        let (value, loc) = (value.into(), Location::caller());
        self.draft(loc, |d| d.literal(value, width, loc))
    }

    /// A literal for every leaf of a shape.
    #[track_caller]
    pub fn value<V: Bundle<Bits>>(self, shape: V::With<Width>, value: V) -> V::With<Signal>
    where
        V::With<Width>: Bundle<Width, With<Signal> = V::With<Signal>>,
    {
        let loc = Location::caller();
        let (mut values, mut widths) = (Vec::new(), 0);
        value.visit("", &mut |_, v| values.push(v.clone()));
        shape.visit("", &mut |_, _| widths += 1);
        self.draft(loc, |d| d.same_count("value", widths, values.len(), loc));
        let mut values = values.into_iter();
        shape.map("", &mut |_, w| self.draft(loc, |d| d.literal(values.next().unwrap_or_default(), w, loc)))
    }

    /// All zeros of a shape.
    #[track_caller]
    pub fn zero<I: Bundle<Width>>(self, shape: I) -> I::With<Signal> {
        let loc = Location::caller();
        shape.map("", &mut |_, w| self.draft(loc, |d| d.literal(Bits::ZERO, w, loc)))
    }

    /// Says what the module is, in one line (line breaks become spaces).
    #[track_caller]
    pub fn doc(self, text: &str) {
        let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
        self.draft(Location::caller(), |d| d.module.doc = line);
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
            d.legal(name, loc);
            d.is_bit(&format!("property `{name}`"), s, loc);
            if d.module.properties.iter().any(|p| p.name == name) {
                d.error(loc, format!("two properties are called `{name}`"));
            }
            if d.owns(s, loc) {
                d.module.properties.push(Property { kind, name: name.to_string(), node: s.node, loc });
            }
        });
    }

    /// Has synthesis keep a signal with a name: logic is not moved across it. For a cut that mapping to tables misses.
    #[track_caller]
    pub fn keep(self, signal: Signal) {
        let loc = Location::caller();
        self.draft(loc, |d| {
            if !d.owns(signal, loc) {
                return;
            }
            match d.module.node(signal.node).name {
                Some(_) => d.module.kept.push(signal.node),
                None => d.error(loc, "only a signal with a name can be kept, as `wire!` gives one".to_string()),
            }
        });
    }

    /// Shows a value (or each leaf of a bundle) to simulations under a name, without a port.
    #[track_caller]
    pub fn probe<B: Signals>(self, name: &str, value: B) {
        let loc = Location::caller();
        value.visit(name, &mut |n, s| {
            self.draft(loc, |d| {
                d.legal(n, loc);
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
