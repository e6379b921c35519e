use super::*;
use crate::pipeline::issue::Registers;
use crate::pipeline::testing::packed;
use crate::pipeline::timing::{ISSUE_TO_READ, READ_TO_EXECUTE};
use heddle_sim::Sim;
use std::collections::{HashMap, VecDeque};

type Block = Sim<CollectIn<Width>, CollectOut<Signal>>;

/// What is put into stage 4 in a cycle.
#[derive(Clone, Debug)]
struct Put {
    slot: u32,
    d: Decoded<Bits>,
}

struct Bench {
    t: Block,
    s: Shape,
    /// (slot, register, lane): what the banks hold after the last edge.
    registers: HashMap<(u32, u32, u32), u32>,
    cycles: u64,
    /// Blocks, threads of a block, and slots of a group less 1.
    grid: (u32, u32, u32),
    /// The instructions in stages 6 and 5.
    decoded: [Decoded<Bits>; 2],
    /// A slot that gets a block.
    started: Option<(u32, u32)>,
}

/// A write: slot, register, lanes, a value a lane.
type Written = (u32, u32, u64, Vec<u32>);

impl Bench {
    fn new(s: &Shape) -> Bench {
        let mut t = Sim::new(&collect(s).check().unwrap());
        t.reset();
        let nothing = Decoded::shape(s).map("", &mut |_, _| Bits::ZERO);
        let (decoded, started) = ([nothing.clone(), nothing], None);
        Bench { t, s: s.clone(), registers: HashMap::new(), cycles: 1 << 33, grid: (1, 1, 0), decoded, started }
    }

    /// One cycle. `instructions` is twice `cycles`.
    fn cycle(&mut self, put: Option<&Put>, write: Option<&Written>) -> Operands<Bits> {
        let zero = Decoded::shape(&self.s).map("", &mut |_, _| Bits::ZERO);
        let [at_6, at_5] = self.decoded.clone();
        let mask = (u64::MAX >> (64 - self.s.lanes)).into();
        let (valid, slot) = (put.is_some().into(), put.map_or(0, |p| p.slot).into());
        let issued = IssuedThreads { valid, slot, mask, homes: None, tag: 1u32.into() };
        let csr = at_5.imm.extract(0, csr::BITS);
        let Decoded { rs1, rs2, rd, use1, use2, writes, .. } = at_5.clone();
        let registers = Registers { rs1, rs2, rd, use1, use2, writes, csr };
        self.decoded = [at_5, put.map_or(zero, |p| p.d.clone())];
        let none = (0, 3, 0, vec![7; self.s.lanes as usize]);
        let (written, rd, lanes, data) = write.unwrap_or(&none);
        let write = Write {
            lanes: (*lanes).into(),
            warp: (*written).into(),
            homes: None,
            rd: (*rd).into(),
            data: packed(data),
        };
        let (cycles, instructions) = (self.cycles.into(), (self.cycles * 2).into());
        let (blocks, block_threads, group) = self.grid;
        let grid = Grid { blocks: blocks.into(), block_threads: block_threads.into(), group: group.into() };
        let started = self.started.take();
        let (slot, block) = started.unwrap_or((0, 99));
        let started = Started { valid: started.is_some().into(), slot: slot.into(), block: block.into() };
        self.t.poke(CollectIn {
            issued,
            reading: Reading { valid: true.into(), slot: 0u32.into(), registers },
            decoded: at_6,
            write,
            grid,
            started,
            counters: Some(Counters { cycles, instructions }),
        });
        let out = self.t.peek().operands;
        self.t.step();
        self.cycles += 1;
        for lane in (0..self.s.lanes).filter(|lane| lanes >> lane & 1 == 1) {
            self.registers.insert((*written, *rd, lane), data[lane as usize]);
        }
        out
    }
}

