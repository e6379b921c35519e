//! Loads and stores of a warp: replays, sizes, and which lane's value stays.

use crate::bench::{Core, shape};
use heddle_simt::pipeline::timing;
use heddle_simt::{Backing, Divergence, Replay, Shape, Timing};
use heddle_testbench::asm::*;
use heddle_testbench::grid::Grid;

const TABLE: u32 = 0x400;
const VALUES: u32 = 0x600;
const DATA: u32 = 0x800;
const RESULTS: u32 = 0xc00;

/// Each lane takes an address from a table, stores its value there, and loads from its address in a second table.
fn store_then_load(size: u32, load_kind: u32) -> Asm {
    Asm::default()
        .put([csrr(5, LANE), slli(5, 5, 2), addi(6, 5, TABLE as i32), addi(7, 5, VALUES as i32)])
        .put([lw(8, 6, 0), lw(9, 7, 0), lw(10, 6, 0x100)])
        .label("store")
        .put([store(size, 9, 8, 0)])
        .label("load")
        .put([load(load_kind, 11, 10, 0)])
        .put([lui(12, 1), addi(12, 12, RESULTS as i32 - 0x1000), add(12, 12, 5), sw(11, 12, 0)])
        .exit()
}

/// Memory as bytes, with what one instruction of several lanes does: the highest lane's value stays.
struct Model {
    bytes: Vec<u8>,
}

impl Model {
    fn store(&mut self, address: u32, size: u32, value: u32) {
        let at = (address - DATA) as usize;
        let count = 1 << size;
        self.bytes[at..at + count].copy_from_slice(&value.to_le_bytes()[..count]);
    }

    fn load(&self, address: u32, kind: u32) -> u32 {
        let at = (address - DATA) as usize;
        let byte = |k: usize| u32::from(self.bytes[at + k]);
        match kind {
            0 => byte(0) as u8 as i8 as u32,
            1 => (byte(0) | byte(1) << 8) as u16 as i16 as u32,
            4 => byte(0),
            5 => byte(0) | byte(1) << 8,
            _ => byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24,
        }
    }
}

