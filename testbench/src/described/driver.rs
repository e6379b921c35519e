//! The driver that a description is: it fills memory, launches, and compares, on any device.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use thiserror::Error;

use super::elements::{Contents, Type, written};
use super::picture::Drawing;
use super::reference;
use super::resolve::GridSpec;
use crate::image::Image;
use crate::kernels::{Device, KernelError, Output};

/// A driver from a description, for one program. Its symbols are there and its files are read.
#[derive(Clone, Debug)]
pub struct Driver {
    pub(super) name: String,
    pub(super) grid: GridSpec,
    pub(super) arguments: BTreeMap<String, Vec<u8>>,
    pub(super) fills: Vec<(String, Contents)>,
    pub(super) reference: Option<String>,
    /// Compared with what the reference leaves.
    pub(super) computed: Vec<View>,
    /// Compared with these bytes.
    pub(super) known: Vec<(View, Vec<u8>)>,
    pub(super) prints: Vec<(String, View)>,
    pub(super) saves: Vec<(PathBuf, View)>,
    pub(super) pictures: Vec<(View, Drawing, Option<PathBuf>)>,
    pub(super) fingerprint: String,
    pub(super) interrupted: Arc<AtomicBool>,
}

/// Elements of a buffer that follow each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    pub name: String,
    pub element: Type,
    pub address: u32,
    /// The number of the first.
    pub first: usize,
    pub length: usize,
}

/// What a run leaves to be seen.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// What is to be printed.
    pub shown: Vec<Shown>,
    /// Files that are whole.
    pub files: Vec<(PathBuf, Vec<u8>)>,
    /// Pictures, with the files that they go to.
    pub pictures: Vec<(Image, Option<PathBuf>)>,
}

/// Elements that are to be printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// As the description asks for them.
    pub name: String,
    /// The numbers.
    pub numbers: Vec<i128>,
}

/// Why a described run is not good.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DriverError {
    /// The function that should compute the results does not end well.
    #[error("reference `{name}`: {why}")]
    Reference {
        /// The function.
        name: String,
        /// What it does.
        why: String,
    },
    /// Results differ.
    #[error("wrong result: {0}")]
    Differs(String),
}

impl View {
    fn read(&self, device: &mut dyn Device) -> Result<Vec<u8>, KernelError> {
        let bytes = self.element.bytes();
        Ok(device.read(self.address + (self.first * bytes) as u32, self.length * bytes)?)
    }

    fn numbers(&self, device: &mut dyn Device) -> Result<Vec<i128>, KernelError> {
        Ok(self.element.decode(&self.read(device)?))
    }

    /// Where what there is is not what is wanted: the first element, and how many there are.
    fn difference(&self, got: &[u8], want: &[u8]) -> Option<String> {
        let [got, want] = [got, want].map(|bytes| self.element.decode(bytes));
        let mut wrong = (0..self.length).filter(|&at| got[at] != want[at]);
        let first = wrong.next()?;
        let count = 1 + wrong.count();
        let name = &self.name;
        let [got, want] = [got[first], want[first]].map(|number| {
            let raw = number & self.element.mask();
            if (0..10).contains(&number) { number.to_string() } else { format!("{number} ({raw:#x})") }
        });
        let differ = if count == 1 { "differs" } else { "differ" };
        Some(format!("{name}[{first}] is {got}, should be {want}; {count} of {} elements {differ}", self.length))
    }
}

impl Driver {
    /// The name of the description.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A name that no other description and no other files have.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The grid that it asks for.
    pub fn grid(&self) -> GridSpec {
        self.grid
    }

    /// Asks for another grid than the description.
    pub fn set_grid(&mut self, grid: GridSpec) {
        self.grid = grid;
    }

    /// What is set when the run should end, for the reference; a device's launches end as the device has it.
    pub fn set_interrupted(&mut self, interrupted: Arc<AtomicBool>) {
        self.interrupted = interrupted;
    }

    /// Gives an argument or the first word of a buffer another value than the description does.
    pub fn set(&mut self, name: &str, word: u32) {
        self.arguments.insert(name.into(), word.to_le_bytes().to_vec());
    }

    /// The files that it writes, in the order of [`Results`]: those of numbers, then pictures.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let pictures = self.pictures.iter().filter_map(|(.., path)| path.as_deref());
        self.saves.iter().map(|(path, _)| path.as_path()).chain(pictures)
    }

    /// Whether there is a picture.
    pub fn draws(&self) -> bool {
        !self.pictures.is_empty()
    }

    /// Fills memory, launches, and compares.
    pub fn drive(&self, device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
        let reference = self.reference.as_deref().filter(|_| !self.computed.is_empty());
        let reference = reference.map(|function| reference::run(self, function, device, seed)).transpose()?;
        self.fill(device, seed)?;
        device.launch_grid(self.grid.of(device))?;

        let mut wrong = Vec::new();
        let mut checked = 0;
        let mut compare = |view: &View, want: Vec<u8>| -> Result<(), KernelError> {
            checked += view.length;
            wrong.extend(view.difference(&view.read(device)?, &want));
            Ok(())
        };
        if let Some(mut expected) = reference {
            self.computed.iter().try_for_each(|view| compare(view, view.read(&mut expected)?))?;
        }
        self.known.iter().try_for_each(|(view, want)| compare(view, want.clone()))?;
        if !wrong.is_empty() {
            return Err(DriverError::Differs(wrong.join("; ")).into());
        }
        let image = match self.pictures.first() {
            Some((view, drawing, _)) => Some(drawing.image(&view.numbers(device)?)),
            None => None,
        };
        Ok(Output { checked, image })
    }

    /// What is to be seen of a device after a launch, right or wrong.
    pub fn results(&self, device: &mut dyn Device) -> Result<Results, KernelError> {
        let mut results = Results::default();
        for (name, view) in &self.prints {
            results.shown.push(Shown { name: name.clone(), numbers: view.numbers(device)? });
        }
        for (path, view) in &self.saves {
            let bytes = written(path, view.element, &view.read(device)?).expect("it was checked before");
            results.files.push((path.clone(), bytes));
        }
        for (view, drawing, path) in &self.pictures {
            results.pictures.push((drawing.image(&view.numbers(device)?), path.clone()));
        }
        Ok(results)
    }

    /// Arguments and buffers before a launch.
    pub(super) fn fill(&self, device: &mut dyn Device, seed: u64) -> Result<(), KernelError> {
        for (name, contents) in &self.fills {
            device.write_bytes(name, &contents.bytes(name, seed))?;
        }
        self.arguments.iter().try_for_each(|(name, bytes)| device.write_bytes(name, bytes))
    }
}
