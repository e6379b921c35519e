//! One netlist module as one Verilog module.

use crate::foreign::{self, clock_pin};
use crate::liveness::Liveness;
use crate::memory;
use crate::unused::{Used, unread_ranges};
use crate::values::{Names, literal, range, topological};
use crate::{Options, ProbePart, ProbePort};
use heddle_hdl::netlist::{Connection, Foreign, Loc, Module, Node, NodeId, Op, PropertyKind, ReadTiming};
use std::collections::{BTreeMap, HashSet};
use std::fmt::Write;

/// What is written of a module, in the order of the text.
pub(crate) struct Text<'a> {
    pub m: &'a Module,
    pub options: &'a Options,
    pub names: Names<'a>,
    /// Nodes whose declarations are out.
    declared: HashSet<NodeId>,
    /// For each instance, the wires of its output ports.
    instance_outputs: Vec<Vec<String>>,
    pub out: String,
}

/// The Verilog of one module.
pub(crate) fn emit(m: &Module, options: &Options) -> String {
    let hardware = if options.cosim { Liveness::of_everything(m) } else { Liveness::of_hardware(m) };
    let everything = Liveness::of_everything(m);
    let names = Names::new(m, &everything, options);
    let mut text =
        Text { m, options, names, declared: HashSet::new(), instance_outputs: Vec::new(), out: String::new() };
    text.header();
    text.part(&hardware, None);
    text.instances();
    text.outputs();
    text.sink(&hardware);
    if !options.cosim {
        text.formal(&hardware);
    }
    text.out.push_str("endmodule\n");
    text.out
}

