//! The compiled engine: the flattened netlist as machine code.
//!
//! Each purpose is a function that is compiled when it is first needed: clock edges with reset off, which loop until
//! the run is over; edges with reset on; outputs and probes; signals. All work on one state buffer (`layout.rs`).
//!
//! A failed assertion is noted in its cell and ends the loop with that edge.

mod access;
mod c;
pub mod cc;
mod jit;
mod layout;
mod lower;
mod order;
mod record;
mod regions;
mod shared;
mod tables;
mod tier;
mod vector;

use crate::checks::Checks;
use crate::directory::Directory;
use crate::engine::{Engine, Failure, Item, Piece, RunEnd, Saved, Why};
use crate::flat::cells::{Cells, Place};
use crate::flat::lanes::Lanes;
use crate::flat::recorder::ROWS;
use crate::flat::{Flat, Purpose, flatten};
use crate::init;
use crate::record::{Recording, Records};
use aligned_vec::{AVec, ConstAlign, avec};
use cc::Compiler;
use cranelift_frontend::FunctionBuilder;
use heddle_hdl::Bits;
use heddle_hdl::netlist::PropertyKind;
use heddle_hdl::order::{Loop, order as find_loop};
use jit::{Allocation, Function};
use layout::{Form, LINE, Layout};
use lower::lower;
use regions::{Gating, least_shared};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};
use tables::Tables;
use tier::{Tiers, Times};
use vector::Vectors;

/// How much the compiler does for speed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum OptLevel {
    /// Everything is computed in every cycle.
    None,
    /// What only one arm of a choice, or an enabled register, needs is computed only then.
    Gating,
    /// Also, the copies of a replicated instance are computed together, several with one instruction.
    Lanes,
    /// Also, what depends on one register alone is computed once for each of its values and kept in a table.
    Tables,
    /// The same by way of C and the system's compiler, with the widest vectors of the machine, if there is a compiler
    /// ([`cc::Compiler::found`]); compiling takes seconds to minutes.
    C,
    /// First [`OptLevel::Tables`], with registers allocated quickly, then thoroughly; in the background of a long run,
    /// [`OptLevel::C`].
    #[default]
    Tiered,
}

/// Whose code makes the cycles.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Tier {
    /// Cranelift's, which is there at once.
    #[default]
    First,
    /// The C compiler's.
    Second,
}

impl OptLevel {
    /// Every level, the default last.
    pub const ALL: &[OptLevel] =
        &[OptLevel::None, OptLevel::Gating, OptLevel::Lanes, OptLevel::Tables, OptLevel::C, OptLevel::Tiered];

