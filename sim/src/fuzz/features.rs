//! What random designs about lanes contain.

use super::lanes::WIDTHS;
use heddle_hdl::netlist::{Collision, Connection, Instance, Module, NodeId, Op, PropertyKind, ReadTiming};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// The features that occur in the replicated instances (of two copies or more) of a design and around them.
pub fn features(top: &Arc<Module>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for module in top.modules() {
        for instance in module.instances.iter().filter(|i| i.copies() > 1) {
            inside(instance, &mut found);
            around(&module, instance, &mut found);
            for inner in &instance.module.instances {
                found
                    .insert(format!("in copies: {} instance", if inner.copies() > 1 { "replicated" } else { "plain" }));
            }
        }
    }
    found
}

/// All features, each with the number of designs that it should be in of 300.
pub fn wanted() -> BTreeMap<String, usize> {
    let mut wanted = BTreeMap::new();
    let mut want = |count: usize, prefix: &str, names: &[&str]| {
        wanted.extend(names.iter().map(|name| (format!("{prefix}{name}"), count)));
    };
    let enables = ["no enable", "common enable", "enable per copy"];
    for enable in enables {
        want(15, "register with reset, ", &[enable]);
        want(15, "register without reset, ", &[enable]);
        want(15, "synchronous read, ", &[enable]);
    }
    want(15, "read ", &["old", "new", "never", "asynchronous", "or zero"]);
    want(15, "read address ", &["common", "per copy"]);
    want(15, "write ", &["address common", "address per copy", "of granules", "common enable", "enable per copy"]);
    want(15, "property ", &["assert", "assume", "cover"]);
    want(15, "", &["probe"]);
    want(20, "in copies: ", &["plain instance", "replicated instance"]);
    let operations = "Not And Or Xor Add Sub Mul MulFull MulFullSigned Eq Ne Lt LtSigned Mux Select Slice Cat ZExt SExt Any \
                      All Parity CountOnes";
    want(15, "operation ", &operations.split_whitespace().collect::<Vec<_>>());
    want(15, "operation ", &["Case, common", "Case, per copy"]);
    for shift in ["Shl", "Shr", "Sar"] {
        want(15, &format!("operation {shift} by "), &["common amount", "amount per copy"]);
    }
    want(100, "input ", &["for all", "for each"]);
    want(30, "input from ", &["lane numbers", "output, same count", "own outputs", "register", "Mux", "Select", "Cat"]);
    want(10, "input from ", &["output, other count", "Case", "Not", "And", "Or", "Xor"]);
    want(10, "input from lanes ", &["kept", "rotated", "reversed", "broken"]);
    for width in WIDTHS {
        want(15, &format!("width {width:3}"), &[""]);
    }
    for copies in [2, 3, 4, 5, 6, 7, 8, 9, 16, 32, 64] {
        want(4, &format!("copies {copies:2}"), &[""]);
    }
    want(15, "copies ", &["odd, above 9", "even, above 9"]);
    wanted
}

/// The name of an operation, without what is in it.
fn name(op: &Op) -> String {
    format!("{op:?}").split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().into()
}

fn inside(instance: &Instance, found: &mut BTreeSet<String>) {
    let m = &instance.module;
    let common: HashSet<NodeId> = common(instance);
    let mut add = |text: String| found.insert(text);
    let which = |node| if common.contains(&node) { "common" } else { "per copy" };
    let enable = |node: Option<NodeId>| match node.map(which) {
        None => "no enable",
        Some("common") => "common enable",
        Some(_) => "enable per copy",
    };
    let copies = instance.copies();
    add(format!("copies {copies:2}"));
    if copies > 9 {
        add(format!("copies {}, above 9", if copies % 2 == 1 { "odd" } else { "even" }));
    }
    for r in &m.registers {
        add(format!("register {} reset, {}", if r.reset.is_some() { "with" } else { "without" }, enable(r.enable)));
    }
    for memory in &m.memories {
        for read in &memory.reads {
            add(format!("read address {}", which(read.address)));
            let ReadTiming::Sync { enable: on, collision, or_zero } = read.timing else {
                add("read asynchronous".into());
                continue;
            };
            add(format!("synchronous read, {}", enable(on)));
            if or_zero {
                add("read or zero".into());
            }
            add(match collision {
                Collision::ReadOld => "read old".into(),
                Collision::ReadNew => "read new".into(),
                Collision::Never => "read never".into(),
            });
        }
        for write in &memory.writes {
            add(format!("write address {}", which(write.address)));
            add(format!("write {}", enable(Some(write.enable))));
            if m.node(write.enable).width > 1 {
                add("write of granules".into());
            }
        }
    }
    for property in &m.properties {
        add(match property.kind {
            PropertyKind::Assert => "property assert".into(),
            PropertyKind::Assume => "property assume".into(),
            PropertyKind::Cover => "property cover".into(),
        });
    }
    if !m.probes.is_empty() {
        add("probe".into());
    }
    for (k, n) in m.nodes.iter().enumerate() {
        if common.contains(&NodeId(k as u32)) {
            continue;
        }
        add(format!("width {:3}", n.width));
        match n.op {
            Op::Shl | Op::Shr | Op::Sar if which(n.args[1]) == "common" => {
                add(format!("operation {} by common amount", name(&n.op)))
            }
            Op::Shl | Op::Shr | Op::Sar => add(format!("operation {} by amount per copy", name(&n.op))),
            Op::Case(_) => add(format!("operation Case, {}", which(n.args[0]))),
            _ => add(format!("operation {}", name(&n.op))),
        };
    }
}

