//! What buffers should hold, by a function of the program: one thread of the instruction-set simulator runs it where
//! `main` would be, in a memory of its own with the same arguments and buffers.

use std::sync::atomic::Ordering;

use heddle_simt::Shape;

use super::driver::{Driver, DriverError};
use crate::iss::Iss;
use crate::kernels::{Device, DeviceError, KernelError};
use crate::machine::MachineError;
use crate::program::Program;

/// Instructions that it may take: seconds, but in tests.
const MOST: u64 = if cfg!(test) { 1 << 12 } else { 1 << 28 };

/// Instructions between looks at whether it should end.
const POLL: u64 = 1 << 16;

/// The machine after the function has returned.
pub fn run(driver: &Driver, function: &str, device: &dyn Device, seed: u64) -> Result<Iss, KernelError> {
    let program = device.program();
    let symbol = |name: &str| {
        let symbol = program.symbol(name).ok_or_else(|| KernelError::NoSymbol { name: name.into() });
        symbol.map(|symbol| symbol.address)
    };
    let (main, function_at) = (symbol("main")?, symbol(function)?);
    let wrong = |why: String| DriverError::Reference { name: function.into(), why };
    let mut iss = Iss::new(program, &alone(device.shape())).map_err(|error| wrong(error.to_string()))?;
    driver.fill(&mut iss, seed)?;
    let mut begun = false;
    for step in 0..MOST {
        if step % POLL == 0 && driver.interrupted.load(Ordering::Relaxed) {
            return Err(DeviceError::from(MachineError::Interrupted).into());
        }
        // Start-up code calls `main`; the function may, too.
        if !begun && iss.hart(0).pc() == main {
            begun = true;
            iss.hart_mut(0).set_pc(function_at);
        }
        let step = iss.step(0).map_err(|fault| wrong(format!("{}{}", fault.cause, at(program, fault.pc))))?;
        if step.exit.is_some() {
            return Ok(iss);
        }
    }
    Err(wrong(format!("not at its end after {MOST} instructions{}", at(program, iss.hart(0).pc()))).into())
}

/// The core's memory with one thread, which has the stacks of all.
fn alone(shape: &Shape) -> Shape {
    let stack = (u64::from(shape.stack) * u64::from(shape.threads())).min(1 << 20) as u32;
    Shape {
        memory: shape.memory,
        program: shape.program,
        stack,
        scratchpad: shape.scratchpad,
        multiply: shape.multiply,
        atomics: shape.atomics,
        reservations: shape.reservations,
        warp_primitives: shape.warp_primitives,
        barriers: shape.barriers,
        counters: shape.counters,
        ..Shape::new(1, 1)
    }
}

fn at(program: &Program, pc: u32) -> String {
    format!(" at {pc:#010x}{}", program.named(pc))
}
