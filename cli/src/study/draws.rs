//! Draws: the same comparison with several inputs and memories, so that a gain can be told from chance.
//!
//! Draw n gives a kernel the inputs of seed n, and draws the times of memory from seed n. It is the same for all that
//! are compared, so gains are paired: a ratio for each draw.

use super::kept::Kept;
use super::runs::{self, Run};
use super::table::gain;
use crate::interrupt::Interrupt;
use anyhow::Result;
use clap::Args;
use heddle_testbench::machine::{MachineOptions, Summary};
use serde::Serialize;
use std::ops::AddAssign;

/// Random cycles that a memory of draws takes more, at most.
pub const JITTER: u32 = 31;

#[derive(Args, Clone, Copy)]
pub struct DrawsArgs {
    /// Draws: the first has inputs and memory of seed 1, the next of seed 2, and so on
    #[arg(long, default_value_t = 4, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub draws: u32,
}

/// What chance decides in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draw {
    /// Seed of the kernel's inputs.
    pub inputs: u64,
    /// Seed of the times of memory, where it has jitter.
    pub memory: u32,
}

impl DrawsArgs {
    pub fn all(self) -> impl Iterator<Item = Draw> {
        (1..=self.draws).map(|n| Draw { inputs: n.into(), memory: n })
    }
}

/// Every run in every draw, but those that are kept: what the cores did, by run and draw.
pub fn all(
    runs: &[Run],
    draws: DrawsArgs,
    seed: u64,
    kept: Option<&Kept>,
    interrupt: &Interrupt,
) -> Result<Vec<Vec<Summary>>> {
    all_as(runs, draws, &runs::usual(seed), kept, interrupt)
}

/// As [`all`], on machines of these options.
pub fn all_as(
    runs: &[Run],
    draws: DrawsArgs,
    options: &MachineOptions,
    kept: Option<&Kept>,
    interrupt: &Interrupt,
) -> Result<Vec<Vec<Summary>>> {
    let summaries = runs::all(&of_each(runs, draws), options, kept, interrupt)?;
    Ok(summaries.chunks(draws.draws as usize).map(<[Summary]>::to_vec).collect())
}

/// Every run in every draw, where that a program stops the core or never ends is a result, too: by run, and draw.
pub fn each_as(
    runs: &[Run],
    draws: DrawsArgs,
    options: &MachineOptions,
    kept: Option<&Kept>,
    interrupt: &Interrupt,
) -> Result<Vec<Drawn>> {
    let results = runs::each(&of_each(runs, draws), options, kept, interrupt)?;
    Ok(results.chunks(draws.draws as usize).map(<[_]>::to_vec).collect())
}

/// What a run did in each draw, or why it did not end.
pub type Drawn = Vec<Result<Summary, String>>;

/// What programs did on cores, by program and core, where all programs ran on a core before the next: in all draws, or why
/// not in the first that failed.
pub fn by_program(results: &[Drawn], programs: usize) -> Vec<Vec<Result<Vec<Summary>, String>>> {
    let on_cores =
        |program| results.iter().skip(program).step_by(programs).map(|drawn| drawn.iter().cloned().collect());
    (0..programs).map(|program| on_cores(program).collect()).collect()
}

/// Arithmetic mean over draws.
pub fn average(draws: &[Summary], value: impl Fn(&Summary) -> f64) -> f64 {
    draws.iter().map(value).sum::<f64>() / draws.len() as f64
}

/// What was counted in all draws together.
pub fn counted<T: AddAssign>(draws: &[Summary], of: impl Fn(&Summary) -> Option<T>) -> Option<T> {
    draws.iter().filter_map(of).reduce(|mut all, draw| {
        all += draw;
        all
    })
}

/// Thread IPC of each draw.
pub fn ipc(draws: &[Summary]) -> Vec<f64> {
    draws.iter().map(|draw| draw.thread_ipc).collect()
}

/// The draws of a run follow each other, so that its core is built once.
fn of_each(runs: &[Run], draws: DrawsArgs) -> Vec<Run> {
    runs.iter().flat_map(|run| draws.all().map(|draw| Run { draw: Some(draw), ..run.clone() })).collect()
}

