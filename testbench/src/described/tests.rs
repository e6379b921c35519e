//! Descriptions beside programs: what they do, and what is wrong with them.

use super::*;
use crate::iss::Iss;
use crate::kernels::{Device, KernelError};
use crate::machine::MachineError;
use crate::program::Program;
use heddle_simt::Shape;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn program() -> Program {
    let built = crate::kernels::find("vecadd").unwrap();
    Program::parse(built.elf).unwrap()
}

fn description(text: &str) -> Result<Description, DescriptionError> {
    Description::parse("h.toml", PathBuf::from("none"), text.into())
}

/// The driver for `vecadd`, whose variables are `length`, `a`, `b` and `sum`.
fn driver(text: &str) -> Result<Driver, DescriptionError> {
    description(text)?.driver(&program())
}

fn run(text: &str) -> Result<usize, KernelError> {
    let driver = driver(text).unwrap();
    let mut iss = Iss::new(&program(), &Shape::new(4, 2)).unwrap();
    driver.drive(&mut iss, 1).map(|output| output.checked)
}

fn error(text: &str) -> String {
    driver(text).map(drop).unwrap_err().to_string()
}

const ADDS: &str = "[arguments]\nlength = 8\n[buffers]\na = { fill = \"counting\", from = 10, length = 8 }\n\
                    b = { values = [1, 2, 3, 4, 5, 6, 7, 8], length = 8 }\nsum = { length = 8 }\n";

#[test]
fn results_are_compared_with_a_file_and_the_first_that_differs_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let check = |numbers: &str| {
        fs::write(folder.path().join("want.txt"), numbers).unwrap();
        let text = format!("{ADDS}[check.files]\nsum = \"want.txt\"\n");
        let described = Description::parse("h.toml", folder.path().into(), text).unwrap();
        let mut iss = Iss::new(&program(), &Shape::new(4, 2)).unwrap();
        described.driver(&program()).unwrap().drive(&mut iss, 1)
    };
    assert_eq!(check("11 13 15 17 19 21 23 25").unwrap().checked, 8);
    let wrong = check("11 13 15 17 19 22 23 5").unwrap_err().to_string();
    assert_eq!(wrong, "wrong result: sum[5] is 21 (0x15), should be 22 (0x16); 2 of 8 elements differ");
    let wrong = check("11 13 15 17 19 21 23 5").unwrap_err().to_string();
    assert_eq!(wrong, "wrong result: sum[7] is 25 (0x19), should be 5; 1 of 8 elements differs");
}

/// `main` itself as the reference: one thread adds what all threads should have.
#[test]
fn a_function_of_the_program_is_the_reference_on_a_memory_of_its_own() {
    let text = format!("{ADDS}[check]\nreference = \"main\"\nbuffers = [\"sum\", \"a\"]\n");
    assert_eq!(run(&text).unwrap(), 16);
    let nobody = run(&format!("{text}[grid]\nblocks = 1\nblock_threads = 3\n")).unwrap_err().to_string();
    assert_eq!(nobody, "wrong result: sum[3] is 0, should be 17 (0x11); 5 of 8 elements differ");
}

#[test]
fn a_reference_that_goes_wrong_is_named() {
    // The first instruction jumps to `main`, which is nothing; `endless` jumps to itself.
    let labels = [("endless", 4), ("main", 8), ("illegal", 12)];
    let program = Program::assembled(&[0x0080_006f, 0x0000_006f, 0x0000_0013, 0], labels);
    let driver = description("").unwrap().driver(&program).unwrap();
    let iss = Iss::new(&program, &Shape::new(2, 1)).unwrap();
    let error = |function: &str| reference::run(&driver, function, &iss, 1).map(drop).unwrap_err().to_string();
    assert_eq!(error("endless"), "reference `endless`: not at its end after 4096 instructions at 0x00000004 (endless)");
    assert_eq!(error("illegal"), "reference `illegal`: illegal instruction 0x00000000 at 0x0000000c (illegal)");
    assert_eq!(error("gone"), "the program has no symbol `gone`");
}

#[test]
fn a_reference_ends_when_it_should() {
    let program = Program::assembled(&[0x0000_006f], [("main", 0)]);
    let mut driver = description("").unwrap().driver(&program).unwrap();
    let iss = Iss::new(&program, &Shape::new(2, 1)).unwrap();
    let error = |driver: &Driver| reference::run(driver, "main", &iss, 1).map(drop).unwrap_err();
    let interrupted = Arc::new(AtomicBool::new(false));
    driver.set_interrupted(interrupted.clone());
    assert!(error(&driver).to_string().starts_with("reference `main`: not at its end"));
    interrupted.store(true, Ordering::Relaxed);
    let KernelError::Device(device) = error(&driver) else { panic!("it is the device's") };
    assert!(matches!(device.downcast_ref(), Some(MachineError::Interrupted)), "{device}");
}

