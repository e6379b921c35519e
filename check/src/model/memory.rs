//! Accesses of the model: the load-store unit, which serves one group of lanes a cycle, the data cache, memory behind
//! it, and the scratchpad. What the description of each has to say stands in `docs/reference/memory.md`; data are not
//! here, only time.

use super::cycles;
use heddle_simt::memory::cache::{OUTBOX, WAITING};
use heddle_simt::pipeline::timing::{ACCESS_TO_ANSWER, GIVE_TO_ROOM, REQUEST_TO_TAGS, TAGS_TO_ANSWER, TAGS_TO_MEMORY};
use heddle_simt::{Backing, Cache, Shape, Timing};
use heddle_testbench::iss::Place;
use heddle_testbench::machine::CacheVisits;
use std::collections::VecDeque;

/// What follows from the order of a cycle's steps here.
const _: () = assert!(REQUEST_TO_TAGS == 1, "the model's cache looks at a request in the next cycle");
const _: () = assert!(GIVE_TO_ROOM == 2, "the model's load queue remembers what was given back for one cycle");

/// Sets of the cache that are emptied before the model's first cycle.
const SWEPT: u64 = 1;

/// What an instruction does to memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Load,
    Store,
    Atomic,
}

/// An instruction's access, all its lanes.
pub struct Access {
    /// The cycle from which it can be served.
    pub from: u64,
    pub kind: Kind,
    /// The load that waits for answers, if one does.
    pub load: Option<usize>,
    /// Of the lanes that are not served yet, the lowest first.
    pub places: Vec<Place>,
}

/// Lanes of an access that go together.
#[derive(Clone, Copy, Debug)]
struct Group {
    kind: Kind,
    load: Option<usize>,
    /// In main memory; nothing is the scratchpad.
    line: Option<u32>,
}

/// An answer to a load.
#[derive(Clone, Copy)]
struct Answer {
    at: u64,
    load: usize,
}

/// How an answer was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Taken {
    /// Of the scratchpad's, while one of main memory's was there.
    BeforeMain,
    Alone,
}

struct Miss {
    /// The lowest that is free; the lowest goes first.
    number: usize,
    line: u32,
    set: usize,
    way: usize,
    filled: u64,
    waiting: VecDeque<Group>,
}

struct Tags {
    of: Cache,
    /// Cache lines by set and way, and the way that is replaced next.
    sets: Vec<(Vec<Option<u32>>, usize)>,
    misses: Vec<Miss>,
    visits: CacheVisits,
}

/// All of it. [`Memory::cycle`] ends a cycle; an answer is taken before it.
pub struct Memory {
    lanes: u32,
    loads: usize,
    timing: Timing,
    cache: Option<Tags>,
    queue: VecDeque<Access>,
    /// The group chosen, until memory takes it; the one that the cache looks at.
    chosen: Option<Group>,
    first: Option<Group>,
    /// When memory takes the next request.
    memory_free: u64,
    /// Answers of main memory, in the order in which they come; that of the scratchpad, which then goes after the next
    /// of main memory's.
    answers: VecDeque<Answer>,
    scratchpad: Option<Answer>,
    main_next: bool,
    /// Groups that wait for an answer, and the answer that was taken in this cycle.
    under_way: usize,
    taken: Option<Taken>,
    /// Entries of the load queue that were given back in the cycle before: nobody may take them yet.
    given: usize,
    /// Accesses and those that left lanes behind.
    pub accesses: u64,
    pub parts: u64,
}

impl Memory {
    pub fn new(shape: &Shape) -> Memory {
        let timing = match shape.backing {
            Backing::Model(timing) => timing,
            _ => Timing::FASTEST,
        };
        let tags = |of: Cache| {
            let sets = of.size / (of.ways * of.line * 4 * shape.lanes);
            let set = (vec![None; of.ways as usize], 0);
            Tags { of, sets: vec![set; sets as usize], misses: Vec::new(), visits: CacheVisits::default() }
        };
        Memory {
            lanes: shape.lanes,
            loads: shape.loads as usize,
            timing,
            cache: shape.cache.map(tags),
            queue: VecDeque::new(),
            chosen: None,
            first: None,
            memory_free: 0,
            answers: VecDeque::new(),
            scratchpad: None,
            main_next: false,
            under_way: 0,
            taken: None,
            given: 0,
            accesses: 0,
            parts: 0,
        }
    }

