//! Foreign Verilog: cells of a vendor, and modules that somebody else wrote.
//!
//! A foreign module has a *stub*: an ordinary module with the same ports, which is what simulations, lock-step, proofs
//! and lint see. [`TypedModule::stands_for`] says what the stub stands for, and Verilog for synthesis has an instance
//! of that in its place. So ports and their widths are declared once, in the stub.
//!
//! A foreign module may be what makes the clock of the design, as a PLL does; then its instance is in the top module.

use crate::bits::Bits;
use crate::builder::{Builder, Draft};
use crate::bundle::Width;
use crate::diagnostic::Diagnostic;
use crate::module::TypedModule;
use crate::names::check_foreign;
use crate::netlist::{self, ClockPin, ClockSource, ForeignReset, Loc, Module, NodeId, Op, Parameter};
use crate::signal::Signal;
use std::collections::{HashMap, HashSet};
use std::panic::Location;
use std::sync::Arc;

/// What a stub stands for.
///
/// ```
/// use heddle_hdl::prelude::*;
///
/// #[derive(Bundle, Clone, Copy)]
/// struct Phase<T> {
///     standby: T,
/// }
/// #[derive(Bundle, Clone, Copy)]
/// struct Status<T> {
///     lock: T,
/// }
///
/// /// A clock of 50 MHz from a pin with 25.
/// fn pll() -> TypedModule<Phase<Width>, Status<Signal>> {
///     let stub = module("pll", Phase { standby: 1 }, |_, i| Status { lock: !i.standby });
///     let cell = Foreign::new("EHXPLLL").upper_case().port("standby", "STDBY");
///     let cell = cell.parameter("CLKI_DIV", 1).parameter("CLKFB_DIV", 2).parameter("FEEDBK_PATH", "CLKOP");
///     let cell = cell.attribute("FREQUENCY_PIN_CLKOP", "50").clock("CLKFB");
///     stub.stands_for(cell.clock_pin("CLKI", "clk_25mhz").gives_clock("CLKOP"))
/// }
///
/// let board = module("board", [1], |m, [standby]| {
///     let status = m.instance("pll", &pll(), Phase { standby });
///     m.reset_from(!m.pipe("locked", status.lock));
///     let count = m.reg("count", 24).reset(0u32);
///     count.next(count.q + 1);
///     count.q.msb()
/// });
/// assert!(board.check().is_ok());
/// ```
#[derive(Clone)]
pub struct Foreign {
    name: String,
    loc: Loc,
    upper_case: bool,
    /// Port of the stub, name in Verilog.
    ports: Vec<(String, String, Loc)>,
    clocks: Vec<String>,
    resets: Vec<ForeignReset>,
    clock_pin: Option<(ClockPin, Loc)>,
    gives_clock: Option<String>,
    parameters: Vec<(String, Parameter)>,
    attributes: Vec<(String, Parameter)>,
    errors: Vec<Diagnostic>,
}

impl Foreign {
    /// The Verilog module of this name.
    #[track_caller]
    pub fn new(name: &str) -> Foreign {
        let loc = Location::caller();
        let mut foreign = Foreign {
            name: name.to_string(),
            loc,
            upper_case: false,
            ports: vec![],
            clocks: vec![],
            resets: vec![],
            clock_pin: None,
            gives_clock: None,
            parameters: vec![],
            attributes: vec![],
            errors: vec![],
        };
        foreign.legal(name, loc);
        foreign
    }

    /// Ports have the names of the stub's, in capitals.
    pub fn upper_case(mut self) -> Foreign {
        self.upper_case = true;
        self
    }

    /// The stub's port `ours` is called `theirs`.
    #[track_caller]
    pub fn port(mut self, ours: &str, theirs: &str) -> Foreign {
        let loc = Location::caller();
        self.legal(theirs, loc);
        if self.ports.iter().any(|(known, ..)| known == ours) {
            self.error(loc, format!("the stub's port `{ours}` is given two names in `{}`", self.name));
        }
        self.ports.push((ours.to_string(), theirs.to_string(), loc));
        self
    }

    /// A port that takes the clock. The stub has its own.
    #[track_caller]
    pub fn clock(mut self, port: &str) -> Foreign {
        self.legal(port, Location::caller());
        self.clocks.push(port.to_string());
        self
    }

    /// A port that takes the reset, active high. The stub has its own.
    #[track_caller]
    pub fn reset(self, port: &str) -> Foreign {
        self.takes_reset(port, false, Location::caller())
    }

