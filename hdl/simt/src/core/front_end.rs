//! Stages 1 to 4, with what serves them: the divergence unit, which is stage 9, the barrier and the scoreboard.

use super::{Backward, CoreIn};
use crate::barrier::{BarrierIn, barrier};
use crate::divergence::interface::{Outcome, TwoPaths, UnitIn, UnitOut, Wake};
use crate::pipeline::collect::Started;
use crate::pipeline::decode::{DecodeIn, decode};
use crate::pipeline::fetch::{FetchIn, FetchOut, fetch};
use crate::pipeline::issue::{IssueIn, IssueOut, Reading, Slotted, issue};
use crate::pipeline::pairs::PairsIn;
use crate::pipeline::schedule::{by_age, by_block};
use crate::pipeline::steer::{Flush, SteerIn, SteerOut, steer};
use crate::pipeline::timing::ISSUE_TO_DEPENDENT;
use crate::scoreboard::exact::ThreadsIn;
use crate::scoreboard::{Pending, ScoreboardIn, ScoreboardOut, scoreboard};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// What it gives.
pub struct FrontEnd {
    pub unit: UnitOut<Signal>,
    pub started: Started<Signal>,
    pub steered: SteerOut<Signal>,
    pub fetched: FetchOut<Signal>,
    /// The instruction that issues, and its mask.
    pub issued: IssueOut<Signal>,
    pub mask: Signal,
    pub scoreboard: ScoreboardOut<Signal>,
}

impl FrontEnd {
    /// 1 bit: an instruction is on its way to issue.
    pub fn any(&self) -> Signal {
        let FetchOut { fetching, fetched, .. } = &self.fetched;
        wire!(flying = self.steered.running.any() | fetching.valid | fetched.valid | self.issued.idle.filled.any());
        flying
    }
}

/// Builds it. `stopped`: a fault was before.
pub fn front_end(s: &Shape, m: Builder, i: &CoreIn<Signal>, back: &Backward, stopped: Signal) -> FrontEnd {
    let decode_slot = m.deferred("decode_slot", s.slot_bits());
    let issue_slot = m.deferred("issue_slot", s.slot_bits());
    let buffered = m.deferred("buffered", count_width(s.buffer) * s.slots());
    let stop_valid = m.deferred("stop_valid", 1);
    let stop_slot = m.deferred("stop_slot", s.slot_bits());
    let clear = m.deferred("clear", s.slots());
    let own_clear = s.reissues_on_the_other_side().then(|| m.deferred("own_clear", s.slots()));
    let wake = m.deferred("wake", Wake::shape(s));
    let unissued = UnitIn::shape(s).unissued.map(|shape| m.deferred("unissued", shape));

    // Stage 9, converge: the divergence unit. It also serves stages 3 and 4.
    let unit_in = UnitIn {
        start: i.start,
        wake: wake.value,
        decode_slot: decode_slot.value,
        issue_slot: issue_slot.value,
        outcome: back.outcome.value,
        sequence: back.sequence.as_ref().map(|sequence| sequence.value),
        announced: back.announced.as_ref().map(|announced| announced.value),
        hints: back.hints.as_ref().map(|hints| hints.value),
        unissued: unissued.as_ref().map(|unissued| unissued.value),
        mixed: back.mixed.as_ref().map(|mixed| mixed.value),
    };
    let unit = m.instance("divergence", &s.divergence.mechanism().unit(s), unit_in);
    let flush = unit.more.two_paths.map(|dual| Flush { valid: dual.flush, slot: dual.flushed });
    wake.drive(woken(s, m, i, &unit));
    wire!(start_taken = i.start.valid & unit.start_ready);
    let started = Started { valid: start_taken, slot: i.start.slot, block: i.block };

    // Stage 1, steer.
    let steer_in = SteerIn {
        steer: unit.steer,
        stop_valid: stop_valid.value,
        stop_slot: stop_slot.value,
        flush,
        buffered: buffered.value,
    };
    let steered = m.instance("steer", &steer(s), steer_in);

    // Stage 2, fetch.
    let fetch_in = FetchIn {
        chosen: steered.chosen,
        word: i.fetched,
        uniform: i.uniform,
        stop_valid: stop_valid.value,
        stop_slot: stop_slot.value,
        flush,
    };
    let fetched = m.instance("fetch", &fetch(s), fetch_in);

    // Stage 3, decode.
    let in_decode = fetched.fetched;
    decode_slot.drive(in_decode.slot);
    let decode_in =
        DecodeIn { word: fetched.fetched_word, pc: in_decode.pc, stop: unit.stop, uniform: fetched.fetched_uniform };
    let decoded = m.instance("decode", &decode(s), decode_in);
    stop_valid.drive(in_decode.valid & decoded.decoded.control);
    stop_slot.drive(in_decode.slot);

    // Stage 4, issue.
    let flushed = flush.map_or(m.lit(0u32, 1), |flush| flush.drops(in_decode.slot));
    let issue_in = IssueIn {
        decoded: Slotted {
            valid: in_decode.valid & !flushed,
            slot: in_decode.slot,
            decoded: decoded.decoded,
            registers: decoded.registers,
            passes: decoded.passes,
        },
        steer: unit.steer,
        starts: by_age(s).then(|| started.slot.decode(s.warps).only_if(started.valid)),
        group: by_block(s).then_some(i.grid.group),
        clear: clear.value,
        access_room: back.access_room.value,
        load_room: back.load_room.value,
        divider_free: back.divider_free.value,
        hold_control: unit.hold,
        bubble: back.bubble.value | stopped,
        pairs: flush.zip(unit.more.two_paths).map(|(flush, TwoPaths { busy, active, changes_side, .. })| {
            let Outcome { valid, slot, .. } = back.outcome.value;
            let own_clear = own_clear.as_ref().map(|own_clear| own_clear.value);
            let missed = back.missed.as_ref().map(|missed| missed.value);
            let arrives = back.arrives.as_ref().map(|arrives| arrives.value);
            PairsIn {
                flush,
                resolved: valid,
                resolved_slot: slot,
                busy,
                active,
                missed,
                arrives,
                changes_side,
                own_clear,
            }
        }),
        held: unit.more.mixed.and_then(|mixed| mixed.ahead),
        may_pass: unit.more.mixed.and_then(|mixed| mixed.may_pass),
    };
    let issued = m.instance("issue", &issue(s), issue_in);
    buffered.drive(issued.buffered);
    if let Some((deferred, unissued)) = unissued.zip(issued.unissued) {
        deferred.drive(unissued);
    }
    issue_slot.drive(issued.issued.slot);
    wire!(issue_mask = unit.mask);

    let marked = marked(s, m, back, &unit, &issued);
    clear.drive(marked.clear);
    if let Some((deferred, own_clear)) = own_clear.zip(marked.own_clear) {
        deferred.drive(own_clear);
    }
    FrontEnd { unit, started, steered, fetched, issued, mask: issue_mask, scoreboard: marked }
}

