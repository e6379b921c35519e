//! Programs of one's own: `heddle new`, `heddle build`, `heddle run` of sources and of folders with a host description.

use crate::common::*;
use heddle_testbench::compile::Compiler;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::process::{Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

/// A place with the folder that `heddle new` makes; `None`, said aloud, without a compiler.
fn own(what: &str) -> Option<Place> {
    if let Err(error) = Compiler::find() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: {error}");
        return None;
    }
    let place = Place::new();
    place.good("new mine");
    Some(place)
}

/// Replaces text in a file of the folder.
#[track_caller]
fn change(place: &Place, file: &str, from: &str, to: &str) {
    let path = place.path().join("mine").join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{file} lacks {from}");
    fs::write(path, text.replace(from, to)).unwrap();
}

fn texts(output: &Output) -> (String, String) {
    (String::from_utf8_lossy(&output.stdout).into_owned(), String::from_utf8_lossy(&output.stderr).into_owned())
}

const SMALL: &str = "--lanes 4 --warps 2";

#[test]
fn a_new_folder_runs_as_it_is_and_as_the_guide_shows_it() {
    let Some(place) = own("a new folder") else { return };
    let mut files: Vec<_> =
        fs::read_dir(place.path().join("mine")).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["README.md", "heddle.toml", "kernel.c"]);
    let text = place.good("run mine");
    let guide = include_str!("../../../docs/guide/write-a-kernel.md");
    let shown = guide.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert!(shown.lines().count() > 3);
    for line in shown.lines() {
        assert!(text.lines().any(|other| other == line), "the guide has {line}\n{text}");
    }
    // Any core, and every instruction beside the second machine.
    for options in ["--lanes 1 --warps 1", "--lanes 64 --warps 1 --divergence stack --check iss", "--seed 2"] {
        let text = place.good(&format!("run mine {options}"));
        assert!(
            text.starts_with("mine                 right: 1000 results are what mine/heddle.toml expects\n"),
            "{text}"
        );
    }
    let again = place.bad("new mine");
    assert_eq!(again, "mine is there and not empty: name another folder, or empty this one");
}

