//! What a launch came to: faults, exit codes, results, counters.

use super::{CacheVisits, Fault, Machine, MachineError, SecondLevelVisits, Stop, ThreadExit};
use crate::StackOverflow;
use crate::grid::ThreadId;
use heddle_hdl::{Bits, Bundle, Code};
use heddle_simt::isa::{FaultCause, reservation, warp};
use heddle_simt::metrics::Counts;

/// What an illegal instruction is that another core has.
const LACKS_RESERVATIONS: &str = "`lr.w` or `sc.w`, which this core lacks (--reservations on)";
const LACKS_WARP_PRIMITIVES: &str = "a warp primitive, which this core lacks (--warp-primitives on)";

/// Where the counters of the caches are, in the memory system.
const CACHE: &str = "cache.metrics";
const SECOND_LEVEL: &str = "main.second_level.metrics";

impl Machine {
    /// What a launch came to, from the settled cycle after its end; not yet where threads are if some wait for others.
    pub(super) fn ended(&mut self) -> Result<(), MachineError> {
        let fault = self.fault();
        // The instruction-set simulator has no bus, and no instruction is to blame.
        if let Some((Some(FaultCause::BusError), fault, _)) = &fault
            && self.shape.bus_width().is_some()
        {
            return Err(MachineError::Bus { address: fault.address.expect("a bus error has an address") });
        }
        let stop = fault.as_ref().map(|(cause, Fault { pc, address, .. }, harts)| Stop {
            cause: *cause,
            pc: *pc,
            address: *address,
            harts,
        });
        for monitor in &mut self.monitors {
            let checked = monitor.end(self.simulation.engine(), self.seed, stop.as_ref());
            checked.map_err(MachineError::Commit)?;
        }
        match fault {
            Some((Some(FaultCause::BarrierOfAPart), fault, _)) => {
                Err(MachineError::PartWaits { fault: Box::new(fault), at: String::new() })
            }
            Some((_, fault, _)) => Err(MachineError::Fault(Box::new(fault))),
            None => self.check_memory(),
        }
    }

    /// The fault, its cause if the core's number is that of one, and the hardware threads that are at fault.
    fn fault(&mut self) -> Option<(Option<FaultCause>, Fault, Vec<u32>)> {
        let [valid, code, slot, pc, mask, address] = self.places.fault.map(|o| self.simulation.engine().peek_u64(o));
        if valid == 0 {
            return None;
        }
        let cause = FaultCause::from_bits(code);
        let (pc, warp) = (pc as u32 * 4, slot as u32);
        let homes = self.places.fault_homes.map(|homes| self.simulation.engine().peek(homes));
        let bits = self.shape.warp_bits();
        let home = |lane| homes.as_ref().map_or(warp, |homes| homes.extract(lane * bits, bits).low_u64() as u32);
        let lanes = (0..self.shape.lanes).filter(|lane| mask >> lane & 1 == 1);
        let at: Vec<(u32, u32)> = lanes.map(|lane| (home(lane), lane)).collect();
        let threads: Vec<ThreadId> = at.iter().map(|&(warp, lane)| self.thread(warp, lane)).collect();
        let harts = at.iter().map(|(warp, lane)| warp * self.shape.lanes + lane).collect();
        let is = |has: fn(u32) -> bool| {
            cause == Some(FaultCause::IllegalInstruction) && self.program.word(pc).is_some_and(has)
        };
        let fault = Fault {
            what: match () {
                () if !self.shape.reservations && is(reservation::has) => LACKS_RESERVATIONS,
                () if !self.shape.warp_primitives && is(warp::has) => LACKS_WARP_PRIMITIVES,
                () => FaultCause::describe_told(cause),
            },
            pc,
            symbol: self.program.nearest_symbol(pc),
            block: threads.first().map_or(0, |thread| thread.block),
            threads: threads.iter().map(|thread| thread.thread).collect(),
            warp,
            mask: Bits::from(mask).to_bitvec(self.shape.lanes),
            address: cause.is_none_or(FaultCause::has_address).then_some(address as u32),
            overflow: StackOverflow::of(&self.shape, cause, address as u32),
        };
        Some((cause, fault, harts))
    }

    pub(super) fn check_exit_codes(&mut self) -> Result<(), MachineError> {
        let count = self.probe("metrics.failures");
        if count == 0 {
            return Ok(());
        }
        let slots = self.grid.slots(&self.shape);
        let mut first = Vec::new();
        for (lane, &(failed, which)) in (0..).zip(&self.places.failed) {
            let engine = self.simulation.engine();
            let failed = engine.register(failed).low_u64();
            for warp in (0..self.shape.warps).filter(|warp| failed >> warp & 1 == 1) {
                let word = engine.memory_read(which, u64::from(warp));
                let [code, block] = [0, 32].map(|at| word.extract(at, 32).low_u64() as u32);
                let thread = ThreadId { block, thread: warp % slots * self.shape.lanes + lane };
                first.push(ThreadExit { thread, code });
            }
        }
        first.sort_unstable();
        Err(MachineError::ExitCodes { first, count })
    }

    /// Adds a launch's counters to the summary.
    pub(super) fn count(&mut self, simulated: u64) {
        self.simulation.engine().settle();
        let counts = Counts::shape(&self.shape).map("", &mut |name, _| self.probe(&format!("metrics.{name}")));
        self.counted.add(&self.shape, self.grid, simulated, &counts);
        *self.counted.summary.idle_beside_unit.get_or_insert_default() += self.probe("metrics.idle_beside_unit");
        self.counted.summary.memory_limits.loads += self.probe("metrics.waits_for_loads");
        if self.shape.cache.is_some() {
            let (full, found) = (self.memory_probe(&format!("{CACHE}.full")), self.visits(CACHE));
            self.counted.summary.memory_limits.misses += full;
            *self.counted.summary.cache.get_or_insert_default() += found;
        }
        if self.shape.second_level.is_some() {
            let [full, write_backs, channel] =
                ["full", "write_backs", "channel"].map(|name| self.memory_probe(&format!("{SECOND_LEVEL}.{name}")));
            let found = self.visits(SECOND_LEVEL);
            self.counted.summary.memory_limits.second_level += full;
            *self.counted.summary.second_level.get_or_insert_default() +=
                SecondLevelVisits { found, write_backs, channel };
        }
        self.monitors.iter().for_each(|monitor| monitor.summarise(&mut self.counted.summary));
    }

    /// What requests found, by the counters of a cache.
    fn visits(&mut self, metrics: &str) -> CacheVisits {
        let names = ["hits", "misses", "joined", "silent_hits", "silent_misses", "silent_joined"];
        let [hits, misses, joined, silent_hits, silent_misses, silent_joined] =
            names.map(|name| self.memory_probe(&format!("{metrics}.{name}")));
        CacheVisits { hits, misses, joined, silent_hits: silent_hits + silent_joined, silent_misses }
    }
}
