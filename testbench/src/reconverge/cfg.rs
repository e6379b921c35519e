//! Functions and their blocks, found by following the instructions from the entry points.
//!
//! A function begins at the program's entry, at the target of a call, or where the file's symbols say so. It has every
//! block that can be reached from there without a call and without passing the beginning of another function: a jump or
//! a branch there, or running into it, is a tail call. Code that two functions share belongs to both. Whatever follows
//! a call belongs to the caller if the function called can return. Data between instructions is never reached.

use super::graph::Graph;
use super::instruction::{Flow, Instruction};
use super::{MOST_BLOCKS, ReconvergeError};
use crate::Program;
use std::collections::{BTreeMap, BTreeSet};

/// Where indirect jumps and calls are known to lead.
pub type Targets = BTreeMap<u32, BTreeSet<u32>>;

/// A function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Address of its first instruction.
    pub entry: u32,
    /// In order of address.
    pub blocks: Vec<Block>,
    pub graph: Graph,
    /// The block at the entry.
    pub first: usize,
}

/// Instructions that are executed together; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    pub instructions: Vec<Instruction>,
    /// Where its last instruction leads. What follows a call comes first, the next block before a branch's target.
    pub ways: Vec<Way>,
}

/// Where a block leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the block that begins here.
    To(u32),
    /// Into the function that begins here, which returns in place of this one.
    Tail(u32),
    Return,
    /// Nobody knows where.
    Unknown,
    /// The thread ends.
    End,
}

impl Block {
    pub fn start(&self) -> u32 {
        self.instructions[0].pc
    }

    pub fn last(&self) -> Instruction {
        *self.instructions.last().expect("a block has an instruction")
    }
}

/// Where symbols say that functions begin.
pub fn named(program: &Program) -> impl Iterator<Item = u32> {
    let symbols = program.symbols().iter().filter(|symbol| symbol.function);
    symbols.map(|symbol| symbol.address).filter(|&pc| program.word(pc).is_some())
}

/// All functions of a program, by entry.
pub struct Functions<'a> {
    program: &'a Program,
    targets: &'a Targets,
    /// Where functions begin.
    entries: BTreeSet<u32>,
    /// The functions that can return.
    returning: BTreeSet<u32>,
    found: BTreeMap<u32, Function>,
}

