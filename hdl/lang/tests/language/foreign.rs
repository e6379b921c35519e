//! Foreign Verilog: what a stub stands for, and what is refused.

use crate::common::{PORTS, refused, without_places};
use heddle_hdl::{Parameter, each, prelude::*};

/// A stub with ports `a` and `out`.
fn stub(name: &str, width: Width) -> TypedModule<In<Width>, Signal> {
    module(name, In { a: width }, |_, i| !i.a)
}

#[derive(Bundle, Clone, Copy)]
struct In<T> {
    a: T,
}

/// What `check` says of a top module that has an instance of each.
fn says(parts: &[TypedModule<In<Width>, Signal>]) -> Vec<String> {
    let top = module("top", PORTS, |m, i| {
        let outs: Vec<Signal> = parts
            .iter()
            .enumerate()
            .map(|(k, part)| m.instance(&format!("part_{k}"), part, In { a: i.a.slice(0, part.inputs().a) }))
            .collect();
        cat(&outs)
    });
    let errors = top.check().err().map_or(vec![], |e| e.0);
    errors.iter().for_each(|e| assert!(e.loc.is_some(), "{e}"));
    errors.iter().map(|e| without_places(&e.message)).collect()
}

/// What `check` says of a design with one foreign module.
fn says_of(foreign: Foreign) -> Vec<String> {
    says(&[stub("part", 8).stands_for(foreign)])
}

#[test]
fn a_stub_with_names_parameters_and_attributes() {
    let foreign = Foreign::new("CELL").upper_case().port("out", "Q0").clock("CK").reset("R").reset_low("RN");
    let foreign = foreign.parameter("N", -3).parameter("MODE", "ON").parameter("X", 2.5).attribute("keep", 1);
    let part = stub("part", 8).stands_for(foreign.parameter("INIT", Parameter::bits(0xabu32, 8)));
    let top = module("top", PORTS, |m, i| m.instance("one", &part, In { a: i.a })).check().unwrap();
    let known = top.netlist.instances[0].module.foreign.clone().unwrap();
    assert_eq!(known.name, "CELL");
    assert_eq!(known.ports, ["A", "Q0"]);
    assert_eq!((known.clocks.len(), known.resets.len(), known.clock_source), (1, 2, None));
    let values: Vec<&Parameter> = known.parameters.iter().map(|(_, value)| value).collect();
    let init = Parameter::Bits(0xabu32.into(), 8);
    assert_eq!(values, [&Parameter::Integer(-3), &Parameter::Text("ON".into()), &Parameter::Real(2.5), &init]);
    assert_eq!(known.attributes, [("keep".to_string(), Parameter::Integer(1))]);
}

#[test]
fn names_that_verilog_cannot_have() {
    assert_eq!(says_of(Foreign::new("a b")), ["`a b` is no name in Verilog: printable ASCII without spaces"]);
    let same = |name: &str| [format!("`{name}` is no name in Verilog: printable ASCII without spaces")];
    assert_eq!(says_of(Foreign::new("CELL").port("a", "")), same(""));
    assert_eq!(says_of(Foreign::new("CELL").clock("c k")), same("c k"));
    assert_eq!(says_of(Foreign::new("CELL").parameter("p\n", 1)), same("p\\n"));
    assert!(says_of(Foreign::new("$odd").port("a", "do").clock("a[0]")).is_empty());
}

#[test]
fn values_that_verilog_cannot_have() {
    let parameter = |value: Parameter| says_of(Foreign::new("CELL").parameter("P", value));
    assert_eq!(parameter("a\nb".into()), ["parameter `P` of `CELL`: \"a\\nb\" is not printable ASCII"]);
    assert_eq!(parameter(f64::NAN.into()), ["parameter `P` of `CELL`: NaN is no number in Verilog"]);
    let bits = |width| parameter(Parameter::bits(0x1ffu32, width));
    assert_eq!(bits(8), ["parameter `P` of `CELL`: 0x1ff needs 9 bits and is to have 8"]);
    assert_eq!(bits(0), ["parameter `P` of `CELL`: a value has at least 1 bit"]);
    assert!(bits(9).is_empty());
    let attribute = says_of(Foreign::new("CELL").attribute("A", f64::INFINITY));
    assert_eq!(attribute, ["attribute `A` of `CELL`: inf is no number in Verilog"]);
}

