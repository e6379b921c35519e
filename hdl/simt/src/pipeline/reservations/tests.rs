use super::*;
use crate::divergence::Divergence;
use heddle_sim::Sim;
use std::collections::HashMap;

/// What a lane's thread has reserved: line and bank; whether it is in the scratchpad.
type Held = HashMap<(u32, u32), (u32, u32, bool)>;

/// An access of a lane: which, the line and the bank of its word, its warp.
type At = (u32, u32, u32, u32);

/// What goes past the block.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Load,
    Store,
    Atomic,
    Reserve,
    Condition,
}

struct Bench {
    t: Sim<ReservationsIn<Width>, ReservationsOut<Signal>>,
    s: Shape,
    held: Held,
    /// How many `sc.w` of a lane succeeded, and failed though the thread had reserved the word.
    succeeded: u32,
    lost: u32,
}

impl Bench {
    fn new(s: &Shape) -> Bench {
        s.check().unwrap();
        let mut t = Sim::new(&reservations(s).check().unwrap());
        t.reset();
        Bench { t, s: s.clone(), held: Held::new(), succeeded: 0, lost: 0 }
    }

    /// An access of lanes to one line (a store to the scratchpad: to a line each), after some cycles in which memory
    /// does not take it. Each lane has a warp.
    fn access(&mut self, kind: Kind, pad: bool, lanes: &[At], waits: u32) {
        let s = &self.s;
        let first_line = lanes[0].1;
        let zero = Access::shape(s).map("", &mut |_, _| Bits::ZERO);
        let put = |width: Width, of: &dyn Fn(&At) -> u32| {
            let mut limbs = vec![0u64; (s.lanes * width).div_ceil(64) as usize + 1];
            for lane in lanes {
                let (at, value) = (lane.0 * width, u128::from(of(lane)) << (lane.0 * width % 64));
                limbs[at as usize / 64] |= value as u64;
                limbs[at as usize / 64 + 1] |= (value >> 64) as u64;
            }
            Bits::from_limbs(&limbs)
        };
        let operation = match kind {
            Kind::Load | Kind::Reserve => Operation::Load,
            Kind::Store => Operation::Store,
            Kind::Atomic | Kind::Condition => Operation::Atomic,
        };
        let line = first_line | u32::from(pad) << (line_bits(s) - 1);
        let rows = if s.mixes() { put(s.warp_bits(), &|lane| lane.3) } else { lanes[0].3.into() };
        let access = Access {
            valid: true.into(),
            operation: operation.into(),
            served: put(1, &|_| 1),
            scratchpad: (s.scratchpad > 0).then(|| crate::pipeline::memory::ToScratchpad {
                valid: pad.into(),
                lines: put(s.scratchpad_line_bits(), &|lane| if pad { lane.1 } else { 0 }),
            }),
            reserving: Some(ReservingAccess {
                asked: Reserving {
                    reserves: (kind == Kind::Reserve).into(),
                    conditional: (kind == Kind::Condition).into(),
                },
                line: line.into(),
                banks: put(s.lane_bits(), &|lane| lane.2),
                rows,
            }),
            ..zero
        };
        for cycle in 0..=waits {
            let sent = cycle == waits;
            self.t.poke(ReservationsIn { access: access.clone(), sent: sent.into(), restart: false.into() });
            let out = self.t.peek();
            if sent {
                self.follow(kind, pad, lanes, &out);
            }
            self.t.step();
        }
    }

    fn follow(&mut self, kind: Kind, pad: bool, lanes: &[At], out: &ReservationsOut<Bits>) {
        let line_of = |line: u32| set_of_line(&self.s, line, pad);
        let bit = |bits: &Bits, lane: u32| bits.bit(lane);
        let succeeds: Vec<bool> = lanes.iter().map(|&(lane, ..)| !bit(&out.fails, lane)).collect();
        if kind == Kind::Condition {
            for (&(lane, line, bank, warp), &succeeds) in lanes.iter().zip(&succeeds) {
                let before = self.held.remove(&(lane, warp));
                let has = before == Some((line, bank, pad));
                // Nobody has lost it that the model does not know of.
                assert_eq!(succeeds, has, "lane {lane} of warp {warp}: line {line}, bank {bank}, {before:?}");
                self.succeeded += u32::from(succeeds);
            }
            let any = succeeds.iter().any(|&succeeds| succeeds);
            let want = if any { Operation::Atomic } else { Operation::Load };
            assert_eq!(out.operation, want);
            for (&(lane, ..), &succeeds) in lanes.iter().zip(&succeeds) {
                assert_eq!(bit(&out.writes, lane), succeeds || !any, "lane {lane}");
            }
        } else {
            assert!(lanes.iter().all(|&(lane, ..)| bit(&out.writes, lane)));
        }
        let writes = match kind {
            Kind::Store | Kind::Atomic => true,
            Kind::Condition => succeeds.contains(&true),
            Kind::Load | Kind::Reserve => false,
        };
        let before = self.held.len();
        if writes && pad && lanes.iter().any(|lane| lane.1 != lanes[0].1) {
            self.held.retain(|_, held| !held.2);
        } else if writes {
            let set = line_of(lanes[0].1);
            let s = &self.s;
            self.held.retain(|_, &mut (line, _, pad)| set_of_line(s, line, pad) != set);
        }
        self.lost += (before - self.held.len()) as u32;
        if kind == Kind::Reserve {
            for &(lane, line, bank, warp) in lanes {
                self.held.insert((lane, warp), (line, bank, pad));
            }
        }
    }
}

