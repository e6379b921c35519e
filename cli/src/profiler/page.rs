//! The page: one file with all that it needs. `maud` writes it, and escapes all text.
//!
//! Without scripts it is complete but for the zoom and the line that says what is under the pointer.

use super::charts::{self, Chart, KINDS, css};
use super::report::{Access, Branch, Cost, Instr, Line, Report, Time};
use super::sources::Sources;
use super::text::{causes, number, other_line, predicted, to, worst_access};
use crate::study::table::{gain, share};
use anyhow::Result;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::collections::{BTreeMap, BTreeSet};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Lines of the first table.
const LINES: usize = 10;

/// Lines that are compared with those of another run.
const COMPARED: usize = 40;

/// Lines of a source that are shown around those with instructions.
const AROUND: u32 = 5;

/// The page of a run, with another beside it.
pub fn page(report: &Report, against: Option<&Report>, sources: &mut Sources) -> Result<String> {
    let title = format!("{} on {} lanes × {} warps", report.kernel, report.lanes, report.warps);
    let over_time = over_time(report, against)?;
    let source = sources_of(report, sources);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                p { "Made by " code { (report.command) } }
                @if let Some(other) = against { p { "Beside " code { (other.command) } } }
                @if let Some(error) = &report.error { p.note { "It failed: " (error) } }
                @if let Some(error) = against.and_then(|other| other.error.as_ref()) {
                    p.note { "The other run failed: " (error) }
                }
                @for note in &report.notes { p.note { (note) } }
                nav {
                    @for (id, name) in SECTIONS { a href={ "#" (id) } { (name) } " " }
                    @if against.is_some() { a href="#beside" { "Beside the other run" } }
                }
                h2 id="summary" { "Summary" }
                (summary(report, against))
                h2 id="lines" { "Lines that cost most" }
                (legend())
                (hottest(report))
                h2 id="time" { "Over time" }
                (over_time)
                @if let Some(other) = against {
                    h2 id="beside" { "Beside the other run" }
                    (beside(report, other))
                }
                h2 id="source" { "Source" }
                (source)
                h2 id="branches" { "Branches" }
                (branches(report))
                h2 id="accesses" { "Accesses to memory" }
                (accesses(report))
                (data(report)?)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    Ok(page.into_string())
}

const SECTIONS: [(&str, &str); 6] = [
    ("summary", "Summary"),
    ("lines", "Lines that cost most"),
    ("time", "Over time"),
    ("source", "Source"),
    ("branches", "Branches"),
    ("accesses", "Accesses"),
];

/// A part of so many cycles.
fn of_cycles(report: &Report, cycles: f64) -> String {
    share(cycles / (report.summary.cycles as f64).max(1.0))
}

