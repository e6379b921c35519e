//! Waveforms: VCD or FST, by the file's extension, for GTKWave and Surfer.
//!
//! The hierarchy is that of the instances (`lane[3]` for copies), with all ports, named signals, registers, read
//! registers and probes, and `clk` and `rst` at the top. Cycle n lies from 10 n to 10 n + 10 ns and shows the values
//! that the clock edge at its end sees; the edge that ends it is at 10 n + 10.
//!
//! The file appears under its name when the waveform is finished; until then it has `.partial` after its name, and an
//! error removes that.

use crate::directory::Directory;
use crate::engine::Engine;
use fst_writer::{FstBodyWriter, FstInfo, FstScopeType, FstSignalId, FstSignalType, FstVarDirection, FstVarType};
use heddle_hdl::Bits;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use vcd::IdCode;

/// Why there is no waveform, or no whole one.
#[derive(Debug, thiserror::Error)]
pub enum WaveError {
    /// The name says no format.
    #[error("waveform {path}: the name must end in .vcd or .fst")]
    Extension {
        /// As it was given.
        path: PathBuf,
    },
    /// The system's words: no such folder, no space.
    #[error("cannot write waveform {path}: {why}")]
    Write {
        /// Of the waveform, or of the unfinished one beside it.
        path: PathBuf,
        /// In one line.
        why: String,
    },
}

/// A waveform being written.
pub struct Wave {
    path: PathBuf,
    partial: PathBuf,
    /// None when an error or `finish` has closed it.
    writer: Option<Writer>,
    /// Variables 0 and 1 are `clk` and `rst`.
    variables: Vec<Variable>,
    /// Where the last sampled cycle ends.
    end: u64,
}

struct Variable {
    source: Source,
    width: u32,
    /// What the file says now.
    last: Option<Bits>,
}

/// What a variable shows, by its number in the directory.
#[derive(Clone, Copy)]
enum Source {
    Clock,
    Reset,
    Output(usize),
    Signal(usize),
    Register(usize),
    ReadRegister(usize),
    Probe(usize),
}

impl Source {
    /// None: the engine does not keep it.
    fn read(self, engine: &dyn Engine, reset: bool) -> Option<Bits> {
        match self {
            Source::Clock => None,
            Source::Reset => Some(Bits::from(reset)),
            Source::Output(k) => Some(engine.peek(k)),
            Source::Signal(k) => engine.signal(k),
            Source::Register(k) => Some(engine.register(k)),
            Source::ReadRegister(k) => Some(engine.read_register(k)),
            Source::Probe(k) => Some(engine.probe(k)),
        }
    }
}

const CLOCK: usize = 0;
/// Time units in a cycle.
const PERIOD: u64 = 10;

impl Wave {
    /// Begins a waveform of everything in the directory.
    pub fn create(path: &Path, directory: &Directory) -> Result<Wave, WaveError> {
        let extension = path.extension().and_then(|e| e.to_str()).unwrap_or("").to_lowercase();
        if extension != "vcd" && extension != "fst" {
            return Err(WaveError::Extension { path: path.to_path_buf() });
        }
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        let mut wave =
            Wave { path: path.to_path_buf(), partial: partial.into(), writer: None, variables: Vec::new(), end: 0 };
        let header = if extension == "vcd" { Header::vcd(&wave.partial) } else { Header::fst(&wave.partial) };
        let written = header.and_then(|mut header| {
            wave.declare(&mut header, directory)?;
            header.finish()
        });
        match written {
            Ok(writer) => wave.writer = Some(writer),
            Err(why) => return Err(wave.abandon(why)),
        }
        Ok(wave)
    }

