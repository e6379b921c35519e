//! Which branches are uniform: taken by all threads of a block that come to them at one visit, or by none. And which
//! accesses to memory have one address for all of them.
//!
//! A value varies if threads at one visit may have different ones. Thread and warp numbers, counters, loads and atomics
//! do, except loads at a constant address in the program, where no thread can store and where a launch's arguments lie;
//! the registers at the start of a thread do; and so does what is made from a value that varies. Beside this flow of
//! data there are three ways in which a branch with a varying condition makes values vary (as in Rosemann, Moll and
//! Hack, POPL 2021, but threads reconverge where a stack lets them):
//!
//! * **Joins.** At its RPC a location varies that may hold a different value on each side. Before it no threads of
//!   different sides reconverge, unless at a likely-convergence point: if the branch has one, that is a join, too, and
//!   so are the blocks before it that both sides come to.
//! * **Loops.** If the branch can come round again before its RPC, threads leave that cycle in different turns, and
//!   what is computed in it varies outside. The same for cycles before its likely-convergence point.
//! * **Calls.** A function called at two places takes what its arguments are at either; one called by a varying address
//!   may be another for each thread, so all that it leaves varies.
//!
//! Everything starts as uniform, and what varies is added until nothing changes. All of it is over all functions at
//! once: a function's arguments are those of all its calls.

use super::cfg::Way;
use super::instruction::{Flow, Instruction};
use super::values::{Location, State, Value};
use super::{Code, Part};
use heddle_simt::csr::{self, Source};
use std::collections::{BTreeMap, BTreeSet};

/// What varies in a function.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
struct Varying {
    /// Registers at entry and at the return.
    entry: u32,
    exit: u32,
    values: BTreeSet<Value>,
    /// Blocks whose branch varies.
    branches: BTreeSet<usize>,
    /// Blocks that are joins of a varying branch; the return is one more than the last.
    joins: BTreeSet<usize>,
    /// Cycles that threads leave in different turns.
    cycles: BTreeSet<Vec<bool>>,
}

/// Addresses of instructions that may not be the same for all threads.
pub struct Vary {
    /// Branches and indirect jumps: where they lead.
    pub branches: BTreeSet<u32>,
    /// Loads, stores and atomics: the address in memory.
    pub accesses: BTreeSet<u32>,
}

/// What varies in a program.
pub fn varying(code: &Code) -> Vary {
    let controls = code.parts.values().flat_map(|part| &part.function.blocks).map(|block| block.last());
    if code.is_open() {
        let direct = |last: &Instruction| matches!(last.flow(), Flow::Jump { .. } | Flow::Call { .. });
        let instructions = code.parts.values().flat_map(|part| &part.function.blocks).flat_map(|b| &b.instructions);
        return Vary {
            branches: controls.filter(|last| !direct(last)).map(|last| last.pc).collect(),
            accesses: instructions.filter(|one| accesses(one)).map(|one| one.pc).collect(),
        };
    }
    let mut called: BTreeSet<u32> = controls.flat_map(|last| code.callees(last)).collect();
    let ways = code.parts.values().flat_map(|part| &part.function.blocks).flat_map(|block| &block.ways);
    called.extend(ways.filter_map(|way| if let Way::Tail(entry) = way { Some(*entry) } else { None }));
    called.remove(&code.program.entry());
    // Nothing is known of the registers where a thread starts, and where nobody is seen to call.
    let entered = |&entry: &u32| Varying { entry: if called.contains(&entry) { 0 } else { !1 }, ..Varying::default() };
    let mut all: BTreeMap<u32, Varying> = code.parts.keys().map(|entry| (*entry, entered(entry))).collect();
    loop {
        let before = all.clone();
        for (&entry, part) in &code.parts {
            Walk { code, part, all: &mut all, entry }.function();
        }
        if all == before {
            break;
        }
    }
    let of = |(entry, part): (&u32, &Part)| {
        let pcs = all[entry].branches.iter().map(|&block| part.function.blocks[block].last().pc);
        pcs.collect::<Vec<_>>()
    };
    let branches = code.parts.iter().flat_map(of).collect();
    let mut vary = Vary { branches, accesses: BTreeSet::new() };
    for (&entry, part) in &code.parts {
        Walk { code, part, all: &mut all, entry }.accesses(&mut vary.accesses);
    }
    vary
}

