//! The directory of a design: every instance and everything in it that can be seen from outside, with its path.
//!
//! A path is the names of the instances from the top down, then the name, joined by dots: `issue.scoreboard.pending`.
//! The top module's own name is not part of it. The copies of a replicated instance are `lane[0]`, `lane[1]`, …
//!
//! The place of an entry in its table is its number in the interface of the engines ([`crate::engine::Engine`]): all
//! engines on one design share one directory. Scopes and entries are in depth-first order, a scope before those inside
//! it, copy by copy; the entries of one scope are consecutive and in the order of the module's own lists.

use heddle_hdl::netlist::{Memory, Module, PropertyKind, ReadTiming, Register};
use std::collections::{HashMap, HashSet};
use std::ops::{Deref, Range};
use std::sync::Arc;

/// One module instance, or one copy of a replicated instance; scope 0 is the top.
pub struct Scope {
    /// Empty for the top.
    pub path: String,
    /// The last part of the path, such as `lane[3]`; the module's name for the top.
    pub name: String,
    /// What it is an instance of.
    pub module: Arc<Module>,
    /// The scope that this one is instantiated in.
    pub parent: Option<usize>,
    /// For each of the module's instances: the scopes of its copies (one for a plain instance).
    pub children: Vec<Vec<usize>>,
    /// Where this scope's entries are in the directory's tables. Registers, memories, properties and probes are in the
    /// order of the module's lists, so `registers.start + k` is register k of the module.
    pub signals: Range<usize>,
    /// In [`Directory::registers`].
    pub registers: Range<usize>,
    /// In [`Directory::memories`].
    pub memories: Range<usize>,
    /// In [`Directory::read_registers`].
    pub read_registers: Range<usize>,
    /// In [`Directory::probes`].
    pub probes: Range<usize>,
    /// In [`Directory::properties`].
    pub properties: Range<usize>,
}

/// One thing with a path.
#[derive(Clone, Debug)]
pub struct Entry {
    /// From the top down, joined by dots; unique in its table.
    pub path: String,
    /// In bits; of one word for a memory, 1 for a property.
    pub width: u32,
    /// The scope that it is in.
    pub scope: usize,
    /// The number in its list of the module: the node for a signal, the memory for a read register, otherwise the
    /// place in `registers`, `memories`, `probes`, `properties`, `inputs`, `outputs`.
    pub index: usize,
    /// The read port of a read register; 0 for all others.
    pub port: usize,
}

/// Entries by number, and by path.
#[derive(Default)]
pub struct Table {
    entries: Vec<Entry>,
    by_path: HashMap<String, usize>,
}

impl Table {
    /// The number of the entry with this path.
    pub fn find(&self, path: &str) -> Option<usize> {
        self.by_path.get(path).copied()
    }

    fn push(&mut self, entry: Entry) {
        self.by_path.insert(entry.path.clone(), self.entries.len());
        self.entries.push(entry);
    }
}

impl Deref for Table {
    type Target = [Entry];

    fn deref(&self) -> &[Entry] {
        &self.entries
    }
}

/// See the module's documentation.
pub struct Directory {
    /// The top module of the design.
    pub top: Arc<Module>,
    /// Every instance and copy, the top first.
    pub scopes: Vec<Scope>,
    /// The top module's ports, by their number.
    pub inputs: Table,
    /// Likewise; what [`crate::Engine::peek`] takes.
    pub outputs: Table,
    /// Ports of every scope and named nodes, each name once; a name that is a register's is not here.
    pub signals: Table,
    /// What [`crate::Engine::register`] takes.
    pub registers: Table,
    /// What [`crate::Engine::memory_read`] takes.
    pub memories: Table,
    /// The output registers of synchronous read ports: `<memory>.read<port>`.
    pub read_registers: Table,
    /// What [`crate::Engine::probe`] takes.
    pub probes: Table,
    /// Assertions, assumptions and covers: what [`crate::Engine::cover_hits`] takes.
    pub properties: Table,
}

impl Directory {
    /// Of a checked design: names are unique in each module, as `TypedModule::check` establishes.
    pub fn new(top: &Arc<Module>) -> Directory {
        let mut directory = Directory {
            top: top.clone(),
            scopes: Vec::new(),
            inputs: Table::default(),
            outputs: Table::default(),
            signals: Table::default(),
            registers: Table::default(),
            memories: Table::default(),
            read_registers: Table::default(),
            probes: Table::default(),
            properties: Table::default(),
        };
        for (ports, table) in [(&top.inputs, &mut directory.inputs), (&top.outputs, &mut directory.outputs)] {
            for (index, port) in ports.iter().enumerate() {
                table.push(Entry { path: port.name.clone(), width: port.width, scope: 0, index, port: 0 });
            }
        }
        directory.visit(top, top.name.clone(), String::new(), None);
        directory
    }

