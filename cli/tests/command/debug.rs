//! A real gdb on the core.

use crate::common::Place;
use heddle_testbench::compile::Compiler;
use std::fs;
use std::io::{BufRead, BufReader, Write as _};
use std::process::{Command, Stdio};

/// Line 8 is on the side of odd threads, line 10 on that of even ones.
const KERNEL: &str = "\
#include <heddle.h>
int out[64];
__attribute__((noinline)) int odd(int x) { return 3 * x + 1; }
int main(void) {
    int i = (int)heddle_thread();
    int x = i;
    if (i & 1)
        x = odd(x);
    else
        x = x / 2;
    out[i] = x;
    return 0;
}
";

/// A place with the kernel; `None`, said aloud, without a compiler or gdb.
fn place() -> Option<Place> {
    let compiler = Compiler::find().map(drop).map_err(|error| error.to_string());
    let gdb = Command::new("gdb-multiarch").arg("--version").output().map(drop).map_err(|_| "no gdb-multiarch".into());
    if let Err(error) = compiler.and(gdb) {
        let _ = writeln!(std::io::stderr(), "SKIPPED: gdb: {error}");
        return None;
    }
    let place = Place::new();
    place.file("k.c", KERNEL.as_bytes());
    Some(place)
}

/// What gdb prints of these commands, of a core with these options.
fn gdb(place: &Place, options: &str, commands: &[&str]) -> String {
    let heddle = env!("CARGO_BIN_EXE_heddle");
    let mut command = Command::new("gdb-multiarch");
    command.args([
        "-nx",
        "-batch",
        "-ex",
        "set pagination off",
        "-ex",
        "set confirm off",
        "-ex",
        "set width 0",
        "-ex",
        "set remotetimeout 60",
    ]);
    command.args(["-ex", &format!("target remote | {heddle} debug {options} --stdio")]);
    command.args(commands.iter().flat_map(|one| ["-ex", one]));
    let output = command.current_dir(place.path()).env_remove("PYTHONHOME").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    // What `monitor` prints comes on standard error.
    let said = text(output.stdout) + &text(output.stderr);
    assert!(!said.contains("internal-error") && !said.contains("Remote"), "{commands:?}: {said}");
    said
}

/// The lines of `info threads`, by gdb's number.
fn threads(said: &str) -> Vec<(u32, String)> {
    let line = |line: &str| {
        let rest = line.trim_start_matches(['*', ' ']);
        let (number, rest) = rest.split_once(' ')?;
        rest.contains("Thread 1.").then_some((number.parse().ok()?, rest.to_string()))
    };
    said.lines().filter_map(line).collect()
}

#[test]
fn a_break_in_a_divergent_branch_shows_who_is_there_and_who_waits() {
    let Some(place) = place() else { return };
    for unit in ["path-table", "arbiter", "stack", "dual-path", "block-stack"] {
        let options = format!("k.c --lanes 4 --warps 1 --divergence {unit}");
        let said = gdb(&place, &options, &["break odd", "continue", "info threads", "print x", "monitor paths"]);
        assert!(said.contains("hit Breakpoint 1, odd (x=x@entry=1)"), "{unit}: {said}");
        let threads = threads(&said);
        assert_eq!(threads.len(), 4, "{unit}: {said}");
        for (number, text) in threads {
            let lane = number - 1;
            assert!(text.contains(&format!("(block 0 thread {lane}, warp 0 lane {lane}, ")), "{unit}: {text}");
            // Odd threads run `odd`; the others are behind the branch, or where they wait.
            assert_eq!(text.contains("odd ("), lane % 2 == 1, "{unit}: {text}");
            if lane % 2 == 1 {
                assert!(text.contains(", runs)"), "{unit}: {text}");
            } else if unit == "path-table" {
                assert!(text.contains(", waits for others to reconverge)"), "{unit}: {text}");
            }
        }
        assert!(said.contains("$1 = 1"), "{unit}: {said}");
        if unit == "path-table" {
            assert!(said.contains("lanes 0xa") && said.contains("lanes 0x5"), "{said}");
        }
    }
}

#[test]
fn steps_are_of_one_thread_and_backwards_undoes_them() {
    let Some(place) = place() else { return };
    let commands = [
        "break odd",
        "continue",
        "delete",
        "print $pc",
        "stepi",
        "print $pc",
        "stepi",
        "print $pc",
        "reverse-stepi",
        "print $pc",
        "delete",
        "watch out[3]",
        "continue",
        "print out[3]",
        "reverse-continue",
        "print out[3]",
        "monitor until 40",
        "reverse-continue",
        "monitor cycle",
        "reverse-continue",
        "print $pc",
        "delete",
        "continue",
    ];
    let said = gdb(&place, "k.c --lanes 4 --warps 1", &commands);
    let values: Vec<&str> = said.lines().filter(|line| line.starts_with('$')).collect();
    let pc = |k: usize| {
        let text = values[k].split_whitespace().find_map(|word| word.strip_prefix("0x")).expect(values[k]);
        u32::from_str_radix(text, 16).unwrap()
    };
    assert!(pc(1) != pc(0) && pc(2) != pc(1), "{said}");
    assert_eq!(pc(3), pc(1), "{said}");
    // 3 × 3 + 1, as it is written, and before.
    assert!(values[4].ends_with("= 10") && values[5].ends_with("= 0"), "{said}");
    assert!(said.lines().any(|line| line == "40"), "{said}");
    assert!(said.contains("No more reverse-execution history") && pc(6) == 0, "{said}");
    assert!(said.contains("exited normally"), "{said}");
}