#[test]
fn random_addresses_in_every_lane_size_and_sign() {
    for (lanes, seed) in [(1, 1), (2, 2), (4, 3), (8, 4), (64, 6)] {
        println!("{lanes} lanes, seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        // Of the widest core one kind, which takes as long as all of the others.
        let kinds: &[u32] = if lanes < 64 { &[0, 1, 2, 4, 5] } else { &[1] };
        for &load_kind in kinds {
            let size = load_kind & 3;
            let program = store_then_load(size, load_kind);
            let mut core = Core::with_seed(&shape(lanes, 1), &program, seed);
            // Few words, so that lanes collide; or many.
            let words = [2, lanes, 128][random.usize(..3)];
            let address = |r: &mut fastrand::Rng| DATA + (r.u32(..words * 4) >> size << size);
            let stores: Vec<(u32, u32)> = (0..lanes).map(|_| (address(&mut random), random.u32(..))).collect();
            let loads: Vec<u32> = (0..lanes).map(|_| address(&mut random)).collect();
            let mut model = Model { bytes: (0..512).map(|_| random.u8(..)).collect() };
            for k in 0..128 {
                core.set_word(DATA + 4 * k, model.load(DATA + 4 * k, 2));
            }
            for lane in 0..lanes {
                core.set_word(TABLE + 4 * lane, stores[lane as usize].0);
                core.set_word(TABLE + 0x100 + 4 * lane, loads[lane as usize]);
                core.set_word(VALUES + 4 * lane, stores[lane as usize].1);
            }
            core.run();
            stores.iter().for_each(|&(address, value)| model.store(address, size, value));
            for k in 0..128 {
                assert_eq!(core.word(DATA + 4 * k), model.load(DATA + 4 * k, 2), "word {k}, {stores:x?}");
            }
            for (lane, &address) in loads.iter().enumerate() {
                let got = core.word(RESULTS + 4 * lane as u32);
                assert_eq!(got, model.load(address, load_kind), "lane {lane}, {loads:x?}");
            }
        }
    }
}

/// How often the store and the load of a program issue, for the lanes' addresses.
fn accesses(addresses: &[u32]) -> (Vec<u64>, Vec<u64>) {
    let program = store_then_load(2, 2);
    let lanes = addresses.len() as u32;
    let mut core = Core::new(&shape(lanes, 1), &program);
    for (lane, &address) in addresses.iter().enumerate() {
        core.set_word(TABLE + 4 * lane as u32, address);
        core.set_word(TABLE + 0x100 + 4 * lane as u32, address);
    }
    core.run();
    let masks = |label| core.issues_of(program.at(label)).iter().map(|i| i.mask).collect();
    (masks("store"), masks("load"))
}

#[test]
fn what_one_access_serves() {
    let line = |words: [u32; 4]| words.map(|w| DATA + 4 * w);
    // Own words of a line; one word for all: one access.
    assert_eq!(accesses(&line([0, 1, 2, 3])), (vec![0b1111], vec![0b1111]));
    assert_eq!(accesses(&line([2, 2, 2, 2])), (vec![0b1111], vec![0b1111]));
    // The leader's word or the own one.
    assert_eq!(accesses(&line([3, 1, 3, 3])), (vec![0b1111], vec![0b1111]));
    // Reversed: only the leader at a time.
    let one_by_one = vec![0b1111, 0b1110, 0b1100, 0b1000];
    assert_eq!(accesses(&line([3, 2, 1, 0])), (one_by_one.clone(), one_by_one.clone()));
    // A stride of a line: the same.
    assert_eq!(accesses(&line([0, 4, 8, 12])), (one_by_one.clone(), one_by_one));
    // Lane 1 must wait, so the store of lane 2 into its own word waits too; the load does not.
    assert_eq!(accesses(&line([0, 2, 2, 3])), (vec![0b1111, 0b1110], vec![0b1111, 0b0010]));
}

/// `lw a0, 0(a0)`: a replayed lane still has its address; and replays do not wait for the loads before them.
#[test]
fn a_replay_reads_its_own_sources_and_does_not_wait() {
    let program = Asm::default()
        .put([csrr(5, LANE), slli(5, 5, 6), addi(5, 5, 0x400)])
        .put([NOP; 8])
        .label("load")
        .put([lw(5, 5, 0), addi(6, 5, 1)])
        .exit();
    let mut core = Core::new(&shape(4, 1), &program);
    for lane in 0..4 {
        core.set_word(0x400 + 64 * lane, 1000 + lane);
    }
    core.run();
    for lane in 0..4 {
        assert_eq!(core.register(0, lane, 6), 1001 + lane);
    }
    let issues = core.issues_of(program.at("load"));
    assert_eq!(
        issues.iter().map(|i| (i.mask, i.replay)).collect::<Vec<_>>(),
        [(0b1111, false), (0b1110, true), (0b1100, true), (0b1000, true)]
    );
    assert!(issues.windows(2).all(|w| w[1].cycle - w[0].cycle == u64::from(timing::CONTROL_TO_NEXT)));
}

/// The answer to some lanes is written before, when and after the load issues again for those that were left. Who needs
/// the register waits for all of them.
#[test]
fn a_register_is_released_by_the_last_lane_whenever_it_is_written() {
    for divergence in [Divergence::PATH_TABLE, Divergence::ARBITER] {
        let mut at_once = 0;
        for latency in 1..2 * timing::CONTROL_TO_NEXT {
            let backing = Backing::Model(Timing { latency, ..Timing::FASTEST });
            let s = Shape { backing, replay: Replay::Split, ..shape(4, 1).with_divergence(divergence) };
            println!("{divergence:?}, latency {latency}");
            let program = Asm::default()
                .put([csrr(5, LANE), slli(5, 5, 6), addi(5, 5, 0x400)])
                .label("load")
                .put([lw(5, 5, 0), addi(6, 5, 1)])
                .exit();
            let mut core = Core::new(&s, &program);
            for lane in 0..4 {
                core.set_word(0x400 + 64 * lane, 1000 + lane);
            }
            core.launch(Grid::one_block(4), 0);
            let mut written = 0;
            loop {
                let cycle = core.t.cycle();
                let writes = core.t.probe("core.write_lanes").low_u64() != 0 && core.t.probe("core.write_rd") == 5;
                written = if writes { cycle } else { written };
                let issued = core.issues.len();
                let out = core.cycle();
                at_once += u32::from(writes && core.issues[issued..].iter().any(|issue| issue.replay));
                if out.stopped == 1 {
                    break;
                }
            }
            for lane in 0..4 {
                assert_eq!(core.register(0, lane, 6), 1001 + lane);
            }
            let load = program.at("load");
            let groups: Vec<u64> = core.issues_of(load).iter().map(|issue| issue.cycle).collect();
            assert_eq!(groups.len(), 4);
            // The arbiter takes longer from an outcome to what comes next.
            let next = groups[3] + (groups[3] - groups[2]);
            let released = written + u64::from(timing::WRITE_TO_ISSUE);
            assert_eq!(core.issues_of(load + 1)[0].cycle, released.max(next));
        }
        assert!(at_once > 0, "no write in the cycle of a replay");
    }
}

/// Warps that poll eight words of one bank keep the scratchpad's answers coming in every cycle; the load and the
/// division that they wait for are written all the same.
#[test]
fn answers_in_every_cycle_starve_nobody() {
    let s = Shape { replay: Replay::Serialise, ..shape(8, 8) };
    let program = Asm::default()
        .put([csrr(5, 0xfc2), csrr(6, LANE), slli(6, 6, 5), lui(7, 0x40000), add(7, 7, 6), addi(8, ZERO, 77)])
        .branch(BNE, 5, ZERO, "poll")
        .put([addi(9, ZERO, 0x400), lw(10, 9, 0), divu(10, 10, 10), mul(10, 10, 8), sw(10, 7, 0)])
        .exit()
        .label("poll")
        .put([lw(11, 7, 0)])
        .branch(BNE, 11, 8, "poll")
        .exit();
    let mut core = Core::new(&s, &program);
    core.set_word(0x400, 5);
    core.run();
}
