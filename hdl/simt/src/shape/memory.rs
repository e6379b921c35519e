//! What can be chosen about the memory system.

use super::check::{ShapeError, power, range};
use super::{Replay, Shape};
use crate::pipeline::timing::ACCESS_TO_ANSWER;
use heddle_hdl::Width;

/// How a data cache is laid out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cache {
    /// Bytes of data: a power of two.
    pub size: u32,
    /// Places for a line: a power of two, 1 … 16; of a second level, up to 64.
    pub ways: u32,
    /// Memory lines (of `lanes` words) of a cache line: a power of two, 1 … 16.
    pub line: u32,
    /// Misses under way at once: a power of two, 1 … 64.
    pub misses: u32,
}

/// A second level between main memory's [model](Backing::Model) and what is before it: its time, for simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SecondLevel {
    pub cache: Cache,
    /// Cycles from a request that finds its line to the response: 1 … 4096.
    pub latency: u32,
}

/// Sets that a second level may have, each of which it knows to be empty after a launch has begun.
const MOST_SETS: u32 = 4096;

/// What main memory is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backing {
    /// Block RAM: a request a cycle, the answer in the next.
    OnChip,
    /// A model for simulation: on-chip memory that answers later.
    Model(Timing),
    /// Outside, on a Wishbone B4 bus (pipelined) of `width` data bits: a power of two, 32 … 32 × lanes. Simulations
    /// have this slave on it, which is not part of the hardware.
    Wishbone { width: u32, slave: SlaveModel },
}

impl Backing {
    /// Memory of a simulation that takes another time to its answer, if any is modelled.
    pub fn with_latency(self, latency: u32) -> Backing {
        let at = |timing| Timing { latency, ..timing };
        match self {
            Backing::OnChip => Backing::OnChip,
            Backing::Model(timing) => Backing::Model(at(timing)),
            Backing::Wishbone { width, slave } => {
                Backing::Wishbone { width, slave: SlaveModel { timing: at(slave.timing), ..slave } }
            }
        }
    }
}

/// The memory on the bus of a simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SlaveModel {
    /// Of a beat; stalls are up to 3 cycles longer than the interval if there is jitter.
    pub timing: Timing,
    /// Whoever accesses the beat with this byte address gets an error.
    pub error: Option<u32>,
}

/// The time that a modelled memory takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Timing {
    /// Cycles from a request to its response, at least: 1 … 4096.
    pub latency: u32,
    /// Cycles more, at most; each response draws its own. 0, or a power of two less 1, up to 1023.
    pub jitter: u32,
    /// Cycles from one request taken to the next, at least: 1 … 256.
    pub interval: u32,
    /// Of the drawn latencies.
    pub seed: u32,
}

impl Timing {
    /// An answer in the next cycle, and a request in every one.
    pub const FASTEST: Timing = Timing { latency: ACCESS_TO_ANSWER, jitter: 0, interval: 1, seed: 1 };

    /// Fails if no memory can be modelled so.
    pub fn check(&self) -> Result<(), ShapeError> {
        range("model.latency", self.latency, 1, 4096)?;
        range("model.interval", self.interval, 1, 256)?;
        if self.jitter > 1023 || !(self.jitter + 1).is_power_of_two() {
            let allowed = "must be 0, 1, 3, 7 … 1023: a power of two less 1";
            return Err(ShapeError::new("model.jitter", self.jitter, allowed));
        }
        Ok(())
    }
}

impl Shape {
    /// The part about what is behind the memory port.
    pub(super) fn check_memory_system(&self) -> Result<(), ShapeError> {
        if let Some(cache) = &self.cache {
            power("cache.ways", cache.ways, 1, 16)?;
            power("cache.line", cache.line, 1, 16)?;
            power("cache.misses", cache.misses, 1, 64)?;
            let set = cache.ways * cache.line * 4 * self.lanes;
            let most = (self.memory / 2).min(4 << 20);
            if set > most {
                let allowed = format!("a set of {} ways has {set} bytes, and the cache at most {most}", cache.ways);
                return Err(ShapeError::new("cache.ways", cache.ways, allowed));
            }
            power("cache.size", cache.size, set, most)?;
        }
        self.check_second_level()?;
        match self.backing {
            Backing::OnChip => Ok(()),
            Backing::Model(timing) => timing.check(),
            Backing::Wishbone { width, slave } => {
                power("wishbone.width", width, 32, 32 * self.lanes)?;
                slave.timing.check()
            }
        }
    }

    fn check_second_level(&self) -> Result<(), ShapeError> {
        let Some(SecondLevel { cache, latency }) = &self.second_level else { return Ok(()) };
        if self.modelled().is_none() {
            let allowed = match self.bus_width() {
                Some(_) => "there is none before a bus: it is a part of the model of memory on the chip",
                None => "needs the model of a memory behind it (memory-model), such as latency=200",
            };
            return Err(ShapeError::new("second_level", cache.size, allowed));
        }
        power("second_level.ways", cache.ways, 1, 64)?;
        power("second_level.line", cache.line, 1, 16)?;
        power("second_level.misses", cache.misses, 1, 64)?;
        range("second_level.latency", *latency, 1, 4096)?;
        let set = cache.ways * cache.line * 4 * self.lanes;
        let most = (self.memory / 2).min(set.saturating_mul(MOST_SETS));
        if set > most {
            let allowed = format!("a set of {} ways has {set} bytes, and half of memory {most}", cache.ways);
            return Err(ShapeError::new("second_level.ways", cache.ways, allowed));
        }
        power("second_level.size", cache.size, set, most).map_err(|error| {
            let why = if most < self.memory / 2 { format!("{MOST_SETS} sets") } else { "half of memory".into() };
            ShapeError { allowed: format!("{}, a set and {why}", error.allowed), ..error }
        })
    }

    /// Whether the memory port may have to wait.
    pub fn memory_stalls(&self) -> bool {
        self.cache.is_some() || self.backing != Backing::OnChip
    }

    /// Whether scratchpad and memory port may both answer in a cycle, and take turns.
    pub fn two_answers(&self) -> bool {
        self.replay == Replay::Serialise && self.scratchpad > 0
    }

    /// Data bits of the bus, if main memory is on one.
    pub fn bus_width(&self) -> Option<Width> {
        match self.backing {
            Backing::Wishbone { width, .. } => Some(width),
            Backing::OnChip | Backing::Model(_) => None,
        }
    }

    /// The timing of a memory that is modelled on chip.
    pub fn modelled(&self) -> Option<Timing> {
        match self.backing {
            Backing::Model(timing) => Some(timing),
            Backing::OnChip | Backing::Wishbone { .. } => None,
        }
    }

    /// The timing of a simulation's memory, on chip or on the bus; none if it is as fast as can be.
    pub fn simulated_timing(&self) -> Option<Timing> {
        match self.backing {
            Backing::OnChip => None,
            Backing::Model(timing) => Some(timing),
            Backing::Wishbone { slave, .. } => Some(slave.timing),
        }
    }
}
