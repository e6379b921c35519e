//! Decisions to wait for a compaction or not, in the four classes of `capri.txt` §5.1: the picture of its Figure 9.

use super::{By, Name, Report, Row, Set};
use crate::study::stacked::{Bar, Bars, Stacked};
use crate::study::table::share;
use heddle_testbench::machine::Prediction;

/// In the order of their shares; what is right comes first.
const CLASSES: [(&str, &str); 4] = [
    ("bypass, right", "#08519c"),
    ("stall, right", "#6baed6"),
    ("bypass, wrong", "#fdbe85"),
    ("stall, wrong", "#d94801"),
];

/// The variants of the picture. The paper has means of the first and of the last.
const CHARTED: [&str; 4] = ["tbc", "tbc+", "capri-sticky-32", "capri-latest-32"];

/// Shares of all decisions, in the order of the classes; none without a decision.
pub fn shares(p: &Prediction) -> Option<[f64; 4]> {
    let counts = [p.bypass_right, p.stall_right, p.bypass_wrong, p.stall_wrong];
    (p.all() > 0).then(|| counts.map(|count| count as f64 / p.all() as f64))
}

/// The share of decisions to bypass after which a warp waits all the same; none without a decision.
pub fn waits(p: &Prediction) -> Option<f64> {
    (p.all() > 0).then(|| p.bypass_waits as f64 / p.all() as f64)
}

/// The paper's share of right decisions (§5.1; of TBC §1: all warps that it does not stall for nothing).
pub fn published(config: Name, set: Set, variant: &str) -> Option<f64> {
    let of_sets = match variant {
        "capri-latest-32" => [0.866, 0.998],
        "tbc" => [0.12, 0.001],
        _ => return None,
    };
    (config == Name::CapriPaper).then_some(of_sets[set as usize])
}

/// Kernels whose divergence is hard to predict, and the paper's mean share of right decisions on them by what the table
/// knows (§5.1).
const HARD: [&str; 3] = ["bfs", "suffix", "suffix_array"];
const RIGHT_ON_HARD: [(&str, f64); 2] = [("capri-sticky-32", 0.602), ("capri-latest-32", 0.743)];

/// How right decisions are where the paper has a number and the table no line.
pub fn told(report: &Report) -> String {
    let right = |kernel: &str, variant: &str| {
        let is_of = |row: &&Row| row.is_of(Name::CapriPaper, variant) && row.kernel() == kernel;
        let [bypass, stall, ..] = shares(report.rows.iter().find(is_of)?.figures.as_ref()?.prediction.as_ref()?)?;
        Some(bypass + stall)
    };
    let on_hard = |(variant, paper): (&str, f64)| {
        let all: Option<Vec<f64>> = HARD.iter().map(|kernel| right(kernel, variant)).collect();
        let mean = all.map_or("-".into(), |all| share(all.iter().sum::<f64>() / all.len() as f64));
        format!("{mean} of decisions are right with `{variant}` (the paper's {})", share(paper))
    };
    let mean = |set: Set| {
        let mean = report.mean(Name::CapriPaper, By::Paper, set, "tbc+");
        mean.and_then(|mean| mean.decisions).map_or("-".into(), |[bypass, stall, ..]| share(bypass + stall))
    };
    format!(
        "On {}, which the paper calls hard to predict, {}. Of `tbc+`, the paper says that over 80 % of decisions are wrong, \
         since few branches are known never to diverge; here {} are right on the divergent set and {} on the coherent one.",
        HARD.map(|kernel| format!("`{kernel}`")).join(", "),
        RIGHT_ON_HARD.map(on_hard).join(", "),
        mean(Set::Divergent),
        mean(Set::Coherent)
    )
}

/// A bar a variant of each kernel of CAPRI's paper, and of the means.
pub fn chart(report: &Report) -> String {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.config == Name::CapriPaper).collect();
    let mut groups = Vec::new();
    for set in [Set::Divergent, Set::Coherent] {
        let of_set: Vec<&Row> = rows.iter().copied().filter(|row| row.set() == set.text()).collect();
        for rows in of_set.chunk_by(|a, b| a.kernel() == b.kernel()) {
            let shares = |name: &str| {
                let row = rows.iter().find(|row| row.of.variant == name)?;
                shares(row.figures.as_ref()?.prediction.as_ref()?)
            };
            groups.push(bars(rows[0].kernel().into(), shares, |_| None));
        }
        let mean = |name: &str| report.mean(Name::CapriPaper, By::Paper, set, name)?.decisions;
        let mean_bars = bars(format!("mean, {}", set.text()), mean, |name| published(Name::CapriPaper, set, name));
        groups.push(mean_bars);
    }
    groups.retain(|group| !group.bars.is_empty());
    let title = "Decisions of warps at branches";
    Stacked { title, parts: &CLASSES, mark: "right in the paper", groups }.svg()
}

/// Of the variants that have shares.
fn bars(name: String, shares: impl Fn(&str) -> Option<[f64; 4]>, mark: impl Fn(&'static str) -> Option<f64>) -> Bars {
    let bar = |variant: &&'static str| {
        Some(Bar { name: variant.to_string(), shares: shares(variant)?.to_vec(), mark: mark(variant) })
    };
    Bars { name, bars: CHARTED.iter().filter_map(bar).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn the_picture_has_four_classes_a_variant() {
        let picture = chart(&example());
        // Of a divergent kernel, which has no result of tbc+, a coherent one without decisions, and the first's mean;
        // the background and the legend.
        assert_eq!(picture.matches("<rect ").count(), 2 * 3 * CLASSES.len() + 1 + CLASSES.len());
        assert!(picture.contains("mean, divergent") && !picture.contains("mean, coherent"));
    }

    #[test]
    fn shares_are_of_all_decisions() {
        let decisions =
            Prediction { bypass_right: 5, bypass_wrong: 1, stall_right: 3, stall_wrong: 1, bypass_waits: 2 };
        assert_eq!(shares(&decisions), Some([0.5, 0.3, 0.1, 0.1]));
        assert_eq!(shares(&Prediction::default()), None);
    }
}
