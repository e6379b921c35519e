//! Everything elaborates at every shape: widths, names and loops are right from 1 lane and 1 warp to 64 × 64.

use heddle_simt::pipeline::*;
use heddle_simt::{BankAddress, Metrics, Replay, Shape, scoreboard, system};

fn shapes() -> impl Iterator<Item = Shape> {
    let sizes = [1, 2, 4, 8, 16, 32, 64];
    sizes.into_iter().flat_map(move |lanes| sizes.map(|warps| Shape::new(lanes, warps)))
}

macro_rules! check {
    ($shape:expr, $($stage:expr),*) => { $(
        if let Err(errors) = $stage.check() {
            panic!("{} × {}: {errors}", $shape.lanes, $shape.warps);
        }
    )* };
}

#[test]
fn every_stage_alone() {
    let some = shapes().filter(|s| s.lanes * s.warps <= 256 || s.lanes == s.warps);
    let kinds = some.flat_map(|s| {
        let serialise = Shape { replay: Replay::Serialise, ..s.clone() };
        [Shape::small(s.lanes, s.warps), serialise, s]
    });
    for s in kinds {
        check!(s, steer::steer(&s), fetch::fetch(&s), decode::decode(&s), issue::issue(&s), collect::collect(&s));
        check!(s, execute::execute(&s), divide::divide(&s), resolve::resolve(&s), memory::memory(&s));
        check!(s, load_queue::load_queue(&s), gather::gather(&s), writeback::writeback(&s), scoreboard::scoreboard(&s));
    }
}

#[test]
fn the_system_at_every_shape() {
    for s in shapes() {
        check!(s, system::system(&s));
    }
}

#[test]
fn the_system_with_every_option() {
    let base = Shape::new(4, 4);
    let options = [
        Shape { bank_address: BankAddress::PerLane, ..base.clone() },
        Shape { multiply: false, ..base.clone() },
        Shape { metrics: Metrics::Off, ..base.clone() },
        Shape { metrics: Metrics::Built, ..base.clone() },
        Shape { barriers: true, ..base.clone() },
        Shape { buffer: 16, loads: 2, depth_bits: 1, ..base.clone() },
        Shape { memory: 64 << 20, program: 16 << 20, stack: 1 << 20, ..base },
    ];
    for s in options {
        check!(s, system::system(&s));
    }
}
