//! Where things of the core are in the directory of its simulation, and what its probes and counters show.

use super::Machine;
use crate::grid::ThreadId;
use heddle_hdl::Bits;
use heddle_sim::directory::Directory;
use heddle_simt::Shape;
use heddle_simt::memory::banks;

/// Where things are in the directory.
pub struct Places {
    pub launch: usize,
    pub entry: usize,
    pub blocks: usize,
    pub block_threads: usize,
    pub program_end: usize,
    pub stopped: usize,
    pub fault: [usize; 6],
    pub fault_homes: Option<usize>,
    /// Valid, seed and jitter, if memory has jitter.
    pub set_jitter: Option<[usize; 3]>,
    /// The memory with the number of each warp's block.
    pub block_of_slot: usize,
    pub program: usize,
    /// If the core has one.
    pub side_table: Option<usize>,
    /// Its copy of what is uniform, if the core has one.
    pub uniform: Option<usize>,
    /// The memories that [`banks`] names.
    pub banks: Vec<usize>,
    /// One of each a lane: the register with a bit per warp in which a thread failed, and the memory that says which.
    pub failed: Vec<(usize, usize)>,
}

impl Places {
    pub fn new(directory: &Directory, shape: &Shape) -> Places {
        let input = |name: &str| directory.inputs.find(name).expect("the system has this input");
        let output = |name: &str| directory.outputs.find(name).expect("the system has this output");
        let register = |path: &str| directory.registers.find(path).expect("the system has this register");
        let memory = |path: &str| directory.memories.find(path).expect("the system has this memory");
        let fault = ["valid", "cause", "slot", "pc", "mask", "address"];
        Places {
            launch: input("launch"),
            entry: input("entry"),
            blocks: input("blocks"),
            block_threads: input("block_threads"),
            program_end: input("program_end"),
            stopped: output("stopped"),
            fault: fault.map(|field| output(&format!("fault_{field}"))),
            set_jitter: shape
                .simulated_timing()
                .filter(|timing| timing.jitter > 0)
                .map(|_| ["valid", "seed", "jitter"].map(|field| input(&format!("set_jitter_{field}")))),
            fault_homes: shape.mixes().then(|| output("fault_homes")),
            block_of_slot: memory("core.collect.block_of_slot"),
            program: memory("instructions"),
            side_table: shape.divergence.capabilities().reconverges.then(|| memory("side_table")),
            uniform: shape.passes().then(|| memory("uniform")),
            banks: banks(shape).iter().map(|path| memory(path)).collect(),
            failed: (0..shape.lanes)
                .map(|lane| format!("core.metrics.lane[{lane}]"))
                .map(|lane| (register(&format!("{lane}.failed")), memory(&format!("{lane}.first"))))
                .collect(),
        }
    }
}

impl Machine {
    /// A probe of the core, low 64 bits.
    pub(super) fn probe(&mut self, name: &str) -> u64 {
        self.probe_at(&format!("core.{name}"))
    }

    /// A probe of what is behind the core's memory port.
    pub(super) fn memory_probe(&mut self, name: &str) -> u64 {
        self.probe_at(&format!("memory.{name}"))
    }

    fn probe_at(&mut self, path: &str) -> u64 {
        self.probe_bits(path).low_u64()
    }

    pub(super) fn probe_bits(&mut self, path: &str) -> Bits {
        let engine = self.simulation.engine();
        let probe = engine.directory().probes.find(path);
        engine.probe(probe.expect("the system has this probe"))
    }

    /// The thread of a lane of a warp slot.
    pub(super) fn thread(&mut self, warp: u32, lane: u32) -> ThreadId {
        let block = self.simulation.engine().memory_read(self.places.block_of_slot, u64::from(warp)).low_u64() as u32;
        ThreadId { block, thread: warp % self.grid.slots(&self.shape) * self.shape.lanes + lane }
    }
}
