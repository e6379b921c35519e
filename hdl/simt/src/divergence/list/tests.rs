//! The list against a model that knows only threads: those in the first place run, and stop where the next are.

use super::*;
use crate::divergence::testing::{P, Pipeline, Plan, Watch, all_hit};
use std::collections::BTreeMap;

fn plan(s: &Shape) -> Plan {
    list(s).check().unwrap()
}

/// The active path is that of the first place, and the stop pc that of the next at its depth.
fn compare(p: &Pipeline, slot: usize, x: P, stop: Option<u64>) {
    let places = p.places(slot);
    let first = places[0];
    let next = places.get(1).filter(|next| (next.waits, next.depth) == (first.waits, first.depth));
    assert_eq!((x, stop), (first, next.map(|next| next.pc)), "slot {slot}");
}

#[test]
fn the_first_path_runs_up_to_the_next() {
    let mut covers = BTreeMap::new();
    for (lanes, warps, barriers) in
        [(1, 1, true), (2, 2, false), (4, 1, true), (4, 8, true), (8, 2, false), (16, 1, true), (64, 2, true)]
    {
        let s = Shape { barriers, ..Shape::new(lanes, warps) };
        let mut watch = Watch::new(&plan(&s), &s, u64::from(lanes + warps));
        watch.random_cycles(3000, compare);
        watch.pipeline.count_covers(&mut covers);
        assert_eq!(watch.merges, watch.met);
    }
    all_hit(&covers);
}
