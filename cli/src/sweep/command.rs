//! The commands whose options can be swept, and their options on a command line.

use super::expand::Combination;
use super::file::Value;
use crate::hash::Hash;
use crate::report::Report;
use crate::run::Run;
use crate::synth::Synth;
use crate::target::Target;
use crate::usage_line;
use clap::{ArgMatches, Args};
use heddle_simt::Shape;
use heddle_testbench::machine::{CacheVisits, Compactions, Convergence, Prediction, SecondLevelVisits, Summary};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    Run,
    Hash,
    Synth,
}

/// What options are called that are no names with dashes.
const KERNEL: &str = "kernel";

/// Options of the core that a result of `synth` must not leave to the board.
const OF_A_BOARD: [&str; 2] = ["lanes", "warps"];

impl Command {
    pub const ALL: [Command; 3] = [Command::Run, Command::Hash, Command::Synth];

    pub fn find(name: &str) -> Option<Command> {
        Command::ALL.into_iter().find(|command| command.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Command::Run => "run",
            Command::Hash => "hash",
            Command::Synth => "synth",
        }
    }

    /// Its options, for a line without its name.
    pub fn options(self) -> clap::Command {
        let command = clap::Command::new(self.name()).no_binary_name(true);
        match self {
            Command::Run => Run::augment_args(command),
            Command::Hash => Hash::augment_args(command),
            Command::Synth => Synth::augment_args(command),
        }
    }

    /// Whether it has a seed, which draws are.
    pub fn has_draws(self) -> bool {
        self == Command::Run
    }

