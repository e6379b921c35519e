//! The load queue: what the core remembers of loads under way.
//!
//! An entry is taken at issue (stage 4) and filled when the access goes out (stage 9); under [`Replay::Serialise`],
//! where one instruction may need several, both happen when the load-store unit sends the access. It is given back with
//! the response (stage 10 at the earliest). Its number is the tag on the memory port, so responses may come in any
//! order.
//!
//! Who has taken an entry is said a cycle later.
//!
//! Whether there is an entry, and which, starts the longest way through issue, so what is offered is in registers: the
//! free entry that was found in the cycle before. So an entry that is given back is offered again [`GIVE_TO_ROOM`]
//! cycles later at the earliest, which is noticed only when no other is free.
//!
//! [`GIVE_TO_ROOM`]: super::timing::GIVE_TO_ROOM
//! [`Replay::Serialise`]: crate::shape::Replay::Serialise

use super::memory::Access;
use super::network;
use super::reservations::ReservationsOut;
use crate::divergence::interface::OfSlot;
use crate::memory::port::{Miss, Operation};
use crate::scoreboard::Pending;
use crate::shape::{Replay, Shape};
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct LoadQueueIn<T> {
    /// An access that is answered takes the entry `next`.
    pub take: T,
    /// The one that took an entry in the cycle before.
    pub owner: Owner<T>,
    pub access: Access<T>,
    /// What is [decided](super::reservations) about it.
    pub decided: Option<ReservationsOut<T>>,
    /// The access to this register has lanes left that have no entry yet.
    pub more: Pending<T>,
    /// The entry whose data write-back takes (`give` is 1) in this cycle.
    pub tag: T,
    pub give: T,
    /// Where scratchpad and memory port [both may answer](Shape::two_answers); one of them is `tag`.
    pub answers: Option<AnswerTags<T>>,
    /// An access that the cache answers late, where issue must know of it.
    pub missed: Option<Miss<T>>,
    /// Under [`Replay::Split`], the register that is written late in this cycle.
    pub written: Option<Owner<T>>,
}

/// Of scratchpad and memory port, where [both may answer](Shape::two_answers), the entries that their answers are of.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct AnswerTags<T> {
    #[width(index_width(s.loads))]
    pub scratchpad: T,
    #[width(index_width(s.loads))]
    pub port: T,
    /// 1 bit: the scratchpad's answer goes to write-back.
    pub from_scratchpad: T,
}

/// Who waits for a late result.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Owner<T> {
    #[width(s.slot_bits())]
    pub slot: T,
    #[width(5)]
    pub rd: T,
}

impl Owner<Signal> {
    /// 1 bit: it is this one.
    pub fn is(self, other: Owner<Signal>) -> Signal {
        self.slot.eq(other.slot) & self.rd.eq(other.rd)
    }
}

/// The owners of the entries in [`AnswerTags`].
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Owners<T> {
    #[width(Owner::shape(s))]
    pub scratchpad: Owner<T>,
    #[width(Owner::shape(s))]
    pub port: Owner<T>,
    /// 1 bit: the scratchpad's answer goes to write-back.
    pub from_scratchpad: T,
}

impl Owners<Signal> {
    /// What is found of the owner whose answer goes to write-back: of both, and then chosen.
    pub fn of_answer<B: Signals>(self, find: impl Fn(Owner<Signal>) -> B) -> B {
        self.from_scratchpad.mux(find(self.scratchpad), find(self.port))
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct LoadQueueOut<T> {
    /// There is an entry to take, and its number.
    pub room: T,
    pub next: T,
    /// The load with the tag `tag`.
    pub load: Load<T>,
    /// Where both may answer.
    pub owners: Option<Owners<T>>,
    /// No other load of the same slot and register is under way, and no more of its instruction is to come. Under
    /// [`Replay::Serialise`], of the load with the tag `tag`; else no load of `written` is.
    pub last: T,
    /// Whose it is.
    pub missing: Option<OfSlot<T>>,
    /// No load is under way.
    pub empty: T,
}

/// A load under way: whose it is and how its data goes to the lanes.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Load<T> {
    #[width(s.slot_bits())]
    pub slot: T,
    #[width(5)]
    pub rd: T,
    pub route: Route<T>,
}

/// How a line goes to the lanes: see [`Access`] and [`network`].
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Route<T> {
    #[width(3)]
    pub size: T,
    #[width(s.lanes)]
    pub served: T,
    /// As [`network::kept`] makes it.
    #[width(network::kept_bits(s))]
    pub route: T,
    #[width(2 * s.lanes)]
    pub offset: T,
    /// Of an `sc.w`, in a core with [reservations](super::reservations).
    #[width(Conditional::shape(s))]
    pub conditional: Option<Conditional<T>>,
}

/// What an `sc.w` is answered, instead of a line.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Conditional<T> {
    /// 1 bit: it is one.
    pub valid: T,
    /// One bit per lane: it fails.
    pub fails: T,
}

