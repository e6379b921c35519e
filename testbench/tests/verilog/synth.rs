//! Synthesis of the smallest core, with Yosys itself; the command's tests have stand-ins for the tools.

use heddle_simt::Shape;
use heddle_simt::system::system;
use heddle_testbench::synth::{Board, Error, Session, Synthesis};
use std::io::Write;

/// What is counted in the whole, flat, and module by module is there, and agrees as far as it must.
#[test]
fn the_smallest_core_fits_a_board() {
    let board = Board::find("ulx3s-85f").unwrap();
    let shape = Shape { memory: 16 << 10, program: 4 << 10, metrics: false, ..Shape::new(1, 1) };
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
    // Blocks of 2 KiB: main and instruction memory; two copies of the registers, a read port each, and the scratchpad.
    assert_eq!(flat.memory_bram, 8 + 2);
    assert_eq!((cells.bram, cells.dsp), (2 + 4, 4), "{flat:?}");
    assert!(flat.core_luts > cells.luts / 2 && flat.core_luts < cells.luts, "{flat:?}");
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
