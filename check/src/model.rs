//! A cycle model of one core whose warps are formed as the core's divergence units do not: dynamic warp formation,
//! which thread block compaction is compared with, and dynamic warp subdivision, which dual path is.
//! `docs/studies/formation.md` says what it leaves out and how near it comes.
//!
//! Threads are executed by the [`Iss`], an instruction of a warp in the cycle in which it issues, so memory is as that
//! order says. Time is charged beside it.
//!
//! | file | what it has |
//! |---|---|
//! | `core.rs` | blocks, front end, scoreboard, issue |
//! | `op.rs` | what is known of an instruction beforehand |
//! | `memory.rs` | the load-store unit, the cache, memory |
//! | `second_level.rs` | the second level and the channel behind it |
//! | `writeback.rs` | the write port of the registers |
//! | `policy.rs` | what a mechanism decides |
//! | `stack.rs` | a stack per warp, to compare the model with the core |
//! | `formation.rs` | dynamic warp formation, without and with warp barriers |
//! | `subdivision.rs` | dynamic warp subdivision, `docs/studies/subdivision.md` |

mod core;
mod formation;
mod memory;
mod op;
mod policy;
mod second_level;
mod stack;
mod subdivision;
mod writeback;

use self::core::Launch;
use formation::Formation;
use heddle_simt::{Backing, Coalescing, Replay, Shape};
use heddle_testbench::Program;
use heddle_testbench::grid::{Grid, GridError, ThreadId};
use heddle_testbench::iss::{Fault, Iss};
use heddle_testbench::kernels::{Device, DeviceError};
use heddle_testbench::machine::Summary;
use heddle_testbench::program::ProgramError;
use heddle_testbench::reconverge::instruction::Instruction;
use heddle_testbench::reconverge::{self, ReconvergeError, SideEntry};
use op::Op;
use policy::Policy;
use stack::Stacks;
use std::collections::BTreeMap;
use subdivision::Subdivision;
pub use subdivision::behind;
use thiserror::Error;

/// A latency of the core as cycles of the model.
fn cycles(latency: u32) -> u64 {
    u64::from(latency)
}

/// Which threads issue together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mechanism {
    /// Those of a static warp that are at the top of its stack of reconvergence points.
    Stack,
    /// Any of one pc, by majority. (`thread-block-compaction.txt` §2.3)
    Formation,
    /// The same between a branch that parts a static warp and where its threads reconverge. (§2.4)
    WarpBarriers,
    /// Those at the top of their static warp's stack; from a branch that parts them, if the basic block where its
    /// threads reconverge has no more than so many instructions, those of the warp at one pc. With 0, none ever are.
    /// (`dual-path-execution.txt` §2.2)
    Subdivision(u32),
}

/// Why a model cannot be made, or a launch failed. One line each.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum ModelError {
    #[error("the cycle model has no {0}")]
    Shape(&'static str),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("{0}")]
    Reconverge(#[from] ReconvergeError),
    #[error(transparent)]
    Grid(#[from] GridError),
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("{thread} ended with exit code {code}")]
    Exit { thread: ThreadId, code: u32 },
    #[error("the program did not end in {cycles} cycles")]
    Endless { cycles: u64 },
}

/// A core with a program loaded.
pub struct Model {
    shape: Shape,
    mechanism: Mechanism,
    iss: Iss,
    ops: Vec<Op>,
    side_table: Vec<Option<SideEntry>>,
    /// Of each control instruction, the instructions of the basic block where its threads reconverge.
    behind: BTreeMap<u32, u32>,
    max_cycles: u64,
    /// [`Counts::paths`](core::Counts) of all launches.
    paths: u64,
    summary: Summary,
}

impl Model {
    /// A core of the shape, but for its divergence unit, with the program in memory.
    pub fn new(shape: &Shape, program: &Program, mechanism: Mechanism) -> Result<Model, ModelError> {
        let missing = match shape.backing {
            Backing::Wishbone { .. } => Some("bus"),
            Backing::Model(timing) if timing.jitter > 0 => Some("memory that answers at random"),
            _ if shape.coalescing != Coalescing::Full => Some("coalescing but `full`"),
            _ if shape.replay != Replay::Serialise => Some("replay but `serialise`"),
            _ => None,
        };
        if let Some(missing) = missing {
            return Err(ModelError::Shape(missing));
        }
        let words = program.instruction_image(shape)?;
        let op = |(number, word): (u32, u32)| Op::new(Instruction { pc: 4 * number, word });
        let analysis = reconverge::analyse(program)?;
        Ok(Model {
            shape: shape.clone(),
            mechanism,
            iss: Iss::new(program, shape)?,
            ops: (0..).zip(words).map(op).collect(),
            side_table: analysis.side_table(),
            behind: subdivision::behind(&analysis),
            max_cycles: 100_000_000,
            paths: 0,
            summary: Summary::default(),
        })
    }

    /// Cycles after which a launch is given up; 10^8 unless set.
    pub fn set_max_cycles(&mut self, max_cycles: u64) {
        self.max_cycles = max_cycles;
    }

    /// What the core did so far; of what only a divergence unit has, nothing, but the paths that can be scheduled.
    pub fn summary(&self) -> Summary {
        self.summary
    }

    /// Runs a launch to its end.
    pub fn run_grid(&mut self, grid: Grid) -> Result<(), ModelError> {
        let Shape { lanes, warps, .. } = self.shape;
        self.iss.begin(grid)?;
        let mut policy: Box<dyn Policy> = match self.mechanism {
            Mechanism::Stack => Box::new(Stacks::new(lanes, warps)),
            Mechanism::Formation => Box::new(Formation::new(lanes, warps, false)),
            Mechanism::WarpBarriers => Box::new(Formation::new(lanes, warps, true)),
            Mechanism::Subdivision(threshold) => {
                Box::new(Subdivision::new(lanes, warps, threshold, self.behind.clone()))
            }
        };
        let mut launch = Launch::new(&self.shape, &mut self.iss, &self.ops, &self.side_table, policy.as_mut());
        let result = launch.run(self.max_cycles);
        let Launch { counts, memory, .. } = launch;
        let s = &mut self.summary;
        s.add_grid(&self.shape, grid);
        s.cycles += counts.cycles;
        s.thread_instructions += counts.thread_instructions;
        s.warp_instructions += counts.issued;
        s.set_rates(lanes);
        self.paths += counts.paths;
        s.avg_path = self.paths as f64 / s.warp_instructions.max(1) as f64;
        s.most_paths = s.most_paths.max(counts.most_paths);
        s.idle += counts.idle;
        *s.issues.get_or_insert_default() += counts.issues;
        s.accesses += memory.accesses;
        s.parts += memory.parts;
        if let Some(visits) = memory.visits() {
            *s.cache.get_or_insert_default() += visits;
        }
        if let Some(visits) = memory.second_level_visits() {
            *s.second_level.get_or_insert_default() += visits;
        }
        result
    }
}

impl Device for Model {
    fn program(&self) -> &Program {
        self.iss.program()
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.iss.write(address, bytes)
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        self.iss.read(address, length)
    }

    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        Ok(self.run_grid(grid)?)
    }
}

#[cfg(test)]
mod tests;
