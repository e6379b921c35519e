use super::*;
use crate::*;
use std::collections::BTreeSet;

/// Something of every operation, with state, a memory of two write ports, and two instances of a module.
fn everything() -> Arc<Module> {
    let inner = module("inner", [8, 8], |m, [a, b]| {
        let held = m.reg("held", 8).reset(3u32);
        held.next_if(a.lt(b), a - b);
        [held.q]
    });
    let top = module("top", [8, 8, 1], |m, [a, b, c]| {
        let word = m.memory("words", 8, 2).init([1u32, 2, 3].map(Bits::from).to_vec());
        word.write(c, a.slice(0, 2), b);
        word.write(a.any(), b.slice(0, 2), a);
        let read = word.read_sync(a.slice(3, 2), Collision::ReadOld);
        let first = m.instance("first", &inner, [a, b]);
        let second = m.instance("second", &inner, [b, read]);
        let table = case(a, &[(1u32, a), (2, b), (3, a ^ b)], a | b);
        let shifts = a.shl(b) ^ a.shr(b) ^ a.sar(b);
        let tests = cat(&[a.eq(b), a.ne(b), a.lt_signed(b), a.any(), a.all(), a.parity()]);
        let chosen = c.mux(a & b, !a) + table;
        let wide = a.mul_full(b) + a.mul_full_signed(b) + tests.zext(16) + a.sext(16) + (a * b).zext(16);
        let ones = wide.count_ones().zext(8) + a.select(b, 1).zext(8) + m.lit(5u32, 8);
        let unseen = m.reg("unseen", 8).reset(0u32);
        unseen.next(unseen.q + 1);
        m.assert("unseen_is_not_a", unseen.q.ne(a));
        vec![first[0], second[0], shifts, chosen, ones]
    });
    top.check().unwrap().netlist
}

#[test]
fn every_kind_of_mistake_is_made() {
    let kinds: BTreeSet<String> = mutants(&everything()).into_iter().map(|m| m.kind).collect();
    let wanted = "add:sub all:any and:or and:without_first and:without_second any:all case:arms_0_1 case:without_arm_0 \
                  cat:parts_0_1 const:high_bit const:minus_1 const:plus_1 count_ones:plus_1 eq:ne instance:and_next_input \
                  lt:ge lt:le lt:signed lt_signed:ge lt_signed:le lt_signed:unsigned mul:add mul_full:signed \
                  mul_full_signed:unsigned mux:always_first mux:always_second mux:exchanged ne:eq not:same or:and \
                  or:without_first or:without_second parity:any read:never read:new_word register:always_enabled \
                  register:never_enabled register:no_reset register:reset_other sar:shr select:next sext:zext shl:shr \
                  shr:sar shr:shl slice:higher slice:lower sub:add write:always write:before_others write:never xor:and \
                  xor:or zext:sext";
    let missing: Vec<&str> = wanted.split_whitespace().filter(|kind| !kinds.contains(*kind)).collect();
    assert!(missing.is_empty(), "{missing:?} of {kinds:?}");
}

#[test]
fn names_are_unique_and_lead_back_to_the_mutant() {
    let top = everything();
    let all = mutants(&top);
    assert_eq!(all.iter().map(|m| &m.name).collect::<BTreeSet<_>>().len(), all.len());
    for mutant in all {
        let mutated = mutant.apply(&top).unwrap();
        assert_ne!(mutated, top, "{}", mutant.name);
        assert_eq!(apply(&top, &mutant.name).unwrap(), mutated, "{}", mutant.name);
    }
}

#[test]
fn one_definition_changes_with_all_its_instances_and_no_other() {
    let top = everything();
    let mutant = mutants(&top).into_iter().find(|m| m.kind == "sub:add").unwrap();
    assert_eq!((mutant.module.as_str(), mutant.signal.as_str()), ("inner", "held"));
    let mutated = mutant.apply(&top).unwrap();
    assert!(Arc::ptr_eq(&mutated.instances[0].module, &mutated.instances[1].module));
    assert_ne!(mutated.instances[0].module, top.instances[0].module);
    assert_eq!(mutated.nodes, top.nodes);
}

#[test]
fn what_only_an_assertion_sees_is_left_alone() {
    let all = mutants(&everything());
    assert!(all.iter().all(|m| m.signal != "unseen" && m.signal != "unseen_is_not_a"));
}

#[test]
fn a_mistake_that_makes_a_loop_is_refused() {
    // Bit 0 of the wire feeds bit 1; taken one higher, bit 1 feeds itself.
    let top = module("top", [1], |m, [a]| {
        let wire = m.deferred("both", 2);
        wire.drive(cat(&[a, wire.value.slice(0, 1)]));
        [wire.value]
    });
    let top = top.check().unwrap().netlist;
    let looped = mutants(&top).into_iter().find(|m| m.kind == "slice:higher").unwrap();
    assert!(looped.apply(&top).is_err());
    assert!(matches!(apply(&top, &looped.name), Err(NotHere::Loop { .. })));
}

#[test]
fn unknown_names_say_what_is_not_there() {
    let top = everything();
    let why = |name: &str| apply(&top, name).unwrap_err().to_string();
    assert_eq!(why("inner"), "`inner` is no name of a mutant");
    assert_eq!(why("inner:held"), "`inner:held` is no name of a mutant");
    assert_eq!(why("outer:held:no_reset"), "the design has no module `outer`");
    assert_eq!(why("inner:held:no_memory"), "this module `inner` has no mutant `inner:held:no_memory`");
}
