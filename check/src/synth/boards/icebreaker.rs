//! 1BitSquared iCEBreaker.

use super::{Board, Button, Lamp, Oscillator, Room, Wiring};
use crate::synth::family::ICE40;

pub static BOARD: Board = Board {
    name: "icebreaker",
    family: &ICE40,
    device: "iCE40UP5K-SG48",
    synth: "synth_ice40 -device u -dsp",
    nextpnr: &["--up5k", "--package", "sg48"],
    pins: "",
    oscillator: Oscillator { pin: "35", khz: 12_000 },
    wiring: Wiring {
        baud: 115_200,
        rx: "6",
        tx: "9",
        done: Lamp::lit(false, "37"),
        fault: Lamp::lit(false, "11"),
        reset: Some(Button { site: "10", pressed: false }),
    },
    room: Room { luts: 5280, ff: 5280, bram: 30, dsp: 8 },
    shape: "--lanes 1 --warps 1 --memory 8K --program 4K --scratchpad 0 --barriers off --atomics off --multiply off --loads 2",
};
