//! Konata's log: the stages of every instruction, squashes and replays, with a thread of the viewer a slot.
//!
//! Format: Kanata 0004, `docs/kanata-log-format.md` of Konata. Stages are those of docs/reference/pipeline.md:
//!
//! | name | stage | from, to |
//! |---|---|---|
//! | `St` `F` `D` | 1 steer, 2 fetch, 3 decode | a cycle each |
//! | `B` | 4, in its slot's buffer | until it issues |
//! | `Is` | 4 issue | a cycle |
//! | `Co` `X` `Rs` | 5 and 6 collect, 7 execute, 8 resolve | two, two cycles, one |
//! | `M` or `Cv` | 9 memory of an access, converge of all others | an access with a result: until that is written |
//! | `W` | 10 write back | a cycle, the last in which one of its lanes is written |
//!
//! The second lane says why the first instruction of a buffer waits: `reg` for a register (RAW, WAW), `unit` for a
//! unit, `held` where the divergence unit holds it back. An arrow leads to an instruction that waited for a register from
//! the one that wrote it.

use super::Viewer;
use super::owed::{Fate, Owed};
use crate::trace::mask_text;
use heddle_simt::pipeline::timing::{
    CHOICE_TO_DECODE, CHOICE_TO_FETCH, ISSUE_TO_EXECUTE, ISSUE_TO_OUTCOME, ISSUE_TO_READ, ISSUE_TO_RESOLVE,
};
use heddle_simt::{LaneMask, Shape};
use heddle_testbench::machine::{Fetched, IssuedFrom, Pipeline, TraceLine, Wait};
use heddle_testbench::{Program, disassemble};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// The log's state.
pub struct Konata {
    program: Program,
    slots_of_a_warp: u32,
    cycles: Range<u64>,
    /// In stages 1 to 3, with the cycle in which each was fetched.
    front: VecDeque<(u64, Instruction)>,
    /// By slot, in its buffer; and why the first of it waits.
    buffers: Vec<VecDeque<Instruction>>,
    waits: Vec<Option<Wait>>,
    /// Issued, in order, with the cycle.
    back: Vec<(u64, Instruction)>,
    /// By warp and register, who writes it last.
    writers: HashMap<(u32, u32), Writer>,
    lines: Lines,
}

/// An instruction, from its fetch on.
struct Instruction {
    /// Its number in the log, if it is in it.
    id: Option<u64>,
    slot: u32,
    pc: u32,
    decoded: u64,
    mask: LaneMask,
    accesses: bool,
    owed: Owed,
}

/// Who writes a register, and when it did.
struct Writer {
    id: Option<u64>,
    mask: LaneMask,
    wrote: Option<u64>,
}

/// What is written, and the numbers in it.
#[derive(Default)]
struct Lines {
    text: String,
    instructions: u64,
    retired: u64,
    /// The cycle of the last line.
    last: Option<u64>,
}

impl Lines {
    /// A line of an instruction that is in the log.
    fn say(&mut self, cycle: u64, id: Option<u64>, line: impl FnOnce(u64) -> String) {
        let Some(id) = id else { return };
        match self.last.replace(cycle) {
            None => self.text.push_str(&format!("C=\t{cycle}\n")),
            Some(last) if last < cycle => self.text.push_str(&format!("C\t{}\n", cycle - last)),
            Some(_) => {}
        }
        self.text.push_str(&line(id));
        self.text.push('\n');
    }

    fn stage(&mut self, cycle: u64, id: Option<u64>, name: &str) {
        self.say(cycle, id, |id| format!("S\t{id}\t0\t{name}"));
    }

    fn end(&mut self, cycle: u64, id: Option<u64>, retires: bool) {
        let number = self.retired;
        self.retired += u64::from(retires && id.is_some());
        self.say(cycle, id, |id| format!("R\t{id}\t{number}\t{}", u8::from(!retires)));
    }

    fn waits(&mut self, cycle: u64, id: Option<u64>, (before, now): (Option<Wait>, Option<Wait>)) {
        let name = |wait| match wait {
            Wait::Register => "reg",
            Wait::Unit => "unit",
            Wait::Held => "held",
        };
        if before != now {
            before.into_iter().for_each(|wait| self.say(cycle, id, |id| format!("E\t{id}\t1\t{}", name(wait))));
            now.into_iter().for_each(|wait| self.say(cycle, id, |id| format!("S\t{id}\t1\t{}", name(wait))));
        }
    }
}

