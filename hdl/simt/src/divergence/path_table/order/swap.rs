//! `swap`: depth first, the lesser pc before the other. (`path-lists-simty.txt` §2.1)
//!
//! Of a branch, the side with the lesser pc runs: behind it is more code that both may come to. Where the active path
//! jumps beyond the pc on top of the stack, the two change places.

use super::stack::First;
use crate::divergence::Path;
use crate::divergence::path_table::ccs::CcsIn;
use heddle_hdl::prelude::*;

pub fn first(i: &CcsIn<Signal>) -> First {
    let first = |p: Path<Signal>, q: Path<Signal>| p.pc.le(q.pc);
    First { a_of_b: first(i.a, i.b), a_of_c: first(i.a, i.c), b_of_c: first(i.b, i.c) }
}
