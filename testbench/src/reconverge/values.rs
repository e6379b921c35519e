//! Which values registers and stack slots hold: the same name is the same value.
//!
//! Names are those of static single assignment, found by data flow: a constant, what a register held when the function
//! was entered plus a constant, the result of an instruction, what a call left in a register, or the meeting of
//! different values at the start of a block. A slot of the function's frame has a value while its address is plainly
//! the stack pointer at entry plus a constant.
//!
//! What is assumed of memory, as the calling convention has it: a frame of which no address but the stack pointer
//! exists is written by its own function alone, and above the stack pointer only. As soon as a function lets such an
//! address out of its sight (into memory, a calculation or a call), only the slots count where it has saved what its
//! caller wants back.

use super::cfg::{Function, Way};
use super::instruction::{Flow, Instruction};
use std::collections::{BTreeMap, BTreeSet};

/// Number of the stack pointer.
const SP: u8 = 2;
/// Registers that a function saves before it uses them.
const SAVED: [u8; 13] = [1, 8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27];

/// Where a value is: a register, or a slot of the frame by its distance from the stack pointer at entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Location {
    Register(u8),
    Slot(i32),
}

/// The name of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    Constant(u32),
    /// A register's value at entry, plus a constant.
    Entry(u8, u32),
    /// Of the instruction here.
    Result(u32),
    /// What the call here leaves in a register.
    Left(u32, u8),
    /// Different values of a location meet at the block that begins here.
    Meeting(u32, Location),
}

impl Value {
    pub fn plus(self, constant: u32) -> Option<Value> {
        match self {
            Value::Constant(value) => Some(Value::Constant(value.wrapping_add(constant))),
            Value::Entry(register, offset) => Some(Value::Entry(register, offset.wrapping_add(constant))),
            other => (constant == 0).then_some(other),
        }
    }

    /// Distance from the stack pointer at entry, of an address in the stack.
    fn in_stack(self) -> Option<i32> {
        if let Value::Entry(SP, offset) = self { Some(offset as i32) } else { None }
    }
}

/// What is where at some point of a function. A slot that is not there may hold anything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    registers: [Value; 32],
    slots: BTreeMap<i32, Value>,
}

impl State {
    fn entry() -> State {
        let mut registers = std::array::from_fn(|register| Value::Entry(register as u8, 0));
        registers[0] = Value::Constant(0);
        State { registers, slots: BTreeMap::new() }
    }

    pub fn register(&self, number: u8) -> Value {
        self.registers[number as usize]
    }

    pub fn locations(&self) -> impl Iterator<Item = (Location, Value)> {
        let registers = (0..32).map(|number| (Location::Register(number), self.register(number)));
        registers.chain(self.slots.iter().map(|(&slot, &value)| (Location::Slot(slot), value)))
    }

    pub fn get(&self, location: Location) -> Option<Value> {
        match location {
            Location::Register(number) => Some(self.register(number)),
            Location::Slot(slot) => self.slots.get(&slot).copied(),
        }
    }

    fn forget(&mut self, first: i32, bytes: u32) {
        let overlaps =
            |slot: i32| i64::from(slot) < i64::from(first) + i64::from(bytes) && i64::from(first) < i64::from(slot) + 4;
        self.slots.retain(|&slot, _| !overlaps(slot));
    }

    /// Carries out one instruction, calls apart.
    pub fn step(&mut self, instruction: Instruction) {
        let Instruction { pc, word } = instruction;
        let a = self.register(instruction.rs1());
        let b = self.register(instruction.rs2());
        let immediate = instruction.immediate();
        let upper = word & 0xffff_f000;
        let slot = |offset: u32| a.plus(offset).and_then(Value::in_stack);
        let computed = match (instruction.opcode(), instruction.funct3(), word >> 25) {
            (0x37, ..) => Some(Value::Constant(upper)),
            (0x17, ..) => Some(Value::Constant(pc.wrapping_add(upper))),
            (0x6f | 0x67, ..) => Some(Value::Constant(pc.wrapping_add(4))),
            (0x13, 0, _) => a.plus(immediate),
            (0x33, 0, 0) => match (a, b) {
                (a, Value::Constant(b)) => a.plus(b),
                (Value::Constant(a), b) => b.plus(a),
                _ => None,
            },
            (0x03, 2, _) => slot(immediate).and_then(|slot| self.slots.get(&slot).copied()),
            _ => None,
        };
        let stored = match instruction.opcode() {
            0x23 => slot(instruction.store_offset()),
            0x2f => slot(0),
            _ => None,
        };
        if let Some(slot) = stored {
            self.forget(slot, instruction.bytes());
            if instruction.opcode() == 0x23 && instruction.bytes() == 4 {
                self.slots.insert(slot, b);
            }
        }
        if let Some(rd) = instruction.writes() {
            self.registers[rd as usize] = computed.unwrap_or(Value::Result(pc));
        }
    }

