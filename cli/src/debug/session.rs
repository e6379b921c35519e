//! Looks at every cycle: whether the core is to stop there, and what gdb wants then.
//!
//! Backwards is forwards from the start, twice: first to find the cycle that is looked for, then to stop there. A run
//! takes its course again, since all that is random in it comes of the seed.

use super::core::{Core, How, Reason, signal, tid};
use super::line::Line;
use crate::target::Target;
use anyhow::{Result, bail};
use gdbstub::common::Signal;
use gdbstub::conn::ConnectionExt as _;
use gdbstub::stub::GdbStub;
use gdbstub::stub::state_machine::GdbStubStateMachine;
use gdbstub::target::ext::base::reverse_exec::ReplayLogPosition;
use heddle_check::commit::CommitCheck;
use heddle_check::commit::effects::Effect;
use heddle_sim::Engine;
use heddle_sim::directory::Directory;
use heddle_simt::Shape;
use heddle_simt::isa::FaultCause;
use heddle_testbench::Program;
use heddle_testbench::grid::{Grid, GridError};
use heddle_testbench::iss::Iss;
use heddle_testbench::kernels::DeviceError;
use heddle_testbench::machine::{Mismatch, Monitor, Stop};
use std::cell::RefCell;
use std::rc::Rc;

type Gdb = GdbStubStateMachine<'static, Core, Line>;

/// Cycles between looks at whether gdb interrupts.
const POLL: u64 = 256;

/// gdb, and what it waits for.
pub struct Session {
    core: Core,
    gdb: Option<Gdb>,
    /// Before gdb is there.
    line: Option<Line>,
    plan: Plan,
    /// The first cycle after which a thread lives.
    begin: Option<u64>,
    /// gdb has gone, or does not want any more.
    over: bool,
    /// This run is to end, so that another begins.
    again: bool,
}

/// What the core runs for.
enum Plan {
    /// To where something happens that stops it.
    On(super::core::Asked),
    /// To the end of this cycle; without a reason, to the beginning.
    To(u64, Option<Reason>),
    /// To the end of this cycle, for the last thing before it that stops who runs backwards.
    Search { before: u64, how: How, found: Option<(u64, Reason)> },
}

impl Session {
    pub fn new(shape: &Shape, target: &Target, line: Line) -> Result<Session> {
        let core = Core::new(shape, &target.program, &target.elf, Iss::new(&target.program, shape)?);
        let plan = Plan::On(super::core::Asked::default());
        Ok(Session { core, gdb: None, line: Some(line), plan, begin: None, over: false, again: false })
    }

    /// What follows one run of a machine with this program.
    pub fn monitor(
        session: &Rc<RefCell<Session>>,
        directory: &Directory,
        program: &Program,
    ) -> Result<Box<dyn Monitor>> {
        session.borrow_mut().again = false;
        let check = CommitCheck::new(directory, program, &session.borrow().core.shape)?;
        Ok(Box::new(Follow { check, session: session.clone() }))
    }

