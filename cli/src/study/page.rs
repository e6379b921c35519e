//! A study's page and its charts, `studies/NAME.md`, and `studies/NAME.svg` or, where there are several,
//! `studies/NAME-CHART.svg`.

use crate::docs::tree;
use anyhow::Result;
use std::path::Path;

/// Of the page and of charts, the first of which may have no name of its own.
fn names<'a>(study: &str, charts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let chart = |name: &str| match name {
        "" => format!("studies/{study}.svg"),
        name => format!("studies/{study}-{name}.svg"),
    };
    [format!("studies/{study}.md")].into_iter().chain(charts.map(chart)).collect()
}

/// Fails if they cannot be written into the tree of pages.
pub fn check(docs: &Path, study: &str, charts: &[&str]) -> Result<()> {
    tree::check(docs, names(study, charts.iter().copied()).iter().map(String::as_str))
}

/// Writes page and charts, by their names, each whole or not at all.
pub fn write(docs: &Path, study: &str, page: &str, charts: &[(&str, String)]) -> Result<()> {
    let names = names(study, charts.iter().map(|(name, _)| *name));
    let texts = [page].into_iter().chain(charts.iter().map(|(_, chart)| chart.as_str()));
    tree::write(docs, names.iter().map(String::as_str).zip(texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_and_charts_are_written() {
        let folder = tempfile::tempdir().unwrap();
        check(folder.path(), "x", &["", "y"]).unwrap();
        write(folder.path(), "x", "# X", &[("", "<svg/>".into()), ("y", "<svg></svg>".into())]).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join("studies").join(name)).unwrap();
        assert_eq!((read("x.svg").as_str(), read("x.md").as_str()), ("<svg/>", "# X"));
        assert_eq!(read("x-y.svg"), "<svg></svg>");
    }
}
