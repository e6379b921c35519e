//! Smaller designs with the same trouble.

use super::legal::is_legal;
use heddle_hdl::Bits;
use heddle_hdl::netlist::{Connection, Module, Node, NodeId, Op, ReadTiming};
use heddle_hdl::order::order;
use std::collections::HashMap;
use std::sync::Arc;

/// A design for which `fails` still holds and that no `Change` makes smaller: fewer instances, copies and lanes, less
/// state, fewer nodes, narrower values.
pub fn shrink(top: &Arc<Module>, fails: impl Fn(&Arc<Module>) -> bool) -> Arc<Module> {
    let mut best = top.clone();
    loop {
        let before = cost(&best);
        let mut k = 0;
        while let Some(change) = changes(&best).get(k) {
            let candidate = change.apply(&best);
            let smaller = cost(&candidate) < cost(&best) && candidate.modules().iter().all(|m| is_legal(m));
            if smaller && order(&candidate).is_ok() && fails(&candidate) {
                best = candidate;
            } else {
                k += 1;
            }
        }
        if cost(&best) == before {
            return best;
        }
    }
}

/// How many things the modules of a design have, each counted in every copy, the most important kind first: copies;
/// state, properties and ports; nodes that compute; other nodes; names and enables; bits.
fn cost(top: &Arc<Module>) -> [u64; 6] {
    let mut total = [0; 6];
    for instance in &top.instances {
        let inner = cost(&instance.module).map(|c| c * instance.copies() as u64);
        total.iter_mut().zip(inner).for_each(|(sum, c)| *sum += c);
        total[4] += instance.replicas.is_some() as u64;
    }
    let m = top;
    total[0] += 1;
    total[1] += (m.registers.len() + m.memories.len() + m.inputs.len() + m.outputs.len()) as u64;
    total[1] += (m.properties.len() + m.probes.len()) as u64;
    for memory in &m.memories {
        total[1] += (memory.reads.len() + memory.writes.len()) as u64;
        let enabled = |timing| matches!(timing, ReadTiming::Sync { enable: Some(_), .. });
        total[4] += memory.reads.iter().filter(|r| enabled(r.timing)).count() as u64 + memory.init.is_some() as u64;
    }
    for n in &m.nodes {
        total[if matches!(n.op, Op::Const(_) | Op::Input(_) | Op::Buf) { 3 } else { 2 }] += 1;
        total[4] += n.name.is_some() as u64 + n.args.len() as u64;
        total[5] += n.width as u64;
    }
    total[4] += m.registers.iter().map(|r| r.enable.is_some() as u64 + r.reset.is_some() as u64).sum::<u64>();
    total
}

/// One step towards a smaller design; in the module of that name, unless it is about the whole design.
enum Change {
    /// The module becomes the top.
    Top(String),
    /// Every width that is a multiple of the first becomes that multiple of the second.
    Widths(u32, u32),
    In(String, Edit),
}

enum Edit {
    DropInstance(usize),
    /// So many copies from this one on are left; none: a plain instance.
    Copies(usize, Option<u32>, u32),
    DropRegister(usize),
    DropMemory(usize),
    DropRead(usize, usize),
    DropWrite(usize, usize),
    DropProperty(usize),
    DropProbe(usize),
    DropOutput(usize),
    DropInput(usize),
    NoEnable(usize),
    NoReset(usize),
    NoReadEnable(usize, usize),
    NoInit(usize),
    NoNames,
    NoName(NodeId),
    Replace(NodeId, Node),
}