    /// A port that takes the reset, active low.
    #[track_caller]
    pub fn reset_low(self, port: &str) -> Foreign {
        self.takes_reset(port, true, Location::caller())
    }

    fn takes_reset(mut self, port: &str, active_low: bool, loc: Loc) -> Foreign {
        self.legal(port, loc);
        self.resets.push(ForeignReset { port: port.to_string(), active_low });
        self
    }

    /// The output `port` is the clock of the whole design: in Verilog for synthesis the top module has no input `clk`.
    /// The one instance is in the top module. The stub has no such port: in simulation the clock comes from outside.
    #[track_caller]
    pub fn gives_clock(mut self, port: &str) -> Foreign {
        let loc = Location::caller();
        self.legal(port, loc);
        if self.gives_clock.replace(port.to_string()).is_some() {
            self.error(loc, format!("`{}` gives two clocks; a design has one", self.name));
        }
        self
    }

    /// The input `port` of what gives the clock takes the board's clock, which is the input `pin` of the top module.
    #[track_caller]
    pub fn clock_pin(mut self, port: &str, pin: &str) -> Foreign {
        let loc = Location::caller();
        self.legal(port, loc);
        if self.clock_pin.is_some() {
            self.error(loc, format!("`{}` takes the clock of two pins", self.name));
        }
        self.clock_pin = Some((ClockPin { port: port.to_string(), pin: pin.to_string() }, loc));
        self
    }

    /// A parameter of every instance: an integer, text, a real number, or [`Parameter::bits`].
    #[track_caller]
    pub fn parameter(mut self, name: &str, value: impl Into<Parameter>) -> Foreign {
        let (value, loc) = (value.into(), Location::caller());
        if self.value("parameter", name, &value, loc) {
            if self.parameters.iter().any(|(known, _)| known == name) {
                self.error(loc, format!("the parameter `{name}` of `{}` stands twice", self.name));
            }
            self.parameters.push((name.to_string(), value));
        }
        self
    }

    /// An attribute of every instance: `(* NAME = value *)`, as some tools want them.
    #[track_caller]
    pub fn attribute(mut self, name: &str, value: impl Into<Parameter>) -> Foreign {
        let (value, loc) = (value.into(), Location::caller());
        if self.value("attribute", name, &value, loc) {
            if self.attributes.iter().any(|(known, _)| known == name) {
                self.error(loc, format!("the attribute `{name}` of `{}` stands twice", self.name));
            }
            self.attributes.push((name.to_string(), value));
        }
        self
    }

    fn error(&mut self, loc: Loc, message: String) {
        self.errors.push(Diagnostic { loc: Some(loc), message });
    }

    fn legal(&mut self, name: &str, loc: Loc) -> bool {
        check_foreign(name).map_err(|why| self.error(loc, why)).is_ok()
    }

    /// Whether name and value can be written.
    fn value(&mut self, what: &str, name: &str, value: &Parameter, loc: Loc) -> bool {
        let problem = match value {
            Parameter::Text(text) if !text.chars().all(|c| c == ' ' || c.is_ascii_graphic()) => {
                format!("\"{}\" is not printable ASCII", text.escape_debug())
            }
            Parameter::Real(real) if !real.is_finite() => format!("{real} is no number in Verilog"),
            Parameter::Bits(_, 0) => "a value has at least 1 bit".to_string(),
            Parameter::Bits(bits, width) if bits.bit_length() > *width => {
                format!("{bits} needs {} bits and is to have {width}", bits.bit_length())
            }
            _ => return self.legal(name, loc),
        };
        self.error(loc, format!("{what} `{name}` of `{}`: {problem}", self.name));
        false
    }

    /// What it is for a stub with these ports, and all mistakes.
    fn of(mut self, stub: &Module) -> (netlist::Foreign, Vec<Diagnostic>) {
        let ours: Vec<&str> = stub.inputs.iter().chain(&stub.outputs).map(|p| p.name.as_str()).collect();
        for (port, _, loc) in self.ports.clone() {
            if !ours.contains(&port.as_str()) {
                let there = if ours.is_empty() { "none".to_string() } else { ours.join(", ") };
                self.error(loc, format!("the stub `{}` has no port `{port}`; it has {there}", stub.name));
            }
        }
        let theirs = |ours: &str| match self.ports.iter().find(|(known, ..)| known == ours) {
            Some((_, theirs, _)) => theirs.clone(),
            None if self.upper_case => ours.to_ascii_uppercase(),
            None => ours.to_string(),
        };
        let ports: Vec<String> = ours.into_iter().map(theirs).collect();
        let clock_source = self
            .gives_clock
            .clone()
            .map(|output| ClockSource { output, input: self.clock_pin.clone().map(|(input, _)| input) });
        if let (None, Some((ClockPin { port, .. }, loc))) = (&clock_source, self.clock_pin.clone()) {
            self.error(loc, format!("`{}` takes a clock in `{port}` and gives none; say gives_clock", self.name));
        }
        let foreign = netlist::Foreign {
            name: self.name.clone(),
            ports,
            clocks: self.clocks.clone(),
            resets: self.resets.clone(),
            clock_source,
            parameters: std::mem::take(&mut self.parameters),
            attributes: std::mem::take(&mut self.attributes),
            loc: self.loc,
        };
        let mut seen = HashSet::new();
        for (port, _) in directions(stub, &foreign) {
            if !seen.insert(port.to_string()) {
                self.error(self.loc, format!("the port `{port}` of `{}` stands twice", self.name));
            }
        }
        (foreign, self.errors)
    }
}

