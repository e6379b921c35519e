//! Traces for viewers keep the rules of their formats, and say what the run's own report says.

use crate::common::Place;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;

/// What a log for Konata says of an instruction: cycles of its stages in lane 0, whether it was squashed.
struct Instruction {
    thread: u32,
    label: String,
    stages: Vec<(String, u64)>,
    /// Open in lane 1.
    waits: Option<String>,
    end: Option<(u64, bool)>,
}

/// The instructions of a log that keeps the rules of `docs/kanata-log-format.md`: ids in order, nothing of an
/// instruction before its `I` or after its `R`, cycles that only go up, retirement in order.
fn konata(text: &str) -> Vec<Instruction> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("Kanata\t0004"));
    let mut found: Vec<Instruction> = Vec::new();
    let (mut cycle, mut retired) = (None, 0);
    for line in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |field: usize| fields[field].parse::<u64>().unwrap_or_else(|_| panic!("{line}"));
        match fields[0] {
            "C=" => {
                assert_eq!((cycle, found.len()), (None, 0), "{line}");
                cycle = Some(number(1));
                continue;
            }
            "C" => {
                assert!(number(1) > 0, "{line}");
                cycle = Some(cycle.unwrap() + number(1));
                continue;
            }
            "I" => {
                assert_eq!(number(1), found.len() as u64, "{line}");
                let thread = number(3) as u32;
                found.push(Instruction { thread, label: String::new(), stages: Vec::new(), waits: None, end: None });
                continue;
            }
            _ => {}
        }
        let now = cycle.expect("a cycle comes first");
        let consumer = &mut found[number(1) as usize];
        assert!(consumer.end.is_none(), "{line} after its end");
        match (fields[0], fields.len()) {
            ("L", 4) => match fields[2] {
                "0" => consumer.label = fields[3].into(),
                kind => assert_eq!(kind, "1", "{line}"),
            },
            ("S", 4) if fields[2] == "0" => consumer.stages.push((fields[3].into(), now)),
            ("S", 4) => assert_eq!((fields[2], consumer.waits.replace(fields[3].into())), ("1", None), "{line}"),
            ("E", 4) => assert_eq!((fields[2], consumer.waits.take().as_deref()), ("1", Some(fields[3])), "{line}"),
            ("R", 4) => {
                let squashed = number(3) == 1;
                assert!(squashed || (number(3) == 0 && number(2) == retired), "{line}");
                retired += u64::from(!squashed);
                consumer.end = Some((now, squashed));
            }
            ("W", 4) => {
                let producer = number(2);
                assert!(producer < number(1) && fields[3] == "0", "{line}");
            }
            _ => panic!("no command of the format: {line}"),
        }
    }
    found
}

/// The stages of an instruction that retires are those of the pipeline, as far apart as its table says.
fn stages_are_those_of_the_pipeline(instruction: &Instruction) {
    let Instruction { stages, label, .. } = instruction;
    let names: Vec<&str> = stages.iter().map(|(name, _)| name.as_str()).collect();
    let at = |name: &str| stages.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("{label}")).1;
    let buffered = if names.contains(&"B") { vec!["B"] } else { vec![] };
    let ninth = if names.contains(&"M") { "M" } else { "Cv" };
    let last = if names.contains(&"W") { vec!["W"] } else { vec![] };
    let want = [vec!["St", "F", "D"], buffered, vec!["Is", "Co", "X", "Rs", ninth], last.clone()].concat();
    assert_eq!(names, want, "{label}");
    let apart = |from: &str, to: &str, cycles: u64| assert_eq!(at(to) - at(from), cycles, "{label}: {from} to {to}");
    apart("St", "F", 1);
    apart("F", "D", 1);
    assert!(at("Is") - at("D") >= 2, "{label}");
    apart("Is", "Co", 1);
    apart("Is", "X", 3);
    apart("Is", "Rs", 5);
    apart("Is", ninth, 6);
    assert!(last.is_empty() || at("W") - at("Is") >= 7, "{label}");
    let words = label.split_whitespace().nth(1).unwrap();
    let writes_nothing = ["sw", "beq", "bne", "bltz", "bgez", "j", "ecall", "ret", "nop", "barrier"];
    assert!(!writes_nothing.contains(&words) || last.is_empty(), "{label}");
    assert!(!["addi", "lw", "lbu", "mul"].contains(&words) || !last.is_empty(), "{label}");
}

