//! One model of the Verilog, driven by the names of its ports.

use crate::error::{BuildError, Stopped};
use crate::library::Functions;
use crate::ports::{Direction, Port};
use std::ffi::{CStr, CString, c_void};
use std::path::Path;
use std::rc::Rc;

/// A model of the Verilog.
///
/// Inputs are set; [`Model::eval`] computes what follows from them without a clock edge; outputs are read.
/// [`Model::step`] is a cycle: the clock falls, everything settles, the clock rises. In the waveform, a cycle takes 10
/// units of time.
///
/// Whatever names a port or a memory that is not there panics, and so does a value that does not fit, at the caller's
/// line.
pub struct Model {
    functions: Rc<Functions>,
    ports: Rc<[Port]>,
    /// The name of the top module.
    top: Rc<str>,
    model: *mut c_void,
    cycles: u64,
    has_clock: bool,
}

impl Model {
    pub(crate) fn new(functions: Rc<Functions>, ports: Rc<[Port]>, top: Rc<str>, has_clock: bool) -> Model {
        // SAFETY: the shim's function makes a model, which is freed when this is dropped.
        let model = unsafe { (functions.new)() };
        Model { functions, ports, top, model, cycles: 0, has_clock }
    }

    /// The ports of the top module.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// Sets an input of up to 64 bits; it stays until it is set again, and takes effect with the next `eval` or `step`.
    #[track_caller]
    pub fn set(&mut self, input: &str, value: u64) {
        self.set_wide(input, &[value]);
    }

    /// Sets an input of any width; limbs of 64 bits, the lowest first, those that are not given are 0.
    #[track_caller]
    pub fn set_wide(&mut self, input: &str, value: &[u64]) {
        let port = self.find(input, Some(Direction::Input));
        let width = self.ports[port].width;
        assert!(fits(value, width), "input `{input}` has {width} bits, and {} does not fit", hex(value));
        let mut limbs = vec![0; width.div_ceil(64) as usize];
        limbs.iter_mut().zip(value).for_each(|(limb, &value)| *limb = value);
        self.set_limbs(port, &limbs);
    }

    /// A port of up to 64 bits, as of the last `eval` or `step`. Panics if the port is wider.
    #[track_caller]
    pub fn get(&self, port: &str) -> u64 {
        let number = self.find(port, None);
        let width = self.ports[number].width;
        assert!(width <= 64, "`{port}` has {width} bits: `get_wide` gives them");
        let mut limbs = Vec::new();
        self.get_limbs(number, &mut limbs);
        limbs[0]
    }

    /// A port of any width; limbs of 64 bits, the lowest first.
    #[track_caller]
    pub fn get_wide(&self, port: &str) -> Vec<u64> {
        let mut limbs = Vec::new();
        self.get_limbs(self.find(port, None), &mut limbs);
        limbs
    }

    /// Computes everything from the inputs and the state. Panics if the Verilog stops.
    #[track_caller]
    pub fn eval(&mut self) {
        // SAFETY: the model exists.
        unsafe { (self.functions.eval)(self.model) };
        self.stopped().unwrap_or_else(|stopped| panic!("{stopped}"));
    }

    /// The same, and so many units of time pass in the waveform: for modules without a clock.
    #[track_caller]
    pub fn advance(&mut self, time: u64) {
        // SAFETY: the model exists.
        unsafe { (self.functions.advance)(self.model, time) };
        self.stopped().unwrap_or_else(|stopped| panic!("{stopped}"));
    }

    /// One cycle of the clock. Panics if the Verilog stops.
    #[track_caller]
    pub fn step(&mut self) {
        self.steps(1);
    }

    /// One cycle of the clock, or why the Verilog stopped in it.
    #[track_caller]
    pub fn try_step(&mut self) -> Result<(), Stopped> {
        self.run(1, None).map(drop)
    }

    /// So many cycles with the inputs as they are. Panics if the Verilog stops.
    #[track_caller]
    pub fn steps(&mut self, cycles: u64) {
        self.run(cycles, None).unwrap_or_else(|stopped| panic!("{stopped}"));
    }

