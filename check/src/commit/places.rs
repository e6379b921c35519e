//! Where the core has what is compared: its probes and memories in the directory.

use heddle_sim::Engine;
use heddle_sim::directory::Directory;
use heddle_simt::Shape;

/// The core's probes.
pub struct Places {
    /// Path of the core's instance, empty if it is the top.
    pub core: &'static str,
    pub start_taken: usize,
    /// Slot, pc and block.
    pub start: [usize; 3],
    pub start_mask: usize,
    pub exit_valid: usize,
    pub exit_slot: usize,
    pub exit_mask: usize,
    /// The static warp of each lane, where a slot mixes warps.
    pub exit_homes: Option<usize>,
    pub exit_codes: usize,
    pub commit_lanes: usize,
    pub commit_slot: usize,
    pub commit_homes: Option<usize>,
    pub commit_pc: usize,
    pub write_lanes: usize,
    pub write_slot: usize,
    pub write_homes: Option<usize>,
    pub write_rd: usize,
    pub write_data: usize,
    /// Register banks, one per lane.
    pub registers: Vec<usize>,
    /// Scratchpad banks, one per lane, if there are any; and the words of a bank.
    pub scratchpad: Vec<usize>,
    pub scratchpad_lines: u64,
}

impl Places {
    /// Path of the core's instance, empty if it is the top.
    pub fn core(directory: &Directory) -> &'static str {
        if directory.probes.find("core.request_sent").is_some() { "core" } else { "" }
    }

    /// The path of something in the core.
    pub fn inside(directory: &Directory, name: &str) -> String {
        let core = Places::core(directory);
        if core.is_empty() { name.to_string() } else { format!("{core}.{name}") }
    }

    pub fn probe(directory: &Directory, name: &str) -> usize {
        let probe = directory.probes.find(&Places::inside(directory, name));
        probe.unwrap_or_else(|| panic!("the commit-stream check needs the core's probe {name}"))
    }

    pub fn new(directory: &Directory, shape: &Shape) -> Places {
        let probe = |name: &str| Places::probe(directory, name);
        let memory = |name: String| directory.memories.find(&Places::inside(directory, &name));
        let banks = |path: &str, memory_name: &str| -> Vec<usize> {
            let bank = |lane| memory(format!("{path}[{lane}].{memory_name}")).expect("the core has a bank a lane");
            (0..shape.lanes).map(bank).collect()
        };
        Places {
            core: Places::core(directory),
            start_taken: probe("start_taken"),
            start: ["slot", "pc", "block"].map(|field| probe(&format!("start_{field}"))),
            start_mask: probe("start_mask"),
            exit_valid: probe("exit_valid"),
            exit_slot: probe("exit_slot"),
            exit_mask: probe("exit_mask"),
            exit_homes: shape.mixes().then(|| probe("exit_homes")),
            exit_codes: probe("exit_codes"),
            commit_lanes: probe("resolve.commit_lanes"),
            commit_slot: probe("resolve.commit_slot"),
            commit_homes: shape.mixes().then(|| probe("resolve.commit_homes")),
            commit_pc: probe("resolve.commit_pc"),
            write_lanes: probe("write_lanes"),
            write_slot: probe("write_slot"),
            write_homes: shape.mixes().then(|| probe("write_homes")),
            write_rd: probe("write_rd"),
            write_data: probe("write_data"),
            registers: banks("collect.lane", "registers"),
            scratchpad: if shape.scratchpad > 0 { banks("scratchpad.bank", "words") } else { vec![] },
            scratchpad_lines: u64::from(shape.scratchpad / 4 / shape.lanes),
        }
    }

    /// The thread in each lane of the slot that a probe names, given the probe of its lanes' static warps.
    pub fn members(
        &self,
        engine: &dyn Engine,
        slot: usize,
        homes: Option<usize>,
        shape: &Shape,
    ) -> impl Fn(u32) -> u32 + use<> {
        let (lanes, bits) = (shape.lanes, shape.warp_bits());
        let slot = engine.probe(slot).low_u64() as u32;
        let homes = homes.map(|homes| engine.probe(homes));
        move |lane| {
            let warp = homes.as_ref().map_or(slot, |homes| homes.extract(lane * bits, bits).low_u64() as u32);
            warp * lanes + lane
        }
    }

    /// Copies the core's scratchpad.
    pub fn scratchpad(&self, engine: &dyn Engine, to: &mut [u8]) {
        let lines = 0..self.scratchpad_lines;
        let words = lines.flat_map(|line| self.scratchpad.iter().map(move |&bank| engine.memory_read(bank, line)));
        for (to, word) in to.chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&(word.low_u64() as u32).to_le_bytes());
        }
    }
}
