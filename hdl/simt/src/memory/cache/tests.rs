use super::super::testing::{Bench, Traffic, mixed_traffic};
use crate::pipeline::timing::REQUEST_TO_HIT;
use crate::shape::{Backing, Cache, Shape, Timing};

fn shape(lanes: u32, cache: Cache, backing: Backing) -> Shape {
    let memory = (64 << 10u32).max(2 * cache.size);
    Shape { cache: Some(cache), backing, atomics: true, memory, stack: 64, ..Shape::new(lanes, 1) }
}

fn slow(latency: u32, jitter: u32, interval: u32) -> Backing {
    Backing::Model(Timing { latency, jitter, interval, seed: 5 })
}

/// Lines of few sets, so that they replace each other; before memories of every kind.
#[test]
fn requests_take_effect_in_order() {
    let cache = |size, ways, line, misses| Cache { size, ways, line, misses };
    let shapes = [
        shape(1, cache(4, 1, 1, 1), Backing::OnChip),
        shape(1, cache(64, 2, 2, 2), slow(3, 7, 1)),
        shape(2, cache(256, 4, 2, 4), slow(1, 15, 2)),
        shape(4, cache(512, 1, 8, 2), slow(20, 0, 1)),
        shape(4, cache(2048, 16, 4, 16), slow(30, 31, 1)),
        shape(8, cache(1024, 2, 1, 8), Backing::OnChip),
        Shape { atomics: false, ..shape(2, cache(128, 2, 2, 2), slow(9, 3, 3)) },
        shape(64, cache(32768, 4, 16, 2), slow(5, 3, 1)),
        Shape { loads: 64, ..shape(2, cache(1024, 4, 1, 64), slow(90, 31, 1)) },
    ];
    mixed_traffic(&shapes);
}

#[test]
fn interesting_cases_happen() {
    let s = shape(2, Cache { size: 128, ways: 2, line: 2, misses: 4 }, slow(8, 7, 3));
    let mut bench = Bench::new(&s, 1);
    for loads in [1, 4, 7] {
        bench.run(&Traffic { lines: 32, loads, ..Traffic::default() });
        bench.run(&Traffic { lines: 4, loads, ..Traffic::eager() });
    }
    for cover in [
        "hit_under_a_miss",
        "miss_under_a_miss",
        "joined",
        "no_room_to_join",
        "victim_reserved",
        "outbox_full",
        "hit_waits_for_a_beat",
        "replaced",
        "atomic_replayed",
        "response_held",
    ] {
        assert!(bench.t.cover_hits(&format!("cache.{cover}")) > 0, "{cover}");
    }
}

/// Hits take a request a cycle and three cycles each.
#[test]
fn hits_do_not_wait() {
    let s = shape(4, Cache { size: 4096, ways: 2, line: 2, misses: 2 }, slow(50, 0, 1));
    let mut bench = Bench::new(&s, 1);
    let loads = Traffic { lines: 4, loads: 8, ..Traffic::eager() };
    bench.run(&loads);
    let measured = bench.run(&loads);
    let hit = u64::from(REQUEST_TO_HIT);
    assert_eq!((*measured.latency.start(), *measured.latency.end()), (hit, hit));
    assert_eq!(measured.requests, measured.cycles);
}
