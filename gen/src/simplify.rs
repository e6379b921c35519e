//! Changes of form before a module is written: constants are folded, and chains of muxes that compare one selector
//! with constants become [`Op::Case`]. The numbers and names of the nodes stay.

use heddle_hdl::Bits;
use heddle_hdl::eval::eval;
use heddle_hdl::netlist::{Module, NodeId, Op};

/// A chain with fewer arms stays a chain.
const CASE_ARMS: usize = 3;

pub fn simplify(module: &Module) -> Module {
    let mut module = module.clone();
    fold(&mut module);
    let uses = uses(&module);
    for k in 0..module.nodes.len() {
        if let Some((labels, args)) = chain(&module, NodeId(k as u32), &uses) {
            module.nodes[k].op = Op::Case(labels);
            module.nodes[k].args = args;
        }
    }
    module
}

/// How many operands each node is, in nodes of the module.
fn uses(module: &Module) -> Vec<u32> {
    let mut uses = vec![0; module.nodes.len()];
    module.nodes.iter().flat_map(|n| &n.args).for_each(|a| uses[a.index()] += 1);
    uses
}

fn constant(module: &Module, node: NodeId) -> Option<&Bits> {
    match &module.node(node).op {
        Op::Const(value) => Some(value),
        _ => None,
    }
}

/// Folds until nothing changes; a node may come before its operands.
fn fold(module: &mut Module) {
    let mut changed = true;
    while changed {
        changed = false;
        for k in 0..module.nodes.len() {
            if let Some((op, args)) = folded(module, k) {
                module.nodes[k].op = op;
                module.nodes[k].args = args;
                changed = true;
            }
        }
    }
}

/// What node `k` is if some of its operands are constant.
fn folded(module: &Module, k: usize) -> Option<(Op, Vec<NodeId>)> {
    let node = &module.nodes[k];
    let width_of = |n: NodeId| module.node(n).width;
    let values: Vec<Option<&Bits>> = node.args.iter().map(|&a| constant(module, a)).collect();
    if !values.is_empty() && values.iter().all(Option::is_some) {
        let values: Vec<&Bits> = values.into_iter().flatten().collect();
        let widths: Vec<u32> = node.args.iter().map(|&a| width_of(a)).collect();
        return Some((Op::Const(eval(&node.op, node.width, &values, &widths)), vec![]));
    }
    match &node.op {
        Op::Mux => match values[0] {
            Some(on) => Some((Op::Buf, vec![node.args[if on.is_zero() { 2 } else { 1 }]])),
            None => {
                let same = node.args[1] == node.args[2] || values[1].is_some() && values[1] == values[2];
                same.then(|| (Op::Buf, vec![node.args[1]]))
            }
        },
        Op::And | Op::Or => {
            // The literal that decides the result, and the one that changes nothing.
            let ones = Bits::ones(node.width);
            let (decides, neutral) = if node.op == Op::And { (Bits::ZERO, ones) } else { (ones, Bits::ZERO) };
            (0..2).find_map(|k| match values[k] {
                Some(value) if *value == decides => Some((Op::Const(decides.clone()), vec![])),
                Some(value) if *value == neutral => Some((Op::Buf, vec![node.args[1 - k]])),
                _ => None,
            })
        }
        Op::Case(labels) => values[0].map(|selector| {
            let arm = labels.iter().position(|label| label == selector).map_or(1, |k| 2 + k);
            (Op::Buf, vec![node.args[arm]])
        }),
        Op::Select => values[1].map(|index| match index.to_u64() {
            Some(i) if i < (width_of(node.args[0]) / node.width) as u64 => {
                (Op::Slice(i as u32 * node.width), vec![node.args[0]])
            }
            _ => (Op::Const(Bits::ZERO), vec![]),
        }),
        Op::Shl | Op::Shr => values[1]
            .filter(|n| n.to_u64().is_none_or(|n| n >= node.width as u64))
            .map(|_| (Op::Const(Bits::ZERO), vec![])),
        // Nothing is below 0 or above all ones.
        Op::Lt => {
            let ones = Bits::ones(width_of(node.args[0]));
            let never = values[1].is_some_and(Bits::is_zero) || values[0].is_some_and(|v| *v == ones);
            never.then(|| (Op::Const(Bits::ZERO), vec![]))
        }
        _ => None,
    }
}

/// The labels and operands of the `Case` that the mux chain from `node` down is.
fn chain(module: &Module, node: NodeId, uses: &[u32]) -> Option<(Vec<Bits>, Vec<NodeId>)> {
    let mut selector = None;
    let (mut labels, mut values) = (Vec::new(), Vec::new());
    let mut at = node;
    while let Some((s, label)) = arm(module, at) {
        let inner = at != node && (module.node(at).name.is_some() || uses[at.index()] != 1);
        if inner || *selector.get_or_insert(s) != s {
            break;
        }
        let [_, on, off] = module.node(at).args[..] else { break };
        if !labels.contains(label) {
            labels.push(label.clone());
            values.push(on);
        }
        at = off;
    }
    if labels.len() < CASE_ARMS {
        return None;
    }
    let args = [selector?, at].into_iter().chain(values).collect();
    Some((labels, args))
}

/// Selector and label if the node is a mux whose condition compares a value with a constant.
fn arm(module: &Module, node: NodeId) -> Option<(NodeId, &Bits)> {
    let n = module.node(node);
    if n.op != Op::Mux {
        return None;
    }
    let condition = module.node(n.args[0]);
    if condition.op != Op::Eq || condition.name.is_some() {
        return None;
    }
    let [a, b] = condition.args[..] else { return None };
    match (constant(module, a), constant(module, b)) {
        (None, Some(label)) => Some((a, label)),
        (Some(label), None) => Some((b, label)),
        _ => None,
    }
}
