//! What a row says of a kernel on a unit, and means of rows.

use super::{DUAL_PATH, PUBLISHED_THRESHOLD, Report, STUDY, Studied, Unit, dws};
use crate::study::draws::{self, Compared, Gain, Subject, average};
use crate::study::workloads::Workload;
use heddle_testbench::machine::{CacheVisits, IdleCycles, SecondLevelVisits, Summary};
use serde::Serialize;

/// The paper's classes of kernels.
pub const INTERLEAVABLE: &str = "interleavable";
pub const OTHERS: &str = "others";

/// A kernel on a unit.
#[derive(Serialize)]
pub struct Row {
    /// The set is the paper's.
    #[serde(flatten)]
    pub of: Subject,
    /// Its namesake in the paper.
    pub paper: &'static str,
    /// From the cycle model, not from the core. What is of the stack's is then of the model's stack's.
    pub model: bool,
    /// Of all draws; none if a draw failed.
    #[serde(flatten)]
    pub figures: Option<Figures>,
    /// Why a draw failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// The paper's gain, where it gives one.
    pub published: Option<f64>,
}

/// Means over the draws, unless said otherwise.
#[derive(Serialize)]
pub struct Figures {
    /// With the stack.
    #[serde(flatten)]
    pub compared: Compared,
    /// Thread IPC of each draw over the stack's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gain_of_draws: Vec<f64>,
    pub cycles: f64,
    pub warp_instructions: f64,
    pub thread_instructions: f64,
    /// Equation 1: paths that can be scheduled, an issued instruction.
    pub avg_path: f64,
    /// Active lanes an issued instruction, of all lanes.
    pub simt_efficiency: f64,
    /// Cycles without an issue, of the stack's; none if it has none.
    pub idle_over_stack: Option<f64>,
    /// What kept back an instruction in them, of the first draw.
    pub idle: IdleCycles,
    /// What the data cache did, in the first draw.
    pub cache: Option<CacheVisits>,
    /// Lines that loads asked memory for, of the stack's.
    pub misses_over_stack: Option<f64>,
    /// Paths that a warp held at most, in any draw; of a model, those that can be scheduled together.
    pub most_paths: u64,
    /// What its second level did, in the first draw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second_level: Option<SecondLevelVisits>,
    /// Levels of its stack that a warp had in use at most, in any draw.
    pub most_levels: u64,
    /// Share of cycles in which the divergence unit or the other path keeps back what could issue.
    pub divergence_share: f64,
    /// What there was to do.
    pub workload: Workload,
}

/// What a unit did with a kernel in all draws, or why not.
type Drawn = Result<Vec<Summary>, String>;

impl Row {
    /// Of a core of so many lanes, beside what its stack did.
    pub fn new(kernel: &Studied, unit: &Unit, lanes: u32, own: &Drawn, stack: &Drawn) -> Row {
        let published = match unit.name.as_str() {
            DUAL_PATH => kernel.published,
            name if name == dws(PUBLISHED_THRESHOLD) => kernel.published_dws,
            _ => None,
        };
        let of = Subject {
            study: STUDY,
            kernel: Some(kernel.name),
            set: Some(if kernel.interleavable { INTERLEAVABLE } else { OTHERS }),
            variant: unit.name.clone(),
            divergence: unit.divergence.name(),
        };
        let figures = own.as_ref().ok().map(|own| Figures::new(lanes, own, stack.as_deref().ok()));
        let failed = own.as_ref().err().cloned();
        Row { of, paper: kernel.paper, model: unit.model.is_some(), figures, failed, published }
    }

    pub fn kernel(&self) -> &'static str {
        self.of.kernel.expect("a row is of one")
    }

    pub fn interleavable(&self) -> bool {
        self.of.set == Some(INTERLEAVABLE)
    }
}