    /// What requests found in the cache.
    pub fn visits(&self) -> Option<CacheVisits> {
        self.cache.as_ref().map(|tags| tags.visits)
    }

    pub fn issue(&mut self, access: Access) {
        self.queue.push_back(access);
    }

    /// Accesses that have a place in the load-store unit's queue.
    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    /// Whether more of a load is to be served or answered.
    pub fn more(&self, load: usize) -> bool {
        let is_it = |group: &Group| group.load == Some(load);
        let misses = self.cache.iter().flat_map(|tags| &tags.misses).flat_map(|miss| &miss.waiting);
        self.queue.iter().any(|access| access.load == Some(load))
            || self.chosen.iter().chain(&self.first).chain(misses).any(is_it)
            || self.answers.iter().chain(&self.scratchpad).any(|answer| answer.load == load)
    }

    /// The load that an answer is there for.
    pub fn answer(&self, now: u64) -> Option<usize> {
        let main = self.answers.front().filter(|answer| answer.at <= now);
        let scratchpad = self.scratchpad.filter(|_| !(self.main_next && main.is_some()));
        scratchpad.or(main.copied()).map(|answer| answer.load)
    }

    /// It is taken.
    pub fn take(&mut self, now: u64) {
        let main = self.answers.front().is_some_and(|answer| answer.at <= now);
        let from_scratchpad = self.scratchpad.is_some() && !(self.main_next && main);
        self.taken = Some(if from_scratchpad && main { Taken::BeforeMain } else { Taken::Alone });
        if from_scratchpad {
            self.scratchpad = None;
        } else {
            self.answers.pop_front();
        }
    }

    /// Whether a load waits for memory.
    pub fn loads_wait(&self) -> bool {
        self.under_way > 0
    }

    pub fn cycle(&mut self, now: u64) {
        if self.cache.is_some() {
            self.cache_cycle(now);
            if self.first.is_none() {
                self.first = self.chosen.take_if(|group| group.line.is_some());
            }
        } else if self.takes(now)
            && let Some(group) = self.chosen.take_if(|group| group.line.is_some())
        {
            let taken = self.memory_takes(now, 1);
            self.respond(group, taken + u64::from(self.timing.latency));
        }
        // The scratchpad takes nothing while its answer waits.
        if self.scratchpad.is_none()
            && let Some(group) = self.chosen.take_if(|group| group.line.is_none())
        {
            self.scratchpad = group.load.map(|load| Answer { at: now + cycles(ACCESS_TO_ANSWER), load });
        }
        if self.chosen.is_none() {
            self.chosen = self.serve(now);
        }
        self.given = usize::from(self.taken.is_some());
        self.under_way -= self.given;
        self.main_next = self.taken.take() == Some(Taken::BeforeMain);
    }

    /// The next group of lanes of the access that is first in the queue.
    fn serve(&mut self, now: u64) -> Option<Group> {
        let access = self.queue.front_mut().filter(|access| access.from <= now)?;
        if access.load.is_some() && self.under_way + self.given == self.loads {
            return None;
        }
        let group = Group { kind: access.kind, load: access.load, line: line(access.places[0], self.lanes) };
        access.places = rest(&access.places, access.kind, self.lanes);
        self.accesses += 1;
        self.under_way += usize::from(group.load.is_some());
        if access.places.is_empty() {
            self.queue.pop_front();
        } else {
            self.parts += 1;
        }
        Some(group)
    }

    /// Whether memory takes a request now. On the chip, it has no room for an answer but that which waits.
    fn takes(&self, now: u64) -> bool {
        let answers_wait = self.answers.front().is_some_and(|answer| answer.at <= now);
        self.memory_free <= now && !(answers_wait && self.timing.latency == 1)
    }

    /// When memory takes a request of so many lines.
    fn memory_takes(&mut self, from: u64, lines: u32) -> u64 {
        let taken = self.memory_free.max(from);
        self.memory_free = taken + u64::from(lines * self.timing.interval);
        self.memory_free - u64::from(self.timing.interval)
    }

    fn respond(&mut self, group: Group, at: u64) {
        let Some(load) = group.load else { return };
        let place = self.answers.partition_point(|answer| answer.at <= at);
        self.answers.insert(place, Answer { at, load });
    }

