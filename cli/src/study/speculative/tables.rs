//! Tables of the study, and its page.

use super::super::draws::{Gain, mean};
use super::super::table::{gain, markdown, plain, share};
use super::variants::{
    AUTO, AUTO_PROFILE, BASELINE, NEAR, PATH_TABLES, PREDICT, REJOIN, STATIC, UNITS, VOLTA, own_threshold, soft,
};
use super::{Report, Row, Studied};
use heddle_testbench::kernels::find;

type Lines = Vec<Vec<String>>;

/// Its heading, how many columns stand to the left, and what makes its lines.
struct Table {
    mark: &'static str,
    heading: &'static str,
    names: usize,
    lines: fn(&Report) -> Lines,
}

const TABLES: [Table; 5] = [
    Table { mark: "{predict}", heading: "threads wait where it is predicted", names: 2, lines: predicted },
    Table { mark: "{soft}", heading: "thresholds", names: 2, lines: thresholds },
    Table { mark: "{deconflict}", heading: "deconfliction, on volta", names: 1, lines: deconfliction },
    Table {
        mark: "{others}",
        heading: "the same programs on units without convergence barriers",
        names: 1,
        lines: others,
    },
    Table { mark: "{automatic}", heading: "automatic detection, on path tables", names: 1, lines: automatic },
];

fn cells(cells: &[&str]) -> Vec<String> {
    cells.iter().map(|cell| cell.to_string()).collect()
}

/// Of kernels that have all rows: the first cells of a line, then those that are made of the rows.
fn line(
    report: &Report,
    first: &[&str],
    rows: &[(&str, &str)],
    rest: impl Fn(&[&Row]) -> Vec<String>,
) -> Option<Vec<String>> {
    let rows: Option<Vec<&Row>> =
        rows.iter().map(|&(baseline, variant)| report.row(first[0], baseline, variant)).collect();
    Some(cells(first).into_iter().chain(rest(&rows?)).collect())
}

/// Both baselines, and what they are called in a sentence.
const BASELINES: [(&str, &str); 2] = [(VOLTA, "volta"), (PATH_TABLES, "path tables")];

/// Where the paper has a namesake: among its benchmarks, or as pseudocode.
const BENCHMARKS: &str = "Table 2";
const PATTERNS: &str = "Figure 2";

/// Which of them, by the namesake.
fn group(paper: &str) -> &'static str {
    if paper.starts_with(PATTERNS) { PATTERNS } else { BENCHMARKS }
}

/// How many threads a kernel's directive waits for, if not for all.
fn own(studied: &Studied) -> Option<u32> {
    own_threshold(find(studied.name).expect("a kernel of the study").elf)
}

/// SIMT efficiency before and after, and time: Figures 7 and 8.
fn predicted(report: &Report) -> Lines {
    let baselines = BASELINES.map(|(on, _)| on);
    let mut lines = vec![cells(&[
        "kernel",
        "paper's",
        "threshold",
        "volta",
        "predicted",
        "ratio",
        "speedup",
        "least … greatest",
        "path tables",
        "predicted",
        "ratio",
        "speedup",
        "least … greatest",
        "accesses",
        "near memory",
    ])];
    let of = |studied: &Studied| {
        let rows = baselines.iter().flat_map(|&on| [(on, BASELINE), (on, PREDICT)]).chain([(NEAR, PREDICT)]);
        let rest = |rows: &[&Row]| {
            let pairs = rows[..4].chunks(2).flat_map(|pair| {
                let [before, after] = [pair[0], pair[1]];
                [
                    share(before.simt_efficiency),
                    share(after.simt_efficiency),
                    format!("{:.2}", after.efficiency_gain),
                    after.gain().text(),
                    after.gain().range(),
                ]
            });
            pairs.chain([gain(rows[3].access_gain), rows[4].gain().text()]).collect()
        };
        let threshold = own(studied).map_or("all".into(), |threads| threads.to_string());
        line(report, &[studied.name, studied.paper, &threshold], &rows.collect::<Vec<_>>(), rest)
    };
    lines.extend(report.kernels().filter_map(of));
    for of in [BENCHMARKS, PATTERNS] {
        if report.kernels().all(|studied| group(studied.paper) != of) {
            continue;
        }
        let over = |baseline, value| mean_of(report, of, baseline, value);
        let means = baselines.iter().flat_map(|on| {
            let ratio = format!("{:.2}", over(on, |row| row.efficiency_gain));
            [String::new(), String::new(), ratio, gain(over(on, |row| row.gain().mean)), String::new()]
        });
        let last = [over(PATH_TABLES, |row| row.access_gain), over(NEAR, |row| row.gain().mean)].map(gain);
        lines.push(cells(&["mean", of, ""]).into_iter().chain(means).chain(last).collect());
    }
    lines
}

