//! What stacks must know of a program's branches: reconvergence pcs, likely-convergence points, uniform and
//! interleavable branches. See `docs/reference/reconvergence.md`.
//!
//! | file | what it finds |
//! |---|---|
//! | `instruction.rs` | where an instruction leads |
//! | `cfg.rs` | functions and their blocks |
//! | `values.rs` | which values registers and stack slots hold |
//! | `targets.rs` | where indirect jumps and calls lead |
//! | `graph.rs`, `postdominators.rs` | immediate post-dominators |
//! | `likely.rs` | likely-convergence points |
//! | `uniform.rs` | which branches all threads take alike |
//!
//! Values tell where indirect jumps lead, and those which blocks there are: the first four go round until nothing is
//! new.

mod cfg;
pub(crate) mod graph;
pub mod instruction;
mod likely;
pub(crate) mod postdominators;
mod targets;
mod uniform;
mod values;

use crate::Program;
use cfg::{Function, Functions, Targets, Way};
use heddle_hdl::Bits;
use heddle_simt::reconvergence::{self, Meet};
use heddle_simt::{Replay, Shape};
use instruction::{Flow, Instruction};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use thiserror::Error;
use values::{Summary, Values};

/// Where the threads that diverge at an instruction meet again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reconvergence {
    /// At this address, at the call depth of the instruction.
    At(u32),
    /// Behind the return of the function: at a call depth one less.
    Return,
}

/// What kind of control-flow instruction it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Conditional.
    Branch,
    /// Direct, within the function.
    Jump,
    /// Direct, to another function that returns in place of this one.
    TailCall,
    /// Direct.
    Call,
    /// `jalr` without link registers.
    IndirectJump,
    /// `jalr` into a link register.
    IndirectCall,
    /// `jalr` to a link register.
    Return,
    /// `jalr` to one link register and into the other.
    Exchange,
}

/// A control-flow instruction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Branch {
    /// Its address.
    pub pc: u32,
    /// What it is.
    pub kind: Kind,
    /// Entry of the function it is in; of the first, if several share it.
    pub function: u32,
    /// Where it leads within its function, in order: pc + 4 of what is not a jump, its known targets. Calls lead to pc
    /// + 4.
    pub next: Vec<u32>,
    /// Where its threads reconverge.
    pub rpc: Reconvergence,
    /// All threads of a block that come to it at one visit take it the same way.
    pub uniform: bool,
    /// Where the threads that diverge are likely to meet before the RPC.
    pub likely: Option<u32>,
    /// Threads part, and there are instructions on both sides before the RPC.
    pub interleavable: bool,
}

/// What the hardware reads of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SideEntry {
    /// Where threads that diverge here meet again.
    pub rpc: Reconvergence,
    /// They do not part.
    pub uniform: bool,
    /// The likely-convergence point.
    pub likely: Option<u32>,
}

/// Instructions that are executed together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Address of the first instruction.
    pub start: u32,
    /// Address behind the last.
    pub end: u32,
    /// The blocks of the function that may follow, in order.
    pub next: Vec<u32>,
    /// Whether a thread may leave the function behind it, and go on.
    pub returns: bool,
    /// Whether a thread may end behind it.
    pub exits: bool,
}

/// A function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionBlocks {
    /// Address of its first instruction.
    pub entry: u32,
    /// In order of address.
    pub blocks: Vec<Block>,
}

/// Everything found out about a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Analysis {
    /// In order of address.
    pub functions: Vec<FunctionBlocks>,
    /// Control-flow instructions that can be reached, in order of address.
    pub branches: Vec<Branch>,
    /// Indirect jumps and calls that lead nobody knows where, in order of address.
    pub unknown: Vec<u32>,
    /// The functions that an instruction calls, or jumps to in place of returning; of what is unknown, none.
    #[serde(skip)]
    pub callees: BTreeMap<u32, BTreeSet<u32>>,
    /// Loads, stores and atomics of which threads of a block that come to them at one visit may have different
    /// addresses.
    #[serde(skip)]
    pub scattered: BTreeSet<u32>,
    /// The program's words.
    #[serde(skip)]
    words: Vec<u32>,
}

/// Why a program is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum ReconvergeError {
    #[error("the instruction at {pc:#010x} leads to {target:#010x}, where the program has no instruction")]
    Outside { pc: u32, target: u32 },
    #[error("the program ends at {end:#010x}: the analysis takes programs of at most {} bytes", MOST_BYTES)]
    TooLarge { end: u32 },
    #[error("the program's functions have more than {MOST_BLOCKS} blocks, the most that the analysis takes")]
    Blocks,
}

