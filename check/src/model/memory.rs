//! Accesses of the model: the load-store unit, which serves one group of lanes a cycle, the data cache, memory behind
//! it, and the scratchpad. What the description of each has to say stands in `docs/reference/memory.md`; data are not
//! here, only time.

use super::cycles;
use super::second_level::{Ask, SecondLevel};
use heddle_simt::memory::cache::{OUTBOX, WAITING};
use heddle_simt::pipeline::timing::{ACCESS_TO_ANSWER, GIVE_TO_ROOM, REQUEST_TO_TAGS, TAGS_TO_ANSWER, TAGS_TO_MEMORY};
use heddle_simt::{Backing, Cache, Shape, Timing};
use heddle_testbench::iss::Place;
use heddle_testbench::machine::{CacheVisits, SecondLevelVisits};
use std::collections::{BTreeSet, VecDeque};

/// What follows from the order of a cycle's steps here.
const _: () = assert!(REQUEST_TO_TAGS == 1, "the model's cache looks at a request in the next cycle");
const _: () =
    assert!(GIVE_TO_ROOM == 2, "an entry that is given back is free in the next cycle, and offered in the one after");

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
    /// It is of whole words.
    pub words: bool,
    /// Of the lanes that are not served yet, the lowest first.
    pub places: Vec<Place>,
}

/// Lanes of an access that go together.
#[derive(Clone, Copy, Debug)]
struct Group {
    kind: Kind,
    load: Option<usize>,
    /// The load queue's entry, if it is answered.
    tag: u32,
    /// In main memory; nothing is the scratchpad.
    line: Option<u32>,
    /// All of the line is stored.
    whole: bool,
}

impl Group {
    /// What is asked of memory's second level, for this line.
    fn ask(self, line: u32) -> Ask {
        Ask { line, writes: self.kind != Kind::Load, answers: self.load.is_some(), whole: self.whole }
    }
}

/// An answer to a load.
#[derive(Clone, Copy)]
struct Answer {
    at: u64,
    load: usize,
    tag: u32,
}

/// Which entries of the load queue are taken, and which is offered: the lowest that was free in the cycle before.
struct Entries {
    count: u32,
    busy: u64,
    offered: Option<u32>,
    taken: Option<u32>,
    given: Option<u32>,
}

