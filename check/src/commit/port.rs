//! What goes to memory and to the scratchpad, against what instructions access.
//!
//! Instructions reach each of the two in the order in which they took effect, but their lanes may go in parts
//! ([`Replay::Serialise`]). Every lane must go once, with its address, operation, bytes and data; of stores to one
//! byte, the highest lane's data counts; an atomic reaches each word for one lane at a time.

use super::Difference;
use super::seen::Seen;
use heddle_hdl::Bits;
use heddle_sim::Engine;
use heddle_simt::memory::port::operation;
use heddle_simt::pipeline::timing::RESOLVE_TO_ACCESS;
use heddle_simt::{Replay, Shape};
use heddle_testbench::iss::{Access, Operation, Place};
use std::collections::VecDeque;

/// An instruction that took effect, with the lanes that have not gone to memory yet.
struct Owing {
    pc: u32,
    /// The cycle in which it goes, if nothing holds it up.
    due: u64,
    /// Lane, thread, and what it accesses.
    lanes: Vec<(u32, u32, Access)>,
}

/// Probes of what is sent.
struct Probes {
    sent: usize,
    operation: usize,
    function: usize,
    /// The line of all banks, or a line per bank.
    lines: usize,
    enables: usize,
    data: usize,
}

/// What went to memory in a cycle.
pub struct Sent {
    /// Those that go; all ones where all lanes of an instruction do.
    lanes: u64,
    operation: u32,
    function: u32,
    /// By bank.
    lines: Vec<u32>,
    enables: Bits,
    data: Bits,
}

/// Main memory or the scratchpad.
struct Port {
    probes: Probes,
    /// The port has a line per bank.
    line_a_bank: bool,
    line_bits: u32,
    owing: VecDeque<Owing>,
}

/// Both.
pub struct Ports {
    main: Port,
    scratchpad: Option<Port>,
    /// Which lanes go; absent where all lanes of an instruction do.
    lanes: Option<usize>,
    /// Nothing holds accesses up.
    prompt: bool,
    shape: Shape,
}

impl Ports {
    /// `probe` finds a probe of the core.
    pub fn new(shape: &Shape, probe: impl Fn(&str) -> usize) -> Ports {
        let port = |name: &str, line: &str, line_a_bank, line_bits| Port {
            probes: Probes {
                sent: probe(&format!("{name}_sent")),
                operation: probe(&format!("{name}_operation")),
                function: probe(&format!("{name}_function")),
                lines: probe(&format!("{name}_{line}")),
                enables: probe(&format!("{name}_enables")),
                data: probe(&format!("{name}_data")),
            },
            line_a_bank,
            line_bits,
            owing: VecDeque::new(),
        };
        Ports {
            main: port("request", "line", false, shape.line_bits()),
            scratchpad: (shape.scratchpad > 0).then(|| port("scratchpad", "lines", true, shape.scratchpad_line_bits())),
            lanes: (shape.replay == Replay::Serialise).then(|| probe("request_lanes")),
            prompt: shape.replay == Replay::Split && !shape.memory_stalls(),
            shape: shape.clone(),
        }
    }

    /// Nothing has taken effect.
    pub fn clear(&mut self) {
        self.main.owing.clear();
        self.scratchpad.iter_mut().for_each(|port| port.owing.clear());
    }

    /// The lanes of an instruction that takes effect in cycle `now`: thread and access.
    pub fn expect(&mut self, pc: u32, accesses: Vec<(u32, Access)>, now: u64) {
        let due = now + u64::from(RESOLVE_TO_ACCESS);
        let lanes = accesses.into_iter().map(|(thread, access)| (thread % self.shape.lanes, thread, access));
        let (pad, main): (Vec<_>, Vec<_>) = lanes.partition(|(.., a)| matches!(a.place, Place::Scratchpad(_)));
        for (port, lanes) in [(Some(&mut self.main), main), (self.scratchpad.as_mut(), pad)] {
            if let (Some(port), false) = (port, lanes.is_empty()) {
                port.owing.push_back(Owing { pc, due, lanes });
            }
        }
    }

    /// What goes in a settled cycle.
    pub fn see(&self, engine: &dyn Engine) -> [Option<Sent>; 2] {
        let port = |port: Option<&Port>| {
            let port = port.filter(|port| engine.probe(port.probes.sent) == 1)?;
            let lanes = self.lanes.map_or(u64::MAX, |lanes| engine.probe(lanes).low_u64());
            Some(port.sent(engine, lanes, self.shape.lanes))
        };
        [port(Some(&self.main)), port(self.scratchpad.as_ref())]
    }

    /// Follows a cycle.
    pub fn cycle(&mut self, seen: &Seen) -> Result<(), Difference> {
        for (port, sent) in [Some(&mut self.main), self.scratchpad.as_mut()].into_iter().zip(&seen.sent) {
            if let (Some(port), Some(sent)) = (port, sent) {
                port.goes(sent, self.shape.lanes)?;
            }
        }
        if self.prompt { self.gone(seen.cycle) } else { Ok(()) }
    }

    /// Everything must have gone, as after a launch.
    pub fn end(&self) -> Result<(), Difference> {
        self.gone(u64::MAX)
    }

