//! Tables: what depends on one register (or input) alone, computed once for each of its values.
//!
//! The decoder of a core is the typical case: much logic, all of it behind the register with the instruction word, and
//! the words of a loop come again and again. What the rest of the design takes of such a cone is kept in a table of
//! [`ENTRIES`] entries, each for one value of the register; where the entry in hand is for another value, the cone is
//! computed and the entry made anew. So nothing has to be told when a memory changes that the value came from.
//!
//! A table belongs to one function, not to the state: other functions need other results.

use super::layout::LINE;
use super::regions::cost;
use crate::flat::cells::Cells;
use crate::flat::{Flat, Id, Node, Op};
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// Entries of a table. A power of two: enough for the instructions of the loops that a program is in.
pub const ENTRIES: usize = 512;

/// The widest register with a table. The key of an entry, 64 bits, has one bit more, which tells it from an empty one.
const WIDEST: u32 = 32;

/// A register's table.
pub struct Table {
    /// The node that loads the register.
    pub register: Id,
    /// The nodes behind it that make the results, operands before users.
    pub cone: Vec<Id>,
    /// Those that others use, each with the offset of its value in an entry, in bytes. The key is at 0.
    pub results: Vec<(Id, u32)>,
    /// Where the table begins among all tables, in bytes.
    pub at: usize,
    /// Bytes of an entry: a power of two.
    pub stride: usize,
}

/// All tables of a function.
#[derive(Default)]
pub struct Tables {
    pub all: Vec<Table>,
    /// The size of all of them.
    pub bytes: usize,
}

/// What a node's value depends on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    /// It is a constant.
    Nothing,
    /// This node, which loads a cell of one lane, and nothing else.
    Register(Id),
    More,
}

impl Source {
    fn and(self, other: Source) -> Source {
        match (self, other) {
            (Source::Nothing, source) | (source, Source::Nothing) => source,
            (one, two) if one == two => one,
            _ => Source::More,
        }
    }
}

impl Tables {
    /// The tables that save at least `least` operations in each edge, if the register's values come again.
    pub fn new(flat: &Flat, cells: &Cells, least: u32) -> Tables {
        /// It is loaded.
        const COST_OF_RESULT: u32 = 1;
        let count = flat.nodes.len();
        let (sources, needed) = (sources(flat, cells), flat.needed());
        let mut is_result = vec![false; count];
        let actions = flat.actions.iter().flatten().chain(&flat.late);
        for id in actions.flat_map(|action| action.operands().into_iter().chain(action.guard)) {
            is_result[id.index()] = true;
        }
        for k in (0..count).rev().filter(|&k| needed[k]) {
            // An entry has no room for a vector: others make it themselves.
            let by_others = sources[k] == Source::More || is_vector(&flat.nodes[k]) && is_result[k];
            flat.nodes[k].args.iter().for_each(|arg| is_result[arg.index()] |= by_others);
        }
        let mut cones: BTreeMap<Id, Vec<Id>> = BTreeMap::new();
        for k in (0..count).filter(|&k| needed[k] && !flat.nodes[k].op.is_at_hand()) {
            if let Source::Register(register) = sources[k] {
                cones.entry(register).or_default().push(Id(k as u32));
            }
        }
        let mut tables = Tables::default();
        for (register, cone) in cones {
            // Bits of the register itself are as quickly had from there.
            let is_part = |node: &Node| matches!(node.op, Op::Slice(_)) && node.args[0] == register;
            let is_kept = |id: &Id| is_result[id.index()] && !is_vector(flat.node(*id)) && !is_part(flat.node(*id));
            let results: Vec<Id> = cone.iter().copied().filter(is_kept).collect();
            let by_others = |id: &&Id| is_result[id.index()] && !is_kept(id);
            let saved: u32 = cone.iter().filter(|id| !by_others(id)).map(|id| cost(flat.node(*id))).sum();
            if !results.is_empty() && saved >= least + COST_OF_RESULT * results.len() as u32 {
                tables.add(flat, register, wanted(flat, cone, &results), results);
            }
        }
        tables
    }

