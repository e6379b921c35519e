//! Which packed values of a scope that is no lane are one value a lane, side by side.
//!
//! A register that holds such a value is kept as a cell with lanes, so that it need not be packed and unpacked. This is
//! a guess from what drives it, on which only speed depends.

use super::lanes::Lanes;
use crate::directory::Directory;
use heddle_hdl::netlist::{Connection, NodeId, Op};
use std::collections::{HashMap, HashSet};

/// So many lanes of so many bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct View {
    pub lanes: u32,
    pub width: u32,
}

pub struct Views<'a> {
    directory: &'a Directory,
    lanes: &'a Lanes,
    known: HashMap<(usize, NodeId), View>,
    /// Values that were looked at for one that turned out to have no view.
    without: HashSet<(usize, NodeId)>,
}

impl<'a> Views<'a> {
    pub fn new(directory: &'a Directory, lanes: &'a Lanes) -> Views<'a> {
        Views { directory, lanes, known: HashMap::new(), without: HashSet::new() }
    }

    /// How a value is to be seen; None for one that is not made of lanes, or of 1 bit per lane.
    pub fn view(&mut self, scope: usize, node: NodeId) -> Option<View> {
        if self.lanes.groups == 0 {
            return None;
        }
        let mut open = HashSet::new();
        let view = self.search(scope, node, &mut open);
        if view.is_none() {
            self.without.extend(open);
        }
        view
    }

    fn search(&mut self, scope: usize, node: NodeId, open: &mut HashSet<(usize, NodeId)>) -> Option<View> {
        let key = (scope, node);
        if let Some(&view) = self.known.get(&key) {
            return Some(view);
        }
        let place = &self.directory.scopes[scope];
        let n = place.module.node(node);
        if n.width < 4 || self.lanes.of(scope).is_some() || self.without.contains(&key) || !open.insert(key) {
            return None;
        }
        let fits = |view: &View| (2..=64).contains(&view.width) && view.lanes * view.width == n.width;
        let view = match &n.op {
            Op::InstOut { inst, port } => {
                let child = place.children[*inst as usize][0];
                let output = &place.module.instances[*inst as usize].module.outputs[*port as usize];
                match self.lanes.of(child) {
                    Some(lane) => Some(View { lanes: lane.lanes, width: output.width }),
                    None => self.search(child, output.node, open),
                }
            }
            Op::Input(port) => place.parent.and_then(|parent| {
                let instances = &self.directory.scopes[parent].module.instances;
                let inst = self.directory.scopes[parent].children.iter().position(|copies| copies[..] == [scope])?;
                match instances[inst].inputs[*port as usize] {
                    Connection::All(node) => self.search(parent, node, open),
                    Connection::Each(_) => None,
                }
            }),
            Op::Buf | Op::Not | Op::And | Op::Or | Op::Xor => n.args.iter().find_map(|&a| self.search(scope, a, open)),
            Op::Mux | Op::Case(_) => n.args[1..].iter().find_map(|&a| self.search(scope, a, open)),
            Op::Reg(k) => self.search(scope, place.module.registers[*k as usize].next, open),
            Op::Cat => {
                // Some bits of each lane of a value.
                let width = place.module.node(n.args[0]).width;
                let mut whole = n.args[0];
                while let Op::Slice(_) | Op::Buf = place.module.node(whole).op {
                    whole = place.module.node(whole).args[0];
                }
                let lanes = n.args.len() as u32;
                let alike = n.args.iter().all(|&a| place.module.node(a).width == width);
                let view = match whole == n.args[0] {
                    false => self.search(scope, whole, open),
                    true if alike && lanes > 1 => self.search_behind(scope, whole, lanes, open),
                    true => None,
                };
                view.filter(|view| view.lanes == lanes).map(|view| View { width, ..view })
            }
            _ => None,
        };
        let view = view.filter(fits)?;
        self.known.insert(key, view);
        Some(view)
    }

    /// The view of a value of which the computation of this one takes a part.
    fn search_behind(
        &mut self,
        scope: usize,
        node: NodeId,
        lanes: u32,
        open: &mut HashSet<(usize, NodeId)>,
    ) -> Option<View> {
        const MOST: usize = 12;
        let module = &self.directory.scopes[scope].module;
        let mut ahead = vec![node];
        for _ in 0..MOST {
            let node = ahead.pop()?;
            if let Some(view) = self.search(scope, node, open).filter(|view| view.lanes == lanes) {
                return Some(view);
            }
            ahead.extend(&module.node(node).args);
        }
        None
    }
}
