//! Operators refuse what would change a width silently, at the line where it stands.

use crate::common::refused;
use heddle_hdl::{case, elements, gather, prelude::*, select, unpack};

#[test]
fn operands_of_unequal_width() {
    let ab = |symbol| format!("`{symbol}`: a is 8 bits, b is 4 bits; try b.zext(8) or .sext(8)");
    let ba = |symbol| format!("`{symbol}`: b is 4 bits, a is 8 bits; try b.zext(8) or .sext(8)");
    refused(&ab("+"), |_, i| (i.a + i.b, line!()));
    refused(&ab("-"), |_, i| (i.a - i.b, line!()));
    refused(&ab("*"), |_, i| (i.a * i.b, line!()));
    refused(&ab("&"), |_, i| (i.a & i.b, line!()));
    refused(&ba("|"), |_, i| (i.b | i.a, line!()));
    refused(&ba("^"), |_, i| (i.b ^ i.a, line!()));
    refused(&ab("eq"), |_, i| (i.a.eq(i.b), line!()));
    refused(&ab("ne"), |_, i| (i.a.ne(i.b), line!()));
    refused(&ab("lt"), |_, i| (i.a.lt(i.b), line!()));
    refused(&ab("le"), |_, i| (i.b.le(i.a), line!()));
    refused(&ba("gt"), |_, i| (i.a.gt(i.b), line!()));
    refused(&ab("ge"), |_, i| (i.a.ge(i.b), line!()));
    refused(&ab("lt_signed"), |_, i| (i.a.lt_signed(i.b), line!()));
    refused(&ab("mux"), |_, i| (i.on.mux(i.a, i.b), line!()));
    refused(&ba("mux"), |_, i| (pick([(i.on, i.b)], i.a), line!()));
    refused(&ab("case"), |_, i| (case(i.b, &[(0u32, i.b)], i.a), line!()));
    refused(&ab("select"), |_, i| (select(&[i.a, i.b], i.on), line!()));
    refused(&ab("select_one_hot"), |_, i| (select_one_hot(&[i.a, i.b], i.a.slice(0, 2)), line!()));
    refused(&ab("same_as"), |_, i| (i.a.same_as(i.b), line!()));
}

#[test]
fn unnamed_values_and_slices_are_described() {
    refused("`+`: a is 8 bits, unnamed value is 4 bits; try .zext(8) or .sext(8) on the narrower", |_, i| {
        (i.a + !i.b, line!())
    });
    refused("`+`: a is 8 bits, c.slice(2, 3) is 3 bits; try c.slice(2, 3).zext(8) or .sext(8)", |_, i| {
        (i.a + i.c.slice(2, 3), line!())
    });
}

#[test]
fn literals_are_described() {
    let text = "`+`: a is 8 bits, literal 0x3 is 2 bits; try .zext(8) or .sext(8) on the narrower";
    refused(text, |m, i| (i.a + m.lit(3u32, 2), line!()));
}

#[test]
fn the_text_of_an_error() {
    #[derive(Bundle, Clone, Copy)]
    struct In<T> {
        pc: T,
        offset: T,
    }
    let declared = line!() + 1;
    let wrong = module("wrong", In { pc: 32, offset: 12 }, |_, i| {
        i.pc + i.offset //
    });
    let text = format!(
        "widths.rs:{}:9: `+`: pc is 32 bits (widths.rs:{declared}), offset is 12 bits (widths.rs:{declared}); \
         try offset.zext(32) or .sext(32)",
        declared + 1
    );
    let errors = wrong.check().err().unwrap();
    assert_eq!(errors.to_string(), text);
    assert!(format!("{errors:?}").ends_with(&text));
}

#[test]
fn literals() {
    refused("literal 0x100 needs 9 bits and is to have 8", |_, i| (i.a + 256, line!()));
    refused("literal 0x10 needs 5 bits and is to have 4", |_, i| (i.b.eq(16u64), line!()));
    refused("literal 0x2 needs 2 bits and is to have 1", |_, i| (i.on & 2, line!()));
    refused("literal 0x100 needs 9 bits and is to have 8", |m, i| (i.a + m.lit(256u32, 8), line!()));
    refused("literal 0x100 needs 9 bits and is to have 8", |_, i| (i.a.literal(256u32), line!()));
    refused("literal -1 is negative; signals are unsigned", |_, i| (i.a + -1, line!()));
    refused("a signal has at least 1 bit", |m, _| (m.lit(0u32, 0), line!()));
}