/// Over the kernels that have their namesakes there.
fn mean_of(report: &Report, of: &str, baseline: &str, value: fn(&Row) -> f64) -> f64 {
    mean(of_predicted(report, baseline).filter(|(_, row)| group(row.paper) == of).map(|(_, row)| value(row)))
}

/// Figure 9.
fn thresholds(report: &Report) -> Lines {
    let mut lines = vec![cells(&[
        "kernel",
        "threshold",
        "volta",
        "speedup",
        "least … greatest",
        "path tables",
        "speedup",
        "least … greatest",
    ])];
    for studied in report.kernels().filter(|studied| !studied.thresholds.is_empty()) {
        for (threshold, variant) in tried(studied).chain([("directive".into(), PREDICT.into())]) {
            let rows = BASELINES.map(|(on, _)| (on, variant.as_str()));
            let rest = |rows: &[&Row]| {
                let of = |row: &&Row| [share(row.simt_efficiency), row.gain().text(), row.gain().range()];
                rows.iter().flat_map(of).collect()
            };
            lines.extend(line(report, &[studied.name, &threshold], &rows, rest));
        }
    }
    lines
}

/// The baseline and all thresholds of a kernel, with their variants.
fn tried(studied: &Studied) -> impl Iterator<Item = (String, String)> {
    let named = studied.thresholds.iter().map(|&threshold| (threshold.to_string(), soft(threshold)));
    [("none".to_string(), BASELINE.to_string())].into_iter().chain(named)
}

/// Over the same baseline.
fn deconfliction(report: &Report) -> Lines {
    let of_each = ["dynamic", "static", "rejoin"].map(|how| [how, "efficiency", "least … greatest"]);
    let mut lines = vec![cells(&["kernel"].into_iter().chain(of_each.into_iter().flatten()).collect::<Vec<_>>())];
    let of = |studied: &Studied| {
        let rest = |rows: &[&Row]| {
            let of = |row: &&Row| [row.gain().text(), share(row.simt_efficiency), row.gain().range()];
            rows.iter().flat_map(of).collect()
        };
        line(report, &[studied.name], &[PREDICT, STATIC, REJOIN].map(|variant| (VOLTA, variant)), rest)
    };
    lines.extend(report.kernels().filter_map(of));
    lines
}

/// What the instructions cost.
fn others(report: &Report) -> Lines {
    let units: Vec<&str> = UNITS.iter().filter(|unit| !unit.predicts()).map(|unit| unit.name).collect();
    let mut lines = vec![cells(&["kernel"]).into_iter().chain(units.iter().map(|unit| unit.to_string())).collect()];
    let rows: Vec<(&str, &str)> = units.iter().map(|&unit| (unit, PREDICT)).collect();
    let of = |studied: &Studied| {
        line(report, &[studied.name], &rows, |rows| rows.iter().map(|row| row.gain().text()).collect())
    };
    lines.extend(report.kernels().filter_map(of));
    let over = |unit: &str| {
        mean(report.kernels().filter_map(|studied| Some(report.row(studied.name, unit, PREDICT)?.gain().mean)))
    };
    lines.push(cells(&["mean of all"]).into_iter().chain(units.iter().map(|unit| gain(over(unit)))).collect());
    lines
}

