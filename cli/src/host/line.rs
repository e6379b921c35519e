//! A line whose bytes are counted and shown, and which Ctrl-C interrupts.

use crate::interrupt::Interrupt;
use crate::report::si;
use heddle_testbench::remote::Line;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::{self, ErrorKind};
use std::time::Duration;

pub struct Watched<L> {
    line: L,
    interrupt: Interrupt,
    bar: ProgressBar,
    sent: u64,
    received: u64,
}

/// How long a wait goes on without a look at Ctrl-C.
const MOMENT: Duration = Duration::from_millis(100);

impl<L> Watched<L> {
    pub fn new(line: L, interrupt: &Interrupt) -> Watched<L> {
        let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
        let bar = ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        Watched { line, interrupt: interrupt.clone(), bar, sent: 0, received: 0 }
    }

    /// Bytes that were sent and that came.
    pub fn counts(&self) -> (u64, u64) {
        (self.sent, self.received)
    }

    fn shows(&self) {
        self.bar.set_message(format!("{} bytes sent, {} received", si(self.sent as f64), si(self.received as f64)));
        self.bar.tick();
    }
}

impl<L: Line> Line for Watched<L> {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.line.send(bytes)?;
        self.sent += bytes.len() as u64;
        self.shows();
        Ok(())
    }

    fn receive(&mut self, within: Duration) -> io::Result<Option<u8>> {
        let end = self.line.now() + within;
        loop {
            if self.interrupt.poll().is_break() {
                return Err(io::Error::new(ErrorKind::Interrupted, "interrupted"));
            }
            let left = end.saturating_sub(self.line.now());
            let byte = self.line.receive(left.min(MOMENT))?;
            self.received += u64::from(byte.is_some());
            if byte.is_some() || left <= MOMENT {
                return Ok(byte);
            }
            self.shows();
        }
    }

    fn now(&mut self) -> Duration {
        self.line.now()
    }
}

impl<L> Drop for Watched<L> {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
