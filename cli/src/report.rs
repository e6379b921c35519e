//! What a run did, as text and as JSON.

use crate::engine::Engine;
use heddle_simt::{Divergence, Shape};
use heddle_testbench::machine::{CacheVisits, Compactions, MemoryLimits, Summary};
use heddle_testbench::printed::Printed;
use serde::Serialize;
use std::fmt::Write;
use std::time::Duration;

/// A run, with the summary's fields beside its own in JSON.
#[derive(Serialize)]
pub struct Report {
    /// It ended, every exit code is 0, and the results are the host's.
    pub ok: bool,
    /// Ctrl-C ended it: the figures are those of the cycles until then.
    pub interrupted: bool,
    /// Why it is not ok.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kernel's name or the file's.
    pub kernel: String,
    pub lanes: u32,
    pub warps: u32,
    pub divergence: &'static str,
    /// The options that choose the core.
    pub core: String,
    pub engine: Engine,
    pub seed: u64,
    /// Results that were compared with the host's and are right.
    pub checked: usize,
    /// Thread instructions that are those of the instruction-set simulator, with `--check iss`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<u64>,
    /// Wall time of the launches.
    pub seconds: f64,
    #[serde(flatten)]
    pub summary: Summary,
    /// What threads printed.
    #[serde(skip_serializing_if = "Printed::is_empty")]
    pub printed: Printed,
    /// Variables asked for with `--show`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Files that the host description asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<String>,
    /// Who says what results should be, unless the host computes them.
    #[serde(skip)]
    pub expectation: Option<String>,
}

/// A variable of the program after the run.
#[derive(Serialize)]
pub struct Variable {
    pub name: String,
    pub words: Vec<i128>,
    /// Whether text has decimal numbers.
    #[serde(skip)]
    pub decimal: bool,
}

/// Characters of a line of numbers.
const LINE: usize = 96;

impl Variable {
    /// Its numbers as a line, or as several if they are decimal.
    pub fn text(&self) -> String {
        if !self.decimal {
            return self.words.iter().map(|word| format!("{word:#x}")).collect::<Vec<_>>().join(" ");
        }
        let (mut text, mut line) = (String::new(), 0);
        for word in &self.words {
            let word = word.to_string();
            let gap = match line {
                0 => String::new(),
                _ if line + word.len() < LINE => " ".into(),
                _ => {
                    line = 0;
                    format!("\n{:21}", "")
                }
            };
            line += usize::from(line > 0) + word.len();
            text.push_str(&gap);
            text.push_str(&word);
        }
        text
    }
}

impl Report {
    pub fn new(kernel: String, shape: &Shape, engine: Engine, seed: u64, time: Duration, summary: Summary) -> Report {
        Report {
            ok: true,
            interrupted: false,
            error: None,
            kernel,
            lanes: shape.lanes,
            warps: shape.warps,
            divergence: shape.divergence.name(),
            core: shape.options(),
            engine,
            seed,
            checked: 0,
            compared: None,
            seconds: time.as_secs_f64(),
            summary,
            printed: Printed::default(),
            variables: Vec::new(),
            saved: Vec::new(),
            expectation: None,
        }
    }

    /// What there is to see of the program's variables, of a run whose results are wrong.
    pub fn results(&self) -> String {
        results(&self.variables, &self.saved)
    }

    /// A few lines for people, of a run that is [`Report::ok`] or was interrupted.
    pub fn text(&self) -> String {
        let s = &self.summary;
        let mut text = String::new();
        let verdict = match self.checked {
            _ if self.interrupted => "interrupted".to_string(),
            0 => "ended, all exit codes 0".to_string(),
            n => format!("right: {n} results are {}", self.expectation.as_deref().unwrap_or("what the host computes")),
        };
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<20} {value}");
        };
        line(&self.kernel, verdict);
        if let Some(compared) = self.compared {
            line("check", format!("{compared} thread instructions are those of the instruction-set simulator"));
        }
        line("core", format!("{} lanes × {} warps, {}", self.lanes, self.warps, self.divergence));
        let speed = if self.seconds > 0.0 { s.cycles as f64 / self.seconds } else { 0.0 };
        let launches = if s.launches == 1 { String::new() } else { format!(" in {} launches", s.launches) };
        line(
            "cycles",
            format!("{}{launches} ({:.2} s, {} cycles/s, {})", s.cycles, self.seconds, si(speed), self.engine.name()),
        );
        counted(s, self.lanes, self.divergence, &mut line);
        text + &results(&self.variables, &self.saved)
    }
}

