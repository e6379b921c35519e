//! A chart of horizontal bars, each of which is a whole in parts: a group a kernel.

use crate::drawing::{FAINT, INK, document, legend, legend_end, line, rectangle, text};
use svg::node::element::Group;

pub struct Stacked<'a> {
    pub title: &'a str,
    /// What the parts of a bar are, in order, with their colours; and what a mark is, if there are some.
    pub parts: &'a [(&'a str, &'a str)],
    pub mark: &'a str,
    pub groups: Vec<Bars>,
}

pub struct Bars {
    pub name: String,
    pub bars: Vec<Bar>,
}

pub struct Bar {
    pub name: String,
    /// In the order of the parts; they sum up to 1.
    pub shares: Vec<f64>,
    /// A share from the left.
    pub mark: Option<f64>,
}

const MARGIN: f64 = 20.0;
/// Of a whole.
const WIDTH: f64 = 440.0;
/// Of the names of groups and of bars.
const LABELS: f64 = 120.0;
const NAMES: f64 = 110.0;
const BAR: f64 = 13.0;
/// Between groups of bars.
const GAP: f64 = 8.0;
/// Above the bars.
const HEAD: f64 = 76.0;
/// Below them.
const AXIS: f64 = 34.0;
/// A letter's width in the legend.
const LETTER: f64 = 6.5;

impl Stacked<'_> {
    pub fn svg(&self) -> String {
        let left = MARGIN + LABELS + NAMES;
        let height = |bars: &Bars| bars.bars.len() as f64 * BAR;
        let bottom = HEAD + self.groups.iter().map(|bars| height(bars) + GAP).sum::<f64>();
        let names: Vec<&str> = self.parts.iter().map(|(name, _)| *name).collect();
        let wide = (left + WIDTH + MARGIN).max(legend_end(&names, self.mark, MARGIN, LETTER));
        let size = (wide + MARGIN, bottom + AXIS);
        let title = text(MARGIN, 28.0, "start", self.title).set("font-size", 16);
        let mut picture = document(size).add(title).add(self.legend());
        for tenths in (0..=10).step_by(2) {
            let x = left + f64::from(tenths) / 10.0 * WIDTH;
            let number = text(x, bottom + 15.0, "middle", &format!("{} %", 10 * tenths));
            picture = picture.add(line(x, HEAD - 4.0, bottom, FAINT)).add(number);
        }
        let mut names = Group::new().set("font-size", 11);
        let mut top = HEAD;
        for group in &self.groups {
            picture = picture.add(text(MARGIN, top + height(group) / 2.0 + 4.0, "start", &group.name));
            for bar in &group.bars {
                names = names.add(text(left - 8.0, top + BAR - 3.0, "end", &bar.name));
                let mut x = left;
                for (&share, (_, colour)) in bar.shares.iter().zip(self.parts) {
                    picture = picture.add(rectangle(x, top, share * WIDTH, BAR - 1.0, colour));
                    x += share * WIDTH;
                }
                if let Some(mark) = bar.mark {
                    let x = left + mark * WIDTH;
                    picture = picture.add(line(x, top - 1.5, top + BAR + 0.5, INK).set("stroke-width", 2));
                }
                top += BAR;
            }
            top += GAP;
        }
        format!("{}\n", picture.add(names))
    }

    fn legend(&self) -> Group {
        legend(self.parts.iter().copied(), self.mark, MARGIN, LETTER)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rectangle_for_every_part() {
        let bar = |mark| Bar { name: "tbc".into(), shares: vec![0.25, 0.75], mark };
        let group = |name: &str, mark| Bars { name: name.into(), bars: vec![bar(mark), bar(None)] };
        let chart = Stacked {
            title: "Warps",
            parts: &[("right", "green"), ("wrong", "red")],
            mark: "paper",
            groups: vec![group("gcd", None), group("scan", Some(0.5))],
        };
        let picture = chart.svg();
        // Four bars of two parts, the background, and two parts in the legend.
        assert_eq!(picture.matches("<rect ").count(), 8 + 1 + 2);
        // A mark, one in the legend, and lines at 0, 20, 40 … 100 %.
        assert_eq!(picture.matches("<line ").count(), 2 + 6);
        for word in ["Warps", "right", "wrong", "paper", "gcd", "scan", "tbc", "100 %"] {
            assert!(picture.contains(word), "{word}");
        }
    }
}