    /// As options of commands have it: `none`, `gating`, `lanes`, `tables`, `c`, `tiered`.
    pub fn name(self) -> &'static str {
        match self {
            OptLevel::None => "none",
            OptLevel::Gating => "gating",
            OptLevel::Lanes => "lanes",
            OptLevel::Tables => "tables",
            OptLevel::C => "c",
            OptLevel::Tiered => "tiered",
        }
    }

    fn gating(self) -> Gating {
        // The best of 3 to 40 on the core with 8 lanes and 8 warps: below, branches that go the unexpected way cost
        // more than they save.
        const LEAST_COST: u32 = 8;
        match self {
            OptLevel::None => Gating::Off,
            _ => Gating::From(LEAST_COST),
        }
    }

    /// Whether copies are computed together.
    fn has_lanes(self) -> bool {
        !matches!(self, OptLevel::None | OptLevel::Gating)
    }

    /// Whether results are kept in tables.
    fn has_tables(self) -> bool {
        self.has_lanes() && self != OptLevel::Lanes
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

/// How a design lies in the state.
#[derive(Clone)]
struct Plan {
    level: OptLevel,
    lanes: Lanes,
    cells: Cells,
    layout: Layout,
}

impl Plan {
    fn new(directory: &Directory, level: OptLevel) -> Plan {
        let lanes = Lanes::new(directory, level.has_lanes());
        let cells = Cells::new(directory, &lanes);
        let layout = Layout::new(directory, &cells);
        Plan { level, lanes, cells, layout }
    }

    /// None if there is a combinational loop.
    fn flatten(&self, directory: &Arc<Directory>, purpose: Purpose) -> Option<Flat> {
        flatten(directory, &self.lanes, &self.cells, purpose)
    }

    fn tables(&self, flat: &Flat) -> Tables {
        if self.level.has_tables() { Tables::new(flat, &self.cells, least_shared(flat)) } else { Tables::default() }
    }

    fn lower(&self, flat: &Flat, tables: &Tables, vectors: Vectors, b: &mut FunctionBuilder) {
        lower(flat, tables, &self.cells, &self.layout, self.level.gating(), vectors, b);
    }

    fn compile(&self, flat: &Flat, allocation: Allocation) -> Function {
        let tables = self.tables(flat);
        Function::new(allocation, self.layout.size, tables.bytes, |b| self.lower(flat, &tables, Vectors::NARROW, b))
    }

    /// The function for a purpose as C, of a design without combinational loops.
    fn in_c(&self, directory: &Arc<Directory>, purpose: Purpose, vectors: Vectors) -> String {
        let flat = self.flatten(directory, purpose).expect("a design that runs has no combinational loop");
        self.flat_in_c(&flat, vectors)
    }

    fn flat_in_c(&self, flat: &Flat, vectors: Vectors) -> String {
        let tables = self.tables(flat);
        jit::in_c(self.layout.cells_end, tables.bytes, |b| self.lower(flat, &tables, vectors, b))
    }
}

/// Edges after which a function is compiled again, thoroughly: that takes about as long as so many edges of quick code.
const QUICK_EDGES: u64 = 30_000;
/// Nodes of a function from which on its code stays quick. Single runs, each allocation forced: thorough code was faster at
/// 32 lanes (7700 nodes), slower at 64 (12700).
const LARGE: usize = 10_000;

/// A compiled function.
struct Made {
    purpose: Purpose,
    function: Function,
    /// Edges until it is compiled thoroughly; None if it stays as it is.
    quick: Option<u64>,
}

/// A design as machine code that changes one buffer of state: see the module's documentation.
pub struct Compiled {
    directory: Arc<Directory>,
    plan: Arc<Plan>,
    checks: Checks,
    /// A handful, which are looked through in every call.
    functions: Vec<Made>,
    tiers: Option<Tiers>,
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
        Compiled::recording(directory, seed, level, checks, None)
    }

    /// The same; if it is to record, edges do from the start, and the code for others is not made before it is needed.
    pub fn recording(
        directory: &Arc<Directory>,
        seed: u64,
        level: OptLevel,
        checks: Checks,
        recording: Option<&Arc<Recording>>,
    ) -> Result<Compiled, Loop> {
        let plan = Arc::new(Plan::new(directory, level));
        let mut compiled = Compiled {
            directory: directory.clone(),
            state: AVec::new(LINE),
            report: CompileReport { state_bytes: plan.layout.size, ..CompileReport::default() },
            plan,
            checks,
            functions: Vec::new(),
            tiers: (level == OptLevel::Tiered).then(|| Tiers::new(Times::default())),
            reset: false,
            settled: false,
            signals: false,
            cycle: 0,
            failures: Vec::new(),
        };
        if let Some(recording) = recording {
            compiled.record(recording);
        }
        if compiled.function(Purpose::Edge { reset: false, checks, record: recording.is_some() }).is_none() {
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
        if let Some(known) = self.functions.iter().position(|made| made.purpose == purpose) {
            return Some(known);
        }
        let start = Instant::now();
        let flat = self.plan.flatten(&self.directory, purpose)?;
        let flattened = Instant::now();
        let allocation = self.allocation(purpose, &flat);
        let of_c = self.of_c(purpose, &flat);
        let is_first_try = of_c.is_none() && self.tiers.is_some() && allocation == Allocation::Thorough;
        let allocation = if is_first_try { Allocation::Quick } else { allocation };
        let function = of_c.unwrap_or_else(|| self.plan.compile(&flat, allocation));
        self.report.nodes += flat.nodes.len();
        self.report.code_bytes += function.code_bytes;
        self.report.flatten += flattened - start;
        self.report.compile += flattened.elapsed();
        let quick = is_first_try.then_some(QUICK_EDGES);
        self.functions.push(Made { purpose, function, quick });
        Some(self.functions.len() - 1)
    }

    /// How registers are to be allocated in code for the purpose that is to run long.
    fn allocation(&self, purpose: Purpose, flat: &Flat) -> Allocation {
        let is_edge = matches!(purpose, Purpose::Edge { reset: false, .. });
        if is_edge && flat.nodes.len() < LARGE { Allocation::Thorough } else { Allocation::Quick }
    }

    /// Compiles a function again, now thoroughly.
    fn compile_thoroughly(&mut self, at: usize) {
        let start = Instant::now();
        let made = &mut self.functions[at];
        let flat = self.plan.flatten(&self.directory, made.purpose).expect("it was flattened before");
        let flattened = Instant::now();
        let before = std::mem::replace(&mut made.function, self.plan.compile(&flat, Allocation::Thorough));
        self.report.code_bytes = self.report.code_bytes - before.code_bytes + made.function.code_bytes;
        self.report.flatten += flattened - start;
        self.report.compile += flattened.elapsed();
    }

    /// The function out of C, where that is what makes cycles and there is a compiler.
    fn of_c(&self, purpose: Purpose, flat: &Flat) -> Option<Function> {
        if self.plan.level != OptLevel::C || !matches!(purpose, Purpose::Edge { reset: false, .. }) {
            return None;
        }
        let compiler = Compiler::found().ok()?;
        let source = self.plan.flat_in_c(flat, compiler.vectors);
        let library = compiler.compile(&source, &AtomicBool::new(false)).ok()?;
        Function::load(&library, self.plan.layout.size).ok()
    }

    /// Whose code makes the cycles.
    pub fn tier(&self) -> Tier {
        match &self.tiers {
            Some(tiers) => tiers.tier(),
            None => self.functions.first().map_or(Tier::First, |made| made.function.tier()),
        }
    }

    /// Makes up to `most` edges (1 for what is not an edge) and at least one; returns how many.
    fn call(&mut self, purpose: Purpose, most: u64) -> u64 {
        let at = self.function(purpose).expect("a design that runs has no combinational loop");
        if self.functions[at].quick == Some(0) {
            self.functions[at].quick = None;
            if self.functions[at].function.tier() == Tier::First {
                self.compile_thoroughly(at);
            }
        }
        let Made { function, quick, .. } = &mut self.functions[at];
        let most = most.min(quick.unwrap_or(most));
        let edges = match &mut self.tiers {
            Some(tiers) if most > 1 && matches!(purpose, Purpose::Edge { reset: false, .. }) => {
                tiers.call((&self.directory, &self.plan, purpose), function, &mut self.state, most)
            }
            _ => function.call(&mut self.state, most),
        };
        *quick = quick.map(|left| left - edges);
        edges
    }

    /// Edges until one of [`Why`], with rows if records are wanted.
    fn edges(&mut self, max_cycles: u64, stop: Option<usize>, mut records: Option<&mut Records>) -> RunEnd {
        let (reset, checks) = (self.reset, self.checks);
        let edge = |record| Purpose::Edge { reset, checks, record };
        let is_there = |edge| self.functions.iter().any(|made| made.purpose == edge);
        // Edges that record will do where nothing is to be recorded, if they are there.
        let record = records.is_some() || is_there(edge(true)) && !is_there(edge(false));
        let edge = edge(record);
        if let (true, Some(now)) = (record, self.plan.cells.recorder.as_ref().map(|recorder| recorder.now)) {
            self.set_cell(now, self.cycle);
        }
        self.set_cell(self.plan.cells.stop, stop.map_or(0, |output| output as u64 + 1));
        let mut cycles = 0;
        while cycles < max_cycles {
            let most = max_cycles - cycles;
            let made = self.call(edge, if record { most.min(ROWS) } else { most });
            if record {
                self.take_rows(records.as_deref_mut());
            }
            cycles += made;
            self.cycle += made;
            self.settled = false;
            if self.cell(self.plan.cells.failed) != 0 && self.note_failures() {
                return RunEnd { cycles, why: Why::Failure };
            }
            if self.cell(self.plan.cells.stopped) != 0 {
                return RunEnd { cycles, why: Why::Stop };
            }
        }
        RunEnd { cycles, why: Why::Limit }
    }

    /// A cell without lanes.
    fn cell(&self, cell: u32) -> u64 {
        self.plan.layout.cells[cell as usize].read_u64(&self.state, 0, 0)
    }

    fn set_cell(&mut self, cell: u32, value: u64) {
        self.plan.layout.cells[cell as usize].write_u64(&mut self.state, 0, 0, value);
    }

    fn bits(&self, place: Place) -> Bits {
        self.plan.layout.cell(place).read(&self.state, 0, place.lane)
    }

    fn set_bits(&mut self, place: Place, value: &Bits) {
        self.plan.layout.cell(place).write(&mut self.state, 0, place.lane, value);
    }

    fn property(&self, property: usize) -> u64 {
        self.bits(self.plan.cells.properties[property]).low_u64()
    }

    fn set_property(&mut self, property: usize, value: u64) {
        self.set_bits(self.plan.cells.properties[property], &Bits::from(value));
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
        self.set_cell(self.plan.cells.failed, 0);
        self.failures.len() > before
    }

    fn start_memory(&mut self, memory: usize, seed: u64) {
        let place = self.plan.cells.memories[memory];
        let form = self.plan.layout.memories[place.number as usize];
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

    /// How many pairs of words from the first on are as these bytes, found out fast: of memories that are all lanes of
    /// one, whose words lie side by side. The rest may be alike or not.
    fn limbs_alike(&self, memories: &[usize], bytes: &[u8]) -> usize {
        let places = memories.iter().map(|&memory| self.plan.cells.memories[memory]);
        let first = self.plan.cells.memories[memories[0]];
        let form = &self.plan.layout.memories[first.number as usize];
        let in_order = (0..).zip(places).all(|(k, place)| place == Place { number: first.number, lane: Some(k) });
        let dense = form.shape.width == 32 && form.lane == 4 && form.stride == 4 * memories.len();
        if !in_order || !dense || form.words as usize * form.stride < bytes.len() {
            return 0;
        }
        let limbs = &self.state[form.offset / 8..];
        let same = |(limb, bytes): (&u64, &[u8; 8])| *limb == u64::from_le_bytes(*bytes);
        limbs.iter().zip(bytes.as_chunks().0).take_while(|&pair| same(pair)).count()
    }

    /// How a memory's words lie, and its lane; panics if the address is beyond the memory.
    fn word(&self, memory: usize, address: u64) -> (Form, Option<u32>) {
        let place = self.plan.cells.memories[memory];
        let form = self.plan.layout.memories[place.number as usize];
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
        self.state = avec![[LINE]| 0; self.plan.layout.size / 8];
        for (table, cells) in
            [(&d.registers, &self.plan.cells.registers), (&d.read_registers, &self.plan.cells.read_registers)]
        {
            for (entry, &place) in table.iter().zip(cells) {
                let value = init::word(seed, init::path_hash(&entry.path), 0, entry.width);
                self.plan.layout.cell(place).write(&mut self.state, 0, place.lane, &value);
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
        self.set_bits(Place { number: self.plan.cells.inputs.start + input as u32, lane: None }, value);
        self.settled = false;
    }

    fn poke_u64(&mut self, input: usize, value: u64) {
        if self.directory.inputs[input].width > 64 {
            return self.poke(input, &Bits::from(value));
        }
        self.set_cell(self.plan.cells.inputs.start + input as u32, value);
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
        self.bits(Place { number: self.plan.cells.outputs.start + output as u32, lane: None })
    }

    fn peek_u64(&self, output: usize) -> u64 {
        self.cell(self.plan.cells.outputs.start + output as u32)
    }

    fn probe(&self, probe: usize) -> Bits {
        self.bits(self.plan.cells.probes[probe])
    }

    fn visible(&self, limbs: &mut Vec<u64>) {
        let outputs = self.plan.cells.outputs.clone().map(|number| Place { number, lane: None });
        for place in outputs.chain(self.plan.cells.probes.iter().copied()) {
            self.plan.layout.cell(place).read_limbs(&self.state, 0, place.lane, limbs);
        }
    }

    fn show_signals(&mut self) -> bool {
        self.settled &= self.signals;
        self.signals = true;
        true
    }

    fn signal(&self, signal: usize) -> Option<Bits> {
        self.signals.then(|| self.bits(self.plan.cells.signals[signal]))
    }

    fn register(&self, register: usize) -> Bits {
        self.bits(self.plan.cells.registers[register])
    }

    fn read_register(&self, read_register: usize) -> Bits {
        self.bits(self.plan.cells.read_registers[read_register])
    }

    fn image(&self) -> Option<&[u64]> {
        self.signals.then(|| &self.state[..self.plan.layout.cells_end / 8])
    }

    fn pieces(&self, item: Item) -> Vec<Piece> {
        let place = match item {
            Item::Output(k) => Place { number: self.plan.cells.outputs.start + k as u32, lane: None },
            Item::Signal(k) => self.plan.cells.signals[k],
            Item::Register(k) => self.plan.cells.registers[k],
            Item::ReadRegister(k) => self.plan.cells.read_registers[k],
            Item::Probe(k) => self.plan.cells.probes[k],
        };
        self.plan.layout.cell(place).pieces(place.lane)
    }

    fn memory_read(&self, memory: usize, address: u64) -> Bits {
        let (form, lane) = self.word(memory, address);
        form.read(&self.state, address, lane)
    }

    fn memory_save(&self, memory: usize, address: u64, words: &mut [u64]) {
        for (address, word) in (address..).zip(words) {
            let (form, lane) = self.word(memory, address);
            *word = form.read_u64(&self.state, address, lane.unwrap_or(0));
        }
    }

    fn memories_differ(&self, memories: &[usize], bytes: &[u8]) -> Option<(usize, u8)> {
        let word = |number: usize| {
            let address = (number / memories.len()) as u64;
            let (form, lane) = self.word(memories[number % memories.len()], address);
            (form.read_u64(&self.state, address, lane.unwrap_or(0)) as u32).to_le_bytes()
        };
        let differs = |number: usize| {
            let (got, want) = (word(number), &bytes[4 * number..bytes.len().min(4 * number + 4)]);
            let at = want.iter().zip(got).position(|(&want, got)| want != got)?;
            Some((4 * number + at, got[at]))
        };
        let alike = self.limbs_alike(memories, bytes);
        (2 * alike..bytes.len().div_ceil(4)).find_map(differs)
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
        self.edges(max_cycles, stop, None)
    }

    fn run_recording(
        &mut self,
        recording: &Arc<Recording>,
        max_cycles: u64,
        stop: Option<usize>,
        records: &mut Records,
    ) -> RunEnd {
        self.record(recording);
        self.edges(max_cycles, stop, Some(records))
    }

    fn save(&self, saved: &mut Saved) -> bool {
        self.save_state(saved);
        true
    }

    fn restore(&mut self, saved: &Saved) {
        self.restore_state(saved);
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
