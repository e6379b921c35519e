//! Where the instructions of single regions go, block by block.

use super::relocate;
use crate::Program;
use crate::asm::*;
use crate::predict::body::Body;
use crate::predict::deconflict::{self, Deconflict};
use crate::predict::linked::Linked;
use crate::predict::place::{self, Barrier, Place, Why};
use crate::predict::{edits, pdom, soft::Soft};
use std::collections::BTreeSet;

/// A function, by the labels of its blocks.
struct Blocks {
    program: Program,
    elf: &'static [u8],
}

impl Blocks {
    fn new(asm: Asm) -> Blocks {
        let program = asm.program();
        let elf = relocate::elf(&program).leak();
        Blocks { program, elf }
    }

    fn linked(&self) -> Linked<'static> {
        Linked::read(self.elf).unwrap()
    }

    fn body(&self) -> Body {
        let linked = self.linked();
        Body::of(&linked, &linked.analysis.functions[0]).unwrap()
    }

    fn at(&self, label: &str) -> u32 {
        self.program.symbol(label).unwrap().address
    }

    fn name(&self, pc: u32) -> String {
        self.program.nearest_symbol(pc).unwrap()
    }

    /// What is where, in words.
    fn text(&self, barrier: &Barrier) -> Vec<String> {
        let place = |place: &Place| match *place {
            Place::Before(pc) => self.name(pc),
            Place::Edge(from, to) => format!("{} -> {}", self.name(from), self.name(to)),
        };
        let joins = barrier.joins.iter().map(|p| format!("join {}", place(p)));
        let waits = barrier.waits.iter().map(|&pc| format!("wait {}", self.name(pc)));
        let rejoins = barrier.rejoins.iter().map(|&pc| format!("rejoin {}", self.name(pc)));
        let cancels = barrier.cancels.iter().map(|p| format!("cancel {}", place(p)));
        joins.chain(waits).chain(rejoins).chain(cancels).collect()
    }

    fn region(&self, join: &str, point: &str) -> (Barrier, Option<Barrier>) {
        let body = self.body();
        place::region(&body, Why::Predicted("L1".into()), &[self.at(join)], self.at(point), 0)
    }

    fn names(&self, pcs: impl IntoIterator<Item = u32>) -> BTreeSet<String> {
        pcs.into_iter().map(|pc| self.name(pc).split('+').next().unwrap().to_string()).collect()
    }
}

/// Listing 1 as Figure 4 has it.
fn figure_4() -> Blocks {
    let asm = Asm::default().label("bb0").put([addi(6, ZERO, 0), csrr(5, LANE)]);
    let asm = asm.label("bb1").put([addi(6, 6, 1), add(7, 6, 5)]);
    let asm = asm.label("bb2").put([andi(7, 7, 1)]).branch(BEQ, 7, ZERO, "bb4");
    let asm = asm.label("bb3").put([mul(8, 8, 8)]);
    let asm = asm.label("bb4").put([sltiu(7, 6, 9)]).branch(BNE, 7, ZERO, "bb1");
    Blocks::new(asm.label("bb5").put([addi(A0, ZERO, 0)]).exit())
}

#[test]
fn figure_4_block_by_block() {
    let blocks = figure_4();
    let (barrier, meets) = blocks.region("bb0", "bb3");
    assert_eq!(blocks.text(&barrier), ["join bb0", "wait bb3", "rejoin bb3", "cancel bb5"]);
    assert_eq!(blocks.text(&meets.unwrap()), ["join bb0", "wait bb5"]);
    // From the join to the wait, and from the rejoin to the wait.
    let ranges: Vec<_> = barrier.ranges.iter().map(|range| blocks.names(range.iter().copied())).collect();
    let set = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<BTreeSet<_>>();
    assert_eq!(ranges, [set(&["bb0", "bb1", "bb2", "bb4"]), set(&["bb1", "bb2", "bb3", "bb4"])]);
}

/// Equations 1 and 2, as parts (b) and (c) of the figure show them.
#[test]
fn figure_4_equations() {
    use crate::predict::dataflow::{Event, Events};
    let blocks = figure_4();
    let body = blocks.body();
    let mut events = Events::none(&body);
    events.before[body.node(blocks.at("bb0")).unwrap()].push(Event::Join);
    events.before[body.node(blocks.at("bb3")).unwrap()].push(Event::Wait);
    let (joined, live) = (events.joined(&body), events.live(&body));
    let at = |state: &[bool]| {
        let starts = (0..6).map(|n| body.node(blocks.at(&format!("bb{n}"))).unwrap());
        starts.map(|node| state[node]).collect::<Vec<_>>()
    };
    assert_eq!(at(&joined.into), [false, true, true, true, true, true]);
    assert_eq!(at(&joined.at), [true, true, true, false, true, true]);
    assert_eq!(at(&live.into), [false, true, true, true, true, false]);
}

#[test]
fn a_region_of_a_do_while() {
    let asm = Asm::default().label("start").put([csrr(5, LANE)]);
    let asm = asm.label("body").put([addi(5, 5, -1), mul(8, 8, 8)]).branch(BLT, ZERO, 5, "body");
    let blocks = Blocks::new(asm.label("end").exit());
    let (barrier, meets) = blocks.region("start", "body");
    assert_eq!(blocks.text(&barrier), ["join start", "wait body", "rejoin body", "cancel end"]);
    assert_eq!(blocks.text(&meets.unwrap()), ["join start", "wait end"]);
}

