//! How much the tests of blocks do.

use std::ops::Div;

/// Whether the tests do all, which is what mutants meet: `HEDDLE_LONG` is set.
pub fn long() -> bool {
    std::env::var_os("HEDDLE_LONG").is_some()
}

/// So many random cases of `all`: a third, or all if the tests do all.
pub fn cases<T: Div<Output = T> + From<u8>>(all: T) -> T {
    all / T::from(if long() { 1 } else { 3 })
}
