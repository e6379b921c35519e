//! Which scopes are lanes: the copies of a replicated instance, and what is in them.

use crate::directory::Directory;

/// The most lanes that a node has; an instance with more copies is not made as one.
pub const MOST: u32 = 64;

/// A scope that is a lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lane {
    /// The replicated instance, by a number of its own.
    pub group: usize,
    /// The scope that is the same in copy 0.
    pub first: usize,
    /// Which copy.
    pub number: u32,
    /// How many there are.
    pub lanes: u32,
}

/// For each scope: whether it is a lane. In a replicated instance within another one, the outer one's copies are the
/// lanes.
#[derive(Clone)]
pub struct Lanes {
    scopes: Vec<Option<Lane>>,
    pub groups: usize,
}

impl Lanes {
    /// No lanes at all, unless `vectors`.
    pub fn new(directory: &Directory, vectors: bool) -> Lanes {
        let mut lanes = Lanes { scopes: vec![None; directory.scopes.len()], groups: 0 };
        if vectors {
            lanes.search(directory, 0);
        }
        lanes
    }

    pub fn of(&self, scope: usize) -> Option<Lane> {
        self.scopes[scope]
    }

    /// Looks for replicated instances in a scope that is no lane.
    fn search(&mut self, directory: &Directory, scope: usize) {
        for copies in &directory.scopes[scope].children {
            let lanes = copies.len() as u32;
            if (2..=MOST).contains(&lanes) {
                for (number, &copy) in (0..).zip(copies) {
                    self.enter(directory, copy, Lane { group: self.groups, first: copies[0], number, lanes });
                }
                self.groups += 1;
            } else {
                copies.iter().for_each(|&copy| self.search(directory, copy));
            }
        }
    }

    fn enter(&mut self, directory: &Directory, scope: usize, lane: Lane) {
        self.scopes[scope] = Some(lane);
        let (here, first) = (&directory.scopes[scope].children, &directory.scopes[lane.first].children);
        for (&child, &first) in here.iter().flatten().zip(first.iter().flatten()) {
            self.enter(directory, child, Lane { first, ..lane });
        }
    }
}