/// All changes, the largest first.
fn changes(top: &Arc<Module>) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut modules = top.modules();
    modules.reverse();
    changes.extend(modules[1..].iter().map(|m| Change::Top(m.name.clone())));
    for edits in [large_edits, edits] {
        for m in &modules {
            changes.extend(edits(m).into_iter().map(|edit| Change::In(m.name.clone(), edit)));
        }
    }
    let mut widths: Vec<u32> = modules.iter().flat_map(|m| &m.nodes).map(|n| n.width).filter(|w| *w > 1).collect();
    widths.sort();
    widths.dedup();
    for from in widths {
        let narrower = [1, 2, 8, 32, from / 2, from - 1].into_iter().filter(|&to| to < from && to > 0);
        changes.extend(narrower.map(|to| Change::Widths(from, to)));
    }
    changes
}

fn large_edits(m: &Arc<Module>) -> Vec<Edit> {
    let mut edits: Vec<Edit> = (0..m.instances.len()).map(Edit::DropInstance).collect();
    for (k, instance) in m.instances.iter().enumerate() {
        let Some(count) = instance.replicas else { continue };
        edits.extend([Edit::Copies(k, None, 0), Edit::Copies(k, None, count - 1)]);
        for left in [count / 4, count / 2, count.saturating_sub(2), count - 1].into_iter().filter(|&left| left > 0) {
            edits.extend([Edit::Copies(k, Some(left), 0), Edit::Copies(k, Some(left), count - left)]);
        }
    }
    edits.extend((0..m.memories.len()).map(Edit::DropMemory));
    edits.extend((0..m.registers.len()).map(Edit::DropRegister));
    edits.push(Edit::NoNames);
    edits
}

fn edits(m: &Arc<Module>) -> Vec<Edit> {
    let mut edits: Vec<Edit> = (0..m.properties.len()).map(Edit::DropProperty).collect();
    edits.extend((0..m.probes.len()).map(Edit::DropProbe));
    if m.outputs.len() > 1 {
        edits.extend((0..m.outputs.len()).map(Edit::DropOutput));
    }
    edits.extend((0..m.inputs.len()).map(Edit::DropInput));
    for (k, memory) in m.memories.iter().enumerate() {
        edits.extend((0..memory.reads.len()).map(|port| Edit::DropRead(k, port)));
        edits.extend((0..memory.writes.len()).map(|port| Edit::DropWrite(k, port)));
        edits.extend((0..memory.reads.len()).map(|port| Edit::NoReadEnable(k, port)));
        edits.push(Edit::NoInit(k));
    }
    for k in 0..m.registers.len() {
        edits.extend([Edit::NoEnable(k), Edit::NoReset(k)]);
    }
    for id in (0..m.nodes.len() as u32).map(NodeId) {
        edits.extend(simpler(m, id).into_iter().map(|n| Edit::Replace(id, n)));
        edits.extend(m.node(id).name.is_some().then_some(Edit::NoName(id)));
    }
    edits
}

/// Replacements of a node, the simplest first.
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

impl Change {
    fn apply(&self, top: &Arc<Module>) -> Arc<Module> {
        match self {
            Change::Top(name) => top.modules().into_iter().find(|m| m.name == *name).expect("a module of the design"),
            Change::Widths(from, to) => rebuild(top, |m| scale(m, *from, *to)),
            Change::In(name, edit) => rebuild(top, |m| {
                for k in 0..m.instances.len() {
                    if m.instances[k].module.name == *name {
                        edit.apply_to_instance(m, k);
                    }
                }
                if m.name == *name {
                    edit.apply(m);
                }
            }),
        }
    }
}

/// The design with every definition changed and tidied.
fn rebuild(top: &Arc<Module>, change: impl Fn(&mut Module)) -> Arc<Module> {
    let mut made: HashMap<String, Arc<Module>> = HashMap::new();
    for definition in top.modules() {
        let mut m = (*definition).clone();
        change(&mut m);
        for instance in &mut m.instances {
            instance.module = made[&instance.module.name].clone();
        }
        tidy(&mut m);
        made.insert(m.name.clone(), Arc::new(m));
    }
    made[&top.name].clone()
}

