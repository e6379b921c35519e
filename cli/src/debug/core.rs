//! What gdb sees of a core that has stopped, and what it asks for.

use gdbstub::common::{Pid, Signal, Tid};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadRangeStepping, MultiThreadRangeSteppingOps, MultiThreadResume, MultiThreadResumeOps,
    MultiThreadSchedulerLocking, MultiThreadSchedulerLockingOps, MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::reverse_exec::{ReverseCont, ReverseContOps, ReverseStep, ReverseStepOps};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps, SwBreakpoint,
    SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::exec_file::{ExecFile, ExecFileOps};
use gdbstub::target::ext::host_io::{
    HostIo, HostIoClose, HostIoCloseOps, HostIoErrno, HostIoError, HostIoFstat, HostIoFstatOps, HostIoOpen,
    HostIoOpenFlags, HostIoOpenMode, HostIoOpenOps, HostIoOps, HostIoPread, HostIoPreadOps, HostIoResult, HostIoStat,
};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps, outputln};
use gdbstub::target::ext::target_description_xml_override::{
    TargetDescriptionXmlOverride, TargetDescriptionXmlOverrideOps,
};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};
use gdbstub_arch::riscv::Riscv32;
use gdbstub_arch::riscv::reg::RiscvCoreRegs;
use heddle_check::commit::effects::{Effect, Touch};
use heddle_sim::Engine;
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::disassemble::REGISTERS;
use heddle_testbench::grid::{ThreadId, thread_ranges};
use heddle_testbench::iss::Iss;
use heddle_testbench::paths::{parked, paths};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::ops::Range;

/// A core that has stopped.
pub struct Core {
    pub shape: Shape,
    program: Program,
    elf: Vec<u8>,
    /// The state that its threads' instructions have left.
    iss: Iss,
    /// After this cycle.
    cycle: u64,
    /// By hardware thread, whether it runs.
    doing: Vec<&'static str>,
    /// What `monitor paths` prints.
    paths: String,
    breakpoints: BTreeSet<u32>,
    watchpoints: Vec<Watchpoint>,
    /// What would have stopped the core, and gdb has not been told of.
    passed: Vec<Passed>,
    /// The thread that has ended while it was taken over a breakpoint, until the core runs again.
    ended: Option<u32>,
    /// The hardware thread whose registers or memory gdb read last: a step backwards names none.
    looked_at: u32,
    /// `monitor until`.
    pub until: Option<u64>,
    asked: Asked,
}

/// What gdb wants next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    pub how: How,
    /// The only thread that is to move: gdb takes it over a breakpoint.
    alone: Option<u32>,
    /// A thread that moves.
    moves: Option<u32>,
}

/// Forwards or backwards, how far.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum How {
    #[default]
    On,
    /// One instruction of a thread; or as many as it is between these addresses.
    Step(u32, Option<Range<u32>>),
    BackStep(u32),
    Back,
}

/// A thread that would have stopped the core: after this cycle, with this pc.
struct Passed {
    cycle: u64,
    reason: Reason,
    pc: Option<u32>,
}

/// Of them, at most: those of a user who lets one thread run alone for long.
const MOST_PASSED: usize = 1 << 16;

#[derive(Clone, PartialEq, Eq, Debug)]
struct Watchpoint {
    bytes: Range<u64>,
    kind: WatchKind,
}

/// Why the core stops.
pub type Reason = gdbstub::stub::MultiThreadStopReason<u32>;

/// The name of the program's file, which gdb reads through the connection.
const FILE: &[u8] = b"/program.elf";

/// gdb's number of a hardware thread.
pub fn tid(thread: u32) -> Tid {
    Tid::new(thread as usize + 1).expect("it is at least 1")
}

fn thread(tid: Tid) -> u32 {
    tid.get() as u32 - 1
}

impl Core {
    pub fn new(shape: &Shape, program: &Program, elf: &[u8], iss: Iss) -> Core {
        Core {
            shape: shape.clone(),
            program: program.clone(),
            elf: elf.to_vec(),
            iss,
            cycle: 0,
            doing: vec!["runs"; shape.threads() as usize],
            paths: String::new(),
            breakpoints: BTreeSet::new(),
            watchpoints: Vec::new(),
            passed: Vec::new(),
            ended: None,
            looked_at: 0,
            until: None,
            asked: Asked::default(),
        }
    }

