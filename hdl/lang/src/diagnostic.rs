//! What is wrong with a description, and where.

use crate::netlist::Loc;
use std::fmt;

/// One mistake, located in the Rust source.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Diagnostic {
    /// The line of the description that made it; None where no single line did, as for a combinational loop.
    pub loc: Option<Loc>,
    /// What is wrong and, where that is known, what would be right; one line.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.loc {
            Some(loc) => write!(f, "{}: {}", place(loc), self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// `file.rs:line:column`, the file without its folders.
pub fn place(loc: Loc) -> String {
    format!("{}:{}", line(loc), loc.column())
}

/// `file.rs:line`.
pub fn line(loc: Loc) -> String {
    let file = loc.file().rsplit(['/', '\\']).next().unwrap_or("");
    format!("{file}:{}", loc.line())
}

/// All that is wrong with a design; at least one.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.iter().map(|d| d.to_string()).collect::<Vec<_>>().join("\n"))]
pub struct Errors(pub Vec<Diagnostic>);

/// As [`fmt::Display`], one mistake a line, so that `check().unwrap()` in a test is readable.
impl fmt::Debug for Errors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the description has mistakes\n{self}")
    }
}
