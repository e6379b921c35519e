//! What a run over a port did, as text and as JSON.

use crate::report::{Variable, counted, results, si};
use bitvec::field::BitField;
use heddle_simt::{Metrics, Shape};
use heddle_testbench::kernels::KernelError;
use heddle_testbench::machine::Summary;
use heddle_testbench::printed::Printed;
use heddle_testbench::remote::BoardError;
use serde::Serialize;
use std::fmt::Write;
use std::path::Path;

/// The core, as its host tells.
#[derive(Clone, PartialEq, Serialize)]
pub struct Core {
    pub lanes: u32,
    pub warps: u32,
    pub divergence: &'static str,
    pub convergence_barriers: u32,
    /// Bytes: of memory, of instruction memory, of a thread's stack, of the scratchpad.
    pub memory: u32,
    pub program: u32,
    pub stack: u32,
    pub scratchpad: u32,
    pub atomics: bool,
    /// `lr.w` and `sc.w`.
    pub reservations: bool,
    /// Votes, shuffles and `sync`.
    pub warp_primitives: bool,
    /// Paths of a warp give way to each other.
    pub fair: bool,
    pub barriers: bool,
    pub multiply: bool,
    /// Those of cycles and instructions, which programs read.
    pub counters: bool,
    /// What the core does is counted, and told.
    pub metrics: bool,
    pub bus: bool,
    /// 0 if it does not know.
    pub clock_khz: u32,
}

impl Core {
    pub fn new(s: &Shape, clock_khz: u32) -> Core {
        Core {
            lanes: s.lanes,
            warps: s.warps,
            divergence: s.divergence.name(),
            convergence_barriers: s.convergence_barriers,
            memory: s.memory,
            program: s.program,
            stack: s.stack,
            scratchpad: s.scratchpad,
            atomics: s.atomics,
            reservations: s.reservations,
            warp_primitives: s.warp_primitives,
            fair: s.fair,
            barriers: s.barriers,
            multiply: s.multiply,
            counters: s.counters,
            metrics: s.metrics == Metrics::Built,
            bus: s.bus_width().is_some(),
            clock_khz,
        }
    }

    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<20} {value}");
        };
        let Core { lanes, warps, divergence, convergence_barriers, memory, program, stack, scratchpad, .. } = self;
        let barriers = match convergence_barriers {
            0 => String::new(),
            n => format!(", {n} convergence barriers"),
        };
        let fair = if self.fair { ", fair" } else { "" };
        line("core", format!("{lanes} lanes × {warps} warps, {divergence}{barriers}{fair}"));
        let place = if self.bus { " on a bus" } else { "" };
        line(
            "bytes",
            format!(
                "memory {memory}{place}, instruction memory {program}, stack of a thread {stack}, scratchpad {scratchpad}"
            ),
        );
        let mut features = vec![
            ("atomics", self.atomics),
            ("barriers", self.barriers),
            ("multiplication", self.multiply),
            ("counters", self.counters),
        ];
        features.extend(self.reservations.then_some(("reservations", true)));
        features.extend(self.warp_primitives.then_some(("warp primitives", true)));
        let (has, lacks): (Vec<_>, Vec<_>) = features.iter().partition(|(_, has)| *has);
        let list = |word: &str, of: &[&(&'static str, bool)]| match of {
            [] => String::new(),
            _ => format!(" {word} {}", of.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ")),
        };
        line("instructions", format!("RV32I{}{}", list("with", &has), list("without", &lacks)));
        line("metrics", if self.metrics { "built" } else { "not built" }.to_string());
        let clock = match self.clock_khz {
            0 => "not told".to_string(),
            khz => format!("{} MHz", f64::from(khz) / 1000.0),
        };
        line("clock", clock);
        text
    }
}

