//! A fault that is a stack overflow, in words.

use heddle_simt::Shape;
use heddle_simt::address::STACK;
use heddle_simt::isa::FaultCause;
use std::fmt;

/// Bytes below a thread's stack that are taken for part of it: the largest stack there is.
const REACH: u32 = 1 << 20;

/// An access below the thread's stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackOverflow {
    /// Bytes from the access to the stack's beginning.
    pub below: u32,
    /// Bytes of the stack.
    pub stack: u32,
}

impl StackOverflow {
    /// Whether a fault of this cause, by an access to this address, is one.
    pub fn of(shape: &Shape, cause: Option<FaultCause>, address: u32) -> Option<StackOverflow> {
        let is_access = matches!(cause, Some(FaultCause::LoadOutOfRange | FaultCause::StoreOutOfRange));
        let below = STACK.wrapping_sub(address);
        (is_access && (1..=REACH).contains(&below)).then_some(StackOverflow { below, stack: shape.stack })
    }
}

impl fmt::Display for StackOverflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let StackOverflow { below, stack } = self;
        let wanted = (stack + below).next_power_of_two();
        write!(f, "; stack overflow, {below} bytes below the thread's {stack}")?;
        if wanted <= REACH {
            return write!(f, ": --stack {wanted} has room for this access");
        }
        write!(f, ", more than a stack can have ({REACH})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_below_the_stack_are_named() {
        let text = |cause, address| {
            StackOverflow::of(&Shape::new(4, 1), Some(cause), address)
                .map(|overflow| overflow.to_string())
                .unwrap_or_default()
        };
        let store = |address| text(FaultCause::StoreOutOfRange, address);
        let just = "; stack overflow, 4 bytes below the thread's 1024: --stack 2048 has room for this access";
        assert_eq!(store(STACK - 4), just);
        assert_eq!(text(FaultCause::LoadOutOfRange, STACK - 4), just);
        assert!(store(STACK - 1025).ends_with("--stack 4096 has room for this access"));
        let far = "; stack overflow, 1048576 bytes below the thread's 1024, more than a stack can have (1048576)";
        assert_eq!(store(STACK - (1 << 20)), far);
        for address in [STACK, STACK + 1024, STACK - (1 << 20) - 1, 0, u32::MAX] {
            assert_eq!(store(address), "", "{address:#x}");
        }
        assert_eq!(text(FaultCause::StoreMisaligned, STACK - 4), "");
    }
}
