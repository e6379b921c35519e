//! Waveforms: VCD or FST, by the file's extension, for GTKWave and Surfer.
//!
//! The hierarchy is that of the instances (`lane[3]` for copies), with all ports, named signals, registers, read
//! registers and probes, and `clk` and `rst` at the top. Cycle n lies from 10 n to 10 n + 10 ns and shows the values
//! that the clock edge at its end sees; the edge that ends it is at 10 n + 10.
//!
//! A cycle's values are compared with the last cycle's (`image.rs`); what changed goes to a thread that writes it
//! (`record.rs`), as text (`vcd.rs`) or compressed (`fst.rs`). Variables that are one value (`crate::origin`) are written
//! once, under all their names.
//!
//! The file appears under its name when the waveform is finished; until then it has `.partial` after its name, and an
//! error removes that.

mod format;
mod fst;
mod image;
mod record;
mod vcd;

use crate::directory::Directory;
use crate::engine::{Engine, Item};
use crate::origin::{Origin, Origins};
use format::Format;
use image::Image;
use record::Recorder;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};

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
    stage: Stage,
    /// What the variables show: those from number 2 on, after `clk` and `rst`.
    items: Vec<Item>,
    /// Cycle 0 is here: later, if the engine has been started again.
    origin: u64,
    /// Where the last sampled cycle ends.
    end: u64,
}

/// How far it is.
enum Stage {
    /// The variables are declared, and no cycle is sampled.
    Declared(File),
    Recording(Image, Recorder),
    /// By an error, or by `finish`.
    Closed,
}

/// A file after its declarations.
enum File {
    Vcd(vcd::Body),
    Fst(fst::Body),
}

/// The first variables.
const CLOCK: u32 = 0;
const RESET: u32 = 1;
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
        let (path, partial) = (path.to_path_buf(), PathBuf::from(partial));
        let mut wave = Wave { path, partial, stage: Stage::Closed, items: Vec::new(), origin: 0, end: 0 };
        let header = match extension.as_str() {
            "vcd" => vcd::Header::create(&wave.partial).map(Header::Vcd),
            _ => fst::Header::create(&wave.partial).map(Header::Fst),
        };
        match header.and_then(|header| Declaration::new(header, directory).all()) {
            Ok((items, file)) => (wave.items, wave.stage) = (items, Stage::Declared(file)),
            Err(why) => return Err(wave.abandon(why)),
        }
        Ok(wave)
    }

    /// Adds the engine's present cycle: its settled values, before the edge. A waveform may begin at any cycle; cycles
    /// only go up, unless the engine is started again, and then the waveform goes on.
    pub fn sample(&mut self, engine: &dyn Engine, reset: bool) -> Result<(), WaveError> {
        let cycle = engine.cycle() * PERIOD;
        if self.origin + cycle < self.end {
            self.origin = self.end - cycle;
        }
        let start = self.origin + cycle;
        self.end = start + PERIOD;
        match &mut self.stage {
            Stage::Recording(image, recorder) => {
                image.changes(engine, |limb, value| recorder.limb(limb, value));
                if recorder.cycle(start, reset) {
                    return Ok(());
                }
                self.close()
            }
            Stage::Declared(_) => self.begin(engine, start, reset).map_err(|why| self.abandon(why)),
            Stage::Closed => {
                Err(WaveError::Write { path: self.path.clone(), why: "an earlier error has ended it".into() })
            }
        }
    }

    /// The first sample.
    fn begin(&mut self, engine: &dyn Engine, start: u64, reset: bool) -> io::Result<()> {
        if let Stage::Declared(file) = std::mem::replace(&mut self.stage, Stage::Closed) {
            let mut image = Image::new(engine, &self.items);
            let own = [Vec::new(), Vec::new()];
            let pieces: Vec<_> = own.into_iter().chain(image.pieces.iter().cloned()).collect();
            let mut recorder = match file {
                File::Vcd(body) => Recorder::start(body, &pieces, image.limbs())?,
                File::Fst(body) => Recorder::start(body, &pieces, image.limbs())?,
            };
            image.all(engine, |limb, value| recorder.limb(limb, value));
            recorder.cycle(start, reset);
            self.stage = Stage::Recording(image, recorder);
        }
        Ok(())
    }

    /// Completes the file and gives it its name.
    pub fn finish(mut self) -> Result<(), WaveError> {
        self.close()
    }

    fn close(&mut self) -> Result<(), WaveError> {
        let finished = match std::mem::replace(&mut self.stage, Stage::Closed) {
            Stage::Closed => return Ok(()),
            Stage::Declared(File::Vcd(body)) => nothing(body),
            Stage::Declared(File::Fst(body)) => nothing(body),
            Stage::Recording(_, recorder) => recorder.finish(),
        };
        finished.and_then(|()| std::fs::rename(&self.partial, &self.path)).map_err(|why| self.abandon(why))
    }

    /// After an error the file is gone.
    fn abandon(&mut self, why: io::Error) -> WaveError {
        self.stage = Stage::Closed;
        // Nothing more can be done if the unfinished file cannot be removed either; the first error counts.
        let _ = std::fs::remove_file(&self.partial);
        WaveError::Write { path: self.path.clone(), why: why.to_string() }
    }
}

