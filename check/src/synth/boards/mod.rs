//! The boards, one file each.

mod colorlight_i5;
mod icebreaker;
mod tangprimer_20k;
mod ulx3s_85f;

use super::family::Family;

/// What a board has that decides how the core fits it.
pub struct Board {
    /// As it is asked for.
    pub name: &'static str,
    /// What its device is one of.
    pub family: &'static Family,
    /// The device's name, with package and speed grade.
    pub device: &'static str,
    /// Yosys' synthesis for it.
    pub(super) synth: &'static str,
    /// What nextpnr must be told of it.
    pub(super) nextpnr: &'static [&'static str],
    /// The pins of a measurement's harness, where nextpnr does not choose some itself.
    pub(super) pins: &'static str,
    /// What the clock is made from.
    pub oscillator: Oscillator,
    /// What a top is connected to.
    pub wiring: Wiring,
    /// How much there is of everything.
    pub room: Room,
    /// Options of the core that is built unless it is chosen.
    pub shape: &'static str,
}

/// A clock that comes from outside.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Oscillator {
    /// Where it comes in.
    pub pin: &'static str,
    /// How fast it is.
    pub khz: u32,
}

/// What is on the pins of a board, beside the oscillator. The voltage of a bank is in tenths of a volt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wiring {
    /// Bits a second of the line.
    pub baud: u32,
    /// The pin from the computer.
    pub rx: &'static str,
    /// The pin to the computer.
    pub tx: &'static str,
    /// Shows that a launch has ended.
    pub done: Option<Lamp>,
    /// Shows that the core has stopped.
    pub fault: Option<Lamp>,
    /// Resets everything.
    pub reset: Option<Button>,
}

/// A lamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lamp {
    /// Its pin.
    pub site: &'static str,
    /// The level at which it is lit.
    pub lit: bool,
    /// As in the name of the pin's standard.
    pub volts: &'static str,
}

/// A button.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Button {
    /// Its pin.
    pub site: &'static str,
    /// The level while it is pressed; the pin is pulled to the other.
    pub pressed: bool,
}

impl Lamp {
    const fn lit(lit: bool, site: &'static str) -> Option<Lamp> {
        Some(Lamp { site, lit, volts: "33" })
    }
}

/// What a device has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// Tables of four inputs.
    pub luts: u32,
    /// Flip-flops.
    pub ff: u32,
    /// Block RAMs.
    pub bram: u32,
    /// Multipliers.
    pub dsp: u32,
}

impl Board {
    /// All of them; the first is meant unless one is named.
    pub const ALL: [&'static Board; 4] =
        [&ulx3s_85f::BOARD, &colorlight_i5::BOARD, &icebreaker::BOARD, &tangprimer_20k::BOARD];

    /// The board of this name.
    pub fn find(name: &str) -> Option<&'static Board> {
        Board::ALL.into_iter().find(|board| board.name == name)
    }
}
