//! A build that is loaded: the functions of its shim.

use crate::error::BuildError;
use crate::model::Model;
use crate::ports::{Direction, Port};
use std::ffi::{CStr, c_char, c_void};
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

/// A build of some Verilog, loaded. Models of it do not share state.
pub struct Library {
    functions: Rc<Functions>,
    ports: Rc<[Port]>,
    /// The name of the top module.
    top: Rc<str>,
    has_clock: bool,
    time: Option<Duration>,
}

/// The functions of the shim. The first argument is the model, but for `new` and `word`.
pub(crate) struct Functions {
    pub new: unsafe extern "C" fn() -> *mut c_void,
    pub free: unsafe extern "C" fn(*mut c_void),
    pub wave: unsafe extern "C" fn(*mut c_void, *const c_char) -> i32,
    pub eval: unsafe extern "C" fn(*mut c_void),
    pub advance: unsafe extern "C" fn(*mut c_void, u64),
    pub finished: unsafe extern "C" fn(*mut c_void) -> i32,
    pub stopped: unsafe extern "C" fn(*mut c_void) -> *const c_char,
    pub set: unsafe extern "C" fn(*mut c_void, i32, *const u64),
    pub get: unsafe extern "C" fn(*mut c_void, i32, *mut u64),
    pub run: unsafe extern "C" fn(*mut c_void, u64, i32, *mut i32) -> u64,
    pub find: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char, *mut u64, *mut u32) -> *const c_void,
    pub word: unsafe extern "C" fn(*const c_void, u64, *mut u64, i32),
    /// Keeps the functions loaded.
    library: libloading::Library,
}

impl Library {
    /// Loads a library that was built from a shim of this crate; `time` is what building took.
    pub(crate) fn load(path: &Path, top: &str, clock: &str, time: Option<Duration>) -> Result<Library, BuildError> {
        let failed = |source| BuildError::Load { path: path.to_path_buf(), source };
        // SAFETY: the library was compiled from our shim: loading it runs only C++ static initialisers, and each symbol
        // is what its field says, or, for the ports, a C string that stays.
        unsafe {
            let library = libloading::Library::new(path).map_err(failed)?;
            macro_rules! symbol {
                ($name:literal) => {
                    *library.get($name).map_err(failed)?
                };
            }
            let list: *const c_char = symbol!(b"model_ports\0");
            let ports: Rc<[Port]> = CStr::from_ptr(list).to_string_lossy().lines().filter_map(listed).collect();
            let has_clock = ports.iter().any(|port| port.name == clock);
            let functions = Functions {
                new: symbol!(b"model_new\0"),
                free: symbol!(b"model_free\0"),
                wave: symbol!(b"model_wave\0"),
                eval: symbol!(b"model_eval\0"),
                advance: symbol!(b"model_advance\0"),
                finished: symbol!(b"model_finished\0"),
                stopped: symbol!(b"model_stopped\0"),
                set: symbol!(b"model_set\0"),
                get: symbol!(b"model_get\0"),
                run: symbol!(b"model_run\0"),
                find: symbol!(b"model_find\0"),
                word: symbol!(b"model_word\0"),
                library,
            };
            Ok(Library { functions: Rc::new(functions), ports, top: top.into(), has_clock, time })
        }
    }

    /// A model with all inputs 0, at time 0; what the Verilog does initially is done.
    pub fn model(&self) -> Model {
        Model::new(self.functions.clone(), self.ports.clone(), self.top.clone(), self.has_clock)
    }

    /// The ports of the top module. Their places in this list are their numbers in [`Model::set_limbs`] and what goes
    /// with it.
    pub fn ports(&self) -> &[Port] {
        &self.ports
    }

    /// How long the build took; None if it is from the cache.
    pub fn build_time(&self) -> Option<Duration> {
        self.time
    }

    /// A function of the C++ that was added to the build ([`Verilog::cpp`](crate::Verilog::cpp)); None if it has no
    /// such function.
    ///
    /// # Safety
    ///
    /// `F` must be a function pointer of the type that the C++ says, and must not be called after this library and all
    /// its models are dropped.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Option<F> {
        // SAFETY: the caller's.
        unsafe { self.functions.library.get::<F>(name.as_bytes()).ok().map(|symbol| *symbol) }
    }
}

/// A port of the shim's list: a letter, the width, the name.
fn listed(line: &str) -> Option<Port> {
    let mut parts = line.splitn(3, ' ');
    let direction = if parts.next()? == "i" { Direction::Input } else { Direction::Output };
    let width = parts.next()?.parse().ok()?;
    Some(Port { name: parts.next()?.to_string(), direction, width, member: String::new() })
}