/// The events of a trace that keeps the rules of the trace event format: every event has what its phase needs, slices
/// of a track do not overlap, every access begins and ends, every process and track has a name.
fn perfetto(text: &str) -> Vec<Value> {
    let trace: Value = serde_json::from_str(text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap().clone();
    let mut named: HashSet<(String, u64, u64)> = HashSet::new();
    let mut tracks: BTreeMap<(u64, u64), Vec<(u64, u64)>> = BTreeMap::new();
    let mut open: HashMap<u64, u64> = HashMap::new();
    for event in &events {
        let number = |key: &str| event[key].as_u64().unwrap_or_else(|| panic!("{key} of {event}"));
        let (pid, tid) = (number("pid"), number("tid"));
        assert!(event["name"].is_string(), "{event}");
        match event["ph"].as_str().unwrap() {
            "M" => {
                named.insert((event["name"].as_str().unwrap().into(), pid, tid));
            }
            "X" => {
                assert!(named.contains(&("thread_name".into(), pid, tid)), "{event}");
                assert!(number("dur") > 0, "{event}");
                tracks.entry((pid, tid)).or_default().push((number("ts"), number("ts") + number("dur")));
            }
            "b" => assert_eq!(open.insert(number("id"), number("ts")), None, "{event}"),
            "e" => assert!(open.remove(&number("id")).is_some_and(|begun| begun < number("ts")), "{event}"),
            "C" => assert!(event["args"]["value"].is_number() && event["ts"].is_u64(), "{event}"),
            _ => panic!("no phase of ours: {event}"),
        }
        assert!(named.contains(&("process_name".into(), pid, 0)), "{event}");
    }
    assert!(open.is_empty(), "accesses that never end: {open:?}");
    for ((pid, tid), mut slices) in tracks {
        slices.sort_unstable();
        for two in slices.windows(2) {
            assert!(two[0].1 <= two[1].0, "slices of process {pid}, track {tid} overlap: {two:?}");
        }
    }
    events
}

fn of_process<'a>(events: &'a [Value], process: &str, phase: &str) -> Vec<&'a Value> {
    let names = |event: &&Value| event["name"] == "process_name" && event["args"]["name"] == process;
    let pid = &events.iter().find(names).unwrap()["pid"];
    events.iter().filter(|event| event["pid"] == *pid && event["ph"] == phase).collect()
}

#[test]
fn traces_keep_the_rules_and_agree_with_the_report() {
    for core in [
        "if_else --lanes 4 --warps 2",
        "if_else --lanes 1 --warps 1",
        "reduce --size small --lanes 4 --warps 2 --memory-model latency=20 --memory 32K --stack 512",
        "reduce --size small --lanes 4 --warps 2 --divergence dual-path --bus 32 --memory 32K --stack 512",
        "reduce --size small --lanes 4 --warps 2 --divergence block-stack --cache 1K --memory 32K --stack 512",
        "if_else --lanes 8 --warps 1 --divergence stack --replay serialise",
        "vecadd --size small --lanes 64 --warps 2 --divergence arbiter",
    ] {
        let place = Place::new();
        let report = place.good(&format!("run {core} --konata k.log --perfetto p.json --json"));
        let report: Value = serde_json::from_str(&report).unwrap();
        let issues = report["warp_instructions"].as_u64().unwrap();

        let instructions = konata(&fs::read_to_string(place.path().join("k.log")).unwrap());
        let issued = |one: &&Instruction| one.stages.iter().any(|(name, _)| name == "Is");
        assert_eq!(instructions.iter().filter(issued).count() as u64, issues, "{core}");
        let retired = |one: &&Instruction| !one.end.expect("each ends").1;
        instructions.iter().filter(retired).for_each(stages_are_those_of_the_pipeline);
        let ended = instructions.iter().filter(|one| one.label.ends_with("ecall")).filter(retired).count();
        assert!(ended as u64 >= report["launches"].as_u64().unwrap(), "{core}");
        let threads: HashSet<u32> = instructions.iter().map(|one| one.thread).collect();
        let warps = report["warps"].as_u64().unwrap() as usize;
        let sides = if core.contains("dual-path") { 2 } else { 1 };
        assert!(threads.len() >= warps && threads.len() <= sides * warps, "{core}: {threads:?}");

        let events = perfetto(&fs::read_to_string(place.path().join("p.json")).unwrap());
        let visits = of_process(&events, "warps", "X");
        let of_visits: u64 = visits.iter().map(|visit| visit["args"]["issues"].as_u64().unwrap()).sum();
        assert_eq!(of_visits, issues, "{core}");
        let lanes = report["lanes"].as_u64().unwrap() as usize;
        assert!(visits.iter().all(|visit| visit["args"]["lanes"].as_str().unwrap().len() == lanes), "{core}");
        let blocks = of_process(&events, "thread blocks", "X").len() as u64;
        assert!(blocks >= report["launches"].as_u64().unwrap(), "{core}: {blocks}");
        let loads = of_process(&events, "memory", "b").len();
        let accesses = instructions.iter().filter(|one| one.stages.iter().any(|(name, _)| name == "M")).count();
        assert_eq!(loads, accesses, "{core}");
        let barriers = instructions.iter().filter(retired).filter(|one| one.label.ends_with(" barrier")).count();
        assert_eq!(of_process(&events, "barriers", "X").len(), barriers, "{core}");
    }
}

