//! Recordings of two engines, side by side; and going back to a saved state.

use super::compare::{Mismatch, Stimulus, same, state};
use crate::engine::{Engine, Saved};
use crate::record::{Channel, Recording, Records, Seen};
use fastrand::Rng;

/// Some channels of a design, by a seed.
fn channels(engine: &dyn Engine, rng: &mut Rng) -> Vec<Channel> {
    let (probes, registers) = (engine.directory().probes.len(), engine.directory().registers.len());
    let seen = |rng: &mut Rng| match rng.usize(..probes + registers) {
        number if number < probes => Seen::Probe(number),
        number => Seen::Register(number - probes),
    };
    let mut channel = || {
        let many = rng.usize(..4);
        Channel { guard: seen(rng), values: (0..many).map(|_| seen(rng)).collect() }
    };
    (0..3).map(|_| channel()).collect()
}

/// Takes all rows.
fn rows(records: &mut Records, recording: &Recording) -> String {
    let mut text = String::new();
    for channel in 0..recording.channels().len() {
        while let Some(row) = records.first(channel) {
            text += &format!("{channel}: {row:x?}\n");
            records.take(channel);
        }
    }
    text
}

/// Starts both engines from `seed` and has them record random channels in runs of random length, with random inputs and
/// resets, for at least `cycles`. Rows, ends of runs and state must be the same, and again after going back on the second
/// engine, if that can. After half of the cycles, other channels are recorded. A design without probes and registers
/// has nothing to compare.
pub fn compare_recordings(
    left: &mut dyn Engine,
    right: &mut dyn Engine,
    seed: u64,
    cycles: u64,
) -> Result<(), Box<Mismatch>> {
    left.start(seed);
    right.start(seed);
    if left.directory().probes.is_empty() && left.directory().registers.is_empty() {
        return Ok(());
    }
    let mut stimulus = Stimulus::new(seed);
    let mut rng = Rng::with_seed(seed ^ 0x5ec0_4d00);
    let mut saved = Saved::default();
    for until in [cycles / 2, cycles] {
        let recording = Recording::new(left.directory(), channels(left, &mut rng));
        let (mut l, mut r) = (Records::new(&recording), Records::new(&recording));
        while left.cycle() < until {
            stimulus.drive(&mut [left, right]);
            let stop = Some(rng.usize(0..left.directory().outputs.len())).filter(|_| rng.bool());
            // Some runs are longer than the compiled engine has room for.
            let length = if rng.u32(0..16) == 0 { rng.u64(500..1100) } else { rng.u64(1..9) };
            let before = left.cycle();
            let goes_back = rng.bool() && right.save(&mut saved);
            let ends = (
                left.run_recording(&recording, length, stop, &mut l),
                right.run_recording(&recording, length, stop, &mut r),
            );
            same(left, "end of the run", format!("{:?}", ends.0), format!("{:?}", ends.1))?;
            let recorded = rows(&mut l, &recording);
            same(left, "records", recorded.clone(), rows(&mut r, &recording))?;
            state(left, right)?;
            if goes_back {
                right.restore(&saved);
                same(left, "cycle gone back to", before.to_string(), right.cycle().to_string())?;
                let again = right.run_recording(&recording, ends.0.cycles, None, &mut r);
                same(left, "cycles made again", ends.0.cycles.to_string(), again.cycles.to_string())?;
                same(left, "records made again", recorded, rows(&mut r, &recording))?;
                state(left, right)?;
            }
        }
    }
    Ok(())
}
