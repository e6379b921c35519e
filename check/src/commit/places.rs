//! Where the core has what is compared: its probes and memories in the directory, and how probes are recorded.

use super::bits;
use heddle_sim::directory::Directory;
use heddle_sim::{Channel, Engine, Recording, Seen};
use heddle_simt::{Replay, Shape};
use std::sync::Arc;

/// The channels of the recording.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// An instruction takes effect: lanes, slot, pc; homes.
    Commit,
    /// A register is written: lanes, slot, register; homes; data.
    Write,
    /// Threads end: lanes, slot; homes; exit codes.
    Exit,
    /// A warp starts: lanes, slot, pc, block.
    Start,
    /// Goes to main memory, to the scratchpad: operation, function, and the lanes that go if they go in parts; enables,
    /// lines, data.
    Main,
    Scratchpad,
    /// It is known of lanes whether their `sc.w` succeeds: lanes, those that succeed; rows.
    Decided,
    /// Reservations are lost because so many words were written.
    Wrapped,
}

/// The limbs that probes of up to 64 bits have in a row: the cycle is the first.
pub mod limb {
    pub const LANES: usize = 1;
    pub const SLOT: usize = 2;
    /// Of the instruction, in words.
    pub const PC: usize = 3;
    pub const REGISTER: usize = 3;
    pub const BLOCK: usize = 4;
    pub const OPERATION: usize = 1;
    pub const FUNCTION: usize = 2;
    pub const GOING: usize = 3;
    pub const SUCCEED: usize = 2;
}

/// Bits of a value in a row, up to 64 of them.
pub fn extract(limbs: &[u64], low: u32, width: u32) -> u64 {
    let (at, shift) = (low as usize / 64, low % 64);
    let mut value = limbs[at] >> shift;
    if shift + width > 64 {
        value |= limbs[at + 1] << (64 - shift);
    }
    value & u64::MAX >> (64 - width)
}

/// Bits `32 × k` to `32 × k + 31`.
pub fn word(limbs: &[u64], k: u32) -> u32 {
    (limbs[k as usize / 2] >> (32 * (k % 2))) as u32
}

/// The core's probes and memories.
pub struct Places {
    /// Path of the core's instance, empty if it is the top.
    pub core: &'static str,
    pub recording: Arc<Recording>,
    /// In the order of the recording.
    channels: Vec<What>,
    /// Register banks, one per lane.
    registers: Vec<usize>,
    /// Scratchpad banks, one per lane, if there are any; and the words of a bank.
    scratchpad: Vec<usize>,
    scratchpad_lines: usize,
    /// Lanes of a warp, and bits of a warp's number; threads of several warps run together.
    lanes: u32,
    warp_bits: u32,
    mixes: bool,
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

    pub fn new(directory: &Directory, shape: &Shape) -> Places {
        let memory = |name: String| directory.memories.find(&Places::inside(directory, &name));
        let banks = |path: &str, memory_name: &str| -> Vec<usize> {
            let bank = |lane| memory(format!("{path}[{lane}].{memory_name}")).expect("the core has a bank a lane");
            (0..shape.lanes).map(bank).collect()
        };
        let (channels, recorded) = channels(directory, shape).into_iter().unzip();
        Places {
            core: Places::core(directory),
            recording: Recording::new(directory, recorded),
            channels,
            registers: banks("collect.lane", "registers"),
            scratchpad: if shape.scratchpad > 0 { banks("scratchpad.bank", "words") } else { vec![] },
            scratchpad_lines: (shape.scratchpad / 4 / shape.lanes) as usize,
            lanes: shape.lanes,
            warp_bits: shape.warp_bits(),
            mixes: shape.mixes(),
        }
    }

    /// The number of a channel; none if there is nothing of the kind in this core.
    pub fn channel(&self, what: What) -> Option<usize> {
        self.channels.iter().position(|&channel| channel == what)
    }

