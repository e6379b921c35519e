//! Which cores can be built.

use super::Shape;
use crate::pipeline::timing::{ISSUE_TO_DEPENDENT, LEAST_BUFFER};

/// The most that [`Shape::alu_latency`] can be.
pub const MOST_ALU_LATENCY: u32 = 64;

/// A shape that cannot be built: the field, its value, and what is allowed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{field} = {value}: {allowed}")]
pub struct ShapeError {
    pub field: &'static str,
    pub value: String,
    pub allowed: String,
}

impl ShapeError {
    /// This field has this value, but must have another.
    pub fn new(field: &'static str, value: impl ToString, allowed: impl Into<String>) -> ShapeError {
        ShapeError { field, value: value.to_string(), allowed: allowed.into() }
    }
}

impl Shape {
    /// Refuses what cannot be built, naming the field: limits of the core, then options that the mechanism has not
    /// ([`Capabilities`](crate::divergence::Capabilities)), then what the mechanism itself refuses
    /// ([`Mechanism::check`](crate::divergence::Mechanism::check)).
    ///
    /// # Errors
    /// The first field that is wrong.
    pub fn check(&self) -> Result<(), ShapeError> {
        power("lanes", self.lanes, 1, 64)?;
        power("warps", self.warps, 1, 64)?;
        power("memory", self.memory, 4 << 10, 64 << 20)?;
        power("program", self.program, 1 << 10, 16 << 20)?;
        power("stack", self.stack, 64, 1 << 20)?;
        power("buffer", self.buffer, LEAST_BUFFER.next_power_of_two(), 16)?;
        power("issue_interval", self.issue_interval, 1, 8)?;
        range("alu_latency", self.alu_latency, ISSUE_TO_DEPENDENT, MOST_ALU_LATENCY)?;
        power("loads", self.loads, 2, 64)?;
        range("depth_bits", self.depth_bits, 1, 16)?;
        if self.program > self.memory {
            let allowed = format!("must not exceed the memory of {} bytes", self.memory);
            return Err(ShapeError::new("program", self.program, allowed));
        }
        power("requests", self.requests, 2, 64)?;
        let least = 8 * self.threads();
        if self.scratchpad != 0 && !(self.scratchpad.is_power_of_two() && (least..=1 << 20).contains(&self.scratchpad))
        {
            let allowed = format!("must be 0, or a power of two from {least} (two words a thread) to {}", 1 << 20);
            return Err(ShapeError::new("scratchpad", self.scratchpad, allowed));
        }
        let stacks = u64::from(self.stack) * u64::from(self.threads());
        if stacks >= u64::from(self.memory) {
            let allowed =
                format!("{} threads' stacks of {} bytes need more than {stacks} bytes", self.threads(), self.stack);
            return Err(ShapeError::new("memory", self.memory, allowed));
        }
        if self.reservations && !self.atomics {
            return Err(ShapeError::new("reservations", "on", "needs atomics: sc.w is an exchange that may fail"));
        }
        self.check_memory_system()?;
        self.divergence.capabilities().check(self)?;
        self.divergence.mechanism().check(self)
    }
}

/// Refuses what is no power of two, or outside these limits.
pub(crate) fn power(field: &'static str, value: u32, least: u32, most: u32) -> Result<(), ShapeError> {
    if value.is_power_of_two() && (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ShapeError::new(field, value, format!("must be a power of two from {least} to {most}")))
}

/// Refuses what is outside these limits.
pub(crate) fn range(field: &'static str, value: u32, least: u32, most: u32) -> Result<(), ShapeError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(ShapeError::new(field, value, format!("must be from {least} to {most}")))
}