#[derive(Serialize)]
pub struct Report {
    /// It ended, every exit code is 0, and the results are this computer's.
    pub ok: bool,
    pub interrupted: bool,
    /// Why it is not ok.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The kernel's name or the file's.
    pub kernel: String,
    pub port: String,
    pub baud: u32,
    pub core: Core,
    /// Results that were compared and are right.
    pub checked: usize,
    pub launches: u32,
    /// From launch to end, of all launches, by the host's counter.
    pub cycles: u64,
    /// What the core counted, of all launches, if it was built with counters of what it does.
    pub metrics: Option<Summary>,
    /// What stopped the core.
    pub fault: Option<Fault>,
    /// Threads whose exit code is not 0.
    pub failed: Option<Failed>,
    /// Bytes on the line, and requests that had to be sent again.
    pub sent: u64,
    pub received: u64,
    pub retries: u64,
    /// Wall time of all, loading included.
    pub seconds: f64,
    /// What threads printed.
    #[serde(skip_serializing_if = "Printed::is_empty")]
    pub printed: Printed,
    /// Variables asked for with `--show`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<Variable>,
    /// Files that the host description asks for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub saved: Vec<String>,
    /// Who says what results should be, unless this computer computes them.
    #[serde(skip)]
    pub expectation: Option<String>,
}

#[derive(Serialize)]
pub struct Fault {
    pub cause: String,
    pub slot: Option<u32>,
    pub pc: Option<u32>,
    pub symbol: Option<String>,
    pub mask: Option<u64>,
    pub address: Option<u32>,
}

#[derive(Serialize)]
pub struct Failed {
    pub threads: u64,
    /// The first: its warp slot, its lane, its code.
    pub warp: u32,
    pub lane: u32,
    pub code: i32,
}

impl Report {
    pub fn new(kernel: String, port: &Path, baud: u32, core: Core) -> Report {
        Report {
            ok: true,
            interrupted: false,
            error: None,
            kernel,
            port: port.display().to_string(),
            baud,
            core,
            checked: 0,
            launches: 0,
            cycles: 0,
            metrics: None,
            fault: None,
            failed: None,
            sent: 0,
            received: 0,
            retries: 0,
            seconds: 0.0,
            printed: Printed::default(),
            variables: Vec::new(),
            saved: Vec::new(),
            expectation: None,
        }
    }

    /// It is not ok.
    pub fn failed(&mut self, error: &anyhow::Error, interrupted: bool) {
        (self.ok, self.interrupted) = (false, interrupted);
        self.error = Some(format!("{error:#}"));
        let of_device = match error.downcast_ref() {
            Some(KernelError::Device(device)) => device.downcast_ref(),
            _ => error.downcast_ref(),
        };
        match of_device {
            Some(BoardError::Fault { what, pc, symbol, slot, mask, address, .. }) => {
                self.fault = Some(Fault {
                    cause: what.to_string(),
                    slot: Some(*slot),
                    pc: Some(*pc),
                    symbol: symbol.clone(),
                    mask: Some(mask.load()),
                    address: *address,
                });
            }
            Some(BoardError::Bus { address }) => {
                let cause = "bus error".to_string();
                let address = Some(*address);
                self.fault = Some(Fault { cause, slot: None, pc: None, symbol: None, mask: None, address });
            }
            Some(BoardError::ExitCode { warp, lane, code, count, .. }) => {
                self.failed = Some(Failed { threads: *count, warp: *warp, lane: *lane, code: *code });
            }
            _ => {}
        }
    }

    /// A few lines for people, of a run that is ok.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<20} {value}");
        };
        let verdict = match self.checked {
            0 => "ended, all exit codes 0".to_string(),
            n => {
                format!(
                    "right: {n} results are {}",
                    self.expectation.as_deref().unwrap_or("what this computer computes")
                )
            }
        };
        line(&self.kernel, verdict);
        let launches = if self.launches == 1 { String::new() } else { format!(" in {} launches", self.launches) };
        let time = match self.core.clock_khz {
            0 => String::new(),
            khz => format!(", {:.3} ms of its clock", self.cycles as f64 / f64::from(khz)),
        };
        line("cycles", format!("{}{launches}{time}", self.cycles));
        if let Some(metrics) = &self.metrics {
            counted(metrics, self.core.lanes, self.core.divergence, &mut line);
        }
        let bytes = format!("{} bytes sent, {} received", si(self.sent as f64), si(self.received as f64));
        let again = if self.retries == 0 { String::new() } else { format!(", {} requests again", self.retries) };
        line("line", format!("{}, {bytes} in {:.1} s{again}", self.port, self.seconds));
        text.push_str(&self.core.text());
        text + &results(&self.variables, &self.saved)
    }

    /// What there is to see of the program's variables, of a run whose results are wrong.
    pub fn results(&self) -> String {
        results(&self.variables, &self.saved)
    }
}
