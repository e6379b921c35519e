//! `heddle profile`: its sums are the run's, and its page has its JSON's numbers.

use crate::common::*;
use heddle_testbench::compile::Compiler;
use heddle_testbench::kernels;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn profile(place: &Place, arguments: &str) -> Value {
    json(&place.good(&format!("profile {arguments} --json")))
}

fn sum<'a>(rows: impl IntoIterator<Item = &'a Value>, key: &str) -> f64 {
    rows.into_iter().map(|row| row.pointer(key).and_then(Value::as_f64).unwrap_or_else(|| panic!("{key}: {row}"))).sum()
}

fn rows<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap()
}

fn numbers(value: &Value) -> f64 {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).sum()
}

/// What is said by line, by instruction, over time and by warp sums up to what the run's counters say.
#[track_caller]
fn check_sums(profile: &Value, what: &str) {
    check_sums_but(profile, what, 0.0);
}

/// The same of a run that was broken off, with so many thread instructions at most under way, which the counters have not
/// seen.
#[track_caller]
fn check_sums_but(profile: &Value, what: &str, under_way: f64) {
    let (summary, time) = (&profile["summary"], &profile["time"]);
    let of = |key: &str| summary.pointer(key).unwrap().as_f64().unwrap();
    for part in ["lines", "instructions"] {
        let rows = rows(profile, part);
        assert_eq!(sum(rows, "/executions"), of("/warp_instructions"), "{what}: {part}");
        let more = sum(rows, "/thread_instructions") - of("/thread_instructions");
        assert!((0.0..=under_way).contains(&more), "{what}: {part}: {more}");
        for cause in CAUSES {
            let lost = sum(rows, &format!("/cycles_lost/{cause}"));
            assert!(
                (lost - of(&format!("/idle/{cause}"))).abs() < 1e-6,
                "{what}: {part}: {cause}: {lost} of {summary}"
            );
        }
        assert!((sum(rows, "/cycles") - of("/cycles")).abs() < 1e-6, "{what}: {part}");
    }
    let slots = &time["slots"];
    assert_eq!(numbers(&slots["issued"]), of("/warp_instructions"), "{what}");
    for cause in CAUSES.into_iter().chain(["nothing_live"]) {
        assert_eq!(numbers(&slots[cause]), of(&format!("/idle/{cause}")), "{what}: {cause}");
    }
    let all = of("/cycles") + of("/idle/nothing_live");
    assert_eq!(sum(rows(time, "overview"), "/cycles"), all, "{what}");
    for warp in rows(time, "warps_in_all") {
        let states: f64 = warp.as_object().unwrap().values().map(|count| count.as_f64().unwrap()).sum();
        assert_eq!(states, all, "{what}");
    }
    let issued = sum(rows(time, "warps_in_all"), "/issued");
    assert_eq!(issued, of("/warp_instructions"), "{what}");
    let lanes = &time["lanes"];
    assert_eq!(numbers(&lanes["in_all"]), numbers(&time["active"]), "{what}");
    assert_eq!(rows(lanes, "active").iter().map(numbers).sum::<f64>(), numbers(&time["active"]), "{what}");
    let accesses = rows(profile, "accesses");
    assert_eq!(sum(accesses, "/accesses"), of("/accesses"), "{what}");
    assert_eq!(sum(accesses, "/parts") + sum(accesses, "/bank_conflicts"), of("/parts"), "{what}");
    // Each time that an instruction goes to memory, one group of its lanes is the last.
    assert_eq!(sum(accesses, "/executed"), of("/accesses") - of("/parts"), "{what}");
    if let Some(cache) = summary["cache"].as_object() {
        let found = |names: [&str; 2]| names.map(|name| cache[name].as_f64().unwrap()).iter().sum::<f64>();
        assert_eq!(sum(accesses, "/hits"), found(["hits", "silent_hits"]), "{what}");
        assert_eq!(
            sum(accesses, "/misses") + sum(accesses, "/joined"),
            found(["misses", "silent_misses"]) + cache["joined"].as_f64().unwrap(),
            "{what}"
        );
    }
}

const CAUSES: [&str; 6] = ["no_instruction", "divergence", "interval", "scoreboard", "memory", "barrier"];

