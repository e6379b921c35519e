//! What is proven.

use heddle_hdl::netlist::Module;
use heddle_hdl::{Bundle, Errors, Signals, TypedModule, Width};
use heddle_simt::barrier::proof::barrier_proof;
use heddle_simt::distributor::proof::distributor_proof;
use heddle_simt::divergence::Divergence;
use heddle_simt::divergence::arbiter::proof::{arbiter_proof, pass_cycles};
use heddle_simt::divergence::block_stack::capt::proof::capt_proof;
use heddle_simt::divergence::block_stack::compactor::proof::compactor_proof;
use heddle_simt::divergence::block_stack::proof::block_stack_proof;
use heddle_simt::divergence::ccs::proof::ccs_proof;
use heddle_simt::divergence::dual_path::proof::dual_path_proof;
use heddle_simt::divergence::path_table::proof::release::release_proof;
use heddle_simt::divergence::path_table::proof::{path_table_proof, sorted_after, sorter_proof};
use heddle_simt::divergence::stack::proof::stack_proof;
use heddle_simt::memory::cache::proof::cache_proof;
use heddle_simt::memory::wishbone::proof::wishbone_proof;
use heddle_simt::pipeline::resolve::proof::resolve_proof;
use heddle_simt::scoreboard::dual::proof::dual_scoreboard_proof;
use heddle_simt::scoreboard::proof::scoreboard_proof;
use heddle_simt::{Backing, Cache, Capt, Coalescing, Compaction, History, Metrics, Replay, Shape, SlaveModel, Timing};
use serde::Serialize;
use std::sync::Arc;

/// How far a proof goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// All runs of any length, by k-induction; k is the depth.
    Induction,
    /// All runs of up to `depth` cycles from reset.
    Bounded,
}

impl Method {
    /// As the tables show it.
    pub fn name(self) -> &'static str {
        match self {
            Method::Induction => "k-induction",
            Method::Bounded => "bounded",
        }
    }
}

/// A block of one shape, and what is proven of it.
#[derive(Clone)]
pub struct Proof {
    /// Block, lanes and warps, such as `ccs-8x1`.
    pub name: String,
    /// The block's file in `hdl/simt/src`.
    pub block: &'static str,
    /// What holds, in a sentence.
    pub says: &'static str,
    /// As the tables show it.
    pub shape: String,
    /// How far it goes.
    pub method: Method,
    /// Of the method, in cycles.
    pub depth: u32,
    /// Cycles within which every cover of the harness happens.
    pub cover_depth: u32,
    /// Of the few of its block that run with the tests: each takes less than a minute.
    pub quick: bool,
    /// The harness.
    pub harness: Arc<Module>,
}

/// The line of a block in the list: its proofs differ in shape.
struct Block {
    name: &'static str,
    block: &'static str,
    says: &'static str,
    method: Method,
    cover_depth: u32,
}

impl Block {
    /// Its proof at a shape.
    fn at<I, O>(
        &self,
        s: &Shape,
        depth: u32,
        quick: bool,
        harness: fn(&Shape) -> TypedModule<I, O>,
    ) -> Result<Proof, Errors>
    where
        I: Bundle<Width> + Clone,
        O: Signals,
    {
        let waits = if s.barriers { ("b", ", barriers") } else { ("", "") };
        let (letters, converges) = match s.convergence_barriers {
            0 => (String::new(), String::new()),
            n => (format!("c{n}"), format!(", {n} convergence barrier{}", if n > 1 { "s" } else { "" })),
        };
        Ok(Proof {
            name: format!("{}-{}x{}{}{letters}", self.name, s.lanes, s.warps, waits.0),
            block: self.block,
            says: self.says,
            shape: format!("{} × {}{}{converges}", s.lanes, s.warps, waits.1),
            method: self.method,
            depth,
            cover_depth: self.cover_depth,
            quick,
            harness: harness(s).check()?.netlist,
        })
    }
}

