//! The interpreter: slow and obviously right, the oracle for the other engines.
//!
//! It keeps one value for each unit of [`order`](heddle_hdl::order) and computes all of them, one after the other, with
//! [`eval`]. It shares nothing with the compiled engine's flattening.

use crate::directory::Directory;
use crate::engine::{Engine, Failure};
use crate::init;
use heddle_hdl::Bits;
use heddle_hdl::eval::{concat, eval};
use heddle_hdl::netlist::{Collision, Memory, Module, NodeId, Op, PropertyKind, ReadTiming, WritePort};
use heddle_hdl::order::{Loop, Order, Piece, Unit, moves_bits, order};
use std::collections::HashMap;
use std::sync::Arc;

/// A design as its netlist says, value by value with [`heddle_hdl::eval`]: slow, and what every other engine is held
/// against.
pub struct Interpreter {
    directory: Arc<Directory>,
    order: Order,
    seed: u64,
    /// The value of each unit of the order, as of the last settle.
    values: Vec<Bits>,
    inputs: Vec<Bits>,
    registers: Vec<Bits>,
    read_registers: Vec<Bits>,
    /// The words of each memory that have been written; the others have their start values.
    memories: Vec<HashMap<u64, Bits>>,
    reset: bool,
    settled: bool,
    cycle: u64,
    failures: Vec<Failure>,
    cover_hits: Vec<u64>,
}

/// The operands of one unit after the other: values and widths.
#[derive(Default)]
struct Operands {
    args: Vec<Bits>,
    widths: Vec<u32>,
}

impl Interpreter {
    /// At its start with `seed`. The directory's top must have no width errors and nothing undriven, as
    /// `TypedModule::check` establishes.
    pub fn new(directory: &Arc<Directory>, seed: u64) -> Result<Interpreter, Loop> {
        let order = order(&directory.top)?;
        let mut interpreter = Interpreter {
            directory: directory.clone(),
            values: vec![Bits::ZERO; order.units.len()],
            order,
            seed,
            inputs: Vec::new(),
            registers: Vec::new(),
            read_registers: Vec::new(),
            memories: Vec::new(),
            reset: false,
            settled: false,
            cycle: 0,
            failures: Vec::new(),
            cover_hits: Vec::new(),
        };
        interpreter.start(seed);
        Ok(interpreter)
    }

    fn module(&self, scope: usize) -> &Module {
        &self.directory.scopes[scope].module
    }

    /// The settled value of a node.
    fn value(&self, scope: usize, node: NodeId) -> &Bits {
        &self.values[self.order.unit(scope, node)]
    }

    fn is_on(&self, scope: usize, node: NodeId) -> bool {
        !self.value(scope, node).is_zero()
    }

    fn piece(&self, piece: &Piece) -> Bits {
        self.values[piece.unit as usize].extract(piece.low, piece.width)
    }

    /// The value of a unit from the state and the units before it. `operands` is room for its operands.
    fn compute(&self, unit: &Unit, operands: &mut Operands) -> Bits {
        let scope = unit.scope as usize;
        let place = &self.directory.scopes[scope];
        let node = place.module.node(unit.node);
        let Operands { args, widths } = operands;
        args.clear();
        args.extend(unit.args.iter().map(|piece| self.piece(piece)));
        widths.clear();
        widths.extend(unit.args.iter().map(|piece| piece.width));
        match node.op {
            _ if moves_bits(&node.op, scope == 0) => concat(args.iter().zip(widths.iter().copied())),
            Op::Input(port) => self.inputs[port as usize].clone(),
            Op::Reg(register) => self.registers[place.registers.start + register as usize].clone(),
            Op::MemRead { mem, port } => match args.first() {
                Some(address) => self.word(place.memories.start + mem as usize, address.low_u64()),
                None => self.read_registers[self.read_register_of(scope, mem as usize, port as usize)].clone(),
            },
            _ => eval(&node.op, node.width, args.as_slice(), widths),
        }
    }

    fn read_register_of(&self, scope: usize, memory: usize, port: usize) -> usize {
        let range = self.directory.scopes[scope].read_registers.clone();
        let is_it = |r: &usize| {
            let entry = &self.directory.read_registers[*r];
            entry.index == memory && entry.port == port
        };
        range.into_iter().find(is_it).expect("every synchronous read port has a read register")
    }

    /// A word of a memory as it is now.
    fn word(&self, memory: usize, address: u64) -> Bits {
        match self.memories[memory].get(&address) {
            Some(word) => word.clone(),
            None => {
                let entry = &self.directory.memories[memory];
                match &self.directory.memory(memory).init {
                    Some(init) => init.get(address as usize).cloned().unwrap_or(Bits::ZERO),
                    None => init::word(self.seed, init::path_hash(&entry.path), address, entry.width),
                }
            }
        }
    }

    fn check_properties(&mut self) {
        for k in 0..self.directory.properties.len() {
            let entry = &self.directory.properties[k];
            let property = &self.module(entry.scope).properties[entry.index];
            let on = self.is_on(entry.scope, property.node);
            match property.kind {
                PropertyKind::Cover => self.cover_hits[k] += on as u64,
                PropertyKind::Assert | PropertyKind::Assume => {
                    if !on && self.failures.iter().all(|f| f.property != k) {
                        self.failures.push(Failure { property: k, cycle: self.cycle });
                    }
                }
            }
        }
    }

    fn next_register(&self, register: usize) -> Bits {
        let scope = self.directory.registers[register].scope;
        let r = self.directory.register(register);
        match &r.reset {
            Some(value) if self.reset => value.clone(),
            _ if r.enable.is_none_or(|enable| self.is_on(scope, enable)) => self.value(scope, r.next).clone(),
            _ => self.registers[register].clone(),
        }
    }

