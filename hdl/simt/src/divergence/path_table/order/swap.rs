//! `swap`: depth first, the lesser pc before the other. (`path-lists-simty.txt` §2.1)
//!
//! Of a branch, the side with the lesser pc runs: behind it is more code that both may come to. Where the active path
//! jumps beyond the pc on top of the stack, the two change places, but for jumps in an
//! [LR/SC sequence](crate::divergence::sequence).

use super::stack::First;
use crate::divergence::Path;
use crate::divergence::path_table::ccs::CcsIn;
use heddle_hdl::prelude::*;

pub fn first(i: &CcsIn<Signal>) -> First {
    let first = |p: Path<Signal>, q: Path<Signal>| p.pc.le(q.pc);
    let stays = |first: Signal| i.lasts.map_or(first, |lasts| lasts | first);
    First { a_of_b: first(i.a, i.b), a_of_c: stays(first(i.a, i.c)), b_of_c: stays(first(i.b, i.c)) }
}