/// Turns the nodes of something that goes into zeros, and renumbers those of what follows it.
fn forget(m: &mut Module, number: impl Fn(&mut Op) -> Option<&mut u32>, gone: usize) {
    for n in &mut m.nodes {
        match number(&mut n.op) {
            Some(k) if *k as usize == gone => n.op = Op::Const(Bits::ZERO),
            Some(k) if *k as usize > gone => *k -= 1,
            _ => {}
        }
    }
}

impl Edit {
    /// What an edit of a module means for an instance of it.
    fn apply_to_instance(&self, m: &mut Module, k: usize) {
        let own = k as u32;
        match *self {
            Edit::DropInput(port) => drop(m.instances[k].inputs.remove(port)),
            Edit::DropOutput(gone) => {
                forget(
                    m,
                    |op| if let Op::InstOut { inst, port } = op { (*inst == own).then_some(port) } else { None },
                    gone,
                );
            }
            _ => {}
        }
    }

    fn apply(&self, m: &mut Module) {
        match *self {
            Edit::DropInstance(k) => {
                m.instances.remove(k);
                forget(m, |op| if let Op::InstOut { inst, .. } = op { Some(inst) } else { None }, k);
            }
            Edit::Copies(k, replicas, first) => copies(m, k, replicas, first),
            Edit::DropRegister(k) => {
                m.registers.remove(k);
                forget(m, |op| if let Op::Reg(r) = op { Some(r) } else { None }, k);
            }
            Edit::DropMemory(k) => {
                m.memories.remove(k);
                forget(m, |op| if let Op::MemRead { mem, .. } = op { Some(mem) } else { None }, k);
            }
            Edit::DropRead(k, read) => {
                m.memories[k].reads.remove(read);
                let own = k as u32;
                forget(
                    m,
                    |op| if let Op::MemRead { mem, port } = op { (*mem == own).then_some(port) } else { None },
                    read,
                );
            }
            Edit::DropWrite(k, port) => drop(m.memories[k].writes.remove(port)),
            Edit::DropProperty(k) => drop(m.properties.remove(k)),
            Edit::DropProbe(k) => drop(m.probes.remove(k)),
            Edit::DropOutput(k) => drop(m.outputs.remove(k)),
            Edit::DropInput(k) => {
                m.inputs.remove(k);
                forget(m, |op| if let Op::Input(port) = op { Some(port) } else { None }, k);
            }
            Edit::NoEnable(k) => m.registers[k].enable = None,
            Edit::NoReset(k) => m.registers[k].reset = None,
            Edit::NoReadEnable(k, port) => {
                if let ReadTiming::Sync { enable, .. } = &mut m.memories[k].reads[port].timing {
                    *enable = None;
                }
            }
            Edit::NoInit(k) => m.memories[k].init = None,
            Edit::NoNames => m.nodes.iter_mut().for_each(|n| n.name = None),
            Edit::NoName(node) => m.nodes[node.index()].name = None,
            Edit::Replace(node, ref by) => m.nodes[node.index()] = by.clone(),
        }
    }
}

fn push(m: &mut Module, op: Op, width: u32, args: &[NodeId]) -> NodeId {
    let loc = std::panic::Location::caller();
    m.nodes.push(Node { op, width, args: args.to_vec(), name: None, loc });
    NodeId(m.nodes.len() as u32 - 1)
}