const CCS: Block = Block {
    name: "ccs",
    block: "divergence/ccs.rs",
    says: "Every thread that comes in goes out in exactly one path, with the depth and pc it had; paths come out in strict \
           order, without gaps, equal ones merged.",
    method: Method::Induction,
    cover_depth: 3,
};

const SCOREBOARD: Block = Block {
    name: "scoreboard",
    block: "scoreboard.rs",
    says: "An instruction that reads or writes a register with a write under way does not issue until that is released; one \
           whose registers have none is never held back.",
    method: Method::Induction,
    cover_depth: 4,
};

const DUAL_SCOREBOARD: Block = Block {
    name: "dual-scoreboard",
    block: "scoreboard/dual.rs",
    says: "No instruction issues while a register that it reads or writes awaits a write of a thread of its path, whatever \
           pushes and pops moved the thread meanwhile; one whose registers have no write under way on its side, nor one on the \
           other from before the last push or pop, is never held back; a path that waits gets nothing more to wait for \
           before the next push or pop.",
    method: Method::Induction,
    cover_depth: 7,
};

const RESOLVE: Block = Block {
    name: "resolve",
    block: "pipeline/resolve.rs",
    says: "Served and left threads partition the mask, and the first one is served; what is served lies in the line, at its \
           bank and bytes; of several stores to a byte the highest lane's stays, within an access and over replays.",
    method: Method::Induction,
    cover_depth: 3,
};

const PATH_TABLE: Block = Block {
    name: "path-table",
    block: "divergence/path_table.rs",
    says: "Every live thread of a warp is in exactly one path, or waits at exactly one convergence barrier, which has the pc and \
           call depth that outcomes gave the thread; a path waits from its barrier to the wake; the cold table neither loses \
           nor doubles a path and never overflows; a slot in `waiting` has no path that can run; after an outcome or a wake a \
           live slot is steered once, to the active path, if one can run.",
    method: Method::Induction,
    cover_depth: 14,
};

const ARBITER: Block = Block {
    name: "arbiter",
    block: "divergence/arbiter.rs",
    says: "Every live thread of a warp has the pc and call depth that outcomes gave it and waits from its barrier to the wake; \
           the mask is the threads in the first place, the stop pc that of the next at their depth; what a memory access \
           left is replayed alone; after an outcome, a start or a wake a warp is steered once if a thread can run.",
    method: Method::Induction,
    cover_depth: 14,
};

const STACK: Block = Block {
    name: "stack",
    block: "divergence/stack.rs",
    says: "Whatever it is told about where threads meet, every live thread of a warp is in exactly one place, which has the pc \
           and call depth that outcomes gave it; lanes - 1 levels are enough; after an outcome, a start or a wake a warp is \
           steered once, to its top, in a bounded time, unless it waits, ends or is refused.",
    method: Method::Induction,
    cover_depth: 14,
};

const DUAL_PATH: Block = Block {
    name: "dual-path",
    block: "divergence/dual_path.rs",
    says: "Whatever it is told about where threads meet, every live thread of a warp is in exactly one place, at the pc and call \
           depth that outcomes and the instructions between them gave it; both sides are apart, and lanes - 1 levels are \
           enough; each side that comes to the top is steered once, in a bounded time, and only sides that run are flushed; \
           exactly the barriers of a part of a warp are refused.",
    method: Method::Induction,
    cover_depth: 14,
};

const COMPACTOR: Block = Block {
    name: "compactor",
    block: "divergence/block_stack/compactor.rs",
    says: "Iterated, it puts each thread into exactly one warp, in its lane, the lowest static warp of a lane first; the warps are \
           as many as one lane has threads at most, or, where static warps are wanted, exactly those.",
    method: Method::Induction,
    cover_depth: 4,
};

const CAPT: Block = Block {
    name: "capt",
    block: "divergence/block_stack/capt.rs",
    says: "A branch has an entry exactly if a warp has parted there, and fewer other branches than there are entries since; it \
           has one only, which says what was learned since it came; a branch without one is adequate.",
    method: Method::Induction,
    cover_depth: 8,
};