impl Figures {
    fn new(lanes: u32, own: &[Summary], stack: Option<&[Summary]>) -> Figures {
        let mean = |value: fn(&Summary) -> f64| average(own, value);
        let over = |value: fn(&Summary) -> f64| {
            let stack = average(stack?, value);
            (stack > 0.0).then(|| average(own, value) / stack)
        };
        let most = |value: fn(&Summary) -> u64| own.iter().map(value).max().unwrap_or(0);
        let (ipc, of_stack) = (draws::ipc(own), stack.map(draws::ipc));
        let compared = of_stack.as_ref().map_or(Compared::alone(&ipc), |stack| Compared::new(stack, &ipc));
        let gain_of_draws = of_stack.as_ref().map_or(Vec::new(), |stack| draws::ratios(stack, &ipc));
        let first = &own[0];
        Figures {
            compared,
            gain_of_draws,
            cycles: mean(|s| s.cycles as f64),
            warp_instructions: mean(|s| s.warp_instructions as f64),
            thread_instructions: mean(|s| s.thread_instructions as f64),
            avg_path: mean(|s| s.avg_path),
            simt_efficiency: mean(|s| s.simt_efficiency),
            idle_over_stack: over(|s| (s.cycles - s.warp_instructions) as f64),
            idle: first.idle,
            cache: first.cache,
            misses_over_stack: over(|s| s.cache.map_or(0.0, |cache| cache.misses as f64)),
            most_paths: most(|s| s.most_paths),
            second_level: first.second_level,
            most_levels: most(|s| s.most_levels),
            divergence_share: mean(|s| s.idle.divergence as f64 / s.cycles as f64),
            workload: Workload::new(first, lanes),
        }
    }

    /// Over the stack, if that ran.
    pub fn gain(&self) -> Option<Gain> {
        self.compared.gain()
    }

    /// Share of cycles without an issue.
    pub fn idle_share(&self) -> f64 {
        1.0 - self.warp_instructions / self.cycles
    }
}

/// A unit on kernels that ran on it; arithmetic means over kernels.
#[derive(Serialize)]
pub struct Mean {
    pub variant: String,
    /// Thread IPC over the stack's: the mean of all kernels in each draw, and over the draws.
    pub interleavable: Option<Gain>,
    pub others: Option<Gain>,
    /// The lowest gain of a kernel that loses in every draw.
    pub worst: Option<f64>,
    /// Of the interleavable ones.
    pub avg_path: Option<f64>,
    pub idle: Option<f64>,
}

/// Of ratios of kernels in each draw: the mean over kernels, and over draws; nothing if there are no kernels.
pub fn of_draws<'a>(kernels: impl Iterator<Item = &'a [f64]>) -> Option<Gain> {
    let means = by_draw(kernels);
    (!means.is_empty()).then(|| Gain::of(means.iter().copied()))
}

/// The arithmetic mean over kernels in each draw; empty without kernels.
pub fn by_draw<'a>(kernels: impl Iterator<Item = &'a [f64]>) -> Vec<f64> {
    let gains: Vec<&[f64]> = kernels.filter(|of| !of.is_empty()).collect();
    let mean = |draw: usize| gains.iter().map(|of| of[draw]).sum::<f64>() / gains.len() as f64;
    (0..gains.first().map_or(0, |first| first.len())).map(mean).collect()
}

fn arithmetic(values: impl Iterator<Item = f64>) -> Option<f64> {
    let values: Vec<f64> = values.collect();
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

pub fn mean(variant: &str, rows: &[Row]) -> Mean {
    let rows: Vec<&Row> = rows.iter().filter(|row| row.of.variant == variant).collect();
    let of_set = |interleavable: bool| {
        rows.iter().filter(move |row| row.interleavable() == interleavable).filter_map(|row| row.figures.as_ref())
    };
    let gains = rows.iter().filter_map(|row| row.figures.as_ref()?.gain());
    let losses = gains.filter(|gain| gain.greatest < 1.0).map(|gain| gain.mean);
    Mean {
        variant: variant.into(),
        interleavable: of_draws(of_set(true).map(|figures| &figures.gain_of_draws[..])),
        others: of_draws(of_set(false).map(|figures| &figures.gain_of_draws[..])),
        worst: losses.min_by(f64::total_cmp),
        avg_path: arithmetic(of_set(true).map(|figures| figures.avg_path)),
        idle: arithmetic(of_set(true).filter_map(|figures| figures.idle_over_stack)),
    }
}

/// The rows of each kernel.
pub fn kernels(report: &Report) -> impl Iterator<Item = &[Row]> {
    report.rows.chunk_by(|a, b| a.of.kernel == b.of.kernel)
}

/// A kernel's figures on a unit.
pub fn of<'a>(rows: &'a [Row], variant: &str) -> Option<&'a Figures> {
    rows.iter().find(|row| row.of.variant == variant)?.figures.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::dual_path::tests::example;

    #[test]
    fn means_are_of_kernels_in_a_draw_then_of_draws() {
        let report = example();
        let mean = report.means.iter().find(|mean| mean.variant == DUAL_PATH).unwrap();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        let of = mean.interleavable.unwrap();
        close(of.least, 1.1);
        close(of.greatest, 1.2);
        close(of.mean, (1.1f64 * 1.2).sqrt());
        close(mean.others.unwrap().mean, 1.0);
        assert_eq!(mean.worst, None);
        assert!(of_draws(std::iter::empty()).is_none());
    }
}
