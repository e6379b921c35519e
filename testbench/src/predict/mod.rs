//! `heddle predict`: a pass over linked programs that places convergence barriers, as *Speculative Reconvergence* has
//! it (`speculative-reconvergence.txt`). See `docs/reference/predict.md`.
//!
//! | file | what it does |
//! |---|---|
//! | `linked.rs` | reads a program with its relocations |
//! | `relocation.rs` | the fields that hold addresses |
//! | `layout.rs` | where everything lies once instructions are inserted |
//! | `write.rs` | the file of that |
//! | `directives.rs` | what the programmer asked for |
//! | `body.rs` | the instructions of a function as a graph |
//! | `regions.rs` | which points belong to which regions |
//! | `auto.rs` | regions that nobody asked for (§4.5), and `profile.rs` what runs did |
//! | `dataflow.rs` | equations 1 and 2 |
//! | `place.rs` | joins, waits, rejoins and cancels of a region (§4.2) |
//! | `pdom.rs` | barriers at post-dominators, and `deconflict.rs` those that conflict (§4.3) |
//! | `calls.rs` | regions that call a function (§4.4) |
//! | `soft.rs` | the instructions, with thresholds (§4.6) |
//! | `allocate.rs` | numbers of barriers |
//! | `explain.rs` | what was placed where, and why |
//! | `padded.rs` | nops everywhere, for tests of `layout.rs` |
//! | `tune.rs` | what threads should wait for, found by running |

mod allocate;
mod auto;
mod body;
mod calls;
mod dataflow;
mod deconflict;
mod directives;
mod explain;
mod layout;
mod linked;
mod padded;
mod pdom;
mod place;
mod profile;
mod regions;
mod relocation;
mod soft;
mod tune;
mod visits;
mod write;

pub use deconflict::Deconflict;
pub use explain::Placement;
pub use padded::padded;
pub use profile::{Count, Issue, Profile, Recording};
pub use soft::Soft;
pub use tune::{Choice, Region, Tried, Tuned, search};

use crate::program::ProgramError;
use crate::reconverge::ReconvergeError;
use body::Body;
use calls::Calls;
use heddle_simt::isa::convergence;
use layout::{Edits, Layout};
use linked::Linked;
use place::{Barrier, Place, Why};
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;

/// Why a program is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum PredictError {
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error(transparent)]
    Reconverge(#[from] ReconvergeError),
    #[error("the file cannot be laid out again: {}", one_line(what))]
    File { what: String },
    #[error("the file has no relocations, so it cannot be laid out again: {FLAGS}")]
    NoRelocations,
    #[error("{what} at {address:#010x} has no relocation of its own: {FLAGS}")]
    Relaxed { address: u32, what: String },
    #[error("the relocation of {address:#010x} {what}")]
    Relocation { address: u32, what: String },
    #[error("the jump at {pc:#010x} computes its target {target:#010x} without a table, so code cannot be moved")]
    Computed { pc: u32, target: u32 },
    #[error("from {from:#010x} no instruction reaches {to:#010x}, once code is inserted")]
    Far { from: u32, to: u32 },
    #[error("there is no instruction at {pc:#010x}")]
    NoInstruction { pc: u32 },
    #[error("nothing leads from {from:#010x} to {to:#010x}")]
    NoEdge { from: u32, to: u32 },
    #[error("the program has {functions} functions: the pass takes at most {MOST_FUNCTIONS}")]
    Functions { functions: usize },
    #[error("function {place} has {instructions} instructions: the pass takes at most {most}")]
    Function { place: String, instructions: usize, most: usize },
    #[error("{line}")]
    Directive { line: String },
    #[error(
        "{text} at {place} has a threshold of {threshold}: wanted is 1 to {}, or none",
        convergence::MOST_THRESHOLD
    )]
    Threshold { text: String, place: String, threshold: u32 },
    #[error("a threshold of {threshold}: wanted is 1 to {}", convergence::MOST_THRESHOLD)]
    ThresholdAsked { threshold: u32 },
    #[error("{barriers} barriers a warp: wanted is 1 to {}", convergence::BARRIERS)]
    Barriers { barriers: u32 },
    #[error("the profile {why}")]
    Profile { why: String },
    #[error("thresholds cannot be built of barriers that count: the program uses every register")]
    NoRegister,
    #[error("nothing to place: the program has no HEDDLE_PREDICT, and neither --auto nor --pdom was asked for")]
    Nothing,
}

/// Functions of a program that the pass takes.
const MOST_FUNCTIONS: usize = 1 << 10;

const FLAGS: &str = "link with -Wl,--emit-relocs -Wl,--no-relax";

