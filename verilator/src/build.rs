//! Builds models: Verilog and shim through Verilator, make and g++ into a library in the cache.

use crate::error::BuildError;
use crate::library::Library;
use crate::model::Model;
use crate::ports;
use crate::shim;
use crate::tool::{Tool, missing_settings, run};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::{Component, Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

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

    /// As the compiler has it, for reports.
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

    /// What the code is only for: of machines that differ, the compiler's macros do.
    fn machine(self) -> Option<Vec<u8>> {
        let mut macros = Command::new("g++");
        macros.args(self.flags()).args(["-dM", "-E", "-x", "c++", "/dev/null"]);
        (self == Optimise::O3Native).then(|| macros.output().map(|output| output.stdout).unwrap_or_default())
    }
}

/// Some Verilog, and how a model of it is built.
#[derive(Clone, Debug)]
pub struct Verilog {
    top: String,
    clock: String,
    files: Vec<PathBuf>,
    /// Names and texts; those of `files` follow when it is built.
    sources: Vec<(String, String)>,
    visible: Vec<(String, String)>,
    arguments: Vec<String>,
    cpp: String,
    optimise: Optimise,
    waves: bool,
}

impl Verilog {
    /// The Verilog whose top module is `top`, without any source yet; `-O2`, without waveforms, and the clock is the
    /// input `clk`, if there is one.
    pub fn new(top: &str) -> Verilog {
        Verilog {
            top: top.to_string(),
            clock: "clk".to_string(),
            files: Vec::new(),
            sources: Vec::new(),
            visible: Vec::new(),
            arguments: Vec::new(),
            cpp: String::new(),
            optimise: Optimise::default(),
            waves: false,
        }
    }

    /// Adds a file, which is read when the model is built. One whose name does not end in `.v` or `.sv` is only put
    /// beside the others, for them to include.
    pub fn file(mut self, path: impl Into<PathBuf>) -> Verilog {
        self.files.push(path.into());
        self
    }

    /// Adds a source by its text, under the name of a file.
    pub fn source(mut self, name: &str, text: &str) -> Verilog {
        self.sources.push((name.to_string(), text.to_string()));
        self
    }

    /// Says which input is the clock of [`Model::step`].
    pub fn clock(mut self, input: &str) -> Verilog {
        self.clock = input.to_string();
        self
    }

    /// Gives a parameter of the top module a value, as Verilog writes it: `16`, `8'hff`, `"text"` with its quotes.
    pub fn parameter(self, name: &str, value: impl std::fmt::Display) -> Verilog {
        self.argument(&format!("-G{name}={value}"))
    }

    /// Makes a memory or a register of every instance of a module one that [`Model::memory_read`] and
    /// [`Model::memory_write`] reach. It costs speed, as Verilator keeps it as it is.
    pub fn visible(mut self, module: &str, variable: &str) -> Verilog {
        self.visible.push((module.to_string(), variable.to_string()));
        self
    }

    /// An argument for Verilator, such as `-DSIZE=4`, `--no-timing` or `--noassert`.
    pub fn argument(mut self, argument: &str) -> Verilog {
        self.arguments.push(argument.to_string());
        self
    }

    /// What the C++ compiler is asked for.
    pub fn optimise(mut self, optimise: Optimise) -> Verilog {
        self.optimise = optimise;
        self
    }

    /// Whether models can write waveforms ([`Model::wave`]), which makes them slower.
    pub fn waves(mut self, on: bool) -> Verilog {
        self.waves = on;
        self
    }

    /// Adds C++ to the library: functions that the Verilog imports by DPI. [`Library::function`] finds them.
    pub fn cpp(mut self, text: &str) -> Verilog {
        self.cpp.push_str(text);
        self
    }

    /// A model, from the cache or built now, with the [selected](Tool::selected) Verilator.
    pub fn model(self) -> Result<Model, BuildError> {
        Ok(self.library()?.model())
    }

    /// What makes several models, from the cache or built now, with the [selected](Tool::selected) Verilator.
    pub fn library(self) -> Result<Library, BuildError> {
        self.library_of(&Tool::selected()?)
    }

    /// The same with a Verilator of one's choice. A build takes seconds to minutes.
    pub fn library_of(mut self, tool: &Tool) -> Result<Library, BuildError> {
        let started = Instant::now();
        for path in std::mem::take(&mut self.files) {
            let text =
                std::fs::read_to_string(&path).map_err(|source| BuildError::Read { path: path.clone(), source })?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.sources.push((name, text));
        }
        self.check_names()?;
        let mut hasher = DefaultHasher::new();
        (&self.sources, &self.visible, &self.arguments, &self.cpp, &self.clock).hash(&mut hasher);
        (&self.top, self.optimise, self.waves, shim::TEMPLATE, &tool.version).hash(&mut hasher);
        self.optimise.machine().hash(&mut hasher);
        let key = format!("{}-{:016x}", self.top, hasher.finish());
        let cache = cache();
        let library = cache.join(format!("{key}.so"));
        if library.exists() {
            return Library::load(&library, &self.top, &self.clock, None);
        }
        // Built aside and renamed, so that builds at the same time and broken-off ones leave only whole libraries.
        static BUILDS: AtomicU32 = AtomicU32::new(0);
        let number = BUILDS.fetch_add(1, Ordering::Relaxed);
        let work = cache.join(format!("{key}.{}.{number}", std::process::id()));
        write(&work, |path| std::fs::create_dir_all(path))?;
        let built = self.compile(tool, &work);
        let kept = built.and_then(|()| write(&library, |to| std::fs::rename(work.join("model.so"), to)));
        // The folder is of no use any more, and an error here would hide the one above.
        let _ = std::fs::remove_dir_all(&work);
        kept.and_then(|()| Library::load(&library, &self.top, &self.clock, Some(started.elapsed())))
    }

