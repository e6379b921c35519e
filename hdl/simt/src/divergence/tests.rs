//! What holds of every divergence unit, seen from its ports: a slot is steered once after each outcome, to threads that
//! are where outcomes sent them and that can run, or it ends, or waits.

use super::testing::{P, Slot, Told, Watch, lanes, mask};
use super::*;
use crate::reconvergence::{Meet, Reconvergence};
use std::fs;
use std::path::Path;

/// Those whose slots are warps; the others' tests are beside them.
fn units() -> impl Iterator<Item = &'static Divergence> {
    Divergence::ALL
        .iter()
        .filter(|divergence| !divergence.capabilities().two_paths && !divergence.capabilities().mixes_warps)
}

/// Units that are told where threads reconverge are told that all branches meet at one place.
fn watch(divergence: Divergence, shape: Shape, seed: u64) -> Watch {
    let s = Shape { divergence, ..shape };
    let mut watch = Watch::new(&divergence.mechanism().unit(&s).check().unwrap(), &s, seed);
    watch.pipeline.meets = divergence.capabilities().reconverges.then(|| Reconvergence::new(Meet::At(9), false, None));
    watch
}

#[test]
fn slots_run_threads_that_are_where_outcomes_sent_them() {
    for divergence in units() {
        for lanes in [1, 2, 4, 8, 16, 64] {
            for (warps, barriers) in [(1, true), (2, false), (8, true)] {
                println!("{}", divergence.name());
                // Random threads come to barriers alone.
                let shape =
                    Shape { barriers: barriers && !divergence.capabilities().reconverges, ..Shape::new(lanes, warps) };
                let mut watch = watch(*divergence, shape, u64::from(lanes + warps));
                watch.random_cycles(2000, |_, _, _, _| {});
            }
        }
    }
}

/// `path-lists-simty.txt` Figure 1(e): `if (A && B) C; else D; E`, thread 0 through ABCE, 1 through ADE, 2 and 3
/// through ABDE. (Stacks run as they are told, in another order: their tests are beside them.)
#[test]
fn figure_1e() {
    let (a, b, c, d, e) = (0, 10, 20, 30, 40);
    let side = |pc: u64, threads: &str| P { pc, mask: mask(threads), ..P::default() };
    let branch = |taken: P, rest: P| Told { kind: OutcomeKind::Branch, taken, rest, ..Told::default() };
    for divergence in units().filter(|divergence| !divergence.capabilities().reconverges) {
        println!("{}", divergence.name());
        let mut watch = watch(*divergence, Shape::new(4, 1), 1);
        let runs = |watch: &mut Watch, pc: u64, threads: &str, stops: Option<u64>| {
            watch.settle(0);
            let (x, stop) = watch.asked(0);
            assert_eq!((x.pc, lanes(x.mask).as_str(), stop), (pc, threads, stops));
        };
        watch.cycle(None, Some((0, side(a, "1111"))));
        runs(&mut watch, a, "1111", None);
        watch.tell(branch(side(d, "0100"), side(b, "1011")));
        runs(&mut watch, b, "1011", Some(d));
        watch.tell(branch(side(d, "0011"), side(c, "1000")));
        runs(&mut watch, c, "1000", Some(d));
        watch.tell(Told { kind: OutcomeKind::Jump, taken: side(e, "1000"), ..Told::default() });
        runs(&mut watch, d, "0111", Some(e));
        watch.tell(Told { kind: OutcomeKind::Arrived, taken: side(e, "0111"), ..Told::default() });
        runs(&mut watch, e, "1111", None);
        watch.tell(Told { kind: OutcomeKind::Exit, ..Told::default() });
        watch.settle(0);
        assert_eq!(watch.pipeline.slots[0], Slot::Idle);
    }
}

/// A wake and a start get their turn although other slots would give an outcome in every cycle.
#[test]
fn outcomes_do_not_starve_a_wake() {
    for divergence in units() {
        println!("{}", divergence.name());
        let mut watch = watch(*divergence, Shape::new(4, 16), 1);
        let all = P { mask: 0b1111, ..P::default() };
        (0..15).for_each(|slot| watch.cycle(None, Some((slot, all))));
        let wait = Told { slot: 14, kind: OutcomeKind::Wait, taken: P { waits: true, ..all }, ..Told::default() };
        watch.tell(wait);
        watch.settle(14);
        assert_eq!(watch.pipeline.slots[14], Slot::Parked);
        let (mut cycles, mut slot) = (0, 0);
        while watch.pipeline.slots[14] == Slot::Parked || watch.pipeline.slots[15] == Slot::Idle {
            let comes = slot;
            slot = (slot + 1) % 14;
            let holds = watch.pipeline.t.peek().hold == 1;
            let slot = if watch.pipeline.is_told_ahead() {
                let announced = watch.pipeline.announced == Some(comes);
                watch.pipeline.announces = (!holds).then_some(slot);
                announced.then_some(comes)
            } else {
                (!holds).then_some(slot)
            };
            let runs = slot.filter(|&slot| watch.pipeline.slots[slot] == Slot::Runs && watch.is_ready(slot));
            let told = runs.map(|slot| {
                let (x, _) = watch.asked(slot);
                Told { slot, kind: OutcomeKind::Jump, taken: x, ..Told::default() }
            });
            watch.pipeline.wake = (watch.pipeline.slots[14] == Slot::Parked).then_some(14);
            let start = (watch.pipeline.slots[15] == Slot::Idle).then_some((15, all));
            watch.cycle(told, start);
            cycles += 1;
            assert!(cycles < 64, "{:?}", watch.pipeline.slots);
        }
    }
}

/// Configuration, interface and pipeline ask for capabilities. Who uses a mechanism is the list of them, what only it
/// uses, and tests.
#[test]
fn the_pipeline_uses_no_mechanism() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let folders =
        ["", "shape", "pipeline", "scoreboard", "memory", "lane", "host", "core"].map(|folder| root.join(folder));
    let files = folders.iter().flat_map(|folder| fs::read_dir(folder).unwrap()).map(|entry| entry.unwrap().path());
    let sources = files.filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    let interface = ["interface", "capabilities", "mechanism", "inspect", "proof"];
    let own = interface.map(|name| root.join("divergence").join(format!("{name}.rs")));
    let all = include_str!("mod.rs").lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    let modules: Vec<&str> = all.filter(|module| !interface.contains(module)).collect();
    assert!(modules.contains(&"stack"), "{modules:?}");
    // `divergence::stack::…`, and `divergence::{stack, …}` or `{…, stack::…}`.
    let names = |line: &str, module: &str| {
        let list = line.split_once("divergence::{").map_or("", |(_, list)| list);
        let in_list = list.split(['{', '}', ',', ';', ' ']).any(|word| word.split("::").next() == Some(module));
        in_list || line.contains(&format!("divergence::{module}::")) || line.contains(&format!("divergence::{module};"))
    };
    let mut count = 0;
    for path in sources.chain(own) {
        let text = fs::read_to_string(&path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
            count += 1;
            let uses = modules.iter().find(|module| names(line, module));
            assert!(uses.is_none(), "{}: {line}", path.display());
        }
    }
    assert!(count > 5000, "only {count} lines");
}
