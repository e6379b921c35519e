//! Sources to a program, by the RISC-V compiler that is there: GCC, or clang with LLVM's linker.
//!
//! Start-up code, linker script and headers are in this crate ([`FILES`]). What a compiler is told is in
//! `programs/compile.flags` and `programs/link.flags`, as GCC has it; `programs/build.sh` reads the same files. Programs
//! have debug information, and relocations for [`crate::predict`].

use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

/// What every program is built with, by its path in a folder.
pub const FILES: [(&str, &str); 5] = [
    ("include/heddle.h", include_str!("../programs/include/heddle.h")),
    ("include/heddle_csr.h", include_str!("../programs/include/heddle_csr.h")),
    ("crt0.S", include_str!("../programs/crt0.S")),
    (ATOMICS, include_str!("../programs/atomics.S")),
    ("heddle.ld", include_str!("../programs/heddle.ld")),
];

const ATOMICS: &str = "atomics.S";
const COMPILE: &str = include_str!("../programs/compile.flags");
const LINK: &str = include_str!("../programs/link.flags");

/// Of users' sources, beside [`COMPILE`].
const OF_USERS: [&str; 4] = ["-std=gnu11", "-Wall", "-Wextra", "-g"];

/// Clang writes assembly and reads it again: branches in what it assembles at once have no relocations. Of sources in
/// assembly there can be no checksums, which DWARF 5 has.
const CLANG_ON_C: [&str; 2] = ["-save-temps=obj", "-gdwarf-4"];

/// Names a compiler, instead of those that are looked for.
pub const VARIABLE: &str = "HEDDLE_RISCV_CC";

/// Those that are looked for, in this order.
const GCC: [&str; 3] = ["riscv64-unknown-elf-gcc", "riscv32-unknown-elf-gcc", "riscv-none-elf-gcc"];
const CLANG: &str = "clang";
const LLD: &str = "ld.lld";

/// The flags of a file: words, without comments.
fn words(file: &str) -> impl Iterator<Item = &str> {
    file.lines().map(|line| line.split('#').next().unwrap_or("")).flat_map(str::split_whitespace)
}

/// What GCC is told of every source: machine, optimisation.
pub fn compile_flags() -> impl Iterator<Item = &'static str> {
    words(COMPILE)
}

/// What GCC is told when it links.
pub fn link_flags() -> impl Iterator<Item = &'static str> {
    words(LINK)
}

/// Why there is no program.
#[derive(Debug, Error)]
pub enum CompileError {
    /// No compiler is there.
    #[error(
        "no RISC-V compiler: neither {} nor {CLANG} with {LLD} is there; install one, as with \
         `apt install gcc-riscv64-unknown-elf`, or name it in {VARIABLE}",
        GCC.join(", ")
    )]
    None,
    /// The compiler that is named is not there.
    #[error(
        "no compiler `{0}`, which {VARIABLE} names: install one, as with `apt install gcc-riscv64-unknown-elf`, or leave \
         {VARIABLE} unset"
    )]
    NotThere(String),
    /// Clang without its linker.
    #[error("no {LLD}, which {0} needs: install it, as with `apt install lld`")]
    NoLinker(String),
    /// A file that is no source.
    #[error("{0}: wanted is a source, .c, .S or .s, or what a compiler made of one, .o or .a")]
    NotASource(PathBuf),
    /// A source that cannot be read.
    #[error("cannot read {path}: {why}")]
    Unread {
        /// The source.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// The compiler refuses.
    #[error("{what}; {by} says why")]
    Failed {
        /// What could not be made of what.
        what: String,
        /// Who refused.
        by: String,
        /// What it says, lines for people.
        output: String,
    },
    /// A command cannot be started.
    #[error("cannot run {command}: {why}")]
    Command {
        /// Its name.
        command: String,
        /// What the system says.
        why: io::Error,
    },
}

/// A compiler for RISC-V.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// GCC, which links, too.
    Gcc(String),
    /// Clang, and LLVM's linker.
    Clang(String),
}

/// What is to be built.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The folder that has [`FILES`].
    pub files: &'a Path,
    /// C and assembly, objects and archives.
    pub sources: &'a [PathBuf],
    /// More for the compiler, after all others.
    pub flags: &'a [String],
    /// Where objects go: an empty folder.
    pub objects: &'a Path,
    /// The program.
    pub out: &'a Path,
}

