//! Registers and deferred wires: the two ways to use a value before it is computed.

use crate::bits::Bits;
use crate::builder::{Builder, Draft};
use crate::bundle::{Bundle, Signals, Width};
use crate::netlist::{Loc, NodeId, Op, Register};
use crate::signal::Signal;
use std::panic::Location;

/// A register of any bundle. `q` is the present value; [`Reg::next`] or [`Reg::next_if`] must be called once.
#[derive(Clone)]
pub struct Reg<B> {
    pub q: B,
    builder: Builder,
}

impl Builder {
    /// A register of the shape, without reset: it starts from a random value.
    #[track_caller]
    pub fn reg<I: Bundle<Width>>(self, name: &str, shape: I) -> Reg<I::With<Signal>>
    where
        I::With<Signal>: Signals,
    {
        let loc = Location::caller();
        let q = shape.map(name, &mut |n, width| {
            self.draft(loc, |d| {
                d.claim(n, loc);
                let index = d.module.registers.len() as u32;
                let out = d.node(Op::Reg(index), width, &[], loc);
                d.set_name(out, n);
                d.undriven.insert(out.node, ("register", loc));
                d.module.registers.push(Register {
                    name: n.to_string(),
                    width,
                    reset: None,
                    enable: None,
                    next: out.node,
                    out: out.node,
                    loc,
                });
                out
            })
        });
        Reg { q, builder: self }
    }

    /// A register without reset that follows `value` one cycle later.
    #[track_caller]
    pub fn pipe<B: Signals>(self, name: &str, value: B) -> B {
        self.pipe_reg(name, value, None, None)
    }

    /// A register that follows `value` one cycle later and is 0 in reset: for valid bits.
    #[track_caller]
    pub fn pipe_reset<B: Signals>(self, name: &str, value: B) -> B {
        self.pipe_reg(name, value, Some(Bits::ZERO), None)
    }

    /// A register without reset that takes `value` where `enable` is 1.
    #[track_caller]
    pub fn pipe_if<B: Signals>(self, name: &str, enable: Signal, value: B) -> B {
        self.pipe_reg(name, value, None, Some(enable))
    }

    #[track_caller]
    fn pipe_reg<B: Signals>(self, name: &str, value: B, reset: Option<Bits>, enable: Option<Signal>) -> B {
        let loc = Location::caller();
        value.map(name, &mut |n, next| {
            let reg = self.reg(n, next.width());
            let reg = if let Some(v) = &reset { reg.reset(v.clone()) } else { reg };
            reg.drive(next, enable, loc);
            reg.q
        })
    }

    /// A wire that is driven later, for feedback. Refused by `check()` if it is never driven.
    #[track_caller]
    pub fn deferred<I: Bundle<Width>>(self, name: &str, shape: I) -> Deferred<I::With<Signal>>
    where
        I::With<Signal>: Signals,
    {
        let loc = Location::caller();
        let value = shape.map(name, &mut |n, width| {
            self.draft(loc, |d| {
                let s = d.node(Op::Buf, width, &[], loc);
                d.undriven.insert(s.node, ("wire", loc));
                d.name_wire(s, n, loc)
            })
        });
        Deferred { value, builder: self }
    }
}

impl<B: Signals> Reg<B> {
    /// Every leaf is 0 after reset.
    pub fn reset_zero(self) -> Reg<B> {
        self.q.visit("", &mut |_, s| self.set_reset(*s, Bits::ZERO, Location::caller()));
        self
    }

    /// The next value, at every clock edge.
    #[track_caller]
    pub fn next(&self, value: B) {
        self.drive(value, None, Location::caller());
    }

    /// The next value where `enable` is 1; else the register keeps its value.
    #[track_caller]
    pub fn next_if(&self, enable: Signal, value: B) {
        self.drive(value, Some(enable), Location::caller());
    }

    fn drive(&self, value: B, enable: Option<Signal>, loc: Loc) {
        let values = value.leaves();
        for (q, v) in self.q.leaves().into_iter().zip(values) {
            self.builder.draft(loc, |d| d.drive_register(q, v, enable, loc));
        }
    }

    fn set_reset(&self, q: Signal, value: Bits, loc: Loc) {
        self.builder.draft(loc, |d| {
            if value.bit_length() > q.width {
                let name = d.describe(q);
                d.error(loc, format!("reset value {value} does not fit: {name}"));
                return;
            }
            if let Some(r) = d.register_of(q) {
                r.reset = Some(value);
            }
        });
    }
}

impl Reg<Signal> {
    /// The value after reset.
    #[track_caller]
    pub fn reset(self, value: impl Into<Bits>) -> Reg<Signal> {
        self.set_reset(self.q, value.into(), Location::caller());
        self
    }
}

impl Draft {
    fn register_of(&mut self, q: Signal) -> Option<&mut Register> {
        match self.module.nodes.get(q.node.index())?.op {
            Op::Reg(i) => self.module.registers.get_mut(i as usize),
            _ => None,
        }
    }

    fn drive_register(&mut self, q: Signal, value: Signal, enable: Option<Signal>, loc: Loc) {
        let ok = self.owns(value, loc) & enable.is_none_or(|e| self.owns(e, loc));
        if !self.take_undriven(q, loc) || !ok {
            return;
        }
        if value.width != q.width {
            let (a, b) = (self.describe(q), self.describe(value));
            self.error(loc, format!("next value of the wrong width: {a}, {b}"));
            return;
        }
        if let Some(e) = enable.filter(|e| e.width != 1) {
            let name = self.describe(e);
            self.error(loc, format!("an enable is 1 bit: {name}"));
            return;
        }
        if let Some(r) = self.register_of(q) {
            (r.next, r.enable) = (value.node, enable.map(|e| e.node));
        }
    }

    /// Marks a register or deferred wire as driven; an error the second time.
    fn take_undriven(&mut self, s: Signal, loc: Loc) -> bool {
        let first = self.undriven.remove(&s.node).is_some();
        if !first {
            let name = self.describe(s);
            self.error(loc, format!("driven twice: {name}"));
        }
        first
    }
}

/// A wire that is used before it is driven.
#[derive(Clone)]
pub struct Deferred<B> {
    pub value: B,
    builder: Builder,
}

impl<B: Signals> Deferred<B> {
    /// Connects the wire; exactly once.
    #[track_caller]
    pub fn drive(&self, value: B) {
        let loc = Location::caller();
        for (wire, v) in self.value.leaves().into_iter().zip(value.leaves()) {
            self.builder.draft(loc, |d| {
                if !d.owns(v, loc) || !d.take_undriven(wire, loc) {
                    return;
                }
                if wire.width != v.width {
                    let (a, b) = (d.describe(wire), d.describe(v));
                    d.error(loc, format!("driven by another width: {a}, {b}"));
                    return;
                }
                let args: Vec<NodeId> = vec![v.node];
                d.module.nodes[wire.node.index()].args = args;
            });
        }
    }
}
