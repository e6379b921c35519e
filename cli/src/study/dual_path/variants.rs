//! Variants of dual path, each of which changes one thing; what a second path could hide; and gains on other cores.

use super::rows::{INTERLEAVABLE, OTHERS, by_draw, of_draws};
use super::{
    CONSTRAINED, CORES, DUAL_PATH, FULL, Figures, KERNELS, NONE, PUBLISHED_MEAN, Report, Row, STACK, Studied, kernels,
    mean_text, of, side_first,
};
use crate::shape::ShapeArgs;
use crate::study::core::CoreArgs;
use crate::study::draws::{self, Drawn, Gain};
use crate::study::runs::Run;
use crate::study::table::{gain, share};
use crate::study::workloads::{self, Line, Workload};
use anyhow::Result;
use heddle_simt::{Cache, Divergence, Timing};
use heddle_testbench::kernels::Kernel;
use serde::Serialize;

/// What the paper's text has of variants, over its dual path: a scoreboard without false dependencies brings *at most* 1 %
/// (§6.4).
const PUBLISHED: [(&str, f64, &str); 1] = [("exact", 1.01, "≤ ")];

/// Its constrained scheduler, 11.7 % above the stack, over its dual path, 14.9 % above (§6.4).
const PUBLISHED_CONSTRAINED: f64 = PUBLISHED_MEAN[1] / PUBLISHED_MEAN[0];

/// The paper's lane utilisation, where its text has it (§6.1).
const PUBLISHED_EFFICIENCY: [(&str, f64); 1] = [("bfs", 0.32)];

/// Those beside the cores of the first table: see `--help`.
pub const VARIANTS: [&str; 4] = ["constrained", "exact", "two-unresolved", "exact, two-unresolved"];

/// Thread IPC of a variant over dual path's, in each draw.
fn over_dual_path(rows: &[Row], name: &str) -> Option<Vec<f64>> {
    let (own, dual) = (of(rows, name)?, of(rows, DUAL_PATH)?);
    // Both over the same draw of the stack.
    Some(draws::ratios(&dual.gain_of_draws, &own.gain_of_draws))
}

/// Thread IPC of each variant over dual path's.
pub fn table(report: &Report) -> Vec<Vec<String>> {
    let names: Vec<String> = [CONSTRAINED, FULL].into_iter().chain(VARIANTS).map(String::from).collect();
    let line = |first: [String; 2], cells: Vec<String>| first.into_iter().chain(cells).collect::<Vec<String>>();
    let mut lines = vec![line(["kernel", "side-first IPC"].map(String::from), names.clone())];
    for rows in kernels(report) {
        let ipc = of(rows, DUAL_PATH).map_or(NONE.into(), |of| format!("{:.2}", of.compared.thread_ipc));
        let cell = |name: &String| mean_text(over_dual_path(rows, name).map(|over| Gain::of(over.into_iter())));
        lines.push(line([rows[0].kernel().into(), ipc], names.iter().map(cell).collect()));
    }
    for (set, interleavable) in [(INTERLEAVABLE, true), (OTHERS, false)] {
        let of_set = || kernels(report).filter(|rows| rows[0].interleavable() == interleavable);
        let mean = |name: &String| {
            let kernels: Vec<Vec<f64>> = of_set().filter_map(|rows| over_dual_path(rows, name)).collect();
            mean_text(of_draws(kernels.iter().map(Vec::as_slice)))
        };
        lines.push(line([set.into(), String::new()], names.iter().map(mean).collect()));
    }
    let published = |name: &String| {
        let found = PUBLISHED.iter().find(|(of, ..)| of == name);
        found.map_or(NONE.into(), |&(_, over, before)| format!("{before}{}", gain(over)))
    };
    lines.push(line(["paper, interleavable".into(), String::new()], names.iter().map(published).collect()));
    lines
}

/// What the kernels give the core to do, on the stack.
pub fn workloads(report: &Report) -> Vec<Vec<String>> {
    let line = |rows: &[Row]| {
        let stack = of(rows, STACK)?;
        let (kernel, paper, set) = (rows[0].kernel(), rows[0].paper, rows[0].of.set.expect("a kernel is of one"));
        let published =
            PUBLISHED_EFFICIENCY.iter().find(|(name, _)| *name == kernel).map(|(_, efficiency)| *efficiency);
        Some(Line { kernel, paper, set, workload: stack.workload, efficiency: stack.simt_efficiency, published })
    };
    workloads::table(report.warps, &kernels(report).filter_map(line).collect::<Vec<_>>())
}

