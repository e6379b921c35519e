//! What the layers said, as text and as JSON.

use super::reasons::reason;
use heddle_hdl::mutate::Mutant;
use serde::Serialize;
use std::fmt::Write;

/// What each layer says of one mutant: why it is caught, if it is.
pub struct Outcome {
    pub mutant: Mutant,
    pub assertions: Option<String>,
    pub blocks: Option<String>,
    pub run: Option<String>,
    pub lockstep: Option<String>,
    /// How the block alone differs, for mutants that no layer sees.
    pub alone: Option<String>,
}

impl Outcome {
    /// Without the unchanged core to compare with.
    pub fn is_caught(&self) -> bool {
        self.assertions.is_some() || self.blocks.is_some() || self.run.is_some()
    }

    /// It does something else than the unchanged core, as far as anything here can tell.
    pub fn changes(&self) -> bool {
        self.is_caught() || self.lockstep.is_some() || self.alone.is_some()
    }

    /// It changes behaviour and no check but lock-step sees it.
    pub fn survives(&self) -> bool {
        self.changes() && !self.is_caught()
    }
}

pub struct Report {
    pub interrupted: bool,
    /// As `4 × 2`.
    pub shapes: Vec<String>,
    /// The programs.
    pub workload: String,
    pub seed: u64,
    /// Of all, of which some or all were examined.
    pub mutants: usize,
    pub seconds: f64,
    /// How many mutants ran in Verilator too, and in how many the same differed in the same cycle.
    pub verilog: Option<(usize, usize)>,
    pub outcomes: Vec<Outcome>,
}

/// Numbers of mutants.
#[derive(Serialize, Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct Counts {
    pub examined: usize,
    /// That do something else than the unchanged core.
    pub change: usize,
    pub assertions: usize,
    pub block_tests: usize,
    pub run: usize,
    /// By any of the three.
    pub caught: usize,
    /// Those that differ from the unchanged core in its outputs and probes.
    pub lockstep: usize,
    pub survivors: usize,
}

impl Counts {
    pub fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Counts {
        outcomes.fold(Counts::default(), |c, o| Counts {
            examined: c.examined + 1,
            change: c.change + usize::from(o.changes()),
            assertions: c.assertions + usize::from(o.assertions.is_some()),
            block_tests: c.block_tests + usize::from(o.blocks.is_some()),
            run: c.run + usize::from(o.run.is_some()),
            caught: c.caught + usize::from(o.is_caught()),
            lockstep: c.lockstep + usize::from(o.lockstep.is_some()),
            survivors: c.survivors + usize::from(o.survives()),
        })
    }

    /// Layers with their number of catches, the last one that of all together but lock-step.
    pub fn layers(&self) -> [(&'static str, usize); 5] {
        [
            ("assertions, while programs run", self.assertions),
            ("block tests", self.block_tests),
            ("the run: effects and results", self.run),
            ("any of these", self.caught),
            ("lock-step with the unchanged core", self.lockstep),
        ]
    }

    /// `caught` of those that change behaviour, in percent.
    pub fn percent(&self, caught: usize) -> f64 {
        100.0 * caught as f64 / self.change.max(1) as f64
    }
}

#[derive(Serialize)]
pub struct Json<'a> {
    interrupted: bool,
    shapes: &'a [String],
    workload: &'a str,
    seed: u64,
    mutants: usize,
    seconds: f64,
    verilog: Option<Verilog>,
    #[serde(flatten)]
    counts: Counts,
    /// Of those that change behaviour, by checks other than lock-step.
    caught_percent: f64,
    outcomes: Vec<JsonOutcome<'a>>,
}

#[derive(Serialize)]
struct Verilog {
    tried: usize,
    same: usize,
}

#[derive(Serialize)]
struct JsonOutcome<'a> {
    name: &'a str,
    module: &'a str,
    signal: &'a str,
    kind: &'a str,
    assertions: &'a Option<String>,
    block_tests: &'a Option<String>,
    run: &'a Option<String>,
    lockstep: &'a Option<String>,
    alone: &'a Option<String>,
    changes: bool,
    caught: bool,
    /// Why it survives, if it does and that is known.
    reason: Option<&'static str>,
}

impl Report {
    /// Modules with their numbers, in the order of the design.
    pub fn by_module(&self) -> Vec<(&str, Counts)> {
        let groups = self.outcomes.chunk_by(|a, b| a.mutant.module == b.mutant.module);
        groups.map(|group| (group[0].mutant.module.as_str(), Counts::of(group.iter()))).collect()
    }

