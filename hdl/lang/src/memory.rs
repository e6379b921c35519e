//! Memories of words of any bundle.

use crate::bits::Bits;
use crate::builder::{Builder, Draft};
use crate::bundle::{Bundle, Signals, Width, unpack, width_of};
use crate::netlist::{Collision, Loc, Memory, MemoryStyle, NodeId, Op, ReadPort, ReadTiming, WritePort};
use crate::signal::Signal;
use std::panic::Location;

/// A memory of `2^address_width` words of the shape `I`. An address has exactly `address_width` bits, so none is out of
/// range.
#[derive(Clone)]
pub struct Mem<I> {
    builder: Builder,
    index: u32,
    shape: I,
}

impl Builder {
    /// A memory; its contents start random unless [`Mem::init`] gives them.
    #[track_caller]
    pub fn memory<I: Bundle<Width> + Clone>(self, name: &str, shape: I, address_width: Width) -> Mem<I> {
        let loc = Location::caller();
        let width = width_of(&shape);
        let index = self.draft(loc, |d| {
            d.claim(name, loc);
            if address_width == 0 || address_width > 32 {
                d.error(loc, format!("memory `{name}`: an address has 1 to 32 bits, not {address_width}"));
            }
            d.module.memories.push(Memory {
                name: name.to_string(),
                width,
                address_width,
                init: None,
                reads: vec![],
                writes: vec![],
                style: MemoryStyle::Auto,
                loc,
            });
            d.module.memories.len() as u32 - 1
        });
        Mem { builder: self, index, shape }
    }
}

impl<I: Bundle<Width> + Clone> Mem<I>
where
    I::With<Signal>: Signals,
{
    /// First contents from address 0, zeros beyond; the packed words.
    #[track_caller]
    pub fn init(self, words: Vec<Bits>) -> Self {
        let loc = Location::caller();
        self.change(loc, |d, m| {
            let (name, size, width) = (m.name.clone(), 1u64 << m.address_width, m.width);
            if words.len() as u64 > size {
                d.error(loc, format!("memory `{name}` has {size} words, {} are given", words.len()));
            }
            if let Some(w) = words.iter().find(|w| w.bit_length() > width) {
                d.error(loc, format!("memory `{name}`: word {w} needs more than {width} bits"));
            }
            m.init = Some(words);
        });
        self
    }

    /// Asks the synthesis tool for block RAM or distributed RAM.
    #[track_caller]
    pub fn style(self, style: MemoryStyle) -> Self {
        self.change(Location::caller(), |_, m| m.style = style);
        self
    }

    /// The word at `address`, in the same cycle.
    #[track_caller]
    pub fn read(&self, address: Signal) -> I::With<Signal> {
        self.read_port(address, ReadTiming::Async, Location::caller())
    }

    /// The word that `address` selects at a clock edge, one cycle later.
    #[track_caller]
    pub fn read_sync(&self, address: Signal, collision: Collision) -> I::With<Signal> {
        self.read_port(address, ReadTiming::Sync { enable: None, collision }, Location::caller())
    }

    /// Like [`Mem::read_sync`], but the data stays where `enable` is 0.
    #[track_caller]
    pub fn read_sync_if(&self, enable: Signal, address: Signal, collision: Collision) -> I::With<Signal> {
        let timing = ReadTiming::Sync { enable: Some(enable.node), collision };
        self.read_port(address, timing, Location::caller())
    }

    fn read_port(&self, address: Signal, timing: ReadTiming, loc: Loc) -> I::With<Signal> {
        let mem = self.index;
        let packed = self.builder.draft(loc, |d| {
            d.check_address(mem, address, loc);
            let port = d.module.memories[mem as usize].reads.len() as u32;
            let width = d.module.memories[mem as usize].width;
            let out = d.node(Op::MemRead { mem, port }, width, &[], loc);
            d.module.memories[mem as usize].reads.push(ReadPort { address: address.node, out: out.node, timing });
            out
        });
        unpack(self.shape.clone(), packed)
    }

    /// Writes the whole word where `enable` (1 bit) is 1.
    #[track_caller]
    pub fn write(&self, enable: Signal, address: Signal, data: I::With<Signal>) {
        let loc = Location::caller();
        if enable.width() != 1 {
            self.builder.draft(loc, |d| {
                let name = d.describe(enable);
                d.error(loc, format!("the enable of a whole word is 1 bit: {name}"));
            });
            return;
        }
        self.write_port(enable, address, data.pack(), loc);
    }

    /// Writes those of the word's equal parts whose bit in `enables` is 1: 4 bits for the bytes of a 32-bit word.
    #[track_caller]
    pub fn write_granules(&self, enables: Signal, address: Signal, data: I::With<Signal>) {
        self.write_port(enables, address, data.pack(), Location::caller());
    }

    fn write_port(&self, enable: Signal, address: Signal, data: Signal, loc: Loc) {
        let mem = self.index;
        self.builder.draft(loc, |d| {
            d.check_address(mem, address, loc);
            let (name, width) = (d.module.memories[mem as usize].name.clone(), d.module.memories[mem as usize].width);
            if data.width != width {
                let text = d.describe(data);
                d.error(loc, format!("memory `{name}` has words of {width} bits: {text}"));
            }
            if !width.is_multiple_of(enable.width) {
                let text = d.describe(enable);
                d.error(loc, format!("memory `{name}`: {width} bits are not equal parts, one an enable: {text}"));
            }
            if d.owns(enable, loc) & d.owns(data, loc) {
                let port = WritePort { enable: enable.node, address: address.node, data: data.node };
                d.module.memories[mem as usize].writes.push(port);
            }
        });
    }

    fn change(&self, loc: Loc, f: impl FnOnce(&mut Draft, &mut Memory)) {
        let mem = self.index as usize;
        self.builder.draft(loc, |d| {
            let mut memory = d.module.memories[mem].clone();
            f(d, &mut memory);
            d.module.memories[mem] = memory;
        });
    }
}

