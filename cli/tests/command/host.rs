//! `heddle host` and `heddle board` as a user sees them: the serial code runs, over pseudo-terminals.

use crate::common::*;
use heddle_simt::Shape;
use heddle_simt::host::protocol::{Decoder, REPLY, encode, feature};
use heddle_simt::host::{Identity, identify};
use heddle_testbench::remote::line::Line;
use heddle_testbench::remote::port::Port;
use heddle_testbench::remote::terminal::Terminal;
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::iter;
use std::path::Path;
use std::process::{Child, Output, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

/// A simulated board.
struct Simulated {
    child: Child,
    port: String,
}

impl Simulated {
    fn new(place: &Place, options: &str) -> Simulated {
        let mut command = place.command(&format!("board {options} --pty"));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut port).unwrap();
        Simulated { child, port: port.trim().to_string() }
    }

    /// Of 4 lanes and 2 warps with 32 KiB.
    fn small(place: &Place) -> Simulated {
        Simulated::new(place, "colorlight-i5 --lanes 4 --warps 2 --memory 32K --program 8K --stack 512")
    }

    fn host(&self, arguments: &str) -> String {
        format!("host --port {} {arguments}", self.port)
    }
}

impl Drop for Simulated {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[track_caller]
fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn examples_of_the_help_are_valid() {
    let place = Place::new();
    let boards = place.good("board --help");
    let boards = boards.lines().filter_map(|line| line.strip_prefix("  heddle board "));
    let boards: Vec<&str> = boards.map(|line| line.split("  ").next().unwrap()).collect();
    assert!(boards.len() > 3, "{boards:?}");
    for example in boards {
        place.good(&format!("board {} --list", example.replace("--list", "")));
    }
    let help = place.good("host --help");
    let examples: Vec<&str> = help.lines().filter_map(|line| line.strip_prefix("  heddle host ")).collect();
    assert!(examples.len() > 3, "{help}");
    for example in examples {
        let example = example.split("  ").next().unwrap();
        place.file("prog.elf", &ends());
        let error = place.bad(&format!("host {}", example.replace("/dev/tty", "/dev/none")));
        assert!(error.starts_with("there is no port /dev/none"), "{example}: {error}");
    }
    assert!(place.good("board --list").contains("icebreaker"));
}

#[test]
fn kernels_and_programs_run_on_a_board() {
    let place = Place::new();
    let board = Simulated::small(&place);
    let text = place.good(&board.host(""));
    assert!(text.contains("4 lanes × 2 warps, path-table") && text.contains("memory 32768"), "{text}");
    assert!(text.contains("25 MHz"), "{text}");
    for (kernel, checked) in [("nqueens", 81), ("if_else", 8), ("bitonic_large", 4096)] {
        let report = json(&place.run(&board.host(&format!("{kernel} --json"))));
        assert_eq!((&report["ok"], &report["checked"]), (&true.into(), &checked.into()), "{report}");
        assert!(report["cycles"].as_u64().unwrap() > 100 && report["launches"].as_u64().unwrap() > 0, "{report}");
        assert_eq!((&report["core"]["lanes"], &report["retries"]), (&4.into(), &0.into()));
    }
    let error = place.bad(&board.host("vecadd"));
    assert!(error.starts_with("vecadd: the segment at 0x00000100..0x00030100 is outside memory of 32768"), "{error}");
    assert!(error.ends_with("; --size small fits"), "{error}");
    assert_eq!(json(&place.run(&board.host("vecadd --size small --json")))["checked"], 2048);
    let error = place.bad(&board.host("xsbench --size small"));
    assert!(error.starts_with("xsbench has no small size: the nearest points of 68 nuclides"), "{error}");

    place.file("ends.elf", &ends());
    let text = place.good(&board.host("./ends.elf --blocks 3 --block-threads 2"));
    assert!(text.starts_with("./ends.elf") && text.contains("ended, all exit codes 0"), "{text}");
    // The first thread is of no certain number: warps take turns.
    place.file("fails.elf", &elf(&[li(A0, 7), li(A7, 93), ECALL]));
    let output = place.run(&board.host("./fails.elf --block-threads 4 --json"));
    let report = json(&output);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!((&report["failed"]["threads"], &report["failed"]["code"]), (&4.into(), &7.into()), "{report}");
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.ends_with("with 7 and 3 more\n"), "{error}");
    place.file("stops.elf", &elf(&[EBREAK]));
    let report = json(&place.run(&board.host("./stops.elf --json")));
    assert_eq!((&report["fault"]["pc"], &report["fault"]["mask"]), (&4.into(), &15.into()), "{report}");
    assert!(place.bad(&board.host("./stops.elf")).contains(" at 0x00000004 in warp "));
}

