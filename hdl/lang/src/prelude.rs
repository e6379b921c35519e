//! What nearly every description needs, for `use heddle_hdl::prelude::*`.
//!
//! Functions whose names are common words (`all`, `each`, `case`, `select`, `elements`, `gather`, `unpack`) are not in
//! it: a description that calls them imports them by name, as in `use heddle_hdl::{all, each, prelude::*}`.

pub use crate::bits::Bits;
pub use crate::builder::Builder;
pub use crate::bundle::{Bundle, Signals, Width, cat, count_width, index_width, pick, select_one_hot, width_of};
pub use crate::check::Design;
pub use crate::code::Code;
pub use crate::foreign::Foreign;
pub use crate::memory::Mem;
pub use crate::module::{LaneInput, TypedModule, module};
pub use crate::netlist::{Collision, MemoryStyle};
pub use crate::register::{Deferred, Reg};
pub use crate::signal::{Operand, Signal};
pub use crate::wire;
pub use heddle_hdl_derive::{Bundle, Code};
