//! Perfetto's and Chrome's trace: warps with the basic blocks that they visit, thread blocks, barriers, accesses to
//! memory, and counts.
//!
//! Format: the JSON of Chrome's trace event format, an object with `traceEvents`. A cycle is a microsecond.
//!
//! | process | a track | events |
//! |---|---|---|
//! | warps | a slot: a warp, or a side of one | `X`: threads that run a basic block together, with their lanes |
//! | thread blocks | a block's lowest warp | `X`: from the start of its first warp to the end of its last thread |
//! | barriers | a warp | `X`: from the issue of a `barrier` to the next issue of the warp |
//! | memory | an access | `b`, `e`: from stage 9 to the last write of its result |
//! | counts | | `C`, of up to 64 cycles each: issues a cycle, lanes of an issue, live warps, accesses under way |

use super::Viewer;
use super::owed::{Fate, Owed};
use crate::timeline::{names, visited};
use crate::trace::mask_text;
use anyhow::Result;
use heddle_simt::pipeline::timing::ISSUE_TO_ACCESS;
use heddle_simt::{LaneMask, Shape};
use heddle_testbench::Program;
use heddle_testbench::machine::{IssuedFrom, Pipeline, TraceLine};
use heddle_testbench::reconverge::analyse;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;

const WARPS: u32 = 1;
const BLOCKS: u32 = 2;
const BARRIERS: u32 = 3;
const MEMORY: u32 = 4;
const COUNTS: u32 = 5;

/// Cycles of a count.
const EVERY: u64 = 64;

/// The trace's state.
pub struct Perfetto {
    shape: Shape,
    cycles: Range<u64>,
    /// By the address of a basic block: where it ends, and its name.
    names: BTreeMap<u32, (u32, String)>,
    /// By slot, what it runs.
    visits: Vec<Option<Visit>>,
    /// By warp, since when it waits at a barrier.
    barriers: Vec<Option<u64>>,
    /// Blocks with live threads: number, since when, warps.
    blocks: Vec<Block>,
    accesses: Vec<Access>,
    counted: Counted,
    numbers: u64,
    begun: bool,
    last: u64,
}

struct Visit {
    name: String,
    block: u32,
    end_pc: u32,
    last_pc: u32,
    lanes: LaneMask,
    first: u64,
    last: u64,
    issues: u64,
}

struct Block {
    number: u32,
    since: u64,
    warps: Vec<u32>,
}

/// An access that issued in this cycle.
struct Access {
    issued: u64,
    line: TraceLine,
    owed: Owed,
}

/// Of the cycles from `from` on.
#[derive(Default)]
struct Counted {
    from: u64,
    cycles: u64,
    issues: u64,
    lanes: u64,
    live: usize,
}

impl Perfetto {
    pub fn new(program: &Program, shape: &Shape, cycles: Range<u64>) -> Result<Perfetto> {
        Ok(Perfetto {
            shape: shape.clone(),
            cycles,
            names: names(program, &analyse(program)?),
            visits: (0..shape.slots()).map(|_| None).collect(),
            barriers: vec![None; shape.warps as usize],
            blocks: Vec::new(),
            accesses: Vec::new(),
            counted: Counted::default(),
            numbers: 0,
            begun: false,
            last: 0,
        })
    }

    /// Names of processes and tracks.
    fn begin(&self, events: &mut Vec<Value>) {
        let named = |kind: &str, pid: u32, tid: u32, name: String| {
            let args = json!({ "name": name });
            json!({ "ph": "M", "name": kind, "pid": pid, "tid": tid, "args": args })
        };
        let processes = [
            (WARPS, "warps"),
            (BLOCKS, "thread blocks"),
            (BARRIERS, "barriers"),
            (MEMORY, "memory"),
            (COUNTS, "counts"),
        ];
        for (pid, name) in processes {
            events.push(named("process_name", pid, 0, name.into()));
            events.push(json!({
                "ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": { "sort_index": pid }
            }));
        }
        let sides = self.shape.slots() / self.shape.warps;
        for slot in 0..self.shape.slots() {
            let side = if sides == 1 { "" } else { [", left side", ", right side"][(slot % 2) as usize] };
            events.push(named("thread_name", WARPS, slot, format!("warp {}{side}", slot / sides)));
        }
        for warp in 0..self.shape.warps {
            events.push(named("thread_name", BLOCKS, warp, format!("from warp {warp}")));
            events.push(named("thread_name", BARRIERS, warp, format!("warp {warp}")));
        }
    }

