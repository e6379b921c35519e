//! Coverage: which covers of the description the programs hit.
//!
//! A cover belongs to a module; the hits of all its instances on all shapes are added up. What runs on each shape are
//! the kernels, random programs, and a few short programs for what neither does ([`directed`]).

use crate::random::{self, Features};
use heddle_hdl::netlist::{Module, Property, PropertyKind};
use heddle_sim::Checks;
use heddle_simt::{Backing, Capt, Coalescing, Compaction, Divergence, History, Order, Replay, Schedule, Shape, Timing};
use heddle_testbench::asm::Asm;
use heddle_testbench::kernels::{Device, Kernel};
use heddle_testbench::machine::{Machine, MachineError, MachineOptions, design};
use heddle_testbench::program::{Program, ProgramError};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::thread;

pub mod directed;

/// Covers that no program hits, and why: module, cover, reason.
pub const EXPECTED: &[(&str, &str, &str)] = &[
    ("barrier", "waits_for_a_start", FILLING),
    ("block_stack", "not_uniform", UNIFORM),
    ("cct", "swap_put_off_by_start", STARTS),
];

const STARTS: &str =
    "a start follows the outcome that frees its slot, and after an outcome the sorter has to read before it compares";
const UNIFORM: &str = "the side table is right: no branch that it calls uniform parts a block";
const FILLING: &str =
    "the distributor starts a warp in every cycle it can, so the last one started has not come to a barrier";

/// The kernel that hits most soonest, which is run before random programs.
const FIRST: &str = "mandelbrot";

/// Kernels that hit covers which other programs hit late or never: sides of a branch that are at its meeting point
/// already, and paths that arrive and meet none.
const NEXT: [&str; 3] = ["dispatch", "raytrace", "photon"];

/// A memory that answers late and out of order, and takes requests seldom.
const LATE: Backing = Backing::Model(Timing { latency: 10, jitter: 31, interval: 16, seed: 1 });

/// The usual shapes: from one thread to many lanes and to many warps, with the smallest queues, without barriers, and
/// with the other ways of memory.
pub fn shapes() -> Vec<Shape> {
    vec![
        Shape::new(8, 8),
        Shape::new(4, 64),
        Shape::new(64, 1),
        Shape { loads: 2, schedule: Schedule::GreedyThenOldest, ..Shape::new(16, 4) },
        Shape { barriers: false, requests: 2, backing: LATE, ..Shape::new(4, 2) },
        Shape { replay: Replay::Serialise, coalescing: Coalescing::Full, requests: 2, loads: 2, ..Shape::new(8, 4) },
        Shape { replay: Replay::Serialise, backing: LATE, schedule: Schedule::Sticky, ..Shape::new(4, 8) },
        Shape { convergence_barriers: 4, patience: 32, warp_primitives: true, ..Shape::new(4, 8) },
        Shape { fair: true, patience: 32, reservations: true, ..Shape::new(8, 4) },
        Shape { order: Order::Minority, reservations: true, ..Shape::new(8, 2) },
        Shape::new(2, 2),
        Shape::new(1, 16),
        Shape { divergence: Divergence::ARBITER, ..Shape::new(4, 64) },
        Shape { divergence: Divergence::ARBITER, ..Shape::new(32, 2) },
        Shape { fair: true, patience: 32, reservations: true, divergence: Divergence::ARBITER, ..Shape::new(4, 4) },
        Shape { coalescing: Coalescing::Full, likely: true, ..Shape::new(8, 8) }.with_divergence(Divergence::STACK),
        Shape { path_forwarding: true, ..Shape::new(8, 8) }.with_divergence(Divergence::DUAL_PATH),
        Shape {
            compaction: Compaction::Predict,
            capt: Capt { entries: 2, history: History::Latest },
            slack: 3,
            schedule: Schedule::BlockSticky,
            likely: true,
            ..Shape::new(4, 16).with_divergence(Divergence::BLOCK_STACK)
        },
        Shape::new(2, 2).with_divergence(Divergence::BLOCK_STACK),
    ]
}

/// The lanes and warps of a shape, and what else is not usual about it.
pub fn name(shape: &Shape) -> String {
    let usual = Shape::default();
    let mut name = format!("{} × {}", shape.lanes, shape.warps);
    if shape.divergence != usual.divergence {
        name += &format!(", {}", shape.divergence.name());
    }
    if shape.path_forwarding {
        name += ", forwarding";
    }
    if shape.likely {
        name += ", likely points";
    }
    if shape.schedule != usual.schedule {
        name += &format!(", {}", shape.schedule.name());
    }
    if shape.order != usual.order {
        name += &format!(", {}", shape.order.name());
    }
    if shape.fair {
        name += ", fair";
    }
    if shape.reservations {
        name += ", reservations";
    }
    if shape.compaction != usual.compaction {
        name += &format!(", {}", shape.compaction.name());
    }
    if shape.slack != usual.slack {
        name += &format!(", slack {}", shape.slack);
    }
    if shape.loads != usual.loads {
        name += &format!(", {} loads", shape.loads);
    }
    if shape.coalescing != usual.coalescing {
        name += ", full";
    }
    if shape.replay != usual.replay {
        name += ", serialise";
    }
    if shape.backing != usual.backing {
        name += ", late memory";
    }
    if !shape.barriers {
        name += ", no barriers";
    }
    if shape.convergence_barriers > 0 {
        name += &format!(", {} convergence barriers", shape.convergence_barriers);
    }
    name
}

