//! The engine: a model of the Verilog, and what it asks of the host.

use super::recipe::Recipe;
use crate::directory::Directory;
use crate::engine::{Engine, Failure, RunEnd, Why};
use crate::init;
use heddle_hdl::Bits;
use heddle_hdl::bits::low_mask;
use heddle_verilated::{BuildError, Library, Model, Tool};
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, c_char};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The Verilog of a design in Verilator.
///
/// The model itself is made at the first cycle, so that what is written into memories before it are start values.
pub struct Verilator {
    directory: Arc<Directory>,
    /// Read and written through `&self`: an access to a memory is some evaluations.
    model: OnceCell<RefCell<Model>>,
    library: Library,
    set_host: SetHost,
    /// Boxed, because the Verilog keeps the address.
    host: Box<RefCell<Host>>,
    callbacks: Box<Callbacks>,
    inputs: Vec<Bits>,
    pins: Pins,
    reset: bool,
    trace: Option<PathBuf>,
    /// Whether its models have some.
    threads: bool,
}

/// Who answers the Verilog in this thread: a function of [`super::recipe::DPI`].
type SetHost = unsafe extern "C" fn(*const Callbacks);

/// Numbers of the model's ports.
struct Pins {
    reset: usize,
    host: usize,
    inputs: Vec<usize>,
    /// The design's outputs; then those of probes, if the recipe has them.
    outputs: Vec<usize>,
    /// For each probe of the directory: its place in `outputs`, lowest bit, width. Empty without probes.
    probes: Vec<(usize, u32, u32)>,
}

impl Pins {
    fn of(library: &Library, directory: &Directory, recipe: Recipe) -> Result<Pins, BuildError> {
        let find = |name: &str| {
            let found = library.ports().iter().position(|port| port.name == name);
            found.ok_or_else(|| BuildError::Port(format!("the Verilog has no port `{name}`")))
        };
        let top = &directory.top;
        let probed = if recipe.probes { heddle_gen::cosim_probes(top) } else { Vec::new() };
        let outputs = top.outputs.iter().map(|port| &port.name).chain(probed.iter().map(|port| &port.name));
        let mut by_path = HashMap::new();
        for (k, port) in probed.iter().enumerate() {
            for part in &port.parts {
                by_path.insert(&part.path, (top.outputs.len() + k, part.low, part.width));
            }
        }
        let probes = directory.probes.iter().filter(|_| recipe.probes).map(|probe| by_path[&probe.path]).collect();
        Ok(Pins {
            reset: find("rst")?,
            host: find("host")?,
            inputs: top.inputs.iter().map(|port| find(&port.name)).collect::<Result<_, _>>()?,
            outputs: outputs.map(|name| find(name)).collect::<Result<_, _>>()?,
            probes,
        })
    }
}

/// What the model's DPI functions see.
struct Host {
    seed: u64,
    directory: Arc<Directory>,
    /// What has a handle, by handle; and back, by path.
    places: Vec<Place>,
    handles: HashMap<String, i32>,
    /// Memory words that were written before the first cycle, by path and address.
    written: HashMap<String, HashMap<u64, Bits>>,
    /// The memory access that the model performs at the rising edge of `host`.
    request: Option<Request>,
    answer: Vec<u32>,
}

/// State that has a start value.
struct Place {
    path: String,
    hash: u64,
    /// Its number in the directory, of a memory.
    memory: Option<usize>,
}

struct Request {
    path: String,
    address: u64,
    write: Option<Bits>,
}

/// `struct Host` of the shim.
#[repr(C)]
struct Callbacks {
    data: *const RefCell<Host>,
    open: extern "C" fn(*const RefCell<Host>, *const c_char) -> i32,
    word: extern "C" fn(*const RefCell<Host>, i32, i32, i32) -> u32,
    request: extern "C" fn(*const RefCell<Host>, i32) -> i32,
    writes: extern "C" fn(*const RefCell<Host>, i32) -> i32,
    report: extern "C" fn(*const RefCell<Host>, i32, i32, u32),
}

// SAFETY, for the five functions below: `data` is the address of the boxed host, which lives as long as the model, and
// the model calls only while one of the functions of `Functions` runs, during which Rust holds no borrow of it. Where a
// model has threads, they call one after the other, as Verilator takes no import for safe that is not pure, and the
// thread that runs the function waits for them.

