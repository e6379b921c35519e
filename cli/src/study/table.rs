//! Tables of a study: lines of cells, the first of which are headings.

/// A table of Markdown.
pub fn markdown(lines: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        text += &format!("| {} |\n", line.join(" | "));
        if number == 0 {
            text += &format!("|{}\n", "---|".repeat(line.len()));
        }
    }
    text
}

/// Columns side by side: the first `names` to the left, the others to the right.
pub fn plain(lines: &[Vec<String>], names: usize) -> String {
    let columns = lines.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, &width))| {
            if column < names { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        text += cells.collect::<Vec<_>>().join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// A ratio as a percentage above or below: `+14.9 %`.
pub fn gain(ratio: f64) -> String {
    if !ratio.is_finite() { "-".into() } else { format!("{:+.1} %", 100.0 * (ratio - 1.0)) }
}

/// A part of a whole: `37.5 %`.
pub fn share(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines() -> Vec<Vec<String>> {
        [["name", "IPC"], ["a", "10.5"]].map(|line| line.map(String::from).to_vec()).to_vec()
    }

    #[test]
    fn the_first_line_is_the_heading() {
        assert_eq!(markdown(&lines()), "| name | IPC |\n|---|---|\n| a | 10.5 |\n");
    }

    #[test]
    fn columns_stand_below_each_other() {
        assert_eq!(plain(&lines(), 1), "name   IPC\na     10.5\n");
    }

    #[test]
    fn ratios_have_a_sign() {
        assert_eq!((gain(1.149).as_str(), gain(0.5).as_str(), gain(f64::NAN).as_str()), ("+14.9 %", "-50.0 %", "-"));
        assert_eq!(share(0.375), "37.5 %");
    }
}
