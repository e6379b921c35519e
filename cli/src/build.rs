//! `heddle build`: C and assembly to a program for the core.

use crate::output::{ResultFile, print, tell};
use crate::target::FOLDER_FILE;
use anyhow::{Context, Result, bail};
use clap::Args;
use heddle_sim::verilator::cache;
use heddle_testbench::Program;
use heddle_testbench::compile::{CompileError, Compiler, FILES, Job, is_source};
use heddle_testbench::described::Description;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Compile and link C and assembly to a program for the core.
///
/// The compiler is riscv64-unknown-elf-gcc, riscv32-unknown-elf-gcc or riscv-none-elf-gcc, the first that is there, or
/// clang with ld.lld; or the one that HEDDLE_RISCV_CC names. Headers (heddle.h), start-up code and linker script are
/// part of this command. Programs have debug information, and the relocations that `heddle predict` needs.
///
/// `atomics.S`, unless there is another file of that name, has the functions that compilers call for _Atomic bytes and
/// half words.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle build kernel.c                          makes kernel.elf
  heddle build kernel.c fast.S -o fast.elf
  heddle build kernel.c -- -O3 -DCOUNT=64        more flags for the compiler, which win
  heddle build kernel.c --show                   the commands, as they can be typed
  heddle build mine                              what the host description in this folder names
  heddle run kernel.c                            builds and runs it")]
pub struct Build {
    /// C (.c), assembly (.S, .s), objects (.o, .a); or a folder with a host description
    #[arg(value_name = "SOURCE", required = true)]
    sources: Vec<PathBuf>,
    /// The program [default: the name of the first source, with .elf, in this folder]
    #[arg(short, long, value_name = "FILE.elf")]
    out: Option<PathBuf>,
    /// Print the commands, and run none of them
    #[arg(long)]
    show: bool,
    /// More flags for the compiler
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

impl Build {
    pub fn run(self) -> Result<()> {
        let (sources, flags) = match &self.sources[..] {
            [folder] if folder.is_dir() => {
                let description = description(folder)?;
                (description.sources(), [description.flags(), &self.flags[..]].concat())
            }
            _ => (self.sources, self.flags),
        };
        let first = sources[0].file_stem().unwrap_or_default();
        let out = self.out.unwrap_or_else(|| Path::new(first).with_extension("elf"));
        refuse(&out, &sources)?;
        if self.show {
            let (compiler, files) = (Compiler::find()?, files()?);
            let job = Job { files: &files, sources: &sources, flags: &flags, objects: Path::new(""), out: &out };
            let steps = compiler.steps(&job)?;
            return print(&steps.iter().map(|step| format!("{step}\n")).collect::<String>());
        }
        let mut file = ResultFile::create(&out)?;
        let elf = program(&sources, &flags)?;
        let program = Program::parse(&elf).with_context(|| out.display().to_string())?;
        file.writer().write_all(&elf).with_context(|| format!("cannot write {}", out.display()))?;
        file.finish()?;
        let bytes = |writable: bool| {
            let segments = program.segments().iter().filter(|segment| segment.writable == writable);
            segments.map(|segment| u64::from(segment.size)).sum::<u64>()
        };
        let (code, data) = (bytes(false), bytes(true));
        print(&format!("{}: {code} bytes of program, {data} of data\n", out.display()))
    }
}

/// Refuses a program that would take the place of what it is made of, or has the name of such.
fn refuse(out: &Path, sources: &[PathBuf]) -> Result<()> {
    let place = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.into());
    let shown = out.display();
    if sources.iter().any(|source| place(source) == place(out)) {
        bail!("{shown} is a source: -o names the program that is made of it");
    }
    let named = match () {
        () if is_source(out) => "source",
        () if out.file_name().is_some_and(|name| name == FOLDER_FILE) => "host description",
        () => return Ok(()),
    };
    bail!("{shown} has the name of a {named}: -o names the program, such as NAME.elf")
}

/// The host description of a folder.
pub fn description(folder: &Path) -> Result<Description> {
    let path = folder.join(FOLDER_FILE);
    if !path.exists() {
        bail!(
            "cannot read {}: there is no {FOLDER_FILE} in it; `heddle new NAME` makes a folder with one",
            folder.display()
        );
    }
    Ok(Description::read(&path)?)
}

/// The bytes of a program. What the compiler says goes to standard error.
pub fn program(sources: &[PathBuf], flags: &[String]) -> Result<Vec<u8>> {
    let (compiler, files) = (Compiler::find()?, files()?);
    let objects = tempfile::tempdir().context("cannot make a folder for objects")?;
    let out = objects.path().join("program.elf");
    let job = Job { files: &files, sources, flags, objects: objects.path(), out: &out };
    match compiler.build(&job) {
        Ok(said) => tell(&said),
        Err(error) => {
            if let CompileError::Failed { output, .. } = &error {
                tell(output);
            }
            return Err(error.into());
        }
    }
    fs::read(&out).with_context(|| format!("cannot read what {} made", compiler.name()))
}

/// Where [`FILES`] are: in a folder of the cache that has the name of what they hold, so that debuggers find them.
fn files() -> Result<PathBuf> {
    let all: String = FILES.iter().flat_map(|(name, text)| [*name, *text]).collect();
    let folder = cache().join(format!("programs-{:x}", md5::compute(all)));
    for (name, text) in FILES {
        let path = folder.join(name);
        if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            continue;
        }
        fs::create_dir_all(crate::output::parent(&path)).with_context(|| format!("cannot write {}", path.display()))?;
        let mut file = ResultFile::create(&path)?;
        file.writer().write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        file.finish()?;
    }
    Ok(folder)
}