/// Kernels on which dual path does not issue the stack's instructions for the stack's threads.
pub fn differing(report: &Report) -> String {
    let differ = |rows: &&[Row]| {
        let figures = |of: &Figures| (of.thread_instructions, of.simt_efficiency);
        of(rows, STACK).zip(of(rows, DUAL_PATH)).is_some_and(|(stack, dual)| figures(stack) != figures(dual))
    };
    let names: Vec<String> = kernels(report).filter(differ).map(|rows| format!("`{}`", rows[0].kernel())).collect();
    listed(&names, "none")
}

/// From the least to the greatest of dual path on the interleavable kernels, and on the others.
pub fn avg_paths(report: &Report) -> String {
    let range = |interleavable: bool| {
        let of_set = kernels(report).filter(|rows| rows[0].interleavable() == interleavable);
        let paths = of_set.filter_map(|rows| Some(of(rows, DUAL_PATH)?.avg_path));
        let (least, most) = paths.fold((f64::INFINITY, 0.0_f64), |(a, b), path| (a.min(path), b.max(path)));
        if least > most { NONE.into() } else { format!("from {least:.3} to {most:.3}") }
    };
    format!("{} on the kernels that the paper calls interleavable, and {} on the others", range(true), range(false))
}

/// Dual path over the stack on the interleavable kernels whose warps are full and as many as the core has.
pub fn mean_of_full(report: &Report) -> String {
    let fills = |rows: &&[Row]| {
        of(rows, DUAL_PATH).is_some_and(|dual| {
            let Workload { full_lanes, resident_warps, .. } = dual.workload;
            rows[0].interleavable() && full_lanes == 1.0 && resident_warps == report.warps
        })
    };
    let full: Vec<&[Row]> = kernels(report).filter(fills).collect();
    if full.is_empty() {
        return "none of the interleavable kernels starts with all of both".into();
    }
    let gains = full.iter().filter_map(|rows| of(rows, DUAL_PATH)).map(|dual| &dual.gain_of_draws[..]);
    let mean = mean_text(of_draws(gains));
    let names: Vec<String> = full.iter().map(|rows| format!("`{}`", rows[0].kernel())).collect();
    format!("of the interleavable kernels {} start with all of both, and their mean gain is {mean}", names.join(", "))
}

/// The constrained scheduler over dual path, of the interleavable kernels: a ratio of means, as the paper's.
pub fn constrained(report: &Report) -> String {
    format!("{}, the paper's is {}", mean_text(over_unit(report, CONSTRAINED, DUAL_PATH)), gain(PUBLISHED_CONSTRAINED))
}

/// A unit over another in each draw, by the means of the interleavable kernels.
fn over_unit(report: &Report, name: &str, other: &str) -> Option<Gain> {
    let means = |name: &str| {
        let kernels: Vec<&[f64]> = of_interleavable(report, name).map(|(_, draws)| draws).collect();
        by_draw(kernels.into_iter())
    };
    let (own, other) = (means(name), means(other));
    (!own.is_empty() && own.len() == other.len()).then(|| Gain::paired(&other, &own))
}

/// The interleavable kernels, and what a unit gains on each over the stack, by draw.
fn of_interleavable<'a>(report: &'a Report, name: &str) -> impl Iterator<Item = (&'static str, &'a [f64])> {
    let of_unit = move |rows: &'a [Row]| Some((rows[0].kernel(), &of(rows, name)?.gain_of_draws[..]));
    let kernels = kernels(report).filter(|rows| rows[0].interleavable());
    kernels.filter_map(of_unit).filter(|(_, draws)| !draws.is_empty()).collect::<Vec<_>>().into_iter()
}

/// What a second path could hide, what there is to gain, and what is gained: of each kernel.
pub fn bounds(report: &Report) -> Vec<Vec<String>> {
    let headings = ["kernel", "AvgPath", "hidden", "gain", "idle, stack", "idle, dual path", "held"];
    let of_kernel = |rows: &[Row]| {
        let [stack, dual] = [STACK, DUAL_PATH].map(|name| of(rows, name));
        let (stack, dual) = stack.zip(dual)?;
        let idle = |of: &Figures| share(of.idle_share());
        let names = [rows[0].kernel().into(), format!("{:.3}", dual.avg_path)];
        let [hidden, held] = [gain(hidden(dual.avg_path)), share(dual.divergence_share)];
        let figures = [hidden, mean_text(dual.gain()), idle(stack), idle(dual), held];
        Some(names.into_iter().chain(figures).collect())
    };
    [headings.map(String::from).to_vec()].into_iter().chain(kernels(report).filter_map(of_kernel)).collect()
}

