//! A core with memories and a work distributor: [`system`](fn@system) is what FPGA tops instantiate. Simulations run
//! [`simulated`], which is the same with a slave on the bus, if there is one.

use crate::block::Grid;
use crate::core::{CoreIn, core};
use crate::distributor::{DistributorIn, DistributorOut, distributor};
use crate::memory::model::SetJitter;
use crate::memory::port::{Load, Miss, Response};
use crate::memory::wishbone::{BusError, FromSlave, ToSlave, slave};
use crate::memory::{MemorySystemIn, memory_system};
use crate::metrics::Counts;
use crate::pipeline::resolve::{Exit, Fault};
use crate::reconvergence::Reconvergence;
use crate::shape::{Backing, Shape};
use heddle_hdl::prelude::*;

/// What the host does.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct SystemIn<T> {
    /// Runs `blocks` blocks of `block_threads` threads from `entry` on. Taken when nothing is running.
    pub launch: T,
    /// Instruction number (byte address / 4) of the first instruction, `pc_bits`; taken with `launch`.
    pub entry: T,
    /// Blocks of the grid, 32 bits, at least 1; taken with `launch`.
    pub blocks: T,
    /// Threads of a block, 1 … lanes × warps, in `count_width(threads)` bits; taken with `launch`.
    pub block_threads: T,
    /// First byte address that may be stored to, 32 bits, a multiple of 256; looked at all the time.
    pub program_end: T,
    /// Writes memory before a launch: with a bus only instruction memory, the rest goes over the bus.
    pub load: Load<T>,
    /// Writes the side table before a launch, if the divergence unit is told where threads reconverge.
    pub load_side: Option<LoadSide<T>>,
    /// Sets seed and jitter of a simulated memory before a launch, if it has jitter.
    pub set_jitter: Option<SetJitter<T>>,
    /// If main memory is on a bus.
    pub wb: Option<FromSlave<T>>,
}

/// Writes an entry of the side table.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct LoadSide<T> {
    /// 1 bit.
    pub valid: T,
    /// Instruction number, `pc_bits`.
    pub pc: T,
    pub entry: Reconvergence<T>,
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
    /// One bit per warp: it has live threads.
    pub live: T,
    /// If main memory is on a bus.
    pub wb: Option<ToSlave<T>>,
    /// What the core did since the launch, if it is [built](crate::shape::Metrics::Built) with counters.
    pub counts: Option<Counts<T>>,
}

impl SystemIn<Width> {
    pub fn shape(s: &Shape) -> SystemIn<Width> {
        let Grid { blocks, block_threads, .. } = Grid::shape(s);
        let wb = s.bus_width().map(FromSlave::shape);
        let side = s.divergence.capabilities().reconverges;
        let load_side = side.then(|| LoadSide { valid: 1, pc: s.pc_bits(), entry: Reconvergence::shape(s) });
        let load = Load::shape(s);
        let set_jitter = s.modelled().and_then(SetJitter::shape);
        SystemIn {
            launch: 1,
            entry: s.pc_bits(),
            blocks,
            block_threads,
            program_end: 32,
            load,
            load_side,
            set_jitter,
            wb,
        }
    }
}

/// What a system shows its host, beside its outputs.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct HostedOut<T> {
    pub system: SystemOut<T>,
    /// No thread is live, none is still to be started, and nothing is under way.
    pub idle: T,
    /// See [`crate::memory::MemorySystemOut::loaded`].
    pub loaded: Option<T>,
}

/// The system as a [host](crate::host) has it: it can read memory.
pub fn hosted(s: &Shape) -> TypedModule<SystemIn<Width>, HostedOut<Signal>> {
    module("heddle", SystemIn { load: Load::of_host(s), ..SystemIn::shape(s) }, |m, i| described(m, s, i))
}

/// The top, `heddle`, of a shape that [`Shape::check`] accepts.
pub fn system(s: &Shape) -> TypedModule<SystemIn<Width>, SystemOut<Signal>> {
    module("heddle", SystemIn::shape(s), |m, i| described(m, s, i).system)
}

/// The top with a slave on its bus, and the rules of the bus beside it; without a bus, the top.
pub fn simulated(s: &Shape) -> TypedModule<SystemIn<Width>, SystemOut<Signal>> {
    let Backing::Wishbone { width, slave: model } = s.backing else { return system(s) };
    let inputs = SystemIn { wb: None, set_jitter: SetJitter::shape(model.timing), ..SystemIn::shape(s) };
    module("heddle", inputs, |m, i| {
        let from_slave = m.deferred("from_slave", FromSlave::shape(width));
        let out = described(m, s, SystemIn { wb: Some(from_slave.value), set_jitter: None, ..i }).system;
        let to_slave = out.wb.expect("a system with a bus is its master");
        from_slave.drive(slave::attach(m, s, width, model, to_slave, i.set_jitter));
        m.probe("wb", to_slave);
        SystemOut { wb: None, ..out }
    })
}

