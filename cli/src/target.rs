//! What a subcommand works on: a built-in kernel, an ELF file, sources of one, or a folder with a host description.

use crate::build;
use crate::interrupt::Interrupt;
use anyhow::{Context, Result, bail};
use heddle_testbench::Program;
use heddle_testbench::compile::is_source;
use heddle_testbench::described::{CoreOption, Description, Driver};
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{self, Device, Kernel, KernelError, Output};
use heddle_testbench::lines::Lines;
use std::borrow::Cow;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// How the argument is shown in usage lines.
pub const TARGET: &str = "KERNEL|FILE.elf|FILE.c|FOLDER";

/// The host description of a folder.
pub const FOLDER_FILE: &str = "heddle.toml";

/// A program, and its driver if it is a kernel or has a host description.
pub struct Target {
    /// The kernel's name, or the path as given.
    pub name: String,
    pub program: Program,
    /// The file that the program is in.
    pub elf: Cow<'static, [u8]>,
    pub kernel: Option<&'static Kernel>,
    pub described: Option<Box<Described>>,
    /// What a file is launched with, unless it is one block of all threads.
    pub grid: Option<Grid>,
}

/// A host description, and the driver that it is for the program.
pub struct Described {
    description: Description,
    pub driver: Driver,
}

/// No file of a core's program is larger, debug information included.
const MOST_BYTES: u64 = 256 << 20;

impl Target {
    /// A kernel's name is a kernel; what has a `/`, exists, or ends as sources, descriptions or programs do is a file or
    /// a folder.
    pub fn find(argument: &str) -> Result<Target> {
        Target::built(&[argument.into()], &[])
    }

    /// The same, or several sources; with more flags for the compiler.
    pub fn built(arguments: &[String], flags: &[String]) -> Result<Target> {
        let argument = &arguments[0];
        let path = Path::new(argument);
        if arguments.len() > 1 || is_source(path) && !path.is_dir() {
            if let Some(other) = arguments.iter().find(|other| !is_source(Path::new(other))) {
                bail!("{other}: of several files wanted are sources of one program, .c, .S, .s, .o or .a");
            }
            let sources: Vec<PathBuf> = arguments.iter().map(PathBuf::from).collect();
            return Target::new(argument.clone(), build::program(&sources, flags)?.into());
        }
        let ends_as_file = path.extension().is_some_and(|extension| extension == "elf" || extension == "toml");
        let is_path = argument.contains('/') || ends_as_file;
        let found = if is_path { None } else { Some(kernels::find(argument)) };
        match found {
            Some(Err(unknown)) if !path.exists() => Err(Target::unknown(unknown)),
            Some(Ok(_)) if !flags.is_empty() => bail!("flags for the compiler are for sources: {argument} is built in"),
            Some(Ok(kernel)) => {
                Ok(Target { kernel: Some(kernel), ..Target::new(kernel.name.into(), kernel.elf.into())? })
            }
            _ if path.is_dir() => {
                let name = argument.trim_end_matches('/');
                let name = if name.is_empty() { argument } else { name };
                Target::described(name.into(), build::description(path)?, flags)
            }
            _ if path.extension().is_some_and(|extension| extension == "toml") => {
                Target::described(argument.clone(), Description::read(path)?, flags)
            }
            _ if !flags.is_empty() => bail!("flags for the compiler are for sources: {argument} is none"),
            _ => Target::file(path),
        }
    }

    fn new(name: String, elf: Cow<'static, [u8]>) -> Result<Target> {
        let program = Program::parse(&elf).with_context(|| name.clone())?;
        Ok(Target { name, program, elf, kernel: None, described: None, grid: None })
    }

    fn described(name: String, description: Description, flags: &[String]) -> Result<Target> {
        let flags = [description.flags(), flags].concat();
        let target = Target::new(name, build::program(&description.sources(), &flags)?.into())?;
        let driver = description.driver(&target.program)?;
        Ok(Target { described: Some(Box::new(Described { description, driver })), ..target })
    }

    fn unknown(unknown: kernels::UnknownKernel) -> anyhow::Error {
        match unknown.nearest {
            Some(_) => unknown.into(),
            None => anyhow::anyhow!("{unknown}; `heddle kernels` lists them"),
        }
    }

    /// The core that a host description asks for.
    pub fn core(&self) -> Vec<CoreOption> {
        self.described.as_ref().map_or_else(Vec::new, |described| described.description.core())
    }

    /// Whether it has inputs that depend on a seed.
    pub fn has_inputs(&self) -> bool {
        self.kernel.is_some() || self.described.is_some()
    }

    /// The source lines of its program.
    pub fn lines(&self) -> Lines {
        Lines::read(self.symbols(), &self.program)
    }

    /// An ELF file with the symbols of its program, and their debug information if there is any. That of a program built in
    /// has no code.
    pub fn symbols(&self) -> &[u8] {
        self.own_debug().unwrap_or(&self.elf)
    }

    /// Whether its lines are those of a built-in kernel.
    pub fn has_own_lines(&self) -> bool {
        self.own_debug().is_some()
    }

    /// The debug information of a built-in kernel that runs the program built in.
    fn own_debug(&self) -> Option<&'static [u8]> {
        let kernel = self.kernel?;
        match () {
            () if *self.elf == *kernel.elf => Some(kernel.debug),
            () if kernel.small_elf.is_some_and(|small| *self.elf == *small) => kernel.small_debug,
            () => None,
        }
    }

    /// Who says what its results should be.
    pub fn expectation(&self) -> Option<String> {
        Some(format!("what {} expects", self.described.as_ref()?.driver.name()))
    }

    /// Has the driver run another program, such as one with barriers placed in it. It must have what that needs.
    pub fn with_program(self, path: &Path) -> Result<Target> {
        let other = Target::file(path)?;
        let named = |driver: &str| format!("{} of {driver}", other.name);
        if let Some(described) = self.described {
            let Described { description, .. } = *described;
            let driver = description.driver(&other.program).with_context(|| other.name.clone())?;
            let (name, described) = (named(&self.name), Some(Box::new(Described { description, driver })));
            return Ok(Target { name, program: other.program, elf: other.elf, described, ..self });
        }
        let Some(kernel) = self.kernel else { bail!("--elf is for kernels: {} has no driver", self.name) };
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
        let name = named(kernel.name);
        Ok(Target { name, program: other.program, elf: other.elf, ..self })
    }

    /// The reference of a host description ends at Ctrl-C. A machine is told by who watches it.
    pub fn end_at(&mut self, interrupt: &Interrupt) {
        if let Some(described) = &mut self.described {
            described.driver.set_interrupted(interrupt.flag());
        }
    }

    /// Runs the program on a device that has it loaded: a driver with its inputs and checks, or a file's launch.
    pub fn drive(&self, device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
        match (self.kernel, &self.described) {
            (Some(kernel), _) => (kernel.drive)(device, seed),
            (None, Some(described)) => described.driver.drive(device, seed),
            (None, None) => {
                match self.grid {
                    Some(grid) => device.launch_grid(grid)?,
                    None => device.launch()?,
                }
                Ok(Output { checked: 0, image: None })
            }
        }
    }

    fn file(path: &Path) -> Result<Target> {
        Target::new(path.display().to_string(), read(path)?.into())
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MOST_BYTES).read_to_end(&mut bytes))
        .with_context(|| format!("cannot read {}", path.display()))?;
    Ok(bytes)
}
