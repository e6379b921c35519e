//! What can go wrong, each in one line.

use std::io;
use std::path::PathBuf;

/// Why there is no model. One line; what a tool printed beyond it is in the fields.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// A program is not there.
    #[error("{tool} is not installed; on Debian: apt-get install verilator g++ make")]
    Missing {
        /// Its command.
        tool: &'static str,
    },
    /// The Verilator that `HEDDLE_VERILATOR` names is no such thing.
    #[error("HEDDLE_VERILATOR names {}, which {why}", program.display())]
    Selected {
        /// As the variable has it.
        program: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A file of the Verilog cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// As it was given.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A source has no name that it can be compiled under.
    #[error("{0}")]
    Name(String),
    /// Verilator refuses the Verilog.
    #[error("{first}")]
    Verilog {
        /// Its first message: file, line, column and what is wrong.
        first: String,
        /// All that it printed.
        output: String,
    },
    /// The model has a port of a kind that is not supported, or lacks one that was asked for.
    #[error("{0}")]
    Port(String),
    /// A compiler failed: the tools of this machine do not fit together.
    #[error("{tool} failed: {}", output.lines().find(|line| line.contains("rror")).or(output.lines().next()).unwrap_or("it says nothing"))]
    Failed {
        /// Its command.
        tool: &'static str,
        /// What it printed.
        output: String,
    },
    /// The cache folder, or a waveform, cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The library was built, but the system does not load it.
    #[error("cannot load {}: {source}", path.display())]
    Load {
        /// The library.
        path: PathBuf,
        /// What the system says.
        source: libloading::Error,
    },
}

/// The Verilog stopped: `$stop`, `$fatal`, an assertion that failed, or logic that never settles.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message} (after {cycles} cycles)")]
pub struct Stopped {
    /// File, line and what it says.
    pub message: String,
    /// Cycles of the clock before the one in which it stopped.
    pub cycles: u64,
}