/// By whatever path.
#[test]
fn results_overwrite_nothing_that_is_read_and_no_other_results() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("in")).unwrap();
    let eight = "1 2 3 4 5 6 7 8";
    ["a.txt", "in/b.txt"].iter().for_each(|name| fs::write(folder.path().join(name), eight).unwrap());
    std::os::unix::fs::symlink("a.txt", folder.path().join("link.txt")).unwrap();
    std::os::unix::fs::symlink("h.toml", folder.path().join("h.bin")).unwrap();
    std::os::unix::fs::symlink("kernel.c", folder.path().join("k.bin")).unwrap();
    let path = folder.path().join("h.toml");
    fs::write(folder.path().join("kernel.c"), "").unwrap();
    let driver = |results: &str| {
        let text = format!(
            "[buffers]\na = {{ file = \"a.txt\", length = 8 }}\nsum = {{ length = 8 }}\n\
             [check.files]\nsum = \"in/b.txt\"\n[results]\n{results}\n"
        );
        fs::write(&path, text).unwrap();
        Description::read(&path).unwrap().driver(&program()).map(drop).map_err(|error| error.to_string())
    };
    let absolute = folder.path().join("a.txt").display().to_string();
    for file in ["a.txt", "./in/../a.txt", "link.txt", &absolute, "in/b.txt", "h.bin", "k.bin"] {
        let error = driver(&format!("save.sum = \"{file}\"")).unwrap_err();
        let wanted = format!("{}:7: {file} is read, too: results need a file of their own", path.display());
        assert_eq!(error, wanted);
    }
    let error = driver("save.sum = \"o.bin\"\nsave.b = \"in/../o.bin\"").unwrap_err();
    assert!(error.ends_with(":8: in/../o.bin is written twice: each result needs a file of its own"), "{error}");
    let picture = |name: &str, file: &str| format!("[pictures.{name}]\nwidth = 1\nheight = 1\nfile = \"{file}\"\n");
    let pictures = |second: &str| driver(&(picture("sum", "p.png") + &picture("a", second)));
    assert!(
        pictures("./p.png")
            .unwrap_err()
            .ends_with(":14: ./p.png is written twice: each result needs a file of its own")
    );
    pictures("q.png").unwrap();
    driver("save.sum = \"o.bin\"\nsave.b = \"in/o.bin\"").unwrap();
}

#[test]
fn what_is_to_be_seen_is_read_right_or_wrong() {
    let text = format!(
        "{ADDS}[results]\nprint = [\"sum[..2]\", \"sum[3]\", \"b[6..]\"]\nsave = {{ sum = \"out/sum.bin\" }}\n\
         [pictures.sum]\nwidth = 4\nheight = 2\nfile = \"sum.png\"\n"
    );
    let driver = driver(&text).unwrap();
    let mut iss = Iss::new(&program(), &Shape::new(1, 1)).unwrap();
    let output = driver.drive(&mut iss, 1).unwrap();
    assert_eq!((output.checked, output.image.map(|image| (image.width, image.height))), (0, Some((4, 2))));
    let results = driver.results(&mut iss).unwrap();
    let shown: Vec<(&str, &[i128])> =
        results.shown.iter().map(|shown| (shown.name.as_str(), &shown.numbers[..])).collect();
    assert_eq!(shown, [("sum[..2]", &[11, 13][..]), ("sum[3]", &[17]), ("b[6..]", &[7, 8])]);
    let (path, bytes) = &results.files[0];
    assert_eq!((path, bytes.len(), bytes[4]), (&PathBuf::from("none/out/sum.bin"), 32, 13));
    assert_eq!(results.pictures[0].1, Some(PathBuf::from("none/sum.png")));
}

#[test]
fn arguments_and_buffers_are_what_is_said_and_the_command_line_wins() {
    let mut driver = driver(&format!("{ADDS}[check]\nreference = \"main\"\nbuffers = [\"sum\"]\n")).unwrap();
    driver.set("length", 3);
    let mut iss = Iss::new(&program(), &Shape::new(2, 2)).unwrap();
    driver.set_grid(GridSpec { block_threads: Some(4), ..GridSpec::default() });
    driver.drive(&mut iss, 1).unwrap();
    assert_eq!((&mut iss as &mut dyn Device).read_words("sum", 5).unwrap(), [11, 13, 15, 0, 0]);
    let random = |text: &str, seed: u64| {
        let mut iss = Iss::new(&program(), &Shape::new(2, 2)).unwrap();
        super::tests::driver(&format!("[buffers]\na = {text}\n")).unwrap().fill(&mut iss, seed).unwrap();
        (&mut iss as &mut dyn Device).read_words("a", 1000).unwrap()
    };
    let first = random("{ fill = \"random\", to = 9 }", 1);
    assert!(first.iter().all(|number| *number < 10) && first.contains(&0) && first.contains(&9));
    assert_eq!(first, random("{ fill = \"random\", to = 9 }", 1));
    assert_ne!(first, random("{ fill = \"random\", to = 9 }", 2));
    assert_ne!(first, random("{ fill = \"random\", to = 9, seed = 1 }", 1));
}

