//! What is measured: cores, each by its options, and what is wanted of each.

use super::Part;
use super::goals::{Goal, goals};
use crate::shape::ShapeArgs;
use anyhow::{Context, Result};
use clap::{Args, FromArgMatches};
use heddle_check::synth::Board;
use heddle_simt::Shape;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One measurement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Key {
    pub board: String,
    /// The options of the core.
    pub core: String,
    pub of: Of,
}

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Of {
    /// Cells of the whole, flat.
    Cells,
    /// Cells module by module.
    Modules,
    /// The clock after place and route with this seed.
    Seed(u32),
}

impl fmt::Display for Of {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Of::Cells => f.write_str("cells"),
            Of::Modules => f.write_str("modules"),
            Of::Seed(seed) => write!(f, "seed {seed}"),
        }
    }
}

/// A core whose figures are wanted.
pub struct Core {
    pub board: &'static Board,
    pub options: String,
    /// Flat, and its clock unless no seeds are wanted.
    pub flat: bool,
    pub clock: bool,
    pub modules: bool,
}

/// The board of all parts but that of the boards.
pub fn board() -> &'static Board {
    Board::ALL[0]
}

pub const SIZES: [u32; 6] = [2, 4, 8, 16, 32, 64];
pub const UNITS: [&str; 2] = ["path-table", "arbiter"];

/// The core that Simty is compared with: as little as it has. Memory is what the device can hold beside 64 lanes.
pub fn simty(lanes: u32, unit: &str) -> String {
    let divergence = if unit == "path-table" { String::new() } else { format!(" --divergence {unit}") };
    format!(
        "--lanes {lanes} --warps 8 --memory 128K --program 16K --stack 128 \
         --barriers off --atomics off --scratchpad 0 --multiply off{divergence}"
    )
}

/// A mechanism for divergence: what a column calls it, and its options.
pub type Mechanism = (&'static str, &'static str);

pub const MECHANISMS: [Mechanism; 12] = [
    ("path tables", ""),
    ("the same, serialised", "--replay serialise"),
    ("4 barriers", "--convergence-barriers 4"),
    ("16 barriers", "--convergence-barriers 16"),
    ("arbiter", "--divergence arbiter"),
    ("stack", "--divergence stack"),
    ("the same, likely", "--divergence stack --likely on"),
    ("dual path", "--divergence dual-path"),
    ("the same, constrained", "--divergence dual-path --path-scheduler constrained"),
    ("the same, forwarding", "--divergence dual-path --path-forwarding on"),
    ("block stack", "--divergence block-stack"),
    ("the same, CAPRI", "--divergence block-stack --compaction predict --capt 8"),
];

/// Lanes and warps on which mechanisms are compared.
pub const COMPARED: [(u32, u32); 3] = [(8, 8), (8, 16), (16, 8)];

/// Options of a core whose price is told, beside those of [`MECHANISMS`].
pub const OPTIONS: [&str; 18] = [
    "--barriers off --atomics off --scratchpad 0",
    "--multiply off",
    "--atomics off",
    "--barriers off",
    "--scratchpad 0",
    "--coalescing full",
    "--coalescing full --replay serialise",
    "--cache 4K",
    "--bus 64",
    "--reservations on",
    "--fair on",
    "--fair on --divergence arbiter",
    "--fair on --order breadth-first",
    "--fair on --reservations on",
    "--order swap",
    "--order minority",
    "--warp-primitives on",
    "--convergence-barriers 4 --warp-primitives on",
];

/// The shape of which options are told: cells of the first, cells and clock of the second.
pub const PRICED: [&str; 2] =
    ["--lanes 8 --warps 8 --memory 128K --program 32K", "--lanes 4 --warps 4 --memory 64K --program 16K"];

pub fn with(shape: &str, options: &str) -> String {
    format!("{shape} {options}").trim_end().to_string()
}

/// As [`PRICED`]; a stack per thread that leaves room for 128 threads.
pub fn compared((lanes, warps): (u32, u32)) -> String {
    let stack = if lanes * warps > 64 { " --stack 256" } else { "" };
    format!("--lanes {lanes} --warps {warps} --memory 128K --program 32K{stack}")
}

/// Options that are priced: none, those of mechanisms, others.
pub fn priced() -> impl Iterator<Item = &'static str> {
    MECHANISMS.into_iter().map(|(_, options)| options).chain(OPTIONS)
}

/// A board's cores: its usual one, and a smaller one that fits more easily.
pub fn boards() -> Vec<(&'static Board, String)> {
    let usual = Board::ALL.into_iter().map(|board| (board, board.shape.to_string()));
    let small = [(board(), PRICED[1].to_string())];
    let mut all: Vec<_> = usual.chain(small).collect();
    all.sort_by_key(|(board, _)| Board::ALL.iter().position(|other| other.name == board.name));
    all
}

