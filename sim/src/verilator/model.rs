//! The engine: a loaded model, and what it asks of the host.

use super::build::{BuildError, Recipe};
use super::shim::pins;
use super::tool::Tool;
use crate::directory::Directory;
use crate::engine::{Engine, Failure, RunEnd, Why};
use crate::init;
use heddle_hdl::Bits;
use heddle_hdl::bits::low_mask;
use libloading::Library;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The Verilog of a design in Verilator.
///
/// The model itself is made at the first cycle, so that what is written into memories before it are start values.
pub struct Verilator {
    directory: Arc<Directory>,
    functions: Functions,
    /// Boxed, because the model keeps the address.
    host: Box<RefCell<Host>>,
    callbacks: Box<Callbacks>,
    model: Cell<*mut c_void>,
    inputs: Vec<Bits>,
    /// Widths of the output pins: outputs, then probe pins.
    widths: Vec<u32>,
    /// For each probe of the directory: pin, lowest bit, width. Empty without probes.
    probes: Vec<(usize, u32, u32)>,
    reset: bool,
    cycle: u64,
    trace: Option<CString>,
    build_time: Option<Duration>,
}

/// The functions of the shim.
struct Functions {
    new: unsafe extern "C" fn(*const Callbacks) -> *mut c_void,
    free: unsafe extern "C" fn(*mut c_void),
    trace: unsafe extern "C" fn(*mut c_void, *const c_char, u64),
    reset: unsafe extern "C" fn(*mut c_void, i32),
    settle: unsafe extern "C" fn(*mut c_void),
    host: unsafe extern "C" fn(*mut c_void, *const Callbacks),
    set: unsafe extern "C" fn(*mut c_void, i32, *const u64),
    get: unsafe extern "C" fn(*mut c_void, i32, *mut u64),
    run: unsafe extern "C" fn(*mut c_void, u64, i32, *mut i32) -> u64,
    /// Keeps the functions loaded.
    _library: Library,
}

impl Functions {
    fn load(path: &Path) -> Result<Functions, BuildError> {
        let failed = |source| BuildError::Load { path: path.to_path_buf(), source };
        // SAFETY: the library was compiled from our shim: loading it runs only C++ static initialisers, and each
        // symbol is a function of the type that its field has.
        unsafe {
            let library = Library::new(path).map_err(failed)?;
            macro_rules! symbol {
                ($name:literal) => {
                    *library.get($name).map_err(failed)?
                };
            }
            Ok(Functions {
                new: symbol!(b"model_new\0"),
                free: symbol!(b"model_free\0"),
                trace: symbol!(b"model_trace\0"),
                reset: symbol!(b"model_reset\0"),
                settle: symbol!(b"model_settle\0"),
                host: symbol!(b"model_host\0"),
                set: symbol!(b"model_set\0"),
                get: symbol!(b"model_get\0"),
                run: symbol!(b"model_run\0"),
                _library: library,
            })
        }
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
// the model calls only while one of the functions of `Functions` runs, during which Rust holds no borrow of it.

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
        let top = &directory.top;
        let built = recipe.build(tool, top, files)?;
        let functions = Functions::load(&built.library)?;
        let (inputs, outputs) = pins(top, recipe);
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
        let mut by_path = HashMap::new();
        let ports = if recipe.probes { heddle_gen::cosim_probes(top) } else { Vec::new() };
        for (k, port) in ports.into_iter().enumerate() {
            for part in port.parts {
                by_path.insert(part.path, (top.outputs.len() + k, part.low, part.width));
            }
        }
        Ok(Verilator {
            directory: directory.clone(),
            functions,
            host,
            callbacks,
            model: Cell::new(std::ptr::null_mut()),
            inputs: vec![Bits::ZERO; inputs.len()],
            widths: outputs.iter().map(|p| p.width).collect(),
            probes: directory.probes.iter().filter(|_| recipe.probes).map(|probe| by_path[&probe.path]).collect(),
            reset: false,
            cycle: 0,
            trace: None,
            build_time: built.time,
        })
    }

    /// How long it took to build the model; None if it is from the cache.
    pub fn build_time(&self) -> Option<Duration> {
        self.build_time
    }

    /// Writes a waveform (VCD) from the next cycle on; the recipe must be one with trace. Complete when this is dropped or
    /// started again.
    pub fn trace(&mut self, path: &Path) {
        let path = CString::new(path.to_string_lossy().as_bytes()).unwrap_or_default();
        if !self.model.get().is_null() {
            // SAFETY: the model exists.
            unsafe { (self.functions.trace)(self.model.get(), path.as_ptr(), self.cycle * 10) };
        }
        self.trace = Some(path);
    }