/// A core that lacks something: what can run there runs, and what cannot is told before.
#[test]
fn instructions_that_the_core_lacks_are_told() {
    let place = Place::new();
    let lacks = "--scratchpad 0 --barriers off --atomics off --multiply off --counters off";
    let board = Simulated::new(&place, &format!("icebreaker --lanes 1 --warps 1 --memory 32K --program 8K {lacks}"));
    assert!(place.good(&board.host("")).contains("RV32I without atomics, barriers, multiplication, counters"));
    assert!(place.good(&board.host("sort --size small")).contains("right: 4096 results"));
    place.file("multiplies.elf", &elf(&[0x02a5_0533, li(A0, 0), li(A7, 93), ECALL]));
    let output = place.run(&board.host("./multiplies.elf"));
    let error = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = error.lines().collect();
    let warning = "warning: ./multiplies.elf: the program has multiplications or divisions, and the core has not";
    assert_eq!((lines.len(), lines[0]), (2, warning), "{error}");
    assert!(lines[1].contains("illegal instruction at 0x00000004"), "{error}");
    place.file("reads.elf", &elf(&[READ_CYCLE, li(A0, 0), li(A7, 93), ECALL]));
    let error = String::from_utf8(place.run(&board.host("./reads.elf")).stderr).unwrap();
    let warning = "./reads.elf: the program has reads of counters of cycles or instructions, and the core has not\n";
    assert!(error.starts_with(&format!("warning: {warning}error: ")), "{error}");
}

/// `csrr a0, cycle`.
const READ_CYCLE: u32 = 0xc000_2573;

/// With counters, a board tells what a simulation of its core does; without, nothing of it.
#[test]
fn what_a_board_counts_is_what_a_simulation_counts() {
    let place = Place::new();
    let core = "--lanes 4 --warps 2 --memory 32K --program 8K --stack 512";
    let board = Simulated::new(&place, &format!("colorlight-i5 {core} --metrics"));
    let told = json(&place.run(&board.host("--json")));
    assert_eq!((&told["metrics"], &told["counters"]), (&true.into(), &true.into()), "{told}");
    for kernel in ["if_else", "bitonic_large"] {
        let report = json(&place.run(&board.host(&format!("{kernel} --json"))));
        let mut metrics = report["metrics"].clone();
        let mut simulated = json(&place.run(&format!("run {kernel} {core} --json")));
        let nothing_live = |of: &mut Value| of["idle"]["nothing_live"].take().as_u64().unwrap();
        let [host, run] = [&mut metrics, &mut simulated].map(nothing_live);
        // The host does not count the cycle of a launch.
        assert_eq!((host + report["launches"].as_u64().unwrap(), &metrics["launches"]), (run, &report["launches"]));
        assert_eq!(metrics["cycles"].as_u64().unwrap() + host, report["cycles"].as_u64().unwrap());
        for (name, value) in metrics.as_object().unwrap() {
            assert_eq!(&simulated[name], value, "{name} of {kernel}");
        }
        assert!(metrics["warp_instructions"].as_u64().unwrap() > 10, "{metrics}");
    }
    // Exit codes come with the counters, too.
    place.file("fails.elf", &elf(&[li(A0, 7), li(A7, 93), ECALL]));
    let report = json(&place.run(&board.host("./fails.elf --json")));
    assert_eq!((&report["ok"], &report["failed"]["threads"]), (&false.into(), &8.into()), "{report}");
    assert_eq!((&report["metrics"]["threads"], &report["metrics"]["simt_efficiency"]), (&8.into(), &1.0.into()));
    let text = place.good(&board.host("if_else"));
    let lines = ["thread instructions", "warp instructions", "SIMT efficiency", "issue slots", "paths"];
    assert!(lines.iter().all(|line| text.contains(line)), "{text}");

    let board = Simulated::small(&place);
    assert!(json(&place.run(&board.host("if_else --json")))["metrics"].is_null());
    let text = place.good(&board.host("if_else"));
    assert!(text.contains("not built") && lines.iter().all(|line| !text.contains(line)), "{text}");
}