impl Konata {
    pub fn new(program: &Program, shape: &Shape, cycles: Range<u64>) -> Konata {
        let slots = shape.slots() as usize;
        Konata {
            program: program.clone(),
            slots_of_a_warp: shape.slots() / shape.warps,
            cycles,
            front: VecDeque::new(),
            buffers: (0..slots).map(|_| VecDeque::new()).collect(),
            waits: vec![None; slots],
            back: Vec::new(),
            writers: HashMap::new(),
            lines: Lines { text: "Kanata\t0004\n".into(), ..Lines::default() },
        }
    }

    /// Stages 1 to 3.
    fn fetches(&mut self, Pipeline { cycle, fetched, decoded, .. }: &Pipeline) {
        let cycle = *cycle;
        let in_decode = |(at, _): &mut (u64, Instruction)| cycle - *at >= u64::from(CHOICE_TO_DECODE);
        while let Some((_, mut instruction)) = self.front.pop_front_if(in_decode) {
            if *decoded == Some(Fetched { slot: instruction.slot, pc: instruction.pc }) {
                self.lines.stage(cycle, instruction.id, "D");
                instruction.decoded = cycle;
                self.buffers[instruction.slot as usize].push_back(instruction);
            } else {
                self.lines.end(cycle, instruction.id, false);
            }
        }
        for (at, instruction) in &self.front {
            if cycle - at == u64::from(CHOICE_TO_FETCH) {
                self.lines.stage(cycle, instruction.id, "F");
            }
        }
        if let Some(Fetched { slot, pc }) = *fetched {
            let id = self.cycles.contains(&cycle).then_some(self.lines.instructions);
            self.lines.instructions += u64::from(id.is_some());
            let text = self.program.word(pc).map_or_else(|| "?".into(), |word| disassemble(word, pc));
            self.lines.say(cycle, id, |id| format!("I\t{id}\t{id}\t{slot}"));
            self.lines.say(cycle, id, |id| format!("L\t{id}\t0\t{pc:08x}: {text}"));
            self.lines.stage(cycle, id, "St");
            let (mask, owed) = (LaneMask::new(), Owed::default());
            let instruction = Instruction { id, slot, pc, decoded: 0, mask, accesses: false, owed };
            self.front.push_back((cycle, instruction));
        }
    }

    /// Stage 4.
    fn issues(&mut self, Pipeline { cycle, issued, flushed, waits, .. }: &Pipeline) {
        let cycle = *cycle;
        for instruction in self.buffers.iter().flatten().filter(|one| one.decoded + 1 == cycle) {
            self.lines.stage(cycle, instruction.id, "B");
        }
        if let Some(IssuedFrom { slot, accesses, line, .. }) = issued {
            self.wait(cycle, *slot, None);
            let first = self.buffers[*slot as usize].pop_front();
            let Some(mut instruction) = first.filter(|first| first.pc == line.pc) else {
                panic!("slot {slot} issues at {:#x} in cycle {cycle} what was not decoded", line.pc)
            };
            let TraceLine { warp, mask, block, replay, .. } = line;
            let lanes = mask_text(mask);
            let replay = if *replay { ", replay" } else { "" };
            self.lines.say(cycle, instruction.id, |id| {
                format!("L\t{id}\t1\twarp {warp}, block {block}, lanes {lanes}{replay}, issued in cycle {cycle}")
            });
            self.lines.stage(cycle, instruction.id, "Is");
            (instruction.mask, instruction.accesses) = (mask.clone(), *accesses);
            self.back.push((cycle, instruction));
        }
        if let Some(slot) = *flushed {
            self.wait(cycle, slot, None);
            for instruction in std::mem::take(&mut self.buffers[slot as usize]) {
                self.lines.end(cycle, instruction.id, false);
            }
        }
        // Who issues gives way to the next of its buffer, which is looked up later.
        let issues = issued.as_ref().map(|issued| issued.slot);
        let others = (0..).zip(waits).filter(|(slot, _)| issues != Some(*slot));
        others.for_each(|(slot, wait)| self.wait(cycle, slot, *wait));
    }

