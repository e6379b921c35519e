//! The table of latencies: how many cycles lie between the stages of the core.
//!
//! Stages, proofs, tests of blocks and of the core, and the cycle model take their numbers from here. `A_TO_B` is
//! the number of clock edges from the cycle in which an instruction is at A to the one in which it is at B.
//!
//! ```text
//!  steer ─1─► choice ─1─► fetch ─1─► decode ─2─► issue ─1─► read ─2─► execute ─2─► resolve ─1─► outcome ─1─► write
//!    ▲          1           2          3           4         5, 6        7            8       │    9          10
//!    │                                             ▲                                 release  └──► access
//!    └──────── 0, if the unit need not look further ───────────────────────────────────────────────┘
//! ```
//!
//! The first part has the latencies of single stages, which are what a change of the pipeline changes: one more
//! register between execute and resolve is one more in [`EXECUTE_TO_RESOLVE`]. Everything behind follows from them.
//! What must fit together, such as a product and its turn to be written, is checked when this file is compiled; what
//! the registers in the stages come to is measured in the core (`heddle-check`, core
//! `stages_are_as_far_apart_as_the_table_says`) and in the blocks.

// Stages 1 to 4.

/// From the divergence unit's `steer` to stage 1, which may choose the slot then.
pub const STEER_TO_CHOICE: u32 = 1;
/// From the choice in stage 1, with the pc at instruction memory, to stage 2, in which it answers.
pub const CHOICE_TO_FETCH: u32 = 1;
/// The register of the instruction word.
pub const FETCH_TO_DECODE: u32 = 1;
/// From decode, through the slot's instruction buffer and the scoreboard, to the issue at the earliest.
pub const DECODE_TO_ISSUE: u32 = 2;
/// From an issue to the next of the slot: its next instruction is looked up in the scoreboard first.
pub const ISSUE_TO_NEXT: u32 = 2;

// Stages 4 to 10. Nothing stalls there.

/// From the issue to stage 5, in which the register banks are addressed, and CSRs are read.
pub const ISSUE_TO_READ: u32 = 1;
/// The read of the register banks, and the choice of the operands.
pub const READ_TO_EXECUTE: u32 = 2;
/// The ALUs, and what becomes of their results: places, conditions, the leader's.
pub const EXECUTE_TO_RESOLVE: u32 = 2;
/// From resolve to the divergence unit. Faults, ends of threads and what was committed come then, too.
pub const RESOLVE_TO_OUTCOME: u32 = 1;
/// From resolve to the memory port, the scratchpad, or the load-store unit.
pub const RESOLVE_TO_ACCESS: u32 = 1;
/// From stage 9 to the write into the register banks of what the pipeline computes.
pub const OUTCOME_TO_WRITE: u32 = 1;

// Beside them.

/// From resolve to the scoreboard's release of a register that the pipeline itself writes.
pub const RESOLVE_TO_RELEASE: u32 = 0;
/// From the write of a late result to the scoreboard's release of its register.
pub const WRITE_TO_RELEASE: u32 = 1;
/// From the release of a register to the first issue that may need it.
pub const RELEASE_TO_ISSUE: u32 = 1;
/// The read of the side table, which is addressed in the last cycle of stage 7.
pub const SIDE_TABLE_READ: u32 = 1;
/// Steps of the divider: bits of a quotient.
pub const DIVIDER_STEPS: u32 = 32;
/// The cycle behind them, in which what is not the result is emptied.
pub const DIVISION_END: u32 = 1;
/// From operands in stage 7 to the first step of the divider.
pub const EXECUTE_TO_DIVISION: u32 = 1;
/// From a request to its answer, on the chip: of the scratchpad and of main memory without a cache before it.
pub const ACCESS_TO_ANSWER: u32 = 1;
/// From an access at the load-store unit to when its first lanes can be chosen. Under
/// [`Replay::Serialise`](crate::shape::Replay::Serialise).
pub const ACCESS_TO_SERVED: u32 = 1;
/// From an answer or a quotient, through the gather register, to its write into the register banks, if the pipeline
/// writes nothing then.
pub const ANSWER_TO_WRITE: u32 = 1;
/// From an entry of the load queue that is given back to the first access that may take it.
pub const GIVE_TO_ROOM: u32 = 2;
/// From a request that the cache takes to its look at the tags, from there to the answer to a hit, and to the request
/// to memory.
pub const REQUEST_TO_TAGS: u32 = 1;
pub const TAGS_TO_ANSWER: u32 = 2;
pub const TAGS_TO_MEMORY: u32 = 1;

