//! Every cover of the description is hit by a program, or there is a reason why not. With `HEDDLE_LONG=1` all programs
//! run on each shape, which also finds covers that have a reason and are hit all the same.

use heddle_check::coverage::{EXPECTED, Extent, measure, shapes};
use heddle_testbench::kernels::{ALL, Kernel};

#[test]
fn every_cover_is_hit_or_has_a_reason() {
    let long = std::env::var_os("HEDDLE_LONG").is_some();
    let extent = if long { Extent::All } else { Extent::UntilHit };
    let kernels: Vec<&Kernel> = ALL.iter().collect();
    let coverage = measure(&shapes(), &kernels, 20, 1, extent, &|_| {}).unwrap_or_else(|error| panic!("{error}"));
    let names = |covers: Vec<&heddle_check::coverage::Cover>| -> Vec<String> {
        covers.into_iter().map(|c| format!("{}: {}", c.module, c.name)).collect()
    };
    assert_eq!(names(coverage.missing().collect()), [""; 0], "not hit");
    assert_eq!(names(coverage.surprising().collect()), [""; 0], "hit, against the reason");
    for (module, name, _) in EXPECTED {
        assert!(
            coverage.covers.iter().any(|c| (&*c.module, &*c.name) == (*module, *name)),
            "no cover {module}: {name}"
        );
    }
}
