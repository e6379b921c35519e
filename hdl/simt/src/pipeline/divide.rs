//! The divider: iterative, one divide instruction at a time for all its lanes, beside the pipeline.
//!
//! It is reserved at issue, takes the operands in stage 7, and offers its result until write-back takes it. Other
//! instructions pass it.

use super::collect::Operands;
use super::timing::{DIVIDER_STEPS, DIVISION_END, ISSUE_TO_EXECUTE};
use crate::lane::divider::{DividerIn, divider};
use crate::shape::Shape;
use heddle_hdl::{all, each, prelude::*};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct DivideIn<T> {
    /// A divide instruction issues.
    pub reserve: T,
    /// Stage 7: the instruction with its dividends, and the divisors as the ALUs have them.
    pub operands: Operands<T>,
    pub divisors: Divisors<T>,
    /// Write-back takes the result in this cycle.
    pub taken: T,
    /// Else the words of the result are 0.
    pub shown: T,
}

/// The divisors of all lanes, as [`DividerIn`] says.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Divisors<T> {
    /// 32 bits per lane.
    #[width(32 * s.lanes)]
    pub addends: T,
    /// One bit per lane.
    #[width(s.lanes)]
    pub negative: T,
}

/// The result, until it is taken.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Quotient<T> {
    pub valid: T,
    #[width(s.slot_bits())]
    pub slot: T,
    #[width(5)]
    pub rd: T,
    #[width(s.lanes)]
    pub mask: T,
    /// 32 bits per lane; 0 while it is not shown.
    #[width(32 * s.lanes)]
    pub data: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct DivideOut<T> {
    pub free: T,
    pub result: Quotient<T>,
}

pub fn divide(s: &Shape) -> TypedModule<DivideIn<Width>, DivideOut<Signal>> {
    let inputs =
        DivideIn { reserve: 1, operands: Operands::shape(s), divisors: Divisors::shape(s), taken: 1, shown: 1 };
    module("divide", inputs, |m, i| {
        m.doc("The iterative divider of all lanes.");
        let Operands { instruction, a, .. } = i.operands;
        // Nothing stalls after issue, so it is known when the operands come: a register says so to every bit of every
        // lane.
        wire!(start = (0..ISSUE_TO_EXECUTE).fold(i.reserve, |at, k| m.pipe_reset(&format!("comes_{k}"), at)));
        m.assert("comes_when_it_was_reserved", start.eq(instruction.valid & instruction.decoded.divide));
        let reserved = m.reg("reserved", 1).reset(0u32);
        reserved.next((reserved.q & !i.taken) | i.reserve);
        // Cycles left, the last of which is the end, and whether the result waits.
        let steps = m.reg("steps", count_width(DIVIDER_STEPS + DIVISION_END)).reset(0u32);
        wire!(stepping = steps.q.any());
        steps.next_if(start | stepping, start.mux(steps.q.literal(DIVIDER_STEPS + DIVISION_END), steps.q - 1));
        let done = m.reg("done", 1).reset(0u32);
        wire!(last = steps.q.eq(1));
        done.next((done.q & !i.taken) | last);
        let lanes = m.replicate(
            "lane",
            s.lanes,
            &divider(),
            DividerIn {
                start: all(start),
                step: all(stepping & !last),
                ends: all(last),
                operation: all(instruction.decoded.funct3),
                a: each(a),
                divisor: each(i.divisors.addends),
                b_negative: each(i.divisors.negative),
                shown: all(i.shown),
            },
        );
        m.assert("one_at_a_time", !(i.reserve & reserved.q));
        m.assert("taken_when_done", !i.taken | done.q);
        m.assert("taken_when_shown", !i.taken | i.shown);
        let result = Quotient {
            valid: done.q,
            slot: m.pipe_if("slot", start, instruction.slot),
            rd: m.pipe_if("rd", start, instruction.decoded.rd),
            mask: m.pipe_if("mask", start, instruction.mask),
            data: lanes.result,
        };
        DivideOut { free: !reserved.q, result }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::testing::packed;
    use crate::pipeline::timing::ISSUE_TO_QUOTIENT;
    use heddle_sim::Sim;

    /// Reserved at issue, started in stage 7, ready when the table says, free when taken. Other instructions pass stage
    /// 7 meanwhile.
    #[test]
    fn the_life_of_a_division() {
        for (lanes, seed) in [(1, 1), (2, 2), (8, 3)] {
            println!("{lanes} lanes, seed {seed}");
            let s = Shape::new(lanes, 4);
            let mut r = fastrand::Rng::with_seed(seed);
            let mut t = Sim::new(&divide(&s).check().unwrap());
            t.reset();
            let zero = Operands::shape(&s).map("", &mut |_, _| Bits::ZERO);
            for _ in 0..4 {
                let quotients: Vec<u32> = (0..lanes).map(|_| r.u32(..)).collect();
                let b = 1 + r.u32(..1000);
                let a: Vec<u32> = quotients.iter().map(|&q| q / b * b + r.u32(..b)).collect();
                let (slot, rd, mask) = (r.u32(..4), r.u32(1..32), r.u32(..1 << lanes));
                let passes = r.u32(..5);
                let ready_at = ISSUE_TO_QUOTIENT;
                for cycle in 0..2 * ready_at {
                    // Something is in stage 7 all the time.
                    let divides = cycle == ISSUE_TO_EXECUTE;
                    let decoded = crate::pipeline::decoded::Decoded {
                        divide: divides.into(),
                        funct3: if divides { 5u32 } else { r.u32(..8) }.into(),
                        rd: if divides { rd } else { 1 }.into(),
                        ..zero.instruction.decoded.clone()
                    };
                    let instruction = crate::pipeline::collect::Instruction {
                        valid: true.into(),
                        slot: if divides { slot } else { 0 }.into(),
                        mask: if divides { mask } else { 1 }.into(),
                        decoded,
                        tag: 0u32.into(),
                        homes: None,
                    };
                    // Divisors without signs.
                    let divisors = Divisors { addends: packed(&vec![!b; lanes as usize]), negative: Bits::ZERO };
                    let operands = if divides {
                        Operands { instruction, a: packed(&a), ..zero.clone() }
                    } else {
                        Operands { instruction, a: packed(&quotients), ..zero.clone() }
                    };
                    let taken = cycle == ready_at + passes;
                    let shown = taken || r.bool();
                    let reserve = cycle == 0;
                    t.poke(DivideIn {
                        reserve: reserve.into(),
                        operands,
                        divisors,
                        taken: taken.into(),
                        shown: shown.into(),
                    });
                    let out = t.peek();
                    let over = cycle > ready_at + passes;
                    assert_eq!(out.free == 1, cycle == 0 || over, "cycle {cycle}");
                    assert_eq!(out.result.valid == 1, cycle >= ready_at && !over, "cycle {cycle}");
                    if out.result.valid == 1 {
                        let result = out.result;
                        assert_eq!((result.slot.low_u64(), result.rd.low_u64()), (slot.into(), rd.into()));
                        assert_eq!(result.mask, u64::from(mask));
                        for k in 0..lanes {
                            let got = result.data.extract(32 * k, 32);
                            let want = if shown { a[k as usize] / b } else { 0 };
                            assert_eq!(got, u64::from(want), "lane {k}");
                        }
                    }
                    t.step();
                }
            }
        }
    }
}
