//! The commands whose options can be swept, and their options on a command line.

use super::expand::Combination;
use super::file::Value;
use crate::hash::Hash;
use crate::report::Report;
use crate::run::Run;
use crate::study::Study;
use crate::synth::Synth;
use crate::target::Target;
use crate::usage_line;
use clap::{ArgMatches, Args};
use heddle_simt::Shape;
use heddle_testbench::kernels::find;
use heddle_testbench::machine::{CacheVisits, Compactions, Convergence, Prediction, SecondLevelVisits, Summary};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Command {
    Run,
    Hash,
    Synth,
    /// An experiment, whole.
    Study,
}

/// What options are called that are no names with dashes.
const KERNEL: &str = "kernel";
const STUDY: &str = "study";

/// The study that has no results of its own to keep.
const AREA: &str = "area";

/// Options of the core that a result of `synth` must not leave to the board.
const OF_A_BOARD: [&str; 2] = ["lanes", "warps"];

impl Command {
    pub const ALL: [Command; 4] = [Command::Run, Command::Hash, Command::Synth, Command::Study];

    pub fn find(name: &str) -> Option<Command> {
        Command::ALL.into_iter().find(|command| command.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Command::Run => "run",
            Command::Hash => "hash",
            Command::Synth => "synth",
            Command::Study => "study",
        }
    }

