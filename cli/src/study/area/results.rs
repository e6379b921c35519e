//! What was found, in a file: a line each, which is written as soon as it is known.

use super::cores::{Key, Of, shape};
use anyhow::{Context, Result};
use heddle_check::synth::{Board, Cells, Flat, Row, Session, Synthesis, Timing};
use heddle_hdl::canonical;
use heddle_hdl::netlist::Module as Described;
use heddle_simt::system::system;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// A measurement and what came of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Found {
    pub board: String,
    /// The options of the core.
    pub core: String,
    pub of: Of,
    /// Of the core's hardware, tools and steps: see [`Now::hash`].
    pub hash: String,
    pub outcome: Outcome,
}

#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Cells(Flat),
    Modules(Vec<Module>),
    Timing(Timing),
    /// What the board has too little of.
    Full(String),
    /// What a tool said.
    Failed(String),
}

/// A module of the core.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Module {
    #[serde(flatten)]
    pub row: Row,
    /// Modules in one copy of it, and how many of each.
    pub within: BTreeMap<String, u32>,
    /// Bits that one copy of it holds, without the modules in it: in registers, in memories.
    pub registers: u64,
    pub memories: u64,
}

/// Modules with what is in them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Total {
    pub cells: Cells,
    pub registers: u64,
    pub memories: u64,
}

/// One copy of a module with all that is in it.
pub fn total(modules: &[Module], name: &str) -> Option<Total> {
    let module = modules.iter().find(|module| module.row.module == name)?;
    let mut sum = Total { cells: module.row.cells, registers: module.registers, memories: module.memories };
    for (name, &copies) in &module.within {
        // What is optimised away has no row.
        let Some(inner) = total(modules, name) else { continue };
        sum.cells = sum.cells.plus(&inner.cells, copies);
        sum.registers += u64::from(copies) * inner.registers;
        sum.memories += u64::from(copies) * inner.memories;
    }
    Some(sum)
}

/// Yosys' rows with what the description knows of each module.
pub fn modules(rows: Vec<Row>, top: &Arc<Described>) -> Vec<Module> {
    let described = top.modules();
    let of = |row: Row| {
        let module = described.iter().find(|module| module.name == row.module)?;
        let mut within = BTreeMap::new();
        for instance in &module.instances {
            *within.entry(instance.module.name.clone()).or_default() += instance.copies();
        }
        let memories = module.memories.iter().map(|m| u64::from(m.width) << m.address_width).sum();
        let registers = module.registers.iter().map(|register| u64::from(register.width)).sum();
        Some(Module { row, within, registers, memories })
    };
    rows.into_iter().filter_map(of).collect()
}

/// A core and the hashes of all that its figures come from.
pub struct Now {
    pub board: &'static Board,
    pub top: Arc<Described>,
    /// What figures of the whole core are of.
    pub flat: String,
    /// What figures module by module are of: of each module alone, too, so it is found when it is asked for.
    pub modules: LazyHash,
}

/// A hash that takes long.
pub type LazyHash = LazyLock<String, Box<dyn FnOnce() -> String + Send>>;

impl Now {
    pub fn of(board: &'static Board, options: &str) -> Result<Now> {
        let top = system(&shape(options)?).check()?.netlist;
        let session = Session { stop: &|| false, says: &|_| {}, again: false };
        let recipe = Synthesis::new(board, &top, session).recipe();
        let of = format!("{recipe} {:016x}", canonical::hash(&top)?);
        let flat = format!("{:x}", md5::compute(&of));
        let modules = LazyLock::new(of_modules(of, top.clone()));
        Ok(Now { board, top, flat, modules })
    }

    /// What a figure is of, if it is of the core as it is.
    pub fn hash(&self, of: Of) -> &str {
        if of == Of::Modules { &self.modules } else { &self.flat }
    }
}

/// The hash of a core's modules, one by one; `of` is what says which core.
fn of_modules(of: String, top: Arc<Described>) -> Box<dyn FnOnce() -> String + Send> {
    Box::new(move || {
        let mut hash = md5::Context::new();
        hash.consume(of);
        for module in top.modules() {
            let mut within: Vec<&str> = module.instances.iter().map(|instance| instance.module.name.as_str()).collect();
            within.sort_unstable();
            let alone = canonical::hash(&module).expect("the core was checked, and so its modules");
            hash.consume(format!("{} {alone:016x} {within:?}", module.name));
        }
        format!("{:x}", hash.finalize())
    })
}

/// All that was found.
#[derive(Default)]
pub struct Results(Vec<Found>);

