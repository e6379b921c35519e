//! Enums whose variants are numbers.

use crate::common::refused;
use heddle_hdl::netlist::Op;
use heddle_hdl::{case, prelude::*};

#[derive(Code, Clone, Copy, PartialEq, Debug)]
enum Step {
    Idle,
    Asks,
    Waits = 5,
}

const BITS: Width = 3;

#[derive(Code, Clone, Copy, PartialEq, Debug)]
#[code(width = BITS + 1)]
enum Wide {
    High = 1 << BITS,
    Low = 1,
}

#[derive(Code, Clone, Copy, PartialEq, Debug)]
enum One {
    Only,
}

#[derive(Code, Clone, Copy, PartialEq, Debug)]
#[repr(u64)]
enum Long {
    Most = u64::MAX,
}

#[test]
fn widths_and_numbers() {
    assert_eq!((Step::WIDTH, Wide::WIDTH, One::WIDTH, Long::WIDTH), (3, 4, 1, 64));
    assert_eq!(Step::ALL, [Step::Idle, Step::Asks, Step::Waits]);
    assert_eq!(Wide::ALL, [Wide::High, Wide::Low]);
    assert_eq!((Step::Waits.code(), Wide::High.code(), Long::Most.code()), (5, 8, u64::MAX));
    assert_eq!(Bits::from(5u32), Step::Waits);
    assert_ne!(Bits::ones(65), Long::Most);
}

#[test]
fn numbers_are_codes_or_none() {
    assert_eq!([0u32, 1, 2, 5].map(Step::from_bits), [Some(Step::Idle), Some(Step::Asks), None, Some(Step::Waits)]);
    let asks = Bits::from(Step::Asks);
    assert_eq!(Step::from_bits(&asks), Some(Step::Asks));
    assert_eq!((Long::from_bits(u64::MAX), Long::from_bits(Bits::ones(65))), (Some(Long::Most), None));
}

/// The same netlist as that of the numbers.
#[test]
fn a_code_is_a_literal() {
    fn described<C: Into<Bits> + Clone + Operand + Copy>(code: C, constant: fn(Builder) -> Signal) -> (Vec<Op>, Bits) {
        let top = module("top", [Step::WIDTH], |m, [a]| {
            let step = m.reg("step", Step::WIDTH).reset(code);
            step.next(case(a, &[(code, constant(m))], a.literal(code)));
            [step.q.eq(code), a ^ code]
        });
        let netlist = top.check().unwrap().netlist;
        let reset = netlist.registers[0].reset.clone().expect("a reset");
        (netlist.nodes.iter().map(|node| node.op.clone()).collect(), reset)
    }
    assert_eq!(described(Step::Waits, |m| m.code(Step::Waits)), described(5u32, |m| m.lit(5u32, 3)));
}

#[test]
fn a_code_wider_than_the_signal() {
    refused("literal 0x5 needs 3 bits and is to have 1", |_, i| (i.on.eq(Step::Waits), line!()));
}
