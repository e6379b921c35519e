//! Short programs for covers that kernels and random programs do not hit: faults, and meetings that need exact timing.

use heddle_simt::Shape;
use heddle_simt::address::SCRATCHPAD;
use heddle_simt::isa::FaultCause;
use heddle_testbench::asm::*;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::Device;
use heddle_testbench::machine::{Machine, MachineError};

/// A program, and how it ends.
pub struct Directed {
    /// What it is about.
    pub name: &'static str,
    /// It begins at its first instruction.
    pub program: Asm,
    /// The cause of the fault that ends it, if one does.
    pub fault: Option<FaultCause>,
    /// It is launched so often.
    pub launches: u32,
    /// Blocks that a launch has.
    pub blocks: u32,
    /// Warps of a block.
    pub warps: u32,
}

impl Directed {
    /// Runs it on a machine that has it loaded.
    pub fn run(&self, machine: &mut Machine) -> Result<(), String> {
        let threads = self.warps * machine.shape().lanes;
        machine.set_grid(Grid { blocks: self.blocks, threads }).map_err(|error| error.to_string())?;
        for _ in 0..self.launches {
            match (machine.run(), self.fault) {
                (Ok(()), None) => {}
                (Err(MachineError::PartWaits { .. }), Some(FaultCause::BarrierOfAPart)) => {}
                (Err(MachineError::Fault(fault)), Some(cause)) if fault.what == cause.describe() => {}
                (Ok(()), Some(cause)) => return Err(format!("ended without the fault: {}", cause.describe())),
                (Err(error), _) => return Err(error.to_string()),
            }
        }
        Ok(())
    }
}

/// The programs for a shape.
pub fn programs(s: &Shape) -> Vec<Directed> {
    let mut programs = faults(s);
    let more = [
        ("stores at one address", stores_at_one_address(), 1),
        ("return without a call", return_without_a_call(), 1),
        ("outcomes while warps start", outcomes_while_warps_start(), 1),
        ("each lane ends alone", each_lane_ends_alone(s.lanes), 1),
        ("return to where others wait", return_to_where_others_wait(), 1),
        ("path behind the sorter", path_behind_the_sorter(), 4),
        ("division that outlives its block", division_that_outlives_its_block(), 1),
        ("path that ends before those above it", paths_above_another_end(100, 60), 1),
        ("path that outlives those above it", paths_above_another_end(30, 200), 1),
        ("loop that threads leave", loop_that_threads_leave(), 1),
    ];
    let warps = s.warps;
    let directed = |(name, program, launches)| Directed { name, program, fault: None, launches, blocks: 2, warps };
    programs.extend(more.map(directed));
    let short_blocks = directed(("blocks of one warp whose lanes end alone", each_lane_ends_alone(s.lanes), 1));
    programs.push(Directed { blocks: 32 * warps, warps: 1, ..short_blocks });
    if s.barriers && s.divergence.capabilities().reconverges && s.lanes > 1 {
        let fault = Some(FaultCause::BarrierOfAPart);
        programs.push(Directed { fault, blocks: 1, ..directed(("barrier of one lane", barrier_of_one_lane(), 1)) });
    }
    if s.reservations {
        programs.push(directed(("one lane has no reservation", one_has_no_reservation(), 1)));
    }
    if s.convergence_barriers > 1 && s.lanes > 1 {
        let waiting = [
            ("barriers that wait for each other", barriers_that_wait_for_each_other()),
            ("others move participants to where threads wait", others_move_participants()),
            ("each lane cancels and ends", each_lane_cancels_and_ends(s.lanes)),
        ];
        programs.extend(waiting.map(|(name, program)| directed((name, program, 1))));
        if s.barriers {
            programs.push(directed((
                "the block waits for threads that wait",
                the_block_waits_for_threads_that_wait(),
                1,
            )));
        }
    }
    if s.syncs() && (4..=8).contains(&s.lanes) {
        let syncs = [
            ("two sets sync at one barrier", two_sets_sync(false)),
            ("two sets sync, and one of them ends", two_sets_sync(true)),
            ("the last thread that a sync names ends", last_that_is_named_ends(s.lanes)),
            ("sync at a barrier of hints", sync_at_a_barrier_of_hints()),
        ];
        programs.extend(syncs.map(|(name, program)| directed((name, program, 1))));
        if s.convergence_barriers < 16 {
            let alone = begin().put([sync(15, ZERO, ZERO)]).exit();
            let fault = Some(FaultCause::NamedIsAbsent);
            programs.push(Directed { fault, ..directed(("sync at a barrier that there is not", alone, 1)) });
        }
    }
    if s.barriers {
        programs.push(directed(("barrier at once", begin().put([BARRIER]).exit(), 1)));
    }
    programs
}