/// Thread IPC over the stack's if cycles followed instructions: h of all instructions are of second paths, and these take
/// no time of their own.
pub fn hidden(avg_path: f64) -> f64 {
    let h = (avg_path - 1.0) / 2.0;
    1.0 + h / (1.0 - h)
}

/// A smaller difference is not spoken of.
const NOTICED: f64 = 0.005;

/// The kernels of which the least gain of a draw is above what their mean AvgPath would hide.
pub fn beyond(report: &Report) -> String {
    let gains_more = |rows: &&[Row]| {
        let dual = of(rows, DUAL_PATH);
        dual.is_some_and(|dual| dual.gain().is_some_and(|gain| gain.least > hidden(dual.avg_path) + NOTICED))
    };
    let here: Vec<String> = kernels(report).filter(gains_more).map(|rows| format!("`{}`", rows[0].kernel())).collect();
    let more = report
        .sensitivity
        .iter()
        .filter(|point| point.gain.zip(point.hidden).is_some_and(|(gain, hidden)| gain.least > hidden + NOTICED));
    let elsewhere: Vec<String> = more
        .map(|point| {
            let Point { kernel, warps, latency, cache, .. } = point;
            format!("`{kernel}` ({})", core_text((*warps, *latency, *cache)))
        })
        .collect();
    format!(
        "even the draw that gains least has half a point more or better on {}; on the other cores below, on {}",
        listed(&here, "no kernel"),
        listed(&elsewhere, "no kernel")
    )
}

/// Interleavable kernels that go the other way than in the paper in every draw: all but MUMpp gain there (§6.3).
pub fn signs(report: &Report) -> String {
    let reverse = |rows: &&[Row]| {
        let gains = rows[0].paper != "MUMpp";
        let own = of(rows, DUAL_PATH).and_then(Figures::gain);
        let is_reverse = own.is_some_and(|own| if gains { own.greatest < 1.0 } else { own.least > 1.0 });
        rows[0].interleavable() && is_reverse
    };
    let told = |rows: &[Row]| {
        let own = of(rows, DUAL_PATH).and_then(Figures::gain).map_or(NONE.into(), |gain| gain.with_range());
        format!("`{}` ({}, {own})", rows[0].kernel(), rows[0].paper)
    };
    let names: Vec<String> = kernels(report).filter(reverse).map(told).collect();
    listed(&names, "none")
}

pub fn listed(names: &[String], none: &str) -> String {
    if names.is_empty() { none.into() } else { names.join(", ") }
}

fn core_text((warps, latency, cache): (u32, u32, u32)) -> String {
    format!("{warps} warps, {latency}, {}K", cache >> 10)
}

/// Dual path over the stack on another core.
#[derive(Serialize)]
pub struct Point {
    kernel: &'static str,
    warps: u32,
    latency: u32,
    /// Bytes.
    cache: u32,
    /// The thread IPC over the stack's.
    gain: Option<Gain>,
    /// The same of each draw.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    gain_of_draws: Vec<f64>,
    /// What a second path [could hide](hidden), over the stack's.
    hidden: Option<f64>,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<String>,
}

const WARPS: [u32; 2] = [4, 16];
const LATENCIES: [u32; 2] = [50, 400];
const CACHES: [u32; 2] = [4 << 10, 64 << 10];

/// All combinations of warps, latency of memory and size of the cache.
fn cores() -> impl Iterator<Item = (u32, u32, u32)> {
    let of = |warps| LATENCIES.into_iter().flat_map(move |latency| CACHES.map(|cache| (warps, latency, cache)));
    WARPS.into_iter().flat_map(of)
}