    /// The register that an entry of [`Directory::registers`] stands for.
    pub fn register(&self, register: usize) -> &Register {
        let entry = &self.registers[register];
        &self.scopes[entry.scope].module.registers[entry.index]
    }

    /// The memory that an entry of [`Directory::memories`] stands for.
    pub fn memory(&self, memory: usize) -> &Memory {
        let entry = &self.memories[memory];
        &self.scopes[entry.scope].module.memories[entry.index]
    }

    /// Whether property `property` is an assertion, an assumption or a cover.
    pub fn property_kind(&self, property: usize) -> PropertyKind {
        let entry = &self.properties[property];
        self.scopes[entry.scope].module.properties[entry.index].kind
    }

    /// Adds a scope and all below it; the recursion is as deep as the hierarchy.
    fn visit(&mut self, module: &Arc<Module>, name: String, path: String, parent: Option<usize>) -> usize {
        let scope = self.scopes.len();
        let at = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        let entry = |name: &str, width, index| Entry { path: at(name), width, scope, index, port: 0 };
        let starts = self.lengths();

        for (k, r) in module.registers.iter().enumerate() {
            self.registers.push(entry(&r.name, r.width, k));
        }
        for (k, m) in module.memories.iter().enumerate() {
            self.memories.push(entry(&m.name, m.width, k));
            for (port, read) in m.reads.iter().enumerate() {
                if matches!(read.timing, ReadTiming::Sync { .. }) {
                    self.read_registers.push(Entry { port, ..entry(&format!("{}.read{port}", m.name), m.width, k) });
                }
            }
        }
        let mut taken: HashSet<&str> = module.registers.iter().map(|r| r.name.as_str()).collect();
        let ports = module.inputs.iter().chain(&module.outputs).map(|p| (p.name.as_str(), p.width, p.node.index()));
        let named = module.nodes.iter().enumerate().filter_map(|(k, n)| Some((n.name.as_deref()?, n.width, k)));
        for (name, width, node) in ports.chain(named) {
            if taken.insert(name) {
                self.signals.push(entry(name, width, node));
            }
        }
        for (k, p) in module.probes.iter().enumerate() {
            self.probes.push(entry(&p.name, module.node(p.node).width, k));
        }
        for (k, p) in module.properties.iter().enumerate() {
            self.properties.push(entry(&p.name, 1, k));
        }

        let ends = self.lengths();
        let [signals, registers, memories, read_registers, probes, properties] =
            std::array::from_fn(|k| starts[k]..ends[k]);
        self.scopes.push(Scope {
            path: path.clone(),
            name,
            module: module.clone(),
            parent,
            children: Vec::new(),
            signals,
            registers,
            memories,
            read_registers,
            probes,
            properties,
        });
        for instance in &module.instances {
            let copies = match instance.replicas {
                None => vec![instance.name.clone()],
                Some(n) => (0..n).map(|k| format!("{}[{k}]", instance.name)).collect(),
            };
            let children = copies
                .into_iter()
                .map(|name| {
                    let path = at(&name);
                    self.visit(&instance.module, name, path, Some(scope))
                })
                .collect();
            self.scopes[scope].children.push(children);
        }
        scope
    }

    /// Lengths of the tables, in the order of [`Scope`]'s ranges.
    fn lengths(&self) -> [usize; 6] {
        [&self.signals, &self.registers, &self.memories, &self.read_registers, &self.probes, &self.properties]
            .map(|t| t.len())
    }
}

#[cfg(all(test, feature = "fuzz"))]
mod tests {
    use super::*;
    use crate::fuzz::{Limits, design};

    #[test]
    fn ranges_lead_from_a_scope_to_its_entries() {
        for seed in 0..40 {
            let d = Directory::new(&design(seed, &Limits::default()));
            for (number, scope) in d.scopes.iter().enumerate() {
                assert_eq!(scope.registers.len(), scope.module.registers.len());
                for (k, register) in scope.registers.clone().enumerate() {
                    let entry = &d.registers[register];
                    assert_eq!((entry.scope, entry.index), (number, k));
                    assert_eq!(d.registers.find(&entry.path), Some(register));
                    assert_eq!(d.register(register).name, scope.module.registers[k].name);
                }
                for (inst, copies) in scope.children.iter().enumerate() {
                    let instance = &scope.module.instances[inst];
                    assert_eq!(copies.len(), instance.copies() as usize);
                    for (copy, &child) in copies.iter().enumerate() {
                        let name = match instance.replicas {
                            Some(_) => format!("{}[{copy}]", instance.name),
                            None => instance.name.clone(),
                        };
                        assert_eq!(d.scopes[child].name, name);
                        assert_eq!(d.scopes[child].parent, Some(number));
                    }
                }
            }
        }
    }
}
