//! The grid of a launch: how many blocks, of how many threads each; and how messages name them.

use std::{collections::BTreeMap, fmt, ops::Range};

use heddle_simt::Shape;
use heddle_simt::isa::warp;
use serde::Serialize;
use thiserror::Error;

use crate::program::Program;

/// Blocks of equal size, numbered from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    /// Blocks of the launch, at least 1.
    pub blocks: u32,
    /// Threads of a block, 1 to all threads of the core.
    pub threads: u32,
}

/// A thread of a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct ThreadId {
    /// Its block.
    pub block: u32,
    /// Its number in the block.
    pub thread: u32,
}

impl fmt::Display for ThreadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} of block {}", self.thread, self.block)
    }
}

/// Why a grid cannot be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum GridError {
    #[error("a grid of no blocks: at least 1 is needed")]
    NoBlocks,
    #[error("blocks of no threads: at least 1 is needed")]
    NoThreads,
    #[error("blocks of {threads} threads: the core has {most}")]
    BlockTooLarge { threads: u32, most: u32 },
    #[error("{blocks} blocks of {threads} threads are more than 2^32 threads")]
    TooManyThreads { blocks: u32, threads: u32 },
    #[error("a block of {threads} threads has {share} bytes of the scratchpad, the program needs {wanted}")]
    Scratchpad { threads: u32, share: u32, wanted: u32 },
}

impl Grid {
    /// One block of so many threads.
    pub fn one_block(threads: u32) -> Grid {
        Grid { blocks: 1, threads }
    }

    /// Whether a core can run it, with a program that needs so many bytes of scratchpad a block.
    pub fn check(&self, shape: &Shape, scratchpad: u32) -> Result<(), GridError> {
        let &Grid { blocks, threads } = self;
        let most = shape.threads();
        let share = || self.scratchpad(shape);
        match () {
            () if blocks == 0 => Err(GridError::NoBlocks),
            () if threads == 0 => Err(GridError::NoThreads),
            () if threads > most => Err(GridError::BlockTooLarge { threads, most }),
            () if u64::from(blocks) * u64::from(threads) > 1 << 32 => {
                Err(GridError::TooManyThreads { blocks, threads })
            }
            () if scratchpad > share() => Err(GridError::Scratchpad { threads, share: share(), wanted: scratchpad }),
            () => Ok(()),
        }
    }

    /// Warps of a block, the last of which may be partly empty.
    pub fn warps(&self, shape: &Shape) -> u32 {
        self.threads.div_ceil(shape.lanes)
    }

    /// Warp slots that a block occupies: a power of two, and its first slot is a multiple of it.
    pub fn slots(&self, shape: &Shape) -> u32 {
        self.warps(shape).next_power_of_two()
    }

    /// The slots of each block that the core can hold.
    pub fn slots_of_blocks(&self, shape: &Shape) -> impl Iterator<Item = Range<u32>> + use<> {
        let slots = self.slots(shape);
        (0..shape.warps).step_by(slots as usize).map(move |first| first..first + slots)
    }

    /// Blocks that the core can hold at once.
    pub fn resident(&self, shape: &Shape) -> u32 {
        shape.warps / self.slots(shape)
    }

    /// Bytes of a block's share of the scratchpad.
    pub fn scratchpad(&self, shape: &Shape) -> u32 {
        shape.scratchpad / self.resident(shape)
    }
}

/// Where the live threads of a launch are.
#[derive(Clone, Debug, Default)]
pub struct Whereabouts(BTreeMap<(u32, bool, u32), Vec<u32>>);

/// Places that [`Whereabouts::text`] names.
const PLACES: usize = 8;

impl Whereabouts {
    /// A thread whose next instruction is at `pc`; it waits at the barrier before that, or runs.
    pub fn add(&mut self, thread: ThreadId, waits: bool, pc: u32) {
        self.0.entry((thread.block, waits, pc)).or_default().push(thread.thread);
    }

    /// Those at one place together, block after block.
    pub fn text(&self, program: &Program) -> String {
        self.said(program, "running at")
    }

    /// The same of threads that do not run.
    pub fn suspended(&self, program: &Program) -> String {
        self.said(program, "suspended at")
    }

