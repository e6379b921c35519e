//! The CSR map: every control and status register a program can read, in one table.
//!
//! Plain data, so that the core, the instruction-set simulator, the disassembler, the C header and the docs all read
//! the same map. Every register is read-only: `csrrw`, `csrrwi`, and the other four with a source that is not `x0` (or
//! 0) are illegal instructions, and so is any address that is not in the table, or that of a counter in a core without
//! counters.

/// Of a CSR's address.
pub const BITS: u32 = 12;

/// What the hardware supplies as the value of a CSR. All values are 32 bits wide and zero-extended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// Number of the hardware thread: warp slot × lanes + lane.
    Thread,
    /// Number of the thread's warp slot.
    Warp,
    /// Lane in which the thread lives.
    Lane,
    /// Number of the thread's block in the grid.
    Block,
    /// Number of the thread in its block.
    ThreadInBlock,
    /// Blocks of the grid.
    Blocks,
    /// Threads of a block.
    BlockThreads,
    /// Constant: lanes of a warp.
    Lanes,
    /// Constant: warps of the core.
    Warps,
    /// Constant: threads of the core, lanes × warps.
    Threads,
    /// Constant: bytes of data memory.
    MemoryBytes,
    /// Constant: base-2 logarithm of the stack bytes of one thread.
    Log2StackBytes,
    /// Bits 31..0 of the cycle counter.
    CycleLow,
    /// Bits 63..32 of the cycle counter.
    CycleHigh,
    /// Bits 31..0 of the thread instruction counter.
    InstructionsLow,
    /// Bits 63..32 of the thread instruction counter.
    InstructionsHigh,
}

impl Source {
    /// Only in a core with [counters](crate::Shape::counters).
    pub fn counts(self) -> bool {
        use Source::{CycleHigh, CycleLow, InstructionsHigh, InstructionsLow};
        matches!(self, CycleLow | CycleHigh | InstructionsLow | InstructionsHigh)
    }
}

/// One control and status register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Csr {
    /// The 12-bit address.
    pub address: u16,
    /// Name in assembly; the macro in the C header is `HEDDLE_CSR_` and this in upper case.
    pub name: &'static str,
    /// Where the value comes from.
    pub source: Source,
    /// One line for the docs and the header.
    pub doc: &'static str,
}

const fn csr(address: u16, name: &'static str, source: Source, doc: &'static str) -> Csr {
    Csr { address, name, source, doc }
}

const CYCLES: &str = "clock cycles since the launch, bits 31..0";
const CYCLES_HIGH: &str = "clock cycles since the launch, bits 63..32";
const INSTRUCTIONS: &str =
    "thread instructions committed since the launch, one for each lane a warp instruction serves, bits 31..0";
const INSTRUCTIONS_HIGH: &str = "thread instructions committed since the launch, bits 63..32";

/// Every CSR, in order of address.
pub const MAP: &[Csr] = &[
    csr(0xb00, "mcycle", Source::CycleLow, CYCLES),
    csr(0xb02, "minstret", Source::InstructionsLow, INSTRUCTIONS),
    csr(0xb80, "mcycleh", Source::CycleHigh, CYCLES_HIGH),
    csr(0xb82, "minstreth", Source::InstructionsHigh, INSTRUCTIONS_HIGH),
    csr(0xc00, "cycle", Source::CycleLow, "same as mcycle"),
    csr(0xc02, "instret", Source::InstructionsLow, "same as minstret"),
    csr(0xc80, "cycleh", Source::CycleHigh, "same as mcycleh"),
    csr(0xc82, "instreth", Source::InstructionsHigh, "same as minstreth"),
    csr(0xf14, "mhartid", Source::Thread, "number of the hardware thread: warp slot * lanes + lane"),
    csr(0xfc0, "lanes", Source::Lanes, "lanes of a warp"),
    csr(0xfc1, "warps", Source::Warps, "warps of the core"),
    csr(0xfc2, "warp", Source::Warp, "number of this thread's warp slot"),
    csr(0xfc3, "lane", Source::Lane, "lane of this thread"),
    csr(0xfc4, "block", Source::Block, "number of this thread's block in the grid"),
    csr(0xfc5, "thread", Source::ThreadInBlock, "number of this thread in its block: warp in the block * lanes + lane"),
    csr(0xfc6, "threads", Source::Threads, "threads of the core: lanes * warps"),
    csr(0xfc7, "memory", Source::MemoryBytes, "bytes of memory"),
    csr(0xfc8, "log2stack", Source::Log2StackBytes, "base-2 logarithm of the stack bytes of a thread"),
    csr(0xfc9, "blocks", Source::Blocks, "blocks of the grid"),
    csr(0xfca, "blockthreads", Source::BlockThreads, "threads of a block"),
];

/// The register at a 12-bit address, if there is one.
pub fn find(address: u16) -> Option<&'static Csr> {
    MAP.iter().find(|csr| csr.address == address)
}

/// Those of a core with or without counters.
pub fn map(counters: bool) -> impl Iterator<Item = &'static Csr> {
    MAP.iter().filter(move |csr| counters || !csr.source.counts())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_ascend_and_are_twelve_bits() {
        assert!(MAP.windows(2).all(|w| w[0].address < w[1].address));
        assert!(MAP.iter().all(|csr| csr.address < 0x1000));
    }

    #[test]
    fn find_gives_the_register_or_nothing() {
        assert_eq!(find(0xf14).unwrap().name, "mhartid");
        assert_eq!(find(0x300), None);
    }

    #[test]
    fn without_counters_there_is_the_rest() {
        assert_eq!(map(true).count(), MAP.len());
        assert_eq!(map(false).map(|csr| csr.name).take(2).collect::<Vec<_>>(), ["mhartid", "lanes"]);
    }
}