    /// What comes first on its line, without a name: the first of these keys must be there.
    fn positional(self) -> &'static [&'static str] {
        match self {
            Command::Run => &[KERNEL],
            Command::Hash | Command::Synth => &[],
            Command::Study => &[STUDY, KERNEL],
        }
    }

    /// Its options, for a line without its name; of studies, each has its own.
    pub fn options(self) -> clap::Command {
        let command = clap::Command::new(self.name()).no_binary_name(true);
        match self {
            Command::Run => Run::augment_args(command),
            Command::Hash => Hash::augment_args(command),
            Command::Synth => Synth::augment_args(command),
            Command::Study => Study::augment_args(command),
        }
    }

    /// Words with which a line with this option is whole, if it has the option; otherwise the line says what is wrong.
    fn any_line_with(self, key: &str) -> Vec<String> {
        let has = |command: &&clap::Command| command.get_arguments().any(|option| option.get_long() == Some(key));
        match self {
            Command::Run => vec!["gcd".into()],
            Command::Hash | Command::Synth => Vec::new(),
            Command::Study => {
                let options = self.options();
                let studies: Vec<&clap::Command> =
                    options.get_subcommands().filter(|study| study.get_name() != AREA).collect();
                let study = studies.iter().copied().find(has).or(studies.first().copied());
                study.map(|study| study.get_name().to_string()).into_iter().collect()
            }
        }
    }

    /// Whether the option that a line of [`Command::any_line_with`] has takes a value; none if there is no such option.
    fn takes_value(self, line: &[String], key: &str) -> Option<bool> {
        let options = self.options();
        let options = line.first().and_then(|name| options.find_subcommand(name)).unwrap_or(&options);
        let option = options.get_arguments().find(|argument| argument.get_long() == Some(key));
        option.map(|option| option.get_action().takes_values())
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
            Command::Study => &["processor_seconds"],
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
            Command::Synth | Command::Study => None,
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
            (Command::Study, "docs" | "results" | "svg" | "decisions" | "cycles") => {
                Some("sweeps keep results only: use `heddle study`")
            }
            (_, "help") => Some("it is no option of a run"),
            _ => None,
        }
    }

    /// The words of a command line that has these options. Paths begin at a folder.
    pub fn words(self, combination: &Combination, folder: &Path) -> Vec<String> {
        let mut words = Vec::new();
        let values_of = |key: &&str| match combination.value(key) {
            Some(Value::Words(values)) => values.clone(),
            _ => Vec::new(),
        };
        let mut target: Vec<String> = self.positional().iter().flat_map(values_of).collect();
        for (key, value) in &combination.0 {
            match value {
                Value::Flag(false) => {}
                Value::Flag(true) => words.push(format!("--{key}")),
                Value::Words(_) if self.positional().contains(&key.as_str()) => {}
                Value::Words(values) => words.extend(values.iter().map(|value| format!("--{key}={value}"))),
            }
        }
        let is_file = |word: &str| [".elf", ".toml", ".c", ".S", ".s"].iter().any(|end| word.ends_with(end));
        let is_path = |word: &str| word.contains('/') || is_file(word);
        let from = |word: &str| folder.join(word).display().to_string();
        let file = match self {
            Command::Run => "--elf=",
            Command::Study => "--area=",
            Command::Hash | Command::Synth => "",
        };
        for word in &mut words {
            if let Some(path) = word.strip_prefix(file).filter(|_| !file.is_empty()) {
                *word = format!("{file}{}", from(path));
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
        let positional = self.positional();
        let (is_first, is_any) = (positional.first() == Some(&key), positional.contains(&key));
        let rest = if is_first { Vec::new() } else { self.any_line_with(key) };
        let with_rest = |words: Vec<String>| rest.iter().cloned().chain(words).collect::<Vec<String>>();
        let takes_value = self.takes_value(&rest, key);
        if takes_value.is_none() && !is_any {
            let why = self.parse(&with_rest(vec![format!("--{key}")])).err();
            return Err(why.unwrap_or_else(|| format!("`heddle {}` has no such option", self.name())));
        }
        let takes_value = takes_value.unwrap_or(true);
        if let (Value::Flag(_), true) = (value, takes_value) {
            return Err("wanted is a value, not a flag; `on` and `off` stand in quotes".into());
        }
        let words = self.words(&Combination(vec![(key.into(), value.clone())]), folder);
        // A flag that is not set is checked as if it were.
        let words = if words.is_empty() { vec![format!("--{key}")] } else { words };
        let line = with_rest(words);
        self.parse(&line).map(drop)?;
        match (self, is_first) {
            (Command::Run, true) => Target::find(&line[0]).map(drop).map_err(|error| format!("{error:#}")),
            (Command::Study, true) if line[0] == AREA => {
                Err("it keeps its rows in a file of its own: sweep `synth`, or use `heddle study area`".into())
            }
            (Command::Study, false) if key == KERNEL => {
                let names = &line[rest.len()..];
                names.iter().try_for_each(|name| find(name).map(drop).map_err(|error| error.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// What clap makes of a command line.
    pub fn parse(self, words: &[String]) -> Result<ArgMatches, String> {
        self.options().try_get_matches_from(words).map_err(|error| usage_line(&error))
    }

    /// An option that the study takes, since its cores have it, and sets by itself.
    fn overridden(self, combination: &Combination) -> Option<String> {
        let Some(Value::Words(study)) = combination.value(STUDY) else { return None };
        let options = self.options();
        let study = options.find_subcommand(study.first()?)?;
        let is_hidden = |key: &str| study.get_arguments().any(|o| o.get_long() == Some(key) && o.is_hide_set());
        let (key, _) = combination.0.iter().find(|(key, _)| is_hidden(key))?;
        Some(format!("{key}: the study compares cores that differ in it, or needs one"))
    }

    /// What is wrong with a combination that clap would not tell, such as that something is missing.
    pub fn missing(self, combination: &Combination) -> Option<String> {
        let lacks = |key: &&str| combination.value(key).is_none();
        match self {
            Command::Run => lacks(&KERNEL).then(|| "`kernel` is missing: a built-in kernel or an ELF file".into()),
            Command::Hash => None,
            Command::Study if lacks(&STUDY) => Some("`study` is missing: `heddle study --help` names them".into()),
            Command::Study => self.overridden(combination),
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
    fn a_study_has_its_own_options() {
        let check = |key: &str, value: &str| Command::Study.check(key, &words(value), Path::new(""));
        for (key, value) in
            [("study", "locks"), ("study", "per-area"), ("kernel", "gcd"), ("draws", "2"), ("warps", "8")]
        {
            assert_eq!(check(key, value), Ok(()), "{key}");
        }
        assert!(check("study", "lock").unwrap_err().starts_with("unrecognized subcommand 'lock'"));
        assert!(check("study", "area").unwrap_err().contains("sweep `synth`"));
        assert!(check("draws", "no").unwrap_err().starts_with("invalid value 'no' for '--draws <N>'"));
        assert!(check("drows", "1").unwrap_err().starts_with("unexpected argument '--drows' found"));
        assert_eq!(check("docs", "docs").unwrap_err(), "sweeps keep results only: use `heddle study`");
        assert_eq!(check("kernel", "gccd").unwrap_err(), "no kernel is called `gccd`; did you mean `gcd`?");
        let files = combination(&[("study", words("per-area")), ("area", words("a.json"))]);
        assert_eq!(Command::Study.words(&files, Path::new("sweeps")), ["per-area", "--area=sweeps/a.json"]);
        let set = combination(&[("study", words("order")), ("divergence", words("stack"))]);
        assert!(Command::Study.missing(&set).unwrap().starts_with("divergence: the study compares"));
        let options = combination(&[("kernel", words("gcd")), ("draws", words("1")), ("study", words("order"))]);
        let line = Command::Study.words(&options, Path::new("sweeps"));
        assert_eq!(line, ["order", "gcd", "--draws=1"]);
        assert!(Command::Study.parse(&line).is_ok());
        assert!(Command::Study.missing(&combination(&[])).unwrap().starts_with("`study` is missing"));
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
            (Command::Study, &["json", "docs", "results", "svg", "decisions", "cycles"]),
        ] {
            for key in keys {
                assert!(command.refusal(key).is_some(), "{key}");
                assert!(command.takes_value(&command.any_line_with(key), key).is_some(), "{key}");
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
