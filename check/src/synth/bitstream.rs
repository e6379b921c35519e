//! A core with its host on a board, as a bitstream: at the highest clock that its PLL makes and its paths allow.
//!
//! The clock is told by identify and decides the UART's divisor, so each clock is a netlist of its own. The first is
//! placed to see how fast it gets; then that of the step below, and so on until one is as fast as it says.

use super::boards::Board;
use super::netlist::Flat;
use super::pll::Step;
use super::run::{CELLS, Error, REPORT, REST, Session, Workplace, at, mhz, read, telling, unreadable, without_core};
use super::timing::Timing;
use super::tools::YOSYS;
use super::top::{self, Constraints};
use crate::kept::Kept;
use heddle_simt::Shape;
use heddle_simt::host::Identity;
use heddle_simt::host::uart::LEAST_DIVISOR;
use heddle_simt::hosted::over_uart;
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::Hash;

/// What was built.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Bitstream {
    /// Of the whole, host, UART and top included.
    #[serde(flatten)]
    pub flat: Flat,
    /// The clock that it has, in kHz, as identify tells.
    pub clock_khz: u32,
    /// The clock that it could have, and the longest path.
    #[serde(flatten)]
    pub timing: Timing,
    /// The seed of place and route.
    pub seed: u32,
    /// Bits a second of the line, and cycles of a bit.
    pub baud: u32,
    /// Cycles of a bit.
    pub divisor: u32,
    /// The files, of which the bitstream is the first: name and contents.
    #[serde(skip)]
    pub files: Vec<(String, Vec<u8>)>,
}

/// What one placement gave.
#[derive(Serialize, Deserialize)]
struct Placed {
    /// Not rounded.
    mhz: f64,
    timing: Timing,
    /// Bytes in hexadecimal, if it is as fast as it says.
    bits: Option<String>,
}

/// A netlist at one clock.
struct Design {
    step: Step,
    verilog: String,
    divisor: u32,
}

/// Builds a core of this shape for a board, with this clock in kHz or the highest there is. Of a step, as many
/// placements are tried as `seeds` says.
pub fn bitstream(
    board: &'static Board,
    shape: &Shape,
    clock: Option<u32>,
    seeds: u32,
    session: Session,
) -> Result<Bitstream, Error> {
    let steps = board.steps();
    // A bound on the clock does not tell how fast it may be.
    let wanted = clock.or(board.family.clock_is_bound.then_some(board.oscillator.khz));
    if let Some(khz) = wanted {
        let step = board.step(khz).ok_or_else(|| {
            let below = steps.iter().rev().find(|step| step.khz < khz);
            let above = steps.iter().find(|step| step.khz > khz);
            Error::NoStep(khz, below.into_iter().chain(above).map(|step| step.khz).collect())
        })?;
        return Build::new(board, shape, step, session)
            .at_its_clock(seeds)?
            .map_err(|reached| Error::Slow(khz, reached));
    }
    // The netlist of the oscillator's clock tells about how fast the others will be.
    let first = Build::new(board, shape, Step { khz: board.oscillator.khz, divisors: None }, session);
    let mut most = khz(first.place(1, AIM_KHZ)?.0.mhz);
    while let Some(step) = steps.iter().rev().find(|step| step.khz <= most) {
        match Build::new(board, shape, *step, session).at_its_clock(seeds)? {
            Ok(built) => return Ok(built),
            Err(reached) => most = reached.min(step.khz - 1),
        }
    }
    Err(Error::Slow(steps.first().map_or(0, |step| step.khz), most))
}

/// Rounded down.
fn khz(mhz: f64) -> u32 {
    (mhz * 1000.0) as u32
}

/// Whether the board has room for a core of this shape with its host, by the cells after synthesis.
pub fn has_room(board: &'static Board, shape: &Shape, session: Session) -> Result<bool, Error> {
    let step = Step { khz: board.oscillator.khz, divisors: None };
    Ok(Build::new(board, shape, step, session).cells()?.over(board).is_none())
}

/// More than any core reaches, so that place and route keeps trying.
const AIM_KHZ: u32 = 100_000;

/// A design on its way to a bitstream.
struct Build<'a> {
    board: &'static Board,
    session: Session<'a>,
    design: Design,
    top: String,
    pins: String,
}

