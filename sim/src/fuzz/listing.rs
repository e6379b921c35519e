//! A design as text, for reports.

use heddle_hdl::netlist::{Connection, Module, NodeId, ReadTiming};
use std::sync::Arc;

/// Every module, the top first, a line a node, register, port and instance; at most `lines` lines.
pub fn listing(top: &Arc<Module>, lines: usize) -> String {
    let mut modules = top.modules();
    modules.reverse();
    let all: Vec<String> = modules.iter().flat_map(|m| module(m)).collect();
    let more = if all.len() > lines { "...\n" } else { "" };
    all.into_iter().take(lines).map(|line| line + "\n").collect::<String>() + more
}

fn module(m: &Module) -> Vec<String> {
    let maybe = |what: &str, node: Option<NodeId>| node.map_or(String::new(), |n| format!(", {what} #{}", n.0));
    let mut lines = vec![format!("module {}", m.name)];
    for (k, n) in m.nodes.iter().enumerate() {
        let args: String = n.args.iter().map(|a| format!(" #{}", a.0)).collect();
        let name = n.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        lines.push(format!("  #{k}{name} : {} = {:?}{args}", n.width, n.op));
    }
    for r in &m.registers {
        let reset = r.reset.as_ref().map_or(String::new(), |value| format!(", reset to {value}"));
        lines.push(format!("  register {} = #{}{}{reset}", r.name, r.next.0, maybe("enable", r.enable)));
    }
    for memory in &m.memories {
        let init = if memory.init.is_some() { ", with contents" } else { "" };
        lines.push(format!("  memory {} : {} words of {}{init}", memory.name, 1 << memory.address_width, memory.width));
        for read in &memory.reads {
            let (timing, enable) = match read.timing {
                ReadTiming::Async => ("asynchronous".into(), None),
                ReadTiming::Sync { enable, collision, or_zero } => {
                    (format!("{collision:?}{}", if or_zero { " or zero" } else { "" }), enable)
                }
            };
            lines.push(format!("    read at #{}, {timing}{}", read.address.0, maybe("enable", enable)));
        }
        for w in &memory.writes {
            lines.push(format!("    write #{} at #{}, enable #{}", w.data.0, w.address.0, w.enable.0));
        }
    }
    for i in &m.instances {
        let copies = i.replicas.map_or(String::new(), |n| format!("{n} × "));
        let inputs: Vec<String> = i
            .inputs
            .iter()
            .map(|c| match c {
                Connection::All(n) => format!("all #{}", n.0),
                Connection::Each(n) => format!("each #{}", n.0),
            })
            .collect();
        lines.push(format!("  instance {} = {copies}{} of {}", i.name, i.module.name, inputs.join(", ")));
    }
    lines.extend(m.properties.iter().map(|p| format!("  {:?} {} = #{}", p.kind, p.name, p.node.0)));
    lines.extend(m.probes.iter().map(|p| format!("  probe {} = #{}", p.name, p.node.0)));
    lines.extend(m.outputs.iter().map(|p| format!("  output {} = #{}", p.name, p.node.0)));
    lines
}
