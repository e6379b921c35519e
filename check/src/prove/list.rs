//! What is proven.

use heddle_hdl::Errors;
use heddle_simt::barrier::proof::barrier_proof;
use heddle_simt::distributor::proof::distributor_proof;
use heddle_simt::divergence::Divergence;
use heddle_simt::memory::cache::proof::cache_proof;
use heddle_simt::memory::second_level::proof::second_level_proof;
use heddle_simt::memory::wishbone::proof::wishbone_proof;
use heddle_simt::pipeline::resolve::proof::resolve_proof;
use heddle_simt::proof::{Block, Method, Proof};
use heddle_simt::scoreboard::dual::proof::dual_scoreboard_proof;
use heddle_simt::scoreboard::proof::scoreboard_proof;
use heddle_simt::{Backing, Cache, Coalescing, Metrics, SecondLevel, Shape, SlaveModel, Timing};

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

const SECOND_LEVEL: Block = Block {
    name: "second-level",
    block: "memory/second_level.rs",
    says: "Every response is due once, and not before its time, which for a line that was not asked for since the launch is \
           memory's, too; what was used last is there; a line is in one way only and has one miss only; who waits for a line \
           waits for one that is under way.",
    method: Method::Bounded,
    cover_depth: 12,
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

/// All proofs of the core and of these mechanisms, those of a block side by side.
pub fn proofs(mechanisms: &[Divergence]) -> Result<Vec<Proof>, Errors> {
    let mut all = Vec::new();
    let shape = |lanes, warps| Shape { barriers: false, ..Shape::new(lanes, warps) };
    for warps in [1, 2, 8] {
        all.push(SCOREBOARD.at(&shape(2, warps), if warps > 2 { 2 } else { 4 }, warps == 8, scoreboard_proof)?);
    }
    for warps in [1, 2, 8] {
        all.push(DUAL_SCOREBOARD.at(&shape(2, warps), 2, warps == 2, dual_scoreboard_proof)?);
    }
    for (coalescing, name) in [(Coalescing::Aligned, "resolve"), (Coalescing::Full, "resolve-full")] {
        for lanes in [1, 2, 4, 8] {
            let s = Shape { coalescing, atomics: true, ..Shape::small(lanes, 1) };
            let quick = lanes == if coalescing == Coalescing::Full { 2 } else { 4 };
            let proof = RESOLVE.at(&s, 4, quick, resolve_proof)?;
            all.push(Proof { name: format!("{name}-{lanes}x1"), ..proof });
        }
    }
    for divergence in mechanisms {
        all.extend(divergence.mechanism().proofs()?);
    }
    for (lanes, warps) in [(1, 1), (2, 2), (1, 4), (4, 4), (4, 8)] {
        let quick = matches!((lanes, warps), (2, 2) | (4, 8));
        all.push(DISTRIBUTOR.at(&Shape { program: 16, ..shape(lanes, warps) }, 2, quick, distributor_proof)?);
    }
    for warps in [1, 2, 4, 8] {
        all.push(BARRIER.at(&shape(1, warps), 2, matches!(warps, 2 | 8), barrier_proof)?);
    }
    // A cycle more takes the solver many times as long.
    for (ways, line, misses) in [(1, 1, 1), (2, 2, 2)] {
        let cache = Some(Cache { size: 2 * ways * line * 4, ways, line, misses });
        let s = Shape { cache, metrics: Metrics::Off, memory: 64, loads: 2, ..Shape::new(1, 1) };
        let proof = CACHE.at(&s, 8, false, cache_proof)?;
        all.push(Proof { name: format!("cache-{ways}x{line}x{misses}"), ..proof });
    }
    for (ways, line, misses, depth) in [(1, 1, 1, 14), (2, 1, 2, 10), (2, 2, 2, 8)] {
        let cache = Cache { size: 2 * ways * line * 4, ways, line, misses };
        let second_level = Some(SecondLevel { cache, latency: 2 });
        let backing = Backing::Model(Timing { interval: 2, ..Timing::FASTEST });
        let s = Shape { second_level, backing, metrics: Metrics::Off, memory: 64, loads: 2, ..Shape::new(1, 1) };
        let proof = SECOND_LEVEL.at(&s, depth, false, second_level_proof)?;
        all.push(Proof { name: format!("second-level-{ways}x{line}x{misses}"), ..proof });
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
