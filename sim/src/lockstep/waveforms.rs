//! Waveforms of a difference: everything done so far is repeated on each engine, and the cycles around it are recorded.

use super::{Action, Lockstep};
use crate::engine::Engine;
use crate::verilator::Verilator;
use crate::wave::{Wave, WaveError};
use std::path::{Path, PathBuf};

/// Cycles before and after the mismatch that the waveforms show.
const AROUND: u64 = 64;

impl Lockstep {
    /// Writes the two waveforms of the cycles around the mismatch beside `prefix`: `PREFIX.rust.vcd` and
    /// `PREFIX.verilog.vcd`. `traced` is an engine like the second one that can write waveforms.
    pub fn waveforms(&mut self, prefix: &Path, mut traced: Verilator) -> Result<[PathBuf; 2], WaveError> {
        let named = |side: &str| {
            let mut name = prefix.as_os_str().to_owned();
            name.push(format!(".{side}.vcd"));
            PathBuf::from(name)
        };
        let paths = [named("rust"), named("verilog")];
        let cycle = self.mismatch.as_ref().map_or(0, |m| m.cycle);
        let from = cycle.saturating_sub(AROUND);
        let actions = std::mem::take(&mut self.actions);
        replay(&mut traced, self.seed, &actions, from, cycle + AROUND, |engine: &mut Verilator, first, _| {
            if first {
                engine.trace(&paths[1]);
            }
            Ok(())
        })?;
        drop(traced);
        let mut wave = None;
        let left = self.left.as_mut();
        left.show_signals();
        replay(left, self.seed, &actions, from, cycle + AROUND, |engine, first, reset| {
            if first {
                wave = Some(Wave::create(&paths[0], engine.directory())?);
            }
            engine.settle();
            wave.as_mut().map_or(Ok(()), |w| w.sample(engine, reset))
        })?;
        wave.map_or(Ok(()), Wave::finish)?;
        self.actions = actions;
        Ok(paths)
    }
}

/// Repeats the actions on one engine; `each` sees every cycle from `from` up to `to`, with whether it is the
/// first of them and whether reset is on.
fn replay<E: Engine + ?Sized>(
    engine: &mut E,
    seed: u64,
    actions: &[Action],
    from: u64,
    to: u64,
    mut each: impl FnMut(&mut E, bool, bool) -> Result<(), WaveError>,
) -> Result<(), WaveError> {
    engine.start(seed);
    let mut first = true;
    let mut reset = false;
    let mut show = |engine: &mut E, reset: bool| {
        let now = std::mem::replace(&mut first, false);
        each(engine, now, reset)
    };
    for action in actions {
        match action {
            Action::Poke(input, value) => engine.poke(*input, value),
            Action::Reset(on) => {
                engine.set_reset(*on);
                reset = *on;
            }
            Action::Memory(memory, address, value) => engine.memory_write(*memory, *address, value),
            Action::Cycles(cycles) => {
                for _ in 0..*cycles {
                    if engine.cycle() >= from {
                        show(engine, reset)?;
                    }
                    engine.step();
                }
            }
        }
    }
    while engine.cycle() < to {
        show(engine, reset)?;
        engine.step();
    }
    Ok(())
}
