//! Bundles: structs of signals that can be ports, registers, memory words, or an arm of a mux.
//!
//! A bundle is generic over what its leaves are: `Path<Width>` is a shape, `Path<Signal>` is hardware, `Path<Bits>` is
//! a value in a test. `#[derive(Bundle)]` writes the walk over the leaves; everything else is made from that walk. A
//! single [`Signal`], [`Width`] or [`Bits`] is a bundle of one leaf.
//!
//! Functions here walk leaves in loops and not in closures where they call operators: `#[track_caller]` reaches the
//! user's line through a loop, but not through a closure.

use crate::bits::Bits;
use crate::builder::with_draft;
use crate::module::LaneInput;
use crate::netlist::Op;
use crate::signal::Signal;
use std::panic::Location;

/// A width in bits.
pub type Width = u32;

/// A value whose leaves are `T`.
pub trait Bundle<T>: Sized {
    /// The same structure with other leaves.
    type With<U>;
    /// Replaces every leaf; `f` gets each leaf's name (`at` and the field names joined by `_`). Leaves come in the
    /// order of declaration.
    fn map<U>(self, at: &str, f: &mut dyn FnMut(&str, T) -> U) -> Self::With<U>;
    /// Shows every leaf with its name, in the order of `map`.
    fn visit(&self, at: &str, f: &mut dyn FnMut(&str, &T));
}

