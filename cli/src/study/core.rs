//! The core of a study: what is usual where no option says otherwise.

use crate::shape::ShapeArgs;
use clap::Args;
use heddle_simt::{Backing, Cache, Coalescing, Divergence, Replay, Shape, Timing};

/// Bytes of input that the largest kernel takes for each thread.
const INPUT: u32 = 4 << 10;

/// The memory that is asked for, or enough for the largest inputs.
pub fn memory(args: &ShapeArgs, lanes: u32, warps: u32) -> u32 {
    let enough = || Shape::default_memory(lanes, warps, args.stack.saturating_add(INPUT)).min(64 << 20);
    args.memory.unwrap_or_else(enough)
}

const LANES: u32 = 32;
const LOADS: u32 = 32;
const CACHE: Cache = Cache { size: 16 << 10, ways: 4, line: 1, misses: 16 };
const LATENCY: u32 = 200;

/// Options of a core like that of a graphics processor, on which studies compare divergence units: they choose the unit
/// and all that goes with it.
#[derive(Args, Clone)]
#[command(
    mut_arg("lanes", |arg| arg.help("Threads of a warp: 1, 2, 4 … 64 [default: 32]")),
    mut_arg("coalescing", |arg| arg.help("Which lanes of an access go together [default: full]")),
    mut_arg("loads", |arg| arg.help("Loads that may be under way at once [default: 32]")),
    mut_arg("cache", |arg| arg.help("The data cache [default: 16K,ways=4,line=1,misses=16]")),
    mut_arg("memory_model", |arg| arg.help("Memory behind it [default: latency=200]")),
    mut_arg("memory", |arg| arg.help("Bytes of memory; unless given, enough for the largest inputs")),
    mut_arg("divergence", |arg| arg.hide(true)),
    mut_arg("path_scheduler", |arg| arg.hide(true)),
    mut_arg("path_forwarding", |arg| arg.hide(true)),
    mut_arg("unresolved", |arg| arg.hide(true)),
    mut_arg("scoreboard", |arg| arg.hide(true)),
    mut_arg("compaction", |arg| arg.hide(true)),
    mut_arg("capt", |arg| arg.hide(true)),
    mut_arg("slack", |arg| arg.hide(true)),
    mut_arg("replay", |arg| arg.hide(true)),
)]
pub struct CoreArgs {
    #[command(flatten)]
    pub shape: ShapeArgs,
}

/// The core before a memory that answers always as late, as cycle models have it.
pub fn without_jitter(shape: Shape) -> Shape {
    let backing = match shape.backing {
        Backing::Model(timing) => Backing::Model(Timing { jitter: 0, ..timing }),
        other => other,
    };
    Shape { backing, ..shape }
}

impl CoreArgs {
    /// The same, with up to so many random cycles of memory, unless another memory is asked for.
    pub fn with_jitter(&self, jitter: u32) -> CoreArgs {
        let timing = Timing { latency: LATENCY, jitter, ..Timing::FASTEST };
        let memory_model = self.shape.memory_model.or(Some(timing).filter(|_| self.shape.bus.is_none()));
        CoreArgs { shape: ShapeArgs { memory_model, ..self.shape.clone() } }
    }

    /// The core with one divergence unit, of so many warps unless an option says otherwise.
    pub fn shape(&self, divergence: Divergence, warps: u32) -> anyhow::Result<Shape> {
        let CoreArgs { shape: ShapeArgs { memory_model, .. } } = self.with_jitter(0);
        let (lanes, warps) = (self.shape.lanes.unwrap_or(LANES), self.shape.warps.unwrap_or(warps));
        let args = ShapeArgs {
            lanes: Some(lanes),
            warps: Some(warps),
            memory: Some(memory(&self.shape, lanes, warps)),
            coalescing: self.shape.coalescing.or(Some(Coalescing::Full)),
            loads: self.shape.loads.or(Some(LOADS)),
            cache: self.shape.cache.or(Some(CACHE)),
            memory_model,
            replay: Some(Replay::Serialise),
            divergence,
            ..self.shape.clone()
        };
        args.shape()
    }
}