impl From<i32> for Parameter {
    fn from(value: i32) -> Parameter {
        Parameter::Integer(value)
    }
}
impl From<f64> for Parameter {
    fn from(value: f64) -> Parameter {
        Parameter::Real(value)
    }
}
impl From<&str> for Parameter {
    fn from(value: &str) -> Parameter {
        Parameter::Text(value.to_string())
    }
}
impl From<String> for Parameter {
    fn from(value: String) -> Parameter {
        Parameter::Text(value)
    }
}

impl Parameter {
    /// A value of so many bits.
    pub fn bits(value: impl Into<Bits>, width: Width) -> Parameter {
        Parameter::Bits(value.into(), width)
    }
}

impl<I, O> TypedModule<I, O> {
    /// Makes this module the stub of a foreign one: instances are those of the foreign module in Verilog for synthesis,
    /// and of this one everywhere else.
    #[track_caller]
    pub fn stands_for(mut self, foreign: Foreign) -> TypedModule<I, O> {
        let loc = Location::caller();
        let error = |message: String| Diagnostic { loc: Some(loc), message };
        let mut module = (*self.netlist).clone();
        if let Some(before) = &module.foreign {
            self.errors.push(error(format!("`{}` stands for `{}` already", module.name, before.name)));
        }
        if module.reset.is_some() || module.clock_source().is_some() {
            let name = &module.name;
            self.errors.push(error(format!("`{name}` makes the clock or the reset of a design and cannot be a stub")));
        }
        let (foreign, errors) = foreign.of(&module);
        self.errors.extend(errors);
        module.foreign = Some(foreign);
        self.netlist = Arc::new(module);
        self
    }
}

impl Builder {
    /// In hardware, this is the reset of the whole design: in Verilog for synthesis the top module has no input `rst`.
    /// Only in the top module. In simulation the reset comes from outside, and this value does nothing.
    ///
    /// It comes from inputs, registers without a reset, and foreign modules of the top module itself, since what the
    /// reset sets would hold it for ever.
    #[track_caller]
    pub fn reset_from(self, reset: Signal) {
        let loc = Location::caller();
        self.draft(loc, |d| {
            d.is_bit("the reset", reset, loc);
            if d.module.reset.is_some() {
                d.error(loc, format!("`{}` has a reset already", d.module.name));
            }
            if d.owns(reset, loc) {
                d.module.reset = Some(reset.node);
            }
        });
    }
}

impl Draft {
    /// Checks the place of an instance that makes the clock, and claims the name of its pin.
    pub(crate) fn place_clock_source(&mut self, name: &str, definition: &Module, replicas: Option<u32>, loc: Loc) {
        let Some(source) = definition.foreign.as_ref().and_then(|f| f.clock_source.as_ref()) else { return };
        if replicas.is_some() {
            self.error(loc, format!("`{name}` gives the clock of the design and is replicated"));
        }
        if self.module.clock_source().is_some() {
            self.error(loc, format!("`{name}` gives a second clock; a design has one"));
        }
        if let Some(ClockPin { pin, .. }) = &source.input {
            self.claim(pin, loc);
        }
    }
}

/// What a port of foreign Verilog is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Input(u32),
    Output(u32),
}

