//! Gating: which computations are needed only under a condition, and so are to be made only then.
//!
//! A region is a piece of code that is executed under a condition: an arm of a choice, or a guarded action. A node
//! belongs to the innermost region that all its users are in, and is computed there. An arm whose choice would save too
//! little is no region of its own: its nodes belong to where the choice is.

use super::layout::STRIP;
use super::shared::{Literal, Shared, shared};
use crate::flat::{Flat, Id, Node, Op};

/// A region's number. Parents have smaller numbers than the regions in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Region(u32);

impl Region {
    /// Always executed.
    pub const ROOT: Region = Region(0);

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// The least cost of what is computed behind one branch for many users. Moving its results about costs time, too: on
/// the core with 8 lanes, 8 gains no more than 100 where units rest (1 warp), and loses a tenth where they do not (8
/// warps). In a small design, less is a unit.
pub fn least_shared(flat: &Flat) -> u32 {
    (flat.nodes.len() as u32 / 20).clamp(8, 100)
}

/// Which conditions become branches.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Gating {
    /// None but those of actions, and nothing is computed under them.
    Off,
    /// Choices whose arms have at least this cost (about one an operation), and all guarded actions.
    From(u32),
}

/// Nodes that are computed together behind one branch, as [`super::shared`] finds them.
pub struct Group {
    pub condition: Literal,
    pub region: Region,
    /// Those of its nodes that others use.
    pub results: Vec<Id>,
}

pub struct Regions {
    /// The group that each node is in.
    group: Vec<Option<usize>>,
    pub groups: Vec<Group>,
    owner: Vec<Option<Region>>,
    parent: Vec<Region>,
    /// For each node: the region of its first arm, if its arms are regions; the others follow.
    arms: Vec<Option<Region>>,
    /// For each list of actions: the region of each of its guarded actions.
    actions: Vec<Vec<Region>>,
    nodes: Vec<Vec<Id>>,
    externals: Vec<Vec<Id>>,
}

impl Regions {
    pub fn new(flat: &Flat, gating: Gating) -> Regions {
        let mut search = Search {
            flat,
            gating,
            parent: vec![Region::ROOT],
            depth: vec![0],
            owner: Vec::new(),
            first: Vec::new(),
            group: vec![None; flat.nodes.len()],
            groups: Vec::new(),
        };
        if let Gating::From(_) = gating {
            search.share(least_shared(flat));
        }
        let actions = search.assign();
        search.finish(actions)
    }

    /// Where a node is computed; None if nobody needs it.
    pub fn owner(&self, id: Id) -> Option<Region> {
        self.owner[id.index()]
    }

    /// The group that a node is in.
    pub fn group(&self, id: Id) -> Option<usize> {
        self.group[id.index()]
    }

    /// The region of arm `arm` (0 for the first after the selector) of a choice, if its arms are regions.
    pub fn arm(&self, id: Id, arm: usize) -> Option<Region> {
        self.arms[id.index()].map(|first| Region(first.0 + arm as u32))
    }

    /// The region of an action of a list.
    pub fn action(&self, list: usize, action: usize) -> Region {
        self.actions[list][action]
    }

    /// What belongs to a region, operands before users.
    pub fn nodes(&self, region: Region) -> &[Id] {
        &self.nodes[region.index()]
    }

    /// What is used in a region, or in those inside, but belongs to none of them.
    pub fn externals(&self, region: Region) -> &[Id] {
        &self.externals[region.index()]
    }

    /// Whether `region` is `outer` or inside it.
    pub fn is_inside(&self, region: Region, outer: Region) -> bool {
        let mut at = region;
        while at.0 > outer.0 {
            at = self.parent[at.index()];
        }
        at == outer
    }
}

/// Whether operand `k` of a node is used only if it is chosen, and as which arm.
fn arm_of(op: &Op, k: usize) -> Option<usize> {
    (matches!(op, Op::Mux | Op::Case(_)) && k > 0).then(|| k - 1)
}