#[test]
fn a_grid_suits_every_core() {
    let spec = |text: &str| driver(&format!("[grid]\n{text}\n")).unwrap().grid();
    for (text, all, blocks, threads) in [
        ("", 64, 1, 64),
        ("blocks = 3", 1, 3, 1),
        ("block_threads = 16", 64, 1, 16),
        ("items = 1000", 1, 1000, 1),
        ("items = 1000", 64, 16, 64),
        ("items = 1000", 4096, 4, 256),
        ("items = 10\nblock_threads = 4", 64, 3, 4),
        ("items = 0", 64, 1, 64),
    ] {
        let grid = spec(text).on(all, |wanted| wanted.min(all));
        assert_eq!((grid.blocks, grid.threads), (blocks, threads), "{text} on {all}");
    }
}

#[test]
fn sources_and_options_of_the_core_are_as_they_stand() {
    let described =
        description("[build]\nsources = [\"a.c\", \"b.S\"]\nflags = [\"-DN=1\"]\n[core]\nlanes = 4\ncache = \"4K\"\n")
            .unwrap();
    assert_eq!(described.sources(), [PathBuf::from("none/a.c"), PathBuf::from("none/b.S")]);
    assert_eq!(described.flags(), ["-DN=1"]);
    let option = |key: &str, value: &str, line: u32| CoreOption {
        key: key.into(),
        value: value.into(),
        place: format!("h.toml:{line}"),
    };
    assert_eq!(described.core(), [option("cache", "4K", 6), option("lanes", "4", 5)]);
    assert_eq!(description("").unwrap().sources(), [PathBuf::from("none/kernel.c")]);
}

