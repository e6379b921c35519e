//! The options of a launch: on which core, and with what.

use crate::engine::Engine;
use crate::grid::GridArgs;
use crate::limit::Limit;
use crate::shape::ShapeArgs;
use crate::size::SizeArgs;
use crate::target::Target;
use anyhow::{Context, Result, bail};
use clap::Args;
use heddle_check::compaction;
use heddle_sim::Checks;
use heddle_simt::Shape;
use heddle_testbench::kernels::{Device, Output};
use heddle_testbench::machine::MachineOptions;

#[derive(Args)]
pub struct Launch {
    #[command(flatten)]
    grid: GridArgs,
    #[command(flatten)]
    pub shape: ShapeArgs,
    /// What simulates
    #[arg(long, value_enum, default_value_t = Engine::default(), value_name = "ENGINE")]
    pub engine: Engine,
    /// Do not look at the design's assertions, which is faster (compiled engines only)
    #[arg(long)]
    no_checks: bool,
    #[command(flatten)]
    pub limit: Limit,
    /// Write a word of a variable before the launch, of programs that are no kernels
    #[arg(long, value_name = "NAME=VALUE", value_parser = Setting::parse)]
    set: Vec<Setting>,
}

/// A variable and the word that it is to hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    name: String,
    value: u32,
}

impl Setting {
    pub fn parse(text: &str) -> Result<Setting, String> {
        let (name, value) = text.split_once('=').ok_or("wanted is NAME=VALUE")?;
        let number = match value.strip_prefix("0x") {
            Some(digits) => i64::from_str_radix(digits, 16),
            None => value.parse(),
        };
        let word = number.ok().filter(|n| (i64::from(i32::MIN)..=i64::from(u32::MAX)).contains(n));
        let word = word.ok_or_else(|| format!("`{value}` is not a 32-bit number"))?;
        Ok(Setting { name: name.into(), value: word as u32 })
    }

    /// Refuses them for a kernel. A host description says otherwise in vain.
    pub fn check(all: &[Setting], target: &mut Target) -> Result<()> {
        if let Some(kernel) = target.kernel.filter(|_| !all.is_empty()) {
            bail!("--set is for ELF files: the inputs of {} are its driver's", kernel.name)
        }
        if let Some(described) = &mut target.described {
            all.iter().for_each(|setting| described.driver.set(&setting.name, setting.value));
        }
        Ok(())
    }

    pub fn write(all: &[Setting], device: &mut dyn Device) -> Result<()> {
        all.iter().try_for_each(|Setting { name, value }| device.write_word(name, *value).context("--set"))
    }
}

impl Launch {
    /// The target with the grid asked for. Refuses what is for files if it is a kernel.
    pub fn target(&self, target: Target, shape: &Shape) -> Result<Target> {
        self.engine.check()?;
        let mut target = self.grid.of(target, shape)?;
        Setting::check(&self.set, &mut target)?;
        Ok(target)
    }

    /// The target as it is launched on the core that is asked for, and the core; refused if that cannot be.
    pub fn on_core(&self, target: Target, size: &SizeArgs) -> Result<(Target, Shape)> {
        let shape = self.shape.over(&target.core())?.shape()?;
        size.check(&target, &shape)?;
        Ok((self.target(target, &shape)?, shape))
    }

    /// How it is simulated, without comparisons and waveforms; what compaction did is counted.
    pub fn options(&self) -> MachineOptions {
        MachineOptions {
            engine: self.engine.kind(),
            seed: self.shape.seed,
            checks: if self.no_checks { Checks::None } else { Checks::Assertions },
            monitors: vec![compaction::monitor],
            max_cycles: self.limit.cycles(),
            ..MachineOptions::default()
        }
    }

    /// Runs the target on a device that has its program loaded.
    pub fn drive(&self, device: &mut dyn Device, target: &Target, seed: u64) -> Result<Output> {
        Setting::write(&self.set, device)?;
        Ok(target.drive(device, seed)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_words_by_name() {
        let word = |text: &str| Setting::parse(text).map(|s| s.value);
        assert_eq!(Setting::parse("n=5"), Ok(Setting { name: "n".into(), value: 5 }));
        assert_eq!(word("n=0xffffffff"), Ok(u32::MAX));
        assert_eq!(word("n=-1"), Ok(u32::MAX));
        for wrong in ["n", "n=", "n=x", "n=4294967296", "n=-2147483649", "n=0x"] {
            assert!(word(wrong).is_err(), "{wrong}");
        }
    }
}
