//! Command lines made up of any options and values: each succeeds without a word on standard error, or fails with one
//! line, a non-zero exit code, and no file left. `HEDDLE_LONG=1` tries a hundred times as many.

use crate::common::*;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngSeed, TestCaseError, TestRunner};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;

/// Numbers at the edges of what options take, and what is no number.
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "4",
    "8",
    "65",
    "-1",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "1e3",
    "0x10",
    "+1",
    " 1",
    "1 ",
    "",
    "one",
    "٣",
    "1K",
    "1M",
    "64K",
    "100M",
    "5G",
    "K",
    "999999999999999999999K",
];

/// Names of files, kernels, variables, and what is none of them.
const NAMES: &[&str] = &[
    "p.elf",
    "broken.elf",
    "none.elf",
    "none/p.elf",
    "p.elf/",
    "vecadd",
    "vecad",
    "x.vcd",
    "x.fst",
    "none/x.vcd",
    "x.png",
    "out",
    "",
    ".",
    "-",
    "--",
    "a\nb",
    "n=1",
    "n=",
    "=",
    "label=7",
    "label",
    "label=0xffffffff",
    "path-table",
    "compiled",
    "interpreter",
    "\u{1b}[31m",
    "ünï",
    "/dev/null",
    "/dev/full",
];

/// Names that nothing may be written to, because they are outside of the command's folder.
const OUTSIDE: &[&str] = &["..", "/"];

/// Options whose values are files or folders to be written.
const OUTPUTS: &[&str] = &["image", "wave", "waves", "out", "docs", "svg", "dot", "profile"];

const OPTIONS: &[&str] = &[
    "lanes",
    "warps",
    "memory",
    "program",
    "stack",
    "seed",
    "divergence",
    "engine",
    "max-cycles",
    "set",
    "show",
    "rounds",
    "draws",
    "threshold",
    "nonsense",
];

const FLAGS: &[&str] =
    &["--json", "--trace", "--no-checks", "--single-file", "--names", "--tune", "--nonsense", "-x", "--"];

/// Of any option; the only paths that end outside of the command's folder are devices.
fn value() -> impl Strategy<Value = OsString> {
    prop_oneof![
        4 => select(NUMBERS).prop_map(OsString::from),
        4 => select(NAMES).prop_map(OsString::from),
        1 => any::<String>().prop_map(|text| text.replace(['\0', '/'], "").into()),
        1 => prop::collection::vec((1u8..).prop_filter("no path", |b| *b != b'/'), 0..8).prop_map(OsString::from_vec),
    ]
}

fn argument() -> impl Strategy<Value = Vec<OsString>> {
    let input = (select(OPTIONS), prop_oneof![20 => value(), 1 => select(OUTSIDE).prop_map(OsString::from)]);
    let any_option = prop_oneof![13 => input, 5 => (select(OUTPUTS), value())];
    let option = (any_option, any::<bool>()).prop_map(|((name, value), apart)| {
        let name = OsString::from(format!("--{name}"));
        if apart { vec![name, value] } else { vec![[name, "=".into(), value].into_iter().collect()] }
    });
    prop_oneof![
        6 => option,
        2 => select(FLAGS).prop_map(|flag| vec![flag.into()]),
        2 => value().prop_map(|value| vec![value]),
    ]
}

/// A subcommand with arguments. Where success would take long, one argument is wrong.
fn command_line() -> impl Strategy<Value = Vec<OsString>> {
    let small = "run p.elf --lanes=2 --warps=1 --max-cycles=300";
    let starts = [
        small,
        small,
        "run",
        "run p.elf --max-cycles=100",
        "gen p.elf --lanes=1 --warps=2 --out=out",
        "gen",
        "cosim --lanes=3",
        "bench sim vecad",
        "cover --warps=7",
        "prove none",
        "reconverge p.elf",
        "predict p.elf --pdom --out=out.elf",
        "predict vecadd --auto --out=out.elf",
        "predict common_call --tune --lanes=1 --warps=1 --max-cycles=300 --out=out.elf",
        "mutate --lanes=3",
        "bench",
        "kernels",
        "nonsense",
        "",
    ];
    (select(starts.to_vec()), prop::collection::vec(argument(), 0..4)).prop_map(|(start, arguments)| {
        start.split_whitespace().map(OsString::from).chain(arguments.into_iter().flatten()).collect()
    })
}

fn check(arguments: &[OsString]) -> Result<(), TestCaseError> {
    let place = Place::new();
    // Not the place itself: a name may be of the folder above.
    let folder = place.path().join("inner");
    fs::create_dir(&folder).unwrap();
    place.file("inner/p.elf", &ends());
    place.file("inner/broken.elf", &ends()[..70]);
    let names = || fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>();
    let before = names();
    // No program here needs more than a few megabytes; threads ask for address space that they do not use.
    let mut command = place.limited(4 << 20, arguments);
    let output = command.current_dir(&folder).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    let said = format!("{:?}: {}: {error}", arguments, output.status);
    match output.status.code() {
        Some(0) => prop_assert_eq!(&*error, "", "{}", said),
        // Without a subcommand, help.
        Some(2) if error.contains("\nCommands:\n") => {}
        Some(1 | 2) => {
            prop_assert!(error.starts_with("error: ") && error.len() > 12, "{}", said);
            prop_assert!(!error.contains("a defect of heddle"), "{}", said);
            prop_assert_eq!(error.lines().count(), 1, "{}", said);
            prop_assert_eq!(names(), before, "{}", said);
        }
        _ => prop_assert!(false, "{}", said),
    }
    prop_assert_eq!(place.names(), ["inner"], "{}", said);
    Ok(())
}

#[test]
fn any_command_line_ends_well_or_with_one_line() {
    let cases = if std::env::var_os("HEDDLE_LONG").is_some() { 30_000 } else { 300 };
    let rng_seed = RngSeed::Fixed(1);
    eprintln!("seed {rng_seed}");
    let config = ProptestConfig { cases, failure_persistence: None, rng_seed, ..ProptestConfig::default() };
    let result = TestRunner::new(config).run(&command_line(), |arguments| check(&arguments));
    result.unwrap_or_else(|error| panic!("{error}"));
}