/// While a program runs, the port is another's; and the program ends with the board, or at Ctrl-C.
#[test]
fn ports_are_busy_and_boards_are_unplugged() {
    let place = Place::new();
    place.file("endless.elf", &endless());
    let begin = |board: &Simulated| {
        let mut command = place.command(&board.host("./endless.elf"));
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // Whether it has the port open is seen without opening it, which would keep it from doing so.
        let open = || fs::read_dir(format!("/proc/{}/fd", child.id())).unwrap().flatten();
        let has_it = || open().any(|fd| fs::read_link(fd.path()).is_ok_and(|path| path == Path::new(&board.port)));
        while !has_it() {
            sleep(Duration::from_millis(10));
        }
        // Now let it lock the port, load and launch.
        sleep(Duration::from_millis(700));
        let error = place.bad(&board.host(""));
        assert_eq!(error, format!("{} is busy: another program has it open", board.port));
        child
    };
    let end = |child: Child| {
        let output = child.wait_with_output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let mut board = Simulated::small(&place);
    let child = begin(&board);
    interrupt(&child);
    assert_eq!(end(child), (130, "error: ./endless.elf: interrupted\n".to_string()));
    assert!(place.good(&board.host("if_else")).contains("right"), "the next one finds it running, and goes on");
    let error = place.bad(&board.host("./endless.elf --timeout 0.2"));
    assert_eq!(error, "./endless.elf: the program did not end in 200ms; the core was reset");

    let child = begin(&board);
    interrupt(&board.child);
    assert_eq!(board.child.wait().unwrap().code(), Some(130));
    let (code, error) = end(child);
    assert_eq!(code, 1);
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains(&format!("{} has gone: unplugged", board.port)), "{error}");
    assert!(place.bad(&board.host("if_else")).starts_with(&format!("there is no port {}", board.port)));
}

/// A line that damages bytes both ways, in the middle of a run, too: requests are made again, and the results are right.
#[test]
fn a_noisy_line_costs_time_and_no_result() {
    let place = Place::new();
    let board = Simulated::small(&place);
    let mut port = Port::open(Path::new(&board.port), 115_200).unwrap();
    // So seldom that the same request is not hit each time.
    let mut passed = 0_u32;
    let mut damage = move |byte: u8| {
        passed += 1;
        if passed.is_multiple_of(701) { byte ^ 1 << (passed % 8) } else { byte }
    };
    let noisy = Stranger::new(move |bytes| {
        let sent: Vec<u8> = bytes.iter().map(|&byte| damage(byte)).collect();
        port.send(&sent).unwrap();
        let come = iter::from_fn(|| port.receive(Duration::ZERO).unwrap());
        come.map(&mut damage).collect()
    });
    let report = json(&place.run(&format!("host --port {} bitonic_large --json", noisy.port)));
    assert_eq!((&report["ok"], &report["checked"]), (&true.into(), &4096.into()), "{report}");
    assert!(report["retries"].as_u64().unwrap() > 20, "{report}");
}

