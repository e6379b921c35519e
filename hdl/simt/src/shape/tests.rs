use super::*;
use crate::divergence::inspect::{Path, State};
use crate::divergence::{Capabilities, Mechanism, UnitIn, UnitOut};
use heddle_hdl::prelude::*;

/// Path tables that no access splits.
struct Whole;

impl Mechanism for Whole {
    fn name(&self) -> &'static str {
        "whole"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { splits: false, ..Capabilities::NONE }
    }

    fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
        Divergence::PATH_TABLE.mechanism().unit(s)
    }

    fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<Path> {
        Divergence::PATH_TABLE.mechanism().paths(s, state, warp)
    }
}

#[test]
fn the_default_can_be_built_and_errors_name_the_field() {
    assert_eq!(Shape::default().check(), Ok(()));
    let odd = Shape { lanes: 3, ..Shape::default() };
    assert_eq!(odd.check().unwrap_err().to_string(), "lanes = 3: must be a power of two from 1 to 64");
    let small = Shape { memory: 64 << 10, ..Shape::default() };
    assert_eq!(small.check().unwrap_err().field, "memory");
}

#[test]
fn what_a_divergence_unit_does_not_have_is_refused() {
    let error = |s: Shape| s.check().unwrap_err().to_string();
    let with = |divergence| Shape::new(4, 2).with_divergence(divergence);
    for &divergence in Divergence::ALL {
        assert_eq!(with(divergence).check(), Ok(()));
    }
    assert_eq!(with(Divergence::new(&Whole)).check(), Ok(()), "its accesses split no path");
    let split = Shape { replay: Replay::Split, ..with(Divergence::STACK) };
    assert_eq!(error(split), "replay = split: divergence = stack needs replay = serialise");
    let levels = |divergence, levels| Shape { levels: Some(levels), ..with(divergence) };
    assert_eq!(error(levels(Divergence::STACK, 4)), "levels = 4: must be from 1 to 3");
    assert_eq!(error(levels(Divergence::ARBITER, 3)), "levels = 3: divergence = arbiter has no stack");
    let constrained = Shape { path_scheduler: PathScheduler::Constrained, ..with(Divergence::STACK) };
    let allowed = "path_scheduler = constrained: divergence = stack has one path of a warp to consider";
    assert_eq!(error(constrained), allowed);
    let barriers = Shape { convergence_barriers: 4, ..with(Divergence::ARBITER) };
    assert_eq!(error(barriers), "convergence_barriers = 4: divergence = arbiter has no convergence barriers");
    let many = Shape { convergence_barriers: 17, ..with(Divergence::PATH_TABLE) };
    assert_eq!(error(many), "convergence_barriers = 17: must be from 0 to 16");
    let apart = Shape { merge: Merge::Barriers, ..with(Divergence::PATH_TABLE) };
    assert_eq!(error(apart.clone()), "merge = barriers: needs convergence_barriers of at least 1");
    let split = Shape { convergence_barriers: 1, ..apart };
    assert!(error(split.clone()).starts_with("merge = barriers: needs replay = serialise"));
    assert_eq!(Shape { replay: Replay::Serialise, ..split }.check(), Ok(()));
    let hasty = Shape { patience: 1000, ..with(Divergence::PATH_TABLE) };
    assert_eq!(error(hasty), "patience = 1000: must be a power of two from 2 to 65536");
    let forwarding = Shape { path_forwarding: true, ..with(Divergence::STACK) };
    assert_eq!(error(forwarding), "path_forwarding = on: divergence = stack has no paths to forward");
    let two = |divergence| Shape { unresolved: 2, ..with(divergence) };
    assert_eq!(
        error(two(Divergence::STACK)),
        "unresolved = 2: divergence = stack has one path of a warp that may issue"
    );
    let exact = |divergence| Shape { scoreboard: Scoreboard::Exact, ..with(divergence) };
    assert!(error(exact(Divergence::ARBITER)).starts_with("scoreboard = exact: divergence = arbiter has one path"));
    let slack = |slack, divergence| Shape { slack, ..with(divergence) };
    assert_eq!(error(slack(2, Divergence::STACK)), "slack = 2: divergence = stack forms no warps");
    let needed = "slack = 2: compaction = skip-uniform lets no warp go ahead";
    assert_eq!(error(slack(2, Divergence::BLOCK_STACK)), needed);
    let predict = |blocks| Shape { compaction: Compaction::Predict, ..slack(blocks, Divergence::BLOCK_STACK) };
    for blocks in [0, 5] {
        assert_eq!(error(predict(blocks)), format!("slack = {blocks}: must be from 1 to 4"));
    }
    assert_eq!(predict(4).check(), Ok(()));
    let dual_path = || with(Divergence::DUAL_PATH);
    for (shape, wrong) in [
        (Shape { unresolved: 0, ..dual_path() }, "unresolved = 0: must be from 1 to 2"),
        (Shape { unresolved: 3, ..dual_path() }, "unresolved = 3: must be from 1 to 2"),
        (Shape { path_forwarding: true, ..two(Divergence::DUAL_PATH) }, "unresolved = 2: needs replay = serialise,"),
        (Shape { replay: Replay::Split, ..two(Divergence::DUAL_PATH) }, "unresolved = 2: needs replay = serialise,"),
        (
            Shape { replay: Replay::Split, ..exact(Divergence::DUAL_PATH) },
            "scoreboard = exact: needs replay = serialise",
        ),
        (
            Shape { path_scheduler: PathScheduler::ConstrainedMiss, ..dual_path() },
            "path_scheduler = constrained-miss: needs a",
        ),
        (Shape { alu_latency: 5, ..dual_path() }, "alu_latency = 5: must be from 6 to 64"),
        (Shape { alu_latency: 65, ..dual_path() }, "alu_latency = 65: must be from 6 to 64"),
    ] {
        let error = error(shape);
        assert!(error.starts_with(wrong), "{error}");
    }
}

