//! Which worker measures what.

use super::cores::Key;

/// Measurements that nobody has taken yet.
pub struct Queue<'a> {
    left: Vec<&'a Key>,
    /// The core whose netlist each worker has at hand, by worker: board and options.
    at_hand: Vec<Option<(&'a str, &'a str)>>,
}

impl<'a> Queue<'a> {
    pub fn new(wanted: &'a [Key]) -> Queue<'a> {
        Queue { left: wanted.iter().collect(), at_hand: Vec::new() }
    }

    /// The first that is left, but of a core that another worker has at hand only if nothing else is left: its netlist
    /// would be made twice.
    pub fn next(&mut self, worker: usize) -> Option<&'a Key> {
        if self.at_hand.len() <= worker {
            self.at_hand.resize(worker + 1, None);
        }
        let by_others = |key: &Key| {
            let others = self.at_hand.iter().enumerate().filter(|(other, _)| *other != worker);
            others.flat_map(|(_, core)| core).any(|core| *core == of(key))
        };
        let free = self.left.iter().position(|key| !by_others(key));
        let key = (!self.left.is_empty()).then(|| self.left.remove(free.unwrap_or(0)));
        self.at_hand[worker] = key.map(of);
        key
    }
}

fn of(key: &Key) -> (&str, &str) {
    (&key.board, &key.core)
}

#[cfg(test)]
mod tests {
    use super::super::cores::Of;
    use super::*;

    #[test]
    fn a_netlist_is_made_once_as_long_as_there_is_something_else() {
        let seeds = [1, 2, 3].map(Of::Seed);
        let key = |core: &str, of| Key { board: "ulx3s-85f".into(), core: core.into(), of };
        let wanted: Vec<Key> = ["a", "b"].iter().flat_map(|core| seeds.map(|of| key(core, of))).collect();
        let mut queue = Queue::new(&wanted);
        let mut next = |worker| queue.next(worker).map(|key| (key.core.as_str(), key.of));
        let taken = [0, 1, 0, 0, 0, 1, 1, 0].map(|worker| next(worker).map(|(core, of)| (worker, core, of)));
        let wanted = [(0, "a", 1), (1, "b", 1), (0, "a", 2), (0, "a", 3), (0, "b", 2), (1, "b", 3)];
        let wanted = wanted.map(|(worker, core, seed)| Some((worker, core, Of::Seed(seed))));
        assert_eq!((&taken[..6], &taken[6..]), (&wanted[..], &[None, None][..]));
    }
}
