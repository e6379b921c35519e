//! FST: GTKWave's compressed format, as its manual's appendix and its readers have it.
//!
//! A file is a list of sections: one with facts, which is completed at the end; the hierarchy; the widths; and then
//! blocks of value changes. A block has the values before it, a chain of changes for each variable, and its times. A
//! chain is written as soon as its values are known, so that a block is only compressed, and those that are equal in a
//! block are stored once.

use super::format::Format;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

/// Kinds of sections.
const FACTS: u8 = 0;
const WIDTHS: u8 = 3;
const HIERARCHY: u8 = 6;
const CHANGES: u8 = 8;
/// What there is in the hierarchy.
const SCOPE: u8 = 254;
const UP: u8 = 255;
const MODULE: u8 = 0;
const WIRE: u8 = 16;
/// Chains are compressed by LZ4.
const LZ4: u8 = b'4';
/// Of zlib, for what is small: quick.
const ZLIB: u8 = 3;
/// Shorter chains are not compressed.
const SHORT: usize = 32;
/// A block is written when its chains have this many bytes: few blocks are quick to read, and memory is bounded.
const BLOCK: usize = 32 << 20;

/// The part of a file that declares the variables.
pub struct Header {
    file: File,
    hierarchy: Vec<u8>,
    widths: Vec<u32>,
    scopes: u64,
    names: u64,
}

/// The part that has the values.
pub struct Body {
    file: File,
    scopes: u64,
    names: u64,
    blocks: u64,
    variables: Vec<Variable>,
    /// The limbs of all variables.
    now: Vec<u64>,
    /// All values, a digit a bit, at the block's first time.
    frame: Vec<u8>,
    /// Bytes in all chains, and with how many of them a block is written.
    size: usize,
    pub(super) most: usize,
    /// The first time in the file; the one that the last block ended with; the present one.
    start: Option<u64>,
    since: u64,
    time: u64,
    /// The times of this block, each as what it is more than the one before; and the number of the present one.
    times: Vec<u8>,
    step: u64,
}

struct Variable {
    width: u32,
    /// Of its first limb.
    at: u32,
    /// Whether it has had a value.
    known: bool,
    /// The step of its last change in this block.
    changed: u64,
    /// For each change, how many steps it is after the one before, and the value.
    chain: Vec<u8>,
}

impl Header {
    pub fn create(path: &Path) -> io::Result<Header> {
        Ok(Header { file: File::create(path)?, hierarchy: Vec::new(), widths: Vec::new(), scopes: 0, names: 0 })
    }

    pub fn scope(&mut self, name: &str, module: &str) {
        self.scopes += 1;
        self.hierarchy.extend([SCOPE, MODULE]);
        text(&mut self.hierarchy, name);
        text(&mut self.hierarchy, module);
    }

    pub fn up(&mut self) {
        self.hierarchy.push(UP);
    }

    /// A variable of its own, or another name of one.
    pub fn variable(&mut self, name: &str, width: u32, alias: Option<u32>) {
        self.names += 1;
        self.hierarchy.extend([WIRE, 0]);
        text(&mut self.hierarchy, name);
        varint(&mut self.hierarchy, u64::from(width));
        varint(&mut self.hierarchy, alias.map_or(0, |number| u64::from(number) + 1));
        if alias.is_none() {
            self.widths.push(width);
        }
    }

    pub fn finish(self) -> io::Result<Body> {
        let mut limbs = 0;
        let variable = |&width: &u32| {
            limbs += width.div_ceil(64);
            Variable { width, at: limbs - width.div_ceil(64), known: false, changed: 0, chain: Vec::new() }
        };
        let variables: Vec<Variable> = self.widths.iter().map(variable).collect();
        let mut body = Body {
            file: self.file,
            scopes: self.scopes,
            names: self.names,
            blocks: 0,
            variables,
            now: vec![0; limbs as usize],
            frame: Vec::new(),
            size: 0,
            most: BLOCK,
            start: None,
            since: 0,
            time: 0,
            times: Vec::new(),
            step: 0,
        };
        body.facts()?;
        let mut hierarchy = (self.hierarchy.len() as u64).to_be_bytes().to_vec();
        hierarchy.extend(lz4_flex::compress(&self.hierarchy));
        body.section(HIERARCHY, &[&hierarchy])?;
        let mut widths = Vec::new();
        self.widths.iter().for_each(|&width| varint(&mut widths, u64::from(width)));
        let lengths = [widths.len() as u64, self.widths.len() as u64].map(u64::to_be_bytes);
        body.section(WIDTHS, &[&lengths[0], &lengths[1], &widths])?;
        Ok(body)
    }
}