impl Text<'_> {
    /// The probe ports of a module, if there are to be any.
    fn probes(&self, m: &Module) -> Vec<ProbePort> {
        if self.options.probes { probes(m) } else { Vec::new() }
    }

    /// The probe ports of this module's instances: instance, name of the port, width of one copy.
    fn instance_probes(&self) -> Vec<(usize, String, u32)> {
        let each = self.m.instances.iter().enumerate();
        each.flat_map(|(k, i)| self.probes(&i.module).into_iter().map(move |p| (k, p.name, p.width))).collect()
    }

    fn header(&mut self) {
        let m = self.m;
        if !m.doc.is_empty() {
            let _ = writeln!(self.out, "// {}", m.doc);
        }
        let mut ports = Vec::new();
        match m.clock_source() {
            None => ports.push("input  wire clk".to_string()),
            Some(_) => ports.extend(clock_pin(m).map(|pin| format!("input  wire {}", pin.pin))),
        }
        if m.reset.is_none() {
            ports.push("input  wire rst".to_string());
        }
        ports.extend(m.inputs.iter().map(|p| format!("input  wire {}{}", range(p.width), p.name)));
        ports.extend(m.outputs.iter().map(|p| {
            let kind =
                if self.is_reg(p.node) && self.names.identifier(p.node) == Some(&p.name) { "reg " } else { "wire" };
            format!("output {kind} {}{}", range(p.width), p.name)
        }));
        if self.options.cosim {
            ports.push("input  wire host".to_string());
        }
        for ProbePort { name, width, .. } in self.probes(m) {
            ports.push(format!("output wire {}{name}", range(width)));
        }
        let import = if self.options.cosim { " import heddle_dpi::*;" } else { "" };
        let _ = writeln!(self.out, "module {}{import} (\n  {}\n);", m.name, ports.join(",\n  "));
        if m.clock_source().is_some() {
            self.out.push_str("  wire clk;\n");
        }
        if m.reset.is_some() {
            self.out.push_str("  wire rst;\n");
        }
    }

    /// Whether the node's storage is a `reg`.
    fn is_reg(&self, id: NodeId) -> bool {
        match &self.m.node(id).op {
            Op::Reg(_) | Op::Case(_) => true,
            Op::MemRead { mem, port } => {
                matches!(self.m.memories[*mem as usize].reads[*port as usize].timing, ReadTiming::Sync { .. })
            }
            _ => false,
        }
    }

    fn is_output(&self, name: &str) -> bool {
        self.m.outputs.iter().any(|p| p.name == name)
    }

    fn comment(loc: Loc) -> String {
        let file = loc.file().rsplit(['/', '\\']).next().unwrap_or("");
        format!("  // {file}:{}", loc.line())
    }

    /// State and logic that `live` has and `before` has not.
    fn part(&mut self, live: &Liveness, before: Option<&Liveness>) {
        let m = self.m;
        let is_new = |now: &[bool], old: Option<&Vec<bool>>, k: usize| now[k] && !old.is_some_and(|o| o[k]);
        let registers: Vec<usize> =
            (0..m.registers.len()).filter(|&r| is_new(&live.registers, before.map(|b| &b.registers), r)).collect();
        let memories: Vec<usize> =
            (0..m.memories.len()).filter(|&k| is_new(&live.memories, before.map(|b| &b.memories), k)).collect();
        for &r in &registers {
            let register = &m.registers[r];
            self.declared.insert(register.out);
            if !self.is_output(&register.name) {
                let _ = writeln!(self.out, "  reg  {}{};", range(register.width), register.name);
            }
        }
        for &k in &memories {
            memory::declare(self, k);
        }
        if before.is_none() {
            self.instance_wires();
        }
        let nodes: Vec<NodeId> = (0..m.nodes.len() as u32)
            .map(NodeId)
            .filter(|n| is_new(&live.nodes, before.map(|b| &b.nodes), n.index()))
            .collect();
        for id in topological(m, nodes) {
            self.wire(id);
        }
        for &k in &memories {
            memory::behave(self, k);
        }
        self.clocked(&registers);
    }

    /// Marks a node as declared; false if it was.
    pub fn declare(&mut self, id: NodeId) -> bool {
        self.declared.insert(id)
    }

    /// The declaration of a combinational node that has an identifier.
    fn wire(&mut self, id: NodeId) {
        let m = self.m;
        let node: &Node = m.node(id);
        if matches!(node.op, Op::Input(_) | Op::Reg(_) | Op::MemRead { .. } | Op::InstOut { .. }) {
            return;
        }
        let Some(name) = self.names.identifier(id).map(str::to_string) else { return };
        if !self.declare(id) {
            return;
        }
        let comment = if node.name.is_some() { String::new() } else { Self::comment(node.loc) };
        if let Op::Case(labels) = &node.op {
            if !self.is_output(&name) {
                let _ = writeln!(self.out, "  reg  {}{name};{comment}", range(node.width));
            }
            let selector_width = m.node(node.args[0]).width;
            let _ = writeln!(self.out, "  always @* begin\n    case ({})", self.names.value(node.args[0]));
            for (label, value) in labels.iter().zip(&node.args[2..]) {
                let _ = writeln!(
                    self.out,
                    "      {}: {name} = {};",
                    literal(label, selector_width),
                    self.names.value(*value)
                );
            }
            let _ =
                writeln!(self.out, "      default: {name} = {};\n    endcase\n  end", self.names.value(node.args[1]));
            return;
        }
        let mut before = Vec::new();
        let expression = match node.op {
            Op::Select => self.names.select(id, &mut before),
            _ => self.names.expression(id),
        };
        for line in before {
            let _ = writeln!(self.out, "  {line}");
        }
        if self.is_output(&name) {
            let _ = writeln!(self.out, "  assign {name} = {expression};{comment}");
        } else {
            let keep = if self.m.kept.contains(&id) { "(* keep *) " } else { "" };
            let _ = writeln!(self.out, "  {keep}wire {}{name} = {expression};{comment}", range(node.width));
        }
    }

    /// The wires that instances drive: one for every output port, read or not.
    fn instance_wires(&mut self) {
        let m = self.m;
        for (k, instance) in m.instances.iter().enumerate() {
            let mut wires = Vec::new();
            for (port, output) in instance.module.outputs.iter().enumerate() {
                let name = match m.nodes.iter().position(|n| is_output_of(n, k, port)) {
                    Some(node) => self.names.identifier(NodeId(node as u32)).expect("has one").to_string(),
                    None => self.names.fresh(&format!("{}_{}", instance.name, output.name)),
                };
                if !self.is_output(&name) {
                    let _ = writeln!(self.out, "  wire {}{name};", range(output.width * m.instances[k].copies()));
                }
                wires.push(name);
            }
            self.instance_outputs.push(wires);
        }
        for (instance, name, width) in self.instance_probes() {
            let width = width * m.instances[instance].copies();
            let wire = format!("{}_{name}", m.instances[instance].name);
            let _ = writeln!(self.out, "  wire {}{wire};", range(width));
        }
    }

    /// Registers: those without reset, then those with it.
    fn clocked(&mut self, registers: &[usize]) {
        let m = self.m;
        let assign = |names: &Names, r: usize, indent: &str| {
            let register = &m.registers[r];
            let enable = register.enable.map_or_else(String::new, |e| format!("if ({}) ", names.value(e)));
            format!("{indent}{enable}{} <= {};\n", register.name, names.value(register.next))
        };
        let (with, without): (Vec<usize>, Vec<usize>) =
            registers.iter().copied().partition(|&r| m.registers[r].reset.is_some());
        if !without.is_empty() {
            let body: String = without.iter().map(|&r| assign(&self.names, r, "    ")).collect();
            let _ = write!(self.out, "  always @(posedge clk) begin\n{body}  end\n");
        }
        if !with.is_empty() {
            let reset: String = with
                .iter()
                .map(|&r| {
                    let register = &m.registers[r];
                    let value = register.reset.as_ref().expect("partitioned by reset");
                    format!("      {} <= {};\n", register.name, literal(value, register.width))
                })
                .collect();
            let body: String = with.iter().map(|&r| assign(&self.names, r, "      ")).collect();
            let _ = write!(
                self.out,
                "  always @(posedge clk) begin\n    if (rst) begin\n{reset}    end else begin\n{body}    end\n  end\n"
            );
        }
        if self.options.cosim {
            for &r in registers {
                let register = &m.registers[r];
                let start = memory::start_value(&register.name, register.width, "0");
                let _ = writeln!(self.out, "  initial {} = {start};", register.name);
            }
        }
    }

    fn instances(&mut self) {
        let m = self.m;
        for (index, instance) in m.instances.iter().enumerate() {
            let part = |name: &str, width: u32| match (instance.replicas, width) {
                (None, _) => name.to_string(),
                (Some(_), 1) if m.instances[index].copies() == 1 => name.to_string(),
                (Some(_), 1) => format!("{name}[{}_i]", instance.name),
                (Some(_), _) => format!("{name}[{}_i*{width} +: {width}]", instance.name),
            };
            let cell = instance.module.foreign.as_ref();
            let (mut pins, ports) = match cell {
                None => (vec![".clk(clk)".to_string(), ".rst(rst)".to_string()], foreign::own_names(&instance.module)),
                Some(cell) => (foreign::clock_and_reset_pins(cell), foreign::names(cell)),
            };
            let mut names = ports.into_iter();
            let mut name = || names.next().expect("a name for each port");
            for (port, connection) in instance.module.inputs.iter().zip(&instance.inputs) {
                let value = self.names.value(connection.node());
                let value = match connection {
                    Connection::All(_) => value,
                    Connection::Each(_) => part(&value, port.width),
                };
                pins.push(format!(".{}({value})", name()));
            }
            for (port, wire) in instance.module.outputs.iter().zip(&self.instance_outputs[index]) {
                pins.push(format!(".{}({})", name(), part(wire, port.width)));
            }
            if self.options.cosim {
                pins.push(".host(host)".to_string());
            }
            for ProbePort { name, width, .. } in self.probes(&instance.module) {
                pins.push(format!(".{name}({})", part(&format!("{}_{name}", instance.name), width)));
            }
            let name = &instance.name;
            let module = |indent: &str| match cell {
                None => format!("{indent}{}", instance.module.name),
                Some(cell) => foreign::head(cell, indent),
            };
            let _ = match instance.replicas {
                None => write!(self.out, "{} {name} (\n    {}\n  );\n", module("  "), pins.join(",\n    ")),
                Some(count) => write!(
                    self.out,
                    "  genvar {name}_i;\n  generate\n    for ({name}_i = 0; {name}_i < {count}; {name}_i = {name}_i + 1) \
                     begin : {name}\n{} replica (\n        {}\n      );\n    end\n  endgenerate\n",
                    module("      "),
                    pins.join(",\n        ")
                ),
            };
        }
    }

    fn outputs(&mut self) {
        for port in &self.m.outputs {
            if self.names.identifier(port.node) != Some(&port.name) {
                let _ = writeln!(self.out, "  assign {} = {};", port.name, self.names.value(port.node));
            }
        }
        if let Some(reset) = self.m.reset {
            let _ = writeln!(self.out, "  assign rst = {};", self.names.value(reset));
        }
        if self.options.probes {
            for probe in &self.m.probes {
                let _ = writeln!(self.out, "  assign probe_{} = {};", probe.name, self.names.value(probe.node));
            }
            for (instance, name, _) in self.instance_probes() {
                let instance = &self.m.instances[instance].name;
                let _ =
                    writeln!(self.out, "  assign probe_{instance}_{} = {instance}_{name};", &name["probe_".len()..]);
            }
        }
    }

    /// Unread bits, clock and reset.
    fn sink(&mut self, live: &Liveness) {
        if self.options.cosim {
            return;
        }
        let m = self.m;
        let used = Used::new(m, live);
        let mut unread = Vec::new();
        let (clock, reset) = clock_and_reset(m, live);
        if !clock {
            unread.push("clk".to_string());
        }
        if !reset {
            unread.push("rst".to_string());
        }
        // Several nodes may stand for one identifier: a bit is unread if none of them is read.
        let mut bits: BTreeMap<String, Vec<bool>> = BTreeMap::new();
        let mut note = |name: &str, read: &[bool]| {
            let all = bits.entry(name.to_string()).or_insert_with(|| vec![false; read.len()]);
            all.iter_mut().zip(read).for_each(|(bit, read)| *bit |= read);
        };
        for (index, node) in m.nodes.iter().enumerate() {
            let id = NodeId(index as u32);
            if live.nodes[index] || matches!(node.op, Op::Input(_) | Op::InstOut { .. }) {
                self.names.identifier(id).into_iter().for_each(|name| note(name, used.bits(id)));
            }
        }
        for (_, memory) in m.memories.iter().enumerate().filter(|(k, _)| live.memories[*k]) {
            for read in &memory.reads {
                let name = self.names.identifier(read.out).expect("reads have identifiers");
                note(name, &vec![false; memory.width as usize]);
            }
        }
        for port in &m.inputs {
            note(&port.name, &vec![false; port.width as usize]);
        }
        for (instance, wires) in m.instances.iter().zip(&self.instance_outputs) {
            for (port, wire) in instance.module.outputs.iter().zip(wires) {
                note(wire, &vec![false; (port.width * instance.copies()) as usize]);
            }
        }
        for port in &m.outputs {
            note(&port.name, &vec![true; port.width as usize]);
        }
        for (name, read) in &bits {
            for (low, width) in unread_ranges(read) {
                unread.push(match (read.len() as u32, width) {
                    (all, w) if all == w => name.to_string(),
                    (_, 1) => format!("{name}[{low}]"),
                    _ => format!("{name}[{}:{low}]", low + width - 1),
                });
            }
        }
        if !unread.is_empty() {
            let name = self.names.fresh("unused");
            let _ = writeln!(self.out, "  wire {name} = &{{1'b0, {}}};", unread.join(", "));
        }
    }

    /// Properties, and the logic and state that only they need.
    fn formal(&mut self, hardware: &Liveness) {
        let m = self.m;
        if m.properties.is_empty() {
            return;
        }
        self.out.push_str("`ifdef FORMAL\n");
        self.part(&Liveness::of_properties(m), Some(hardware));
        self.out.push_str("  always @(posedge clk) begin\n    if (!rst) begin\n");
        for property in &m.properties {
            let what = match property.kind {
                PropertyKind::Assert => "assert",
                PropertyKind::Assume => "assume",
                PropertyKind::Cover => "cover",
            };
            let label = self.names.fresh(&format!("{what}_{}", property.name));
            let _ = writeln!(self.out, "      {label}: {what} ({});", self.names.value(property.node));
        }
        self.out.push_str("    end\n  end\n`endif\n");
    }
}