impl Entries {
    fn cycle(&mut self) {
        let bit = |entry: Option<u32>| entry.map_or(0, |entry| 1u64 << entry);
        let free = (0..self.count).find(|&entry| (self.busy | bit(self.offered)) >> entry & 1 == 0);
        if self.taken.is_some() || self.offered.is_none() {
            self.offered = free;
        }
        self.busy = (self.busy | bit(self.taken.take())) & !bit(self.given.take());
    }
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
    entries: Entries,
    timing: Timing,
    cache: Option<Tags>,
    second_level: Option<SecondLevel>,
    /// Before a second level: when each request of the cache leaves, and the cycles in which responses come.
    outbox: VecDeque<u64>,
    responses: BTreeSet<u64>,
    queue: VecDeque<Access>,
    /// The group chosen, until memory takes it; the one that the cache looks at.
    chosen: Option<Group>,
    first: Option<Group>,
    /// When memory takes the next request.
    memory_free: u64,
    /// Answers of main memory, in the order in which they come; that of the scratchpad, which then goes after the next
    /// of main memory's.
    answers: VecDeque<Answer>,
    /// Without a cache, of those of main memory that are due one in turn: the last, and one that stands until it is taken.
    turn: Option<u32>,
    held: Option<u32>,
    scratchpad: Option<Answer>,
    main_next: bool,
    /// Groups that wait for an answer, and the answer that was taken in this cycle.
    under_way: usize,
    taken: Option<Taken>,
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
            entries: Entries { count: shape.loads, busy: 0, offered: Some(0), taken: None, given: None },
            timing,
            cache: shape.cache.map(tags),
            second_level: shape.second_level.map(|of| SecondLevel::new(of, shape.lanes, timing)),
            outbox: VecDeque::new(),
            responses: BTreeSet::new(),
            queue: VecDeque::new(),
            chosen: None,
            first: None,
            memory_free: 0,
            answers: VecDeque::new(),
            turn: None,
            held: None,
            scratchpad: None,
            main_next: false,
            under_way: 0,
            taken: None,
            accesses: 0,
            parts: 0,
        }
    }

    /// What requests found in the cache.
    pub fn visits(&self) -> Option<CacheVisits> {
        self.cache.as_ref().map(|tags| tags.visits)
    }

    /// What they found in the second level.
    pub fn second_level_visits(&self) -> Option<SecondLevelVisits> {
        self.second_level.as_ref().map(|level| level.visits)
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

    /// The place of main memory's answer that is there.
    fn main(&self, now: u64) -> Option<usize> {
        let due = self.answers.partition_point(|answer| answer.at <= now);
        let turn = |&at: &usize| {
            let tag = self.answers[at].tag;
            (self.held != Some(tag), self.turn.is_none_or(|last| tag <= last), tag)
        };
        if self.cache.is_some() { (due > 0).then_some(0) } else { (0..due).min_by_key(turn) }
    }

    /// The load that an answer is there for.
    pub fn answer(&self, now: u64) -> Option<usize> {
        let main = self.main(now).map(|at| self.answers[at]);
        let scratchpad = self.scratchpad.filter(|_| !(self.main_next && main.is_some()));
        scratchpad.or(main).map(|answer| answer.load)
    }

    /// It is taken.
    pub fn take(&mut self, now: u64) {
        let main = self.main(now);
        let from_scratchpad = self.scratchpad.is_some() && !(self.main_next && main.is_some());
        self.taken = Some(if from_scratchpad && main.is_some() { Taken::BeforeMain } else { Taken::Alone });
        let answer = match main.filter(|_| !from_scratchpad) {
            None => self.scratchpad.take(),
            Some(at) => {
                self.turn = Some(self.answers[at].tag);
                self.held = None;
                self.answers.remove(at)
            }
        };
        self.entries.given = answer.map(|answer| answer.tag);
    }

    /// Whether a load waits for memory.
    pub fn loads_wait(&self) -> bool {
        self.under_way > 0
    }

    pub fn cycle(&mut self, now: u64) {
        // One that is there and was not taken.
        if self.taken != Some(Taken::Alone) {
            let tag = self.main(now).map(|at| self.answers[at].tag);
            (self.held, self.turn) = (tag, tag.or(self.turn));
        }
        if self.cache.is_some() {
            self.cache_cycle(now);
            if self.first.is_none() {
                self.first = self.chosen.take_if(|group| group.line.is_some());
            }
        } else if let Some(group @ Group { line: Some(line), .. }) = self.chosen
            && self.takes(now, group.ask(line))
        {
            self.chosen = None;
            let at = match &mut self.second_level {
                Some(level) => level.takes(now, group.ask(line)).1,
                None => self.memory_takes(now, 1) + u64::from(self.timing.latency),
            };
            self.respond(group, at);
        }
        // The scratchpad takes nothing while its answer waits.
        if self.scratchpad.is_none()
            && let Some(group) = self.chosen.take_if(|group| group.line.is_none())
        {
            let at = now + cycles(ACCESS_TO_ANSWER);
            self.scratchpad = group.load.map(|load| Answer { at, load, tag: group.tag });
        }
        if self.chosen.is_none() {
            self.chosen = self.serve(now);
        }
        self.under_way -= usize::from(self.taken.is_some());
        self.entries.cycle();
        self.main_next = self.taken.take() == Some(Taken::BeforeMain);
    }

    /// The next group of lanes of the access that is first in the queue.
    fn serve(&mut self, now: u64) -> Option<Group> {
        let access = self.queue.front_mut().filter(|access| access.from <= now)?;
        let tag = match self.entries.offered {
            Some(entry) => entry,
            None if access.load.is_some() => return None,
            None => 0,
        };
        let line = line(access.places[0], self.lanes);
        let rest = rest(&access.places, access.kind, self.lanes);
        let whole = access.words && access.kind == Kind::Store && all_words(&access.places, line, self.lanes);
        self.entries.taken = access.load.map(|_| tag);
        let group = Group { kind: access.kind, load: access.load, tag, line, whole };
        access.places = rest;
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
    fn takes(&self, now: u64, ask: Ask) -> bool {
        if let Some(level) = &self.second_level {
            return level.taken_at(now, ask) == now;
        }
        let answers_wait = self.main(now).is_some();
        self.memory_free <= now && !(answers_wait && self.timing.latency == 1)
    }

    /// When memory takes a request of so many lines.
    fn memory_takes(&mut self, from: u64, lines: u32) -> u64 {
        let taken = self.memory_free.max(from);
        self.memory_free = taken + u64::from(lines * self.timing.interval);
        self.memory_free - u64::from(self.timing.interval)
    }

    /// The cache asks for so many lines from this one on, as soon as that can be sent; the cycle in which the last is there.
    fn sends(&mut self, from: u64, ask: Ask, lines: u32) -> u64 {
        let Some(level) = &mut self.second_level else {
            return self.memory_takes(from, lines) + u64::from(self.timing.latency);
        };
        let mut there = 0;
        let mut leaves = 0;
        for line in ask.line..ask.line + lines {
            let (taken, due) = level.takes(from, Ask { line, ..ask });
            leaves = taken;
            if ask.answers {
                // One comes a cycle.
                let free = (due..).find(|at| !self.responses.contains(at)).expect("a cycle is free");
                self.responses.insert(free);
                there = there.max(free);
            }
        }
        self.outbox.push_back(leaves);
        there
    }

    fn outbox_full(&mut self, now: u64) -> bool {
        if self.second_level.is_none() {
            return self.memory_free > now + cycles(OUTBOX * self.timing.interval);
        }
        self.outbox.retain(|leaves| *leaves >= now);
        self.responses = self.responses.split_off(&now);
        self.outbox.len() >= OUTBOX as usize
    }

    fn respond(&mut self, group: Group, at: u64) {
        let Some(load) = group.load else { return };
        let place = self.answers.partition_point(|answer| answer.at <= at);
        self.answers.insert(place, Answer { at, load, tag: group.tag });
    }

    fn cache_cycle(&mut self, now: u64) {
        let outbox_full = self.outbox_full(now);
        let to_memory = now + cycles(TAGS_TO_MEMORY);
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
            if let Group { kind: Kind::Store | Kind::Atomic, line: Some(line), .. } = group {
                self.sends(to_memory, Ask { answers: false, ..group.ask(line) }, 1);
            }
            return self.respond(group, now + cycles(TAGS_TO_ANSWER));
        }
        // A launch begins with the cache's being emptied, a set a cycle.
        if now + SWEPT < tags.sets.len() as u64 {
            return;
        }
        let Some(group @ Group { kind, load, line: Some(of_memory), .. }) = self.first else { return };
        let written = Ask { answers: false, ..group.ask(of_memory) };
        let line = of_memory / tags.of.line;
        let set = (line as usize) % tags.sets.len();
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
                self.sends(to_memory, written, 1);
            }
            self.respond(group, now + cycles(TAGS_TO_ANSWER));
        } else if load.is_none() {
            if outbox_full {
                return;
            }
            visits.silent_misses += 1;
            self.sends(to_memory, written, 1);
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
            let ask = Ask { line: line * beats, writes: false, answers: true, whole: false };
            let filled = self.sends(to_memory, ask, beats);
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

/// Whether these are on every word of a line.
fn all_words(places: &[Place], of: Option<u32>, lanes: u32) -> bool {
    let here = places.iter().filter(|place| line(**place, lanes) == of);
    let words = here.fold(0u64, |words, place| {
        let (Place::Main(address) | Place::Scratchpad(address)) = *place;
        words | 1 << (address / 4 % lanes)
    });
    words.count_ones() == lanes
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
