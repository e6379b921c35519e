//! Colorlight i5, a card for displays with a small ECP5.

use super::{Board, Lamp, Oscillator, Room, Wiring};
use crate::synth::family::ECP5;

pub static BOARD: Board = Board {
    name: "colorlight-i5",
    family: &ECP5,
    device: "LFE5U-25F-6BG381C",
    synth: "synth_ecp5 -nowidelut",
    nextpnr: &["--25k", "--package", "CABGA381", "--speed", "6", "--placer", "static"],
    pins: "",
    oscillator: Oscillator { pin: "P3", khz: 25_000 },
    wiring: Wiring { baud: 115_200, rx: "H18", tx: "J17", done: Lamp::lit(false, "U16"), fault: None, reset: None },
    room: Room { luts: 24288, ff: 24288, bram: 56, dsp: 28 },
    shape: "--lanes 4 --warps 4 --memory 64K --program 16K",
};
