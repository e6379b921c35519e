//! The lines that cost most, the branch that diverges most and the access that coalesces worst, for people.

use super::report::{Access, Advice, Branch, CyclesLost, Line, Meets, Report};
use crate::study::table::{gain, plain};
use std::fmt::Write as _;

/// Lines that are printed.
const LINES: usize = 10;

/// What is printed unless JSON is wanted.
pub fn text(report: &Report, against: Option<&Report>) -> String {
    let mut text = head(report);
    if let Some(other) = against {
        let ratio = report.summary.cycles as f64 / other.summary.cycles as f64;
        let (cycles, command) = (other.summary.cycles, &other.command);
        let _ = writeln!(text, "{:<20} {cycles} cycles of `{command}`, {}", "against", gain(ratio));
        if let Some(error) = &other.error {
            let _ = writeln!(text, "{:<20} which failed: {error}", "");
        }
    }
    let mut table: Vec<Vec<String>> =
        vec![["line", "cycles", "of all", "executions", "SIMT efficiency", "lost"].map(String::from).into()];
    if against.is_some() {
        table[0].push("against".into());
    }
    table[0].push("  lost by cause".into());
    for line in report.lines.iter().take(LINES) {
        let cost = &line.cost;
        let mut row = vec![
            line.place.place.clone(),
            number(cost.cycles),
            format!("{:.1} %", 100.0 * cost.cycles / (report.summary.cycles as f64).max(1.0)),
            cost.executions.to_string(),
            format!("{:.1} %", 100.0 * cost.simt_efficiency),
            number(cost.cycles_lost.all()),
        ];
        if let Some(other) = against {
            row.push(other_line(other, line).map_or("-".into(), |other| number(other.cost.cycles)));
        }
        row.push(format!("  {}", causes(&cost.cycles_lost)));
        table.push(row);
    }
    // Causes are to the left of their column.
    let last = table[0].len() - 1;
    let width = table.iter().map(|row| row[last].chars().count()).max().unwrap_or(0);
    table.iter_mut().for_each(|row| row[last] = format!("{:<width$}", row[last]));
    text.push('\n');
    text += &plain(&table, 1);
    text.push('\n');
    text += &branch(report);
    if let Some(access) = worst_access(report) {
        let _ = writeln!(text, "{access}");
    }
    for note in &report.notes {
        let _ = writeln!(text, "note: {note}");
    }
    text
}

fn head(report: &Report) -> String {
    let s = &report.summary;
    let mut text = String::new();
    let _ =
        writeln!(text, "{:<20} {} lanes × {} warps, {}", report.kernel, report.lanes, report.warps, report.divergence);
    let issued = 100.0 * s.warp_instructions as f64 / (s.cycles as f64).max(1.0);
    let _ = writeln!(text, "{:<20} {}, in {issued:.1} % of them an instruction issues", "cycles", s.cycles);
    let _ = writeln!(text, "{:<20} {:.1} %", "SIMT efficiency", 100.0 * s.simt_efficiency);
    text
}

/// The same line in another run.
pub fn other_line<'a>(other: &'a Report, line: &Line) -> Option<&'a Line> {
    other.lines.iter().find(|other| other.place.place == line.place.place)
}

/// Cycles, in shares of them where those matter.
pub fn number(cycles: f64) -> String {
    if cycles.fract() == 0.0 { format!("{cycles:.0}") } else { format!("{cycles:.1}") }
}

/// The causes that there are, the greatest first.
pub fn causes(lost: &CyclesLost) -> String {
    let mut causes: Vec<_> = lost.by_cause().into_iter().filter(|(_, cycles)| *cycles > 0.0).collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    let text = |(cause, cycles): &(heddle_testbench::machine::Cause, f64)| {
        format!("{} {}", cause.name().replace('_', " "), number(*cycles))
    };
    causes.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// The branch that diverges most.
fn branch(report: &Report) -> String {
    let Some(branch) = report.branches.first().filter(|branch| branch.diverged > 0) else {
        return "no branch diverges\n".into();
    };
    let Branch { address, text, place, executed, diverged, .. } = branch;
    let mut said = String::new();
    let _ = writeln!(said, "{} diverges most: {diverged} of {executed} times ({address:#x}: {text})", place.place);
    if let Some(meets) = &branch.reconverges {
        let likely = branch.likely.as_ref().map_or(String::new(), |likely| format!(", likely at {}", at(likely)));
        let _ = writeln!(said, "  its threads reconverge {}{likely}", to(meets));
    }
    for line in predicted(&report.predict, *address) {
        let _ = writeln!(said, "  {line}");
    }
    said
}

/// The access whose lanes go to memory in the most parts, if there is one whose lanes do not always go together.
pub fn worst_access(report: &Report) -> Option<String> {
    let parts = |access: &&Access| access.parts + access.bank_conflicts;
    let worst = report.accesses.iter().filter(|access| parts(access) > 0).max_by_key(parts)?;
    let Access { address, text, place, executed, accesses, .. } = worst;
    let why = if worst.bank_conflicts > worst.parts { "has most bank conflicts" } else { "coalesces worst" };
    Some(format!("{} {why}: {accesses} accesses for {executed} ({address:#x}: {text})", place.place))
}

fn at(meets: &Meets) -> String {
    match meets.address {
        Some(address) => format!("{} ({address:#x})", meets.place),
        None => meets.place.clone(),
    }
}

/// `at …` or `behind …`.
pub fn to(meets: &Meets) -> String {
    if meets.address.is_some() { format!("at {}", at(meets)) } else { at(meets) }
}

/// What `heddle predict --auto` would do at a branch.
pub fn predicted(advice: &Advice, address: u32) -> Vec<String> {
    if let Some(error) = &advice.error {
        return vec![format!("heddle predict --auto: {error}")];
    }
    let here = advice.placements.iter().filter(|placement| placement.live.contains(&address));
    let said: Vec<String> = here
        .map(|placement| {
            let waits = placement.waits.iter().map(at).collect::<Vec<_>>().join(", ");
            let threshold = match placement.threshold {
                0 => String::new(),
                threshold => format!(" until {threshold} are there"),
            };
            format!("heddle predict --auto: {}: threads wait at {waits}{threshold}", placement.what)
        })
        .collect();
    if said.is_empty() { vec!["heddle predict --auto: places nothing here".into()] } else { said }
}
