//! What each stage of the pipeline does in a cycle, as traces show it.
//!
//! Everything here is by *slot*, what the front end schedules: a warp, or under dual path a side of one.

use super::{Machine, TraceLine};
use heddle_hdl::Bits;
use heddle_simt::LaneMask;
use heddle_simt::isa::BARRIER;

/// The pipeline in one settled cycle.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pipeline {
    /// Cycle of the simulation.
    pub cycle: u64,
    /// A warp that starts, with its block.
    pub started: Option<(u32, u32)>,
    /// One bit per warp: it has live threads.
    pub live: LaneMask,
    /// Stage 1: what is fetched. It is squashed unless it is decoded
    /// [`CHOICE_TO_DECODE`](heddle_simt::pipeline::timing::CHOICE_TO_DECODE) cycles later.
    pub fetched: Option<Fetched>,
    /// Stage 3: what goes into its slot's buffer.
    pub decoded: Option<Fetched>,
    /// The slot whose buffer is emptied, decoded or not: a path that diverges suspends it.
    pub flushed: Option<u32>,
    /// Stage 4: what issues.
    pub issued: Option<IssuedFrom>,
    /// Stage 5: the registers of what issued a cycle ago.
    pub reads: Option<Registers>,
    /// Stage 8: the slot's warp, and the lanes for which its instruction takes effect; none does if it has none.
    pub resolved: Option<(u32, LaneMask)>,
    /// A write into the register banks: warp, register, lanes.
    pub written: Option<(u32, u32, LaneMask)>,
    /// Why the first instruction of each slot's buffer does not issue.
    pub waits: Vec<Option<Wait>>,
}

/// An instruction in the front end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fetched {
    /// Slot.
    pub slot: u32,
    /// Byte address.
    pub pc: u32,
}

/// An instruction that issues.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IssuedFrom {
    /// Slot.
    pub slot: u32,
    /// It goes to memory.
    pub accesses: bool,
    /// It is a `barrier`.
    pub barrier: bool,
    /// The line of [`Watch::issued`](super::Watch::issued).
    pub line: TraceLine,
}

/// Registers that an instruction reads and writes; x0 is never written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registers {
    /// Registers read.
    pub sources: Vec<u32>,
    /// The register written.
    pub destination: Option<u32>,
}

/// Why an instruction waits at issue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wait {
    /// A register that it reads or writes awaits a write (RAW, WAW).
    Register,
    /// No entry of the load queue, no divider, or issue is held.
    Unit,
    /// The divergence unit holds it back, or the other path of its warp.
    Held,
}

impl Machine {
    /// Of a settled cycle.
    pub(super) fn pipeline(&mut self) -> Pipeline {
        let (lanes, warps) = (self.shape.lanes, self.shape.warps);
        let cycle = self.simulation.engine().cycle();
        let fetch = |machine: &mut Machine, stage: &str| {
            let [valid, slot, pc] = ["valid", "slot", "pc"].map(|field| machine.probe(&format!("{stage}_{field}")));
            (valid != 0).then_some(Fetched { slot: slot as u32, pc: pc as u32 * 4 })
        };
        let started = (self.probe("start_taken") != 0)
            .then(|| (self.probe("start_slot") as u32, self.probe("start_block") as u32));
        let flushes = self.shape.sides() > 1 && self.probe("flush_valid") != 0;
        let flushed = flushes.then(|| self.probe("flush_slot") as u32);
        let decoding = fetch(self, "decoding");
        let issued = self.line().map(|line| IssuedFrom {
            slot: self.probe("issued_slot") as u32,
            accesses: self.probe("issued_accesses") != 0,
            barrier: self.program.word(line.pc) == Some(BARRIER),
            line,
        });
        let reads = (self.probe("reading_valid") != 0).then(|| self.registers());
        let served = self.probe_bits("core.resolve.commit_lanes").to_bitvec(lanes);
        let lanes_written = self.probe_bits("core.write_lanes").to_bitvec(lanes);
        Pipeline {
            cycle,
            started,
            live: self.probe_bits("core.live").to_bitvec(warps),
            fetched: fetch(self, "chosen"),
            decoded: decoding.filter(|fetched| flushed != Some(fetched.slot)),
            flushed,
            issued,
            reads,
            resolved: served.any().then(|| (self.probe("resolve.commit_slot") as u32, served)),
            written: lanes_written
                .any()
                .then(|| (self.probe("write_slot") as u32, self.probe("write_rd") as u32, lanes_written)),
            waits: self.waits(),
        }
    }

    /// Why the first instruction of each slot's buffer does not issue.
    pub(super) fn waits(&mut self) -> Vec<Option<Wait>> {
        let [filled, register, unit, held] =
            ["filled", "scoreboard", "unit", "held"].map(|why| self.probe_bits(&format!("core.heads_{why}")));
        let why = |slot: u32| {
            let on = |bits: &Bits| bits.bit(slot);
            let causes = [(&register, Wait::Register), (&unit, Wait::Unit), (&held, Wait::Held)];
            let cause = causes.into_iter().find(|(bits, _)| on(bits));
            cause.filter(|_| on(&filled)).map(|(_, wait)| wait)
        };
        (0..self.shape.slots()).map(why).collect()
    }

    /// Those of stage 5.
    fn registers(&mut self) -> Registers {
        let mut used = |register: &str, uses: &str| {
            let uses = self.probe(&format!("reading_registers_{uses}")) != 0;
            let number = self.probe(&format!("reading_registers_{register}")) as u32;
            (uses && number != 0).then_some(number)
        };
        let sources = [("rs1", "use1"), ("rs2", "use2")].into_iter().filter_map(|(rs, uses)| used(rs, uses)).collect();
        Registers { sources, destination: used("rd", "writes") }
    }
}