    /// In a row of a channel, its `k`-th probe.
    pub fn value<'a>(&self, channel: usize, row: &'a [u64], k: usize) -> &'a [u64] {
        &row[self.recording.start(channel, k)..]
    }

    /// Appends the threads of these lanes of a slot, given the static warp of each lane where warps mix.
    pub fn threads(&self, lanes: u64, slot: u32, homes: &[u64], threads: &mut Vec<u32>) {
        threads.clear();
        if self.mixes {
            let home = |lane: u32| extract(homes, lane * self.warp_bits, self.warp_bits) as u32;
            threads.extend(bits(lanes).map(|lane| home(lane) * self.lanes + lane));
        } else {
            threads.extend(bits(lanes).map(|lane| slot * self.lanes + lane));
        }
    }

    /// x0 to x31 of every thread.
    pub fn registers(&self, engine: &dyn Engine, to: &mut [[u32; 32]]) {
        let lanes = self.registers.len();
        let mut words = vec![0; 32 * to.len() / lanes];
        for (lane, &bank) in self.registers.iter().enumerate() {
            engine.memory_save(bank, 0, &mut words);
            for (registers, words) in to.iter_mut().skip(lane).step_by(lanes).zip(words.chunks_exact(32)) {
                registers.iter_mut().zip(words).for_each(|(register, &word)| *register = word as u32);
            }
        }
    }

    /// Copies the core's scratchpad.
    pub fn scratchpad(&self, engine: &dyn Engine, to: &mut [u8]) {
        let mut words = vec![0; self.scratchpad_lines];
        for (k, &bank) in self.scratchpad.iter().enumerate() {
            engine.memory_save(bank, 0, &mut words);
            for (to, &word) in to.chunks_exact_mut(4).skip(k).step_by(self.scratchpad.len()).zip(&words) {
                to.copy_from_slice(&(word as u32).to_le_bytes());
            }
        }
    }
}

/// What there is to record in a core. Panics without the core's probes.
fn channels(directory: &Directory, shape: &Shape) -> Vec<(What, Channel)> {
    let probe = |name: &str| {
        let probe = directory.probes.find(&Places::inside(directory, name));
        Seen::Probe(probe.unwrap_or_else(|| panic!("the commit-stream check needs the core's probe {name}")))
    };
    let channel = |guard: &str, probes: &[&str]| Channel {
        guard: probe(guard),
        values: probes.iter().map(|name| probe(name)).collect(),
    };
    // What is wide comes last, and homes before it.
    let of_threads = |guard: &str, narrow: &[&str], homes: &str, wide: &[&str]| {
        let homes: &[&str] = if shape.mixes() { &[homes] } else { &[] };
        channel(guard, &[narrow, homes, wide].concat())
    };
    let port = |name: &str, lines: &str| {
        let [sent, operation, function, lines, enables, data] =
            ["sent", "operation", "function", lines, "enables", "data"].map(|part| format!("{name}_{part}"));
        let lanes = if shape.replay == Replay::Serialise { "request_lanes" } else { operation.as_str() };
        channel(&sent, &[&operation, &function, lanes, &enables, &lines, &data])
    };
    let commit = ["resolve.commit_lanes", "resolve.commit_slot", "resolve.commit_pc"];
    let mut channels = vec![
        (What::Commit, of_threads(commit[0], &commit, "resolve.commit_homes", &[])),
        (
            What::Write,
            of_threads("write_lanes", &["write_lanes", "write_slot", "write_rd"], "write_homes", &["write_data"]),
        ),
        (What::Exit, of_threads("exit_valid", &["exit_mask", "exit_slot"], "exit_homes", &["exit_codes"])),
        (What::Start, channel("start_taken", &["start_mask", "start_slot", "start_pc", "start_block"])),
        (What::Main, port("request", "line")),
    ];
    if shape.scratchpad > 0 {
        channels.push((What::Scratchpad, port("scratchpad", "lines")));
    }
    if shape.reservations {
        let [decided, succeed, rows, wrapped] =
            ["decided", "succeed", "rows", "wrapped"].map(|name| format!("reservations.{name}"));
        channels.push((What::Decided, channel(&decided, &[&decided, &succeed, &rows])));
        channels.push((What::Wrapped, channel(&wrapped, &[])));
    }
    channels
}
