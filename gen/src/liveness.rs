//! What of a module is hardware, and what serves only verification.

use heddle_hdl::netlist::{Module, NodeId, Op, ReadTiming};

/// For each node, register and memory of a module: is it needed?
pub struct Liveness {
    pub nodes: Vec<bool>,
    pub registers: Vec<bool>,
    pub memories: Vec<bool>,
}

impl Liveness {
    /// What outputs, instances and the reset need.
    pub fn of_hardware(m: &Module) -> Liveness {
        let outputs = m.outputs.iter().map(|p| p.node);
        let instances = m.instances.iter().flat_map(|i| i.inputs.iter().map(|c| c.node()));
        Liveness::from(m, outputs.chain(instances).chain(m.reset).collect())
    }

    /// What outputs, instances, properties and probes need, and all state.
    pub fn of_everything(m: &Module) -> Liveness {
        let mut live = Liveness::of_hardware(m);
        let checks = m.properties.iter().map(|p| p.node).chain(m.probes.iter().map(|p| p.node));
        live.reach(m, checks.collect());
        for r in 0..m.registers.len() {
            live.reach(m, vec![m.registers[r].out]);
        }
        for k in 0..m.memories.len() {
            live.memory(m, k);
        }
        live
    }

    /// What properties alone need beyond `hardware`, is in this one too.
    pub fn of_properties(m: &Module) -> Liveness {
        let mut live = Liveness::of_hardware(m);
        live.reach(m, m.properties.iter().map(|p| p.node).collect());
        live
    }

    fn from(m: &Module, roots: Vec<NodeId>) -> Liveness {
        let mut live = Liveness {
            nodes: vec![false; m.nodes.len()],
            registers: vec![false; m.registers.len()],
            memories: vec![false; m.memories.len()],
        };
        live.reach(m, roots);
        live
    }

    fn memory(&mut self, m: &Module, index: usize) {
        if std::mem::replace(&mut self.memories[index], true) {
            return;
        }
        let memory = &m.memories[index];
        let mut needs: Vec<NodeId> = memory.writes.iter().flat_map(|w| [w.enable, w.address, w.data]).collect();
        for read in &memory.reads {
            needs.push(read.address);
            if let ReadTiming::Sync { enable: Some(enable), .. } = read.timing {
                needs.push(enable);
            }
        }
        self.reach(m, needs);
    }

    fn reach(&mut self, m: &Module, mut work: Vec<NodeId>) {
        while let Some(id) = work.pop() {
            if std::mem::replace(&mut self.nodes[id.index()], true) {
                continue;
            }
            let node = m.node(id);
            work.extend(&node.args);
            match node.op {
                Op::Reg(r) => {
                    self.registers[r as usize] = true;
                    let register = &m.registers[r as usize];
                    work.push(register.next);
                    work.extend(register.enable);
                }
                Op::MemRead { mem, .. } => self.memory(m, mem as usize),
                _ => {}
            }
        }
    }
}