impl Part {
    /// What is measured for it.
    pub fn cores(self) -> Vec<Core> {
        let on = |options: String| Core { board: board(), options, flat: true, clock: true, modules: false };
        let bare = || SIZES.into_iter().flat_map(|lanes| UNITS.map(|unit| simty(lanes, unit)));
        match self {
            Part::Goals => {
                let cores = |goal: Goal| goal.cores.into_iter().map(move |core| Core { clock: goal.clock, ..on(core) });
                goals().into_iter().flat_map(cores).collect()
            }
            Part::Lanes => bare().map(on).collect(),
            Part::Mechanisms => {
                let all = COMPARED.into_iter().flat_map(|at| MECHANISMS.map(|(_, o)| with(&compared(at), o)));
                all.map(|options| Core { modules: true, ..on(options) }).collect()
            }
            Part::Units => {
                let papers = MECHANISMS.map(|(_, options)| with(PRICED[0], options));
                let all = bare().chain(papers);
                all.map(|options| Core { flat: false, clock: false, modules: true, ..on(options) }).collect()
            }
            Part::Options => {
                let cells = priced().map(|options| Core { clock: false, ..on(with(PRICED[0], options)) });
                cells.chain(priced().map(|options| on(with(PRICED[1], options)))).collect()
            }
            Part::Boards => boards().into_iter().map(|(board, options)| Core { board, ..on(options) }).collect(),
        }
    }
}

/// The core of these options, as it is built.
pub fn shape(options: &str) -> Result<Shape> {
    Ok(simulated(options)?.hardware())
}

/// The same, with what is counted in simulations.
pub fn simulated(options: &str) -> Result<Shape> {
    let line = ShapeArgs::augment_args(clap::Command::new("core").no_binary_name(true));
    let matches = line.try_get_matches_from(options.split_whitespace())?;
    ShapeArgs::from_arg_matches(&matches)?.shape().with_context(|| options.to_string())
}

impl Core {
    /// The measurements, with so many seeds, or as many as are usual: three, one above 16 lanes.
    pub fn keys(&self, seeds: Option<u32>) -> Result<Vec<Key>> {
        let usual = || Ok::<u32, anyhow::Error>(if shape(&self.options)?.lanes > 16 { 1 } else { 3 });
        let seeds = if self.clock { seeds.map_or_else(usual, Ok)? } else { 0 };
        let of = [(self.flat, Of::Cells), (self.modules, Of::Modules)].into_iter().filter(|(is, _)| *is);
        let all = of.map(|(_, of)| of).chain((1..=seeds).map(Of::Seed));
        let key = |of| Key { board: self.board.name.into(), core: self.options.clone(), of };
        Ok(all.map(key).collect())
    }
}

impl Key {
    /// How long it takes, roughly, beside others: logic grows with the lanes, and placement takes longest.
    pub fn effort(&self) -> Result<u32> {
        let Shape { lanes, warps, .. } = shape(&self.core)?;
        let size = lanes.max(2) * 8 + warps;
        Ok(match self.of {
            Of::Cells => size,
            Of::Modules => size + size / 4,
            Of::Seed(_) => 10 * size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_core_can_be_built() {
        for part in Part::ALL {
            for core in part.cores() {
                shape(&core.options).unwrap_or_else(|error| panic!("{error:#}"));
                assert!(core.flat || core.modules, "{}", core.options);
            }
        }
    }

    #[test]
    fn seeds_are_three_or_one_or_those_asked_for() {
        let seeds = |lanes, asked| {
            let [core] = [simty(lanes, "arbiter")].map(|options| Core {
                board: board(),
                options,
                flat: true,
                clock: true,
                modules: false,
            });
            core.keys(asked).unwrap().iter().filter(|key| matches!(key.of, Of::Seed(_))).count()
        };
        assert_eq!((seeds(16, None), seeds(32, None), seeds(64, Some(2)), seeds(2, Some(0))), (3, 1, 2, 0));
        let cells = Part::Options.cores().into_iter().filter(|core| !core.clock).count();
        assert_eq!(cells, MECHANISMS.len() + OPTIONS.len());
    }

    #[test]
    fn what_takes_little_comes_first() {
        let effort = |lanes, of| Key { board: "".into(), core: simty(lanes, "arbiter"), of }.effort().unwrap();
        assert!(effort(4, Of::Cells) < effort(8, Of::Cells) && effort(8, Of::Cells) < effort(8, Of::Modules));
        assert!(effort(32, Of::Modules) < effort(8, Of::Seed(1)) && effort(8, Of::Seed(2)) < effort(16, Of::Seed(1)));
    }
}
