//! What bytes go over.

use std::io;
use std::time::Duration;

/// A line to a host: a serial port, a socket, a simulation. Bytes may be lost or damaged on it, but do not overtake
/// each other.
pub trait Line {
    /// Sends all of them.
    fn send(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// The next byte that comes, if one does within this time.
    fn receive(&mut self, within: Duration) -> io::Result<Option<u8>>;

    /// The time, from any moment on: a simulation has its own.
    fn now(&mut self) -> Duration;
}

/// How long to wait, and how often to try.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// From the end of a request to the first byte of its reply, and from each byte to the next.
    pub reply: Duration,
    /// Time that a byte takes on the line, for what a line keeps on sending after [`Line::send`] has returned.
    pub byte: Duration,
    /// A line on which nothing comes for so long is quiet.
    pub quiet: Duration,
    /// How often a request is sent at most.
    pub attempts: u32,
    /// How long a launch may take.
    pub launch: Duration,
    /// From a look at a launch to the next.
    pub poll: Duration,
}
