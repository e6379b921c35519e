//! Figure 1 of `papers/path-lists-simty.txt`, step by step in every order: `if (A && B) C; else D; E`, thread 0 through
//! ABCE, 1 through ADE, 2 and 3 through ABDE. Bit i from the left is thread i.
//!
//! `docs/reference/orders.md` shows these lists.

use crate::bench::shape;
use heddle_check::checked;
use heddle_sim::Engine;
use heddle_sim::directory::Directory;
use heddle_simt::{Divergence, Order, Shape};
use heddle_testbench::Program;
use heddle_testbench::asm::*;
use heddle_testbench::grid::{Grid, GridError};
use heddle_testbench::machine::{Machine, Mismatch, Monitor};
use heddle_testbench::paths::{Path, paths};
use heddle_testbench::program::ProgramError;
use std::cell::RefCell;
use std::fs;

const BLOCKS: [&str; 5] = ["A", "B", "C", "D", "E"];

/// With a convergence barrier where the threads are to meet, or without.
fn program(synchronises: bool) -> Asm {
    let barrier = |instruction: u32| synchronises.then_some(instruction);
    Asm::default()
        .put([csrr(5, LANE), addi(6, 5, -1), addi(A0, ZERO, 0)])
        .put(barrier(join(0)))
        .label("A")
        .branch(BEQ, 6, ZERO, "D")
        .label("B")
        .branch(BNE, 5, ZERO, "D")
        .label("C")
        .put([NOP])
        .jal(ZERO, "E")
        .label("D")
        .put([NOP])
        .jal(ZERO, "E")
        .label("E")
        .put(barrier(wait(0, 0)))
        .exit()
}

thread_local! {
    /// What the monitor saw.
    static LISTS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the lists of warp 0: the active path, or both; others in parentheses; threads at the barrier in brackets.
struct Lists {
    shape: Shape,
    program: Asm,
}

impl Lists {
    fn text(&self, mut paths: Vec<Path>) -> String {
        let block = |pc: u64| BLOCKS.into_iter().rev().find(|block| self.program.at(block) <= pc).unwrap_or("A");
        // The cold table is told from its bottom.
        let cold = paths.iter().filter(|path| path.place.starts_with("CCT")).count();
        if cold > 0 {
            paths[2..2 + cold].reverse();
        }
        let shown = paths.iter().enumerate().map(|(k, path)| {
            let threads: String = path.mask.iter().map(|thread| if *thread { '1' } else { '0' }).collect();
            let path_is = format!("{} {threads}", block(u64::from(path.pc / 4)));
            match (k, path.place.as_str()) {
                (_, place) if place.starts_with("wait") => format!("[{path_is}]"),
                (0, _) | (_, "right") => path_is,
                _ => format!("({path_is})"),
            }
        });
        shown.collect::<Vec<_>>().join(" ")
    }
}

impl Monitor for Lists {
    fn launch(&mut self, _: &dyn Engine, _: Grid, _: u32) -> Result<(), GridError> {
        Ok(())
    }

    fn cycle(&mut self, engine: &mut dyn Engine, _: u64) -> Result<(), Box<Mismatch>> {
        let paths = paths(engine, "core", &self.shape, 0);
        // Those that the barrier lets go on with an outcome are in no path before it.
        let all = paths.iter().map(|path| path.mask.count_ones()).sum::<usize>() == 4;
        let list = self.text(paths);
        LISTS.with_borrow_mut(|lists| {
            if all && lists.last() != Some(&list) {
                lists.push(list);
            }
        });
        Ok(())
    }
}

fn monitor(_: &Directory, _: &Program, shape: &Shape) -> Result<Option<Box<dyn Monitor>>, ProgramError> {
    Ok(Some(Box::new(Lists { shape: shape.clone(), program: program(shape.convergence_barriers > 0) })))
}

/// What the list is, one after the other.
fn lists(shape: &Shape) -> Vec<String> {
    LISTS.take();
    let mut options = checked();
    options.monitors.push(monitor);
    let program = program(shape.convergence_barriers > 0).program();
    let mut machine = Machine::new(shape, program, &options).unwrap();
    machine.run().unwrap();
    LISTS.take()
}

fn page() -> String {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/orders.md");
    fs::read_to_string(page).unwrap()
}

/// The lists are as expected, and the page shows them.
fn check(s: &Shape, expected: &str) {
    let (lists, expected) = (lists(s), expected.trim());
    assert_eq!(lists.join("\n"), expected, "{}", s.options());
    assert!(page().contains(&format!("```\n{expected}\n```")), "the page lacks\n{expected}");
}

/// With a barrier at E, if threads are not brought together without.
fn check_order(order: Order, convergence_barriers: u32, expected: &str) {
    let fair = order.takes_turns();
    check(&Shape { order, fair, convergence_barriers, ..shape(4, 1) }, expected);
}

#[test]
fn figure_1e_by_depth_and_pc() {
    for order in [Order::DepthPc, Order::Pc] {
        check_order(order, 0, SORTED);
    }
}

#[test]
fn figure_1b_depth_first() {
    check_order(Order::Swap, 0, SORTED);
}

/// At E the active path is that of the lesser pc.
const SORTED: &str = "
A 1111
B 1011 (D 0100)
C 1000 (D 0111)
D 0111 (E 1000)
E 1111
";

#[test]
fn figure_1c_the_minority_first() {
    check_order(
        Order::Minority,
        1,
        "
A 1111
D 0100 (B 1011)
E 0100 (B 1011)
B 1011 [E 0100]
C 1000 (D 0011) [E 0100]
E 1000 (D 0011) [E 0100]
D 0011 [E 1100]
E 0011 [E 1100]
E 1111
",
    );
}

#[test]
fn the_majority_first() {
    check_order(
        Order::Majority,
        1,
        "
A 1111
B 1011 (D 0100)
D 0111 (C 1000)
E 0111 (C 1000)
C 1000 [E 0111]
E 1000 [E 0111]
E 1111
",
    );
}

#[test]
fn figure_1d_breadth_first() {
    check_order(
        Order::BreadthFirst,
        1,
        "
A 1111
B 1011 (D 0100)
D 0100 (C 1000) (D 0011)
C 1000 (E 0100) (D 0011)
C 1000 (D 0011) (E 0100)
D 0011 (E 1000) (E 0100)
D 0011 (E 0100) (E 1000)
E 0100 (E 0011) (E 1000)
E 0011 (E 1000) [E 0100]
E 1011 [E 0100]
E 1111
",
    );
}

#[test]
fn figure_1f_in_parallel() {
    let parallel = shape(4, 1).with_divergence(Divergence::DUAL_PATH);
    check(
        &parallel,
        "
A 1111
D 0100 B 1011
C 1000 D 0011 (D 0100)
C 1000 (D 0100) (E 0011)
D 0100 (E 1011)
E 1111
",
    );
}
