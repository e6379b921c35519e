use super::*;
use heddle_sim::Sim;

/// What the slots do, and what must be started next.
struct Bench {
    t: Sim<DistributorIn<Width>, DistributorOut<Signal>>,
    s: Shape,
    r: fastrand::Rng,
    /// By slot: its block, if it has live threads; cycles until its registers are written.
    live: Vec<Option<u32>>,
    pending: Vec<u32>,
}

impl Bench {
    fn new(s: &Shape, seed: u64) -> Bench {
        println!("{} × {}, seed {seed}", s.lanes, s.warps);
        let mut t = Sim::new(&distributor(s).check().unwrap());
        t.reset();
        let slots = s.warps as usize;
        Bench { t, s: s.clone(), r: fastrand::Rng::with_seed(seed), live: vec![None; slots], pending: vec![0; slots] }
    }

    /// A cycle: what the slots show, what the distributor says then, and what the edge changes.
    fn cycle(&mut self, launch: Option<(u32, u32, u32)>, ready: bool) -> DistributorOut<Bits> {
        let mask = |slots: &mut dyn Iterator<Item = bool>| -> Bits {
            slots.enumerate().fold(0u64, |mask, (slot, on)| mask | u64::from(on) << slot).into()
        };
        // Of a launch, only its first cycle counts.
        let random = (self.r.u32(..), self.r.u32(..), self.r.u32(1..=self.s.threads()));
        let (entry, blocks, block_threads) = launch.unwrap_or(random);
        let idle = self.live.iter().all(Option::is_none) && self.pending.iter().all(|&p| p == 0);
        self.t.poke(DistributorIn {
            launch: launch.is_some().into(),
            entry: (entry % (1 << self.s.pc_bits())).into(),
            blocks: blocks.into(),
            block_threads: block_threads.into(),
            start_ready: ready.into(),
            live: mask(&mut self.live.iter().map(Option::is_some)),
            quiet: mask(&mut self.pending.iter().map(|&p| p == 0)),
            idle: idle.into(),
        });
        let out = self.t.peek();
        self.t.step();
        for slot in 0..self.live.len() {
            self.pending[slot] = self.pending[slot].saturating_sub(1);
            if self.live[slot].is_some() && self.r.u8(..12) == 0 {
                self.live[slot] = None;
                self.pending[slot] = if self.r.bool() { self.r.u32(..20) } else { 0 };
            }
        }
        if out.start.valid == 1 && ready {
            let slot = out.start.slot.low_u64() as usize;
            assert_eq!((self.live[slot], self.pending[slot]), (None, 0), "slot {slot} is in use");
            self.live[slot] = Some(out.block.low_u64() as u32);
        }
        out
    }

    /// A launch from its first cycle to `done`: every warp of every block in order, in an aligned group of its own.
    fn launch(&mut self, blocks: u32, block_threads: u32) {
        let (lanes, what) = (self.s.lanes, format!("{blocks} blocks of {block_threads}"));
        let entry = self.r.u32(..1 << self.s.pc_bits());
        assert_eq!(self.cycle(Some((entry, blocks, block_threads)), true).restart, 1, "{what}");
        let warps = block_threads.div_ceil(lanes);
        let size = warps.next_power_of_two();
        let mut wanted = (0..blocks).flat_map(|block| (0..warps).map(move |warp| (block, warp)));
        let (mut next, mut first, mut cycles) = (wanted.next(), 0, 0);
        loop {
            // Another launch in between does nothing.
            let again = (self.r.u8(..10) == 0).then_some((0, 1, 1));
            let ready = self.r.u8(..4) > 0;
            let was_live = self.live.clone();
            let was_pending = self.pending.clone();
            let out = self.cycle(again.filter(|_| next.is_some()), ready);
            assert_eq!(out.restart, 0);
            if out.done == 1 {
                break;
            }
            let grid = [&out.grid.blocks, &out.grid.block_threads, &out.grid.group].map(Bits::low_u64);
            assert_eq!(grid, [blocks, block_threads, size - 1].map(u64::from), "{what}");
            let Start { valid, slot, pc, mask } = out.start;
            let slot = slot.low_u64() as u32;
            let filling = if valid == 1 { (u64::MAX >> (64 - size)) << (slot / size * size) } else { 0 };
            assert_eq!(out.filling, filling);
            if valid == 1 {
                let (block, warp) = next.unwrap_or_else(|| panic!("{what}: one start too many"));
                if warp == 0 {
                    first = slot;
                    let group = first as usize..(first + size) as usize;
                    assert!(was_live[group.clone()].iter().all(Option::is_none), "{what}: group at {first} is live");
                    assert!(was_pending[group].iter().all(|&p| p == 0), "{what}: group at {first} is written to");
                }
                assert_eq!((first % size, slot), (0, first + warp), "{what}");
                let threads = (block_threads - warp * lanes).min(lanes);
                assert_eq!(mask, u64::MAX >> (64 - threads), "{what}");
                assert_eq!((out.block.low_u64(), pc.low_u64()), (u64::from(block), u64::from(entry)), "{what}");
                if ready {
                    next = wanted.next();
                }
            }
            cycles += 1;
            assert!(cycles < 100_000, "{what}: does not end");
        }
        assert_eq!(next, None, "{what}: a warp was not started");
        assert!(self.live.iter().all(Option::is_none));
    }
}