    /// Cycles until a port of up to 64 bits is not 0 at an edge, that edge included; their number. Panics after `most`.
    #[track_caller]
    pub fn run_until(&mut self, port: &str, most: u64) -> u64 {
        let number = self.find(port, None);
        assert!(self.ports[number].width <= 64, "`{port}` has more than 64 bits");
        let (cycles, ended) = self.run(most, Some(number)).unwrap_or_else(|stopped| panic!("{stopped}"));
        assert!(ended, "`{port}` stayed 0 for {most} cycles");
        cycles
    }

    /// Cycles with the inputs as they are, until the port of this number (of up to 64 bits) is not 0 at an edge, or
    /// `most`: how many were made, and whether the port ended them. Panics if there is no clock.
    #[track_caller]
    pub fn run(&mut self, most: u64, until: Option<usize>) -> Result<(u64, bool), Stopped> {
        assert!(self.has_clock, "there is no input `clk`: `Verilog::clock` says which one is the clock");
        let mut ended = 0;
        let port = until.map_or(-1, |port| port as i32);
        // SAFETY: the model exists; `ended` is written before the function returns.
        let cycles = unsafe { (self.functions.run)(self.model, most, port, &mut ended) };
        let stopped = self.stopped();
        self.cycles += cycles;
        stopped.map(|()| (cycles, ended != 0))
    }

    /// Cycles of the clock so far.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Whether the Verilog called `$finish`.
    pub fn finished(&self) -> bool {
        // SAFETY: the model exists.
        unsafe { (self.functions.finished)(self.model) != 0 }
    }

    fn stopped(&self) -> Result<(), Stopped> {
        // SAFETY: the model exists; the text stays until the model is used again.
        let message = unsafe {
            let text = (self.functions.stopped)(self.model);
            if text.is_null() {
                return Ok(());
            }
            CStr::from_ptr(text).to_string_lossy().into_owned()
        };
        Err(Stopped { message, cycles: self.cycles })
    }

    /// Writes a waveform (VCD) of everything from here on; the build must be one with
    /// [`Verilog::waves`](crate::Verilog::waves). It is complete when the model is dropped or another one begins.
    pub fn wave(&mut self, path: &Path) -> Result<(), BuildError> {
        let failed = |source| BuildError::Write { path: path.to_path_buf(), source };
        let text = CString::new(path.to_string_lossy().as_bytes()).map_err(|e| failed(e.into()))?;
        // The runtime says only that it could not; this says why.
        std::fs::File::create(path).map_err(failed)?;
        // SAFETY: the model exists, and the text is a C string.
        match unsafe { (self.functions.wave)(self.model, text.as_ptr()) } {
            0 => Err(failed(std::io::Error::other("the model was built without waveforms"))),
            _ => Ok(()),
        }
    }

    /// The word `index` of a memory, or word 0 of a register, that is visible
    /// ([`Verilog::visible`](crate::Verilog::visible)), if it has up to 64 bits. The path goes from the top module
    /// down, without its name: `cache.ways[1].tags`. Words are counted from the lowest index that is declared.
    #[track_caller]
    pub fn memory_read(&self, path: &str, index: u64) -> u64 {
        let word = self.memory_read_wide(path, index);
        assert!(word.len() == 1, "a word of `{path}` has more than 64 bits: `memory_read_wide` gives them");
        word[0]
    }

    /// The same for words of any width: limbs of 64 bits, the lowest first.
    #[track_caller]
    pub fn memory_read_wide(&self, path: &str, index: u64) -> Vec<u64> {
        let memory = self.memory(path, index);
        let mut limbs = vec![0; memory.width.div_ceil(64) as usize];
        // SAFETY: the variable is the model's, the index is inside, and the limbs are as many as a word needs.
        unsafe { (self.functions.word)(memory.variable, index, limbs.as_mut_ptr(), 0) };
        limbs
    }

    /// Writes a word of a memory, or a register, at once; what follows from it is computed by the next `eval` or
    /// `step`.
    #[track_caller]
    pub fn memory_write(&mut self, path: &str, index: u64, value: u64) {
        self.memory_write_wide(path, index, &[value]);
    }

    /// The same for words of any width; limbs that are not given are 0.
    #[track_caller]
    pub fn memory_write_wide(&mut self, path: &str, index: u64, value: &[u64]) {
        let memory = self.memory(path, index);
        let width = memory.width;
        assert!(fits(value, width), "a word of `{path}` has {width} bits, and {} does not fit", hex(value));
        let mut limbs = vec![0; width.div_ceil(64) as usize];
        limbs.iter_mut().zip(value).for_each(|(limb, &value)| *limb = value);
        // SAFETY: as for reads; the value has no bits above the word's width.
        unsafe { (self.functions.word)(memory.variable, index, limbs.as_mut_ptr(), 1) };
    }