fn described(m: Builder, s: &Shape, i: SystemIn<Signal>) -> HostedOut<Signal> {
    m.doc(&format!("Heddle: {} lanes, {} warps, {} bytes of memory.", s.lanes, s.warps, s.memory));
    let given = m.deferred("distributed", DistributorOut::shape(s));
    let DistributorOut { start, block, filling, more, grid, restart, done } = given.value;
    let fetched = m.deferred("core_fetched", 32);
    let uniform = s.passes().then(|| m.deferred("core_uniform", 1));
    let meets = i.load_side.map(|_| m.deferred("core_meets", Reconvergence::shape(s)));
    let request_ready = m.deferred("core_request_ready", 1);
    let response = m.deferred("core_response", Response::shape(s));
    let miss = Miss::of(s).map(|shape| m.deferred("core_miss", shape));
    let bus_error = s.bus_width().map(|_| m.deferred("core_bus_error", BusError::shape(s)));
    let core = m.instance(
        "core",
        &core(s),
        CoreIn {
            start,
            block,
            filling,
            more,
            grid,
            restart,
            fetched: fetched.value,
            uniform: uniform.as_ref().map(|uniform| uniform.value),
            meets: meets.as_ref().map(|meets| meets.value),
            request_ready: request_ready.value,
            response: response.value,
            miss: miss.as_ref().map(|miss| miss.value),
            program_end: i.program_end,
            bus_error: bus_error.as_ref().map(|error| error.value),
        },
    );
    let instructions = m.memory("instructions", 32, s.pc_bits()).style(MemoryStyle::Block);
    wire!(load_program = i.load.writes() & !i.load.address.zext(33).from_bit(s.pc_bits() + 2).any());
    // Nothing is fetched while the program is written; and a memory that is not read and written at once is nothing but
    // block RAM.
    m.assume("the_program_is_written_while_the_core_is_idle", !load_program | core.idle);
    fetched.drive(instructions.read_sync_if(!load_program, core.fetch_pc, Collision::Never));
    instructions.write(load_program, i.load.address.slice(2, s.pc_bits()), i.load.word);
    if let Some(((meets, load), executing)) = meets.zip(i.load_side).zip(core.executing) {
        let side_table = m.memory("side_table", Reconvergence::shape(s), s.pc_bits()).style(MemoryStyle::Block);
        meets.drive(side_table.read_sync_if(!load.valid, executing, Collision::Never));
        side_table.write(load.valid, load.pc, load.entry);
        if let Some(uniform) = uniform {
            let copy = m.memory("uniform", 1, s.pc_bits()).style(MemoryStyle::Block);
            uniform.drive(copy.read_sync_if(!load.valid, core.fetch_pc, Collision::Never));
            copy.write(load.valid, load.pc, load.entry.uniform);
        }
    }
    let load = Load { read: i.load.read.map(|_| 1), ..Load::shape(s) };
    let inputs = MemorySystemIn {
        request: core.request,
        response_ready: core.response_ready,
        load: i.load,
        restart,
        set_jitter: i.set_jitter,
        wb: i.wb,
    };
    let memory = m.instance("memory", &memory_system(s, load), inputs);
    request_ready.drive(memory.request_ready);
    response.drive(memory.response);
    if let Some((deferred, miss)) = miss.zip(memory.miss) {
        deferred.drive(miss);
    }
    if let Some((deferred, error)) = bus_error.zip(memory.error) {
        deferred.drive(error);
    }

    let idle = core.idle & memory.idle;
    let inputs = DistributorIn {
        launch: i.launch,
        entry: i.entry,
        blocks: i.blocks,
        block_threads: i.block_threads,
        start_ready: core.start_ready,
        live: core.live,
        quiet: core.quiet,
        idle,
    };
    given.drive(m.instance("distributor", &distributor(s), inputs));
    wire!(stopped = done | core.fault.valid);
    let (fault, exit, live, counts) = (core.fault, core.exit, core.live, core.counts);
    let system = SystemOut { done, fault, stopped, exit, live, wb: memory.wb, counts };
    HostedOut { system, idle: idle & !more, loaded: memory.loaded }
}
