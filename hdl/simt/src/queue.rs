//! First in, first out: a ring in distributed memory, as part of a module.
//!
//! What comes must have room; nothing passes in the cycle in which it comes. Who owns the queue says when its first
//! item leaves, which may depend on that item.

use heddle_hdl::prelude::*;

/// A queue whose first item waits to leave.
pub struct Queue<I: Bundle<Width>> {
    /// The first item; means something while `waits`.
    pub head: I::With<Signal>,
    /// There is an item.
    pub waits: Signal,
    /// There is no room.
    pub full: Signal,
    leaves: Deferred<Signal>,
}

impl<I: Bundle<Width> + Clone> Queue<I>
where
    I::With<Signal>: Signals,
{
    /// A queue of so many places, a power of two, into which `item` goes when `comes`. Its state begins with `name`.
    pub fn new(m: Builder, name: &str, shape: I, places: u32, comes: Signal, item: I::With<Signal>) -> Queue<I> {
        let [first, free] = ["first", "free"].map(|end| {
            let end = m.reg(&format!("{name}_{end}"), index_width(places));
            end.reset(0u32)
        });
        let count = m.reg(&format!("{name}_count"), count_width(places)).reset(0u32);
        let items = m.memory(name, shape, index_width(places)).style(MemoryStyle::Distributed);
        let leaves = m.deferred(&format!("{name}_leaves"), 1);
        let (waits, full) = (count.q.any(), count.q.eq(places));
        items.write(comes, free.q, item);
        free.next_if(comes, free.q + 1);
        first.next_if(leaves.value, first.q + 1);
        count.next_if(comes ^ leaves.value, comes.mux(count.q + 1, count.q - 1));
        m.assert(&format!("{name}_has_room"), !(comes & !leaves.value & full));
        m.assert(&format!("{name}_has_what_leaves"), waits | !leaves.value);
        Queue { head: items.read(first.q), waits, full, leaves }
    }

    /// The first item leaves in a cycle in which this is 1. To be said once.
    pub fn leaves(&self, leaves: Signal) {
        self.leaves.drive(leaves);
    }
}
