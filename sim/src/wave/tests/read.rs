//! Waveforms read back.

use fst_reader::{FstFilter, FstHierarchyEntry, FstReader, FstSignalValue};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use vcd::{Command, IdCode, ScopeItem};

/// What a file says.
pub struct Read {
    /// For each path with the top's name, times and values as digits. A value is there once until it changes, and not
    /// while it is unknown.
    pub changes: BTreeMap<String, Vec<(u64, String)>>,
    pub widths: BTreeMap<String, u32>,
    /// The last time.
    pub end: u64,
}

impl Read {
    pub fn of(path: &Path) -> Read {
        let file = BufReader::new(File::open(path).unwrap());
        if path.extension().is_some_and(|e| e == "vcd") { Read::vcd(file) } else { Read::fst(file) }
    }

    fn vcd(file: BufReader<File>) -> Read {
        let mut parser = vcd::Parser::new(file);
        let header = parser.parse_header().unwrap();
        let mut paths = Vec::new();
        variables(&header.items, "", &mut paths);
        let (mut time, mut changes) = (0, HashMap::new());
        for command in parser {
            let (id, value) = match command.unwrap() {
                Command::Timestamp(t) => {
                    assert!(t >= time);
                    time = t;
                    continue;
                }
                Command::ChangeVector(id, value) => (id, value.to_string()),
                Command::ChangeScalar(id, value) => (id, value.to_string()),
                other => panic!("{other:?}"),
            };
            add(changes.entry(id).or_default(), time, value);
        }
        Read::new(paths, &changes, time)
    }

    fn fst(file: BufReader<File>) -> Read {
        let mut reader = FstReader::open(file).unwrap();
        let (mut scopes, mut paths) = (Vec::new(), Vec::new());
        let visit = |entry| match entry {
            FstHierarchyEntry::Scope { name, .. } => scopes.push(name),
            FstHierarchyEntry::UpScope => drop(scopes.pop()),
            FstHierarchyEntry::Var { name, handle, length, .. } => {
                paths.push((format!("{}.{name}", scopes.join(".")), length, handle.get_index()));
            }
            other => panic!("{other:?}"),
        };
        reader.read_hierarchy(visit).unwrap();
        let header = reader.get_header();
        assert_eq!(header.timescale_exponent, -9);
        assert_eq!(header.var_count, paths.len() as u64);
        let mut changes = HashMap::new();
        let visit = |time, handle: fst_reader::FstSignalHandle, value: FstSignalValue| {
            let FstSignalValue::String(text) = value else { panic!("a value that is no text") };
            add(changes.entry(handle.get_index()).or_default(), time, String::from_utf8(text.to_vec()).unwrap());
            Ok::<(), ()>(())
        };
        reader.read_signals(&FstFilter::all(), visit).unwrap();
        Read::new(paths, &changes, header.end_time)
    }

    fn new<K: std::hash::Hash + Eq>(
        paths: Vec<(String, u32, K)>,
        changes: &HashMap<K, Vec<(u64, String)>>,
        end: u64,
    ) -> Read {
        let of = |(path, _, id): &(String, u32, K)| (path.clone(), changes.get(id).cloned().unwrap_or_default());
        let read = Read {
            changes: paths.iter().map(of).collect(),
            widths: paths.iter().map(|(path, width, _)| (path.clone(), *width)).collect(),
            end,
        };
        assert_eq!(read.changes.len(), paths.len(), "each path once");
        read
    }
}

fn variables(items: &[ScopeItem], path: &str, to: &mut Vec<(String, u32, IdCode)>) {
    let at = |name: &str| if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
    for item in items {
        match item {
            ScopeItem::Scope(scope) => variables(&scope.items, &at(&scope.identifier), to),
            ScopeItem::Var(var) => {
                let index = var.index.map_or(String::new(), |index| index.to_string());
                to.push((at(&var.reference) + &index, var.size, var.code));
            }
            other => panic!("{other:?}"),
        }
    }
}

/// A block of FST repeats what was before it.
fn add(changes: &mut Vec<(u64, String)>, time: u64, value: String) {
    if !value.contains('x') && changes.last().is_none_or(|(_, last)| *last != value) {
        changes.push((time, value));
    }
}
