//! What nextpnr reports: the clock, and the path that limits it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The clock after place and route.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Timing {
    /// The highest at which every path is short enough.
    pub mhz: f64,
    /// The longest path from register to register: what it goes through, as the Verilog calls it.
    pub path: Vec<String>,
    /// For each of them, the nanoseconds from the clock's edge to its inputs; of the register that the path begins at,
    /// to its output. Not there in what was kept without.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_ns: Vec<f64>,
}

#[derive(Deserialize)]
struct Report {
    fmax: BTreeMap<String, Clock>,
    critical_paths: Vec<Path>,
}

#[derive(Deserialize)]
struct Clock {
    achieved: f64,
}

#[derive(Deserialize)]
struct Path {
    from: String,
    to: String,
    path: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    #[serde(rename = "type")]
    kind: String,
    delay: f64,
    from: End,
    to: End,
}

#[derive(Deserialize)]
struct End {
    cell: String,
}

impl Timing {
    /// The names of the path only.
    pub fn without_times(self) -> Timing {
        Timing { at_ns: Vec::new(), ..self }
    }

    /// Reads nextpnr's report of a design with one clock.
    pub(super) fn read(json: &[u8]) -> Result<Timing, String> {
        Timing::read_exactly(json).map(|(_, timing)| timing)
    }

    /// The same, and the clock as it stands there.
    pub(super) fn read_exactly(json: &[u8]) -> Result<(f64, Timing), String> {
        let report: Report = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let mut clocks = report.fmax.iter();
        let (Some((clock, Clock { achieved })), None) = (clocks.next(), clocks.next()) else {
            return Err(format!("it has {} clocks", report.fmax.len()));
        };
        let edge = format!("posedge {clock}");
        let found = report.critical_paths.iter().find(|path| path.from == edge && path.to == edge);
        let steps = found.map_or(&[][..], |path| &path.path);
        let (mut path, mut at_ns) = (Vec::new(), Vec::new());
        let mut time = 0.0;
        for (k, step) in steps.iter().enumerate() {
            time += step.delay;
            let cell = match step.kind.as_str() {
                _ if k == 0 => &step.from.cell,
                "routing" => &step.to.cell,
                _ => continue,
            };
            let name = source_name(cell);
            // What nextpnr adds has no name there. Of a name with several cells, the first counts.
            if !name.is_empty() && path.last() != Some(&name) {
                path.push(name);
                at_ns.push((time * 100.0).round() / 100.0);
            }
        }
        if path.is_empty() {
            return Err(format!("it has no path of {clock}"));
        }
        Ok((*achieved, Timing { mhz: (achieved * 10.0).round() / 10.0, path, at_ns }))
    }
}

/// What the Verilog calls the register, memory or wire that Yosys named a cell after. Its names have no capitals; Yosys
/// appends the cell's type after `_`, numbers after `.` and `$`.
fn source_name(cell: &str) -> String {
    let name = cell.split_once("heddle.").map_or(cell, |(_, name)| name);
    let ends = |k: usize, rest: &[u8]| match (name.as_bytes()[k], rest.first()) {
        (b'$', _) => true,
        (b'_', Some(next)) => next.is_ascii_uppercase(),
        (b'.', Some(next)) => next.is_ascii_digit(),
        _ => false,
    };
    let end = (0..name.len()).find(|&k| ends(k, &name.as_bytes()[k + 1..])).unwrap_or(name.len());
    name[..end].to_string()
}