    /// The model, made now if there is none.
    fn model(&self) -> *mut c_void {
        if self.model.get().is_null() {
            // SAFETY: the callbacks live as long as the model, and a new model takes its pins before the first edge.
            unsafe {
                let model = (self.functions.new)(&*self.callbacks);
                self.model.set(model);
                if let Some(path) = &self.trace {
                    (self.functions.trace)(model, path.as_ptr(), self.cycle * 10);
                }
                (self.functions.reset)(model, self.reset.into());
                for (pin, value) in self.inputs.iter().enumerate() {
                    self.set(pin, value);
                }
            }
        }
        self.model.get()
    }

    fn set(&self, pin: usize, value: &Bits) {
        let width = self.directory.inputs[pin].width;
        let limbs: Vec<u64> = (0..width.div_ceil(64) as usize).map(|k| value.limb(k)).collect();
        // SAFETY: the model exists, and the pin has as many limbs as its width needs.
        unsafe { (self.functions.set)(self.model.get(), pin as i32, limbs.as_ptr()) };
    }

    fn get(&self, pin: usize) -> Bits {
        let mut limbs = Vec::new();
        self.get_limbs(pin, &mut limbs);
        Bits::from_limbs(&limbs)
    }

    /// Appends the limbs of a pin.
    fn get_limbs(&self, pin: usize, limbs: &mut Vec<u64>) {
        let (first, width) = (limbs.len(), self.widths[pin]);
        limbs.resize(first + width.div_ceil(64) as usize, 0);
        // SAFETY: as for `set`.
        unsafe { (self.functions.get)(self.model(), pin as i32, limbs[first..].as_mut_ptr()) };
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
        // SAFETY: the model exists, and no borrow of the host is held.
        unsafe { (self.functions.host)(model, &*self.callbacks) };
        let mut host = self.host.borrow_mut();
        host.request = None;
        let limb = |pair: &[u32]| u64::from(pair[0]) | u64::from(pair.get(1).copied().unwrap_or(0)) << 32;
        Bits::from_limbs(&host.answer.chunks(2).map(limb).collect::<Vec<_>>())
    }

    fn check_address(&self, memory: usize, address: u64) {
        let words = 1u64 << self.directory.memory(memory).address_width;
        assert!(address < words, "address {address} is beyond `{}`", self.directory.memories[memory].path);
    }

    fn drop_model(&mut self) {
        let model = self.model.replace(std::ptr::null_mut());
        if !model.is_null() {
            // SAFETY: the model exists and is not used any more.
            unsafe { (self.functions.free)(model) };
        }
    }
}

impl Drop for Verilator {
    fn drop(&mut self) {
        self.drop_model();
    }
}

impl Engine for Verilator {
    fn directory(&self) -> &Arc<Directory> {
        &self.directory
    }

    fn start(&mut self, seed: u64) {
        self.drop_model();
        self.inputs.fill(Bits::ZERO);
        (self.reset, self.cycle) = (false, 0);
        let mut host = self.host.borrow_mut();
        host.seed = seed;
        host.written.clear();
    }

    fn poke(&mut self, input: usize, value: &Bits) {
        self.inputs[input] = value.truncate(self.directory.inputs[input].width);
        if !self.model.get().is_null() {
            self.set(input, &self.inputs[input]);
        }
    }

    fn poke_u64(&mut self, input: usize, value: u64) {
        self.poke(input, &Bits::from(value));
    }

    fn set_reset(&mut self, on: bool) {
        self.reset = on;
        if !self.model.get().is_null() {
            // SAFETY: the model exists.
            unsafe { (self.functions.reset)(self.model.get(), on.into()) };
        }
    }

    fn settle(&mut self) {
        // SAFETY: the model exists.
        unsafe { (self.functions.settle)(self.model()) };
    }

    fn peek(&self, output: usize) -> Bits {
        self.get(output)
    }

    fn peek_u64(&self, output: usize) -> u64 {
        self.get(output).low_u64()
    }

    /// Panics if the recipe is one without probes.
    fn probe(&self, probe: usize) -> Bits {
        let (pin, low, width) = *self.probes.get(probe).expect("the model was built with probes");
        self.get(pin).extract(low, width)
    }

    fn visible(&self, limbs: &mut Vec<u64>) {
        (0..self.directory.outputs.len()).for_each(|pin| self.get_limbs(pin, limbs));
        let (mut read, mut value) = (None, Vec::new());
        for &(pin, low, width) in &self.probes {
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
        if self.model.get().is_null() {
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
        let mut stopped = 0;
        let pin = stop.map_or(-1, |output| output as i32);
        // SAFETY: the model exists; `stopped` is written before the function returns.
        let cycles = unsafe { (self.functions.run)(self.model(), max_cycles, pin, &mut stopped) };
        self.cycle += cycles;
        RunEnd { cycles, why: if stopped != 0 { Why::Stop } else { Why::Limit } }
    }

    fn cycle(&self) -> u64 {
        self.cycle
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
