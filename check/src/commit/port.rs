//! What goes to memory and to the scratchpad, against what instructions access.
//!
//! Instructions reach each of the two in the order in which they took effect, but their lanes may go in parts
//! ([`Replay::Serialise`]). Every lane must go once, with its address, operation, bytes and data; of stores to one
//! byte, the highest lane's data counts; an atomic reaches each word for one lane at a time.

use super::places::{Places, What, extract, limb, word};
use super::{Difference, bits};
use heddle_hdl::Code;
use heddle_simt::memory::atomic::sent;
use heddle_simt::memory::port;
use heddle_simt::pipeline::timing::RESOLVE_TO_ACCESS;
use heddle_simt::{Replay, Shape};
use heddle_testbench::iss::{Access, MOST, Operation, Place};
use std::collections::VecDeque;

/// A lane of an instruction: its number, its thread, and what it accesses.
type Lane = (u32, u32, Access);

/// An instruction that took effect, with the lanes that have not gone to memory yet.
struct Owing {
    pc: u32,
    /// The cycle in which it goes, if nothing holds it up.
    due: u64,
    lanes: Vec<Lane>,
}

/// What goes to memory in a cycle.
struct Sent<'a> {
    operation: port::Operation,
    function: u32,
    enables: &'a [u64],
    /// The line of all banks, or a line per bank.
    lines: &'a [u64],
    line_a_bank: bool,
    line_bits: u32,
    data: &'a [u64],
    banks: u32,
}

/// Main memory or the scratchpad.
struct Port {
    channel: usize,
    /// The port has a line per bank.
    line_a_bank: bool,
    line_bits: u32,
    owing: VecDeque<Owing>,
}

/// Both.
pub struct Ports {
    main: Port,
    scratchpad: Option<Port>,
    /// Lanes of an instruction may go in parts.
    parts: bool,
    /// Nothing holds accesses up.
    prompt: bool,
    lanes: u32,
    /// Lists that are not in use.
    spare: Vec<Vec<Lane>>,
}

impl Ports {
    pub fn new(shape: &Shape, places: &Places) -> Ports {
        let port = |what, line_a_bank, line_bits| {
            places.channel(what).map(|channel| Port { channel, line_a_bank, line_bits, owing: VecDeque::new() })
        };
        Ports {
            main: port(What::Main, false, shape.line_bits()).expect("every core has main memory"),
            scratchpad: port(What::Scratchpad, true, shape.scratchpad_line_bits()),
            parts: shape.replay == Replay::Serialise,
            prompt: shape.replay == Replay::Split && !shape.memory_stalls(),
            lanes: shape.lanes,
            spare: Vec::new(),
        }
    }

    /// Nothing has taken effect.
    pub fn clear(&mut self) {
        self.main.owing.clear();
        self.scratchpad.iter_mut().for_each(|port| port.owing.clear());
    }

    /// The lanes of an instruction that takes effect in cycle `now`: threads and their accesses.
    pub fn expect(&mut self, pc: u32, accesses: impl Iterator<Item = (u32, Access)>, now: u64) {
        let due = now + u64::from(RESOLVE_TO_ACCESS);
        let mut new = || self.spare.pop().unwrap_or_default();
        let (mut main, mut pad) = (new(), new());
        for (thread, access) in accesses {
            let lane = (thread % self.lanes, thread, access);
            if matches!(access.place, Place::Scratchpad(_)) { pad.push(lane) } else { main.push(lane) }
        }
        for (port, lanes) in [(Some(&mut self.main), main), (self.scratchpad.as_mut(), pad)] {
            match port {
                Some(port) if !lanes.is_empty() => port.owing.push_back(Owing { pc, due, lanes }),
                _ => self.spare.push(lanes),
            }
        }
    }

