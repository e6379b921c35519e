//! The instruction-set simulator in warps whose threads run in paths, with convergence barriers as
//! `docs/reference/convergence-barriers.md` has them.
//!
//! The path that is deepest in calls runs, of those the one with the lowest pc. What is not modelled is time.

use crate::iss::Iss;
use crate::reconverge::instruction::{Flow, Instruction};

/// What a launch took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub issued: u64,
    pub executed: u64,
    /// Releases because nothing could run.
    pub stalls: u64,
    /// Waits released by the last that participates, or by a threshold.
    pub releases: u64,
}

impl Report {
    pub fn efficiency(&self, lanes: u32) -> f64 {
        self.executed as f64 / (self.issued * u64::from(lanes)) as f64
    }
}

#[derive(Clone, Copy, Default)]
struct Entry {
    participants: u64,
    waiting: u64,
    place: (u32, i64),
}

struct Warp<'a> {
    iss: &'a mut Iss,
    first: u32,
    lanes: u32,
    depth: Vec<i64>,
    entries: [Entry; 16],
    report: Report,
}

/// Runs one block of all threads.
pub fn run(iss: &mut Iss, lanes: u32, warps: u32) -> Report {
    iss.restart();
    let mut report = Report::default();
    for warp in 0..warps {
        let mut warp = Warp {
            first: warp * lanes,
            lanes,
            depth: vec![0; lanes as usize],
            entries: [Entry::default(); 16],
            report,
            iss,
        };
        while warp.turn() {}
        report = warp.report;
    }
    report
}

impl Warp<'_> {
    fn turn(&mut self) -> bool {
        let live = self.mask(|hart| hart.is_live());
        if live == 0 {
            return false;
        }
        assert!(self.report.issued < 10_000_000, "the program does not end");
        for entry in &mut self.entries {
            entry.participants &= live;
            entry.waiting &= live;
        }
        let waiting = self.entries.iter().fold(0, |all, entry| all | entry.waiting);
        let lanes = || (0..self.lanes).filter(|lane| (live & !waiting) >> lane & 1 == 1);
        let place = |lane: u32| (-self.depth[lane as usize], self.iss.hart(self.first + lane).pc());
        let Some(best) = lanes().map(place).min() else {
            let held = self.entries.iter().position(|entry| entry.waiting != 0).expect("threads wait somewhere");
            self.report.stalls += 1;
            self.release(held);
            return true;
        };
        let path: Vec<u32> = lanes().filter(|&lane| place(lane) == best).collect();
        self.report.issued += 1;
        self.report.executed += path.len() as u64;
        let mut word = 0;
        for &lane in &path {
            let step = self.iss.step(self.first + lane).unwrap();
            word = step.word;
            let depth = &mut self.depth[lane as usize];
            match (Instruction { pc: step.pc, word }).flow() {
                Flow::Call { .. } | Flow::IndirectCall => *depth += 1,
                Flow::Return => *depth -= 1,
                _ => {}
            }
        }
        let mask = path.iter().fold(0, |mask, lane| mask | 1u64 << lane);
        if word & 0x7f == 0x0b && word != 0x0b {
            self.hint(word, mask, (best.1.wrapping_add(4), -best.0));
        }
        for number in 0..16 {
            let live = self.mask(|hart| hart.is_live());
            let Entry { participants, waiting, .. } = self.entries[number];
            if waiting & live != 0 && (waiting ^ participants) & live == 0 {
                self.report.releases += 1;
                self.release(number);
            }
        }
        true
    }

    fn mask(&self, is: impl Fn(&crate::iss::Hart) -> bool) -> u64 {
        (0..self.lanes).filter(|&lane| is(self.iss.hart(self.first + lane))).fold(0, |mask, lane| mask | 1 << lane)
    }

    fn release(&mut self, number: usize) {
        let entry = &mut self.entries[number];
        entry.participants &= !entry.waiting;
        entry.waiting = 0;
    }

    fn hint(&mut self, word: u32, path: u64, place: (u32, i64)) {
        let (b, c) = ((word >> 15 & 15) as usize, (word >> 20) as usize);
        let entry = &mut self.entries[b];
        match word >> 12 & 7 {
            1 => entry.participants |= path,
            2 => {
                let here = path & entry.participants;
                if entry.waiting != 0 && entry.place != place {
                    entry.participants &= !here;
                } else {
                    (entry.waiting, entry.place) = (entry.waiting | here, place);
                    if here != 0 && c > 0 && entry.waiting.count_ones() as usize >= c {
                        self.report.releases += 1;
                        self.release(b);
                    }
                }
            }
            3 => entry.participants &= !path,
            4 => {
                let count = entry.participants.count_ones();
                for lane in (0..self.lanes).filter(|lane| path >> lane & 1 == 1) {
                    self.iss.hart_mut(self.first + lane).set_register((word >> 7 & 31) as u8, count);
                }
            }
            kind => {
                let from = self.entries[c];
                self.entries[b].participants = from.participants | self.entries[b].waiting;
                if kind == 6 {
                    self.entries[c].participants = from.waiting;
                }
            }
        }
    }
}