/// Lines of what there is to see of variables, and of files that were written.
pub fn results(variables: &[Variable], saved: &[String]) -> String {
    let mut text: String =
        variables.iter().map(|variable| format!("{:<20} {}\n", variable.name, variable.text())).collect();
    if !saved.is_empty() {
        let _ = writeln!(text, "{:<20} {}", "saved", saved.join(", "));
    }
    text
}

/// Lines of what a core of so many lanes counted, with this divergence unit.
pub fn counted(s: &Summary, lanes: u32, divergence: &str, line: &mut dyn FnMut(&str, String)) {
    line("blocks", format!("{}, {} threads", s.blocks, s.threads));
    line("thread instructions", format!("{}, thread IPC {:.3} of {}", s.thread_instructions, s.thread_ipc, lanes));
    line("warp instructions", format!("{}, warp IPC {:.3}", s.warp_instructions, s.warp_ipc));
    line("SIMT efficiency", format!("{:.1} %", 100.0 * s.simt_efficiency));
    let per_cycle = |n: u64| if s.cycles == 0 { 0.0 } else { n as f64 / s.cycles as f64 };
    let of_cycles = |n: u64| 100.0 * per_cycle(n);
    line(
        "issue slots",
        format!(
            "{:.1} % issued; idle: no instruction {:.1} %, divergence {:.1} %, scoreboard {:.1} %, memory {:.1} %, barrier {:.1} %; nothing live {} cycles",
            of_cycles(s.warp_instructions),
            of_cycles(s.idle.no_instruction),
            of_cycles(s.idle.divergence),
            of_cycles(s.idle.scoreboard),
            of_cycles(s.idle.memory),
            of_cycles(s.idle.barrier),
            s.idle.nothing_live
        ),
    );
    line(
        "memory accesses",
        format!("{} of {} instructions' lanes, {:.3} a cycle", s.accesses, s.accesses - s.parts, per_cycle(s.accesses)),
    );
    line("paths", format!("at most {} in a warp, {} convergences", s.most_paths, s.convergences));
    if s.avg_path > 1.0 {
        line("AvgPath", format!("{:.3} paths that can be scheduled, an instruction", s.avg_path));
    }
    if s.most_levels > 0 {
        line("stack", format!("at most {} levels in use", s.most_levels));
    }
    if let Some(Compactions { times, warps_before, warps_after, .. }) = s.compaction.filter(|made| made.times > 0) {
        let [before, after] = [warps_before, warps_after].map(|warps| warps as f64 / times as f64);
        line("compactions", format!("{times}, of {before:.2} warps to {after:.2}"));
    }
    if let Some((p, accuracy)) = s.prediction.and_then(|p| Some((p, p.accuracy()?))) {
        let text = format!(
            "{:.1} % of {} right: bypassed {} rightly, {} wrongly, {} to wait where threads reconverge; stalled {} rightly, {} wrongly",
            100.0 * accuracy,
            p.all(),
            p.bypass_right,
            p.bypass_wrong,
            p.bypass_waits,
            p.stall_right,
            p.stall_wrong
        );
        line("warps at branches", text);
    }
    if divergence == Divergence::PATH_TABLE.name() {
        let (insertions, extractions, swaps) = (s.cct_insertions, s.cct_extractions, s.cct_swaps);
        let text = format!("{insertions} insertions, {extractions} extractions, {swaps} sort swaps");
        line("cold context table", text);
    }
    if let Some(c) = s.convergence {
        let text = format!(
            "released {} complete, {} by threshold, {} stuck, {} by patience; {} fell through; gave way {} times",
            c.complete, c.threshold, c.stuck, c.patience, c.fell_through, c.gave_way
        );
        line("convergence barriers", text);
    } else if let Some(gave_way) = s.gave_way {
        line("fairness", format!("paths gave way {gave_way} times"));
    }
    let found = |c: CacheVisits| {
        format!(
            "loads: {} hits, {} misses, {} joined a miss; stores: {} hits, {} misses",
            c.hits, c.misses, c.joined, c.silent_hits, c.silent_misses
        )
    };
    if let Some(c) = s.cache {
        line("cache", found(c));
    }
    if let Some(l) = s.second_level {
        line("second level", format!("{}; {} lines written back", found(l.found), l.write_backs));
        line("channel", format!("taken in {:.1} % of cycles", of_cycles(l.channel)));
    }
    let MemoryLimits { loads, misses, second_level } = s.memory_limits;
    if loads + misses + second_level > 0 {
        let mut text = format!("--loads in {:.1} % of cycles", of_cycles(loads));
        if s.cache.is_some() {
            text += &format!(", misses of --cache in {:.1} %", of_cycles(misses));
        }
        if s.second_level.is_some() {
            text += &format!(", misses of --second-level in {:.1} %", of_cycles(second_level));
        }
        line("memory waits for", text);
    }
}