    /// It stops after this cycle, with this state.
    pub fn stops(&mut self, engine: &dyn Engine, iss: &Iss) {
        self.iss = iss.clone();
        self.cycle = engine.cycle();
        self.until = None;
        self.doing = vec!["runs"; self.shape.threads() as usize];
        self.paths.clear();
        let Shape { lanes, warps, .. } = self.shape;
        if self.shape.divergence.capabilities().mixes_warps {
            for slots in iss.grid().slots_of_blocks(&self.shape) {
                for one in parked(engine, "core", &self.shape, slots) {
                    self.doing[one.thread as usize] = if one.waits { BARRIER } else { WAITS };
                    let ThreadId { block, thread } = iss.hart(one.thread).thread();
                    let why = if one.waits { "at a barrier" } else { "for others of its block" };
                    let pc = one.pc;
                    self.paths += &format!("block {block}, thread {thread} waits {why}, pc {pc:#010x}\n");
                }
            }
        } else {
            for warp in 0..warps {
                for (number, path) in paths(engine, "core", &self.shape, warp).into_iter().enumerate() {
                    self.paths += &format!("warp {warp:<3} {path}\n");
                    for lane in (0..lanes).filter(|lane| path.mask[*lane as usize]) {
                        let runs = if number == 0 { "runs" } else { WAITS };
                        self.doing[(warp * lanes + lane) as usize] = if path.waits { BARRIER } else { runs };
                    }
                }
            }
        }
        for hart in (0..self.shape.threads()).filter(|hart| iss.hart(*hart).waits()) {
            self.doing[hart as usize] = BARRIER;
        }
    }

    /// What gdb has the core run for.
    pub fn asked(&mut self) -> Asked {
        self.ended = None;
        std::mem::take(&mut self.asked)
    }

    /// Whether and why the core stops after a cycle in which this happened, if it runs forwards as was `asked`.
    ///
    /// gdb is told of one thread at a time: what else would have stopped the core is [passed](Core::missed). While gdb
    /// takes a thread over a breakpoint, it expects no other to move. Here others do, and nothing stops them.
    pub fn reason(&mut self, asked: &Asked, (now, effects): (u64, &[Effect]), iss: &Iss) -> Option<Reason> {
        let mut step = effects.iter().find_map(|effect| self.stepped(asked, effect, iss));
        let mut stops = None;
        for effect in effects {
            let others = asked.alone.is_some_and(|alone| alone != effect.thread);
            // Breakpoints of others may be out, and are known when gdb puts them in again.
            let passes = || others.then(|| Reason::SwBreak(tid(effect.thread)));
            let Some(reason) = self.breaks(effect).or_else(passes) else { continue };
            if !others && stops.is_none() {
                stops = Some(reason);
            } else if self.passed.len() < MOST_PASSED {
                self.passed.push(Passed { cycle: now, reason, pc: effect.next });
            }
        }
        if let Some(alone) = asked.alone.filter(|alone| !iss.hart(*alone).is_live()) {
            self.ended = Some(alone);
            step = Some(trap(alone));
        }
        stops.or(step)
    }

    /// What was passed is of no more interest.
    pub fn forget(&mut self) {
        self.passed.clear();
    }

    /// A thread that steps has done so.
    fn stepped(&self, asked: &Asked, effect: &Effect, iss: &Iss) -> Option<Reason> {
        let How::Step(thread, within) = &asked.how else { return None };
        let still = |next: u32| within.as_ref().is_some_and(|within| within.contains(&next));
        if *thread != effect.thread || effect.pc.is_none() || effect.next.is_some_and(still) {
            return None;
        }
        // If it has ended, gdb is shown another.
        effect.next.map(|_| *thread).or_else(|| self.first_live(iss)).map(trap)
    }

    /// A watchpoint is touched, or a thread comes to a breakpoint.
    fn breaks(&self, effect: &Effect) -> Option<Reason> {
        let comes = effect.next.is_some_and(|next| self.breakpoints.contains(&next));
        self.touched(effect).or_else(|| comes.then(|| Reason::SwBreak(tid(effect.thread))))
    }

    /// What gdb has not been told of, once all threads are to run again: where the core goes back to first. A
    /// breakpoint that was only for a step counts no more.
    pub fn missed(&mut self, asked: &Asked) -> Option<(u64, Reason)> {
        if asked.alone.is_some() {
            return None;
        }
        let forwards = matches!(asked.how, How::On | How::Step(..));
        let counts = |passed: &Passed| match passed.reason {
            Reason::SwBreak(_) => passed.pc.is_some_and(|pc| self.breakpoints.contains(&pc)),
            _ => true,
        };
        let mut left = std::mem::take(&mut self.passed).into_iter().filter(|_| forwards).filter(counts);
        let Passed { cycle, reason, .. } = left.next()?;
        // What came later will come again.
        self.passed = left.filter(|passed| passed.cycle == cycle).collect();
        Some((cycle, reason))
    }

