//! What is behind the core's memory port.
//!
//! | file | what |
//! |---|---|
//! | [`port`] | the port: requests and responses |
//! | [`ram`](mod@ram) | on-chip memory, one bank a lane |
//!
//! [`memory_system`] puts together what the shape asks for.

pub mod atomic;
pub mod bank;
pub mod port;
pub mod ram;
pub mod scratchpad;

use crate::shape::Shape;
use heddle_hdl::*;
use port::{Load, Request, Response};

/// The core's side of the port, and the host's.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MemorySystemIn<T> {
    /// Stays as it is until `request_ready`.
    pub request: Request<T>,
    /// The response is taken in this cycle.
    pub response_ready: T,
    /// The host writes a word; only while no thread is live.
    pub load: Load<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MemorySystemOut<T> {
    /// A request would be taken in this cycle.
    pub request_ready: T,
    /// Stays until `response_ready`.
    pub response: Response<T>,
    /// Nothing is under way: everything stored is where the host reads it.
    pub idle: T,
}

impl MemorySystemIn<Width> {
    pub fn shape(s: &Shape) -> MemorySystemIn<Width> {
        MemorySystemIn { request: Request::shape(s), response_ready: 1, load: Load::shape(s) }
    }
}

/// The memory of a shape.
pub fn memory_system(s: &Shape) -> TypedModule<MemorySystemIn<Width>, MemorySystemOut<Signal>> {
    ram::ram(s)
}
