//! The arbiter against a model that knows only threads: those in the first place run, and stop where the next are.

use super::trees::{first_cycles, stop_cycles};
use super::*;
use crate::divergence::testing::{P, Pipeline, Plan, Told, Watch, all_hit};
use crate::divergence::{OutcomeKind, Start};
use crate::pipeline::timing::STEER_TO_DECODE;
use crate::shape::Metrics;
use heddle_hdl::netlist::{Module, Op};
use heddle_sim::Sim;
use heddle_sim::simulation::{Failed, SimulationError};
use std::collections::BTreeMap;
use std::sync::Arc;

fn plan(s: &Shape) -> Plan {
    arbiter(s).check().unwrap()
}

/// The first place's threads, and the pc of the next if it is at the same depth.
fn expected(places: &[P]) -> (P, Option<u64>) {
    let x = places[0];
    let next = places.get(1).filter(|y| (y.waits, y.depth) == (x.waits, x.depth));
    (x, next.map(|y| y.pc))
}

fn compare(p: &Pipeline, slot: usize, x: P, stop: Option<u64>) {
    assert_eq!((x, stop), expected(&p.places(slot)), "slot {slot}");
}

#[test]
fn the_stop_pc_is_there_when_decode_asks() {
    for lanes in [1, 2, 4, 8, 16, 32, 64] {
        // Written that many cycles after the one of the steering.
        assert!(stop_cycles(&Shape::new(lanes, 1)) < STEER_TO_DECODE);
    }
}

/// Every table of four threads with two bits of pc and one of depth, of which some wait. The table is put in place
/// while a start is on its way to the trees.
#[test]
fn every_table_of_four_threads() {
    let s = Shape { barriers: true, metrics: Metrics::Off, ..Shape::new(4, 1) };
    let mut t = Sim::new(&plan(&s));
    let inputs = |start: bool| {
        let idle = UnitIn::shape(&s).map("", &mut |_, _| Bits::ZERO);
        UnitIn { start: Start { valid: start.into(), mask: 0b1111u64.into(), ..idle.start }, ..idle }
    };
    // None, or depth, pc, waits.
    let thread = |k: u64| k.checked_sub(1).map(|k| (k & 1, k >> 1 & 3, k >> 3 == 1));
    for number in 0..17u64.pow(4) {
        t.reset();
        t.poke(inputs(true));
        t.step();
        t.poke(inputs(false));
        let phase = t.memory_read("phases", 0).bit(0);
        let mut places: BTreeMap<_, P> = BTreeMap::new();
        for lane in 0..4 {
            let thread = thread(number / 17u64.pow(lane) % 17);
            let (depth, pc, waits) = thread.unwrap_or_default();
            let fields = [(depth, s.depth_bits), (pc, s.pc_bits()), (u64::from(waits != phase), 1)];
            let word = fields.iter().rev().fold(u64::from(thread.is_some()), |word, &(f, bits)| word << bits | f);
            t.memory_write(&format!("lane[{lane}].threads"), 0, word);
            if thread.is_some() {
                let p = P { depth, pc, waits, mask: 0 };
                places.entry(p.key()).or_insert(p).mask |= 1 << lane;
            }
        }
        let places: Vec<P> = places.into_values().collect();
        t.memory_write("ghost_live", 0, places.iter().fold(0, |m, p| m | p.mask));
        t.steps(u64::from(first_cycles(&s)));
        let runs = places.first().filter(|x| !x.waits);
        let steer = t.peek().steer;
        assert_eq!(steer.valid == 1, runs.is_some(), "{places:?}");
        assert!(runs.is_none_or(|x| steer.pc == x.pc), "{places:?}");
        t.steps(u64::from(1 + stop_cycles(&s)));
        let out = t.peek();
        assert_eq!((out.live == 1, out.waiting == 1), (!places.is_empty(), places.first().is_some_and(|x| x.waits)));
        if !places.is_empty() {
            let (x, stop) = expected(&places);
            assert_eq!((out.mask, out.stop.valid == 1), (x.mask.into(), stop.is_some()), "{places:?}");
            assert!(stop.is_none_or(|stop| out.stop.pc == stop), "{places:?}");
        }
    }
}