#[test]
fn things_that_stand_twice() {
    let cell = || Foreign::new("CELL");
    assert_eq!(says_of(cell().parameter("P", 1).parameter("P", 1)), ["the parameter `P` of `CELL` stands twice"]);
    assert_eq!(says_of(cell().attribute("A", 1).attribute("A", 2)), ["the attribute `A` of `CELL` stands twice"]);
    assert_eq!(says_of(cell().port("a", "X").port("out", "X")), ["the port `X` of `CELL` stands twice"]);
    assert_eq!(says_of(cell().clock("out")), ["the port `out` of `CELL` stands twice"]);
    let renamed = says_of(cell().port("a", "X").port("a", "Y"));
    assert_eq!(renamed, ["the stub's port `a` is given two names in `CELL`"]);
    let twice = stub("part", 8).stands_for(cell()).stands_for(Foreign::new("OTHER"));
    assert_eq!(says(&[twice]), ["`part` stands for `CELL` already"]);
}

#[test]
fn a_port_that_the_stub_has_not() {
    let missing = says_of(Foreign::new("CELL").port("b", "B"));
    assert_eq!(missing, ["the stub `part` has no port `b`; it has a, out"]);
}

#[test]
fn names_of_foreign_modules_in_a_design() {
    let cell = |name: &str, stub_name: &str, width| stub(stub_name, width).stands_for(Foreign::new(name));
    assert_eq!(
        says(&[cell("inner", "part", 8), stub("inner", 8)]),
        ["`inner` is foreign and a module of the design too"]
    );
    let widths = says(&[cell("CELL", "one", 8), cell("CELL", "two", 4)]);
    assert_eq!(
        widths,
        ["two different foreign modules are called `CELL`: `a` is an input of 8 and an input of 4 bits"]
    );
    let clocked = stub("two", 8).stands_for(Foreign::new("CELL").clock("CK"));
    let ports = says(&[cell("CELL", "one", 8), clocked]);
    assert_eq!(ports, ["two different foreign modules are called `CELL`: only one has the port `CK`"]);
    // Same ports with other parameters and another stub: fine. One stub with other parameters: not.
    let with = |stub_name: &str, p| stub(stub_name, 8).stands_for(Foreign::new("CELL").parameter("P", p));
    assert!(says(&[with("one", 1), with("two", 2), with("one", 1)]).is_empty());
    let stubs = says(&[with("one", 1), with("one", 2)]);
    let why = "what they stand for differs in name, ports, parameters or attributes";
    assert_eq!(stubs, [format!("two different modules are called `one`: {why}; put what differs into the name")]);
}

#[test]
fn a_stub_is_no_top() {
    let alone = stub("part", 8).stands_for(Foreign::new("CELL")).check().err().unwrap().to_string();
    assert!(alone.ends_with("the top module `part` stands for `CELL`; a stub is below the top"), "{alone}");
}

fn pll() -> TypedModule<In<Width>, Signal> {
    stub("pll", 1).stands_for(Foreign::new("PLL").clock_pin("CLKI", "pin").gives_clock("CLKO"))
}

