//! What an engine has reached, to be compared with what another one has.

use heddle_hdl::Bits;
use heddle_sim::Engine;
use heddle_sim::directory::{Directory, Table};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Everything that can be seen of a design.
pub struct State {
    /// Of the program.
    pub cycles: u64,
    outputs: Vec<Bits>,
    /// A hash of each memory's words.
    memories: Vec<u64>,
    /// Registers and read registers, of engines that show them.
    registers: Option<[Vec<Bits>; 2]>,
}

impl State {
    pub fn of(engine: &mut dyn Engine, cycles: u64, registers: bool) -> State {
        engine.settle();
        let engine = &*engine;
        let d = engine.directory();
        let memory = |memory: usize| {
            let mut hasher = DefaultHasher::new();
            (0..1 << d.memory(memory).address_width).for_each(|at| engine.memory_read(memory, at).hash(&mut hasher));
            hasher.finish()
        };
        State {
            cycles,
            outputs: (0..d.outputs.len()).map(|k| engine.peek(k)).collect(),
            memories: (0..d.memories.len()).map(memory).collect(),
            registers: registers.then(|| {
                let registers = (0..d.registers.len()).map(|k| engine.register(k)).collect();
                [registers, (0..d.read_registers.len()).map(|k| engine.read_register(k)).collect()]
            }),
        }
    }

    /// The first that is not the same in both, as `memory \`memory.main.bank[3].words\``.
    pub fn difference(&self, other: &State, d: &Directory) -> Option<String> {
        if self.cycles != other.cycles {
            return Some(format!("cycles: {} and {}", self.cycles, other.cycles));
        }
        let unequal = first(&d.outputs, &self.outputs, &other.outputs).map(|path| format!("output `{path}`"));
        let unequal = unequal
            .or_else(|| first(&d.memories, &self.memories, &other.memories).map(|path| format!("memory `{path}`")));
        unequal.or_else(|| {
            let (left, right) = self.registers.as_ref().zip(other.registers.as_ref())?;
            let path = first(&d.registers, &left[0], &right[0]);
            let path = path.or_else(|| first(&d.read_registers, &left[1], &right[1]));
            path.map(|path| format!("register `{path}`"))
        })
    }
}

/// The path of the first entry whose values differ.
fn first<'a, T: PartialEq>(table: &'a Table, left: &[T], right: &[T]) -> Option<&'a str> {
    let at = left.iter().zip(right).position(|(left, right)| left != right)?;
    Some(&table[at].path)
}
