//! The program around the cases: makes the threads of a warp diverge before each case, as a [`Way`] says, and brings
//! them together after it.
//!
//! ```text
//! loop:   next body from the table          all lanes together
//!         group of the thread, by its way
//!         jump to the group's stub          lanes part
//! stubs:  call the body; to join            one a group; those for `Calls` go down some levels first, and up again after
//! join:   store the result; to loop         lanes meet: nothing has a higher pc at this call depth
//! bodies: a case each, a call deeper, so that a group runs to its end before the next one begins
//! ```
//!
//! What differs from thread to thread (operands, group) lies in rows of one word per thread, as do the results.

use fastrand::Rng;
use heddle_check::checked;
use heddle_simt::Shape;
use heddle_testbench::asm::*;
use heddle_testbench::iss::Iss;
use heddle_testbench::kernels::Device;
use heddle_testbench::machine::{Machine, MachineOptions};
use heddle_testbench::{Program, disassemble};
use std::io::Write;

/// Rows begin here, and the program ends before.
const DATA: u32 = 0x1_0000;
/// What a result is before its case.
const STALE: i32 = -1234;
/// Bodies of a program, which rows in the lower half of memory must hold.
const BODIES: usize = 200;
/// The table of stubs: as many as lanes can be, and those of [`Way::Calls`].
const STUB_BYTES: u32 = 16;
const STUBS: usize = 64;
const DEEP_STUB_WORDS: usize = 32;
const LEVELS: usize = 8;

/// Registers of the harness. Bodies may use all others, and `result`.
#[derive(Clone, Copy)]
pub struct Registers {
    /// A link register: the body returns to it.
    pub link: u32,
    /// Operands, which stay.
    pub a: u32,
    pub b: u32,
    pub result: u32,
    /// Scratch of bodies.
    pub s: u32,
    pub t: u32,
    table: u32,
    body: u32,
    row: u32,
    stride: u32,
    group: u32,
    factor: u32,
    mask: u32,
    stubs: u32,
    step: u32,
}

/// Two choices without a register in common, so that each register is free in one of them.
pub const CHOICES: [Registers; 2] = [
    registers([1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
    registers([5, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30]),
];

const fn registers(n: [u32; 15]) -> Registers {
    let [link, a, b, result, s, t, table, body, row, stride, group, factor, mask, stubs, step] = n;
    Registers { link, a, b, result, s, t, table, body, row, stride, group, factor, mask, stubs, step }
}

impl Registers {
    /// The registers that the harness does not use.
    pub fn free(&self) -> Vec<u32> {
        let Registers { link, a, b, result, s, t, table, body, row, stride, .. } = *self;
        let Registers { group, factor, mask, stubs, step, .. } = *self;
        let used = [link, a, b, result, s, t, table, body, row, stride, group, factor, mask, stubs, step];
        (1..32).filter(|register| !used.contains(register)).collect()
    }
}

/// What a case has to go by.
pub struct Input<'a> {
    pub a: u32,
    pub b: u32,
    pub thread: u32,
    /// Address of the tested instruction.
    pub pc: u32,
    pub shape: &'a Shape,
}

/// A case: instructions that leave a value in `result`, and what the manual says it is.
pub struct Body {
    pub words: Vec<u32>,
    /// Which of them the case is about.
    pub tested: usize,
    pub want: Box<dyn Fn(&Input) -> u32>,
}

impl Body {
    /// A case about the last of the words.
    pub fn new(words: &[u32], want: impl Fn(&Input) -> u32 + 'static) -> Body {
        Body { words: words.to_vec(), tested: words.len() - 1, want: Box::new(want) }
    }

    /// The case is about another word.
    pub fn about(self, tested: usize) -> Body {
        Body { tested, ..self }
    }
}

/// How the lanes of a warp come to their case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    /// All on one path.
    Together,
    /// Each on a path of its own, as many paths as lanes at once.
    Alone,
    OddEven,
    /// In two groups by chance, other ones for each case.
    RandomMask,
    /// Each in one of 64 groups by chance.
    RandomGroups,
    /// From 0 to 7 calls deeper, by chance.
    Calls,
}

impl Way {
    pub const ALL: [Way; 6] = [Way::Together, Way::Alone, Way::OddEven, Way::RandomMask, Way::RandomGroups, Way::Calls];

