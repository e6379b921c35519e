//! Where indirect jumps and calls lead.
//!
//! Known are: an address that is a constant; a table of addresses in the program, at a constant plus an index; places
//! in the code at a constant plus an index, as in a table of jumps. What bounds the index is a comparison with a
//! constant somewhere in the function, the bits that it can have, or, of a table of addresses, that all are in the
//! function of the jump, if the symbols say how far that goes.

use super::cfg::Function;
use super::instruction::{Flow, Instruction};
use super::values::{Value, Values};
use crate::Program;
use std::collections::BTreeSet;

/// No table is larger.
const MOST: u32 = 1024;
/// Places in the code that a computed jump may lead to.
const MOST_PLACES: u32 = 64;

/// The targets of the jump or call that ends a block of a function; none if they are not known.
pub fn resolve(program: &Program, function: &Function, values: &Values, block: usize) -> Option<BTreeSet<u32>> {
    let mut state = values.before[block].clone();
    let (last, others) = function.blocks[block].instructions.split_last().expect("a block has an instruction");
    others.iter().for_each(|&instruction| state.step(instruction));
    let search = Search { program, function, values };
    let targets = search.addresses(last.pc, state.register(last.rs1()), last.immediate())?;
    let inside = |&target: &u32| program.word(target).is_some();
    (!targets.is_empty() && targets.iter().all(inside)).then_some(targets)
}

struct Search<'a> {
    program: &'a Program,
    function: &'a Function,
    values: &'a Values,
}

impl Search<'_> {
    fn addresses(&self, pc: u32, target: Value, offset: u32) -> Option<BTreeSet<u32>> {
        let jump = |base: u32| base.wrapping_add(offset) & !1;
        match target {
            Value::Constant(base) => Some(BTreeSet::from([jump(base)])),
            Value::Result(at) => {
                let (instruction, operands) = *self.values.made.get(&at)?;
                match (instruction.opcode(), instruction.funct3()) {
                    (0x03, 2) if offset == 0 => self.table(pc, operands[0], instruction.immediate()),
                    (0x33, 0) => {
                        let (base, index) = sum(instruction, operands)?;
                        Some(submasks(self.bits(index, 8))?.map(|index| jump(base.wrapping_add(index))).collect())
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The words of a table.
    fn table(&self, pc: u32, address: Value, offset: u32) -> Option<BTreeSet<u32>> {
        let Value::Result(at) = address else { return None };
        let (instruction, operands) = *self.values.made.get(&at)?;
        let (base, index) = sum(instruction, operands)?;
        let first = base.wrapping_add(offset);
        let symbol = self.program.symbols().iter().find(|s| s.function && s.contains(pc));
        let bound = self.bound(index);
        let count = bound.or(symbol.map(|_| MOST))?;
        let word = |k: u32| self.program.word(first.wrapping_add(4 * k));
        let inside = |target: &u32| match symbol.filter(|_| bound.is_none()) {
            Some(symbol) => symbol.contains(*target) && target.is_multiple_of(4),
            None => true,
        };
        Some((0..count).map_while(word).take_while(inside).collect())
    }

    /// Words of a table that an index in bytes can choose.
    fn bound(&self, index: Value) -> Option<u32> {
        let by_bits = self.bits(index, 8) / 4 + 1;
        let compared = match index {
            Value::Result(at) => self.values.made.get(&at).and_then(|(instruction, operands)| {
                let doubled_twice = instruction.word & 0xfff0_707f == 0x0020_1013;
                doubled_twice.then(|| self.compared(operands[0])).flatten()
            }),
            _ => None,
        };
        compared.into_iter().chain([by_bits]).min().filter(|&count| count <= MOST)
    }

    /// Values below the constant with which an index is compared.
    fn compared(&self, index: Value) -> Option<u32> {
        let counts = self.function.blocks.iter().zip(&self.values.before).filter_map(|(block, before)| {
            let last = block.last();
            let mut state = before.clone();
            let Flow::Branch { .. } = last.flow() else { return None };
            block.instructions.iter().for_each(|&instruction| state.step(instruction));
            match (last.funct3(), state.register(last.rs1()), state.register(last.rs2())) {
                (6 | 7, Value::Constant(greatest), other) if other == index => greatest.checked_add(1),
                (6 | 7, other, Value::Constant(count)) if other == index => Some(count),
                _ => None,
            }
        });
        counts.max()
    }

    /// The bits that may be 1 in a value.
    fn bits(&self, value: Value, depth: u32) -> u32 {
        let Value::Result(at) = value else {
            return if let Value::Constant(constant) = value { constant } else { u32::MAX };
        };
        let Some((instruction, operands)) = self.values.made.get(&at).filter(|_| depth > 0) else { return u32::MAX };
        let of = |operand: usize| self.bits(operands[operand], depth - 1);
        let shift = u32::from(instruction.rs2());
        match (instruction.opcode(), instruction.funct3(), instruction.word >> 25) {
            (0x13, 7, _) => of(0) & instruction.immediate(),
            (0x33, 7, 0) => of(0) & of(1),
            (0x13, 1, 0) => of(0) << shift,
            (0x13, 5, 0) => of(0) >> shift,
            (0x13, 2 | 3, _) | (0x33, 2 | 3, 0) => 1,
            (0x03, 4, _) => 0xff,
            (0x03, 5, _) => 0xffff,
            _ => u32::MAX,
        }
    }
}

/// A constant and what is added to it.
fn sum(instruction: Instruction, operands: [Value; 2]) -> Option<(u32, Value)> {
    match (instruction.opcode(), instruction.funct3(), instruction.word >> 25, operands) {
        (0x33, 0, 0, [Value::Constant(base), index] | [index, Value::Constant(base)]) => Some((base, index)),
        _ => None,
    }
}

/// All numbers with no other bits, if they are not too many.
fn submasks(mask: u32) -> Option<impl Iterator<Item = u32>> {
    if mask.count_ones() > MOST_PLACES.ilog2() {
        return None;
    }
    let mut next = Some(mask);
    Some(std::iter::from_fn(move || {
        let now = next?;
        next = (now > 0).then(|| (now - 1) & mask);
        Some(now)
    }))
}

/// Addresses of instructions that are in the program's data, or that its code computes: where an indirect call may lead
/// of which nothing is known. `functions` are the addresses of all functions, if symbols name them.
pub fn possible<'a>(
    program: &Program,
    code: impl Iterator<Item = (&'a Function, &'a Values)>,
    functions: Option<&BTreeSet<u32>>,
) -> BTreeSet<u32> {
    let mut seen = BTreeSet::new();
    let mut reached = BTreeSet::new();
    for (function, values) in code {
        for (block, before) in function.blocks.iter().zip(&values.before) {
            let mut state = before.clone();
            for &instruction in &block.instructions {
                reached.insert(instruction.pc);
                state.step(instruction);
                let computes = matches!(instruction.opcode(), 0x13 | 0x17 | 0x33 | 0x37);
                if let Some(Value::Constant(value)) =
                    instruction.writes().filter(|_| computes).map(|rd| state.register(rd))
                {
                    seen.insert(value);
                }
            }
        }
    }
    for segment in program.segments() {
        let words = segment.data.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]]));
        let data = words.enumerate().filter(|(k, _)| !reached.contains(&segment.address.wrapping_add(4 * *k as u32)));
        seen.extend(data.map(|(_, word)| word));
    }
    let may_be = |&address: &u32| match functions {
        Some(functions) => functions.contains(&address),
        None => program.word(address).is_some_and(crate::disassemble::is_instruction),
    };
    seen.into_iter().filter(may_be).collect()
}

#[cfg(test)]
mod tests;
