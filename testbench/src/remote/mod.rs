//! A core that is reached through its [host](heddle_simt::host): over a serial port, or a simulation of one.
//!
//! | file | what |
//! |---|---|
//! | [`line`](mod@line) | what bytes go over, and how long to wait |
//! | [`client`] | requests and replies, with retries |
//! | [`reply`] | what replies say |
//! | [`board`] | such a core as a [`Device`](crate::kernels::Device) |
//! | [`port`] | a serial port as such a line |
//! | [`simulated`] | lines to a simulated host, by its streams or by its pins |
//! | [`terminal`], [`served`] | a simulated board behind a pseudo-terminal, which looks like a serial port |
//!
//! `docs/reference/host.md` has the protocol.

pub mod board;
pub mod client;
pub mod line;
pub mod port;
pub mod reply;
pub mod served;
pub mod simulated;
pub mod terminal;

pub use board::{Board, BoardError};
pub use client::{Client, ClientError};
pub use line::{Line, Patience};
pub use port::{Port, PortError};