/// What comes from elsewhere may have any characters.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// What is to be placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Barriers that the core has a warp.
    pub barriers: u32,
    /// Those that directives ask for.
    pub directives: bool,
    /// Those of loop merge and iteration delay, where they should pay.
    pub automatic: Option<Automatic>,
    /// Barriers at post-dominators too.
    pub pdom: bool,
    /// What becomes of those that conflict.
    pub deconflict: Deconflict,
    /// How thresholds are built.
    pub soft: Soft,
    /// In place of the thresholds of all directives.
    pub threshold: Option<u32>,
    /// What threads of some regions wait for, in place of all that is said of them elsewhere.
    pub choices: BTreeMap<Region, Choice>,
}

/// How regions are found that nobody asked for.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Automatic {
    /// What runs did; else it is guessed.
    pub profile: Option<Profile>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            barriers: convergence::BARRIERS,
            directives: true,
            automatic: None,
            pdom: false,
            deconflict: Deconflict::default(),
            soft: Soft::default(),
            threshold: None,
            choices: BTreeMap::new(),
        }
    }
}

/// A program with its barriers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// The file.
    pub elf: Vec<u8>,
    /// The regions that were looked at, with what is asked for by directives, and where threads wait.
    pub regions: Vec<(Region, Choice, String)>,
    /// What was placed.
    pub placements: Vec<Placement>,
    /// What the programmer should know: a line each.
    pub notes: Vec<String>,
    /// Instructions inserted, jumps around them apart.
    pub inserted: usize,
}

/// Places barriers in a linked program. Any bytes are safe to pass.
pub fn predict(elf: &[u8], options: &Options) -> Result<Prediction, PredictError> {
    check(options)?;
    let linked = Linked::read(elf)?;
    let directives = if options.directives { directives::read(&linked)? } else { Vec::new() };
    if directives.is_empty() && !options.pdom && options.automatic.is_none() {
        return Err(PredictError::Nothing);
    }
    let functions = linked.analysis.functions.iter();
    if functions.len() > MOST_FUNCTIONS {
        return Err(PredictError::Functions { functions: functions.len() });
    }
    let bodies = functions.map(|function| Body::of(&linked, function)).collect::<Result<Vec<Body>, _>>()?;
    let calls = Calls::of(&linked, &bodies);
    let (mut regions, mut notes) = regions::find(&linked, &bodies, &directives)?;
    let (mut of_functions, of_calls) = calls::barriers(&linked, &bodies, &calls, &directives)?;
    if let Some(Automatic { profile }) = &options.automatic {
        profile.as_ref().map_or(Ok(()), |profile| profile.check(&linked.program))?;
        // A function with regions that were asked for is left as the programmer wants it.
        let asked = |body: &&Body| {
            regions.iter().any(|region| region.function == body.entry)
                || of_functions.iter().any(|barrier| barrier.function == body.entry)
        };
        let taken = bodies.iter().filter(asked).flat_map(|body| body.pcs.iter().copied()).collect();
        let (found, more) = auto::find(&linked, &bodies, &calls, &taken, profile.as_ref());
        regions.extend(found);
        notes.extend(more);
    }
    let mut known = Vec::new();
    // The threshold that a region gets, unless it is left alone.
    let mut chosen = |name: &str, point: u32, threshold: u32| {
        let region = Region { name: name.to_string(), point };
        let asked = Choice::of_threshold(options.threshold.unwrap_or(threshold));
        let choice = options.choices.get(&region).copied().unwrap_or(asked);
        known.push((region, asked, linked.place(point)));
        choice.threshold()
    };
    let mut barriers = Vec::new();
    for region in regions {
        let Some(threshold) = chosen(&region.name, region.point, region.threshold) else { continue };
        let body = bodies.iter().find(|body| body.entry == region.function).expect("a region is in a function");
        let why = Why::Predicted(region.name);
        let (barrier, meets) = place::region(body, why, &region.joins, region.point, threshold);
        if meets.is_none() {
            let place = linked.place(region.joins[0]);
            notes.push(format!(
                "the region at {place}: its threads reconverge only behind the return, so none waits behind it"
            ));
        }
        barriers.extend([barrier].into_iter().chain(meets));
    }
    let mut left = BTreeSet::new();
    for barrier in &mut of_functions {
        let Why::Function(name) = &barrier.why else { continue };
        match chosen(name, barrier.waits[0], barrier.threshold) {
            Some(threshold) => barrier.threshold = threshold,
            None => _ = left.insert(name.clone()),
        }
    }
    let is_left = |why: &Why| matches!(why, Why::Function(name) | Why::Region(name) if left.contains(name));
    barriers.extend(of_functions.into_iter().filter(|barrier| !is_left(&barrier.why)));
    notes.extend(of_calls);
    if options.pdom {
        at_post_dominators(&linked, &bodies, options, &mut barriers, &mut notes);
    }
    let wants = |barrier: &Barrier| options.soft.wants(barrier);
    let numbers = allocate::numbers(&linked, &bodies, &calls, &barriers, wants, options.barriers);
    let placed = placed(&linked, barriers, numbers, &mut notes);
    let needs_register = placed.iter().any(|(barrier, _)| wants(barrier) > 1);
    let free = if needs_register { soft::free_register(&linked).ok_or(PredictError::NoRegister)? } else { 0 };
    let edits = edits(&placed, options.soft, free);
    let layout = Layout::of(&linked, &edits)?;
    let placements = placed.iter().map(|(barrier, numbers)| explain::placement(&linked, barrier, numbers)).collect();
    let (elf, dropped) = write::write(linked, &layout)?;
    let lost =
        |name| format!("section {name} is left out: its fields are too small for the distances that code now has");
    notes.extend(dropped.into_iter().map(lost));
    Ok(Prediction { elf, regions: known, placements, notes, inserted: edits.count() })
}

