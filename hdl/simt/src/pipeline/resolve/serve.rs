//! Whom the instruction serves: of a memory access the lanes that go together, of a `jalr` those with the leader's
//! target, of a `sync` those that come; else all.

use super::super::coalesce::{CoalesceIn, CoalesceOut, coalesce};
use super::Stage;
use super::outcome::Target;
use crate::address::SCRATCHPAD;
use crate::isa::HintKind;
use crate::shape::Shape;
use heddle_hdl::{elements, prelude::*};

/// A `sync` at a barrier that the core has, 1 bit; some of whom it names are not here; then that barrier is in use; and
/// who comes for it.
#[derive(Clone, Copy)]
pub struct Sync {
    pub valid: Signal,
    pub lacks: Signal,
    pub queues: Signal,
    pub here: Signal,
}

/// The served lanes, and by what.
pub struct Served {
    /// The place of every lane's result, and of the leader's.
    pub places: Signal,
    pub first: Signal,
    /// The lanes of a memory access that go together.
    pub chosen: Option<CoalesceOut<Signal>>,
    pub sync: Option<Sync>,
    /// One bit per lane.
    pub served: Signal,
}

impl Stage<'_> {
    /// Whom it serves.
    pub fn serve(&self, target: &Target) -> Served {
        let &Stage { m, s, i, d, mask, .. } = self;
        let (result, leader_result) = (i.executed.result, i.executed.leader_result);
        wire!(places = cat(&elements(result, 32).into_iter().map(|r| place_of(s, r)).collect::<Vec<_>>()));
        let first = place_of(s, leader_result);
        let chosen = self.split.then(|| {
            let inputs = CoalesceIn {
                mask,
                leader: i.executed.leader,
                store: d.store,
                atomic: d.atomic,
                one_line: d.asked().is_reserving(),
                places,
                first,
            };
            m.instance("coalesce", &coalesce(s), inputs)
        });
        // Most of a target is compared as a place, too.
        wire!(
            same_target = match (chosen, i.jump) {
                (Some(chosen), None) => chosen.with_leader & same(result, leader_result, |r| beside_word(s, r)),
                _ => same(result, target.of_all, |r| r.from_bit(1)),
            }
        );
        let serving = chosen.map_or(mask, |c: CoalesceOut<Signal>| c.served);
        let all_but_memory = d.jalr.mux(mask & same_target, mask);
        let sync = self.sync();
        let all_but_memory =
            sync.map_or(all_but_memory, |sync| sync.valid.mux(sync.here.only_if(!sync.queues), all_but_memory));
        wire!(served = self.memory.mux(serving, all_but_memory));
        Served { places, first, chosen, sync, served }
    }

    fn sync(&self) -> Option<Sync> {
        let &Stage { i, d, .. } = self;
        i.in_use.zip(i.executed.named).map(|(in_use, named)| {
            wire!(valid = d.converges_by(HintKind::Sync));
            wire!(lacks = valid & named.lacks);
            Sync { valid, lacks, queues: lacks & in_use, here: named.here }
        })
    }
}

/// The place of a result that is one.
fn place_of(s: &Shape, result: Signal) -> Signal {
    match s.scratchpad {
        0 => result.slice(0, s.place_bits()),
        _ => cat(&[result.slice(0, s.place_bits() - 1), result.bit(SCRATCHPAD.ilog2())]),
    }
}

/// The bits of a target that its place's word does not have, but for bit 0.
fn beside_word(s: &Shape, target: Signal) -> Signal {
    let low = s.place_bits() - u32::from(s.scratchpad > 0);
    cat(&[target.bit(1), target.from_bit(low)])
}

/// One bit per lane: `part` of its result is that of the leader's.
fn same(result: Signal, leader: Signal, part: impl Fn(Signal) -> Signal) -> Signal {
    let lanes = elements(result, 32).into_iter().map(|lane| part(lane).eq(part(leader)));
    cat(&lanes.collect::<Vec<_>>())
}
