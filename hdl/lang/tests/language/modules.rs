//! Definitions, instances, replicated instances, and what belongs to which module.

use crate::common::{PORTS, Ports, refused, without_places};
use heddle_hdl::netlist::{Connection, Op};
use heddle_hdl::{all, each, prelude::*};

fn inverter(width: Width) -> TypedModule<[Width; 1], [Signal; 1]> {
    module("inverter", [width], |_, [x]| [!x])
}

#[test]
fn a_signal_of_another_module() {
    let text = "a signal of another module is used in `inner`; pass it through a port";
    refused(text, |m, i| {
        let mut at = 0;
        let inner = module("inner", [8], |_, [x]| {
            at = line!() + 1;
            x + i.a
        });
        (m.instance("part", &inner, [i.c]), at)
    });
    refused("a signal of another module is used in `top`; pass it through a port", |_, i| {
        let mut leaked = None;
        module("inner", [8], |_, [x]| (*leaked.insert(x)).only_if(x.any()));
        (leaked.unwrap() & i.a, line!())
    });
    refused("a signal of another module is used in `top`; pass it through a port", |m, i| {
        let mut leaked = None;
        module("inner", [8], |_, [x]| *leaked.insert(x));
        (m.memory("words", 8, 8).read_sync_if(i.on, leaked.unwrap(), Collision::Never), line!())
    });
}

#[test]
fn the_builder_of_another_module() {
    let text = "the builder of another module is used here";
    refused(text, |m, i| {
        let mut at = 0;
        let inner = module("inner", [8], |_, [x]| {
            at = line!() + 1;
            m.pipe("held", x)
        });
        (m.instance("part", &inner, [i.a]), at)
    });
    refused(text, |m, i| {
        let words = m.memory("words", 8, 8);
        let mut at = 0;
        let inner = module("inner", [8], |_, [x]| {
            at = line!() + 1;
            words.read(x)
        });
        (m.instance("part", &inner, [i.a]), at)
    });
    refused(text, |m, i| {
        let count = m.reg("count", 8);
        let mut inner = None;
        module("inner", [8], |m, [x]| {
            inner = Some(m);
            x
        });
        count.next(i.a);
        (inner.unwrap().pipe("late", i.a), line!())
    });
}

#[test]
#[should_panic(expected = "signals exist only while a module is being described")]
fn a_signal_outside_any_description() {
    let mut leaked = None;
    module("inner", [8], |_, [x]| *leaked.insert(x));
    let _ = leaked.unwrap() + 1;
}

#[test]
fn a_panic_leaves_the_outer_description_alone() {
    let outer = module("outer", [8], |_, [x]| {
        let failed = std::panic::catch_unwind(|| module("inner", [8], |_, [_]| -> Signal { panic!("on purpose") }));
        assert!(failed.is_err());
        x + 1
    });
    assert!(outer.check().is_ok());
}

#[test]
fn ports_of_instances() {
    refused("input `in_0` of `part` is 8 bits, but b is 4 bits", |m, i| {
        (m.instance("part", &inverter(8), [i.b]), line!())
    });
    refused("input `in_0` of `lane` is 12 bits, but a is 8 bits", |m, i| {
        (m.replicate("lane", 3, &inverter(4), [each(i.a)]), line!())
    });
    refused("input `in_0` of `lane` is 4 bits, but a is 8 bits", |m, i| {
        (m.replicate("lane", 3, &inverter(4), [all(i.a)]), line!())
    });
    refused("`lane` is replicated 0 times", |m, i| (m.replicate("lane", 0, &inverter(8), [all(i.a)]), line!()));
    refused("the name `lane` stands twice in module `top`", |m, i| {
        m.instance("lane", &inverter(8), [i.a]);
        (m.instance("lane", &inverter(8), [i.a]), line!())
    });
    let list = module("list", vec![8, 8], |_, i| i[0]);
    refused("inputs of `part`: bundles of 2 and of 1 signals; their lists differ in length", |m, i| {
        (m.instance("part", &list, vec![i.a]), line!())
    });
}

#[test]
fn mistakes_of_a_definition_are_told_once() {
    let broken = module("broken", [8], |_, [x]| x + x.bit(0));
    let top = module("top", PORTS, |m, i| {
        let one = m.instance("one", &broken, [i.a]);
        let two = m.instance("two", &broken, [i.c]);
        one.zext(9) & two
    });
    let errors = top.check().err().unwrap();
    assert_eq!(errors.0.len(), 1, "{errors}");
}

#[test]
fn replicas_are_one_construct() {
    #[derive(Bundle, Clone, Copy)]
    struct Lane<T> {
        active: T,
        pair: [T; 2],
    }
    let lane = module("lane", Lane { active: 1, pair: [8, 8] }, |_, i| i.active.mux(i.pair[0], i.pair[1]));
    let top = module("top", PORTS, |m, i| {
        let inputs = Lane { active: each(i.b), pair: all([i.a, i.c]) };
        m.replicate("lane", 4, &lane, inputs)
    });
    let netlist = top.check().unwrap().netlist;
    let instance = &netlist.instances[0];
    assert_eq!(instance.replicas, Some(4));
    let each_or_all: Vec<bool> = instance.inputs.iter().map(|c| matches!(c, Connection::Each(_))).collect();
    assert_eq!(each_or_all, [true, false, false]);
    assert_eq!(netlist.outputs[0].width, 32);
    assert!(netlist.nodes.iter().any(|n| n.op == Op::InstOut { inst: 0, port: 0 } && n.width == 32));
}

#[test]
fn one_name_with_two_contents() {
    let two = |first: TypedModule<[Width; 1], [Signal; 1]>, second: TypedModule<[Width; 1], [Signal; 1]>| {
        module("top", PORTS, |m, Ports { a, b, .. }| {
            let wide = m.instance("wide", &first, [a]);
            let narrow = m.instance("narrow", &second, if second.inputs()[0] == 4 { [b] } else { [a] });
            [wide[0], narrow[0]]
        })
        .check()
        .err()
        .map(|e| without_places(&e.to_string()).split_once(": ").unwrap().1.to_string())
    };
    let text = "two different modules are called `inverter`: ";
    assert_eq!(two(inverter(8), inverter(8)), None);
    assert_eq!(
        two(inverter(8), inverter(4)),
        Some(format!("{text}`in_0` has 8 and 4 bits; put what differs into the name"))
    );
    let other = module("inverter", [8], |_, [x]| [x + 1]);
    assert_eq!(
        two(inverter(8), other),
        Some(format!("{text}with the same ports and other contents; put what differs into the name"))
    );
}

#[test]
fn equal_definitions_become_one() {
    let top = module("top", PORTS, |m, i| {
        let one = m.instance("one", &inverter(8), [i.a]);
        m.instance("two", &inverter(8), one)
    });
    assert_eq!(top.check().unwrap().netlist.modules().len(), 2);
}

#[test]
fn descriptions_in_parallel() {
    std::thread::scope(|s| {
        for _ in 0..8 {
            s.spawn(|| {
                for width in 1..100 {
                    assert!(inverter(width).check().is_ok());
                }
            });
        }
    });
}
