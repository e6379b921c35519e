//! The second level and its channel: when a request is taken, and when its response is due. What the description has to
//! say stands in `docs/reference/memory.md`.

use heddle_simt::{SecondLevel as Level, Timing};
use heddle_testbench::machine::SecondLevelVisits;

/// A request to a line of memory.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub line: u32,
    pub writes: bool,
    /// It has a response.
    pub answers: bool,
    /// All of the line is stored.
    pub whole: bool,
}

/// Requests are taken in the order in which they are asked for, one a cycle.
pub struct SecondLevel {
    of: Level,
    timing: Timing,
    /// Of each set the lines and whether they were written, the last used first.
    sets: Vec<Vec<(u32, bool)>>,
    /// Lines under way, and the cycle in which each is there.
    under_way: Vec<(u32, u64)>,
    /// When the next request can be taken; when the channel is free.
    port_free: u64,
    channel_free: u64,
    pub visits: SecondLevelVisits,
}

impl SecondLevel {
    pub fn new(of: Level, lanes: u32, timing: Timing) -> SecondLevel {
        let sets = of.cache.size / (of.cache.ways * of.cache.line * 4 * lanes);
        SecondLevel {
            of,
            timing,
            sets: vec![Vec::new(); sets as usize],
            under_way: Vec::new(),
            port_free: 0,
            channel_free: 0,
            visits: SecondLevelVisits::default(),
        }
    }

    /// Cycles for which a line takes the channel.
    fn line_time(&self) -> u64 {
        u64::from(self.of.cache.line * self.timing.interval)
    }

    /// The number of a line of memory's cache line and of its set.
    fn place(&self, line: u32) -> (u32, usize) {
        let line = line / self.of.cache.line;
        (line, line as usize % self.sets.len())
    }

    /// The line that one more in this set would replace, and whether it was written.
    fn oldest(&self, set: usize) -> Option<(u32, bool)> {
        self.sets[set].last().copied().filter(|_| self.sets[set].len() == self.of.cache.ways as usize)
    }

    /// The first cycle from `from` on in which a request is taken, if nobody asks before it.
    pub fn taken_at(&self, from: u64, ask: Ask) -> u64 {
        let from = from.max(self.port_free);
        let (line, set) = self.place(ask.line);
        if self.sets[set].iter().any(|(other, _)| *other == line) {
            return from;
        }
        let misses = self.of.cache.misses;
        let oldest = self.oldest(set);
        let there = self.under_way.iter().find(|(line, _)| oldest.is_some_and(|(oldest, _)| oldest == *line));
        let of_way = there.map_or(0, |(_, there)| *there);
        let of_room = if self.brings_nothing(ask) {
            let most = u64::from(misses) * self.line_time();
            oldest.filter(|(_, written)| *written).map_or(0, |_| (self.channel_free + 1).saturating_sub(most))
        } else {
            let mut there: Vec<u64> = self.under_way.iter().map(|(_, there)| *there).collect();
            there.sort_unstable_by(|a, b| b.cmp(a));
            there.get(misses as usize - 1).map_or(0, |there| there + 1)
        };
        from.max(of_way).max(of_room)
    }

    fn brings_nothing(&self, ask: Ask) -> bool {
        ask.whole && self.of.cache.line == 1
    }

    /// The cycle in which it is taken, and the one in which its response is due.
    pub fn takes(&mut self, from: u64, ask: Ask) -> (u64, u64) {
        let taken = self.taken_at(from, ask);
        self.port_free = taken + 1;
        self.under_way.retain(|(_, there)| *there >= taken);
        let (line, number) = self.place(ask.line);
        let (oldest, line_time) = (self.oldest(number), self.line_time());
        let hit = taken + u64::from(self.of.latency);
        let found = &mut self.visits.found;
        let set = &mut self.sets[number];
        if let Some(place) = set.iter().position(|(other, _)| *other == line) {
            let (_, written) = set.remove(place);
            set.insert(0, (line, written || ask.writes));
            let comes = self.under_way.iter().find(|(other, there)| *other == line && *there > taken);
            match comes {
                _ if !ask.answers => found.silent_hits += 1,
                Some(_) => found.joined += 1,
                None => found.hits += 1,
            }
            return (taken, comes.map_or(hit, |(_, there)| hit.max(*there)));
        }
        *if ask.answers { &mut found.misses } else { &mut found.silent_misses } += 1;
        set.truncate(self.of.cache.ways as usize - 1);
        set.insert(0, (line, ask.writes));
        let wait = self.channel_free.saturating_sub(taken);
        let write_back = u64::from(oldest.is_some_and(|(_, written)| written));
        let fetch = u64::from(!self.brings_nothing(ask));
        let asked = line_time * (fetch + write_back);
        self.channel_free = taken + wait + asked;
        self.visits.write_backs += write_back;
        self.visits.channel += asked;
        let last = u64::from((self.of.cache.line - 1) * self.timing.interval);
        let there = hit + wait + last + u64::from(self.timing.latency);
        if fetch == 1 {
            self.under_way.push((line, there));
        }
        (taken, there)
    }
}