#[test]
fn a_memory_system_is_checked() {
    let error = |s: Shape| s.check().unwrap_err().to_string();
    let cache =
        |size, ways, line, misses| Shape { cache: Some(Cache { size, ways, line, misses }), ..Shape::default() };
    assert_eq!(cache(4096, 4, 2, 4).check(), Ok(()));
    assert_eq!(error(cache(4096, 3, 2, 4)), "cache.ways = 3: must be a power of two from 1 to 16");
    assert_eq!(error(cache(4096, 4, 32, 4)), "cache.line = 32: must be a power of two from 1 to 16");
    assert_eq!(error(cache(4096, 4, 1, 0)), "cache.misses = 0: must be a power of two from 1 to 64");
    assert_eq!(error(cache(128, 4, 2, 4)), "cache.size = 128: must be a power of two from 256 to 262144");
    let wide = Shape { memory: 1 << 16, lanes: 64, warps: 1, stack: 64, ..cache(1 << 15, 16, 16, 1) };
    assert_eq!(error(wide), "cache.ways = 16: a set of 16 ways has 65536 bytes, and the cache at most 32768");
    let model = |latency, jitter, interval| {
        let backing = Backing::Model(Timing { latency, jitter, interval, seed: 1 });
        Shape { backing, ..Shape::default() }
    };
    assert_eq!(model(4096, 1023, 256).check(), Ok(()));
    assert_eq!(error(model(0, 0, 1)), "model.latency = 0: must be from 1 to 4096");
    assert_eq!(error(model(1, 2, 1)), "model.jitter = 2: must be 0, 1, 3, 7 … 1023: a power of two less 1");
    assert_eq!(error(model(1, u32::MAX, 1)).split(':').next(), Some("model.jitter = 4294967295"));
    assert_eq!(error(model(1, 0, 257)), "model.interval = 257: must be from 1 to 256");
    let bus = |width| {
        let slave = SlaveModel { timing: Timing::FASTEST, error: None };
        Shape { backing: Backing::Wishbone { width, slave }, ..Shape::default() }
    };
    assert_eq!(bus(256).check(), Ok(()));
    assert_eq!(error(bus(16)), "wishbone.width = 16: must be a power of two from 32 to 256");
    assert_eq!(error(bus(512)), "wishbone.width = 512: must be a power of two from 32 to 256");
}
