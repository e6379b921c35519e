//! The graph for Graphviz: a cluster a function, a node a block, dashed edges from branches whose threads diverge to
//! their RPCs.

use super::{Found, address, reconvergence};
use heddle_testbench::reconverge::Reconvergence;
use std::fmt::Write;

pub fn dot(found: &Found) -> String {
    let mut text = String::from("digraph reconvergence {\n  node [shape=box, fontname=monospace];\n");
    for function in &found.analysis.functions {
        let entry = function.entry;
        let node = |pc: u32| format!("\"{entry:x}_{pc:x}\"");
        let _ = writeln!(text, "  subgraph \"cluster_{entry:x}\" {{\n    label = \"{}\";", quoted(&found.name(entry)));
        for block in &function.blocks {
            let lines = found.lines(block);
            let label: String = lines.iter().map(|line| format!("{}\\l", quoted(line))).collect();
            let _ = writeln!(text, "    {} [label=\"{label}\"];", node(block.start));
        }
        text.push_str("  }\n");
        for block in &function.blocks {
            for &next in &block.next {
                let _ = writeln!(text, "  {} -> {};", node(block.start), node(next));
            }
            if let Some(branch) = found.parting(block)
                && let Reconvergence::At(rpc) = branch.rpc
            {
                let style = "style=dashed, color=blue, constraint=false";
                let tip = format!("{}: RPC {}", address(branch.pc), reconvergence(branch.rpc));
                let _ = writeln!(text, "  {} -> {} [{style}, tooltip=\"{tip}\"];", node(block.start), node(rpc));
            }
        }
    }
    text.push_str("}\n");
    text
}

fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
