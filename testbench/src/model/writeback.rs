//! Results that come late: who has the write port of the register banks, and when issue makes room. As
//! `hdl/simt/src/pipeline/writeback.rs` and `gather.rs`, which puts answers to one load together.

use super::cycles;
use super::memory::Memory;
use heddle_simt::pipeline::timing::{ISSUE_TO_WRITE, WAIT_BEFORE_BUBBLE};

/// The write port and what waits for it.
#[derive(Default)]
pub struct Writeback {
    /// The load in the gather register, and whether its last lanes are in it.
    held: Option<(usize, bool)>,
    divider_next: bool,
    waited: u32,
    /// When the last bubble was made.
    bubble: Option<u64>,
}

/// What was written late in a cycle.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Late {
    /// The last lanes of this load.
    Load(usize),
    Quotient,
}

impl Writeback {
    /// Whether issue leaves this cycle free.
    pub fn bubble(&mut self, now: u64) -> bool {
        let bubble =
            self.waited == WAIT_BEFORE_BUBBLE && self.bubble.is_none_or(|last| now > last + cycles(ISSUE_TO_WRITE));
        self.bubble = if bubble { Some(now) } else { self.bubble };
        bubble
    }

    /// A cycle in which the pipeline itself writes or not, and a quotient is there or not; what is written instead.
    pub fn cycle(
        &mut self,
        now: u64,
        busy: bool,
        quotient: bool,
        memory: &mut Memory,
        has_register: impl Fn(usize) -> bool,
    ) -> Option<Late> {
        let mut answer = memory.answer(now);
        if answer.is_some_and(|load| !has_register(load)) {
            memory.take(now);
            answer = None;
        }
        let joins = answer.is_some_and(|load| self.held == Some((load, false)));
        let offered = self.held.filter(|&(_, last)| last || answer.is_some() && !joins);
        let from_load = offered.filter(|_| !(busy || self.divider_next && quotient));
        let from_quotient = quotient && !busy && from_load.is_none();
        self.divider_next = (self.divider_next || from_load.is_some()) && quotient && !from_quotient;
        let waits = offered.is_some() && from_load.is_none() || quotient && !from_quotient;
        self.waited = if waits { (self.waited + 1).min(WAIT_BEFORE_BUBBLE) } else { 0 };
        if from_load.is_some() {
            self.held = None;
        }
        if let Some(load) = answer.filter(|_| self.held.is_none() || joins) {
            memory.take(now);
            self.held = Some((load, !memory.more(load)));
        }
        match from_load {
            Some((load, true)) => Some(Late::Load(load)),
            _ => from_quotient.then_some(Late::Quotient),
        }
    }
}