impl<'a> Functions<'a> {
    /// `possible`: addresses that an indirect call may have for a target, though nothing says that functions begin
    /// there.
    pub fn find(
        program: &'a Program,
        targets: &'a Targets,
        possible: &BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, Function>, ReconvergeError> {
        let mut entries: BTreeSet<u32> = named(program).chain([program.entry()]).collect();
        let mut returning = BTreeSet::new();
        loop {
            let mut functions = Functions { program, targets, entries, returning, found: BTreeMap::new() };
            let (entries_before, returning_before) = (functions.entries.len(), functions.returning.len());
            functions.follow()?;
            if functions.entries.len() == entries_before && functions.returning.len() == returning_before {
                for &entry in possible {
                    // What is no function at all may lead anywhere.
                    if !functions.found.contains_key(&entry)
                        && let Ok(function) = functions.function(entry)
                    {
                        functions.found.insert(entry, function);
                    }
                }
                return Ok(functions.found);
            }
            (entries, returning) = (functions.entries, functions.returning);
        }
    }

    /// The functions at the present entries. Notes what they call, and whether they return.
    fn follow(&mut self) -> Result<(), ReconvergeError> {
        let mut blocks = 0;
        for entry in self.entries.clone() {
            let function = self.function(entry)?;
            blocks += function.blocks.len();
            if blocks > MOST_BLOCKS {
                return Err(ReconvergeError::Blocks);
            }
            for block in &function.blocks {
                match block.last().flow() {
                    Flow::Call { target } => {
                        self.entries.insert(target);
                    }
                    Flow::IndirectCall => self.entries.extend(self.targets.get(&block.last().pc).into_iter().flatten()),
                    // What follows is executed at another call depth.
                    Flow::Exchange => {
                        let behind = block.last().pc.wrapping_add(4);
                        self.entries.extend(self.program.word(behind).map(|_| behind));
                    }
                    _ => {}
                }
            }
            if function.graph.returns.contains(&true) {
                self.returning.insert(entry);
            }
            self.found.insert(entry, function);
        }
        Ok(())
    }

    fn function(&self, entry: u32) -> Result<Function, ReconvergeError> {
        let mut ways: BTreeMap<u32, (Instruction, Vec<Way>)> = BTreeMap::new();
        let mut starts = BTreeSet::from([entry]);
        let mut left = vec![entry];
        while let Some(pc) = left.pop() {
            let word = self.program.word(pc).expect("only addresses of the program are followed");
            if ways.contains_key(&pc) {
                continue;
            }
            let instruction = Instruction { pc, word };
            let next = self.ways(instruction, entry)?;
            let targets = next.iter().filter_map(|way| if let Way::To(pc) = way { Some(*pc) } else { None });
            left.extend(targets.clone());
            if instruction.flow() != Flow::Next {
                starts.extend(targets);
            }
            ways.insert(pc, (instruction, next));
        }
        Ok(self.blocks(entry, &starts, ways))
    }

    /// Where an instruction of the function at `entry` leads.
    fn ways(&self, instruction: Instruction, entry: u32) -> Result<Vec<Way>, ReconvergeError> {
        let pc = instruction.pc;
        let behind = pc.wrapping_add(4);
        let next = || match self.program.word(behind) {
            Some(_) => self.way(behind, entry),
            None => Way::End,
        };
        let direct = |target: u32| match self.program.word(target) {
            Some(_) => Ok(self.way(target, entry)),
            None => Err(ReconvergeError::Outside { pc, target }),
        };
        let after_call = |target: &u32| if self.returning.contains(target) { next() } else { Way::End };
        let known = self.targets.get(&pc);
        let mut ways = match instruction.flow() {
            Flow::Next => vec![next()],
            Flow::Branch { target } => vec![next(), direct(target)?],
            Flow::Jump { target } => vec![direct(target)?],
            Flow::Call { target } => {
                direct(target)?;
                vec![after_call(&target)]
            }
            Flow::IndirectCall => match known {
                Some(targets) => targets.iter().map(after_call).collect(),
                None => vec![next()],
            },
            Flow::IndirectJump => match known {
                Some(targets) => targets.iter().map(|&target| direct(target)).collect::<Result<_, _>>()?,
                None => vec![Way::Unknown],
            },
            Flow::Return => vec![Way::Return],
            Flow::Exchange => vec![Way::Unknown],
            Flow::End => vec![Way::End],
        };
        let mut seen = Vec::new();
        ways.retain(|way| {
            !seen.contains(way) && {
                seen.push(*way);
                true
            }
        });
        Ok(ways)
    }

    fn way(&self, target: u32, entry: u32) -> Way {
        if target != entry && self.entries.contains(&target) { Way::Tail(target) } else { Way::To(target) }
    }

    fn blocks(&self, entry: u32, starts: &BTreeSet<u32>, ways: BTreeMap<u32, (Instruction, Vec<Way>)>) -> Function {
        let mut blocks: Vec<Block> = Vec::new();
        for (pc, (instruction, next)) in ways {
            match blocks.last_mut().filter(|block| !starts.contains(&pc) && block.ways == [Way::To(pc)]) {
                Some(block) => {
                    block.instructions.push(instruction);
                    block.ways = next;
                }
                None => blocks.push(Block { instructions: vec![instruction], ways: next }),
            }
        }
        let number = |pc: u32| blocks.binary_search_by_key(&pc, Block::start).expect("a block begins at every target");
        let (mut all_next, mut all_return, mut all_exit) = (Vec::new(), Vec::new(), Vec::new());
        for block in &blocks {
            let mut next = Vec::new();
            let (mut returns, mut exits) = (false, false);
            for &way in &block.ways {
                match way {
                    Way::To(pc) => next.push(number(pc)),
                    Way::Tail(entry) if !self.returning.contains(&entry) => exits = true,
                    Way::Tail(_) | Way::Return | Way::Unknown => returns = true,
                    Way::End => exits = true,
                }
            }
            all_next.push(next);
            all_return.push(returns);
            all_exit.push(exits);
        }
        let first = number(entry);
        let graph = Graph::new(all_next, all_return, all_exit);
        Function { entry, blocks, graph, first }
    }
}

#[cfg(test)]
mod tests;
