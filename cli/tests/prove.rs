//! `heddle prove` as a user sees it; `testbench/tests/prove.rs` proves.

mod common;
use common::*;

#[test]
fn examples_of_the_help_name_what_is_there() {
    examples(&Place::new(), "prove");
}

#[test]
fn a_page_is_of_all_proofs() {
    let place = Place::new();
    for some in ["ccs", "--quick"] {
        let error = place.bad(&format!("prove {some} --docs ."));
        assert!(error.contains("cannot be used with"), "{error}");
    }
}
