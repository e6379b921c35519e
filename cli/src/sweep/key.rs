//! What a result depends on, as a name.

use super::command::Command;
use super::store::SCHEMA;
use crate::shape::ShapeArgs;
use clap::{ArgMatches, Args};
use heddle_simt::Shape;
use heddle_testbench::Program;
use std::collections::BTreeSet;
use std::ffi::OsStr;

/// The hash of hardware, options of the core, everything else that is asked for, and the seed.
pub fn key(command: &str, design: &str, shape: &Shape, rest: &str, draw: Option<u32>) -> String {
    let draw = draw.map_or_else(String::new, |draw| draw.to_string());
    let text = [&format!("{SCHEMA} {command}"), design, &shape.options(), rest, &draw].map(|part| {
        // Its length, so that no part runs into the next.
        format!("{} {part}\n", part.len())
    });
    format!("{:x}", md5::compute(text.concat()))
}

/// What a command line asks for beside the core and the program, however it is written. What is as usual is left out, so
/// that keys stay when a command gets another option.
pub fn rest(command: Command, matches: &ArgMatches) -> String {
    let of_the_core = ShapeArgs::augment_args(clap::Command::new("core"));
    // How a result is written makes no difference.
    let mut left_out = BTreeSet::from(["json"]);
    // The hashes of the core and of the program have these; of a study, they are of many.
    if command != Command::Study {
        left_out.extend(of_the_core.get_arguments().map(|argument| argument.get_id().as_str()));
        left_out.extend(["target", "elf", "size"]);
    }
    let all = command.options();
    let (study, options, matches) = match matches.subcommand() {
        Some((name, own)) => (format!("{name}\n"), all.find_subcommand(name).expect("it was parsed"), own),
        None => (String::new(), &all, matches),
    };
    let mut arguments: Vec<&clap::Arg> =
        options.get_arguments().filter(|argument| !left_out.contains(argument.get_id().as_str())).collect();
    arguments.sort_by_key(|argument| argument.get_id());
    let text = |argument: &clap::Arg| {
        let id = argument.get_id().as_str();
        let words: Vec<&OsStr> = matches.get_raw(id)?.collect();
        let is_usual = words == argument.get_default_values() || words == ["false"];
        (!is_usual).then(|| format!("{id}={words:?}\n"))
    };
    study + &arguments.into_iter().filter_map(text).collect::<String>()
}

/// The hash of what is loaded, and of the names that drivers use.
pub fn program(program: &Program) -> String {
    let mut hash = md5::Context::new();
    hash.consume(program.elf());
    for symbol in program.symbols() {
        hash.consume(format!("{} {} {}\n", symbol.name, symbol.address, symbol.size));
    }
    format!("{:x}", hash.finalize())
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_testbench::kernels::find;

    fn parsed(line: &str) -> ArgMatches {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        Command::Run.parse(&words).unwrap()
    }

    /// A folder of results is of use for as long as keys are what they were.
    #[test]
    fn a_key_stays() {
        let rest = rest(Command::Run, &parsed("gcd --max-cycles 7 --no-checks --set a=1 --set b=2"));
        assert_eq!(rest, "max_cycles=[\"7\"]\nno_checks=[\"true\"]\nset=[\"a=1\", \"b=2\"]\n");
        assert_eq!(key("run", "12ab", &Shape::new(4, 2), &rest, Some(3)), "cb74230a68e97e476a761c484ac25223");
    }

    #[test]
    fn everything_that_matters_makes_another_key() {
        let of = |line: &str, shape: &Shape, design: &str, draw: u32| {
            key("run", design, shape, &rest(Command::Run, &parsed(line)), Some(draw))
        };
        let first = of("gcd", &Shape::new(4, 2), "a", 1);
        // Options of the core and of the program are in other parts of the key.
        assert_eq!(first, of("sort --engine compiled --size usual --lanes 16 --json", &Shape::new(4, 2), "a", 1));
        let others = [
            of("gcd --engine interpreter", &Shape::new(4, 2), "a", 1),
            of("gcd --no-checks", &Shape::new(4, 2), "a", 1),
            of("gcd --max-cycles 5", &Shape::new(4, 2), "a", 1),
            of("gcd --set a=1", &Shape::new(4, 2), "a", 1),
            of("gcd", &Shape::new(4, 4), "a", 1),
            of("gcd", &Shape::new(4, 2), "b", 1),
            of("gcd", &Shape::new(4, 2), "a", 2),
            key("hash", "a", &Shape::new(4, 2), &rest(Command::Run, &parsed("gcd")), Some(1)),
        ];
        assert_eq!(others.iter().collect::<BTreeSet<_>>().len(), others.len());
        assert!(!others.contains(&first));
    }

    #[test]
    fn a_program_is_what_is_loaded_and_its_names() {
        let program_of = |kernel: &str| Program::parse(find(kernel).unwrap().elf).unwrap();
        let gcd = program(&program_of("gcd"));
        assert_eq!(gcd, program(&program_of("gcd")));
        assert_ne!(gcd, program(&program_of("sort")));
        assert_ne!(gcd, program(&Program::parse(&program_of("gcd").elf()).unwrap()));
    }
}
