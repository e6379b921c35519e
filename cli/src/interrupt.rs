//! Ctrl-C, or SIGTERM as of `timeout`: the first ends the run after the batch of cycles under way, with its report; the
//! second ends the process at once.

use crate::device_error;
use anyhow::{Context, Error, Result};
use heddle_check::prove::Stopped;
use heddle_testbench::machine::MachineError;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// What a shell expects of a command that Ctrl-C ended.
pub const EXIT: u8 = 128 + SIGINT as u8;

/// Whether Ctrl-C was pressed, or SIGTERM came, which is dealt with as if it were.
#[derive(Clone, Default)]
pub struct Interrupt {
    pressed: Arc<AtomicBool>,
}

impl Interrupt {
    /// From now on, Ctrl-C and SIGTERM are noted.
    pub fn catch() -> Result<Interrupt> {
        let pressed = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM] {
            // Handlers run in this order: one that finds the flag set does what happens without handlers.
            flag::register_conditional_default(signal, pressed.clone())
                .and_then(|_| flag::register(signal, pressed.clone()))
                .context("cannot handle Ctrl-C")?;
        }
        Ok(Interrupt { pressed })
    }

    /// Break if it was.
    pub fn poll(&self) -> ControlFlow<()> {
        if self.pressed.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// What is set then.
    pub fn flag(&self) -> Arc<AtomicBool> {
        self.pressed.clone()
    }

    /// The result of a step, or an interruption if there was one, whatever the step says: Ctrl-C at a terminal ends the
    /// step's children too.
    pub fn or<T>(&self, result: Result<T>) -> Result<T> {
        if self.poll().is_break() { Err(MachineError::Interrupted.into()) } else { result }
    }

    /// Nobody asks any more: from now on, Ctrl-C ends the process at once.
    pub fn release(&self) {
        self.pressed.store(true, Ordering::Relaxed);
    }
}

/// Whether Ctrl-C is why a run failed.
pub fn is_interruption(error: &Error) -> bool {
    matches!(device_error(error), Some(MachineError::Interrupted))
        || matches!(error.downcast_ref(), Some(Stopped::Interrupted))
}

/// The exit code of a command that failed.
pub fn exit_code(error: &Error) -> ExitCode {
    if is_interruption(error) { ExitCode::from(EXIT) } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_testbench::kernels::{DeviceError, KernelError};

    #[test]
    fn only_an_interruption_is_one() {
        let failed = |why: MachineError| Error::new(KernelError::from(DeviceError::from(why))).context("gcd");
        assert!(is_interruption(&failed(MachineError::Interrupted)));
        assert!(is_interruption(&MachineError::Interrupted.into()));
        assert!(is_interruption(&Stopped::Interrupted.into()));
        assert!(!is_interruption(&failed(MachineError::ExitCodes { first: Vec::new(), count: 1 })));
        assert!(!is_interruption(&anyhow::anyhow!("interrupted")));
    }
}