/// The chosen kernels on both units of the [cores](cores) elsewhere. An error is that of a core that cannot be.
pub fn elsewhere(chosen: &[(&'static Studied, &'static Kernel)], args: &CoreArgs) -> Result<Vec<Run>> {
    let usual = args.shape(Divergence::STACK, WARPS[0])?.cache;
    let shape = |(warps, latency, size), divergence| {
        let cache = usual.map(|cache| Cache { size, ..cache });
        let memory_model = Some(Timing { latency, ..args.shape.memory_model.unwrap_or(Timing::FASTEST) });
        let shape = ShapeArgs { warps: Some(warps), cache, memory_model, ..args.shape.clone() };
        let core = CoreArgs { shape }.shape(divergence, warps)?;
        Ok::<_, anyhow::Error>(if divergence == Divergence::DUAL_PATH { side_first(core) } else { core })
    };
    let mut runs = Vec::new();
    for core in cores() {
        for divergence in [Divergence::STACK, Divergence::DUAL_PATH] {
            let shape = shape(core, divergence)?;
            runs.extend(chosen.iter().map(|&(_, kernel)| Run::new(kernel, shape.clone())));
        }
    }
    Ok(runs)
}

/// What the kernels gain on each, of what came of [these runs](elsewhere).
pub fn points(chosen: &[(&'static Studied, &'static Kernel)], results: &[Drawn]) -> Vec<Point> {
    let mut points = Vec::new();
    for ((warps, latency, cache), results) in cores().zip(results.chunks(2 * chosen.len())) {
        for (&(studied, _), units) in chosen.iter().zip(draws::by_program(results, chosen.len())) {
            let [stack, dual] = &units[..] else { unreachable!("there are two units") };
            let nothing = Point {
                kernel: studied.name,
                warps,
                latency,
                cache,
                gain: None,
                gain_of_draws: Vec::new(),
                hidden: None,
                failed: None,
            };
            points.push(match (stack, dual) {
                (Ok(stack), Ok(dual)) => {
                    let gains = draws::ratios(&draws::ipc(stack), &draws::ipc(dual));
                    Point {
                        gain: Some(Gain::of(gains.iter().copied())),
                        gain_of_draws: gains,
                        hidden: Some(hidden(draws::average(dual, |s| s.avg_path))),
                        ..nothing
                    }
                }
                (Err(why), _) | (_, Err(why)) => Point { failed: Some(why.clone()), ..nothing },
            });
        }
    }
    points
}

/// A column a core, a line a kernel, then the means of the interleavable ones and of the others.
pub fn sensitivity(points: &[Point]) -> Vec<Vec<String>> {
    let headings = [String::from("kernel")].into_iter().chain(cores().map(core_text)).collect();
    let line = |kernel: &Studied| {
        let of_kernel: Vec<&Point> = points.iter().filter(|point| point.kernel == kernel.name).collect();
        let cells = of_kernel.iter().map(|point| mean_text(point.gain));
        (!of_kernel.is_empty()).then(|| [kernel.name.to_string()].into_iter().chain(cells).collect())
    };
    let mean = |(set, interleavable): (&str, bool)| {
        let is_of_set = |kernel: &str| KERNELS.iter().any(|of| of.name == kernel && of.interleavable == interleavable);
        let of_core = |core| {
            let is_such = |point: &&Point| is_of_set(point.kernel) && (point.warps, point.latency, point.cache) == core;
            let draws = points.iter().filter(is_such).map(|point| &point.gain_of_draws[..]);
            mean_text(of_draws(draws))
        };
        [set.to_string()].into_iter().chain(cores().map(of_core)).collect()
    };
    let kernels = KERNELS.iter().filter_map(line);
    [headings].into_iter().chain(kernels).chain([(INTERLEAVABLE, true), (OTHERS, false)].map(mean)).collect()
}

/// The units in the order of their means over the interleavable kernels, and whether it is the paper's.
pub fn ranking(report: &Report) -> String {
    let mut means: Vec<(&str, Gain)> =
        report.means[..CORES].iter().filter_map(|mean| Some((&mean.variant[..], mean.interleavable?))).collect();
    means.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));
    let pairs = [(DUAL_PATH, CONSTRAINED), (CONSTRAINED, STACK)].map(|(above, below)| over_unit(report, above, below));
    let all = |is: fn(&Gain) -> bool| pairs.iter().all(|pair| pair.as_ref().is_some_and(is));
    let of_paper = if all(|gain| gain.least >= 1.0) {
        "which is its order, too"
    } else if all(|gain| gain.greatest >= 1.0) {
        "the draws do not tell them apart"
    } else {
        "the reverse somewhere, in every draw"
    };
    let names: Vec<String> = means.iter().map(|(name, mean)| format!("`{name}` {}", mean.with_range())).collect();
    let most = |(name, _): &(&str, Gain)| without_most(report, name);
    let without: Vec<String> = means.iter().filter(|(name, _)| *name != STACK).filter_map(most).collect();
    format!(
        "{}. The paper has dual path, constrained, stack: {of_paper}. Without the kernel that each gains most on: {}.",
        names.join(", "),
        without.join(", ")
    )
}