/// Ends well: x10 is the exit code.
fn begin() -> Asm {
    Asm::default().put([addi(A0, ZERO, 0)])
}

fn division_that_outlives_its_block() -> Asm {
    begin().put([divu(5, A0, A0)]).exit()
}

fn stores_at_one_address() -> Asm {
    begin().put([csrr(5, LANE), addi(6, ZERO, 0x400), sw(5, 6, 0)]).exit()
}

/// Each lane at a word of its own, the first without a reservation of it.
fn one_has_no_reservation() -> Asm {
    let program = begin().put([csrr(5, LANE), slli(6, 5, 2), addi(6, 6, 0x400)]).branch(BEQ, 5, ZERO, "all");
    program.put([lr(7, 6)]).label("all").put([sc(7, 5, 6)]).exit()
}

fn return_without_a_call() -> Asm {
    begin().la(RA, "end").put([jalr(ZERO, RA, 0)]).label("end").exit()
}

/// Others live, and run after it.
fn barrier_of_one_lane() -> Asm {
    begin().put([csrr(5, LANE)]).branch(BEQ, 5, ZERO, "wait").exit().label("wait").put([BARRIER]).exit()
}

/// The first instruction has an outcome, which comes before the last warps are started.
fn outcomes_while_warps_start() -> Asm {
    Asm::default().jal(ZERO, "on").label("on").jal(ZERO, "end").label("end").put([addi(A0, ZERO, 0)]).exit()
}

/// Each lane jumps to a place of its own and ends there.
fn each_lane_ends_alone(lanes: u32) -> Asm {
    let program = begin()
        .put([addi(A7, ZERO, 93), csrr(5, LANE), slli(5, 5, 3)])
        .la(6, "places")
        .put([add(6, 6, 5), jalr(ZERO, 6, 0)])
        .label("places");
    (0..lanes).fold(program, |program, _| program.put([NOP, ECALL]))
}

/// Lanes 0 and 1 part in a function, both return, and are where the others wait.
fn return_to_where_others_wait() -> Asm {
    begin()
        .put([csrr(5, LANE), addi(6, ZERO, 1), sltiu(7, 5, 2)])
        .branch(BEQ, 7, ZERO, "join")
        .jal(RA, "f")
        .label("join")
        .exit()
        .label("f")
        .branch(BLTU, 5, 6, "first")
        .put([jalr(ZERO, RA, 0)])
        .label("first")
        .put([jalr(ZERO, RA, 0)])
}

/// Lane 0 is at `cold`, in the cold table; the lanes from 3 on go far ahead and are y. Lanes 1 and 2 pass `cold` unless
/// the sorter has made it y before, and part behind it: in `loop`, which lane 2 runs through twice.
fn path_behind_the_sorter() -> Asm {
    begin()
        .put([csrr(5, LANE), sltiu(6, 5, 1), add(6, 6, 5), sltiu(7, 5, 1)])
        .branch(BNE, 7, ZERO, "cold")
        .put([sltiu(7, 5, 3)])
        .branch(BNE, 7, ZERO, "pass")
        .jal(ZERO, "end")
        .label("pass")
        .put([NOP, NOP])
        .label("cold")
        .put([NOP])
        .label("loop")
        .put([addi(6, 6, -1)])
        .branch(BNE, 6, ZERO, "loop")
        .label("end")
        .exit()
}

