//! `heddle run --timeline`: which threads ran together, as a picture.
//!
//! A line is a visit of a basic block by threads that run it together: its name, the thread in each lane in the colour
//! of its static warp, and the cycles in which its instructions issued. Lines are in the order in which they began,
//! those of a thread block beside each other. (`thread-block-compaction.txt` Figure 7)

use crate::drawing::{FAINT, INK, document, line, rectangle, text};
use crate::interrupt::Interrupt;
use anyhow::{Context, Result, ensure};
use heddle_testbench::Program;
use heddle_testbench::machine::{Progress, TraceLine, Watch};
use heddle_testbench::reconverge::{Analysis, analyse};
use std::collections::{BTreeMap, HashMap};
use std::ops::{ControlFlow, Range};
use std::sync::{Arc, Mutex, PoisonError};
use svg::node::element::Group;

/// Lines of a picture at most.
const MOST: usize = 400;

const MARGIN: f64 = 20.0;
/// Above the first line, and below the last.
const HEAD: f64 = 84.0;
const FOOT: f64 = 34.0;
/// Of a block's number.
const HEADING: f64 = 24.0;
const NAMES: f64 = 110.0;
const LINE: f64 = 20.0;
const LANE: f64 = 24.0;
const GAP: f64 = 24.0;
/// Of all cycles, and of one at most.
const CYCLES: f64 = 720.0;
const CYCLE: f64 = 10.0;
/// Between numbers of cycles.
const TICK: f64 = 60.0;
const COLOURS: [&str; 8] = ["#a6cee3", "#fdbf6f", "#b2df8a", "#fb9a99", "#cab2d6", "#ffff99", "#80cdc1", "#d9b38c"];

/// A visit of a basic block.
struct Visit {
    block: u32,
    name: String,
    /// Of each lane, the thread's number in its block.
    threads: Vec<Option<u32>>,
    cycles: Vec<u64>,
    last: u32,
    end: u32,
}

/// Threads that run together, with their block.
type Together = (u32, Vec<Option<u32>>);

/// What the picture shows, filled while the launches run.
pub struct Record {
    title: String,
    range: Range<u64>,
    /// By the address of a basic block: where it ends, and its name.
    names: BTreeMap<u32, (u32, String)>,
    visits: Vec<Visit>,
    /// The last visit of threads that ran together.
    open: HashMap<Together, usize>,
    /// The cycle of the first visit that found no room.
    full: Option<u64>,
}

/// Records what issues.
pub struct Timeline {
    record: Arc<Mutex<Record>>,
    interrupt: Interrupt,
}

/// `FROM..TO`, either of which may be missing.
pub fn parse_range(text: &str) -> Result<Range<u64>, String> {
    let wanted = || format!("`{text}` is not a range of cycles, such as 100..400");
    let (from, to) = text.split_once("..").ok_or_else(wanted)?;
    let number = |text: &str, or: u64| if text.is_empty() { Ok(or) } else { text.parse().map_err(|_| wanted()) };
    let range = number(from, 0)?..number(to, u64::MAX)?;
    if range.is_empty() { Err(format!("`{text}` has no cycle")) } else { Ok(range) }
}

impl Record {
    /// Of a program, in a range of cycles.
    pub fn new(title: String, program: &Program, range: Range<u64>) -> Result<Arc<Mutex<Record>>> {
        let names = names(program, &analyse(program).context("--timeline")?);
        let record = Record { title, range, names, visits: Vec::new(), open: HashMap::new(), full: None };
        Ok(Arc::new(Mutex::new(record)))
    }

    pub fn watch(record: &Arc<Mutex<Record>>, interrupt: &Interrupt) -> Timeline {
        Timeline { record: record.clone(), interrupt: interrupt.clone() }
    }

    pub fn svg(record: &Mutex<Record>) -> Result<String> {
        let record = record.lock().unwrap_or_else(PoisonError::into_inner);
        ensure!(!record.visits.is_empty(), "--timeline: nothing issues in these cycles");
        Ok(record.picture())
    }

    fn issued(&mut self, TraceLine { cycle, pc, block, threads, .. }: TraceLine) {
        if !self.range.contains(&cycle) || self.full.is_some() {
            return;
        }
        let together = (block, threads);
        let visit = self.open.get(&together).map(|&number| &mut self.visits[number]);
        if let Some(visit) = visit.filter(|visit| (visit.last..visit.end).contains(&pc)) {
            visit.cycles.push(cycle);
            visit.last = pc;
            return;
        }
        if self.visits.len() == MOST {
            self.full = Some(cycle);
            return;
        }
        let (end, name) = visited(&self.names, pc);
        self.open.insert(together.clone(), self.visits.len());
        let (block, threads) = together;
        self.visits.push(Visit { block, name, threads, cycles: vec![cycle], last: pc, end });
    }