    /// What its table shows unless the file says otherwise.
    pub fn usual_columns(self) -> &'static [&'static str] {
        match self {
            Command::Run => &["cycles", "thread_ipc", "simt_efficiency"],
            Command::Hash => &["hash"],
            Command::Synth => &["luts", "ff", "fmax_mhz"],
        }
    }

    /// A result with every key that there can be, if that is known.
    pub fn sample(self) -> Option<Json> {
        match self {
            Command::Run => {
                let summary = Summary {
                    cache: Some(CacheVisits::default()),
                    second_level: Some(SecondLevelVisits::default()),
                    convergence: Some(Convergence::default()),
                    gave_way: Some(0),
                    compaction: Some(Compactions::default()),
                    prediction: Some(Prediction::default()),
                    ..Summary::default()
                };
                let (shape, engine) = (Shape::default(), Default::default());
                let mut report = Report::new(String::new(), &shape, engine, 1, Duration::ZERO, summary);
                report.compared = Some(0);
                serde_json::to_value(report).ok()
            }
            Command::Hash => Some(serde_json::json!({ "hash": "", "core": "" })),
            Command::Synth => None,
        }
    }

    /// Why an option is not for sweeps, if it is not.
    fn refusal(self, key: &str) -> Option<&'static str> {
        match (self, key) {
            (_, "json") => Some("results are JSON in any case"),
            (Command::Run, "seed") => Some("seeds are `draws`"),
            (
                Command::Run,
                "image" | "wave" | "trace" | "watch" | "profile" | "timeline" | "konata" | "perfetto" | "window",
            ) => Some("it writes a file or text of one run, and sweeps keep results only: use `heddle run`"),
            (Command::Hash, "all") | (Command::Synth, "core") => Some("the options of a core are lists here"),
            (Command::Hash | Command::Synth, "seed" | "memory-model" | "second-level") => Some("it is for simulations"),
            (Command::Synth, "list" | "again" | "bitstream") => Some("sweeps keep results only: use `heddle synth`"),
            (_, "help") => Some("it is no option of a run"),
            _ => None,
        }
    }

    /// The words of a command line that has these options. Paths begin at a folder.
    pub fn words(self, combination: &Combination, folder: &Path) -> Vec<String> {
        let (mut words, mut target) = (Vec::new(), Vec::new());
        for (key, value) in &combination.0 {
            match value {
                Value::Flag(false) => {}
                Value::Flag(true) => words.push(format!("--{key}")),
                Value::Words(values) if self == Command::Run && key == KERNEL => target.clone_from(values),
                Value::Words(values) => words.extend(values.iter().map(|value| format!("--{key}={value}"))),
            }
        }
        let is_file = |word: &str| [".elf", ".toml", ".c", ".S", ".s"].iter().any(|end| word.ends_with(end));
        let is_path = |word: &str| word.contains('/') || is_file(word);
        let from = |word: &str| folder.join(word).display().to_string();
        for word in &mut words {
            if let Some(path) = word.strip_prefix("--elf=").filter(|_| self == Command::Run) {
                *word = format!("--elf={}", from(path));
            }
        }
        target.iter_mut().filter(|word| is_path(word)).for_each(|word| *word = from(word));
        target.into_iter().chain(words).collect()
    }

    /// Whether the option takes the value; why not.
    pub fn check(self, key: &str, value: &Value, folder: &Path) -> Result<(), String> {
        if let Some(why) = self.refusal(key) {
            return Err(why.into());
        }
        let is_target = self == Command::Run && key == KERNEL;
        let any_target = (self == Command::Run && !is_target).then(|| "gcd".to_string());
        let options = self.options();
        let option = options.get_arguments().find(|argument| argument.get_long() == Some(key));
        if option.is_none() && !is_target {
            let line: Vec<String> = any_target.into_iter().chain([format!("--{key}")]).collect();
            let why = self.parse(&line).err();
            return Err(why.unwrap_or_else(|| format!("`heddle {}` has no such option", self.name())));
        }
        let takes_value = option.is_none_or(|option| option.get_action().takes_values());
        if let (Value::Flag(_), true) = (value, takes_value) {
            return Err("wanted is a value, not a flag; `on` and `off` stand in quotes".into());
        }
        let words = self.words(&Combination(vec![(key.into(), value.clone())]), folder);
        // A flag that is not set is checked as if it were.
        let words = if words.is_empty() { vec![format!("--{key}")] } else { words };
        let line: Vec<String> = any_target.into_iter().chain(words).collect();
        self.parse(&line).map(drop)?;
        if is_target {
            Target::find(&line[0]).map_err(|error| format!("{error:#}"))?;
        }
        Ok(())
    }

    /// What clap makes of a command line.
    pub fn parse(self, words: &[String]) -> Result<ArgMatches, String> {
        self.options().try_get_matches_from(words).map_err(|error| usage_line(&error))
    }

    /// What is missing in a combination that clap would not miss.
    pub fn missing(self, combination: &Combination) -> Option<String> {
        let lacks = |key: &&str| combination.value(key).is_none();
        match self {
            Command::Run => lacks(&KERNEL).then(|| "`kernel` is missing: a built-in kernel or an ELF file".into()),
            Command::Hash => None,
            Command::Synth => {
                let lacking = OF_A_BOARD.iter().find(|key| lacks(key));
                lacking.map(|key| format!("`{key}` is missing: without it the core is the board's usual one"))
            }
        }
    }
}