/// Figure 10: the kernels in which something was found, and those with directives.
fn automatic(report: &Report) -> Lines {
    let of_each = [AUTO, AUTO_PROFILE].map(|how| [how, "speedup", "least … greatest"]);
    let first = ["kernel", "efficiency"];
    let last = ["directive", "speedup", "least … greatest"];
    let mut lines =
        vec![cells(&first.into_iter().chain(of_each.into_iter().flatten()).chain(last).collect::<Vec<_>>())];
    let of = |(kernel, found): (&str, [&Row; 2])| {
        let before = report.row(kernel, PATH_TABLES, BASELINE)?;
        let of_row = |row: &Row| [share(row.simt_efficiency), row.gain().text(), row.gain().range()];
        let directive = report.row(kernel, PATH_TABLES, PREDICT).map_or(["", "", ""].map(String::from), of_row);
        let rest = found.iter().flat_map(|row| match row.changed {
            true => of_row(row),
            false => ["as it was", "", ""].map(String::from),
        });
        let rest = rest.chain(directive);
        Some([kernel.to_string(), share(before.simt_efficiency)].into_iter().chain(rest).collect())
    };
    let all: Vec<(&str, [&Row; 2])> = found(report).collect();
    let (told, others): (Vec<_>, Vec<_>) = all.iter().copied().partition(|(kernel, rows)| {
        rows.iter().any(|row| row.changed) || report.row(kernel, PATH_TABLES, PREDICT).is_some()
    });
    lines.extend(told.into_iter().filter_map(of));
    let as_they_were = ["", "as they were", "", "", "as they were", "", "", "", "", ""];
    lines.push(cells(&[&[format!("{} others", others.len()).as_str()], &as_they_were[..]].concat()));
    if all.is_empty() { lines.drain(..1).collect() } else { lines }
}

/// Kernels on which regions were looked for, with what came of it.
fn found(report: &Report) -> impl Iterator<Item = (&str, [&Row; 2])> {
    let rows = report.rows.iter().filter(|row| row.of.variant == AUTO && row.baseline == PATH_TABLES);
    rows.filter_map(|row| Some((row.kernel(), [row, report.row(row.kernel(), PATH_TABLES, AUTO_PROFILE)?])))
}

/// Kernels, in a list; with what is said of each.
fn list(kernels: impl Iterator<Item = (&'static str, String)>) -> String {
    let named = kernels
        .map(|(kernel, what)| if what.is_empty() { format!("`{kernel}`") } else { format!("`{kernel}` ({what})") });
    let named = named.collect::<Vec<_>>().join(", ");
    if named.is_empty() { "none".into() } else { named }
}

/// The rows of the predicted programs on a unit, with their kernels.
fn of_predicted<'a>(report: &'a Report, baseline: &'a str) -> impl Iterator<Item = (&'static str, &'a Row)> {
    report.kernels().filter_map(move |studied| Some((studied.name, report.row(studied.name, baseline, PREDICT)?)))
}

/// Means over the namesakes of the paper's benchmarks, beside its results.
fn benchmarks(report: &Report) -> String {
    let on = |(on, name): (&str, &str)| {
        let [efficiency, time]: [fn(&Row) -> f64; 2] = [|row| row.efficiency_gain, |row| row.gain().mean];
        let [efficiency, time] = [efficiency, time].map(|value| gain(mean_of(report, BENCHMARKS, on, value)));
        format!("{efficiency} of efficiency and {time} of time on {name}")
    };
    BASELINES.map(on).join(", ")
}

/// On which kernels prediction does not raise SIMT efficiency, and on which it takes time.
fn losses(report: &Report) -> String {
    let told = |on: &str, value: fn(&Row) -> f64, is: fn(&Row) -> bool| {
        let rows = of_predicted(report, on).filter(|(_, row)| is(row));
        list(rows.map(|(kernel, row)| (kernel, gain(value(row)))))
    };
    let efficiency =
        |(on, name)| format!("on {name}: {}", told(on, |row| row.efficiency_gain, |row| row.efficiency_gain <= 1.0));
    let time = |(on, name)| format!("on {name}: {}", told(on, |row| row.gain().mean, |row| row.gain().greatest < 1.0));
    format!(
        "Kernels that lose time in every draw; {}; near memory: {}. Kernels whose SIMT efficiency does not rise; {}.",
        BASELINES.map(time).join("; "),
        told(NEAR, |row| row.gain().mean, |row| row.gain().greatest < 1.0),
        BASELINES.map(efficiency).join("; ")
    )
}

