//! The option that chooses what simulates.

use clap::ValueEnum;
use heddle_sim::EngineKind;
use heddle_sim::compiled::OptLevel;
use serde::Serialize;

/// What simulates the core in Rust.
#[derive(ValueEnum, Default, Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// Slow and obviously right
    Interpreter,
    /// Machine code
    #[default]
    Compiled,
}

impl Engine {
    pub fn kind(self) -> EngineKind {
        match self {
            Engine::Interpreter => EngineKind::Interpreter,
            Engine::Compiled => EngineKind::Compiled(OptLevel::default()),
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Engine::Interpreter => "interpreter",
            Engine::Compiled => "compiled",
        }
    }
}
