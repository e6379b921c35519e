//! What runs of studies came to, kept as results of [sweeps](crate::sweep) are, so that a study that was ended goes on.

use super::runs::Run;
use crate::sweep::key::{self, key};
use crate::sweep::store::{Record, SCHEMA, Store};
use anyhow::Result;
use clap::Args;
use heddle_hdl::canonical;
use heddle_testbench::Program;
use heddle_testbench::machine::{MachineOptions, Summary, design};
use serde_json::Value as Json;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Mutex;

#[derive(Args)]
pub struct KeptArgs {
    /// Keep what runs came to in this folder, a file each, and run only what is not known there: so a study that was
    /// ended goes on
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

impl KeptArgs {
    pub fn open(&self) -> Result<Option<Kept>> {
        let Some(folder) = &self.results else { return Ok(None) };
        let store = Store::new(folder);
        store.create()?;
        Ok(Some(Kept { store, designs: Mutex::default() }))
    }
}

pub struct Kept {
    store: Store,
    /// The hash of the hardware, by the options of its core.
    designs: Mutex<HashMap<String, String>>,
}

/// Where the result of a run is.
pub struct Place {
    key: String,
    design: String,
}

impl Kept {
    /// Nowhere, if the cycle model runs it.
    pub fn place(&self, run: &Run, options: &MachineOptions) -> Result<Option<Place>> {
        if run.model.is_some() {
            return Ok(None);
        }
        let design = self.design(run)?;
        // When a hang is looked for changes nothing of what ends.
        let MachineOptions { engine, seed, checks, monitors, max_cycles, first_look: _, wave: _ } = options;
        let rest = format!(
            "{} {} {:?} {:?} {engine:?} {seed} {checks:?} {} {max_cycles}",
            run.name,
            key::program(&Program::parse(&run.elf)?),
            run.block_threads,
            run.draw,
            monitors.len(),
        );
        Ok(Some(Place { key: key("study", &design, &run.shape, &rest, None), design }))
    }

    fn design(&self, run: &Run) -> Result<String> {
        let core = run.shape.options();
        let known = self.designs.lock().expect("no thread panics while it has it").get(&core).cloned();
        let hash = match known {
            Some(hash) => hash,
            None => format!("{:016x}", canonical::hash(&design(&run.shape)?)?),
        };
        self.designs.lock().expect("no thread panics while it has it").insert(core, hash.clone());
        Ok(hash)
    }

    /// What the core did, or why the program did not end, if that is known.
    pub fn read(&self, place: &Place) -> Option<Result<Summary, String>> {
        let record = self.store.read(&place.key)?;
        match record.error {
            Some(why) => Some(Err(why)),
            None => serde_json::from_value(record.result).ok().map(Ok),
        }
    }

    pub fn write(&self, place: Place, run: &Run, result: &Result<Summary, String>) -> Result<()> {
        let options = [("run", Json::from(run.name.as_str())), ("core", run.shape.options().into())];
        let record = Record {
            schema: SCHEMA,
            command: "heddle study".into(),
            options: options.map(|(key, value)| (key.to_string(), value)).into_iter().collect(),
            draw: run.draw.map(|draw| draw.memory),
            design: place.design,
            ok: result.is_ok(),
            error: result.as_ref().err().cloned(),
            result: result.as_ref().map_or(Ok(Json::Null), serde_json::to_value)?,
        };
        self.store.write(&place.key, &record)
    }
}

#[cfg(test)]
mod tests {
    use super::super::draws::Draw;
    use super::super::runs::usual;
    use super::*;
    use heddle_simt::Shape;
    use heddle_testbench::kernels::find;

    fn run(kernel: &str) -> Run {
        Run::new(find(kernel).unwrap(), Shape::small(2, 1))
    }

    #[test]
    fn what_is_kept_is_found_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let kept = KeptArgs { results: Some(folder.path().into()) }.open().unwrap().unwrap();
        let place = |run: &Run, seed: u64| kept.place(run, &usual(seed)).unwrap().unwrap();
        let first = run("gcd");
        assert_eq!(kept.read(&place(&first, 1)), None);
        let summary = Summary { thread_ipc: 0.1 + 0.2, cycles: 7, ..Summary::default() };
        kept.write(place(&first, 1), &first, &Ok(summary)).unwrap();
        assert_eq!(kept.read(&place(&first, 1)), Some(Ok(summary)));
        let drawn = |inputs| Run { draw: Some(Draw { inputs, memory: 2 }), ..first.clone() };
        let others = [
            place(&first, 2),
            place(&run("sort"), 1),
            place(&drawn(1), 1),
            place(&drawn(2), 1),
            place(&Run { block_threads: Some(2), ..first.clone() }, 1),
            place(&Run { name: "gcd of another driver".into(), ..first.clone() }, 1),
            place(&Run { shape: Shape::small(4, 1), ..first.clone() }, 1),
        ];
        assert!(others.iter().all(|other| kept.read(other).is_none()));
        kept.write(place(&first, 1), &first, &Err("it hangs".into())).unwrap();
        assert_eq!(kept.read(&place(&first, 1)), Some(Err("it hangs".into())));
        assert!(KeptArgs { results: None }.open().unwrap().is_none());
    }
}