/// Kernels that do not wait for all threads: what other thresholds bring, and the mean if they did.
fn thresholds_of_their_own(report: &Report) -> String {
    let for_all = |studied: &Studied| own(studied).map_or(PREDICT.into(), |_| soft(report.lanes));
    let told = |studied: &Studied| {
        let threads = own(studied)?;
        let on = |(on, name): (&str, &str)| {
            let bring = |variant: &str| Some(report.row(studied.name, on, variant)?.gain().text());
            let best = best(report, studied, on, |row| row.gain().mean);
            Some(format!("on {name} {}, for all {}, best {best}", bring(PREDICT)?, bring(&for_all(studied))?))
        };
        let told: Vec<String> = BASELINES.into_iter().filter_map(on).collect();
        Some(format!("`{}` waits for {threads} threads, as its source says: {}.", studied.name, told.join("; ")))
    };
    let told: Vec<String> = report.kernels().filter_map(told).collect();
    let mean = |(on, name)| {
        let benchmarks = report.kernels().filter(|studied| group(studied.paper) == BENCHMARKS);
        let rows = benchmarks.filter_map(|studied| report.row(studied.name, on, &for_all(studied)));
        format!("{} on {name}", gain(mean(rows.map(|row| row.gain().mean))))
    };
    let means = BASELINES.map(mean).join(", ");
    format!("{} Were all waited for everywhere, the mean speedup over {BENCHMARKS} would be {means}.", told.join(" "))
}

/// The rows on path tables of which each draw's speedup is less than the mean gain of SIMT efficiency.
fn trailing(report: &Report) -> impl Iterator<Item = (&'static str, &Row)> {
    of_predicted(report, PATH_TABLES).filter(|(_, row)| row.gain().greatest < row.efficiency_gain)
}

fn trails(report: &Report) -> String {
    let told = |row: &Row| format!("{} of efficiency, {} of time", gain(row.efficiency_gain), row.gain().text());
    list(trailing(report).map(|(kernel, row)| (kernel, told(row))))
}

/// The speedup near memory, if each draw's is more than any behind it.
fn gains_near(report: &Report, kernel: &str, far: &Row) -> Option<Gain> {
    let near = report.row(kernel, NEAR, PREDICT)?.gain();
    is_more(&near, &far.gain()).then_some(near)
}

fn is_more(one: &Gain, other: &Gain) -> bool {
    one.least > other.greatest
}

/// Speedups that latency takes from.
fn near(report: &Report) -> String {
    let told = |(kernel, row): (&'static str, &Row)| {
        let near = gains_near(report, kernel, row)?;
        Some((kernel, format!("{} for {}", near.text(), row.gain().text())))
    };
    list(trailing(report).filter_map(told))
}

/// As much more is more.
const MORE: f64 = 1.05;

fn accesses(report: &Report) -> String {
    let rows = trailing(report).filter(|(_, row)| row.access_gain > MORE);
    list(rows.map(|(kernel, row)| (kernel, gain(row.access_gain))))
}

/// Those that have no more accesses, and no more to gain near memory.
fn neither(report: &Report) -> String {
    let rows =
        trailing(report).filter(|(kernel, row)| row.access_gain <= MORE && gains_near(report, kernel, row).is_none());
    list(rows.map(|(kernel, _)| (kernel, String::new())))
}

/// What is most, of a kernel without prediction and with all thresholds.
fn best(report: &Report, studied: &Studied, on: &str, value: fn(&Row) -> f64) -> String {
    let rows =
        tried(studied).filter_map(|(name, variant)| Some((name, value(report.row(studied.name, on, &variant)?))));
    rows.max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or("none".into(), |(name, _)| name)
}