/// The odd lanes are suspended while the others part, and again while these do. All end before they could meet: the
/// last of the others, and the odd ones, after so many instructions. In a function, since those that do not return meet
/// nowhere.
fn paths_above_another_end(last: usize, odd: usize) -> Asm {
    let parts = |asm: Asm, bit: i32, to: &str| asm.put([andi(6, 5, bit)]).branch(BNE, 6, ZERO, to);
    let ends = |asm: Asm, after: usize, meet: &str| asm.put(vec![NOP; after]).branch(BNE, ZERO, ZERO, meet).exit();
    let program = begin().jal(RA, "function").exit().label("function").put([csrr(5, LANE)]);
    let program = parts(program, 1, "odd");
    let program = parts(program, 2, "first").put([NOP; 20]);
    let program = ends(parts(program, 4, "last"), 1, "inner meet");
    let program = ends(program.label("last"), last, "inner meet");
    let program = ends(program.label("inner meet").jal(ZERO, "outer meet").label("first"), 1, "outer meet");
    let program = ends(program.label("odd"), odd, "return");
    program.label("outer meet").put([NOP]).label("return").put([jalr(ZERO, RA, 0)])
}

/// Each thread runs 15 times, unless it leaves before, through a loop in which threads go five ways, two of them out of
/// it: so all meet behind it, and most of them at its end before that.
fn loop_that_threads_leave() -> Asm {
    let mix = [addi(8, 8, -1), slli(6, 5, 2), add(7, 5, 6), add(7, 7, 8), add(7, 7, 8), add(7, 7, 8)];
    let program = begin().put([csrr(5, LANE), addi(8, ZERO, 15)]).label("loop").put(mix);
    let program = program.put([andi(6, 7, 31), addi(6, 6, -9)]).branch(BEQ, 6, ZERO, "leave");
    let program = program.put([andi(6, 7, 1)]).branch(BNE, 6, ZERO, "odd");
    let program = program.put([andi(6, 7, 12)]).branch(BEQ, 6, ZERO, "leave").put([NOP]).jal(ZERO, "end");
    let program = program.label("odd").put([andi(6, 7, 2)]).branch(BNE, 6, ZERO, "other").put([NOP]).jal(ZERO, "end");
    let program = program.label("other").put([NOP]).label("end").branch(BNE, 8, ZERO, "loop").jal(ZERO, "behind");
    program.label("leave").put([NOP]).label("behind").exit()
}

/// All participate in barriers 0 and 1; the odd lanes are sent to `odd`.
fn odd_lanes_part() -> Asm {
    begin().put([csrr(5, LANE), andi(5, 5, 1), join(0), join(1)]).branch(BNE, 5, ZERO, "odd")
}

fn barriers_that_wait_for_each_other() -> Asm {
    odd_lanes_part().put([wait(0, 0)]).exit().label("odd").put([wait(1, 0)]).exit()
}

fn others_move_participants() -> Asm {
    odd_lanes_part().put([wait(0, 0)]).exit().label("odd").put([move_(0, 1)]).exit()
}

fn the_block_waits_for_threads_that_wait() -> Asm {
    odd_lanes_part().put([wait(0, 0)]).label("odd").put([BARRIER]).exit()
}

/// The first lane waits for the others, each of which goes to a place of its own.
fn each_lane_cancels_and_ends(lanes: u32) -> Asm {
    let program = begin()
        .put([addi(A7, ZERO, 93), csrr(5, LANE), slli(5, 5, 3), join(0)])
        .la(6, "places")
        .put([add(6, 6, 5), jalr(ZERO, 6, 0)])
        .label("places")
        .put([wait(0, 0), ECALL]);
    (1..lanes).fold(program, |program, _| program.put([cancel(0), ECALL]))
}

