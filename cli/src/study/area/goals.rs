//! What the core is meant to take and to reach, and how far it has come.

use super::cores::{PRICED, board, simty, with};
use super::page::{Figures, row, table};

/// RV32IM and nothing else that is optional.
const BARE: &str = "--barriers off --atomics off --scratchpad 0 --counters off";
/// The same without multiplication and division.
const BARE_I: &str = "--barriers off --atomics off --scratchpad 0 --counters off --multiply off";

/// What is aimed at.
#[derive(Clone, Copy)]
enum Limit {
    AtMost(f64),
    AtLeast(f64),
}

/// In what, and how it is written.
#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Luts,
    Mhz,
    Percent,
}

/// A figure of one or several cores that has a limit.
pub struct Goal {
    what: &'static str,
    /// Options of the cores.
    pub cores: Vec<String>,
    /// It is about their clock.
    pub clock: bool,
    unit: Unit,
    limit: Limit,
    /// What would be better still.
    stretch: Option<f64>,
    figure: fn(&[Figures]) -> Option<f64>,
}

impl Limit {
    fn of(self) -> f64 {
        match self {
            Limit::AtMost(limit) | Limit::AtLeast(limit) => limit,
        }
    }

    fn is_met(self, found: f64) -> bool {
        match self {
            Limit::AtMost(limit) => found <= limit,
            Limit::AtLeast(limit) => found >= limit,
        }
    }

    fn text(self, unit: Unit) -> String {
        match self {
            Limit::AtMost(limit) => format!("≤ {}", unit.text(limit)),
            Limit::AtLeast(limit) => format!("≥ {}", unit.text(limit)),
        }
    }

    /// The same with another limit.
    fn with(self, limit: f64) -> Limit {
        match self {
            Limit::AtMost(_) => Limit::AtMost(limit),
            Limit::AtLeast(_) => Limit::AtLeast(limit),
        }
    }
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Unit::Luts => format!("{value:.0} LUTs"),
            Unit::Mhz => format!("{value:.1} MHz"),
            Unit::Percent => format!("{value:.1} %"),
        }
    }
}

impl Goal {
    fn note(&self, found: Option<f64>, single: bool, older: bool) -> String {
        let Some(found) = found else {
            return if older { "one is of an older core" } else { "not measured" }.into();
        };
        let reached = match self.stretch {
            _ if !self.limit.is_met(found) => {
                let (by, of) = match self.unit {
                    Unit::Percent => ((found - self.limit.of()).abs(), "points"),
                    _ => (100.0 * (found / self.limit.of() - 1.0).abs(), "%"),
                };
                format!("missed by {by:.0} {of}")
            }
            Some(stretch) if self.limit.with(stretch).is_met(found) => "met, the stretch too".into(),
            _ => "met".into(),
        };
        let told = [(true, reached), (single, "of one run".into()), (older, "of an older core".into())];
        told.into_iter().filter(|(is_so, _)| *is_so).map(|(_, text)| text).collect::<Vec<_>>().join("; ")
    }
}

fn core_luts(figures: &Figures) -> Option<f64> {
    Some(f64::from(figures.flat?.core_luts))
}

/// The goals.
pub fn goals() -> Vec<Goal> {
    let of = |options: &str| with(PRICED[0], options);
    let luts = |what, options: &str, limit: f64, stretch| Goal {
        what,
        cores: vec![of(options)],
        clock: false,
        unit: Unit::Luts,
        limit: Limit::AtMost(limit),
        stretch,
        figure: |found| core_luts(&found[0]),
    };
    vec![
        luts("RV32IM", BARE, 11500.0, Some(10900.0)),
        luts("RV32I", BARE_I, 9700.0, Some(9200.0)),
        luts("all that is usual, and 4 convergence barriers", "--convergence-barriers 4", 16000.0, None),
        Goal {
            what: "dual path: LUTs more than with the stack",
            cores: ["--divergence stack", "--divergence dual-path"].map(of).to_vec(),
            clock: false,
            unit: Unit::Percent,
            limit: Limit::AtMost(22.0),
            stretch: None,
            figure: |found| Some(100.0 * (core_luts(&found[1])? / core_luts(&found[0])? - 1.0)),
        },
        Goal {
            what: "clock of RV32IM",
            cores: vec![of(BARE)],
            clock: true,
            unit: Unit::Mhz,
            limit: Limit::AtLeast(70.0),
            stretch: Some(80.0),
            figure: |found| found[0].mhz(),
        },
        Goal {
            what: "clock of the slowest of 4 to 32 lanes, below that of the fastest",
            cores: [4, 8, 16, 32].map(|lanes| simty(lanes, "path-table")).to_vec(),
            clock: true,
            unit: Unit::Percent,
            limit: Limit::AtMost(20.0),
            stretch: None,
            figure: |found| {
                let clocks: Vec<f64> = found.iter().map(Figures::mhz).collect::<Option<_>>()?;
                let (least, most) =
                    (clocks.iter().copied().fold(f64::INFINITY, f64::min), clocks.iter().copied().fold(0.0, f64::max));
                Some(100.0 * (1.0 - least / most))
            },
        },
    ]
}

/// The section of the page; `figures` finds what is known of a core.
pub fn section<'a>(figures: impl Fn(&str) -> Figures<'a>) -> String {
    let mut lines = vec![row(["of", "core", "goal", "found", ""])];
    for goal in goals() {
        let found: Vec<Figures> = goal.cores.iter().map(|core| figures(core)).collect();
        let is_older = found.iter().any(Figures::is_older);
        // A core as it was is compared with no other.
        let figure = if is_older && found.len() > 1 { None } else { (goal.figure)(&found) };
        let stretch = goal.stretch.map_or_else(String::new, |stretch| format!(", stretch {}", goal.unit.text(stretch)));
        let cores: Vec<String> = goal.cores.iter().map(|core| format!("`{core}`")).collect();
        lines.push(vec![
            goal.what.into(),
            cores.join(", "),
            goal.limit.text(goal.unit) + &stretch,
            figure.map_or_else(String::new, |figure| goal.unit.text(figure)),
            goal.note(figure, goal.clock && found.iter().any(Figures::is_single), is_older),
        ]);
    }
    format!(
        "## Goals\n\nWhat the core is meant to take and to reach, LUTs in `core`, clock on a `{}`.\nEach is of `heddle synth CORE`:\n\n{}",
        board().device,
        table(&lines, "goals")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_or_missed_by_so_much() {
        let [rv32im, .., clock, lanes] = &goals()[..] else { panic!() };
        assert_eq!(rv32im.note(Some(11500.0), false, false), "met");
        assert_eq!(rv32im.note(Some(10900.0), false, false), "met, the stretch too");
        assert_eq!(rv32im.note(Some(12650.0), false, true), "missed by 10 %; of an older core");
        assert_eq!(
            (clock.note(Some(63.0), false, false), clock.note(Some(80.0), true, true)),
            ("missed by 10 %".into(), "met, the stretch too; of one run; of an older core".into())
        );
        assert_eq!(
            (lanes.note(Some(23.0), false, false), lanes.note(None, false, true)),
            ("missed by 3 points".into(), "one is of an older core".into())
        );
    }

    #[test]
    fn figures_are_those_of_their_cores() {
        let text = section(|_| Figures::default());
        assert_eq!(text.matches("| not measured |").count(), goals().len());
        for goal in goals() {
            assert_eq!((goal.figure)(&goal.cores.iter().map(|_| Figures::default()).collect::<Vec<_>>()), None);
        }
    }
}