/// A row of the summary: a name, the number, and which share of all cycles it is if it is cycles.
type Figure = (&'static str, f64, bool);

fn figures(report: &Report) -> Vec<Figure> {
    let s = &report.summary;
    let idle = &s.idle;
    vec![
        ("launches", s.launches.into(), false),
        ("blocks", s.blocks as f64, false),
        ("threads", s.threads as f64, false),
        ("cycles", s.cycles as f64, false),
        ("warp instructions", s.warp_instructions as f64, true),
        ("lost: no instruction", idle.no_instruction as f64, true),
        ("lost: divergence", idle.divergence as f64, true),
        ("lost: interval", idle.interval as f64, true),
        ("lost: scoreboard", idle.scoreboard as f64, true),
        ("lost: memory", idle.memory as f64, true),
        ("lost: barrier", idle.barrier as f64, true),
        ("thread instructions", s.thread_instructions as f64, false),
        ("accesses to memory", s.accesses as f64, false),
    ]
}

fn summary(report: &Report, against: Option<&Report>) -> Markup {
    let others = against.map(figures);
    html! {
        table {
            thead {
                tr {
                    th {} th { "this run" } th { "of cycles" }
                    @if against.is_some() { th { "other run" } th { "this to other" } }
                }
            }
            tbody {
                tr {
                    td { "core" } td colspan="2" { code { (report.core) } }
                    @if let Some(other) = against { td colspan="2" { code { (other.core) } } }
                }
                @for (row, (name, figure, cycles)) in figures(report).into_iter().enumerate() {
                    tr {
                        td { (name) }
                        td.n { (number(figure)) }
                        td.n { @if cycles { (of_cycles(report, figure)) } }
                        @if let Some(others) = &others {
                            td.n { (number(others[row].1)) }
                            td.n { @if others[row].1 > 0.0 { (gain(figure / others[row].1)) } }
                        }
                    }
                }
                tr {
                    td { "SIMT efficiency" }
                    td.n { (share(report.summary.simt_efficiency)) } td {}
                    @if let Some(other) = against {
                        td.n { (share(other.summary.simt_efficiency)) }
                        td.n { (gain(report.summary.simt_efficiency / other.summary.simt_efficiency)) }
                    }
                }
            }
        }
    }
}

fn name_of(kind: &str) -> String {
    kind.replace('_', " ")
}

fn legend() -> Markup {
    html! {
        p.legend {
            @for (name, colour) in KINDS.iter().filter(|(name, _)| *name != "idle") {
                span { i style={ "background:" (css(*colour)) } {} (name_of(name)) } " "
            }
        }
    }
}

fn colour(name: &str) -> String {
    KINDS.iter().find(|(kind, _)| *kind == name).map_or("black".into(), |(_, colour)| css(*colour))
}

/// A bar of issues and lost cycles, as long as its part of `all`.
fn bar(cost: &Cost, all: f64) -> Markup {
    let width = |cycles: f64| format!("width:{:.2}%", 100.0 * cycles / all.max(1.0));
    html! {
        div.bar {
            i style={ (width(cost.executions as f64)) ";background:" (colour("issued")) } {}
            @for (cause, cycles) in cost.cycles_lost.by_cause().into_iter().filter(|(_, cycles)| *cycles > 0.0) {
                i style={ (width(cycles)) ";background:" (colour(cause.name())) } {}
            }
        }
    }
}

fn hottest(report: &Report) -> Markup {
    let most = report.lines.first().map_or(0.0, |line| line.cost.cycles);
    html! {
        table {
            thead {
                tr {
                    th { "line" } th.left { "function" } th { "cycles" } th { "of all" } th.wide-bar {}
                    th { "executions" } th { "SIMT efficiency" } th { "lost" } th.left { "lost by cause" }
                }
            }
            tbody {
                @for line in report.lines.iter().take(LINES) {
                    tr {
                        td { a href={ "#" (anchor(line)) } { (line.place.place) } }
                        td { @if let Some(function) = &line.function { (function) } }
                        td.n { (number(line.cost.cycles)) }
                        td.n { (of_cycles(report, line.cost.cycles)) }
                        td { (bar(&line.cost, most)) }
                        td.n { (line.cost.executions) }
                        td.n { (share(line.cost.simt_efficiency)) }
                        td.n { (number(line.cost.cycles_lost.all())) }
                        td.causes { (causes(&line.cost.cycles_lost)) }
                    }
                }
            }
        }
        @if let Some(branch) = report.branches.first().filter(|branch| branch.diverged > 0) {
            p {
                "The branch that diverges most is at " b { (branch.place.place) } ": "
                (branch.diverged) " of " (branch.executed) " times, "
                code { (format!("{:#x}: {}", branch.address, branch.text)) } "."
                @if let Some(meets) = &branch.reconverges { " Its threads reconverge " (to(meets)) "." }
            }
            @for said in predicted(&report.predict, branch.address) { p { code { (said) } } }
        } @else {
            p { "No branch diverges." }
        }
        @if let Some(access) = worst_access(report) { p { (access) } }
    }
}

/// Of a line or instruction in the part on sources.
fn anchor(line: &Line) -> String {
    format!("at-{:x}", line.address)
}

/// Pictures over the same time.
fn over_time(report: &Report, against: Option<&Report>) -> Result<Markup> {
    let span = |time: &Time| time.bins as u64 * time.cycles_per_bin;
    let cycles = span(&report.time).max(against.map_or(0, |other| span(&other.time)));
    let time = &report.time;
    let (issue, warps, lanes) = (charts::slots(time)?, charts::warps(time)?, charts::lanes(time, report.lanes)?);
    let other =
        against.map(|other| Ok::<_, anyhow::Error>((other, charts::slots(&other.time)?, charts::warps(&other.time)?)));
    let other = other.transpose()?;
    let width = |time: &Time| format!("width:{:.4}%", 100.0 * span(time) as f64 / cycles.max(1) as f64);
    let picture = |kind: &str, chart: &Chart, time: &Time, title: &str| {
        html! {
            img.px data-kind=(kind) data-row=(chart.row) alt=(title) src=(chart.address)
                style={ (width(time)) ";height:" (chart.height) "px" };
        }
    };
    let names = |what: &str, chart: &Chart, rows: usize| {
        let every = (14_usize).div_ceil(chart.row as usize).next_power_of_two();
        html! {
            div.names style={ "height:" (chart.height) "px" } {
                @for row in (0..rows).step_by(every) {
                    span style={ "top:" (row as u32 * chart.row) "px" } { (what) " " (row) }
                }
            }
        }
    };
    let issue_name = |chart: &Chart| html! { div.names style={ "height:" (chart.height) "px" } { span { "issue" } } };
    let marks = |about: u64, class: &str| {
        html! {
            @for tick in charts::ticks(time.first, cycles, about) {
                @let left = 100.0 * (tick - time.first) as f64 / cycles.max(1) as f64;
                span.(class) style={ "left:" (format!("{left:.4}")) "%" } { (tick) }
            }
        }
    };
    let ends = time.launches.last().map_or(0, |launch| launch[1]);
    let last = (time.first + span(time)).min(ends).saturating_sub(1);
    let head = |text: String| html! { h3 { (text) } };
    let bin = match time.cycles_per_bin {
        1 => "a column is a cycle".to_string(),
        cycles => format!("a column is {cycles} cycles"),
    };
    Ok(html! {
        p {
            "Cycles " (time.first) " to " (last) "; " (bin) ". "
            "Issue slots: what each column's cycles went to. Warps: what each warp did in them, in the same colours; "
            "ready is a warp that could have issued but for another; memory is also the divider. "
            "Lanes: in how many of its warp's issues each lane took part, "
            span.legend { i style={ "background:" (css(charts::ACTIVE)) } {} "in all" } " to "
            span.legend { i style={ "background:" (css(charts::INACTIVE)) } {} "in none" } "; white is no issue."
        }
        (legend())
        div.zoom hidden {
            "Zoom " @for zoom in [1, 2, 4, 8, 16, 32] { button type="button" data-zoom=(zoom) { (zoom) "×" } " " }
            output id="under" {}
        }
        div.time {
            div.left {
                div.axis-name { "cycle" }
                (head("Issue slots".into())) (issue_name(&issue))
                (head("Warps".into())) (names("warp", &warps, time.warps.len()))
                (head("Lanes".into())) (names("warp", &lanes, time.warps.len()))
                @if let Some((other, issue, warps)) = &other {
                    (head("Other run".into())) (issue_name(issue))
                    (head("".into())) (names("warp", warps, other.time.warps.len()))
                }
            }
            div.scroll {
                div.wide {
                    div.axis { (marks(8, "t1")) (marks(64, "t2")) }
                    h3 { "\u{a0}" } (picture("slots", &issue, time, "issue slots over time"))
                    h3 { "\u{a0}" } (picture("warps", &warps, time, "warps over time"))
                    h3 { "\u{a0}" } (picture("lanes", &lanes, time, "lanes over time"))
                    @if let Some((other, issue, warps)) = &other {
                        h3 { "\u{a0}" } (picture("other", issue, &other.time, "issue slots of the other run"))
                        h3 { "\u{a0}" } (picture("other", warps, &other.time, "warps of the other run"))
                    }
                }
            }
        }
        (tables(report))
    })
}

/// The pictures as numbers.
fn tables(report: &Report) -> Markup {
    let time = &report.time;
    let present = |name: &str| time.slots.get(name).is_some_and(|counts| counts.iter().any(|&count| count > 0));
    let kinds: Vec<&str> = KINDS.iter().map(|(name, _)| *name).filter(|name| present(name)).collect();
    let in_warps = |name: &str| time.warps_in_all.iter().any(|warp| warp.get(name).is_some_and(|&count| count > 0));
    let states: Vec<&str> = KINDS.iter().map(|(name, _)| *name).filter(|name| in_warps(name)).collect();
    let lanes = report.lanes as usize;
    html! {
        h3 { "The same as tables" }
        div.tables {
            table {
                caption { "Issue slots" }
                thead {
                    tr {
                        th { "from cycle" } th { "cycles" }
                        @for kind in &kinds { th { (name_of(kind)) } }
                        th { "SIMT efficiency" }
                    }
                }
                tbody {
                    @for row in &time.overview {
                        tr {
                            td.n { (row.first) } td.n { (row.cycles) }
                            @for kind in &kinds { td.n { (row.slots.get(*kind).copied().unwrap_or(0)) } }
                            td.n { (share(row.simt_efficiency)) }
                        }
                    }
                }
            }
            table {
                caption { "Warps: cycles by what they did" }
                thead { tr { th { "warp" } @for state in &states { th { (name_of(state)) } } } }
                tbody {
                    @for (warp, counts) in time.warps_in_all.iter().enumerate() {
                        tr {
                            td.n { (warp) }
                            @for state in &states { td.n { (counts.get(*state).copied().unwrap_or(0)) } }
                        }
                    }
                }
            }
        }
        div.tables {
            table {
                caption { "Lanes: issues in which they were active" }
                thead { tr { th { "warp" } @for lane in 0..lanes { th { (lane) } } } }
                tbody {
                    @for (warp, counts) in time.lanes.in_all.chunks(lanes).enumerate() {
                        tr { td.n { (warp) } @for count in counts { td.n { (count) } } }
                    }
                }
            }
        }
    }
}

/// Lines of two runs, those first that differ most.
fn beside(report: &Report, other: &Report) -> Markup {
    let cycles = |line: Option<&Line>| line.map_or(0.0, |line| line.cost.cycles);
    let mut rows: Vec<(&str, Option<&Line>, Option<&Line>)> =
        report.lines.iter().map(|line| (line.place.place.as_str(), Some(line), other_line(other, line))).collect();
    let is_new = |line: &&Line| other_line(report, line).is_none();
    rows.extend(other.lines.iter().filter(is_new).map(|line| (line.place.place.as_str(), None, Some(line))));
    let difference = |row: &(&str, Option<&Line>, Option<&Line>)| cycles(row.1) - cycles(row.2);
    rows.sort_by(|a, b| difference(b).abs().total_cmp(&difference(a).abs()));
    let cells = |line: Option<&Line>| {
        html! {
            @match line {
                Some(Line { cost, .. }) => {
                    td.n { (number(cost.cycles)) } td.n { (cost.executions) } td.n { (share(cost.simt_efficiency)) }
                    td.causes { (causes(&cost.cycles_lost)) }
                }
                None => { td.n { "-" } td {} td {} td {} }
            }
        }
    };
    html! {
        p { "Lines whose cycles differ most: those of this run less those of " code { (other.command) } "." }
        table {
            thead {
                tr { th { "line" } th { "difference" } th colspan="4" { "this run" } th colspan="4" { "other run" } }
                tr {
                    th {} th { "cycles" }
                    @for _ in 0..2 {
                        th { "cycles" } th { "executions" } th { "SIMT efficiency" } th.left { "lost by cause" }
                    }
                }
            }
            tbody {
                @for row in rows.iter().take(COMPARED) {
                    tr { td { (row.0) } td.n { (format!("{:+.1}", difference(row))) } (cells(row.1)) (cells(row.2)) }
                }
            }
        }
    }
}

/// Sources with their instructions; then what has no line.
fn sources_of(report: &Report, sources: &mut Sources) -> Markup {
    let mut files: BTreeMap<&str, BTreeMap<u32, &Line>> = BTreeMap::new();
    let mut without: Vec<&Line> = Vec::new();
    for line in &report.lines {
        match (&line.place.file, line.place.line) {
            (Some(file), Some(number)) => {
                files.entry(file).or_default().insert(number, line);
            }
            _ => without.push(line),
        }
    }
    without.sort_by_key(|line| line.address);
    let mut files: Vec<(&str, BTreeMap<u32, &Line>)> = files.into_iter().collect();
    let cost = |lines: &BTreeMap<u32, &Line>| lines.values().map(|line| line.cost.cycles).sum::<f64>();
    files.sort_by(|a, b| cost(&b.1).total_cmp(&cost(&a.1)));
    let most = report.lines.first().map_or(0.0, |line| line.cost.cycles);
    let listing = Listing { report, most };
    html! {
        @for (file, lines) in &files { (listing.file(file, lines, sources.lines(file))) }
        @if !without.is_empty() {
            h3 { "Without a source line" }
            table.source {
                (head("address"))
                tbody { @for line in &without { (listing.row(&line.place.place, Some(line), None)) } }
            }
        }
    }
}

fn head(what: &str) -> Markup {
    html! {
        thead {
            tr {
                th { (what) } th { "executions" } th { "SIMT efficiency" } th { "cycles" } th.some-bar {}
                th.left { "lost by cause" }
                th.left { "source" } th.left { "instructions: executions, cycles lost" }
            }
        }
    }
}

struct Listing<'a> {
    report: &'a Report,
    most: f64,
}

