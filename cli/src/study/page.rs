//! A study's page and its charts, `study-NAME.md`, and `study-NAME.svg` or, where there are several, `study-NAME-CHART.svg`.

use crate::output::ResultFile;
use anyhow::Result;
use std::io::Write as _;
use std::path::Path;

/// Of the page and of charts, the first of which may have no name of its own.
fn names<'a>(study: &str, charts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let chart = |name: &str| match name {
        "" => format!("study-{study}.svg"),
        name => format!("study-{study}-{name}.svg"),
    };
    [format!("study-{study}.md")].into_iter().chain(charts.map(chart)).collect()
}

/// Fails if the folder cannot be written.
pub fn check(folder: &Path, study: &str, charts: &[&str]) -> Result<()> {
    for name in names(study, charts.iter().copied()) {
        ResultFile::create(&folder.join(name))?;
    }
    Ok(())
}

/// Writes page and charts, by their names, each whole or not at all.
pub fn write(folder: &Path, study: &str, page: &str, charts: &[(&str, String)]) -> Result<()> {
    let mut files = Vec::new();
    let names = names(study, charts.iter().map(|(name, _)| *name));
    let texts = [page].into_iter().chain(charts.iter().map(|(_, chart)| chart.as_str()));
    for (name, text) in names.iter().zip(texts) {
        let mut file = ResultFile::create(&folder.join(name))?;
        file.writer().write_all(text.as_bytes())?;
        files.push(file);
    }
    files.into_iter().try_for_each(ResultFile::finish)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_and_charts_are_written() {
        let folder = tempfile::tempdir().unwrap();
        check(folder.path(), "x", &["", "y"]).unwrap();
        write(folder.path(), "x", "# X", &[("", "<svg/>".into()), ("y", "<svg></svg>".into())]).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((read("study-x.svg").as_str(), read("study-x.md").as_str()), ("<svg/>", "# X"));
        assert_eq!((read("study-x-y.svg").as_str(), folder.path().read_dir().unwrap().count()), ("<svg></svg>", 3));
    }
}