impl<'a> Build<'a> {
    fn new(board: &'static Board, shape: &Shape, step: Step, session: Session<'a>) -> Build<'a> {
        let baud = board.wiring.baud;
        let divisor = (step.khz * 1000 + baud / 2) / baud;
        assert!(divisor >= LEAST_DIVISOR, "boards' clocks are much faster than their lines");
        let design = over_uart(&shape.hardware(), Identity { clock_khz: step.khz }, divisor).check();
        let design = design.expect("the shape was checked");
        let verilog = heddle_gen::verilog(&design.netlist, &heddle_gen::Options::default()).single();
        let (top, pins) = (top::top(board, step), top::constraints(board));
        Build { board, session, design: Design { step, verilog, divisor }, top, pins }
    }

    /// The bitstream of the first of so many seeds with which it is as fast as it says; otherwise how fast it gets, in
    /// kHz.
    fn at_its_clock(&self, seeds: u32) -> Result<Result<Bitstream, u32>, Error> {
        let mut reached = 0;
        for seed in 1..=seeds.max(1) {
            let (placed, flat) = self.place(seed, self.design.step.khz)?;
            match &placed.bits {
                Some(bits) => return Ok(Ok(self.built(bits, placed.timing, flat, seed)?)),
                None => reached = reached.max(khz(placed.mhz)),
            }
        }
        Ok(Err(reached))
    }

    /// Yosys' steps: what is around the core, then all.
    fn mapping(&self) -> Vec<String> {
        let Board { family, synth, .. } = self.board;
        let read = ["read_verilog heddle.v", "read_verilog board.v"];
        let map = format!("{synth} -top {} -json {CELLS}", top::TOP);
        let whole = read.iter().chain(family.before).map(|step| step.to_string()).chain([map]);
        without_core(&read, family.before, synth, top::TOP).into_iter().chain(whole).collect()
    }

    /// What the netlist depends on.
    fn netlist(&self) -> impl Hash {
        (&self.design.verilog, &self.top, self.mapping(), YOSYS.title(), self.board.family.counted)
    }

    /// The cells.
    fn cells(&self) -> Result<Flat, Error> {
        let kept = Kept::of("synthesis", "board-cells", self.netlist());
        match kept.read() {
            Some(flat) if !self.session.again => Ok(flat),
            _ => Ok(self.mapped()?.1),
        }
    }

    /// A folder with the netlist, and its cells.
    fn mapped(&self) -> Result<(Workplace, Flat), Error> {
        let (family, session) = (self.board.family, self.session);
        let files = [("heddle.v", &self.design.verilog), ("board.v", &self.top), (self.pins_name(), &self.pins)];
        let work = Workplace::new(&files.map(|(name, text)| (name, text.as_str())))?;
        let what = format!("synthesis, {} MHz", mhz(self.design.step.khz));
        session.yosys(&what, work.path(), &self.mapping())?;
        let prefix = format!("{}.system.heddle.", top::INSTANCE);
        let (netlist, rest) = (read(&work.path().join(CELLS))?, read(&work.path().join(REST))?);
        let flat = netlist.flat(family, top::TOP, &prefix, Some(&rest)).map_err(unreadable(&YOSYS.title()))?;
        Kept::of("synthesis", "board-cells", self.netlist()).write(&flat);
        Ok((work, flat))
    }

    /// Place and route with a seed, aiming at a clock; and the cells. It is packed if it is as fast as it says.
    fn place(&self, seed: u32, aim_khz: u32) -> Result<(Placed, Flat), Error> {
        let (board, family, session) = (self.board, self.board.family, self.session);
        let aim = f64::from(aim_khz) / 1000.0;
        let options = format!("--freq {aim} --timing-allow-fail --seed {seed} --json {CELLS} --report {REPORT}");
        let tools = (family.nextpnr.title(), board.nextpnr, &self.pins, family.place, family.pack, &options);
        let kept = Kept::of("synthesis", "board", (self.netlist(), tools));
        if let (false, Some(placed)) = (session.again, kept.read()) {
            return Ok((placed, self.cells()?));
        }
        let (work, flat) = self.mapped()?;
        if let Some(over) = flat.over(board) {
            return Err(Error::Full(over));
        }
        let arguments = [board.nextpnr, family.place, &options.split(' ').collect::<Vec<_>>()];
        let what = format!("place and route, {} MHz, seed {seed}", mhz(self.design.step.khz));
        let report = session.nextpnr(family, &what, work.path(), &arguments)?;
        let (reached, timing) = Timing::read_exactly(&report).map_err(unreadable(&family.nextpnr.title()))?;
        let mut found = Placed { mhz: reached, timing, bits: None };
        if khz(reached) >= self.design.step.khz {
            let (program, arguments) = family.pack;
            let mut pack = family.nextpnr.program(program, &session)?;
            (session.says)("packing");
            pack.current_dir(work.path()).args(arguments).arg(family.bitstream);
            let ended = session.run(&mut pack, &work.path().join("pack.log"))?;
            ended.map_err(|printed| Error::Failed(program.to_string(), telling(&printed)))?;
            let packed = work.path().join(family.bitstream);
            let bytes = fs::read(&packed).map_err(at(&packed))?;
            found.bits = Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect());
        }
        kept.write(&found);
        Ok((found, flat))
    }

    fn built(&self, bits: &str, timing: Timing, flat: Flat, seed: u32) -> Result<Bitstream, Error> {
        let digits = bits.as_bytes().chunks_exact(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let bytes = digits.map(byte).collect::<Option<Vec<u8>>>();
        let bytes = bytes.ok_or_else(|| Error::Unreadable("the cache".into(), "no hexadecimal digits".into()))?;
        let files = vec![
            (self.board.family.bitstream.to_string(), bytes),
            ("heddle.v".into(), self.design.verilog.clone().into_bytes()),
            ("board.v".into(), self.top.clone().into_bytes()),
            (self.pins_name().into(), self.pins.clone().into_bytes()),
        ];
        let (clock_khz, baud, divisor) = (self.design.step.khz, self.board.wiring.baud, self.design.divisor);
        Ok(Bitstream { flat, clock_khz, timing, seed, baud, divisor, files })
    }

    fn pins_name(&self) -> &'static str {
        match self.board.family.constraints {
            Constraints::Lpf => "pins.lpf",
            Constraints::Pcf => "pins.pcf",
            Constraints::Cst => "pins.cst",
        }
    }
}