impl Listing<'_> {
    fn file(&self, file: &str, lines: &BTreeMap<u32, &Line>, text: Option<&[String]>) -> Markup {
        let near = |number: &u32| number.saturating_sub(AROUND)..=number + AROUND;
        let shown: BTreeSet<u32> = match text {
            Some(text) => lines
                .keys()
                .flat_map(near)
                .filter(|&k| k > 0 && k as usize <= text.len())
                .chain(lines.keys().copied())
                .collect(),
            None => lines.keys().copied().collect(),
        };
        let mut last = None;
        html! {
            h3 { (file) @if text.is_none() { " (no text)" } }
            table.source {
                (head("line"))
                tbody {
                    @for number in shown {
                        @if last.replace(number).is_some_and(|last: u32| last + 1 < number) {
                            tr.gap { td colspan="8" { "⋯" } }
                        }
                        @let source = text.and_then(|text| text.get(number as usize - 1));
                        (self.row(&number.to_string(), lines.get(&number).copied(), source.map(String::as_str)))
                    }
                }
            }
        }
    }

    fn row(&self, name: &str, line: Option<&Line>, source: Option<&str>) -> Markup {
        let Some(line) = line else {
            return html! {
                tr.quiet { td.n { (name) } td colspan="5" {} td.text { pre { (source.unwrap_or("")) } } td {} }
            };
        };
        let cost = &line.cost;
        let instructions = self.report.instructions.iter().filter(|instruction| instruction.place == line.place);
        html! {
            tr id=(anchor(line)) data-place=(line.place.place) {
                td.n { (name) }
                td.n { (cost.executions) }
                td.n { (share(cost.simt_efficiency)) }
                td.n { (number(cost.cycles)) }
                td { (bar(cost, self.most)) }
                td.causes { (causes(&cost.cycles_lost)) }
                td.text { pre { (source.unwrap_or("")) } }
                td { pre { @for instruction in instructions { (instruction_text(instruction)) "\n" } } }
            }
        }
    }
}

