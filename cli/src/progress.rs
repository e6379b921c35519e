//! What a long run shows on standard error, if that is a terminal: cycles, speed, live threads, time left.

use crate::interrupt::Interrupt;
use crate::report::si;
use heddle_testbench::machine::{self, Watch};
use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::fmt::Write;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// A line that appears once a run takes longer than a moment, and vanishes when it is dropped.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    launch: u32,
    threads: u32,
    interrupt: Interrupt,
}

/// A bar of steps, with what is under way and the time so far.
pub fn steps(count: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} ({elapsed})");
    ProgressBar::new(count).with_style(style.expect("the template is well-formed"))
}

const MOMENT: Duration = Duration::from_secs(1);

impl Progress {
    /// A bar towards `limit`, the cycles after which a launch is given up, or a spinner.
    pub fn new(threads: u32, limit: Option<u64>, interrupt: &Interrupt) -> Progress {
        let bar = ProgressBar::with_draw_target(limit, ProgressDrawTarget::hidden()).with_style(style(limit.is_some()));
        Progress { bar, started: Instant::now(), launch: 1, threads, interrupt: interrupt.clone() }
    }
}

fn style(limited: bool) -> ProgressStyle {
    let template = match limited {
        true => "{wide_bar} {cycles}/{limit} cycles, {speed}/s, {msg}, at most {left} left",
        false => "{spinner} {cycles} cycles, {speed}/s, {msg}, {elapsed}",
    };
    let style = ProgressStyle::with_template(template).expect("the template is well-formed");
    style
        .with_key("cycles", |state: &ProgressState, w: &mut dyn Write| put(w, si(state.pos() as f64)))
        .with_key("limit", |state: &ProgressState, w: &mut dyn Write| put(w, si(state.len().unwrap_or(0) as f64)))
        .with_key("speed", |state: &ProgressState, w: &mut dyn Write| put(w, si(state.per_sec())))
        .with_key("left", |state: &ProgressState, w: &mut dyn Write| {
            put(w, format!("{:#}", HumanDuration(state.eta())))
        })
}

/// Writes to a line in memory, which cannot fail.
fn put(line: &mut dyn Write, text: String) {
    let _ = line.write_str(&text);
}

impl Watch for Progress {
    fn progress(&mut self, progress: machine::Progress) -> ControlFlow<()> {
        let machine::Progress { launch, cycles, live_threads } = progress;
        if launch != self.launch {
            self.launch = launch;
            self.bar.reset_eta();
        }
        if self.bar.is_hidden() && self.started.elapsed() >= MOMENT {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let launch = if launch == 1 { String::new() } else { format!(" in launch {launch}") };
        self.bar.set_message(format!("{live_threads}/{} threads live{launch}", self.threads));
        self.bar.set_position(cycles);
        self.interrupt.poll()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
