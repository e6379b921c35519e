//! Charts of the page: LUTs and clock by lanes.

use super::Nows;
use super::cores::{SIZES, UNITS, board, simty};
use super::page::{Figures, SIMTY};
use super::results::Results;
use crate::study::chart::{Bars, Chart};

pub const NAMES: [&str; 2] = ["studies/area.svg", "studies/area-clock.svg"];

/// Their texts.
pub fn all(results: &Results, now: &Nows) -> [String; 2] {
    let group = |lanes: u32, value: &dyn Fn(&Figures) -> Option<f64>, mark: &dyn Fn((u32, u32)) -> f64| {
        let of = |unit: &&str| {
            let found = Figures::of(results, now, board(), &simty(lanes, unit));
            if found.is_older() { None } else { value(&found) }
        };
        let theirs = SIMTY.iter().find(|(threads, ..)| *threads == lanes);
        Bars {
            heading: None,
            name: format!("{lanes} lanes"),
            values: UNITS.iter().map(of).collect(),
            mark: theirs.map(|(_, le, mhz)| mark((*le, *mhz))),
        }
    };
    let chart = |title: &str, step: f64, mark: &str, groups: Vec<Bars>| {
        let values = groups.iter().flat_map(|bars| bars.values.iter().flatten().chain(&bars.mark));
        let most = values.fold(step, |most, value| value.max(most));
        let most = (most / step).ceil() * step;
        Chart { title, series: &["path tables", "arbiter"], mark, most, step, groups }.svg()
    };
    let luts = |found: &Figures| found.flat.map(|flat| f64::from(flat.core_luts) / 1000.0);
    let area = SIZES.map(|lanes| group(lanes, &luts, &|(le, _)| f64::from(le) / 1000.0));
    let clock = SIZES.map(|lanes| group(lanes, &|found: &Figures| found.mhz(), &|(_, mhz)| f64::from(mhz)));
    [
        chart(
            "Thousands of LUTs of the core, 8 warps, without multiplication",
            10.0,
            "Simty, path tables (LE)",
            area.into(),
        ),
        chart("Clock in MHz, 8 warps, without multiplication", 10.0, "Simty, path tables", clock.into()),
    ]
}