/// What is asked for must be there.
fn check(options: &Options) -> Result<(), PredictError> {
    if !(1..=convergence::BARRIERS).contains(&options.barriers) {
        return Err(PredictError::Barriers { barriers: options.barriers });
    }
    let of_choice = |choice: &Choice| match *choice {
        Choice::Threads(threads) => Some(threads),
        Choice::Alone | Choice::All => None,
    };
    let mut thresholds = options.threshold.into_iter().chain(options.choices.values().filter_map(of_choice));
    if let Some(threshold) = thresholds.find(|threshold| !(1..=convergence::MOST_THRESHOLD).contains(threshold)) {
        return Err(PredictError::ThresholdAsked { threshold });
    }
    Ok(())
}

/// Adds the barriers at post-dominators, and makes those that conflict with others give way.
fn at_post_dominators(
    linked: &Linked,
    bodies: &[Body],
    options: &Options,
    barriers: &mut Vec<Barrier>,
    notes: &mut Vec<String>,
) {
    let regions: BTreeSet<u32> = barriers.iter().flat_map(Barrier::range).collect();
    for body in bodies {
        barriers.extend(pdom::barriers(linked, body, &regions));
    }
    let places = |barrier: &Barrier| barrier.waits.iter().map(|&pc| linked.place(pc)).collect::<Vec<_>>().join(", ");
    let before = barriers.clone();
    for (one, other) in deconflict::deconflict(barriers, options.deconflict) {
        let what = match options.deconflict {
            Deconflict::Static => "is not placed",
            Deconflict::Dynamic => "is left before the wait",
            Deconflict::Rejoin => "is left before the wait, and joined again behind it",
        };
        let (one, other) = (explain::title(&before[one].why), places(&before[other]));
        notes.push(format!("the post-dominator's barrier at {other} conflicts with {one}: it {what}"));
    }
}

/// The barriers that got numbers, with these.
fn placed(
    linked: &Linked,
    barriers: Vec<Barrier>,
    numbers: Vec<allocate::Numbers>,
    notes: &mut Vec<String>,
) -> Vec<(Barrier, Vec<u32>)> {
    let mut placed = Vec::new();
    for (barrier, numbers) in barriers.into_iter().zip(numbers) {
        match numbers {
            Ok(numbers) => placed.push((barrier, numbers)),
            Err(why) => {
                let place = linked.place(barrier.waits[0]);
                notes.push(format!("{}, wait at {place}: not placed, because {why}", explain::title(&barrier.why)));
            }
        }
    }
    placed
}

/// The instructions of all barriers. At one instruction: first threads leave barriers, then they wait behind regions
/// and at post-dominators, inner ones first; then they join, outer ones first; then they wait at a region's point.
fn edits(placed: &[(Barrier, Vec<u32>)], soft: Soft, free: u32) -> Edits {
    let mut all: BTreeMap<(Place, u32, i64, usize), Vec<u32>> = BTreeMap::new();
    for (number, (barrier, numbers)) in placed.iter().enumerate() {
        let size = barrier.range().len() as i64;
        let asked = matches!(barrier.why, Why::Predicted(_) | Why::Function(_));
        let mut put = |place, phase, order, words| {
            all.insert((place, phase, order, number), words);
        };
        for &place in &barrier.cancels {
            put(place, 0, 0, soft.cancel(numbers));
        }
        for &place in &barrier.joins {
            let phase = if barrier.why == Why::PostDominator { 5 } else { 2 };
            put(place, phase, -size, soft.join(barrier, numbers));
        }
        for &wait in &barrier.gives_way {
            put(Place::Before(wait), 3, 0, soft.cancel(numbers));
        }
        for &wait in barrier.rejoins.iter().filter(|wait| barrier.gives_way.contains(wait)) {
            put(Place::Before(wait), 5, -size, soft.join(barrier, numbers));
        }
        for &wait in &barrier.waits {
            let words = soft.wait(barrier, numbers, barrier.rejoins.contains(&wait), free);
            put(Place::Before(wait), if asked { 4 } else { 1 }, size, words);
        }
    }
    let mut edits = Edits::default();
    for ((place, ..), words) in all {
        match place {
            Place::Before(pc) => edits.before.entry(pc).or_default().extend(words),
            Place::Edge(from, to) => edits.edges.entry((from, to)).or_default().extend(words),
        }
    }
    edits
}

#[cfg(test)]
mod tests;
