//! Where everything lies once instructions are inserted.
//!
//! Inserted are instructions before an instruction, executed whenever it is, or on an edge, executed when one
//! instruction follows another. Those of an edge that falls through lie on it. Those of a branch that is taken lie
//! behind it, so that the branch is inverted; or directly before its target, if nothing falls through there. Those of
//! an indirect jump lie directly before its target, and whoever falls through there jumps over them.
//!
//! A branch that no longer reaches its target becomes the inverted branch and `jal`. Each section of data moves by the
//! least that its alignment and what lies before it allow.

use super::PredictError;
use super::linked::{Linked, To};
use super::relocation::{self, Field};
use crate::program::GRAIN;
use crate::reconverge::instruction::Flow;
use heddle_simt::address::SCRATCHPAD;
use std::collections::{BTreeMap, BTreeSet};

/// What is inserted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Edits {
    /// Before an instruction.
    pub before: BTreeMap<u32, Vec<u32>>,
    /// Between an instruction and one that follows it.
    pub edges: BTreeMap<(u32, u32), Vec<u32>>,
}

impl Edits {
    /// Instructions that are inserted, jumps around them apart.
    pub fn count(&self) -> usize {
        self.before.values().chain(self.edges.values()).map(Vec::len).sum()
    }
}

/// What lies where one instruction lay. In order: `fall`, a jump over `head` if needed, `head`, `before`, the
/// instruction, behind a branch `taken` and a jump.
#[derive(Clone, Debug, Default)]
pub struct Item {
    /// On the edge from the instruction before.
    pub fall: Vec<u32>,
    /// On edges from elsewhere.
    pub head: Vec<u32>,
    /// Something falls through to the head.
    pub jumps_over: bool,
    pub before: Vec<u32>,
    pub word: u32,
    /// On the edge from this branch, taken.
    pub taken: Vec<u32>,
    /// This branch goes to the head of its target.
    pub to_head: bool,
    /// This branch is inverted, with a jump behind it.
    pub far: bool,
}

impl Item {
    fn head_start(&self) -> u32 {
        4 * (self.fall.len() as u32 + u32::from(self.jumps_over))
    }

    fn start(&self) -> u32 {
        self.head_start() + 4 * self.head.len() as u32
    }

    fn instruction(&self) -> u32 {
        self.start() + 4 * self.before.len() as u32
    }

    fn size(&self) -> u32 {
        self.instruction() + 4 + if self.far { 4 * self.taken.len() as u32 + 4 } else { 0 }
    }
}

/// Where everything lies.
pub struct Layout {
    /// Of each section in memory.
    pub sections: Vec<Placed>,
    /// Targets of indirect jumps with a head of their own.
    heads: BTreeSet<u32>,
}

/// A section.
#[derive(Clone, Debug, Default)]
pub struct Placed {
    old: u32,
    old_size: u32,
    pub address: u32,
    pub size: u32,
    /// Of an executable section, one for each of its words.
    pub items: Vec<Item>,
    /// Offset of each item.
    offsets: Vec<u32>,
}

impl Layout {
    pub fn of(linked: &Linked, edits: &Edits) -> Result<Layout, PredictError> {
        let mut layout = Layout { sections: vec![], heads: BTreeSet::new() };
        for section in &linked.sections {
            let words = (0..if section.executable { section.size } else { 0 }).step_by(4);
            let item = |offset| Item { word: linked.word(section.address + offset), ..Item::default() };
            layout.sections.push(Placed {
                old: section.address,
                old_size: section.size,
                address: section.address,
                size: section.size,
                items: words.map(item).collect(),
                offsets: vec![],
            });
        }
        layout.insert(linked, edits)?;
        layout.place(linked)?;
        Ok(layout)
    }

    /// The section and number of the word at an address.
    fn find(&self, pc: u32) -> Option<(usize, usize)> {
        let number = self.sections.partition_point(|section| section.old <= pc).checked_sub(1)?;
        // Empty sections share their address with the next.
        let at = ((pc - self.sections[number].old) / 4) as usize;
        (at < self.sections[number].items.len()).then_some((number, at))
    }

    fn item(&mut self, pc: u32) -> Result<&mut Item, PredictError> {
        let (section, at) = self.find(pc).ok_or(PredictError::NoInstruction { pc })?;
        Ok(&mut self.sections[section].items[at])
    }

