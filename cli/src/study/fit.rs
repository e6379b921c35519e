//! How near the cycle model comes to the core.

use super::table::{gain, share};

/// A line a kernel with its names, and cycles of core and model if both ran; then the mean deviation of all.
pub fn lines(names: &[&str], kernels: impl Iterator<Item = (Vec<String>, Option<(u64, u64)>)>) -> Vec<Vec<String>> {
    let headings = names.iter().copied().chain(["core", "model", "over the core"]).map(String::from);
    let mut lines = vec![headings.collect::<Vec<String>>()];
    let mut deviations = Vec::new();
    for (names, cycles) in kernels {
        let figures = cycles.map(|(core, model)| {
            let ratio = model as f64 / core as f64;
            deviations.push((ratio - 1.0).abs());
            [core.to_string(), model.to_string(), gain(ratio)]
        });
        lines.push(names.into_iter().chain(figures.unwrap_or(["-"; 3].map(String::from))).collect());
    }
    let mean = share(deviations.iter().sum::<f64>() / deviations.len() as f64);
    let blank = vec![String::new(); names.len() + 1];
    lines.push(["mean absolute deviation".to_string()].into_iter().chain(blank).chain([mean]).collect());
    lines
}
