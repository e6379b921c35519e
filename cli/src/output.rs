//! Standard output and result files.

use anyhow::{Context, Result};
use serde::Serialize;
use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Writes text to standard output; unlike `print!` it does not panic when nobody reads it any more.
pub fn print(text: &str) -> Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("cannot write standard output")
}

/// Writes text to standard error; unlike `eprint!` it does not panic when nobody reads it any more.
pub fn tell(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Writes a value as JSON, and the end of the line.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print(&format!("{}\n", serde_json::to_string_pretty(value)?))
}

/// A file that appears under its name when it is complete, and otherwise not at all.
pub struct ResultFile {
    path: PathBuf,
    file: NamedTempFile,
}

impl ResultFile {
    /// Fails if the folder cannot be written, before any work is done for the file.
    pub fn create(path: &Path) -> Result<ResultFile> {
        let cannot = || format!("cannot write {}", path.display());
        if path.exists() && !path.is_file() {
            return Err(anyhow::anyhow!("it is there and not a file")).with_context(cannot);
        }
        let folder = parent(path);
        let mut builder = tempfile::Builder::new();
        builder.prefix(".heddle-").permissions(Permissions::from_mode(0o666));
        let file = builder.tempfile_in(folder).map_err(|error| cause(&error)).with_context(cannot)?;
        Ok(ResultFile { path: path.to_path_buf(), file })
    }

    pub fn writer(&mut self) -> &mut impl Write {
        self.file.as_file_mut()
    }

    pub fn finish(self) -> Result<()> {
        let path = self.path;
        self.file.persist(&path).map_err(|e| e.error).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(())
    }
}

/// The folder that a path is in.
pub fn parent(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// What the system says, without the name of the temporary file.
fn cause(error: &io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::NotFound => anyhow::anyhow!("there is no such folder"),
        io::ErrorKind::PermissionDenied => anyhow::anyhow!("permission denied"),
        io::ErrorKind::NotADirectory => anyhow::anyhow!("its folder is a file"),
        _ => anyhow::anyhow!("{error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_file_appears_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("picture.png");
        let mut dropped = ResultFile::create(&path).unwrap();
        dropped.writer().write_all(b"half").unwrap();
        drop(dropped);
        assert_eq!(folder.path().read_dir().unwrap().count(), 0);

        let mut file = ResultFile::create(&path).unwrap();
        file.writer().write_all(b"whole").unwrap();
        file.finish().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"whole");
        assert_eq!(folder.path().read_dir().unwrap().count(), 1);

        let missing = folder.path().join("none/picture.png");
        let error = format!("{:#}", ResultFile::create(&missing).err().unwrap());
        assert_eq!(error, format!("cannot write {}: there is no such folder", missing.display()));
        assert!(ResultFile::create(folder.path()).is_err());
    }
}
