//! Tops for boards: the [system](mod@crate::system) with a [host](crate::host), which a stream of bytes drives.
//!
//! [`hosted`] has the stream as ports; [`over_uart`] has two pins.

use crate::host::uart::{Byte, UartIn, UartOut, uart};
use crate::host::{HostIn, HostOut, Identity, host};
use crate::memory::wishbone::{FromSlave, ToSlave};
use crate::shape::Shape;
use crate::system::{self, HostedOut, SystemIn, SystemOut};
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct StreamIn<T> {
    /// A byte for the host; stays until `rx_ready`.
    #[width(Byte::SHAPE)]
    pub rx: Byte<T>,
    /// The byte `tx` is taken.
    pub tx_ready: T,
    /// If main memory is on a bus.
    #[width(s.bus_width().map(FromSlave::shape))]
    pub wb: Option<FromSlave<T>>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct StreamOut<T> {
    pub rx_ready: T,
    /// A byte from the host; stays until `tx_ready`.
    pub tx: Byte<T>,
    /// A launch is under way, or has ended; the core has stopped by a fault. For lamps.
    pub done: T,
    pub fault: T,
    /// If main memory is on a bus: what is on it must be reset in this cycle.
    pub resets: Option<T>,
    pub wb: Option<ToSlave<T>>,
}

/// The top, `heddle_host`.
pub fn hosted(s: &Shape, identity: Identity) -> TypedModule<StreamIn<Width>, StreamOut<Signal>> {
    module("heddle_host", StreamIn::shape(s), |m, i| described(m, s, identity, i))
}

fn described(m: Builder, s: &Shape, identity: Identity, i: StreamIn<Signal>) -> StreamOut<Signal> {
    m.doc(&format!("Heddle with its host: {} lanes, {} warps, {} bytes of memory.", s.lanes, s.warps, s.memory));
    let seen = m.deferred("seen", HostIn::shape(s));
    let HostOut { rx_ready, tx, load, load_side, launch, entry, blocks, block_threads, program_end, resets } =
        m.instance("host_unit", &host(s, identity), seen.value);
    let definition = system::hosted(s);
    let set_jitter = definition.inputs().set_jitter.map(|shape| m.zero(shape));
    let inputs = SystemIn { launch, entry, blocks, block_threads, program_end, load, load_side, set_jitter, wb: i.wb };
    let HostedOut { system: out, idle, loaded } = m.instance_with_reset("heddle", &definition, resets, inputs);
    let SystemOut { done, fault, exit, wb, counts, .. } = out;
    seen.drive(HostIn { rx: i.rx, tx_ready: i.tx_ready, idle, done, fault, exit, line: loaded, counts });
    StreamOut { rx_ready, tx, done, fault: fault.valid, resets: i.wb.map(|_| resets), wb }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct PinsIn<T> {
    pub rx: T,
    /// If main memory is on a bus.
    #[width(s.bus_width().map(FromSlave::shape))]
    pub wb: Option<FromSlave<T>>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct PinsOut<T> {
    pub tx: T,
    /// See [`StreamOut`].
    pub done: T,
    pub fault: T,
    pub resets: Option<T>,
    pub wb: Option<ToSlave<T>>,
}

/// The top, `heddle_uart`: a bit on its pins takes `divisor` cycles.
pub fn over_uart(s: &Shape, identity: Identity, divisor: u32) -> TypedModule<PinsIn<Width>, PinsOut<Signal>> {
    module("heddle_uart", PinsIn::shape(s), |m, i| {
        m.doc(&format!("Heddle with its host and a UART, {divisor} cycles a bit."));
        let sends = m.deferred("sends", Byte::SHAPE);
        let received_ready = m.deferred("received_ready", 1);
        let inputs = UartIn { rx: i.rx, received_ready: received_ready.value, send: sends.value };
        let UartOut { tx, received, send_ready } = m.instance("uart", &uart(divisor), inputs);
        let inputs = StreamIn { rx: received, tx_ready: send_ready, wb: i.wb };
        let out = m.instance("system", &hosted(s, identity), inputs);
        sends.drive(out.tx);
        received_ready.drive(out.rx_ready);
        PinsOut { tx, done: out.done, fault: out.fault, resets: out.resets, wb: out.wb }
    })
}
