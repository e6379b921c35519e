//! Launches that do not end well, and what is refused meanwhile.

use crate::bench::{PATIENCE, program, small, streams};
use heddle_simt::host::Identity;
use heddle_simt::hosted::{hosted, over_uart};
use heddle_simt::{Backing, Shape, SlaveModel, Timing};
use heddle_testbench::Program;
use heddle_testbench::asm::{A0, Asm, MHARTID, ZERO, addi, csrr, lw, sw};
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::Device;
use heddle_testbench::remote::simulated::Streams;
use heddle_testbench::remote::{Board, Client, Line, Patience};
use std::time::Duration;

/// Adds 1 to the word at 0x400.
pub fn counts() -> Program {
    Asm::default().put([lw(5, ZERO, 0x400), addi(5, 5, 1), sw(5, ZERO, 0x400), addi(A0, ZERO, 0)]).exit().program()
}

fn of(program: Program, patience: Patience) -> Board<Streams> {
    let shape = small(4, 2);
    Board::new(streams(&shape, 21), patience, &shape, program).unwrap()
}

#[test]
fn exit_codes_are_told() {
    // The code is the hardware thread's number less 5.
    let mut board = of(Asm::default().put([csrr(A0, MHARTID), addi(A0, A0, -5)]).exit().program(), PATIENCE);
    let error = board.launch().unwrap_err().to_string();
    let (rest, thread) = error.split_once(" with ").zip(error.split_once("thread ")).map(|(a, b)| (a.1, b.1)).unwrap();
    assert!(rest.ends_with(" and 6 more"), "{error}");
    let number: i32 = thread.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(
        error,
        format!(
            "exit code not 0: hardware thread {number} (warp {}, lane {}) with {} and 6 more",
            number / 4,
            number % 4,
            number - 5
        )
    );
    let error = board.launch_grid(Grid { blocks: 2, threads: 9 }).unwrap_err().to_string();
    assert_eq!(error, "blocks of 9 threads: the core has 8");
}

#[test]
fn a_fault_is_told_and_after_it_the_board_is_of_use() {
    let mut board =
        of(Asm::default().put([addi(5, ZERO, 2)]).label("here").put([lw(6, 5, 0)]).exit().program(), PATIENCE);
    let error = board.launch().unwrap_err().to_string();
    assert_eq!(error, "misaligned load at 0x00000004 (here) in warp 0, lanes 0xf: address 0x00000002");
    board.load(counts()).unwrap();
    board.launch_grid(Grid { blocks: 1, threads: 1 }).unwrap();
    assert_eq!(board.read(0x400, 4).unwrap(), [1, 0, 0, 0]);
}

#[test]
fn a_launch_without_an_end_is_given_up() {
    let endless = Asm::default().label("here").jal(ZERO, "here").program();
    let mut board = of(endless, Patience { launch: Duration::from_millis(60), ..PATIENCE });
    let error = board.launch().unwrap_err().to_string();
    assert_eq!(error, "the program did not end in 60ms; the core was reset");
    board.load(program("nqueens")).unwrap();
    assert_eq!(board.read(0x400, 4).unwrap().len(), 4);
}

/// Memory is not touched while threads are live; status and reset always work.
#[test]
fn memory_is_refused_while_threads_are_live() {
    let shape = small(4, 2);
    let mut client = Client::connect(streams(&shape, 22), PATIENCE, &shape).unwrap();
    let endless = Asm::default().label("here").jal(ZERO, "here").words();
    client.write(0, &endless).unwrap();
    client.launch(0, 8, 1, 256).unwrap();
    let busy = "a launch is under way, or the core has stopped by a fault";
    assert!(client.status().unwrap().running);
    for _ in 0..3 {
        let error = client.read(0x400, 1).unwrap_err().to_string();
        assert_eq!(error, format!("the host refuses to read memory: {busy}"));
        let error = client.write(0x400, &[1]).unwrap_err().to_string();
        assert_eq!(error, format!("the host refuses to write memory: {busy}"));
        assert_eq!(client.launch(0, 8, 1, 256).unwrap_err().to_string(), format!("the host refuses to launch: {busy}"));
    }
    client.reset().unwrap();
    let status = client.status().unwrap();
    assert!(!status.running && !status.done && status.fault.is_none() && status.launches == 0);
    assert_eq!(client.read(0, endless.len() as u32).unwrap(), endless);
    assert_eq!(
        client.checksum(shape.memory, 1).unwrap_err().to_string(),
        "the host refuses to sum up memory: the range is outside memory, or the grid is none that the core can run"
    );
}

#[test]
fn a_line_without_a_host_is_told() {
    struct Dead;
    impl Line for Dead {
        fn send(&mut self, _: &[u8]) -> std::io::Result<()> {
            Ok(())
        }
        fn receive(&mut self, _: Duration) -> std::io::Result<Option<u8>> {
            Ok(None)
        }
        fn now(&mut self) -> Duration {
            Duration::ZERO
        }
    }
    let error = Client::connect(Dead, PATIENCE, &small(4, 2)).err().unwrap().to_string();
    assert_eq!(error, "no answer to `identify` after 8 attempts: nothing came");
}

/// Instructions go in; memory is somebody else's.
#[test]
fn on_a_bus_the_host_writes_instructions_only() {
    let slave = SlaveModel { timing: Timing::FASTEST, error: None };
    let shape = Shape { backing: Backing::Wishbone { width: 32, slave }, ..small(4, 2) };
    let mut client = Client::connect(streams(&shape, 23), PATIENCE, &shape).unwrap();
    client.write(shape.program - 8, &[1, 2]).unwrap();
    let outside = "the range is outside memory, or the grid is none that the core can run";
    assert_eq!(
        client.fill(shape.program - 8, 3, 0).unwrap_err().to_string(),
        format!("the host refuses to fill memory: {outside}")
    );
    let bus = "memory is on a bus, which the host does not reach";
    assert_eq!(client.read(0, 1).unwrap_err().to_string(), format!("the host refuses to read memory: {bus}"));
    let simulation = client.line().simulation();
    let instructions = simulation.directory().memories.find("heddle.instructions").unwrap();
    let last = u64::from(shape.program / 4 - 1);
    assert_eq!(simulation.engine().memory_read(instructions, last), 2);
    // A program without loads and stores needs no memory.
    drop(client);
    let mut board =
        Board::new(streams(&shape, 23), PATIENCE, &shape, Asm::default().put([addi(A0, ZERO, 0)]).exit().program())
            .unwrap();
    board.launch_grid(Grid { blocks: 5, threads: 7 }).unwrap();
    assert!(board.cycles() > 10);
}

/// The top of every kind of core is sound, with either line.
#[test]
fn hosted_tops_are_sound() {
    let identity = Identity { clock_khz: 50_000 };
    for shape in [Shape::new(1, 1), Shape::new(8, 8), Shape::new(64, 2)] {
        hosted(&shape, identity).check().unwrap();
        over_uart(&shape, identity, 434).check().unwrap();
    }
}