/// A number with k or M, three digits or so.
pub fn si(number: f64) -> String {
    match number {
        n if n >= 1e6 => format!("{:.2}M", n / 1e6),
        n if n >= 1e3 => format!("{:.1}k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_sim::EngineKind;
    use heddle_testbench::machine::Convergence;
    use heddle_testbench::machine::{Prediction, SecondLevelVisits};

    fn report() -> Report {
        let summary = Summary { launches: 1, cycles: 200, warp_instructions: 150, ..Summary::default() };
        Report::new(
            "gcd".into(),
            &Shape::default(),
            EngineKind::Interpreter.into(),
            1,
            Duration::from_millis(10),
            summary,
        )
    }

    #[test]
    fn text_says_where_issue_slots_went() {
        let text = report().text();
        assert!(text.contains("75.0 % issued"), "{text}");
        assert!(text.contains("20.0k cycles/s"), "{text}");
        assert!(text.contains("8 lanes × 8 warps, path-table"), "{text}");
    }

    #[test]
    fn text_says_what_compaction_did() {
        let mut report = report();
        assert!(!report.text().contains("warps at branches"));
        report.summary.compaction = Some(Compactions { times: 4, warps_before: 10, warps_after: 7, most_entries: 3 });
        let [bypass_right, bypass_wrong, stall_right, stall_wrong] = [5, 1, 3, 1];
        report.summary.prediction =
            Some(Prediction { bypass_right, bypass_wrong, stall_right, stall_wrong, bypass_waits: 2 });
        let text = report.text();
        assert!(text.contains("4, of 2.50 warps to 1.75"), "{text}");
        assert!(text.contains("80.0 % of 10 right: bypassed 5 rightly"), "{text}");
    }

    #[test]
    fn text_says_what_convergence_barriers_did() {
        let mut report = report();
        assert!(!report.text().contains("convergence barriers"));
        report.summary.convergence = Some(Convergence { complete: 7, threshold: 5, patience: 2, ..Default::default() });
        let text = report.text();
        assert!(text.contains("released 7 complete, 5 by threshold, 0 stuck, 2 by patience; 0 fell"), "{text}");
    }

    #[test]
    fn text_says_what_the_caches_did_and_what_memory_waits_for() {
        let mut report = report();
        assert!(!report.text().contains("second level") && !report.text().contains("memory waits for"));
        let found = CacheVisits { hits: 5, misses: 4, joined: 3, silent_hits: 2, silent_misses: 1 };
        report.summary.second_level = Some(SecondLevelVisits { found, write_backs: 6, channel: 50 });
        report.summary.memory_limits = MemoryLimits { loads: 20, misses: 0, second_level: 10 };
        let text = report.text();
        let visits = "loads: 5 hits, 4 misses, 3 joined a miss; stores: 2 hits, 1 misses; 6 lines written back";
        assert!(text.contains(visits) && text.contains("taken in 25.0 % of cycles"), "{text}");
        assert!(text.contains("--loads in 10.0 % of cycles, misses of --second-level in 5.0 %"), "{text}");
        let json = serde_json::to_value(report).unwrap();
        assert_eq!((&json["second_level"]["hits"], &json["second_level"]["write_backs"]), (&5.into(), &6.into()));
    }

    #[test]
    fn an_interrupted_run_is_marked() {
        let text = Report { interrupted: true, ..report() }.text();
        assert!(text.starts_with("gcd                  interrupted\n"), "{text}");
    }

    #[test]
    fn json_has_the_documented_fields() {
        let json = serde_json::to_value(report()).unwrap();
        let fields = [
            "ok",
            "interrupted",
            "blocks",
            "threads",
            "cycles",
            "thread_instructions",
            "warp_instructions",
            "thread_ipc",
            "warp_ipc",
            "simt_efficiency",
            "idle",
            "accesses",
            "parts",
            "most_paths",
            "most_levels",
            "avg_path",
            "convergences",
            "convergence",
            "compaction",
            "prediction",
        ];
        for field in fields {
            assert!(json.get(field).is_some(), "{field}");
        }
        assert!(json["idle"].get("scoreboard").is_some());
        // What is of the run and what is of its summary stand beside each other.
        let summary = serde_json::to_value(Summary::default()).unwrap();
        for own in ["ok", "kernel", "lanes", "warps", "divergence", "core", "engine", "seed", "checked", "seconds"] {
            assert!(summary.get(own).is_none() && json.get(own).is_some(), "{own}");
        }
    }
}
