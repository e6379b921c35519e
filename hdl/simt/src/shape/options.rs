//! A core as options of the command line.

use super::{Backing, Cache, Metrics, SecondLevel, Shape, Timing};
use crate::divergence::mechanism::Divergence;

impl Shape {
    /// The options of the command line that choose this core, for what reproduces a run. What is as
    /// [`Shape::default`] has it is left out, except for lanes, warps and memory.
    pub fn options(&self) -> String {
        let Shape { lanes, warps, memory, .. } = self;
        let usual = Shape { lanes: *lanes, warps: *warps, memory: *memory, ..Shape::default() };
        let usual = usual.with_divergence(self.divergence);
        let mut text = format!("--lanes {lanes} --warps {warps} --memory {memory}");
        let mut option = |name: &str, differs: bool, value: String| {
            if differs {
                text += &format!(" --{name} {value}");
            }
        };
        let on = |on: bool| if on { "on" } else { "off" }.to_string();
        option("divergence", self.divergence != Divergence::default(), self.divergence.name().into());
        if let Some(levels) = self.levels {
            option("levels", true, levels.to_string());
        }
        option("path-scheduler", self.path_scheduler != usual.path_scheduler, self.path_scheduler.name().into());
        option("unresolved", self.unresolved != usual.unresolved, self.unresolved.to_string());
        option("path-forwarding", self.path_forwarding, on(self.path_forwarding));
        option("scoreboard", self.scoreboard != usual.scoreboard, self.scoreboard.name().into());
        option("compaction", self.compaction != usual.compaction, self.compaction.name().into());
        option("capt", self.capt != usual.capt, self.capt.text());
        option("slack", self.slack != usual.slack, self.slack.to_string());
        option("likely", self.likely, on(self.likely));
        option("program", self.program != usual.program, self.program.to_string());
        option("stack", self.stack != usual.stack, self.stack.to_string());
        option("depth-bits", self.depth_bits != usual.depth_bits, self.depth_bits.to_string());
        option("barriers", self.barriers != usual.barriers, on(self.barriers));
        let barriers = self.convergence_barriers;
        option("convergence-barriers", barriers != usual.convergence_barriers, barriers.to_string());
        option("patience", self.patience != usual.patience, self.patience.to_string());
        option("fair", self.fair, on(self.fair));
        option("merge", self.merge != usual.merge, self.merge.name().into());
        option("order", self.order != usual.order, self.order.name().into());
        option("buffer", self.buffer != usual.buffer, self.buffer.to_string());
        option("issue-interval", self.issue_interval != usual.issue_interval, self.issue_interval.to_string());
        option("alu-latency", self.alu_latency != usual.alu_latency, self.alu_latency.to_string());
        option("schedule", self.schedule != usual.schedule, self.schedule.name().into());
        option("loads", self.loads != usual.loads, self.loads.to_string());
        option("bank-address", self.bank_address != usual.bank_address, self.bank_address.name().into());
        option("coalescing", self.coalescing != usual.coalescing, self.coalescing.name().into());
        option("replay", self.replay != usual.replay, self.replay.name().into());
        option("requests", self.requests != usual.requests, self.requests.to_string());
        let scratchpad = Shape::default_scratchpad(*lanes, *warps);
        option("scratchpad", self.scratchpad != scratchpad, self.scratchpad.to_string());
        option("atomics", self.atomics != usual.atomics, on(self.atomics));
        option("reservations", self.reservations != usual.reservations, on(self.reservations));
        option("warp-primitives", self.warp_primitives, on(self.warp_primitives));
        option("multiply", self.multiply != usual.multiply, on(self.multiply));
        option("counters", self.counters != usual.counters, on(self.counters));
        if let Some(Cache { size, ways, line, misses }) = self.cache {
            option("cache", true, format!("{size},ways={ways},line={line},misses={misses}"));
        }
        if let Some(SecondLevel { cache: Cache { size, ways, line, misses }, latency }) = self.second_level {
            let text = format!("{size},ways={ways},line={line},latency={latency},misses={misses}");
            option("second-level", true, text);
        }
        let timing = match self.backing {
            Backing::OnChip => None,
            Backing::Model(timing) => Some(timing),
            Backing::Wishbone { width, slave } => {
                option("bus", true, width.to_string());
                Some(slave.timing)
            }
        };
        if let Some(Timing { latency, jitter, interval, seed }) = timing {
            let fields = format!("latency={latency},jitter={jitter},interval={interval},seed={seed}");
            option("memory-model", true, fields);
        }
        if self.metrics == Metrics::Built {
            text += " --metrics";
        }
        text
    }
}
