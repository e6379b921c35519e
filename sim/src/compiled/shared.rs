//! Shared conditions: computations that many need, but all of them only while a certain bit is on, or off.
//!
//! The cone behind a unit's valid bit is the typical case: registers, memories and other units take its results, each
//! under a condition of its own which implies that bit. Such nodes are computed together behind one branch on the bit.

use super::regions::cost;
use crate::flat::{Flat, Id, Op};
use std::collections::{BinaryHeap, HashMap};

/// A bit of one lane, and the value that makes the condition hold.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Literal {
    pub bit: Id,
    pub on: bool,
}

/// Nodes that are needed only if the condition holds. Nothing outside that they need depends on one of them.
pub struct Shared {
    pub condition: Literal,
    pub nodes: Vec<Id>,
}

/// The groups of nodes whose cost is at least `least`, the costliest first; a node is in one of them at most. `needed`
/// says which nodes are computed at all.
pub fn shared(flat: &Flat, needed: &[bool], least: u32) -> Vec<Shared> {
    let mut search = Search::new(flat, needed);
    let mut found = Vec::new();
    // Groups only get smaller as nodes go to others: what was found for a literal before is the most that it can be
    // now.
    let mut promises: BinaryHeap<(u32, Literal)> = search.behind.keys().map(|&literal| (u32::MAX, literal)).collect();
    while let Some((_, condition)) = promises.pop() {
        // A condition must always be computed.
        if search.group[condition.bit.index()].is_some() {
            continue;
        }
        let most = search.most_under(condition);
        let [few, all] = [false, true].map(|vectors| search.nodes_under(condition, &most, vectors, least));
        let [gain_of_few, gain_of_all] = [&few, &all].map(|nodes| search.gain(nodes));
        let (nodes, gain) = if gain_of_all > gain_of_few { (all, gain_of_all) } else { (few, gain_of_few) };
        if gain < least {
            continue;
        }
        if promises.peek().is_some_and(|(promise, _)| *promise > gain) {
            promises.push((gain, condition));
            continue;
        }
        let group = Shared { condition, nodes };
        search.take(&group);
        found.push(group);
    }
    found
}

/// Where a node is used.
#[derive(Clone, Copy)]
enum Use {
    Operand(Id, usize),
    /// By an effect of an action with this guard.
    Effect(Option<Id>),
    Guard,
}

struct Search<'a> {
    flat: &'a Flat,
    needed: &'a [bool],
    uses: Vec<Vec<Use>>,
    /// What is known if a bit is on, and if it is off.
    known: [Vec<Vec<Literal>>; 2],
    /// The literals that most uses depend on, each with the nodes that have such a use, in order.
    behind: HashMap<Literal, Vec<Id>>,
    /// The group that each node is in.
    group: Vec<Option<usize>>,
    /// What each group needs from outside: also its condition's bit.
    needs: Vec<Vec<Id>>,
    members: Vec<Vec<Id>>,
    /// Nodes so that operands come first, also if each group is computed in one go.
    order: Vec<Id>,
}

