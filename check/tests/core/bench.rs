//! A core with a program: runs it beside the instruction-set simulator, and keeps what it issued and what its outcomes
//! made of the paths.

use bitvec::field::BitField;
use heddle_check::commit::CommitCheck;
use heddle_hdl::prelude::*;
use heddle_sim::Sim;
use heddle_sim::simulation::{EngineKind, Options};
use heddle_simt::Shape;
use heddle_simt::isa::FaultCause;
use heddle_simt::memory::banks;
use heddle_simt::memory::port::Load;
use heddle_simt::system::{SystemIn, SystemOut, system};
use heddle_testbench::asm::Asm;
use heddle_testbench::grid::Grid;
use heddle_testbench::paths::paths;

/// An instruction that issued.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Issue {
    pub cycle: u64,
    pub warp: u64,
    /// Instruction number.
    pub pc: u64,
    pub mask: u64,
    pub replay: bool,
}

/// Paths of a warp as (call depth, pc, mask).
pub type Paths = Vec<(u64, u64, u64)>;

/// Why the core stopped: cause, warp, instruction number, lanes, address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    pub cause: FaultCause,
    pub warp: u64,
    pub pc: u64,
    pub lanes: u64,
    pub address: u32,
}

pub struct Core {
    pub t: Sim<SystemIn<Width>, SystemOut<Signal>>,
    pub s: Shape,
    pub issues: Vec<Issue>,
    /// After each update of a warp: cycle, warp, paths in HCT0, HCT1 and the CCT.
    pub updates: Vec<(u64, u64, Paths)>,
    /// Cycle, warp, lanes, of threads that ended.
    pub exits: Vec<(u64, u64, u64)>,
    check: CommitCheck,
    seed: u64,
}

/// Small memories, so that a core starts fast.
pub fn shape(lanes: u32, warps: u32) -> Shape {
    let memory = (16 << 10u32).max((lanes * warps * 64 * 2).next_power_of_two());
    Shape { memory, program: 4 << 10, stack: 64, ..Shape::new(lanes, warps) }
}

impl Core {
    pub fn new(s: &Shape, program: &Asm) -> Core {
        Core::with_seed(s, program, 1)
    }

    pub fn with_seed(s: &Shape, program: &Asm, seed: u64) -> Core {
        s.check().unwrap();
        let design = system(s).check().unwrap();
        // Programs here are short: compiling would take longer than they run.
        let options = Options { engine: EngineKind::Interpreter, seed, ..Options::default() };
        let mut t = Sim::with(&design, &options);
        let words = program.words();
        for (at, &word) in words.iter().enumerate() {
            t.memory_write("instructions", at as u64, word);
        }
        let program_end = (words.len() as u32 * 4).next_multiple_of(256);
        t.poke(SystemIn {
            launch: false.into(),
            entry: 0u32.into(),
            blocks: 1u32.into(),
            block_threads: s.threads().into(),
            program_end: program_end.into(),
            load: idle_load(),
            load_side: None,
            set_jitter: None,
            wb: None,
        });
        t.reset();
        let check = CommitCheck::new(t.simulation().directory(), &program.program(), s).unwrap();
        let mut core = Core { t, s: s.clone(), issues: vec![], updates: vec![], exits: vec![], check, seed };
        // Memory starts with random words.
        for address in (0..s.memory).step_by(4) {
            let word = core.word(address);
            core.check.write(address, &word.to_le_bytes()).unwrap();
        }
        core
    }

    /// Launches at an instruction number and runs to the end. The fault, if there is one.
    pub fn run_from(&mut self, entry: u64) -> Option<Fault> {
        self.run_grid(Grid::one_block(self.s.threads()), entry)
    }

    /// The same with a grid of blocks.
    pub fn run_grid(&mut self, grid: Grid, entry: u64) -> Option<Fault> {
        self.launch(grid, entry);
        let limit = self.t.cycle() + 100_000;
        while self.t.cycle() < limit {
            let out = self.cycle();
            if out.stopped == 1 {
                let f = out.fault;
                let word = |b: &Bits| b.low_u64();
                let fault = (f.valid == 1).then(|| Fault {
                    cause: FaultCause::from_bits(&f.cause).expect("a cause"),
                    warp: word(&f.slot),
                    pc: word(&f.pc),
                    lanes: word(&f.mask),
                    address: word(&f.address) as u32,
                });
                self.check_end(fault);
                return fault;
            }
        }
        panic!("the program does not end");
    }

    /// The first cycle of a launch.
    pub fn launch(&mut self, grid: Grid, entry: u64) {
        self.check.launch(self.t.simulation().engine(), grid, 4 * entry as u32).unwrap();
        self.t.poke_port("blocks", u64::from(grid.blocks));
        self.t.poke_port("block_threads", u64::from(grid.threads));
        self.t.poke_port("entry", entry);
        self.t.poke_port("launch", true);
        self.t.step();
        self.t.poke_port("launch", false);
    }