fn instruction_text(Instr { address, text, cost, inlined_at, .. }: &Instr) -> String {
    let lost = cost.cycles_lost.all();
    let lost = if lost > 0.0 { format!(", {} lost", number(lost)) } else { String::new() };
    let inlined = if inlined_at.is_empty() { String::new() } else { format!("  in {}", inlined_at.join(" in ")) };
    format!("{address:#06x} {text:<26} {}×{lost}{inlined}", cost.executions)
}

fn branches(report: &Report) -> Markup {
    let row = |Branch { address, text, place, executed, diverged, reconverges, likely }: &Branch| {
        html! {
            tr {
                td { (place.place) }
                td { code { (format!("{address:#06x} {text}")) } }
                td.n { (executed) }
                td.n { (diverged) }
                td.n { (share(*diverged as f64 / (*executed).max(1) as f64)) }
                td { @if let Some(meets) = reconverges { (to(meets)) } }
                td { @if let Some(meets) = likely { (to(meets)) } }
            }
        }
    };
    html! {
        table {
            thead {
                tr {
                    th { "line" } th.left { "instruction" } th { "executed" } th { "diverged" } th { "of all" }
                    th.left { "threads reconverge" } th.left { "likely" }
                }
            }
            tbody { @for branch in &report.branches { (row(branch)) } }
        }
        h3 { code { "heddle predict --auto" } " with this profile" }
        @if let Some(error) = &report.predict.error { p { (error) } }
        @else if report.predict.placements.is_empty() { p { "It places nothing." } }
        @for placement in &report.predict.placements {
            p {
                (placement.what) ": threads wait "
                @for (number, wait) in placement.waits.iter().enumerate() { @if number > 0 { ", " } (to(wait)) }
                @if placement.threshold > 0 { " until " (placement.threshold) " are there" }
            }
        }
        @for note in &report.predict.notes { p.note { (note) } }
    }
}

