//! Builds models: Verilog and shim through Verilator, make and g++ into a library in the cache.

use super::shim;
use super::tool::{Tool, missing_settings};
use heddle_gen::{Files, Options};
use heddle_hdl::netlist::Module;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Why there is no model. One line, except for what a compiler printed.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("{tool} is not installed; on Debian: apt-get install verilator g++ make")]
    Missing { tool: &'static str },
    #[error("HEDDLE_VERILATOR names {}, which {why}", program.display())]
    Selected { program: PathBuf, why: String },
    #[error("{tool} failed:\n{output}")]
    Failed { tool: &'static str, output: String },
    #[error("cannot write the model to {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot load {}: {source}", path.display())]
    Load { path: PathBuf, source: libloading::Error },
}

/// What the C++ compiler is asked for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Optimise {
    /// `-O0`: builds fastest, for many small designs that run for few cycles.
    O0,
    /// `-O1`: builds in little more than half the time of `-O2`, for tests that run some hundred thousand cycles.
    O1,
    /// `-O2`: the usual.
    #[default]
    O2,
    /// `-O3 -march=native`: for benchmarks.
    O3Native,
}

impl Optimise {
    /// Those that benchmarks take the best of.
    pub const FAST: [Optimise; 2] = [Optimise::O2, Optimise::O3Native];

    pub fn name(self) -> &'static str {
        match self {
            Optimise::O0 => "-O0",
            Optimise::O1 => "-O1",
            Optimise::O2 => "-O2",
            Optimise::O3Native => "-O3 native",
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Optimise::O0 => &["-O0"],
            Optimise::O1 => &["-O1"],
            Optimise::O2 => &["-O2"],
            Optimise::O3Native => &["-O3", "-march=native"],
        }
    }
}

/// How a model is built.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Recipe {
    pub optimise: Optimise,
    /// Probes can be read.
    pub probes: bool,
    /// Can write waveforms; slower.
    pub trace: bool,
}

impl Default for Recipe {
    /// For lock-step: `-O2`, with probes, without waveforms.
    fn default() -> Recipe {
        Recipe { optimise: Optimise::default(), probes: true, trace: false }
    }
}

/// A model that is ready to be loaded.
pub struct Built {
    pub library: PathBuf,
    /// How long it took; None if it is from the cache.
    pub time: Option<Duration>,
}

impl Recipe {
    /// How Verilog for it is written.
    pub fn verilog(self) -> Options {
        Options { cosim: true, probes: self.probes, ..Options::default() }
    }

    /// The library of a design's model, from the cache or built now (some seconds to minutes). The Verilog is as
    /// [`Recipe::verilog`] says.
    pub fn build(self, tool: &Tool, top: &Module, files: &Files) -> Result<Built, BuildError> {
        let started = Instant::now();
        let shim = shim::source(top, self);
        let mut hasher = DefaultHasher::new();
        (&files.sources, &shim, self, &tool.version).hash(&mut hasher);
        let key = format!("{}-{:016x}", top.name, hasher.finish());
        let cache = cache();
        let library = cache.join(format!("{key}.so"));
        if library.exists() {
            return Ok(Built { library, time: None });
        }
        // Built aside and renamed, so that builds at the same time and broken-off ones leave only whole libraries.
        let work = cache.join(format!("{key}.{}", std::process::id()));
        write(&work, |path| std::fs::create_dir_all(path))?;
        let built = self.compile(tool, top, files, &shim, &work);
        let kept = built.and_then(|()| write(&library, |to| std::fs::rename(work.join("model.so"), to)));
        // The folder is of no use any more, and an error here would hide the one above.
        let _ = std::fs::remove_dir_all(&work);
        kept.map(|()| Built { library, time: Some(started.elapsed()) })
    }