const BLOCK_STACK: Block = Block {
    name: "block-stack",
    block: "divergence/block_stack.rs",
    says: "Whatever it is told about where threads meet, a live thread is in exactly one warp, with the pc and call depth that \
           outcomes gave it, or waits; no warp runs a thread of which another owes a write; the home of a write stays until \
           it is done; no warp is formed where one runs.",
    method: Method::Bounded,
    cover_depth: 16,
};

const SORTER: Block = Block {
    name: "sorter",
    block: "divergence/cct.rs",
    says: "In a bounded number of cycles without start and wake, and without an outcome or one that is announced, whatever came \
           before, all returns are done, the second path of the warp belongs before all its cold ones, but for one equal to a \
           first that waits, and where the first waits, it is known whether all do.",
    method: Method::Induction,
    cover_depth: 32,
};

const RELEASE: Block = Block {
    name: "release",
    block: "divergence/convergence.rs",
    says: "In a bounded number of cycles, what there is to look at is decided; and where threads of a warp wait at convergence \
           barriers and no path of it can run, some of them go on.",
    method: Method::Induction,
    cover_depth: 14,
};

const DISTRIBUTOR: Block = Block {
    name: "distributor",
    block: "distributor.rs",
    says: "Each warp of each block of a grid of any size is started exactly once, with its threads, on a slot without live \
           threads and pending registers; all warps of a block in one group, which nobody else is in; when a launch ends, all \
           were started.",
    method: Method::Induction,
    cover_depth: 8,
};

const BARRIER: Block = Block {
    name: "barrier",
    block: "barrier.rs",
    says: "Nobody is woken before all live warps of the block, all of which were started, have arrived at the same barrier; the \
           counts of barriers that warps of a block have passed never differ by more than one; when all have arrived, each \
           is woken within as many turns as there are warps.",
    method: Method::Induction,
    cover_depth: 12,
};

const CACHE: Block = Block {
    name: "cache",
    block: "memory/cache.rs",
    says: "No response is lost or doubled, and each has what was stored last, whatever the order in which memory answers; a \
           line is in one way only and has one miss only; when the cache is idle, memory has everything.",
    method: Method::Bounded,
    cover_depth: 14,
};

const WISHBONE: Block = Block {
    name: "wishbone",
    block: "memory/wishbone.rs",
    says: "Whatever the slave on the bus does, the rules of Wishbone B4 hold; no response is lost or doubled, and each has what \
           was stored last; every store goes over the bus once; when the bridge is idle, memory has everything; an error is told \
           with its address.",
    method: Method::Bounded,
    cover_depth: 10,
};

