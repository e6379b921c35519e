//! `heddle cover` on one small shape.

use crate::common::*;

#[test]
fn covers_of_one_shape() {
    let place = Place::new();
    let output = place.run("cover gcd --lanes 1 --warps 8 --programs 2 --json --strict");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["shapes"][0], "1 × 8");
    assert_eq!(report["programs"], 2);
    let covers = report["covers"].as_array().unwrap();
    let hits = |module: &str, name: &str| {
        let cover = covers.iter().find(|c| c["module"] == module && c["name"] == name).unwrap();
        assert_eq!(cover["hit_on"].as_array().unwrap().is_empty(), cover["hits"] == 0);
        cover["hits"].as_u64().unwrap()
    };
    assert!(hits("resolve", "fault_store_to_program") == 1 && hits("scoreboard_row", "waits") > 0);
    // One thread never parts from itself.
    assert_eq!(hits("resolve", "branch_diverges"), 0);
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        error.starts_with("error: covers that are not hit: ") && error.contains("resolve.branch_diverges"),
        "{error}"
    );
    assert_eq!(error.lines().count(), 1);

    assert!(place.bad("cover gccd").contains("did you mean `gcd`?"));
    assert!(place.bad("cover gcd --docs .").contains("--docs"));
    assert!(place.names().is_empty());
}
