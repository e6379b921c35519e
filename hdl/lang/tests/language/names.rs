//! Names survive: those of state, ports and instances as they are, wires with a number where a name is taken.

use crate::common::{PORTS, refused};
use heddle_hdl::netlist::Module;
use heddle_hdl::prelude::*;
use std::sync::Arc;

fn wires(netlist: &Arc<Module>) -> Vec<&str> {
    netlist.nodes.iter().filter_map(|n| n.name.as_deref()).collect()
}

fn netlist_of<R: Signals>(body: impl FnOnce(Builder, crate::common::Ports<Signal>) -> R) -> Arc<Module> {
    module("top", PORTS, body).check().unwrap().netlist
}

#[test]
fn wires_are_numbered() {
    let netlist = netlist_of(|_, i| {
        let mut x = i.a;
        for _ in 0..3 {
            wire!(sum = x + 1);
            x = sum;
        }
        x
    });
    assert_eq!(wires(&netlist)[5..], ["sum", "sum_1", "sum_2"]);
}

#[test]
fn a_wire_gives_way_to_state_and_ports() {
    #[derive(Bundle, Clone)]
    struct Out<T> {
        sum: T,
    }
    let netlist = netlist_of(|m, i| {
        wire!(held = i.a + 1);
        let state = m.pipe("held", held);
        wire!(sum = state + i.c);
        Out { sum: !sum }
    });
    assert_eq!(wires(&netlist)[5..], ["held_1", "held", "sum_1"]);
    assert_eq!(netlist.outputs[0].name, "sum");
    assert_eq!(netlist.registers[0].name, "held");
}

#[test]
fn an_output_may_be_called_like_what_drives_it() {
    #[derive(Bundle, Clone)]
    struct Out<T> {
        sum: T,
        held: T,
    }
    let netlist = netlist_of(|m, i| {
        wire!(sum = i.a + i.c);
        Out { sum, held: m.pipe("held", sum) }
    });
    assert_eq!(wires(&netlist)[5..], ["sum", "held"]);
}

#[test]
fn an_alias_only_for_another_name() {
    let netlist = netlist_of(|_, i| {
        wire!(a = i.a);
        wire!(other = a);
        other
    });
    assert_eq!(wires(&netlist)[5..], ["other"]);
}

#[test]
fn bundles_lend_their_names_to_their_fields() {
    let netlist = netlist_of(|m, i| {
        wire!(pair = [!i.a, !i.c]);
        wire!(in_ = pair.map(|s| s + 1));
        m.probe("seen", in_);
        in_
    });
    assert_eq!(wires(&netlist)[5..], ["pair_0", "pair_1", "in_0", "in_1"]);
    assert_eq!(netlist.probes.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["seen_0", "seen_1"]);
    assert_eq!(netlist.outputs.iter().map(|p| p.name.as_str()).collect::<Vec<_>>(), ["out_0", "out_1"]);
}

#[test]
fn raw_identifiers_lose_their_mark() {
    #[derive(Bundle, Clone)]
    struct Raw<T> {
        r#match: T,
    }
    let raw = module("raw", Raw { r#match: 1 }, |_, i| i.r#match).check().unwrap();
    assert_eq!(raw.netlist.inputs[0].name, "match");
}

#[test]
fn illegal_names() {
    refused("`wire` is a keyword of Verilog, SystemVerilog or C++", |_, i| ((!i.a).named("wire"), line!()));
    refused("`a__b` has `__`, which Verilator reserves", |_, i| ((!i.a).named("a__b"), line!()));
    refused("`clk` is the name of the implicit port", |_, i| ((!i.a).named("clk"), line!()));
    refused("`2b` is no identifier: letters, digits and `_`, not starting with a digit", |_, i| {
        ((!i.a).named("2b"), line!())
    });
    refused("`new` is a keyword of Verilog, SystemVerilog or C++", |m, i| (i.a, (m.assert("new", i.on), line!()).1));
    refused("`new` is a keyword of Verilog, SystemVerilog or C++", |m, i| (i.a, (m.probe("new", i.on), line!()).1));
    let module_name = module("module", PORTS, |_, i| i.a).check().err().unwrap().to_string();
    assert!(module_name.contains("`module` is a keyword"), "{module_name}");
}

#[test]
fn clashes() {
    refused("the name `a` stands twice in module `top`", |m, i| (m.pipe("a", i.c), line!()));
    refused("the name `words` stands twice in module `top`", |m, i| {
        m.pipe("words", i.a);
        (m.memory("words", 8, 4).read(i.b), line!())
    });
    refused("two properties are called `fine`", |m, i| {
        m.assert("fine", i.on);
        (i.a, (m.cover("fine", i.on), line!()).1)
    });
    refused("two probes are called `seen`", |m, i| {
        m.probe("seen", i.on);
        (i.a, (m.probe("seen", i.on), line!()).1)
    });
    #[derive(Bundle, Clone)]
    struct Out<T> {
        a: T,
    }
    #[derive(Bundle, Clone)]
    struct Twice<T> {
        x_0: T,
        x: [T; 1],
    }
    let twice = module("top", PORTS, |_, i| {
        wire!(x_0 = !i.a);
        Twice { x_0, x: [x_0] }
    });
    let twice = twice.check().err().unwrap().to_string();
    assert!(twice.ends_with("the name `x_0` stands twice in module `top`"), "{twice}");
    let port = module("top", PORTS, |_, i| Out { a: i.a }).check().err().unwrap().to_string();
    assert!(port.ends_with("the name `a` stands twice in module `top`"), "{port}");
}