    #[track_caller]
    fn memory(&self, path: &str, index: u64) -> Memory {
        let (scope, name) = path.rsplit_once('.').unwrap_or(("", path));
        let top = &self.top;
        let scope = if scope.is_empty() { format!("TOP.{top}") } else { format!("TOP.{top}.{scope}") };
        let [scope, name] = [scope.as_str(), name].map(|text| CString::new(text).unwrap_or_default());
        let mut memory = Memory { variable: std::ptr::null(), words: 0, width: 0 };
        // SAFETY: the model exists, the texts are C strings, and both numbers are written before the function returns.
        memory.variable = unsafe {
            (self.functions.find)(self.model, scope.as_ptr(), name.as_ptr(), &mut memory.words, &mut memory.width)
        };
        assert!(!memory.variable.is_null(), "there is no memory `{path}`, or `Verilog::visible` does not name it");
        assert!(index < memory.words, "word {index} is beyond `{path}`, which has {}", memory.words);
        memory
    }

    /// The number of a port. Panics with all names if there is none.
    #[track_caller]
    fn find(&self, name: &str, direction: Option<Direction>) -> usize {
        let among = |port: &Port| direction.is_none_or(|direction| port.direction == direction);
        let found = self.ports.iter().position(|port| port.name == name && among(port));
        found.unwrap_or_else(|| {
            let there: Vec<&str> = self.ports.iter().filter(|p| among(p)).map(|p| p.name.as_str()).collect();
            let what = if direction.is_some() { "input" } else { "port" };
            panic!("there is no {what} `{name}`; there is {}", there.join(", "))
        })
    }

    /// Sets an input by its number in [`Model::ports`]: as many limbs as its width needs, and no bits above it. Panics
    /// if there is another number of limbs; an output stays as it is.
    pub fn set_limbs(&mut self, port: usize, limbs: &[u64]) {
        assert_eq!(limbs.len() as u32, self.ports[port].width.div_ceil(64), "limbs of `{}`", self.ports[port].name);
        // SAFETY: the model exists, and the port has as many limbs as its width needs.
        unsafe { (self.functions.set)(self.model, port as i32, limbs.as_ptr()) };
    }

    /// Appends the limbs of a port, by its number in [`Model::ports`]: as many as its width needs, the lowest first.
    pub fn get_limbs(&self, port: usize, limbs: &mut Vec<u64>) {
        let first = limbs.len();
        limbs.resize(first + self.ports[port].width.div_ceil(64) as usize, 0);
        // SAFETY: as for `set_limbs`.
        unsafe { (self.functions.get)(self.model, port as i32, limbs[first..].as_mut_ptr()) };
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        // SAFETY: the model exists and is not used any more.
        unsafe { (self.functions.free)(self.model) };
    }
}

/// A memory of the model.
struct Memory {
    variable: *const c_void,
    words: u64,
    /// Of a word, in bits.
    width: u32,
}

/// Whether no bit of the value is above the width.
fn fits(value: &[u64], width: u32) -> bool {
    value.iter().enumerate().all(|(k, &limb)| {
        let left = width.saturating_sub(64 * k as u32);
        left >= 64 || limb >> left == 0
    })
}

fn hex(value: &[u64]) -> String {
    let digits: String = value.iter().rev().map(|limb| format!("{limb:016x}")).collect();
    let digits = digits.trim_start_matches('0');
    format!("0x{}", if digits.is_empty() { "0" } else { digits })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_fits_that_has_no_bit_above_the_width() {
        assert!(fits(&[0xf], 4) && !fits(&[0x10], 4));
        assert!(fits(&[u64::MAX], 64) && fits(&[u64::MAX, 0], 64) && !fits(&[0, 1], 64));
        assert!(fits(&[u64::MAX, 7], 67) && !fits(&[0, 8], 67));
        assert_eq!(hex(&[0x1f, 2]), "0x2000000000000001f");
        assert_eq!(hex(&[0]), "0x0");
    }
}
