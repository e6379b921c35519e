//! Lattice's breakout board of the largest iCE40.

use super::{Board, Room};
use crate::synth::family::ICE40;

pub static BOARD: Board = Board {
    name: "hx8k",
    family: &ICE40,
    device: "iCE40HX8K-CT256",
    synth: "synth_ice40 -device hx",
    nextpnr: &["--hx8k", "--package", "ct256"],
    pins: "",
    room: Room { luts: 7680, ff: 7680, bram: 32, dsp: 0 },
    shape: "--lanes 1 --warps 1 --memory 8K --program 4K --scratchpad 0",
};
