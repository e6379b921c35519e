//! What charts are drawn with.

use svg::Document;
use svg::node::element::{Group, Line, Rectangle, Text};

pub const INK: &str = "#222222";
pub const FAINT: &str = "#dddddd";

/// An empty white picture of a width and a height.
pub fn document((width, height): (f64, f64)) -> Document {
    Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(rectangle(0.0, 0.0, width, height, "white"))
}

/// Tenths are enough.
fn tenths(length: f64) -> f64 {
    (10.0 * length).round() / 10.0
}

pub fn rectangle(x: f64, y: f64, width: f64, height: f64, colour: &str) -> Rectangle {
    let rectangle = Rectangle::new().set("x", tenths(x)).set("y", tenths(y)).set("fill", colour);
    rectangle.set("width", tenths(width)).set("height", tenths(height))
}

pub fn line(x: f64, top: f64, bottom: f64, colour: &str) -> Line {
    let line = Line::new().set("x1", tenths(x)).set("x2", tenths(x)).set("stroke", colour);
    line.set("y1", tenths(top)).set("y2", tenths(bottom))
}

pub fn text(x: f64, y: f64, anchor: &str, content: &str) -> Text {
    Text::new(content).set("x", tenths(x)).set("y", tenths(y)).set("text-anchor", anchor).set("fill", INK)
}

/// Names with their colours, `letter` wide for each letter, and what the mark is, in a line below the title.
pub fn legend<'a>(names: impl Iterator<Item = (&'a str, &'a str)>, mark: &str, left: f64, letter: f64) -> Group {
    let mut group = Group::new();
    let mut x = left;
    for (name, colour) in names {
        group = group.add(rectangle(x, 44.0, 12.0, 12.0, colour)).add(text(x + 18.0, 54.0, "start", name));
        x += 40.0 + letter * name.len() as f64;
    }
    if mark.is_empty() {
        return group;
    }
    let of_mark = line(x + 6.0, 43.0, 57.0, INK).set("stroke-width", 2);
    group.add(of_mark).add(text(x + 18.0, 54.0, "start", mark))
}

/// Where a [`legend`] ends.
pub fn legend_end(names: &[&str], mark: &str, left: f64, letter: f64) -> f64 {
    let of_names: f64 = names.iter().map(|name| 40.0 + letter * name.len() as f64).sum();
    let of_mark = if mark.is_empty() { 0.0 } else { 18.0 + letter * mark.len() as f64 };
    left + of_names + of_mark
}

/// White around letters that may lie on a line.
pub fn above_lines(text: Text) -> Text {
    text.set("stroke", "white").set("stroke-width", 3).set("paint-order", "stroke")
}