/// A handle for the state at a path as the model names it, such as `heddle.core.collect.lane[3].replica.registers`.
extern "C" fn open(data: *const RefCell<Host>, path: *const c_char) -> i32 {
    // SAFETY: see above; the path is a C string of the model.
    let (mut host, path) = unsafe { ((*data).borrow_mut(), CStr::from_ptr(path)) };
    let path = path.to_string_lossy().replace(".replica.", ".");
    let path = path.strip_prefix("TOP.").unwrap_or(&path);
    let path = path.strip_prefix(&format!("{}.", host.directory.top.name)).unwrap_or(path).to_string();
    if let Some(&handle) = host.handles.get(&path) {
        return handle;
    }
    let handle = host.places.len() as i32;
    let (hash, memory) = (init::path_hash(&path), host.directory.memories.find(&path));
    host.places.push(Place { path: path.clone(), hash, memory });
    host.handles.insert(path, handle);
    handle
}

/// 32 bits of a start value, or (index -1) of the word to write.
extern "C" fn word(data: *const RefCell<Host>, handle: i32, index: i32, limb: i32) -> u32 {
    // SAFETY: see above.
    let host = unsafe { (*data).borrow() };
    let part = |limb64: u64| (limb64 >> (limb % 2 * 32)) as u32;
    let limb64 = limb as usize / 2;
    if index < 0 {
        let value = host.request.as_ref().and_then(|r| r.write.as_ref());
        return part(value.map_or(0, |v| v.limb(limb64)));
    }
    let place = &host.places[handle as usize];
    if let Some(value) = host.written.get(&place.path).and_then(|words| words.get(&(index as u64))) {
        return part(value.limb(limb64));
    }
    match place.memory.and_then(|memory| host.directory.memory(memory).init.as_ref()) {
        Some(words) => part(words.get(index as usize).map_or(0, |word| word.limb(limb64))),
        None => part(init::limb(host.seed, place.hash, index as u64, limb64 as u64)),
    }
}

/// The address to access, if the request is for this memory; else -1.
extern "C" fn request(data: *const RefCell<Host>, handle: i32) -> i32 {
    // SAFETY: see above.
    let host = unsafe { (*data).borrow() };
    match &host.request {
        Some(r) if r.path == host.places[handle as usize].path => r.address as i32,
        _ => -1,
    }
}

extern "C" fn writes(data: *const RefCell<Host>, _: i32) -> i32 {
    // SAFETY: see above.
    let host = unsafe { (*data).borrow() };
    host.request.as_ref().is_some_and(|r| r.write.is_some()) as i32
}

extern "C" fn report(data: *const RefCell<Host>, _: i32, limb: i32, value: u32) {
    // SAFETY: see above.
    let mut host = unsafe { (*data).borrow_mut() };
    let limb = limb as usize;
    let length = host.answer.len().max(limb + 1);
    host.answer.resize(length, 0);
    host.answer[limb] = value;
}

impl Verilator {
    /// The model of a design, from the cache or built now. The directory's top must be a checked design.
    pub fn new(directory: &Arc<Directory>, seed: u64, recipe: Recipe) -> Result<Verilator, BuildError> {
        let files = heddle_gen::verilog(&directory.top, &recipe.verilog());
        Verilator::of_files(directory, seed, recipe, &files)
    }

    /// The same with other Verilog of the form [`Recipe::verilog`], for tests that break it on purpose.
    pub fn of_files(
        directory: &Arc<Directory>,
        seed: u64,
        recipe: Recipe,
        files: &heddle_gen::Files,
    ) -> Result<Verilator, BuildError> {
        Verilator::of_tool(&Tool::selected()?, directory, seed, recipe, files)
    }

    /// The same with a Verilator of one's choice.
    pub fn of_tool(
        tool: &Tool,
        directory: &Arc<Directory>,
        seed: u64,
        recipe: Recipe,
        files: &heddle_gen::Files,
    ) -> Result<Verilator, BuildError> {
        let library = recipe.library(tool, &directory.top, files)?;
        // SAFETY: `DPI` has this function, of this type; the library stays as long as this engine.
        let set_host = unsafe { library.function::<SetHost>("heddle_host") };
        let set_host = set_host.expect("the build has the functions that were added to it");
        let pins = Pins::of(&library, directory, recipe)?;
        let host = Box::new(RefCell::new(Host {
            seed,
            directory: directory.clone(),
            places: Vec::new(),
            handles: HashMap::new(),
            written: HashMap::new(),
            request: None,
            answer: Vec::new(),
        }));
        let callbacks = Box::new(Callbacks { data: &*host, open, word, request, writes, report });
        Ok(Verilator {
            directory: directory.clone(),
            model: OnceCell::new(),
            library,
            set_host,
            host,
            callbacks,
            inputs: vec![Bits::ZERO; directory.inputs.len()],
            pins,
            reset: false,
            trace: None,
            threads: recipe.threads > 1,
        })
    }

