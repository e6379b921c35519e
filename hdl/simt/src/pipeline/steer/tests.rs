use super::*;
use crate::pipeline::fetch::{FetchIn, FetchOut, fetch};
use crate::pipeline::timing::{ISSUE_TO_NEXT, LEAST_BUFFER, STEER_TO_DECODE};
use heddle_sim::Sim;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
struct FrontIn<T> {
    steer: Steer<T>,
    stop_valid: T,
    #[width(s.warp_bits())]
    stop_slot: T,
    #[width(count_width(s.buffer) * s.warps)]
    buffered: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct FrontOut<T> {
    chosen: Steered<T>,
    running: T,
    fetching: Steered<T>,
    decoding: Steered<T>,
}

/// Stages 1 and 2 as the core wires them.
fn front(s: &Shape) -> TypedModule<FrontIn<Width>, FrontOut<Signal>> {
    module("front", FrontIn::shape(s), |m, i| {
        let FrontIn { steer: steered, stop_valid, stop_slot, buffered } = i;
        let inputs = SteerIn { steer: steered, stop_valid, stop_slot, flush: None, buffered };
        let SteerOut { chosen, running } = m.instance("steer", &steer(s), inputs);
        let word = m.lit(0u32, 32);
        let FetchOut { fetching: second, fetched: third, .. } =
            m.instance("fetch", &fetch(s), FetchIn { chosen, word, stop_valid, stop_slot, uniform: None, flush: None });
        FrontOut { chosen, running, fetching: second, decoding: third }
    })
}

/// A slot as the rest of the core would see it.
#[derive(Clone, Default)]
struct Slot {
    /// The pc that decode must see next; None where the front end is stopped.
    next: Option<u32>,
    buffered: u32,
}

struct Bench {
    t: Sim<FrontIn<Width>, FrontOut<Signal>>,
    s: Shape,
    slots: Vec<Slot>,
    /// The slots of the last choices, the latest first: in stages 2 and 3.
    chosen: [Option<u32>; 2],
    /// Slots that have room for a fetch, as was known a cycle ago.
    room: Vec<bool>,
    /// Of whom one was chosen a cycle ago.
    choices: Vec<u32>,
}

impl Bench {
    fn new(warps: u32, buffer: u32) -> Bench {
        let s = Shape { buffer, ..Shape::new(2, warps) };
        let mut t = Sim::new(&front(&s).check().unwrap());
        t.reset();
        let count = warps as usize;
        Bench { t, slots: vec![Slot::default(); count], s, chosen: [None; 2], room: vec![true; count], choices: vec![] }
    }

    /// One cycle: steers a slot, stops the slot in decode if `stops`, takes one instruction out of the buffers in
    /// `pops`. Checks what decode sees, and the credits. Returns what stage 1 chose, with what stages 2 and 3 held.
    fn cycle(&mut self, steer: Option<(u32, u32)>, stops: bool, pops: &[u32]) -> FrontOut<Bits> {
        let count_bits = count_width(self.s.buffer);
        let counts = self
            .slots
            .iter()
            .enumerate()
            .fold(0u128, |packed, (w, slot)| packed | u128::from(slot.buffered) << (w as u32 * count_bits));
        let decoding = self.t.peek().decoding;
        let stop_valid = stops && decoding.valid == 1;
        let (slot, pc) = steer.unwrap_or_default();
        self.t.poke(FrontIn {
            steer: Steer { valid: steer.is_some().into(), slot: slot.into(), pc: pc.into(), replay: false.into() },
            stop_valid: stop_valid.into(),
            stop_slot: decoding.slot.clone(),
            buffered: counts.into(),
        });
        let out = self.t.peek();
        self.check_choice(&out, steer.map(|(slot, _)| slot));
        if decoding.valid == 1 {
            let slot = &mut self.slots[decoding.slot.low_u64() as usize];
            let expected = slot.next.expect("decode sees nothing of a stopped slot");
            assert_eq!(decoding.pc, u64::from(expected));
            let following = (expected + 1) & ((1 << self.s.pc_bits()) - 1);
            slot.next = (!stop_valid).then_some(following);
            slot.buffered += 1;
            assert!(slot.buffered <= self.s.buffer, "the buffer overflows");
        }
        pops.iter().for_each(|&w| self.slots[w as usize].buffered -= 1);
        if let Some((slot, pc)) = steer {
            self.slots[slot as usize].next = Some(pc);
        }
        self.t.step();
        out
    }