#[test]
fn the_first_threads_run_up_to_the_next() {
    let mut covers = BTreeMap::new();
    for (k, lanes) in [1, 2, 4, 8, 16, 32, 64].into_iter().enumerate() {
        for warps in [1, 2, 32] {
            for barriers in [false, true] {
                let s = Shape { barriers, ..Shape::new(lanes, warps) };
                let mut watch = Watch::new(&plan(&s), &s, 100 * k as u64 + u64::from(warps));
                watch.random_cycles(3000, compare);
                watch.pipeline.count_covers(&mut covers);
                watch.pipeline.wake = None;
                watch.cycle(None, None);
                watch.cycle(None, None);
                assert_eq!(watch.merges, watch.met);
            }
        }
    }
    all_hit(&covers);
}

/// A call at the greatest depth is an assertion failure; a return at depth 0 stays there.
#[test]
fn call_depth_has_bounds() {
    let s = Shape { depth_bits: 1, ..Shape::new(4, 1) };
    let mut watch = Watch::new(&plan(&s), &s, 1);
    let to = |depth: u64, pc: u64| P { depth, pc, mask: 0b1111, waits: false };
    let jump = |taken: P| Told { kind: OutcomeKind::Jump, taken, ..Told::default() };
    watch.cycle(None, Some((0, to(0, 0))));
    watch.tell(Told { ret: true, ..jump(to(0, 5)) });
    watch.tell(Told { call: true, ..jump(to(1, 10)) });
    watch.settle(0);
    watch.pipeline.poke(Some(Told { call: true, ..jump(to(0, 20)) }), None, 0, 0);
    let error = watch.pipeline.t.try_step().unwrap_err();
    assert!(error.to_string().starts_with("assertion `call_depth_does_not_overflow` failed"), "{error}");
}

/// The assertion that ends a branch, a memory access and an exit on 8 lanes with a change in the unit or in its lanes.
fn caught_by(change: impl Fn(&mut Module, &mut Module)) -> String {
    let s = Shape::new(8, 1);
    let mut design = plan(&s);
    let mut unit = (*design.netlist).clone();
    let place = unit.instances.iter().position(|i| i.name == "lane").unwrap();
    let mut lane = (*unit.instances[place].module).clone();
    change(&mut unit, &mut lane);
    unit.instances[place].module = Arc::new(lane);
    design.netlist = Arc::new(unit);
    let mut p = Pipeline::new(&design, &s, 1);
    let threads = |mask: u64, pc: u64| P { mask, pc, ..P::default() };
    let of = |kind: OutcomeKind, taken: P, rest: P| Told { kind, taken, rest, ..Told::default() };
    let branch = of(OutcomeKind::Branch, threads(0b0000_1111, 9), threads(0b1111_0000, 1));
    let access = of(OutcomeKind::Memory, threads(0b0111_0000, 4), threads(0b1000_0000, 3));
    let exit = of(OutcomeKind::Exit, P::default(), P::default());
    let start = Some((0, threads(0b1111_1111, 0)));
    for (told, start) in [(None, start), (Some(branch), None), (Some(access), None), (Some(exit), None)] {
        p.poke(told, start, 0, 0);
        for _ in 0..10 {
            match p.t.try_step() {
                Err(SimulationError::Failed(Failed { path, .. })) => return path,
                other => other.unwrap(),
            };
            p.poke(None, None, 0, 0);
        }
    }
    panic!("no assertion failed")
}

#[test]
fn a_thread_that_does_not_end_is_caught() {
    let path = caught_by(|_, lane| {
        let goes = lane.inputs.iter().find(|p| p.name == "goes").unwrap().node;
        lane.memories[0].writes[0].enable = goes;
    });
    assert_eq!(path, "every_live_thread_is_in_one_path");
}

#[test]
fn a_mask_with_others_is_caught() {
    let path = caught_by(|_, lane| {
        let live = lane.outputs.iter().find(|p| p.name == "live").unwrap().node;
        lane.outputs.iter_mut().find(|p| p.name == "same").unwrap().node = live;
    });
    assert_eq!(path, "a_replay_is_alone");
}

#[test]
fn a_tree_that_finds_the_last_is_caught() {
    let path = caught_by(|unit, _| unit.nodes.iter_mut().filter(|n| n.op == Op::Lt).for_each(|n| n.args.reverse()));
    assert!(path.ends_with("nobody_is_before_the_first"), "{path}");
}