    fn cache_cycle(&mut self, now: u64) {
        let latency = u64::from(self.timing.latency);
        let Some(tags) = &mut self.cache else { return };
        // An answer that is not taken holds all steps, and lines that come.
        if self.answers.front().is_some_and(|answer| answer.at <= now) {
            self.answers.iter_mut().skip(1).for_each(|answer| answer.at += 1);
            let mut coming: Vec<&mut u64> = tags.misses.iter_mut().map(|miss| &mut miss.filled).collect();
            coming.sort();
            let late = coming.into_iter().filter(|filled| **filled >= now);
            (now..).zip(late).for_each(|(at, filled)| *filled += u64::from(*filled == at));
            return;
        }
        let beat = tags.misses.iter().any(|miss| miss.filled == now);
        if !beat && let Some(number) = tags.misses.iter().position(|miss| miss.filled < now) {
            let miss = &mut tags.misses[number];
            let group = miss.waiting.pop_front().expect("a miss ends with the last that waits for it");
            if miss.waiting.is_empty() {
                tags.misses.remove(number);
            }
            if group.kind != Kind::Load {
                self.memory_takes(now + cycles(TAGS_TO_MEMORY), 1);
            }
            return self.respond(group, now + cycles(TAGS_TO_ANSWER));
        }
        // A launch begins with the cache's being emptied, a set a cycle.
        if now + SWEPT < tags.sets.len() as u64 {
            return;
        }
        let Some(group @ Group { kind, load, line: Some(line) }) = self.first else { return };
        let line = line / tags.of.line;
        let set = (line as usize) % tags.sets.len();
        let outbox_full = self.memory_free > now + cycles(OUTBOX * self.timing.interval);
        let visits = &mut tags.visits;
        if let Some(miss) = tags.misses.iter_mut().find(|miss| miss.line == line) {
            if miss.waiting.len() == WAITING as usize {
                return;
            }
            miss.waiting.push_back(group);
            *if load.is_some() { &mut visits.joined } else { &mut visits.silent_hits } += 1;
        } else if tags.sets[set].0.contains(&Some(line)) {
            if beat || kind != Kind::Load && outbox_full {
                return;
            }
            *if load.is_some() { &mut visits.hits } else { &mut visits.silent_hits } += 1;
            if kind != Kind::Load {
                self.memory_takes(now + cycles(TAGS_TO_MEMORY), 1);
            }
            self.respond(group, now + cycles(TAGS_TO_ANSWER));
        } else if load.is_none() {
            if outbox_full {
                return;
            }
            visits.silent_misses += 1;
            self.memory_takes(now + cycles(TAGS_TO_MEMORY), 1);
        } else {
            let way = tags.sets[set].1;
            let reserved = tags.misses.iter().any(|miss| (miss.set, miss.way) == (set, way));
            if outbox_full || reserved || tags.misses.len() == tags.of.misses as usize {
                return;
            }
            visits.misses += 1;
            tags.sets[set].0[way] = Some(line);
            tags.sets[set].1 = (way + 1) % tags.of.ways as usize;
            let beats = tags.of.line;
            let filled = self.memory_takes(now + cycles(TAGS_TO_MEMORY), beats) + latency;
            let misses = &mut self.cache.as_mut().expect("there is one").misses;
            let number = (0..).find(|&number| misses.iter().all(|miss| miss.number != number)).expect("one is free");
            let miss = Miss { number, line, set, way, filled, waiting: VecDeque::from([group]) };
            let place = misses.partition_point(|miss| miss.number < number);
            misses.insert(place, miss);
        }
        self.first = None;
    }
}

/// The line of main memory.
fn line(place: Place, lanes: u32) -> Option<u32> {
    match place {
        Place::Main(address) => Some(address / (4 * lanes)),
        Place::Scratchpad(_) => None,
    }
}

/// The lanes that do not go with the first: of main memory, those of another line; of the scratchpad, those that find
/// their bank taken. Atomic operations never share a bank, loads of one word do.
fn rest(places: &[Place], kind: Kind, lanes: u32) -> Vec<Place> {
    let first = line(places[0], lanes);
    let mut banks: Vec<Option<u32>> = vec![None; lanes as usize];
    let left = |place: &Place| {
        let (Place::Main(address) | Place::Scratchpad(address)) = *place;
        let word = address / 4;
        if line(*place, lanes) != first {
            return true;
        }
        if first.is_some() && kind != Kind::Atomic {
            return false;
        }
        match &mut banks[(word % lanes) as usize] {
            free @ None => {
                *free = Some(word);
                false
            }
            Some(taken) => kind != Kind::Load || *taken != word,
        }
    };
    places.iter().copied().filter(left).collect()
}
