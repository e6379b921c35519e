//! What of a design is hardware: all that an output of the top depends on, through the hierarchy.

use super::{Change, Mutant};
use crate::netlist::{Module, NodeId, Op, ReadTiming};
use std::collections::HashMap;
use std::sync::Arc;

/// For each module, in the order of [`Module::modules`]: what an output of the top depends on in some instance.
pub struct Live {
    modules: Vec<Arc<Module>>,
    nodes: Vec<Vec<bool>>,
    memories: Vec<Vec<bool>>,
}

impl Live {
    pub fn new(top: &Arc<Module>) -> Live {
        let modules = top.modules();
        let number: HashMap<*const Module, usize> =
            modules.iter().enumerate().map(|(k, m)| (Arc::as_ptr(m), k)).collect();
        // For each module, where its inputs come from: the module that has an instance of it, and which.
        let mut places: Vec<Vec<(usize, usize)>> = vec![vec![]; modules.len()];
        for (parent, m) in modules.iter().enumerate() {
            for (k, instance) in m.instances.iter().enumerate() {
                places[number[&Arc::as_ptr(&instance.module)]].push((parent, k));
            }
        }
        let nodes = modules.iter().map(|m| vec![false; m.nodes.len()]).collect();
        let memories = modules.iter().map(|m| vec![false; m.memories.len()]).collect();
        let mut live = Live { modules, nodes, memories };

        let modules = live.modules.clone();
        let last = modules.len() - 1;
        let mut work: Vec<(usize, NodeId)> = top.outputs.iter().map(|p| (last, p.node)).collect();
        while let Some((k, id)) = work.pop() {
            if std::mem::replace(&mut live.nodes[k][id.index()], true) {
                continue;
            }
            let m = &modules[k];
            let node = m.node(id);
            work.extend(node.args.iter().map(|&a| (k, a)));
            match node.op {
                Op::Reg(r) => {
                    let register = &m.registers[r as usize];
                    work.extend([Some(register.next), register.enable].into_iter().flatten().map(|n| (k, n)));
                }
                Op::MemRead { mem, port } => {
                    let memory = &m.memories[mem as usize];
                    let read = &memory.reads[port as usize];
                    work.push((k, read.address));
                    if let ReadTiming::Sync { enable: Some(enable), .. } = read.timing {
                        work.push((k, enable));
                    }
                    if !std::mem::replace(&mut live.memories[k][mem as usize], true) {
                        work.extend(memory.writes.iter().flat_map(|w| [w.enable, w.address, w.data]).map(|n| (k, n)));
                    }
                }
                Op::InstOut { inst, port } => {
                    let child = &m.instances[inst as usize].module;
                    work.push((number[&Arc::as_ptr(child)], child.outputs[port as usize].node));
                }
                Op::Input(port) => {
                    let drivers = places[k].iter();
                    work.extend(drivers.map(|&(p, i)| (p, modules[p].instances[i].inputs[port as usize].node())));
                }
                _ => {}
            }
        }
        live
    }

    /// Whether a mutant of the `k`-th module is in the hardware.
    pub fn has(&self, k: usize, m: &Module, mutant: &Mutant) -> bool {
        let node = |id: &NodeId| self.nodes[k][id.index()];
        match &mutant.change {
            Change::Op(id, _)
            | Change::Operand(id, _)
            | Change::Exchange(id, ..)
            | Change::Negate(id)
            | Change::OrEqual(id)
            | Change::NextIndex(id)
            | Change::DropArm(id, _) => node(id),
            Change::Reset(r, _) | Change::Enable(r, _) => node(&m.registers[*r].out),
            Change::Write(mem, ..) | Change::ExchangeWrites(mem, _) => self.memories[k][*mem],
            Change::ReadEnable(mem, port, _) | Change::Collision(mem, port, _) => {
                node(&m.memories[*mem].reads[*port].out)
            }
            Change::Inputs(instance, port) => {
                let child = &m.instances[*instance].module;
                let number = self.modules.iter().position(|m| Arc::ptr_eq(m, child)).expect("it is below");
                child.inputs[*port..port + 2].iter().any(|p| self.nodes[number][p.node.index()])
            }
        }
    }
}