#[test]
fn sums_are_those_of_the_run() {
    let place = Place::new();
    let runs = [
        "reduce --lanes 1 --warps 1",
        "nqueens",
        "if_else --lanes 4 --warps 2 --divergence stack",
        "if_else --lanes 8 --warps 4 --divergence dual-path",
        "if_else --lanes 8 --warps 4 --divergence dual-path --unresolved 2",
        "pathfinder --size small --lanes 4 --warps 8 --divergence block-stack",
        "md5 --size small --lanes 4 --warps 4 --divergence arbiter",
        "backprop --size small --lanes 64 --warps 1",
        "reduce --lanes 8 --warps 4 --replay serialise",
        "transpose --size small --lanes 8 --warps 4 --coalescing full --replay serialise --cache 1K --memory-model latency=50",
        "fft --size small --cache 1K --memory-model latency=100",
        "bfs --size small --cache 1K --memory-model latency=20",
        "sort --size small --cache 1K --memory-model latency=30",
        "histogram --size small --lanes 16 --warps 2 --issue-interval 2",
    ];
    for run in runs {
        let profile = profile(&place, run);
        check_sums(&profile, run);
        assert!(rows(&profile, "notes").is_empty(), "{run}: {}", profile["notes"]);
        // All but start-up code and the compiler's library has lines.
        for line in rows(&profile, "lines").iter().filter(|line| line["file"].is_null()) {
            let place = line["place"].as_str().unwrap();
            assert!(place == "_start" || place.starts_with("__"), "{run}: {place}");
        }
    }
}

#[test]
fn a_run_that_fails_has_its_costs() {
    let place = Place::new();
    place.file("faults.elf", &elf(&[0x0010_0513, 0x0000_20a3, 0x0000_0073]));
    place.file("fails.elf", &elf(&[0x0010_0513, 0x05d0_0893, 0x0000_0073]));
    // Four lanes in the stages from issue to resolve.
    let under_way = 4.0 * 6.0;
    for (run, why, under_way) in [
        ("faults.elf", "fault", 0.0),
        ("fails.elf", "exit code not 0", 0.0),
        ("collatz --lanes 4 --warps 4 --max-cycles 2000", "2000 cycles", under_way),
        ("collatz --lanes 4 --warps 4 --divergence block-stack --max-cycles 2000", "2000 cycles", under_way),
    ] {
        let output = place.run(&format!("profile {run} --json"));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && error.contains(why) && error.lines().count() == 1, "{run}: {error}");
        let profile = json(&String::from_utf8(output.stdout).unwrap());
        check_sums_but(&profile, run, under_way);
        assert_eq!(profile["error"], error.trim().trim_start_matches("error: "), "{run}");
        assert_eq!(profile["notes"][0], "the run failed: this is what it had cost by then", "{run}");
        if let Some(cycles) = why.strip_suffix(" cycles") {
            let cycles: u64 = cycles.parse().unwrap();
            let counted =
                ["/cycles", "/idle/nothing_live"].map(|key| profile["summary"].pointer(key).unwrap().as_u64());
            // The edge that launches comes before them.
            assert_eq!(counted.into_iter().flatten().sum::<u64>(), cycles + 1, "{run}");
        }
    }
}

#[test]
fn several_launches_are_one_profile() {
    let place = Place::new();
    let profile = profile(&place, "bfs --size small --lanes 4 --warps 2");
    let launches = rows(&profile["time"], "launches");
    assert!(launches.len() > 1, "{launches:?}");
    assert_eq!(launches.len() as u64, profile["summary"]["launches"].as_u64().unwrap());
    let ends = |launch: &Value| [&launch[0], &launch[1]].map(|cycle| cycle.as_u64().unwrap());
    assert!(launches.windows(2).all(|two| ends(&two[0])[1] <= ends(&two[1])[0]), "{launches:?}");
}

#[test]
fn a_run_that_diverges_says_where() {
    let place = Place::new();
    let one = profile(&place, "gcd --size small --lanes 1 --warps 4");
    assert!(rows(&one, "branches").iter().all(|branch| branch["diverged"] == 0));
    let all = profile(&place, "gcd --size small --lanes 8 --warps 4");
    let branch = &rows(&all, "branches")[0];
    assert!(branch["diverged"].as_u64().unwrap() > 0 && branch["file"].as_str().unwrap().ends_with("kernels/gcd.c"));
    assert!(branch["reconverges"]["place"].is_string());
    let text = place.good("profile gcd --size small --lanes 8 --warps 4");
    let named = format!(
        "{} diverges most: {} of {} times",
        branch["place"].as_str().unwrap(),
        branch["diverged"],
        branch["executed"]
    );
    assert!(
        text.contains(&named) && text.contains("reconverge at ") && text.contains("heddle predict --auto: "),
        "{text}"
    );
    assert!(place.good("profile gcd --size small --lanes 1 --warps 4").contains("no branch diverges\n"));
}