/// Bytes of the largest program that is analysed, and blocks of all its functions.
const MOST_BYTES: u32 = 1 << 20;
const MOST_BLOCKS: usize = 1 << 14;

/// Analyses a program.
pub fn analyse(program: &Program) -> Result<Analysis, ReconvergeError> {
    if program.program_end() > MOST_BYTES {
        return Err(ReconvergeError::TooLarge { end: program.program_end() });
    }
    let code = Code::of(program)?;
    let vary = uniform::varying(&code);
    let mut branches: BTreeMap<u32, Branch> = BTreeMap::new();
    for part in code.parts.values() {
        for block in 0..part.function.blocks.len() {
            let Some(branch) = part.branch(block, &vary.branches) else { continue };
            // Functions that share code see the same ways ahead, unless one of them begins there.
            let one = branches.entry(branch.pc).or_insert_with(|| branch.clone());
            if one.rpc != branch.rpc {
                one.rpc = Reconvergence::Return;
            }
            one.likely = one.likely.filter(|&likely| branch.likely == Some(likely));
            one.interleavable |= branch.interleavable;
        }
    }
    let words = (0..program.program_end()).step_by(4).map(|pc| program.word(pc).expect("it is in the program"));
    let mut callees: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
    for block in code.parts.values().flat_map(|part| &part.function.blocks) {
        let last = block.last();
        let mut called = code.callees(last);
        called.extend(block.ways.iter().filter_map(|way| if let Way::Tail(entry) = way { Some(*entry) } else { None }));
        if !called.is_empty() {
            callees.entry(last.pc).or_default().extend(called);
        }
    }
    Ok(Analysis {
        callees,
        functions: code.parts.values().map(Part::blocks).collect(),
        branches: branches.into_values().collect(),
        unknown: code.unknown.into_iter().collect(),
        scattered: vary.accesses,
        words: words.collect(),
    })
}

impl Analysis {
    /// The control-flow instruction at an address.
    pub fn branch(&self, pc: u32) -> Option<&Branch> {
        self.branches.binary_search_by_key(&pc, |branch| branch.pc).ok().map(|at| &self.branches[at])
    }

    /// An entry for each word of the program that is a control-flow instruction. What no thread is seen to reach has
    /// what is right whatever it is: a call's threads reconverge behind it, others behind the return.
    pub fn side_table(&self) -> Vec<Option<SideEntry>> {
        let entry = |(number, &word): (usize, &u32)| {
            let instruction = Instruction { pc: 4 * number as u32, word };
            match self.branch(instruction.pc) {
                Some(&Branch { rpc, uniform, likely, .. }) => Some(SideEntry { rpc, uniform, likely }),
                None if matches!(instruction.flow(), Flow::Next | Flow::End) => None,
                None => Some(SideEntry { rpc: unreached(instruction), uniform: false, likely: None }),
            }
        };
        self.words.iter().enumerate().map(entry).collect()
    }

    /// The side table of a core that the program fits, from its first instruction on. What follows the program is never
    /// read with an outcome.
    pub fn side_image(&self, shape: &Shape) -> Vec<Bits> {
        let number = |pc: u32| pc / 4;
        let encode = |entry: Option<SideEntry>| {
            let none = SideEntry { rpc: Reconvergence::Return, uniform: true, likely: None };
            let SideEntry { rpc, uniform, likely } = entry.unwrap_or(none);
            let meet = match rpc {
                Reconvergence::At(pc) => Meet::At(number(pc)),
                Reconvergence::Return => Meet::Return,
            };
            reconvergence::Reconvergence::new(meet, uniform, likely.map(number)).encode(shape)
        };
        let mut table = self.side_table();
        if shape.replay == Replay::Split {
            self.add_accesses(&mut table);
        }
        table.into_iter().map(encode).collect()
    }

    /// Entries for accesses to memory, whose threads may diverge too: they meet at the end of their block, or at the
    /// control-flow instruction that is its last. (`dual-path-execution.txt` §7.2)
    fn add_accesses(&self, table: &mut [Option<SideEntry>]) {
        for block in self.functions.iter().flat_map(|function| &function.blocks) {
            let last = block.end - 4;
            let end = if table[last as usize / 4].is_some() { last } else { block.end };
            for pc in (block.start..end).step_by(4) {
                let rpc = Reconvergence::At(end);
                table[pc as usize / 4].get_or_insert(SideEntry { rpc, uniform: false, likely: None });
            }
        }
    }
}

