//! Charts of the study, after Figures 7 to 9.

use super::super::chart::{Bars, Chart};
use super::variants::{BASELINE, PATH_TABLES, PREDICT, VOLTA, soft};
use super::{Report, Row};

/// By its name on the page.
pub fn chart(report: &Report, name: &str) -> String {
    match name {
        "speedup" => speedups(report),
        "soft" => thresholds(report),
        _ => efficiencies(report),
    }
}

fn percent(row: Option<&Row>, value: fn(&Row) -> f64) -> Option<f64> {
    Some(100.0 * value(row?))
}

/// Of SIMT efficiency and of speed.
fn gain(row: Option<&Row>) -> [Option<f64>; 2] {
    [percent(row, |row| row.efficiency_gain), percent(row, |row| row.gain().mean)]
}

fn bars(name: &str, values: Vec<Option<f64>>, mark: Option<f64>) -> Bars {
    Bars { heading: None, name: name.into(), values, mark }
}

/// SIMT efficiency before and after. (Figure 7)
fn efficiencies(report: &Report) -> String {
    let group = |kernel: &str| {
        let of = |(baseline, variant)| percent(report.row(kernel, baseline, variant), |row| row.simt_efficiency);
        let all = [(VOLTA, BASELINE), (VOLTA, PREDICT), (PATH_TABLES, BASELINE), (PATH_TABLES, PREDICT)];
        bars(kernel, all.into_iter().map(of).collect(), None)
    };
    Chart {
        title: &format!("SIMT efficiency in %, {} lanes × {} warps", report.lanes, report.warps),
        series: &["volta", "volta, predicted", "path tables", "path tables, predicted"],
        mark: "",
        most: 100.0,
        step: 10.0,
        groups: report.kernels().map(|studied| group(studied.name)).collect(),
    }
    .svg()
}

/// SIMT efficiency and speedup, of the baseline's. (Figure 8)
fn speedups(report: &Report) -> String {
    let group = |kernel: &str| {
        let rows = [VOLTA, PATH_TABLES].map(|on| report.row(kernel, on, PREDICT));
        bars(kernel, rows.into_iter().flat_map(gain).collect(), Some(100.0))
    };
    let groups: Vec<Bars> = report.kernels().map(|studied| group(studied.name)).collect();
    gains(&format!("Predicted, in % of the baseline, {} lanes × {} warps", report.lanes, report.warps), groups)
}

/// SIMT efficiency and speed by threshold. (Figure 9)
fn thresholds(report: &Report) -> String {
    let mut groups = Vec::new();
    for studied in report.kernels().filter(|studied| !studied.thresholds.is_empty()) {
        let named = studied.thresholds.iter().map(|&t| (t.to_string(), soft(t)));
        let all = named.chain([("directive".to_string(), PREDICT.to_string())]);
        let rows =
            all.map(|(name, variant)| (name, [VOLTA, PATH_TABLES].map(|on| report.row(studied.name, on, &variant))));
        for (name, rows) in rows.filter(|(_, rows)| rows.iter().all(Option::is_some)) {
            let first = groups.iter().all(|bars: &Bars| bars.heading.as_deref() != Some(studied.name));
            let heading = first.then(|| studied.name.to_string());
            groups.push(Bars { heading, ..bars(&name, rows.into_iter().flat_map(gain).collect(), Some(100.0)) });
        }
    }
    gains("As many as wait at a soft barrier, in % of the baseline", groups)
}

/// Bars of [`gain`] on both baselines.
fn gains(title: &str, groups: Vec<Bars>) -> String {
    let series = &["efficiency, volta", "speed, volta", "efficiency, path tables", "speed, path tables"];
    Chart { title, series, mark: "baseline", most: most(&groups), step: 50.0, groups }.svg()
}

/// The end of the scale.
fn most(groups: &[Bars]) -> f64 {
    let greatest = groups.iter().flat_map(|bars| &bars.values).flatten().copied().fold(100.0, f64::max);
    (greatest / 50.0).ceil() * 50.0
}

#[cfg(test)]
mod tests {
    use super::super::CHARTS;
    use super::super::tests::example;
    use super::*;

    #[test]
    fn every_chart_has_a_bar_a_value() {
        // Two kernels with four bars; and thresholds of one, six and all. The background, and four series in the
        // legend.
        let bars = CHARTS.map(|name| chart(&example(), name).matches("<rect ").count());
        assert_eq!(bars, [2 * 4, 2 * 4, 7 * 4].map(|bars| bars + 1 + 4));
        let speedups = chart(&example(), "speedup");
        assert!(speedups.contains("rsbench") && speedups.contains("200.0"));
    }
}
