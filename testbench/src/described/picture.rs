//! A buffer as a picture: an element a pixel, row by row from the top left.

use serde::Deserialize;

use crate::image::{Image, heat};

/// What colour an element has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Colours {
    /// From black to white.
    #[default]
    Grey,
    /// From deep blue over orange to white.
    Heat,
    /// 0x00RRGGBB.
    Rgb,
}

/// What is drawn of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawing {
    pub width: u32,
    pub height: u32,
    pub colours: Colours,
    /// The darkest number, else the least; the lightest, else the greatest.
    pub from: Option<i128>,
    pub to: Option<i128>,
}

impl Drawing {
    pub fn pixels(&self) -> usize {
        self.width as usize * self.height as usize
    }

    /// Of at least as many numbers as there are pixels.
    pub fn image(&self, numbers: &[i128]) -> Image {
        let numbers = &numbers[..self.pixels()];
        let from = self.from.or(numbers.iter().min().copied()).unwrap_or(0);
        let to = self.to.or(numbers.iter().max().copied()).unwrap_or(0);
        let light = |number: i128| match to - from {
            0 => 0.0,
            range => ((number - from) as f32 / range as f32).clamp(0.0, 1.0),
        };
        let pixel = |&number: &i128| match self.colours {
            Colours::Grey => [(light(number) * 255.0) as u8; 3],
            Colours::Heat => heat(light(number)),
            Colours::Rgb => [16, 8, 0].map(|shift| (number >> shift) as u8),
        };
        Image { width: self.width, height: self.height, pixels: numbers.iter().map(pixel).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_light_between_the_least_and_the_greatest_or_what_is_said() {
        let grey = Drawing { width: 2, height: 2, colours: Colours::Grey, from: None, to: None };
        let light = |drawing: Drawing| {
            drawing.image(&[-10, 0, 10, 10, 99]).pixels.iter().map(|pixel| pixel[0]).collect::<Vec<_>>()
        };
        assert_eq!(light(grey), [0, 127, 255, 255]);
        assert_eq!(light(Drawing { from: Some(0), to: Some(20), ..grey }), [0, 0, 127, 127]);
        assert_eq!(light(Drawing { from: Some(10), to: Some(-10), ..grey }), [255, 127, 0, 0]);
        let same = Drawing { width: 1, ..grey }.image(&[7, 7]);
        assert_eq!((same.width, same.height, same.pixels), (1, 2, vec![[0; 3]; 2]));
    }

    #[test]
    fn words_are_colours() {
        let rgb = Drawing { width: 1, height: 1, colours: Colours::Rgb, from: None, to: None };
        assert_eq!(rgb.image(&[0x0012_34ff]).pixels, [[0x12, 0x34, 0xff]]);
        assert_eq!(Drawing { colours: Colours::Heat, ..rgb }.image(&[5]).pixels, [heat(0.0)]);
    }
}