    /// Comes back from the function that the instruction at `pc` calls.
    fn call(&mut self, pc: u32, summary: &Summary) {
        let sp = self.register(SP).in_stack();
        match sp.filter(|_| !summary.writes_above) {
            Some(sp) => self.slots.retain(|&slot, _| slot >= sp),
            None => self.slots.clear(),
        }
        for register in 1..32 {
            if !summary.preserves[register as usize] {
                self.registers[register as usize] = Value::Left(pc, register);
            }
        }
    }
}

/// What a caller need know of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Registers that hold at the return what they held at entry.
    pub preserves: [bool; 32],
    /// Whether it stores into the frame of its caller.
    writes_above: bool,
}

impl Summary {
    /// What is so if no return contradicts it.
    pub fn hope() -> Summary {
        Summary { preserves: [true; 32], writes_above: false }
    }

    /// Of a function of which nothing is known.
    pub fn nothing() -> Summary {
        Summary { preserves: std::array::from_fn(|register| register == 0), writes_above: true }
    }

    pub fn and(mut self, other: &Summary) -> Summary {
        self.preserves.iter_mut().zip(other.preserves).for_each(|(mine, other)| *mine &= other);
        self.writes_above |= other.writes_above;
        self
    }
}

/// The values of a function.
#[derive(Clone, Debug)]
pub struct Values {
    /// Before each block.
    pub before: Vec<State>,
    /// Behind each block, its call included.
    pub behind: Vec<State>,
    /// What each [`Value::Result`] is made of: the instruction and the values of rs1 and rs2.
    pub made: BTreeMap<u32, (Instruction, [Value; 2])>,
    pub summary: Summary,
}

impl Values {
    /// `callee` says what is known of whatever the instruction calls.
    pub fn of(function: &Function, callee: &dyn Fn(Instruction) -> Summary, tail: &dyn Fn(u32) -> Summary) -> Values {
        let (mut values, escapes) = Values::flow(function, callee, false);
        if escapes {
            (values, _) = Values::flow(function, callee, true);
        }
        values.summarise(function, tail);
        values
    }

    /// With `blind`, slots are known to hold saved registers, and nothing else.
    fn flow(function: &Function, callee: &dyn Fn(Instruction) -> Summary, blind: bool) -> (Values, bool) {
        let previous = &function.graph.previous;
        // A value that comes to a loop is at first taken for another than the one that comes round, if it turns out
        // late to be a meeting itself. Knowing the meetings from the start, the search finds that both are one.
        let (mut meetings, mut dropped) = (BTreeSet::new(), BTreeSet::new());
        let (before, behind) = loop {
            let (before, behind) = spread(function, callee, blind, &mut meetings);
            // What has come again stays, so that this ends.
            let needless = &needless(function, &before, &behind) - &dropped;
            if needless.is_empty() {
                break (before, behind);
            }
            meetings.retain(|meeting| !needless.contains(meeting));
            dropped.extend(needless);
        };
        let mut made = BTreeMap::new();
        let mut summary = Summary::hope();
        let stack = |value: Value| value.in_stack().is_some();
        let mut escapes = false;
        for (block, state) in before.iter().enumerate() {
            for &p in &previous[block] {
                let differs = |(location, value)| stack(value) && state.get(location) != Some(value);
                escapes |= behind[p].locations().any(differs);
            }
            run(function, block, state.clone(), callee, blind, |instruction, state| {
                let operands = [instruction.rs1(), instruction.rs2()].map(|register| state.register(register));
                let mut after = state.clone();
                after.step(instruction);
                let result = instruction.writes().map(|rd| after.register(rd));
                if result == Some(Value::Result(instruction.pc)) {
                    made.insert(instruction.pc, (instruction, operands));
                }
                let kept = result.is_some_and(stack);
                escapes |= match instruction.opcode() {
                    0x03 | 0x63 => false,
                    0x23 => stack(operands[1]),
                    0x2f => instruction.reads().any(|register| stack(state.register(register))),
                    _ => instruction.reads().any(|register| stack(state.register(register))) && !kept,
                };
                let address = match instruction.opcode() {
                    0x23 => operands[0].plus(instruction.store_offset()),
                    0x2f => Some(operands[0]),
                    _ => None,
                };
                summary.writes_above |= address.and_then(Value::in_stack).is_some_and(|slot| slot >= 0);
            });
            let calls = matches!(function.blocks[block].last().flow(), Flow::Call { .. } | Flow::IndirectCall);
            if calls {
                let mut state = state.clone();
                function.blocks[block].instructions.iter().for_each(|&instruction| state.step(instruction));
                escapes |= (1..32).any(|register| register != SP && stack(state.register(register)));
                summary.writes_above |= callee(function.blocks[block].last()).writes_above;
            }
        }
        (Values { before, behind, made, summary }, escapes)
    }

