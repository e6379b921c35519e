//! A folder of results that is written whole or not at all.

use crate::output::parent;
use anyhow::{Context, Result, bail};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

/// A file of the folder.
pub struct Entry {
    pub name: String,
    pub text: String,
}

/// Writes `entries` into `folder`, which may be there already. They are written beside their places first and moved
/// when all are complete; the last entry comes last, so it may list the others. Other files of the folder stay.
pub fn write_folder(folder: &Path, entries: &[Entry]) -> Result<()> {
    let files: Vec<File> = entries.iter().map(|entry| (entry.name.as_str(), entry.text.as_bytes())).collect();
    write_files(folder, &files)
}

/// A name and what the file holds.
pub type File<'a> = (&'a str, &'a [u8]);

/// [`write_folder`] of any files.
pub fn write_files(folder: &Path, files: &[File]) -> Result<()> {
    let cannot = || format!("cannot write folder {}", folder.display());
    if folder.exists() && !folder.is_dir() {
        return Err(anyhow::anyhow!("it is there and not a folder")).with_context(cannot);
    }
    write(folder, files).with_context(cannot)
}

/// Fails if the folder could not be written, before any work is done for it; leaves nothing.
pub fn check_folder(folder: &Path) -> Result<()> {
    let cannot = || format!("cannot write folder {}", folder.display());
    if folder.exists() && !folder.is_dir() {
        return Err(anyhow::anyhow!("it is there and not a folder")).with_context(cannot);
    }
    let there = folder.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    stage(there, &[]).map(drop).with_context(cannot)
}

fn write(folder: &Path, files: &[File]) -> Result<()> {
    let there = folder.is_dir();
    let beside = if there { folder } else { parent(folder) };
    fs::create_dir_all(beside)?;
    let staged = stage(beside, files)?;
    if !there {
        // A trailing slash names no place to rename to.
        let Some(name) = folder.file_name() else { bail!("it has no name") };
        fs::rename(staged.path(), beside.join(name))?;
        let _ = staged.keep();
        return Ok(());
    }
    if let Some((name, _)) = files.iter().find(|(name, _)| folder.join(name).is_dir()) {
        bail!("{name} in it is a folder");
    }
    for (name, _) in files {
        fs::rename(staged.path().join(name), folder.join(name))?;
    }
    Ok(())
}

/// A temporary folder with the files, removed when it is dropped.
fn stage(beside: &Path, files: &[File]) -> io::Result<TempDir> {
    let mut builder = tempfile::Builder::new();
    let staged = builder.prefix(".heddle-").permissions(Permissions::from_mode(0o777)).tempdir_in(beside)?;
    for (name, bytes) in files {
        fs::write(staged.path().join(name), bytes)?;
    }
    Ok(staged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(names: &[&str]) -> Vec<Entry> {
        names.iter().map(|name| Entry { name: name.to_string(), text: format!("{name}\n") }).collect()
    }

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_folder_and_its_parents_appear() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("a/b/");
        write_folder(&folder, &entries(&["x.v", "list"])).unwrap();
        assert_eq!(names(&folder), ["list", "x.v"]);
        assert_eq!(names(&place.path().join("a")), ["b"]);
    }

    #[test]
    fn an_old_folder_keeps_what_is_not_ours() {
        let place = tempfile::tempdir().unwrap();
        write_folder(place.path(), &entries(&["x.v", "list"])).unwrap();
        fs::write(place.path().join("mine"), "").unwrap();
        write_folder(place.path(), &entries(&["x.v", "list"])).unwrap();
        assert_eq!(names(place.path()), ["list", "mine", "x.v"]);
    }

    #[test]
    fn failure_leaves_nothing() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("out");
        write_folder(&folder, &entries(&["x.v", "no/such/folder.v"])).unwrap_err();
        assert!(names(place.path()).is_empty());
        fs::write(&folder, "").unwrap();
        let error = write_folder(&folder, &entries(&["x.v"])).unwrap_err();
        assert!(format!("{error:#}").ends_with("it is there and not a folder"));
    }
}
