//! The graph as a picture: a column a function, its blocks in order of address, and arrows beside them.
//!
//! Ways ahead are on the right, ways back on the left; a dashed arrow leads from a branch whose threads diverge to its
//! RPC. Arrows that overlap are in lanes of their own, the shortest next to the blocks. Ranges of instructions are bars
//! in the blocks, a colour each.

use super::Found;
use crate::drawing::{INK, document, rectangle, text};
use heddle_testbench::reconverge::{Block, FunctionBlocks, Reconvergence};
use std::collections::BTreeSet;
use svg::node::element::{Group, Path};

const MARGIN: f64 = 24.0;
/// Of a title, and below it.
const TITLE: f64 = 30.0;
const LINE: f64 = 16.0;
/// Around the text of a block.
const PADDING: f64 = 8.0;
/// Between blocks.
const GAP: f64 = 18.0;
/// Of an arrow.
const LANE: f64 = 9.0;
const CHARACTER: f64 = 7.3;
const TITLE_CHARACTER: f64 = 8.6;
const BOX: &str = "#f4f6f8";
const RPC: &str = "#1f6fb5";
const HEAD: f64 = 4.0;
/// Of a bar, and of the space for it.
const BAR: f64 = 5.0;
const BARS: f64 = 7.0;
/// Colours of bars, in turn.
pub const COLOURS: [&str; 8] = ["#d1495b", "#2e8b57", "#e08e1b", "#6a4c93", "#1f6fb5", "#8c6d31", "#17a2a2", "#7f7f7f"];

/// An arrow beside the blocks, between two heights.
struct Arrow {
    from: f64,
    to: f64,
    meets: bool,
    lane: usize,
}

/// A function, drawn.
struct Column {
    group: Group,
    width: f64,
    height: f64,
}

pub fn picture(found: &Found) -> String {
    let columns: Vec<Column> = found.analysis.functions.iter().map(|function| column(found, function)).collect();
    let width = MARGIN + columns.iter().map(|column| column.width + MARGIN).sum::<f64>();
    let height = columns.iter().map(|column| column.height).fold(0.0, f64::max) + 2.0 * MARGIN;
    let mut document = document((width, height));
    let mut x = MARGIN;
    for column in columns {
        document = document.add(column.group.set("transform", format!("translate({x:.1},{MARGIN})")));
        x += column.width + MARGIN;
    }
    format!("{document}\n")
}

fn column(found: &Found, function: &FunctionBlocks) -> Column {
    let title = found.name(function.entry);
    let lines: Vec<Vec<String>> = function.blocks.iter().map(|block| found.lines(block)).collect();
    let longest = lines.iter().flatten().map(|line| line.chars().count()).max().unwrap_or(0);
    let bars = found.ranges.len() as f64 * BARS;
    let inner = (longest as f64 * CHARACTER + 2.0 * PADDING + bars).max(title.chars().count() as f64 * TITLE_CHARACTER);
    let mut tops = Vec::new();
    let mut bottom = TITLE;
    for lines in &lines {
        tops.push(bottom);
        bottom += lines.len() as f64 * LINE + 2.0 * PADDING + GAP;
    }
    let number = |pc: u32| function.blocks.iter().position(|block| block.start == pc).expect("a block begins there");
    let foot = |block: usize| tops[block] + lines[block].len() as f64 * LINE + 2.0 * PADDING;

    let (mut ahead, mut back, mut down) = (Vec::new(), Vec::new(), Vec::new());
    for (at, block) in function.blocks.iter().enumerate() {
        let leave = foot(at) - PADDING;
        for next in block.next.iter().map(|&next| number(next)) {
            let arrow = Arrow { from: leave, to: tops[next] + PADDING, meets: false, lane: 0 };
            match next {
                _ if next == at + 1 => down.push((foot(at), tops[next])),
                _ if next > at => ahead.push(arrow),
                _ => back.push(arrow),
            }
        }
        if let Some(Reconvergence::At(rpc)) = found.parting(block).map(|branch| branch.rpc) {
            let rpc = number(rpc);
            let arrow = Arrow { from: leave - 5.0, to: tops[rpc] + PADDING + 5.0, meets: true, lane: 0 };
            if rpc > at { ahead.push(arrow) } else { back.push(arrow) }
        }
    }
    let (left, right) = (lanes(&mut back), lanes(&mut ahead));
    let x = left as f64 * LANE + LANE;
    let heading = text(x, LINE, "start", &title).set("font-weight", "bold").set("font-size", 14);
    let mut group = Group::new().set("font-family", "monospace").add(heading);
    for ((block, lines), &top) in function.blocks.iter().zip(&lines).zip(&tops) {
        group = group.add(outline(block, x, top, inner, lines));
        for (k, range) in found.ranges.iter().enumerate() {
            let bar = x + inner - BARS * (found.ranges.len() - k) as f64;
            group = group.add(marks(block, range, bar, top, lines, COLOURS[k % COLOURS.len()]));
        }
    }
    for (from, to) in down {
        group = group.add(arrow(&format!("M{:.1},{from:.1} V{:.1}", x + inner / 2.0, to - 2.0), false)).add(tip(
            x + inner / 2.0,
            to,
            0.0,
            false,
        ));
    }
    for (arrows, edge, side) in [(ahead, x + inner, 1.0), (back, x, -1.0)] {
        for Arrow { from, to, meets, lane } in arrows {
            let lane = edge + side * LANE * (lane as f64 + 1.5);
            let path = format!("M{edge:.1},{from:.1} H{lane:.1} V{to:.1} H{:.1}", edge + side * 2.0);
            group = group.add(arrow(&path, meets)).add(tip(edge, to, side, meets));
        }
    }
    Column { group, width: x + inner + (right as f64 + 1.5) * LANE, height: bottom }
}

