//! The contract of `netlist.rs` about widths.

use heddle_hdl::netlist::{Connection, Module, Node, NodeId, Op};
use std::collections::HashSet;

/// Whether the widths in a module fit together.
pub fn is_legal(m: &Module) -> bool {
    let width = |k: NodeId| m.node(k).width;
    let ports = m.inputs.iter().chain(&m.outputs).all(|p| width(p.node) == p.width);
    let registers = m
        .registers
        .iter()
        .all(|r| width(r.next) == r.width && width(r.out) == r.width && r.enable.is_none_or(|e| width(e) == 1));
    let memories = m.memories.iter().all(|m| {
        m.reads.iter().all(|r| width(r.address) == m.address_width && width(r.out) == m.width)
            && m.writes.iter().all(|w| width(w.address) == m.address_width && width(w.data) == m.width)
            && m.writes.iter().all(|w| m.width.is_multiple_of(width(w.enable)))
    });
    let instances = m.instances.iter().all(|i| {
        let fits = |(port, connection): (&heddle_hdl::netlist::Port, &Connection)| match *connection {
            Connection::All(node) => width(node) == port.width,
            Connection::Each(node) => i.replicas.is_some_and(|n| width(node) == n * port.width),
        };
        i.inputs.len() == i.module.inputs.len() && i.module.inputs.iter().zip(&i.inputs).all(fits)
    });
    let observers = m.properties.iter().all(|p| width(p.node) == 1);
    ports && registers && memories && instances && observers && m.nodes.iter().all(|n| node_is_legal(m, n))
}

fn node_is_legal(m: &Module, n: &Node) -> bool {
    let args: Vec<u32> = n.args.iter().map(|&a| m.node(a).width).collect();
    let sum: u32 = args.iter().sum();
    n.width > 0
        && match &n.op {
            Op::Const(value) => value.bit_length() <= n.width,
            Op::Not | Op::Buf | Op::And | Op::Or | Op::Xor | Op::Add | Op::Sub | Op::Mul => {
                args.iter().all(|w| *w == n.width)
            }
            Op::MulFull | Op::MulFullSigned | Op::Cat => sum == n.width,
            Op::Shl | Op::Shr | Op::Sar => args[0] == n.width,
            Op::Eq | Op::Ne | Op::Lt | Op::LtSigned => args[0] == args[1] && n.width == 1,
            Op::Mux => args == [1, n.width, n.width],
            Op::Case(labels) => {
                labels.iter().collect::<HashSet<_>>().len() == labels.len()
                    && labels.iter().all(|l| l.bit_length() <= args[0])
                    && args[1..].iter().all(|w| *w == n.width)
                    && args.len() == labels.len() + 2
            }
            Op::Select => args[0].is_multiple_of(n.width),
            Op::Slice(low) => low + n.width <= args[0],
            Op::ZExt | Op::SExt => args[0] < n.width,
            Op::Any | Op::All | Op::Parity => n.width == 1,
            Op::CountOnes => 32 - args[0].leading_zeros() <= n.width,
            Op::InstOut { inst, port } => {
                let instance = &m.instances[*inst as usize];
                n.width == instance.module.outputs[*port as usize].width * instance.copies()
            }
            Op::Input(_) | Op::Reg(_) | Op::MemRead { .. } => args.is_empty(),
            Op::Poison => false,
        }
}