    /// Adds the engine's present cycle: its settled values, before the edge. A waveform may begin at any cycle; cycles
    /// only go up.
    pub fn sample(&mut self, engine: &dyn Engine, reset: bool) -> Result<(), WaveError> {
        let start = engine.cycle() * PERIOD;
        self.write(|writer, variables| {
            writer.time(start)?;
            writer.change(CLOCK, &Bits::from(true), 1)?;
            for (k, variable) in variables.iter_mut().enumerate() {
                let value = variable.source.read(engine, reset);
                if value.is_some() && value != variable.last {
                    writer.change(k, value.as_ref().unwrap_or(&Bits::ZERO), variable.width)?;
                    variable.last = value;
                }
            }
            writer.time(start + PERIOD / 2)?;
            writer.change(CLOCK, &Bits::ZERO, 1)
        })?;
        self.end = start + PERIOD;
        Ok(())
    }

    /// Completes the file and gives it its name.
    pub fn finish(mut self) -> Result<(), WaveError> {
        self.close()
    }

    fn close(&mut self) -> Result<(), WaveError> {
        if self.writer.is_none() {
            return Ok(());
        }
        let end = self.end;
        self.write(|writer, _| {
            writer.time(end)?;
            writer.change(CLOCK, &Bits::from(true), 1)
        })?;
        let finished = self.writer.take().map_or(Ok(()), Writer::finish);
        finished.and_then(|()| std::fs::rename(&self.partial, &self.path)).map_err(|why| self.abandon(why))
    }

    /// Lets `f` write. After an error the file is gone.
    fn write(&mut self, f: impl FnOnce(&mut Writer, &mut [Variable]) -> io::Result<()>) -> Result<(), WaveError> {
        let Some(writer) = &mut self.writer else {
            return Err(WaveError::Write { path: self.path.clone(), why: "an earlier error has ended it".into() });
        };
        f(writer, &mut self.variables).map_err(|why| self.abandon(why))
    }

    fn abandon(&mut self, why: io::Error) -> WaveError {
        self.writer = None;
        // Nothing more can be done if the unfinished file cannot be removed either; the first error counts.
        let _ = std::fs::remove_file(&self.partial);
        WaveError::Write { path: self.path.clone(), why: why.to_string() }
    }

    fn declare(&mut self, header: &mut Header, directory: &Directory) -> io::Result<()> {
        let top = &directory.scopes[0];
        header.scope(&top.name, &top.module.name)?;
        self.variable(header, Source::Clock, "clk", 1)?;
        self.variable(header, Source::Reset, "rst", 1)?;
        self.declare_scope(header, directory, 0)?;
        header.up()
    }

    /// The variables of a scope and the scopes in it; the recursion is as deep as the hierarchy.
    fn declare_scope(&mut self, header: &mut Header, directory: &Directory, scope: usize) -> io::Result<()> {
        let s = &directory.scopes[scope];
        let mut taken = HashSet::new();
        let outputs = if scope == 0 { 0..directory.outputs.len() } else { 0..0 };
        let sources = outputs
            .map(|k| (Source::Output(k), &directory.outputs[k]))
            .chain(s.registers.clone().map(|k| (Source::Register(k), &directory.registers[k])))
            .chain(s.signals.clone().map(|k| (Source::Signal(k), &directory.signals[k])))
            .chain(s.read_registers.clone().map(|k| (Source::ReadRegister(k), &directory.read_registers[k])))
            .chain(s.probes.clone().map(|k| (Source::Probe(k), &directory.probes[k])));
        for (source, entry) in sources {
            let name = if s.path.is_empty() { &entry.path } else { &entry.path[s.path.len() + 1..] };
            // A read register's `memory.read0` would look like a scope.
            let name = name.replace('.', "_");
            if taken.insert(name.clone()) {
                self.variable(header, source, &name, entry.width)?;
            }
        }
        for &child in s.children.iter().flatten() {
            header.scope(&directory.scopes[child].name, &directory.scopes[child].module.name)?;
            self.declare_scope(header, directory, child)?;
            header.up()?;
        }
        Ok(())
    }

    fn variable(&mut self, header: &mut Header, source: Source, name: &str, width: u32) -> io::Result<()> {
        self.variables.push(Variable { source, width, last: None });
        header.variable(name, width)
    }
}

impl Drop for Wave {
    /// A test that panics leaves a waveform of what came before.
    fn drop(&mut self) {
        // An error cannot be told from here; `finish` tells it.
        let _ = self.close();
    }
}