/// The region is one turn of the outer loop: it begins and ends again each time.
#[test]
fn a_region_in_an_outer_loop() {
    let asm = Asm::default().put([csrr(5, LANE), addi(9, ZERO, 3)]);
    let asm = asm.label("outer").put([addi(6, 5, 1)]);
    let asm = asm.label("inner").put([addi(6, 6, -1)]).branch(BEQ, 6, 5, "next");
    let asm = asm.label("point").put([mul(8, 8, 8)]);
    let asm = asm.label("next").branch(BLT, ZERO, 6, "inner");
    let asm = asm.label("epilog").put([addi(9, 9, -1)]).branch(BLT, ZERO, 9, "outer");
    let blocks = Blocks::new(asm.label("end").exit());
    let (barrier, meets) = blocks.region("outer", "point");
    assert_eq!(blocks.text(&barrier), ["join outer", "wait point", "rejoin point", "cancel epilog"]);
    assert_eq!(blocks.text(&meets.unwrap()), ["join outer", "wait epilog"]);
    // The region around the outer loop does not end in it.
    let (barrier, meets) = blocks.region("inner", "point");
    assert_eq!(blocks.text(&barrier)[0], "join inner");
    assert!(meets.is_some());
}

/// A way out in the middle: the cancel is on the edge where others come too, and nobody meets behind the return.
#[test]
fn a_return_in_the_region() {
    let asm = Asm::default().label("main").put([csrr(5, LANE)]).jal(RA, "f").exit();
    let asm = asm.label("f").branch(BEQ, 5, ZERO, "return");
    let asm = asm.label("start").put([addi(6, 5, 3)]);
    let asm = asm.label("body").put([addi(6, 6, -1)]).branch(BEQ, 6, ZERO, "return");
    let asm = asm.label("point").put([mul(8, 8, 8)]).branch(BLT, ZERO, 6, "body");
    let asm = asm.label("after").put([addi(7, 7, 1)]);
    let blocks = Blocks::new(asm.label("return").put([jalr(ZERO, RA, 0)]));
    let linked = blocks.linked();
    let function = linked.analysis.functions.iter().find(|f| f.entry == blocks.at("f")).unwrap();
    let body = Body::of(&linked, function).unwrap();
    let (barrier, meets) =
        place::region(&body, Why::Predicted("x".into()), &[blocks.at("start")], blocks.at("point"), 0);
    let want = ["join start", "wait point", "rejoin point", "cancel after", "cancel body+0x4 -> return"];
    assert_eq!(blocks.text(&barrier), want);
    assert_eq!(blocks.text(&meets.unwrap()), ["join start", "wait return"]);
}

/// Figure 5: the barrier of the branch's post-dominator conflicts with the region's.
#[test]
fn figure_5() {
    let blocks = figure_4();
    let (linked, body) = (blocks.linked(), blocks.body());
    let (barrier, _) = blocks.region("bb0", "bb3");
    let all = || {
        let mut all = vec![barrier.clone()];
        all.extend(pdom::barriers(&linked, &body, &barrier.range()));
        all
    };
    let texts = |barriers: &[Barrier]| barriers.iter().map(|b| blocks.text(b)).collect::<Vec<_>>();
    let of_branch = vec!["join bb2+0x4".to_string(), "wait bb4".into()];
    let of_loop = vec!["join bb0+0x4 -> bb1".to_string(), "wait bb5".into()];
    assert_eq!(texts(&all())[1..], [of_branch, of_loop.clone()]);

    let mut fixed = all();
    assert_eq!(deconflict::deconflict(&mut fixed, Deconflict::Static), [(0, 1)]);
    assert_eq!(texts(&fixed)[1..], [of_loop]);

    let mut dynamic = all();
    deconflict::deconflict(&mut dynamic, Deconflict::Dynamic);
    assert_eq!(dynamic.len(), 3);
    assert_eq!((&dynamic[1].gives_way[..], &dynamic[2].gives_way[..]), (&[blocks.at("bb3")][..], &[][..]));
    // In BB3: leave b1, wait at b0, join it again.
    let numbered: Vec<(Barrier, Vec<u32>)> = dynamic.into_iter().zip(0..).map(|(b, n)| (b, vec![n])).collect();
    let edits = edits(&numbered, Soft::Wait, 0);
    assert_eq!(edits.before[&blocks.at("bb3")], [cancel(1), wait(0, 0), join(0)]);

    // And b1, too, if threads are to come back to it.
    let mut rejoined = all();
    deconflict::deconflict(&mut rejoined, Deconflict::Rejoin);
    let numbered: Vec<(Barrier, Vec<u32>)> = rejoined.into_iter().zip(0..).map(|(b, n)| (b, vec![n])).collect();
    let edits = super::super::edits(&numbered, Soft::Wait, 0);
    assert_eq!(edits.before[&blocks.at("bb3")], [cancel(1), wait(0, 0), join(0), join(1)]);
}

/// Figure 6, with the cancel of bCount that is missing there, and bTemp cancelled last.
#[test]
fn figure_6() {
    let blocks = figure_4();
    let (mut barrier, _) = blocks.region("bb0", "bb3");
    barrier.threshold = 3;
    let (temp, all, counts, free) = (0, 1, 2, 4);
    let edits = edits(&[(barrier, vec![temp, all, counts])], Soft::Count, free);
    assert_eq!(edits.before[&blocks.at("bb0")], [join(all), copy(temp, all)]);
    let skip = Asm::default().branch(BNE, free, ZERO, "wait").put([NOP]).label("wait").put([NOP]).words()[0];
    let point = [
        join(counts),
        count(free, counts),
        sltiu(free, free, 3),
        skip,
        move_(temp, counts),
        wait(temp, 0),
        copy(temp, all),
    ];
    assert_eq!(edits.before[&blocks.at("bb3")], point);
    assert_eq!(edits.before[&blocks.at("bb5")], [cancel(counts), cancel(all), cancel(temp)]);
}