    pub fn json(&self) -> Json<'_> {
        let counts = Counts::of(self.outcomes.iter());
        Json {
            interrupted: self.interrupted,
            shapes: &self.shapes,
            workload: &self.workload,
            seed: self.seed,
            mutants: self.mutants,
            seconds: self.seconds,
            verilog: self.verilog.map(|(tried, same)| Verilog { tried, same }),
            counts,
            caught_percent: counts.percent(counts.caught),
            outcomes: self.outcomes.iter().map(JsonOutcome::new).collect(),
        }
    }

    pub fn text(&self) -> String {
        let all = Counts::of(self.outcomes.iter());
        let mut text = format!(
            "{} of {} mutants on {} lanes × warps, seed {}{}: {} change behaviour\n",
            all.examined,
            self.mutants,
            self.shapes.join(" and "),
            self.seed,
            if self.interrupted { ", interrupted" } else { "" },
            all.change
        );
        for (layer, caught) in all.layers() {
            let _ = writeln!(text, "{layer:<35}{caught:>6}{:>8.1} %", all.percent(caught));
        }
        if let Some((tried, same)) = self.verilog {
            let _ = writeln!(text, "in Verilator, {same} of {tried} differ in the same signal and cycle");
        }
        let mut line = |cells: [&str; 8]| {
            let [module, rest @ ..] = cells;
            let _ = write!(text, "{module:<18}");
            rest.iter().for_each(|cell| _ = write!(text, "{cell:>11}"));
            text.push('\n');
        };
        line(["module", "examined", "change", "assertions", "blocks", "run", "caught", "lock-step"]);
        for (module, c) in self.by_module() {
            let numbers = [c.examined, c.change, c.assertions, c.block_tests, c.run, c.caught, c.lockstep];
            let [a, b, c, d, e, f, g] = numbers.map(|n| n.to_string());
            line([module, &a, &b, &c, &d, &e, &f, &g]);
        }
        for o in self.outcomes.iter().filter(|o| o.survives()) {
            let _ = writeln!(text, "survives: {} ({}): {}", o.mutant.name, o.mutant.signal, o.seen());
        }
        text
    }
}

impl Outcome {
    /// How a survivor differs, and why that does no harm if it is known.
    pub fn seen(&self) -> String {
        let differs = match (&self.lockstep, &self.alone) {
            (Some(difference), _) => format!("differs in {difference}"),
            (None, Some(difference)) => format!("alone, differs in {difference}"),
            (None, None) => String::new(),
        };
        reason(&self.mutant).map_or(differs.clone(), |why| format!("{differs}; {why}"))
    }
}

impl<'a> JsonOutcome<'a> {
    fn new(o: &'a Outcome) -> JsonOutcome<'a> {
        JsonOutcome {
            name: &o.mutant.name,
            module: &o.mutant.module,
            signal: &o.mutant.signal,
            kind: &o.mutant.kind,
            assertions: &o.assertions,
            block_tests: &o.blocks,
            run: &o.run,
            lockstep: &o.lockstep,
            alone: &o.alone,
            changes: o.changes(),
            caught: o.is_caught(),
            reason: reason(&o.mutant).filter(|_| o.survives()),
        }
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use heddle_hdl::module;
    use heddle_hdl::mutate::mutants;

    /// Four mutants of an adder: caught by everything, by the run alone, by lock-step alone, by nothing.
    pub fn example() -> Report {
        let adder = module("adder", [8, 8], |_, [a, b]| [a + b, a & b]).check().unwrap().netlist;
        let said = |on: bool, what: &str| on.then(|| what.to_string());
        let outcomes = mutants(&adder).into_iter().take(4).enumerate().map(|(k, mutant)| Outcome {
            mutant,
            assertions: said(k == 0, "sum_is_right"),
            blocks: said(k == 0, "adder::tests::adds"),
            run: said(k <= 1, "wrong result"),
            lockstep: said(k == 0 || k == 2, "out_0 in cycle 3 of gcd"),
            alone: None,
        });
        Report {
            interrupted: false,
            shapes: vec!["4 × 2".into()],
            workload: "gcd and 1 random program".into(),
            seed: 1,
            mutants: 4,
            seconds: 60.0,
            verilog: Some((2, 2)),
            outcomes: outcomes.collect(),
        }
    }

    #[test]
    fn caught_is_counted_of_those_that_change_behaviour() {
        let report = example();
        let counts = Counts::of(report.outcomes.iter());
        assert_eq!((counts.examined, counts.change, counts.caught, counts.survivors), (4, 3, 2, 1));
        assert!((counts.percent(counts.caught) - 66.7).abs() < 0.1);
        let text = report.text();
        assert!(text.contains("any of these                            2    66.7 %\n"), "{text}");
        assert_eq!(text.lines().filter(|line| line.starts_with("survives: ")).count(), 1);
    }

    #[test]
    fn json_has_the_documented_fields() {
        let report = example();
        let json = serde_json::to_value(report.json()).unwrap();
        let fields = "interrupted shapes workload seed mutants seconds verilog examined change assertions block_tests run \
                      caught lockstep survivors caught_percent outcomes";
        assert_eq!(json.as_object().unwrap().len(), fields.split_whitespace().count());
        fields.split_whitespace().for_each(|field| assert!(json.get(field).is_some(), "{field}"));
        assert_eq!(json["outcomes"][1]["run"], "wrong result");
    }
}