/// The mean of a unit without the interleavable kernel that it gains most on, and which that is.
fn without_most(report: &Report, name: &str) -> Option<String> {
    let mean = |draws: &[f64]| draws.iter().sum::<f64>() / draws.len() as f64;
    let kernels: Vec<(&str, &[f64])> = of_interleavable(report, name).collect();
    let (most, _) = kernels.iter().max_by(|(_, a), (_, b)| mean(a).total_cmp(&mean(b)))?;
    let rest = kernels.iter().filter(|(kernel, _)| kernel != most).map(|(_, draws)| *draws);
    Some(format!("`{name}` {} (`{most}`)", mean_text(of_draws(rest))))
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn paths_that_are_always_two_hide_half_of_all() {
        assert_eq!([1.0, 1.5, 2.0].map(hidden), [1.0, 1.0 + 1.0 / 3.0, 2.0]);
    }

    #[test]
    fn tables_have_a_column_a_variant_and_a_line_a_kernel() {
        let report = example();
        let words = |line: &[String]| line.join(" ");
        let variants = table(&report);
        assert_eq!(
            words(&variants[0]),
            "kernel side-first IPC constrained-miss full constrained exact two-unresolved exact, two-unresolved"
        );
        assert_eq!(words(&variants[1]), "lu 11.49 +0.0 % +0.0 % +0.0 % +0.0 % +0.0 % +0.0 %");
        assert_eq!(words(variants.last().unwrap()), "paper, interleavable  - - - ≤ +1.0 % - -");
        assert_eq!(words(&bounds(&report)[1]), "lu 1.250 +14.3 % +14.9 % (+10.0 … +20.0 %) 40.0 % 33.3 % 0.0 %");
        assert!(variants.windows(2).all(|pair| pair[0].len() == pair[1].len()));
    }

    #[test]
    fn the_order_is_that_of_the_means() {
        assert!(beyond(&example()).ends_with("or better on no kernel; on the other cores below, on no kernel"));
        let ranking = ranking(&example());
        let parallel =
            ["side-first", "constrained-miss", "full"].map(|name| format!("`{name}` +14.9 % (+10.0 … +20.0 %)"));
        assert!(ranking.starts_with(&format!("{}, `stack` +0.0 %", parallel.join(", "))), "{ranking}");
        assert!(ranking.contains("its order, too. Without the kernel that each gains most on: "), "{ranking}");
        // There is one interleavable kernel.
        assert!(ranking.contains("`side-first` - (`lu`)"), "{ranking}");
        assert_eq!(signs(&example()), "none");
        let mut worse = example();
        let lu = worse.rows.iter_mut().find(|row| row.of.variant == DUAL_PATH).unwrap();
        lu.figures.as_mut().unwrap().gain_of_draws = vec![1.05, 1.25];
        assert!(super::ranking(&worse).contains("the draws do not tell them apart"));
        let lu = worse.rows.iter_mut().find(|row| row.of.variant == DUAL_PATH).unwrap();
        lu.figures.as_mut().unwrap().gain_of_draws = vec![1.05, 1.1];
        assert!(super::ranking(&worse).contains("the reverse somewhere, in every draw"));
    }

    #[test]
    fn a_line_has_a_cell_a_core() {
        let point = |(warps, latency, cache)| Point {
            kernel: "lu",
            warps,
            latency,
            cache,
            gain: Some(Gain::paired(&[1.0], &[1.1])),
            gain_of_draws: vec![1.1],
            hidden: Some(1.05),
            failed: None,
        };
        let mut points: Vec<Point> = cores().map(point).collect();
        points[0].gain = None;
        let elsewhere = beyond(&Report { sensitivity: points, ..example() });
        assert!(elsewhere.contains("below, on `lu` (4 warps, 50, 64K), "), "{elsewhere}");
        let mut points: Vec<Point> = cores().map(point).collect();
        (points[0].gain, points[0].gain_of_draws) = (None, Vec::new());
        let lines = sensitivity(&points);
        assert_eq!(lines.len(), 4);
        assert_eq!(lines[2][..3].join(" "), "interleavable - +10.0 %");
        assert_eq!(lines[3][..3].join(" "), "others - -");
        assert_eq!(lines[0][1], "4 warps, 50, 4K");
        assert_eq!(lines[1][..3].join(" "), "lu - +10.0 %");
    }
}
