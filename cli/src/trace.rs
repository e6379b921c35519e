//! `heddle run --trace`: every instruction, on standard output.

use crate::interrupt::Interrupt;
use bitvec::slice::BitSlice;
use heddle_testbench::machine::{Progress, TraceLine, Watch};
use std::io::{self, BufWriter, Stdout, Write};
use std::ops::ControlFlow;

/// Prints every instruction that issues.
pub struct Trace {
    out: BufWriter<Stdout>,
    lanes: u32,
    interrupt: Interrupt,
    /// Nothing can be written any more: the run ends.
    closed: bool,
}

impl Trace {
    pub fn new(lanes: u32, interrupt: &Interrupt) -> Trace {
        let mut trace = Trace { out: BufWriter::new(io::stdout()), lanes, interrupt: interrupt.clone(), closed: false };
        let mask = lanes as usize;
        trace.write(format_args!("{:>9}  {:>4}  {:<10}  {:<mask$}  instruction\n", "cycle", "warp", "pc", "mask"));
        trace
    }

    fn write(&mut self, line: std::fmt::Arguments) {
        if self.closed {
            return;
        }
        // Nobody may read any more; what is printed next finds out, too.
        self.closed = self.out.write_fmt(line).is_err();
    }
}

impl Watch for Trace {
    fn issued(&mut self, line: TraceLine) {
        let TraceLine { cycle, warp, pc, mask, text, .. } = line;
        let mask = mask_text(&mask);
        let width = self.lanes.max(4) as usize;
        self.write(format_args!("{cycle:>9}  {warp:>4}  {pc:#010x}  {mask:<width$}  {text}\n"));
    }

    fn wants_trace(&self) -> bool {
        true
    }

    fn progress(&mut self, _: Progress) -> ControlFlow<()> {
        if self.closed { ControlFlow::Break(()) } else { self.interrupt.poll() }
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // Where it fails, what is printed next does.
        let _ = self.out.flush();
    }
}

/// Lanes from left to right, lane 0 first: `1` active, `.` not.
pub fn mask_text(mask: &BitSlice<u64>) -> String {
    mask.iter().map(|active| if *active { '1' } else { '.' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bitvec::prelude::*;

    #[test]
    fn lane_0_is_leftmost() {
        assert_eq!(mask_text(bits![u64, Lsb0; 1, 1, 0, 0]), "11..");
        assert_eq!(mask_text(BitSlice::from_element(&(1 << 63))).find('1'), Some(63));
    }
}
