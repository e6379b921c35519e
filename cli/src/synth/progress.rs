//! How far it is, on a terminal.

use crate::progress::steps;
use indicatif::ProgressBar;
use std::time::Duration;

/// Step by step, on a terminal.
pub struct Progress(pub ProgressBar);

impl Progress {
    pub fn new(count: u64) -> Progress {
        let bar = steps(count);
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