/// `a_b`, or just `b` if there is no `a`. A trailing `_` of `a` (as in `in_`) is not doubled, since `__` is refused.
pub fn join(a: &str, b: &str) -> String {
    match (a, b) {
        ("", b) => b.to_string(),
        (a, "") => a.to_string(),
        (a, b) if a.ends_with('_') => format!("{a}{b}"),
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
leaf!(Width, Signal, Bits, LaneInput);

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

impl<T, B: Bundle<T>> Bundle<T> for Option<B> {
    type With<U> = Option<B::With<U>>;
    fn map<U>(self, at: &str, f: &mut dyn FnMut(&str, T) -> U) -> Self::With<U> {
        self.map(|item| item.map(at, f))
    }
    fn visit(&self, at: &str, f: &mut dyn FnMut(&str, &T)) {
        self.iter().for_each(|item| item.visit(at, f));
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
        let loc = Location::caller();
        self.map(name, &mut |n, s| s.named_at(n, loc))
    }

    /// This where `condition` (1 bit) is 1, else all zeros.
    #[track_caller]
    fn only_if(self, condition: Signal) -> Self {
        let mut gated = Vec::new();
        for s in self.leaves() {
            gated.push(s.gated(condition));
        }
        with_leaves(&self, gated)
    }

    /// All leaves side by side, the first lowest.
    #[track_caller]
    fn pack(&self) -> Signal {
        cat(&self.leaves())
    }

    /// Combines leaf by leaf with another bundle of the same structure. Lists of unequal lengths are an error.
    #[track_caller]
    fn zip(self, other: Self, f: &mut dyn FnMut(Signal, Signal) -> Signal) -> Self {
        match matching_leaves("zip", &self, &other) {
            Some(others) => {
                let mut others = others.into_iter();
                self.map("", &mut |_, s| f(s, others.next().expect("as many leaves as this")))
            }
            None => self,
        }
    }

    /// 1 if every leaf equals the other's.
    #[track_caller]
    fn same_as(self, other: Self) -> Signal {
        let loc = Location::caller();
        let (these, others) = (self.leaves(), other.leaves());
        let same_shape = with_draft(|d| {
            d.same_count("same_as", these.len(), others.len(), loc)
                && these.iter().zip(&others).all(|(&a, &b)| d.same_width("same_as", a, b, loc))
        });
        if !same_shape {
            return with_draft(|d| d.poison(1, loc));
        }
        cat(&these).eq(cat(&others))
    }
}

impl<B: Bundle<Signal, With<Signal> = B> + Clone> Signals for B {}

/// The structure of `like` with other leaves, one for each of its own.
fn with_leaves<B: Signals>(like: &B, leaves: Vec<Signal>) -> B {
    let mut leaves = leaves.into_iter();
    like.clone().map("", &mut |_, _| leaves.next().expect("one leaf for each"))
}

/// The leaves of `other` if it has as many as `like`, else an error.
#[track_caller]
fn matching_leaves<B: Signals>(what: &str, like: &B, other: &B) -> Option<Vec<Signal>> {
    let (count, others, loc) = (like.leaves().len(), other.leaves(), Location::caller());
    with_draft(|d| d.same_count(what, count, others.len(), loc)).then_some(others)
}

/// The sum of the widths of a shape.
pub fn width_of<I: Bundle<Width>>(shape: &I) -> Width {
    let mut sum = 0;
    shape.visit("", &mut |_, w| sum += w);
    sum
}

/// Cuts a packed signal into a bundle of the shape ([`Signals::pack`] undone).
#[track_caller]
pub fn unpack<I: Bundle<Width>>(shape: I, packed: Signal) -> I::With<Signal> {
    let loc = Location::caller();
    with_draft(|d| {
        let total = width_of(&shape);
        if packed.width() != total {
            let what = d.describe(packed);
            d.error_about(&[packed], loc, format!("unpack: a shape of {total} bits, but {what}"));
        }
    });
    let mut low = 0;
    shape.map("", &mut |_, width| {
        low += width;
        packed.slice_at(low - width, width, loc)
    })
}

impl Bits {
    /// Cuts a value into a bundle of the shape, as [`unpack`] does with a signal.
    pub fn unpack<B: Bundle<Width>>(&self, shape: B) -> B::With<Bits> {
        let mut low = 0;
        shape.map("", &mut |_, width| {
            low += width;
            self.extract(low - width, width)
        })
    }
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
    let mut result = default;
    for (condition, value) in arms.into_iter().rev() {
        result = condition.mux(value, result);
    }
    result
}

/// The value whose label equals `selector`, else `default`.
#[track_caller]
pub fn case<B: Signals, L: Into<Bits> + Clone>(selector: Signal, arms: &[(L, B)], default: B) -> B {
    if arms.is_empty() {
        return default;
    }
    let labels: Vec<Bits> = arms.iter().map(|(l, _)| l.clone().into()).collect();
    let mut values = Vec::new();
    for (_, value) in arms {
        let Some(leaves) = matching_leaves("case", &default, value) else { return default };
        values.push(leaves);
    }
    let mut chosen = Vec::new();
    for (leaf, d) in default.leaves().into_iter().enumerate() {
        let column: Vec<Signal> = values.iter().map(|v| v[leaf]).collect();
        chosen.push(Signal::case(selector, &labels, &column, d));
    }
    with_leaves(&default, chosen)
}

/// Element `index` of a list of equal bundles; zeros beyond the end.
///
/// Panics if the list is empty: nothing says then what the answer looks like.
#[track_caller]
pub fn select<B: Signals>(items: &[B], index: Signal) -> B {
    let loc = Location::caller();
    let first = items.first().expect("select: at least one item");
    let mut lists = Vec::new();
    for item in items {
        let Some(leaves) = matching_leaves("select", first, item) else { return first.clone() };
        lists.push(leaves);
    }
    let mut chosen = Vec::new();
    for (leaf, s) in first.leaves().into_iter().enumerate() {
        let column: Vec<Signal> = lists.iter().map(|l| l[leaf]).collect();
        let equal = with_draft(|d| column.iter().all(|&c| d.same_width("select", s, c, loc)));
        chosen.push(if equal {
            cat(&column).select(index, s.width())
        } else {
            with_draft(|d| d.poison(s.width(), loc))
        });
    }
    with_leaves(first, chosen)
}

/// The OR of the items whose bit in `one_hot` (one bit an item) is on; zeros if none is.
///
/// Panics if the list is empty: nothing says then what the answer looks like.
#[track_caller]
pub fn select_one_hot<B: Signals>(items: &[B], one_hot: Signal) -> B {
    let (first, loc) = (items.first().expect("select_one_hot: at least one item"), Location::caller());
    if one_hot.width() as usize != items.len() {
        with_draft(|d| {
            let what = d.describe(one_hot);
            d.error_about(&[one_hot], loc, format!("select_one_hot: {} items, but {what}", items.len()));
        });
        return first.clone();
    }
    for item in items {
        let Some(leaves) = matching_leaves("select_one_hot", first, item) else { return first.clone() };
        let mut pairs = first.leaves().into_iter().zip(leaves);
        if !with_draft(|d| pairs.all(|(a, b)| d.same_width("select_one_hot", a, b, loc))) {
            return first.clone();
        }
    }
    let mut result = first.clone().only_if(one_hot.bit(0));
    for (i, item) in items.iter().enumerate().skip(1) {
        let gated = item.clone().only_if(one_hot.bit(i as u32));
        result = result.zip(gated, &mut |x, y| x.binary(Op::Or, "select_one_hot", y, None, loc));
    }
    result
}

/// Splits a packed vector into its elements of `width` bits, element 0 first.
#[track_caller]
pub fn elements(packed: Signal, width: Width) -> Vec<Signal> {
    let loc = Location::caller();
    if !with_draft(|d| d.is_vector("elements", packed, width, loc)) {
        return vec![with_draft(|d| d.poison(width, loc))];
    }
    (0..packed.width() / width).map(|i| packed.slice_at(i * width, width, loc)).collect()
}

/// For each index in the packed `indices` (each `index_width` bits), that element (`width` bits) of the packed vector.
#[track_caller]
pub fn gather(vector: Signal, width: Width, indices: Signal, index_width: Width) -> Signal {
    let mut picked = Vec::new();
    for index in elements(indices, index_width) {
        picked.push(vector.select(index, width));
    }
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

/// Gives a value (a signal or a bundle) the name of its variable: `wire!(sum = a + b)`.
#[macro_export]
macro_rules! wire {
    ($name:ident = $value:expr) => {
        let $name = $crate::Signals::named($value, stringify!($name));
    };
}
