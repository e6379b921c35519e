//! VCD: text, which every tool reads.

use super::format::Format;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use vcd::{IdCode, VarType};

/// The part of a file that declares the variables.
pub struct Header {
    file: File,
    text: vcd::Writer<Vec<u8>>,
    variables: Vec<Variable>,
}

struct Variable {
    width: u32,
    /// As it ends a line, with the newline.
    id: Vec<u8>,
}

/// The part that has the values.
pub struct Body {
    file: File,
    text: Vec<u8>,
    variables: Vec<Variable>,
}

/// Text is written out when so many bytes have gathered.
const BLOCK: usize = 1 << 18;

impl Header {
    pub fn create(path: &Path) -> io::Result<Header> {
        let mut text = vcd::Writer::new(Vec::new());
        text.timescale(1, vcd::TimescaleUnit::NS)?;
        Ok(Header { file: File::create(path)?, text, variables: Vec::new() })
    }

    pub fn scope(&mut self, name: &str) -> io::Result<()> {
        self.text.add_module(name)
    }

    pub fn up(&mut self) -> io::Result<()> {
        self.text.upscope()
    }

    /// A variable of its own, or another name of one.
    pub fn variable(&mut self, name: &str, width: u32, alias: Option<u32>) -> io::Result<()> {
        let number = alias.unwrap_or(self.variables.len() as u32);
        let id = IdCode::from(number);
        if alias.is_none() {
            self.variables.push(Variable { width, id: format!("{id}\n").into_bytes() });
        }
        self.text.var_def(VarType::Wire, width, id, name, None)
    }

    pub fn finish(mut self) -> io::Result<Body> {
        self.text.enddefinitions()?;
        let text = std::mem::take(self.text.writer());
        Ok(Body { file: self.file, text, variables: self.variables })
    }
}

impl Body {
    fn end(&mut self, variable: u32) {
        self.text.extend_from_slice(&self.variables[variable as usize].id);
    }
}

impl Format for Body {
    fn time(&mut self, time: u64) -> io::Result<()> {
        if self.text.len() >= BLOCK {
            self.file.write_all(&self.text)?;
            self.text.clear();
        }
        writeln!(self.text, "#{time}")
    }

    fn narrow(&mut self, variable: u32, value: u64) -> io::Result<()> {
        match self.variables[variable as usize].width {
            1 => self.text.push(b'0' + value as u8),
            width => {
                self.text.push(b'b');
                digits(&mut self.text, value, width);
                self.text.push(b' ');
            }
        }
        self.end(variable);
        Ok(())
    }

    fn wide(&mut self, variable: u32, limbs: &[u64]) -> io::Result<()> {
        let width = self.variables[variable as usize].width;
        self.text.push(b'b');
        for (k, &limb) in limbs.iter().enumerate().rev() {
            digits(&mut self.text, limb, (width - 64 * k as u32).min(64));
        }
        self.text.push(b' ');
        self.end(variable);
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.file.write_all(&self.text)
    }
}

/// Appends the lowest `width` bits, 1 to 64 of them, as digits, the highest first.
fn digits(text: &mut Vec<u8>, value: u64, width: u32) {
    let mut all = [0; 64];
    let value = value << (64 - width);
    for (digits, byte) in all.chunks_exact_mut(8).zip(value.to_be_bytes()).take(width.div_ceil(8) as usize) {
        // A copy of the byte for each digit, of which it keeps its bit; 127 more moves that into the highest bit.
        let copies = u64::from(byte) * 0x0101_0101_0101_0101;
        let bits = copies & 0x0102_0408_1020_4080;
        let ones = (bits + 0x7f7f_7f7f_7f7f_7f7f) >> 7 & 0x0101_0101_0101_0101;
        digits.copy_from_slice(&(ones | 0x3030_3030_3030_3030).to_le_bytes());
    }
    // All digits and then fewer: a copy of a length that is known is faster.
    text.extend_from_slice(&all);
    text.truncate(text.len() - 64 + width as usize);
}
