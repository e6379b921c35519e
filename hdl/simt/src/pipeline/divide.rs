//! The divider: iterative, one divide instruction at a time for all its lanes, beside the pipeline.
//!
//! It is reserved at issue, takes the operands in stage 7, and offers its result until write-back takes it. Other
//! instructions pass it.

use super::collect::Operands;
use crate::lane::divider::{DividerIn, divider};
use crate::shape::Shape;
use heddle_hdl::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct DivideIn<T> {
    /// A divide instruction issues.
    pub reserve: T,
    /// Stage 7.
    pub operands: Operands<T>,
    /// Write-back takes the result in this cycle.
    pub taken: T,
}

/// The result, until it is taken.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Quotient<T> {
    pub valid: T,
    pub slot: T,
    pub rd: T,
    pub mask: T,
    /// 32 bits a lane.
    pub data: T,
}

impl Quotient<Width> {
    pub fn shape(s: &Shape) -> Quotient<Width> {
        Quotient { valid: 1, slot: s.warp_bits(), rd: 5, mask: s.lanes, data: 32 * s.lanes }
    }
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct DivideOut<T> {
    pub free: T,
    pub result: Quotient<T>,
}

pub fn divide(s: &Shape) -> TypedModule<DivideIn<Width>, DivideOut<Signal>> {
    module("divide", DivideIn { reserve: 1, operands: Operands::shape(s), taken: 1 }, |m, i| {
        m.doc("The iterative divider of all lanes.");
        let Operands { issued, a, b, .. } = i.operands;
        wire!(start = issued.valid & issued.decoded.divide);
        let reserved = m.reg("reserved", 1).reset(0u32);
        reserved.next((reserved.q & !i.taken) | i.reserve);
        // Steps left, and whether the result waits.
        let steps = m.reg("steps", 6).reset(0u32);
        wire!(stepping = steps.q.any());
        steps.next_if(start | stepping, start.mux(m.lit(32u32, 6), steps.q - 1));
        let done = m.reg("done", 1).reset(0u32);
        done.next((done.q & !i.taken) | steps.q.eq(1));
        let lanes = m.replicate(
            "lane",
            s.lanes,
            &divider(),
            DividerIn {
                start: all(start),
                step: all(stepping),
                operation: all(issued.decoded.funct3),
                a: each(a),
                b: each(b),
            },
        );
        m.assert("one_at_a_time", !(i.reserve & reserved.q));
        m.assert("taken_when_done", !i.taken | done.q);
        let result = Quotient {
            valid: done.q,
            slot: m.pipe_if("slot", start, issued.slot),
            rd: m.pipe_if("rd", start, issued.decoded.rd),
            mask: m.pipe_if("mask", start, issued.mask),
            data: lanes.result,
        };
        DivideOut { free: !reserved.q, result }
    })
}
