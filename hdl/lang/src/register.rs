//! Registers and deferred wires: the two ways to use a value before it is computed.

use crate::bits::Bits;
use crate::builder::{Builder, Draft};
use crate::bundle::{Bundle, Signals, Width};
use crate::netlist::{Loc, Op, Register};
use crate::signal::Signal;
use std::panic::Location;

/// A register of any bundle. `q` is the present value; [`Reg::next`] or [`Reg::next_if`] must be called once.
#[derive(Clone, Copy)]
pub struct Reg<B> {
    /// The present value.
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
        let q = shape.map(name, &mut |n, width| self.draft(loc, |d| d.register(n, width, loc)));
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

    /// A pipeline register: every leaf follows one cycle later. One called `valid` is 0 in reset, and the others, which
    /// have no reset, follow only where it is 1. With several such leaves, all others follow always.
    #[track_caller]
    pub fn stage<B: Signals>(self, name: &str, value: B) -> B {
        let mut valid = Vec::new();
        value.visit(name, &mut |n, leaf| valid.extend(is_valid(n).then_some(*leaf)));
        self.staged(name, if let [one] = valid[..] { Some(one) } else { None }, value)
    }

    /// As [`Builder::stage`], where what is valid is known late: the payload is taken where `enable` is 1, which is
    /// known early and is 1 wherever the value is valid.
    #[track_caller]
    pub fn stage_if<B: Signals>(self, name: &str, enable: Signal, value: B) -> B {
        self.staged(name, Some(enable), value)
    }

    /// As [`Builder::stage`], where what is valid is known late: the payload is taken always.
    #[track_caller]
    pub fn stage_always<B: Signals>(self, name: &str, value: B) -> B {
        self.staged(name, None, value)
    }

    #[track_caller]
    fn staged<B: Signals>(self, name: &str, enable: Option<Signal>, value: B) -> B {
        value.map(name, &mut |n, leaf| match is_valid(n) {
            true => self.pipe_reg(n, leaf, Some(Bits::ZERO), None),
            false => self.pipe_reg(n, leaf, None, enable),
        })
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
            self.draft(loc, |d| {
                let q = d.register(n, next.width(), loc);
                if let Some(r) = d.register_of(q) {
                    r.reset = reset.clone();
                }
                d.drive_register(q, next, enable, loc);
                if d.is_poison(next) { d.poison(next.width, loc) } else { q }
            })
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
                d.undriven.insert(s.node, ("deferred wire", loc));
                d.name_wire(s, n, loc)
            })
        });
        Deferred { value, builder: self }
    }
}

fn is_valid(name: &str) -> bool {
    name == "valid" || name.ends_with("_valid")
}

impl<B: Signals> Reg<B> {
    /// Every leaf is 0 after reset.
    #[track_caller]
    pub fn reset_zero(self) -> Reg<B> {
        let loc = Location::caller();
        self.q.visit("", &mut |_, s| self.set_reset(*s, Bits::ZERO, loc));
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
        let (leaves, values) = (self.q.leaves(), value.leaves());
        self.builder.draft(loc, |d| {
            d.same_count("next", leaves.len(), values.len(), loc);
            leaves.into_iter().zip(values).for_each(|(q, v)| d.drive_register(q, v, enable, loc));
        });
    }

    fn set_reset(&self, q: Signal, value: Bits, loc: Loc) {
        self.builder.draft(loc, |d| {
            if !d.owns(q, loc) {
                return;
            }
            if value.bit_length() > q.width {
                let name = d.describe(q);
                d.error_about(&[q], loc, format!("reset value {value} does not fit: {name}"));
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
    /// A register that nothing drives yet.
    fn register(&mut self, name: &str, width: Width, loc: Loc) -> Signal {
        self.claim(name, loc);
        let index = self.module.registers.len() as u32;
        let out = self.node(Op::Reg(index), width, &[], loc);
        self.set_name(out, name);
        self.undriven.insert(out.node, ("register", loc));
        let (name, next, out_node) = (name.to_string(), out.node, out.node);
        let register = Register { name, width, reset: None, enable: None, next, out: out_node, loc };
        self.module.registers.push(register);
        out
    }

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
        let fits = self.same_width("next", q, value, loc);
        let enabled = enable.is_none_or(|e| self.is_bit("an enable", e, loc));
        if !fits || !enabled {
            return;
        }
        if let Some(r) = self.register_of(q) {
            (r.next, r.enable) = (value.node, enable.map(|e| e.node));
        }
    }

    /// Marks a register or deferred wire as driven; an error the second time.
    fn take_undriven(&mut self, s: Signal, loc: Loc) -> bool {
        if !self.owns(s, loc) {
            return false;
        }
        let first = self.undriven.remove(&s.node).is_some();
        if !first {
            let name = self.describe(s);
            self.error(loc, format!("driven twice: {name}"));
        }
        first
    }
}

/// A wire that is used before it is driven.
#[derive(Clone, Copy)]
pub struct Deferred<B> {
    /// What the wire carries.
    pub value: B,
    builder: Builder,
}

impl<B: Signals> Deferred<B> {
    /// Connects the wire; exactly once.
    #[track_caller]
    pub fn drive(&self, value: B) {
        let loc = Location::caller();
        let (wires, values) = (self.value.leaves(), value.leaves());
        self.builder.draft(loc, |d| {
            d.same_count("drive", wires.len(), values.len(), loc);
            for (wire, v) in wires.into_iter().zip(values) {
                if d.take_undriven(wire, loc) & d.owns(v, loc) && d.same_width("drive", wire, v, loc) {
                    d.module.nodes[wire.node.index()].args = vec![v.node];
                }
            }
        });
    }
}
