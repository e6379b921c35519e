//! A fault stops issue and whatever is behind it, and stays until reset: of an instruction in resolve, of the
//! divergence unit, or of the bus.

use super::{BackEnd, Backward, CoreIn, FrontEnd};
use crate::divergence::interface::{Culprit, Outcome, Refused, warp_of};
use crate::isa::FaultCause;
use crate::pipeline::resolve::Fault;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// The first fault, from the cycle after it on. `stopped` is told of it.
pub fn faults(
    s: &Shape,
    m: Builder,
    i: &CoreIn<Signal>,
    back: &Backward,
    (front, end): (&FrontEnd, &BackEnd),
    stopped: Reg<Signal>,
) -> Fault<Signal> {
    let fault = end.resolved.fault;
    m.assert("one_fault", !(fault.valid & stopped.q));
    let fault = front.unit.more.refused.map_or(fault, |refused| {
        let Outcome { slot, taken, rest, homes, .. } = end.resolved.outcome;
        let pc = m.pipe("s9_pc", end.in_resolve.decoded.pc);
        let here = Culprit { slot: warp_of(s, slot), pc, mask: taken.mask | rest.mask, homes };
        let Refused { valid, cause, because } = refused;
        let Culprit { slot, pc, mask, homes } = because.unwrap_or(here);
        let of_unit = Fault { valid, cause, slot, pc, mask, homes, address: m.lit(0u32, 32) };
        let of_unit = m.stage("s10_refused", of_unit);
        fault.valid.mux(fault, Fault { valid: of_unit.valid & !stopped.q, ..of_unit })
    });
    let fault = i.bus_error.map_or(fault, |error| {
        let valid = error.valid & !stopped.q;
        let [cause, address] = [m.code(FaultCause::BusError), error.address.zext(32)];
        fault.valid.mux(fault, Fault { valid, cause, address, ..m.zero(Fault::shape(s)) })
    });
    back.faulted.drive(fault.valid);
    stopped.next(stopped.q | fault.valid);
    let held = m.pipe_if("held_fault", fault.valid, fault);
    Fault { valid: stopped.q, ..held }
}