    /// What is due in this cycle or before must have gone.
    fn gone(&self, now: u64) -> Result<(), Difference> {
        let mut left = [Some(&self.main), self.scratchpad.as_ref()].into_iter().flatten().flat_map(|port| &port.owing);
        left.find(|owing| owing.due <= now)
            .map_or(Ok(()), |owing| Err(owing.differs("its access does not go to memory".into())))
    }
}

impl Owing {
    fn differs(&self, text: String) -> Difference {
        Difference { thread: self.lanes.first().map_or(0, |lane| lane.1), pc: self.pc, text }
    }
}

impl Port {
    /// An access goes to memory.
    fn goes(&mut self, sent: &Sent, banks: u32) -> Result<(), Difference> {
        let lanes = sent.lanes;
        let Some(first) = self.owing.front_mut() else {
            let text = "an access goes to memory that no instruction made".into();
            return Err(Difference { thread: 0, pc: 0, text });
        };
        let (go, stay): (Vec<_>, Vec<_>) =
            std::mem::take(&mut first.lanes).into_iter().partition(|&(lane, ..)| lanes >> lane & 1 == 1);
        let (pc, due) = (first.pc, first.due);
        first.lanes = stay;
        if first.lanes.is_empty() {
            self.owing.pop_front();
        }
        if go.is_empty() {
            let text = "an access goes to memory of threads that have no more".into();
            return Err(Difference { thread: 0, pc, text });
        }
        sent.check(&Owing { pc, due, lanes: go }, banks)
    }

    fn sent(&self, engine: &dyn Engine, lanes: u64, banks: u32) -> Sent {
        let p = &self.probes;
        let lines = engine.probe(p.lines);
        let line = |bank: u32| lines.extract(if self.line_a_bank { bank * self.line_bits } else { 0 }, self.line_bits);
        Sent {
            lanes,
            operation: engine.probe(p.operation).low_u64() as u32,
            function: engine.probe(p.function).low_u64() as u32,
            lines: (0..banks).map(|bank| line(bank).low_u64() as u32).collect(),
            enables: engine.probe(p.enables),
            data: engine.probe(p.data),
        }
    }
}

/// An atomic operation of bits 31..27 of the instruction.
fn atomic(function: u32) -> String {
    format!("atomic of function {function}")
}

impl Sent {
    fn operation(&self) -> String {
        match self.operation {
            operation::LOAD => "load".into(),
            operation::STORE => "store".into(),
            _ => atomic(self.function),
        }
    }

    fn check(&self, want: &Owing, banks: u32) -> Result<(), Difference> {
        // By byte of the banks, who writes it and with what.
        let mut bytes: Vec<Option<(u32, u8)>> = vec![None; 4 * banks as usize];
        // Beside others that succeed, an `sc.w` that fails sends nothing; else it loads what nobody uses.
        let fails = |access: &Access| access.operation == Operation::Failed;
        let all_fail = want.lanes.iter().all(|(.., access)| fails(access));
        for &(_, thread, access) in want.lanes.iter().filter(|(.., access)| all_fail || !fails(access)) {
            let differs = |text: String| Err(Difference { thread, pc: want.pc, text });
            let want_operation = match access.operation {
                Operation::Load | Operation::Failed => "load".to_string(),
                Operation::Store => "store".to_string(),
                Operation::Atomic { funct5, .. } => atomic(funct5),
            };
            let got_operation = self.operation();
            if got_operation != want_operation {
                return differs(format!("a {got_operation} goes to memory, should be a {want_operation}"));
            }
            let (Place::Main(place) | Place::Scratchpad(place)) = access.place;
            let (word, byte) = (place / 4, place % 4);
            let (line, bank) = (word / banks, word % banks);
            let got = self.lines[bank as usize];
            if got != line {
                let address = |line: u32| (line * banks + bank) * 4;
                return differs(format!("accesses the word at {:#x}, should be {:#x}", address(got), address(line)));
            }
            if matches!(access.operation, Operation::Load | Operation::Failed) {
                if !(0..4).all(|byte| self.enables.bit(4 * bank + byte)) {
                    return differs(format!("the word at {place:#x} is not asked for"));
                }
                continue;
            }
            for k in 0..access.bytes {
                let at = &mut bytes[(4 * bank + byte + k) as usize];
                if let (Some((other, _)), Operation::Atomic { .. }) = (&at, access.operation) {
                    return differs(format!("its atomic goes to memory together with that of thread {other}"));
                }
                *at = Some((thread, (access.value >> (8 * k)) as u8));
            }
        }
        if self.operation == operation::LOAD {
            return Ok(());
        }
        for (k, want_byte) in (0..).zip(bytes) {
            let got = self.enables.bit(k).then(|| self.data.extract(8 * k, 8).low_u64() as u8);
            if got != want_byte.map(|(_, byte)| byte) {
                let show = |byte: Option<u8>| byte.map_or("nothing".into(), |b| format!("{b:#04x}"));
                let address = (self.lines[k as usize / 4] * banks + k / 4) * 4 + k % 4;
                let want_shown = show(want_byte.map(|(_, byte)| byte));
                let text = format!("{} is stored to byte {address:#x}, should be {want_shown}", show(got));
                let thread = want_byte.map_or(want.lanes[0].1, |(thread, _)| thread);
                return Err(Difference { thread, pc: want.pc, text });
            }
        }
        Ok(())
    }
}