#[test]
fn a_new_folder_is_whole_or_not_there() {
    let place = Place::new();
    fs::create_dir(place.path().join("empty")).unwrap();
    assert!(place.good("new empty/").contains("heddle run empty/ "));
    // A kernel's name is a kernel.
    assert!(place.good("new gcd").contains("heddle run ./gcd "));
    // What a shell or the command would take for something else is shown as it has to be typed.
    let new = |name: &str| {
        let output = place.command("new").args(["--", name]).output().unwrap();
        (output.status.code(), texts(&output))
    };
    for (name, typed) in [("-x", "./-x"), ("it's mine", r"'it'\''s mine'")] {
        let (code, (text, error)) = new(name);
        assert_eq!((code, error.as_str()), (Some(0), ""));
        assert!(text.contains(&format!("\n  heddle run {typed}    builds it")), "{text}");
        let readme = fs::read_to_string(place.path().join(name).join("README.md")).unwrap();
        assert!(readme.contains(&format!("heddle run {typed} --divergence stack ")), "{readme}");
    }
    let readme = fs::read_to_string(place.path().join("-x/README.md")).unwrap();
    assert!(readme.contains("heddle build ./-x -o ./-x.elf "), "{readme}");
    let (code, (text, error)) = new("a\nb");
    assert_eq!((code, text.as_str()), (Some(1), ""));
    assert!(error.starts_with(r#"error: "a\nb": wanted is a name in UTF-8, without line breaks"#), "{error}");
    assert!(!place.path().join("a\nb").exists());
    place.file("file", b"");
    assert!(place.bad("new file").starts_with("cannot write folder file: it is there and not a folder"));
    assert!(place.bad("new file/mine").starts_with("cannot write folder file/mine"));
}

#[test]
fn a_folder_may_have_the_name_of_a_source() {
    let Some(place) = own("a folder that is named as sources are") else { return };
    place.good("new x.c");
    assert!(place.good(&format!("run x.c {SMALL}")).starts_with("x.c                  right: 1000 results "));
    assert!(place.good("build x.c").starts_with("kernel.elf: "));
}

/// Zeros end at once, and of more than there is room for there are as many as there is.
#[test]
fn the_kernel_of_a_new_folder_ends_for_all_inputs_within_its_buffers() {
    let Some(place) = own("zeros") else { return };
    change(&place, "heddle.toml", "[arguments]\nlength = 1000", "[arguments]\nlength = 100000");
    change(&place, "heddle.toml", "steps = { length = 1000 }", "steps = {}");
    change(&place, "heddle.toml", "from = 1, to = 1000", "from = 0, to = 3");
    let text = place.good(&format!("run mine {SMALL}"));
    assert!(text.starts_with("mine                 right: 1024 results "), "{text}");
    let zeros = place.good(&format!("run mine {SMALL} --set length=0"));
    assert!(zeros.contains("\nsteps[..8]           0 0 0 0 0 0 0 0\n"), "{zeros}");
    // 3x + 1 is 0 in 32 bits.
    change(&place, "heddle.toml", "from = 0, to = 3", "from = 1431655765, to = 1431655765");
    let text = place.good(&format!("run mine {SMALL}"));
    assert!(text.contains("\nsteps[..8]           1 1 1 1 1 1 1 1\n"), "{text}");
}

#[test]
fn a_reference_is_interrupted() {
    let Some(place) = own("a reference without an end") else { return };
    change(&place, "kernel.c", "void expected(void) {", "void expected(void) {\n  for (;;) __asm__ volatile(\"\");");
    change(&place, "heddle.toml", "# save = ", "save = ");
    let mut command = place.command("run mine");
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    // The file of the results is opened before the reference runs.
    let opened = || {
        let mut entries = fs::read_dir(place.path().join("mine")).unwrap();
        entries.any(|entry| entry.unwrap().file_name().to_string_lossy().starts_with(".heddle-"))
    };
    while !opened() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before");
        sleep(Duration::from_millis(10));
    }
    sleep(Duration::from_millis(300));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(texts(&output).1, "error: mine: interrupted\n");
    assert!(!opened());
}

#[test]
fn what_is_wrong_is_named_and_shown() {
    let Some(place) = own("wrong results") else { return };
    change(
        &place,
        "kernel.c",
        "    steps[i] = count;\n  }\n  return 0;",
        "    steps[i] = count + (i % 400 == 7);\n  }\n  return 0;",
    );
    change(&place, "heddle.toml", "# save = ", "save = ");
    let (text, error) = texts(&place.run(&format!("run mine {SMALL}")));
    let wanted = "error: mine: wrong result: steps[7] is 34 (0x22), should be 33 (0x21); 3 of 1000 elements differ\n";
    assert_eq!(error, wanted);
    assert!(
        text.contains("\nsteps[..8]           87 43 36 19 73 114 19 34\nsaved                mine/steps.txt\n"),
        "{text}"
    );
    let saved = fs::read_to_string(place.path().join("mine/steps.txt")).unwrap();
    assert_eq!((saved.lines().count(), saved.lines().nth(7)), (1000, Some("34")));
    let (text, _) = texts(&place.run(&format!("run mine {SMALL} --json")));
    let report: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&report["ok"], &report["saved"][0]), (&false.into(), &"mine/steps.txt".into()));
    assert_eq!(report["variables"][1]["words"][7], 34);

    // What was right before is the file to compare with.
    change(&place, "heddle.toml", "reference = \"expected\"", "files = { steps = \"steps.txt\" }");
    change(&place, "heddle.toml", "buffers = [\"steps\"]", "");
    change(&place, "heddle.toml", "save = { steps = \"steps.txt\" }", "save = { steps = \"again.bin\" }");
    assert!(place.good(&format!("run mine {SMALL}")).starts_with("mine                 right: 1000 results "));
    assert_eq!(fs::read(place.path().join("mine/again.bin")).unwrap().len(), 4000);
}

#[test]
fn pictures_grids_and_options_are_as_described_and_the_command_line_wins() {
    let Some(place) = own("pictures and grids") else { return };
    let text = "[pictures.steps]\nwidth = 25\nheight = 40\ncolours = \"heat\"\nfile = \"steps.png\"\n";
    let path = place.path().join("mine/heddle.toml");
    let before = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{before}{text}")).unwrap();
    change(&place, "heddle.toml", "lanes = 8", "lanes = 4");
    change(&place, "heddle.toml", "# blocks = 4", "blocks = 3");
    change(&place, "heddle.toml", "# block_threads = 64", "block_threads = 2");
    let json =
        |options: &str| serde_json::from_str::<Value>(&place.good(&format!("run mine --json {options}"))).unwrap();
    let report = json("");
    assert_eq!((&report["lanes"], &report["blocks"], &report["threads"]), (&4.into(), &3.into(), &6.into()));
    let report = json("--lanes 2 --blocks 1 --block-threads 16 --image other.png");
    assert_eq!((&report["lanes"], &report["blocks"], &report["threads"]), (&2.into(), &1.into(), &16.into()));
    let [ours, other] = ["mine/steps.png", "other.png"].map(|name| fs::read(place.path().join(name)).unwrap());
    assert!(ours.starts_with(b"\x89PNG") && ours == other);
    let text = place.good("run mine --lanes 2 --warps 2 --block-threads 4 --set length=5");
    assert!(text.contains("\nsaved                mine/steps.png\n") && text.lines().count() > 16, "{text}");
}

