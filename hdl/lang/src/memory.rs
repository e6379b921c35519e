//! Memories of words of any bundle.

use crate::bits::Bits;
use crate::builder::{Builder, Draft, with_draft};
use crate::bundle::{Bundle, Signals, Width, unpack, width_of};
use crate::netlist::{Collision, Loc, Memory, MemoryStyle, NodeId, Op, ReadPort, ReadTiming, WritePort};
use crate::signal::Signal;
use std::panic::Location;

/// A memory of `2^address_width` words of the shape `I`. An address has exactly `address_width` bits, so none is out of
/// range.
#[derive(Clone, Copy)]
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
            if width == 0 {
                d.error(loc, format!("memory `{name}`: a word has at least 1 bit"));
            }
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
        self.memory(loc, |d, m| {
            let memory = &mut d.module.memories[m];
            let (name, width) = (memory.name.clone(), memory.width);
            let size = 1u64.checked_shl(memory.address_width).unwrap_or(u64::MAX);
            let too_wide = words.iter().position(|w| w.bit_length() > width);
            let count = words.len();
            let word = too_wide.map(|k| words[k].clone()).unwrap_or_default();
            memory.init = Some(words);
            if count as u64 > size {
                d.error(loc, format!("memory `{name}` has {size} words, {count} are given"));
            }
            if let Some(k) = too_wide {
                d.error(loc, format!("memory `{name}`: word {k}, {word}, needs more than {width} bits"));
            }
        });
        self
    }

    /// Asks the synthesis tool for block RAM or distributed RAM.
    #[track_caller]
    pub fn style(self, style: MemoryStyle) -> Self {
        self.memory(Location::caller(), |d, m| d.module.memories[m].style = style);
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
        self.read_port(address, ReadTiming::Sync { enable: None, collision, or_zero: false }, Location::caller())
    }

    /// Like [`Mem::read_sync`], but the data stays where `enable` is 0.
    #[track_caller]
    pub fn read_sync_if(&self, enable: Signal, address: Signal, collision: Collision) -> I::With<Signal> {
        self.read_enabled(enable, address, collision, false, Location::caller())
    }

    /// The word that `address` selects at a clock edge where `enable` is 1, else 0; one cycle later. Block RAM has a
    /// reset of its output that does this for nothing.
    #[track_caller]
    pub fn read_sync_or_zero(&self, enable: Signal, address: Signal, collision: Collision) -> I::With<Signal> {
        self.read_enabled(enable, address, collision, true, Location::caller())
    }

    #[track_caller]
    fn read_enabled(
        &self,
        enable: Signal,
        address: Signal,
        collision: Collision,
        or_zero: bool,
        loc: Loc,
    ) -> I::With<Signal> {
        self.memory(loc, |d, _| d.owns(enable, loc) && d.is_bit("the enable of a read", enable, loc));
        self.read_port(address, ReadTiming::Sync { enable: Some(enable.node), collision, or_zero }, loc)
    }

    #[track_caller]
    fn read_port(&self, address: Signal, timing: ReadTiming, loc: Loc) -> I::With<Signal> {
        let packed = self.memory(loc, |d, m| {
            if !d.check_address(m, address, loc) {
                return None;
            }
            let (mem, memory) = (m as u32, &d.module.memories[m]);
            let (port, width) = (memory.reads.len() as u32, memory.width);
            let out = d.node(Op::MemRead { mem, port }, width, &[], loc);
            d.module.memories[m].reads.push(ReadPort { address: address.node, out: out.node, timing });
            Some(out)
        });
        let width = width_of(&self.shape);
        unpack(self.shape.clone(), packed.flatten().unwrap_or_else(|| with_draft(|d| d.poison(width, loc))))
    }

    /// Writes the whole word where `enable` (1 bit) is 1.
    #[track_caller]
    pub fn write(&self, enable: Signal, address: Signal, data: I::With<Signal>) {
        let loc = Location::caller();
        if self.memory(loc, |d, _| d.owns(enable, loc) && d.is_bit("the enable of a whole word", enable, loc))
            == Some(true)
        {
            self.write_port(enable, address, data, loc);
        }
    }

    /// Writes those of the word's equal parts whose bit in `enables` is 1: 4 bits for the bytes of a 32-bit word.
    #[track_caller]
    pub fn write_granules(&self, enables: Signal, address: Signal, data: I::With<Signal>) {
        self.write_port(enables, address, data, Location::caller());
    }

    #[track_caller]
    fn write_port(&self, enable: Signal, address: Signal, data: I::With<Signal>, loc: Loc) {
        let mut fields = Vec::new();
        self.shape.visit("word", &mut |n, w| fields.push((n.to_string(), *w)));
        let (leaves, packed) = (data.leaves(), data.pack());
        self.memory(loc, |d, m| {
            let (name, width) = (d.module.memories[m].name.clone(), d.module.memories[m].width);
            let mut sound = d.check_address(m, address, loc);
            sound &= d.same_count("write", fields.len(), leaves.len(), loc);
            for ((field, width), &leaf) in fields.iter().zip(&leaves) {
                if leaf.width != *width {
                    let text = d.describe(leaf);
                    d.error_about(&[leaf], loc, format!("memory `{name}`: {field} is {width} bits, but {text}"));
                    sound = false;
                }
            }
            if !width.is_multiple_of(enable.width) {
                let text = d.describe(enable);
                let parts = format!("{width} bits do not divide into equal parts, one an enable");
                d.error_about(&[enable], loc, format!("memory `{name}`: {parts}: {text}"));
            }
            if sound & d.owns(enable, loc) & d.owns(packed, loc) {
                let port = WritePort { enable: enable.node, address: address.node, data: packed.node };
                d.module.memories[m].writes.push(port);
            }
        });
    }

    /// Runs `f` on the memory's draft and place; None, with an error, where its builder is not the one in use.
    fn memory<R>(&self, loc: Loc, f: impl FnOnce(&mut Draft, usize) -> R) -> Option<R> {
        let index = self.index as usize;
        self.builder.draft(loc, |d| self.builder.is_of(d).then(|| f(d, index)))
    }
}

impl Draft {
    /// Records an error unless the address is of this module and as wide as the memory's addresses.
    fn check_address(&mut self, mem: usize, address: Signal, loc: Loc) -> bool {
        let (name, width) = (self.module.memories[mem].name.clone(), self.module.memories[mem].address_width);
        if address.width != width {
            let text = self.describe(address);
            self.error_about(&[address], loc, format!("memory `{name}` has addresses of {width} bits, but {text}"));
        }
        self.owns(address, loc) && address.width == width
    }

    /// For every read port that promises no collision, the assertion that there is none.
    pub(crate) fn assert_no_collisions(&mut self) {
        let mut pairs = Vec::new();
        for memory in &self.module.memories {
            for (k, read) in memory.reads.iter().enumerate() {
                let ReadTiming::Sync { enable, collision: Collision::Never, .. } = read.timing else { continue };
                for (j, write) in memory.writes.iter().enumerate() {
                    let name = format!("{}_read{k}_write{j}_apart", memory.name);
                    pairs.push((name, read.address, enable, write.clone(), memory.loc));
                }
            }
        }
        for (name, address, enable, write, loc) in pairs {
            self.assert_apart(&name, address, enable, &write, loc);
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