/// A cover of a module.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Cover {
    /// The module's name.
    pub module: String,
    /// The cover's.
    pub name: String,
    /// Cycles in which it was on, of all instances on all shapes.
    pub hits: u64,
    /// [`name`]s of the shapes on which it was hit.
    pub hit_on: Vec<String>,
    /// Why it is not expected to be hit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// What was hit.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Coverage {
    /// [`name`]s of the shapes.
    pub shapes: Vec<String>,
    /// Random programs that ran on each.
    pub programs: u64,
    /// Of the first random program, of the kernels' inputs, and of start values.
    pub seed: u64,
    /// By module and name.
    pub covers: Vec<Cover>,
}

impl Coverage {
    /// Covers that should have been hit.
    pub fn missing(&self) -> impl Iterator<Item = &Cover> {
        self.covers.iter().filter(|c| c.hits == 0 && c.reason.is_none())
    }

    /// Covers that were hit though [`EXPECTED`] has a reason why not.
    pub fn surprising(&self) -> impl Iterator<Item = &Cover> {
        self.covers.iter().filter(|c| c.hits > 0 && c.reason.is_some())
    }
}

/// Why coverage could not be measured.
#[derive(Debug, thiserror::Error)]
#[error("{program} on {shape}: {problem}")]
#[allow(missing_docs)] // the message says what each field is
pub struct CoverageError {
    pub program: String,
    pub shape: String,
    pub problem: String,
}

/// Module and cover.
pub type Name = (String, String);
/// Hits by module and cover.
type Hits = BTreeMap<Name, u64>;

/// How much runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Everything on every shape.
    All,
    /// On each shape until none of its covers that should be hit is left, counting hits on all shapes.
    UntilHit,
}

/// Under what hits are added up.
fn key(module: &Module, cover: &Property) -> Name {
    // A number at the end of a module's name is its size.
    (module.name.trim_end_matches(|c: char| c.is_ascii_digit()).to_string(), cover.name.clone())
}

/// Module and name of every cover of these cores.
pub fn names(shapes: &[Shape]) -> Result<BTreeSet<Name>, MachineError> {
    let mut names = BTreeSet::new();
    for shape in shapes {
        for module in design(shape)?.modules() {
            let covers = module.properties.iter().filter(|property| property.kind == PropertyKind::Cover);
            names.extend(covers.map(|cover| key(&module, cover)));
        }
    }
    Ok(names)
}

/// Runs short programs, these kernels and so many random programs on every shape, as many at a time as there are
/// processors. `show` is told of every program that begins.
pub fn measure(
    shapes: &[Shape],
    kernels: &[&Kernel],
    programs: u64,
    seed: u64,
    extent: Extent,
    show: &(dyn Fn(&str) + Sync),
) -> Result<Coverage, CoverageError> {
    let hit = Mutex::default();
    let hit = (extent == Extent::UntilHit).then_some(&hit);
    let workers = thread::available_parallelism().map_or(1, |n| n.get()).min(shapes.len());
    let work = |worker: usize| {
        let mut runs = Vec::new();
        for (place, shape) in shapes.iter().enumerate().skip(worker).step_by(workers) {
            runs.push((place, Run { shape, show, hits: Hits::new(), hit, machine: machine(shape, seed)? }));
        }
        // What takes least time first, and what hits covers that little else hits, so that they need not be looked for
        // elsewhere: short programs on all shapes, then kernels on those with neither few nor many lanes and warps.
        runs.iter_mut().try_for_each(|(_, run)| run.directed())?;
        let from_8 = |size: u32| size.ilog2().abs_diff(3);
        runs.sort_by_key(|(_, run)| from_8(run.shape.lanes) + from_8(run.shape.warps));
        let (first, mut rest): (Vec<&Kernel>, Vec<&Kernel>) = kernels.iter().partition(|kernel| kernel.name == FIRST);
        rest.sort_by_key(|kernel| NEXT.iter().position(|name| *name == kernel.name).unwrap_or(NEXT.len()));
        let run_all = |runs: &mut [(usize, Run)], kernels: &[&Kernel]| {
            kernels.iter().try_for_each(|kernel| runs.iter_mut().try_for_each(|(_, run)| run.kernel(kernel, seed)))
        };
        run_all(&mut runs, &first)?;
        (seed..seed + programs).try_for_each(|seed| runs.iter_mut().try_for_each(|(_, run)| run.random(seed)))?;
        run_all(&mut runs, &rest)?;
        Ok(runs.into_iter().map(|(place, run)| (place, run.hits)).collect::<Vec<_>>())
    };
    let done: Result<Vec<_>, CoverageError> = thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..workers).map(|worker| scope.spawn(move || work(worker))).collect();
        let join = |worker: thread::ScopedJoinHandle<_>| worker.join().unwrap_or_else(|p| std::panic::resume_unwind(p));
        workers.into_iter().map(join).collect()
    });
    let mut done: Vec<(usize, Hits)> = done?.into_iter().flatten().collect();
    done.sort_by_key(|(place, _)| *place);
    let shapes: Vec<String> = shapes.iter().map(name).collect();
    let mut covers: BTreeMap<(String, String), Cover> = BTreeMap::new();
    for (place, hits) in done {
        for ((module, name), hits) in hits {
            let cover = covers.entry((module.clone(), name.clone())).or_insert_with(|| {
                let expected = EXPECTED.iter().find(|(m, n, _)| (*m, *n) == (&module, &name));
                Cover { hits: 0, hit_on: Vec::new(), reason: expected.map(|(_, _, reason)| *reason), module, name }
            });
            cover.hits += hits;
            if hits > 0 {
                cover.hit_on.push(shapes[place].clone());
            }
        }
    }
    Ok(Coverage { shapes, programs, seed, covers: covers.into_values().collect() })
}

