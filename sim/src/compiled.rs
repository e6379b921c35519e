//! The compiled engine: the flattened netlist as machine code.
//!
//! Each purpose is a function that is compiled when it is first needed: clock edges with reset off, which loop until
//! the run is over; edges with reset on; outputs and probes; signals. All work on one state buffer (`layout.rs`).
//!
//! A failed assertion is noted in its cell and ends the loop with that edge.

mod access;
mod jit;
mod layout;
mod lower;
mod order;
mod regions;
mod shared;
mod vector;

use crate::checks::Checks;
use crate::directory::Directory;
use crate::engine::{Engine, Failure, Item, Piece, RunEnd, Why};
use crate::flat::cells::{Cells, Place};
use crate::flat::lanes::Lanes;
use crate::flat::{Purpose, flatten};
use crate::init;
use aligned_vec::{AVec, ConstAlign, avec};
use heddle_hdl::Bits;
use heddle_hdl::netlist::PropertyKind;
use heddle_hdl::order::{Loop, order as find_loop};
use jit::Function;
use layout::{Form, LINE, Layout};
use lower::lower;
use regions::Gating;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How much the compiler does for speed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum OptLevel {
    /// Everything is computed in every cycle.
    None,
    /// What only one arm of a choice, or an enabled register, needs is computed only then.
    Gating,
    /// Also, the copies of a replicated instance are computed together, several with one instruction.
    #[default]
    Lanes,
}

impl OptLevel {
    /// Every level, the default last.
    pub const ALL: &[OptLevel] = &[OptLevel::None, OptLevel::Gating, OptLevel::Lanes];

    /// As options of commands have it: `none`, `gating`, `lanes`.
    pub fn name(self) -> &'static str {
        match self {
            OptLevel::None => "none",
            OptLevel::Gating => "gating",
            OptLevel::Lanes => "lanes",
        }
    }

    fn gating(self) -> Gating {
        // The best of 3 to 40 on the core with 8 lanes and 8 warps: below, branches that go the unexpected way cost
        // more than they save.
        const LEAST_COST: u32 = 8;
        match self {
            OptLevel::None => Gating::Off,
            OptLevel::Gating | OptLevel::Lanes => Gating::From(LEAST_COST),
        }
    }
}

/// What compiling took, over all functions so far.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct CompileReport {
    /// Nodes of the flat netlists.
    pub nodes: usize,
    /// Machine code, in bytes.
    pub code_bytes: usize,
    /// The buffer of registers, memories and what the host sees.
    pub state_bytes: usize,
    /// Wall time from the hierarchy to flat netlists.
    pub flatten: Duration,
    /// Wall time from flat netlists to machine code.
    pub compile: Duration,
}

/// A design as machine code that changes one buffer of state: see the module's documentation.
pub struct Compiled {
    directory: Arc<Directory>,
    lanes: Lanes,
    cells: Cells,
    layout: Layout,
    level: OptLevel,
    checks: Checks,
    /// A handful, which are looked through in every call.
    functions: Vec<(Purpose, Function)>,
    report: CompileReport,
    state: AVec<u64, ConstAlign<LINE>>,
    reset: bool,
    settled: bool,
    signals: bool,
    cycle: u64,
    failures: Vec<Failure>,
}

impl Compiled {
    /// At its start with `seed`. The directory's top must have no width errors and nothing undriven, as
    /// `TypedModule::check` establishes.
    pub fn new(directory: &Arc<Directory>, seed: u64, level: OptLevel) -> Result<Compiled, Loop> {
        Compiled::with_checks(directory, seed, level, Checks::All)
    }

    /// The same with a look at some properties only, since that costs time.
    pub fn with_checks(
        directory: &Arc<Directory>,
        seed: u64,
        level: OptLevel,
        checks: Checks,
    ) -> Result<Compiled, Loop> {
        let lanes = Lanes::new(directory, level == OptLevel::Lanes);
        let cells = Cells::new(directory, &lanes);
        let layout = Layout::new(directory, &cells);
        let mut compiled = Compiled {
            directory: directory.clone(),
            state: AVec::new(LINE),
            lanes,
            report: CompileReport { state_bytes: layout.size, ..CompileReport::default() },
            cells,
            layout,
            level,
            checks,
            functions: Vec::new(),
            reset: false,
            settled: false,
            signals: false,
            cycle: 0,
            failures: Vec::new(),
        };
        if compiled.function(Purpose::Edge { reset: false, checks }).is_none() {
            return Err(find_loop(&directory.top).err().expect("a loop in the flat netlist is one in the design"));
        }
        compiled.start(seed);
        Ok(compiled)
    }