/// The run of middle speed, of an even number the lower one, so that it has a path.
pub fn median(runs: &[Timing]) -> Option<&Timing> {
    let mut sorted: Vec<&Timing> = runs.iter().collect();
    sorted.sort_by(|a, b| a.mhz.total_cmp(&b.mhz));
    sorted.get(runs.len().saturating_sub(1) / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A report of a path through cells, and of a path from a pin.
    fn report(clocks: &str, cells: &[&str]) -> String {
        let end = |cell: &str| format!(r#"{{"cell": "{cell}", "port": "Q", "loc": [1, 2]}}"#);
        let step = |kind: &str, from: &str, to: &str| {
            format!(r#"{{"delay": 0.5, "type": "{kind}", "from": {}, "to": {}}}"#, end(from), end(to))
        };
        let mut steps = vec![step("clk-to-q", cells[0], cells[0])];
        for pair in cells.windows(2) {
            steps.push(step("routing", pair[0], pair[1]));
            steps.push(step("logic", pair[1], pair[1]));
        }
        let path =
            |from: &str, steps: String| format!(r#"{{"from": "{from}", "to": "posedge clk", "path": [{steps}]}}"#);
        let pin = path("<async>", step("routing", "rst", "b"));
        let within = path("posedge clk", steps.join(", "));
        format!(r#"{{"fmax": {{{clocks}}}, "critical_paths": [{pin}, {within}], "utilization": {{}}}}"#)
    }

    const CLOCK: &str = r#""clk": {"achieved": 46.8749, "constraint": 100.0}"#;

    #[test]
    fn a_report_gives_clock_and_path() {
        let cells = [
            "heddle.instructions.0.1",
            "heddle.core.issue.buffer.1.0_DO_2_LUT4_B$nextpnr_LUT",
            "heddle.core.issue.lane[3].replica.ready_LUT4_Z_1_B_PFUMX_Z",
            "$nextpnr_ROUTE",
            "heddle.core.issue.lane[3].replica.ready_LUT4_Z_7",
            "heddle.core.fetching_pc_TRELLIS_FF_Q_4",
        ];
        let found = Timing::read(report(CLOCK, &cells).as_bytes()).unwrap();
        let path = ["instructions", "core.issue.buffer", "core.issue.lane[3].replica.ready", "core.fetching_pc"];
        assert_eq!((found.mhz, &found.path[..]), (46.9, &path.map(String::from)[..]));
        assert_eq!(found.at_ns, [0.5, 1.0, 2.0, 5.0]);
    }

    #[test]
    fn names_of_all_families_are_the_verilogs() {
        for (cell, name) in [
            ("heddle.core.steer.n86_SB_LUT4_O_I3_SB_LUT4_I2_LC", "core.steer.n86"),
            ("heddle.core.collect.s5_pc_DFFRE_Q_1", "core.collect.s5_pc"),
            ("heddle.distributor.block", "distributor.block"),
            ("top.system.heddle.core.steer.n86_SB_LUT4_O", "core.steer.n86"),
            ("top.uart.tx_wait_TRELLIS_FF_Q_3", "top.uart.tx_wait"),
            ("$nextpnr_IBUF", ""),
        ] {
            assert_eq!(source_name(cell), name);
        }
    }

    #[test]
    fn a_report_of_something_else_is_refused() {
        let error = |text: &str| Timing::read(text.as_bytes()).unwrap_err();
        assert!(error("{").starts_with("EOF while parsing"));
        assert!(error("{}").starts_with("missing field `fmax`"));
        assert_eq!(error(r#"{"fmax": {}, "critical_paths": []}"#), "it has 0 clocks");
        assert_eq!(error(&format!(r#"{{"fmax": {{{CLOCK}}}, "critical_paths": []}}"#)), "it has no path of clk");
    }

    #[test]
    fn the_median_of_an_even_number_is_the_lower() {
        let run = |mhz| Timing { mhz, path: vec![], at_ns: vec![] };
        let median = |all: &[f64]| median(&all.iter().copied().map(run).collect::<Vec<_>>()).map(|run| run.mhz);
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[48.0]), Some(48.0));
        assert_eq!(median(&[50.0, 46.0, 48.0]), Some(48.0));
        assert_eq!(median(&[50.0, 46.0, 48.0, 47.0]), Some(47.0));
    }
}
