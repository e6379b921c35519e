//! A profile from what a run cost.

use super::report::{Access, Advice, Branch, Cost, Instr, Lanes, Line, Meets, Place, Placement, Report, Row, Time};
use heddle_simt::Shape;
use heddle_testbench::costs::{Bin, Costs, Instruction, State};
use heddle_testbench::lines::{Frame, Lines};
use heddle_testbench::machine::{Cause, Summary};
use heddle_testbench::predict::{Automatic, Options, Profile, predict};
use heddle_testbench::reconverge::{Reconvergence, analyse};
use heddle_testbench::{Program, disassemble};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use crate::target::Target;

/// Rows of the overview over time.
const ROWS: usize = 32;

/// Numbers that lanes have over time, at most.
const NUMBERS: usize = 1 << 19;

/// All that the costs say; without command, seed, advice.
pub fn report(target: &Target, shape: &Shape, lines: &Lines, costs: &Costs, summary: Summary) -> Report {
    let places = Places::new(&target.program, lines);
    Report {
        command: String::new(),
        kernel: target.name.clone(),
        lanes: shape.lanes,
        warps: shape.warps,
        divergence: shape.divergence.name().into(),
        core: shape.options(),
        seed: 0,
        error: None,
        notes: Vec::new(),
        summary,
        lines: places.lines(costs, shape.lanes),
        branches: places.branches(costs),
        accesses: places.accesses(costs, shape.cache.is_some()),
        predict: Advice::default(),
        instructions: places.instructions(costs, shape.lanes),
        time: time(costs, shape),
    }
}

/// What is missing, a line each.
pub fn notes(name: &str, lines: &Lines, costs: &Costs) -> Vec<String> {
    if !lines.is_empty() {
        return Vec::new();
    }
    let count = costs.instructions.len();
    vec![format!("{name} has no debug information: its {count} instructions by address; `heddle build` gives it lines")]
}

/// What `heddle predict --auto` would do with the run's profile.
pub fn advice(elf: &[u8], program: &Program, profile: Profile, lines: &Lines) -> Advice {
    let places = Places::new(program, lines);
    let options = Options { automatic: Some(Automatic { profile: Some(profile) }), ..Options::default() };
    let prediction = match predict(elf, &options) {
        Ok(prediction) => prediction,
        Err(error) => return Advice { error: Some(error.to_string()), ..Advice::default() },
    };
    let placements = prediction.placements.into_iter().map(|placement| {
        let waits = placement.instructions.iter().filter(|row| row.instruction == "wait");
        Placement {
            what: placement.what.clone(),
            threshold: placement.threshold,
            waits: waits.map(|row| places.meets(row.pc)).collect(),
            live: placement.live,
        }
    });
    Advice { error: None, placements: placements.collect(), notes: prediction.notes }
}

/// Where instructions come from.
struct Places<'a> {
    program: &'a Program,
    lines: &'a Lines,
    /// What files are called.
    names: BTreeMap<String, String>,
}