    /// Whether the run was ended for another from the start; else whether gdb has gone.
    pub fn goes_back(&self) -> bool {
        self.again && !self.over
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The program has ended.
    pub fn ended(&mut self, good: bool) -> Result<()> {
        match self.gdb.take() {
            Some(GdbStubStateMachine::Running(gdb)) => {
                // Whether gdb hears of it makes no difference any more.
                let _ = gdb.report_stop(&mut self.core, Reason::Exited(u8::from(!good)));
                Ok(())
            }
            Some(_) => Ok(()),
            None => bail!("no thread ran, so there was nothing for gdb to see"),
        }
    }

    /// After a cycle.
    fn cycle(&mut self, engine: &dyn Engine, iss: &Iss, effects: &[Effect]) {
        let now = engine.cycle();
        if self.begin.is_none() {
            if self.core.first_live(iss).is_some() {
                self.begin = Some(now);
                self.connect(engine, iss);
            }
            return;
        }
        let begin = self.begin.unwrap_or(0);
        match &mut self.plan {
            Plan::On(asked) => {
                let until = self.core.until == Some(now);
                let stops = self.core.reason(asked, (now, effects), iss);
                let stops = stops.or_else(|| until.then(|| self.core.first_live(iss)).flatten().map(trap));
                match stops {
                    Some(reason) => self.stop(engine, iss, reason),
                    None if now.is_multiple_of(POLL) => self.poll(engine, iss),
                    None => {}
                }
            }
            Plan::To(cycle, reason) if *cycle == now => {
                let start =
                    Reason::ReplayLog { tid: self.core.first_live(iss).map(tid), pos: ReplayLogPosition::Begin };
                let reason = reason.unwrap_or(start);
                self.stop(engine, iss, reason);
            }
            Plan::To(..) => {}
            Plan::Search { before, how, found } => {
                // Who stepped or touched memory is seen before it did; who comes to a breakpoint, there.
                let earlier = now - 1;
                let stops = match how {
                    How::BackStep(thread) => {
                        effects.iter().any(|effect| effect.thread == *thread).then(|| (earlier, trap(*thread)))
                    }
                    _ => {
                        let until = (self.core.until == Some(now)).then(|| self.core.first_live(iss)).flatten();
                        match self.core.reason(&Default::default(), (now, effects), iss) {
                            Some(reason @ Reason::Watch { .. }) => Some((earlier, reason)),
                            Some(reason) => Some((now, reason)),
                            None => until.map(|thread| (now, trap(thread))),
                        }
                    }
                };
                if let Some(stops) = stops.filter(|(cycle, _)| cycle < before && *cycle >= begin) {
                    *found = Some(stops);
                }
                if now >= *before {
                    let (cycle, reason) = found.map_or((begin, None), |(cycle, reason)| (cycle, Some(reason)));
                    self.plan = Plan::To(cycle, reason);
                    self.again = true;
                }
            }
        }
    }

    /// gdb begins, with the core stopped.
    fn connect(&mut self, engine: &dyn Engine, iss: &Iss) {
        self.core.stops(engine, iss);
        let Some(line) = self.line.take() else { return };
        self.gdb = GdbStub::new(line).run_state_machine(&mut self.core).ok();
        self.serve(engine.cycle());
    }

    /// Tells gdb why the core stops, and does what it wants until the core is to run.
    fn stop(&mut self, engine: &dyn Engine, iss: &Iss, reason: Reason) {
        self.core.stops(engine, iss);
        if self.core.until == Some(engine.cycle()) {
            self.core.until = None;
        }
        let Some(GdbStubStateMachine::Running(gdb)) = self.gdb.take() else { return };
        self.gdb = gdb.report_stop(&mut self.core, reason).ok();
        self.serve(engine.cycle());
    }

    /// Whether gdb interrupts.
    fn poll(&mut self, engine: &dyn Engine, iss: &Iss) {
        let Some(GdbStubStateMachine::Running(mut gdb)) = self.gdb.take() else { return };
        let byte = match gdb.borrow_conn().peek() {
            Ok(Some(_)) => gdb.borrow_conn().read().ok(),
            Ok(None) => {
                self.gdb = Some(gdb.into());
                return;
            }
            Err(_) => None,
        };
        self.gdb = byte.and_then(|byte| gdb.incoming_data(&mut self.core, byte).ok());
        match self.gdb.take() {
            Some(GdbStubStateMachine::CtrlCInterrupt(gdb)) => {
                self.core.stops(engine, iss);
                let reason = self.core.first_live(iss);
                let reason = reason.map_or(Reason::Signal(Signal::SIGINT), |thread| signal(thread, Signal::SIGINT));
                self.gdb = gdb.interrupt_handled(&mut self.core, Some(reason)).ok();
                self.serve(engine.cycle());
            }
            Some(GdbStubStateMachine::Running(gdb)) => self.gdb = Some(gdb.into()),
            _ => self.over = true,
        }
    }

    /// Until gdb has the core run, or has gone.
    fn serve(&mut self, now: u64) {
        loop {
            self.gdb = match self.gdb.take() {
                Some(GdbStubStateMachine::Idle(mut gdb)) => {
                    let byte = gdb.borrow_conn().read().ok();
                    byte.and_then(|byte| gdb.incoming_data(&mut self.core, byte).ok())
                }
                Some(GdbStubStateMachine::CtrlCInterrupt(gdb)) => {
                    gdb.interrupt_handled(&mut self.core, None::<Reason>).ok()
                }
                Some(GdbStubStateMachine::Running(gdb)) => {
                    let asked = self.core.asked();
                    self.gdb = Some(gdb.into());
                    self.plan = match (self.core.missed(&asked), asked.how.clone()) {
                        (Some((cycle, reason)), _) => Plan::To(cycle, Some(reason)),
                        (None, How::On | How::Step(..)) => Plan::On(asked),
                        (None, how) => Plan::Search { before: now, how, found: None },
                    };
                    self.again = !matches!(self.plan, Plan::On(_));
                    return;
                }
                Some(GdbStubStateMachine::Disconnected(_)) | None => {
                    self.over = true;
                    return;
                }
            };
        }
    }

    /// The core stops for good by a fault of this thread.
    fn fault(&mut self, engine: &dyn Engine, iss: &Iss, stop: &Stop) {
        let by = match stop.cause {
            Some(FaultCause::IllegalInstruction) => Signal::SIGILL,
            Some(FaultCause::Breakpoint) => Signal::SIGTRAP,
            Some(FaultCause::LoadMisaligned | FaultCause::StoreMisaligned | FaultCause::FetchMisaligned) => {
                Signal::SIGBUS
            }
            _ => Signal::SIGSEGV,
        };
        let thread = stop.harts.first().copied().or_else(|| self.core.first_live(iss));
        if let (Plan::On(_), Some(thread)) = (&self.plan, thread) {
            self.stop(engine, iss, signal(thread, by));
        }
    }
}

/// A thread stops where it is.
fn trap(thread: u32) -> Reason {
    Reason::SignalWithThread { tid: tid(thread), signal: Signal::SIGTRAP }
}

/// A run that is followed.
struct Follow {
    check: CommitCheck,
    session: Rc<RefCell<Session>>,
}

impl Monitor for Follow {
    fn launch(&mut self, engine: &dyn Engine, grid: Grid, entry: u32) -> Result<(), GridError> {
        self.check.launch(engine, grid, entry)
    }

    fn cycle(&mut self, engine: &mut dyn Engine, seed: u64) -> Result<(), Box<Mismatch>> {
        engine.settle();
        self.check.cycle(engine, seed)?;
        let effects = self.check.effects();
        self.session.borrow_mut().cycle(engine, self.check.iss(), &effects);
        Ok(())
    }

    fn quits(&self) -> bool {
        let session = self.session.borrow();
        session.again || session.over
    }

    fn end(&mut self, engine: &dyn Engine, seed: u64, stop: Option<&Stop>) -> Result<(), Box<Mismatch>> {
        if let Some(stop) = stop {
            self.session.borrow_mut().fault(engine, self.check.iss(), stop);
        }
        Monitor::end(&mut self.check, engine, seed, stop)
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check.write(address, bytes)
    }

    fn memory(&self) -> Option<&[u8]> {
        Monitor::memory(&self.check)
    }
}