/// As the page has a number of cycles.
fn cycles(value: &Value) -> String {
    let cycles = value.as_f64().unwrap();
    if cycles.fract() == 0.0 { format!("{cycles:.0}") } else { format!("{cycles:.1}") }
}

fn share(value: &Value) -> String {
    format!("{:.1} %", 100.0 * value.as_f64().unwrap())
}

/// What the page says of lines, branches, accesses and time is what the JSON says.
#[track_caller]
fn check_page(page: &str, profile: &Value) {
    let has = |cells: &[String], what: &str| {
        let cells: String = cells.iter().map(|cell| format!("<td class=\"n\">{cell}</td>")).collect();
        assert!(page.contains(&cells), "{what}: {cells}");
    };
    for line in rows(profile, "lines") {
        let lost: f64 = CAUSES.iter().map(|cause| line["cycles_lost"][cause].as_f64().unwrap()).sum();
        assert!(lost <= line["cycles"].as_f64().unwrap());
        let name = line["line"].as_u64().map_or(line["place"].as_str().unwrap().to_string(), |line| line.to_string());
        let id = format!(
            "<tr id=\"at-{:x}\" data-place=\"{}\">",
            line["address"].as_u64().unwrap(),
            line["place"].as_str().unwrap()
        );
        let row = page.split(&id).nth(1).unwrap_or_else(|| panic!("{id}"));
        let cells = [name, line["executions"].to_string(), share(&line["simt_efficiency"]), cycles(&line["cycles"])];
        let cells: String = cells.iter().map(|cell| format!("<td class=\"n\">{cell}</td>")).collect();
        assert!(row.starts_with(&cells), "{cells}");
    }
    for branch in rows(profile, "branches") {
        has(&[branch["executed"].to_string(), branch["diverged"].to_string()], "branches");
    }
    for access in rows(profile, "accesses") {
        let keys = ["executed", "coalesced", "accesses", "parts", "bank_conflicts", "replays"];
        has(&keys.map(|key| access[key].to_string()), "accesses");
    }
    for row in rows(&profile["time"], "overview") {
        has(&[row["first"].to_string(), row["cycles"].to_string()], "overview");
    }
    for cause in CAUSES {
        let cells = format!(
            "<td>lost: {}</td><td class=\"n\">{}</td>",
            cause.replace('_', " "),
            profile["summary"]["idle"][cause]
        );
        assert!(page.contains(&cells), "{cells}");
    }
    for outside in ["http:", "https:", " src=\"/", "@import", "url("] {
        assert!(!page.contains(outside), "the page needs {outside}");
    }
}

#[test]
fn the_page_has_the_numbers_of_the_json() {
    let place = Place::new();
    for (run, options) in [
        ("gcd", "--size small --lanes 8 --warps 8"),
        ("fft", "--size small --lanes 4 --warps 2 --cache 1K"),
        ("backprop", "--size small --lanes 64 --warps 1"),
        ("reduce", "--lanes 1 --warps 1"),
    ] {
        let before = format!("profile {run} {options} --divergence stack --json");
        place.file("before.json", place.good(&before).as_bytes());
        let profile = profile(&place, &format!("{run} {options} --html page.html --against before.json"));
        let page = fs::read_to_string(place.path().join("page.html")).unwrap();
        check_page(&page, &profile);
        assert!(page.contains(&format!("heddle {before}")), "{run}");
        assert!(page.contains("of the other run\""), "{run}");
        assert!(page.contains(&format!("kernels/{run}.c")), "{run}");
    }
}

#[test]
fn another_run_stands_beside() {
    let place = Place::new();
    let run = "gcd --size small --lanes 8 --warps 4";
    place.file("stack.json", place.good(&format!("profile {run} --divergence stack --json")).as_bytes());
    let text = place.good(&format!("profile {run} --against stack.json"));
    assert!(text.contains("\nagainst "), "{text}");
    let same = place.good(&format!("profile {run} --divergence stack --against stack.json"));
    assert!(same.contains("`, +0.0 %\n"), "{same}");
}

