//! How far it is, on a terminal.

use indicatif::{ProgressBar, ProgressStyle};
use std::time::Duration;

/// Step by step, on a terminal.
pub struct Progress(pub ProgressBar);

impl Progress {
    pub fn new(steps: u64) -> Progress {
        let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} ({elapsed})");
        let bar = ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(500));
        Progress(bar)
    }

    pub fn says(&self, what: &str) {
        self.0.reset_elapsed();
        self.0.set_message(what.to_string());
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