    fn add(&mut self, flat: &Flat, register: Id, cone: Vec<Id>, mut results: Vec<Id>) {
        // The wide ones first, so that each is aligned.
        results.sort_by_key(|id| (Reverse(bytes(flat.node(*id))), *id));
        let mut end = 8;
        let results = results
            .into_iter()
            .map(|id| {
                let offset = end;
                end += bytes(flat.node(id));
                (id, offset)
            })
            .collect();
        let stride = (end as usize).next_power_of_two();
        let at = self.bytes;
        self.bytes = (at + stride * ENTRIES).next_multiple_of(LINE);
        self.all.push(Table { register, cone, results, at, stride });
    }

    /// The netlist in which results are looked up; nobody needs the cones then.
    pub fn without_cones<'a>(&self, flat: &'a Flat) -> Cow<'a, Flat> {
        if self.all.is_empty() {
            return Cow::Borrowed(flat);
        }
        let mut flat = flat.clone();
        for (number, table) in self.all.iter().enumerate() {
            for &(id, offset) in &table.results {
                let node = &mut flat.nodes[id.index()];
                node.op = Op::Kept { table: number as u32, offset };
                node.args.clear();
            }
        }
        Cow::Owned(flat)
    }
}

/// Those of a cone that these results are made of.
fn wanted(flat: &Flat, cone: Vec<Id>, results: &[Id]) -> Vec<Id> {
    let mut wanted: BTreeSet<Id> = results.iter().copied().collect();
    for id in cone.iter().rev() {
        if wanted.contains(id) {
            wanted.extend(&flat.node(*id).args);
        }
    }
    cone.into_iter().filter(|id| wanted.contains(id)).collect()
}

fn is_vector(node: &Node) -> bool {
    node.lanes > 1 && node.width > 1
}

/// How many bits a result has: those of a node of one lane, or one of each lane.
pub fn bits(node: &Node) -> u32 {
    if node.lanes > 1 { node.lanes } else { node.width }
}

/// How many bytes it has in an entry.
pub fn bytes(node: &Node) -> u32 {
    match bits(node) {
        1 => 1,
        0..=32 => 4,
        _ => 8,
    }
}

fn sources(flat: &Flat, cells: &Cells) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::with_capacity(flat.nodes.len());
    for (k, node) in flat.nodes.iter().enumerate() {
        sources.push(match node.op {
            Op::Const(_) | Op::Consts(_) => Source::Nothing,
            Op::Cell { cell, .. } => {
                let shape = cells.shapes[cell as usize];
                let has_room = shape.lanes == 1 && (2..=WIDEST).contains(&shape.width);
                if has_room { Source::Register(Id(k as u32)) } else { Source::More }
            }
            Op::Read { .. } => Source::More,
            _ => match node.args.iter().map(|arg| sources[arg.index()]).fold(Source::Nothing, Source::and) {
                Source::Nothing => Source::More,
                source => source,
            },
        });
    }
    sources
}

#[cfg(all(test, feature = "fuzz"))]
mod tests {
    use super::*;
    use crate::checks::Checks;
    use crate::compiled::{Compiled, OptLevel};
    use crate::directory::Directory;
    use crate::engine::Engine;
    use crate::flat::Purpose;
    use crate::fuzz::{Limits, design, seeds};
    use crate::interpreter::Interpreter;
    use heddle_hdl::{Bits, prelude::*};
    use std::sync::Arc;

    const EDGE: Purpose = Purpose::Edge { reset: false, checks: Checks::All, record: false };

    fn tables(engine: &Compiled, directory: &Arc<Directory>) -> Tables {
        engine.plan.tables(&engine.plan.flatten(directory, EDGE).unwrap())
    }

    #[derive(Bundle, Clone, Copy)]
    struct In<T> {
        word: T,
        other: T,
    }
    #[derive(Bundle, Clone, Copy)]
    struct Out<T> {
        odd: T,
        wide: T,
    }

