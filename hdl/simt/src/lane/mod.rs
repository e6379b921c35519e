//! The arithmetic of one lane.

pub mod alu;
pub mod divider;
pub mod multiplier;

use heddle_hdl::{Signal, cat};

/// What one carry chain makes of two words of the same width.
#[derive(Clone, Copy, Debug)]
pub struct Sum {
    /// As wide as the words.
    pub sum: Signal,
    /// 1 bit. Of a difference: the first word is not below the second, both unsigned.
    pub carry: Signal,
}

/// a + b + `carry`, by one carry chain: a bit below the lowest makes the carry into it. a - b is a + ~b + 1.
pub fn sum_of(a: Signal, b: Signal, carry: Signal) -> Sum {
    let width = a.width();
    let wide = |word: Signal| cat(&[carry, word]).zext(width + 2);
    let added = wide(a) + wide(b);
    Sum { sum: added.slice(1, width), carry: added.msb() }
}