#[test]
fn a_window_is_a_part_of_the_whole() {
    let place = Place::new();
    place.good("run gcd --lanes 4 --warps 2 --konata all.log --perfetto all.json");
    place.good("run gcd --lanes 4 --warps 2 --konata part.log --perfetto part.json --window 300..400");
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    let (all, part) = (konata(&read("all.log")), konata(&read("part.log")));
    let fetched = |one: &Instruction| (one.stages[0].1, one.label.clone());
    let inside: Vec<_> = all.iter().map(fetched).filter(|(cycle, _)| (300..400).contains(cycle)).collect();
    assert!(!inside.is_empty());
    assert_eq!(part.iter().map(fetched).collect::<Vec<_>>(), inside);
    let of_part = perfetto(&read("part.json"));
    assert!(of_part.len() < perfetto(&read("all.json")).len());
}

/// The variables of a waveform, with their widths.
fn variables(vcd: &str) -> HashMap<String, u32> {
    let (mut scopes, mut found) = (Vec::new(), HashMap::new());
    for line in vcd.lines().take_while(|line| !line.contains("$enddefinitions")) {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["$scope", _, name, "$end"] => scopes.push(name),
            ["$upscope", "$end"] => drop(scopes.pop()),
            ["$var", _, width, _, name, ..] => {
                found.insert(format!("{}.{name}", scopes.join(".")), width.parse().unwrap());
            }
            _ => {}
        }
    }
    found
}

#[test]
fn what_viewers_open_beside_a_waveform_names_what_is_in_it() {
    let place = Place::new();
    let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
    for (unit, of_unit) in
        [("path-table", "divergence.updates"), ("dual-path", "heads_held"), ("block-stack", "divergence.acts")]
    {
        place.good(&format!("run if_else --lanes 4 --warps 2 --divergence {unit} --wave w.vcd"));
        let in_wave = variables(&read("w.vcd"));
        let with_range = |(path, width): (&String, &u32)| {
            if *width == 1 { path.clone() } else { format!("{path}[{}:0]", width - 1) }
        };
        let names: HashSet<String> = in_wave.iter().map(with_range).collect();
        let save = read("w.gtkw");
        let shown: Vec<&str> = save.lines().filter(|line| line.starts_with("heddle.")).collect();
        assert!(shown.len() > 20 && shown.iter().any(|name| name.contains(of_unit)), "{unit}: {shown:?}");
        shown.iter().for_each(|name| assert!(names.contains(*name), "{unit}: {name}"));
        let commands = read("w.sucl");
        let added: Vec<&str> = commands.lines().filter_map(|line| line.strip_prefix("variable_add ")).collect();
        assert_eq!(added.len(), shown.len(), "{unit}");
        added.iter().for_each(|name| assert!(in_wave.contains_key(*name), "{unit}: {name}"));

        // Each pc is translated: hexadecimal numbers of as many digits as GTKWave shows of it.
        let table = read("w.instructions");
        assert_eq!(save.matches("^1 ").count(), shown.iter().filter(|name| name.contains("_pc[")).count());
        let bits = in_wave["heddle.core.issue_pc"];
        for (number, line) in table.lines().enumerate() {
            let (value, text) = line.split_once(' ').unwrap();
            assert_eq!(value, format!("{number:0digits$x}", digits = bits.div_ceil(4) as usize));
            assert!(text.starts_with(&format!("{:x}: ", 4 * number)), "{line}");
        }
        assert!(table.contains(": auipc gp,"), "{table}");
    }
    let error = place.bad("run if_else --wave none/w.vcd");
    assert!(error.contains("none/w.vcd"), "{error}");
}

#[test]
fn bad_places_are_refused_before_the_run() {
    let place = Place::new();
    for option in ["--konata", "--perfetto"] {
        let error = place.bad(&format!("run gcd {option} none/here.log"));
        assert_eq!(error, "cannot write none/here.log: there is no such folder");
    }
}