/// Threads come to a breakpoint in one cycle, of which gdb is told one by one; and where they start.
#[test]
fn every_thread_meets_a_breakpoint() {
    let Some(place) = place() else { return };
    let said = gdb(&place, "k.c --lanes 4 --warps 1", &["break odd if x == 3", "continue", "info threads", "continue"]);
    assert!(said.contains("Thread 4 hit Breakpoint 1, odd (x=x@entry=3)"), "{said}");
    assert!(threads(&said).iter().any(|(number, text)| *number == 2 && text.contains("odd (x=x@entry=1)")), "{said}");
    assert!(said.contains("exited normally"), "{said}");
    let said = gdb(&place, "k.c --lanes 2 --warps 2", &["break *0", "continue", "continue", "continue"]);
    let stops: Vec<&str> = said.lines().filter(|line| line.contains("hit Breakpoint 1")).collect();
    assert!(stops.len() == 2 && stops[0].contains("Thread 3") && stops[1].contains("Thread 4"), "{said}");
    assert!(said.contains("exited normally"), "{said}");
}

/// Usual and small ones.
#[test]
fn built_in_kernels_have_lines() {
    let Some(place) = place() else { return };
    for size in ["", "--size small"] {
        let options = format!("gcd {size} --lanes 2 --warps 1");
        let said = gdb(&place, &options, &["break main", "continue", "info line"]);
        assert!(said.contains("hit Breakpoint 1, main ()") && said.contains("kernels/gcd.c"), "{size}: {said}");
    }
}

/// Threads of another warp that come to a breakpoint while gdb takes a thread over it are seen all the same.
#[test]
fn no_thread_passes_a_breakpoint() {
    let Some(place) = place() else { return };
    let condition = ["break odd", "continue", "continue", "continue", "continue", "continue", "continue"];
    let said = gdb(&place, "k.c --lanes 2 --warps 4", &condition);
    let stops: Vec<&str> = said.lines().filter(|line| line.contains("hit Breakpoint 1, odd")).collect();
    let of: std::collections::BTreeSet<&str> = stops.iter().filter_map(|stop| stop.split(" hit").next()).collect();
    assert_eq!((of.len(), stops.len()), (4, 4), "{said}");
    assert!(said.contains("exited normally"), "{said}");
}

#[test]
fn faults_and_wrong_results_are_told() {
    let Some(place) = place() else { return };
    place.file("f.c", b"#include <heddle.h>\nint main(void) { return *(volatile int *)0x7ffffff0; }\n");
    let said = gdb(&place, "f.c --lanes 2 --warps 1", &["continue", "print $pc", "continue"]);
    assert!(said.contains("received signal SIGSEGV") && said.contains("exited with code 01"), "{said}");
    let back = ["continue", "reverse-stepi", "print $pc", "stepi", "reverse-continue", "print $pc", "continue"];
    let said = gdb(&place, "f.c --lanes 2 --warps 1", &back);
    assert_eq!(said.matches("received signal SIGSEGV").count(), 2, "{said}");
    assert!(said.contains("$1 = (void (*)()) 0x30") && said.contains("$2 = (void (*)()) 0x0"), "{said}");
    assert!(said.contains("No more reverse-execution history"), "{said}");
    place.file("h.c", b"volatile int n; int main(void) { for (;;) n++; }\n");
    let said = gdb(&place, "h.c --lanes 2 --warps 1 --max-cycles 2000", &["continue", "info threads", "print n > 0"]);
    assert!(said.contains("received signal SIGXCPU") && said.contains("$1 = 1"), "{said}");
    assert_eq!(threads(&said).len(), 2, "{said}");
    place.file("w.c", b"int main(void) { return 3; }\n");
    let said = gdb(&place, "w.c --lanes 1 --warps 1", &["continue"]);
    assert!(said.contains("exited with code 01"), "{said}");
}

#[test]
fn gdb_connects_to_a_port() {
    let Some(place) = place() else { return };
    let mut command = place.command("debug k.c --lanes 4 --warps 2 --listen 127.0.0.1:0");
    let mut server = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stderr.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("k.c waits for gdb: target remote ").expect(&line).to_string();
    let used = place.bad(&format!("debug k.c --lanes 4 --warps 2 --listen {address}"));
    assert_eq!(used, format!("--listen {address}: the port is in use: choose another, or 0 for any that is free"));
    let output = Command::new("gdb-multiarch")
        .args(["-nx", "-batch", "-ex", &format!("target remote {address}"), "-ex", "monitor help", "-ex", "detach"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("monitor paths"), "{said}");
    assert!(server.wait().unwrap().success());
    let files = fs::read_dir(place.path()).unwrap().count();
    assert_eq!(files, 1, "it leaves files");
}