    fn picture(&self) -> String {
        let lanes = self.visits.iter().map(|visit| visit.threads.len()).max().unwrap_or(0);
        let all = || self.visits.iter().flat_map(|visit| &visit.cycles);
        let (first, last) = (all().min().copied().unwrap_or(0), all().max().copied().unwrap_or(0));
        let cycle = CYCLE.min(CYCLES / (last + 1 - first) as f64);
        let mut blocks: BTreeMap<u32, Vec<&Visit>> = BTreeMap::new();
        self.visits.iter().for_each(|visit| blocks.entry(visit.block).or_default().push(visit));
        let threads = MARGIN + NAMES;
        let time = threads + lanes as f64 * LANE + GAP;
        let bottom = HEAD + blocks.values().map(|visits| HEADING + visits.len() as f64 * LINE).sum::<f64>();
        let width = time + ((last + 1 - first) as f64 * cycle).max(4.0 * TICK) + MARGIN;
        let mut picture = document((width, bottom + FOOT));
        picture = picture
            .add(text(MARGIN, 28.0, "start", &self.title).set("font-size", 16))
            .add(text(threads, HEAD - 22.0, "start", "threads by lane"))
            .add(text(time, HEAD - 22.0, "start", "cycles in which they issue"));
        let step = step(TICK / cycle);
        for tick in (first.next_multiple_of(step)..=last).step_by(step as usize) {
            let x = time + (tick - first) as f64 * cycle;
            let number = text(x, HEAD - 6.0, "middle", &tick.to_string()).set("font-size", 11);
            picture = picture.add(line(x, HEAD, bottom, FAINT)).add(number);
        }
        let mut top = HEAD;
        for (block, visits) in blocks {
            picture = picture.add(heading(block, top));
            top += HEADING;
            for visit in visits {
                let at = |cycle_of: u64| time + (cycle_of - first) as f64 * cycle;
                picture = picture.add(visit.line((MARGIN, threads, top), cycle, at));
                top += LINE;
            }
        }
        if let Some(cycle) = self.full {
            let more = format!("The first {MOST} lines; what began from cycle {cycle} on: --window {cycle}..");
            picture = picture.add(text(MARGIN, bottom + 22.0, "start", &more));
        }
        format!("{picture}\n")
    }
}

impl Visit {
    fn line(&self, (left, threads, top): (f64, f64, f64), cycle: f64, at: impl Fn(u64) -> f64) -> Group {
        let middle = top + 0.7 * LINE;
        let mut group = Group::new().add(text(left, middle, "start", &self.name));
        let lanes = self.threads.len() as u32;
        for (lane, thread) in (0..).zip(&self.threads) {
            let x = threads + f64::from(lane) * LANE;
            let colour = thread.map_or("white", |thread| COLOURS[(thread / lanes) as usize % COLOURS.len()]);
            let cell = rectangle(x, top + 1.0, LANE - 1.0, LINE - 2.0, colour);
            group = group.add(if thread.is_none() { cell.set("stroke", FAINT) } else { cell });
            if let Some(thread) = thread {
                let number = text(x + LANE / 2.0, middle, "middle", &thread.to_string());
                group = group.add(number.set("font-size", 11));
            }
        }
        let (begin, end) = (self.cycles[0], self.cycles[self.cycles.len() - 1]);
        group = group.add(rectangle(at(begin), top + 0.5 * LINE - 1.0, at(end) - at(begin), 2.0, INK));
        for &issue in &self.cycles {
            group = group.add(rectangle(at(issue), top + 3.0, (0.8 * cycle).max(0.5), LINE - 6.0, INK));
        }
        group
    }
}

fn heading(block: u32, top: f64) -> Group {
    let name = text(MARGIN, top + 17.0, "start", &format!("block {block}"));
    Group::new().add(name.set("font-weight", "bold"))
}

/// The least of 1, 2, 5, 10 … cycles that are so many.
fn step(cycles: f64) -> u64 {
    let steps = (0..18).flat_map(|power| [1, 2, 5].map(|first| first * 10_u64.pow(power)));
    steps.into_iter().find(|&step| step as f64 >= cycles).unwrap_or(u64::MAX)
}

