//! Lines that lose and damage bytes: the results are the same.

use crate::bench::{PATIENCE, program, run, small, streams};
use heddle_simt::host::protocol::{ESCAPE, FLAG};
use heddle_testbench::remote::simulated::Streams;
use heddle_testbench::remote::{Board, Client, Line, Patience};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// A line on which one byte of `one_in` is changed, lost or doubled, or comes with others that nobody sent; in both
/// directions.
struct Noisy {
    line: Streams,
    r: fastrand::Rng,
    one_in: u32,
    came: VecDeque<u8>,
    damaged: u64,
}

impl Noisy {
    /// What comes of a byte.
    fn of(&mut self, byte: u8) -> Vec<u8> {
        if self.one_in == 0 || self.r.u32(..self.one_in) > 0 {
            return vec![byte];
        }
        self.damaged += 1;
        match self.r.u8(..7) {
            0 | 1 => vec![byte ^ 1 << self.r.u8(..8)],
            2 => vec![],
            3 => vec![byte, byte],
            4 => vec![[FLAG, ESCAPE][self.r.usize(..2)]],
            5 => vec![byte, FLAG],
            _ => (0..self.r.usize(..30)).map(|_| self.r.u8(..)).chain([byte]).collect(),
        }
    }
}

impl Line for Noisy {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        let bytes: Vec<u8> = bytes.iter().flat_map(|&byte| self.of(byte)).collect();
        self.line.send(&bytes)
    }

    fn receive(&mut self, within: Duration) -> io::Result<Option<u8>> {
        while self.came.is_empty() {
            let Some(byte) = self.line.receive(within)? else { return Ok(None) };
            let bytes = self.of(byte);
            self.came.extend(bytes);
        }
        Ok(self.came.pop_front())
    }

    fn now(&mut self) -> Duration {
        self.line.now()
    }
}

/// Kernels of one launch and of many, and one that adds to memory and would notice a launch that runs twice.
#[test]
fn results_are_the_same_on_a_noisy_line() {
    let shape = small(4, 2);
    let (r, came) = (fastrand::Rng::with_seed(11), VecDeque::new());
    let line = Noisy { line: streams(&shape, 11), r, one_in: 0, came, damaged: 0 };
    let patience = Patience { attempts: 200, ..PATIENCE };
    let mut board = Board::new(line, patience, &shape, program("photon")).unwrap();
    for (one_in, names) in [(1000, &["bitonic_large", "collatz"][..]), (150, &["photon"])] {
        let before = (board.client().retries(), board.client().line().damaged);
        board.client().line().one_in = one_in;
        run(&mut board, names, 11);
        let (retries, damaged) = (board.client().retries() - before.0, board.client().line().damaged - before.1);
        println!("one byte in {one_in}: {damaged} damaged, {retries} retries");
        assert!(retries > 20 && damaged >= retries, "{retries} retries for {damaged} damaged bytes");
    }
}

/// Each launch runs once, though half of the replies to it are lost.
#[test]
fn a_launch_that_is_asked_for_again_runs_once() {
    let shape = small(2, 1);
    let line = Noisy {
        line: streams(&shape, 14),
        r: fastrand::Rng::with_seed(14),
        one_in: 20,
        came: VecDeque::new(),
        damaged: 0,
    };
    let patience = Patience { attempts: 1000, ..PATIENCE };
    let mut client = Client::connect(line, patience, &shape).unwrap();
    // Each launch adds 1 to a word, by one thread.
    let program = super::launches::counts();
    let words: Vec<u32> = (0..program.program_end()).step_by(4).map(|at| program.word(at).unwrap()).collect();
    client.write(0, &words).unwrap();
    client.write(0x400, &[0]).unwrap();
    for launch in 1..=30 {
        client.launch(0, 1, 1, program.program_end()).unwrap();
        while client.status().unwrap().running {}
        assert_eq!(client.read(0x400, 1).unwrap(), [launch]);
    }
    assert!(client.retries() > 30, "{}", client.retries());
}