/// The fastest thresholds of the paper's Figure 9, for warps of 32 threads. (§5.3)
const PAPERS: [(&str, u32); 2] = [("xsbench", 4), ("pathtracer", 32)];

/// The thresholds with most efficiency and with least time, of each kernel, and whether the paper's are the fastest.
fn best_thresholds(report: &Report) -> String {
    let line = |studied: &Studied| {
        let on = |(on, name): (&str, &str)| {
            let values: [fn(&Row) -> f64; 2] = [|row| row.simt_efficiency, |row| row.gain().mean];
            let [efficiency, time] = values.map(|value| best(report, studied, on, value));
            format!("on {name}, {efficiency} for efficiency and {time} for time")
        };
        let of_paper = PAPERS.iter().find(|(kernel, _)| *kernel == studied.name).map(|&(_, threshold)| {
            let on = |(on, name)| Some(format!("on {name} {}", agreement(report, studied, on, threshold)?));
            let told: Vec<String> = BASELINES.into_iter().filter_map(on).collect();
            format!(" The paper's {threshold} is, {}.", told.join("; "))
        });
        let best = BASELINES.map(on).join("; ");
        format!("* `{}`: best are, {best}.{}", studied.name, of_paper.unwrap_or_default())
    };
    let lines: Vec<String> = report.kernels().filter(|studied| !studied.thresholds.is_empty()).map(line).collect();
    lines.join("\n")
}

/// Whether draws tell that no other threshold is as fast as this.
fn agreement(report: &Report, studied: &Studied, on: &str, threshold: u32) -> Option<String> {
    let this = report.row(studied.name, on, &soft(threshold))?.gain();
    let others = tried(studied).filter(|(_, variant)| *variant != soft(threshold));
    let others: Vec<(String, Gain)> =
        others.filter_map(|(name, variant)| Some((name, report.row(studied.name, on, &variant)?.gain()))).collect();
    let names = |is: &dyn Fn(&Gain) -> bool| {
        others.iter().filter(|(_, gain)| is(gain)).map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
    };
    let [faster, alike] = [names(&|gain| is_more(gain, &this)), names(&|gain| !is_more(&this, gain))];
    Some(match (faster.is_empty(), alike.is_empty()) {
        (false, _) => format!("not the fastest (faster: {faster})"),
        (true, false) => format!("not told from the fastest (alike: {alike})"),
        (true, true) => "the fastest".into(),
    })
}

/// Of the paper's benchmarks, those on which draws tell what was found from what the directive says.
fn differ(report: &Report) -> String {
    let of = |(how, name): (&str, &str)| {
        let told = |(kernel, directive): (&'static str, &Row)| {
            let found = report.row(kernel, PATH_TABLES, how)?.gain();
            let asked = directive.gain();
            let differs = is_more(&found, &asked) || is_more(&asked, &found);
            let own = report.kernels().find(|studied| studied.name == kernel).and_then(own);
            let own = own.map_or(String::new(), |threads| format!(" with its threshold of {threads}"));
            differs.then(|| (kernel, format!("{} for the directive's {}{own}", found.text(), asked.text())))
        };
        let rows = of_predicted(report, PATH_TABLES).filter(|(_, row)| group(row.paper) == BENCHMARKS);
        format!("{name}: {}", list(rows.filter_map(told)))
    };
    [(AUTO, "in the graph alone"), (AUTO_PROFILE, "with a profile")].map(of).join("; ")
}

/// Those that have a kernel.
pub fn plain_text(report: &Report) -> String {
    let mut text = format!("{}\ndraws: {}\n", report.core, report.draws);
    for table in &TABLES {
        let lines = (table.lines)(report);
        if lines.len() > 1 {
            text += &format!("\n{}\n{}", table.heading, plain(&lines, table.names));
        }
    }
    text
}