/// Basic blocks have the name of their function and a letter each, in order of address.
pub fn names(program: &Program, analysis: &Analysis) -> BTreeMap<u32, (u32, String)> {
    let mut names = BTreeMap::new();
    for function in &analysis.functions {
        let name = program.nearest_symbol(function.entry).unwrap_or_else(|| format!("{:#x}", function.entry));
        for (number, block) in function.blocks.iter().enumerate() {
            names.entry(block.start).or_insert_with(|| (block.end, format!("{name} {}", letters(number))));
        }
    }
    names
}

/// Of the basic block that an address is in: where it ends, and its name.
pub fn visited(names: &BTreeMap<u32, (u32, String)>, pc: u32) -> (u32, String) {
    let found = names.range(..=pc).next_back().map(|(_, found)| found).filter(|(end, _)| pc < *end);
    found.cloned().unwrap_or_else(|| (pc + 4, format!("{pc:#x}")))
}

/// A, B … Z, AA, AB …
fn letters(number: usize) -> String {
    let letter = char::from(b'A' + (number % 26) as u8);
    if number < 26 { letter.into() } else { letters(number / 26 - 1) + &String::from(letter) }
}

impl Watch for Timeline {
    fn issued(&mut self, line: TraceLine) {
        self.record.lock().unwrap_or_else(PoisonError::into_inner).issued(line);
    }

    fn wants_trace(&self) -> bool {
        true
    }

    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        self.interrupt.poll()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_simt::LaneMask;

    fn record(range: Range<u64>) -> Record {
        let names = BTreeMap::from([(0, (8, "main A".to_string())), (8, (16, "main B".to_string()))]);
        Record { title: "title".into(), range, names, visits: vec![], open: HashMap::new(), full: None }
    }

    fn issue(cycle: u64, pc: u32, block: u32, threads: [Option<u32>; 2]) -> TraceLine {
        TraceLine {
            cycle,
            warp: 0,
            pc,
            mask: LaneMask::new(),
            replay: false,
            block,
            threads: threads.to_vec(),
            text: String::new(),
        }
    }

    #[test]
    fn a_line_a_visit_of_a_basic_block() {
        let mut record = record(0..100);
        let (both, one) = ([Some(0), Some(3)], [Some(0), None]);
        let issued = [(1, 0, 0, both), (2, 0, 1, both), (3, 4, 0, both), (4, 8, 0, one), (5, 8, 1, both)];
        // Back to the first block; where there is none; too late.
        let others = [(6, 0, 0, both), (7, 4, 0, both), (8, 0, 0, both), (9, 16, 0, one), (100, 0, 0, one)];
        for (cycle, pc, block, threads) in issued.into_iter().chain(others) {
            record.issued(issue(cycle, pc, block, threads));
        }
        let seen: Vec<(&str, u32, Vec<u64>)> =
            record.visits.iter().map(|visit| (visit.name.as_str(), visit.block, visit.cycles.clone())).collect();
        let want = [
            ("main A", 0, vec![1, 3]),
            ("main A", 1, vec![2]),
            ("main B", 0, vec![4]),
            ("main B", 1, vec![5]),
            ("main A", 0, vec![6, 7]),
            ("main A", 0, vec![8]),
            ("0x10", 0, vec![9]),
        ];
        assert_eq!(seen, want);
        let picture = record.picture();
        // The background; two lanes and a bar a line; a mark an instruction.
        assert_eq!(picture.matches("<rect ").count(), 1 + 7 * 3 + 9);
        assert!(picture.contains("block 1") && !picture.contains("--window"), "{picture}");
    }

    #[test]
    fn a_long_picture_says_where_it_ends() {
        let mut record = record(10..u64::MAX);
        (0..1000).for_each(|cycle| record.issued(issue(cycle, 0, cycle as u32, [Some(0), None])));
        assert_eq!((record.visits.len(), record.full), (MOST, Some(10 + MOST as u64)));
        assert!(record.picture().contains(&format!("--window {}..", 10 + MOST)));
    }

    #[test]
    fn ranges_and_letters() {
        assert_eq!(parse_range("100..400"), Ok(100..400));
        assert_eq!(parse_range("7.."), Ok(7..u64::MAX));
        assert_eq!(parse_range("..7"), Ok(0..7));
        for wrong in ["", "7", "a..", "7..7", "9..3"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
        assert_eq!([0, 25, 26, 27, 52].map(letters), ["A", "Z", "AA", "AB", "BA"]);
        assert_eq!([0.5, 3.0, 60.0, 1200.0].map(step), [1, 5, 100, 2000]);
    }
}