    /// Launches at the first instruction; the program must end without a fault.
    pub fn run(&mut self) {
        assert_eq!(self.run_from(0), None);
    }

    fn check_end(&mut self, fault: Option<Fault>) {
        let lanes = self.s.lanes;
        let engine = self.t.simulation().engine();
        let checked = match fault {
            None => self.check.end(engine, self.seed),
            Some(f) => {
                let threads =
                    (0..lanes).filter(|lane| f.lanes >> lane & 1 == 1).map(|lane| f.warp as u32 * lanes + lane);
                let address = f.cause.has_address().then_some(f.address);
                self.check.fault(engine, self.seed, Some(f.cause), 4 * f.pc as u32, address, threads)
            }
        };
        checked.unwrap_or_else(|mismatch| panic!("{mismatch}"));
    }

    /// One cycle, and what comes out in it.
    pub fn cycle(&mut self) -> SystemOut<Bits> {
        let out = self.t.peek();
        self.check.cycle(self.t.simulation().engine(), self.seed).unwrap_or_else(|mismatch| panic!("{mismatch}"));
        let cycle = self.t.cycle();
        let probe = |t: &mut Sim<_, _>, name: &str| t.probe(name).low_u64();
        if probe(&mut self.t, "core.issue_valid") == 1 {
            self.issues.push(Issue {
                cycle,
                warp: probe(&mut self.t, "core.issue_slot"),
                pc: probe(&mut self.t, "core.issue_pc"),
                mask: probe(&mut self.t, "core.issue_mask"),
                replay: probe(&mut self.t, "core.issue_replay") == 1,
            });
        }
        if out.exit.valid == 1 {
            self.exits.push((cycle, out.exit.slot.low_u64(), out.exit.mask.low_u64()));
        }
        let updates = probe(&mut self.t, "core.divergence.updates") == 1;
        let warp = probe(&mut self.t, "core.divergence.slot");
        self.t.step();
        if updates {
            let paths = self.paths(warp);
            self.updates.push((cycle, warp, paths));
        }
        out
    }

    fn paths(&mut self, warp: u64) -> Paths {
        let paths = paths(self.t.simulation().engine(), "core", &self.s, warp as u32);
        paths.into_iter().map(|p| (p.depth, u64::from(p.pc / 4), p.mask.load())).collect()
    }

    /// A register of a thread.
    pub fn register(&mut self, warp: u32, lane: u32, register: u32) -> u32 {
        let path = format!("core.collect.lane[{lane}].registers");
        self.t.memory_read(&path, u64::from(warp << 5 | register)).low_u64() as u32
    }

    /// A word of memory by its byte address.
    pub fn word(&mut self, address: u32) -> u32 {
        let (path, at) = self.place(address);
        self.t.memory_read(&path, at).low_u64() as u32
    }

    pub fn set_word(&mut self, address: u32, value: u32) {
        self.check.write(address, &value.to_le_bytes()).unwrap();
        let (path, at) = self.place(address);
        self.t.memory_write(&path, at, value);
    }

    /// The memory that holds a word, and where.
    fn place(&self, address: u32) -> (String, u64) {
        let (word, banks) = (address as usize / 4, banks(&self.s));
        (banks[word % banks.len()].clone(), (word / banks.len()) as u64)
    }

    /// The first exit code of a hardware thread that is not 0, if there was one.
    pub fn exit_code(&mut self, warp: u32, lane: u32) -> u32 {
        let place = format!("core.metrics.lane[{lane}]");
        let code = self.t.memory_read(&format!("{place}.first"), u64::from(warp)).extract(0, 32).low_u64() as u32;
        let engine = self.t.simulation().engine();
        let failed = engine.directory().registers.find(&format!("{place}.failed")).unwrap();
        if engine.register(failed).bit(warp) { code } else { 0 }
    }

    /// A counter of the core.
    pub fn metric(&mut self, name: &str) -> u64 {
        self.t.probe(&format!("core.metrics.{name}")).low_u64()
    }

    /// Issues of an instruction, in order.
    pub fn issues_of(&self, pc: u64) -> Vec<Issue> {
        self.issues.iter().copied().filter(|i| i.pc == pc).collect()
    }

    /// Cycles from the first issue of one instruction to the first of another.
    pub fn distance(&self, from: u64, to: u64) -> u64 {
        self.issues_of(to)[0].cycle - self.issues_of(from)[0].cycle
    }
}

/// Nothing is written into memory.
fn idle_load() -> Load<Bits> {
    Load { valid: false.into(), address: 0u32.into(), word: 0u32.into(), read: None }
}
