//! Bundles: structs of signals that can be ports, registers, memory words, or an arm of a mux.
//!
//! A bundle is generic over what its leaves are: `Path<Width>` is a shape, `Path<Signal>` is hardware, `Path<Bits>` is a
//! value in a test. `#[derive(Bundle)]` writes the walk over the leaves; everything else is made from that walk.
//! A single [`Signal`], [`Width`] or [`Bits`] is a bundle of one leaf.

use crate::bits::Bits;
use crate::builder::with_draft;
use crate::signal::Signal;

/// A width in bits.
pub type Width = u32;

/// A value whose leaves are `T`.
pub trait Bundle<T>: Sized {
    /// The same structure with other leaves.
    type With<U>;
    /// Replaces every leaf; `f` gets each leaf's name (`at` and the field names joined by `_`). Leaves come in the order
    /// of declaration.
    fn map<U>(self, at: &str, f: &mut dyn FnMut(&str, T) -> U) -> Self::With<U>;
    /// Shows every leaf with its name, in the order of `map`.
    fn visit(&self, at: &str, f: &mut dyn FnMut(&str, &T));
}

/// `a_b`, or just `b` if there is no `a`.
pub fn join(a: &str, b: &str) -> String {
    match (a, b) {
        ("", b) => b.to_string(),
        (a, "") => a.to_string(),
        (a, b) => format!("{a}_{b}"),
    }
}

macro_rules! leaf {
    ($($t:ty),*) => { $(impl Bundle<$t> for $t {
        type With<U> = U;
        fn map<U>(self, at: &str, f: &mut dyn FnMut(&str, $t) -> U) -> U {
            f(at, self)
        }
        fn visit(&self, at: &str, f: &mut dyn FnMut(&str, &$t)) {
            f(at, self)
        }
    })* };
}
leaf!(Width, Signal, Bits);

impl<T, B: Bundle<T>, const N: usize> Bundle<T> for [B; N] {
    type With<U> = [B::With<U>; N];
    fn map<U>(self, at: &str, f: &mut dyn FnMut(&str, T) -> U) -> Self::With<U> {
        let mut index = 0;
        self.map(|item| {
            index += 1;
            item.map(&join(at, &(index - 1).to_string()), f)
        })
    }
    fn visit(&self, at: &str, f: &mut dyn FnMut(&str, &T)) {
        self.iter().enumerate().for_each(|(i, item)| item.visit(&join(at, &i.to_string()), f));
    }
}

impl<T, B: Bundle<T>> Bundle<T> for Vec<B> {
    type With<U> = Vec<B::With<U>>;
    fn map<U>(self, at: &str, f: &mut dyn FnMut(&str, T) -> U) -> Self::With<U> {
        self.into_iter().enumerate().map(|(i, item)| item.map(&join(at, &i.to_string()), f)).collect()
    }
    fn visit(&self, at: &str, f: &mut dyn FnMut(&str, &T)) {
        self.iter().enumerate().for_each(|(i, item)| item.visit(&join(at, &i.to_string()), f));
    }
}

/// A bundle of signals whose structure survives a map from signals to signals: every bundle does.
pub trait Signals: Bundle<Signal, With<Signal> = Self> + Clone {
    /// The leaves in order.
    fn leaves(&self) -> Vec<Signal> {
        let mut out = Vec::new();
        self.visit("", &mut |_, s| out.push(*s));
        out
    }

    /// Gives every leaf the name, followed by its field names.
    #[track_caller]
    fn named(self, name: &str) -> Self {
        self.map(name, &mut |n, s| s.with_name(n))
    }

    /// This where `condition` is 1, else all zeros.
    #[track_caller]
    fn only_if(self, condition: Signal) -> Self {
        self.map("", &mut |_, s| {
            let mask = if s.width() == 1 { condition } else { condition.repeat(s.width()) };
            s & mask
        })
    }

    /// All leaves side by side, the first lowest.
    #[track_caller]
    fn pack(&self) -> Signal {
        cat(&self.leaves())
    }

    /// Combines leaf by leaf with another bundle of the same structure.
    fn zip(self, other: Self, f: &mut dyn FnMut(Signal, Signal) -> Signal) -> Self {
        let mut others = other.leaves().into_iter();
        self.map("", &mut |_, s| f(s, others.next().expect("bundles of one type and shape have the same leaves")))
    }