    fn issues(&mut self, cycle: u64, issued: &IssuedFrom, events: &mut Vec<Value>) {
        let IssuedFrom { slot, accesses, barrier, line } = issued;
        let TraceLine { warp, pc, mask, block, .. } = line;
        self.counted.issues += 1;
        self.counted.lanes += mask.count_ones() as u64;
        if let Some(since) = self.barriers[*warp as usize].take() {
            events.push(slice("barrier", BARRIERS, *warp, (since, cycle), json!({ "block": block })));
        }
        if *barrier {
            self.barriers[*warp as usize] = Some(cycle);
        }
        if *accesses {
            self.accesses.push(Access { issued: cycle, line: line.clone(), owed: Owed::default() });
        }
        let place = &mut self.visits[*slot as usize];
        let goes_on = |visit: &&mut Visit| (visit.last_pc..visit.end_pc).contains(pc) && visit.lanes == *mask;
        if let Some(visit) = place.as_mut().filter(|visit| visit.block == *block).filter(goes_on) {
            (visit.last, visit.last_pc, visit.issues) = (cycle, *pc, visit.issues + 1);
            return;
        }
        let (end_pc, name) = visited(&self.names, *pc);
        let visit = Visit {
            name,
            block: *block,
            end_pc,
            last_pc: *pc,
            lanes: mask.clone(),
            first: cycle,
            last: cycle,
            issues: 1,
        };
        if let Some(before) = place.replace(visit) {
            events.push(before.slice(*slot));
        }
    }

    fn memory(&mut self, pipeline: &Pipeline, events: &mut Vec<Value>) {
        for mut access in std::mem::take(&mut self.accesses) {
            let age = u32::try_from(pipeline.cycle - access.issued).unwrap_or(u32::MAX);
            match access.owed.follow(access.line.warp, age, pipeline) {
                Fate::Squashed => {}
                Fate::Ended => self.ends(&access, pipeline.cycle, events),
                Fate::Goes | Fate::Writes => self.accesses.push(access),
            }
        }
    }

    /// An access has ended before this cycle.
    fn ends(&mut self, access: &Access, cycle: u64, events: &mut Vec<Value>) {
        self.numbers += 1;
        events.extend(access.events(self.numbers, cycle));
    }

    fn blocks(&mut self, Pipeline { cycle, started, live, .. }: &Pipeline, events: &mut Vec<Value>) {
        // A warp is live from the cycle after its start.
        let ended =
            |block: &Block, at: u64| at > block.since + 1 && block.warps.iter().all(|warp| !live[*warp as usize]);
        for block in std::mem::take(&mut self.blocks) {
            if ended(&block, *cycle) {
                if block.since < self.cycles.end && *cycle > self.cycles.start {
                    events.push(block.slice(*cycle));
                }
            } else {
                self.blocks.push(block);
            }
        }
        if let Some((warp, number)) = *started {
            match self.blocks.iter_mut().find(|block| block.number == number) {
                Some(block) => block.warps.push(warp),
                None => self.blocks.push(Block { number, since: *cycle, warps: vec![warp] }),
            }
        }
    }

    /// Counts a cycle; tells what was counted when others begin.
    fn counts(&mut self, Pipeline { cycle, live, .. }: &Pipeline, events: &mut Vec<Value>) {
        if self.counted.from / EVERY != cycle / EVERY {
            self.tell(events);
        }
        if self.counted.cycles == 0 {
            self.counted.from = *cycle;
        }
        self.counted.cycles += 1;
        self.counted.live = live.count_ones();
    }