/// Whether the node is output port `port` of instance `instance`.
fn is_output_of(node: &Node, instance: usize, port: usize) -> bool {
    matches!(node.op, Op::InstOut { inst, port: p } if (inst as usize, p as usize) == (instance, port))
}

/// The probe ports of a module for co-simulation, its own and those below.
pub(crate) fn probes(m: &Module) -> Vec<ProbePort> {
    let own = m.probes.iter().map(|p| {
        let width = m.node(p.node).width;
        let parts = vec![ProbePart { path: p.name.clone(), low: 0, width }];
        ProbePort { name: format!("probe_{}", p.name), width, parts }
    });
    let below = m.instances.iter().flat_map(|instance| {
        probes(&instance.module).into_iter().map(|port| {
            let parts = (0..instance.copies()).flat_map(|copy| {
                let scope = match instance.replicas {
                    None => instance.name.clone(),
                    Some(_) => format!("{}[{copy}]", instance.name),
                };
                port.parts.iter().map(move |part| ProbePart {
                    path: format!("{scope}.{}", part.path),
                    low: copy * port.width + part.low,
                    width: part.width,
                })
            });
            let name = format!("probe_{}_{}", instance.name, &port.name["probe_".len()..]);
            ProbePort { name, width: port.width * instance.copies(), parts: parts.collect() }
        })
    });
    own.chain(below).collect()
}

/// Whether the live part of the module reads the clock / the reset.
fn clock_and_reset(m: &Module, live: &Liveness) -> (bool, bool) {
    let register = |r: usize| live.registers[r];
    let registers = (0..m.registers.len()).any(register);
    let resets = m.registers.iter().enumerate().any(|(r, x)| register(r) && x.reset.is_some());
    let sync = |x: &heddle_hdl::netlist::Memory| x.reads.iter().any(|r| r.timing != ReadTiming::Async);
    let live_memories = || m.memories.iter().enumerate().filter(|(k, _)| live.memories[*k]).map(|(_, x)| x);
    let memories = live_memories().any(|x| sync(x) || !x.writes.is_empty());
    let writes = live_memories().any(|x| !x.writes.is_empty());
    let takes = |which: fn(&Foreign) -> bool| m.instances.iter().any(|i| i.module.foreign.as_ref().is_none_or(which));
    let (clock, reset) = (takes(|f| !f.clocks.is_empty()), takes(|f| !f.resets.is_empty()));
    (registers || memories || clock, resets || writes || reset)
}
