//! What a host description wants to have of a run: variables that are printed, files, pictures.

use crate::output::ResultFile;
use crate::report::Variable;
use crate::run::scale;
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
        let mut open = self.0.into_iter();
        let mut whole = |bytes: &mut dyn FnMut(&mut ResultFile) -> Result<()>| -> Result<()> {
            let mut file = open.next().context("there is a file for each")?;
            bytes(&mut file)?;
            told.saved.push(file.path().display().to_string());
            file.finish()
        };
        for (path, bytes) in files {
            let cannot = || format!("cannot write {}", path.display());
            whole(&mut |file| file.writer().write_all(&bytes).with_context(cannot))?;
        }
        for picture in pictures.into_iter().filter_map(|(picture, path)| path.map(|_| picture)) {
            whole(&mut |file| {
                let scale = scale(&picture);
                picture.write_png(file.writer(), scale).context("cannot write the picture")
            })?;
        }
        Ok(told)
    }
}