#[test]
fn sources_are_built_and_run() {
    let Some(place) = own("sources") else { return };
    place.file("k.c", b"#include \"heddle.h\"\nint add(int, int);\nHEDDLE_ARG(uint32_t, length, 3);\nHEDDLE_BUFFER(uint32_t, sum, 64);\n\
                        int main(void) { sum[heddle_thread()] = add(heddle_thread(), length + EXTRA); return 0; }\n");
    place.file("add.S", b"    .globl add\nadd: add a0, a0, a1\n    ret\n");
    let text = place.good("run k.c add.S --lanes 2 --warps 1 --set length=5 --show sum -- -DEXTRA=2");
    assert!(
        text.starts_with("k.c                  ended, all exit codes 0\n") && text.contains("0x7 0x8 0x0"),
        "{text}"
    );
    let built = place.good("build k.c add.S -o out.elf -- -DEXTRA=0");
    assert!(built.starts_with("out.elf: ") && built.ends_with(" of data\n"), "{built}");
    assert!(place.good("run out.elf --lanes 2 --warps 1 --show sum").contains("0x3 0x4 0x0"));
    let shown = place.good("build k.c add.S --show");
    assert_eq!(shown.lines().count(), 4);
    assert!(shown.lines().all(|line| line.contains("-march=rv32ima") || line.contains("ld.lld")), "{shown}");
    assert_eq!(place.names(), ["add.S", "k.c", "mine", "out.elf"]);

    // The driver of a description runs what was made of its program, and sweeps run it, too.
    place.good("build mine -o mine.elf");
    place.good("predict mine -o waits.elf --pdom");
    let waits = place.good("run mine --elf waits.elf --convergence-barriers 4 --lanes 4 --warps 1");
    assert!(waits.starts_with("waits.elf of mine    right: 1000 results "), "{waits}");
    place.file("s.toml", b"command = \"run\"\ndraws = 2\n[options]\nkernel = \"./mine\"\nlanes = [1, 2]\nwarps = 1\n");
    assert!(place.good("sweep s.toml").contains("4 run now"));
    assert!(place.good("sweep s.toml").contains("4 known"));
    change(&place, "heddle.toml", "to = 1000", "to = 999");
    assert!(place.good("sweep s.toml").contains("4 run now"));
}

#[test]
fn bad_sources_are_a_line_behind_what_the_compiler_says() {
    let Some(place) = own("bad sources") else { return };
    place.file("a.c", b"int main(void) { return none; }\n");
    for command in ["build a.c", "run a.c", "reconverge a.c"] {
        let output = place.run(command);
        let (text, error) = texts(&output);
        assert_eq!((text.as_str(), output.status.code()), ("", Some(1)));
        assert!(error.starts_with("a.c:") && error.contains("none"), "{error}");
        let last = error.lines().last().unwrap();
        assert!(last.starts_with("error: a.c does not compile; ") && last.ends_with(" says why"), "{last}");
    }
    assert_eq!(place.names(), ["a.c", "mine"]);
    let wanted = "wanted are sources of one program, .c, .S, .s, .o or .a";
    assert_eq!(place.bad("run a.c gcd"), format!("gcd: of several files {wanted}"));
    assert_eq!(place.bad("run mine a.c"), format!("mine: of several files {wanted}"));
    assert_eq!(place.bad("build a.c -o a.c"), "a.c is a source: -o names the program that is made of it");
    std::os::unix::fs::symlink("a.c", place.path().join("soft.elf")).unwrap();
    let absolute = place.path().join("a.c").display().to_string();
    for out in ["./a.c", "mine/../a.c", "soft.elf", absolute.as_str()] {
        let error = place.bad(&format!("build a.c -o {out}"));
        assert_eq!(error, format!("{out} is a source: -o names the program that is made of it"));
    }
    for out in ["new.c", "mine/b.S", "x.o"] {
        let error = place.bad(&format!("build a.c -o {out}"));
        assert_eq!(error, format!("{out} has the name of a source: -o names the program, such as NAME.elf"));
    }
    let kernel = place.bad("build mine -o mine/kernel.c");
    assert_eq!(kernel, "mine/kernel.c is a source: -o names the program that is made of it");
    let toml = place.bad("build mine -o mine/heddle.toml");
    assert_eq!(toml, "mine/heddle.toml has the name of a host description: -o names the program, such as NAME.elf");
    assert!(place.bad("build a.c -o none/a.elf").starts_with("cannot write none/a.elf: there is no such folder"));
    assert!(place.bad("build gone.c").starts_with("cannot read gone.c: No such file"));
    place.file("a.cpp", b"");
    assert!(place.bad("build a.cpp").starts_with("a.cpp: wanted is a source, .c, .S or .s"));
    assert_eq!(place.bad("run vecadd -- -O3"), "flags for the compiler are for sources: vecadd is built in");
    let none = "there is no heddle.toml in it; `heddle new NAME` makes a folder with one";
    assert_eq!(place.bad("run ."), format!("cannot read .: {none}"));
    assert_eq!(place.bad("build ."), format!("cannot read .: {none}"));
    let mut command = place.command("run a.c");
    assert_eq!(
        place.bad_command(command.env("PATH", "")),
        "no RISC-V compiler: neither riscv64-unknown-elf-gcc, riscv32-unknown-elf-gcc, riscv-none-elf-gcc nor clang with ld.lld is \
         there; install one, as with `apt install gcc-riscv64-unknown-elf`, or name it in HEDDLE_RISCV_CC"
    );
    let mut command = place.command("run a.c");
    assert!(
        place
            .bad_command(command.env("HEDDLE_RISCV_CC", "nowhere/gcc"))
            .starts_with("no compiler `nowhere/gcc`, which")
    );
}

