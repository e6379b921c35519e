//! What is behind the core's memory port.
//!
//! | file | what |
//! |---|---|
//! | [`port`] | the port: requests and responses |
//! | [`atomic`](mod@atomic) | what an atomic operation makes of a word |
//! | [`bank`](mod@bank) | one word of every line, with atomic operations |
//! | [`ram`](mod@ram) | on-chip memory, one bank per lane |
//! | [`cache`](mod@cache) | first-level data cache |
//! | [`scratchpad`](mod@scratchpad) | memory of blocks: in every cycle a line of its own for each bank; the core has it, beside the port |
//! | [`second_level`](mod@second_level) | second-level cache, and the channel behind it: time only, for simulation |
//! | [`model`](mod@model) | on-chip memory that answers later: for simulation |
//! | [`wishbone`](mod@wishbone) | a bridge to memory outside, on a bus |
//!
//! [`memory_system`] puts together what the shape asks for. `docs/reference/memory.md` has the whole.

pub mod atomic;
pub mod bank;
pub mod cache;
pub mod model;
pub mod port;
mod proof;
pub mod ram;
pub mod scratchpad;
pub mod second_level;
#[cfg(test)]
mod testing;
pub mod wishbone;

use crate::shape::{Backing, Shape};
use cache::CacheIn;
use heddle_hdl::prelude::*;
use model::SetJitter;
use port::{Load, Miss, Request, Response};
use wishbone::{BusError, FromSlave, ToSlave};

/// The core's side of the port, and the host's.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct MemorySystemIn<T> {
    /// Stays as it is until `request_ready`.
    pub request: Request<T>,
    /// The response is taken in this cycle.
    pub response_ready: T,
    /// The host writes or reads a word; only while no thread is live.
    pub load: Load<T>,
    /// A launch begins: since the last one, the host may have written memory in other ways too.
    pub restart: T,
    /// If main memory is a model with jitter.
    #[width(s.modelled().and_then(SetJitter::shape))]
    pub set_jitter: Option<SetJitter<T>>,
    /// If main memory is on a bus.
    #[width(s.bus_width().map(FromSlave::shape))]
    pub wb: Option<FromSlave<T>>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MemorySystemOut<T> {
    /// A request would be taken in this cycle.
    pub request_ready: T,
    /// Stays until `response_ready`.
    pub response: Response<T>,
    /// In a core that is told of it.
    pub miss: Option<Miss<T>>,
    /// Nothing is under way: everything stored is where the host reads it.
    pub idle: T,
    /// Where the host reads: main memory's line with the word that it asked for, from the next cycle on until the next
    /// access.
    pub loaded: Option<T>,
    /// If main memory is on a bus.
    pub wb: Option<ToSlave<T>>,
    pub error: Option<BusError<T>>,
}

/// Main memory's side of the port: behind the cache, if there is one.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MainIn<T> {
    pub request: Request<T>,
    pub response_ready: T,
    pub load: Load<T>,
    /// Of a second level.
    pub restart: Option<T>,
    pub set_jitter: Option<SetJitter<T>>,
    pub wb: Option<FromSlave<T>>,
}

/// As [`MemorySystemOut`].
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MainOut<T> {
    pub request_ready: T,
    pub response: Response<T>,
    pub idle: T,
    pub loaded: Option<T>,
    pub wb: Option<ToSlave<T>>,
    pub error: Option<BusError<T>>,
}

impl MainIn<Width> {
    pub fn shape(s: &Shape, tag_bits: Width) -> MainIn<Width> {
        let request = Request { tag: tag_bits, ..Request::shape(s) };
        let set_jitter = s.modelled().and_then(SetJitter::shape);
        let (restart, wb) = (s.second_level.map(|_| 1), s.bus_width().map(FromSlave::shape));
        MainIn { request, response_ready: 1, load: Load::shape(s), restart, set_jitter, wb }
    }
}

/// The memory of a shape; with a host that reads, if its [`Load`] does.
pub fn memory_system(s: &Shape, load: Load<Width>) -> TypedModule<MemorySystemIn<Width>, MemorySystemOut<Signal>> {
    module("memory_system", MemorySystemIn { load, ..MemorySystemIn::shape(s) }, |m, i| described(m, s, i))
}

fn described(m: Builder, s: &Shape, i: MemorySystemIn<Signal>) -> MemorySystemOut<Signal> {
    m.doc("Everything behind the core's memory port.");
    let MemorySystemIn { request, response_ready, load, restart, set_jitter, wb } = i;
    let of_main = |tag_bits: Width| {
        let load = Load { read: load.read.map(|_| 1), ..Load::shape(s) };
        main(s, MainIn { load, ..MainIn::shape(s, tag_bits) })
    };
    let main_restart = s.second_level.map(|_| restart);
    let Some(c) = &s.cache else {
        let inputs = MainIn { request, response_ready, load, restart: main_restart, set_jitter, wb };
        let MainOut { request_ready, response, idle, loaded, wb, error } =
            m.instance("main", &of_main(request.tag.width()), inputs);
        return MemorySystemOut { request_ready, response, miss: None, idle, loaded, wb, error };
    };
    let tag_bits = cache::tag_bits(c);
    let below_request_ready = m.deferred("below_request_ready", 1);
    let below_response = m.deferred("below_response", Response { tag: tag_bits, ..Response::shape(s) });
    let inputs = CacheIn {
        restart,
        request,
        response_ready,
        below_request_ready: below_request_ready.value,
        below_response: below_response.value,
    };
    let cache = m.instance("cache", &cache::cache(s, c), inputs);
    let (request, response_ready) = (cache.below_request, cache.below_response_ready);
    let inputs = MainIn { request, response_ready, load, restart: main_restart, set_jitter, wb };
    let main = m.instance("main", &of_main(tag_bits), inputs);
    below_request_ready.drive(main.request_ready);
    below_response.drive(main.response);
    MemorySystemOut {
        request_ready: cache.request_ready,
        response: cache.response,
        miss: cache.miss,
        idle: cache.idle & main.idle,
        loaded: main.loaded,
        wb: main.wb,
        error: main.error,
    }
}

/// The main memory of a shape.
fn main(s: &Shape, inputs: MainIn<Width>) -> TypedModule<MainIn<Width>, MainOut<Signal>> {
    match s.backing {
        Backing::OnChip => ram::ram(s, inputs),
        Backing::Model(timing) => model::model(s, timing, inputs),
        Backing::Wishbone { width, .. } => wishbone::wishbone(s, width, inputs.request.tag),
    }
}

/// The memories that hold main memory, by their paths in a simulated system: word w is word w / n of the (w mod n)-th
/// of n.
pub fn banks(s: &Shape) -> Vec<String> {
    match s.bus_width() {
        None => (0..s.lanes).map(|lane| format!("memory.main.bank[{lane}].words")).collect(),
        Some(width) => (0..width / 32).map(|word| format!("slave.bank[{word}].words")).collect(),
    }
}