impl Places<'_> {
    fn new<'a>(program: &'a Program, lines: &'a Lines) -> Places<'a> {
        Places { program, lines, names: short_names(lines) }
    }

    fn text(&self, pc: u32) -> String {
        self.program.word(pc).map_or_else(|| "?".into(), |word| disassemble(word, pc))
    }

    /// The symbol at an address without its offset.
    fn function(&self, pc: u32) -> Option<String> {
        let symbol = self.program.nearest_symbol(pc)?;
        Some(symbol.split('+').next().unwrap_or_default().to_string())
    }

    /// The line; of what has none in a program with lines, the function; else the address.
    fn place(&self, pc: u32) -> Place {
        if let Some(Frame { file, line, .. }) = self.lines.frames(pc).first() {
            return Place {
                place: format!("{}:{line}", self.names[file]),
                file: Some(file.clone()),
                line: Some(*line),
            };
        }
        let named = if self.lines.is_empty() { self.program.nearest_symbol(pc) } else { self.function(pc) };
        let address = format!("{pc:#06x}");
        let place = match named {
            Some(name) if self.lines.is_empty() => format!("{address} {name}"),
            Some(name) => name,
            None => address,
        };
        Place { place, file: None, line: None }
    }

    fn meets(&self, pc: u32) -> Meets {
        Meets { address: Some(pc), place: self.place(pc).place }
    }

    fn lines(&self, costs: &Costs, lanes: u32) -> Vec<Line> {
        let mut of: BTreeMap<Place, Vec<(u32, &Instruction)>> = BTreeMap::new();
        for (&pc, instruction) in &costs.instructions {
            of.entry(self.place(pc)).or_default().push((pc, instruction));
        }
        let line = |(place, instructions): (Place, Vec<(u32, &Instruction)>)| {
            let address = instructions[0].0;
            let function = self.lines.frames(address).first().and_then(|frame| frame.function.clone());
            let function = function.or_else(|| self.function(address));
            let cost = Cost::of(instructions.iter().map(|(_, instruction)| *instruction), lanes);
            Line { place, function, address, cost }
        };
        let mut lines: Vec<Line> = of.into_iter().map(line).collect();
        lines.sort_by(|a, b| b.cost.cycles.total_cmp(&a.cost.cycles).then(a.address.cmp(&b.address)));
        lines
    }

    fn branches(&self, costs: &Costs) -> Vec<Branch> {
        let analysis = analyse(self.program).ok();
        let executed = costs.instructions.iter().filter(|(_, instruction)| instruction.executed > 0);
        let branch = |(&pc, instruction): (&u32, &Instruction)| {
            let found = analysis.as_ref().and_then(|analysis| analysis.branch(pc));
            let reconverges = found.map(|found| match found.rpc {
                Reconvergence::At(pc) => self.meets(pc),
                Reconvergence::Return => Meets { address: None, place: "behind the return".into() },
            });
            Branch {
                address: pc,
                text: self.text(pc),
                place: self.place(pc),
                executed: instruction.executed,
                diverged: instruction.diverged,
                reconverges,
                likely: found.and_then(|found| found.likely).map(|pc| self.meets(pc)),
            }
        };
        let mut branches: Vec<Branch> = executed.map(branch).collect();
        branches.sort_by_key(|branch| (Reverse(branch.diverged), Reverse(branch.executed), branch.address));
        branches
    }

    fn accesses(&self, costs: &Costs, has_cache: bool) -> Vec<Access> {
        let access = |(&pc, instruction): (&u32, &Instruction)| {
            let access = instruction.access?;
            let of_cache = |count: u64| has_cache.then_some(count);
            Some(Access {
                address: pc,
                text: self.text(pc),
                place: self.place(pc),
                executed: access.executed,
                coalesced: access.coalesced,
                accesses: access.accesses,
                replays: instruction.replays,
                parts: access.parts,
                bank_conflicts: access.conflicts,
                hits: of_cache(access.hits),
                misses: of_cache(access.misses),
                joined: of_cache(access.joined),
            })
        };
        let mut accesses: Vec<Access> = costs.instructions.iter().filter_map(access).collect();
        accesses.sort_by_key(|access| (Reverse(access.accesses), access.address));
        accesses
    }

    fn instructions(&self, costs: &Costs, lanes: u32) -> Vec<Instr> {
        let instruction = |(&pc, instruction): (&u32, &Instruction)| {
            let calls = self.lines.frames(pc).iter().skip(1);
            Instr {
                address: pc,
                text: self.text(pc),
                place: self.place(pc),
                inlined_at: calls.map(|Frame { file, line, .. }| format!("{}:{line}", self.names[file])).collect(),
                cost: Cost::of(std::iter::once(instruction), lanes),
            }
        };
        costs.instructions.iter().map(instruction).collect()
    }
}

