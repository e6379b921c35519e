//! Tables of the study, and its page.

use super::super::draws::{Gain, mean};
use super::super::table::{gain, markdown, plain, share};
use super::variants::{AUTO, AUTO_PROFILE, BASELINE, NEAR, PATH_TABLES, PREDICT, REJOIN, STATIC, UNITS, VOLTA, soft};
use super::{Report, Row, Studied};

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

/// SIMT efficiency before and after, and time: Figures 7 and 8.
fn predicted(report: &Report) -> Lines {
    let baselines = [VOLTA, PATH_TABLES];
    let mut lines = vec![cells(&[
        "kernel",
        "paper's",
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
        line(report, &[studied.name, studied.paper], &rows.collect::<Vec<_>>(), rest)
    };
    lines.extend(report.kernels().filter_map(of));
    let over = |baseline: &str, value: fn(&Row) -> f64| {
        mean(report.kernels().filter_map(|studied| report.row(studied.name, baseline, PREDICT)).map(value))
    };
    let means = baselines.iter().flat_map(|on| {
        let ratio = format!("{:.2}", over(on, |row| row.efficiency_gain));
        [String::new(), String::new(), ratio, gain(over(on, |row| row.gain().mean)), String::new()]
    });
    let last = [over(PATH_TABLES, |row| row.access_gain), over(NEAR, |row| row.gain().mean)].map(gain);
    lines.push(cells(&["mean", ""]).into_iter().chain(means).chain(last).collect());
    lines
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
        let named = studied.thresholds.iter().map(|t| (t.to_string(), soft(*t)));
        let all = [("none".to_string(), BASELINE.to_string())]
            .into_iter()
            .chain(named)
            .chain([("directive".into(), PREDICT.into())]);
        for (threshold, variant) in all {
            let rows = [VOLTA, PATH_TABLES].map(|on| (on, variant.as_str()));
            let rest = |rows: &[&Row]| {
                let of = |row: &&Row| [share(row.simt_efficiency), row.gain().text(), row.gain().range()];
                rows.iter().flat_map(of).collect()
            };
            lines.extend(line(report, &[studied.name, &threshold], &rows, rest));
        }
    }
    lines
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
    lines.push(cells(&["mean"]).into_iter().chain(units.iter().map(|unit| gain(over(unit)))).collect());
    lines
}

/// Figure 10: the kernels in which something was found.
fn automatic(report: &Report) -> Lines {
    let of_each = [AUTO, AUTO_PROFILE].map(|how| [how, "speedup", "least … greatest"]);
    let first = ["kernel", "efficiency"];
    let mut lines = vec![cells(&first.into_iter().chain(of_each.into_iter().flatten()).collect::<Vec<_>>())];
    let of = |(kernel, found): (&str, [&Row; 2])| {
        let before = report.row(kernel, PATH_TABLES, BASELINE)?;
        let rest = found.iter().flat_map(|row| match row.changed {
            true => [share(row.simt_efficiency), row.gain().text(), row.gain().range()],
            false => ["as it was", "", ""].map(String::from),
        });
        Some([kernel.to_string(), share(before.simt_efficiency)].into_iter().chain(rest).collect())
    };
    let all: Vec<(&str, [&Row; 2])> = found(report).collect();
    let changed = all.iter().filter(|(_, rows)| rows.iter().any(|row| row.changed)).copied();
    lines.extend(changed.filter_map(of));
    let as_they_were = all.iter().filter(|(_, rows)| rows.iter().all(|row| !row.changed)).count();
    lines.push(cells(&[&format!("{as_they_were} others"), "", "as they were", "", "", "as they were", "", ""]));
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

/// On which kernels prediction does not raise SIMT efficiency.
fn rises(report: &Report) -> String {
    let not = |baseline| {
        let rows = of_predicted(report, baseline).filter(|(_, row)| row.efficiency_gain <= 1.0);
        list(rows.map(|(kernel, row)| (kernel, gain(row.efficiency_gain))))
    };
    format!(
        "SIMT efficiency does not rise on these kernels; on volta: {}; on path tables: {}.",
        not(VOLTA),
        not(PATH_TABLES)
    )
}

/// Those whose speedup near memory [is](Gain) more than behind it or less, in all draws, and both speedups.
fn near_and_far<'a>(
    report: &'a Report,
    is: fn(&Gain, &Gain) -> bool,
) -> impl Iterator<Item = (&'static str, String)> + 'a {
    of_predicted(report, NEAR).filter_map(move |(kernel, row)| {
        let far = report.row(kernel, PATH_TABLES, PREDICT)?.gain();
        is(&row.gain(), &far).then(|| (kernel, format!("{} for {}", row.gain().text(), far.text())))
    })
}

fn is_more(near: &Gain, far: &Gain) -> bool {
    near.least > far.greatest
}

/// Speedups that memory takes from.
fn near(report: &Report) -> String {
    format!(
        "Kernels of which each draw gains more near memory than any behind it: {}; less: {}.",
        list(near_and_far(report, is_more)),
        list(near_and_far(report, |near, far| near.greatest < far.least))
    )
}

/// As much more is more.
const MORE: f64 = 1.05;

fn accesses(report: &Report) -> String {
    let rows = of_predicted(report, PATH_TABLES).filter(|(_, row)| row.access_gain > MORE);
    let told = |row: &Row| {
        let [accesses, efficiency] = [row.access_gain, row.efficiency_gain].map(gain);
        format!("{accesses} accesses, {efficiency} of efficiency, {} of time", row.gain().text())
    };
    format!("More accesses: {}.", list(rows.map(|(kernel, row)| (kernel, told(row)))))
}

/// Who gains less in time than in efficiency, and has no more accesses and no more to gain near memory.
fn instructions(report: &Report) -> String {
    let of_memory: Vec<&str> = near_and_far(report, is_more).map(|(kernel, _)| kernel).collect();
    let rows = of_predicted(report, PATH_TABLES).filter(|(kernel, row)| {
        let is_neither = row.access_gain <= MORE && !of_memory.contains(kernel);
        is_neither && row.efficiency_gain > 1.0 && row.gain().mean < row.efficiency_gain
    });
    let told = |row: &Row| format!("{} of efficiency, {} of time", gain(row.efficiency_gain), row.gain().text());
    format!(
        "Less in time than in efficiency, without more accesses: {}.",
        list(rows.map(|(kernel, row)| (kernel, told(row))))
    )
}

/// The thresholds with most efficiency and with least time, of each kernel.
fn best(report: &Report) -> String {
    let best = |studied: &Studied, on: &str, value: fn(&Row) -> f64| {
        let named = studied.thresholds.iter().map(|&threshold| (threshold.to_string(), soft(threshold)));
        let all = [("none".to_string(), BASELINE.to_string())].into_iter().chain(named);
        let rows = all.filter_map(|(name, variant)| Some((name, value(report.row(studied.name, on, &variant)?))));
        rows.max_by(|(_, a), (_, b)| a.total_cmp(b)).map_or("none".into(), |(name, _)| name)
    };
    let line = |studied: &Studied| {
        let on = |unit: &str| {
            let [efficiency, time] =
                [best(studied, unit, |row| row.simt_efficiency), best(studied, unit, |row| row.gain().mean)];
            format!("{efficiency} for efficiency and {time} for time")
        };
        format!("* `{}`: best are, on volta, {}; on path tables, {}.", studied.name, on(VOLTA), on(PATH_TABLES))
    };
    let lines: Vec<String> = report.kernels().filter(|studied| !studied.thresholds.is_empty()).map(line).collect();
    lines.join("\n")
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
        ("{rises}", rises(report)),
        ("{near}", near(report)),
        ("{accesses}", accesses(report)),
        ("{instructions}", instructions(report)),
        ("{thresholds}", best(report)),
    ];
    let text = told.iter().fold(text, |text, (mark, told)| text.replace(mark, told));
    TABLES.iter().fold(text, |text, table| text.replace(table.mark, markdown(&(table.lines)(report)).trim_end()))
}

#[cfg(test)]
mod tests {
    use super::super::super::draws::Subject;
    use super::super::tests::example;
    use super::*;

    fn words(line: &[String]) -> String {
        line.join(" | ")
    }

    #[test]
    fn a_kernel_has_a_line_with_both_baselines_and_the_mean_is_last() {
        let lines = predicted(&example());
        assert_eq!(lines.len(), 1 + 2 + 1);
        assert_eq!(
            words(&lines[1]),
            "rsbench | RSBench | 25.0 % | 50.0 % | 2.00 | +100.0 % | +100.0 … +100.0 % | 25.0 % | 50.0 % | 2.00 | +100.0 % | \
             +100.0 … +100.0 % | +50.0 % | +100.0 %"
        );
        assert!(
            words(&lines[2])
                .starts_with("xsbench | XSBench | 25.0 % | 50.0 % | 2.00 | none | -20.0 … +20.0 % | 25.0 %")
        );
        assert!(words(&lines[3]).starts_with("mean |  |  |  | 2.00 | +"), "{}", words(&lines[3]));
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
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

    #[test]
    fn where_nobody_asked_only_what_was_changed_has_a_line() {
        let mut report = example();
        assert_eq!(automatic(&report).len(), 1);
        for (kernel, changed) in [("rsbench", [true, false]), ("xsbench", [false, false])] {
            for (variant, changed) in [AUTO, AUTO_PROFILE].into_iter().zip(changed) {
                let from = report.row(kernel, PATH_TABLES, if changed { PREDICT } else { BASELINE }).unwrap().clone();
                let of = Subject { variant: variant.into(), ..from.of.clone() };
                report.rows.push(Row { of, changed, ..from });
            }
        }
        let lines = automatic(&report);
        assert_eq!(words(&lines[1]), "rsbench | 25.0 % | 50.0 % | +100.0 % | +100.0 … +100.0 % | as it was |  | ");
        assert!(words(&lines[2]).starts_with("1 others | ") && lines.len() == 3);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    }

    #[test]
    fn the_page_has_everything_filled_in() {
        let page = page(&example());
        assert!(page.contains("| rsbench | RSBench | 25.0 % | 50.0 % |"), "{page}");
        assert!(page.contains("32 lanes × 8 warps") && page.contains("here 2 (`--draws`)"), "{page}");
        for told in [
            "does not rise on these kernels; on volta: none; on path tables: none.",
            "than any behind it: none; less: none.",
            "More accesses: `rsbench` (+50.0 % accesses, +100.0 % of efficiency, +100.0 % of time), `xsbench` (+50.0 % accesses",
            "without more accesses: none.",
            "* `xsbench`: best are, on volta, 32 for efficiency and none for time; on path tables, 32 for efficiency and 32",
        ] {
            assert!(page.contains(told), "{told}: {page}");
        }
        // Of the page's own, a call of jq in a shell.
        let left: String = page.split("```").step_by(2).collect();
        assert!(!left.contains(['{', '}']), "{left}");
    }
}