    /// 1 if every leaf equals the other's.
    #[track_caller]
    fn same_as(self, other: Self) -> Signal {
        self.pack().eq(other.pack())
    }
}

impl<B: Bundle<Signal, With<Signal> = B> + Clone> Signals for B {}

/// The sum of the widths of a shape.
pub fn width_of<I: Bundle<Width>>(shape: &I) -> Width {
    let mut sum = 0;
    shape.visit("", &mut |_, w| sum += w);
    sum
}

/// Cuts a packed signal into a bundle of the shape ([`Signals::pack`] undone).
#[track_caller]
pub fn unpack<I: Bundle<Width>>(shape: I, packed: Signal) -> I::With<Signal> {
    let mut low = 0;
    shape.map("", &mut |_, width| {
        low += width;
        packed.slice(low - width, width)
    })
}

/// Signals side by side, the first lowest. At least one.
#[track_caller]
pub fn cat(parts: &[Signal]) -> Signal {
    Signal::concat(parts)
}

/// The value of the first pair whose condition is 1, else `default`.
#[track_caller]
pub fn pick<B: Signals>(arms: impl IntoIterator<Item = (Signal, B)>, default: B) -> B {
    let arms: Vec<_> = arms.into_iter().collect();
    arms.into_iter().rev().fold(default, |rest, (condition, value)| condition.mux(value, rest))
}

/// The value whose label equals `selector`, else `default`.
#[track_caller]
pub fn case<B: Signals, L: Into<Bits> + Clone>(selector: Signal, arms: &[(L, B)], default: B) -> B {
    let labels: Vec<Bits> = arms.iter().map(|(l, _)| l.clone().into()).collect();
    let columns: Vec<Vec<Signal>> = arms.iter().map(|(_, b)| b.leaves()).collect();
    let mut leaf = 0;
    default.map("", &mut |_, d| {
        let values: Vec<Signal> = columns.iter().map(|c| c[leaf]).collect();
        leaf += 1;
        Signal::case(selector, &labels, &values, d)
    })
}

/// Element `index` of a list of equal bundles; zeros beyond the end.
#[track_caller]
pub fn select<B: Signals>(items: &[B], index: Signal) -> B {
    let columns: Vec<Vec<Signal>> = items.iter().map(|b| b.leaves()).collect();
    let mut leaf = 0;
    items[0].clone().map("", &mut |_, s| {
        let column: Vec<Signal> = columns.iter().map(|c| c[leaf]).collect();
        leaf += 1;
        cat(&column).select(index, s.width())
    })
}

/// The OR of the items whose bit in `one_hot` is on; zeros if none is.
#[track_caller]
pub fn select_one_hot<B: Signals>(items: &[B], one_hot: Signal) -> B {
    let gated = items.iter().enumerate().map(|(i, b)| b.clone().only_if(one_hot.bit(i as u32)));
    gated.reduce(|a, b| a.zip(b, &mut |x, y| x | y)).expect("at least one item")
}

/// Splits a packed vector into its elements of `width` bits, element 0 first.
#[track_caller]
pub fn elements(packed: Signal, width: Width) -> Vec<Signal> {
    (0..packed.width() / width).map(|i| packed.slice(i * width, width)).collect()
}

/// For each index in the packed `indices` (each `index_width` bits), that element (`width` bits) of the packed vector.
#[track_caller]
pub fn gather(vector: Signal, width: Width, indices: Signal, index_width: Width) -> Signal {
    let picked: Vec<Signal> = elements(indices, index_width).into_iter().map(|i| vector.select(i, width)).collect();
    cat(&picked)
}

/// The bits an index into `n` things needs: at least 1, so that a single warp still has an index.
pub fn index_width(n: u32) -> Width {
    n.next_power_of_two().trailing_zeros().max(1)
}

/// The bits a count from 0 to `n` needs.
pub fn count_width(n: u32) -> Width {
    (32 - n.leading_zeros()).max(1)
}

/// Gives a value the name of its variable: `wire!(sum = a + b)`.
#[macro_export]
macro_rules! wire {
    ($name:ident = $value:expr) => {
        let $name = $crate::Signals::named($value, stringify!($name));
    };
}

/// A literal of the width; an error if the value needs more bits.
#[track_caller]
pub(crate) fn literal(value: Bits, width: Width) -> Signal {
    with_draft(|d| d.literal(value, width, std::panic::Location::caller()))
}