/// All proofs, block after block.
pub fn proofs() -> Result<Vec<Proof>, Errors> {
    let mut all = Vec::new();
    let shape = |lanes, warps| Shape { barriers: false, ..Shape::new(lanes, warps) };
    for (lanes, barriers) in [(1, false), (2, false), (4, false), (8, false), (8, true), (16, false), (64, true)] {
        let quick = matches!((lanes, barriers), (2, false) | (8, true));
        all.push(CCS.at(&Shape { barriers, ..Shape::new(lanes, 1) }, 2, quick, ccs_proof)?);
    }
    for warps in [1, 2, 8] {
        all.push(SCOREBOARD.at(&shape(2, warps), if warps > 2 { 2 } else { 4 }, warps == 8, scoreboard_proof)?);
    }
    for warps in [1, 2, 8] {
        all.push(DUAL_SCOREBOARD.at(&shape(2, warps), 2, warps == 2, dual_scoreboard_proof)?);
    }
    for (coalescing, name) in [(Coalescing::Aligned, "resolve"), (Coalescing::Full, "resolve-full")] {
        for lanes in [1, 2, 4, 8] {
            let s = Shape { coalescing, atomics: true, ..Shape::small(lanes, 1) };
            let proof = RESOLVE.at(&s, 4, lanes == 4, resolve_proof)?;
            all.push(Proof { name: format!("{name}-{lanes}x1"), ..proof });
        }
    }
    for (lanes, warps, barriers) in [
        (1, 1, false),
        (2, 1, false),
        (2, 2, false),
        (4, 1, false),
        (4, 2, false),
        (8, 1, false),
        (2, 1, true),
        (2, 2, true),
        (4, 1, true),
        (4, 2, true),
        (8, 1, true),
    ] {
        let s = Shape { program: 16, depth_bits: 1, barriers, ..shape(lanes, warps) };
        let quick = matches!((lanes, warps, barriers), (1, 1, _) | (2, 2, true) | (4, 1, true));
        all.push(PATH_TABLE.at(&s, 2, quick, path_table_proof)?);
    }
    let converging = |lanes, warps, barriers, convergence_barriers| Shape {
        program: 16,
        depth_bits: 1,
        patience: 32,
        barriers,
        convergence_barriers,
        ..shape(lanes, warps)
    };
    for (lanes, warps, barriers, convergence_barriers, quick) in [
        (2, 1, true, 1, false),
        (2, 1, true, 2, true),
        (2, 2, true, 1, false),
        (4, 1, true, 1, false),
        (4, 1, true, 2, false),
        (4, 2, true, 2, false),
    ] {
        all.push(PATH_TABLE.at(
            &converging(lanes, warps, barriers, convergence_barriers),
            2,
            quick,
            path_table_proof,
        )?);
    }
    for (lanes, warps, convergence_barriers, quick) in
        [(2, 1, 2, true), (2, 2, 2, false), (4, 1, 1, false), (4, 1, 2, false), (4, 2, 1, false)]
    {
        all.push(RELEASE.at(&converging(lanes, warps, true, convergence_barriers), 2, quick, release_proof)?);
    }
    for (lanes, warps, barriers) in
        [(1, 1, true), (2, 1, true), (2, 2, true), (4, 1, true), (4, 2, false), (8, 1, false)]
    {
        let s = Shape { program: 16, depth_bits: 1, metrics: Metrics::Off, barriers, ..shape(lanes, warps) };
        all.push(ARBITER.at(&s, pass_cycles(&s), (lanes, warps) == (2, 2), arbiter_proof)?);
    }
    for (lanes, warps, barriers, likely) in [
        (1, 1, true, false),
        (2, 1, false, false),
        (2, 2, true, false),
        (2, 2, false, true),
        (4, 1, true, false),
        (4, 1, false, true),
    ] {
        let s = Shape { program: 16, depth_bits: 1, metrics: Metrics::Off, barriers, likely, ..shape(lanes, warps) };
        let quick = if likely { lanes == 2 } else { lanes == 4 };
        let proof = STACK.at(&s.with_divergence(Divergence::STACK), 2, quick, stack_proof)?;
        let (letter, with) = if likely { ("l", ", likely") } else { ("", "") };
        all.push(Proof { name: proof.name + letter, shape: proof.shape + with, ..proof });
    }
    for (lanes, warps, barriers, replay, path_forwarding) in [
        (1, 1, true, Replay::Serialise, false),
        (2, 1, false, Replay::Serialise, false),
        (2, 1, true, Replay::Split, false),
        (2, 2, true, Replay::Serialise, false),
        (4, 1, true, Replay::Serialise, false),
        (4, 1, false, Replay::Split, false),
        (4, 1, false, Replay::Serialise, true),
    ] {
        let s = Shape { program: 16, depth_bits: 1, metrics: Metrics::Off, barriers, ..shape(lanes, warps) };
        let s = Shape { replay, path_forwarding, ..s.with_divergence(Divergence::DUAL_PATH) };
        let quick = lanes == 2 && barriers;
        let proof = DUAL_PATH.at(&s, 2, quick, dual_path_proof)?;
        let (letter, with) = if replay == Replay::Split { ("s", ", split") } else { ("", "") };
        let (forwards, forwarding) = if path_forwarding { ("f", ", forwarding") } else { ("", "") };
        let (name, shape) = (proof.name + letter + forwards, proof.shape + with + forwarding);
        all.push(Proof { name, shape, ..proof });
    }
    for (lanes, warps) in [(1, 1), (2, 2), (4, 2), (2, 4), (4, 4)] {
        let s = shape(lanes, warps).with_divergence(Divergence::BLOCK_STACK);
        all.push(COMPACTOR.at(&s, 2, lanes == warps && lanes > 1, compactor_proof)?);
    }
    for (entries, program) in [(2, 16), (4, 32)] {
        for &(name, history) in History::ALL {
            let s = Shape { program, capt: Capt { entries, history }, ..shape(2, 2) };
            let proof = CAPT.at(&s, 2, entries <= 2, capt_proof)?;
            all.push(Proof {
                name: format!("capt-{entries}-{name}"),
                shape: format!("{entries} entries, {name}"),
                ..proof
            });
        }
    }
    for (lanes, warps, compaction, depth) in
        [(1, 2, Compaction::SkipUniform, 11), (2, 2, Compaction::SkipUniform, 12), (2, 2, Compaction::Predict, 12)]
    {
        let capt = Capt { entries: 1, ..Capt::DEFAULT };
        let s = Shape { program: 16, depth_bits: 1, metrics: Metrics::Off, compaction, capt, ..shape(lanes, warps) };
        let proof =
            BLOCK_STACK.at(&s.with_divergence(Divergence::BLOCK_STACK), depth, lanes == 1, block_stack_proof)?;
        let (letter, with) = if compaction == Compaction::Predict { ("p", ", predict") } else { ("", "") };
        all.push(Proof { name: proof.name + letter, shape: proof.shape + with, ..proof });
    }
    for (lanes, warps) in [(1, 1), (2, 2), (1, 4), (4, 4), (4, 8)] {
        let quick = matches!((lanes, warps), (2, 2) | (4, 8));
        all.push(DISTRIBUTOR.at(&Shape { program: 16, ..shape(lanes, warps) }, 2, quick, distributor_proof)?);
    }
    for warps in [1, 2, 4, 8] {
        all.push(BARRIER.at(&shape(1, warps), 2, matches!(warps, 2 | 8), barrier_proof)?);
    }
    for barriers in [false, true] {
        let s = Shape { program: 16, depth_bits: 1, barriers, ..shape(4, 1) };
        all.push(SORTER.at(&s, sorted_after(&s) + 3, !barriers, sorter_proof)?);
    }
    for (ways, line, misses, depth) in [(1, 1, 1, 10), (2, 2, 2, 9)] {
        let cache = Some(Cache { size: 2 * ways * line * 4, ways, line, misses });
        let s = Shape { cache, metrics: Metrics::Off, memory: 64, loads: 2, ..Shape::new(1, 1) };
        let proof = CACHE.at(&s, depth, false, cache_proof)?;
        all.push(Proof { name: format!("cache-{ways}x{line}x{misses}"), ..proof });
    }
    for (lanes, width, atomics, depth) in [(1, 32, true, 7), (2, 32, false, 7)] {
        let slave = SlaveModel { timing: Timing::FASTEST, error: None };
        let backing = Backing::Wishbone { width, slave };
        let s = Shape { backing, atomics, barriers: false, memory: 64, loads: 2, ..Shape::new(lanes, 1) };
        let proof = WISHBONE.at(&s, depth, false, wishbone_proof)?;
        let (letter, with) = if atomics { ("a", ", atomics") } else { ("", "") };
        let shape = format!("{lanes} × 1{with}");
        all.push(Proof { name: format!("wishbone-{lanes}x{width}{letter}"), shape, ..proof });
    }
    Ok(all)
}
