//! Equations 1 and 2 of the paper (§4.2.1), an instruction a block.
//!
//! A barrier is *joined* where a thread may have come from a join and through no wait since; it is *live* where a
//! thread may come to a wait, and to no join before.

use super::body::Body;

/// What happens to a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Join,
    Wait,
    /// A call that may wait, or not.
    MayWait,
}

/// What happens to it in a function.
pub struct Events {
    /// Before each instruction, in order.
    pub before: Vec<Vec<Event>>,
    /// In the function that each instruction calls.
    pub called: Vec<Vec<Event>>,
}

/// Of each instruction: on the way to it, when it is executed, behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct States {
    pub into: Vec<bool>,
    pub at: Vec<bool>,
    pub out: Vec<bool>,
}

impl Events {
    pub fn none(body: &Body) -> Events {
        let none = vec![vec![]; body.pcs.len()];
        Events { before: none.clone(), called: none }
    }

    /// Equation 1.
    pub fn joined(&self, body: &Body) -> States {
        let after = |events: &[Event], state: bool| {
            events.iter().fold(state, |state, event| match event {
                Event::Join => true,
                Event::Wait => false,
                Event::MayWait => state,
            })
        };
        let count = body.pcs.len();
        let mut states = States { into: vec![false; count], at: vec![false; count], out: vec![false; count] };
        let mut left: Vec<usize> = (0..count).rev().collect();
        while let Some(node) = left.pop() {
            let into = body.graph.previous[node].iter().any(|&p| states.out[p]);
            let at = after(&self.before[node], into);
            let out = after(&self.called[node], at);
            (states.into[node], states.at[node]) = (into, at);
            if out != states.out[node] {
                states.out[node] = out;
                left.extend(&body.graph.next[node]);
            }
        }
        states
    }

    /// Equation 2.
    pub fn live(&self, body: &Body) -> States {
        let before = |events: &[Event], state: bool| events.first().map_or(state, |&first| first != Event::Join);
        let count = body.pcs.len();
        let mut states = States { into: vec![false; count], at: vec![false; count], out: vec![false; count] };
        let mut left: Vec<usize> = (0..count).collect();
        while let Some(node) = left.pop() {
            let out = body.graph.next[node].iter().any(|&n| states.into[n]);
            let at = before(&self.called[node], out);
            let into = before(&self.before[node], at);
            (states.at[node], states.out[node]) = (at, out);
            if into != states.into[node] {
                states.into[node] = into;
                left.extend(&body.graph.previous[node]);
            }
        }
        states
    }
}
