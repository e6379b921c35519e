//! What a subcommand works on: a built-in kernel or an ELF file.

use anyhow::{Context, Result, bail};
use heddle_testbench::Program;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{self, Device, Kernel, KernelError, Output};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// How the argument is shown in usage lines.
pub const TARGET: &str = "KERNEL|FILE.elf";

/// A program, and its driver if it is a kernel.
pub struct Target {
    /// The kernel's name, or the path as given.
    pub name: String,
    pub program: Program,
    pub kernel: Option<&'static Kernel>,
    /// What a file is launched with, unless it is one block of all threads.
    pub grid: Option<Grid>,
}

/// No file of a core's program is larger, debug information included.
const MOST_BYTES: u64 = 256 << 20;

impl Target {
    /// A kernel's name is a kernel; what ends in `.elf`, has a `/` or exists is a file.
    pub fn find(argument: &str) -> Result<Target> {
        let path = Path::new(argument);
        if argument.contains('/') || path.extension().is_some_and(|e| e == "elf") {
            return Target::file(path);
        }
        match kernels::find(argument) {
            Ok(kernel) => Ok(Target {
                name: kernel.name.into(),
                program: Program::parse(kernel.elf).with_context(|| kernel.name)?,
                kernel: Some(kernel),
                grid: None,
            }),
            Err(_) if path.exists() => Target::file(path),
            Err(unknown) if unknown.nearest.is_some() => Err(unknown.into()),
            Err(unknown) => bail!("{unknown}; `heddle kernels` lists them"),
        }
    }

    /// Has the kernel's driver run another program, such as one with barriers placed in it. It must have what the
    /// kernel's has and the host can reach by name.
    pub fn with_program(self, path: &Path) -> Result<Target> {
        let Some(kernel) = self.kernel else { bail!("--elf is for kernels: {} has no driver", self.name) };
        let other = Target::file(path)?;
        for symbol in
            self.program.symbols().iter().filter(|symbol| symbol.global && !symbol.function && symbol.size > 0)
        {
            let (name, size) = (&symbol.name, symbol.size);
            let has = match other.program.symbol(name) {
                Some(has) if has.size >= size => continue,
                Some(has) => format!("`{name}` has {} bytes, {size} are needed", has.size),
                None => format!("the program has no symbol `{name}`"),
            };
            bail!("{}: {has}: the driver of {} cannot run it", other.name, kernel.name);
        }
        let name = format!("{} of {}", other.name, kernel.name);
        Ok(Target { name, program: other.program, ..self })
    }

    /// Runs the program on a device that has it loaded: a kernel's driver with its inputs and checks, or a file's
    /// launch.
    pub fn drive(&self, device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
        match self.kernel {
            Some(kernel) => (kernel.drive)(device, seed),
            None => {
                match self.grid {
                    Some(grid) => device.launch_grid(grid)?,
                    None => device.launch()?,
                }
                Ok(Output { checked: 0, image: None })
            }
        }
    }

    /// The bytes of the program's file.
    pub fn elf(argument: &str) -> Result<Cow<'static, [u8]>> {
        let target = Target::find(argument)?;
        match target.kernel {
            Some(kernel) => Ok(kernel.elf.into()),
            None => Ok(read(Path::new(argument))?.into()),
        }
    }

    fn file(path: &Path) -> Result<Target> {
        let bytes = read(path)?;
        let program = Program::parse(&bytes).with_context(|| path.display().to_string())?;
        Ok(Target { name: path.display().to_string(), program, kernel: None, grid: None })
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(bytes)
}