    /// Stage 1 has what was chosen a cycle ago, if it was not stopped then. A slot without an undecoded fetch is chosen
    /// first, then who is steered, then others.
    fn check_choice(&mut self, out: &FrontOut<Bits>, steered: Option<u32>) {
        let chosen = (out.chosen.valid == 1).then(|| out.chosen.slot.low_u64() as u32);
        match chosen {
            Some(w) => {
                assert!(out.running.bit(w) && self.choices.contains(&w), "slot {w} is none of {:?}", self.choices)
            }
            None => assert!(
                self.choices.is_empty() || self.choices.iter().any(|&w| !out.running.bit(w)),
                "a cycle is wasted"
            ),
        }
        let wants = |w: &u32| out.running.bit(*w) && self.room[*w as usize] && chosen != Some(*w);
        let wanting: Vec<u32> = (0..self.s.warps).filter(wants).collect();
        let undecoded = |w: &u32| chosen == Some(*w) || self.chosen.contains(&Some(*w));
        let preferred: Vec<u32> = wanting.iter().copied().filter(|w| !undecoded(w)).collect();
        self.choices = match (preferred.is_empty(), steered) {
            (false, _) => preferred,
            (true, Some(steered)) => vec![steered],
            (true, None) => wanting,
        };
        let flying = |w: u32| [chosen, self.chosen[0], self.chosen[1]].iter().filter(|&&c| c == Some(w)).count() as u32;
        self.room = (0..self.s.warps).map(|w| self.slots[w as usize].buffered + flying(w) < self.s.buffer).collect();
        self.chosen = [chosen, self.chosen[0]];
    }
}

#[test]
fn random_slots_never_overflow_and_never_lose_a_pc() {
    for (warps, buffer, seed) in [(1, 4, 1), (2, 4, 2), (8, 4, 3), (8, 16, 4), (64, 4, 5)] {
        println!("{warps} warps, buffers of {buffer}, seed {seed}");
        let mut r = fastrand::Rng::with_seed(seed);
        let mut bench = Bench::new(warps, buffer);
        let mut decoded = 0;
        for _ in 0..3000 {
            let stopped = |slot: &Slot| slot.next.is_none() && slot.buffered == 0;
            let stopped: Vec<u32> = (0..warps).filter(|&w| stopped(&bench.slots[w as usize])).collect();
            let steer = r.choice(&stopped).copied().filter(|_| r.bool()).map(|w| (w, r.u32(..1 << bench.s.pc_bits())));
            let pops: Vec<u32> =
                (0..warps).filter(|&w| bench.slots[w as usize].buffered > 0 && r.u8(..4) == 0).collect();
            let stops = r.u8(..6) == 0;
            decoded += u32::from(bench.cycle(steer, stops, &pops).decoding.valid == 1);
        }
        assert!(decoded > 300, "{decoded} decoded");
    }
}

/// A slot that issues as often as it may is never without an instruction.
#[test]
fn one_slot_fetches_as_fast_as_it_issues() {
    let mut bench = Bench::new(1, LEAST_BUFFER);
    bench.cycle(Some((0, 100)), false, &[]);
    let mut since = ISSUE_TO_NEXT;
    let mut issued = 0;
    for cycle in 0..50 {
        let goes = bench.slots[0].buffered > 0 && since >= ISSUE_TO_NEXT;
        issued += u32::from(goes);
        since = if goes { 1 } else { since + 1 };
        bench.cycle(None, false, if goes { &[0] } else { &[] });
        assert!(cycle < STEER_TO_DECODE || since < ISSUE_TO_NEXT || bench.slots[0].buffered > 0, "cycle {cycle}");
    }
    assert!(issued >= (50 - STEER_TO_DECODE) / ISSUE_TO_NEXT, "{issued}");
}

/// The slots take turns: each is chosen once in as many cycles as there are slots.
#[test]
fn running_slots_take_turns() {
    let mut bench = Bench::new(8, 16);
    (0..8).for_each(|w| drop(bench.cycle(Some((w, 0)), false, &[])));
    for _ in 0..5 {
        let mut turns: Vec<u64> = (0..8)
            .map(|_| {
                let pops: Vec<u32> = (0..8).filter(|&w| bench.slots[w as usize].buffered > 0).collect();
                bench.cycle(None, false, &pops).chosen.slot.low_u64()
            })
            .collect();
        turns.sort_unstable();
        assert_eq!(turns, (0..8).collect::<Vec<_>>());
    }
}

/// A full buffer stops its slot's fetches and no other's.
#[test]
fn a_full_buffer_waits() {
    let mut bench = Bench::new(2, 4);
    bench.cycle(Some((0, 0)), false, &[]);
    bench.cycle(Some((1, 0)), false, &[]);
    let mut run = |cycles: u32| -> Vec<u64> {
        let mut chosen = vec![];
        for _ in 0..cycles {
            let pops: &[u32] = if bench.slots[1].buffered > 0 { &[1] } else { &[] };
            let out = bench.cycle(None, false, pops);
            chosen.extend((out.chosen.valid == 1).then(|| out.chosen.slot.low_u64()));
        }
        chosen
    };
    run(20);
    let chosen = run(20);
    assert!(chosen.len() > 5 && chosen.iter().all(|&slot| slot == 1), "{chosen:?}");
    assert_eq!(bench.slots[0].buffered, 4);
}
