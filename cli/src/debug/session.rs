//! Looks at every cycle: whether the core is to stop there, and what gdb wants then.
//!
//! Backwards is forwards from the start, twice: first to find the cycle that is looked for, then to stop there. A run
//! takes its course again, since all that is random in it comes of the seed.

use super::core::{Asked, Core, How, Reason, signal, tid, trap};
use super::line::{Line, Waiting};
use crate::target::Target;
use anyhow::Result;
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
    waiting: Option<Waiting>,
    /// Why gdb could not connect.
    failed: Option<anyhow::Error>,
    plan: Plan,
    /// The first cycle after which a thread lives.
    begin: Option<u64>,
    /// gdb has gone, or does not want any more.
    over: bool,
    /// This run is to end, so that another begins.
    again: bool,
    /// gdb has been told why this run ends.
    shown: bool,
}

/// What the core runs for.
enum Plan {
    /// To where something happens that stops it.
    On(Asked),
    /// To the end of this cycle; without a reason, to the beginning.
    To(u64, Option<Reason>),
    /// To the end of this cycle, for the last thing before it that stops who runs backwards.
    Search { before: u64, how: How, found: Option<(u64, Reason)> },
}

impl Session {
    pub fn new(shape: &Shape, target: &Target, waiting: Waiting) -> Result<Session> {
        let core = Core::new(shape, &target.program, target.symbols(), Iss::new(&target.program, shape)?);
        let plan = Plan::On(Asked::default());
        let waiting = Some(waiting);
        let (over, again, shown) = (false, false, false);
        Ok(Session { core, gdb: None, waiting, failed: None, plan, begin: None, over, again, shown })
    }

    /// A run begins, of a machine with this program: what follows it, and what knows its threads.
    pub fn begin(session: &Rc<RefCell<Session>>, directory: &Directory, program: &Program) -> Result<Followed> {
        let mut begun = session.borrow_mut();
        (begun.again, begun.shown) = (false, false);
        let check = Rc::new(RefCell::new(CommitCheck::new(directory, program, &begun.core.shape)?));
        let monitor = Box::new(Follow { check: check.clone(), session: session.clone() });
        Ok(Followed { monitor, check })
    }

    /// Whether the run was ended for another from the start.
    pub fn goes_back(&self) -> bool {
        self.again && !self.over
    }

    /// Whether gdb has gone.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Whether gdb could connect.
    pub fn connected(&mut self) -> Result<()> {
        self.failed.take().map_or(Ok(()), Err)
    }

    /// The run has failed without a fault of the core, such as at its limit of cycles: gdb may look where.
    pub fn fails(&mut self, engine: &dyn Engine, iss: &Iss) {
        if let (Some(thread), false) = (self.core.first_live(iss), self.shown) {
            self.halts(engine, iss, signal(thread, Signal::SIGXCPU));
        }
    }

    /// The program has ended.
    pub fn ended(&mut self, good: bool) {
        if let Some(GdbStubStateMachine::Running(gdb)) = self.gdb.take() {
            // Whether gdb hears of it makes no difference any more.
            let _ = gdb.report_stop(&mut self.core, Reason::Exited(u8::from(!good)));
        }
    }

    /// The core runs no further.
    fn halts(&mut self, engine: &dyn Engine, iss: &Iss, reason: Reason) {
        self.shown = true;
        match &self.plan {
            Plan::On(_) => self.stop(engine, iss, reason),
            Plan::Search { .. } => self.found(),
            Plan::To(..) => self.arrives(engine, iss),
        }
    }

