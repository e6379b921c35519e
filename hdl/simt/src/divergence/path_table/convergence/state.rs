//! What the table keeps: of each barrier an entry, of each warp a word, and where the warden is.

use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// Five bits a barrier, with warp primitives seven.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Word<T> {
    /// The entry's E means something; else nobody is expected.
    #[width(s.convergence_barriers)]
    pub expects: T,
    /// Threads wait; else W, pc and depth of the entry mean nothing.
    #[width(s.convergence_barriers)]
    pub holds: T,
    /// Nobody has arrived since the last time that patience was looked after.
    #[width(s.convergence_barriers)]
    pub old: T,
    /// Nobody had arrived between the last two.
    #[width(s.convergence_barriers)]
    pub tired: T,
    /// To be visited.
    #[width(s.convergence_barriers)]
    pub look: T,
    /// In a core with warp primitives.
    #[width(s.syncs().then(|| BySync::shape(s)))]
    pub by_sync: Option<BySync<T>>,
}

/// What `sync` has made of a barrier.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct BySync<T> {
    /// The threads that wait do so by `sync`: until all are there.
    #[width(s.convergence_barriers)]
    pub hard: T,
    /// A `sync` has found it in use by threads that wait softly. They go on, and no thread waits softly there until a
    /// `sync` has had it.
    #[width(s.convergence_barriers)]
    pub wanted: T,
}

/// A barrier of a warp.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Entry<T> {
    #[width(s.lanes)]
    pub expected: T,
    pub place: Place<T>,
}

/// Who waits there, and where they go on.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Place<T> {
    #[width(s.lanes)]
    pub waiting: T,
    #[width(s.depth_bits)]
    pub depth: T,
    #[width(s.pc_bits())]
    pub pc: T,
}

/// The registers and memories.
pub struct Store {
    pub m: Builder,
    pub s: Shape,
    /// By barrier and warp; written by instructions only, and the second only where threads come to wait.
    pub expected: Mem<Width>,
    pub places: Mem<Place<Width>>,
    /// By warp.
    pub words: Mem<Word<Width>>,
    /// By warp: the threads that have not ended.
    pub alive: Mem<Width>,
    /// One bit per warp: threads of it wait; a barrier of it is to be visited.
    pub holding: Reg<Signal>,
    pub looking: Reg<Signal>,
    /// One bit per warp: threads of it wait otherwise than by `sync`; in a core with warp primitives.
    pub softly: Option<Reg<Signal>>,
    /// One bit per warp, where threads wait: some have ended since; patience is to be looked after.
    pub exited: Reg<Signal>,
    pub ticked: Reg<Signal>,
    /// The warden: 1 bit, it is at a warp; which.
    pub at: Reg<Signal>,
    pub at_slot: Reg<Signal>,
    /// 1 bit: it reads the entry of a barrier; which; 1 bit: it was chosen because nobody can run.
    pub read: Reg<Signal>,
    pub read_barrier: Reg<Signal>,
    pub forced: Reg<Signal>,
    /// 1 bit: that barrier was weighed.
    pub weighed: Reg<Signal>,
    /// Of each warp, the barrier that was decided about last: else those of other warps would say whose turn it is.
    pub last: Mem<Width>,
}

impl Store {
    /// All of it, as at reset.
    pub fn new(m: Builder, s: &Shape) -> Store {
        let distributed = MemoryStyle::Distributed;
        let address_bits = s.warps.ilog2() + s.barrier_bits();
        let style = if are_small(s) { distributed } else { MemoryStyle::Block };
        Store {
            expected: m.memory("expected_threads", s.lanes, address_bits).style(style),
            places: m.memory("places", Place::shape(s), address_bits).style(style),
            words: m.memory("words", Word::shape(s), s.warp_bits()).style(distributed),
            alive: m.memory("alive", s.lanes, s.warp_bits()).style(distributed),
            holding: m.reg("holding", s.warps).reset(0u32),
            looking: m.reg("looking", s.warps).reset(0u32),
            softly: s.syncs().then(|| m.reg("softly", s.warps).reset(0u32)),
            exited: m.reg("exited", s.warps).reset(0u32),
            ticked: m.reg("ticked", s.warps).reset(0u32),
            at: m.reg("at", 1).reset(0u32),
            at_slot: m.reg("at_slot", s.warp_bits()).reset(0u32),
            read: m.reg("read", 1).reset(0u32),
            read_barrier: m.reg("read_barrier", s.barrier_bits()),
            forced: m.reg("forced", 1),
            weighed: m.reg("weighed", 1).reset(0u32),
            last: m.memory("last_decided", s.barrier_bits(), s.warp_bits()).style(distributed),
            m,
            s: s.clone(),
        }
    }

    /// The address of a barrier's entry.
    pub fn address(&self, slot: Signal, barrier: Signal) -> Signal {
        if self.s.warps > 1 { cat(&[barrier, slot]) } else { barrier }
    }

    /// The entry at this address, in the next cycle, if `valid`; else the one of before. Returns the address, too.
    pub fn read_ahead(&self, name: &str, valid: Signal, address: Signal) -> (Entry<Signal>, Signal) {
        let at = self.m.reg(name, address.width());
        at.next_if(valid, address);
        if are_small(&self.s) {
            // A table that is read at once needs no way around it for what is written at the edge.
            return (self.entry(at.q), at.q);
        }
        let expected = self.expected.read_sync_if(valid, address, Collision::ReadNew);
        (Entry { expected, place: self.places.read_sync_if(valid, address, Collision::ReadNew) }, at.q)
    }

    /// The entry at this address.
    pub fn entry(&self, address: Signal) -> Entry<Signal> {
        Entry { expected: self.expected.read(address), place: self.places.read(address) }
    }

    /// One bit per warp: something of it is to be noted.
    pub fn noted(&self) -> Signal {
        self.exited.q | self.ticked.q
    }

    /// The word of a warp, and where threads wait and are to be looked at, follow who acts: an instruction, a start, the
    /// warden. One write port.
    pub fn write_word(&self, writes: Signal, slot: Signal, word: Word<Signal>) {
        self.words.write(writes, slot, word);
        let at = slot.decode(self.s.warps);
        let follow = |bits: Signal, any: Signal| (bits & !at) | at.only_if(any);
        self.holding.next_if(writes, follow(self.holding.q, word.holds.any()));
        self.looking.next_if(writes, follow(self.looking.q, word.look.any()));
        if let Some(softly) = &self.softly {
            softly.next_if(writes, follow(softly.q, word.soft().any()));
        }
    }
}

impl Word<Signal> {
    /// A bit a barrier: threads wait there otherwise than by `sync`.
    pub fn soft(&self) -> Signal {
        self.by_sync.map_or(self.holds, |by_sync| self.holds & !by_sync.hard)
    }
}

/// The entries are few enough for distributed RAM.
fn are_small(s: &Shape) -> bool {
    s.warps << s.barrier_bits() <= 64
}

/// 1 bit: `bits` has the bit `at`.
pub fn has(bits: Signal, at: Signal) -> Signal {
    (bits & at).any()
}

pub fn set(bits: Signal, at: Signal) -> Signal {
    bits | at
}

pub fn clear(bits: Signal, at: Signal) -> Signal {
    bits & !at
}
