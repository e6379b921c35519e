//! What a kind of file does with a waveform.

use std::io;

/// A file that is being written, after the declaration of its variables. Those have numbers in the order in which they
/// were declared; one that is another's alias has none.
pub trait Format: Send + 'static {
    /// What follows happens at that time. Times go up.
    fn time(&mut self, time: u64) -> io::Result<()>;

    /// A variable of at most 64 bits takes a value.
    fn narrow(&mut self, variable: u32, value: u64) -> io::Result<()>;

    /// A wider variable takes the value that these limbs are, the lowest first.
    fn wide(&mut self, variable: u32, limbs: &[u64]) -> io::Result<()>;

    /// Writes out all that is left.
    fn finish(self) -> io::Result<()>;
}
