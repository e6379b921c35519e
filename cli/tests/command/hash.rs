//! `heddle hash` as a user sees it.

use crate::common::Place;

#[test]
fn hashes_are_of_hardware() {
    let place = Place::new();
    let hash = |options: &str| {
        let out = place.good(&format!("hash --warps 1 --memory 64K {options}"));
        let (hash, core) = out.split_once(' ').unwrap();
        assert!(hash.len() == 16 && core.starts_with("--lanes 2 --warps 1"), "{out}");
        hash.to_string()
    };
    let one = hash("--lanes 2");
    assert_eq!(one, hash("--lanes 2 --convergence-barriers 0"));
    assert_ne!(one, hash("--lanes 2 --metrics"));
    assert_ne!(one, hash("--lanes 2 --divergence arbiter"));
    assert_eq!(place.bad("hash --all --lanes 2"), "--all has cores of its own: leave the options of a core away");
}
