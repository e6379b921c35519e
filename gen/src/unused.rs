//! Bits that nothing reads: they go to an explicit sink, so that lint needs no waiver.

use crate::liveness::Liveness;
use heddle_hdl::netlist::{Module, NodeId, Op, ReadTiming};

/// For each node, which of its bits the live part of the module reads.
pub struct Used(Vec<Vec<bool>>);

impl Used {
    pub fn new(m: &Module, live: &Liveness) -> Used {
        let mut used = Used(m.nodes.iter().map(|n| vec![false; n.width as usize]).collect());
        for (_, node) in m.nodes.iter().enumerate().filter(|(i, _)| live.nodes[*i]) {
            match node.op {
                Op::Slice(low) => used.mark(node.args[0], low, node.width),
                Op::Select => {
                    // An index that cannot name all elements leaves the others unread.
                    let index_bits = m.node(node.args[1]).width;
                    let most = if index_bits >= 20 { u32::MAX } else { node.width.saturating_mul(1 << index_bits) };
                    used.mark(node.args[0], 0, most.min(m.node(node.args[0]).width));
                    used.all(m, node.args[1]);
                }
                _ => node.args.iter().for_each(|a| used.all(m, *a)),
            }
        }
        for (_, register) in m.registers.iter().enumerate().filter(|(r, _)| live.registers[*r]) {
            used.all(m, register.next);
            register.enable.into_iter().for_each(|e| used.all(m, e));
        }
        for (_, memory) in m.memories.iter().enumerate().filter(|(k, _)| live.memories[*k]) {
            for read in &memory.reads {
                used.all(m, read.address);
                if let ReadTiming::Sync { enable: Some(e), .. } = read.timing {
                    used.all(m, e);
                }
            }
            memory.writes.iter().flat_map(|w| [w.enable, w.address, w.data]).for_each(|n| used.all(m, n));
        }
        m.outputs.iter().for_each(|p| used.all(m, p.node));
        m.instances.iter().flat_map(|i| &i.inputs).for_each(|c| used.all(m, c.node()));
        m.reset.into_iter().for_each(|n| used.all(m, n));
        used
    }

    fn all(&mut self, m: &Module, id: NodeId) {
        self.mark(id, 0, m.node(id).width);
    }

    fn mark(&mut self, id: NodeId, low: u32, width: u32) {
        self.0[id.index()][low as usize..(low + width) as usize].fill(true);
    }

    /// For each bit of a node: is it read?
    pub fn bits(&self, id: NodeId) -> &[bool] {
        &self.0[id.index()]
    }
}

/// Ranges (low, width) of bits that are not read.
pub fn unread_ranges(read: &[bool]) -> Vec<(u32, u32)> {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for (bit, _) in read.iter().enumerate().filter(|(_, read)| !**read) {
        match ranges.last_mut() {
            Some((low, width)) if *low + *width == bit as u32 => *width += 1,
            _ => ranges.push((bit as u32, 1)),
        }
    }
    ranges
}