// The divergence unit, the barrier and the distributor.

/// From an outcome to the steering of its slot, by a unit that need not look further. A start that is taken is as fast.
pub const OUTCOME_TO_STEER: u32 = 0;
/// From a wake that is taken to the steering of its slot, by a unit that chooses whose turn it is a cycle ahead.
pub const WAKE_TO_STEER: u32 = 1;
/// From the outcome that ends a thread, or that makes it wait, to when the unit says so. From a start, to when it
/// lives.
pub const OUTCOME_TO_STATE: u32 = 1;
/// From a slot without a live thread, or a launch, to the start of a thread there.
pub const FREE_TO_START: u32 = 1;
/// From the last warp of a block that waits at a barrier to the first wake.
pub const WAITING_TO_WAKE: u32 = 1;

// What waits how long.

/// Cycles that a late result waits for a free one before issue makes room.
pub const WAIT_BEFORE_BUBBLE: u32 = 2;
/// Cycles from one turn of a slot to the next, under schedules that promise nothing else: a power of two.
pub const TURN_EVERY: u32 = 64;
/// Outcomes after which [`hold`](crate::divergence::UnitOut::hold) rises, while something is put off: a power of two,
/// less one.
pub const OUTCOMES_BEFORE_HOLD: u32 = 7;

// What follows.

/// From a steering to the decoding of the first instruction there, at least; to its issue.
pub const STEER_TO_DECODE: u32 = STEER_TO_CHOICE + CHOICE_TO_DECODE;
pub const STEER_TO_ISSUE: u32 = STEER_TO_DECODE + DECODE_TO_ISSUE;
/// From a fetch to its decoding: the fetches of a slot that are under way at once. To its issue, at least.
pub const CHOICE_TO_DECODE: u32 = CHOICE_TO_FETCH + FETCH_TO_DECODE;
pub const CHOICE_TO_ISSUE: u32 = CHOICE_TO_DECODE + DECODE_TO_ISSUE;
/// Entries of a slot's buffer with which it can issue as often as it may: those under way, and the one that issues;
/// fetch learns a cycle late that it did.
pub const LEAST_BUFFER: u32 = (CHOICE_TO_ISSUE + 2).div_ceil(ISSUE_TO_NEXT) + 1;

/// From the issue to each of the later stages.
pub const ISSUE_TO_EXECUTE: u32 = ISSUE_TO_READ + READ_TO_EXECUTE;
pub const ISSUE_TO_RESOLVE: u32 = ISSUE_TO_EXECUTE + EXECUTE_TO_RESOLVE;
/// To the second cycle of stage 7.
pub const ISSUE_TO_SECOND: u32 = ISSUE_TO_RESOLVE - 1;
pub const ISSUE_TO_OUTCOME: u32 = ISSUE_TO_RESOLVE + RESOLVE_TO_OUTCOME;
pub const ISSUE_TO_ACCESS: u32 = ISSUE_TO_RESOLVE + RESOLVE_TO_ACCESS;
pub const ISSUE_TO_SERVED: u32 = ISSUE_TO_ACCESS + ACCESS_TO_SERVED;
/// Also from a bubble in issue to the cycle that it leaves free.
pub const ISSUE_TO_WRITE: u32 = ISSUE_TO_OUTCOME + OUTCOME_TO_WRITE;

