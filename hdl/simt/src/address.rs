//! The address map: what a 32-bit byte address means, in one place for the core, the instruction-set simulator and the
//! docs.
//!
//! | addresses | what |
//! |---|---|
//! | 0 … `memory` | main memory, the same for all threads; the top `threads × stack` bytes hold the stacks |
//! | [`SCRATCHPAD`] … + the block's share | the scratchpad of the thread's block |
//! | [`STACK`] … + `stack` | the thread's own stack |
//!
//! Everything else is a fault.
//!
//! **Scratchpad.** All blocks use the same addresses. A block that occupies 2^k of the core's 2^n warp slots has
//! `scratchpad >> (n - k)` bytes; the first is at `slot × (scratchpad >> n)` of the scratchpad memory, `slot` being the
//! block's first warp slot.
//!
//! **Stacks.** All threads use the same addresses, and the hardware interleaves them: word w of the stack of lane l of
//! warp slot s is word `((s × stack / 4) + w) × lanes + l` of the stack region, which begins at
//! `memory - threads × stack`. So threads that push together access one line of memory, each its own bank. A pointer to
//! a stack variable means something to its own thread only.

/// First byte address of the scratchpad.
pub const SCRATCHPAD: u32 = 0x4000_0000;

/// First byte address of a thread's stack; the stack pointer starts at `STACK + stack`.
pub const STACK: u32 = 0x8000_0000;