impl Conditional<Width> {
    /// In a core with reservations.
    pub fn shape(s: &Shape) -> Option<Conditional<Width>> {
        s.reservations.then_some(Conditional { valid: 1, fails: s.lanes })
    }
}

impl LoadQueueIn<Width> {
    pub fn shape(s: &Shape) -> LoadQueueIn<Width> {
        LoadQueueIn {
            take: 1,
            owner: Owner::shape(s),
            access: Access::shape(s),
            decided: s.reservations.then(|| ReservationsOut::shape(s)),
            more: Pending::shape(s),
            tag: index_width(s.loads),
            give: 1,
            answers: s.two_answers().then(|| AnswerTags::shape(s)),
            missed: Miss::of(s),
            written: (s.replay == Replay::Split).then(|| Owner::shape(s)),
        }
    }
}

pub fn load_queue(s: &Shape) -> TypedModule<LoadQueueIn<Width>, LoadQueueOut<Signal>> {
    let tag_bits = index_width(s.loads);
    module("load_queue", LoadQueueIn::shape(s), |m, i| {
        m.doc("Loads under way.");
        let busy = m.reg("busy", s.loads).reset(0u32);
        // The entry that is offered stays until it is taken. What follows it is known whether it is taken or not.
        let offered = m.reg("offered", s.loads).reset(1u32);
        let next = m.reg("next", tag_bits).reset(0u32);
        let room = m.reg("room", 1).reset(1u32);
        wire!(free = !busy.q & !offered.q);
        wire!(following = free.lowest_one());
        wire!(changes = i.take | !room.q);
        offered.next_if(changes, following);
        next.next_if(changes, following.one_hot_index());
        room.next_if(changes, free.any());
        let (room, next) = (room.q, next.q);
        wire!(taken = offered.q & i.take.repeat(s.loads));
        wire!(given = i.tag.decode(s.loads) & i.give.repeat(s.loads));
        busy.next((busy.q | taken) & !given);

        // What is there until it is taken, nobody looks at.
        let (was_taken, owner) = (m.pipe_reset("was_taken", i.take), i.owner);
        let (entry, entry_number) = (m.pipe("taken_entry", offered.q), m.pipe("taken_number", next));
        let registers: Vec<Owner<Signal>> = (0..s.loads)
            .map(|k| {
                let slot = m.pipe_if(&format!("slot_{k}"), entry.bit(k), owner.slot);
                Owner { slot, rd: m.pipe_if(&format!("rd_{k}"), entry.bit(k), owner.rd) }
            })
            .collect();
        // Beside the registers, which are compared: to read one of them would take more than a memory.
        let owners = m.memory("owners", Owner::shape(s), tag_bits).style(MemoryStyle::Distributed);
        owners.write(was_taken, entry_number, owner);
        // Which answer goes to write-back is known late, and whose it is decides about the next request. So the port's
        // has a memory of its own: of two reads of one memory, of which one is used, Yosys makes one.
        let both = i.answers.map(|AnswerTags { scratchpad, port, from_scratchpad }| {
            let of_port = m.memory("owners_of_port", Owner::shape(s), tag_bits).style(MemoryStyle::Distributed);
            of_port.write(was_taken, entry_number, owner);
            Owners { scratchpad: owners.read(scratchpad), port: of_port.read(port), from_scratchpad }
        });
        let Owner { slot, rd } = both.map_or_else(|| owners.read(i.tag), |both| both.of_answer(|owner| owner));
        let missing = i.missed.map(|Miss { valid, tag }| OfSlot { valid, slot: owners.read(tag).slot });
        // What is written has given its entry back; lanes of its instruction that were left may have one since.
        let of_answer = (Owner { slot, rd }, busy.q & !i.tag.decode(s.loads));
        let (of, others) = i.written.map_or(of_answer, |written| (written, busy.q));
        let same: Vec<Signal> = registers.into_iter().map(|register| of.is(register)).collect();
        wire!(more = i.more.valid & of.is(Owner { slot: i.more.slot, rd: i.more.rd }));
        let written_down = !entry.only_if(was_taken);
        wire!(one_more = was_taken & of.is(owner));
        wire!(last = !(others & written_down & cat(&same)).any() & !one_more & !more);

        let a = i.access;
        let routes = m.memory("routes", Load::shape(s).route, tag_bits).style(MemoryStyle::Distributed);
        let conditional = a
            .reserving
            .zip(i.decided)
            .map(|(reserving, decided)| Conditional { valid: reserving.asked.conditional, fails: decided.fails });
        let kept = network::kept(s, a.route);
        let route = Route { size: a.size, served: a.served, route: kept, offset: a.offset, conditional };
        routes.write(a.valid & !a.operation.bit(Operation::SILENT), a.tag, route);

        m.assert("takes_only_what_is_offered", !i.take | room);
        m.assert("offers_only_free", !(offered.q & busy.q).any() & room.eq(offered.q.any()));
        m.assert("gives_only_busy", !(given & !busy.q).any());
        m.assert("gives_only_what_is_written_down", !(given & !written_down).any());
        if let Some(AnswerTags { scratchpad, port, from_scratchpad }) = i.answers {
            m.assert("gives_one_of_two", !i.give | i.tag.eq(from_scratchpad.mux(scratchpad, port)));
        }
        if let Some(Miss { valid, tag }) = i.missed {
            let found = tag.decode(s.loads).only_if(valid);
            m.assert("what_misses_is_written_down", !(found & !(busy.q & written_down)).any());
        }
        m.cover("full", busy.q.all());
        m.cover("other_loads_of_the_register_under_way", others.any() & !last);
        let load = Load { slot, rd, route: routes.read(i.tag) };
        LoadQueueOut { room, next, load, owners: both, last, missing, empty: !busy.q.any() }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::Divergence;
    use crate::pipeline::timing::{GIVE_TO_ROOM, ISSUE_TO_ACCESS};
    use crate::shape::{Cache, PathScheduler};
    use heddle_sim::Sim;

    #[derive(Clone, Copy, Debug)]
    struct UnderWay {
        tag: u32,
        slot: u32,
        rd: u32,
        /// What is filled in at stage 9.
        served: u64,
        filled: bool,
        taken_at: u32,
    }

    /// Loads issue when there is room; responses come in a random order. There is room but for entries given back of
    /// late.
    #[test]
    fn responses_in_any_order() {
        for (loads, lanes, warps, seed) in [(2, 1, 1, 1), (4, 4, 2, 2), (8, 8, 8, 3), (64, 2, 2, 4)] {
            for replay in [Replay::Split, Replay::Serialise] {
                responses(&Shape { loads, replay, ..Shape::new(lanes, warps) }, seed);
            }
        }
        let cache = Some(Cache { size: 1 << 10, ways: 1, line: 1, misses: 2 });
        let dual_path = Shape { loads: 8, cache, ..Shape::new(4, 4) }.with_divergence(Divergence::DUAL_PATH);
        responses(&Shape { path_scheduler: PathScheduler::ConstrainedMiss, ..dual_path }, 5);
    }

    fn responses(s: &Shape, seed: u64) {
        let Shape { loads, lanes, warps, replay, .. } = *s;
        println!("{loads} loads, {lanes} × {warps}, {replay:?}, seed {seed}");
        let mut r = fastrand::Rng::with_seed(seed);
        let mut t = Sim::new(&load_queue(s).check().unwrap());
        t.reset();
        let mut under_way: Vec<UnderWay> = vec![];
        let mut given_at = vec![];
        let mut owner = (0, 0);
        let value = |(slot, rd): (u32, u32)| Owner { slot: slot.into(), rd: rd.into() };
        let quiet = Access::shape(s).map("", &mut |_, _| Bits::ZERO);
        for cycle in 0..1500 {
            given_at.retain(|at| cycle < at + GIVE_TO_ROOM);
            let room = under_way.len() + given_at.len() < loads as usize;
            let take = room && r.u8(..3) > 0;
            let (slot, rd) = (r.u32(..warps), r.u32(..3));
            let due = under_way.iter().position(|l| !l.filled && l.taken_at + ISSUE_TO_ACCESS == cycle);
            let ready: Vec<usize> = (0..under_way.len()).filter(|&k| under_way[k].filled).collect();
            let given = r.choice(&ready).copied().filter(|_| r.bool());
            let access = due.map_or(quiet.clone(), |k| Access {
                valid: true.into(),
                tag: under_way[k].tag.into(),
                served: under_way[k].served.into(),
                ..quiet.clone()
            });
            let more = r.bool().then(|| (r.u32(..warps), r.u32(..3)));
            let pending = more.unwrap_or_default();
            let written = (r.u32(..warps), r.u32(..3));
            let tag = given.map_or(r.u32(..loads), |k| under_way[k].tag);
            let (first, other) = (r.bool(), r.u32(..loads));
            t.poke(LoadQueueIn {
                take: take.into(),
                owner: value(owner),
                access,
                decided: None,
                more: Pending { valid: more.is_some().into(), slot: pending.0.into(), rd: pending.1.into() },
                tag: tag.into(),
                give: given.is_some().into(),
                answers: s.two_answers().then(|| AnswerTags {
                    scratchpad: (if first { tag } else { other }).into(),
                    port: (if first { other } else { tag }).into(),
                    from_scratchpad: first.into(),
                }),
                missed: s.tells_misses().then(|| {
                    let misses = ready.first().map(|&k| under_way[k].tag);
                    Miss { valid: misses.is_some().into(), tag: misses.unwrap_or(0).into() }
                }),
                written: (replay == Replay::Split).then(|| value(written)),
            });
            let out = t.peek();
            if let Some(owners) = &out.owners {
                let other_owner = if first { &owners.port } else { &owners.scratchpad };
                let of_other = under_way.iter().filter(|l| l.tag == other && l.taken_at + 1 < cycle);
                for l in of_other {
                    assert_eq!((other_owner.slot.low_u64(), other_owner.rd.low_u64()), (l.slot.into(), l.rd.into()));
                }
            }
            if let Some((missed, &k)) = out.missing.as_ref().zip(ready.first()) {
                assert!(missed.valid == 1 && missed.slot == u64::from(under_way[k].slot), "{}", under_way[k].tag);
            }
            assert_eq!(out.room == 1, room);
            assert_eq!(out.empty == 1, under_way.is_empty());
            let next = out.next.low_u64() as u32;
            assert!(!room || under_way.iter().all(|l| l.tag != next), "entry {next} is not free");
            if let Some(k) = given {
                let l = under_way[k];
                assert_eq!((out.load.slot.low_u64(), out.load.rd.low_u64()), (l.slot.into(), l.rd.into()));
                assert_eq!(out.load.route.served, l.served);
                if replay == Replay::Serialise {
                    let others = under_way.iter().filter(|o| (o.slot, o.rd) == (l.slot, l.rd)).count();
                    let last = others == 1 && more != Some((l.slot, l.rd));
                    assert_eq!(out.last == 1, last, "{l:?} of {under_way:?}, more of {more:?}");
                }
            }
            if replay == Replay::Split {
                let last = under_way.iter().all(|o| (o.slot, o.rd) != written) && more != Some(written);
                assert_eq!(out.last == 1, last, "{written:?} of {under_way:?}, more of {more:?}");
            }
            t.step();
            if let Some(k) = due {
                under_way[k].filled = true;
            }
            if let Some(k) = given {
                under_way.remove(k);
                given_at.push(cycle);
            }
            if take {
                let served = r.u64(..) & u64::MAX >> (64 - lanes);
                under_way.push(UnderWay { tag: next, slot, rd, served, filled: false, taken_at: cycle });
            }
            owner = (slot, rd);
        }
        assert!(t.cover_hits("full") > 0);
    }
}