fn unreached(instruction: Instruction) -> Reconvergence {
    match instruction.flow() {
        Flow::Call { .. } | Flow::IndirectCall => Reconvergence::At(instruction.pc.wrapping_add(4)),
        _ => Reconvergence::Return,
    }
}

/// All functions, and what is known of each.
struct Code<'a> {
    program: &'a Program,
    parts: BTreeMap<u32, Part>,
    targets: Targets,
    /// Targets of the calls whose targets are not known.
    possible: BTreeSet<u32>,
    /// Indirect jumps and calls whose targets are not known.
    unknown: BTreeSet<u32>,
}

/// A function and what is known of it.
struct Part {
    function: Function,
    values: Values,
    /// Immediate post-dominator of each block.
    behind: Vec<Option<usize>>,
    /// Likely-convergence block of each block's branch.
    likely: Vec<Option<usize>>,
}

impl<'a> Code<'a> {
    fn of(program: &'a Program) -> Result<Code<'a>, ReconvergeError> {
        let (mut targets, mut possible, mut unknown) = (Targets::new(), BTreeSet::new(), BTreeSet::new());
        loop {
            let functions = Functions::find(program, &targets, &possible)?;
            let values = values_of(&functions, &targets, &possible);
            let parts = functions
                .into_iter()
                .zip(values)
                .map(|((entry, function), values)| (entry, Part::of(function, values)));
            let code = Code { program, parts: parts.collect(), targets, possible, unknown };
            let (more_targets, more_unknown) = code.resolve();
            let more_possible = code.possible_targets(&more_unknown);
            if (&more_targets, &more_possible, &more_unknown) == (&code.targets, &code.possible, &code.unknown) {
                return Ok(code);
            }
            (targets, possible, unknown) = (more_targets, more_possible, more_unknown);
        }
    }

    /// Known targets and what has none. What has had none once has none for good, so that the search ends.
    fn resolve(&self) -> (Targets, BTreeSet<u32>) {
        let (mut targets, mut unknown) = (self.targets.clone(), self.unknown.clone());
        for part in self.parts.values() {
            for (block, of) in part.function.blocks.iter().enumerate() {
                let last = of.last();
                let indirect = matches!(last.flow(), Flow::IndirectJump | Flow::IndirectCall);
                if !indirect || unknown.contains(&last.pc) {
                    unknown.extend((last.flow() == Flow::Exchange).then_some(last.pc));
                    continue;
                }
                match targets::resolve(self.program, &part.function, &part.values, block) {
                    Some(found) => targets.entry(last.pc).or_default().extend(found),
                    None => {
                        targets.remove(&last.pc);
                        unknown.insert(last.pc);
                    }
                }
            }
        }
        (targets, unknown)
    }

    fn possible_targets(&self, unknown: &BTreeSet<u32>) -> BTreeSet<u32> {
        let calls = self.parts.values().flat_map(|part| &part.function.blocks).map(cfg::Block::last);
        let mut calls = calls.filter(|last| last.flow() == Flow::IndirectCall && unknown.contains(&last.pc));
        if calls.next().is_none() {
            return self.possible.clone();
        }
        let named = cfg::named(self.program).collect::<BTreeSet<u32>>();
        let code = self.parts.values().map(|part| (&part.function, &part.values));
        let more = targets::possible(self.program, code, Some(&named).filter(|named| !named.is_empty()));
        &more | &self.possible
    }

    /// The functions that an instruction may call.
    fn callees(&self, call: Instruction) -> BTreeSet<u32> {
        callees(call, &self.targets, &self.possible).filter(|entry| self.parts.contains_key(entry)).collect()
    }

    /// Whether there may be code, and ways into what there is, that nothing shows.
    fn is_open(&self) -> bool {
        let dark = |pc: &u32| {
            let call = Instruction { pc: *pc, word: self.program.word(*pc).expect("an instruction is a word") };
            call.flow() != Flow::IndirectCall || self.callees(call).is_empty()
        };
        self.unknown.iter().any(dark)
    }
}

fn callees(call: Instruction, targets: &Targets, possible: &BTreeSet<u32>) -> impl Iterator<Item = u32> {
    let known = match call.flow() {
        Flow::Call { target } => BTreeSet::from([target]),
        Flow::IndirectCall => targets.get(&call.pc).unwrap_or(possible).clone(),
        _ => BTreeSet::new(),
    };
    known.into_iter()
}

/// The values of all functions, in order of their entries. Each is hoped to keep all registers until it turns out not
/// to.
fn values_of(functions: &BTreeMap<u32, Function>, targets: &Targets, possible: &BTreeSet<u32>) -> Vec<Values> {
    let mut summaries: BTreeMap<u32, Summary> = functions.keys().map(|&entry| (entry, Summary::hope())).collect();
    loop {
        let of = |entry: u32| summaries[&entry].clone();
        let callee = |call: Instruction| {
            let found = callees(call, targets, possible).filter(|entry| functions.contains_key(entry));
            found.map(of).reduce(|all, one| all.and(&one)).unwrap_or(Summary::nothing())
        };
        let values: Vec<Values> = functions.values().map(|function| Values::of(function, &callee, &of)).collect();
        let more: BTreeMap<u32, Summary> =
            functions.keys().zip(&values).map(|(&entry, values)| (entry, of(entry).and(&values.summary))).collect();
        if more == summaries {
            return values;
        }
        summaries = more;
    }
}

impl Part {
    fn of(function: Function, values: Values) -> Part {
        let graph = &function.graph;
        let behind = postdominators::immediate(graph);
        let parts =
            |block: usize| matches!(function.blocks[block].last().flow(), Flow::Branch { .. } | Flow::IndirectJump);
        let likely = likely::points(graph, &behind, parts);
        Part { likely, behind, function, values }
    }