/// Of each file a name without its folders, or with as many of them as no other file has.
fn short_names(lines: &Lines) -> BTreeMap<String, String> {
    let files = lines.files();
    let name = |file: &&str| {
        let parts: Vec<&str> = file.split('/').collect();
        let ends = (0..parts.len()).rev().map(|first| parts[first..].join("/"));
        let is_of_others = |end: &String| files.iter().any(|other| other != file && Path::new(other).ends_with(end));
        let own = ends.into_iter().find(|end| !is_of_others(end));
        (file.to_string(), own.unwrap_or_else(|| file.to_string()))
    };
    files.iter().map(name).collect()
}

/// What issue did in some cycles, by name.
fn slots(bin: &Bin) -> [(&'static str, u32); 8] {
    let lost = Cause::ALL.map(|cause| (cause.name(), bin.lost[cause as usize]));
    let [a, b, c, d, e, f] = lost;
    [("issued", bin.issued), a, b, c, d, e, f, ("nothing_live", bin.nothing_live)]
}

fn time(costs: &Costs, shape: &Shape) -> Time {
    let (time, bins) = (&costs.time, costs.time.bins());
    let mut slots_of: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for (name, count) in bins.iter().flat_map(slots) {
        slots_of.entry(name.into()).or_default().push(count);
    }
    let warps = |warp: usize| {
        let of = |state: State| bins.iter().map(|bin| bin.warps[warp][state as usize]).collect::<Vec<_>>();
        State::ALL.map(|state| (state.name().to_string(), of(state))).into_iter().collect::<BTreeMap<_, _>>()
    };
    let warps: Vec<BTreeMap<String, Vec<u32>>> = (0..shape.warps as usize).map(warps).collect();
    let sums = |states: &BTreeMap<String, Vec<u32>>| {
        states.iter().map(|(name, counts)| (name.clone(), sum(counts))).collect::<BTreeMap<_, _>>()
    };
    Time {
        first: time.first(),
        cycles_per_bin: time.width(),
        bins: bins.len(),
        launches: costs.launches.iter().map(|launch| [launch.start, launch.end]).collect(),
        slots: slots_of,
        active: bins.iter().map(|bin| bin.active).collect(),
        overview: overview(costs, shape.lanes),
        warps_in_all: warps.iter().map(sums).collect(),
        warps,
        lanes: lanes(costs, shape),
    }
}

fn sum(counts: &[u32]) -> u64 {
    counts.iter().map(|&count| u64::from(count)).sum()
}

/// As many bins together as make few rows.
fn overview(costs: &Costs, lanes: u32) -> Vec<Row> {
    let (time, bins) = (&costs.time, costs.time.bins());
    let together = bins.len().div_ceil(ROWS).max(1);
    let row = |(number, bins): (usize, &[Bin])| {
        let mut of: BTreeMap<String, u64> = BTreeMap::new();
        for (name, count) in bins.iter().flat_map(slots) {
            *of.entry(name.into()).or_default() += u64::from(count);
        }
        let active: u64 = bins.iter().map(|bin| u64::from(bin.active)).sum();
        let all = of["issued"] * u64::from(lanes);
        Row {
            first: time.first() + (number * together) as u64 * time.width(),
            cycles: of.values().sum(),
            slots: of,
            simt_efficiency: if all == 0 { 0.0 } else { active as f64 / all as f64 },
        }
    };
    bins.chunks(together).enumerate().map(row).collect()
}

fn lanes(costs: &Costs, shape: &Shape) -> Lanes {
    let (bins, threads) = (costs.time.bins(), shape.threads() as usize);
    let mut together = 1;
    while bins.len().div_ceil(together) * threads > NUMBERS {
        together *= 2;
    }
    let of = |thread: usize| -> Vec<u32> {
        bins.chunks(together).map(|bins| bins.iter().map(|bin| bin.lanes[thread]).sum()).collect()
    };
    let active: Vec<Vec<u32>> = (0..threads).map(of).collect();
    Lanes {
        cycles_per_bin: costs.time.width() * together as u64,
        in_all: active.iter().map(|counts| sum(counts)).collect(),
        active,
    }
}
