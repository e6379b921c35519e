//! What is seen of the core in a cycle.

use super::bits;
use super::places::Places;
use super::port::{Ports, Sent};
use heddle_sim::Engine;
use heddle_simt::Shape;

/// All of it.
pub struct Seen {
    pub cycle: u64,
    /// To main memory, to the scratchpad.
    pub sent: [Option<Sent>; 2],
    pub written: Option<Written>,
    pub exits: Exits,
    pub started: Option<Started>,
    pub commit: Option<Committed>,
}

/// A register of some threads is written.
pub struct Written {
    pub register: u8,
    /// Threads, and what they get.
    pub values: Vec<(u32, u32)>,
}

/// Threads that end, and their exit codes.
pub type Exits = Vec<(u32, u32)>;

/// A warp starts.
pub struct Started {
    pub slot: u32,
    /// Number of the instruction.
    pub pc: u32,
    pub block: u32,
    pub mask: u64,
    /// By lane: x1 to x31.
    pub registers: Vec<[u32; 31]>,
}

/// An instruction of some threads takes effect.
pub struct Committed {
    /// Byte address.
    pub pc: u32,
    /// By lane, the lowest first.
    pub threads: Vec<u32>,
}

impl Seen {
    /// Of a settled cycle, before its clock edge.
    pub fn of(engine: &dyn Engine, places: &Places, ports: &Ports, shape: &Shape) -> Seen {
        let word = |probe: usize| engine.probe(probe).low_u64() as u32;
        let mask = |probe: usize| engine.probe(probe).low_u64();
        let written = Some(mask(places.write_lanes)).filter(|&lanes| lanes != 0).map(|lanes| {
            let members = places.members(engine, places.write_slot, places.write_homes, shape);
            let data = engine.probe(places.write_data);
            let value = |lane: u32| (data.limb(lane as usize / 2) >> (32 * (lane % 2))) as u32;
            let values = bits(lanes).map(|lane| (members(lane), value(lane))).collect();
            Written { register: word(places.write_rd) as u8, values }
        });
        let exits = match engine.probe(places.exit_valid) == 1 {
            true => {
                let members = places.members(engine, places.exit_slot, places.exit_homes, shape);
                let codes = engine.probe(places.exit_codes);
                let code = |lane: u32| codes.extract(32 * lane, 32).low_u64() as u32;
                bits(mask(places.exit_mask)).map(|lane| (members(lane), code(lane))).collect()
            }
            false => Vec::new(),
        };
        let started = (mask(places.start_taken) != 0).then(|| {
            let [slot, pc, block] = places.start.map(word);
            let register =
                |bank: usize, register: u32| engine.memory_read(bank, u64::from(slot << 5 | register)).low_u64() as u32;
            let lane = |&bank: &usize| std::array::from_fn(|k| register(bank, k as u32 + 1));
            let registers = places.registers.iter().map(lane).collect();
            Started { slot, pc, block, mask: mask(places.start_mask), registers }
        });
        let commit = Some(mask(places.commit_lanes)).filter(|&lanes| lanes != 0).map(|lanes| {
            let members = places.members(engine, places.commit_slot, places.commit_homes, shape);
            Committed { pc: 4 * word(places.commit_pc), threads: bits(lanes).map(members).collect() }
        });
        Seen { cycle: engine.cycle(), sent: ports.see(engine), written, exits, started, commit }
    }
}
