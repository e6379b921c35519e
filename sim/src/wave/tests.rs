use super::*;
use crate::{Options, Sim};
use heddle_hdl::{Bundle, Design, Signal, Width, all, module, wire};

#[derive(Bundle, Clone, Copy)]
struct Step<T> {
    by: T,
}
#[derive(Bundle, Clone, Copy)]
struct Count<T> {
    total: T,
}

/// Two counters side by side that count by `by`.
fn design() -> Design<Step<Width>, Count<Signal>> {
    let counter = module("counter", Step { by: 70 }, |m, i| {
        let count = m.reg("count", 70).reset(0u32);
        wire!(next = count.q + i.by);
        count.next(next);
        Count { total: count.q }
    });
    let top = module("top", Step { by: 70 }, |m, i| m.replicate("lane", 2, &counter, Step { by: all(i.by) }));
    top.check().unwrap()
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("heddle-{}-{name}", std::process::id()))
}

fn run(path: &Path) {
    let mut t = Sim::with(&design(), &Options { wave: Some(path.to_path_buf()), ..Options::default() });
    t.poke(Step { by: Bits::from(3u32) });
    t.reset();
    t.steps(4);
}

#[test]
fn vcd_has_the_hierarchy_and_the_values() {
    let path = file("a.vcd");
    run(&path);
    let mut parser = vcd::Parser::new(std::io::BufReader::new(File::open(&path).unwrap()));
    let header = parser.parse_header().unwrap();
    let count = header.find_var(&["top", "lane[1]", "count"]).unwrap().code;
    assert!(header.find_var(&["top", "lane[0]", "next"]).is_some());
    let clock = header.find_var(&["top", "clk"]).unwrap().code;
    let (mut time, mut counts, mut edges) = (0, Vec::new(), 0);
    for command in parser {
        match command.unwrap() {
            vcd::Command::Timestamp(t) => time = t,
            vcd::Command::ChangeVector(id, value) if id == count => counts.push((time, value.to_string())),
            vcd::Command::ChangeScalar(id, vcd::Value::V1) if id == clock => edges += 1,
            _ => {}
        }
    }
    let expected = [(10, 0), (20, 3), (30, 6), (40, 9)].map(|(t, v)| (t, format!("{v:070b}")));
    assert_eq!(counts[1..], expected, "the first is the random start");
    assert_eq!(edges, 6);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn fst_has_the_same() {
    let path = file("a.fst");
    run(&path);
    let mut reader = fst_reader::FstReader::open(std::io::BufReader::new(File::open(&path).unwrap())).unwrap();
    let (mut scopes, mut found) = (Vec::new(), None);
    let visit = |entry| match entry {
        fst_reader::FstHierarchyEntry::Scope { name, .. } => scopes.push(name),
        fst_reader::FstHierarchyEntry::UpScope => drop(scopes.pop()),
        fst_reader::FstHierarchyEntry::Var { name, handle, .. } if name == "count" && scopes == ["top", "lane[1]"] => {
            found = Some(handle)
        }
        _ => {}
    };
    reader.read_hierarchy(visit).unwrap();
    let count = found.unwrap();
    let mut counts = Vec::new();
    let all = fst_reader::FstFilter::all();
    let visit = |time, handle, value: fst_reader::FstSignalValue| {
        if let (true, fst_reader::FstSignalValue::String(text)) = (handle == count, value) {
            counts.push((time, String::from_utf8(text.to_vec()).unwrap()));
        }
        Ok::<(), ()>(())
    };
    reader.read_signals(&all, visit).unwrap();
    let expected = [(10, 0), (20, 3), (30, 6), (40, 9)].map(|(t, v)| (t, format!("{v:070b}")));
    assert_eq!(counts[counts.len() - 4..], expected);
    std::fs::remove_file(path).unwrap();
}

#[test]
fn bad_names_and_places_leave_nothing() {
    let directory = Directory::new(&design().netlist);
    let error = |path: &Path| Wave::create(path, &directory).err().unwrap().to_string();
    let bad = file("a.txt");
    assert_eq!(error(&bad), format!("waveform {}: the name must end in .vcd or .fst", bad.display()));
    assert!(!bad.exists());
    let nowhere = file("no-such-folder").join("a.vcd");
    assert!(error(&nowhere).starts_with(&format!("cannot write waveform {}: ", nowhere.display())));

    let folder = file("folder.vcd");
    std::fs::create_dir(&folder).unwrap();
    let wave = Wave::create(&folder, &directory).unwrap();
    assert!(wave.finish().is_err(), "a folder cannot be replaced");
    assert!(!wave_partial(&folder).exists());
    std::fs::remove_dir(folder).unwrap();
}

fn wave_partial(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.partial", path.display()))
}
