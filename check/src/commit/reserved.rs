//! Whether an `sc.w` may fail: only if somebody has written in the word's set since the thread's `lr.w`.
//!
//! [`heddle_simt::pipeline::reservations`] says what a set is, and what else loses reservations: many writes of one
//! set, and a store of several lines of the scratchpad at once.

use super::bits;
use super::places::{extract, limb};
use heddle_simt::Shape;
use heddle_simt::pipeline::reservations::set_of_line;
use heddle_testbench::iss::{Access, Operation, Place, Step};
use std::collections::{BTreeMap, HashMap};

/// A reservation, by what the core may do to it.
struct Reservation {
    set: u32,
    in_scratchpad: bool,
    /// The core may have lost it.
    may_fail: bool,
}

/// What has been decided, and the reservations.
pub struct Reserved {
    /// By thread: whether the `sc.w` under way succeeds.
    decided: HashMap<u32, bool>,
    /// Nothing is decided any more: what is not, fails.
    ended: bool,
    /// By thread.
    reservations: BTreeMap<u32, Reservation>,
    shape: Shape,
}

impl Reserved {
    pub fn new(shape: &Shape) -> Reserved {
        Reserved { decided: HashMap::new(), ended: false, reservations: BTreeMap::new(), shape: shape.clone() }
    }

    /// Nothing is reserved.
    pub fn clear(&mut self) {
        self.decided.clear();
        self.ended = false;
        self.reservations.clear();
    }

    /// All reservations are lost.
    pub fn wrapped(&mut self) {
        self.reservations.values_mut().for_each(|reservation| reservation.may_fail = true);
    }

    /// It is known of some threads whether their `sc.w` succeeds. `rows` has their warps: one for all lanes, or each
    /// lane's.
    pub fn decided(&mut self, row: &[u64], rows: &[u64]) {
        let row_bits = self.shape.warp_bits();
        for lane in bits(row[limb::LANES]) {
            let at = if self.shape.mixes() { lane * row_bits } else { 0 };
            let warp = extract(rows, at, row_bits) as u32;
            self.decided.insert(warp * self.shape.lanes + lane, row[limb::SUCCEED] >> lane & 1 == 1);
        }
    }

    /// Whether it is known of all threads of an `sc.w`.
    pub fn is_decided(&self, threads: &[u32]) -> bool {
        self.ended || threads.iter().all(|thread| self.decided.contains_key(thread))
    }

    /// Whether the `sc.w` of a thread succeeds.
    pub fn take(&mut self, thread: u32) -> bool {
        self.decided.remove(&thread).unwrap_or(false)
    }

    /// The core has stopped.
    pub fn fail_the_rest(&mut self) {
        self.ended = true;
    }

    /// An access of a thread, which had this word reserved before.
    pub fn follow(
        &mut self,
        thread: u32,
        step: &Step,
        access: Access,
        reserved: Option<Place>,
        succeeds: bool,
    ) -> Result<(), String> {
        let (set, in_scratchpad) = self.set(access.place);
        if let Some(conditional) = step.conditional {
            let before = self.reservations.remove(&thread);
            if succeeds && !conditional {
                return Err("its sc.w succeeds without a reservation of the word".into());
            }
            let stands = reserved == Some(access.place) && before.is_some_and(|before| !before.may_fail);
            if !succeeds && stands && !self.ended {
                return Err("its sc.w fails, and nobody wrote in the word's set since its lr.w".into());
            }
        }
        match access.operation {
            Operation::Load if step.word & 0x7f == 0x2f => {
                self.reservations.insert(thread, Reservation { set, in_scratchpad, may_fail: false });
            }
            Operation::Load | Operation::Failed => {}
            Operation::Store | Operation::Atomic { .. } => {
                let same = self.reservations.values_mut().filter(|reservation| reservation.set == set);
                same.for_each(|reservation| reservation.may_fail = true);
            }
        }
        Ok(())
    }

    /// The accesses of an instruction: of a store to several lines of the scratchpad, all that is reserved there may be
    /// lost.
    pub fn scattered(&mut self, accesses: &[(u32, Access)]) {
        let line = |place: Place| match place {
            Place::Scratchpad(byte) => Some(byte / 4 / self.shape.lanes),
            Place::Main(_) => None,
        };
        let writes = accesses.iter().filter(|(_, access)| !matches!(access.operation, Operation::Load));
        let mut lines = writes.filter_map(|(_, access)| line(access.place));
        let Some(first) = lines.next() else { return };
        if lines.any(|line| line != first) {
            let in_scratchpad = self.reservations.values_mut().filter(|reservation| reservation.in_scratchpad);
            in_scratchpad.for_each(|reservation| reservation.may_fail = true);
        }
    }

    /// The set of a place, and whether it is in the scratchpad.
    fn set(&self, place: Place) -> (u32, bool) {
        let (byte, in_scratchpad) = match place {
            Place::Main(byte) => (byte, false),
            Place::Scratchpad(byte) => (byte, true),
        };
        (set_of_line(&self.shape, byte / 4 / self.shape.lanes, in_scratchpad), in_scratchpad)
    }
}
