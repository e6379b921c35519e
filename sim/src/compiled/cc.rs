//! The system's C compiler: finds it, and keeps what it has compiled in the cache.

use super::vector::Vectors;
use rustix::process::{Pid, Signal, kill_process_group};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;
use std::{fs, io};

/// A compiler that takes the options of GCC and clang.
pub struct Compiler {
    command: String,
    /// What tells its code from that of others: its command, and its version and the features of the machine, as its
    /// macros have them.
    identity: u64,
    /// The widest vectors of this machine.
    pub vectors: Vectors,
}

/// Why there is no library. One line each.
#[derive(Debug, thiserror::Error)]
pub enum CompilerError {
    /// There is no such command, or it takes other options.
    #[error("no C compiler `{0}`: install one, as with `apt install gcc`, or name it in HEDDLE_CC")]
    Missing(String),
    /// It did not compile what it was given.
    #[error("`{command}` failed: {message}")]
    Failed { command: String, message: String },
    /// The cache cannot be written.
    #[error("{}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// Nobody waits for it any more.
    #[error("the compilation was given up")]
    Stopped,
}

/// GCC 12 takes less time than with `-O2`; in runs of one kernel the code was as fast.
const FLAGS: &[&str] = &["-O1", "-march=native", "-fno-strict-aliasing", "-fPIC", "-shared", "-w"];

impl Compiler {
    /// The one named in `HEDDLE_CC`, or `cc`; looked for once.
    pub fn found() -> Result<&'static Compiler, CompilerError> {
        static FOUND: OnceLock<Option<Compiler>> = OnceLock::new();
        let command = std::env::var("HEDDLE_CC").unwrap_or_else(|_| "cc".into());
        FOUND.get_or_init(|| Compiler::new(&command)).as_ref().ok_or(CompilerError::Missing(command))
    }

    fn new(command: &str) -> Option<Compiler> {
        let mut macros = Command::new(command);
        macros.args(FLAGS).args(["-dM", "-E", "-x", "c", "-"]).stdin(Stdio::null());
        let output = macros.output().ok().filter(|output| output.status.success())?;
        let text = String::from_utf8_lossy(&output.stdout);
        let has = |name: &str| text.lines().any(|line| line.split_whitespace().nth(1) == Some(name));
        let bits = if has("__AVX2__") { 256 } else { 128 };
        let mut hasher = DefaultHasher::new();
        (command, &text, FLAGS).hash(&mut hasher);
        Some(Compiler { command: command.into(), identity: hasher.finish(), vectors: Vectors { bits } })
    }

    /// Where the library of a source is, or is to be.
    pub fn library(&self, source: &str) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        (self.identity, source).hash(&mut hasher);
        heddle_verilated::cache().join(format!("c-{:016x}.so", hasher.finish()))
    }

    /// Compiles a source, unless that has been done before. Another may tell it to `stop`.
    pub fn compile(&self, source: &str, stop: &AtomicBool) -> Result<PathBuf, CompilerError> {
        let library = self.library(source);
        if library.exists() {
            return Ok(library);
        }
        // Made aside and renamed, so that two at a time and broken-off ones leave only whole libraries.
        static BUILDS: AtomicU32 = AtomicU32::new(0);
        let number = BUILDS.fetch_add(1, Ordering::Relaxed);
        let work = library.with_extension(format!("{}.{number}", std::process::id()));
        put(&work, |path| fs::create_dir_all(path))?;
        let made = self.compile_in(&work, source, stop);
        let kept = made.and_then(|made| put(&library, |to| fs::rename(&made, to)));
        // The folder is of no use any more, and an error here would hide the one above.
        let _ = fs::remove_dir_all(&work);
        kept.map(|()| library)
    }

    fn compile_in(&self, work: &Path, source: &str, stop: &AtomicBool) -> Result<PathBuf, CompilerError> {
        let (input, output, messages) = (work.join("cycle.c"), work.join("cycle.so"), work.join("messages"));
        put(&input, |path| fs::write(path, source))?;
        let mut command = Command::new(&self.command);
        command.args(FLAGS).arg("-o").arg(&output).arg(&input).stdin(Stdio::null()).stdout(Stdio::null());
        command.process_group(0).stderr(put(&messages, |path| fs::File::create(path))?);
        let child = command.spawn().map_err(|_| CompilerError::Missing(self.command.clone()))?;
        if wait(child, stop)? {
            return Ok(output);
        }
        let said = fs::read_to_string(&messages).unwrap_or_default();
        let first = said.lines().find(|line| line.contains("error")).or(said.lines().next());
        let message = first.unwrap_or("it says nothing").to_owned();
        Err(CompilerError::Failed { command: self.command.clone(), message })
    }
}

/// How often is looked whether something has ended.
pub(super) const POLL: Duration = Duration::from_millis(10);

/// Whether it succeeded.
fn wait(mut child: Child, stop: &AtomicBool) -> Result<bool, CompilerError> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if !stop.load(Ordering::Relaxed) => std::thread::sleep(POLL),
            _ => {
                // With those that it has started; it may just have ended.
                let _ = kill_process_group(Pid::from_child(&child), Signal::KILL);
                let _ = child.wait();
                return Err(CompilerError::Stopped);
            }
        }
    }
}

fn put<T>(path: &Path, action: impl FnOnce(&Path) -> io::Result<T>) -> Result<T, CompilerError> {
    action(path).map_err(|source| CompilerError::Write { path: path.into(), source })
}

/// For tests, which need one: the compiler, or a note that they are skipped.
#[cfg(all(test, feature = "fuzz"))]
pub(super) fn compiler_or_note() -> Option<&'static Compiler> {
    // Of what a test prints itself, nothing is seen if it passes.
    let skipped = |error: &CompilerError| {
        use io::Write as _;
        let _ = writeln!(io::stderr(), "SKIPPED: {error}");
    };
    Compiler::found().inspect_err(skipped).ok()
}

#[cfg(all(test, feature = "fuzz"))]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_compiled_is_said_in_a_line_and_leaves_nothing() {
        assert!(Compiler::new("/nowhere/cc").is_none());
        assert!(Compiler::new("false").is_none(), "it is no compiler");
        let Some(compiler) = compiler_or_note() else { return };
        let source = "u64 cycle(";
        let error = compiler.compile(source, &AtomicBool::new(false)).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, CompilerError::Failed { .. }) && text.contains("error"), "{text}");
        assert_eq!(text.lines().count(), 1, "{text}");
        let library = compiler.library(source);
        let key = library.file_stem().unwrap().to_str().unwrap().to_owned();
        let left = fs::read_dir(library.parent().unwrap()).unwrap();
        let left: Vec<_> = left.filter_map(|entry| entry.unwrap().file_name().into_string().ok()).collect();
        assert!(!left.iter().any(|name| name.starts_with(&key)), "{left:?}");
    }

    #[test]
    fn who_is_told_to_stop_stops() {
        let Some(compiler) = compiler_or_note() else { return };
        let error = compiler.compile("int stopped;", &AtomicBool::new(true)).unwrap_err();
        assert!(matches!(error, CompilerError::Stopped), "{error}");
    }
}