/// From operands in stage 7 to the outcome.
pub const EXECUTE_TO_OUTCOME: u32 = EXECUTE_TO_RESOLVE + RESOLVE_TO_OUTCOME;
/// The registers that hold the side table's answer until the outcome.
pub const SIDE_TABLE_REGISTERS: u32 = 1 + RESOLVE_TO_OUTCOME - SIDE_TABLE_READ;
/// The stages of the multiplier: its product is there when it is written.
pub const MULTIPLIER_STAGES: u32 = EXECUTE_TO_OUTCOME + OUTCOME_TO_WRITE;
/// From the issue of a division to its result.
pub const ISSUE_TO_QUOTIENT: u32 = ISSUE_TO_EXECUTE + EXECUTE_TO_DIVISION + DIVIDER_STEPS + DIVISION_END;

/// From the write of a late result to the first issue that may need it.
pub const WRITE_TO_ISSUE: u32 = WRITE_TO_RELEASE + RELEASE_TO_ISSUE;
/// From an issue to the issue of an instruction that needs or writes its register: of what the pipeline computes; of a
/// division, if it is written at once. And from a division to the next.
pub const ISSUE_TO_DEPENDENT: u32 = ISSUE_TO_RESOLVE + RESOLVE_TO_RELEASE + RELEASE_TO_ISSUE;
pub const DIVISION_TO_DEPENDENT: u32 = ISSUE_TO_QUOTIENT + ANSWER_TO_WRITE + WRITE_TO_ISSUE;
pub const DIVISION_TO_DIVISION: u32 = ISSUE_TO_QUOTIENT + RELEASE_TO_ISSUE;
/// From the issue of a control instruction to the issue of what comes next, of a warp whose unit need not look further.
pub const CONTROL_TO_NEXT: u32 = ISSUE_TO_OUTCOME + OUTCOME_TO_STEER + STEER_TO_ISSUE;

/// From the last outcome before a barrier to the first wake.
pub const OUTCOME_TO_WAKE: u32 = OUTCOME_TO_STATE + WAITING_TO_WAKE;
/// From the issue of the last `barrier` of a block to the next issue of one of its warps, on the path tables.
pub const BARRIER_TO_NEXT: u32 = ISSUE_TO_OUTCOME + OUTCOME_TO_WAKE + WAKE_TO_STEER + STEER_TO_ISSUE;
/// From the issue of the last `ecall` of a block to the first issue of the next block on its slots.
pub const END_TO_NEXT: u32 = ISSUE_TO_OUTCOME + OUTCOME_TO_STATE + FREE_TO_START + OUTCOME_TO_STEER + STEER_TO_ISSUE;
/// From a launch to its first live thread.
pub const LAUNCH_TO_LIVE: u32 = FREE_TO_START + OUTCOME_TO_STATE;

/// From a request to the answer to a hit.
pub const REQUEST_TO_HIT: u32 = REQUEST_TO_TAGS + TAGS_TO_ANSWER;

/// What the design counts on.
const _: () = {
    // A bank that is read at the edge at which it is written gives the new value.
    let read = ISSUE_TO_DEPENDENT + ISSUE_TO_READ;
    assert!(read >= ISSUE_TO_WRITE, "a register is released before it can be read");
    assert!(RESOLVE_TO_OUTCOME + 1 >= SIDE_TABLE_READ, "the side table answers after the outcome");
    assert!(OUTCOME_TO_WRITE == 1, "the last stage of the multiplier is that of outcomes");
    assert!(
        MULTIPLIER_STAGES >= 4,
        "the multiplier has a stage for factors, partial products, their sum, and its half"
    );
    // So that the answer finds its own instruction's write free: `core/memory_path.rs` counts on it.
    let answer = RESOLVE_TO_ACCESS + ACCESS_TO_ANSWER;
    assert!(
        answer == RESOLVE_TO_OUTCOME + OUTCOME_TO_WRITE,
        "the scratchpad does not answer in its instruction's stage 10"
    );
    assert!(TURN_EVERY.is_power_of_two(), "turns are counted in a register that wraps");
    assert!((OUTCOMES_BEFORE_HOLD + 1).is_power_of_two(), "outcomes are counted up to all ones");
};
