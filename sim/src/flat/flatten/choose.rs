//! Choices: bits of a case or of a selected part.

use super::{Flatten, Parts};
use crate::flat::views::View;
use crate::flat::{Id, Word};
use heddle_hdl::Bits;
use heddle_hdl::netlist;

impl Flatten<'_> {
    pub(super) fn case(&mut self, scope: usize, n: &netlist::Node, labels: &[Bits], low: u32, width: u32) -> Id {
        let subject = self.word(scope, n.args[0]);
        let default = self.bits(scope, n.args[1], low, width);
        let arms: Vec<Id> = n.args[2..].iter().map(|&a| self.bits(scope, a, low, width)).collect();
        if let [subject] = subject[..] {
            let labels = labels.iter().map(Bits::low_u64).collect();
            return self.b.case(subject, labels, default, arms);
        }
        labels.iter().zip(arms).rev().fold(default, |value, (label, arm)| {
            let label: Word =
                (0..subject.len()).map(|k| self.b.constant(label.limb(k), self.b.width(subject[k]))).collect();
            let hit = self.b.word_eq(&subject, &label);
            self.b.mux(hit, arm, value)
        })
    }

    /// Bits of an element of a vector.
    pub(super) fn select(&mut self, scope: usize, n: &netlist::Node, low: u32, width: u32) -> Id {
        let vector_width = self.node(scope, n.args[0]).width;
        let (element, elements) = (n.width, vector_width / n.width);
        let index = self.word(scope, n.args[1]);
        let index_width = self.b.word_width(&index);
        let needed = (32 - (elements - 1).leading_zeros()).clamp(1, index_width);
        let near = self.b.word_slice(&index, 0, needed);
        let view = self.views.view(scope, n.args[0]);
        let value = if view == Some(View { lanes: elements, width: element }) {
            let parts = Parts { low: 0, width: element, stride: element, lanes: elements };
            let vector = self.spread(scope, n.args[0], parts);
            self.b.pick(vector, elements, near)
        } else if element <= 16 && 64 % element == 0 {
            self.select_in_limb(scope, n, near)
        } else {
            let zero = self.b.constant(0, width);
            let count = elements.min(1 << needed);
            let arms = (0..count).map(|k| self.bits(scope, n.args[0], k * element + low, width)).collect();
            self.b.case(near, (0..count as u64).collect(), zero, arms)
        };
        let value = if self.b.width(value) == width { value } else { self.b.slice(value, low, width) };
        if needed == index_width {
            return value;
        }
        let mut beyond = self.b.constant(0, 1);
        let mut at = needed;
        while at < index_width {
            let part = self.b.word_slice(&index, at, (index_width - at).min(64));
            let any = self.b.any(part);
            beyond = self.b.or(beyond, any);
            at += 64;
        }
        let zero = self.b.constant(0, width);
        self.b.mux(beyond, zero, value)
    }

    /// A whole element whose width divides 64: its limb is chosen, then shifted down.
    fn select_in_limb(&mut self, scope: usize, n: &netlist::Node, index: Id) -> Id {
        let vector = self.word(scope, n.args[0]);
        let inside = (64 / n.width).trailing_zeros();
        let index_width = self.b.width(index);
        let limb = if index_width <= inside || vector.len() == 1 {
            vector[0]
        } else {
            let vector: Word = vector.iter().map(|&limb| self.b.zext(limb, 64)).collect();
            let which = self.b.slice(index, inside, index_width - inside);
            let zero = self.b.constant(0, 64);
            let count = vector.len().min(1 << (index_width - inside));
            self.b.case(which, (0..count as u64).collect(), zero, vector[..count].to_vec())
        };
        let low = self.b.slice(index, 0, if vector.len() == 1 { index_width } else { index_width.min(inside) });
        let amount = match n.width.trailing_zeros() {
            0 => low,
            zeros => {
                let zeros = self.b.constant(0, zeros);
                self.b.cat(&[zeros, low])
            }
        };
        let shifted = self.b.shr(limb, amount);
        self.b.slice(shifted, 0, n.width)
    }
}
