//! Register writes that have not come yet: of each thread and register, at most one.

use heddle_testbench::disassemble::REGISTERS;

/// The value of a register.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    Exactly(u32),
    /// Of a counter.
    Any,
    /// The threads of a convergence barrier.
    AtMost(u32),
}

/// A write that is owed, and by which instruction.
#[derive(Clone, Copy)]
pub struct Owed {
    pub pc: u32,
    pub value: Expected,
}

/// Those of all threads.
pub struct AllOwed {
    /// By register, then thread.
    owed: Vec<Option<Owed>>,
    threads: usize,
    /// How many there are.
    count: usize,
}

impl AllOwed {
    pub fn new(threads: u32) -> AllOwed {
        AllOwed { owed: vec![None; 32 * threads as usize], threads: threads as usize, count: 0 }
    }

    pub fn clear(&mut self) {
        self.owed.fill(None);
        self.count = 0;
    }

    /// From now on a thread's register is to be written; or what it is to be written by already.
    pub fn add(&mut self, thread: u32, register: u8, owed: Owed) -> Result<(), Owed> {
        let place = &mut self.owed[register as usize * self.threads + thread as usize];
        if let Some(before) = place {
            return Err(*before);
        }
        *place = Some(owed);
        self.count += 1;
        Ok(())
    }

    /// A register is written.
    pub fn take(&mut self, thread: u32, register: u8) -> Option<Owed> {
        let owed = self.owed[register as usize * self.threads + thread as usize].take();
        self.count -= usize::from(owed.is_some());
        owed
    }

    /// The first that is left, by thread and register, of these threads.
    pub fn first(&self, mut threads: impl Iterator<Item = u32>) -> Option<(u32, u8, Owed)> {
        if self.count == 0 {
            return None;
        }
        threads.find_map(|thread| {
            let of = |register: u8| self.owed[register as usize * self.threads + thread as usize];
            (0..32).find_map(|register| of(register).map(|owed| (thread, register, owed)))
        })
    }
}

pub fn name(register: u8) -> &'static str {
    REGISTERS[register as usize]
}
