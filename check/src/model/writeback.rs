//! Results that come late: who has the write port of the register banks, and when issue makes room. As
//! `hdl/simt/src/pipeline/writeback.rs` and `gather.rs`, which holds them and puts answers to one load together.

use super::cycles;
use super::memory::Memory;
use heddle_simt::pipeline::timing::{ISSUE_TO_WRITE, WAIT_BEFORE_BUBBLE};

/// The write port and what waits for it.
#[derive(Default)]
pub struct Writeback {
    /// What is in the gather register, and whether all of it is.
    held: Option<(Late, bool)>,
    /// Something else was waiting behind it in the cycle before.
    another_waits: bool,
    divider_next: bool,
    waited: u32,
    /// When the last bubble was made.
    bubble: Option<u64>,
}

/// A result that comes late.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Late {
    Load(usize),
    Quotient,
}

/// What a cycle came to.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cycle {
    /// All of this is written.
    pub written: Option<Late>,
    /// The divider is rid of its result.
    pub quotient_taken: bool,
}

impl Writeback {
    /// Whether issue leaves this cycle free.
    pub fn bubble(&mut self, now: u64) -> bool {
        let bubble =
            self.waited == WAIT_BEFORE_BUBBLE && self.bubble.is_none_or(|last| now > last + cycles(ISSUE_TO_WRITE));
        self.bubble = if bubble { Some(now) } else { self.bubble };
        bubble
    }

    /// A cycle in which the pipeline itself writes or not, and a quotient is there or not.
    pub fn cycle(
        &mut self,
        now: u64,
        busy: bool,
        quotient: bool,
        memory: &mut Memory,
        has_register: impl Fn(usize) -> bool,
    ) -> Cycle {
        let mut answer = memory.answer(now);
        if answer.is_some_and(|load| !has_register(load)) {
            memory.take(now);
            answer = None;
        }
        let answer = answer.filter(|_| !(self.divider_next && quotient));
        let comes = answer.map(Late::Load).or(quotient.then_some(Late::Quotient));
        let joins = comes.is_some() && self.held == comes.map(|comes| (comes, false));
        let offered = self.held.filter(|&(_, all)| all || self.another_waits);
        let written = offered.filter(|_| !busy);
        self.another_waits = self.held.is_some() && comes.is_some() && !joins && written.is_none();
        let waits = offered.is_some() && busy;
        self.waited = if waits { (self.waited + 1).min(WAIT_BEFORE_BUBBLE) } else { 0 };
        if written.is_some() {
            self.held = None;
        }
        let taken = comes.filter(|_| self.held.is_none() || joins);
        if let Some(taken) = taken {
            let all = match taken {
                Late::Load(load) => {
                    memory.take(now);
                    !memory.more(load)
                }
                Late::Quotient => true,
            };
            self.held = Some((taken, all));
        }
        let quotient_taken = taken == Some(Late::Quotient);
        let load_taken = taken.is_some() && !quotient_taken;
        self.divider_next = (self.divider_next || load_taken) && quotient && !quotient_taken;
        Cycle { written: written.filter(|&(_, all)| all).map(|(late, _)| late), quotient_taken }
    }
}