fn outline(block: &Block, x: f64, top: f64, width: f64, lines: &[String]) -> Group {
    let height = lines.len() as f64 * LINE + 2.0 * PADDING;
    let leaves = if block.returns || block.exits { 2.0 } else { 1.0 };
    let frame = rectangle(x, top, width, height, BOX).set("stroke", INK).set("stroke-width", leaves);
    let mut group = Group::new().add(frame);
    for (k, line) in lines.iter().enumerate() {
        group = group.add(text(x + PADDING, top + PADDING + LINE * (k as f64 + 0.75), "start", line));
    }
    group
}

/// The instructions of a block that are in a range, as a part of its height.
fn marks(block: &Block, range: &BTreeSet<u32>, x: f64, top: f64, lines: &[String], colour: &str) -> Group {
    let height = lines.len() as f64 * LINE + 2.0 * PADDING;
    let one = height / f64::from((block.end - block.start) / 4);
    let mut group = Group::new();
    let mut pcs = range.range(block.start..block.end).copied().peekable();
    while let Some(first) = pcs.next() {
        let mut last = first;
        while let Some(next) = pcs.next_if_eq(&(last + 4)) {
            last = next;
        }
        let (from, to) = (f64::from((first - block.start) / 4), f64::from((last - block.start) / 4 + 1));
        group = group.add(rectangle(x, top + one * from, BAR, one * (to - from), colour));
    }
    group
}

/// Puts arrows that overlap beside each other, and says how many lanes that takes.
fn lanes(arrows: &mut [Arrow]) -> usize {
    let span = |arrow: &Arrow| (arrow.from.min(arrow.to), arrow.from.max(arrow.to));
    arrows.sort_by(|a, b| (span(a).1 - span(a).0).total_cmp(&(span(b).1 - span(b).0)));
    let mut taken: Vec<Vec<(f64, f64)>> = Vec::new();
    for arrow in arrows {
        let (top, bottom) = span(arrow);
        let free = |lane: &Vec<(f64, f64)>| lane.iter().all(|&(t, b)| bottom < t || b < top);
        arrow.lane = taken.iter().position(free).unwrap_or(taken.len());
        if arrow.lane == taken.len() {
            taken.push(Vec::new());
        }
        taken[arrow.lane].push((top, bottom));
    }
    taken.len()
}

fn arrow(path: &str, meets: bool) -> Path {
    let line = Path::new().set("d", path).set("fill", "none").set("stroke", if meets { RPC } else { INK });
    if meets { line.set("stroke-dasharray", "4 3") } else { line }
}

/// The head of an arrow that comes from the right (1), the left (-1) or above (0).
fn tip(x: f64, y: f64, side: f64, meets: bool) -> Path {
    let (dx, dy) = (side * 2.0 * HEAD, if side == 0.0 { -2.0 * HEAD } else { 0.0 });
    let (wx, wy) = if side == 0.0 { (HEAD, 0.0) } else { (0.0, HEAD) };
    let corners = [(x, y), (x + dx + wx, y + dy + wy), (x + dx - wx, y + dy - wy)];
    let points = corners.map(|(x, y)| format!("{x:.1},{y:.1}")).join(" L");
    Path::new().set("d", format!("M{points} Z")).set("fill", if meets { RPC } else { INK })
}
