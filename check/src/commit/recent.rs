//! Pcs of each thread's last instructions.

/// Instructions of a thread that a [`super::Mismatch`] shows, before the one where it differs.
const RECENT: usize = 8;

/// Of a thread: the last `count`, if those are fewer than [`RECENT`]; that of instruction n at n modulo [`RECENT`].
#[derive(Clone, Copy, Default)]
struct Last {
    pcs: [u32; RECENT],
    count: usize,
}

pub struct Recent(Vec<Last>);

impl Recent {
    pub fn new(threads: u32) -> Recent {
        Recent(vec![Last::default(); threads as usize])
    }

    pub fn clear(&mut self) {
        self.0.fill(Last::default());
    }

    pub fn clear_thread(&mut self, thread: u32) {
        self.0[thread as usize] = Last::default();
    }

    pub fn push(&mut self, thread: u32, pc: u32) {
        let last = &mut self.0[thread as usize];
        last.pcs[last.count % RECENT] = pc;
        last.count += 1;
    }

    /// The oldest first.
    pub fn of(&self, thread: u32) -> impl DoubleEndedIterator<Item = u32> + use<'_> {
        let last = &self.0[thread as usize];
        (last.count.saturating_sub(RECENT)..last.count).map(|n| last.pcs[n % RECENT])
    }
}
