use super::*;

#[test]
fn all_shapes_can_be_built() {
    for lanes in [1, 2, 4, 8, 16, 32, 64] {
        for warps in [1, 2, 8, 64] {
            if let Err(e) = path_table(&Shape::new(lanes, warps)).check() {
                panic!("{lanes} {warps}: {e}");
            }
        }
    }
}