/// A value of each draw over the same draw's before.
pub fn ratios(before: &[f64], after: &[f64]) -> Vec<f64> {
    assert_eq!(before.len(), after.len(), "a pair a draw");
    before.iter().zip(after).map(|(before, after)| after / before).collect()
}

/// How much more, in each draw: ratios.
#[derive(Clone, Copy, PartialEq, Serialize, Debug)]
pub struct Gain {
    /// The geometric mean, so that a gain and the loss that undoes it have the mean 1.
    pub mean: f64,
    pub least: f64,
    pub greatest: f64,
}

impl Gain {
    /// Of a draw's value over the same draw's before.
    pub fn paired(before: &[f64], after: &[f64]) -> Gain {
        Gain::of(ratios(before, after).into_iter())
    }

    /// Of a ratio a draw.
    pub fn of(ratios: impl Iterator<Item = f64> + Clone) -> Gain {
        Gain {
            mean: mean(ratios.clone()),
            least: ratios.clone().fold(f64::INFINITY, f64::min),
            greatest: ratios.fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// Whether draws disagree on whether it is a gain or a loss.
    pub fn is_none(&self) -> bool {
        self.least < 1.0 && self.greatest > 1.0
    }

    /// `+12.5 %`, or `none`.
    pub fn text(&self) -> String {
        if self.is_none() { "none".into() } else { gain(self.mean) }
    }

    /// `+12.5 % (+8.1 … +14.0 %)`, `none (…)` where draws disagree; where they make no difference, the mean is all.
    pub fn with_range(&self) -> String {
        let same = self.greatest - self.least < 5e-4;
        if same { gain(self.mean) } else { format!("{} ({})", self.text(), self.range()) }
    }

    /// From the least to the greatest: `+8.1 … +14.0 %`.
    pub fn range(&self) -> String {
        format!("{} … {}", gain(self.least).trim_end_matches(" %"), gain(self.greatest))
    }
}

/// Kernels whose threads run together less than this on the mechanism that others are compared with are called
/// divergent.
pub const DIVERGENT: f64 = 0.6;

/// What a row of a study is of: keys that all rows have.
#[derive(Clone, Serialize, Debug)]
pub struct Subject {
    pub study: &'static str,
    /// One, or none if it is of a set.
    pub kernel: Option<&'static str>,
    pub set: Option<&'static str>,
    pub variant: String,
    pub divergence: &'static str,
}

/// What a row says of its variant: keys that all rows have, but where there is no such thing. A program that stops the
/// core has none of them.
#[derive(Clone, Copy, Serialize, Debug)]
pub struct Compared {
    /// The geometric mean over the draws.
    pub thread_ipc: f64,
    /// Its least and greatest; none without draws.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// How much more than another it does in a time, a ratio: of thread IPC, or where programs differ of cycles. The
    /// geometric mean over the draws, each over the same draw of the other; none if there is no other, or that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain: Option<f64>,
    /// Its least and greatest; none without draws.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_range: Option<[f64; 2]>,
    /// How many; none if the run had its inputs and memory of the options.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub draws: Option<usize>,
}

impl Compared {
    /// Thread IPC of the other's draws and of its own.
    pub fn new(first: &[f64], own: &[f64]) -> Compared {
        Compared::alone(own).over(Gain::paired(first, own))
    }

    /// Of draws that are compared with nothing.
    pub fn alone(own: &[f64]) -> Compared {
        let ipc = Gain::of(own.iter().copied());
        let range = Some([ipc.least, ipc.greatest]);
        Compared { thread_ipc: ipc.mean, range, gain: None, gain_range: None, draws: Some(own.len()) }
    }

    /// The same, with what it gains.
    pub fn over(self, Gain { mean, least, greatest }: Gain) -> Compared {
        Compared { gain: Some(mean), gain_range: Some([least, greatest]), ..self }
    }

    /// Of a run without draws.
    pub fn once(thread_ipc: f64, gain: Option<f64>) -> Compared {
        Compared { thread_ipc, range: None, gain, gain_range: None, draws: None }
    }

    /// Where there is one.
    pub fn gain(&self) -> Option<Gain> {
        let mean = self.gain?;
        let [least, greatest] = self.gain_range.unwrap_or([mean; 2]);
        Some(Gain { mean, least, greatest })
    }
}

/// Of ratios.
pub fn mean(ratios: impl Iterator<Item = f64>) -> f64 {
    let (count, logarithms) = ratios.fold((0u32, 0.0), |(count, sum), ratio| (count + 1, sum + ratio.ln()));
    (logarithms / f64::from(count)).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_simt::Shape;
    use heddle_testbench::kernels::find;

    #[test]
    fn a_draw_is_compared_with_the_same_draw_before() {
        // Unpaired, a mean over a mean, these would be 1.
        let gain = Gain::paired(&[100.0, 400.0], &[200.0, 300.0]);
        assert_eq!((gain.least, gain.greatest), (0.75, 2.0));
        assert!((gain.mean - 1.5f64.sqrt()).abs() < 1e-12);
        assert_eq!((gain.text(), gain.range()), ("none".to_string(), "-25.0 … +100.0 %".to_string()));
    }

    #[test]
    fn a_gain_in_every_draw_is_one() {
        let text = |after: [f64; 2]| Gain::paired(&[100.0, 100.0], &after).text();
        assert_eq!(text([110.0, 110.0]), "+10.0 %");
        assert_eq!(text([90.0, 90.0]), "-10.0 %");
        assert_eq!(text([100.0, 121.0]), "+10.0 %");
        assert_eq!(text([99.9, 121.0]), "none");
        assert_eq!(text([100.0, 100.0]), "+0.0 %");
        let one = Gain::paired(&[100.0], &[150.0]);
        assert_eq!((one.mean, one.least, one.greatest), (1.5, 1.5, 1.5));
        assert!(mean(std::iter::empty()).is_nan());
    }

    #[test]
    fn rows_have_means_and_ranges() {
        let row = Compared::new(&[1.0, 4.0], &[2.0, 8.0]);
        let wanted = (4.0, Some([2.0, 8.0]), Some(2.0), Some([2.0, 2.0]), Some(2));
        assert_eq!((row.thread_ipc, row.range, row.gain, row.gain_range, row.draws), wanted);
        assert_eq!(row.gain().unwrap().with_range(), "+100.0 %");
        let disagree = Compared::new(&[1.0, 4.0], &[2.0, 2.0]);
        assert_eq!(disagree.gain().unwrap().with_range(), "none (-50.0 … +100.0 %)");
    }

    #[test]
    fn keys_stand_where_there_is_such_a_thing() {
        let keys = |row: Compared| {
            serde_json::to_value(row).unwrap().as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(keys(Compared::new(&[1.0], &[2.0])), "draws gain gain_range range thread_ipc");
        assert_eq!(keys(Compared::alone(&[2.0])), "draws range thread_ipc");
        assert_eq!(keys(Compared::once(2.0, Some(1.5))), "gain thread_ipc");
        assert_eq!(Compared::once(2.0, Some(1.5)).gain().unwrap().with_range(), "+50.0 %");
        assert_eq!(Compared::alone(&[2.0]).gain(), None);
    }

    #[test]
    fn every_run_has_the_same_draws() {
        let kernel = find("gcd").unwrap();
        let runs = [Shape::new(4, 2), Shape::new(8, 2)].map(|shape| Run::new(kernel, shape));
        let each = of_each(&runs, DrawsArgs { draws: 3 });
        let seen: Vec<(u32, u64, u32)> = each
            .iter()
            .map(|run| {
                let draw = run.draw.unwrap();
                (run.shape.lanes, draw.inputs, draw.memory)
            })
            .collect();
        assert_eq!(seen, [(4, 1, 1), (4, 2, 2), (4, 3, 3), (8, 1, 1), (8, 2, 2), (8, 3, 3)]);
    }
}