    /// The watchpoint that an instruction touches.
    fn touched(&self, effect: &Effect) -> Option<Reason> {
        let Touch { address, bytes, reads, writes } = effect.touch?;
        let touched = span(address, bytes);
        let watches = |watchpoint: &&Watchpoint| {
            let kind = match watchpoint.kind {
                WatchKind::Read => reads,
                WatchKind::Write => writes,
                WatchKind::ReadWrite => true,
            };
            kind && watchpoint.bytes.start < touched.end && touched.start < watchpoint.bytes.end
        };
        let Watchpoint { bytes, kind } = self.watchpoints.iter().find(watches)?;
        let addr = (bytes.start.max(touched.start)) as u32;
        Some(Reason::Watch { tid: tid(effect.thread), kind: *kind, addr })
    }

    /// The first thread that lives.
    pub fn first_live(&self, iss: &Iss) -> Option<u32> {
        (0..self.shape.threads()).find(|&hart| iss.hart(hart).is_live())
    }

    /// Threads that are at one place and do one thing.
    fn groups(&self) -> String {
        let mut groups: BTreeMap<(u32, u32, &str), Vec<u32>> = BTreeMap::new();
        for hart in (0..self.shape.threads()).filter(|hart| self.iss.hart(*hart).is_live()) {
            let (hart, doing) = (self.iss.hart(hart), self.doing[hart as usize]);
            let ThreadId { block, thread } = hart.thread();
            groups.entry((block, hart.pc(), doing)).or_default().push(thread);
        }
        let line = |((block, pc, doing), threads): ((u32, u32, &str), Vec<u32>)| {
            let name = self.program.named(pc);
            format!("{pc:#010x}{name}: {} of block {block}, {doing}\n", thread_ranges(&threads))
        };
        groups.into_iter().map(line).collect()
    }
}

const WAITS: &str = "waits for others to reconverge";
const BARRIER: &str = "waits at a barrier";

/// So many bytes from an address on, which may be the last.
fn span(address: u32, bytes: u32) -> Range<u64> {
    u64::from(address)..u64::from(address) + u64::from(bytes)
}

/// A thread stops where it is.
pub fn trap(thread: u32) -> Reason {
    signal(thread, Signal::SIGTRAP)
}

/// A thread stops by a signal.
pub fn signal(thread: u32, signal: Signal) -> Reason {
    Reason::SignalWithThread { tid: tid(thread), signal }
}

/// The part of `from` that starts at `offset`, as much as there is room for.
fn copy(from: &[u8], offset: u64, count: usize, to: &mut [u8]) -> usize {
    let rest = usize::try_from(offset).ok().and_then(|offset| from.get(offset..)).unwrap_or(&[]);
    let count = rest.len().min(count).min(to.len());
    to[..count].copy_from_slice(&rest[..count]);
    count
}

impl Target for Core {
    type Arch = Riscv32;
    type Error = Infallible;

    fn base_ops(&mut self) -> BaseOps<'_, Riscv32, Infallible> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }

