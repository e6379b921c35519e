//! What a host description wants to have of a run: variables that are printed, files, pictures.

use crate::output::ResultFile;
use crate::report::Variable;
use crate::run::write_image;
use crate::target::Target;
use anyhow::{Context, Error, Result};
use heddle_testbench::described::{DriverError, Results, Shown};
use heddle_testbench::kernels::{Device, KernelError};
use std::io::Write as _;

/// The files of a run.
pub struct Outcome(Vec<ResultFile>);

/// What is to be told of a run.
#[derive(Default)]
pub struct Told {
    pub variables: Vec<Variable>,
    /// Files that were written.
    pub saved: Vec<String>,
}

impl Outcome {
    /// Refuses paths that cannot be written, before the run.
    pub fn create(target: &Target) -> Result<Outcome> {
        let paths = target.described.iter().flat_map(|described| described.driver.files());
        Ok(Outcome(paths.map(ResultFile::create).collect::<Result<_>>()?))
    }

    /// Whether there is something to see after a run that failed so: results that are wrong.
    pub fn is_seen(error: &Error) -> bool {
        matches!(error.downcast_ref(), Some(KernelError::Described(DriverError::Differs(_))))
    }

    /// Reads the results, right or wrong, and writes the files.
    pub fn write(self, target: &Target, device: &mut dyn Device) -> Result<Told> {
        let Some(described) = &target.described else { return Ok(Told::default()) };
        let Results { shown, files, pictures } = described.driver.results(device)?;
        let variable = |Shown { name, numbers }| Variable { name, words: numbers, decimal: true };
        let mut told = Told { variables: shown.into_iter().map(variable).collect(), saved: Vec::new() };
        // In the order of `Driver::files`.
        let (mut open, missing) = (self.0.into_iter(), "there is a file for each");
        for (path, bytes) in files {
            let mut file = open.next().context(missing)?;
            file.writer().write_all(&bytes).with_context(|| format!("cannot write {}", path.display()))?;
            file.finish()?;
            told.saved.push(path.display().to_string());
        }
        for (picture, path) in pictures.into_iter().filter_map(|(picture, path)| Some((picture, path?))) {
            write_image(open.next().context(missing)?, &picture)?;
            told.saved.push(path.display().to_string());
        }
        Ok(told)
    }
}