    fn compile(self, tool: &Tool, top: &Module, files: &Files, shim: &str, work: &Path) -> Result<(), BuildError> {
        for (name, text) in files.sources.iter().map(|(n, t)| (n.as_str(), t.as_str())).chain([("shim.cpp", shim)]) {
            write(&work.join(name), |path| std::fs::write(path, text))?;
        }
        let flags = self.optimise.flags();
        let mut verilator = tool.command();
        verilator.args(["--cc", "-sv", "-O3", "--noassert", "-Wno-fatal", "-Wno-lint", "-Wno-MULTIDRIVEN"]);
        verilator.args(["--prefix", "Vmodel", "-Mdir", "obj", "--top-module", &top.name]);
        if self.trace {
            verilator.arg("--trace");
        }
        let sources = files.sources.iter().map(|(name, _)| name);
        run("verilator", verilator.args(sources).current_dir(work))?;

        let include = tool.include()?;
        self.make(&include, &["Vmodel__ALL.a"], work)?;
        let runtime = self.runtime(&include, work)?;
        let mut link = Command::new("g++");
        link.args(["-shared", "-fPIC", "-std=c++17", "-o", "model.so", "shim.cpp", "-Iobj"]).args(flags);
        link.arg("-I").arg(&include).arg("-I").arg(include.join("vltstd"));
        link.arg("obj/Vmodel__ALL.a").args(self.runtime_objects().map(|o| runtime.join(o))).arg("-lpthread");
        run("g++", link.current_dir(work))?;
        Ok(())
    }

    /// What every model needs of Verilator itself.
    fn runtime_objects(self) -> impl Iterator<Item = &'static str> {
        let trace = self.trace.then_some("verilated_vcd_c.o");
        ["verilated.o", "verilated_dpi.o", "verilated_threads.o"].into_iter().chain(trace)
    }

    /// The folder in the cache that has the runtime's objects, which take longer to compile than a small model: compiled
    /// now if they are not there, with the makefile of the model in `work`. They are the same for all of [`Optimise`], since
    /// Verilator's makefile has options of its own for them.
    fn runtime(self, include: &Path, work: &Path) -> Result<PathBuf, BuildError> {
        // What is compiled is there, whatever the tool says that it is.
        let config = std::fs::read_to_string(include.join("verilated_config.h")).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        (self.trace, config, include).hash(&mut hasher);
        let folder = cache().join(format!("runtime-{:016x}", hasher.finish()));
        // The linker runs in another folder.
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        // One compiles, and who comes meanwhile waits: many tests begin with a model.
        let lock = std::fs::File::create(cache().join("runtime.lock"));
        let _locked = lock.and_then(|file| file.lock().map(|()| file)); // without one, all compile
        if folder.exists() {
            return Ok(folder);
        }
        let objects: Vec<&str> = self.runtime_objects().collect();
        self.make(include, &objects, work)?;
        let new = work.join("runtime");
        write(&new, |path| std::fs::create_dir(path))?;
        for object in objects {
            write(&new.join(object), |path| std::fs::rename(work.join("obj").join(object), path))?;
        }
        // Another build may have been first: its objects are as good.
        match std::fs::rename(&new, &folder) {
            Err(source) if !folder.exists() => Err(BuildError::Write { path: folder, source }),
            _ => Ok(folder),
        }
    }

    fn make(self, include: &Path, targets: &[&str], work: &Path) -> Result<(), BuildError> {
        let makefile = std::fs::read_to_string(include.join("verilated.mk")).unwrap_or_default();
        let mut make = Command::new("make");
        make.args(["-s", "-j2", "-C", "obj", "-f", "Vmodel.mk"]);
        make.arg(format!("OPT_FAST={}", self.optimise.flags().join(" ")));
        // One file with all of the model, not one a part, most of each of which is Verilator's headers.
        make.args(["VM_PARALLEL_BUILDS=0", "VM_USER_CFLAGS=-fPIC"]);
        run("make", make.args(missing_settings(&makefile)).args(targets).current_dir(work)).map(drop)
    }
}

/// Where models (and tools) are kept: `HEDDLE_CACHE`, else `heddle` in the user's cache folder, else in the folder for
/// temporary files.
pub fn cache() -> PathBuf {
    if let Some(folder) = std::env::var_os("HEDDLE_CACHE") {
        return folder.into();
    }
    let user = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    user.or_else(home).unwrap_or_else(std::env::temp_dir).join("heddle")
}

fn write(path: &Path, action: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), BuildError> {
    action(path).map_err(|source| BuildError::Write { path: path.to_path_buf(), source })
}

/// What the command prints.
pub(super) fn run(tool: &'static str, command: &mut Command) -> Result<String, BuildError> {
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