    /// After a cycle.
    fn cycle(&mut self, engine: &dyn Engine, iss: &Iss, effects: &[Effect]) {
        let now = engine.cycle();
        let Some(begin) = self.begin else {
            if self.core.first_live(iss).is_some() {
                self.begin = Some(now);
                self.connect(engine, iss);
            }
            return;
        };
        match &mut self.plan {
            Plan::On(asked) => {
                let stops = self.core.reason(asked, (now, effects), iss);
                let until = self.core.until.is_some_and(|until| now >= until);
                let stops = stops.or_else(|| self.core.first_live(iss).filter(|_| until).map(trap));
                if let Some(reason) = stops {
                    return self.stop(engine, iss, reason);
                }
            }
            Plan::To(cycle, _) if *cycle == now => return self.arrives(engine, iss),
            Plan::To(..) => {}
            Plan::Search { before, how, found } => {
                // Who stepped or touched memory is seen before it did; who comes to a breakpoint, there.
                let earlier = now - 1;
                let stops = match how {
                    How::BackStep(thread) => {
                        let steps = |effect: &Effect| effect.thread == *thread && effect.pc.is_some();
                        effects.iter().any(steps).then(|| (earlier, trap(*thread)))
                    }
                    _ => match self.core.reason(&Asked::default(), (now, effects), iss) {
                        Some(reason @ Reason::Watch { .. }) => Some((earlier, reason)),
                        Some(reason) => Some((now, reason)),
                        None => {
                            let until = self.core.until == Some(now);
                            self.core.first_live(iss).filter(|_| until).map(|thread| (now, trap(thread)))
                        }
                    },
                };
                if let Some(stops) = stops.filter(|(cycle, _)| cycle < before && *cycle >= begin) {
                    *found = Some(stops);
                }
                if now >= *before {
                    self.found();
                }
            }
        }
        if now.is_multiple_of(POLL) {
            self.poll(engine, iss);
        }
    }

    /// The search is over: another run goes to what was found, or to the beginning.
    fn found(&mut self) {
        if let (Plan::Search { found, .. }, Some(begin)) = (&self.plan, self.begin) {
            let (cycle, reason) = found.map_or((begin, None), |(cycle, reason)| (cycle, Some(reason)));
            self.plan = Plan::To(cycle, reason);
            self.again = true;
            self.core.forget();
        }
    }

    /// The cycle to which the core was to run.
    fn arrives(&mut self, engine: &dyn Engine, iss: &Iss) {
        let start = Reason::ReplayLog { tid: self.core.first_live(iss).map(tid), pos: ReplayLogPosition::Begin };
        let Plan::To(_, reason) = &self.plan else { return };
        let reason = reason.unwrap_or(start);
        self.stop(engine, iss, reason);
    }

    /// gdb begins, with the core stopped.
    fn connect(&mut self, engine: &dyn Engine, iss: &Iss) {
        self.core.stops(engine, iss);
        let Some(line) = self.waiting.take() else { return };
        let line = match line.connected() {
            Ok(line) => line,
            Err(error) => {
                self.failed = Some(error);
                self.over = true;
                return;
            }
        };
        self.gdb = GdbStub::new(line).run_state_machine(&mut self.core).ok();
        self.serve(engine.cycle());
    }

    /// Tells gdb why the core stops, and does what it wants until the core is to run.
    fn stop(&mut self, engine: &dyn Engine, iss: &Iss, reason: Reason) {
        self.core.stops(engine, iss);
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
                    let missed = self.core.missed(&asked);
                    if let Some((_, reason)) = missed.filter(|(cycle, _)| *cycle == now) {
                        self.gdb = gdb.report_stop(&mut self.core, reason).ok();
                        continue;
                    }
                    self.gdb = Some(gdb.into());
                    self.plan = match (missed, asked.how.clone()) {
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
        if let Some(thread) = stop.harts.first().copied().or_else(|| self.core.first_live(iss)) {
            self.halts(engine, iss, signal(thread, by));
        }
    }
}

/// A run that is followed.
pub struct Followed {
    pub monitor: Box<dyn Monitor>,
    pub check: Rc<RefCell<CommitCheck>>,
}

struct Follow {
    check: Rc<RefCell<CommitCheck>>,
    session: Rc<RefCell<Session>>,
}

impl Monitor for Follow {
    fn launch(&mut self, engine: &dyn Engine, grid: Grid, entry: u32) -> Result<(), GridError> {
        self.check.borrow_mut().launch(engine, grid, entry)
    }

    fn cycle(&mut self, engine: &mut dyn Engine, seed: u64) -> Result<(), Box<Mismatch>> {
        engine.settle();
        let mut check = self.check.borrow_mut();
        check.cycle(engine, seed)?;
        let effects = check.effects();
        self.session.borrow_mut().cycle(engine, check.iss(), &effects);
        Ok(())
    }

    fn quits(&self) -> bool {
        let session = self.session.borrow();
        session.again || session.over
    }

    fn end(&mut self, engine: &dyn Engine, seed: u64, stop: Option<&Stop>) -> Result<(), Box<Mismatch>> {
        let mut check = self.check.borrow_mut();
        if let Some(stop) = stop {
            self.session.borrow_mut().fault(engine, check.iss(), stop);
        }
        Monitor::end(&mut *check, engine, seed, stop)
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.check.borrow_mut().write(address, bytes)
    }
}