#[test]
fn parts() {
    refused("slice(5, 4) goes beyond the end: a is 8 bits", |_, i| (i.a.slice(5, 4), line!()));
    refused("slice(4294967295, 4) goes beyond the end: a is 8 bits", |_, i| (i.a.slice(u32::MAX, 4), line!()));
    refused("slice(0, 0) is empty: a is 8 bits", |_, i| (i.a.slice(0, 0), line!()));
    refused("slice(8, 1) goes beyond the end: a is 8 bits", |_, i| (i.a.bit(8), line!()));
    refused("slice(8, 0) is empty: a is 8 bits", |_, i| (i.a.from_bit(8), line!()));
    refused("select: elements of 3 bits do not divide the vector: a is 8 bits", |_, i| (i.a.select(i.b, 3), line!()));
    refused("elements: elements of 3 bits do not divide the vector: a is 8 bits", |_, i| (elements(i.a, 3), line!()));
    refused("elements: elements of 0 bits do not divide the vector: a is 8 bits", |_, i| (elements(i.a, 0), line!()));
    refused("elements: elements of 3 bits do not divide the vector: b is 4 bits", |_, i| {
        (gather(i.a, 4, i.b, 3), line!())
    });
    refused("unpack: a shape of 7 bits, but a is 8 bits", |_, i| (unpack([3, 4], i.a), line!()));
    refused("cat of nothing", |_, _| (cat(&[]), line!()));
    refused("cat of nothing", |_, i| (i.on.repeat(0), line!()));
    refused("select_one_hot: 2 items, but b is 4 bits", |_, i| (select_one_hot(&[i.a, i.c], i.b), line!()));
}

#[test]
fn extensions_do_not_narrow() {
    refused("zext(4): a is 8 bits; use slice to make it narrower", |_, i| (i.a.zext(4), line!()));
    refused("sext(0): a is 8 bits; use slice to make it narrower", |_, i| (i.a.sext(0), line!()));
}

#[test]
fn conditions_are_one_bit() {
    refused("the condition of mux must be 1 bit: b is 4 bits", |_, i| (i.b.mux(i.a, i.c), line!()));
    refused("the condition of only_if must be 1 bit: b is 4 bits", |_, i| (i.a.only_if(i.b), line!()));
    refused("the condition of only_if must be 1 bit: b is 4 bits", |_, i| (i.on.only_if(i.b), line!()));
}

#[test]
fn case_labels() {
    refused("case: label 0x10 does not fit the selector: b is 4 bits", |_, i| {
        (case(i.b, &[(3u32, i.a), (16, i.c)], i.a), line!())
    });
    refused("case: label 0x3 stands twice", |_, i| (case(i.b, &[(3u32, i.a), (3, i.c)], i.a), line!()));
}

#[test]
fn properties_are_one_bit() {
    refused("property `sure` must be 1 bit: a is 8 bits", |m, i| (i.a, (m.assert("sure", i.a), line!()).1));
    refused("property `sure` must be 1 bit: a is 8 bits", |m, i| (i.a, (m.assume("sure", i.a), line!()).1));
    refused("property `sure` must be 1 bit: a is 8 bits", |m, i| (i.a, (m.cover("sure", i.a), line!()).1));
}

#[test]
fn one_mistake_gives_one_message() {
    refused("`+`: a is 8 bits, b is 4 bits; try b.zext(8) or .sext(8)", |m, i| {
        let (wrong, at) = (i.a + i.b, line!());
        wire!(sum = wrong);
        let narrow = sum.slice(20, 3) + i.b;
        let held = m.pipe("held", narrow.any().mux(sum, i.a) & i.b);
        m.assert("fine", held);
        (cat(&[held, sum.zext(5)]).select(sum, 7), at)
    });
    refused("literal 0x100 needs 9 bits and is to have 8", |_, i| {
        let mut sum = i.a;
        let mut at = 0;
        for _ in 0..64 {
            (sum, at) = (i.a + 256, line!());
        }
        (sum, at)
    });
}

#[test]
fn every_mistake_is_reported() {
    let wrong = module("wrong", crate::common::PORTS, |_, i| [i.a + i.b, i.a.zext(2), i.a + 300]);
    assert_eq!(wrong.check().err().unwrap().0.len(), 3);
}

#[test]
fn wide_values() {
    let wide = module("wide", crate::common::PORTS, |m, i| {
        let ones = m.lit(Bits::ones(4096), 4096);
        wire!(sum = i.huge + ones);
        let product = sum.mul_full(i.huge);
        let held = m.reg("held", 8192).reset(Bits::ones(8192));
        held.next(product);
        [held.q.slice(8000, 192), i.huge.shl(i.huge).sar(4095), i.on.repeat(4096)]
    });
    let design = wide.check().unwrap();
    assert_eq!(design.netlist.outputs.iter().map(|p| p.width).collect::<Vec<_>>(), [192, 4096, 4096]);
    refused("literal 0x10000000000000000 needs 65 bits and is to have 64", |m, _| (m.lit(1u128 << 64, 64), line!()));
}

proptest::proptest! {
    /// Whatever the widths: either both are equal and the design is accepted, or there is one message.
    #[test]
    fn equal_widths_or_one_message(a in 1u32..200, b in 1u32..200) {
        let sum = module("sum", [a, b], |_, [x, y]| x + y);
        match sum.check() {
            Ok(design) => assert!(a == b && design.netlist.outputs[0].width == a),
            Err(errors) => assert!(a != b && errors.0.len() == 1),
        }
    }

    #[test]
    fn slices_stay_inside(width in 1u32..200, low in 0u32..300, part in 0u32..300) {
        let slice = module("cut", [width], |_, [x]| x.slice(low, part));
        assert_eq!(slice.check().is_ok(), part > 0 && low + part <= width);
    }

    #[test]
    fn literals_fit_or_not(value: u64, width in 1u32..=64) {
        let literal = module("number", [width], |_, [x]| x ^ value);
        assert_eq!(literal.check().is_ok(), width == 64 || value >> width == 0);
    }
}
