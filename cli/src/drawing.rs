//! What charts are drawn with.

use svg::Document;
use svg::node::element::{Line, Rectangle, Text};

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

/// White around letters that may lie on a line.
pub fn above_lines(text: Text) -> Text {
    text.set("stroke", "white").set("stroke-width", 3).set("paint-order", "stroke")
}