    fn support_host_io(&mut self) -> Option<HostIoOps<'_, Self>> {
        Some(self)
    }

    fn support_target_description_xml_override(&mut self) -> Option<TargetDescriptionXmlOverrideOps<'_, Self>> {
        Some(self)
    }

    fn support_exec_file(&mut self) -> Option<ExecFileOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for Core {
    fn read_registers(&mut self, registers: &mut RiscvCoreRegs<u32>, tid: Tid) -> TargetResult<(), Self> {
        self.looked_at = thread(tid);
        let hart = self.iss.hart(self.looked_at);
        registers.x = std::array::from_fn(|register| hart.register(register as u8));
        registers.pc = hart.pc();
        Ok(())
    }

    fn write_registers(&mut self, _: &RiscvCoreRegs<u32>, _: Tid) -> TargetResult<(), Self> {
        Err(TargetError::NonFatal)
    }

    /// As the thread would load them: each has a stack of its own at one address.
    fn read_addrs(&mut self, start: u32, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        self.looked_at = thread(tid);
        let bytes = (start..=u32::MAX).map_while(|address| self.iss.byte(self.looked_at, address));
        let count = data.iter_mut().zip(bytes).map(|(to, byte)| *to = byte).count();
        if count == 0 && !data.is_empty() { Err(TargetError::NonFatal) } else { Ok(count) }
    }

    fn write_addrs(&mut self, _: u32, _: &[u8], _: Tid) -> TargetResult<(), Self> {
        Err(TargetError::NonFatal)
    }

    fn list_active_threads(&mut self, is_active: &mut dyn FnMut(Tid)) -> Result<(), Infallible> {
        let is_there = |hart: &u32| self.iss.hart(*hart).is_live() || self.ended == Some(*hart);
        (0..self.shape.threads()).filter(is_there).for_each(|hart| is_active(tid(hart)));
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl ThreadExtraInfo for Core {
    fn thread_extra_info(&self, tid: Tid, to: &mut [u8]) -> Result<usize, Infallible> {
        let hart = thread(tid);
        let ThreadId { block, thread } = self.iss.hart(hart).thread();
        let (warp, lane) = (hart / self.shape.lanes, hart % self.shape.lanes);
        let doing = if self.ended == Some(hart) { "has ended" } else { self.doing[hart as usize] };
        let text = format!("block {block} thread {thread}, warp {warp} lane {lane}, {doing}");
        Ok(copy(text.as_bytes(), 0, text.len(), to))
    }
}

impl MultiThreadResume for Core {
    fn resume(&mut self) -> Result<(), Infallible> {
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), Infallible> {
        self.asked = Asked::default();
        Ok(())
    }

    fn set_resume_action_continue(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Infallible> {
        self.asked.moves = Some(thread(tid));
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_range_step(&mut self) -> Option<MultiThreadRangeSteppingOps<'_, Self>> {
        Some(self)
    }

    fn support_reverse_step(&mut self) -> Option<ReverseStepOps<'_, Tid, Self>> {
        Some(self)
    }

    fn support_reverse_cont(&mut self) -> Option<ReverseContOps<'_, Tid, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Core {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Infallible> {
        self.asked = Asked { how: How::Step(thread(tid), None), moves: Some(thread(tid)), ..Asked::default() };
        Ok(())
    }
}

impl MultiThreadRangeStepping for Core {
    fn set_resume_action_range_step(&mut self, tid: Tid, start: u32, end: u32) -> Result<(), Infallible> {
        let how = How::Step(thread(tid), Some(start..end));
        self.asked = Asked { how, moves: Some(thread(tid)), ..Asked::default() };
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for Core {
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Infallible> {
        self.asked.alone = self.asked.moves;
        Ok(())
    }
}

impl ReverseCont<Tid> for Core {
    fn reverse_cont(&mut self) -> Result<(), Infallible> {
        self.asked = Asked { how: How::Back, ..Asked::default() };
        Ok(())
    }
}

impl ReverseStep<Tid> for Core {
    /// gdb does not say of which thread.
    fn reverse_step(&mut self, _: Tid) -> Result<(), Infallible> {
        self.asked = Asked { how: How::BackStep(self.looked_at), ..Asked::default() };
        Ok(())
    }
}

impl Breakpoints for Core {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Core {
    fn add_sw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        self.breakpoints.insert(address);
        Ok(true)
    }

    fn remove_sw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        Ok(self.breakpoints.remove(&address))
    }
}

impl HwBreakpoint for Core {
    fn add_hw_breakpoint(&mut self, address: u32, kind: usize) -> TargetResult<bool, Self> {
        self.add_sw_breakpoint(address, kind)
    }

    fn remove_hw_breakpoint(&mut self, address: u32, kind: usize) -> TargetResult<bool, Self> {
        self.remove_sw_breakpoint(address, kind)
    }
}

impl HwWatchpoint for Core {
    fn add_hw_watchpoint(&mut self, address: u32, bytes: u32, kind: WatchKind) -> TargetResult<bool, Self> {
        self.watchpoints.push(Watchpoint { bytes: span(address, bytes), kind });
        Ok(true)
    }

    fn remove_hw_watchpoint(&mut self, address: u32, bytes: u32, kind: WatchKind) -> TargetResult<bool, Self> {
        let taken = Watchpoint { bytes: span(address, bytes), kind };
        let found = self.watchpoints.iter().position(|one| *one == taken);
        Ok(found.map(|at| self.watchpoints.remove(at)).is_some())
    }
}

const HELP: &str = "\
monitor paths     the paths of each warp as they stand in the divergence unit, or on a block stack who waits
monitor where     threads by the place where they are
monitor cycle     the cycle after which the core has stopped
monitor until N   has the next continue, or reverse-continue, stop after cycle N";

impl MonitorCmd for Core {
    fn handle_monitor_cmd(&mut self, command: &[u8], mut out: ConsoleOutput<'_>) -> Result<(), Infallible> {
        let command = String::from_utf8_lossy(command);
        match command.split_whitespace().collect::<Vec<_>>()[..] {
            ["paths"] if self.paths.is_empty() => outputln!(out, "no thread waits for another"),
            ["paths"] => self.paths.lines().for_each(|line| outputln!(out, "{line}")),
            ["where"] => self.groups().lines().for_each(|line| outputln!(out, "{line}")),
            ["cycle"] => outputln!(out, "{}", self.cycle),
            ["until", number] => match number.parse() {
                Ok(cycle) if cycle == self.cycle => outputln!(out, "the core has stopped after cycle {cycle}"),
                Ok(cycle) => {
                    self.until = Some(cycle);
                    let verb = if cycle > self.cycle { "continue" } else { "reverse-continue" };
                    outputln!(out, "{verb} stops after cycle {cycle}");
                }
                Err(_) => outputln!(out, "`{number}` is no number of a cycle"),
            },
            ["help"] | [] => outputln!(out, "{HELP}"),
            _ => outputln!(out, "no such command: `{command}`; monitor help lists them"),
        }
        Ok(())
    }
}

/// The registers of RV32 in a description of a whole target, without which gdb does not know that it is RV32.
fn description() -> String {
    let register = |name: &str| {
        let kind = match name {
            "ra" | "pc" => "code_ptr",
            "sp" | "gp" | "tp" | "s0" => "data_ptr",
            _ => "int",
        };
        format!("<reg name=\"{name}\" bitsize=\"32\" type=\"{kind}\"/>\n")
    };
    let registers: String = REGISTERS.iter().copied().chain(["pc"]).map(register).collect();
    format!(
        "<?xml version=\"1.0\"?>\n<!DOCTYPE target SYSTEM \"gdb-target.dtd\">\n<target version=\"1.0\">\n\
         <architecture>riscv:rv32</architecture>\n<feature name=\"org.gnu.gdb.riscv.cpu\">\n{registers}</feature>\n\
         </target>\n"
    )
}

impl TargetDescriptionXmlOverride for Core {
    fn target_description_xml(
        &self,
        name: &[u8],
        offset: u64,
        length: usize,
        to: &mut [u8],
    ) -> TargetResult<usize, Self> {
        if name != b"target.xml" {
            return Err(TargetError::NonFatal);
        }
        Ok(copy(description().as_bytes(), offset, length, to))
    }
}

impl ExecFile for Core {
    fn get_exec_file(&self, _: Option<Pid>, offset: u64, length: usize, to: &mut [u8]) -> TargetResult<usize, Self> {
        Ok(copy(FILE, offset, length, to))
    }
}

impl HostIo for Core {
    fn support_open(&mut self) -> Option<HostIoOpenOps<'_, Self>> {
        Some(self)
    }

    fn support_close(&mut self) -> Option<HostIoCloseOps<'_, Self>> {
        Some(self)
    }

    fn support_pread(&mut self) -> Option<HostIoPreadOps<'_, Self>> {
        Some(self)
    }

    fn support_fstat(&mut self) -> Option<HostIoFstatOps<'_, Self>> {
        Some(self)
    }
}