#[test]
fn one_clock_made_in_the_top_module() {
    assert!(says(&[pll()]).is_empty());
    refused("`two` gives a second clock; a design has one", |m, i| {
        let other = Foreign::new("OTHER").gives_clock("CLKO");
        m.instance("one", &pll(), In { a: i.on });
        (m.instance("two", &stub("other", 1).stands_for(other), In { a: i.on }), line!())
    });
    refused("`one` gives the clock of the design and is replicated", |m, i| {
        (m.replicate("one", 8, &pll(), In { a: each(i.a) }), line!())
    });
    refused("the name `a` stands twice in module `top`", |m, i| {
        let foreign = Foreign::new("PLL").clock_pin("CLKI", "a").gives_clock("CLKO");
        (m.instance("one", &stub("pll", 1).stands_for(foreign), In { a: i.on }), line!())
    });
    let below = module("below", In { a: 1 }, |m, i| m.instance("one", &pll(), i));
    let message = "`one` gives the clock of the design in `below`, which is not the top module";
    assert_eq!(says(&[below]), [message]);
    let two = Foreign::new("PLL").gives_clock("A").gives_clock("B");
    assert_eq!(says(&[stub("pll", 1).stands_for(two)]), ["`PLL` gives two clocks; a design has one"]);
    let two = Foreign::new("PLL").gives_clock("A").clock_pin("I", "p").clock_pin("J", "q");
    assert_eq!(says(&[stub("pll", 1).stands_for(two)]), ["`PLL` takes the clock of two pins"]);
    let none = Foreign::new("PLL").clock_pin("CLKI", "pin");
    assert_eq!(says_of(none), ["`PLL` takes a clock in `CLKI` and gives none; say gives_clock"]);
    let board = module("board", In { a: 1 }, |m, i| m.instance("one", &pll(), i)).stands_for(Foreign::new("BOARD"));
    assert!(says(&[board])[0].starts_with("`board` makes the clock or the reset of a design and cannot be a stub"));
}

#[test]
fn a_reset_from_what_it_does_not_hold() {
    let top = module("top", PORTS, |m, i| {
        let locked = m.instance("pll", &pll(), In { a: i.on });
        m.reset_from(!m.pipe("settled", m.pipe("locked", locked & i.b.bit(0))));
        m.pipe_reset("state", i.a)
    });
    assert!(top.check().is_ok());
    refused("the reset must be 1 bit: a is 8 bits", |m, i| (i.a, (m.reset_from(i.a), line!()).1));
    refused("`top` has a reset already", |m, i| {
        m.reset_from(i.on);
        (i.a, (m.reset_from(i.on), line!()).1)
    });
    refused("the reset of the design comes from the register `state`, which the reset holds", |m, i| {
        let (state, at) = (m.pipe_reset("state", i.on), line!());
        m.reset_from(m.pipe("late", state));
        (i.a, at)
    });
    refused("the reset of the design comes from the memory `words`, which the reset holds", |m, i| {
        let (words, at) = (m.memory("words", 1, 4), line!());
        m.reset_from(words.read(i.b));
        (i.a, at)
    });
    refused("the reset of the design comes from the instance `part`, which the reset holds", |m, i| {
        let (out, at) = (m.instance("part", &stub("part", 1), In { a: i.on }), line!());
        m.reset_from(out);
        (i.a, at)
    });
    let below = module("below", In { a: 8 }, |m, i| {
        m.reset_from(i.a.bit(0));
        !i.a
    });
    assert_eq!(says(&[below]), ["the reset of the design comes from `below`, which is not the top module"]);
}

#[test]
fn a_foreign_module_with_a_reset_where_only_a_part_is_reset() {
    let part =
        |foreign| module("part", In { a: 8 }, |m, i| m.instance("inner", &stub("vendor", 8).stands_for(foreign), i));
    let says = |foreign| {
        let top = module("top", PORTS, |m, i| m.instance_with_reset("one", &part(foreign), i.on, In { a: i.a }));
        top.check().err().map_or(vec![], |e| e.0).iter().map(|e| without_places(&e.message)).collect::<Vec<_>>()
    };
    let text = "`one` has the foreign module `CELL` in it, which only the design resets";
    assert_eq!(says(Foreign::new("CELL").reset("R")), [text]);
    assert!(says(Foreign::new("CELL").clock("C")).is_empty());
}