/// The other end of a port, which answers what the function says to the bytes that come.
struct Stranger {
    port: String,
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Stranger {
    fn new(mut answers: impl FnMut(&[u8]) -> Vec<u8> + Send + 'static) -> Stranger {
        let terminal = Terminal::new().unwrap();
        let (port, ends) = (terminal.path().display().to_string(), Arc::new(AtomicBool::new(false)));
        let end = ends.clone();
        let thread = thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                terminal.wait(Duration::from_millis(10)).unwrap();
                terminal.put(&answers(&terminal.take().unwrap())).unwrap();
            }
        });
        Stranger { port, ends, thread: Some(thread) }
    }

    /// A host that tells these words to identify, and the same status to all else.
    fn telling(words: [u32; 5]) -> Stranger {
        let mut decoder = Decoder::default();
        Stranger::new(move |bytes| {
            let frames: Vec<Vec<u32>> = bytes.iter().filter_map(|&byte| decoder.push(byte)?.ok()).collect();
            let reply = |frame: &Vec<u32>| {
                let header = frame[0] & 0xffff | REPLY << 8;
                let tells: &[u32] = if frame[0] >> 8 & 0xff == 1 { &words } else { &[0; 10] };
                encode(&[&[header], tells].concat())
            };
            frames.iter().flat_map(reply).collect()
        })
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

#[test]
fn what_answers_wrongly_is_told() {
    let place = Place::new();
    let error = |stranger: &Stranger| place.bad(&format!("host --port {} nqueens --patience 0.05", stranger.port));
    let nobody = |stranger: &Stranger| {
        format!("no host of a core on {} at 115200 baud: is the bitstream on the board?: ", stranger.port)
    };
    let silent = Stranger::new(|_| Vec::new());
    let nothing = "no answer to `identify` after 4 attempts: nothing came";
    assert_eq!(error(&silent), nobody(&silent) + nothing);
    let echo = Stranger::new(|bytes| bytes.to_vec());
    assert_eq!(error(&echo), nobody(&echo) + nothing);
    let noisy = Stranger::new(|_| vec![0x55; 500]);
    assert!(error(&noisy).starts_with(&(nobody(&noisy) + "the line is never quiet")), "{}", error(&noisy));
    let damaged = Stranger::new(|bytes| if bytes.len() < 8 { vec![] } else { b"~no CRC at all~".to_vec() });
    assert_eq!(error(&damaged), nobody(&damaged) + "no answer to `identify` after 4 attempts: the reply was damaged");

    let mut told = identify(&Shape::new(4, 2), Identity { clock_khz: 0 });
    told[0] += 8;
    let newer = Stranger::telling(told);
    let version = "the host speaks version 9 of the protocol, this is version 1";
    assert_eq!(error(&newer), format!("{}: {version}", newer.port));
    told[0] -= 8;
    let host = Stranger::telling(told);
    assert!(place.good(&format!("host --port {}", host.port)).contains("not told"));
    told[0] ^= 0x300;
    let odd = error(&Stranger::telling(told));
    assert_eq!(odd, "the host tells of a core that cannot be: lanes = 7: must be a power of two from 1 to 64");
    let mut told = identify(&Shape::new(4, 2), Identity { clock_khz: 0 });
    told[4] |= feature::BUS << 24;
    let bus = error(&Stranger::telling(told));
    assert_eq!(bus, "memory of the core is on a bus: its host can neither fill nor read it");
}

#[test]
fn questions_that_are_wrong() {
    let place = Place::new();
    assert!(place.bad("host").contains("--port"));
    assert_eq!(place.bad("host --port /dev/null"), "/dev/null is no serial port");
    assert!(place.bad("host --port none nqueens").starts_with("there is no port none"));
    assert!(place.bad("host --port none nquens").contains("did you mean `nqueens`"));
    assert!(place.bad("host --port none nqueens --set n=1").starts_with("--set is for ELF files"));
    assert!(place.bad("host --port none nqueens --image a.png").starts_with("--image is for mandelbrot"));
    for (options, named) in [
        ("--show a", "--show"),
        ("--set a=1", "--set"),
        ("--image a.png", "--image"),
        ("--size small", "--size"),
        ("--blocks 3", "--blocks or --block-threads"),
    ] {
        let error = place.bad(&format!("host --port none {options}"));
        assert_eq!(error, format!("{named} is for a program: name one to run"));
    }
    assert!(place.bad("host --port none --timeout 0").contains("wanted is a number of seconds"));
    assert!(place.bad("board").contains("NAME"));
    assert!(place.bad("board icebreaker").contains("--pty"));
    assert!(place.bad("board icebraker --pty").contains("icebreaker"));
    assert!(place.bad("board icebreaker --pty --divisor 3").contains("--divisor"));
    assert_eq!(place.bad("board icebreaker --pty --lanes 3"), "lanes = 3: must be a power of two from 1 to 64");
}