/// `described/tests.rs` has every field; here is who says it.
#[test]
fn bad_descriptions_are_a_line_with_its_place() {
    let Some(place) = own("bad descriptions") else { return };
    let bad = |from: &str, to: &str| {
        change(&place, "heddle.toml", from, to);
        let error = place.bad("run mine --lanes 2 --warps 1");
        change(&place, "heddle.toml", to, from);
        error
    };
    assert_eq!(
        bad("[arguments]\nlength = 1000", "[arguments]\nlenght = 1000"),
        "mine/heddle.toml:16: the program has no variable `lenght`; did you mean `length`?"
    );
    assert!(bad("[arguments]", "[argument]").ends_with("; did you mean `arguments`?"));
    assert_eq!(
        bad("lanes = 8", "lanez = 8"),
        "mine/heddle.toml:8: the core has no option `lanez`; did you mean `lanes`?"
    );
    assert!(
        bad("warps = 8", "warps = \"many\"").starts_with("mine/heddle.toml:9: invalid value 'many' for '--warps <N>'")
    );
    assert!(
        bad("\"expected\" ", "\"expect\"").ends_with("the program has no function `expect`; did you mean `expected`?")
    );
    assert!(
        bad("fill = \"random\", from = 1, to = 1000", "file = \"none.bin\"")
            .contains("cannot read mine/none.bin: No such")
    );
    fs::write(place.path().join("mine/short.txt"), "1 2 3\n").unwrap();
    assert!(
        bad("fill = \"random\", from = 1, to = 1000", "file = \"short.txt\"")
            .contains("short.txt is too short: it has 3 elements")
    );
    assert!(
        bad("# save = { steps = \"steps.txt\" }", "save = { steps = \"none/steps.txt\" }")
            .ends_with("there is no such folder")
    );
    let error = bad("# save = { steps = \"steps.txt\" }", "save = { steps = \"short.txt\", start = \"short.txt\" }");
    assert_eq!(error, "mine/heddle.toml:28: short.txt is written twice: each result needs a file of its own");
    change(&place, "heddle.toml", "lanes = 8", "lanes = 3");
    let error = place.bad("run mine");
    change(&place, "heddle.toml", "lanes = 3", "lanes = 8");
    assert!(error.starts_with("mine/heddle.toml:8: "), "{error}");
    assert!(bad("# block_threads = 64", "block_threads = 3").ends_with("mine: blocks of 3 threads: the core has 2"));
    change(&place, "heddle.toml", "# block_threads = 64", "");
    change(&place, "kernel.c", "CAPACITY = 1024", "CAPACITY = 1 << 20");
    let large = place.bad("run mine --lanes 2 --warps 1");
    assert!(large.starts_with("mine: the segment at 0x") && large.contains("use at least 16777216"), "{large}");
    assert!(large.ends_with("the largest variable is `start`, with 4194304 bytes"), "{large}");
    change(&place, "kernel.c", "CAPACITY = 1 << 20", "CAPACITY = 1024");
    change(
        &place,
        "kernel.c",
        "uint32_t count = 0, x = start[i];",
        "uint32_t count = *(uint32_t *)0x3fffffff, x = start[i];",
    );
    let fault = place.bad("run mine --lanes 2 --warps 1");
    assert!(fault.starts_with("mine: reference `expected`: load outside memory, from 0x3fffffff at 0x"), "{fault}");
    assert!(fault.ends_with(')') && fault.contains("(expected"), "{fault}");
    assert_eq!(place.bad("run mine --image x.png"), "--image: mine has no [pictures]");
}
