//! Codes: plain enums whose variants are numbers in hardware.
//!
//! `#[derive(Code)]` makes one of an enum without fields. A variant's code is its discriminant.

use crate::bits::Bits;
use crate::builder::Builder;
use crate::bundle::Width;
use crate::signal::{Operand, Signal};

/// An enum whose variants are numbers of [`WIDTH`](Code::WIDTH) bits. A variant stands where a number can:
///
/// ```
/// use heddle_hdl::{case, prelude::*};
///
/// #[derive(Code, Clone, Copy, PartialEq, Debug)]
/// enum Step {
///     Idle,
///     Asks,
///     Waits,
/// }
///
/// let steps = module("steps", [1], |m, [go]| {
///     let step = m.reg("step", Step::WIDTH).reset(Step::Idle);
///     let from_idle = go.mux(m.code(Step::Asks), step.q);
///     step.next(case(step.q, &[(Step::Idle, from_idle), (Step::Asks, m.code(Step::Waits))], m.code(Step::Idle)));
///     [step.q.eq(Step::Waits)]
/// });
/// assert!(steps.check().is_ok());
///
/// assert_eq!((Step::WIDTH, Step::Waits.code()), (2, 2));
/// assert_eq!(Step::from_bits(1u32), Some(Step::Asks));
/// assert_eq!(Step::from_bits(3u32), None);
/// assert_eq!(Bits::from(2u32), Step::Waits);
/// ```
///
/// A variant that does not fit is an error of the compiler, as two of one number are:
///
/// ```compile_fail
/// use heddle_hdl::prelude::*;
///
/// #[derive(Code, Clone, Copy)]
/// #[code(width = 2)]
/// enum Step {
///     Idle,
///     Waits = 4,
/// }
/// ```
///
/// ```compile_fail
/// use heddle_hdl::prelude::*;
///
/// #[derive(Code, Clone, Copy)]
/// enum Step {
///     Idle = -1,
///     Waits,
/// }
/// ```
///
/// ```compile_fail
/// use heddle_hdl::prelude::*;
///
/// #[derive(Code, Clone, Copy)]
/// enum Step {
///     Idle(u32),
/// }
/// ```
pub trait Code: Copy + 'static {
    /// Bits of a code: as many as `#[code(width = …)]` says, else the least that hold every code, and at least 1.
    const WIDTH: Width;
    /// All variants, in the order of declaration.
    const ALL: &'static [Self];

    /// The number.
    fn code(self) -> u64;

    /// The variant of this number, if there is one.
    fn from_bits(code: impl Into<Bits>) -> Option<Self> {
        let code = code.into();
        Self::ALL.iter().copied().find(|variant| code == variant.code())
    }
}

impl<C: Code> From<C> for Bits {
    fn from(code: C) -> Bits {
        Bits::from(code.code())
    }
}

impl<C: Code> PartialEq<C> for Bits {
    fn eq(&self, other: &C) -> bool {
        *self == other.code()
    }
}

/// A literal of the first operand's width, as a number is.
impl<C: Code> Operand for C {
    #[track_caller]
    fn beside(self, first: Signal) -> Signal {
        first.literal(self)
    }
}

impl Builder {
    /// A constant of the enum's width.
    #[track_caller]
    pub fn code<C: Code>(self, code: C) -> Signal {
        self.lit(code, C::WIDTH)
    }
}

/// The least width that holds these numbers, for `#[derive(Code)]`.
pub const fn least_width(codes: &[i128]) -> Width {
    let (mut all, mut at) = (1, 0);
    while at < codes.len() {
        all |= codes[at];
        at += 1;
    }
    i128::BITS - all.leading_zeros()
}

/// Whether a number has this width, for `#[derive(Code)]`.
pub const fn fits(code: i128, width: Width) -> bool {
    code >= 0 && (width >= u64::BITS || code >> width == 0)
}
