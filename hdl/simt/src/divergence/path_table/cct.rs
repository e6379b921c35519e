//! The cold context table of the path tables: the paths of every warp beyond its first two.
//!
//! `path-lists-simty.txt` §3.2. Each warp has a stack of `lanes - 2` entries in one memory with a synchronous read,
//! whose output comes late in a cycle: it goes to a register, and the entry is used two cycles after its address. The
//! third path comes late, too, so it is written out of a register; a read finds it there. What happens to a stack
//! depends on who passes the compact-and-sort unit (CCS) in this cycle, which was chosen in the cycle before
//! ([`CctOut::must`], [`CctOut::next`]), but for starts:
//!
//! | turn | what it does here |
//! |---|---|
//! | outcome | pushes z; if only x is left and the stack is not empty, the warp is now *returning* |
//! | return | the stack's head, in the register, is with x again: pops it; reads the next |
//! | start | empties the stack |
//! | wake | nothing |
//! | fetch | reads the head of a returning warp, for its return |
//! | sort | reads an entry; the one in the register is compared with y, and exchanged if it belongs before it |
//!
//! An outcome reads the head of its own stack along with it, so that the return can follow in the next cycle but one.
//! That it is known late that x is left alone costs the turn between wherever there is an entry: only an outcome or a
//! start may have it, for it is not known yet that the warp is returning. The turn after it is kept for a head that was
//! read. In the register a head waits for its return, while outcomes are announced; behind it one more may be in the
//! memory's output, of another warp. A warp whose head finds no room there has it fetched later.
//!
//! The sorter holds nothing: its comparison and its exchange are one cycle, and if anything else has its turn between
//! the read and that cycle, or in it, the read is done again. So an exchange never uses an entry or a y that has
//! changed since, but by the sorter itself, which has gone on to the entries above. After an exchange it waits a cycle
//! until it has the new y.
//!
//! The sorter goes through a stack from the bottom to the head, warp after warp. Afterwards y is the least path outside
//! x; a stack that was in order (least at the head) still is.
//!
//! If x waits (or has given way, with convergence barriers: the same here), the sorter exchanges x too, and a path in
//! the stack that can run comes to x. Such a warp is *seeking* from the outcome or return after which x waits over a
//! stack that is not empty, until the sorter has found a path that can run or has reached the head without one; then
//! all wait. The pass that decides this starts after the warp began to seek, and nothing but the sorter changes the
//! warp meanwhile. While some warp seeks, the sorter passes over those that do not.
//!
//! What it does not do: entries that are equal to y or to each other stay apart until one comes back. It exists for 4
//! lanes and more.

use crate::divergence::Path;
use crate::divergence::inspect::State;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// A path in a table, where its place says whether it is valid.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Context<T> {
    pub depth: T,
    pub pc: T,
    pub mask: T,
    /// 1 bit: in the tables, `waits` of the path xor the phase of its warp.
    pub waits: T,
}

impl<T> Context<T> {
    pub fn of(path: Path<T>) -> Context<T> {
        Context { depth: path.depth, pc: path.pc, mask: path.mask, waits: path.waits }
    }

    pub fn path(self, valid: T) -> Path<T> {
        Path { valid, depth: self.depth, pc: self.pc, mask: self.mask, waits: self.waits }
    }
}

