//! A study's page and its chart, `study-NAME.md` and `study-NAME.svg`.

use crate::output::ResultFile;
use anyhow::Result;
use std::io::Write as _;
use std::path::Path;

fn names(study: &str) -> [String; 2] {
    ["md", "svg"].map(|kind| format!("study-{study}.{kind}"))
}

/// Fails if the folder cannot be written.
pub fn check(folder: &Path, study: &str) -> Result<()> {
    for name in names(study) {
        ResultFile::create(&folder.join(name))?;
    }
    Ok(())
}

/// Writes chart and page, each whole or not at all.
pub fn write(folder: &Path, study: &str, chart: &str, page: &str) -> Result<()> {
    let mut files = Vec::new();
    for (name, text) in names(study).iter().zip([page, chart]) {
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
    fn page_and_chart_are_written() {
        let folder = tempfile::tempdir().unwrap();
        check(folder.path(), "x").unwrap();
        write(folder.path(), "x", "<svg/>", "# X").unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        assert_eq!((read("study-x.svg").as_str(), read("study-x.md").as_str()), ("<svg/>", "# X"));
        assert_eq!(folder.path().read_dir().unwrap().count(), 2);
    }
}