    /// What it took so far. A purpose that nothing has asked for yet, such as showing signals, is not compiled and not
    /// in it.
    pub fn report(&self) -> CompileReport {
        self.report
    }

    /// Where the function for the purpose is, which is compiled now if it is needed for the first time. None if there
    /// is a combinational loop.
    fn function(&mut self, purpose: Purpose) -> Option<usize> {
        if let Some(known) = self.functions.iter().position(|(known, _)| *known == purpose) {
            return Some(known);
        }
        let start = Instant::now();
        let flat = flatten(&self.directory, &self.lanes, &self.cells, purpose)?;

        let flattened = Instant::now();
        let (cells, layout) = (&self.cells, &self.layout);
        let function = Function::new(layout.size, |b| lower(&flat, cells, layout, self.level.gating(), b));
        self.report.nodes += flat.nodes.len();
        self.report.code_bytes += function.code_bytes;
        self.report.flatten += flattened - start;
        self.report.compile += flattened.elapsed();
        self.functions.push((purpose, function));
        Some(self.functions.len() - 1)
    }

    /// Makes up to `most` edges (1 for what is not an edge) and at least one; returns how many.
    fn call(&mut self, purpose: Purpose, most: u64) -> u64 {
        let function = self.function(purpose).expect("a design that runs has no combinational loop");
        self.functions[function].1.call(&mut self.state, most)
    }

    /// A cell without lanes.
    fn cell(&self, cell: u32) -> u64 {
        self.layout.cells[cell as usize].read_u64(&self.state, 0, 0)
    }

    fn set_cell(&mut self, cell: u32, value: u64) {
        self.layout.cells[cell as usize].write_u64(&mut self.state, 0, 0, value);
    }

    fn bits(&self, place: Place) -> Bits {
        self.layout.cell(place).read(&self.state, 0, place.lane)
    }

    fn set_bits(&mut self, place: Place, value: &Bits) {
        self.layout.cell(place).write(&mut self.state, 0, place.lane, value);
    }

    fn property(&self, property: usize) -> u64 {
        self.bits(self.cells.properties[property]).low_u64()
    }

    fn set_property(&mut self, property: usize, value: u64) {
        self.set_bits(self.cells.properties[property], &Bits::from(value));
    }

    /// Takes the failures of the last edge from the cells; whether any had not failed before.
    fn note_failures(&mut self) -> bool {
        let before = self.failures.len();
        for property in 0..self.directory.properties.len() {
            if self.directory.property_kind(property) != PropertyKind::Cover && self.property(property) == 0 {
                self.set_property(property, 1);
                if self.failures.iter().all(|f| f.property != property) {
                    self.failures.push(Failure { property, cycle: self.cycle - 1 });
                }
            }
        }
        self.set_cell(self.cells.failed, 0);
        self.failures.len() > before
    }

    fn start_memory(&mut self, memory: usize, seed: u64) {
        let place = self.cells.memories[memory];
        let form = self.layout.memories[place.number as usize];
        match &self.directory.memory(memory).init {
            Some(words) => {
                for (k, word) in (0..form.words).zip(words) {
                    form.write(&mut self.state, k, place.lane, word);
                }
            }
            None => {
                let path = init::path_hash(&self.directory.memories[memory].path);
                for k in 0..form.words {
                    if form.shape.width <= 64 {
                        let value = init::limb(seed, path, k, 0);
                        form.write_u64(&mut self.state, k, place.lane.unwrap_or(0), value);
                    } else {
                        form.write(&mut self.state, k, place.lane, &init::word(seed, path, k, form.shape.width));
                    }
                }
            }
        }
    }

    /// How a memory's words lie, and its lane; panics if the address is beyond the memory.
    fn word(&self, memory: usize, address: u64) -> (Form, Option<u32>) {
        let place = self.cells.memories[memory];
        let form = self.layout.memories[place.number as usize];
        assert!(address < form.words, "address {address:#x} is out of range");
        (form, place.lane)
    }
}

impl Engine for Compiled {
    fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    fn start(&mut self, seed: u64) {
        let d = self.directory.clone();
        self.state = avec![[LINE]| 0; self.layout.size / 8];
        for (table, cells) in [(&d.registers, &self.cells.registers), (&d.read_registers, &self.cells.read_registers)] {
            for (entry, &place) in table.iter().zip(cells) {
                let value = init::word(seed, init::path_hash(&entry.path), 0, entry.width);
                self.layout.cell(place).write(&mut self.state, 0, place.lane, &value);
            }
        }
        (0..d.memories.len()).for_each(|memory| self.start_memory(memory, seed));
        for property in 0..d.properties.len() {
            let holds = d.property_kind(property) != PropertyKind::Cover;
            self.set_property(property, holds as u64);
        }
        self.cycle = 0;
        self.failures.clear();
        self.reset = false;
        self.settled = false;
    }