    /// What a read register takes at this edge from the memories as they are now, if `collision` is its mode.
    fn next_read(&self, read_register: usize, when: fn(Collision) -> bool) -> Option<Bits> {
        let entry = &self.directory.read_registers[read_register];
        let read = &self.module(entry.scope).memories[entry.index].reads[entry.port];
        let ReadTiming::Sync { enable, collision, or_zero } = read.timing else {
            unreachable!("{} is not registered", entry.path)
        };
        let enabled = enable.is_none_or(|enable| self.is_on(entry.scope, enable));
        if !enabled && or_zero {
            return when(collision).then_some(Bits::ZERO);
        }
        (enabled && when(collision)).then(|| {
            let memory = self.directory.scopes[entry.scope].memories.start + entry.index;
            self.word(memory, self.value(entry.scope, read.address).low_u64())
        })
    }

    fn write_port(&mut self, memory: usize, description: &Memory, port: &WritePort) {
        let scope = self.directory.memories[memory].scope;
        let granules = self.module(scope).node(port.enable).width;
        if !self.is_on(scope, port.enable) {
            return;
        }
        let size = description.width / granules;
        let address = self.value(scope, port.address).low_u64();
        let (old, new) = (self.word(memory, address), self.value(scope, port.data));
        let enable = self.value(scope, port.enable);
        let parts: Vec<Bits> =
            (0..granules).map(|g| if enable.bit(g) { new } else { &old }.extract(g * size, size)).collect();
        let word = concat(parts.iter().map(|part| (part, size)));
        self.memories[memory].insert(address, word);
    }

    /// Takes the reads that `when` selects.
    fn read(&mut self, when: fn(Collision) -> bool) {
        for k in 0..self.read_registers.len() {
            if let Some(word) = self.next_read(k, when) {
                self.read_registers[k] = word;
            }
        }
    }
}

impl Engine for Interpreter {
    fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    fn start(&mut self, seed: u64) {
        let d = &self.directory;
        let random = |path: &str, width| init::word(seed, init::path_hash(path), 0, width);
        self.seed = seed;
        self.inputs = vec![Bits::ZERO; d.inputs.len()];
        self.registers = d.registers.iter().map(|r| random(&r.path, r.width)).collect();
        self.read_registers = d.read_registers.iter().map(|r| random(&r.path, r.width)).collect();
        self.memories = vec![HashMap::new(); d.memories.len()];
        self.cover_hits = vec![0; d.properties.len()];
        self.failures.clear();
        self.cycle = 0;
        self.reset = false;
        self.settled = false;
    }

    fn poke(&mut self, input: usize, value: &Bits) {
        self.inputs[input] = value.truncate(self.directory.inputs[input].width);
        self.settled = false;
    }

    fn poke_u64(&mut self, input: usize, value: u64) {
        self.poke(input, &Bits::from(value));
    }

    fn set_reset(&mut self, on: bool) {
        self.reset = on;
    }

    fn settle(&mut self) {
        if !self.settled {
            let mut operands = Operands::default();
            for k in 0..self.order.units.len() {
                self.values[k] = self.compute(&self.order.units[k], &mut operands);
            }
            self.settled = true;
        }
    }

    fn peek(&self, output: usize) -> Bits {
        self.value(0, self.directory.top.outputs[output].node).clone()
    }

    fn peek_u64(&self, output: usize) -> u64 {
        self.peek(output).low_u64()
    }

    fn probe(&self, probe: usize) -> Bits {
        let entry = &self.directory.probes[probe];
        self.value(entry.scope, self.module(entry.scope).probes[entry.index].node).clone()
    }

    fn show_signals(&mut self) -> bool {
        true
    }

    fn signal(&self, signal: usize) -> Option<Bits> {
        let entry = &self.directory.signals[signal];
        Some(self.value(entry.scope, NodeId(entry.index as u32)).clone())
    }

    fn register(&self, register: usize) -> Bits {
        self.registers[register].clone()
    }

    fn read_register(&self, read_register: usize) -> Bits {
        self.read_registers[read_register].clone()
    }

    fn memory_read(&self, memory: usize, address: u64) -> Bits {
        assert!(address >> self.directory.memory(memory).address_width == 0, "address {address:#x} is out of range");
        self.word(memory, address)
    }

    fn memory_write(&mut self, memory: usize, address: u64, value: &Bits) {
        let description = self.directory.memory(memory);
        assert!(address >> description.address_width == 0, "address {address:#x} is out of range");
        self.memories[memory].insert(address, value.truncate(description.width));
        self.settled = false;
    }

    fn step(&mut self) {
        self.settle();
        if !self.reset {
            self.check_properties();
        }
        let registers = (0..self.registers.len()).map(|r| self.next_register(r)).collect();
        self.read(|collision| collision != Collision::ReadNew);
        if !self.reset {
            for memory in 0..self.memories.len() {
                let entry = &self.directory.memories[memory];
                let module = self.directory.scopes[entry.scope].module.clone();
                let description = &module.memories[entry.index];
                for port in &description.writes {
                    self.write_port(memory, description, port);
                }
            }
        }
        self.read(|collision| collision == Collision::ReadNew);
        self.registers = registers;
        self.cycle += 1;
        self.settled = false;
    }

    fn cycle(&self) -> u64 {
        self.cycle
    }

    fn failures(&self) -> &[Failure] {
        &self.failures
    }

    fn cover_hits(&self, property: usize) -> u64 {
        self.cover_hits[property]
    }
}
