//! What `heddle run` shows while a program runs: a trace on standard output, or progress on standard error.

use heddle_testbench::machine::{TraceLine, Watch};
use indicatif::{HumanCount, ProgressBar, ProgressStyle};
use std::io::{self, BufWriter, ErrorKind, Stdout, Write};
use std::time::{Duration, Instant};

/// Prints every instruction that issues.
pub struct Trace {
    out: BufWriter<Stdout>,
    lanes: u32,
}

impl Trace {
    pub fn new(lanes: u32) -> Trace {
        let mut trace = Trace { out: BufWriter::new(io::stdout()), lanes };
        let mask = lanes as usize;
        trace.write(format_args!("{:>9}  {:>4}  {:<10}  {:<mask$}  instruction\n", "cycle", "warp", "pc", "mask"));
        trace
    }

    /// Whoever reads may have seen enough: then there is nothing left to do.
    fn write(&mut self, line: std::fmt::Arguments) {
        match self.out.write_fmt(line) {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
            Err(error) => {
                eprintln!("error: cannot write the trace: {error}");
                std::process::exit(1)
            }
            Ok(()) => {}
        }
    }
}

impl Watch for Trace {
    fn issued(&mut self, line: TraceLine) {
        let TraceLine { cycle, warp, pc, mask, text } = line;
        let mask = mask_text(mask, self.lanes);
        let width = self.lanes.max(4) as usize;
        self.write(format_args!("{cycle:>9}  {warp:>4}  {pc:#010x}  {mask:<width$}  {text}\n"));
    }

    fn wants_trace(&self) -> bool {
        true
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        self.write(format_args!(""));
        if self.out.flush().is_err() {
            std::process::exit(0);
        }
    }
}

/// Lanes from left to right, lane 0 first: `1` active, `.` not.
fn mask_text(mask: u64, lanes: u32) -> String {
    (0..lanes).map(|lane| if mask >> lane & 1 == 1 { '1' } else { '.' }).collect()
}

/// Counts cycles on a terminal once a run takes longer than a moment.
pub struct Progress {
    started: Instant,
    bar: Option<ProgressBar>,
    warps: u32,
}

const MOMENT: Duration = Duration::from_millis(500);

impl Progress {
    pub fn new(warps: u32) -> Progress {
        Progress { started: Instant::now(), bar: None, warps }
    }
}

impl Watch for Progress {
    fn progress(&mut self, cycles: u64, live_warps: u32) {
        if self.started.elapsed() < MOMENT {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{spinner} {msg} ({elapsed})");
            ProgressBar::new_spinner().with_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()))
        });
        bar.set_message(format!("{} cycles, {live_warps} of {} warps live", HumanCount(cycles), self.warps));
        bar.tick();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lane_0_is_leftmost() {
        assert_eq!(mask_text(0b0011, 4), "11..");
        assert_eq!(mask_text(1 << 63, 64).find('1'), Some(63));
    }
}