/// The part of a file that declares the variables. They are numbered in the order in which they are declared.
enum Header {
    Vcd(vcd::Writer<BufWriter<File>>, Vec<IdCode>),
    Fst(fst_writer::FstHeaderWriter<BufWriter<File>>, Vec<FstSignalId>),
}

impl Header {
    fn vcd(path: &Path) -> io::Result<Header> {
        let mut writer = vcd::Writer::new(BufWriter::new(File::create(path)?));
        writer.timescale(1, vcd::TimescaleUnit::NS)?;
        Ok(Header::Vcd(writer, Vec::new()))
    }

    fn fst(path: &Path) -> io::Result<Header> {
        let info = FstInfo {
            start_time: 0,
            timescale_exponent: -9,
            version: "heddle".into(),
            date: String::new(),
            file_type: fst_writer::FstFileType::Verilog,
        };
        let writer = fst_writer::open_fst(path, &info).map_err(io::Error::other)?;
        Ok(Header::Fst(writer, Vec::new()))
    }

    fn scope(&mut self, name: &str, module: &str) -> io::Result<()> {
        match self {
            Header::Vcd(writer, _) => writer.add_module(name),
            Header::Fst(writer, _) => writer.scope(name, module, FstScopeType::Module).map_err(io::Error::other),
        }
    }

    fn up(&mut self) -> io::Result<()> {
        match self {
            Header::Vcd(writer, _) => writer.upscope(),
            Header::Fst(writer, _) => writer.up_scope().map_err(io::Error::other),
        }
    }

    fn variable(&mut self, name: &str, width: u32) -> io::Result<()> {
        match self {
            Header::Vcd(writer, ids) => ids.push(writer.add_wire(width, name)?),
            Header::Fst(writer, ids) => {
                let (shape, direction) = (FstSignalType::bit_vec(width), FstVarDirection::Implicit);
                ids.push(writer.var(name, shape, FstVarType::Wire, direction, None).map_err(io::Error::other)?);
            }
        }
        Ok(())
    }

    fn finish(self) -> io::Result<Writer> {
        match self {
            Header::Vcd(mut writer, ids) => {
                writer.enddefinitions()?;
                Ok(Writer::Vcd(writer, ids))
            }
            Header::Fst(writer, ids) => Ok(Writer::Fst(Box::new(writer.finish().map_err(io::Error::other)?), ids)),
        }
    }
}

/// The part of a file that has the values.
enum Writer {
    Vcd(vcd::Writer<BufWriter<File>>, Vec<IdCode>),
    Fst(Box<FstBodyWriter<BufWriter<File>>>, Vec<FstSignalId>),
}

/// FST values are written out when this many bytes have gathered.
const FST_BLOCK: usize = 64 << 20;

impl Writer {
    fn time(&mut self, time: u64) -> io::Result<()> {
        match self {
            Writer::Vcd(writer, _) => writer.timestamp(time),
            Writer::Fst(writer, _) => {
                if writer.size() > FST_BLOCK {
                    writer.flush().map_err(io::Error::other)?;
                }
                writer.time_change(time).map_err(io::Error::other)
            }
        }
    }

    fn change(&mut self, variable: usize, value: &Bits, width: u32) -> io::Result<()> {
        let bits = (0..width).rev().map(|k| value.bit(k));
        match self {
            Writer::Vcd(writer, ids) if width == 1 => writer.change_scalar(ids[variable], value.bit(0)),
            Writer::Vcd(writer, ids) => writer.change_vector(ids[variable], bits.map(vcd::Value::from)),
            Writer::Fst(writer, ids) => {
                let text: Vec<u8> = bits.map(|b| b'0' + b as u8).collect();
                writer.signal_change(ids[variable], &text).map_err(io::Error::other)
            }
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Writer::Vcd(mut writer, _) => writer.flush(),
            Writer::Fst(writer, _) => writer.finish().map_err(io::Error::other)?.flush(),
        }
    }
}

#[cfg(test)]
mod tests;
