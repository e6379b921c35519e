//! Radiona ULX3S with the largest ECP5.

use super::{Board, Button, Lamp, Oscillator, Room, Wiring};
use crate::synth::family::ECP5;

pub static BOARD: Board = Board {
    name: "ulx3s-85f",
    family: &ECP5,
    device: "LFE5U-85F-6BG381C",
    synth: "synth_ecp5 -nowidelut",
    nextpnr: &["--85k", "--package", "CABGA381", "--speed", "6", "--placer", "static"],
    pins: "",
    oscillator: Oscillator { pin: "G2", khz: 25_000 },
    wiring: Wiring {
        baud: 115_200,
        rx: "M1",
        tx: "L4",
        done: Lamp::lit(true, "B2"),
        fault: Lamp::lit(true, "C2"),
        reset: Some(Button { site: "R1", pressed: true }),
    },
    room: Room { luts: 83640, ff: 83640, bram: 208, dsp: 156 },
    shape: "--lanes 8 --warps 8 --memory 128K --program 32K",
};