    /// The block that an instruction is in.
    fn block_of(&self, pc: u32) -> usize {
        self.function.blocks.partition_point(|block| block.start() <= pc) - 1
    }

    fn blocks(&self) -> FunctionBlocks {
        let start = |block: usize| self.function.blocks[block].start();
        let graph = &self.function.graph;
        let blocks = self.function.blocks.iter().enumerate().map(|(number, block)| Block {
            start: block.start(),
            end: block.last().pc + 4,
            next: graph.next[number].iter().map(|&next| start(next)).collect(),
            returns: graph.returns[number],
            exits: graph.exits[number],
        });
        FunctionBlocks { entry: self.function.entry, blocks: blocks.collect() }
    }

    /// The control-flow instruction that ends a block, if one does.
    fn branch(&self, block: usize, varying: &BTreeSet<u32>) -> Option<Branch> {
        let last = self.function.blocks[block].last();
        let ways = &self.function.blocks[block].ways;
        let kind = match last.flow() {
            Flow::Next | Flow::End => return None,
            Flow::Branch { .. } => Kind::Branch,
            Flow::Jump { .. } if matches!(ways[..], [Way::Tail(_)]) => Kind::TailCall,
            Flow::Jump { .. } => Kind::Jump,
            Flow::Call { .. } => Kind::Call,
            Flow::IndirectJump => Kind::IndirectJump,
            Flow::IndirectCall => Kind::IndirectCall,
            Flow::Return => Kind::Return,
            Flow::Exchange => Kind::Exchange,
        };
        let start = |block: usize| self.function.blocks[block].start();
        let rpc = match kind {
            Kind::Call | Kind::IndirectCall => unreached(last),
            _ => self.behind[block].map_or(Reconvergence::Return, |behind| Reconvergence::At(start(behind))),
        };
        let uniform = !varying.contains(&last.pc);
        let parts = matches!(kind, Kind::Branch | Kind::IndirectJump) && !uniform;
        let sides = ways.iter().filter(|&&way| match (way, rpc) {
            (Way::To(pc) | Way::Tail(pc), Reconvergence::At(rpc)) => pc != rpc,
            _ => true,
        });
        Some(Branch {
            pc: last.pc,
            kind,
            function: self.function.entry,
            next: ways
                .iter()
                .filter_map(|way| if let Way::To(pc) | Way::Tail(pc) = way { Some(*pc) } else { None })
                .collect(),
            rpc,
            uniform,
            likely: self.likely[block].filter(|_| parts).map(start),
            interleavable: parts && (sides.count() > 1 || ways.contains(&Way::Unknown))
                || kind == Kind::IndirectCall && !uniform,
        })
    }
}

#[cfg(test)]
mod tests;
