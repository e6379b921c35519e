use super::*;
use crate::divergence::Divergence;
use crate::shape::Compaction;
use heddle_sim::Sim;
use std::collections::VecDeque;

/// An instruction as far as issue looks at it; `number` tells it apart.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Instruction {
    number: u32,
    /// It accesses memory, which answers.
    accesses: bool,
    answers: bool,
    divide: bool,
    control: bool,
    /// A warp that is ahead may pass it.
    passes: bool,
    needs: [u32; 6],
}

const IDLE: Instruction = Instruction {
    number: 0,
    accesses: false,
    answers: false,
    divide: false,
    control: false,
    passes: false,
    needs: [0; 6],
};

impl Instruction {
    fn random(r: &mut fastrand::Rng, number: u32) -> Instruction {
        let kind = r.u8(..6);
        // What is not used is x0.
        let mut register = || if r.bool() { r.u32(1..32) } else { 0 };
        let registers = [register(), register(), register()];
        let [rs1, rs2, rd] = registers;
        let [use1, use2, writes] = registers.map(|register| u32::from(register != 0));
        let needs = [rs1, rs2, rd, use1, use2, writes];
        let (accesses, answers) = (kind == 0 || kind == 3, kind == 0);
        let control = kind == 0 || kind == 2;
        let passes = kind == 2 && r.bool();
        Instruction { number, accesses, answers, divide: kind == 1, control, passes, needs }
    }

    /// One bit per register that it reads or writes.
    fn registers(&self) -> u32 {
        self.needs[..3].iter().fold(0, |bits, register| bits | 1 << register)
    }

    fn decoded(&self, s: &Shape) -> Decoded<Bits> {
        let [rs1, rs2, rd, use1, use2, writes] = self.needs.map(Bits::from);
        Decoded {
            imm: self.number.into(),
            pc: (self.number % (1 << s.pc_bits())).into(),
            load: self.answers.into(),
            store: (self.accesses && !self.answers).into(),
            answers: self.answers.into(),
            divide: self.divide.into(),
            control: self.control.into(),
            rs1,
            rs2,
            rd,
            use1,
            use2,
            writes,
            ..Decoded::shape(s).map("", &mut |_, _| Bits::ZERO)
        }
    }
}

struct Bench {
    t: Sim<IssueIn<Width>, IssueOut<Signal>>,
    s: Shape,
    buffers: Vec<VecDeque<Instruction>>,
    replays: Vec<bool>,
    /// The first instruction of the slot was looked up, and may go as far as its registers go.
    registers_ok: Vec<bool>,
    /// The slot that issued last.
    last: u32,
    /// What issued in the cycle before, and before that one.
    behind: [Option<(u32, Instruction)>; 2],
}

/// What other stages say in a cycle.
#[derive(Clone, Default)]
struct Around {
    push: Option<(u32, Instruction)>,
    /// A slot that is steered for a replay.
    replay: Option<u32>,
    clear: u64,
    access_room: bool,
    load_room: bool,
    divider_free: bool,
    hold: bool,
    bubble: bool,
    /// One bit per slot: its warp is ahead, and may pass.
    held: u64,
    may_pass: u64,
}

impl Bench {
    fn new(s: Shape) -> Bench {
        let warps = s.warps;
        let mut t = Sim::new(&issue(&s).check().unwrap());
        t.reset();
        let count = warps as usize;
        Bench {
            t,
            s,
            buffers: vec![VecDeque::new(); count],
            replays: vec![false; count],
            registers_ok: vec![false; count],
            last: warps - 1,
            behind: [None, None],
        }
    }

