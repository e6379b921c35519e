//! A picture that a kernel makes, as text for terminals and as PNG.

use std::io::Write;

/// Pixels, row by row from the top left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Pixels of a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Red, green and blue, `width * height` times.
    pub pixels: Vec<[u8; 3]>,
}

/// From deep blue at 0 over orange to white at 1.
pub fn heat(light: f32) -> [u8; 3] {
    let ramp = |from: f32, to: f32| ((light - from) / (to - from)).clamp(0.0, 1.0);
    let red = ramp(0.3, 0.7);
    let green = ramp(0.3, 1.0);
    let blue =
        if light < 0.5 { 0.2 + ramp(0.0, 0.5) * 0.5 } else { 0.7 - ramp(0.5, 0.75) * 0.5 + ramp(0.75, 1.0) * 0.8 };
    [red, green, blue].map(|part| (part * 255.0) as u8)
}

/// Characters from dark to light, for text without colour.
const RAMP: &[u8] = b" .:-=+*#%@";

impl Image {
    /// Text for a terminal, two rows of pixels a line. With colour: half blocks in 24-bit ANSI colours; without: one
    /// ASCII character for the mean of two pixels.
    pub fn text(&self, colour: bool) -> String {
        let mut text = String::new();
        for top in (0..self.height).step_by(2) {
            let bottom = (top + 1).min(self.height - 1);
            for x in 0..self.width {
                if colour {
                    let [r, g, b] = self.colour(x, top);
                    text.push_str(&format!("\x1b[38;2;{r};{g};{b}m"));
                    let [r, g, b] = self.colour(x, bottom);
                    text.push_str(&format!("\x1b[48;2;{r};{g};{b}m▀"));
                } else {
                    let light = (self.light(x, top) + self.light(x, bottom)) / 2.0;
                    let index = (light * (RAMP.len() - 1) as f32).round() as usize;
                    text.push(RAMP[index] as char);
                }
            }
            text.push_str(if colour { "\x1b[0m\n" } else { "\n" });
        }
        text
    }

    /// Writes the picture as PNG, each pixel a square of `scale` × `scale`.
    ///
    /// Fails if the writer does, or if the picture is empty or too large for the format.
    pub fn write_png(&self, writer: impl Write, scale: u32) -> Result<(), png::EncodingError> {
        let (width, height) = (self.width * scale, self.height * scale);
        let mut pixels = Vec::with_capacity((width * height * 3) as usize);
        for y in 0..height {
            for x in 0..width {
                pixels.extend(self.colour(x / scale, y / scale));
            }
        }
        let mut encoder = png::Encoder::new(writer, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&pixels)?;
        writer.finish()
    }

    fn colour(&self, x: u32, y: u32) -> [u8; 3] {
        self.pixels[(y * self.width + x) as usize]
    }

    /// From 0, black, to 1, white.
    fn light(&self, x: u32, y: u32) -> f32 {
        let [red, green, blue] = self.colour(x, y).map(f32::from);
        (0.3 * red + 0.59 * green + 0.11 * blue) / 255.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        let [white, red, black] = [[255; 3], [255, 0, 0], [0; 3]];
        Image { width: 2, height: 3, pixels: vec![white, white, red, black, black, black] }
    }

    #[test]
    fn text_has_a_line_for_two_rows() {
        let plain = image().text(false);
        let lines: Vec<&str> = plain.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|l| l.len() == 2));
        assert_eq!(lines, ["*+", "  "]);
        assert!(image().text(true).contains('▀'));
    }

    #[test]
    fn png_decodes_to_scaled_pixels() {
        let mut bytes = Vec::new();
        image().write_png(&mut bytes, 3).unwrap();
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        assert_eq!((info.width, info.height), (6, 9));
        assert_eq!(pixels[pixels.len() - 3..], [0, 0, 0]);
        assert_eq!(pixels[..3], [255, 255, 255]);
        assert_eq!(pixels[..3], pixels[3..6]);
    }
}
