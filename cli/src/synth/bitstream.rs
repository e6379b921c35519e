//! A bitstream, and what it was made from, in a folder.

use super::Synth;
use super::progress::Progress;
use crate::folder::{check_folder, write_files};
use crate::interrupt::Interrupt;
use crate::output::{print, print_json};
use anyhow::{Context, Result, bail};
use heddle_check::synth::bitstream::has_room;
use heddle_check::synth::fit;
use heddle_check::synth::tools::YOSYS;
use heddle_check::synth::{Bitstream, Cells, Error, Flat, Session, bitstream};
use heddle_simt::Shape;
use serde::Serialize;
use std::fmt::Write as _;
use std::path::Path;

/// A bitstream that was written.
#[derive(Serialize)]
struct Written<'a> {
    board: &'static str,
    configuration: String,
    #[serde(flatten)]
    built: &'a Bitstream,
    /// The clock that it could have is lower, since nextpnr leaves paths out.
    fmax_is_bound: bool,
    files: Vec<&'a str>,
    tools: Vec<String>,
}

impl Written<'_> {
    fn text(&self, folder: &Path) -> String {
        let Bitstream { flat: Flat { cells, memory_bram, .. }, clock_khz, timing, seed, baud, divisor, .. } =
            self.built;
        let mut text = String::new();
        let mut line = |name: &str, value: String| {
            let _ = writeln!(text, "{name:<12}{value}");
        };
        let mhz = f64::from(*clock_khz) / 1000.0;
        let bound = if self.fmax_is_bound { "at most " } else { "" };
        line("board", self.board.to_string());
        line("core", self.configuration.clone());
        line("clock", format!("{mhz} MHz; {bound}{:.1} MHz would be possible, with seed {seed}", timing.mhz));
        line("line", format!("{baud} baud, {divisor} cycles a bit"));
        let Cells { luts, ff, bram, dsp, .. } = cells;
        line(
            "cells",
            format!(
                "{luts} LUTs, {ff} flip-flops, {bram}+{memory_bram} block RAMs, {dsp} multipliers, with host and UART"
            ),
        );
        line("files", format!("{}: {}, board.json", folder.display(), self.files.join(", ")));
        text
    }
}

impl Synth {
    /// Builds the one core that is asked for, and writes it.
    pub fn bitstream(&self, shapes: &[Shape], folder: &Path, interrupt: &Interrupt) -> Result<()> {
        let [shape] = shapes else { bail!("--bitstream is for one core, and {} are asked for", shapes.len()) };
        if self.seeds == 0 {
            bail!("--bitstream needs place and route: --seeds 1 or more");
        }
        if shape.bus_width().is_some() {
            bail!("--bus: no board here has memory on a bus");
        }
        check_folder(folder)?;
        let progress = Progress::new(0);
        let stop = || interrupt.poll().is_break();
        let says = |what: &str| progress.says(what);
        let session = Session { stop: &stop, says: &says, again: self.again };
        let khz = self.clock.map(|mhz| (mhz * 1000.0).round() as u32);
        let name = self.board.name;
        let result = match bitstream(self.board, shape, khz, self.seeds, session) {
            Err(Error::Full(over)) => fit::largest(shape, |shape| has_room(self.board, shape, session))
                .map_err(anyhow::Error::from)
                .and_then(|largest| Err(self.too_large(shape, &over, largest))),
            other => other.with_context(|| format!("{} on {name}", shape.options())),
        };
        drop(progress);
        let built = interrupt.or(result)?;
        let tools = vec![YOSYS.title(), self.board.family.nextpnr.title()];
        let names: Vec<&str> = built.files.iter().map(|(name, _)| name.as_str()).collect();
        let written = Written {
            board: name,
            configuration: shape.options(),
            built: &built,
            fmax_is_bound: self.board.family.clock_is_bound,
            files: names,
            tools,
        };
        let mut json = serde_json::to_vec_pretty(&written)?;
        json.push(b'\n');
        let files: Vec<(&str, &[u8])> = built.files.iter().map(|(name, bytes)| (name.as_str(), &bytes[..])).collect();
        write_files(folder, &[&files[..], &[("board.json", &json)]].concat())?;
        if self.json { print_json(&written) } else { print(&written.text(folder)) }
    }
}
