//! The boundary to machine code: Cranelift's module or a library out of C, and the call.

use super::layout::LINE;
use super::{Tier, c};
use aligned_vec::{AVec, ConstAlign, avec};
use cranelift_codegen::ir::{self, AbiParam, types};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{Context, isa};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use cranelift_jit::{JITBuilder, JITModule};
use cranelift_module::{Linkage, Module};
use std::path::Path;

/// Compiled code for one purpose: state buffer, most edges to make, tables; returns the edges made.
type Entry = extern "C" fn(*mut u64, u64, *mut u64) -> u64;

/// How Cranelift allocates registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Allocation {
    /// In one pass: code is there in half the time or less.
    Quick,
    /// With backtracking: at 8 and 16 lanes the code is faster by a third; of a very large function it is slower.
    Thorough,
}

/// A compiled function with the memory that its code is in.
pub struct Function {
    /// None if it was loaded, and while it is dropped.
    module: Option<JITModule>,
    /// What it was loaded from.
    library: Option<libloading::Library>,
    entry: Entry,
    /// Limbs that the state buffer must have.
    state: usize,
    /// What the code keeps for itself from call to call, all 0 at first.
    tables: AVec<u64, ConstAlign<LINE>>,
    /// Size of the code.
    pub code_bytes: usize,
}

impl Function {
    /// Compiles the function whose body `emit` makes. The body has the parameters (pointer to the state, most edges,
    /// pointer to tables), returns one 64-bit value, and may touch `state_bytes` and `table_bytes` bytes from the
    /// pointers on and nothing else. The pointers are aligned to [`LINE`].
    pub fn new(
        allocation: Allocation,
        state_bytes: usize,
        table_bytes: usize,
        emit: impl FnOnce(&mut FunctionBuilder),
    ) -> Function {
        let mut module =
            JITModule::new(JITBuilder::with_isa(host(allocation), cranelift_module::default_libcall_names()));
        let mut context: Context = module.make_context();
        let config = module.target_config();
        build(&mut context.func, config, emit);
        let id = module
            .declare_function("cycle", Linkage::Export, &context.func.signature)
            .expect("the name is declared once");
        module.define_function(id, &mut context).unwrap_or_else(|e| panic!("code generation failed: {e:?}"));
        let code_bytes = context.compiled_code().map_or(0, |code| code.code_buffer().len());
        module.clear_context(&mut context);
        module.finalize_definitions().unwrap_or_else(|e| panic!("code memory: {e}"));
        let code = module.get_finalized_function(id);
        // SAFETY: `code` is the finished function, whose signature above is that of `Entry` in the platform's C calling
        // convention, which is the default of the module. It lives as long as `module`, which is beside it.
        let entry = unsafe { std::mem::transmute::<*const u8, Entry>(code) };
        let (state, tables) = (state_bytes.div_ceil(8), zeros(table_bytes));
        Function { module: Some(module), library: None, entry, state, tables, code_bytes }
    }

    /// Loads what a C compiler made of [`in_c`]'s text, for a state of so many bytes.
    pub fn load(path: &Path, state_bytes: usize) -> Result<Function, libloading::Error> {
        // SAFETY: the library was compiled from our source, which runs nothing when it is loaded, and whose `cycle` has
        // the signature of `Entry`; `table_bytes` is a constant. It stays loaded as long as `library`, which is beside it.
        let (library, entry, table_bytes) = unsafe {
            let library = libloading::Library::new(path)?;
            let entry = *library.get::<Entry>(b"cycle\0")?;
            let table_bytes = **library.get::<*const u64>(b"table_bytes\0")?;
            (library, entry, table_bytes)
        };
        let (state, tables) = (state_bytes.div_ceil(8), zeros(table_bytes as usize));
        Ok(Function { module: None, library: Some(library), entry, state, tables, code_bytes: 0 })
    }

    /// Whose code it is.
    pub fn tier(&self) -> Tier {
        if self.library.is_some() { Tier::Second } else { Tier::First }
    }

    /// Makes up to `most` edges on the state, which is aligned to [`LINE`]; returns how many.
    pub fn call(&mut self, state: &mut [u64], most: u64) -> u64 {
        assert!(state.len() >= self.state, "the state buffer is too small");
        assert!(state.as_ptr().addr().is_multiple_of(LINE), "the state buffer is not aligned");
        // The code touches only what `Function::new` was told, which is within the slice and the tables; it has no other
        // effects.
        (self.entry)(state.as_mut_ptr(), most, self.tables.as_mut_ptr())
    }
}

fn zeros(bytes: usize) -> AVec<u64, ConstAlign<LINE>> {
    avec![[LINE]| 0; bytes.div_ceil(8)]
}

impl Drop for Function {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: the code is called only by `call`, which borrows `self`, so nobody runs it or can run it again.
            unsafe { module.free_memory() };
        }
    }
}

/// Makes the function whose body `emit` makes.
fn build(function: &mut ir::Function, config: isa::TargetFrontendConfig, emit: impl FnOnce(&mut FunctionBuilder)) {
    let signature = &mut function.signature;
    let [pointer, number] = [config.pointer_type(), types::I64].map(AbiParam::new);
    signature.params.extend([pointer, number, pointer]);
    signature.returns.push(AbiParam::new(types::I64));
    let mut context = FunctionBuilderContext::new();
    let mut builder = FunctionBuilder::new(function, &mut context);
    emit(&mut builder);
    builder.seal_all_blocks();
    builder.finalize(config);
}

/// The function whose body `emit` makes, as [`Function::new`] has it, but in C. Memories begin at byte `memories` of
/// the state.
pub fn in_c(memories: usize, table_bytes: usize, emit: impl FnOnce(&mut FunctionBuilder)) -> String {
    let mut function = ir::Function::new();
    build(&mut function, host(Allocation::Quick).frontend_config(), emit);
    c::source(&function, memories, table_bytes)
}

/// The machine that this program runs on.
fn host(allocation: Allocation) -> isa::OwnedTargetIsa {
    let allocator = match allocation {
        Allocation::Quick => "single_pass",
        Allocation::Thorough => "backtracking",
    };
    let verifier = if cfg!(debug_assertions) { "true" } else { "false" };
    let mut flags = settings::builder();
    // Nodes are folded and placed where they are to be (see `lower`): optimising again takes long, and moves loads.
    for (name, value) in [("opt_level", "none"), ("enable_verifier", verifier), ("regalloc_algorithm", allocator)] {
        flags.set(name, value).expect("a setting of Cranelift");
    }
    let builder = cranelift_native::builder().unwrap_or_else(|e| panic!("no code generator for this machine: {e}"));
    builder.finish(settings::Flags::new(flags)).expect("the host's features are valid")
}