/// Whether an instruction loads, stores or does both.
fn accesses(instruction: &Instruction) -> bool {
    matches!(instruction.opcode(), 0x03 | 0x23 | 0x2f)
}

/// One pass over a function.
struct Walk<'a> {
    code: &'a Code<'a>,
    part: &'a Part,
    all: &'a mut BTreeMap<u32, Varying>,
    entry: u32,
}

impl Walk<'_> {
    fn mine(&mut self) -> &mut Varying {
        self.all.get_mut(&self.entry).expect("every function has its facts")
    }

    fn function(&mut self) {
        let part = self.part;
        for block in 0..part.function.blocks.len() {
            self.meetings(block);
            let mut state = part.values.before[block].clone();
            for &instruction in &part.function.blocks[block].instructions {
                if part.values.made.contains_key(&instruction.pc) && self.result_varies(instruction, &state, block) {
                    self.mine().values.insert(Value::Result(instruction.pc));
                }
                if instruction == part.function.blocks[block].last() {
                    self.control(instruction, &state, block);
                }
                state.step(instruction);
            }
            self.call(block, &state);
            self.exit(block);
        }
    }

    /// Values that meet at the start of a block.
    fn meetings(&mut self, block: usize) {
        let part = self.part;
        let start = part.function.blocks[block].start();
        let join = self.all[&self.entry].joins.contains(&block);
        for (location, value) in part.values.before[block].locations() {
            if value != Value::Meeting(start, location) {
                continue;
            }
            let previous = part.function.graph.previous[block].iter();
            let mut sources = previous.map(|&p| part.values.behind[p].get(location)).collect::<Vec<_>>();
            if let (true, Location::Register(number)) = (block == part.function.first, location) {
                sources.push(Some(Value::Entry(number, 0)));
            }
            let varies = |source: &Option<Value>| source.is_none_or(|source| self.varies(source, Some(block)));
            if join || sources.iter().any(varies) {
                self.mine().values.insert(value);
            }
        }
    }

    /// Whether a value varies where it is used: in a block, or at the return.
    fn varies(&self, value: Value, at: Option<usize>) -> bool {
        let mine = &self.all[&self.entry];
        let made_in = match value {
            Value::Constant(_) => return false,
            Value::Entry(register, _) => return mine.entry >> register & 1 == 1,
            Value::Result(pc) | Value::Left(pc, _) | Value::Meeting(pc, _) => self.part.block_of(pc),
        };
        let left = |cycle: &Vec<bool>| cycle[made_in] && at.is_none_or(|at| !cycle[at]);
        mine.values.contains(&value) || mine.cycles.iter().any(left)
    }

    /// Adds those whose address varies.
    fn accesses(&self, varying: &mut BTreeSet<u32>) {
        let part = self.part;
        for (block, code) in part.function.blocks.iter().enumerate() {
            let mut state = part.values.before[block].clone();
            for &instruction in &code.instructions {
                if accesses(&instruction) && self.varies(state.register(instruction.rs1()), Some(block)) {
                    varying.insert(instruction.pc);
                }
                state.step(instruction);
            }
        }
    }

    fn reads_varying(&self, instruction: Instruction, state: &State, block: usize) -> bool {
        instruction.reads().any(|register| self.varies(state.register(register), Some(block)))
    }

    fn result_varies(&self, instruction: Instruction, state: &State, block: usize) -> bool {
        match instruction.opcode() {
            0x73 => csr::find((instruction.word >> 20) as u16).is_none_or(|csr| csr_varies(csr.source)),
            // An atomic operation, the count of a convergence barrier, and what depends on who executes it together.
            0x2f | 0x0b | 0x2b => true,
            0x03 => {
                let address = state.register(instruction.rs1());
                let bytes = instruction.bytes();
                let last = address.plus(instruction.immediate().wrapping_add(bytes - 1));
                let read_only = matches!(last, Some(Value::Constant(last)) if last >= bytes - 1 && last < self.code.program.program_end());
                !read_only
            }
            _ => self.reads_varying(instruction, state, block),
        }
    }

    /// The branch or indirect jump at the end of a block.
    fn control(&mut self, last: Instruction, state: &State, block: usize) {
        let parts = match last.flow() {
            Flow::Branch { .. } | Flow::IndirectJump | Flow::IndirectCall | Flow::Return | Flow::Exchange => {
                self.reads_varying(last, state, block)
            }
            _ => false,
        };
        if !parts || !self.mine().branches.insert(block) {
            return;
        }
        let part = self.part;
        let graph = &part.function.graph;
        let (behind, likely) = (part.behind[block], part.likely[block]);
        let before_rpc = |other: usize| Some(other) != behind;
        let mut joins = vec![behind.unwrap_or(graph.blocks())];
        let mut cycles = vec![graph.cycle(block, before_rpc)];
        if let Some(likely) = likely {
            let before_both = |other: usize| before_rpc(other) && other != likely;
            let sides: Vec<Vec<bool>> =
                graph.next[block].iter().map(|&next| graph.reachable(next, before_both)).collect();
            let of_two_sides = |&other: &usize| sides.iter().filter(|side| side[other]).count() > 1;
            joins.push(likely);
            joins.extend((0..graph.blocks()).filter(of_two_sides));
            cycles.push(graph.cycle(block, before_both));
        }
        let mine = self.mine();
        mine.joins.extend(joins);
        mine.cycles.extend(cycles.into_iter().filter(|cycle| cycle.contains(&true)));
    }

    /// What the call at the end of a block gives and takes.
    fn call(&mut self, block: usize, state: &State) {
        let part = self.part;
        let last = part.function.blocks[block].last();
        let tails = part.function.blocks[block]
            .ways
            .iter()
            .filter_map(|way| if let Way::Tail(entry) = way { Some(*entry) } else { None });
        let calls = matches!(last.flow(), Flow::Call { .. } | Flow::IndirectCall);
        let callees: Vec<u32> = if calls { self.code.callees(last).into_iter().collect() } else { tails.collect() };
        let arguments = (1..32).filter(|&register| self.varies(state.register(register), Some(block)));
        let arguments = arguments.fold(0, |mask, register| mask | 1 << register);
        for callee in &callees {
            self.all.get_mut(callee).expect("what is called is a function").entry |= arguments;
        }
        if calls {
            let one_for_each = callees.is_empty() || self.mine().branches.contains(&block);
            let left = callees.iter().fold(0, |mask, callee| mask | self.all[callee].exit);
            let varies = |register: u8| one_for_each || left >> register & 1 == 1;
            let values = (1..32).filter(|&register| varies(register)).map(|register| Value::Left(last.pc, register));
            self.mine().values.extend(values);
        }
    }

    /// What a return behind a block leaves.
    fn exit(&mut self, block: usize) {
        let part = self.part;
        let state = &part.values.behind[block];
        let preserved = &part.values.summary.preserves;
        let end = part.function.blocks.len();
        for &way in &part.function.blocks[block].ways {
            let exit = match way {
                Way::Return => 0,
                Way::Tail(entry) => self.all[&entry].exit,
                Way::Unknown => u32::MAX,
                Way::To(_) | Way::End => continue,
            };
            let join = self.mine().joins.contains(&end);
            let varies =
                |&register: &u8| join || exit >> register & 1 == 1 || self.varies(state.register(register), None);
            let mask = (1..32)
                .filter(|&register| !preserved[register as usize])
                .filter(varies)
                .fold(0, |mask, register| mask | 1 << register);
            self.mine().exit |= mask;
        }
    }
}

/// Whether threads of a block read different values of a CSR, or the same thread at different times.
fn csr_varies(source: Source) -> bool {
    match source {
        Source::Thread | Source::Warp | Source::Lane | Source::ThreadInBlock => true,
        Source::CycleLow | Source::CycleHigh | Source::InstructionsLow | Source::InstructionsHigh => true,
        Source::Block | Source::Blocks | Source::BlockThreads | Source::Lanes | Source::Warps | Source::Threads => {
            false
        }
        Source::MemoryBytes | Source::Log2StackBytes => false,
    }
}

#[cfg(test)]
mod tests;
