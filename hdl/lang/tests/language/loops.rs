//! Combinational loops are refused with the whole cycle; feedback that is none is accepted.

use heddle_hdl::{each, prelude::*};

fn message<I: Clone, O: Clone>(m: &TypedModule<I, O>) -> String {
    m.check().err().expect("a loop").to_string()
}

#[test]
fn within_a_module() {
    let top = module("top", [8, 1], |m, [a, on]| {
        let back = m.deferred("back", 8);
        wire!(sum = back.value + a);
        wire!(twice = sum.only_if(on));
        back.drive(twice);
        sum
    });
    let text = message(&top);
    assert!(text.starts_with("combinational loop: "), "{text}");
    for name in ["back", "sum", "twice"] {
        assert!(text.contains(name), "{name} in {text}");
    }
}

#[test]
fn a_wire_that_drives_itself() {
    let top = module("top", [8, 1], |m, _| {
        let back = m.deferred("back", 8);
        back.drive(back.value);
        back.value
    });
    assert_eq!(message(&top), "combinational loop: back -> back");
}

#[test]
fn through_instances() {
    let increment = module("increment", [8], |_, [x]| {
        wire!(more = x + 1);
        more
    });
    let top = module("top", [8, 1], |m, _| {
        let back = m.deferred("back", 8);
        let one = m.instance("one", &increment, [back.value]);
        let two = m.instance("two", &increment, [one]);
        back.drive(two);
        two
    });
    let text = message(&top);
    for name in ["one.more", "two.more", "back"] {
        assert!(text.contains(name), "{name} in {text}");
    }
}

#[test]
fn registers_break_loops() {
    let top = module("top", [8, 1], |m, [a, _]| {
        let back = m.deferred("back", 8);
        let held = m.pipe("held", back.value + a);
        back.drive(held);
        held
    });
    assert!(top.check().is_ok());
}

/// Lane k takes what lane k - 1 gives.
fn chain(ring: bool) -> TypedModule<[Width; 1], Signal> {
    let lane = module("lane", [8], |_, [x]| x + 1);
    module("chain", [8], |m, [first]| {
        let passed = m.deferred("passed", 8 * 4);
        let results = m.replicate("lane", 4, &lane, [each(passed.value)]);
        let first = if ring { results.slice(24, 8) } else { first };
        passed.drive(cat(&[first, results.slice(0, 24)]));
        results
    })
}

#[test]
fn from_lane_to_lane() {
    assert!(chain(false).check().is_ok());
    let text = message(&chain(true));
    for lane in ["lane[0]", "lane[1]", "lane[2]", "lane[3]"] {
        assert!(text.contains(lane), "{lane} in {text}");
    }
}