    /// Something goes to memory or the scratchpad.
    pub fn sent(&mut self, places: &Places, what: What, row: &[u64]) -> Result<(), Difference> {
        let port = if what == What::Main { Some(&mut self.main) } else { self.scratchpad.as_mut() };
        let port = port.expect("what is recorded exists");
        let going = if self.parts { row[limb::GOING] } else { u64::MAX };
        let value = |k| places.value(port.channel, row, k);
        let sent = Sent {
            operation: port::Operation::from_bits(row[limb::OPERATION]).expect("every number of 2 bits is one"),
            function: row[limb::FUNCTION] as u32,
            enables: value(3),
            lines: value(4),
            line_a_bank: port.line_a_bank,
            line_bits: port.line_bits,
            data: value(5),
            banks: self.lanes,
        };
        port.goes(&sent, going, &mut self.spare)
    }

    /// The first cycle before `end` in which something should have gone that has not, and what is different then; where
    /// nothing may hold accesses up.
    pub fn late(&self, end: u64) -> Option<(u64, Difference)> {
        let owing = self.prompt.then(|| self.left().map(|owing| (owing.due, owing)));
        let (due, owing) = owing?.filter(|&(due, _)| due < end).min_by_key(|&(due, _)| due)?;
        Some((due, owing.stays()))
    }

    /// Everything must have gone, as after a launch.
    pub fn end(&self) -> Result<(), Difference> {
        self.left().next().map_or(Ok(()), |owing| Err(owing.stays()))
    }

    fn left(&self) -> impl Iterator<Item = &Owing> {
        [Some(&self.main), self.scratchpad.as_ref()].into_iter().flatten().flat_map(|port| &port.owing)
    }
}

impl Owing {
    fn stays(&self) -> Difference {
        let thread = self.lanes.first().map_or(0, |lane| lane.1);
        Difference { thread, pc: self.pc, text: "its access does not go to memory".into() }
    }
}

impl Port {
    /// An access of these lanes goes to memory.
    fn goes(&mut self, sent: &Sent, going: u64, spare: &mut Vec<Vec<Lane>>) -> Result<(), Difference> {
        let Some(first) = self.owing.front_mut() else {
            let text = "an access goes to memory that no instruction made".into();
            return Err(Difference { thread: 0, pc: 0, text });
        };
        let mut go = std::mem::replace(&mut first.lanes, spare.pop().unwrap_or_default());
        go.retain(|&lane| {
            let goes = going >> lane.0 & 1 == 1;
            if !goes {
                first.lanes.push(lane);
            }
            goes
        });
        let pc = first.pc;
        if first.lanes.is_empty() {
            spare.extend(self.owing.pop_front().map(|gone| gone.lanes));
        }
        if go.is_empty() {
            let text = "an access goes to memory of threads that have no more".into();
            return Err(Difference { thread: 0, pc, text });
        }
        sent.check(pc, &go)?;
        go.clear();
        spare.push(go);
        Ok(())
    }
}

/// An atomic operation of bits 31..27 of the instruction.
fn atomic(function: u32) -> String {
    format!("atomic of function {function}")
}

/// What an access is called.
fn wanted(operation: Operation) -> String {
    match operation {
        Operation::Load | Operation::Failed => "load".into(),
        Operation::Store => "store".into(),
        Operation::Atomic { funct5, .. } => atomic(funct5),
    }
}

fn fails(access: &Access) -> bool {
    access.operation == Operation::Failed
}

/// The byte that an access begins at, in its memory.
fn first_byte(access: &Access) -> u32 {
    let (Place::Main(byte) | Place::Scratchpad(byte)) = access.place;
    byte
}