fn shape(lanes: u32, warps: u32, scratchpad: u32) -> Shape {
    Shape { scratchpad, reservations: true, ..Shape::new(lanes, warps) }
}

/// Accesses at random, against a list of who has reserved what.
#[test]
fn only_who_reserved_and_was_not_disturbed_succeeds() {
    let mixed = Shape { reservations: true, ..Shape::new(4, 4) }.with_divergence(Divergence::BLOCK_STACK);
    let shapes = [shape(1, 1, 0), shape(1, 2, 8 << 10), shape(2, 2, 0), shape(8, 8, 8 << 10), shape(64, 1, 0), mixed];
    for (s, seed) in shapes.into_iter().zip(1..) {
        println!("{} × {}, scratchpad {}, seed {seed}", s.lanes, s.warps, s.scratchpad);
        let mut r = fastrand::Rng::with_seed(seed);
        let mut bench = Bench::new(&s);
        for _ in 0..3000 {
            let kind =
                [Kind::Load, Kind::Store, Kind::Atomic, Kind::Reserve, Kind::Reserve, Kind::Condition][r.usize(..6)];
            // Stores are rare enough that something stands.
            let kind = if matches!(kind, Kind::Store | Kind::Atomic) && r.bool() { Kind::Load } else { kind };
            let pad = s.scratchpad > 0 && r.bool();
            let (line, warp) = (r.u32(..3) * 65, r.u32(..s.warps));
            let scatters = pad && matches!(kind, Kind::Store | Kind::Atomic) && r.u8(..4) == 0;
            let mut banks: Vec<u32> = (0..s.lanes).collect();
            r.shuffle(&mut banks);
            let mut lanes: Vec<_> = (0..s.lanes).filter(|_| r.bool()).collect();
            if lanes.is_empty() {
                lanes.push(r.u32(..s.lanes));
            }
            let lane = |lane: u32| {
                // Mostly its own bank, so that it comes back; a load may have one bank for several.
                let bank = if r.u8(..8) == 0 { banks[lane as usize] } else { lane };
                let warp = if s.mixes() { r.u32(..s.warps) } else { warp };
                (lane, if scatters { line + r.u32(..2) } else { line }, bank, warp)
            };
            let lanes: Vec<_> = lanes.into_iter().map(lane).collect();
            bench.access(kind, pad, &lanes, r.u32(..3));
        }
        assert!(bench.succeeded > 25 && bench.lost > 50, "{} succeeded, {} lost", bench.succeeded, bench.lost);
    }
}

/// A thread's second `lr.w` takes the place of its first; an `sc.w` of another word ends it; a thread's own store, too.
#[test]
fn one_reservation_a_thread() {
    let mut bench = Bench::new(&shape(2, 2, 0));
    let at = |line: u32| [(0, line, 0, 1)];
    let succeeds = |bench: &mut Bench, line: u32| {
        let before = bench.succeeded;
        bench.access(Kind::Condition, false, &at(line), 0);
        bench.succeeded > before
    };
    bench.access(Kind::Reserve, false, &at(1), 0);
    bench.access(Kind::Reserve, false, &at(2), 0);
    assert!(!succeeds(&mut bench, 1) && !succeeds(&mut bench, 2));
    bench.access(Kind::Reserve, false, &at(1), 0);
    assert!(succeeds(&mut bench, 1) && !succeeds(&mut bench, 1));
    bench.access(Kind::Reserve, false, &at(1), 0);
    bench.access(Kind::Store, false, &at(1), 0);
    assert!(!succeeds(&mut bench, 1));
}

/// A reservation of a version that was there before is no reservation.
#[test]
fn a_version_that_begins_anew_loses_all() {
    let s = shape(1, 2, 0);
    let mut bench = Bench::new(&s);
    bench.access(Kind::Reserve, false, &[(0, 1, 0, 0)], 0);
    bench.access(Kind::Reserve, false, &[(0, 2, 0, 1)], 0);
    for _ in 0..1 << VERSION {
        bench.access(Kind::Store, false, &[(0, 1, 0, 1)], 0);
    }
    // The other set was never written, but its reservation is lost, too.
    bench.held.clear();
    for (line, warp) in [(1, 0), (2, 1)] {
        bench.access(Kind::Condition, false, &[(0, line, 0, warp)], 0);
    }
    assert_eq!(bench.succeeded, 0);
}

/// A launch begins without reservations.
#[test]
fn a_launch_begins_without_any() {
    let s = shape(1, 1, 0);
    let mut bench = Bench::new(&s);
    bench.access(Kind::Reserve, false, &[(0, 1, 0, 0)], 0);
    let zero = ReservationsIn::shape(&s).map("", &mut |_, _| Bits::ZERO);
    bench.t.poke(ReservationsIn { restart: true.into(), ..zero });
    bench.t.step();
    bench.held.clear();
    bench.access(Kind::Condition, false, &[(0, 1, 0, 0)], 0);
    assert_eq!(bench.succeeded, 0);
}
