//! The memory port: tagged requests and responses of a line, which is `lanes` words side by side.
//!
//! A request is taken in a cycle in which its `valid` and the memory's `request_ready` are 1; until then it stays as it
//! is. Requests to one word take effect in the order in which they are taken. Responses come in any order, any number
//! of cycles later, and stay until the core takes them.

use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// The operation of a request.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// The response has the line.
    Load,
    /// The enabled bytes are written.
    Store,
    /// Each enabled word becomes a function of itself and the data; the response has the line as it was before.
    Atomic,
    /// The same without a response.
    AtomicSilent,
}

impl Operation {
    /// The bit that says: there is no response.
    pub const SILENT: Width = 0;
    /// The bit that says: it is atomic.
    pub const IS_ATOMIC: Width = 1;

    /// Whether there is a response.
    pub fn answers(self) -> bool {
        matches!(self, Operation::Load | Operation::Atomic)
    }
}

/// A request.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Request<T> {
    pub valid: T,
    /// An [`Operation`].
    #[width(Operation::WIDTH)]
    pub operation: T,
    /// Of an atomic, bits 31..27 of the instruction: which function: an [`Atomic`](crate::isa::Atomic), 5 bits.
    #[width(5)]
    pub function: T,
    /// Comes back with the response.
    #[width(index_width(s.loads))]
    pub tag: T,
    #[width(s.line_bits())]
    pub line: T,
    /// Four bits per bank: bytes to store, of a load the bytes that somebody wants, of an atomic whole words.
    #[width(4 * s.lanes)]
    pub enables: T,
    /// 32 bits per bank; of some atomic operations, [inverted](super::atomic::INVERTS).
    #[width(32 * s.lanes)]
    pub data: T,
}

/// The line of a load or atomic.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Response<T> {
    pub valid: T,
    #[width(index_width(s.loads))]
    pub tag: T,
    /// 32 bits per bank.
    #[width(32 * s.lanes)]
    pub data: T,
}

/// A load, or an atomic operation with a response, that is answered late, since the cache finds its line absent or still to come.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Miss<T> {
    pub valid: T,
    #[width(index_width(s.loads))]
    pub tag: T,
}

impl Miss<Width> {
    /// In a core that is told of misses.
    pub fn of(s: &Shape) -> Option<Miss<Width>> {
        s.tells_misses().then(|| Miss::shape(s))
    }
}

/// A word that the host writes into memory, and into instruction memory where it lies in the program's part; or that it
/// reads. Only while no thread is live.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Load<T> {
    pub valid: T,
    /// Byte address, a multiple of 4, inside memory.
    pub address: T,
    pub word: T,
    /// It is read instead; in a system with a [host](crate::host).
    pub read: Option<T>,
}

impl Load<Signal> {
    /// A word is written.
    pub fn writes(&self) -> Signal {
        self.read.map_or(self.valid, |read| self.valid & !read)
    }
}

impl Load<Width> {
    pub fn shape(s: &Shape) -> Load<Width> {
        Load { valid: 1, address: s.address_bits(), word: 32, read: None }
    }

    /// One that reads, too, unless memory is on a bus.
    pub fn of_host(s: &Shape) -> Load<Width> {
        Load { read: s.bus_width().is_none().then_some(1), ..Load::shape(s) }
    }
}