impl Body {
    /// A variable has a new value, which `put` adds to its chain: it is given the width, and how many steps it is since
    /// the last change.
    fn change(&mut self, variable: u32, put: impl FnOnce(&mut Vec<u8>, u32, u64)) {
        let variable = &mut self.variables[variable as usize];
        variable.known = true;
        if self.times.is_empty() {
            // At the first time of all: it will be in the frame.
            return;
        }
        let steps = self.step - std::mem::replace(&mut variable.changed, self.step);
        let before = variable.chain.len();
        put(&mut variable.chain, variable.width, steps);
        self.size += variable.chain.len() - before;
    }

    /// Keeps the present values as those before the changes of a block.
    fn begin(&mut self) {
        self.frame.clear();
        for variable in &self.variables {
            let limb = |bit: u32| self.now[(variable.at + bit / 64) as usize];
            let digit = |bit: u32| if variable.known { b'0' + (limb(bit) >> (bit % 64) & 1) as u8 } else { b'x' };
            self.frame.extend((0..variable.width).rev().map(digit));
        }
    }

    /// Writes a block and begins the next one.
    fn block(&mut self) -> io::Result<()> {
        if self.times.is_empty() {
            self.begin();
        }
        let count = self.variables.len() as u64;
        let mut head = Vec::new();
        [self.since, self.time, self.size as u64].iter().for_each(|n| head.extend(n.to_be_bytes()));
        let frame = zlib(&self.frame);
        varint(&mut head, self.frame.len() as u64);
        varint(&mut head, frame.len() as u64);
        varint(&mut head, count);
        head.extend(frame);
        varint(&mut head, count);

        let (changes, places) = chains(&self.variables);
        let times = zlib(&self.times);
        let steps = if self.times.is_empty() { 0 } else { self.step + 1 };
        let lengths = [self.times.len() as u64, times.len() as u64, steps].map(u64::to_be_bytes);
        let parts = [&head, &changes, &places, &(places.len() as u64).to_be_bytes()[..], &times];
        self.section(CHANGES, &[&parts[..], &lengths.each_ref().map(|l| &l[..])[..]].concat())?;

        self.blocks += 1;
        for variable in &mut self.variables {
            variable.chain.clear();
            variable.changed = 0;
        }
        (self.size, self.step, self.since) = (0, 0, self.time);
        self.times.clear();
        Ok(())
    }

    fn section(&mut self, kind: u8, parts: &[&[u8]]) -> io::Result<()> {
        let length = 8 + parts.iter().map(|part| part.len() as u64).sum::<u64>();
        self.file.write_all(&[kind])?;
        self.file.write_all(&length.to_be_bytes())?;
        parts.iter().try_for_each(|part| self.file.write_all(part))
    }

    /// The first section, which is as long at the end as it is at the start.
    fn facts(&mut self) -> io::Result<()> {
        let mut facts = Vec::new();
        let mut numbers = |numbers: &[u64]| numbers.iter().for_each(|n| facts.extend(n.to_be_bytes()));
        numbers(&[self.start.unwrap_or(0), self.time]);
        // By this number, readers see in which order this machine has a number's bytes; and no word of memory needed.
        numbers(&[std::f64::consts::E.to_bits().swap_bytes(), 0]);
        numbers(&[self.scopes, self.names, self.variables.len() as u64, self.blocks]);
        let nanoseconds = -9_i8;
        facts.extend(nanoseconds.to_be_bytes());
        let (mut version, date, verilog, zero) = ([0; 128], [0; 119], 0, [0; 8]);
        version[..6].copy_from_slice(b"heddle");
        facts.extend(version);
        facts.extend(date);
        facts.push(verilog);
        facts.extend(zero);
        self.section(FACTS, &[&facts])
    }
}