impl Results {
    /// Those of a file; none if it is not there.
    pub fn read(path: &Path) -> Result<Results> {
        let cannot = || format!("cannot read {}", path.display());
        match fs::read_to_string(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Results::default()),
            text => Results::parse(&text.with_context(cannot)?).with_context(cannot),
        }
    }

    pub fn parse(text: &str) -> Result<Results> {
        Ok(Results(serde_json::from_str(text)?))
    }

    /// A line each, so that differences between two versions can be read.
    pub fn text(&self) -> Result<String> {
        let lines = self.0.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        Ok(format!("[\n{}\n]\n", lines.join(",\n")))
    }

    pub fn all(&self) -> &[Found] {
        &self.0
    }

    /// What was found, the last first.
    pub fn of(&self, key: &Key) -> impl Iterator<Item = &Found> {
        self.0.iter().filter(move |found| found.is_of(key))
    }

    pub fn find(&self, key: &Key) -> Option<&Found> {
        self.of(key).next()
    }

    /// In the place of what was found before. Of an older core that several seeds placed, the runs stay, behind those of now:
    /// how far clocks of one core are apart is theirs, too.
    pub fn set(&mut self, key: &Key, hash: &str, outcome: Outcome) {
        let Key { board, core, of } = key.clone();
        let is_seed = |found: &Found| matches!(found.of, Of::Seed(_)) && (&found.board, &found.core) == (&board, &core);
        let of_several = |old: &Found| {
            let is_other = |other: &Found| is_seed(other) && other.of != old.of && other.hash == old.hash;
            is_seed(old) && old.hash != hash && self.0.iter().any(is_other)
        };
        let stays: Vec<bool> = self.0.iter().map(|found| !found.is_of(key) || of_several(found)).collect();
        let mut stays = stays.into_iter();
        self.0.retain(|_| stays.next().expect("there is one for each"));
        self.0.insert(0, Found { board, core, of, hash: hash.into(), outcome });
        self.0.sort_by(|a, b| (&a.board, &a.core, a.of).cmp(&(&b.board, &b.core, b.of)));
    }

    /// Forgets what no part of the page shows.
    pub fn keep(&mut self, wanted: impl Fn(&Found) -> bool) {
        self.0.retain(wanted);
    }
}

impl Found {
    fn is_of(&self, key: &Key) -> bool {
        (&self.board, &self.core, self.of) == (&key.board, &key.core, key.of)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn cells(luts: u32) -> Cells {
        Cells { luts, lut4: luts, ff: 10, ..Cells::default() }
    }

    pub fn module(name: &str, luts: u32, within: &[(&str, u32)]) -> Module {
        let row = Row { module: name.into(), copies: 1, cells: cells(luts) };
        let within = within.iter().map(|(name, copies)| (name.to_string(), *copies)).collect();
        Module { row, within, registers: 3, memories: 32 }
    }

    #[test]
    fn a_module_is_counted_with_all_that_is_in_it() {
        let all = [
            module("core", 1, &[("unit", 1), ("lane", 4)]),
            module("unit", 10, &[("lane", 2)]),
            module("lane", 5, &[]),
        ];
        let sum = |name: &str| total(&all, name).map(|t| (t.cells.luts, t.cells.ff, t.registers, t.memories));
        assert_eq!(sum("unit"), Some((20, 30, 9, 96)));
        assert_eq!(sum("core"), Some((1 + 20 + 20, 80, 24, 256)));
        assert_eq!(sum("none"), None);
    }

    #[test]
    fn results_are_written_and_read_and_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("area.json");
        let mut results = Results::read(&path).unwrap();
        assert!(results.all().is_empty());
        let key = |of| Key { board: "b".into(), core: "--lanes 4".into(), of };
        results.set(
            &key(Of::Seed(2)),
            "one",
            Outcome::Timing(Timing { mhz: 50.5, path: vec!["a".into()], at_ns: vec![] }),
        );
        results.set(&key(Of::Modules), "one", Outcome::Modules(vec![module("core", 1, &[])]));
        results.set(&key(Of::Cells), "one", Outcome::Failed("no".into()));
        let flat = Flat { cells: cells(7), core_luts: 6, memory_bram: 1 };
        results.set(&key(Of::Cells), "two", Outcome::Cells(flat));
        fs::write(&path, results.text().unwrap()).unwrap();
        let again = Results::read(&path).unwrap();
        assert_eq!(again.text().unwrap(), results.text().unwrap());
        assert_eq!(again.all().iter().map(|found| found.of).collect::<Vec<_>>(), [Of::Cells, Of::Modules, Of::Seed(2)]);
        let cells = again.find(&key(Of::Cells)).unwrap();
        assert_eq!((cells.hash.as_str(), &cells.outcome), ("two", &Outcome::Cells(flat)));
        assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 3 + 2);
        fs::write(&path, "[").unwrap();
        let error = format!("{:#}", Results::read(&path).err().unwrap());
        assert!(error.starts_with(&format!("cannot read {}: EOF", path.display())), "{error}");
    }

    #[test]
    fn runs_of_an_older_core_stay_if_there_are_several() {
        let mut results = Results::default();
        let mut set = |seed, hash: &str, mhz| {
            let key = Key { board: "b".into(), core: "--lanes 4".into(), of: Of::Seed(seed) };
            results.set(&key, hash, Outcome::Timing(Timing { mhz, path: vec![], at_ns: vec![] }));
            let runs = results.all().iter().map(|found| found.hash.clone()).collect::<Vec<_>>().join(" ");
            (results.find(&key).unwrap().hash.clone(), runs)
        };
        assert_eq!(set(1, "one", 50.0), ("one".into(), "one".into()));
        assert_eq!(set(1, "two", 51.0), ("two".into(), "two".into()));
        assert_eq!(set(2, "two", 52.0), ("two".into(), "two two".into()));
        assert_eq!(set(1, "three", 53.0), ("three".into(), "three two two".into()));
        assert_eq!(set(2, "three", 53.0), ("three".into(), "three two three two".into()));
        assert_eq!(set(2, "three", 54.0), ("three".into(), "three two three two".into()));
    }

    #[test]
    fn the_hash_is_of_core_and_board() {
        let hash = |board: &str, options: &str| Now::of(Board::find(board).unwrap(), options).unwrap().flat;
        let [one, other] =
            ["--lanes 2 --warps 1 --memory 16K --program 4K", "--lanes 1 --warps 1 --memory 16K --program 4K"];
        assert_eq!(hash("ulx3s-85f", one), hash("ulx3s-85f", one));
        assert_ne!(hash("ulx3s-85f", one), hash("ulx3s-85f", other));
        assert_ne!(hash("ulx3s-85f", one), hash("icebreaker", one));
    }
}
