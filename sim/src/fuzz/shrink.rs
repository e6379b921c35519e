//! Smaller designs with the same trouble.

use heddle_hdl::Bits;
use heddle_hdl::netlist::{Module, Node, NodeId, Op};
use heddle_hdl::order::order;
use std::collections::HashMap;
use std::sync::Arc;

/// A design in which as many nodes as possible are constants or plain copies of an operand, and for which `fails` still
/// holds. `fails` is called about twice for each node.
pub fn shrink(top: &Arc<Module>, fails: impl Fn(&Arc<Module>) -> bool) -> Arc<Module> {
    let mut best = top.clone();
    for module in top.modules() {
        for node in (0..module.nodes.len() as u32).map(NodeId) {
            for simpler in simpler(&module, node) {
                let candidate = replace(&best, &module.name, node, simpler);
                if order(&candidate).is_ok() && fails(&candidate) {
                    best = candidate;
                    break;
                }
            }
        }
    }
    best
}

/// Replacements of a node, the simplest first. Ports, instances and state stay.
fn simpler(module: &Module, node: NodeId) -> Vec<Node> {
    let n = module.node(node);
    if matches!(n.op, Op::Const(_) | Op::Input(_) | Op::Reg(_) | Op::MemRead { .. }) {
        return Vec::new();
    }
    let with = |op, args| Node { op, args, ..n.clone() };
    let copies = n.args.iter().filter(|a| n.op != Op::Buf && module.node(**a).width == n.width);
    let constants = [Bits::ZERO, Bits::ones(n.width)].map(|value| with(Op::Const(value), vec![]));
    constants.into_iter().chain(copies.map(|&a| with(Op::Buf, vec![a]))).collect()
}

/// The design with one node of one definition replaced.
fn replace(top: &Arc<Module>, module: &str, node: NodeId, by: Node) -> Arc<Module> {
    let mut made: HashMap<String, Arc<Module>> = HashMap::new();
    for definition in top.modules() {
        let mut copy = (*definition).clone();
        for instance in &mut copy.instances {
            instance.module = made[&instance.module.name].clone();
        }
        if copy.name == module {
            copy.nodes[node.index()] = by.clone();
        }
        made.insert(copy.name.clone(), Arc::new(copy));
    }
    made[&top.name].clone()
}