    /// A thread's rows: first group and the factor from one to the next (the group is the upper 6 bits), mask of the
    /// group, offset of the stub of group 0.
    fn rows(self, thread: u32, shape: &Shape, r: &mut Rng) -> [u32; 4] {
        let lane = thread % shape.lanes;
        let (any, factor) = (r.u32(..) | 1, 0x915f_77f5);
        match self {
            Way::Together => [0, 1, 0, 0],
            Way::Alone => [lane << 26, 1, 63, 0],
            Way::OddEven => [lane << 26, 1, 1, 0],
            Way::RandomMask => [any, factor, 32, 0],
            Way::RandomGroups => [any, factor, 63, 0],
            Way::Calls => [any, factor, 0x38, STUBS as u32 * STUB_BYTES],
        }
    }

    /// The most groups of a warp.
    fn groups(self, lanes: u32) -> u32 {
        match self {
            Way::Together => 1,
            Way::OddEven | Way::RandomMask => lanes.min(2),
            Way::Calls => lanes.min(8),
            Way::Alone | Way::RandomGroups => lanes,
        }
    }

    /// About how many cycles a body takes: those of a warp alone are latency, those of many are issues.
    fn cycles(self, shape: &Shape) -> u64 {
        let groups = self.groups(shape.lanes);
        u64::from((150 + 40 * groups).max(shape.warps * (14 + 8 * groups)))
    }
}

/// A program of many cases.
pub struct Suite {
    pub name: &'static str,
    bodies: Vec<Body>,
    program: Program,
    /// Address of each body.
    at: Vec<u32>,
}

impl Suite {
    pub fn new(name: &'static str, h: &Registers, bodies: Vec<Body>) -> Suite {
        assert!(bodies.len() <= BODIES, "{name} has {} bodies", bodies.len());
        let label = |k: usize| format!("body{k}");
        let mut a = Asm::default().put([
            csrr(h.stride, 0xfc6),
            slli(h.stride, h.stride, 2),
            csrr(h.row, MHARTID),
            slli(h.row, h.row, 2),
            lui(h.t, DATA >> 12),
            add(h.row, h.row, h.t),
        ]);
        for register in [h.a, h.b, h.group, h.factor, h.mask, h.stubs, h.table, h.step] {
            a = a.put([lw(register, h.row, 0), add(h.row, h.row, h.stride)]);
        }
        a = a.la(h.t, "stubs").put([add(h.stubs, h.stubs, h.t)]);
        a = a.la(h.t, "table").put([add(h.table, h.table, h.t)]).label("loop");
        a = a.put([lw(h.body, h.table, 0), add(h.table, h.table, h.step)]).branch(BEQ, h.body, ZERO, "done").put([
            addi(h.result, ZERO, STALE),
            mul(h.group, h.group, h.factor),
            r(0, 26, h.group, 5, h.t, 0x13), // srli
            r(0, h.mask, h.t, 7, h.t, 0x33), // and
            slli(h.t, h.t, STUB_BYTES.ilog2()),
            add(h.t, h.t, h.stubs),
            jalr(ZERO, h.t, 0),
        ]);
        a = a.label("stubs");
        for _ in 0..STUBS {
            a = a.put([jalr(h.link, h.body, 0)]).jal(ZERO, "join").put([NOP; 2]);
        }
        for level in 0..LEVELS {
            let down = std::iter::repeat_n(h.link << 7 | 0x40_006f, level); // jal link, +4
            let up = [h.link << 7 | 0x17, jalr(ZERO, h.link, 8)]; // auipc; return to behind
            let up = std::iter::repeat_n(up, level).flatten();
            a = a.put(down).put([jalr(h.link, h.body, 0)]).put(up).jal(ZERO, "join");
            a = a.put(std::iter::repeat_n(NOP, DEEP_STUB_WORDS - 3 * level - 2));
        }
        a = a.label("join").put([sw(h.result, h.row, 0), add(h.row, h.row, h.stride)]).jal(ZERO, "loop");
        a = a.label("done").put([addi(A0, ZERO, 0)]).exit();
        for (k, body) in bodies.iter().enumerate() {
            a = a.label(&label(k)).put(body.words.iter().copied()).put([jalr(ZERO, h.link, 0)]);
        }
        a = a.label("table");
        let at: Vec<u32> = (0..bodies.len()).map(|k| 4 * a.at(&label(k)) as u32).collect();
        a = a.put(at.iter().copied()).put(vec![0; bodies.len()]);
        assert!(4 * a.words().len() as u32 <= DATA, "{name} is too long");
        Suite { name, program: a.program(), bodies, at }
    }

    pub fn cases(&self) -> usize {
        self.bodies.len()
    }

