//! Files in the tree of pages, by their path from its root: `studies/area.md`. A command that writes some checks first
//! that it can.

use crate::output::ResultFile;
use anyhow::{Context, Result};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Fails if one of the files could not be written, before any work is done for it; leaves nothing. The root must be
/// there, its folders need not.
pub fn check<'a>(root: &Path, names: impl IntoIterator<Item = &'a str>) -> Result<()> {
    names.into_iter().try_for_each(|name| {
        let path = root.join(name);
        let is_to_be_made = root.is_dir() && !folder(&path).exists();
        let place = path.file_name().filter(|_| is_to_be_made).map_or(path.clone(), |name| root.join(name));
        ResultFile::create(&place).map(drop)
    })
}

/// Writes the files, each whole or not at all.
pub fn write<'a>(root: &Path, files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<()> {
    let write = |(name, text): (&str, &str)| {
        let path = root.join(name);
        let folder = folder(&path);
        if root.is_dir() {
            fs::create_dir_all(&folder).with_context(|| format!("cannot make folder {}", folder.display()))?;
        }
        let mut file = ResultFile::create(&path)?;
        file.writer().write_all(text.as_bytes())?;
        Ok(file)
    };
    let files = files.into_iter().map(write).collect::<Result<Vec<_>>>()?;
    files.into_iter().try_for_each(ResultFile::finish)
}

fn folder(path: &Path) -> PathBuf {
    path.parent().unwrap_or(Path::new("")).to_path_buf()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_written_into_folders_of_the_tree() {
        let root = tempfile::tempdir().unwrap();
        check(root.path(), ["studies/x.md", "studies/x.svg"]).unwrap();
        assert_eq!(root.path().read_dir().unwrap().count(), 0);
        for text in ["<svg/>", "<svg></svg>"] {
            write(root.path(), [("studies/x.md", "# X"), ("studies/x.svg", text)]).unwrap();
            let read = |name: &str| fs::read_to_string(root.path().join(name)).unwrap();
            assert_eq!((read("studies/x.md").as_str(), read("studies/x.svg").as_str()), ("# X", text));
            assert_eq!(root.path().join("studies").read_dir().unwrap().count(), 2);
        }
    }

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let root = tempfile::tempdir().unwrap();
        let error = |root: &Path| {
            let error = format!("{:#}", check(root, ["studies/x.md"]).unwrap_err());
            assert_eq!(format!("{:#}", write(root, [("studies/x.md", "")]).unwrap_err()), error);
            error
        };
        let none = root.path().join("none");
        assert_eq!(error(&none), format!("cannot write {}/studies/x.md: there is no such folder", none.display()));
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        assert_eq!(error(&file), format!("cannot write {}/studies/x.md: its folder is a file", file.display()));
        fs::create_dir_all(root.path().join("studies/x.md")).unwrap();
        assert!(error(root.path()).ends_with("it is there and not a file"));
    }
}