#[test]
fn each_mistake_is_a_line_with_its_place() {
    let starts = |text: &str, wanted: &str| {
        let error = error(text);
        assert!(error.starts_with(wanted), "{error}\n{wanted}");
        assert!(!error.contains('\n'));
    };
    let ends = |text: &str, wanted: &str| assert!(error(text).ends_with(wanted), "{}\n{wanted}", error(text));
    ends("[grids]\nblocks = 1\n", "; did you mean `grid`?");
    starts("\n[grid]\nblock = 1\n", "h.toml:3: unknown field `block`, ");
    ends("[grid]\nblock = 1\n", "; did you mean `blocks`?");
    ends("[buffers]\na = { lenght = 1 }\n", "; did you mean `length`?");
    ends("[buffers]\na = { fill = \"zeroes\" }\n", "; did you mean `zeros`?");
    ends("[buffers]\na = { type = \"u31\" }\n", "; did you mean `u32`?");
    starts("[grid]\nblocks = \"x\"\n", "h.toml:2: invalid type: string \"x\", expected a whole number from 1 to");
    starts("[grid]\nblocks = -1\n", "h.toml:2: ");
    starts(
        "[grid]\nblocks = 0\n",
        "h.toml:2: invalid value: integer `0`, expected a whole number from 1 to 4294967295",
    );
    starts(
        "[grid]\nitems = \"x\"\n",
        "h.toml:2: invalid type: string \"x\", expected a whole number from 0 to 4294967295",
    );
    starts("[arguments]\nlength = 1.5\n", "h.toml:2: invalid type: floating point `1.5`, expected a whole number");
    starts(
        "[buffers]\na = { length = \"x\" }\n",
        "h.toml:2: invalid type: string \"x\", expected a whole number from 0",
    );
    ends("[buffers]\na = { values = 1 }\n", ", expected a list");
    ends("[buffers]\na = 1\n", ", expected a table");
    ends("[build]\nsources = [1]\n", ", expected a text in quotes");
    ends("[buffers]\na = { fil = \"zeros\" }\n", "; did you mean `fill`?");
    starts("a = \n", "h.toml:1: ");
    starts("[core]\nlanes = true\n", "h.toml:2: wanted is a number or a text in quotes");
    starts("[build]\nsources = []\n", "h.toml:2: sources = []: wanted is at least one source");
    starts("[arguments]\nlenght = 1\n", "h.toml:2: the program has no variable `lenght`; did you mean `length`?");
    starts("[arguments]\nmain = 1\n", "h.toml:2: the program has no variable `main`");
    starts("[arguments]\na = 1\n", "h.toml:2: `a` has 65536 bytes, which is no number: it is for `buffers`");
    starts("[arguments]\nlength = 4294967296\n", "h.toml:2: length = 4294967296: it has 32 bits");
    starts("[buffers]\nzzz = {}\n", "h.toml:2: the program has no variable `zzz` (if it is `static`, ");
    starts("[buffers]\na = { length = 16385 }\n", "h.toml:2: `a` has room for 16384 elements of 4 bytes, not 16385");
    starts("[buffers]\na = { fill = \"zeros\", to = 1 }\n", "h.toml:2: `to` is for fill = \"random\"");
    starts("[buffers]\na = { step = 2 }\n", "h.toml:2: `step` is for fill = \"counting\"");
    starts("[buffers]\na = { seed = 2 }\n", "h.toml:2: `seed` is for fill = \"random\"");
    starts(
        "[buffers]\na = { fill = \"zeros\", values = [1] }\n",
        "h.toml:2: `a` has several of `fill`, `values` and `file`",
    );
    starts("[buffers]\na = { length = 1, values = [1, 2] }\n", "h.toml:2: `a` has room for 1 elements, not 2");
    starts("[buffers]\na = { values = [-1] }\n", "h.toml:2: -1 is not from 0 to 4294967295");
    starts("[buffers]\na = { type = \"u8\", fill = \"counting\" }\n", "h.toml:2: 256 is not from 0 to 255");
    starts("[buffers]\na = { fill = \"random\", from = 5, to = 4 }\n", "h.toml:2: `a` has random numbers from 5 to 4");
    starts("[buffers]\na = { file = \"a.bin\" }\n", "h.toml:2: cannot read none/a.bin: No such file");
    starts("[buffers]\na = { file = \"a.dat\" }\n", "h.toml:2: none/a.dat: wanted is a file .bin");
    starts("[check]\nreference = \"main\"\n", "h.toml:2: check: `buffers` is missing");
    starts("[check]\nbuffers = [\"sum\"]\n", "h.toml:2: check: `reference` is missing");
    starts("\n[check]\n", "h.toml:2: check: there is nothing in it");
    starts(
        "[buffers]\nsum = { length = 0 }\n[check]\nreference = \"main\"\nbuffers = [\"sum\"]\n",
        "h.toml:5: check: `sum` has `length` 0: there is nothing to compare",
    );
    starts(
        "[check]\nreference = \"mian\"\nbuffers = [\"sum\"]\n",
        "h.toml:2: the program has no function `mian`; did you mean `main`?",
    );
    starts(
        "[results]\nprint = [\"sum[9..3]\"]\n",
        "h.toml:2: `sum[9..3]`: wanted is `sum`, or a part of its 16384 elements",
    );
    for wrong in ["sum[", "sum[]", "sum[1..2", "sum[16384]", "sum[x]", "sum[..16385]", "sum[18446744073709551615]"] {
        starts(&format!("[results]\nprint = [\"{wrong}\"]\n"), "h.toml:2: `sum[");
    }
    starts("[results]\nsave.sum = \"sum.dat\"\n", "h.toml:2: none/sum.dat: wanted is a file .bin");
    starts(
        "[pictures.sum]\nwidth = 1000\nheight = 17\n",
        "h.toml:2: a picture of 1000 × 17 pixels of `sum`, which has 16384",
    );
    starts("[pictures.sum]\nwidth = 1\nheight = 1\nfile = \"sum.gif\"\n", "h.toml:4: sum.gif: wanted is a file .png");
    starts("[pictures.sum]\nwidth = 1\n", "h.toml:1: missing field `height`");
    starts("[grid]\nblocks = 1\nitems = 4\n", "h.toml:3: grid: `items` is in place of `blocks`");
}

#[test]
fn the_page_has_an_example_and_every_field() {
    let page = include_str!("../../../docs/reference/host-description.md");
    let example = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    description(example).unwrap();
    let fields = |table: &str| {
        let text = if table == "pictures" { "[pictures.a]\nx = 1\n".into() } else { format!("[{table}]\nx = 1\n") };
        let text = if table == "buffers" { "[buffers]\na = { x = 1 }\n".into() } else { text };
        let error = description(&text).unwrap_err().to_string();
        let (_, known) = error.split_once("expected one of ").expect(&error);
        known.split('`').skip(1).step_by(2).map(String::from).collect::<Vec<_>>()
    };
    for table in ["grid", "buffers", "check", "pictures"] {
        let (_, section) = page.split_once(&format!("## `[{table}")).unwrap();
        let section = section.split("\n## ").next().unwrap();
        for field in fields(table) {
            assert!(section.contains(&format!("`{field}`")), "{table}.{field}");
        }
    }
}

#[test]
fn another_text_or_another_file_is_another_run() {
    let of = |text: &str| driver(text).unwrap().fingerprint().to_string();
    assert_eq!(of(ADDS), of(ADDS));
    assert_ne!(of(ADDS), of(&ADDS.replace("from = 10", "from = 11")));
}