/// The nodes of a replicated module that are the same in all copies.
fn common(instance: &Instance) -> HashSet<NodeId> {
    let m = &instance.module;
    let mut common = HashSet::new();
    loop {
        let before = common.len();
        for (k, n) in m.nodes.iter().enumerate() {
            let is = match n.op {
                Op::Input(port) => matches!(instance.inputs[port as usize], Connection::All(_)),
                Op::Reg(_) | Op::MemRead { .. } | Op::InstOut { .. } => false,
                _ => n.args.iter().all(|a| common.contains(a)),
            };
            if is {
                common.insert(NodeId(k as u32));
            }
        }
        if common.len() == before {
            return common;
        }
    }
}

/// Where the inputs come from.
fn around(parent: &Module, instance: &Instance, found: &mut BTreeSet<String>) {
    let own = parent.instances.iter().position(|i| std::ptr::eq(i, instance));
    for (port, connection) in instance.module.inputs.iter().zip(&instance.inputs) {
        let Connection::Each(node) = *connection else {
            found.insert("input for all".into());
            continue;
        };
        found.insert("input for each".into());
        let mut add = |text: &str| found.insert(format!("input from {text}"));
        let n = parent.node(node);
        match n.op {
            Op::InstOut { inst, .. } => match parent.instances[inst as usize].copies() {
                count if count == instance.copies() => add("output, same count"),
                _ => add("output, other count"),
            },
            Op::Const(_) => add("lane numbers"),
            _ => false,
        };
        for (node, n) in path(parent, node) {
            match &n.op {
                Op::Reg(_) => add("register"),
                Op::Mux | Op::Case(_) | Op::Not | Op::And | Op::Or | Op::Xor | Op::Select | Op::Cat => {
                    add(&name(&n.op))
                }
                Op::InstOut { inst, .. } if Some(*inst as usize) == own => add("own outputs"),
                _ => false,
            };
            if let Some(moves) = moves(parent, node, port.width) {
                add(moves);
            }
        }
    }
}

/// The nodes between the outputs of replicated instances and this one.
fn path(m: &Module, node: NodeId) -> Vec<(NodeId, &heddle_hdl::netlist::Node)> {
    let carries = |op: &Op| {
        !matches!(op, Op::Eq | Op::Ne | Op::Lt | Op::LtSigned | Op::Any | Op::All | Op::Parity | Op::CountOnes)
    };
    let needs = |node: NodeId| match m.node(node).op {
        Op::Reg(k) => vec![m.registers[k as usize].next],
        _ if carries(&m.node(node).op) => m.node(node).args.clone(),
        _ => vec![],
    };
    let mut behind = vec![node];
    let mut seen: HashSet<NodeId> = HashSet::from([node]);
    let mut next = 0;
    while next < behind.len() {
        let more: Vec<NodeId> = needs(behind[next]).into_iter().filter(|&n| seen.insert(n)).collect();
        behind.extend(more);
        next += 1;
    }
    let is_output =
        |n: NodeId| matches!(m.node(n).op, Op::InstOut { inst, .. } if m.instances[inst as usize].copies() > 1);
    let mut reaches: HashSet<NodeId> = behind.iter().copied().filter(|&n| is_output(n)).collect();
    loop {
        let more: Vec<NodeId> = behind
            .iter()
            .copied()
            .filter(|n| !reaches.contains(n) && needs(*n).iter().any(|a| reaches.contains(a)))
            .collect();
        if more.is_empty() {
            return behind.into_iter().filter(|n| reaches.contains(n)).map(|n| (n, m.node(n))).collect();
        }
        reaches.extend(more);
    }
}

/// What a `Cat` of slices of one value does with elements of this width.
fn moves(m: &Module, node: NodeId, element: u32) -> Option<&'static str> {
    let n = m.node(node);
    let slice = |a: &NodeId| match m.node(*a).op {
        Op::Slice(low) => Some((m.node(*a).args[0], low, m.node(*a).width)),
        _ => None,
    };
    let slices: Vec<_> = n.args.iter().filter_map(slice).collect();
    if n.op != Op::Cat || slices.is_empty() {
        return None;
    }
    if slices.iter().any(|(_, low, width)| low % element != 0 || width % element != 0) {
        return Some("lanes broken");
    }
    let one = slices.len() == n.args.len() && slices.iter().all(|s| s.0 == slices[0].0);
    let reversed = slices.windows(2).all(|w| w[0].1 == w[1].1 + w[1].2);
    match (one, slices.len()) {
        (true, 2) if slices[1].1 == 0 && reversed => Some("lanes rotated"),
        (true, 3..) if reversed => Some("lanes reversed"),
        _ => Some("lanes kept"),
    }
}