impl Draft {
    fn check_address(&mut self, mem: u32, address: Signal, loc: Loc) {
        self.owns(address, loc);
        let memory = &self.module.memories[mem as usize];
        let (name, width) = (memory.name.clone(), memory.address_width);
        if address.width != width {
            let text = self.describe(address);
            self.error(loc, format!("memory `{name}` has addresses of {width} bits: {text}"));
        }
    }

    /// For every read port that promises no collision, the assertion that there is none.
    pub(crate) fn assert_no_collisions(&mut self) {
        for memory in self.module.memories.clone() {
            let never = memory.reads.iter().enumerate().filter_map(|(k, read)| match read.timing {
                ReadTiming::Sync { enable, collision: Collision::Never } => Some((k, read.address, enable)),
                _ => None,
            });
            for (k, address, enable) in never {
                for (j, write) in memory.writes.iter().enumerate() {
                    let name = format!("{}_read{k}_write{j}_apart", memory.name);
                    self.assert_apart(&name, address, enable, write, memory.loc);
                }
            }
        }
    }

    fn assert_apart(&mut self, name: &str, read: NodeId, enable: Option<NodeId>, write: &WritePort, loc: Loc) {
        let (read, write_address, write_enable) =
            (self.handle(read), self.handle(write.address), self.handle(write.enable));
        let writes = if write_enable.width == 1 { write_enable } else { self.node(Op::Any, 1, &[write_enable], loc) };
        let same = self.node(Op::Eq, 1, &[read, write_address], loc);
        let mut clash = self.node(Op::And, 1, &[same, writes], loc);
        if let Some(enable) = enable {
            let enable = self.handle(enable);
            clash = self.node(Op::And, 1, &[clash, enable], loc);
        }
        let apart = self.node(Op::Not, 1, &[clash], loc);
        let kind = crate::netlist::PropertyKind::Assert;
        self.module.properties.push(crate::netlist::Property { kind, name: name.to_string(), node: apart.node, loc });
    }
}
