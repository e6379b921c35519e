use super::*;
use crate::pipeline::testing::packed;
use heddle_sim::Sim;

/// A load under way: what is still to be answered, group by group.
struct Load {
    slot: u32,
    rd: u32,
    groups: Vec<u64>,
}

/// A load of all lanes, in groups of lanes at random.
fn load(r: &mut fastrand::Rng, all: u64, slot: u32, rd: u32) -> Load {
    let (mut left, mut groups) = (all, Vec::new());
    while left != 0 {
        let group = match r.u8(..3) {
            0 => left,
            _ => left & r.u64(..),
        };
        groups.extend((group != 0).then_some(group));
        left &= !group;
    }
    Load { slot, rd, groups }
}

/// Answers to loads in any order: every lane is written once with its word, a load's last lanes with `last`, and
/// nothing waits that could go on. Answers of one load that follow each other are one write.
#[test]
fn every_lane_is_written_once() {
    let shapes =
        [(1, 1, false, 1), (2, 2, false, 2), (8, 4, false, 3), (8, 4, true, 4), (64, 2, false, 5), (64, 64, true, 6)];
    // With a scratchpad, it is said whose each answer would be.
    for ((lanes, warps, in_turn, seed), candidates) in shapes.into_iter().flat_map(|s| [(s, false), (s, true)]) {
        println!("{lanes} × {warps}, one load after the other: {in_turn}, seed {seed}, candidates: {candidates}");
        let scratchpad = if candidates { Shape::default_scratchpad(lanes, warps) } else { 0 };
        let s = Shape { replay: Replay::Serialise, scratchpad, ..Shape::small(lanes, warps) };
        let mut r = fastrand::Rng::with_seed(seed);
        let mut t = Sim::new(&gather(&s).check().unwrap());
        t.reset();
        let all = u64::MAX >> (64 - lanes);
        let mut loads: Vec<Load> = Vec::new();
        // The answer at the input, and what the register holds: its words are those of `words`.
        let mut answer: Option<(u32, u32, u64, bool)> = None;
        // One that another came in the place of.
        let mut aside: Option<(u32, u32, u64, bool)> = None;
        let mut held: Option<(u32, u32, u64, bool)> = None;
        // The answer waits behind another load since the cycle before.
        let mut another_waits = false;
        let mut words = vec![0; lanes as usize];
        let (mut begun, mut ended, mut writes, mut groups) = (0, 0, 0, 0);
        for _ in 0..4000 {
            if loads.len() < 4 {
                let (slot, rd) = (r.u32(..warps), r.u32(1..32));
                if loads.iter().all(|l| (l.slot, l.rd) != (slot, rd))
                    && held.is_none_or(|h| (h.0, h.1) != (slot, rd))
                    && [answer, aside].iter().flatten().all(|a| (a.0, a.1) != (slot, rd))
                {
                    loads.push(load(&mut r, all, slot, rd));
                    begun += 1;
                }
            }
            if answer.is_none() && !loads.is_empty() && r.u8(..4) > 0 {
                let k = if in_turn { 0 } else { r.usize(..loads.len()) };
                // Only the last of a load says so.
                if aside.is_some_and(|a| (a.0, a.1) == (loads[k].slot, loads[k].rd)) {
                    std::mem::swap(&mut answer, &mut aside);
                    continue;
                }
                let lanes = loads[k].groups.remove(0);
                let last = loads[k].groups.is_empty();
                answer = Some((loads[k].slot, loads[k].rd, lanes, last));
                groups += 1;
                if last {
                    loads.remove(k);
                }
            }
            if !in_turn && r.u8(..4) == 0 {
                std::mem::swap(&mut answer, &mut aside);
            }
            let line: Vec<u32> = (0..lanes).map(|_| r.u32(..)).collect();
            let (slot, rd, mask, last) = answer.unwrap_or((0, 1, 0, false));
            let candidates = s.two_answers().then(|| {
                let (from_load, from_scratchpad) = (r.bool(), r.bool());
                let mut owner = |comes: bool| {
                    // Often one like what is held.
                    let other = held.filter(|_| r.bool()).map_or((r.u32(..warps), r.u32(1..32)), |h| (h.0, h.1));
                    let (slot, rd) = if comes { (slot, rd) } else { other };
                    Owner { slot: slot.into(), rd: rd.into() }
                };
                let (scratchpad, port) = (owner(from_load && from_scratchpad), owner(from_load && !from_scratchpad));
                let loads = Owners { scratchpad, port, from_scratchpad: from_scratchpad.into() };
                Candidates { loads, quotient: owner(!from_load), from_load: from_load.into() }
            });
            let asked = |written: bool| GatherIn {
                answer: Loaded {
                    valid: answer.is_some().into(),
                    slot: slot.into(),
                    rd: rd.into(),
                    lanes: mask.into(),
                    words: packed(&line),
                    leader: None,
                    offset: Bits::ZERO,
                    size: 2u32.into(),
                    last: last.into(),
                },
                written: written.into(),
                candidates: candidates.clone(),
            };
            let joins = held.is_some_and(|h| answer.is_some_and(|a| (h.0, h.1, h.3) == (a.0, a.1, false)));
            let offered = held.filter(|h| h.3 || another_waits);
            let written = offered.is_some() && r.bool();
            another_waits = held.is_some() && answer.is_some() && !joins && !written;
            t.poke(asked(written));
            let out = t.peek();
            assert_eq!((out.empty == 1, out.offered.valid == 1), (held.is_none(), offered.is_some()));
            if let Some((slot, rd, mask, last)) = offered {
                let o = &out.offered;
                assert_eq!((o.slot.low_u64(), o.rd.low_u64()), (slot.into(), rd.into()));
                assert_eq!((o.lanes.low_u64(), o.last == 1), (mask, last));
                for k in (0..lanes).filter(|k| mask >> k & 1 == 1) {
                    assert_eq!(o.words.extract(32 * k, 32), u64::from(words[k as usize]), "lane {k}");
                }
            }
            let taken = answer.is_some() && (held.is_none() || joins || written);
            assert_eq!(out.taken == 1, taken);
            if written {
                writes += 1;
                ended += u32::from(held.is_some_and(|h| h.3));
                held = None;
            }
            if taken {
                let before = held.map_or(0, |h| h.2);
                held = Some((slot, rd, before | mask, last));
                for k in (0..lanes as usize).filter(|k| mask >> k & 1 == 1) {
                    words[k] = line[k];
                }
                answer = None;
            }
            t.step();
        }
        assert!(begun > 200 && ended + 7 >= begun, "{ended} of {begun} loads were written");
        assert!(in_turn || lanes < 8 || t.cover_hits("more_comes_as_it_is_written") > 0);
        // In turn, a load is one write; at any order, some are more.
        assert_eq!(in_turn || lanes == 1, writes == ended, "{writes} writes of {groups} groups");
        assert!(lanes == 1 || writes < groups, "{writes} writes of {groups} groups");
    }
}