    /// How long it took to build the model; None if it is from the cache.
    pub fn build_time(&self) -> Option<Duration> {
        self.library.build_time()
    }

    /// Writes a waveform (VCD) from the next cycle on; the recipe must be one with trace. Complete when this is dropped
    /// or started again.
    ///
    /// # Panics
    /// If the file cannot be written; from the next cycle on at the latest.
    pub fn trace(&mut self, path: &Path) {
        if let Some(model) = self.model.get_mut() {
            begin_wave(model.get_mut(), path);
        }
        self.trace = Some(path.to_path_buf());
    }

    /// The Verilog that runs next in this thread asks the host of this engine: until what is returned is dropped, if
    /// models have threads, which all ask one host.
    fn listen(&self) -> Option<MutexGuard<'static, ()>> {
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let turn = self.threads.then(|| ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner));
        // SAFETY: the function keeps the address, which is used while a model of this engine is evaluated; the
        // callbacks live as long as the engine.
        unsafe { (self.set_host)(&*self.callbacks) };
        turn
    }

    /// The model, made now if there is none.
    fn model(&self) -> &RefCell<Model> {
        self.model.get_or_init(|| {
            let _turn = self.listen();
            let mut model = self.library.model();
            if let Some(path) = &self.trace {
                begin_wave(&mut model, path);
            }
            model.set_limbs(self.pins.reset, &[self.reset.into()]);
            for (pin, value) in self.pins.inputs.iter().zip(&self.inputs) {
                set(&mut model, *pin, value);
            }
            RefCell::new(model)
        })
    }

    fn model_mut(&mut self) -> &mut Model {
        self.model();
        self.model.get_mut().expect("it was made").get_mut()
    }

    fn get(&self, output: usize) -> Bits {
        let mut limbs = Vec::new();
        self.get_limbs(output, &mut limbs);
        Bits::from_limbs(&limbs)
    }

    /// Appends the limbs of an output.
    fn get_limbs(&self, output: usize, limbs: &mut Vec<u64>) {
        self.model().borrow().get_limbs(self.pins.outputs[output], limbs);
    }

    /// One access of a memory of the running model; the word before it.
    fn access(&self, memory: usize, address: u64, write: Option<Bits>) -> Bits {
        let path = self.directory.memories[memory].path.clone();
        let model = self.model();
        {
            let mut host = self.host.borrow_mut();
            host.answer.clear();
            host.request = Some(Request { path, address, write });
        }
        let _turn = self.listen();
        let pin = self.pins.host;
        for on in [1, 0] {
            let mut model = model.borrow_mut();
            model.set_limbs(pin, &[on]);
            model.eval();
        }
        let mut host = self.host.borrow_mut();
        host.request = None;
        let limb = |pair: &[u32]| u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
        Bits::from_limbs(&host.answer.chunks(2).map(limb).collect::<Vec<_>>())
    }

    fn check_address(&self, memory: usize, address: u64) {
        let words = 1u64 << self.directory.memory(memory).address_width;
        assert!(address < words, "address {address} is beyond `{}`", self.directory.memories[memory].path);
    }
}

fn begin_wave(model: &mut Model, path: &Path) {
    model.wave(path).unwrap_or_else(|error| panic!("{error}"));
}

fn set(model: &mut Model, pin: usize, value: &Bits) {
    let width = model.ports()[pin].width;
    let limbs: Vec<u64> = (0..width.div_ceil(64) as usize).map(|k| value.limb(k)).collect();
    model.set_limbs(pin, &limbs);
}

impl Engine for Verilator {
    fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    fn start(&mut self, seed: u64) {
        self.model.take();
        self.inputs.fill(Bits::ZERO);
        self.reset = false;
        let mut host = self.host.borrow_mut();
        host.seed = seed;
        host.written.clear();
    }

    fn poke(&mut self, input: usize, value: &Bits) {
        self.inputs[input] = value.truncate(self.directory.inputs[input].width);
        if let Some(model) = self.model.get_mut() {
            set(model.get_mut(), self.pins.inputs[input], &self.inputs[input]);
        }
    }

