//! The option that chooses what simulates.

use anyhow::Result;
use clap::ValueEnum;
use clap::builder::PossibleValue;
use heddle_sim::EngineKind;
use heddle_sim::compiled::OptLevel;
use heddle_sim::compiled::cc::Compiler;
use serde::{Serialize, Serializer};
use std::sync::LazyLock;

/// What simulates the core in Rust: `interpreter`, `compiled`, or `compiled-` and a lower level of optimisation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Engine(EngineKind);

impl From<EngineKind> for Engine {
    fn from(kind: EngineKind) -> Engine {
        Engine(kind)
    }
}

impl Engine {
    pub fn kind(self) -> EngineKind {
        self.0
    }

    /// Whether all that it needs is installed.
    pub fn check(self) -> Result<()> {
        if self.0 == EngineKind::Compiled(OptLevel::C) {
            Compiler::found()?;
        }
        Ok(())
    }

    pub fn name(self) -> String {
        match self.0 {
            EngineKind::Interpreter => "interpreter".into(),
            EngineKind::Compiled(level) if level == OptLevel::default() => "compiled".into(),
            EngineKind::Compiled(level) => compiled(level),
        }
    }
}

fn compiled(level: OptLevel) -> String {
    format!("compiled-{}", level.name())
}

impl Default for Engine {
    fn default() -> Engine {
        Engine(EngineKind::Compiled(OptLevel::default()))
    }
}

impl ValueEnum for Engine {
    fn value_variants<'a>() -> &'a [Engine] {
        static ALL: LazyLock<Vec<Engine>> = LazyLock::new(|| EngineKind::ALL.iter().copied().map(Engine).collect());
        &ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.name());
        Some(match self.0 {
            EngineKind::Interpreter => value.help("Slow and obviously right"),
            EngineKind::Compiled(level) if level == OptLevel::default() => {
                value.alias(compiled(level)).help("Machine code; in long runs, in the end that of the C compiler")
            }
            EngineKind::Compiled(OptLevel::Tables) => value.help("Machine code that is there at once"),
            EngineKind::Compiled(OptLevel::C) => {
                value.help("Machine code by the system's C compiler, which takes seconds to minutes")
            }
            EngineKind::Compiled(_) => value.help("Machine code, optimised less"),
        })
    }
}

impl Serialize for Engine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_has_a_name_and_the_best_a_short_one_too() {
        let parsed = |name: &str| Engine::from_str(name, false);
        assert_eq!(parsed("interpreter"), Ok(Engine(EngineKind::Interpreter)));
        assert_eq!(parsed("compiled"), Ok(Engine::default()));
        for level in OptLevel::ALL {
            assert_eq!(parsed(&compiled(*level)), Ok(Engine(EngineKind::Compiled(*level))));
        }
        assert!(parsed("steam").is_err());
    }
}