/// All ports of what a stub stands for: those that take clock and reset, then the stub's.
pub(crate) fn directions<'a>(stub: &'a Module, foreign: &'a netlist::Foreign) -> Vec<(&'a str, Direction)> {
    let source = foreign.clock_source.as_ref();
    let pin = source.and_then(|s| s.input.as_ref()).map(|pin| &pin.port);
    let resets = foreign.resets.iter().map(|r| &r.port);
    let bits = pin.into_iter().chain(&foreign.clocks).chain(resets);
    let clock = source.map(|s| (s.output.as_str(), Direction::Output(1)));
    let inputs = stub.inputs.iter().map(|p| Direction::Input(p.width));
    let outputs = stub.outputs.iter().map(|p| Direction::Output(p.width));
    let ports = foreign.ports.iter().map(String::as_str).zip(inputs.chain(outputs));
    bits.map(|port| (port.as_str(), Direction::Input(1))).chain(clock).chain(ports).collect()
}

/// What is wrong in a whole design: who makes clock and reset, and names of foreign modules.
pub(crate) fn check(top: &Arc<Module>, errors: &mut Vec<Diagnostic>) {
    let mut error = |loc: Loc, message: String| errors.push(Diagnostic { loc: Some(loc), message });
    if let Some(foreign) = &top.foreign {
        let (stub, cell) = (&top.name, &foreign.name);
        error(foreign.loc, format!("the top module `{stub}` stands for `{cell}`; a stub is below the top"));
    }
    let modules = top.modules();
    let mut known: HashMap<&str, (&Module, &netlist::Foreign)> = HashMap::new();
    for m in &modules {
        let Some(foreign) = &m.foreign else { continue };
        if let Some(ours) = modules.iter().find(|m| m.foreign.is_none() && m.name == foreign.name) {
            error(foreign.loc, format!("`{}` is foreign and a module of the design too", ours.name));
        }
        let (first, before) = *known.entry(&foreign.name).or_insert((m, foreign));
        if let Some(why) = difference(&directions(first, before), &directions(m, foreign)) {
            error(foreign.loc, format!("two different foreign modules are called `{}`: {why}", foreign.name));
        }
    }
    for m in modules.iter().filter(|m| !Arc::ptr_eq(m, top)) {
        let source = m.instances.iter().find(|i| i.module.foreign.as_ref().is_some_and(|f| f.clock_source.is_some()));
        if let Some(instance) = source {
            let (name, module) = (&instance.name, &m.name);
            let message = format!("`{name}` gives the clock of the design in `{module}`, which is not the top module");
            error(instance.loc, message);
        }
        if let Some(reset) = m.reset {
            let message = format!("the reset of the design comes from `{}`, which is not the top module", m.name);
            error(m.node(reset).loc, message);
        }
    }
    if let Some((loc, what)) = top.reset.and_then(|reset| held_by_reset(top, reset)) {
        error(loc, format!("the reset of the design comes from {what}, which the reset holds"));
    }
}

/// The first port in which two foreign modules differ. The order of ports is of no matter.
fn difference(a: &[(&str, Direction)], b: &[(&str, Direction)]) -> Option<String> {
    let found = |list: &[(&str, Direction)], port: &str| list.iter().find(|(p, _)| *p == port).map(|(_, d)| *d);
    let say = |d: Direction| match d {
        Direction::Input(width) => format!("an input of {width}"),
        Direction::Output(width) => format!("an output of {width}"),
    };
    let names = a.iter().chain(b).map(|(port, _)| *port);
    for port in names {
        match (found(a, port), found(b, port)) {
            (Some(x), Some(y)) if x != y => return Some(format!("`{port}` is {} and {} bits", say(x), say(y))),
            (Some(_), Some(_)) => {}
            _ => return Some(format!("only one has the port `{port}`")),
        }
    }
    None
}

/// A value that the reset depends on and that the reset sets, or that lies in another module.
fn held_by_reset(top: &Module, reset: NodeId) -> Option<(Loc, String)> {
    let mut seen = HashSet::new();
    let mut work = vec![reset];
    while let Some(id) = work.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = top.node(id);
        work.extend(&node.args);
        match &node.op {
            Op::Reg(r) => {
                let register = &top.registers[*r as usize];
                if register.reset.is_some() {
                    return Some((register.loc, format!("the register `{}`", register.name)));
                }
                work.push(register.next);
                work.extend(register.enable);
            }
            Op::MemRead { mem, .. } => {
                let memory = &top.memories[*mem as usize];
                return Some((memory.loc, format!("the memory `{}`", memory.name)));
            }
            Op::InstOut { inst, .. } => {
                let instance = &top.instances[*inst as usize];
                if instance.module.foreign.as_ref().is_none_or(|f| !f.resets.is_empty()) {
                    return Some((instance.loc, format!("the instance `{}`", instance.name)));
                }
                work.extend(instance.inputs.iter().map(|c| c.node()));
            }
            _ => {}
        }
    }
    None
}