    /// Rows before the results.
    const ROWS: u32 = 8;

    /// Puts operands, groups and the choice of bodies into memory.
    fn write(&self, device: &mut dyn Device, operands: &[(u32, u32)], groups: &[[u32; 4]], bodies: &Every) {
        let mut row = |k: usize, word: &dyn Fn(usize) -> u32| {
            let bytes: Vec<u8> = (0..operands.len()).flat_map(|t| word(t).to_le_bytes()).collect();
            device.write(DATA + (k * bytes.len()) as u32, &bytes).unwrap();
        };
        row(0, &|t| operands[t].0);
        row(1, &|t| operands[t].1);
        (0..4).for_each(|k| row(2 + k, &|t| groups[t][k]));
        row(6, &|_| 4 * bodies.first as u32);
        row(7, &|_| 4 * bodies.step as u32);
    }

    /// Bodies with the operands, one pair a thread, on core and simulator.
    pub fn run(&self, bench: &mut Bench, way: Way, bodies: &Every, operands: &[(u32, u32)], seed: u64) {
        let (shape, threads) = (bench.shape.clone(), operands.len());
        let mut r = Rng::with_seed(seed);
        let groups: Vec<_> = (0..shape.threads()).map(|thread| way.rows(thread, &shape, &mut r)).collect();
        let context = format!("{} on {}, {way:?}, seed {seed}", self.name, bench.name());
        let chosen: Vec<_> = self.bodies.iter().zip(&self.at).skip(bodies.first).step_by(bodies.step).collect();
        for (name, device) in [("core", &mut bench.machine as &mut dyn Device), ("simulator", &mut bench.iss)] {
            self.write(device, operands, &groups, bodies);
            device.launch().unwrap_or_else(|error| panic!("{context}: {error}"));
            let bytes = device.read(DATA + Suite::ROWS * 4 * shape.threads(), chosen.len() * 4 * threads).unwrap();
            let mut results = bytes.chunks_exact(4).map(|c| u32::from_le_bytes([c[0], c[1], c[2], c[3]]));
            for &(body, at) in &chosen {
                let pc = at + 4 * body.tested as u32;
                for (thread, &(a, b)) in (0..).zip(operands) {
                    let want = (body.want)(&Input { a, b, thread, pc, shape: &shape });
                    let got = results.next().expect("a result for each case and thread");
                    let text = || {
                        let (instruction, lane) = (disassemble(body.words[body.tested], pc), thread % shape.lanes);
                        format!(
                            "`{instruction}` with a = {a:#x}, b = {b:#x} in thread {thread} (lane {lane}) gives {got:#x} in \
                             the {name}, should be {want:#x}"
                        )
                    };
                    assert!(got == want, "{context}: {}", text());
                }
            }
        }
        bench.checked += (chosen.len() * threads) as u64;
    }
}

/// Which bodies of a suite: all, or every so many.
pub struct Every {
    pub first: usize,
    pub step: usize,
}

/// How much of a suite to run on a shape.
pub struct Effort {
    /// As many rounds of operands in each way as fit in about so many cycles, but one at least.
    pub cycles: u64,
    /// With all lanes together, every so many bodies at least: 1, or 3, which is less than an instruction has.
    pub together: u64,
    /// Every body in every way, even if that takes more cycles; else at least every third with odd and even lanes
    /// apart, and in the other ways as many as fit.
    pub every_body: bool,
}

/// One shape's machines, into which suites are loaded.
pub struct Bench {
    pub shape: Shape,
    pub machine: Machine,
    pub iss: Iss,
    /// Cases of all suites so far, results compared, cycles.
    cases: usize,
    checked: u64,
    cycles: u64,
}

impl Bench {
    pub fn new(shape: Shape) -> Bench {
        let program = Program::assembled(&[EBREAK], []);
        let options = MachineOptions { seed: u64::from(100 * shape.lanes + shape.warps), ..checked() };
        let machine = Machine::new(&shape, program.clone(), &options).unwrap();
        let iss = Iss::new(&program, &shape).unwrap();
        Bench { shape, machine, iss, cases: 0, checked: 0, cycles: 0 }
    }

    pub fn name(&self) -> String {
        format!("{} lanes × {} warps", self.shape.lanes, self.shape.warps)
    }

    pub fn load(&mut self, program: &Program) {
        self.cycles += self.machine.summary().cycles;
        self.machine.load(program.clone()).unwrap();
        self.iss = Iss::new(program, &self.shape).unwrap();
    }

