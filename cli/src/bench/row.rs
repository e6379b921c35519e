//! The speed of an engine, as text and as JSON.

use super::runner::Runner;
use crate::report::si;
use heddle_simt::Shape;
use serde::Serialize;
use std::fmt::Write;

#[derive(Serialize, Clone, Default)]
pub struct Row {
    pub lanes: u32,
    pub warps: u32,
    /// Cycles after which memory answers.
    pub memory_latency: u32,
    pub kernel: String,
    pub engine: String,
    pub cycles_per_second: f64,
    /// To the best of Verilator's models of one thread on this core and kernel. Nothing if there is no Verilator.
    pub ratio_to_verilator: Option<f64>,
    /// Of the whole program; nothing if the engine is too slow to run it to its end.
    pub cycles: Option<u64>,
    /// To flatten and compile, or to build the model; nothing if there is nothing to compile or the model is from the
    /// cache.
    pub compile_seconds: Option<f64>,
    /// Of the compiled engine's flat netlist for clock edges.
    pub nodes: Option<usize>,
    /// Of the function made from it; nothing if a C compiler made it.
    pub code_bytes: Option<usize>,
    /// The buffer of registers, memories and what the host sees.
    pub state_bytes: Option<usize>,
}

impl Row {
    pub fn is_verilator(&self) -> bool {
        self.engine.starts_with("verilator")
    }

    pub fn is_on_the_core_of(&self, other: &Row) -> bool {
        self.core() == other.core()
    }

    /// As `8 lanes × 8 warps`, with its memory if that is late.
    pub fn core(&self) -> String {
        let late = match self.memory_latency {
            1 => String::new(),
            cycles => format!(", memory after {cycles} cycles"),
        };
        format!("{} lanes × {} warps{late}", self.lanes, self.warps)
    }

    /// As `1.43x`.
    pub fn ratio(&self) -> String {
        self.ratio_to_verilator.map_or("-".into(), |ratio| format!("{ratio:.*}x", if ratio < 0.1 { 4 } else { 2 }))
    }

    /// As `0.21 s`.
    pub fn compile(&self) -> String {
        self.compile_seconds.map_or("-".into(), |s| format!("{s:.*} s", if s < 10.0 { 2 } else { 0 }))
    }
}

/// The rows of a kernel on a shape.
pub fn rows(shape: &Shape, kernel: &str, runners: &[Runner], speeds: &[f64], cycles: Option<u64>) -> Vec<Row> {
    let row = |(runner, &speed): (&Runner, &f64)| Row {
        lanes: shape.lanes,
        warps: shape.warps,
        memory_latency: shape.simulated_timing().map_or(1, |timing| timing.latency),
        kernel: kernel.into(),
        engine: runner.name.clone(),
        cycles_per_second: speed,
        ratio_to_verilator: None,
        cycles: cycles.filter(|_| runner.finishes),
        compile_seconds: runner.ready.map(|time| time.as_secs_f64()),
        nodes: runner.compiled.map(|c| c.nodes),
        code_bytes: runner.compiled.map(|c| c.code_bytes).filter(|bytes| *bytes > 0),
        state_bytes: runner.compiled.map(|c| c.state_bytes),
    };
    let mut rows: Vec<Row> = runners.iter().zip(speeds).map(row).collect();
    let single = rows.iter().zip(runners).filter(|(row, runner)| row.is_verilator() && runner.threads == 1);
    let verilator = single.map(|(row, _)| row.cycles_per_second).reduce(f64::max);
    rows.iter_mut().for_each(|row| row.ratio_to_verilator = verilator.map(|speed| row.cycles_per_second / speed));
    rows
}

/// Numbers with a unit, or a dash.
pub fn count(number: Option<usize>) -> String {
    number.map_or("-".into(), |n| si(n as f64))
}

pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut line = |cells: [&str; 11]| {
        let [kernel, lanes, warps, latency, engine, speed, ratio, compile, nodes, code, state] = cells;
        let _ = writeln!(
            text,
            "{kernel:<12}{lanes:>6}{warps:>6}{latency:>9}  {engine:<32}{speed:>9}{ratio:>14}{compile:>11}{nodes:>8}{code:>8}{state:>8}"
        );
    };
    line([
        "kernel",
        "lanes",
        "warps",
        "latency",
        "engine",
        "cycles/s",
        "to Verilator",
        "compile",
        "nodes",
        "code B",
        "state B",
    ]);
    for row in rows {
        line([
            &row.kernel,
            &row.lanes.to_string(),
            &row.warps.to_string(),
            &row.memory_latency.to_string(),
            &row.engine,
            &si(row.cycles_per_second),
            &row.ratio(),
            &row.compile(),
            &count(row.nodes),
            &count(row.code_bytes),
            &count(row.state_bytes),
        ]);
    }
    text
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Two engines and Verilator with two kernels on two shapes.
    pub fn examples() -> Vec<Row> {
        let mut rows = Vec::new();
        for (lanes, kernel, best) in [(8, "gcd", 2.5), (8, "sort", 1.5), (32, "gcd", 4.0), (32, "sort", 0.5)] {
            for (engine, ratio) in [("interpreter", 0.002), ("compiled", best), ("verilator -O3 native", 1.0)] {
                let compiled = engine == "compiled";
                rows.push(Row {
                    lanes,
                    warps: 8,
                    memory_latency: 1,
                    kernel: kernel.into(),
                    engine: engine.into(),
                    cycles_per_second: 1e6 * ratio,
                    ratio_to_verilator: Some(ratio),
                    cycles: Some(1000),
                    compile_seconds: compiled.then_some(0.213),
                    nodes: compiled.then_some(12_345),
                    code_bytes: compiled.then_some(99_000),
                    state_bytes: compiled.then_some(600_000),
                });
            }
        }
        rows
    }

    #[test]
    fn a_table_has_a_line_a_row_and_dashes_for_what_is_not_known() {
        let text = table(&examples()[..2]);
        let words: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[1], ["gcd", "8", "8", "1", "interpreter", "2.0k", "0.0020x", "-", "-", "-", "-"]);
        assert_eq!(
            words[2],
            ["gcd", "8", "8", "1", "compiled", "2.50M", "2.50x", "0.21", "s", "12.3k", "99.0k", "600.0k"]
        );
        assert!(text.lines().all(|line| line.chars().count() == text.lines().next().unwrap().len()), "{text}");
    }

    #[test]
    fn json_has_the_documented_fields() {
        let json = serde_json::to_value(&examples()[1]).unwrap();
        let fields = [
            "lanes",
            "warps",
            "memory_latency",
            "kernel",
            "engine",
            "cycles_per_second",
            "ratio_to_verilator",
            "cycles",
            "compile_seconds",
            "nodes",
            "code_bytes",
            "state_bytes",
        ];
        assert_eq!(json.as_object().unwrap().len(), fields.len());
        fields.iter().for_each(|field| assert!(json.get(field).is_some(), "{field}"));
    }
}
