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

mod checks;
mod sorter;

use crate::divergence::Path;
use crate::divergence::inspect::State;
use crate::shape::Shape;
use checks::check;
use heddle_hdl::prelude::*;
use sorter::Sorted;

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

/// The registers and memories.
struct Table {
    m: Builder,
    s: Shape,
    /// A head in the memory's output, and one in `entry`.
    reading: Reg<Read<Signal>>,
    fetched: Reg<Read<Signal>>,
    /// One bit per warp each: it is returning; seeking.
    returning: Reg<Signal>,
    seeking: Option<Reg<Signal>>,
    /// The sorter: its warp, and the entry that it reads next.
    scan: Reg<Signal>,
    index: Reg<Signal>,
    /// Its entry in the memory's output, and the one in `entry`.
    scanned: Reg<Read<Signal>>,
    compared: Reg<Read<Signal>>,
    /// By warp, and of the slot that has the turn.
    counts: Mem<Width>,
    counted: Reg<Signal>,
    /// By entry and warp.
    cold: Mem<Context<Width>>,
    entry: Reg<Context<Signal>>,
}

/// Whose turn it is, 1 bit each unless stated.
#[derive(Clone, Copy)]
struct Turn {
    /// A head goes back.
    back: Signal,
    /// The head of a returning warp is read.
    fetch: Signal,
    is_returning: Signal,
    /// The sorter's, and it waits for what was written, or goes on.
    sort: Signal,
    waits: Signal,
    steps: Signal,
    /// The slot, one-hot.
    at: Signal,
}

/// What becomes of the slot's stack.
#[derive(Clone, Copy)]
struct Stacked {
    /// Entries before this cycle; without the one that goes back; after this cycle.
    count: Signal,
    left: Signal,
    grown: Signal,
    /// 1 bit each: z is pushed; another return follows.
    insert: Signal,
    more_returns: Signal,
}

/// Whose turn comes next.
#[derive(Clone, Copy)]
struct Next {
    /// 1 bit: a head stays in the register.
    stays: Signal,
    must: Read<Signal>,
    any_returning: Signal,
    slot: Signal,
}

/// What goes through the memory's ports.
#[derive(Clone, Copy)]
struct Ports {
    late: Write<Signal>,
    read: Context<Signal>,
    /// 1 bit: there is room for one more head.
    room: Signal,
}

pub(super) fn described(m: Builder, s: &Shape, i: CctIn<Signal>) -> (CctOut<Signal>, Inside) {
    m.doc("Cold context table: a stack of paths for each warp, sorted in the background.");
    let table = Table::new(m, s);
    let turn = table.turn(&i);
    let stack = table.stack(&i, &turn);
    let sorted = table.sort(&i, &turn, &stack);
    let next = table.next(&i, &turn, &stack, &sorted);
    let ports = table.ports(&i, &turn, &stack, &sorted, &next);
    check(&table, &i, (&turn, &stack), &sorted, (&next, &ports));
    let due_to_seek = sorted.any_seeking;
    let out = CctOut {
        returned: table.fetched.q.valid,
        must: next.must,
        next: next.slot,
        next_sorts: if s.order.is_stack() { due_to_seek & !next.any_returning } else { !next.any_returning },
        entry: table.entry.q,
        sorts: sorted.sorts,
        more_returns: stack.more_returns,
        insert: stack.insert,
        extract: turn.back,
        swap: sorted.swap,
        count: stack.count,
        seen: sorted.seen,
        due: next.any_returning | due_to_seek,
        busy: (s.convergence_barriers > 0).then(|| table.returning.q | table.seekers()),
    };
    (out, table.inside(next.must.valid, &ports))
}

impl Table {
    /// All of it, as at reset.
    fn new(m: Builder, s: &Shape) -> Table {
        let slot_bits = s.warp_bits();
        let (index_bits, count_bits) = (index_width(entries(s)), count_width(entries(s)));
        let read = |name, at| m.reg(name, Read { valid: 1, at }).reset_zero();
        Table {
            reading: read("reading", slot_bits),
            fetched: read("fetched", slot_bits),
            returning: m.reg("returning", s.warps).reset(0u32),
            seeking: s.may_park().then(|| m.reg("seeking", s.warps).reset(0u32)),
            scan: m.reg("scan", slot_bits).reset(0u32),
            index: m.reg("index", count_bits).reset(0u32),
            scanned: read("scanned", count_bits),
            compared: read("compared", count_bits),
            counts: m.memory("counts", count_bits, slot_bits).style(MemoryStyle::Distributed),
            // With a reset, as the words of the hot tables.
            counted: m.reg("counted", count_bits).reset(0u32),
            cold: m.memory("cold", Context::shape(s), index_bits + s.warps.ilog2()),
            entry: m.reg("entry", Context::shape(s)),
            m,
            s: s.clone(),
        }
    }

