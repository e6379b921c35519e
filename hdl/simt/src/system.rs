//! A core with on-chip memories and a launcher: what simulations run and FPGA tops instantiate.

use crate::core::{CoreIn, core};
use crate::divergence::Start;
use crate::memory::port::{Load, Response};
use crate::memory::{MemorySystemIn, memory_system};
use crate::pipeline::resolve::{Exit, Fault};
use crate::shape::Shape;
use heddle_hdl::*;

/// What the host does.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct SystemIn<T> {
    /// Starts all threads at `entry`. Taken when nothing is running.
    pub launch: T,
    /// Instruction number (byte address / 4) of the first instruction, `pc_bits`; taken with `launch`.
    pub entry: T,
    /// First byte address that may be stored to, 32 bits, a multiple of 256; looked at all the time.
    pub program_end: T,
    /// Writes memory before a launch.
    pub load: Load<T>,
}

/// What the host sees.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct SystemOut<T> {
    /// The launch has ended: every thread did.
    pub done: T,
    /// The core stopped; stays until reset.
    pub fault: Fault<T>,
    /// Done or stopped by a fault.
    pub stopped: T,
    /// Threads that end in this cycle.
    pub exit: Exit<T>,
    /// One bit a warp: it has live threads.
    pub live: T,
}

/// The launcher: puts all threads of one warp after the other on the core.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LauncherIn<T> {
    launch: T,
    entry: T,
    start_ready: T,
    idle: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
struct LauncherOut<T> {
    start: Start<T>,
    /// A launch begins.
    restart: T,
    done: T,
}

fn launcher(s: &Shape) -> TypedModule<LauncherIn<Width>, LauncherOut<Signal>> {
    let inputs = LauncherIn { launch: 1, entry: s.pc_bits(), start_ready: 1, idle: 1 };
    module("launcher", inputs, |m, i| {
        m.doc("Starts all threads of every warp.");
        let starting = m.reg("starting", 1).reset(0u32);
        let running = m.reg("running", 1).reset(0u32);
        let warp = m.reg("warp", s.warp_bits()).reset(0u32);
        wire!(restart = i.launch & !starting.q & !running.q);
        wire!(started = starting.q & i.start_ready);
        wire!(last = started & warp.q.eq(s.warps - 1));
        let zero = warp.q.literal(0u32);
        warp.next_if(restart | started, restart.mux(zero, warp.q + 1));
        starting.next((starting.q & !last) | restart);
        wire!(finished = running.q & i.idle);
        running.next((running.q & !finished) | last);
        let done = m.reg("done", 1).reset(0u32);
        done.next((done.q & !restart) | finished);
        let entry = m.pipe_if("entry_held", restart, i.entry);
        let start = Start { valid: starting.q, slot: warp.q, pc: entry, mask: m.lit(Bits::ones(s.lanes), s.lanes) };
        LauncherOut { start, restart, done: done.q }
    })
}

/// The top, `heddle`, of a shape that [`Shape::check`] accepts.
pub fn system(s: &Shape) -> TypedModule<SystemIn<Width>, SystemOut<Signal>> {
    let inputs = SystemIn { launch: 1, entry: s.pc_bits(), program_end: 32, load: Load::shape(s) };
    module("heddle", inputs, |m, i| {
        m.doc(&format!("Heddle: {} lanes, {} warps, {} bytes of memory.", s.lanes, s.warps, s.memory));
        let start = m.deferred("core_start", Start::shape(s));
        let restart = m.deferred("core_restart", 1);
        let fetched = m.deferred("core_fetched", 32);
        let request_ready = m.deferred("core_request_ready", 1);
        let response = m.deferred("core_response", Response::shape(s));
        let core = m.instance(
            "core",
            &core(s),
            CoreIn {
                start: start.value,
                restart: restart.value,
                fetched: fetched.value,
                request_ready: request_ready.value,
                response: response.value,
                program_end: i.program_end,
                group: m.lit(Bits::ones(s.warps.ilog2()), s.warp_bits()),
            },
        );
        let instructions = m.memory("instructions", 32, s.pc_bits()).style(MemoryStyle::Block);
        fetched.drive(instructions.read_sync(core.fetch_pc, Collision::ReadOld));
        wire!(load_program = i.load.valid & !i.load.address.zext(33).from_bit(s.pc_bits() + 2).any());
        instructions.write(load_program, i.load.address.slice(2, s.pc_bits()), i.load.word);
        let inputs = MemorySystemIn {
            request: core.request,
            response_ready: core.response_ready,
            load: i.load,
            restart: restart.value,
        };
        let memory = m.instance("memory", &memory_system(s), inputs);
        request_ready.drive(memory.request_ready);
        response.drive(memory.response);

        let inputs = LauncherIn {
            launch: i.launch,
            entry: i.entry,
            start_ready: core.start_ready,
            idle: core.idle & memory.idle,
        };
        let launcher = m.instance("launcher", &launcher(s), inputs);
        start.drive(launcher.start);
        restart.drive(launcher.restart);
        wire!(stopped = launcher.done | core.fault.valid);
        SystemOut { done: launcher.done, fault: core.fault, stopped, exit: core.exit, live: core.live }
    })
}

#[cfg(test)]
mod tests;