impl Job<'_> {
    /// `atomics.S` is the one of [`FILES`], unless there is another.
    fn found(&self, source: &Path) -> PathBuf {
        let is_ours = source.file_name() == Some(OsStr::new(ATOMICS)) && !source.exists();
        if is_ours { self.files.join(ATOMICS) } else { source.into() }
    }
}

/// A command of a build.
#[derive(Clone, Debug)]
pub struct Step {
    /// What went wrong if it fails.
    what: String,
    words: Vec<OsString>,
}

/// As it can be typed.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, word) in self.words.iter().enumerate() {
            let space = if at == 0 { "" } else { " " };
            write!(f, "{space}{}", quoted(&word.to_string_lossy()))?;
        }
        Ok(())
    }
}

/// A word as it is typed in a shell.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.into() } else { format!("'{}'", word.replace('\'', r"'\''")) }
}

/// Whether a path is of what [`Compiler::build`] takes, by its name.
pub fn is_source(path: &Path) -> bool {
    kind(path).is_some()
}

/// Whether it has to be compiled.
fn kind(path: &Path) -> Option<bool> {
    match path.extension()?.to_str()? {
        "c" | "S" | "s" => Some(true),
        "o" | "a" => Some(false),
        _ => None,
    }
}

impl Compiler {
    /// The compiler that [`VARIABLE`] names, or the first that is there.
    pub fn find() -> Result<Compiler, CompileError> {
        if let Some(named) = env::var(VARIABLE).ok().filter(|named| !named.is_empty()) {
            return match Path::new(&named).file_name().and_then(OsStr::to_str) {
                _ if !is_there(&named) => Err(CompileError::NotThere(named)),
                Some(name) if name.starts_with(CLANG) && !is_there(LLD) => Err(CompileError::NoLinker(named)),
                Some(name) if name.starts_with(CLANG) => Ok(Compiler::Clang(named)),
                _ => Ok(Compiler::Gcc(named)),
            };
        }
        if let Some(gcc) = GCC.iter().find(|gcc| is_there(gcc)) {
            return Ok(Compiler::Gcc(gcc.to_string()));
        }
        if is_there(CLANG) && is_there(LLD) { Ok(Compiler::Clang(CLANG.into())) } else { Err(CompileError::None) }
    }

    /// Its command.
    pub fn name(&self) -> &str {
        match self {
            Compiler::Gcc(name) | Compiler::Clang(name) => name,
        }
    }

    /// The commands that build a program, one a source, then the linker.
    pub fn steps(&self, job: &Job) -> Result<Vec<Step>, CompileError> {
        let start = job.files.join("crt0.S");
        let (mut steps, mut objects) = (Vec::new(), Vec::new());
        let sources = job.sources.iter().map(|source| job.found(source));
        for source in std::iter::once(start).chain(sources) {
            match kind(&source) {
                None => return Err(CompileError::NotASource(source)),
                Some(false) => objects.push(source),
                Some(true) => {
                    let object = object(job.objects, &source, &objects);
                    steps.push(self.compile(job, &source, &object));
                    objects.push(object);
                }
            }
        }
        // Start-up code last: what is wrong with the flags is said of a user's source.
        steps.rotate_left(1);
        steps.push(self.link(job, objects)?);
        Ok(steps)
    }

    /// Builds a program; what the compiler had to say although it did, in lines for people.
    pub fn build(&self, job: &Job) -> Result<String, CompileError> {
        for path in job.sources.iter().map(|source| job.found(source)) {
            std::fs::File::open(&path)
                .and_then(
                    |file| if file.metadata()?.is_dir() { Err(io::ErrorKind::IsADirectory.into()) } else { Ok(()) },
                )
                .map_err(|why| CompileError::Unread { path, why })?;
        }
        self.steps(job)?.into_iter().map(|step| step.run()).collect()
    }

    fn compile(&self, job: &Job, source: &Path, object: &Path) -> Step {
        let mut words: Vec<OsString> = vec![self.name().into()];
        words.extend(self.machine().into_iter().map(Into::into));
        words.extend(OF_USERS.iter().map(Into::into));
        if let (Compiler::Clang(_), Some("c")) = (self, source.extension().and_then(OsStr::to_str)) {
            words.extend(CLANG_ON_C.iter().map(Into::into));
        }
        words.extend(["-I".into(), job.files.join("include").into()]);
        words.extend(job.flags.iter().filter(|flag| !is_for_linker(flag)).map(Into::into));
        words.extend(["-c".into(), source.into(), "-o".into(), object.into()]);
        Step { what: format!("{} does not compile", source.display()), words }
    }