/// The folder that paths of a file begin at.
pub fn folder_of(file: &Path) -> PathBuf {
    file.parent().map(Path::to_path_buf).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Value {
        Value::Words(vec![text.into()])
    }

    fn combination(options: &[(&str, Value)]) -> Combination {
        Combination(options.iter().map(|(key, value)| (key.to_string(), value.clone())).collect())
    }

    #[test]
    fn options_become_a_command_line() {
        let options = combination(&[
            ("lanes", words("8")),
            ("kernel", words("a/p.elf")),
            ("no-checks", Value::Flag(true)),
            ("set", Value::Words(vec!["x=-1".into(), "y=2".into()])),
        ]);
        let line = Command::Run.words(&options, Path::new("sweeps"));
        assert_eq!(line, ["sweeps/a/p.elf", "--lanes=8", "--no-checks", "--set=x=-1", "--set=y=2"]);
        assert!(Command::Run.parse(&line).is_ok());
        assert_eq!(Command::Run.words(&combination(&[("kernel", words("gcd"))]), Path::new("sweeps")), ["gcd"]);
        assert!(Command::Run.words(&combination(&[("no-checks", Value::Flag(false))]), Path::new("")).is_empty());
    }

    #[test]
    fn a_value_is_checked_by_the_command_itself() {
        let check = |command: Command, key: &str, value: Value| command.check(key, &value, Path::new(""));
        let run = |key: &str, value: Value| check(Command::Run, key, value).unwrap_err();
        for (key, value) in
            [("lanes", "8"), ("kernel", "gcd"), ("fair", "on"), ("cache", "4K,ways=2"), ("elf", "x.elf")]
        {
            assert_eq!(check(Command::Run, key, words(value)), Ok(()), "{key}");
        }
        assert_eq!(check(Command::Run, "no-checks", Value::Flag(false)), Ok(()));
        assert_eq!(check(Command::Synth, "modules", Value::Flag(true)), Ok(()));
        assert!(run("lanes", words("eight")).starts_with("invalid value 'eight' for '--lanes <N>': "));
        assert!(run("divergence", words("stak")).contains("possible values: path-table, arbiter, stack"));
        let unknown = run("lane", words("8"));
        assert!(
            unknown.starts_with("unexpected argument '--lane' found") && unknown.contains("'--lanes'"),
            "{unknown}"
        );
        assert!(run("lane", Value::Flag(false)).starts_with("unexpected argument '--lane' found"));
        assert_eq!(run("kernel", words("gccd")), "no kernel is called `gccd`; did you mean `gcd`?");
        assert_eq!(run("fair", Value::Flag(true)), "wanted is a value, not a flag; `on` and `off` stand in quotes");
        assert!(run("no-checks", words("1")).contains("--no-checks"));
        assert_eq!(run("seed", words("1")), "seeds are `draws`");
        assert_eq!(run("", Value::Flag(false)), "`heddle run` has no such option");
        assert_eq!(run("lanes=4", Value::Flag(true)), "`heddle run` has no such option");
        assert!(run("wave", words("x.fst")).starts_with("it writes a file"));
        assert!(
            check(Command::Hash, "kernel", words("gcd")).unwrap_err().starts_with("unexpected argument '--kernel'")
        );
    }

    #[test]
    fn every_option_that_is_refused_is_there() {
        for (command, keys) in [
            (
                Command::Run,
                &[
                    "json", "seed", "image", "wave", "trace", "watch", "profile", "timeline", "konata", "perfetto",
                    "window",
                ][..],
            ),
            (Command::Hash, &["json", "all", "seed", "memory-model", "second-level"]),
            (Command::Synth, &["json", "core", "seed", "memory-model", "second-level", "list", "again", "bitstream"]),
        ] {
            for key in keys {
                assert!(command.refusal(key).is_some(), "{key}");
                let options = command.options();
                assert!(options.get_arguments().any(|argument| argument.get_long() == Some(key)), "{key}");
            }
        }
    }

    #[test]
    fn the_usual_columns_are_keys_of_the_result() {
        for command in [Command::Run, Command::Hash] {
            let sample = command.sample().unwrap();
            assert!(command.usual_columns().iter().all(|column| !sample[column].is_null()));
        }
    }

    #[test]
    fn what_a_line_must_have() {
        let none = combination(&[]);
        assert!(Command::Run.missing(&none).unwrap().starts_with("`kernel` is missing"));
        assert!(Command::Synth.missing(&combination(&[("lanes", words("4"))])).unwrap().starts_with("`warps`"));
        assert_eq!(Command::Hash.missing(&none), None);
    }
}
