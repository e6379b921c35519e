//! The chart of speeds: a panel a shape, a group of bars a kernel, a colour an engine.
//!
//! The scale is linear from 0, with a line at Verilator. The interpreter would be an invisible bar, so it has none.

use super::row::Row;
use crate::drawing::{FAINT, INK, above_lines, document, line, rectangle, text};
use svg::node::element::Group;

const PANEL: f64 = 460.0;
const MARGIN: f64 = 20.0;
/// Of the names of kernels.
const LABELS: f64 = 90.0;
/// Right of the longest bar, for its number.
const NUMBERS: f64 = 44.0;
const BAR: f64 = 13.0;
/// Between groups of bars.
const GAP: f64 = 10.0;
/// Above the bars of a panel.
const TITLE: f64 = 30.0;
/// Below them.
const AXIS: f64 = 34.0;
/// Above all panels, with a legend of one line.
const HEAD: f64 = 76.0;
const LEGEND_LINE: f64 = 20.0;
const COLUMNS: usize = 2;

/// Of engines from the slowest of a kind to the fastest.
const COMPILED: [&str; 7] = ["#d9d9d9", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#3182bd", "#08519c"];
const VERILATOR: [&str; 4] = ["#fee6ce", "#fdd0a2", "#f08c2e", "#b35806"];

/// The chart as SVG. Rows of one shape are together, and in them those of one kernel.
pub fn chart(rows: &[Row]) -> String {
    let rows: Vec<Row> = rows.iter().filter(|row| row.engine != "interpreter").cloned().collect();
    let panels: Vec<&[Row]> = rows.chunk_by(|a, b| a.is_on_the_core_of(b)).collect();
    let engines = engines(&rows);
    let most = rows.iter().filter_map(|row| row.ratio_to_verilator).fold(1.0, f64::max);
    let height = panels.iter().map(|panel| panel_height(panel)).fold(0.0, f64::max);
    let columns = panels.len().clamp(1, COLUMNS);
    let width = MARGIN + COLUMNS as f64 * (PANEL + MARGIN);
    let (legend, lines) = legend(&engines, width);
    let head = HEAD + f64::from(lines - 1) * LEGEND_LINE;
    let size = (width, head + panels.len().div_ceil(columns) as f64 * height + MARGIN);
    let title =
        text(MARGIN, 28.0, "start", "Simulation speed, relative to the best of Verilator's builds with one thread");
    let mut document = document(size).add(title.set("font-size", 16)).add(legend);
    for (k, panel) in panels.iter().enumerate() {
        let x = MARGIN + (k % columns) as f64 * (PANEL + MARGIN);
        let y = head + (k / columns) as f64 * height;
        document = document.add(draw(panel, &engines, most).set("transform", format!("translate({x},{y})")));
    }
    format!("{document}\n")
}

/// Names and colours, in the order of the rows.
fn engines(rows: &[Row]) -> Vec<(&str, &'static str)> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.engine.as_str()) {
            names.push(&row.engine);
        }
    }
    let (verilator, compiled): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| name.starts_with("verilator"));
    // The fastest of a kind, which comes last, has the strongest colour.
    let colour = |name: &str| {
        let (kind, colours): (_, &[&'static str]) =
            if name.starts_with("verilator") { (&verilator, &VERILATOR) } else { (&compiled, &COMPILED) };
        let from_last = kind.iter().rev().position(|other| *other == name).unwrap_or(0);
        colours[colours.len() - 1 - from_last.min(colours.len() - 1)]
    };
    names.iter().map(|name| (*name, colour(name))).collect()
}

/// And its lines, none wider than so much.
fn legend(engines: &[(&str, &str)], width: f64) -> (Group, u32) {
    let mut group = Group::new();
    let (mut x, mut lines) = (MARGIN, 1);
    for (name, colour) in engines {
        let entry = 40.0 + 7.0 * name.len() as f64;
        if x + entry > width && x > MARGIN {
            (x, lines) = (MARGIN, lines + 1);
        }
        let y = 44.0 + f64::from(lines - 1) * LEGEND_LINE;
        group = group.add(rectangle(x, y, 12.0, 12.0, colour)).add(text(x + 18.0, y + 10.0, "start", name));
        x += entry;
    }
    (group, lines)
}

fn kernels(panel: &[Row]) -> impl Iterator<Item = &[Row]> {
    panel.chunk_by(|a, b| a.kernel == b.kernel)
}

fn panel_height(panel: &[Row]) -> f64 {
    TITLE + panel.len() as f64 * BAR + kernels(panel).count() as f64 * GAP + AXIS
}

/// One panel at (0, 0); `most` is the ratio at its right end.
fn draw(panel: &[Row], engines: &[(&str, &str)], most: f64) -> Group {
    let scale = (PANEL - LABELS - NUMBERS) / most;
    let mut numbers = Group::new().set("font-size", 11);
    let bottom = panel_height(panel) - AXIS;
    let title = panel[0].core();
    let mut group = Group::new().add(text(0.0, 16.0, "start", &title).set("font-weight", "bold"));
    let step = if most > 6.0 { 1.0 } else { 0.5 };
    for tick in 0..=(most / step).floor() as u32 {
        let value = f64::from(tick) * step;
        let x = LABELS + value * scale;
        group =
            group.add(line(x, TITLE - 4.0, bottom, FAINT)).add(text(x, bottom + 15.0, "middle", &value.to_string()));
    }
    let mut y = TITLE;
    for kernel in kernels(panel) {
        let middle = y + kernel.len() as f64 * BAR / 2.0 + 4.0;
        group = group.add(text(LABELS - 8.0, middle, "end", &kernel[0].kernel));
        for row in kernel {
            let ratio = row.ratio_to_verilator.unwrap_or(0.0);
            let colour = engines.iter().find(|(name, _)| *name == row.engine).map_or(INK, |(_, colour)| colour);
            group = group.add(rectangle(LABELS, y, ratio * scale, BAR - 1.0, colour));
            let number = text(LABELS + ratio * scale + 4.0, y + BAR - 3.0, "start", &format!("{ratio:.2}"));
            numbers = numbers.add(above_lines(number));
            y += BAR;
        }
        y += GAP;
    }
    group.add(line(LABELS + scale, TITLE - 4.0, bottom, INK).set("stroke-dasharray", "3 3")).add(numbers)
}

#[cfg(test)]
mod tests {
    use super::super::row::tests::examples;
    use super::*;

    #[test]
    fn a_bar_for_every_row_but_the_interpreter_and_a_colour_an_engine() {
        let rows = examples();
        let picture = chart(&rows);
        let bars = rows.iter().filter(|row| row.engine != "interpreter").count();
        // Besides: the background, and two engines in the legend.
        assert_eq!(picture.matches("<rect ").count(), bars + 1 + 2);
        assert_eq!(picture.matches("lanes × 8 warps").count(), 2);
        assert!(!picture.contains("interpreter"));
        assert_eq!(engines(&rows[1..3]), [("compiled", COMPILED[6]), ("verilator -O3 native", VERILATOR[3])]);
    }

    #[test]
    fn all_engines_have_colours_of_their_own_and_a_legend_within_the_panels() {
        let compiled = heddle_sim::compiled::OptLevel::ALL.len() - 1 + 2;
        assert_eq!(COMPILED.len(), compiled, "all levels but the tiers, and two without checks");
        let names: Vec<String> = (0..compiled).map(|k| format!("compiled-{k}-and-a-long-name")).collect();
        let engines: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(COMPILED).collect();
        let (picture, lines) = legend(&engines, 600.0);
        let of =
            |text: &str| text.split(" x=\"").skip(1).map(|x| x.split('"').next().unwrap().parse().unwrap()).collect();
        let places: Vec<f64> = of(&picture.to_string());
        assert!(lines == 4 && places.iter().all(|x| *x < 600.0), "{lines}: {places:?}");
    }
}