    fn poke(&mut self, input: usize, value: &Bits) {
        self.set_bits(Place { number: self.cells.inputs.start + input as u32, lane: None }, value);
        self.settled = false;
    }

    fn poke_u64(&mut self, input: usize, value: u64) {
        if self.directory.inputs[input].width > 64 {
            return self.poke(input, &Bits::from(value));
        }
        self.set_cell(self.cells.inputs.start + input as u32, value);
        self.settled = false;
    }

    fn set_reset(&mut self, on: bool) {
        self.reset = on;
    }

    fn settle(&mut self) {
        if !self.settled {
            self.call(if self.signals { Purpose::SettleAll } else { Purpose::Settle }, 1);
            self.settled = true;
        }
    }

    fn peek(&self, output: usize) -> Bits {
        self.bits(Place { number: self.cells.outputs.start + output as u32, lane: None })
    }

    fn peek_u64(&self, output: usize) -> u64 {
        self.cell(self.cells.outputs.start + output as u32)
    }

    fn probe(&self, probe: usize) -> Bits {
        self.bits(self.cells.probes[probe])
    }

    fn visible(&self, limbs: &mut Vec<u64>) {
        let outputs = self.cells.outputs.clone().map(|number| Place { number, lane: None });
        for place in outputs.chain(self.cells.probes.iter().copied()) {
            self.layout.cell(place).read_limbs(&self.state, 0, place.lane, limbs);
        }
    }

    fn show_signals(&mut self) -> bool {
        self.settled &= self.signals;
        self.signals = true;
        true
    }

    fn signal(&self, signal: usize) -> Option<Bits> {
        self.signals.then(|| self.bits(self.cells.signals[signal]))
    }

    fn register(&self, register: usize) -> Bits {
        self.bits(self.cells.registers[register])
    }

    fn read_register(&self, read_register: usize) -> Bits {
        self.bits(self.cells.read_registers[read_register])
    }

    fn image(&self) -> Option<&[u64]> {
        self.signals.then(|| &self.state[..self.layout.cells_end / 8])
    }

    fn pieces(&self, item: Item) -> Vec<Piece> {
        let place = match item {
            Item::Output(k) => Place { number: self.cells.outputs.start + k as u32, lane: None },
            Item::Signal(k) => self.cells.signals[k],
            Item::Register(k) => self.cells.registers[k],
            Item::ReadRegister(k) => self.cells.read_registers[k],
            Item::Probe(k) => self.cells.probes[k],
        };
        self.layout.cell(place).pieces(place.lane)
    }

    fn memory_read(&self, memory: usize, address: u64) -> Bits {
        let (form, lane) = self.word(memory, address);
        form.read(&self.state, address, lane)
    }

    fn memory_write(&mut self, memory: usize, address: u64, value: &Bits) {
        let (form, lane) = self.word(memory, address);
        form.write(&mut self.state, address, lane, value);
        self.settled = false;
    }

    fn memory_load(&mut self, memory: usize, address: u64, words: &[u64]) {
        for (address, &word) in (address..).zip(words) {
            let (form, lane) = self.word(memory, address);
            if form.shape.width <= 64 {
                form.write_u64(&mut self.state, address, lane.unwrap_or(0), word);
            } else {
                form.write(&mut self.state, address, lane, &Bits::from(word));
            }
        }
        self.settled = false;
    }

    fn step(&mut self) {
        self.run(1, None);
    }

    fn run(&mut self, max_cycles: u64, stop: Option<usize>) -> RunEnd {
        let edge = Purpose::Edge { reset: self.reset, checks: self.checks };
        self.set_cell(self.cells.stop, stop.map_or(0, |output| output as u64 + 1));
        let mut cycles = 0;
        while cycles < max_cycles {
            let made = self.call(edge, max_cycles - cycles);
            cycles += made;
            self.cycle += made;
            self.settled = false;
            if self.cell(self.cells.failed) != 0 && self.note_failures() {
                return RunEnd { cycles, why: Why::Failure };
            }
            if self.cell(self.cells.stopped) != 0 {
                return RunEnd { cycles, why: Why::Stop };
            }
        }
        RunEnd { cycles, why: Why::Limit }
    }

    fn cycle(&self) -> u64 {
        self.cycle
    }

    fn failures(&self) -> &[Failure] {
        &self.failures
    }

    fn cover_hits(&self, property: usize) -> u64 {
        match self.directory.property_kind(property) {
            PropertyKind::Cover => self.property(property),
            _ => 0,
        }
    }
}

#[cfg(all(test, feature = "fuzz"))]
mod tests;
