//! Yosys and nextpnr from PyPI, each in a virtual environment of its own in the cache folder, installed when it is
//! first needed.

use super::run::{Error, Session, at};
use crate::process::MOMENT;
use heddle_sim::verilator::cache;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;

/// A package of PyPI, of one version.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Package {
    /// PyPI's name.
    pub name: &'static str,
    /// Exactly this one.
    pub version: &'static str,
}

/// Yosys as a Python module: machine code, which is several times as fast as the one in WebAssembly.
pub const YOSYS: Package = Package { name: "pyosys", version: "0.70" };

/// The last file of an installation: without it there is a part of one.
const COMPLETE: &str = "complete";

impl Package {
    /// Name and version, for results.
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// The virtual environment.
    pub fn folder(&self) -> PathBuf {
        let folder = cache().join("synth").join(format!("{}-{}", self.name, self.version));
        // The tools run in folders of their own.
        std::path::absolute(&folder).unwrap_or(folder)
    }

    /// A program of the package, which is installed now if it is not there.
    pub(super) fn program(&self, name: &str, session: &Session) -> Result<Command, Error> {
        let folder = self.folder();
        if !folder.join(COMPLETE).exists() {
            self.install(&folder, session)?;
        }
        let mut command = Command::new(folder.join("bin").join(name));
        // Programs in WebAssembly are compiled at their first start, which is kept here.
        command.env("YOWASP_CACHE_DIR", folder.join("compiled"));
        Ok(command)
    }

    fn install(&self, folder: &Path, session: &Session) -> Result<(), Error> {
        let parent = folder.parent().expect("it is in the cache folder");
        fs::create_dir_all(parent).map_err(at(parent))?;
        let _lock = lock(&parent.join("install.lock"), session)?;
        if folder.join(COMPLETE).exists() {
            return Ok(());
        }
        (session.says)(&format!("installing {} from PyPI", self.title()));
        let log = parent.join(format!("{}.log", self.name));
        let failed = |printed: String| Error::Install(self.title(), folder.to_path_buf(), reason(&printed));
        let mut venv = Command::new("python3");
        match session.run(venv.args(["-m", "venv", "--clear"]).arg(folder), &log) {
            Err(Error::File(_, error)) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Missing("python3", "python3 python3-venv"));
            }
            Ok(Err(printed)) if printed.contains("ensurepip") => {
                return Err(Error::Missing("python3-venv", "python3-venv"));
            }
            ended => ended?.map_err(failed)?,
        }
        let mut pip = Command::new(folder.join("bin").join("python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1"]);
        pip.arg("--only-binary=:all:").arg(format!("{}=={}", self.name, self.version));
        session.run(&mut pip, &log)?.map_err(failed)?;
        let complete = folder.join(COMPLETE);
        File::create(&complete).map_err(at(&complete))?;
        let _ = fs::remove_file(log);
        Ok(())
    }
}

/// Why pip failed: the network, if that is why, or its first line of error.
fn reason(printed: &str) -> String {
    if ["NewConnectionError", "ConnectTimeout", "NameResolutionError"].iter().any(|error| printed.contains(error)) {
        return "PyPI is out of reach".into();
    }
    let lines = || printed.lines().map(str::trim).filter(|line| !line.is_empty());
    let error = lines().find_map(|line| line.strip_prefix("ERROR: "));
    error.or(lines().next_back()).unwrap_or("no message").to_string()
}

/// Waits until nobody else installs.
fn lock(path: &Path, session: &Session) -> Result<File, Error> {
    let file = File::options().create(true).truncate(false).write(true).open(path).map_err(at(path))?;
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(at(path)(error)),
            Err(TryLockError::WouldBlock) if (session.stop)() => return Err(Error::Interrupted),
            Err(TryLockError::WouldBlock) => {
                if !told {
                    (session.says)("waiting for another installation");
                }
                told = true;
                sleep(MOMENT);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_installation_has_a_reason_of_one_line() {
        let offline = "WARNING: Retrying (Retry(total=0)) after connection broken by 'NewConnectionError(…)': /simple/pyosys/\n\
                       ERROR: Could not find a version that satisfies the requirement pyosys==0.70 (from versions: none)\n";
        assert_eq!(reason(offline), "PyPI is out of reach");
        let full =
            "ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\n\nnotice\n";
        assert_eq!(reason(full), "Could not install packages due to an OSError: [Errno 28] No space left on device");
        assert_eq!(reason("Traceback\n  File x\nValueError: y\n"), "ValueError: y");
        assert_eq!(reason(""), "no message");
    }
}