    /// One cycle, compared with the model. What issued.
    fn cycle(&mut self, a: &Around) -> Option<(u32, Instruction)> {
        let idle = IDLE;
        let (slot, pushed) = a.push.unwrap_or((0, idle));
        self.t.poke(IssueIn {
            decoded: Slotted {
                valid: a.push.is_some().into(),
                slot: slot.into(),
                decoded: pushed.decoded(&self.s),
                registers: pushed.registers().into(),
                passes: self.s.passes().then(|| pushed.passes.into()),
            },
            steer: Steer {
                valid: a.replay.is_some().into(),
                slot: a.replay.unwrap_or(0).into(),
                pc: 0u32.into(),
                replay: true.into(),
            },
            starts: None,
            group: None,
            clear: a.clear.into(),
            access_room: a.access_room.into(),
            load_room: a.load_room.into(),
            divider_free: a.divider_free.into(),
            hold_control: a.hold.into(),
            bubble: a.bubble.into(),
            pairs: None,
            held: self.s.predicts().then(|| a.held.into()),
            may_pass: self.s.passes().then(|| a.may_pass.into()),
        });
        let out = self.t.peek();
        self.check_views(&out);

        let warps = self.s.warps;
        let registers_ok = |w: u32| self.registers_ok[w as usize];
        let unit_ok = |i: &Instruction| {
            let room = (a.access_room || !i.accesses) && (a.load_room || !i.answers);
            let waits = [!room, i.divide && !a.divider_free, a.bubble];
            !waits.contains(&true)
        };
        let bit = |bits: u64, w: u32| bits >> w & 1 == 1;
        let may_pass = |w: u32, i: &Instruction| self.s.passes() && i.passes && bit(a.may_pass, w);
        let is_ahead = |w: u32| self.s.predicts() && bit(a.held, w);
        let held = |w: u32, i: &Instruction| i.control && (a.hold || (is_ahead(w) && !may_pass(w, i)));
        let head = |w: u32| self.buffers[w as usize].front();
        let choice = (1..=warps)
            .map(|k| (self.last + k) % warps)
            .find(|&w| head(w).is_some_and(|i| registers_ok(w) && unit_ok(i) && !held(w, i)));
        let lists = |f: &dyn Fn(u32) -> bool| (0..warps).filter(|&w| f(w)).fold(0, |bits, w| bits | 1u64 << w);
        assert_eq!(out.idle.filled, lists(&|w| head(w).is_some()));
        assert_eq!(out.idle.scoreboard, lists(&|w| head(w).is_some() && !registers_ok(w)));
        assert_eq!(out.idle.unit, lists(&|w| head(w).is_some_and(|i| registers_ok(w) && !unit_ok(i))));
        assert_eq!(out.idle.held, lists(&|w| head(w).is_some_and(|i| registers_ok(w) && unit_ok(i) && held(w, i))));
        assert_eq!(out.issued.valid == 1, choice.is_some());

        self.registers_ok = (0..warps)
            .map(|w| {
                let ok = a.clear >> w & 1 == 1 || self.replays[w as usize];
                head(w).is_some() && ok && choice != Some(w)
            })
            .collect();
        let issued = choice.map(|w| {
            let instruction = self.buffers[w as usize].pop_front().expect("a head");
            assert_eq!(out.issued.slot, u64::from(w));
            self.check_choice(&out.issued, &instruction);
            assert_eq!(out.replay == 1, self.replays[w as usize]);
            self.replays[w as usize] = false;
            self.last = w;
            (w, instruction)
        });
        if let Some((w, instruction)) = a.push {
            self.buffers[w as usize].push_back(instruction);
        }
        if let Some(w) = a.replay {
            self.replays[w as usize] = true;
        }
        self.t.step();
        self.behind = [issued, self.behind[0]];
        let [at_5, at_6] = self.behind.map(|issued| issued.map(|(w, i)| (w, i.decoded(&self.s))));
        let out = self.t.peek();
        if let Some((w, decoded)) = at_5 {
            let csr = decoded.imm.extract(0, csr::BITS);
            let Decoded { rs1, rs2, rd, use1, use2, writes, .. } = decoded;
            let registers = Registers { rs1, rs2, rd, use1, use2, writes, csr };
            assert_eq!((out.reading.valid == 1, out.reading.slot.low_u64()), (true, u64::from(w)));
            assert_eq!(out.reading.registers, registers);
        }
        if let Some((w, decoded)) = at_6 {
            assert_eq!(out.decoded, decoded, "slot {w}: in order, whole");
        }
        issued
    }