impl HostIoOpen for Core {
    /// No other file than the program.
    fn open(&mut self, name: &[u8], flags: HostIoOpenFlags, _: HostIoOpenMode) -> HostIoResult<u32, Self> {
        if name != FILE || flags.intersects(HostIoOpenFlags::O_WRONLY | HostIoOpenFlags::O_RDWR) {
            return Err(HostIoError::Errno(HostIoErrno::ENOENT));
        }
        Ok(0)
    }
}

impl HostIoClose for Core {
    fn close(&mut self, _: u32) -> HostIoResult<(), Self> {
        Ok(())
    }
}

impl HostIoPread for Core {
    fn pread(&mut self, _: u32, count: usize, offset: u64, to: &mut [u8]) -> HostIoResult<usize, Self> {
        Ok(copy(&self.elf, offset, count, to))
    }
}

impl HostIoFstat for Core {
    fn fstat(&mut self, _: u32) -> HostIoResult<HostIoStat, Self> {
        Ok(HostIoStat {
            st_dev: 0,
            st_ino: 0,
            st_mode: HostIoOpenMode::S_IFREG | HostIoOpenMode::S_IRUSR,
            st_nlink: 1,
            st_uid: 0,
            st_gid: 0,
            st_rdev: 0,
            st_size: self.elf.len() as u64,
            st_blksize: 512,
            st_blocks: (self.elf.len() as u64).div_ceil(512),
            st_atime: 0,
            st_mtime: 0,
            st_ctime: 0,
        })
    }
}