    /// One bit per warp: it is seeking.
    fn seekers(&self) -> Signal {
        self.seeking.map_or(self.m.lit(0u32, self.s.warps), |seeking| seeking.q)
    }

    /// Whose turn it is.
    fn turn(&self, i: &CctIn<Signal>) -> Turn {
        wire!(back = self.fetched.q.valid & !i.announced);
        wire!(idle = !i.announced & !i.outcome & !back & !i.start & !i.wake);
        wire!(is_returning = self.returning.q.select(i.slot, 1));
        wire!(fetch = idle & is_returning & !self.reading.q.valid);
        wire!(sort = i.sort & !i.start & !i.gives_way);
        wire!(waits = sort & i.stale);
        wire!(steps = sort & !i.stale);
        Turn { back, fetch, is_returning, sort, waits, steps, at: i.slot.decode(self.s.warps) }
    }

    /// The stack of the slot.
    fn stack(&self, i: &CctIn<Signal>, turn: &Turn) -> Stacked {
        let Table { returning, counts, counted, .. } = self;
        let &Turn { back, at, .. } = turn;
        wire!(count = counted.q.only_if(!i.start));
        wire!(left = back.mux(count - 1, count));
        wire!(more_returns = (i.outcome | back) & i.alone & left.any());
        wire!(insert = i.outcome & i.z.valid);
        wire!(grown = insert.mux(count + 1, left));
        wire!(counts_change = insert | back | i.start);
        counts.write(counts_change, i.start.mux(i.start_slot, i.slot), grown);
        counted.next(counts.read(i.next_slot));
        returning.next_if(i.outcome | back, (returning.q & !at) | at.only_if(more_returns));
        Stacked { count, left, grown, insert, more_returns }
    }

    /// Whose turn comes next. Whether x is left alone is known late, so the turn after an outcome or a return is kept
    /// wherever there is an entry: nobody then finds a warp that returns without its bit. A head that is read has the
    /// turn after it.
    fn next(&self, i: &CctIn<Signal>, turn: &Turn, stack: &Stacked, sorted: &Sorted) -> Next {
        let Table { reading, fetched, returning, scan, .. } = self;
        wire!(stays = fetched.q.valid & i.announced);
        let may_return = (i.outcome | turn.back) & stack.left.any();
        let whose = pick([(stays, fetched.q.at), (reading.q.valid, reading.q.at)], i.slot);
        let must = Read { valid: stays | reading.q.valid | turn.fetch | may_return, at: whose };
        wire!(any_returning = returning.q.any());
        let first = returning.q.lowest_one().one_hot_index();
        let slot = any_returning.mux(first, sorted.ends.mux(sorted.next_warp, scan.q));
        Next { stays, must, any_returning, slot }
    }

    /// One write port, one read port. The third path is known late in the cycle, so it is written a cycle later.
    /// Whoever reads then has it all the same.
    fn ports(&self, i: &CctIn<Signal>, turn: &Turn, stack: &Stacked, sorted: &Sorted, next: &Next) -> Ports {
        let Table { m, s, reading, fetched, compared, cold, entry, index, .. } = self;
        let &Turn { sort, waits, fetch, .. } = turn;
        let address = |entry: Signal| {
            let entry = entry.slice(0, index_width(entries(s)));
            if s.warps > 1 { cat(&[entry, i.slot]) } else { entry }
        };
        let to = address(sorted.swap.mux(compared.q.at, stack.count));
        let write = Write { valid: stack.insert | sorted.swap, address: to, path: Context::of(i.z) };
        let late = m.stage("late", write);
        cold.write(late.valid, late.address, late.path);
        // Behind a head that waits for its return one more is read.
        wire!(free = !next.stays);
        wire!(room = free | !reading.q.valid);
        let head = stack.left - 1;
        // Behind the last entry there is nothing to read: with two entries its address is that of the first.
        let reads = room & (sorted.more | !sort);
        let read = cold.read_sync_if(reads, address(sort.mux(index.q, head)), Collision::ReadNew);
        reading.next_if(room, Read { valid: stack.more_returns | fetch, at: i.slot });
        entry.next_if(free & !waits, read);
        fetched.next_if(free, reading.q);
        Ports { late, read, room }
    }

    fn inside(&self, must: Signal, ports: &Ports) -> Inside {
        Inside {
            reading: self.reading.q,
            fetched: self.fetched.q,
            must,
            returning: self.returning.q,
            seeking: self.seekers(),
            scan: self.scan.q,
            index: self.index.q,
            scanned: self.scanned.q,
            compared: self.compared.q,
            read: ports.read,
            counts: self.counts,
            counted: self.counted.q,
            cold: self.cold,
            late: ports.late,
        }
    }
}