impl Drop for Wave {
    /// A test that panics leaves a waveform of what came before.
    fn drop(&mut self) {
        // An error cannot be told from here; `finish` tells it.
        let _ = self.close();
    }
}

/// A file without any cycle.
fn nothing(mut body: impl Format) -> io::Result<()> {
    body.time(0)?;
    body.narrow(CLOCK, 1)?;
    body.finish()
}

/// Declares the variables, scope by scope.
struct Declaration<'a> {
    header: Header,
    directory: &'a Directory,
    origins: Origins<'a>,
    /// The variables that have been declared.
    known: HashMap<Origin, u32>,
    items: Vec<Item>,
}

impl Declaration<'_> {
    fn new(header: Header, directory: &Directory) -> Declaration<'_> {
        let origins = Origins::new(directory);
        Declaration { header, directory, origins, known: HashMap::new(), items: Vec::new() }
    }

    fn all(mut self) -> io::Result<(Vec<Item>, File)> {
        let top = &self.directory.scopes[0];
        self.header.scope(&top.name, &top.module.name)?;
        self.header.variable("clk", 1, None)?;
        self.header.variable("rst", 1, None)?;
        self.scope(0)?;
        self.header.up()?;
        Ok((self.items, self.header.finish()?))
    }

    /// The variables of a scope and the scopes in it; the recursion is as deep as the hierarchy.
    fn scope(&mut self, scope: usize) -> io::Result<()> {
        let directory = self.directory;
        let s = &directory.scopes[scope];
        let mut taken = HashSet::new();
        let outputs = if scope == 0 { 0..directory.outputs.len() } else { 0..0 };
        let items = outputs
            .map(|k| (Item::Output(k), &directory.outputs[k]))
            .chain(s.registers.clone().map(|k| (Item::Register(k), &directory.registers[k])))
            .chain(s.signals.clone().map(|k| (Item::Signal(k), &directory.signals[k])))
            .chain(s.read_registers.clone().map(|k| (Item::ReadRegister(k), &directory.read_registers[k])))
            .chain(s.probes.clone().map(|k| (Item::Probe(k), &directory.probes[k])));
        for (item, entry) in items {
            let name = if s.path.is_empty() { &entry.path } else { &entry.path[s.path.len() + 1..] };
            // A read register's `memory.read0` would look like a scope.
            let name = name.replace('.', "_");
            if taken.insert(name.clone()) {
                self.variable(item, &name, entry.width)?;
            }
        }
        for &child in s.children.iter().flatten() {
            self.header.scope(&directory.scopes[child].name, &directory.scopes[child].module.name)?;
            self.scope(child)?;
            self.header.up()?;
        }
        Ok(())
    }

    fn variable(&mut self, item: Item, name: &str, width: u32) -> io::Result<()> {
        let number = RESET + 1 + self.items.len() as u32;
        let known = *self.known.entry(self.origins.of(item)).or_insert(number);
        if known == number {
            self.items.push(item);
        }
        self.header.variable(name, width, (known < number).then_some(known))
    }
}

/// The part of a file that declares the variables.
enum Header {
    Vcd(vcd::Header),
    Fst(fst::Header),
}

impl Header {
    fn scope(&mut self, name: &str, module: &str) -> io::Result<()> {
        match self {
            Header::Vcd(header) => header.scope(name)?,
            Header::Fst(header) => header.scope(name, module),
        }
        Ok(())
    }

    fn up(&mut self) -> io::Result<()> {
        match self {
            Header::Vcd(header) => header.up()?,
            Header::Fst(header) => header.up(),
        }
        Ok(())
    }

    /// A variable of its own, or another name of the one with a number.
    fn variable(&mut self, name: &str, width: u32, alias: Option<u32>) -> io::Result<()> {
        match self {
            Header::Vcd(header) => header.variable(name, width, alias)?,
            Header::Fst(header) => header.variable(name, width, alias),
        }
        Ok(())
    }

    fn finish(self) -> io::Result<File> {
        Ok(match self {
            Header::Vcd(header) => File::Vcd(header.finish()?),
            Header::Fst(header) => File::Fst(header.finish()?),
        })
    }
}

#[cfg(test)]
mod tests;