/// The page's text, with core, draws and tables filled in.
pub fn page(report: &Report) -> String {
    let core = format!("{} lanes × {} warps", report.lanes, report.warps);
    let text = include_str!("page.md").replace("{core}", &core).replace("{options}", &report.core);
    let text = text.replace("{draws}", &report.draws.to_string()).replace("{latency}", &report.latency.to_string());
    let told = [
        ("{benchmarks}", benchmarks(report)),
        ("{losses}", losses(report)),
        ("{own}", thresholds_of_their_own(report)),
        ("{trails}", trails(report)),
        ("{near}", near(report)),
        ("{more}", gain(MORE)),
        ("{accesses}", accesses(report)),
        ("{neither}", neither(report)),
        ("{thresholds}", best_thresholds(report)),
        ("{differ}", differ(report)),
    ];
    let text = told.iter().fold(text, |text, (mark, told)| text.replace(mark, told));
    TABLES.iter().fold(text, |text, table| text.replace(table.mark, markdown(&(table.lines)(report)).trim_end()))
}

#[cfg(test)]
mod tests {
    use super::super::super::draws::Subject;
    use super::super::tests::{example, example_of};
    use super::*;

    fn words(line: &[String]) -> String {
        line.join(" | ")
    }

    #[test]
    fn a_kernel_has_a_line_with_both_baselines_and_means_are_last() {
        let lines = predicted(&example());
        assert_eq!(lines.len(), 1 + 2 + 1);
        assert_eq!(
            words(&lines[1]),
            "rsbench | RSBench | all | 25.0 % | 50.0 % | 2.00 | +100.0 % | +100.0 … +100.0 % | 25.0 % | 50.0 % | 2.00 | +100.0 % | \
             +100.0 … +100.0 % | +50.0 % | +100.0 %"
        );
        assert!(
            words(&lines[2])
                .starts_with("xsbench | XSBench | all | 25.0 % | 50.0 % | 2.00 | none | -20.0 … +20.0 % | 25.0 %")
        );
        assert!(words(&lines[3]).starts_with("mean | Table 2 |  |  |  | 2.00 | +"), "{}", words(&lines[3]));
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
        let lines = predicted(&example_of(&["xsbench", "mcgpu", "loop_merge"]));
        assert!(words(&lines[2]).starts_with("mcgpu | MC-GPU | 8 | "), "{}", words(&lines[2]));
        // Of 0.98 and 2; and of 2.
        let means: Vec<String> = lines[4..].iter().map(|line| words(&line[..7])).collect();
        assert_eq!(means, ["mean | Table 2 |  |  |  | 2.00 | +40.0 %", "mean | Figure 2 |  |  |  | 2.00 | +100.0 %"]);
    }

    /// The kernel's row there has this gain in all draws, and this of efficiency.
    fn change(report: &mut Report, (kernel, baseline, variant): (&str, &str, &str), gain: f64, efficiency_gain: f64) {
        let row = report.rows.iter_mut().find(|row| row.is(kernel, baseline, variant)).unwrap();
        row.compared = row.compared.over(Gain::of([gain].into_iter()));
        row.efficiency_gain = efficiency_gain;
    }

    #[test]
    fn losses_are_told_beside_the_papers_gains() {
        let mut report = example();
        change(&mut report, ("rsbench", VOLTA, PREDICT), 0.5, 0.75);
        change(&mut report, ("xsbench", NEAR, PREDICT), 0.9, 2.0);
        // A loss in some draws, as of `xsbench` on volta, is none.
        assert_eq!(
            losses(&report),
            "Kernels that lose time in every draw; on volta: `rsbench` (-50.0 %); on path tables: none; near memory: \
             `xsbench` (-10.0 %). Kernels whose SIMT efficiency does not rise; on volta: `rsbench` (-25.0 %); on path \
             tables: none."
        );
        change(&mut report, ("xsbench", VOLTA, PREDICT), 2.0, 0.75);
        assert_eq!(
            benchmarks(&report),
            "-25.0 % of efficiency and +0.0 % of time on volta, +100.0 % of efficiency and +100.0 % of time on path tables"
        );
    }