    /// What returns keep.
    fn summarise(&mut self, function: &Function, tail: &dyn Fn(u32) -> Summary) {
        for (block, state) in self.behind.iter().enumerate() {
            for &way in &function.blocks[block].ways {
                let kept = Summary {
                    preserves: std::array::from_fn(|n| n == 0 || state.registers[n] == Value::Entry(n as u8, 0)),
                    writes_above: false,
                };
                let ending = match way {
                    Way::Return => kept,
                    Way::Tail(entry) => kept.and(&tail(entry)),
                    Way::Unknown => Summary::nothing(),
                    Way::To(_) | Way::End => continue,
                };
                self.summary = std::mem::replace(&mut self.summary, Summary::hope()).and(&ending);
            }
        }
    }
}

/// The states before and behind all blocks, with the `meetings` known so far and those found.
fn spread(
    function: &Function,
    callee: &dyn Fn(Instruction) -> Summary,
    blind: bool,
    meetings: &mut BTreeSet<(u32, Location)>,
) -> (Vec<State>, Vec<State>) {
    let count = function.blocks.len();
    let mut before: Vec<Option<State>> = vec![None; count];
    let mut behind: Vec<Option<State>> = vec![None; count];
    let mut left = BTreeSet::from([function.first]);
    while let Some(block) = left.pop_first() {
        let entered = (block == function.first).then(State::entry);
        let previous = function.graph.previous[block].iter();
        let states: Vec<&State> = previous.filter_map(|&p| behind[p].as_ref()).chain(&entered).collect();
        let state = meet(function.blocks[block].start(), &states, meetings);
        if before[block].as_ref() == Some(&state) {
            continue;
        }
        before[block] = Some(state.clone());
        let state = run(function, block, state, callee, blind, |_, _| {});
        if behind[block].as_ref() != Some(&state) {
            behind[block] = Some(state);
            left.extend(&function.graph.next[block]);
        }
    }
    let whole =
        |states: Vec<Option<State>>| states.into_iter().map(|s| s.expect("every block can be reached")).collect();
    (whole(before), whole(behind))
}

/// The meetings at which one value alone comes in, beside the meeting itself (Braun et al., CC 2013).
fn needless(function: &Function, before: &[State], behind: &[State]) -> BTreeSet<(u32, Location)> {
    let mut same: BTreeMap<Value, Value> = BTreeMap::new();
    let mut found = BTreeSet::new();
    loop {
        let count = found.len();
        for (block, state) in before.iter().enumerate() {
            let start = function.blocks[block].start();
            for (location, value) in state.locations() {
                if value != Value::Meeting(start, location) || found.contains(&(start, location)) {
                    continue;
                }
                let entered = (block == function.first).then(State::entry);
                let states = function.graph.previous[block].iter().map(|&p| &behind[p]).chain(&entered);
                let original = |mut value: Value| {
                    while let Some(&other) = same.get(&value) {
                        value = other;
                    }
                    value
                };
                let incoming: Option<BTreeSet<Value>> = states.map(|state| state.get(location).map(original)).collect();
                let Some(mut incoming) = incoming else { continue };
                incoming.remove(&value);
                if let (1, Some(one)) = (incoming.len(), incoming.pop_first()) {
                    same.insert(value, one);
                    found.insert((start, location));
                }
            }
        }
        if found.len() == count {
            return found;
        }
    }
}

/// The state behind a block; `see` sees every instruction with the state before it.
fn run(
    function: &Function,
    block: usize,
    mut state: State,
    callee: &dyn Fn(Instruction) -> Summary,
    blind: bool,
    mut see: impl FnMut(Instruction, &State),
) -> State {
    for &instruction in &function.blocks[block].instructions {
        see(instruction, &state);
        state.step(instruction);
        if blind {
            state.slots.retain(|_, value| SAVED.iter().any(|&register| *value == Value::Entry(register, 0)));
        }
    }
    let last = function.blocks[block].last();
    if let Flow::Call { .. } | Flow::IndirectCall = last.flow() {
        state.call(last.pc, &callee(last));
    }
    state
}

/// The state where states meet, at the start of a block. What has once differed is a value of its own for good, so that
/// the search ends.
fn meet(start: u32, states: &[&State], meetings: &mut BTreeSet<(u32, Location)>) -> State {
    let (first, others) = states.split_first().expect("a block is looked at when one before it has been");
    let mut state = State { registers: first.registers, slots: BTreeMap::new() };
    for (location, value) in first.locations() {
        let others: Option<Vec<Value>> = others.iter().map(|other| other.get(location)).collect();
        let Some(others) = others else { continue };
        let met = Value::Meeting(start, location);
        let differ = others.iter().any(|&other| other != value);
        let value = if meetings.contains(&(start, location)) || differ { met } else { value };
        if value == met {
            meetings.insert((start, location));
        }
        match location {
            Location::Register(number) => state.registers[number as usize] = value,
            Location::Slot(slot) => {
                state.slots.insert(slot, value);
            }
        }
    }
    state
}

#[cfg(test)]
mod tests;
