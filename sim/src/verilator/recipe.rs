//! How the model of a design is built.

use heddle_gen::{Files, Options};
use heddle_hdl::netlist::Module;
use heddle_verilated::{BuildError, Library, Optimise, Tool, Verilog};

/// How a model is built.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Recipe {
    /// What the C++ compiler is asked for.
    pub optimise: Optimise,
    /// Probes can be read.
    pub probes: bool,
    /// Can write waveforms; slower.
    pub trace: bool,
    /// Threads that evaluate a model, at least 1.
    pub threads: u32,
}

impl Default for Recipe {
    /// For lock-step: `-O2`, with probes, without waveforms.
    fn default() -> Recipe {
        Recipe { optimise: Optimise::default(), probes: true, trace: false, threads: 1 }
    }
}

impl Recipe {
    /// How Verilog for it is written.
    pub fn verilog(self) -> Options {
        Options { cosim: true, probes: self.probes, ..Options::default() }
    }

    /// The library of a design's model, from the cache or built now (some seconds to minutes). The Verilog is as
    /// [`Recipe::verilog`] says.
    pub(super) fn library(self, tool: &Tool, top: &Module, files: &Files) -> Result<Library, BuildError> {
        // Where threads of the model call, there is one host for all of them.
        let dpi = if self.threads > 1 { DPI.replace("static thread_local", "static") } else { DPI.to_string() };
        let verilog = Verilog::new(&top.name).optimise(self.optimise).waves(self.trace).cpp(&dpi);
        let arguments = ["-sv", "--noassert", "-Wno-MULTIDRIVEN"];
        let mut verilog = arguments.into_iter().fold(verilog, |verilog, argument| verilog.argument(argument));
        if self.threads > 1 {
            verilog = verilog.argument("--threads").argument(&self.threads.to_string());
        }
        let add = |verilog: Verilog, (name, text): &(String, String)| verilog.source(name, text);
        files.sources.iter().fold(verilog, add).library_of(tool)
    }
}

/// The functions that the Verilog imports: each asks Rust.
const DPI: &str = r#"
struct Host {
    void* data;
    int32_t (*open)(void*, const char*);
    uint32_t (*word)(void*, int32_t, int32_t, int32_t);
    int32_t (*request)(void*, int32_t);
    int32_t (*writes)(void*, int32_t);
    void (*report)(void*, int32_t, int32_t, uint32_t);
};

static thread_local const Host* host = nullptr;

extern "C" {
void heddle_host(const Host* h) { host = h; }
int heddle_open(const char* path) { return host->open(host->data, path); }
int heddle_word(int handle, int index, int limb) { return host->word(host->data, handle, index, limb); }
int heddle_request(int handle) { return host->request(host->data, handle); }
int heddle_writes(int handle) { return host->writes(host->data, handle); }
void heddle_report(int handle, int limb, int value) { host->report(host->data, handle, limb, value); }
}
"#;