impl<'a> Search<'a> {
    fn new(flat: &'a Flat, needed: &'a [bool]) -> Search<'a> {
        let count = flat.nodes.len();
        let mut uses = vec![Vec::new(); count];
        for (k, node) in flat.nodes.iter().enumerate().filter(|(k, _)| needed[*k]) {
            for (position, arg) in node.args.iter().enumerate() {
                uses[arg.index()].push(Use::Operand(Id(k as u32), position));
            }
        }
        for action in flat.actions.iter().flatten().chain(&flat.late) {
            action.operands().iter().for_each(|id| uses[id.index()].push(Use::Effect(action.guard)));
            action.guard.iter().for_each(|id| uses[id.index()].push(Use::Guard));
        }
        let order = (0..count as u32).map(Id).filter(|id| needed[id.index()]).collect();
        let mut search = Search {
            flat,
            needed,
            uses,
            known: [Vec::new(), Vec::new()],
            behind: HashMap::new(),
            group: vec![None; count],
            needs: Vec::new(),
            members: Vec::new(),
            order,
        };
        search.learn();
        search.find_candidates();
        search
    }

    fn is_bit(&self, id: Id) -> bool {
        let node = self.flat.node(id);
        node.width == 1 && node.lanes == 1
    }

    /// Fills in what is known.
    fn learn(&mut self) {
        const MOST: usize = 24;
        let count = self.flat.nodes.len();
        let mut known: [Vec<Vec<Literal>>; 2] = [vec![Vec::new(); count], vec![Vec::new(); count]];
        for id in (0..count as u32).map(Id).filter(|id| self.needed[id.index()] && self.is_bit(*id)) {
            let node = self.flat.node(id);
            let of = |k: usize, on: bool| -> &[Literal] { &known[usize::from(!on)][node.args[k].index()] };
            let (on, off) = match node.op {
                Op::And => ([of(0, true), of(1, true)].concat(), Vec::new()),
                Op::AndNot => ([of(0, true), of(1, false)].concat(), Vec::new()),
                Op::Or => (Vec::new(), [of(0, false), of(1, false)].concat()),
                Op::Not => (of(0, false).to_vec(), of(0, true).to_vec()),
                _ => (Vec::new(), Vec::new()),
            };
            for (side, mut more) in [(true, on), (false, off)] {
                more.push(Literal { bit: id, on: side });
                more.sort();
                more.dedup();
                more.truncate(MOST);
                known[usize::from(!side)][id.index()] = more;
            }
        }
        // If a bit is on, so is every or of it.
        let ors: Vec<Vec<Id>> = (0..count)
            .map(|k| {
                let is_or = |user: &Use| match *user {
                    Use::Operand(user, _) if self.flat.node(user).op == Op::Or && self.is_bit(user) => Some(user),
                    _ => None,
                };
                self.uses[k].iter().filter_map(is_or).collect()
            })
            .collect();
        for list in &mut known[0] {
            let mut k = 0;
            while k < list.len() && list.len() < MOST {
                let literal = list[k];
                if literal.on {
                    for &or in &ors[literal.bit.index()] {
                        let wider = Literal { bit: or, on: true };
                        if !list.contains(&wider) {
                            list.push(wider);
                        }
                    }
                }
                k += 1;
            }
        }
        self.known = known;
    }

    fn known(&self, bit: Id, on: bool) -> &[Literal] {
        &self.known[usize::from(!on)][bit.index()]
    }

    /// What holds wherever a use matters.
    fn conditions(&self, place: Use) -> &[Literal] {
        let none: &[Literal] = &[];
        match place {
            Use::Guard | Use::Effect(None) => none,
            Use::Effect(Some(guard)) => self.known(guard, true),
            Use::Operand(user, position) => {
                let node = self.flat.node(user);
                match (&node.op, position) {
                    (Op::Mux, 1) => self.known(node.args[0], true),
                    (Op::Mux, 2) => self.known(node.args[0], false),
                    (Op::And, _) if self.is_bit(user) => self.known(node.args[1 - position], true),
                    (Op::AndNot, 1) if self.is_bit(user) => self.known(node.args[0], true),
                    (Op::AndNot, 0) if self.is_bit(user) => self.known(node.args[1], false),
                    // Only one way: what is not computed is 0, and an or of two such would be off. An and is off in any
                    // case.
                    (Op::Or, 1) if self.is_bit(user) => self.known(node.args[0], false),
                    _ => none,
                }
            }
        }
    }

    /// Fills in the nodes behind the literals that most uses depend on.
    fn find_candidates(&mut self) {
        let mut behind: HashMap<Literal, (u32, Vec<Id>)> = HashMap::new();
        for id in (0..self.uses.len() as u32).map(Id).filter(|id| self.needed[id.index()]) {
            for &literal in self.uses[id.index()].iter().flat_map(|&place| self.conditions(place)) {
                let (count, nodes) = behind.entry(literal).or_default();
                *count += 1;
                if nodes.last() != Some(&id) {
                    nodes.push(id);
                }
            }
        }
        const MOST: usize = 200;
        let mut all: Vec<(u32, Literal, Vec<Id>)> =
            behind.into_iter().map(|(literal, (count, nodes))| (count, literal, nodes)).collect();
        all.sort_by_key(|&(count, literal, _)| (std::cmp::Reverse(count), literal));
        self.behind = all.into_iter().take(MOST).map(|(_, literal, nodes)| (literal, nodes)).collect();
    }

    /// The nodes in no group that are needed only if the literal holds, without regard to what its own bit needs: all that
    /// [`Search::nodes_under`] can have, in order.
    fn most_under(&self, literal: Literal) -> Vec<Id> {
        let mut asked = vec![false; self.flat.nodes.len()];
        let mut under = vec![false; self.flat.nodes.len()];
        let mut heap: BinaryHeap<Id> = BinaryHeap::new();
        let mut found = Vec::new();
        let mut ask = |id: Id, heap: &mut BinaryHeap<Id>| {
            if !std::mem::replace(&mut asked[id.index()], true) {
                heap.push(id);
            }
        };
        self.behind.get(&literal).into_iter().flatten().for_each(|&id| ask(id, &mut heap));
        // Users come after what they use, so the last first.
        while let Some(id) = heap.pop() {
            let node = self.flat.node(id);
            if self.group[id.index()].is_none() && !node.op.is_at_hand() && self.only_under(id, literal, &under) {
                under[id.index()] = true;
                found.push(id);
                node.args.iter().filter(|arg| self.needed[arg.index()]).for_each(|&arg| ask(arg, &mut heap));
            }
        }
        found.reverse();
        found
    }

    /// Whether every use of a node is by such as are `under` the literal, or matters only if it holds.
    fn only_under(&self, id: Id, literal: Literal, under: &[bool]) -> bool {
        self.uses[id.index()].iter().all(|&place| {
            let by_member = matches!(place, Use::Operand(user, _) if under[user.index()]);
            by_member || self.conditions(place).contains(&literal)
        })
    }

    /// The nodes in no group that are needed only if the literal holds, of the `most` that there can be; vectors that others
    /// use only with `vectors`. None of them if all cost less than `least`.
    fn nodes_under(&self, literal: Literal, most: &[Id], vectors: bool, least: u32) -> Vec<Id> {
        const ROUNDS: u32 = 8;
        let cost_of = |nodes: &[Id]| nodes.iter().map(|id| cost(self.flat.node(*id))).sum::<u32>();
        if cost_of(most) < least {
            return Vec::new();
        }
        let count = self.flat.nodes.len();
        let mut barred = vec![false; count];
        self.bar_behind(literal.bit, &mut barred);
        for _ in 0..ROUNDS {
            let mut under = vec![false; count];
            for &id in most.iter().rev().filter(|id| !barred[id.index()]) {
                under[id.index()] = self.only_under(id, literal, &under);
            }
            let nodes: Vec<Id> = most.iter().copied().filter(|id| under[id.index()]).collect();
            if cost_of(&nodes) < least {
                break;
            }
            let after = self.depends_on(&under);
            let mut clean = true;
            for &id in &nodes {
                let is_result = |place: &Use| !matches!(*place, Use::Operand(user, _) if under[user.index()]);
                let node = self.flat.node(id);
                let vector_for_others =
                    !vectors && node.lanes > 1 && node.width > 1 && self.uses[id.index()].iter().any(is_result);
                if vector_for_others || node.args.iter().any(|a| after[a.index()]) {
                    barred[id.index()] = true;
                    clean = false;
                }
            }
            if clean {
                return nodes;
            }
        }
        Vec::new()
    }

    /// Bars a node and all that it needs.
    fn bar_behind(&self, id: Id, barred: &mut [bool]) {
        let mut seen = vec![false; barred.len()];
        let mut stack = vec![id];
        while let Some(id) = stack.pop() {
            if !std::mem::replace(&mut seen[id.index()], true) {
                barred[id.index()] = true;
                match self.group[id.index()] {
                    Some(group) => stack.extend(&self.needs[group]),
                    None => stack.extend(&self.flat.node(id).args),
                }
            }
        }
    }

    /// Which nodes that are not `under` depend on such.
    fn depends_on(&self, under: &[bool]) -> Vec<bool> {
        let mut after = vec![false; under.len()];
        let mut groups: HashMap<usize, bool> = HashMap::new();
        let from = |after: &[bool], id: &Id| under[id.index()] || after[id.index()];
        for &id in &self.order {
            after[id.index()] = match self.group[id.index()] {
                _ if under[id.index()] => false,
                None => self.flat.node(id).args.iter().any(|a| from(&after, a)),
                // The first of a group comes after everything that the group needs.
                Some(group) => {
                    *groups.entry(group).or_insert_with(|| self.needs[group].iter().any(|a| from(&after, a)))
                }
            };
        }
        after
    }

    /// What computing nodes together saves when they are not needed. A result is moved about whether it is needed or
    /// not.
    fn gain(&self, nodes: &[Id]) -> u32 {
        const COST_OF_RESULT: u32 = 3;
        const COST_OF_VECTOR: u32 = 8;
        let mut inside = vec![false; self.flat.nodes.len()];
        nodes.iter().for_each(|id| inside[id.index()] = true);
        let is_outside = |place: &Use| !matches!(place, Use::Operand(user, _) if inside[user.index()]);
        let results: u32 = nodes
            .iter()
            .filter(|id| self.uses[id.index()].iter().any(is_outside))
            .map(|id| match self.flat.node(*id).lanes {
                1 => COST_OF_RESULT,
                lanes => COST_OF_VECTOR * lanes.div_ceil(super::layout::STRIP),
            })
            .sum();
        nodes.iter().map(|id| cost(self.flat.node(*id))).sum::<u32>().saturating_sub(results)
    }

    fn take(&mut self, group: &Shared) {
        let number = self.needs.len();
        group.nodes.iter().for_each(|id| self.group[id.index()] = Some(number));
        let args = group.nodes.iter().flat_map(|id| self.flat.node(*id).args.iter().copied());
        let mut needs: Vec<Id> = args.filter(|a| self.group[a.index()] != Some(number)).collect();
        needs.push(group.condition.bit);
        self.uses[group.condition.bit.index()].push(Use::Guard);
        self.needs.push(needs);
        self.members.push(group.nodes.clone());
        self.sort();
    }

    /// Brings the nodes into an order in which each group can be computed in one go.
    fn sort(&mut self) {
        let mut seen = vec![false; self.flat.nodes.len()];
        let mut order = Vec::new();
        for start in (0..self.flat.nodes.len() as u32).map(Id).filter(|id| self.needed[id.index()]) {
            let mut stack = vec![(start, false)];
            while let Some((id, ready)) = stack.pop() {
                let group = self.group[id.index()];
                let (members, needs) = match group {
                    Some(group) => (&self.members[group][..], &self.needs[group]),
                    None => (std::slice::from_ref(&id), &self.flat.node(id).args),
                };
                if ready {
                    order.extend(members);
                } else if !seen[members[0].index()] {
                    members.iter().for_each(|m| seen[m.index()] = true);
                    stack.push((id, true));
                    stack.extend(needs.iter().map(|&need| (need, false)));
                }
            }
        }
        self.order = order;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flat::{Action, Effect, Node};

    /// A flat netlist being made by hand: nodes of one lane.
    #[derive(Default)]
    struct Hand(Flat);

    impl Hand {
        fn node(&mut self, op: Op, width: u32, args: &[Id]) -> Id {
            self.0.nodes.push(Node { op, width, lanes: 1, args: args.to_vec() });
            Id(self.0.nodes.len() as u32 - 1)
        }

        fn cell(&mut self, cell: u32, width: u32) -> Id {
            self.node(Op::Cell { cell, lane: 0, low: 0 }, width, &[])
        }

        fn store(&mut self, guard: Id, cell: u32, value: Id) {
            let effects = vec![Effect::Store { cell, lane: None, low: 0, value }];
            self.0.actions.push(vec![Action { guard: Some(guard), effects }]);
        }

        fn shared(&self) -> Vec<Shared> {
            shared(&self.0, &vec![true; self.0.nodes.len()], 1)
        }
    }

    /// Two registers take parts of one computation, each under a condition of its own that implies `valid`.
    #[test]
    fn what_two_conditions_imply_is_found() {
        let mut hand = Hand::default();
        let [valid, first, second] = [0, 1, 2].map(|cell| hand.cell(cell, 1));
        let a = hand.cell(3, 32);
        let mut value = a;
        for _ in 0..20 {
            value = hand.node(Op::Mul, 32, &[value, a]);
        }
        for (k, bit) in [first, second].into_iter().enumerate() {
            let guard = hand.node(Op::And, 1, &[valid, bit]);
            hand.store(guard, 4 + k as u32, value);
        }
        let groups = hand.shared();
        assert_eq!(groups.len(), 1);
        assert_eq!(groups[0].condition, Literal { bit: valid, on: true });
        assert_eq!(groups[0].nodes.len(), 20);
    }

    /// What the condition itself needs, and what somebody always needs, stays outside.
    #[test]
    fn what_is_always_needed_is_not() {
        let mut hand = Hand::default();
        let a = hand.cell(0, 32);
        let mut value = a;
        for _ in 0..20 {
            value = hand.node(Op::Mul, 32, &[value, a]);
        }
        let valid = hand.node(Op::Slice(0), 1, &[value]);
        hand.store(valid, 1, value);
        assert!(hand.shared().is_empty(), "the condition depends on it");

        let bit = hand.cell(2, 1);
        let other = hand.node(Op::Add, 32, &[a, a]);
        hand.store(bit, 3, other);
        let effects = vec![Effect::Store { cell: 4, lane: None, low: 0, value: other }];
        hand.0.actions.push(vec![Action { guard: None, effects }]);
        assert!(hand.shared().iter().all(|group| !group.nodes.contains(&other)), "it is stored always");
    }

    /// A result goes through logic outside and comes back in: the part behind that is not in the group.
    #[test]
    fn nothing_that_is_needed_from_outside_depends_on_a_member() {
        let mut hand = Hand::default();
        let bit = hand.cell(0, 1);
        let a = hand.cell(1, 1);
        let member = hand.node(Op::Xor, 1, &[a, bit]);
        let outside = hand.node(Op::And, 1, &[bit, member]);
        hand.store(outside, 2, a);
        let behind = hand.node(Op::ZExt, 32, &[outside]);
        let mut value = behind;
        for _ in 0..20 {
            value = hand.node(Op::Mul, 32, &[value, behind]);
        }
        hand.store(bit, 3, value);
        for group in hand.shared() {
            let members = &group.nodes;
            assert!(!(members.contains(&member) && members.contains(&value)), "{members:?}");
        }
    }
}