/// Even lanes wait for each other, and odd ones. Lane 0 comes first, lanes 1 and 2 together, then the others; or lane 3 has ended.
fn two_sets_sync(one_ends: bool) -> Asm {
    let program = begin()
        .put([csrr(5, LANE), andi(7, 5, 1), addi(6, ZERO, 0x555), r(0, 7, 6, 1, 6, 0x33)])
        .put([addi(8, ZERO, 3), addi(9, 5, 1), andi(9, 9, 6), slli(9, 9, 2)])
        .branch(BEQ, 5, if one_ends { 8 } else { ZERO }, if one_ends { "end" } else { "done" });
    let comes = program.jal(ZERO, "loop").label("done").put([sync(0, 6, ZERO)]).label("end").exit();
    comes.label("loop").branch(BEQ, 9, ZERO, "done").put([addi(9, 9, -1)]).jal(ZERO, "loop")
}

/// The others wait for it.
fn last_that_is_named_ends(lanes: u32) -> Asm {
    begin()
        .put([csrr(5, LANE), addi(6, ZERO, -1), addi(8, ZERO, lanes as i32 - 1), addi(9, ZERO, 20)])
        .branch(BEQ, 5, 8, "last")
        .put([sync(0, 6, ZERO)])
        .label("end")
        .exit()
        .label("last")
        .put([addi(9, 9, -1)])
        .branch(BNE, 9, ZERO, "last")
        .jal(ZERO, "end")
}

/// Lanes 0 and 1 sync, late, where the others wait by hints again and again.
fn sync_at_a_barrier_of_hints() -> Asm {
    begin()
        .put([csrr(5, LANE), addi(7, ZERO, 2), addi(6, ZERO, 3), addi(9, ZERO, 40), addi(11, ZERO, 60), join(0)])
        .branch(BLTU, 5, 7, "late")
        .label("others")
        .put([wait(0, 0), join(0), addi(11, 11, -1)])
        .branch(BNE, 11, ZERO, "others")
        .jal(ZERO, "end")
        .label("two")
        .put([sync(0, 6, ZERO)])
        .label("end")
        .exit()
        .label("late")
        .put([addi(9, 9, -1)])
        .branch(BEQ, 5, 9, "two")
        .jal(ZERO, "late")
}

/// Each cause of a fault.
fn faults(s: &Shape) -> Vec<Directed> {
    let end = s.memory.ilog2();
    // x5 = 1, x6 = the end of memory.
    let begin = || Asm::default().put([addi(5, ZERO, 1), addi(6, ZERO, 1), slli(6, 6, end)]);
    let cases = [
        ("illegal instruction", begin().put([0]), FaultCause::IllegalInstruction),
        ("breakpoint", begin().put([EBREAK]), FaultCause::Breakpoint),
        ("unknown ecall", begin().put([ECALL]), FaultCause::UnknownEcall),
        ("misaligned jump", begin().put([jalr(ZERO, 5, 1)]), FaultCause::FetchMisaligned),
        ("jump out of memory", begin().put([jalr(ZERO, 6, 0)]), FaultCause::FetchOutOfRange),
        ("misaligned load", begin().put([lw(7, 5, 0)]), FaultCause::LoadMisaligned),
        ("misaligned store", begin().put([sw(7, 5, 0)]), FaultCause::StoreMisaligned),
        ("load outside memory", begin().put([lw(7, 6, 0)]), FaultCause::LoadOutOfRange),
        ("store outside memory", begin().put([sw(7, 6, 0)]), FaultCause::StoreOutOfRange),
        ("store to the program", begin().put([sw(7, ZERO, 0)]), FaultCause::StoreToProgram),
    ];
    let warps = s.warps;
    let directed =
        |(name, program, fault)| Directed { name, program, fault: Some(fault), launches: 1, blocks: 1, warps };
    let mut programs: Vec<Directed> = cases.into_iter().map(directed).collect();
    if s.scratchpad > 0 && s.warps > 1 {
        // A block of one warp has the share of one.
        let share = s.scratchpad / s.warps;
        let at = begin().put([lui(6, SCRATCHPAD >> 12), slli(7, 5, share.ilog2()), add(6, 6, 7)]);
        let program = at.put([lw(7, 6, 0)]);
        let outside = ("load outside the block's share of the scratchpad", program, FaultCause::LoadOutOfRange);
        programs.push(Directed { warps: 1, ..directed(outside) });
    }
    programs
}