/// About what a node costs, in operations.
pub fn cost(node: &Node) -> u32 {
    let each = match &node.op {
        Op::Const(_) | Op::Consts(_) | Op::Pack | Op::Unpack => 0,
        Op::Read { .. } | Op::Mul | Op::MulHigh | Op::MulHighSigned => 3,
        Op::Shl | Op::Shr | Op::Sar | Op::LtSigned | Op::SExt => 2,
        Op::Cat | Op::Case(_) | Op::Gather => node.args.len() as u32,
        _ => 1,
    };
    each * node.lanes.div_ceil(STRIP)
}

struct Search<'a> {
    flat: &'a Flat,
    gating: Gating,
    parent: Vec<Region>,
    depth: Vec<u32>,
    owner: Vec<Option<Region>>,
    /// For each node: the region of its first arm.
    first: Vec<Option<Region>>,
    group: Vec<Option<usize>>,
    groups: Vec<Group>,
}

impl Search<'_> {
    fn region(&mut self, parent: Region) -> Region {
        self.parent.push(parent);
        self.depth.push(self.depth[parent.index()] + 1);
        Region(self.parent.len() as u32 - 1)
    }

    /// The innermost region that both are in.
    fn common(&self, mut a: Region, mut b: Region) -> Region {
        while a != b {
            if self.depth[a.index()] < self.depth[b.index()] {
                std::mem::swap(&mut a, &mut b);
            }
            a = self.parent[a.index()];
        }
        a
    }

    /// Finds the groups.
    fn share(&mut self, least: u32) {
        let needed = self.flat.needed();
        for Shared { condition, nodes } in shared(self.flat, &needed, least) {
            let region = self.region(Region::ROOT);
            nodes.iter().for_each(|id| self.group[id.index()] = Some(self.groups.len()));
            self.groups.push(Group { condition, region, results: Vec::new() });
        }
    }

    /// Whether `region` is `outer` or inside it.
    fn is_inside(&self, region: Region, outer: Region) -> bool {
        self.common(region, outer) == outer
    }

    fn used(&mut self, id: Id, region: Region) {
        // What is in a group is computed there, wherever it is used.
        let region = match self.group[id.index()].map(|group| self.groups[group].region) {
            Some(own) if !self.is_inside(region, own) => own,
            _ => region,
        };
        let owner = match self.owner[id.index()] {
            Some(owner) => self.common(owner, region),
            None => region,
        };
        self.owner[id.index()] = Some(owner);
    }

    /// Gives every needed node its region, as if all arms were worth a branch. Returns the regions of the actions.
    fn assign(&mut self) -> Vec<Vec<Region>> {
        let flat = self.flat;
        self.owner = vec![None; flat.nodes.len()];
        self.first = vec![None; flat.nodes.len()];
        let mut actions = Vec::new();
        for list in &flat.actions {
            let mut regions = Vec::new();
            for action in list {
                let gated = action.guard.is_some() && self.gating != Gating::Off;
                let region = if gated { self.region(Region::ROOT) } else { Region::ROOT };
                action.guard.iter().for_each(|&guard| self.used(guard, Region::ROOT));
                action.operands().into_iter().for_each(|id| self.used(id, region));
                regions.push(region);
            }
            actions.push(regions);
        }
        for action in &flat.late {
            action.operands().into_iter().chain(action.guard).for_each(|id| self.used(id, Region::ROOT));
        }
        for group in 0..self.groups.len() {
            self.used(self.groups[group].condition.bit, Region::ROOT);
        }
        for k in (0..flat.nodes.len()).rev() {
            let Some(owner) = self.owner[k] else { continue };
            let node = &flat.nodes[k];
            let mut first = None;
            for (position, &arg) in node.args.iter().enumerate() {
                let region = match arm_of(&node.op, position) {
                    Some(_) if self.gating != Gating::Off => {
                        let region = self.region(owner);
                        first.get_or_insert(region);
                        region
                    }
                    _ => owner,
                };
                self.used(arg, region);
            }
            self.first[k] = first;
        }
        actions
    }

    /// Drops regions that are not worth it, and lists what is in the others.
    fn finish(mut self, actions: Vec<Vec<Region>>) -> Regions {
        let flat = self.flat;
        let mut costs = vec![0; self.parent.len()];
        for (node, owner) in flat.nodes.iter().zip(&self.owner) {
            if let Some(owner) = owner {
                costs[owner.index()] += cost(node);
            }
        }
        for region in (1..costs.len()).rev() {
            costs[self.parent[region].index()] += costs[region];
        }
        // Where each region's nodes go: itself, or the nearest region around it that stays.
        let mut place: Vec<Region> = (0..self.parent.len() as u32).map(Region).collect();
        for k in (0..flat.nodes.len()).rev() {
            let Some(first) = self.first[k] else { continue };
            let regions = first.index()..first.index() + flat.nodes[k].args.len() - 1;
            let least = match self.gating {
                Gating::From(least) => least,
                Gating::Off => u32::MAX,
            };
            let around = place[self.parent[first.index()].index()];
            let worth = costs[regions.clone()].iter().sum::<u32>() >= least;
            for region in regions {
                self.parent[region] = around;
                if !worth {
                    place[region] = around;
                }
            }
            if !worth {
                self.first[k] = None;
            }
        }
        for owner in self.owner.iter_mut().flatten() {
            *owner = place[owner.index()];
        }
        let mut regions = Regions {
            nodes: vec![Vec::new(); self.parent.len()],
            externals: vec![Vec::new(); self.parent.len()],
            owner: self.owner,
            parent: self.parent,
            arms: self.first,
            actions,
            group: self.group,
            groups: self.groups,
        };
        regions.fill(flat);
        regions
    }
}