    fn poke_u64(&mut self, input: usize, value: u64) {
        self.poke(input, &Bits::from(value));
    }

    fn set_reset(&mut self, on: bool) {
        self.reset = on;
        if let Some(model) = self.model.get_mut() {
            model.get_mut().set_limbs(self.pins.reset, &[on.into()]);
        }
    }

    fn settle(&mut self) {
        self.model_mut().eval();
    }

    fn peek(&self, output: usize) -> Bits {
        self.get(output)
    }

    fn peek_u64(&self, output: usize) -> u64 {
        self.get(output).low_u64()
    }

    /// Panics if the recipe is one without probes.
    fn probe(&self, probe: usize) -> Bits {
        let (pin, low, width) = *self.pins.probes.get(probe).expect("the model was built with probes");
        self.get(pin).extract(low, width)
    }

    fn visible(&self, limbs: &mut Vec<u64>) {
        (0..self.directory.outputs.len()).for_each(|pin| self.get_limbs(pin, limbs));
        let (mut read, mut value) = (None, Vec::new());
        for &(pin, low, width) in &self.pins.probes {
            if read.replace(pin) != Some(pin) {
                value.clear();
                self.get_limbs(pin, &mut value);
            }
            part(&value, low, width, limbs);
        }
    }

    fn show_signals(&mut self) -> bool {
        false
    }

    fn signal(&self, _: usize) -> Option<Bits> {
        None
    }

    fn shows_registers(&self) -> bool {
        false
    }

    /// Panics: registers of the Verilog are seen only in its own waveform.
    fn register(&self, register: usize) -> Bits {
        panic!("register `{}` of the Verilog cannot be read", self.directory.registers[register].path);
    }

    /// Panics, like `register`.
    fn read_register(&self, read_register: usize) -> Bits {
        panic!("register `{}` of the Verilog cannot be read", self.directory.read_registers[read_register].path);
    }

    fn memory_read(&self, memory: usize, address: u64) -> Bits {
        self.check_address(memory, address);
        self.access(memory, address, None)
    }

    fn memory_write(&mut self, memory: usize, address: u64, value: &Bits) {
        self.check_address(memory, address);
        let value = value.truncate(self.directory.memories[memory].width);
        if self.model.get().is_none() {
            let path = self.directory.memories[memory].path.clone();
            self.host.borrow_mut().written.entry(path).or_default().insert(address, value);
        } else {
            self.access(memory, address, Some(value));
        }
    }

    fn step(&mut self) {
        self.run(1, None);
    }

    fn run(&mut self, max_cycles: u64, stop: Option<usize>) -> RunEnd {
        let stop = stop.map(|output| self.pins.outputs[output]);
        let (cycles, ended) = self.model_mut().run(max_cycles, stop).unwrap_or_else(|stopped| panic!("{stopped}"));
        RunEnd { cycles, why: if ended { Why::Stop } else { Why::Limit } }
    }

    fn cycle(&self) -> u64 {
        self.model.get().map_or(0, |model| model.borrow().cycles())
    }

    /// Always empty: see the module's documentation.
    fn failures(&self) -> &[Failure] {
        &[]
    }

    fn cover_hits(&self, _: usize) -> u64 {
        0
    }
}

/// Appends the limbs of bits `low .. low + width`.
fn part(limbs: &[u64], low: u32, width: u32, to: &mut Vec<u64>) {
    let limb = |index: u32| limbs.get(index as usize).copied().unwrap_or(0);
    for done in (0..width).step_by(64) {
        let (index, shift) = ((low + done) / 64, (low + done) % 64);
        let above = if shift == 0 { 0 } else { limb(index + 1) << (64 - shift) };
        to.push((limb(index) >> shift | above) & low_mask((width - done).min(64)));
    }
}

#[cfg(test)]
mod tests {
    use super::part;
    use heddle_hdl::Bits;

    #[test]
    fn a_part_is_what_bits_extract() {
        let limbs = [0x0123_4567_89ab_cdef, !0 << 7, 0x55];
        let value = Bits::from_limbs(&limbs);
        for low in (0..192).step_by(5) {
            for width in 1..=192 - low {
                let mut found = Vec::new();
                part(&limbs, low, width, &mut found);
                assert_eq!(found.len() as u32, width.div_ceil(64));
                assert_eq!(Bits::from_limbs(&found), value.extract(low, width), "{low} {width}");
            }
        }
    }
}