fn accesses(report: &Report) -> Markup {
    let has_cache = report.summary.cache.is_some();
    let row = |access: &Access| {
        html! {
            tr {
                td { (access.place.place) }
                td { code { (format!("{:#06x} {}", access.address, access.text)) } }
                td.n { (access.executed) }
                td.n { (access.coalesced) }
                td.n { (access.accesses) }
                td.n { (access.parts) }
                td.n { (access.bank_conflicts) }
                td.n { (access.replays) }
                @if has_cache {
                    @for found in [access.hits, access.misses, access.joined] { td.n { (found.unwrap_or(0)) } }
                }
            }
        }
    };
    html! {
        p {
            "Executed: for the lanes of a path. Coalesced: all of them went together. "
            "Accesses: groups of lanes that went together. Left others behind: in main memory, since those go to "
            "another line; in the scratchpad, since they want a bank that is taken. "
            "Replays: issues for lanes that were left behind."
        }
        table {
            thead {
                tr {
                    th { "line" } th.left { "instruction" } th { "executed" } th { "coalesced" } th { "accesses" }
                    th { "left others behind" } th { "bank conflicts" } th { "replays" }
                    @if has_cache { th { "hits" } th { "misses" } th { "joined a miss" } }
                }
            }
            tbody { @for access in &report.accesses { (row(access)) } }
        }
    }
}

/// What the script says under the pointer.
fn data(report: &Report) -> Result<Markup> {
    let time = &report.time;
    let data = serde_json::json!({
        "first": time.first, "width": time.cycles_per_bin, "bins": time.bins,
        "slots": time.slots, "warps": time.warps, "lanes": report.lanes,
    });
    // No `<` can end the element.
    let text = serde_json::to_string(&data)?.replace('<', "\\u003c");
    Ok(html! { script id="data" type="application/json" { (PreEscaped(text)) } })
}