/// Fills all registers, then issues random instructions while writing: an instruction in stage 4 at cycle t reads in
/// stage 5 what was written at edges up to and including that of cycle t + 1.
#[test]
fn banks_read_new_values_and_x0_reads_zero() {
    let shared = BankAddress::Shared;
    let shapes = [(1, 1, shared), (2, 2, shared), (8, 8, shared), (4, 2, BankAddress::PerLane), (64, 1, shared)];
    for (seed, (lanes, warps, bank_address)) in shapes.into_iter().enumerate() {
        println!("{lanes} × {warps} {bank_address:?}, seed {seed}");
        let mut r = fastrand::Rng::with_seed(seed as u64);
        let s = Shape { bank_address, ..Shape::new(lanes, warps) };
        let mut bench = Bench::new(&s);
        let all = u64::MAX >> (64 - lanes);
        for (slot, rd) in (0..warps).flat_map(|slot| (1..32).map(move |rd| (slot, rd))) {
            let data = (0..lanes).map(|_| r.u32(..)).collect();
            bench.cycle(None, Some(&(slot, rd, all, data)));
        }
        // The instruction and its operands, when stage 5 has read them: a, b, data of each lane.
        let mut stage_4: Option<Put> = None;
        let mut expected: VecDeque<Option<(Put, Vec<[u32; 3]>)>> = VecDeque::from(vec![None; READ_TO_EXECUTE as usize]);
        for _ in 0..600 {
            let flag = |r: &mut fastrand::Rng| Bits::from(r.bool());
            // Few registers, so that reads and writes of one cycle meet.
            let (rs1, rs2, a_pc) = (r.u32(..4), r.u32(..4), r.bool());
            let d = Decoded {
                pc: r.u32(..1 << s.pc_bits()).into(),
                rs1: rs1.into(),
                rs2: rs2.into(),
                use1: (rs1 != 0 && !a_pc).into(),
                use2: (rs2 != 0).into(),
                imm: r.u32(..).into(),
                a_pc: a_pc.into(),
                b_imm: flag(&mut r),
                ..Decoded::shape(&s).map("", &mut |_, _| Bits::ZERO)
            };
            let put = (r.u8(..4) > 0).then(|| Put { slot: r.u32(..warps), d });
            let written = r.bool().then(|| {
                let data = (0..lanes).map(|_| r.u32(..)).collect();
                (r.u32(..warps), r.u32(1..4), r.u64(..) & all, data)
            });
            let out = bench.cycle(put.as_ref(), written.as_ref());
            let want = expected.pop_front().flatten();
            assert_eq!(out.instruction.valid == 1, want.is_some());
            if let Some((put, lanes)) = want {
                assert_eq!((out.instruction.slot.low_u64(), &out.instruction.decoded), (u64::from(put.slot), &put.d));
                for (lane, want) in lanes.iter().enumerate() {
                    let got = [&out.a, &out.b, &out.data].map(|v| v.extract(32 * lane as u32, 32).low_u64() as u32);
                    assert_eq!(got, *want, "lane {lane} of {put:x?}");
                }
            }
            // What was put in the cycle before is in stage 5 now, and the banks have this cycle's write.
            let now = std::mem::replace(&mut stage_4, put);
            expected.push_back(now.map(|put| {
                let field = |b: &Bits| b.low_u64() as u32;
                let values = (0..lanes).map(|lane| {
                    let read = |n: u32| if n == 0 { 0 } else { bench.registers[&(put.slot, n, lane)] };
                    let (rs1, rs2) = (read(field(&put.d.rs1)), read(field(&put.d.rs2)));
                    let a = if put.d.a_pc == 1 { field(&put.d.pc) * 4 } else { rs1 };
                    let b = if put.d.b_imm == 1 { field(&put.d.imm) } else { rs2 };
                    [a, b, rs2]
                });
                (put.clone(), values.collect())
            }));
        }
    }
}

#[test]
fn every_csr_in_every_lane() {
    for (lanes, warps, group) in [(1, 1, 1), (1, 8, 2), (2, 1, 1), (4, 4, 4), (4, 8, 1), (64, 2, 2)] {
        let s = Shape::new(lanes, warps);
        let mut bench = Bench::new(&s);
        let (blocks, block_threads) = (1 << 31 | 7, group * lanes);
        bench.grid = (blocks, block_threads, group - 1);
        let block_of = |slot: u32| 0xffff_0000 | (slot / group * 3);
        for slot in 0..warps {
            bench.started = Some((slot, block_of(slot)));
            bench.cycle(None, None);
        }
        for (slot, register) in (0..warps).flat_map(|w| csr::MAP.iter().map(move |c| (w, c))) {
            let d = Decoded {
                imm: register.address.into(),
                csr: true.into(),
                b_imm: true.into(),
                ..Decoded::shape(&s).map("", &mut |_, _| Bits::ZERO)
            };
            bench.cycle(Some(&Put { slot, d }), None);
            // Counters are those of stage 6.
            (0..ISSUE_TO_READ).for_each(|_| drop(bench.cycle(None, None)));
            let cycles = bench.cycles;
            (1..READ_TO_EXECUTE).for_each(|_| drop(bench.cycle(None, None)));
            let out = bench.cycle(None, None);
            for lane in 0..lanes {
                let want = match register.source {
                    Source::Thread => slot * lanes + lane,
                    Source::ThreadInBlock => slot % group * lanes + lane,
                    Source::Blocks => blocks,
                    Source::BlockThreads => block_threads,
                    Source::Warp => slot,
                    Source::Lane => lane,
                    Source::Block => block_of(slot),
                    Source::Lanes => lanes,
                    Source::Warps => warps,
                    Source::Threads => lanes * warps,
                    Source::MemoryBytes => s.memory,
                    Source::Log2StackBytes => s.stack.ilog2(),
                    Source::CycleLow => cycles as u32,
                    Source::CycleHigh => (cycles >> 32) as u32,
                    Source::InstructionsLow => (2 * cycles) as u32,
                    Source::InstructionsHigh => ((2 * cycles) >> 32) as u32,
                };
                let lane_of = |v: &Bits| v.extract(32 * lane, 32).low_u64();
                assert_eq!(lane_of(&out.a), 0);
                assert_eq!(lane_of(&out.b), u64::from(want), "{} in warp {slot} lane {lane}", register.name);
            }
        }
    }
}
