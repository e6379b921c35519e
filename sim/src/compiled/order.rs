//! The order of actions.
//!
//! An action that changes something should come after those that still read its old value; where it cannot, the old
//! value is loaded before and kept. In a pipeline this puts late stages first.

use crate::flat::{Effect, Flat, Id, Op};
use std::collections::HashMap;

/// What can be loaded and changed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Object {
    Cell(u32),
    Memory(u32),
}

/// The object that a node loads from.
pub fn loaded(op: &Op) -> Option<Object> {
    match *op {
        Op::Cell { cell, .. } => Some(Object::Cell(cell)),
        Op::Read { memory, .. } => Some(Object::Memory(memory)),
        _ => None,
    }
}

/// The object that an effect changes.
pub fn changed(effect: &Effect) -> Object {
    match *effect {
        Effect::Store { cell, .. }
        | Effect::ReadNew { cell, .. }
        | Effect::Count { cell, .. }
        | Effect::Check { cell, .. } => Object::Cell(cell),
        Effect::Write { memory, .. } => Object::Memory(memory),
    }
}

/// The lists of [`Flat::actions`], readers before writers as far as there is no cycle. `needed` says which nodes are
/// computed at all.
pub fn order(flat: &Flat, needed: impl Fn(Id) -> bool) -> Vec<usize> {
    let mut users: Vec<Vec<Id>> = vec![Vec::new(); flat.nodes.len()];
    let mut loads: HashMap<Object, Vec<Id>> = HashMap::new();
    for (k, node) in flat.nodes.iter().enumerate() {
        let id = Id(k as u32);
        if needed(id) {
            node.args.iter().for_each(|a| users[a.index()].push(id));
            if let Some(object) = loaded(&node.op) {
                loads.entry(object).or_default().push(id);
            }
        }
    }
    let mut lists_of: HashMap<Id, Vec<usize>> = HashMap::new();
    for (list, actions) in flat.actions.iter().enumerate() {
        for action in actions {
            for id in action.operands().into_iter().chain(action.guard) {
                lists_of.entry(id).or_default().push(list);
            }
        }
    }

    /// A step of the depth-first search: first whatever depends on it, then itself.
    enum Step {
        List(usize),
        Node(Id),
        Done(usize),
    }
    let mut list_seen = vec![false; flat.actions.len()];
    let mut node_seen = vec![false; flat.nodes.len()];
    let mut ordered = Vec::new();
    for start in 0..flat.actions.len() {
        let mut stack = vec![Step::List(start)];
        while let Some(step) = stack.pop() {
            match step {
                Step::Done(list) => ordered.push(list),
                Step::List(list) => {
                    if !std::mem::replace(&mut list_seen[list], true) {
                        stack.push(Step::Done(list));
                        let effects = flat.actions[list].iter().flat_map(|action| &action.effects);
                        let objects = effects.map(changed);
                        stack.extend(
                            objects.flat_map(|o| loads.get(&o).into_iter().flatten()).map(|&id| Step::Node(id)),
                        );
                    }
                }
                Step::Node(id) => {
                    if !std::mem::replace(&mut node_seen[id.index()], true) {
                        stack.extend(lists_of.get(&id).into_iter().flatten().map(|&list| Step::List(list)));
                        stack.extend(users[id.index()].iter().map(|&user| Step::Node(user)));
                    }
                }
            }
        }
    }
    ordered
}
