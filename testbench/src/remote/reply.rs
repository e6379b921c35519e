//! What replies say.

use heddle_hdl::Code;
use heddle_simt::LaneMask;
use heddle_simt::host::protocol::{Reason, STATUS_WORDS};
use heddle_simt::isa::FaultCause;
use std::fmt;

/// Why the host refuses a request, by its number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal(pub u32);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match Reason::from_bits(self.0) {
            Some(Reason::Damaged) => "the frame was damaged",
            Some(Reason::Command) => "it does not know the command",
            Some(Reason::Length) => "the frame has another length than the command",
            Some(Reason::Range) => "the range is outside memory, or the grid is none that the core can run",
            Some(Reason::Busy) => "a launch is under way, or the core has stopped by a fault",
            Some(Reason::Bus) => "memory is on a bus, which the host does not reach",
            Some(Reason::Number) => "it has counted other launches",
            None => "for a reason of its own",
        })
    }
}

/// How a launch is, or went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Status {
    /// Launches since the reset, modulo 256.
    pub launches: u8,
    /// One is under way.
    pub running: bool,
    /// The last has ended.
    pub done: bool,
    /// The core has stopped.
    pub fault: Option<StoppedBy>,
    /// Threads whose exit code is not 0, and the first of them.
    pub failed: Option<Failed>,
    /// From the launch to its end.
    pub cycles: u64,
}

/// Why the core stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoppedBy {
    /// None if the core tells another number.
    pub cause: Option<FaultCause>,
    /// Warp slot.
    pub slot: u32,
    /// Byte address of the instruction.
    pub pc: u32,
    /// The lanes to blame; a status does not say how many the core has, so of the most that it can have.
    pub mask: LaneMask,
    /// Of a jump or memory access.
    pub address: u32,
}

/// Threads that failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed {
    /// How many.
    pub count: u64,
    /// The first's hardware thread: warp slot × lanes + lane.
    pub thread: u32,
    /// Its exit code.
    pub code: u32,
}

impl Status {
    /// Of a reply's words after the header.
    ///
    /// # Panics
    /// If they are not [`STATUS_WORDS`].
    pub fn of(words: &[u32]) -> Status {
        assert_eq!(words.len(), STATUS_WORDS as usize, "words of a status");
        let long = |low: usize| u64::from(words[low]) | u64::from(words[low + 1]) << 32;
        let is = |bit: u32| words[0] >> bit & 1 == 1;
        let fault = StoppedBy {
            cause: FaultCause::from_bits(words[0] >> 12 & 15),
            slot: words[0] >> 16 & 0xff,
            pc: words[1],
            mask: LaneMask::from_element(long(2)),
            address: words[4],
        };
        // As many as there can be do not fit.
        let count = if words[5] == 0 { 1 << 32 } else { words[5].into() };
        let failed = Failed { count, thread: words[6], code: words[7] };
        Status {
            launches: words[0] as u8,
            running: is(8),
            done: is(9),
            fault: is(10).then_some(fault),
            failed: is(11).then_some(failed),
            cycles: long(8),
        }
    }
}
