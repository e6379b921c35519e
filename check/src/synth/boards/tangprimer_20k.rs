//! Sipeed Tang Primer 20K.

use super::{Board, Lamp, Oscillator, Room, Wiring};
use crate::synth::family::GOWIN;

pub static BOARD: Board = Board {
    name: "tangprimer-20k",
    family: &GOWIN,
    device: "GW2A-LV18PG256C8/I7",
    synth: "synth_gowin -family gw2a -nowidelut",
    nextpnr: &["--device", "GW2A-LV18PG256C8/I7", "--vopt", "family=GW2A-18", "--vopt", "cst=pins.cst"],
    pins: "IO_LOC \"clk_pin\" H11;\nIO_LOC \"rst_pin\" T10;\nIO_LOC \"in_pin\" N16;\nIO_LOC \"out_pin\" C13;\n",
    oscillator: Oscillator { pin: "H11", khz: 27_000 },
    wiring: Wiring {
        baud: 115_200,
        rx: "T13",
        tx: "M11",
        done: Some(Lamp { site: "L16", lit: false, volts: "18" }),
        fault: Some(Lamp { site: "L14", lit: false, volts: "18" }),
        reset: None,
    },
    room: Room { luts: 20736, ff: 15552, bram: 46, dsp: 48 },
    shape: "--lanes 1 --warps 1 --memory 8K --program 4K --scratchpad 0",
};