/// Leaves copies `first ..` of an instance. The others' outputs become zeros; of a plain instance, its own again.
fn copies(m: &mut Module, k: usize, replicas: Option<u32>, first: u32) {
    let (old, new) = (m.instances[k].copies(), replicas.unwrap_or(1));
    let module = m.instances[k].module.clone();
    m.instances[k].replicas = replicas;
    for (port, input) in module.inputs.iter().enumerate() {
        if let Connection::Each(all) = m.instances[k].inputs[port] {
            let left = push(m, Op::Slice(first * input.width), new * input.width, &[all]);
            m.instances[k].inputs[port] = match replicas {
                Some(_) => Connection::Each(left),
                None => Connection::All(left),
            };
        }
    }
    for node in 0..m.nodes.len() {
        let Op::InstOut { inst, port } = m.nodes[node].op else { continue };
        if inst as usize == k {
            let width = module.outputs[port as usize].width;
            let left = push(m, m.nodes[node].op.clone(), new * width, &[]);
            let zeros = |m: &mut Module, copies: u32| push(m, Op::Const(Bits::ZERO), copies * width, &[]);
            let mut parts = vec![left];
            match replicas {
                None => parts = vec![left; old as usize],
                Some(_) => {
                    if first > 0 {
                        parts.insert(0, zeros(m, first));
                    }
                    if first + new < old {
                        parts.push(zeros(m, old - first - new));
                    }
                }
            }
            (m.nodes[node].op, m.nodes[node].args) = (Op::Cat, parts);
        }
    }
}

/// Multiples of one width become multiples of another.
fn scale(m: &mut Module, from: u32, to: u32) {
    let scaled = |width: u32| if width.is_multiple_of(from) { width / from * to } else { width };
    for n in &mut m.nodes {
        n.width = scaled(n.width);
        match &mut n.op {
            Op::Const(value) => *value = value.truncate(n.width),
            Op::Slice(low) => *low = scaled(*low),
            _ => {}
        }
    }
    for port in m.inputs.iter_mut().chain(&mut m.outputs) {
        port.width = scaled(port.width);
    }
    for r in &mut m.registers {
        r.width = scaled(r.width);
        r.reset = r.reset.as_ref().map(|value| value.truncate(r.width));
    }
    for memory in &mut m.memories {
        (memory.width, memory.address_width) = (scaled(memory.width), scaled(memory.address_width));
        for word in memory.init.iter_mut().flatten() {
            *word = word.truncate(memory.width);
        }
        if let Some(init) = &mut memory.init {
            init.truncate(1 << memory.address_width);
        }
    }
}

/// Takes out nodes that only pass on an operand, and nodes that nobody uses.
fn tidy(m: &mut Module) {
    // Bounded, as values that drive each other in a loop would go round.
    for _ in 0..20 {
        let before = m.nodes.clone();
        for k in 0..before.len() {
            simplify(m, k);
        }
        let passed = |n: &Node| n.op == Op::Buf && n.name.is_none();
        let to: Vec<NodeId> = (0..m.nodes.len())
            .map(|k| if passed(&m.nodes[k]) { m.nodes[k].args[0] } else { NodeId(k as u32) })
            .collect();
        for_each_use(m, |node| *node = to[node.index()]);
        if m.nodes == before {
            break;
        }
    }
    let mut used = vec![false; m.nodes.len()];
    let mut stack = Vec::new();
    for_each_root(m, |node| stack.push(*node));
    stack.extend((0..m.nodes.len() as u32).map(NodeId).filter(|n| m.node(*n).name.is_some()));
    while let Some(node) = stack.pop() {
        if !std::mem::replace(&mut used[node.index()], true) {
            stack.extend(&m.node(node).args);
        }
    }
    let mut place = 0;
    let new: Vec<NodeId> = used
        .iter()
        .map(|used| {
            place += *used as u32;
            NodeId(place.wrapping_sub(1))
        })
        .collect();
    let mut keep = used.iter();
    m.nodes.retain(|_| *keep.next().expect("one for each node"));
    for_each_use(m, |node| *node = new[node.index()]);
    for_each_state(m, |node| *node = new[node.index()]);
}