impl Regions {
    fn fill(&mut self, flat: &Flat) {
        for (k, node) in flat.nodes.iter().enumerate() {
            let Some(owner) = self.owner[k] else { continue };
            if matches!(node.op, Op::Const(_) | Op::Consts(_)) {
                continue;
            }
            self.nodes[owner.index()].push(Id(k as u32));
            for (position, &arg) in node.args.iter().enumerate() {
                let region = arm_of(&node.op, position).and_then(|arm| self.arm(Id(k as u32), arm)).unwrap_or(owner);
                self.uses(flat, region, arg);
            }
        }
        for (list, regions) in flat.actions.iter().zip(self.actions.clone()) {
            for (action, region) in list.iter().zip(regions) {
                action.operands().into_iter().for_each(|id| self.uses(flat, region, id));
            }
        }
        let used_at_root: Vec<Id> = flat
            .actions
            .iter()
            .flatten()
            .filter_map(|action| action.guard)
            .chain(flat.late.iter().flat_map(|action| action.operands().into_iter().chain(action.guard)))
            .chain(self.groups.iter().map(|group| group.condition.bit))
            .collect();
        used_at_root.into_iter().for_each(|id| self.uses(flat, Region::ROOT, id));
        for list in self.externals.iter_mut().chain(self.groups.iter_mut().map(|group| &mut group.results)) {
            list.sort();
            list.dedup();
        }
    }

    /// Enters a node as external to all regions from the one where it is used out to the one that it belongs to.
    fn uses(&mut self, flat: &Flat, region: Region, id: Id) {
        if matches!(flat.node(id).op, Op::Const(_) | Op::Consts(_)) {
            return;
        }
        let mut owner = self.owner[id.index()].expect("what is used has an owner");
        if let Some(group) = self.group[id.index()]
            && !self.is_inside(region, self.groups[group].region)
        {
            self.groups[group].results.push(id);
            owner = Region::ROOT;
        }
        let mut at = region;
        while at != owner {
            self.externals[at.index()].push(id);
            at = self.parent[at.index()];
        }
    }
}