    /// The first instruction of a slot's buffer waits for this, or does not.
    fn wait(&mut self, cycle: u64, slot: u32, wait: Option<Wait>) {
        let id = self.buffers[slot as usize].front().and_then(|first| first.id);
        let wait = wait.filter(|_| !self.buffers[slot as usize].is_empty());
        self.lines.waits(cycle, id, (std::mem::replace(&mut self.waits[slot as usize], wait), wait));
    }

    /// Stages 5 to 10.
    fn ends(&mut self, pipeline: &Pipeline) {
        let cycle = pipeline.cycle;
        for (issued, mut instruction) in std::mem::take(&mut self.back) {
            let age = u32::try_from(cycle - issued).unwrap_or(u32::MAX);
            let (id, warp) = (instruction.id, instruction.slot / self.slots_of_a_warp);
            let fate = instruction.owed.follow(warp, age, pipeline);
            let ninth = if instruction.accesses { "M" } else { "Cv" };
            let stages =
                [(ISSUE_TO_READ, "Co"), (ISSUE_TO_EXECUTE, "X"), (ISSUE_TO_RESOLVE, "Rs"), (ISSUE_TO_OUTCOME, ninth)];
            match fate {
                Fate::Squashed => self.lines.end(cycle, id, false),
                Fate::Ended => self.lines.end(cycle, id, true),
                Fate::Goes => {
                    let stage = stages.iter().find(|(at, _)| *at == age);
                    stage.into_iter().for_each(|(_, name)| self.lines.stage(cycle, id, name));
                }
                Fate::Writes => {
                    self.lines.stage(cycle, id, "W");
                    let register = instruction.owed.destination().map(|register| (warp, register));
                    let writer = register.and_then(|register| self.writers.get_mut(&register));
                    let writer = writer.filter(|writer| writer.id == id);
                    writer.into_iter().for_each(|writer| writer.wrote = Some(cycle));
                }
            }
            if age == ISSUE_TO_READ {
                self.reads(pipeline, warp, &instruction);
            }
            if !matches!(fate, Fate::Squashed | Fate::Ended) {
                self.back.push((issued, instruction));
            }
        }
    }

    /// In stage 5: whom it has waited for, and who will wait for it.
    fn reads(&mut self, Pipeline { cycle, reads, .. }: &Pipeline, warp: u32, instruction: &Instruction) {
        for source in reads.iter().flat_map(|registers| &registers.sources) {
            let writer = self.writers.get(&(warp, *source)).filter(|writer| meet(&writer.mask, &instruction.mask));
            let waited = writer.filter(|writer| writer.wrote.is_none_or(|wrote| wrote >= instruction.decoded));
            if let Some(producer) = waited.and_then(|writer| writer.id) {
                self.lines.say(*cycle, instruction.id, |id| format!("W\t{id}\t{producer}\t0"));
            }
        }
        if let Some(register) = instruction.owed.destination() {
            let writer = Writer { id: instruction.id, mask: instruction.mask.clone(), wrote: None };
            self.writers.insert((warp, register), writer);
        }
    }
}

fn meet(a: &LaneMask, b: &LaneMask) -> bool {
    a.iter().zip(b).any(|(a, b)| *a && *b)
}

impl Viewer for Konata {
    fn cycle(&mut self, pipeline: &Pipeline, out: &mut String) {
        self.ends(pipeline);
        self.fetches(pipeline);
        self.issues(pipeline);
        out.push_str(&std::mem::take(&mut self.lines.text));
    }

    /// What is under way when the run ends is squashed.
    fn end(&mut self, out: &mut String) {
        let cycle = self.lines.last.unwrap_or(0);
        let front = self.front.drain(..).map(|(_, one)| one);
        let buffered = self.buffers.iter_mut().flat_map(|buffer| buffer.drain(..));
        let back = self.back.drain(..).map(|(_, one)| one);
        let ids: Vec<_> = front.chain(buffered).chain(back).filter_map(|one| one.id).collect();
        ids.into_iter().for_each(|id| self.lines.end(cycle, Some(id), false));
        out.push_str(&std::mem::take(&mut self.lines.text));
    }
}