    fn link(&self, job: &Job, objects: Vec<PathBuf>) -> Result<Step, CompileError> {
        let script = job.files.join("heddle.ld");
        let mut words: Vec<OsString> = Vec::new();
        match self {
            Compiler::Gcc(gcc) => {
                words.push(gcc.into());
                words.extend(self.machine().into_iter().chain(link_flags()).map(Into::into));
                words.extend(job.flags.iter().map(Into::into));
            }
            Compiler::Clang(_) => {
                words.push(LLD.into());
                let own = link_flags().filter(|flag| *flag != "-nostartfiles").map(String::from);
                let flags = own.chain(job.flags.iter().filter(|flag| is_for_linker(flag)).cloned());
                for flag in flags {
                    match flag.strip_prefix("-Wl,") {
                        Some(of_linker) => words.extend(of_linker.split(',').map(Into::into)),
                        None => words.push(flag.into()),
                    }
                }
            }
        }
        words.extend(["-T".into(), script.into()]);
        words.extend(objects.into_iter().map(Into::into));
        words.extend(self.library(job.flags)?.map(Into::into));
        words.extend(["-o".into(), job.out.into()]);
        Ok(Step { what: format!("{} cannot be linked", names(job.sources)), words })
    }

    /// What the compiler is told of every source, in its own words.
    fn machine(&self) -> Vec<&'static str> {
        match self {
            Compiler::Gcc(_) => compile_flags().collect(),
            Compiler::Clang(_) => {
                // Loops become no calls in a freestanding program. Branches have relocations where code may be relaxed,
                // which the linker is told not to do.
                let mut flags = vec!["--target=riscv32-unknown-elf", "-mrelax"];
                for flag in compile_flags() {
                    match flag {
                        "-fno-reorder-blocks" => flags.extend(["-mllvm", "-disable-block-placement"]),
                        "-misa-spec=2.2" | "-fno-tree-loop-distribute-patterns" => {}
                        other => flags.push(other),
                    }
                }
                flags
            }
        }
    }

    /// The library of what the compiler calls, such as divisions of 64 bits, if it has one. Debian has none of GCC's for
    /// rv32ima, and GCC would take that for rv32ia, which multiplies in a loop: so the atomic instructions are left out
    /// of the question.
    fn library(&self, flags: &[String]) -> Result<Option<PathBuf>, CompileError> {
        let machine = self.machine();
        let all: Vec<&str> = machine.into_iter().chain(flags.iter().map(String::as_str)).collect();
        let march = all.iter().rev().find_map(|flag| flag.strip_prefix("-march="));
        let mut command = Command::new(self.name());
        command.args(all.iter().filter(|flag| flag.starts_with("-m") && !flag.starts_with("-mllvm")));
        command.args(march.map(|march| format!("-march={}", march.strip_suffix('a').unwrap_or(march))));
        command.arg("-print-libgcc-file-name").stderr(Stdio::null());
        if let Compiler::Clang(_) = self {
            command.args(["--target=riscv32-unknown-elf", "--rtlib=compiler-rt"]);
        }
        let output = command.output().map_err(|why| CompileError::Command { command: self.name().into(), why })?;
        let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        Ok(Some(path).filter(|path| path.is_file()))
    }
}

impl Step {
    fn run(self) -> Result<String, CompileError> {
        let Step { what, words } = self;
        let name = words[0].to_string_lossy().into_owned();
        let output = Command::new(&words[0]).args(&words[1..]).stdin(Stdio::null()).output();
        let output = output.map_err(|why| CompileError::Command { command: name.clone(), why })?;
        let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() { Ok(text) } else { Err(CompileError::Failed { what, by: name, output: text }) }
    }
}

fn is_there(command: &str) -> bool {
    let mut command = Command::new(command);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

fn is_for_linker(flag: &str) -> bool {
    ["-Wl,", "-L", "-l"].iter().any(|prefix| flag.starts_with(prefix))
}

/// A place for what is made of a source, which no other has.
fn object(folder: &Path, source: &Path, others: &[PathBuf]) -> PathBuf {
    let stem = source.file_stem().unwrap_or_default().to_string_lossy();
    let name = |count: usize| match count {
        0 => folder.join(format!("{stem}.o")),
        _ => folder.join(format!("{stem}-{count}.o")),
    };
    (0..).map(name).find(|name| !others.contains(name)).expect("there are more names than sources")
}

fn names(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests;