/// A place with a source, and the program of it; `None`, said aloud, without a compiler.
fn own(what: &str, flags: &str) -> Option<Place> {
    if let Err(error) = Compiler::find() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: {error}");
        return None;
    }
    let place = Place::new();
    place.file("k.c", SOURCE.as_bytes());
    place.good(&format!("build k.c -o k.elf {flags}"));
    Some(place)
}

const SOURCE: &str = "#include \"heddle.h\"
volatile unsigned seen[64];
static unsigned half(unsigned n) { return n / 2; }
int main(void) {
  unsigned n = 0; /* <b>&amp; \"quoted\" */
  for (unsigned k = heddle_thread(); k; k = half(k)) n++;
  seen[heddle_thread()] = n;
  return 0;
}
";

#[test]
fn the_access_that_coalesces_worst_is_named() {
    let place = Place::new();
    let all = profile(&place, "bfs --size small --lanes 8 --warps 2");
    let worst = rows(&all, "accesses").iter().max_by_key(|access| access["parts"].as_u64()).unwrap();
    let named = format!("coalesces worst: {} accesses for {} (", worst["accesses"], worst["executed"]);
    let text = place.good("profile bfs --size small --lanes 8 --warps 2");
    assert!(text.contains(&named), "{text}");
    assert!(!place.good("profile reduce --lanes 1 --warps 2").contains("coalesces worst"));
    assert!(place.good("profile histogram --size small --lanes 8 --warps 2").contains("bank conflicts: "));
}

#[test]
fn lines_of_a_source_and_inlined_functions() {
    let Some(place) = own("lines of a program", "") else { return };
    let profile = profile(&place, "k.elf --lanes 4 --warps 4 --html k.html");
    check_sums(&profile, "k.elf");
    let lines: Vec<&str> = rows(&profile, "lines").iter().map(|line| line["place"].as_str().unwrap()).collect();
    assert!(lines.contains(&"k.c:3") && lines.contains(&"k.c:7"), "{lines:?}");
    let inlined =
        rows(&profile, "instructions").iter().any(|row| row["place"] == "k.c:3" && row["inlined_at"][0] == "k.c:6");
    assert!(inlined, "{}", profile["instructions"]);
    let page = fs::read_to_string(place.path().join("k.html")).unwrap();
    check_page(&page, &profile);
    assert!(
        page.contains("/* &lt;b&gt;&amp;amp; &quot;quoted&quot; */") && !page.contains("<b>&amp;"),
        "text is escaped"
    );
    assert!(place.good("profile k.c --lanes 4 --warps 4").contains("k.c:6"));
}