    /// Loads a suite and runs it in all ways, with operands chosen by the seed.
    pub fn suite(&mut self, suite: &Suite, pairs: &[(u32, u32)], effort: &Effort, seed: u64) {
        self.load(&suite.program);
        self.cases += suite.cases();
        let threads = self.shape.threads() as usize;
        let all = pairs.len().div_ceil(threads);
        // One lane cannot part from others.
        let ways = Way::ALL.into_iter().filter(|way| self.shape.lanes > 1 || matches!(way, Way::Together | Way::Calls));
        let ways: Vec<Way> = ways.collect();
        let cycles = effort.cycles / ways.len() as u64;
        for (k, &way) in ways.iter().enumerate() {
            let round = suite.bodies.len() as u64 * way.cycles(&self.shape);
            let rounds = all.min((cycles / round) as usize).max(1);
            let step = match way {
                _ if effort.every_body => 1,
                // Each instruction has more than three bodies in a row, or they take turns by another number.
                Way::Together => round.div_ceil(cycles).min(effort.together) as usize,
                Way::OddEven => round.div_ceil(cycles).min(3) as usize,
                _ => round.div_ceil(cycles) as usize,
            };
            let bodies = Every { first: (seed as usize + k) % step, step };
            for round in 0..rounds {
                let first = (seed as usize + k + round * ways.len()) * threads;
                let operands: Vec<_> = (first..first + threads).map(|at| pairs[at % pairs.len()]).collect();
                suite.run(self, way, &bodies, &operands, seed);
            }
        }
    }

    pub fn report(&mut self, started: std::time::Instant) {
        self.cycles += self.machine.summary().cycles;
        let (name, seconds) = (self.name(), started.elapsed().as_secs_f64());
        let Bench { cases, checked, cycles, .. } = self;
        let _ =
            writeln!(std::io::stderr(), "{name}: {cases} cases, {checked} results, {cycles} cycles, {seconds:.1} s");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suites;
    use std::collections::BTreeSet;

    const EACH: Every = Every { first: 0, step: 1 };

    #[test]
    fn the_choices_of_registers_have_none_in_common() {
        let free: BTreeSet<u32> = CHOICES.iter().flat_map(Registers::free).collect();
        assert_eq!(free.len(), 31);
    }

    /// Every way makes the paths that it says, and afterwards there is one path again.
    #[test]
    fn ways_part_lanes_and_bring_them_together() {
        let suite = suites::register_register(&CHOICES[0]);
        let mut bench = Bench::new(Shape::new(8, 2));
        let operands = vec![(1, 2); 16];
        let paths = [(Way::Together, 1), (Way::Alone, 8), (Way::OddEven, 2), (Way::RandomMask, 2), (Way::Calls, 8)];
        for (way, most) in paths {
            bench.load(&suite.program);
            suite.run(&mut bench, way, &EACH, &operands, 1);
            let summary = bench.machine.summary();
            let paths = summary.most_paths;
            assert!(if way == Way::Calls { (5..=most).contains(&paths) } else { paths == most }, "{way:?}: {paths}");
            let together = summary.warp_instructions * 8 == summary.thread_instructions;
            assert_eq!(together, way == Way::Together);
            // The lanes that part for a case are one path again before the next.
            let cases = 2 * suite.cases() as u64;
            match way {
                Way::Together => assert_eq!(summary.convergences, 0),
                Way::Alone => assert_eq!(summary.convergences, 7 * cases),
                Way::OddEven => assert_eq!(summary.convergences, cases),
                _ => assert!(summary.convergences > cases / 2, "{way:?}: {} of {cases}", summary.convergences),
            }
        }
    }

    #[test]
    #[should_panic(
        expected = "`sub tp,sp,gp` with a = 0x7, b = 0x2 in thread 3 (lane 1) gives 0x5 in the core, should be 0x9"
    )]
    fn a_wrong_result_is_told_in_full() {
        let h = &CHOICES[0];
        let right = Body::new(&[addi(h.result, h.a, 1)], |i| i.a + 1);
        let wrong = Body::new(&[r(0x20, h.b, h.a, 0, h.result, 0x33)], |i| i.a + i.b);
        let suite = Suite::new("wrong", h, vec![right, wrong]);
        let mut bench = Bench::new(Shape::new(2, 2));
        bench.load(&suite.program);
        suite.run(&mut bench, Way::Together, &EACH, &[(1, 0), (3, 0), (5, 0), (7, 2)], 1);
    }
}
