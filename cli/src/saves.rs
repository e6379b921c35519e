//! What viewers of waveforms open beside a waveform, so that it shows what matters: a save file for GTKWave, in which
//! pcs are instructions, and a command file for Surfer.
//!
//! GTKWave translates a value that stands in a table, its filter file; Surfer has no such table that a file can bring
//! along, and shows pcs as numbers.

use crate::output::{ResultFile, tell};
use anyhow::Result;
use heddle_sim::directory::{Directory, Entry};
use heddle_testbench::{Program, disassemble};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Groups of signals: a heading, and the names that they begin with, in scopes below the top.
const GROUPS: &[(&str, &[&str])] = &[
    ("Stage 1: fetched for", &["core.chosen_"]),
    ("Stage 3: decoded", &["core.decoding_"]),
    (
        "Stage 4: issued",
        &[
            "core.issue_valid",
            "core.issue_slot",
            "core.issue_pc",
            "core.issue_mask",
            "core.issue_homes",
            "core.issue_replay",
        ],
    ),
    ("Why heads of buffers wait, a bit a slot", &["core.heads_"]),
    ("Stage 8: resolved", &["core.resolve.commit_"]),
    ("Stage 9: paths change", &["core.divergence.updates", "core.divergence.acts", "core.divergence.slot"]),
    ("Written registers", &["core.write_"]),
    ("Requests to memory", &["core.request_", "core.scratchpad_"]),
    ("Warps, a bit each", &["core.live", "core.waiting", "core.running"]),
    ("Starts and ends", &["core.start_", "core.exit_"]),
];

/// GTKWave's flags of a trace.
const HEXADECIMAL: u32 = 0x22;
const BINARY: u32 = 0x28;
const TRANSLATED: u32 = 0x2000;
const COMMENT: u32 = 0x200;

/// The first line of a save file that is written here. GTKWave writes another when a user saves a view of their own.
const OURS: &str = "[*] Written by heddle run --wave, which replaces it";

/// The files, which appear when they are finished.
pub struct Saves {
    wave: PathBuf,
    /// None if there is one of the user's.
    gtkwave: Option<(PathBuf, ResultFile)>,
    surfer: ResultFile,
    instructions: (PathBuf, ResultFile),
}

impl Saves {
    /// Those of a waveform: its name with other endings.
    pub fn create(wave: &Path) -> Result<Saves> {
        let file = |ending: &str| {
            let path = wave.with_extension(ending);
            ResultFile::create(&path).map(|file| (path, file))
        };
        let own = wave.with_extension("gtkw");
        let users = std::fs::read(&own).is_ok_and(|text| !text.starts_with(OURS.as_bytes()));
        if users {
            tell(&format!("{} is not of heddle run, and stays as it is\n", own.display()));
        }
        Ok(Saves {
            wave: wave.to_path_buf(),
            gtkwave: if users { None } else { Some(file("gtkw")?) },
            surfer: file("sucl")?.1,
            instructions: file("instructions")?,
        })
    }

    pub fn finish(mut self, directory: &Directory, program: &Program) -> Result<()> {
        let signals = signals(directory);
        let (filter, mut instructions) = self.instructions;
        let pc_bits = signals.iter().flat_map(|(_, found)| found).find(|signal| signal.is_pc()).map(|pc| pc.width);
        instructions.writer().write_all(table(program, pc_bits.unwrap_or(32)).as_bytes())?;
        if let Some((path, mut file)) = self.gtkwave {
            file.writer().write_all(gtkwave((&self.wave, &path, &filter), &signals).as_bytes())?;
            file.finish()?;
        }
        self.surfer.writer().write_all(surfer(&signals).as_bytes())?;
        [instructions, self.surfer].into_iter().try_for_each(ResultFile::finish)
    }
}

/// A variable of the waveform, with the top's name before its path.
struct Signal {
    path: String,
    width: u32,
}

impl Signal {
    /// Numbers of instructions have their names.
    fn is_pc(&self) -> bool {
        self.path.ends_with("_pc")
    }

    /// As the waveform's own readers name it.
    fn with_range(&self) -> String {
        if self.width == 1 { self.path.clone() } else { format!("{}[{}:0]", self.path, self.width - 1) }
    }
}

/// By group, those that the design has.
fn signals(directory: &Directory) -> Vec<(&'static str, Vec<Signal>)> {
    let top = &directory.scopes[0].name;
    let of_group = |names: &[&str]| {
        let listed = directory.probes.iter().filter(|entry| names.iter().any(|name| entry.path.starts_with(name)));
        // Of several things with one name in a scope, a waveform has the first.
        let width = |entry: &Entry| {
            let earlier = [&directory.registers, &directory.signals, &directory.read_registers];
            earlier.iter().find_map(|table| Some(table[table.find(&entry.path)?].width)).unwrap_or(entry.width)
        };
        listed.map(|entry| Signal { path: format!("{top}.{}", entry.path), width: width(entry) }).collect::<Vec<_>>()
    };
    let groups = GROUPS.iter().map(|(heading, names)| (*heading, of_group(names)));
    groups.filter(|(_, signals)| !signals.is_empty()).collect()
}

fn gtkwave((wave, save, filter): (&Path, &Path, &Path), signals: &[(&'static str, Vec<Signal>)]) -> String {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.into()).display().to_string();
    let mut text = String::new();
    let _ = writeln!(text, "{OURS}");
    let _ = writeln!(text, "[dumpfile] \"{}\"\n[savefile] \"{}\"", absolute(wave), absolute(save));
    // The zoom at which a cycle has room for a short instruction; no marker is set.
    let _ = writeln!(text, "[timestart] 0\n[size] 1600 900\n[sst_expanded] 1\n*-4.5{}", " -1".repeat(27));
    for (heading, signals) in signals {
        let _ = writeln!(text, "@{COMMENT:x}\n-{heading}");
        for signal in signals {
            let translated = if signal.is_pc() { TRANSLATED } else { 0 };
            let base = if signal.width == 1 { BINARY } else { HEXADECIMAL };
            let _ = writeln!(text, "@{:x}", base | translated);
            if translated != 0 {
                let _ = writeln!(text, "^1 {}", absolute(filter));
            }
            let _ = writeln!(text, "{}", signal.with_range());
        }
    }
    text
}

fn surfer(signals: &[(&'static str, Vec<Signal>)]) -> String {
    let mut text = String::new();
    for (heading, signals) in signals {
        let _ = writeln!(text, "divider_add {heading}");
        signals.iter().for_each(|signal| text.push_str(&format!("variable_add {}\n", signal.path)));
    }
    text + "zoom_fit\n"
}

/// What GTKWave puts in place of a pc, which counts instructions: as many hexadecimal digits as it shows.
fn table(program: &Program, bits: u32) -> String {
    let digits = bits.div_ceil(4) as usize;
    let pcs = (0..program.program_end()).step_by(4);
    let lines = pcs.filter_map(|pc| Some((pc, program.word(pc)?)));
    lines.map(|(pc, word)| format!("{:0digits$x} {pc:x}: {}\n", pc / 4, disassemble(word, pc))).collect()
}