    fn tell(&mut self, events: &mut Vec<Value>) {
        let Counted { from, cycles, issues, lanes, live } = std::mem::take(&mut self.counted);
        if cycles == 0 {
            return;
        }
        let count = |name: &str, value: f64| {
            let args = json!({ "value": value });
            json!({ "ph": "C", "name": name, "pid": COUNTS, "tid": 0, "ts": from, "args": args })
        };
        events.push(count("issues a cycle", issues as f64 / cycles as f64));
        events.push(count("lanes of an issue", if issues == 0 { 0.0 } else { lanes as f64 / issues as f64 }));
        events.push(count("live warps", live as f64));
        events.push(count("accesses under way", self.accesses.len() as f64));
    }

    /// Into the file, a line an event.
    fn write(&mut self, events: &[Value], out: &mut String) {
        for event in events {
            out.push_str(if self.begun { ",\n" } else { "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n" });
            self.begun = true;
            out.push_str(&event.to_string());
        }
    }
}

/// From one cycle to before another.
fn slice(name: &str, pid: u32, tid: u32, (from, to): (u64, u64), args: Value) -> Value {
    json!({ "ph": "X", "name": name, "pid": pid, "tid": tid, "ts": from, "dur": to - from, "args": args })
}

impl Visit {
    fn slice(&self, slot: u32) -> Value {
        let lanes = mask_text(&self.lanes);
        let args = json!({ "lanes": lanes, "block": self.block, "issues": self.issues });
        slice(&format!("{} {lanes}", self.name), WARPS, slot, (self.first, self.last + 1), args)
    }
}

impl Block {
    fn slice(&self, end: u64) -> Value {
        let args = json!({ "warps": self.warps });
        slice(&format!("block {}", self.number), BLOCKS, self.warps[0], (self.since, end), args)
    }
}

impl Access {
    fn events(&self, id: u64, end: u64) -> [Value; 2] {
        let TraceLine { warp, pc, mask, replay, text, .. } = &self.line;
        let event = |ph: &str, ts: u64, args: Value| {
            let (cat, pid) = ("memory", MEMORY);
            json!({ "ph": ph, "cat": cat, "name": text, "id": id, "pid": pid, "tid": warp, "ts": ts, "args": args })
        };
        let args = json!({ "warp": warp, "pc": format!("{pc:#010x}"), "lanes": mask_text(mask), "replay": replay });
        [event("b", self.issued + u64::from(ISSUE_TO_ACCESS), args), event("e", end, json!({}))]
    }
}

impl Viewer for Perfetto {
    fn cycle(&mut self, pipeline: &Pipeline, out: &mut String) {
        self.last = pipeline.cycle;
        let mut events = Vec::new();
        if !self.begun {
            self.begin(&mut events);
        }
        if self.cycles.contains(&pipeline.cycle) {
            self.counts(pipeline, &mut events);
            if let Some(issued) = &pipeline.issued {
                self.issues(pipeline.cycle, issued, &mut events);
            }
        }
        self.memory(pipeline, &mut events);
        self.blocks(pipeline, &mut events);
        self.write(&events, out);
    }

    /// What is under way when the run ends, ends with it.
    fn end(&mut self, out: &mut String) {
        let end = self.last + 1;
        let mut events = Vec::new();
        if !self.begun {
            self.begin(&mut events);
        }
        events.extend((0..).zip(&self.visits).filter_map(|(slot, visit)| Some(visit.as_ref()?.slice(slot))));
        for (warp, since) in (0..).zip(&self.barriers) {
            events.extend(since.map(|since| slice("barrier", BARRIERS, warp, (since, end), json!({}))));
        }
        events.extend(self.blocks.iter().filter(|block| block.since < self.cycles.end).map(|block| block.slice(end)));
        for access in std::mem::take(&mut self.accesses) {
            let begun = access.issued + u64::from(ISSUE_TO_ACCESS);
            self.ends(&access, end.max(begun + 1), &mut events);
        }
        self.tell(&mut events);
        self.write(&events, out);
        out.push_str("\n]}\n");
    }
}
