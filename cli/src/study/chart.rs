//! A chart of horizontal bars: a group a kernel, in it a bar a series, and a mark across the group.

use crate::drawing::{FAINT, INK, above_lines, document, legend, legend_end, line, rectangle, text};
use svg::node::element::Group;

pub struct Chart<'a> {
    pub title: &'a str,
    /// What the bars of a group are, in order, and what the mark is.
    pub series: &'a [&'a str],
    pub mark: &'a str,
    /// The value at the right end, and from one line of the scale to the next.
    pub most: f64,
    pub step: f64,
    pub groups: Vec<Bars>,
}

pub struct Bars {
    /// Above the group, if another kind begins with it.
    pub heading: Option<String>,
    pub name: String,
    /// Of each series; no bar where there is none.
    pub values: Vec<Option<f64>>,
    pub mark: Option<f64>,
}

const MARGIN: f64 = 20.0;
/// Of the scale.
const WIDTH: f64 = 480.0;
const LABELS: f64 = 110.0;
/// Right of the longest bar, for its number.
const NUMBERS: f64 = 40.0;
const BAR: f64 = 13.0;
/// Between groups of bars.
const GAP: f64 = 9.0;
/// A letter's width in the legend.
const LETTER: f64 = 7.0;
/// A heading's height.
const HEADING: f64 = 26.0;
/// Above the bars.
const HEAD: f64 = 76.0;
/// Below them.
const AXIS: f64 = 34.0;
/// Of series: no more than so many.
const COLOURS: [&str; 6] = ["#f08c2e", "#08519c", "#3182bd", "#85b9dd", "#c6dbef", "#8c8c8c"];

impl Bars {
    /// Each with the number of its series.
    fn bars(&self) -> impl Iterator<Item = (usize, f64)> {
        self.values.iter().enumerate().filter_map(|(series, value)| Some((series, (*value)?)))
    }

    /// With what is above and below.
    fn height(&self) -> f64 {
        let heading = if self.heading.is_some() { HEADING } else { 0.0 };
        heading + self.of_bars() + GAP
    }

    /// The bars', at least one: a group that has none has its name and its mark.
    fn of_bars(&self) -> f64 {
        self.bars().count().max(1) as f64 * BAR
    }
}

impl Chart<'_> {
    pub fn svg(&self) -> String {
        assert!(self.series.len() <= COLOURS.len(), "each of the series has a colour of its own");
        let scale = WIDTH / self.most;
        let left = MARGIN + LABELS;
        let bottom = HEAD + self.groups.iter().map(Bars::height).sum::<f64>();
        let wide = (left + WIDTH + NUMBERS).max(legend_end(self.series, self.mark, MARGIN, LETTER)) + MARGIN;
        let size = (wide, bottom + AXIS);
        let title = text(MARGIN, 28.0, "start", self.title).set("font-size", 16);
        let mut picture = document(size).add(title).add(self.legend());
        for tick in 0..=(self.most / self.step) as u32 {
            let value = f64::from(tick) * self.step;
            let x = left + value * scale;
            let number = text(x, bottom + 15.0, "middle", &value.to_string());
            picture = picture.add(line(x, HEAD - 4.0, bottom, FAINT)).add(number);
        }
        let mut numbers = Group::new().set("font-size", 11);
        let mut top = HEAD;
        for group in &self.groups {
            if let Some(heading) = &group.heading {
                picture = picture.add(text(MARGIN, top + HEADING - 12.0, "start", heading).set("font-weight", "bold"));
                top += HEADING;
            }
            let height = group.of_bars();
            picture = picture.add(text(left - 8.0, top + height / 2.0 + 4.0, "end", &group.name));
            for (place, (series, value)) in group.bars().enumerate() {
                let y = top + place as f64 * BAR;
                picture = picture.add(rectangle(left, y, value * scale, BAR - 1.0, COLOURS[series]));
                let x = left + value * scale + 4.0;
                numbers = numbers.add(above_lines(text(x, y + BAR - 3.0, "start", &format!("{value:.1}"))));
            }
            if let Some(mark) = group.mark {
                let x = left + mark * scale;
                picture = picture.add(line(x, top - 3.0, top + height + 2.0, INK).set("stroke-width", 2));
            }
            top += height + GAP;
        }
        format!("{}\n", picture.add(numbers))
    }

    fn legend(&self) -> Group {
        legend(self.series.iter().copied().zip(COLOURS), self.mark, MARGIN, LETTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_for_every_value_and_a_mark_for_every_group_that_has_one() {
        let bars = |name: &str, values: [Option<f64>; 2], mark| Bars {
            heading: None,
            name: name.into(),
            values: values.into(),
            mark,
        };
        let chart = Chart {
            title: "IPC",
            series: &["theirs", "ours"],
            mark: "bound",
            most: 32.0,
            step: 8.0,
            groups: vec![
                bars("gcd", [Some(4.0), Some(6.5)], Some(7.0)),
                bars("scan", [None, Some(30.0)], None),
                bars("sort", [None, None], None),
            ],
        };
        let picture = chart.svg();
        // Three bars, the background, and two series in the legend.
        assert_eq!(picture.matches("<rect ").count(), 3 + 1 + 2);
        // A mark, one in the legend, and lines at 0, 8, 16, 24, 32.
        assert_eq!(picture.matches("<line ").count(), 2 + 5);
        for word in ["IPC", "theirs", "ours", "bound", "gcd", "scan", "sort", "6.5", "30.0"] {
            assert!(picture.contains(word), "{word}");
        }
        let least = chart.groups.iter().map(Bars::height).fold(f64::MAX, f64::min);
        assert!(least >= BAR + GAP, "names do not stand on each other");
    }
}
