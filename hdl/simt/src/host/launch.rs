//! The launch: its number, whether it runs and for how long, and which of its threads failed.

use super::HostIn;
use super::failures::{FailuresIn, FailuresOut, failures};
use super::progress::{Progress, State};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// What is known of it.
pub struct Launch {
    m: Builder,
    /// Launches since the reset, of which the last 8 bits count.
    pub launches: Reg<Signal>,
    /// 1 bit: it runs.
    pub running: Reg<Signal>,
    /// Cycles that it has run.
    pub cycles: Reg<Signal>,
}

/// What is done of it now.
pub struct Launched {
    /// 1 bit each: it begins; everything is reset.
    pub launch: Signal,
    pub resets: Signal,
    /// Where its program ends, from the cycle after `launch` on.
    pub program_end: Signal,
    pub failed: FailuresOut<Signal>,
}

impl Launch {
    pub fn new(m: Builder) -> Launch {
        let launches = m.reg("launches", 8).reset(0u32);
        let running = m.reg("running", 1).reset(0u32);
        let cycles = m.reg("cycles", 48).reset(0u32);
        Launch { m, launches, running, cycles }
    }

    /// Begins, ends, or runs on. `out` is the last word of the frame.
    pub fn update(&self, s: &Shape, i: &HostIn<Signal>, progress: &Progress, out: Signal) -> Launched {
        let Launch { m, launches, running, cycles } = self;
        wire!(launch = progress.at(State::Launch));
        wire!(resets = progress.at(State::Reset));
        let program_end = m.pipe_if("program_end", launch, out);
        launches.next_if(launch | resets, resets.mux(launches.q.literal(0u32), launches.q + 1));
        running.next_if(launch | resets | i.done | i.fault.valid, launch);
        let counted = (launch | resets).mux(cycles.q.literal(0u32), cycles.q + 1);
        cycles.next_if(launch | resets | running.q, counted);
        let failed = m.instance("failures", &failures(s), FailuresIn { restart: launch | resets, exit: i.exit });
        m.assert("one_launch_at_a_time", !launch | (i.idle & !i.fault.valid));
        Launched { launch, resets, program_end, failed }
    }
}
