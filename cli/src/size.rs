//! The option that chooses how much data a kernel has.

use crate::target::Target;
use anyhow::{Context, Result, bail};
use clap::{Args, ValueEnum};
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::program::ProgramError;
use std::path::Path;

#[derive(Args)]
pub struct SizeArgs {
    /// How much data a kernel has [default: usual]
    #[arg(long, value_enum, value_name = "SIZE")]
    size: Option<Size>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Size {
    /// What figures are of
    Usual,
    /// What fits in 32 KiB with the program and the stacks of 8 threads, 512 bytes each; `heddle kernels --sizes` lists
    /// them
    Small,
}

/// What takes the most memory, of a program that is not built in and needs more than there is.
fn largest(target: &Target, error: &ProgramError) -> String {
    let is_data = matches!(error, ProgramError::SegmentOutside { .. } | ProgramError::StacksOverlap { .. });
    let variables = target.program.symbols().iter().filter(|symbol| !symbol.function && symbol.size > 0);
    match variables.max_by_key(|symbol| symbol.size).filter(|_| is_data && target.kernel.is_none()) {
        Some(symbol) => format!("; the largest variable is `{}`, with {} bytes", symbol.name, symbol.size),
        None => String::new(),
    }
}

impl SizeArgs {
    /// The target of the size that is asked for.
    pub fn of(&self, target: Target) -> Result<Target> {
        match (self.size, target.kernel) {
            (None, _) | (Some(Size::Usual), Some(_)) => Ok(target),
            (Some(_), None) => bail!("--size is for kernels: {} has the size that it has", target.name),
            (Some(Size::Small), Some(kernel)) => match kernel.small() {
                Ok(elf) => Ok(Target { program: Program::parse(elf).context(kernel.name)?, elf: elf.into(), ..target }),
                Err(why) => bail!("{} has no small size: {why}", kernel.name),
            },
        }
    }

    /// The target of that size, or with another program for its inputs and checks.
    pub fn program(&self, target: Target, elf: Option<&Path>) -> Result<Target> {
        let target = self.of(target)?;
        match elf {
            Some(path) => target.with_program(path),
            None => Ok(target),
        }
    }

    /// Whether a size is asked for.
    pub fn is_given(&self) -> bool {
        self.size.is_some()
    }

    /// Refuses a program that does not fit, and says so if a smaller one would.
    pub fn check(&self, target: &Target, shape: &Shape) -> Result<()> {
        let Err(error) = target.program.check(shape) else { return Ok(()) };
        let small = target.kernel.filter(|_| self.size.is_none()).and_then(|kernel| kernel.small().ok());
        let fits = small.and_then(|elf| Program::parse(elf).ok()).is_some_and(|small| small.check(shape).is_ok());
        let advice = if fits { "; --size small fits".into() } else { largest(target, &error) };
        bail!("{}: {error}{advice}", target.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_kernel_has_its_own_file() {
        let target = SizeArgs { size: Some(Size::Small) }.of(Target::find("gcd").unwrap()).unwrap();
        assert_eq!(&*target.elf, target.kernel.unwrap().small().unwrap());
    }
}