    fn check_choice(&self, issued: &Issued<Bits>, instruction: &Instruction) {
        let Decoded { pc, answers, divide, .. } = instruction.decoded(&self.s);
        let control = instruction.control.into();
        let accesses = instruction.accesses.into();
        let (valid, slot) = (issued.valid.clone(), issued.slot.clone());
        let want = Issued { valid, slot, pc, accesses, answers, divide, control };
        assert_eq!(*issued, want);
    }

    /// Counts, and what the scoreboard is asked.
    fn check_views(&self, out: &IssueOut<Bits>) {
        let width = count_width(self.s.buffer);
        for (w, buffer) in self.buffers.iter().enumerate() {
            assert_eq!(out.buffered.extract(w as u32 * width, width), buffer.len() as u64);
            if let Some(head) = buffer.front() {
                assert_eq!(out.heads.extract(32 * w as u32, 32), u64::from(head.registers()), "slot {w}");
            }
        }
    }
}

fn usual(warps: u32, buffer: u32) -> Shape {
    Shape { buffer, ..Shape::new(2, warps) }
}

#[test]
fn random_traffic_keeps_order_and_loses_nothing() {
    let capri = |slack, shape: Shape| {
        let shape = Shape { compaction: Compaction::Predict, slack, ..shape };
        shape.with_divergence(Divergence::BLOCK_STACK)
    };
    for (s, seed) in [
        (usual(1, 4), 1),
        (usual(2, 4), 2),
        (usual(8, 8), 3),
        (usual(64, 4), 4),
        (capri(1, usual(8, 4)), 5),
        (capri(2, usual(2, 4)), 6),
        (capri(4, usual(16, 8)), 7),
    ] {
        println!("{}, seed {seed}", s.options());
        let Shape { warps, buffer, .. } = s;
        let mut r = fastrand::Rng::with_seed(seed);
        let mut bench = Bench::new(s);
        let (mut pushed, mut issued) = (0, 0);
        for number in 0..2500 {
            let w = r.u32(..warps);
            // The place of what issued in the cycle before is still read.
            let read = bench.behind[0].is_some_and(|(slot, _)| slot == w);
            let room = bench.buffers[w as usize].len() + usize::from(read) < buffer as usize;
            let push = (room && r.u8(..4) > 0).then(|| (w, Instruction::random(&mut r, number)));
            let around = Around {
                push,
                replay: (r.u8(..8) == 0).then(|| r.u32(..warps)),
                clear: r.u64(..) & bench.mask(),
                access_room: r.bool(),
                load_room: r.bool(),
                divider_free: r.bool(),
                hold: r.u8(..4) == 0,
                bubble: r.u8(..8) == 0,
                held: r.u64(..) & bench.mask(),
                may_pass: r.u64(..) & bench.mask(),
            };
            pushed += u32::from(push.is_some());
            issued += u32::from(bench.cycle(&around).is_some());
        }
        let left: usize = bench.buffers.iter().map(VecDeque::len).sum();
        assert_eq!(pushed, issued + left as u32);
    }
}

impl Bench {
    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.s.warps)
    }
}

/// A replay goes although its registers are pending, once; the instruction after it waits again.
#[test]
fn a_replay_does_not_wait_for_registers() {
    let mut bench = Bench::new(usual(2, 4));
    let needs = [1, 0, 1, 1, 0, 1];
    let load = |number| Instruction { number, accesses: true, answers: true, control: true, needs, ..IDLE };
    let open = Around { access_room: true, load_room: true, divider_free: true, ..Around::default() };
    bench.cycle(&Around { push: Some((1, load(1))), ..open.clone() });
    assert_eq!(bench.cycle(&Around { push: Some((1, load(2))), ..open.clone() }), None, "pending");
    assert_eq!(bench.cycle(&Around { replay: Some(1), ..open.clone() }), None, "the privilege starts a cycle later");
    assert_eq!(bench.cycle(&open), None, "when it is looked up");
    assert_eq!(bench.cycle(&Around { load_room: false, ..open.clone() }), None, "but the queue needs room");
    assert_eq!(bench.cycle(&open), Some((1, load(1))));
    for _ in 0..3 {
        assert_eq!(bench.cycle(&open), None, "the next one waits");
    }
}