    #[test]
    fn a_threshold_of_its_own_is_told_with_what_others_bring() {
        let mut report = example_of(&["rsbench", "mcgpu"]);
        change(&mut report, ("mcgpu", PATH_TABLES, &soft(32)), 0.5, 1.0);
        change(&mut report, ("mcgpu", PATH_TABLES, &soft(8)), 2.5, 1.0);
        assert_eq!(
            thresholds_of_their_own(&report),
            "`mcgpu` waits for 8 threads, as its source says: on volta +100.0 %, for all +100.0 %, best 32; on path tables \
             +100.0 %, for all -50.0 %, best 8. Were all waited for everywhere, the mean speedup over Table 2 would be \
             +100.0 % on volta, +0.0 % on path tables."
        );
    }

    #[test]
    fn only_kernels_whose_time_trails_are_looked_at() {
        let mut report = example_of(&["rsbench", "xsbench", "mcb", "pathtracer"]);
        for (kernel, gain, near) in [("rsbench", 1.5, 1.75), ("xsbench", 2.5, 3.0), ("mcb", 1.5, 1.5)] {
            change(&mut report, (kernel, PATH_TABLES, PREDICT), gain, 2.0);
            change(&mut report, (kernel, NEAR, PREDICT), near, 2.0);
        }
        let row = report.rows.iter_mut().find(|row| row.is("mcb", PATH_TABLES, PREDICT)).unwrap();
        row.access_gain = 1.0;
        let told = ["rsbench", "mcb"].map(|kernel| format!("`{kernel}` (+100.0 % of efficiency, +50.0 % of time)"));
        assert_eq!(trails(&report), told.join(", "));
        assert_eq!(near(&report), "`rsbench` (+75.0 % for +50.0 %)");
        assert_eq!((accesses(&report).as_str(), neither(&report).as_str()), ("`rsbench` (+50.0 %)", "`mcb`"));
    }

    #[test]
    fn the_papers_thresholds_are_compared_by_draws() {
        let mut report = example_of(&["xsbench", "pathtracer", "mcgpu"]);
        for threshold in [1, 4, 8, 16, 24, 32] {
            let gains = if threshold == 32 { [1.5, 1.25] } else { [1.25, 1.5] };
            for (on, gain) in [VOLTA, PATH_TABLES].into_iter().zip(gains) {
                change(&mut report, ("pathtracer", on, &soft(threshold)), gain, 1.0);
            }
        }
        let told = best_thresholds(&report);
        let lines: Vec<&str> = told.lines().collect();
        // All thresholds gain alike on path tables, and on volta less than none in some draws.
        assert_eq!(
            lines[0],
            "* `xsbench`: best are, on volta, 32 for efficiency and none for time; on path tables, 32 for efficiency and 32 \
             for time. The paper's 4 is, on volta not told from the fastest (alike: none, 1, 8, 16, 24, 32); on path \
             tables not told from the fastest (alike: 1, 8, 16, 24, 32)."
        );
        let papers =
            "The paper's 32 is, on volta the fastest; on path tables not the fastest (faster: 1, 4, 8, 16, 24).";
        assert!(lines[1].starts_with("* `pathtracer`: best are, on volta, 32") && lines[1].ends_with(papers), "{told}");
        assert!(!lines[2].contains("paper"), "{told}");
    }

    #[test]
    fn thresholds_go_from_none_to_the_directives() {
        let lines = thresholds(&example());
        let firsts: Vec<String> = lines[1..].iter().map(|line| line[..2].join(" ")).collect();
        let all =
            ["none", "1", "4", "8", "16", "24", "32", "directive"].map(|threshold| format!("xsbench {threshold}"));
        assert_eq!(firsts, all);
        assert_eq!(words(&lines[1][2..]), "25.0 % | +0.0 % | +0.0 … +0.0 % | 25.0 % | +0.0 % | +0.0 … +0.0 %");
    }

    #[test]
    fn other_tables_have_a_line_a_kernel() {
        let report = example();
        let of_each = ["+100.0 % | 50.0 % | +100.0 … +100.0 %"; 3].join(" | ");
        assert_eq!(words(&deconfliction(&report)[1]), format!("rsbench | {of_each}"));
        let others = others(&report);
        assert_eq!(words(&others[0]), "kernel | stack | block-stack | dual-path | arbiter");
        assert_eq!(
            (words(&others[1]), others.len()),
            ("rsbench | +100.0 % | +100.0 % | +100.0 % | +100.0 %".into(), 4)
        );
        let text = plain_text(&report);
        assert_eq!(text.lines().filter(|line| line.starts_with("rsbench")).count(), 3);
    }

