//! What a value depends on, as text.

use crate::directory::Directory;
use heddle_hdl::netlist::{Connection, NodeId, Op};
use std::collections::{HashSet, VecDeque};
use std::fmt::Write;

/// The logic behind nodes (scope and node), nearest first, one line a node, back to registers, memories and the top's
/// inputs; at most `lines` lines.
pub fn cone(directory: &Directory, nodes: &[(usize, NodeId)], lines: usize) -> String {
    let mut text = String::new();
    let mut seen: HashSet<(usize, NodeId)> = nodes.iter().copied().collect();
    let mut queue: VecDeque<(usize, NodeId)> = nodes.iter().copied().collect();
    for _ in 0..lines {
        let Some((scope, node)) = queue.pop_front() else { return text };
        let n = directory.scopes[scope].module.node(node);
        let needs = needs(directory, scope, node);
        let places: Vec<String> = needs.iter().map(|&(s, n)| place(directory, s, n)).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} = {:?} : {} bits of {}",
            place(directory, scope, node),
            n.op,
            n.width,
            places.join(", ")
        );
        queue.extend(needs.into_iter().filter(|need| seen.insert(*need)));
    }
    text + "...\n"
}

fn place(directory: &Directory, scope: usize, node: NodeId) -> String {
    let s = &directory.scopes[scope];
    let name = s.module.node(node).name.clone().unwrap_or_default();
    let dot = if s.path.is_empty() { "" } else { "." };
    format!("{}{dot}{name}#{}", s.path, node.0)
}

fn needs(directory: &Directory, scope: usize, node: NodeId) -> Vec<(usize, NodeId)> {
    let s = &directory.scopes[scope];
    let n = s.module.node(node);
    match n.op {
        Op::InstOut { inst, port } => {
            let driver = s.module.instances[inst as usize].module.outputs[port as usize].node;
            s.children[inst as usize].iter().map(|&copy| (copy, driver)).collect()
        }
        Op::Input(port) => s.parent.map_or_else(Vec::new, |parent| {
            let p = &directory.scopes[parent];
            let inst = p.children.iter().position(|copies| copies.contains(&scope)).expect("a parent has its children");
            let (Connection::All(node) | Connection::Each(node)) = p.module.instances[inst].inputs[port as usize];
            vec![(parent, node)]
        }),
        Op::MemRead { mem, port } => vec![(scope, s.module.memories[mem as usize].reads[port as usize].address)],
        _ => n.args.iter().map(|&a| (scope, a)).collect(),
    }
}