    fn insert(&mut self, linked: &Linked, edits: &Edits) -> Result<(), PredictError> {
        for (&pc, words) in &edits.before {
            self.item(pc)?.before.extend(words);
        }
        let falls_into = |pc: u32| {
            let before = pc.wrapping_sub(4);
            let flow = linked.instruction(before).flow();
            linked.reached.contains(&before) && !matches!(flow, Flow::Jump { .. } | Flow::IndirectJump | Flow::Return)
        };
        // The branches that take a target's head, if they can.
        let mut taken: Vec<(u32, u32, &Vec<u32>)> = Vec::new();
        for (&(from, to), words) in edits.edges.iter().filter(|(_, words)| !words.is_empty()) {
            let flow = linked.instruction(from).flow();
            match flow {
                Flow::Jump { .. } => self.item(from)?.before.extend(words),
                Flow::IndirectJump => {
                    let head = &mut self.item(to)?.head;
                    let new: Vec<u32> = words.iter().copied().filter(|word| !head.contains(word)).collect();
                    // The same edge from several jumps: they share what is there.
                    if head.is_empty() {
                        head.extend(words)
                    } else {
                        head.extend(new)
                    }
                    self.heads.insert(to);
                }
                Flow::Branch { target } if target == to => {
                    taken.push((from, to, words));
                    if to == from.wrapping_add(4) {
                        self.item(to)?.fall.extend(words);
                    }
                }
                _ if to == from.wrapping_add(4) => self.item(to)?.fall.extend(words),
                _ => return Err(PredictError::NoEdge { from, to }),
            }
        }
        for (from, to, words) in taken {
            let free = !falls_into(to) && self.item(to)?.fall.is_empty();
            let head = &mut self.item(to)?.head;
            let shares = *head == *words;
            if shares || free && head.is_empty() {
                head.clone_from(words);
                self.item(from)?.to_head = true;
            } else {
                let branch = self.item(from)?;
                branch.taken.extend(words);
                branch.far = true;
            }
        }
        for section in &mut self.sections {
            for (at, item) in section.items.iter_mut().enumerate() {
                let pc = section.old + 4 * at as u32;
                item.jumps_over = !item.head.is_empty() && (falls_into(pc) || !item.fall.is_empty());
            }
        }
        Ok(())
    }

    /// Gives everything an address. Branches only ever become longer.
    fn place(&mut self, linked: &Linked) -> Result<(), PredictError> {
        loop {
            self.addresses(linked)?;
            let mut longer = Vec::new();
            for (&pc, &(field, _)) in linked.fields.iter().filter(|(_, (field, _))| *field == Field::Branch) {
                debug_assert_eq!(field, Field::Branch);
                let Some((section, at)) = self.find(pc) else { continue };
                let item = &self.sections[section].items[at];
                let offset = self.branch_target(linked, pc).wrapping_sub(self.instruction(pc));
                if !item.far && relocation::with_offset(item.word, offset).is_none() {
                    longer.push((section, at));
                }
            }
            if longer.is_empty() {
                return Ok(());
            }
            for (section, at) in longer {
                self.sections[section].items[at].far = true;
            }
        }
    }

    fn addresses(&mut self, linked: &Linked) -> Result<(), PredictError> {
        let outside = || PredictError::File { what: "with what is inserted, the program does not fit memory".into() };
        // In order of address: the sections of one segment after those of another.
        let (mut end, mut segment, mut shift) = (0u64, None, 0u64);
        for (number, section) in linked.sections.iter().enumerate() {
            let placed = &mut self.sections[number];
            if section.address >= SCRATCHPAD {
                continue;
            }
            let old = u64::from(section.address);
            if segment != Some(section.segment) {
                segment = Some(section.segment);
                let mine = linked.sections.iter().filter(|s| Some(s.segment) == segment);
                let align = mine.map(|s| u64::from(s.align)).max().unwrap_or(1).max(GRAIN);
                shift = if end > old { (end.next_multiple_of(GRAIN) - old).next_multiple_of(align) } else { 0 };
            }
            if end > old + shift {
                shift = (end - old).next_multiple_of(u64::from(section.align.max(4)));
            }
            if section.executable {
                let mut offset = 0u32;
                placed.offsets.clear();
                for item in &placed.items {
                    placed.offsets.push(offset);
                    offset = offset.checked_add(item.size()).ok_or_else(outside)?;
                }
                placed.size = offset;
            }
            end = old + shift + u64::from(placed.size);
            if end > u64::from(SCRATCHPAD) {
                return Err(outside());
            }
            placed.address = (old + shift) as u32;
        }
        Ok(())
    }

    fn at(&self, pc: u32, within: impl Fn(&Item) -> u32) -> Option<u32> {
        let (section, at) = self.find(pc)?;
        let placed = &self.sections[section];
        Some(placed.address + placed.offsets[at] + within(&placed.items[at]))
    }

    /// Where an instruction lies.
    pub fn instruction(&self, pc: u32) -> u32 {
        self.at(pc, Item::instruction).unwrap_or(pc)
    }

    /// Where what was at an address of a section is now, with what is inserted before it.
    pub fn start(&self, to: To) -> u32 {
        self.moved(to, Item::start)
    }

    /// The same, for an indirect jump.
    pub fn for_jump(&self, to: To) -> u32 {
        if self.heads.contains(&to.address) { self.moved(to, Item::head_start) } else { self.start(to) }
    }

    /// Where the end of what ended at an address is.
    pub fn end(&self, to: To) -> u32 {
        let before = To { address: to.address.wrapping_sub(4), ..to };
        match self.find(before.address).filter(|(section, _)| Some(*section) == to.section) {
            Some(_) => self.moved(before, Item::size),
            None => self.start(to),
        }
    }

