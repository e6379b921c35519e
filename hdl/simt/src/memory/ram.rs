//! On-chip memory, one bank per lane: takes a request in every cycle, answers in the next.
//!
//! While an answer waits to be taken, no request is: the banks' outputs hold it, which costs a gate. That gate is
//! between write-back and the banks' enables, which are far from it. So it is there only if
//! [answers may have to wait](Shape::answers_wait).

use super::bank::{BankAtomic, BankIn, bank};
use super::port::{Load, Operation, Request, Response};
use super::{MainIn, MainOut};
use crate::shape::Shape;
use heddle_hdl::{all, each, elements, prelude::*};

/// On-chip memory of a shape.
pub fn ram(s: &Shape, inputs: MainIn<Width>) -> TypedModule<MainIn<Width>, MainOut<Signal>> {
    module("ram", inputs, |m, MainIn { request, response_ready, load, .. }| {
        m.doc("On-chip memory, one bank a lane.");
        let answered = m.reg("answered", 1).reset(0u32);
        let waits = answered.q & !response_ready;
        if !s.answers_wait() {
            m.assert("answers_are_taken_at_once", !waits);
        }
        wire!(held = if s.answers_wait() { waits } else { m.lit(0u32, 1) });
        wire!(taken = request.valid & !held);
        answered.next(held | (taken & !request.operation.bit(Operation::SILENT)));
        if s.answers_wait() {
            m.cover("response_held", held);
        }
        let data = banks(m, s, taken, request, load);
        MainOut {
            request_ready: !held,
            response: Response { valid: answered.q, tag: m.pipe_if("tag", taken, request.tag), data },
            idle: !(answered.q | m.pipe_reset("writing", taken | load.valid)),
            loaded: load.read.map(|_| data),
            wb: None,
            error: None,
        }
    })
}

/// The banks, with a request that is `taken` in this cycle, or the host's word. Gives the line as it was before, from
/// the next cycle on until the next access.
pub(super) fn banks(m: Builder, s: &Shape, taken: Signal, request: Request<Signal>, load: Load<Signal>) -> Signal {
    let load_bank = if s.lanes == 1 { load.valid } else { load.address.slice(2, s.lane_bits()).decode(s.lanes) };
    let load_enables = cat(&elements(load_bank, 1).into_iter().map(|b| b.repeat(4)).collect::<Vec<_>>());
    let is_load = request.operation.eq(Operation::Load);
    wire!(line = request.valid.mux(request.line, load.address.from_bit(2 + s.lanes.ilog2())));
    wire!(enables = request.valid.mux(request.enables, load_enables));
    wire!(writes = request.valid.mux(!is_load, load.writes()));
    wire!(store = request.valid.mux(request.data, load.word.repeat(s.lanes)));
    m.assert("load_only_while_idle", !(load.valid & request.valid));
    let valid = request.operation.bit(Operation::IS_ATOMIC) & request.valid;
    let inputs = BankIn {
        access: all(taken | load.valid),
        line: all(line),
        writes: all(writes),
        enables: each(enables),
        data: each(store),
        atomic: s.atomics.then(|| all(BankAtomic { valid, function: request.function })),
    };
    m.replicate("bank", s.lanes, &bank(s.line_bits(), s.atomics), inputs).word
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Bench, Traffic};
    use crate::shape::{Replay, Shape};

    #[test]
    fn requests_take_effect_in_order() {
        for (lanes, atomics, seed) in [(1, true, 1), (4, false, 2), (64, true, 3)] {
            let s = Shape { atomics, memory: 64 << 10, stack: 64, ..Shape::new(lanes, 1) };
            // Answers wait.
            let serialise = Shape { replay: Replay::Serialise, ..s.clone() };
            let mut bench = Bench::new(&serialise, seed);
            bench.run(&Traffic::default());
            assert!(bench.t.cover_hits("main.response_held") > 0);
            // They do not.
            Bench::new(&s, seed).run(&Traffic { response_odds: 8, ..Traffic::default() });
        }
    }

    /// Where nothing holds an answer, one that is not taken is noticed.
    #[test]
    #[should_panic = "answers_are_taken_at_once"]
    fn an_answer_that_is_not_taken() {
        let s = Shape { memory: 64 << 10, stack: 64, ..Shape::new(4, 1) };
        Bench::new(&s, 1).run(&Traffic::default());
    }

    /// A request a cycle, each answered in the next.
    #[test]
    fn nothing_waits() {
        let s = Shape { atomics: true, memory: 64 << 10, stack: 64, ..Shape::new(4, 1) };
        let mut bench = Bench::new(&s, 1);
        let measured = bench.run(&Traffic::eager());
        assert_eq!((measured.latency.start(), measured.latency.end()), (&1, &1));
        assert_eq!(measured.requests, measured.cycles);
    }
}