/// A node that moves bits, nearer to where they come from.
fn simplify(m: &mut Module, k: usize) {
    let n = m.nodes[k].clone();
    let Some(&arg) = n.args.first() else { return };
    let a = m.node(arg).clone();
    let (op, args) = match (&n.op, &a.op) {
        (Op::Slice(0), _) if n.width == a.width => (Op::Buf, vec![arg]),
        (Op::Slice(low), Op::Slice(inner)) => (Op::Slice(low + inner), a.args),
        (Op::Slice(low), Op::Const(value)) => (Op::Const(value.extract(*low, n.width)), vec![]),
        (Op::Slice(low), Op::Cat) => (Op::Cat, parts(m, &a.args, *low, n.width)),
        (Op::Cat, _) if n.args.len() == 1 => (Op::Buf, vec![arg]),
        (Op::Cat, _) => (Op::Cat, merge(m, &n.args)),
        _ => return,
    };
    (m.nodes[k].op, m.nodes[k].args) = (op, args);
}

/// Bits `low ..` of values side by side.
fn parts(m: &mut Module, args: &[NodeId], low: u32, width: u32) -> Vec<NodeId> {
    let (mut parts, mut start) = (Vec::new(), 0);
    for &arg in args {
        let end = start + m.node(arg).width;
        let (from, to) = (low.max(start), (low + width).min(end));
        if from < to {
            parts.push(push(m, Op::Slice(from - start), to - from, &[arg]));
        }
        start = end;
    }
    parts
}

/// The same values side by side, without another `Cat` among them, and neighbouring constants made one.
fn merge(m: &mut Module, args: &[NodeId]) -> Vec<NodeId> {
    let mut merged: Vec<NodeId> = Vec::new();
    let flat: Vec<NodeId> = args
        .iter()
        .flat_map(|&arg| match m.node(arg) {
            Node { op: Op::Cat, name: None, args, .. } => args.clone(),
            _ => vec![arg],
        })
        .collect();
    for arg in flat {
        let last = merged.last().map(|&last| m.node(last).clone());
        match (last.as_ref().map(|l| (&l.op, l.width)), &m.node(arg).op) {
            (Some((Op::Const(low), width)), Op::Const(high)) => {
                let value = Bits::from_big(low.to_big() | high.to_big() << width);
                let width = width + m.node(arg).width;
                *merged.last_mut().expect("there is one") = push(m, Op::Const(value), width, &[]);
            }
            _ => merged.push(arg),
        }
    }
    merged
}

/// Every place that uses a value.
fn for_each_use(m: &mut Module, mut f: impl FnMut(&mut NodeId)) {
    m.nodes.iter_mut().flat_map(|n| &mut n.args).for_each(&mut f);
    m.outputs.iter_mut().for_each(|p| f(&mut p.node));
    for r in &mut m.registers {
        [&mut r.next].into_iter().chain(&mut r.enable).for_each(&mut f);
    }
    for memory in &mut m.memories {
        for read in &mut memory.reads {
            f(&mut read.address);
            if let ReadTiming::Sync { enable: Some(enable), .. } = &mut read.timing {
                f(enable);
            }
        }
        memory.writes.iter_mut().flat_map(|w| [&mut w.enable, &mut w.address, &mut w.data]).for_each(&mut f);
    }
    for connection in m.instances.iter_mut().flat_map(|i| &mut i.inputs) {
        let (Connection::All(node) | Connection::Each(node)) = connection;
        f(node);
    }
    m.properties.iter_mut().for_each(|p| f(&mut p.node));
    m.probes.iter_mut().for_each(|p| f(&mut p.node));
}

/// The nodes that stand for ports and state.
fn for_each_state(m: &mut Module, mut f: impl FnMut(&mut NodeId)) {
    m.inputs.iter_mut().for_each(|p| f(&mut p.node));
    m.registers.iter_mut().for_each(|r| f(&mut r.out));
    m.memories.iter_mut().flat_map(|m| &mut m.reads).for_each(|r| f(&mut r.out));
}

/// The nodes that must stay, whether nodes use them or not.
fn for_each_root(m: &mut Module, mut f: impl FnMut(&mut NodeId)) {
    let nodes = std::mem::take(&mut m.nodes);
    for_each_use(m, &mut f);
    for_each_state(m, &mut f);
    m.nodes = nodes;
}