/// Grids and blocks of all sizes on cores from one thread to many warps; several launches one after the other.
#[test]
fn every_warp_of_every_block_starts_once() {
    for (lanes, warps, seed) in [(1, 1, 1), (4, 1, 2), (1, 2, 3), (4, 4, 4), (2, 8, 5), (64, 4, 6), (8, 64, 7)] {
        let s = Shape::new(lanes, warps);
        let mut bench = Bench::new(&s, seed);
        let threads = s.threads();
        let sizes = [1, lanes, lanes + 1, threads / 2 + 1, threads - 1, threads];
        for block_threads in sizes.into_iter().filter(|size| (1..=threads).contains(size)) {
            for blocks in [1, 2, 3 * warps + 1] {
                bench.launch(blocks, block_threads);
            }
        }
        for _ in 0..10 {
            let (blocks, block_threads) = (bench.r.u32(1..20), bench.r.u32(1..=threads));
            bench.launch(blocks, block_threads);
        }
        assert!(bench.t.cover_hits("no_group_is_free") > 0 && bench.t.cover_hits("waits_for_registers") > 0);
    }
}

/// All blocks of small cores: every number of threads.
#[test]
fn every_size_of_a_block() {
    for (lanes, warps, seed) in [(1, 8, 1), (4, 4, 2), (8, 2, 3), (2, 1, 4)] {
        let mut bench = Bench::new(&Shape::new(lanes, warps), seed);
        for block_threads in 1..=lanes * warps {
            bench.launch(5, block_threads);
        }
    }
}

/// Nothing in the way, a warp starts in every cycle: blocks follow each other without a gap.
#[test]
fn a_start_in_every_cycle() {
    for (warps, block_threads, started) in [(8, 1, 8), (8, 5, 8), (8, 12, 6), (64, 65, 34)] {
        let s = Shape::new(4, warps);
        let mut t = Sim::new(&distributor(&s).check().unwrap());
        t.reset();
        let mut live = 0u64;
        let mut starts = vec![];
        for cycle in 0..started + 10 {
            t.poke(DistributorIn {
                launch: (cycle == 0).into(),
                entry: 0u32.into(),
                blocks: 1000u32.into(),
                block_threads: (block_threads as u32).into(),
                start_ready: true.into(),
                live: live.into(),
                quiet: (u64::MAX >> (64 - warps)).into(),
                idle: false.into(),
            });
            let out = t.peek();
            if out.start.valid == 1 {
                live |= 1 << out.start.slot.low_u64();
                starts.push(cycle);
            }
            t.step();
        }
        assert_eq!(starts, (2..2 + started).collect::<Vec<_>>(), "{warps} warps, blocks of {block_threads}");
    }
}
