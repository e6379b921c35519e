//! A run of a sweep in this process: on a machine that is kept for the next, since it may take longer to build than a
//! program to run.

use super::key;
use crate::interrupt::Interrupt;
use crate::run::Run;
use crate::study::runs::Poll;
use crate::target::Target;
use anyhow::{Result, anyhow};
use heddle_hdl::netlist::Module;
use heddle_simt::Shape;
use heddle_testbench::machine::{Machine, MachineOptions};
use serde_json::Value as Json;
use std::sync::Arc;

/// A command line of `heddle run`, its program loaded.
pub struct Ready {
    run: Run,
    target: Target,
    pub shape: Shape,
}

/// Why a combination cannot run.
pub enum Refusal {
    /// No file or kernel is so.
    Wrong(anyhow::Error),
    /// No core is so, or the program does not suit it.
    Refused(anyhow::Error),
}

/// A machine, and what it is one of.
pub struct Held {
    batch: usize,
    machine: Machine,
}

impl Ready {
    pub fn new(run: Run) -> Result<Ready, Refusal> {
        let target = run.program().map_err(Refusal::Wrong)?;
        let (target, shape) = run.on_core(target).map_err(Refusal::Refused)?;
        match target.kernel.and_then(|kernel| kernel.lacks(&shape)) {
            Some(need) => Err(Refusal::Refused(anyhow!("{} needs {need}, which the core does not have", target.name))),
            None => Ok(Ready { run, target, shape }),
        }
    }

    /// Its reference ends at Ctrl-C.
    pub fn end_at(&mut self, interrupt: &Interrupt) {
        self.target.end_at(interrupt);
    }

    /// Runs of the same machine have the same.
    pub fn machine(&self) -> String {
        let MachineOptions { engine, checks, monitors, .. } = self.run.options();
        format!("{} {engine:?} {checks:?} {}", self.shape.options(), monitors.len())
    }

    /// The hash of the program, and who drives it.
    pub fn program(&self) -> String {
        let described = self.target.described.as_ref().map_or("", |described| described.driver.fingerprint());
        let driver = self.target.kernel.map_or(described, |kernel| kernel.name);
        format!("{driver} {}", key::program(&self.target.program))
    }

    /// Runs it with the inputs and start values of a seed: the report, and why it is not good. An error is none of the
    /// run's.
    pub fn run(
        &self,
        batch: usize,
        design: &Arc<Module>,
        held: &mut Option<Held>,
        seed: u32,
        interrupt: &Interrupt,
    ) -> Result<(Json, Option<String>)> {
        let options = MachineOptions { seed: seed.into(), ..self.run.options() };
        let program = self.target.program.clone();
        let mut machine = match held.take().filter(|held| held.batch == batch) {
            Some(Held { mut machine, .. }) => {
                machine.set_seed(options.seed);
                machine.set_max_cycles(options.max_cycles);
                machine.load(program)?;
                machine
            }
            None => {
                let mut machine = Machine::with_design(&self.shape, design, program, &options)?;
                machine.watch(Box::new(Poll(interrupt.clone())));
                machine
            }
        };
        let (mut report, result) = self.run.measure(&mut machine, &self.target, options.seed);
        let result = match result {
            Ok(output) => {
                report.checked = output.checked;
                self.run.shown(&mut machine).map(|variables| report.variables = variables)
            }
            Err(error) => Err(error),
        };
        // One that failed is not used again.
        let error = match result {
            Ok(()) => {
                *held = Some(Held { batch, machine });
                None
            }
            Err(error) if report.interrupted => return Err(error),
            Err(error) => Some(format!("{error:#}")),
        };
        (report.ok, report.error) = (error.is_none(), error.clone());
        Ok((serde_json::to_value(report)?, error))
    }
}