    fn said(&self, program: &Program, verb: &str) -> String {
        let place = |(&(block, waits, pc), threads): (&(u32, bool, u32), &Vec<u32>)| {
            let before = pc.wrapping_sub(4);
            let (verb, pc) = match waits {
                true if program.word(before).is_some_and(warp::syncs) => ("waiting at the sync at", before),
                true => ("waiting at the barrier at", before),
                false => (verb, pc),
            };
            format!("{} of block {block} {verb} {pc:#010x}{}", thread_ranges(threads), program.named(pc))
        };
        let mut places: Vec<String> = self.0.iter().take(PLACES).map(place).collect();
        if self.0.len() > PLACES {
            places.push(format!("others at {} more places", self.0.len() - PLACES));
        }
        places.join("; ")
    }
}

/// Ranges of threads that [`thread_ranges`] names.
const RANGES: usize = 8;

/// `thread 3`, or `threads 0-2, 5`, of ascending numbers; of many ranges the first, and how many threads are in the others.
pub fn thread_ranges(threads: &[u32]) -> String {
    let ranges: Vec<&[u32]> = threads.chunk_by(|a, b| a + 1 == *b).collect();
    let (named, others) = ranges.split_at(RANGES.min(ranges.len()));
    let named = named.iter().map(|range| match range {
        [one] => one.to_string(),
        _ => format!("{}-{}", range[0], range[range.len() - 1]),
    });
    let word = if threads.len() == 1 { "thread" } else { "threads" };
    let more = others.iter().map(|range| range.len()).sum::<usize>();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{word} {}{more}", named.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_launched_is_refused_in_one_line() {
        let shape = Shape::new(8, 4);
        let error = |blocks, threads| Grid { blocks, threads }.check(&shape, 0).unwrap_err().to_string();
        assert_eq!(error(0, 8), "a grid of no blocks: at least 1 is needed");
        assert_eq!(error(1, 0), "blocks of no threads: at least 1 is needed");
        assert_eq!(error(1, 33), "blocks of 33 threads: the core has 32");
        assert_eq!(error(1 << 28, 17), "268435456 blocks of 17 threads are more than 2^32 threads");
        for (blocks, threads) in [(1, 1), (1 << 28, 16), (u32::MAX, 1), (1, 32)] {
            assert_eq!(Grid { blocks, threads }.check(&shape, 0), Ok(()), "{blocks} {threads}");
        }
    }

    #[test]
    fn threads_in_a_row_are_a_range() {
        assert_eq!(thread_ranges(&[1, 2, 3, 5, 7, 8]), "threads 1-3, 5, 7-8");
        assert_eq!(thread_ranges(&[4]), "thread 4");
        let odd: Vec<u32> = (0..32).map(|k| 2 * k + 1).collect();
        assert_eq!(thread_ranges(&odd), "threads 1, 3, 5, 7, 9, 11, 13, 15 and 24 more");
        assert_eq!(thread_ranges(&odd[..8]), "threads 1, 3, 5, 7, 9, 11, 13, 15");
    }

    #[test]
    fn a_block_whose_share_of_the_scratchpad_is_too_small_is_refused() {
        let shape = Shape { scratchpad: 4 << 10, ..Shape::new(8, 4) };
        let check = |threads| Grid { blocks: 4, threads }.check(&shape, 2048);
        assert_eq!(
            check(8).unwrap_err().to_string(),
            "a block of 8 threads has 1024 bytes of the scratchpad, the program needs 2048"
        );
        assert_eq!(check(9), Ok(()));
    }

    #[test]
    fn a_block_occupies_a_power_of_two_of_slots() {
        let shape = Shape { scratchpad: 4 << 10, ..Shape::new(8, 8) };
        for (threads, warps, slots, scratchpad) in
            [(1, 1, 1, 512), (8, 1, 1, 512), (9, 2, 2, 1024), (17, 3, 4, 2048), (33, 5, 8, 4096), (64, 8, 8, 4096)]
        {
            let grid = Grid { blocks: 100, threads };
            assert_eq!((grid.warps(&shape), grid.slots(&shape)), (warps, slots), "{threads}");
            assert_eq!((grid.resident(&shape), grid.scratchpad(&shape)), (8 / slots, scratchpad), "{threads}");
        }
    }
}
