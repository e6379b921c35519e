//! Where opportunities to issue went: issues by active lanes, and causes of none. `thread-block-compaction.txt` Figures
//! 13(a) and 14(a).

use super::{Figures, Name, Report, Row};
use crate::study::stacked::{Bar, Bars, Stacked};
use heddle_testbench::machine::PARTS;

/// Of issues with few lanes to many, then of causes.
const COLOURS: [&str; PARTS + 3] = [
    "#08306b", "#08519c", "#2171b5", "#4292c6", "#6baed6", "#9ecae1", "#c6dbef", "#deebf7", "#d94801", "#fd8d3c",
    "#bdbdbd",
];

/// Of a mechanism as the paper has them.
const CHARTED: [&str; 4] = ["never", "tbc", "dwf", "dwf-wb"];

/// Shares of opportunities to issue, those with most lanes first, then memory, the divergence unit, and others; none where
/// active lanes were not counted.
pub fn shares(figures: &Figures) -> Option<[f64; PARTS + 3]> {
    let mut issues = figures.issues?.0;
    issues.reverse();
    let idle = &figures.idle;
    let others = idle.no_instruction + idle.scoreboard + idle.barrier;
    let causes = [idle.memory, idle.divergence, others];
    let all = issues.iter().chain(&causes).sum::<u64>().max(1) as f64;
    let mut counts = issues.into_iter().chain(causes);
    Some(std::array::from_fn(|_| counts.next().expect("as many as there are") as f64 / all))
}

/// What the shares are, on so many lanes.
fn names(lanes: u32) -> Vec<String> {
    let part = |part: u32| {
        let [least, most] = [part, part + 1].map(|part| lanes * part / PARTS as u32);
        if least + 1 >= most { most.to_string() } else { format!("{}-{most}", least + 1) }
    };
    let causes = ["memory", "divergence unit", "others"].map(String::from);
    (0..PARTS as u32).rev().map(part).chain(causes).collect()
}

/// A bar a variant of each kernel, the divergent ones first.
pub fn chart(report: &Report) -> String {
    let rows: Vec<&Row> = report.rows.iter().filter(|row| row.config == Name::TbcPaper).collect();
    let group = |rows: &[&Row]| {
        let bar = |name: &'static str| {
            let row = rows.iter().find(|row| row.of.variant == name)?;
            Some(Bar { name: name.to_string(), shares: shares(row.figures.as_ref()?)?.to_vec(), mark: None })
        };
        Bars { name: rows[0].kernel().into(), bars: CHARTED.iter().filter_map(|&name| bar(name)).collect() }
    };
    let groups = rows.chunk_by(|a, b| a.kernel() == b.kernel()).map(group);
    let groups: Vec<Bars> = groups.filter(|group| !group.bars.is_empty()).collect();
    let names = names(report.lanes);
    let parts: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(COLOURS).collect();
    let title = "Opportunities to issue: active lanes where one was taken, causes where not";
    Stacked { title, parts: &parts, mark: "", groups }.svg()
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn shares_are_of_all_opportunities() {
        let report = example();
        let never = report.rows.iter().find(|row| row.is_of(Name::TbcPaper, "never")).unwrap();
        let mut figures = never.figures.clone().unwrap();
        figures.idle.memory = 150;
        figures.idle.barrier = 50;
        let shares = shares(&figures).unwrap();
        assert_eq!((shares[0], shares[PARTS - 1]), (0.375, 0.375));
        assert_eq!((shares[PARTS], shares[PARTS + 1], shares[PARTS + 2]), (0.1875, 0.0, 0.0625));
    }

    #[test]
    fn the_picture_has_a_bar_a_mechanism() {
        let picture = chart(&example());
        // Two kernels; the background and the legend.
        assert_eq!(picture.matches("<rect ").count(), 2 * 4 * (PARTS + 3) + 1 + PARTS + 3);
        for word in ["29-32", "1-4", "divergence unit", "dwf-wb"] {
            assert!(picture.contains(word), "{word}");
        }
        assert_eq!(names(4)[PARTS - 8], "4");
    }
}
