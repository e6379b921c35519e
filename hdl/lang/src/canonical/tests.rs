use super::{hash, hash_with_properties};
use crate::*;

#[derive(Bundle, Clone, Copy)]
struct In<T> {
    a: T,
    b: T,
    take: T,
}

#[derive(Bundle, Clone, Copy)]
struct Out<T> {
    out: T,
}

fn of(describe: impl FnOnce(Builder, In<Signal>) -> Signal) -> u64 {
    let inputs = In { a: 8, b: 8, take: 1 };
    let design = module("top", inputs, |m, i| Out { out: describe(m, i) }).check().unwrap();
    hash(&design.netlist).unwrap()
}

/// The description that others are compared with.
fn usual() -> u64 {
    of(|m, In { a, b, take }| {
        let sum = m.reg("sum", 8).reset(3u32);
        sum.next_if(take, sum.q + (a & b));
        let words = m.memory("words", 8, 2);
        words.write(take, a.slice(0, 2), sum.q);
        words.read_sync(b.slice(0, 2), Collision::ReadOld)
    })
}

#[derive(Bundle, Clone, Copy)]
struct Halves<T> {
    low: T,
    high: T,
}

#[test]
fn hierarchy_names_and_grouping_do_not_count() {
    #[derive(Bundle, Clone, Copy)]
    struct BitIn<T> {
        a: T,
        b: T,
    }
    let both = module("both_bits", BitIn { a: 1, b: 1 }, |_, BitIn { a, b }| Out { out: b & a });
    let other = of(|m, In { a, b, take }| {
        let product = m.replicate("product", 8, &both, BitIn { a: each(a), b: each(b) }).out;
        // Two registers, without an enable; what is not taken stays.
        let low = m.reg("low", 4).reset(3u32);
        let high = m.reg("high", 4).reset(0u32);
        let sum = cat(&[low.q, high.q]);
        let next = !((product + sum) & take.repeat(8)) & !(sum & (!take).repeat(8));
        wire!(named = !next);
        let kept = (!take).mux(sum, product + sum);
        low.next(kept.slice(0, 4));
        high.next(kept.slice(4, 4));
        m.assert("it_is_the_same", named.eq(kept));
        let ghost = m.reg("ghost", 8);
        ghost.next(named);
        m.cover("ghost", ghost.q.any());
        let words = m.memory("other_words", Halves { low: 4, high: 4 }, 2);
        words.write(take, a.slice(0, 2), Halves { low: low.q, high: high.q });
        let Halves { low, high } = words.read_sync(b.slice(0, 2), Collision::ReadOld);
        cat(&[low, high])
    });
    assert_eq!(other, usual());
}

/// Each of these is another machine.
#[test]
fn every_difference_counts() {
    let described = |reset: u32, style: MemoryStyle, collision: Collision, swapped: bool, carries: bool| {
        of(|m, In { a, b, take }| {
            let sum = m.reg("sum", 8).reset(reset);
            sum.next_if(take, if carries { sum.q + (a & b) } else { sum.q ^ (a & b) });
            let words = m.memory("words", 8, 2).style(style);
            let (write, read) = if swapped { (b, a) } else { (a, b) };
            words.write(take, write.slice(0, 2), sum.q);
            words.read_sync(read.slice(0, 2), collision)
        })
    };
    let (auto, old) = (MemoryStyle::Auto, Collision::ReadOld);
    let all = [
        described(3, auto, old, false, true),
        described(2, auto, old, false, true),
        described(3, MemoryStyle::Block, old, false, true),
        described(3, auto, Collision::ReadNew, false, true),
        described(3, auto, old, true, true),
        described(3, auto, old, false, false),
    ];
    assert_eq!(all[0], usual());
    for (k, one) in all.iter().enumerate() {
        assert!(!all[..k].contains(one), "number {k} is like one before it");
    }
}

/// Bits that nothing but a distant cycle tells apart.
#[test]
fn a_difference_far_from_the_outputs_counts() {
    let chain = |inverted: Option<usize>| {
        of(|m, In { a, .. }| {
            (0..40).fold(a, |value, k| {
                let next = if inverted == Some(k) { !value } else { value };
                m.pipe(&format!("stage_{k}"), next)
            })
        })
    };
    let plain = chain(None);
    assert_eq!(plain, chain(None));
    assert_ne!(plain, chain(Some(0)));
    assert_ne!(plain, chain(Some(39)));
    assert_ne!(chain(Some(3)), chain(Some(4)));
}

/// Registers of one colour may hold different values: they are not folded as if they were one.
#[test]
fn what_looks_alike_is_not_the_same() {
    let of_two = |both: fn(Signal, Signal) -> Signal| {
        of(|m, In { a, .. }| {
            let (x, y) = (m.reg("x", 8), m.reg("y", 8));
            x.next(x.q + a);
            y.next(y.q + a);
            both(x.q, y.q)
        })
    };
    assert_ne!(of_two(|x, y| x ^ y), of_two(|x, _| x ^ x.literal(0u32)));
    // Which of two that nothing tells apart is meant is not seen.
    assert_eq!(of_two(|x, _| x), of_two(|_, y| y));
}

/// Proofs are of what properties say, be it about state that nothing else needs.
#[test]
fn properties_count_where_they_are_asked_for() {
    let of = |describe: &dyn Fn(Builder, In<Signal>, Signal)| {
        let inputs = In { a: 8, b: 8, take: 1 };
        let design = module("top", inputs, |m, i| {
            let ghost = m.reg("ghost", 8);
            ghost.next(i.a);
            describe(m, i, ghost.q);
            Out { out: i.a & i.b }
        });
        let netlist = design.check().unwrap().netlist;
        [hash(&netlist), hash_with_properties(&netlist)].map(Result::unwrap)
    };
    let [plain, none] = of(&|_, _, _| {});
    let [same, one] = of(&|m, i, ghost| m.assert("holds", !i.take | ghost.eq(i.b)));
    assert_eq!((plain, plain), (same, none));
    assert_ne!(one, none);
    let other = |describe: &dyn Fn(Builder, In<Signal>, Signal)| of(describe)[1];
    assert_eq!(one, other(&|m, i, ghost| m.assert("holds", i.b.eq(ghost) | !i.take)));
    assert_ne!(one, other(&|m, i, ghost| m.assert("holds", i.take | ghost.eq(i.b))));
    assert_ne!(one, other(&|m, i, ghost| m.assume("holds", !i.take | ghost.eq(i.b))));
    assert_ne!(one, other(&|m, i, ghost| m.assert("is_held", !i.take | ghost.eq(i.b))));
}