impl Format for Body {
    fn time(&mut self, time: u64) -> io::Result<()> {
        if self.start.is_none() {
            (self.start, self.since, self.time) = (Some(time), time, time);
        }
        if time == self.time {
            return Ok(());
        }
        if self.size >= self.most {
            self.block()?;
        }
        if self.times.is_empty() {
            self.begin();
            varint(&mut self.times, time);
        } else {
            varint(&mut self.times, time - self.time);
            self.step += 1;
        }
        self.time = time;
        Ok(())
    }

    fn narrow(&mut self, variable: u32, value: u64) -> io::Result<()> {
        self.now[self.variables[variable as usize].at as usize] = value;
        self.change(variable, |chain, width, steps| {
            if width == 1 {
                return varint(chain, steps << 2 | value << 1);
            }
            varint(chain, steps << 1);
            // All bytes and then fewer: a copy of a length that is known is faster.
            chain.extend_from_slice(&(value << (64 - width)).to_be_bytes());
            chain.truncate(chain.len() - 8 + width.div_ceil(8) as usize);
        });
        Ok(())
    }

    fn wide(&mut self, variable: u32, limbs: &[u64]) -> io::Result<()> {
        let at = self.variables[variable as usize].at as usize;
        self.now[at..at + limbs.len()].copy_from_slice(limbs);
        self.change(variable, |chain, width, steps| {
            varint(chain, steps << 1);
            wide(chain, limbs, width);
        });
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.block()?;
        self.file.seek(SeekFrom::Start(0))?;
        self.facts()
    }
}

/// All chains that there are, each with its length if it is compressed; and where each variable's is: after how many
/// variables without one, so many bytes after the last one, or that of which variable.
fn chains(variables: &[Variable]) -> (Vec<u8>, Vec<u8>) {
    let (mut changes, mut places) = (vec![LZ4], Vec::new());
    let (mut without, mut last, mut last_alias) = (0, 0, None);
    let mut known: HashMap<(u32, &[u8]), usize> = HashMap::new();
    for (number, variable) in variables.iter().enumerate() {
        let chain = variable.chain.as_slice();
        if chain.is_empty() {
            without += 1;
            continue;
        }
        if without > 0 {
            varint(&mut places, std::mem::take(&mut without) << 1);
        }
        let first = *known.entry((variable.width, chain)).or_insert(number);
        if first != number {
            let alias = if last_alias == Some(first) { 0 } else { -(first as i64 + 1) };
            signed(&mut places, alias << 1 | 1);
            last_alias = Some(first);
            continue;
        }
        signed(&mut places, ((changes.len() - last) as i64) << 1 | 1);
        last = changes.len();
        let compressed = if chain.len() < SHORT { Vec::new() } else { lz4_flex::compress(chain) };
        if compressed.is_empty() || compressed.len() >= chain.len() {
            varint(&mut changes, 0);
            changes.extend_from_slice(chain);
        } else {
            varint(&mut changes, chain.len() as u64);
            changes.extend(compressed);
        }
    }
    if without > 0 {
        varint(&mut places, without << 1);
    }
    (changes, places)
}

/// The bits of a value, the highest first, in bytes of which the last is filled with zeros.
fn wide(bytes: &mut Vec<u8>, limbs: &[u64], width: u32) {
    let fill = width.next_multiple_of(8) - width;
    for k in (0..limbs.len()).rev() {
        let below = if k > 0 && fill > 0 { limbs[k - 1] >> (64 - fill) } else { 0 };
        let part = (limbs[k] << fill | below).to_be_bytes();
        let count = (width.div_ceil(8) as usize - 8 * k).min(8);
        bytes.extend_from_slice(&part[8 - count..]);
    }
}

/// As zlib has it, or as it is if that is shorter.
fn zlib(bytes: &[u8]) -> Vec<u8> {
    let compressed = miniz_oxide::deflate::compress_to_vec_zlib(bytes, ZLIB);
    if compressed.len() < bytes.len() { compressed } else { bytes.to_vec() }
}

/// A text and its end.
fn text(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
}

/// A number in groups of 7 bits, the lowest first.
fn varint(bytes: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// The same of a number with a sign, which is the highest bit of the last group.
fn signed(bytes: &mut Vec<u8>, mut number: i64) {
    while !(-64..=63).contains(&number) {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8 & 0x7f);
}