    /// Sources lie side by side under their names.
    fn check_names(&self) -> Result<(), BuildError> {
        if self.sources.is_empty() {
            return Err(BuildError::Name(format!("`{}` has no source: `file` or `source` adds one", self.top)));
        }
        for (k, (name, _)) in self.sources.iter().enumerate() {
            let mut parts = Path::new(name).components();
            if !matches!((parts.next(), parts.next()), (Some(Component::Normal(_)), None)) {
                return Err(BuildError::Name(format!("a source is called `{name}`, which is no name of a file")));
            }
            if self.sources[..k].iter().any(|(other, _)| other == name) {
                return Err(BuildError::Name(format!("two sources are called `{name}`")));
            }
        }
        Ok(())
    }

    fn compile(&self, tool: &Tool, work: &Path) -> Result<(), BuildError> {
        let put = |name: &str, text: &str| write(&work.join(name), |path| std::fs::write(path, text));
        self.sources.iter().try_for_each(|(name, text)| put(name, text))?;
        let flags = self.optimise.flags();
        let mut verilator = tool.command();
        verilator.args(["--cc", "-O3", "-Wno-fatal", "-Wno-lint"]).args(&self.arguments);
        verilator.args(["--prefix", "Vmodel", "-Mdir", "obj", "--top-module", &self.top]);
        if self.waves {
            verilator.arg("--trace");
        }
        if !self.visible.is_empty() {
            let lines = self.visible.iter().map(|(m, v)| format!("public_flat_rw -module \"{m}\" -var \"{v}\"\n"));
            put("visible.vlt", &format!("`verilator_config\n{}", lines.collect::<String>()))?;
            verilator.arg("visible.vlt");
        }
        let is_source = |name: &&String| name.ends_with(".v") || name.ends_with(".sv");
        verilator.args(self.sources.iter().map(|(name, _)| name).filter(is_source));
        run("verilator", verilator.current_dir(work)).map_err(first_message)?;

        let header = work.join("obj/Vmodel.h");
        let header = std::fs::read_to_string(&header).map_err(|source| BuildError::Read { path: header, source })?;
        let ports = ports::of_header(&header)?;
        let clock = ports.iter().find(|port| port.name == self.clock && port.direction == ports::Direction::Input);
        if clock.is_none() && self.clock != "clk" {
            return Err(BuildError::Port(format!("`{}` has no input `{}` for the clock", self.top, self.clock)));
        }
        put("shim.cpp", &(shim::source(&ports, clock, self.waves) + &self.cpp))?;

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
    fn runtime_objects(&self) -> impl Iterator<Item = &'static str> {
        let waves = self.waves.then_some("verilated_vcd_c.o");
        ["verilated.o", "verilated_dpi.o", "verilated_threads.o"].into_iter().chain(waves)
    }

    /// The folder in the cache that has the runtime's objects, which take longer to compile than a small model:
    /// compiled now if they are not there, with the makefile of the model in `work`. They are the same for all of
    /// [`Optimise`], since Verilator's makefile has options of its own for them.
    fn runtime(&self, include: &Path, work: &Path) -> Result<PathBuf, BuildError> {
        // What is compiled is there, whatever the tool says that it is.
        let config = std::fs::read_to_string(include.join("verilated_config.h")).unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        (self.waves, config, include, FLAGS).hash(&mut hasher);
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

    fn make(&self, include: &Path, targets: &[&str], work: &Path) -> Result<(), BuildError> {
        let makefile = std::fs::read_to_string(include.join("verilated.mk")).unwrap_or_default();
        let mut make = Command::new("make");
        make.args(["-s", "-j2", "-C", "obj", "-f", "Vmodel.mk"]);
        make.arg(format!("OPT_FAST={}", self.optimise.flags().join(" ")));
        // One file with all of the model, not one a part, most of each of which is Verilator's headers.
        make.args(["VM_PARALLEL_BUILDS=0", FLAGS]);
        run("make", make.args(missing_settings(&makefile)).args(targets).current_dir(work)).map(drop)
    }
}

/// For the runtime as well as for models: both go into a library, and the shim says what stopping does.
const FLAGS: &str = "VM_USER_CFLAGS=-fPIC -DVL_USER_FINISH -DVL_USER_STOP -DVL_USER_FATAL";

/// What Verilator says first: the first line that is an error, without the word.
fn first_message(error: BuildError) -> BuildError {
    let BuildError::Failed { output, .. } = error else { return error };
    let mut lines = output.lines().filter_map(|line| Some(line.strip_prefix("%Error")?.split_once(": ")?.1));
    let first = lines.next().map_or_else(
        || format!("verilator failed: {}", output.lines().next().unwrap_or("it says nothing")),
        str::to_string,
    );
    BuildError::Verilog { first, output }
}

/// Where models (and tools) are kept: `HEDDLE_CACHE`, else `heddle` in the user's cache folder, else in the folder for
/// temporary files.
pub fn cache() -> PathBuf {
    let named = |variable: &str| std::env::var_os(variable).filter(|value| !value.is_empty()).map(PathBuf::from);
    if let Some(folder) = named("HEDDLE_CACHE") {
        return folder;
    }
    let user = named("XDG_CACHE_HOME");
    let home = || named("HOME").map(|home| home.join(".cache"));
    user.or_else(home).unwrap_or_else(std::env::temp_dir).join("heddle")
}

fn write(path: &Path, action: impl FnOnce(&Path) -> io::Result<()>) -> Result<(), BuildError> {
    action(path).map_err(|source| BuildError::Write { path: path.to_path_buf(), source })
}