/// Causes are at the lines that have them: memory at the line that uses what is loaded, and at the division.
#[test]
fn causes_are_at_their_lines() {
    let Some(place) = own("lines of causes", "") else { return };
    let source = "#include \"heddle.h\"
volatile unsigned seen[64];
int main(void) {
  unsigned sum = 1;
  for (unsigned k = 0; k < 50; k++) {
    unsigned loaded = seen[k];
    sum ^= loaded;
    sum = 1000000007u / (sum | 1);
  }
  seen[0] = sum;
  printf(\"done\\n\");
  return 0;
}
";
    place.file("c.c", source.as_bytes());
    let run = "c.c --lanes 1 --warps 1 --memory-model latency=100";
    let profile = profile(&place, run);
    check_sums(&profile, run);
    let lost = |line: u64, cause: &str| {
        let line =
            rows(&profile, "lines").iter().find(|row| row["line"] == line && row["place"] == format!("c.c:{line}"));
        line.map_or(0.0, |line| line["cycles_lost"][cause].as_f64().unwrap())
    };
    assert!(lost(7, "memory") > 50.0 * 80.0, "{}", profile["lines"]);
    assert!(lost(6, "memory") < 1000.0, "{}", profile["lines"]);
    assert!((50.0 * 10.0..50.0 * 60.0).contains(&(lost(8, "memory") + lost(8, "scoreboard"))), "{}", profile["lines"]);
    assert!(lost(5, "no_instruction") > 50.0, "{}", profile["lines"]);
    assert!(place.good(&format!("profile {run}")).contains("done\n"));
}

/// What is looked at after its end, to say who waits where, is no part of the run.
#[test]
fn a_barrier_that_a_part_comes_to_ends_the_costs() {
    let Some(place) = own("a barrier that a part comes to", "") else { return };
    let source = "#include \"heddle.h\"
volatile unsigned seen;
int main(void) {
  if (heddle_thread() & 1) { heddle_barrier(); seen = 1; } else { heddle_barrier(); seen = 2; }
  return 0;
}
";
    place.file("p.c", source.as_bytes());
    let output = place.run("profile p.c --lanes 4 --warps 2 --divergence block-stack --json");
    let profile = json(&String::from_utf8(output.stdout).unwrap());
    check_sums(&profile, "p.c");
    assert!(profile["error"].as_str().unwrap().contains("barrier"), "{}", profile["error"]);
    let launch = &profile["time"]["launches"][0];
    assert!(launch[1].as_u64().unwrap() <= profile["summary"]["cycles"].as_u64().unwrap() + 10, "{launch}");
}

#[test]
fn files_of_one_name_are_told_apart() {
    let Some(place) = own("files of one name", "") else { return };
    for (folder, work) in [("a", "n * 3"), ("b", "n / 7 * n / 3 * n / 5")] {
        fs::create_dir(place.path().join(folder)).unwrap();
        let source = format!("unsigned {folder}(unsigned n) {{\n  return {work};\n}}\n");
        place.file(&format!("{folder}/u.c"), source.as_bytes());
    }
    let main = "unsigned a(unsigned), b(unsigned);\nvolatile unsigned seen;\nint main(void) {\n  seen = a(b(seen));\n  return 0;\n}\n";
    place.file("m.c", main.as_bytes());
    let before = place.good("profile m.c a/u.c b/u.c --lanes 2 --warps 1 --json");
    place.file("before.json", before.as_bytes());
    let text = place.good("profile m.c a/u.c b/u.c --lanes 2 --warps 1 --against before.json");
    let row = |line: &str| {
        let row = text.lines().find(|row| row.starts_with(line)).unwrap_or_else(|| panic!("{line}: {text}"));
        row.split_whitespace().map(String::from).collect::<Vec<_>>()
    };
    for line in ["a/u.c:2 ", "b/u.c:2 ", "m.c:4 "] {
        let row = row(line);
        assert_eq!(row[1], row[8], "{row:?}");
    }
    assert_ne!(row("a/u.c:2 ")[1], row("b/u.c:2 ")[1]);
}

#[test]
fn without_debug_information_there_are_addresses() {
    let place = Place::new();
    place.file("p.elf", &elf(&[0x0000_0513, 0x05d0_0893, 0x0000_0073]));
    let output = place.run("profile p.elf --lanes 2 --warps 1 --html p.html --json");
    assert!(output.status.success());
    let profile = json(&String::from_utf8(output.stdout).unwrap());
    check_sums(&profile, "p.elf");
    let notes = rows(&profile, "notes");
    assert_eq!(notes.len(), 1);
    assert!(
        notes[0].as_str().unwrap().starts_with("p.elf has no debug information: its 3 instructions by address"),
        "{notes:?}"
    );
    assert_eq!(rows(&profile, "lines").iter().filter(|line| line["file"].is_null()).count(), 3);
    assert!(place.good("profile p.elf --lanes 2 --warps 1").contains("\nnote: p.elf has no debug information"));
    check_page(&fs::read_to_string(place.path().join("p.html")).unwrap(), &profile);

    let Some(place) = own("a program without -g", "-- -g0") else { return };
    let text = place.good("profile k.elf --lanes 4 --warps 2");
    assert!(text.contains(" main+0x") && text.contains("note: k.elf has no debug information"), "{text}");
}

#[test]
fn sources_that_moved_or_changed_are_named() {
    let Some(place) = own("sources that changed", "") else { return };
    let source = place.path().join("k.c");
    let note = |place: &Place| {
        let text = place.good("profile k.elf --lanes 4 --warps 2");
        text.lines().find_map(|line| line.strip_prefix("note: lines without text: ")).map(String::from)
    };
    assert_eq!(note(&place), None);
    let later = SystemTime::now() + Duration::from_secs(5);
    fs::File::options().append(true).open(&source).unwrap().set_modified(later).unwrap();
    let said = note(&place).unwrap();
    assert!(said.ends_with("k.c changed since the build"), "{said}");
    fs::remove_file(&source).unwrap();
    let said = note(&place).unwrap();
    assert!(said.ends_with("k.c cannot be read"), "{said}");
    place.good("profile k.elf --lanes 4 --warps 2 --html k.html");
    assert!(fs::read_to_string(place.path().join("k.html")).unwrap().contains("k.c (no text)"));
}

#[test]
fn bad_input_is_one_line() {
    let place = Place::new();
    place.file("run.json", b"{\"ok\": true}");
    for (arguments, error) in [
        ("gcd --html none/page.html", "cannot write none/page.html: there is no such folder"),
        ("gcd --html .", "cannot write .: it is there and not a file"),
        ("gcd --against run.json", "run.json is no profile, as `heddle profile --json` prints them: missing field"),
        ("gcd --against none.json", "cannot read none.json: "),
        ("gcd --window 7..7", "`7..7` has no cycle"),
        ("gcd --json --against run.json", "--against is for the table and for --html; --json has this run alone"),
        ("mandelbrod", "no kernel is called `mandelbrod`; did you mean `mandelbrot`?"),
    ] {
        let said = place.bad(&format!("profile {arguments}"));
        assert!(said.contains(error), "{arguments}: {said}");
    }
}

/// What --against reads can come from anywhere.
#[test]
fn a_profile_that_does_not_fit_together_is_refused() {
    let place = Place::new();
    let run = "profile gcd --size small --lanes 2 --warps 2";
    let good = json(&place.good(&format!("{run} --json")));
    let many = 1_u64 << 60;
    for (what, to, error) in [
        ("/time/bins", many.into(), "`bins` is "),
        ("/time/bins", 3.into(), " numbers for 3 bins"),
        ("/time/first", many.into(), "`first` is "),
        ("/time/cycles_per_bin", 0.into(), "`cycles_per_bin` is 0"),
        ("/warps", 3.into(), "there are 2 warps of 3"),
        ("/time/slots/issued", Value::Array(vec![u32::MAX.into()]), "`issued` has 1 numbers"),
        ("/time/warps/1/ready", Value::Array(Vec::new()), "`ready` has 0 numbers"),
    ] {
        let mut wrong = good.clone();
        *wrong.pointer_mut(what).unwrap() = to;
        place.file("wrong.json", wrong.to_string().as_bytes());
        let said = place.bad(&format!("{run} --against wrong.json --html page.html"));
        assert!(said.starts_with("wrong.json is no profile, ") && said.contains(error), "{what}: {said}");
    }
}

#[test]
fn a_range_of_cycles_is_shown_in_detail() {
    let place = Place::new();
    let profile = profile(&place, "nqueens --window 1000..1500");
    let time = &profile["time"];
    assert_eq!((&time["first"], &time["cycles_per_bin"], &time["bins"]), (&1000.into(), &1.into(), &500.into()));
    assert_eq!(sum(rows(&profile, "lines"), "/executions"), profile["summary"]["warp_instructions"].as_f64().unwrap());
}

/// A page in the browser that is there: what it says on its console, and what becomes of the page.
#[test]
fn a_browser_has_nothing_to_complain_about() {
    let is_there = |name: &&str| {
        let found = Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    };
    let Some(browser) = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there) else {
        let _ = writeln!(std::io::stderr(), "SKIPPED: a page in a browser, which needs chromium");
        return;
    };
    let place = Place::new();
    for run in ["gcd --size small", "if_else --lanes 32 --warps 16 --divergence stack"] {
        let profile = profile(&place, &format!("{run} --html page.html"));
        let page = format!("file://{}", place.path().join("page.html").display());
        let mut command = Command::new(browser);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--log-level=0"]);
        command.arg(format!("--user-data-dir={}", place.path().join("browser").display()));
        let output = command.args(["--virtual-time-budget=5000", "--dump-dom", &page]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("CONSOLE"), "{run}: {said}");
        let shown = String::from_utf8_lossy(&output.stdout);
        // The script ran to its end.
        assert!(shown.contains("data-ready=\"1\"") && shown.contains("class=\"on\""), "{run}: {said}");
        check_page(&shown, &profile);
    }
}

#[test]
fn kernels_have_lines() {
    for kernel in kernels::every() {
        assert!(
            !kernel.debug.is_empty() && kernel.small_elf.is_some() == kernel.small_debug.is_some(),
            "{}",
            kernel.name
        );
    }
}
