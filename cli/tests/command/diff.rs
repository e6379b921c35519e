//! `heddle diff`: two results beside each other.

use crate::common::*;
use serde_json::Value;

#[test]
fn runs_and_sweeps_are_compared() {
    let place = Place::new();
    let small = "--lanes 2 --warps 1 --size small --json";
    for (name, divergence) in [("a.json", "stack"), ("b.json", "path-table")] {
        place.file(name, place.good(&format!("run gcd {small} --divergence {divergence}")).as_bytes());
    }
    let equal = place.good("diff a.json a.json --exit-code");
    assert!(equal.starts_with("1 row in both: 0 values changed beyond the spread, 0 within it, "), "{equal}");
    let text = place.good("diff a.json b.json");
    assert!(text.contains("\ncycles ") && text.contains(" %\n"), "{text}");
    assert!(text.contains("\ndivergence: stack before, path-table after\n"), "{text}");
    let json: Value = serde_json::from_str(&place.good("diff a.json b.json --json --values cycles")).unwrap();
    let [change] = &json["values"].as_array().unwrap()[..] else { panic!("{json}") };
    let mean = |side: &str| change[side]["mean"].as_f64().unwrap();
    assert_eq!(change["ratio"].as_f64().unwrap(), mean("after") / mean("before"));
    let output = place.run("diff a.json b.json --exit-code");
    assert_eq!((output.status.code(), output.stdout.is_empty()), (Some(1), false));

    let sweep = "command = \"run\"\ndraws = 2\n[options]\nkernel = [\"gcd\", \"vecadd\"]\nlanes = 2\nwarps = 1\nsize = \"small\"\n";
    place.file("s.toml", sweep.as_bytes());
    place.file("c.json", place.good("sweep s.toml --json").as_bytes());
    let equal = place.good("diff c.json c.json --all");
    assert_eq!(equal, "2 rows in both: 0 values changed beyond the spread, 0 within it, 4 are the same\n");

    assert_eq!(place.bad("diff a.json c.json"), "a.json is of a run, and c.json of a sweep: both must be of the same");
    assert_eq!(place.bad("diff a.json b.json --values cycle"), "neither file has a value cycle");
    assert!(place.bad("diff none.json b.json").starts_with("cannot read none.json: "));
    assert!(place.bad("diff s.toml b.json").starts_with("s.toml is no JSON: "));
    place.file("d.json", b"[1, 2]");
    let wrong = "d.json is nothing that `heddle run`, `study` or `sweep` writes with --json";
    assert_eq!(place.bad("diff d.json b.json"), wrong);
}