impl Context<Width> {
    pub fn shape(s: &Shape) -> Context<Width> {
        Context::of(Path::shape(s))
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct CctIn<T> {
    /// 1 bit: the turn is kept for an outcome, which comes or does not.
    pub announced: T,
    /// 1 bit: an outcome has its turn, or the threads of a convergence barrier, which enter the list.
    pub outcome: T,
    /// 1 bit: a start has its turn; only if it is neither kept for an outcome nor for a return.
    pub start: T,
    /// 1 bit: a wake has its turn; only if there is none of these.
    pub wake: T,
    /// 1 bit: the turn is the sorter's, unless a start takes it; only if [`CctOut::next_sorts`] was 1.
    pub sort: T,
    /// 1 bit: the sorter leaves its turn unused, for somebody else has the next one of the slot.
    pub gives_way: T,
    /// 1 bit: what was read of the slot has been written since. Only the sorter has a turn then, or nobody, and the
    /// sorter waits.
    pub stale: T,
    /// Whose turn it is, but for a start; whose stack a start empties; and whose turn comes next.
    #[width(s.warp_bits())]
    pub slot: T,
    #[width(s.warp_bits())]
    pub start_slot: T,
    #[width(s.warp_bits())]
    pub next_slot: T,
    /// 1 bit: `slot` is live and has a y.
    pub has_y: T,
    /// From the CCS, 1 bit: x is valid and y is not.
    pub alone: T,
    /// From the CCS, 1 bit: x is valid and waits, or has given way.
    pub x_waits: T,
    /// From the CCS, with `waits` as the tables hold it.
    pub z: Path<T>,
    /// From the CCS, 1 bit: `entry` belongs before y, or before x where x takes part.
    pub before_y: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct CctOut<T> {
    /// 1 bit: a head is in the register for its return, which has the turn if that is not kept for an outcome.
    pub returned: T,
    /// Whose the next turn is because somebody returns, or may begin to: only an outcome may have it instead.
    pub must: Read<T>,
    /// Whose turn comes next if nobody else wants it, and, 1 bit, whether it is the sorter's.
    #[width(s.warp_bits())]
    pub next: T,
    pub next_sorts: T,
    /// The entry in the register: of a return, or of the sorter.
    pub entry: Context<T>,
    /// 1 bit: the sorter compares `entry` with the y of `slot`.
    pub sorts: T,
    /// 1 bit: after this cycle's outcome or return, another return comes first; the slot is not steered yet.
    pub more_returns: T,
    /// 1 bit: `z` is pushed / `entry` is popped / `entry` and y are exchanged in this cycle.
    pub insert: T,
    pub extract: T,
    pub swap: T,
    /// Entries of `slot` before this cycle; 0 at a start.
    #[width(count_width(entries(s)))]
    pub count: T,
    /// 1 bit: the stack of `slot` is empty after this cycle, or the sorter's pass over it ends: if x waits, all do.
    pub seen: T,
    /// 1 bit: some warp is returning or seeking, which outcomes put off.
    pub due: T,
    /// One bit per warp: it is returning or seeking. With convergence barriers.
    #[width(s.warps)]
    #[when(s.convergence_barriers > 0)]
    pub busy: Option<T>,
}

/// Entries a warp.
pub fn entries(s: &Shape) -> u32 {
    s.lanes.saturating_sub(2)
}

/// Whose head, or which entry of the sorter, is in the memory's output, or in the register behind it.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Read<T> {
    pub valid: T,
    #[width(s.warp_bits())]
    pub at: T,
}

/// A write into the table.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct Write<T> {
    valid: T,
    address: T,
    path: Context<T>,
}

/// The paths of a warp in the table's state, from the bottom, with what is about to be written.
pub fn held(s: &Shape, state: &State, warp: u32) -> Vec<Context<Bits>> {
    let index_bits = index_width(entries(s));
    let late =
        state.register(Write { valid: 1, address: index_bits + s.warps.ilog2(), path: Context::shape(s) }, "late");
    // A broken core may count more than there are.
    let count = state.word(count_width(entries(s)), "counts", warp.into()).low_u64().min(entries(s).into());
    let addresses = (0..count).map(|k| u64::from(warp) << index_bits | k);
    let path = |address: u64| match late.valid == 1 && late.address == address {
        true => late.path.clone(),
        false => state.word(Context::shape(s), "cold", address),
    };
    addresses.map(path).collect()
}

/// The cold context table of a shape of at least 4 lanes.
pub fn cct(s: &Shape) -> TypedModule<CctIn<Width>, CctOut<Signal>> {
    module("cct", CctIn::shape(s), |m, i| described(m, s, i).0)
}

/// The table's state, as a proof sees it.
pub(super) struct Inside {
    /// A head in the memory's output, and one in `entry`.
    pub reading: Read<Signal>,
    pub fetched: Read<Signal>,
    /// See [`CctOut::must`], 1 bit.
    pub must: Signal,
    pub returning: Signal,
    pub seeking: Signal,
    pub scan: Signal,
    pub index: Signal,
    /// The sorter's entry in the memory's output, and the one in `entry`.
    pub scanned: Read<Signal>,
    pub compared: Read<Signal>,
    /// The memory's output.
    pub read: Context<Signal>,
    pub counts: Mem<Width>,
    /// What was read of it, for `slot`.
    pub counted: Signal,
    cold: Mem<Context<Width>>,
    late: Write<Signal>,
}

impl Inside {
    /// The entry at an address of the table.
    pub fn path(&self, address: Signal) -> Context<Signal> {
        (self.late.valid & self.late.address.eq(address)).mux(self.late.path, self.cold.read(address))
    }
}

pub(super) fn described(m: Builder, s: &Shape, i: CctIn<Signal>) -> (CctOut<Signal>, Inside) {
    let slot_bits = s.warp_bits();
    let (index_bits, count_bits) = (index_width(entries(s)), count_width(entries(s)));
    m.doc("Cold context table: a stack of paths for each warp, sorted in the background.");
    let reading = m.reg("reading", Read { valid: 1, at: slot_bits }).reset_zero();
    let fetched = m.reg("fetched", Read { valid: 1, at: slot_bits }).reset_zero();
    let returning = m.reg("returning", s.warps).reset(0u32);
    let seeking = if s.may_park() { Some(m.reg("seeking", s.warps).reset(0u32)) } else { None };
    let seekers = seeking.as_ref().map_or(m.lit(0u32, s.warps), |r| r.q);
    let scan = m.reg("scan", slot_bits).reset(0u32);
    let index = m.reg("index", count_bits).reset(0u32);
    let scanned = m.reg("scanned", Read { valid: 1, at: count_bits }).reset_zero();
    let compared = m.reg("compared", Read { valid: 1, at: count_bits }).reset_zero();
    let counts = m.memory("counts", count_bits, slot_bits).style(MemoryStyle::Distributed);
    let cold = m.memory("cold", Context::shape(s), index_bits + s.warps.ilog2());
    let entry = m.reg("entry", Context::shape(s));

    // Whose turn it is.
    wire!(back = fetched.q.valid & !i.announced);
    wire!(idle = !i.announced & !i.outcome & !back & !i.start & !i.wake);
    wire!(is_returning = returning.q.select(i.slot, 1));
    wire!(fetch = idle & is_returning & !reading.q.valid);
    // The sorter's, and it goes on or waits for what was written.
    wire!(sort = i.sort & !i.start & !i.gives_way);
    wire!(waits = sort & i.stale);
    wire!(steps = sort & !i.stale);

    // The stack of the slot.
    // With a reset, as the words of the hot tables.
    let counted = m.reg("counted", count_bits).reset(0u32);
    wire!(count = counted.q.only_if(!i.start));
    wire!(left = back.mux(count - 1, count));
    wire!(more_returns = (i.outcome | back) & i.alone & left.any());
    wire!(insert = i.outcome & i.z.valid);
    wire!(grown = insert.mux(count + 1, left));
    wire!(counts_change = insert | back | i.start);
    counts.write(counts_change, i.start.mux(i.start_slot, i.slot), grown);
    counted.next(counts.read(i.next_slot));
    let at = i.slot.decode(s.warps);
    returning.next_if(i.outcome | back, (returning.q & !at) | at.only_if(more_returns));

    // The sorter: reads the next entry and compares the last but one.
    wire!(any_seeking = seekers.any());
    wire!(goes_here = !any_seeking | seekers.select(i.slot, 1));
    wire!(more = steps & i.has_y & index.q.lt(count) & goes_here);
    wire!(ends = steps & !more & !scanned.q.valid);
    // What is compared takes part in the sort before it is known whether the turn is used.
    wire!(sorts = i.sort & !i.start & !i.stale & i.has_y & compared.q.valid);
    wire!(swap = sorts & i.before_y & !i.gives_way);
    wire!(disturbed = (scanned.q.valid | compared.q.valid) & !sort);
    let from_bottom = index.q.literal(0u32);
    let again = compared.q.valid.mux(compared.q.at, scanned.q.at);
    wire!(seeks = (i.outcome | back) & i.x_waits & grown.any());
    index.next(pick([(more, index.q + 1), (ends | seeks, from_bottom), (disturbed, again)], index.q));
    scanned.next_if(!waits, Read { valid: more, at: index.q });
    compared.next_if(!waits, Read { valid: scanned.q.valid & sort, at: scanned.q.at });
    let next_warp = if s.warps > 1 { scan.q + 1 } else { scan.q };
    scan.next_if(ends, next_warp);
    if let Some(seeking) = &seeking {
        wire!(found = ends | (steps & !i.x_waits));
        seeking.next_if(i.outcome | back | found, (seekers & !at) | at.only_if(seeks));
    }
    wire!(seen = ((i.outcome | back | i.start) & !grown.any()) | ends);

    // Whose turn comes next. Whether x is left alone is known late, so the turn after an outcome or a return is kept
    // wherever there is an entry: nobody then finds a warp that returns without its bit. A head that is read has the
    // turn after it.
    wire!(stays = fetched.q.valid & i.announced);
    let may_return = (i.outcome | back) & left.any();
    let whose = pick([(stays, fetched.q.at), (reading.q.valid, reading.q.at)], i.slot);
    let must = Read { valid: stays | reading.q.valid | fetch | may_return, at: whose };
    wire!(any_returning = returning.q.any());
    let first = returning.q.lowest_one().one_hot_index();
    let next = any_returning.mux(first, ends.mux(next_warp, scan.q));

    // One write port, one read port.
    let address = |entry: Signal| {
        let entry = entry.slice(0, index_bits);
        if s.warps > 1 { cat(&[entry, i.slot]) } else { entry }
    };
    // The third path is known late in the cycle, so it is written a cycle later. Whoever reads then has it all the
    // same.
    let to = address(swap.mux(compared.q.at, count));
    let late = m.stage("late", Write { valid: insert | swap, address: to, path: Context::of(i.z) });
    cold.write(late.valid, late.address, late.path);
    // Behind a head that waits for its return one more is read.
    wire!(free = !stays);
    wire!(room = free | !reading.q.valid);
    let head = left - 1;
    // Behind the last entry there is nothing to read: with two entries its address is that of the first.
    let reads = room & (more | !sort);
    let read = cold.read_sync_if(reads, address(sort.mux(index.q, head)), Collision::ReadNew);
    reading.next_if(room, Read { valid: more_returns | fetch, at: i.slot });
    entry.next_if(free & !waits, read);
    fetched.next_if(free, reading.q);

    let others = i.start | i.wake;
    m.assume("one_turn", !(others & (i.announced | i.outcome | fetched.q.valid)) & !(i.start & i.wake));
    m.assume("sorter_or_others", !(i.sort & (i.announced | i.outcome | i.wake)));
    m.assume("no_outcome_of_a_returning_warp", !(i.outcome & is_returning));
    m.assume("no_start_of_a_returning_warp", !(i.start & returning.q.select(i.start_slot, 1)));
    m.assume("stale_for_nobody_but_the_sorter", !(i.stale & (i.outcome | back | i.wake)));
    m.assert("fetches_what_was_counted", !(fetch & i.stale));
    m.assert("insert_has_room", !insert | count.lt(entries(s)));
    m.assert("returns_of_returning_warps", !back | (is_returning & count.any() & !i.z.valid));
    let returns = |head: Read<Signal>| !head.valid | returning.q.select(head.at, 1);
    m.assert("fetched_is_returning", returns(reading.q) & returns(fetched.q));
    m.assert("heads_of_two_warps", !(reading.q.valid & fetched.q.valid & reading.q.at.eq(fetched.q.at)));
    m.assert("returns_where_it_was_fetched", !back | i.slot.eq(fetched.q.at));
    m.assert("sorts_where_nobody_returns", !i.sort | (!any_returning & !reading.q.valid & !fetched.q.valid));
    m.assert("sorts_what_is_scanned", !sort | i.slot.eq(scan.q));
    m.assert("swap_within_the_stack", !swap | compared.q.at.lt(count));
    m.cover("inserts", insert);
    m.cover("returns", back);
    m.cover("returns_twice_running", back & more_returns);
    m.cover("returned_path_waits", fetched.q.valid & i.outcome);
    m.cover("fetches", fetch);
    m.cover("reads_a_head_while_one_waits", more_returns & stays & room);
    m.cover("has_no_room_for_a_head", more_returns & !room);
    m.cover("kept_for_a_return_that_does_not_come", (i.outcome | back) & left.any() & !i.alone);
    m.cover("sorter_reads", more);
    m.cover("sorter_leaves_in_order", sorts & !i.before_y);
    m.cover("sorter_swaps", swap);
    m.cover("sorter_waits", waits & compared.q.valid);
    m.cover("sorter_gives_way", sorts & i.before_y & i.gives_way);
    m.cover("sorter_next_warp", ends);
    m.cover("read_abandoned", scanned.q.valid & !compared.q.valid & !sort);
    wire!(of_scanned = i.slot.eq(scan.q));
    let in_flight = scanned.q.valid | compared.q.valid;
    m.assert("no_return_between_read_and_swap", !(in_flight & (back | fetch)));
    m.assert("swap_is_not_put_off_by_its_own_warp", !(in_flight & i.announced & of_scanned));
    m.cover("swap_put_off_by_another_warp", compared.q.valid & i.outcome & !of_scanned);
    m.cover("swap_put_off_by_start", compared.q.valid & i.start);
    m.cover("several_return", (returning.q & !returning.q.lowest_one()).any());
    if s.may_park() {
        m.cover("sorter_finds_a_path_that_can_run", swap & seekers.select(i.slot, 1) & !i.x_waits);
        m.cover("sorter_finds_that_all_wait", ends & seekers.select(i.slot, 1) & i.x_waits);
        m.cover("sorter_passes_over", sort & !goes_here);
        m.cover("several_seek", (seekers & !seekers.lowest_one()).any());
    }
    let out = CctOut {
        returned: fetched.q.valid,
        must,
        next,
        next_sorts: if s.order.is_stack() { any_seeking & !any_returning } else { !any_returning },
        entry: entry.q,
        sorts,
        more_returns,
        insert,
        extract: back,
        swap,
        count,
        seen,
        due: any_returning | any_seeking,
        busy: (s.convergence_barriers > 0).then(|| returning.q | seekers),
    };
    (
        out,
        Inside {
            reading: reading.q,
            fetched: fetched.q,
            must: must.valid,
            returning: returning.q,
            seeking: seekers,
            scan: scan.q,
            index: index.q,
            scanned: scanned.q,
            compared: compared.q,
            read,
            counts,
            counted: counted.q,
            cold,
            late,
        },
    )
}