/// The warp that the barrier wakes. A unit with lanes of several warps has barriers of its own.
fn woken(s: &Shape, m: Builder, i: &CoreIn<Signal>, unit: &UnitOut<Signal>) -> Wake<Signal> {
    if !s.barriers || s.divergence.capabilities().mixes_warps {
        return m.zero(Wake::shape(s));
    }
    let UnitOut { live, waiting, wake_ready, .. } = *unit;
    let inputs = BarrierIn { live, waiting, filling: i.filling, group: i.grid.group, wake_ready };
    m.instance("barrier", &barrier(s), inputs).wake
}

/// The scoreboard, beside stages 4 and 5.
///
/// What issued, how paths changed with it, and what was written late is told a cycle later. A slot that issued is
/// looked up then, and threads that come to another side are fetched for first. Those that stay have shadow bits
/// already for what they left on the other side.
///
/// Whether a late write is the last of its register is found in the write's cycle, from loads that issued before it. A
/// replay that issues in that cycle is not among them, but its mark comes with the release, and a mark stays. What
/// issues later marks after the release. Nothing but a replay issues over a pending register. So the scoreboard sees
/// all three in the order in which they happen, with shadow bits, too: a copy in the cycle of the release is one of
/// what is left then.
fn marked(
    s: &Shape,
    m: Builder,
    back: &Backward,
    unit: &UnitOut<Signal>,
    issued: &IssueOut<Signal>,
) -> ScoreboardOut<Signal> {
    let written_late = m.pipe_reset("s11_late", back.late.value.released(s));
    let Reading { valid, slot, registers } = issued.reading;
    let scoreboard_in = ScoreboardIn {
        changed: unit.more.two_paths.map(|dual| m.stage("s10_changed", dual.changed)),
        heads: issued.heads,
        issue: Pending { valid: valid & registers.writes, slot, rd: registers.rd },
        early: later(s, m, "early", back.early.value),
        late: written_late,
        threads: unit.more.two_paths.and_then(|dual| dual.threads).map(|paths| {
            let told = "the scoreboard knows threads";
            let early = back.early_threads.as_ref().expect(told).value;
            let late = back.late_threads.as_ref().expect(told).value;
            ThreadsIn {
                issue: m.pipe("s5_threads", unit.mask),
                early: later(s, m, "early_threads", early),
                late: m.pipe_reset("s11_written", late),
                paths,
            }
        }),
    };
    m.instance("scoreboard", &scoreboard(s), scoreboard_in)
}

/// What the scoreboard is told of a result that the pipeline computes, as late as [`Shape::alu_latency`] says.
fn later<B: Signals>(s: &Shape, m: Builder, name: &str, told: B) -> B {
    let cycles = s.alu_latency - ISSUE_TO_DEPENDENT;
    (1..=cycles).fold(told, |told, cycle| m.pipe_reset(&format!("{name}_{cycle}_later"), told))
}