fn machine(shape: &Shape, seed: u64) -> Result<Machine, CoverageError> {
    let options = MachineOptions { seed, checks: Checks::All, ..MachineOptions::default() };
    let machine: Result<Machine, MachineError> = Machine::new(shape, Asm::default().exit().program(), &options);
    machine.map_err(|error| CoverageError {
        program: "the core".into(),
        shape: name(shape),
        problem: error.to_string(),
    })
}

/// Programs on one machine.
struct Run<'a> {
    shape: &'a Shape,
    show: &'a dyn Fn(&str),
    machine: Machine,
    hits: Hits,
    /// What was hit on any shape, if no more is to run than hits all; else everything runs.
    hit: Option<&'a Mutex<BTreeSet<Name>>>,
}

impl Run<'_> {
    fn directed(&mut self) -> Result<(), CoverageError> {
        for directed in directed::programs(self.shape) {
            self.program(directed.name, Ok(directed.program.program()), |machine| directed.run(machine))?;
        }
        Ok(())
    }

    fn random(&mut self, seed: u64) -> Result<(), CoverageError> {
        let (random, shape) = (random::program(seed), self.shape);
        let program = random.assemble(shape, Features::of(shape)).program();
        self.program(&format!("random program {seed}"), Ok(program), |machine| {
            machine.launch_grid(random.grid(shape)).map_err(|error| error.to_string())
        })
    }

    fn kernel(&mut self, kernel: &Kernel, seed: u64) -> Result<(), CoverageError> {
        if !kernel.suits(self.shape) {
            return Ok(());
        }
        self.program(kernel.name, Program::parse(kernel.elf), |machine| {
            (kernel.drive)(machine, seed).map(|_| ()).map_err(|error| error.to_string())
        })
    }

    fn program(
        &mut self,
        what: &str,
        program: Result<Program, ProgramError>,
        drive: impl FnOnce(&mut Machine) -> Result<(), String>,
    ) -> Result<(), CoverageError> {
        if self.is_done() {
            return Ok(());
        }
        (self.show)(&format!("{}: {what}", name(self.shape)));
        let loaded = program.map_err(MachineError::from).and_then(|program| self.machine.load(program));
        let ran = loaded.map_err(|error| error.to_string()).and_then(|()| drive(&mut self.machine));
        self.add();
        ran.map_err(|problem| CoverageError { program: what.into(), shape: name(self.shape), problem })
    }

    /// Whether every cover of the shape that should be hit was hit on some shape.
    fn is_done(&self) -> bool {
        let Some(hit) = self.hit else { return false };
        let hit = hit.lock().expect("nobody panics who holds it");
        let expected = |(module, name): &Name| EXPECTED.iter().any(|(m, n, _)| m == module && n == name);
        !self.hits.is_empty() && self.hits.keys().all(|name| hit.contains(name) || expected(name))
    }

    /// Adds what was hit since the program was loaded.
    fn add(&mut self) {
        let engine = self.machine.simulation().engine();
        let directory = engine.directory().clone();
        for (property, entry) in directory.properties.iter().enumerate() {
            if directory.property_kind(property) == PropertyKind::Cover {
                let module = &directory.scopes[entry.scope].module;
                let key = key(module, &module.properties[entry.index]);
                let hits = engine.cover_hits(property);
                if let (Some(hit), true) = (self.hit, hits > 0) {
                    hit.lock().expect("nobody panics who holds it").insert(key.clone());
                }
                *self.hits.entry(key).or_default() += hits;
            }
        }
    }
}