impl Sent<'_> {
    fn operation(&self) -> String {
        match self.operation {
            port::Operation::Load => "load".into(),
            port::Operation::Store => "store".into(),
            port::Operation::Atomic | port::Operation::AtomicSilent => atomic(self.function),
        }
    }

    fn is(&self, wanted: Operation) -> bool {
        match wanted {
            Operation::Load | Operation::Failed => self.operation == port::Operation::Load,
            Operation::Store => self.operation == port::Operation::Store,
            Operation::Atomic { funct5, .. } => {
                matches!(self.operation, port::Operation::Atomic | port::Operation::AtomicSilent)
                    && self.function == funct5
            }
        }
    }

    fn line(&self, bank: u32) -> u32 {
        extract(self.lines, if self.line_a_bank { bank * self.line_bits } else { 0 }, self.line_bits) as u32
    }

    /// The byte enables of a bank, a bit each.
    fn enables(&self, bank: u32) -> u32 {
        (self.enables[bank as usize / 16] >> (bank % 16 * 4)) as u32 & 0xf
    }

    /// Holds it against the lanes that should go.
    fn check(&self, pc: u32, lanes: &[Lane]) -> Result<(), Difference> {
        // Beside others that succeed, an `sc.w` that fails sends nothing; else it loads what nobody uses.
        let all_fail = lanes.iter().all(|(.., access)| fails(access));
        let mut words = [(0, 0); MOST];
        for &(_, thread, ref access) in lanes.iter().filter(|(.., access)| all_fail || !fails(access)) {
            let differs = |text: String| Err(Difference { thread, pc, text });
            if !self.is(access.operation) {
                let (got, want) = (self.operation(), wanted(access.operation));
                return differs(format!("a {got} goes to memory, should be a {want}"));
            }
            let place = first_byte(access);
            let (line, bank) = (place / 4 / self.banks, place / 4 % self.banks);
            let got = self.line(bank);
            if got != line {
                let address = |line: u32| (line * self.banks + bank) * 4;
                return differs(format!("accesses the word at {:#x}, should be {:#x}", address(got), address(line)));
            }
            if matches!(access.operation, Operation::Load | Operation::Failed) {
                if self.enables(bank) != 0xf {
                    return differs(format!("the word at {place:#x} is not asked for"));
                }
                continue;
            }
            let (enables, data) = &mut words[bank as usize];
            let own = ((1 << access.bytes) - 1) << (place % 4);
            if let (true, Operation::Atomic { .. }) = (*enables & own != 0, access.operation) {
                let same = |other: &&Lane| first_byte(&other.2) / 4 == place / 4 && !fails(&other.2);
                let other = lanes.iter().find(same).map_or(0, |other| other.1);
                return differs(format!("its atomic goes to memory together with that of thread {other}"));
            }
            *enables |= own;
            *data = *data & !bytes(own) | access.value << (8 * (place % 4)) & bytes(own);
        }
        match self.operation {
            port::Operation::Load => Ok(()),
            _ => (0..self.banks).try_for_each(|bank| self.check_bank(pc, lanes, bank, words[bank as usize])),
        }
    }

    /// Holds what goes to a bank against the bytes that should: by byte whether, and with what.
    fn check_bank(&self, pc: u32, lanes: &[Lane], bank: u32, (enables, data): (u32, u32)) -> Result<(), Difference> {
        let data_sent = word(self.data, bank);
        let is_store = self.operation == port::Operation::Store;
        let got = (self.enables(bank), if is_store { data_sent } else { sent(self.function, data_sent) });
        let mask = bytes(enables);
        if got.0 == enables && (got.1 ^ data) & mask == 0 {
            return Ok(());
        }
        let byte = |(enables, data): (u32, u32), k: u32| (enables >> k & 1 == 1).then_some((data >> (8 * k)) as u8);
        let differing = (0..4).find(|&k| byte(got, k) != byte((enables, data), k));
        let k = differing.expect("a byte differs");
        let show = |byte: Option<u8>| byte.map_or("nothing".into(), |b| format!("{b:#04x}"));
        let address = (self.line(bank) * self.banks + bank) * 4 + k;
        let (got, want) = (show(byte(got, k)), show(byte((enables, data), k)));
        let text = format!("{got} is stored to byte {address:#x}, should be {want}");
        // Of those who write the byte, the highest lane counts.
        let writes = |lane: &&Lane| {
            let first = first_byte(&lane.2);
            !fails(&lane.2) && first / 4 % self.banks == bank && (first % 4..first % 4 + lane.2.bytes).contains(&k)
        };
        let writer = lanes.iter().rev().find(writes).unwrap_or(&lanes[0]);
        Err(Difference { thread: writer.1, pc, text })
    }
}

/// The bits of the bytes that a mask names.
fn bytes(mask: u32) -> u32 {
    bits(mask.into()).fold(0, |all, byte| all | 0xff << (8 * byte))
}
