//! Dynamic warp subdivision beside dual path: the tables that stand for the paper's Figures 10 to 13, and how near the
//! cycle model comes to the core.

use super::rows::{INTERLEAVABLE, OTHERS, of_draws};
use super::variants;
use super::{
    DUAL_PATH, Figures, MODEL_STACK, NONE, PUBLISHED_THRESHOLD, Report, Row, STACK, STEADY_STACK, Studied, dws,
    kernels, mean_text, of,
};
use crate::study::draws::Gain;
use crate::study::fit;
use crate::study::table::{gain, share};
use anyhow::Result;
use heddle_check::model::behind;
use heddle_testbench::Program;
use heddle_testbench::kernels::Kernel;
use heddle_testbench::reconverge::{Kind, analyse};
use serde::Serialize;

/// Title and lines.
type Table = (&'static str, Vec<Vec<String>>);

/// Its text, of a row.
type Cell = fn(&Figures) -> String;

/// Kernels: those that the paper calls interleavable, the others, all.
const SETS: [(&str, &[bool]); 3] = [(INTERLEAVABLE, &[true]), (OTHERS, &[false]), ("all", &[true, false])];

/// The paper's figure of a row.
type Published = fn(&Row) -> Option<f64>;

/// A figure of a kernel's.
struct Measure {
    title: &'static str,
    /// The column of the stack, its name and cells, if it has one: the core's or the model's.
    stack: Option<(&'static str, &'static str, Cell)>,
    cell: Cell,
    /// Of the stack's, of which the means are; nothing if the stack has none. Without it the means are of the gains of the
    /// draws.
    over: Option<fn(&Figures, &Figures) -> Option<f64>>,
    /// The paper's means of that, by set and column.
    published: &'static [(&'static str, &'static str, f64)],
    /// A column of what the paper has of single kernels: of which unit, and that, of the unit's row.
    of_kernels: Option<(&'static str, Published)>,
}

const MEASURES: [Measure; 5] = [
    Measure {
        title: "Figure 13: thread IPC over the stack's",
        stack: Some((MODEL_STACK, "model-stack IPC", |stack| format!("{:.2}", stack.compared.thread_ipc))),
        cell: |of| of.gain().map_or(NONE.into(), |gain| gain.with_range()),
        over: None,
        published: &[("interleavable", DUAL_PATH, 1.149), ("others", DUAL_PATH, 1.0)],
        of_kernels: Some(("dws-50", |row| row.published)),
    },
    Measure {
        title: "Figure 10: AvgPath, which is 1 on a stack",
        stack: None,
        cell: |of| format!("{:.3}", of.avg_path),
        over: Some(|of, _| Some(of.avg_path)),
        published: &[("interleavable", DUAL_PATH, 1.2), ("interleavable", "dws-100", 1.71), ("others", DUAL_PATH, 1.0)],
        of_kernels: None,
    },
    // What is lost, says the paper.
    Measure {
        title: "Figure 11: SIMT efficiency",
        stack: Some((STACK, STACK, |stack| share(stack.simt_efficiency))),
        cell: |of| share(of.simt_efficiency),
        over: Some(|of, stack| Some(of.simt_efficiency / stack.simt_efficiency)),
        published: &[
            ("interleavable", DUAL_PATH, 1.0),
            ("interleavable", "dws-50", 1.0 - 0.481),
            ("interleavable", "dws-100", 1.0 - 0.485),
            ("others", DUAL_PATH, 1.0),
            ("others", "dws-50", 1.0 - 0.186),
            ("others", "dws-100", 1.0 - 0.271),
            ("all", DUAL_PATH, 1.0),
            ("all", "dws-10", 1.0 - 0.246),
        ],
        of_kernels: None,
    },
    Measure {
        title: "Figure 12 (a): cycles without an issue, over the stack's",
        stack: None,
        cell: |of| of.idle_over_stack.map_or(NONE.into(), gain),
        over: Some(|of, _| of.idle_over_stack),
        published: &[("interleavable", DUAL_PATH, 0.81), ("others", DUAL_PATH, 1.0)],
        of_kernels: Some((DUAL_PATH, |row| (row.paper == "MUMpp").then_some(1.05))),
    },
    Measure {
        title: "Figure 12 (b): misses of the cache, over the stack's",
        stack: None,
        cell: |of| of.misses_over_stack.map_or(NONE.into(), gain),
        over: Some(|of, _| of.misses_over_stack),
        published: &[],
        of_kernels: Some((DUAL_PATH, |row| (row.paper == "MUMpp").then_some(1.02))),
    },
];

/// The branches of a kernel at which threads may diverge.
#[derive(Serialize)]
pub struct Branches {
    kernel: &'static str,
    paper: &'static str,
    divergent: usize,
    /// Of each threshold, those that subdivide a warp which is not.
    subdividing: Vec<usize>,
}

impl Branches {
    pub fn new(studied: &Studied, kernel: &Kernel, thresholds: &[u32]) -> Result<Branches> {
        let analysis = analyse(&Program::parse(kernel.elf)?)?;
        let behind = behind(&analysis);
        let divergent = analysis.branches.iter().filter(|branch| branch.kind == Kind::Branch && !branch.uniform);
        let pcs: Vec<u32> = divergent.map(|branch| branch.pc).collect();
        let within = |&threshold: &u32| pcs.iter().filter(|pc| behind.get(pc).is_some_and(|&n| n <= threshold)).count();
        let subdividing = thresholds.iter().map(within).collect();
        Ok(Branches { kernel: studied.name, paper: studied.paper, divergent: pcs.len(), subdividing })
    }
}

/// All of them, if the model has run anything.
pub fn tables(report: &Report) -> Vec<Table> {
    if !report.rows.iter().any(|row| row.model && row.figures.is_some()) {
        return Vec::new();
    }
    let fit = kernels(report).map(|rows| {
        let cycles = |name: &str| of(rows, name).map(|of| of.cycles.round() as u64);
        let names = vec![rows[0].kernel().to_string(), rows[0].paper.to_string()];
        (names, cycles(STEADY_STACK).zip(cycles(MODEL_STACK)))
    });
    let fit = fit::lines(&["kernel", "paper's"], fit);
    let measures = MEASURES.iter().map(|measure| (measure.title, lines(report, measure)));
    let rest = [
        ("branches that subdivide a warp on its stack, by threshold", branches(report)),
        ("splits of a warp at most", most_paths(report)),
        ("cycles of the stack before steady memory, of the core and of the cycle model", fit),
    ];
    measures.chain(rest).collect()
}

/// The kernels of which the gain with the paper's best threshold is such.
pub fn listed(report: &Report, is: fn(&Gain) -> bool) -> String {
    let name = dws(PUBLISHED_THRESHOLD);
    let is_such = |rows: &&[Row]| of(rows, &name).and_then(Figures::gain).is_some_and(|gain| is(&gain));
    let named = |rows: &[Row]| format!("`{}` ({})", rows[0].kernel(), rows[0].paper);
    variants::listed(&kernels(report).filter(is_such).map(named).collect::<Vec<_>>(), "none")
}

fn subdivided(report: &Report) -> Vec<String> {
    report.thresholds.iter().copied().map(dws).collect()
}

/// The headings, the kernels, then of each set the means over the stack's and the paper's.
fn lines(report: &Report, measure: &Measure) -> Vec<Vec<String>> {
    let units: Vec<String> = [DUAL_PATH.to_string()].into_iter().chain(subdivided(report)).collect();
    let line = |names: [&str; 2], stack: String, cells: Vec<String>, paper: String| {
        let names = names.map(String::from).into_iter();
        let (stack, paper) = (measure.stack.map(|_| stack), measure.of_kernels.map(|_| paper));
        names.chain(stack).chain(cells).chain(paper).collect::<Vec<String>>()
    };
    let heading = measure.stack.map_or("", |(_, heading, _)| heading).into();
    let of_paper = measure.of_kernels.map_or(String::new(), |(unit, _)| format!("paper, {unit}"));
    let mut lines = vec![line(["kernel", "paper's"], heading, units.clone(), of_paper)];
    for rows in kernels(report) {
        let cell = |name: &str, cell: Cell| of(rows, name).map_or(NONE.into(), cell);
        let cells = units.iter().map(|name| cell(name, measure.cell)).collect();
        let stack = measure.stack.map_or(String::new(), |(name, _, text)| cell(name, text));
        let of_unit = |unit: &str| rows.iter().find(|row| row.of.variant == unit);
        let paper = measure.of_kernels.and_then(|(unit, published)| published(of_unit(unit)?));
        lines.push(line([rows[0].kernel(), rows[0].paper], stack, cells, paper.map_or(NONE.into(), gain)));
    }
    for (set, which) in SETS {
        let mean = |name: &String| {
            let of_set = kernels(report).filter(|rows| which.contains(&rows[0].interleavable()));
            let Some(over) = measure.over else {
                return mean_text(of_draws(of_set.filter_map(|rows| Some(&of(rows, name)?.gain_of_draws[..]))));
            };
            let stack = if name == DUAL_PATH { STACK } else { MODEL_STACK };
            let values: Vec<f64> = of_set.filter_map(|rows| over(of(rows, name)?, of(rows, stack)?)).collect();
            gain(values.iter().sum::<f64>() / values.len() as f64)
        };
        lines.push(line([set, "mean"], String::new(), units.iter().map(mean).collect(), String::new()));
        let published = |name: &String| {
            let mean = measure.published.iter().find(|(of, unit, _)| *of == set && unit == name);
            mean.map(|&(.., mean)| gain(mean))
        };
        let published: Vec<Option<String>> = units.iter().map(published).collect();
        if published.iter().any(Option::is_some) {
            let cells = published.into_iter().map(|mean| mean.unwrap_or(NONE.into())).collect();
            lines.push(line([set, "paper"], String::new(), cells, String::new()));
        }
    }
    lines
}

/// What the thresholds decide on.
fn branches(report: &Report) -> Vec<Vec<String>> {
    let headings = ["kernel", "paper's", "divergent"].map(String::from).into_iter().chain(subdivided(report));
    let line = |of: &Branches| {
        let figures = [of.divergent].into_iter().chain(of.subdividing.iter().copied());
        let names = [of.kernel, of.paper].map(String::from).into_iter();
        names.chain(figures.map(|figure| figure.to_string())).collect()
    };
    [headings.collect()].into_iter().chain(report.branches.iter().map(line)).collect()
}

/// What a warp-split table would have to hold.
fn most_paths(report: &Report) -> Vec<Vec<String>> {
    let units = subdivided(report);
    let headings = ["kernel", "paper's"].map(String::from).into_iter().chain(units.clone());
    let line = |rows: &[Row]| {
        let cell = |name: &String| of(rows, name).map_or(NONE.into(), |of| of.most_paths.to_string());
        [rows[0].kernel(), rows[0].paper].map(String::from).into_iter().chain(units.iter().map(cell)).collect()
    };
    [headings.collect()].into_iter().chain(kernels(report).map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::KERNELS;
    use super::super::tests::example;
    use super::*;
    use heddle_testbench::kernels::find;

    fn words(lines: &[Vec<String>]) -> Vec<String> {
        lines.iter().map(|line| line.join(" ").split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }

    #[test]
    fn tables_have_a_line_a_kernel_the_means_and_the_papers() {
        let tables = tables(&example());
        assert_eq!(tables.len(), 8);
        let ipc = words(&tables[0].1);
        assert_eq!(ipc[0], "kernel paper's model-stack IPC side-first dws-10 dws-50 dws-100 paper, dws-50");
        let gain = "+14.9 % (+10.0 … +20.0 %)";
        assert_eq!(ipc[1], format!("lu LUD 10.00 {gain} +0.0 % {gain} +0.0 % +37.3 %"));
        assert_eq!(ipc[2], "bfs BFS, BFS2 10.00 +0.0 % +0.0 % +0.0 % +0.0 % -");
        assert_eq!(
            ipc[3..5],
            [&format!("interleavable mean {gain} +0.0 % {gain} +0.0 %"), "interleavable paper +14.9 % - - -"]
        );
        let half = "+7.5 % (+5.0 … +10.0 %)";
        assert_eq!(ipc[7], format!("all mean {half} +0.0 % {half} +0.0 %"));
        let path = words(&tables[1].1);
        assert_eq!(path[1], "lu LUD 1.250 1.000 1.250 1.000");
        assert_eq!(
            path[3..5],
            ["interleavable mean +25.0 % +0.0 % +25.0 % +0.0 %", "interleavable paper +20.0 % - - +71.0 %"]
        );
        let efficiency = words(&tables[2].1);
        assert_eq!(
            efficiency[0..2],
            ["kernel paper's stack side-first dws-10 dws-50 dws-100", "lu LUD 50.0 % 50.0 % 50.0 % 50.0 % 50.0 %"]
        );
        assert_eq!(efficiency[4], "interleavable paper +0.0 % - -48.1 % -48.5 %");
        assert_eq!(efficiency.last().unwrap(), "all paper +0.0 % -24.6 % - -");
        let idle = words(&tables[3].1);
        assert_eq!(
            idle[..2],
            [
                "kernel paper's side-first dws-10 dws-50 dws-100 paper, side-first",
                "lu LUD -25.0 % +0.0 % -25.0 % +0.0 % -"
            ]
        );
        // Without a cache nothing misses.
        assert_eq!(
            words(&tables[4].1)[1..4],
            ["lu LUD - - - - -", "bfs BFS, BFS2 - - - - -", "interleavable mean - - - -"]
        );
        assert_eq!(words(&tables[7].1)[1], "lu LUD 1000 1000 +0.0 %");
        assert!(tables.iter().flat_map(|(_, lines)| lines.windows(2)).all(|pair| pair[0].len() == pair[1].len()));
    }

    /// Some of each kernel's have a short block behind them, and some do not; which are short differs.
    #[test]
    fn branches_subdivide_by_the_blocks_behind_them() {
        for studied in &KERNELS {
            let branches = Branches::new(studied, find(studied.name).unwrap(), &[0, 2, 20, 1000]).unwrap();
            let [never, few, some, all] = branches.subdividing[..] else { panic!("there are four") };
            let rises = few < all && 0 < some && few <= some && some <= all;
            assert!(never == 0 && rises && all <= branches.divergent, "{}: {few} {some} {all}", studied.name);
        }
    }

    #[test]
    fn kernels_are_listed_by_their_gain() {
        let report = example();
        assert_eq!(listed(&report, |gain| gain.least > 1.0), "`lu` (LUD)");
        assert_eq!(listed(&report, |gain| gain.greatest < 1.0), "none");
    }

    /// A core that there is no model of.
    #[test]
    fn without_a_model_there_are_no_tables() {
        let mut report = example();
        report.rows.retain(|row| !row.model);
        assert!(tables(&report).is_empty());
    }
}
