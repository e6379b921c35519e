use super::super::testing::{Bench, Traffic};
use crate::shape::{Backing, Cache, Shape, SlaveModel, Timing};

fn shape(lanes: u32, width: u32, timing: Timing) -> Shape {
    let backing = Backing::Wishbone { width, slave: SlaveModel { timing, error: None } };
    Shape { backing, atomics: true, memory: 64 << 10, stack: 64, ..Shape::new(lanes, 1) }
}

fn timing(latency: u32, jitter: u32, interval: u32) -> Timing {
    Timing { latency, jitter, interval, seed: 5 }
}

#[test]
fn requests_take_effect_in_order() {
    let slow = timing(7, 15, 2);
    let shapes = [
        shape(1, 32, Timing::FASTEST),
        shape(1, 32, timing(20, 3, 1)),
        shape(2, 32, slow),
        shape(2, 64, timing(1, 1, 1)),
        Shape { atomics: false, ..shape(2, 32, timing(3, 7, 3)) },
        shape(8, 32, slow),
        shape(8, 64, timing(30, 31, 1)),
        shape(8, 256, timing(2, 3, 1)),
        Shape { atomics: false, loads: 2, ..shape(8, 64, slow) },
        Shape { loads: 64, ..shape(8, 256, timing(40, 0, 1)) },
        shape(64, 32, timing(2, 3, 1)),
        Shape { atomics: false, ..shape(64, 64, slow) },
        shape(64, 2048, slow),
        Shape { cache: Some(Cache { size: 512, ways: 2, line: 2, misses: 4 }), ..shape(4, 64, slow) },
    ];
    for (s, seed) in shapes.iter().zip(1..) {
        let mut bench = Bench::new(s, seed);
        bench.run(&Traffic::default());
        bench.run(&Traffic { cycles: 1000, loads: 7, ..Traffic::eager() });
    }
}

#[test]
fn interesting_cases_happen() {
    let mut bench = Bench::new(&Shape { loads: 4, ..shape(4, 64, timing(40, 7, 1)) }, 1);
    bench.run(&Traffic { response_odds: 2, ..Traffic::default() });
    bench.run(&Traffic { atomics: 0, ..Traffic::eager() });
    for cover in ["stalled", "no_room", "skips_beats", "response_held", "atomic_waits_for_others"] {
        assert!(bench.t.cover_hits(&format!("main.{cover}")) > 0, "{cover}");
    }
    assert!(bench.t.cover_hits("rules.several_under_way") > 0 && bench.t.cover_hits("rules.locked") > 0);
}

/// From its last beat, a load takes the slave's latency and a cycle; and the bus has a beat in every cycle, but between
/// turns of 255.
#[test]
fn the_bus_is_used_in_every_cycle() {
    for (lanes, width, latency) in [(4, 128, 1), (4, 32, 1), (8, 64, 6), (16, 512, 9)] {
        let s = Shape { loads: 16, ..shape(lanes, width, timing(latency, 0, 1)) };
        let mut bench = Bench::new(&s, 1);
        let beats = u64::from(32 * lanes / width);
        let measured = bench.run(&Traffic { loads: 8, whole: true, ..Traffic::eager() });
        let least = u64::from(latency) + 1;
        assert_eq!((*measured.latency.start(), *measured.latency.end()), (least, least));
        let turns = measured.requests * beats / 255;
        assert!(measured.cycles < measured.requests * beats + beats + turns * (least + 1), "{measured:?}");
        assert!(turns == 0 || bench.t.cover_hits("main.turn_ends") > 0);
    }
}