    /// With the rows of automatic detection: as predicted where it changed something.
    fn with_found(mut report: Report, found: &[(&str, [bool; 2])]) -> Report {
        for &(kernel, changed) in found {
            for (variant, changed) in [AUTO, AUTO_PROFILE].into_iter().zip(changed) {
                let from = report.row(kernel, PATH_TABLES, if changed { PREDICT } else { BASELINE }).unwrap().clone();
                let of = Subject { variant: variant.into(), ..from.of.clone() };
                report.rows.push(Row { of, changed, ..from });
            }
        }
        report
    }

    #[test]
    fn what_was_found_has_a_line_and_what_has_directives() {
        assert_eq!(automatic(&example()).len(), 1);
        let found =
            [("rsbench", [true, false]), ("xsbench", [false; 2]), ("mcb", [true, false]), ("mcgpu", [false; 2])];
        let mut report = with_found(example_of(&["rsbench", "xsbench", "mcb", "mcgpu"]), &found);
        // As kernels without directives.
        report.rows.retain(|row| !(["mcb", "mcgpu"].contains(&row.kernel()) && row.of.variant == PREDICT));
        let lines: Vec<String> = automatic(&report).iter().map(|line| words(line)).collect();
        let gains = "50.0 % | +100.0 % | +100.0 … +100.0 %";
        assert_eq!(lines[1], format!("rsbench | 25.0 % | {gains} | as it was |  |  | {gains}"));
        assert_eq!(lines[2], format!("xsbench | 25.0 % | as it was |  |  | as it was |  |  | {gains}"));
        assert_eq!(lines[3], format!("mcb | 25.0 % | {gains} | as it was |  |  |  |  | "));
        assert!(lines[4].starts_with("1 others | ") && lines.len() == 5);
        assert!(automatic(&report).iter().all(|line| line.len() == 11));
    }

    #[test]
    fn what_was_found_is_told_from_what_the_papers_benchmarks_ask_for() {
        let found = [("rsbench", [true, false]), ("mcgpu", [true, true]), ("common_call", [false; 2])];
        let mut report = with_found(example_of(&["rsbench", "mcgpu", "common_call"]), &found);
        change(&mut report, ("mcgpu", PATH_TABLES, AUTO), 0.5, 1.0);
        assert_eq!(
            differ(&report),
            "in the graph alone: `mcgpu` (-50.0 % for the directive's +100.0 % with its threshold of 8); with a profile: \
             `rsbench` (+0.0 % for the directive's +100.0 %)"
        );
    }

    #[test]
    fn the_page_has_everything_filled_in() {
        let page = page(&example_of(&["rsbench", "xsbench", "mcgpu"]));
        assert!(page.contains("| rsbench | RSBench | all | 25.0 % | 50.0 % |"), "{page}");
        assert!(page.contains("32 lanes × 8 warps") && page.contains("here 2 (`--draws`)"), "{page}");
        for told in [
            "its benchmarks' namesakes are +100.0 % of efficiency and +",
            "lose time in every draw; on volta: none; on path tables: none; near memory: none.",
            "`mcgpu` waits for 8 threads, as its source says: on volta +100.0 %,",
            "less than the mean gain in SIMT efficiency on: none. Of these:",
            "than any behind it on: none.",
            "More than +5.0 % have: none.",
            "* **Neither**: none.",
            "* `xsbench`: best are, on volta, 32 for efficiency and none for time; on path tables, 32 for efficiency and 32",
            "on these namesakes; in the graph alone: none; with a profile: none.",
        ] {
            assert!(page.contains(told), "{told}: {page}");
        }
        // Of the page's own, a call of jq in a shell.
        let left: String = page.split("```").step_by(2).collect();
        assert!(!left.contains(['{', '}']), "{left}");
    }
}
