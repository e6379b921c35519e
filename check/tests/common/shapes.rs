//! The shapes of cores that sweeps run on.

use std::io::Write;

/// A test a shape that runs `$short(lanes, warps)`, on a dozen shapes; and one, for `HEDDLE_LONG=1`, that runs
/// `$long(lanes, warps)` on all. `$what` is swept.
macro_rules! sweep {
    ($what:literal, $short:expr, $long:expr) => {
        crate::shapes::sweep! { @shapes $short;
            lanes_1_warps_1: 1, 1;
            lanes_1_warps_16: 1, 16;
            lanes_2_warps_1: 2, 1;
            lanes_2_warps_64: 2, 64;
            lanes_4_warps_2: 4, 2;
            lanes_4_warps_8: 4, 8;
            lanes_8_warps_1: 8, 1;
            lanes_8_warps_8: 8, 8;
            lanes_16_warps_4: 16, 4;
            lanes_32_warps_2: 32, 2;
            lanes_64_warps_1: 64, 1;
            lanes_64_warps_8: 64, 8;
        }

        #[test]
        fn all_shapes() {
            crate::shapes::all_shapes($what, $long);
        }
    };
    (@shapes $short:expr; $($name:ident: $lanes:literal, $warps:literal;)*) => {
        $(#[test] fn $name() { ($short)($lanes, $warps); })*
    };
}
pub(crate) use sweep;

/// Runs it on all of lanes × warps {1, 2, 4 … 64} if `HEDDLE_LONG` is set, two shapes at a time.
pub fn all_shapes(what: &str, run: impl Fn(u32, u32) + Sync) {
    if std::env::var_os("HEDDLE_LONG").is_none() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {what} on all 49 shapes, which HEDDLE_LONG=1 asks for");
        return;
    }
    let sizes = [1, 2, 4, 8, 16, 32, 64];
    let run = &run;
    for lanes in sizes {
        std::thread::scope(|scope| {
            // No more at a time: the machine of 64 lanes and 64 warps needs much memory.
            let (few, many) = sizes.split_at(4);
            scope.spawn(move || few.iter().for_each(|&warps| run(lanes, warps)));
            many.iter().for_each(|&warps| run(lanes, warps));
        });
    }
}
