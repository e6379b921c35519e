//! How much the tests of blocks do.

use std::ops::Div;

/// So many random cases of `all`: a third, or with `HEDDLE_LONG` all, which is what mutants meet.
pub fn cases<T: Div<Output = T> + From<u8>>(all: T) -> T {
    let long = std::env::var_os("HEDDLE_LONG").is_some();
    all / T::from(if long { 1 } else { 3 })
}
