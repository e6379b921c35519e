//! Synthesis of the smallest core, with Yosys itself; the command's tests have stand-ins for the tools.

use heddle_check::synth::{Board, Error, Session, Synthesis, bitstream};
use heddle_simt::system::system;
use heddle_simt::{Metrics, Shape};
use std::io::Write;

/// What is counted in the whole, flat, and module by module is there, and agrees as far as it must.
#[test]
fn the_smallest_core_fits_a_board() {
    let board = Board::find("ulx3s-85f").unwrap();
    let shape = Shape { memory: 16 << 10, program: 4 << 10, stack: 512, metrics: Metrics::Off, ..Shape::small(1, 1) };
    let top = system(&shape).check().unwrap().netlist;
    let session = Session { stop: &|| false, says: &|_| {}, again: false };
    let mut synthesis = Synthesis::new(board, &top, session);
    let flat = match synthesis.cells() {
        Ok(flat) => flat,
        Err(error @ (Error::Missing(..) | Error::Install(..))) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: synthesis: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let cells = flat.cells;
    assert_eq!(cells.luts, cells.lut4 + 2 * cells.carry + 6 * cells.distributed_ram);
    // Blocks of 2 KiB: main and instruction memory; two copies of the registers, a read port each.
    assert_eq!(flat.memory_bram, 8 + 2);
    assert_eq!((cells.bram, cells.dsp), (2, 4), "{flat:?}");
    // What the rest leaves over is what the core takes alone, but for what is merged across its ports.
    let core = top.modules().into_iter().find(|module| module.name == "core").expect("a system has a core");
    let alone = Synthesis::of_module(board, &top, &core, session).cells().unwrap().cells.luts;
    assert!(flat.core_luts < cells.luts && flat.core_luts.abs_diff(alone) < alone / 20, "{flat:?}, alone {alone}");
    assert!(cells.ff > 500 && cells.distributed_ram > 0, "{flat:?}");
    assert_eq!(flat.over(board), None);

    let rows = synthesis.modules().unwrap();
    let row = |name: &str| rows.iter().find(|row| row.module == name).unwrap_or_else(|| panic!("{name}: {rows:?}"));
    assert_eq!((row("multiplier").copies, row("multiplier").cells.dsp), (1, 4));
    assert_eq!(row("core").copies, 1);
    let all = row("core, all").cells;
    assert_eq!(
        all.luts,
        rows.iter().filter(|row| row.module != "core, all").map(|row| row.copies * row.cells.luts).sum::<u32>()
    );
    assert_eq!((all.bram, all.dsp), (cells.bram, cells.dsp));
}

/// A core with its host goes to a bitstream of the right device, at the clock that was asked for.
#[test]
fn the_smallest_core_becomes_a_bitstream() {
    let board = Board::find("colorlight-i5").unwrap();
    let shape = Shape {
        memory: 4 << 10,
        program: 4 << 10,
        stack: 512,
        loads: 2,
        multiply: false,
        counters: false,
        ..Shape::small(1, 1)
    };
    let session = Session { stop: &|| false, says: &|_| {}, again: false };
    let built = match bitstream(board, &shape, Some(board.oscillator.khz), 1, session) {
        Ok(built) => built,
        Err(error @ (Error::Missing(..) | Error::Install(..))) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: bitstream: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!((built.clock_khz, built.baud, built.divisor), (25_000, 115_200, 217));
    assert!(built.timing.mhz >= 25.0 && !built.timing.path.is_empty(), "{built:?}");
    assert_eq!(built.flat.memory_bram, 2 + 2, "{:?}", built.flat);
    let (name, bits) = &built.files[0];
    assert_eq!(name, "heddle.bit");
    let part = b"Part: LFE5U-25F-6CABGA381";
    assert!(bits.len() > 50_000 && bits.windows(part.len()).any(|window| window == part), "{} bytes", bits.len());
    // The preamble of an ECP5's configuration, and its device.
    let preamble = bits.windows(4).position(|window| window == [0xff, 0xff, 0xbd, 0xb3]).expect("a preamble");
    let id = [0x41, 0x11, 0x10, 0x43];
    assert!(
        bits[preamble..preamble + 60].windows(4).any(|window| window == id),
        "{:x?}",
        &bits[preamble..preamble + 60]
    );
}
