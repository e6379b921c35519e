//! The core on an FPGA: its cells after synthesis with Yosys, its clock after place and route with nextpnr.
//!
//! * [`boards`]: what there is to build for, one file a board; [`family`]: what their devices are made of.
//! * [`tools`]: Yosys and nextpnr, installed from PyPI.
//! * `harness`: the top that takes the place of a board's.
//! * [`run`]: one core, from Verilog to its figures, which are kept for the next time.
//! * [`equivalence`]: blocks against their netlists, proven.
//! * [`simulate`]: the mapped netlist, to be simulated.
//! * [`mod@bitstream`]: a core with its host for a board; [`pll`]: its clocks; `top`: its top.
//! * [`fit`]: the largest core that fits.
//! * [`netlist`]: what Yosys writes; [`timing`]: what nextpnr writes.
//!
//! `docs/reference/synthesis.md` is the page on it.

pub mod bitstream;
pub mod boards;
pub mod equivalence;
pub mod family;
pub mod fit;
mod harness;
pub mod netlist;
pub mod pll;
pub mod run;
pub mod simulate;
pub mod timing;
pub mod tools;
mod top;

pub use bitstream::{Bitstream, bitstream};
pub use boards::Board;
pub use netlist::{Cells, Flat, Row};
pub use run::{Error, Session, Synthesis};
pub use timing::{Timing, median};