    fn moved(&self, to: To, within: impl Fn(&Item) -> u32) -> u32 {
        let Some(number) = to.section else { return to.address };
        let placed = &self.sections[number];
        let offset = to.address.wrapping_sub(placed.old);
        match placed.items.get(offset as usize / 4) {
            Some(item) => placed.address + placed.offsets[offset as usize / 4] + within(item) + offset % 4,
            None if placed.items.is_empty() => placed.address.wrapping_add(offset),
            // Behind the last instruction, or before the first.
            None => placed.address.wrapping_add(placed.size).wrapping_add(offset.wrapping_sub(placed.old_size)),
        }
    }

    /// Where a branch or jump goes.
    fn branch_target(&self, linked: &Linked, pc: u32) -> u32 {
        let (_, to) = linked.fields[&pc];
        let to_head = self.find(pc).is_some_and(|(section, at)| self.sections[section].items[at].to_head);
        if to_head { self.moved(to, Item::head_start) } else { self.start(to) }
    }

    /// The words of an executable section.
    pub fn words(&self, linked: &Linked, number: usize) -> Result<Vec<u32>, PredictError> {
        let placed = &self.sections[number];
        let mut words = Vec::with_capacity(placed.size as usize / 4);
        for (at, item) in placed.items.iter().enumerate() {
            let pc = placed.old + 4 * at as u32;
            let far = |from, to| PredictError::Far { from, to };
            let jump = |from: u32, to: u32| relocation::with_offset(0x6f, to.wrapping_sub(from)).ok_or(far(from, to));
            words.extend(&item.fall);
            if item.jumps_over {
                let start = placed.address + placed.offsets[at] + item.start();
                words.push(jump(placed.address + 4 * words.len() as u32, start)?);
            }
            words.extend(&item.head);
            words.extend(&item.before);
            let here = self.instruction(pc);
            debug_assert_eq!(here, placed.address + 4 * words.len() as u32);
            if item.far {
                let skip = 4 * item.taken.len() as u32 + 8;
                let inverted = item.word ^ 1 << 12;
                words.push(relocation::with_offset(inverted, skip).ok_or(far(here, here.wrapping_add(skip)))?);
                words.extend(&item.taken);
                let from = placed.address + 4 * words.len() as u32;
                words.push(jump(from, self.branch_target(linked, pc))?);
            } else {
                words.push(self.word(linked, pc, item.word)?);
            }
        }
        Ok(words)
    }

    /// An instruction with its address put anew.
    fn word(&self, linked: &Linked, pc: u32, word: u32) -> Result<u32, PredictError> {
        let here = self.instruction(pc);
        let offset_of = |to: To, from: u32| self.for_jump(to).wrapping_sub(from);
        let Some(&(field, to)) = linked.fields.get(&pc) else {
            // The second instruction of a call.
            return Ok(match linked.fields.get(&pc.wrapping_sub(4)) {
                Some(&(Field::Call, to)) => {
                    let offset = self.start(to).wrapping_sub(self.instruction(pc - 4));
                    relocation::with_lower(word, relocation::Format::I, offset)
                }
                _ => word,
            });
        };
        Ok(match field {
            Field::Branch | Field::Jal => {
                let target = self.branch_target(linked, pc);
                let far = PredictError::Far { from: here, to: target };
                relocation::with_offset(word, target.wrapping_sub(here)).ok_or(far)?
            }
            Field::Call => relocation::with_upper(word, self.start(to).wrapping_sub(here)),
            Field::Upper => relocation::with_upper(word, offset_of(to, here)),
            Field::Absolute => relocation::with_upper(word, self.for_jump(to)),
            Field::AbsoluteLower(format) => relocation::with_lower(word, format, self.for_jump(to)),
            Field::UpperOfGot => {
                // The lower part belongs to any instruction that refers here; all make the same address.
                let lower = linked.fields.iter().find_map(|(&lower, &(field, _))| match field {
                    Field::Lower(format) => (linked.upper_of(lower)?.0 == pc).then_some((lower, format)),
                    _ => None,
                });
                match lower {
                    Some((lower, format)) => {
                        relocation::with_upper(word, self.got(linked, pc, lower, format).wrapping_sub(here))
                    }
                    None => word,
                }
            }
            Field::Lower(format) => {
                let (upper, field, of) = linked.upper_of(pc).expect("it was checked");
                let value = match field {
                    Field::UpperOfGot => self.got(linked, upper, pc, format),
                    _ => self.for_jump(of),
                };
                relocation::with_lower(word, format, value.wrapping_sub(self.instruction(upper)))
            }
        })
    }

    /// New address of a place in the global offset table.
    fn got(&self, linked: &Linked, upper: u32, lower: u32, format: relocation::Format) -> u32 {
        let place = linked.got_place(upper, lower, format);
        let (number, _) = linked.place_of_data(place).expect("it was checked");
        self.start(To { section: Some(number), address: place })
    }
}