    /// A register of `width` bits with much behind it; what comes of it is kept in registers, with another's value.
    fn decoder(width: u32) -> Arc<Directory> {
        let design = module("decoder", In { word: width, other: 8 }, |m, i| {
            let kept = m.pipe("kept", i.word);
            let wide = kept.zext(64);
            let mixed = (0..20u32).fold(wide, |value, k| !(value * wide) ^ value.literal(k));
            let odd = mixed.parity() & i.other.bit(0);
            // Not a matter of the register alone.
            let words = m.memory("words", 8, 2);
            words.write(odd, i.other.slice(0, 2), i.other);
            let read = words.read(mixed.slice(9, 2));
            let low = m.pipe("low", mixed.slice(3, 8) + read);
            Out { odd: m.pipe("is_odd", odd), wide: m.pipe("mixed", cat(&[mixed, low])) }
        });
        Arc::new(Directory::new(&design.check().unwrap().netlist))
    }

    /// Values that come again, and values that share an entry.
    #[test]
    fn what_is_kept_is_what_would_be_computed() {
        for width in [2, 8, 9, 31, 32] {
            let directory = decoder(width);
            let mut engine = Compiled::new(&directory, 1, OptLevel::Tables).unwrap();
            let tables = tables(&engine, &directory);
            assert_eq!(tables.all.len(), 1, "{width} bits");
            assert!(tables.all[0].results.len() >= 2 && tables.all[0].stride >= 16, "{width} bits");
            let mut interpreter = Interpreter::new(&directory, 1).unwrap();
            let mut rng = fastrand::Rng::with_seed(u64::from(width));
            let few: Vec<u32> = (0..3).map(|_| rng.u32(..)).collect();
            for cycle in 0..3000 {
                let word = if rng.bool() { few[rng.usize(..3)] } else { rng.u32(..) };
                let other = rng.u8(..);
                for engine in [&mut engine as &mut dyn Engine, &mut interpreter] {
                    engine.poke(0, &Bits::from(word).truncate(width));
                    engine.poke(1, &Bits::from(other));
                    engine.step();
                    engine.settle();
                }
                for output in 0..2 {
                    assert_eq!(engine.peek(output), interpreter.peek(output), "{width} bits, cycle {cycle}");
                }
            }
        }
    }

    /// A register of one bit, or of more than a key has room for, has none; nor has one with little behind it.
    #[test]
    fn what_gains_nothing_has_no_table() {
        for width in [1, 33, 64] {
            let directory = decoder(width);
            let engine = Compiled::new(&directory, 1, OptLevel::Tables).unwrap();
            assert!(tables(&engine, &directory).all.is_empty(), "{width} bits");
        }
        let little = module("little", In { word: 8, other: 8 }, |m, i| {
            let kept = m.pipe("kept", i.word);
            Out { odd: kept.parity(), wide: m.pipe("twice", kept + kept) }
        });
        let directory = Arc::new(Directory::new(&little.check().unwrap().netlist));
        let engine = Compiled::new(&directory, 1, OptLevel::Tables).unwrap();
        assert!(tables(&engine, &directory).all.is_empty());
        let engine = Compiled::new(&decoder(32), 1, OptLevel::Lanes).unwrap();
        assert!(tables(&engine, &decoder(32)).all.is_empty(), "the level has none");
    }

    /// So comparing random designs compares tables, too.
    #[test]
    fn random_designs_have_tables() {
        let has_some = |seed: &u64| {
            let limits = if seed.is_multiple_of(2) { Limits::default() } else { Limits::lanes(1..=64) };
            let directory = Arc::new(Directory::new(&design(*seed, &limits)));
            let engine = Compiled::new(&directory, 1, OptLevel::Tables).unwrap();
            !tables(&engine, &directory).all.is_empty()
        };
        let some = seeds(60).filter(has_some).count();
        println!("{some} of 60");
        assert!(some >= 8 || std::env::var_os("HEDDLE_SEED").is_some(), "{some} of 60");
    }
}
