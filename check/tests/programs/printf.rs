//! `printf` of `heddle.h`: what threads print on every mechanism, and in which cases nothing of it is lost.

use crate::compiled::compiled;
use heddle_check::checked;
use heddle_sim::simulation::{Options, Simulation};
use heddle_simt::host::Identity;
use heddle_simt::hosted::hosted;
use heddle_simt::{Backing, Divergence, Shape, Timing};
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::Device;
use heddle_testbench::machine::Machine;
use heddle_testbench::printed::{Print, Printed};
use heddle_testbench::remote::simulated::Streams;
use heddle_testbench::remote::{Board, Patience};
use std::time::Duration;

/// What a thread of a block should have printed.
fn expected(block: u32, thread: u32) -> Vec<Print> {
    let (t, n) = (thread, -(thread as i32));
    let texts = match thread % 2 {
        1 => vec![format!("thread {t}: {n} {n} {n:5}|{n:<5}|{n:05}|{n:+}| {t}")],
        _ => {
            let hex = if t == 0 { "0".into() } else { format!("{t:#x}") };
            let letter = char::from(b'a' + t as u8);
            vec![
                format!("beef BEEF {hex} 10 {letter} 255 -32768 7 thr {t:4} 0x40 % 100%"),
                "no arguments".into(),
                // Wider than any text: as it stands, and what follows has its own argument.
                "%2000000000d %*d 3".into(),
                "two\nlines %f".into(),
            ]
        }
    };
    texts.into_iter().map(|text| Print { block, thread, text }).collect()
}

fn sorted(printed: &Printed) -> Vec<Print> {
    let mut lines = printed.lines.clone();
    // Of one thread, calls are in order.
    lines.sort_by_key(|print| (print.block, print.thread));
    lines
}

#[test]
fn every_thread_prints_on_every_mechanism() {
    let Some(program) = compiled("printf", &[]) else { return };
    let late = Backing::Model(Timing { latency: 30, jitter: 15, interval: 1, seed: 5 });
    let units = Divergence::ALL.iter().map(|&unit| Shape::new(4, 2).with_divergence(unit));
    for shape in units.chain([Shape::new(1, 1), Shape::new(16, 1), Shape { backing: late, ..Shape::new(2, 4) }]) {
        let mut machine = Machine::new(&shape, program.clone(), &checked()).unwrap();
        // Two launches, each with its own.
        for launch in 1..=2 {
            let threads = shape.threads();
            machine.launch_grid(Grid { blocks: 2, threads }).unwrap_or_else(|e| panic!("{}: {e}", shape.options()));
            let once: Vec<Print> =
                (0..2).flat_map(|block| (0..threads).flat_map(move |thread| expected(block, thread))).collect();
            let printed = machine.printed();
            assert_eq!(printed.dropped, 0);
            let all = if launch == 1 { once } else { once.iter().flat_map(|p| [p.clone(), p.clone()]).collect() };
            let mut want = Printed { lines: all, dropped: 0 };
            let mut got = sorted(printed);
            want.lines.sort_by_key(|print| (print.block, print.thread, print.text.clone()));
            got.sort_by_key(|print| (print.block, print.thread, print.text.clone()));
            assert_eq!(got, want.lines, "{}", shape.options());
        }
    }
}

/// A board tells the same, through its host.
#[test]
fn a_board_prints_too() {
    let Some(program) = compiled("printf", &[]) else { return };
    let shape = Shape { program: 8 << 10, memory: 32 << 10, stack: 512, fair: true, ..Shape::new(4, 2) };
    let design = hosted(&shape, Identity { clock_khz: 1000 }).check().unwrap();
    let line = Streams::new(Simulation::new(&design.netlist, &Options::default()).unwrap(), 1000).unwrap();
    let patience = Patience {
        reply: Duration::from_millis(2),
        byte: Duration::ZERO,
        quiet: Duration::from_micros(200),
        attempts: 8,
        launch: Duration::from_secs(100),
        poll: Duration::from_millis(20),
    };
    let mut board = Board::new(line, patience, &shape, program).unwrap();
    board.launch().unwrap();
    let want: Vec<Print> = (0..8).flat_map(|thread| expected(0, thread)).collect();
    assert_eq!(sorted(board.printed()), want);
}

#[test]
fn what_finds_no_room_is_counted() {
    let Some(program) = compiled("printf", &[]) else { return };
    let shape = Shape::new(4, 2);
    let mut machine = Machine::new(&shape, program.clone(), &checked()).unwrap();
    let calls = machine.program().symbol("calls").unwrap().address;
    machine.write(calls, &100u32.to_le_bytes()).unwrap();
    machine.launch().unwrap();
    // 1024 words hold 256 records of 3 words and an argument.
    let printed = machine.printed();
    assert_eq!((printed.lines.len(), printed.dropped), (256, 8 * 100 - 256));
    assert!(printed.lines.iter().all(|print| print.text.parse::<u32>().is_ok_and(|k| k < 100)));
    let text = printed.text();
    assert!(text.starts_with("thread ") && text.contains("\n544 calls of printf found no room"), "{text}");
    // The next launch has all of the room.
    machine.write(calls, &1u32.to_le_bytes()).unwrap();
    machine.launch().unwrap();
    assert_eq!((machine.printed().lines.len(), machine.printed().dropped), (256 + 8, 544));
}
