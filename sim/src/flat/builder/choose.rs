//! Choices.

use super::Builder;
use crate::flat::{Id, Op, container};
use heddle_hdl::bits::low_mask;

impl Builder {
    pub fn mux(&mut self, selector: Id, mut on: Id, mut off: Id) -> Id {
        if let Some(value) = self.value(selector) {
            return if value == 1 { on } else { off };
        }
        if *self.op(selector) == Op::Not {
            return self.mux(self.args(selector)[0], off, on);
        }
        let width = self.width(on);
        if *self.op(on) == Op::Mux && self.args(on)[0] == selector {
            on = self.args(on)[1];
        }
        if *self.op(off) == Op::Mux && self.args(off)[0] == selector {
            off = self.args(off)[2];
        }
        if on == off {
            return on;
        }
        if width == 1 && self.is(on, 1) && self.is(off, 0) {
            return selector;
        }
        if width == 1 && self.is(on, 0) && self.is(off, 1) {
            return self.not(selector);
        }
        if self.lanes(selector) > 1 {
            return self.blend(selector, on, off);
        }
        if let Some((subject, labels)) = self.labels(selector)
            && self.continues(subject, off)
        {
            let arms = vec![on; labels.len()];
            return self.case(subject, labels, off, arms);
        }
        self.node(Op::Mux, width, &[selector, on, off])
    }

    /// A choice lane by lane.
    fn blend(&mut self, selector: Id, on: Id, off: Id) -> Id {
        let width = self.width(on);
        if width == 1 {
            let (on, off) = (self.and(selector, on), self.and_not(off, selector));
            return self.or(on, off);
        }
        let copies = self.sext(selector, container(width));
        self.node(Op::Blend, width, &[copies, on, off])
    }

    /// The selector, of one lane, as "subject is one of these labels".
    fn labels(&self, selector: Id) -> Option<(Id, Vec<u64>)> {
        match *self.op(selector) {
            _ if self.lanes(selector) > 1 => None,
            Op::Eq => Some((self.args(selector)[0], vec![self.value(self.args(selector)[1])?])),
            Op::Or => {
                let (subject, mut labels) = self.labels(self.args(selector)[0])?;
                let (other, more) = self.labels(self.args(selector)[1])?;
                labels.extend(more);
                (subject == other && labels.len() <= 16).then_some((subject, labels))
            }
            _ => None,
        }
    }

    /// Whether a choice by labels of the subject can take this value's labels in.
    fn continues(&self, subject: Id, value: Id) -> bool {
        match self.op(value) {
            Op::Case(_) => self.args(value)[0] == subject,
            Op::Mux => self.labels(self.args(value)[0]).is_some_and(|(other, _)| other == subject),
            _ => false,
        }
    }

    /// The arm of the first label that the subject has, or the default.
    pub fn case(&mut self, subject: Id, mut labels: Vec<u64>, mut default: Id, mut arms: Vec<Id>) -> Id {
        if let Some(value) = self.value(subject) {
            return labels.iter().position(|&l| l == value).map_or(default, |k| arms[k]);
        }
        while self.continues(subject, default) {
            let (more, inner) = match self.op(default) {
                Op::Case(more) => (more.clone(), self.args(default)[1]),
                _ => (self.labels(self.args(default)[0]).expect("as checked").1, self.args(default)[2]),
            };
            match self.op(default) {
                Op::Case(_) => arms.extend_from_slice(&self.args(default)[2..]),
                _ => arms.extend(std::iter::repeat_n(self.args(default)[1], more.len())),
            }
            labels.extend(more);
            default = inner;
        }
        let mut pairs: Vec<(u64, Id)> = labels.into_iter().zip(arms).collect();
        pairs.sort_by_key(|p| p.0);
        pairs.dedup_by_key(|p| p.0);
        let subject_width = self.width(subject);
        if self.lanes(subject) > 1 {
            return pairs.iter().rev().fold(default, |value, &(label, arm)| {
                let label = self.constant(label, subject_width);
                let hit = self.eq(subject, label);
                self.mux(hit, arm, value)
            });
        }
        if subject_width < 32 && pairs.len() == 1 << subject_width {
            default = pairs.pop().expect("at least two").1;
        }
        pairs.retain(|p| p.1 != default);
        match pairs[..] {
            [] => default,
            [(label, arm)] => {
                let label = self.constant(label, subject_width);
                let selector = self.eq(subject, label);
                self.mux(selector, arm, default)
            }
            _ => self.table(subject, &pairs, default).unwrap_or_else(|| {
                let width = self.width(default);
                let args: Vec<Id> = [subject, default].into_iter().chain(pairs.iter().map(|p| p.1)).collect();
                self.node(Op::Case(pairs.iter().map(|p| p.0).collect()), width, &args)
            }),
        }
    }

    /// A choice between constants that fit in 64 bits together, as a shift of all of them.
    fn table(&mut self, subject: Id, pairs: &[(u64, Id)], default: Id) -> Option<Id> {
        let width = self.width(default);
        let subject_width = self.width(subject);
        if !width.is_power_of_two() || subject_width > 6 || (width << subject_width) > 64 {
            return None;
        }
        let default = self.value(default)?;
        let mut table = (0..1 << subject_width).fold(0, |t, k| t | default << (k * width));
        for &(label, arm) in pairs {
            let at = label as u32 * width;
            table = table & !(low_mask(width) << at) | self.value(arm)? << at;
        }
        let table = self.constant(table, (width << subject_width).max(2));
        let amount = match width.trailing_zeros() {
            0 => subject,
            zeros => {
                let zeros = self.constant(0, zeros);
                self.cat(&[zeros, subject])
            }
        };
        let shifted = self.shr(table, amount);
        Some(self.slice(shifted, 0, width))
    }
}
