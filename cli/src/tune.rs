//! `heddle predict --tune`: what threads of each region should wait for, found by running.

use crate::interrupt::Interrupt;
use crate::launch::Launch;
use crate::shape::ShapeArgs;
use crate::study::draws::{self, DrawsArgs, Gain};
use crate::study::runs::{Drive, Run};
use crate::study::table::plain;
use crate::target::Target;
use anyhow::{Context, Result};
use heddle_simt::{Shape, Timing};
use heddle_testbench::kernels::Device;
use heddle_testbench::machine::Summary;
use heddle_testbench::predict::{Choice, Options, Prediction, Region, Tried, predict, search};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was tried, and what was chosen.
#[derive(Serialize)]
pub struct Tuning {
    /// The options that choose the core.
    core: String,
    draws: u32,
    regions: Vec<Named>,
    /// First the program without regions.
    tried: Vec<Row>,
}

#[derive(Serialize)]
struct Named {
    #[serde(flatten)]
    region: Region,
    place: String,
    /// Says which it is among all.
    #[serde(skip)]
    title: String,
}

/// A program over all draws.
#[derive(Serialize)]
struct Row {
    /// For each region: so many threads, all, or none where it is left alone.
    choices: Vec<Choice>,
    /// In each draw.
    cycles: Vec<u64>,
    /// Cycles of the program without regions over its own, of the same draw.
    speedup: f64,
    speedup_range: [f64; 2],
    chosen: bool,
}

/// Runs the program with what `options` ask for, and with all that differs from it in what threads wait for.
pub fn tune(target: Target, elf: &[u8], options: &Options, launch: Launch, draws: DrawsArgs) -> Result<Tuning> {
    let shape = shape(&launch.shape.over(&target.core())?, options.barriers)?;
    let interrupt = Interrupt::catch()?;
    let mut target = launch.target(target, &shape)?;
    target.end_at(&interrupt);
    let target = Arc::new(target);
    let Prediction { regions, .. } = predict(elf, options).with_context(|| target.name.clone())?;
    let asked: Vec<Choice> = regions.iter().map(|(_, asked, _)| *asked).collect();
    let regions = named(regions);
    let jitter = shape.simulated_timing().map_or(0, |timing| timing.jitter);
    // Without inputs and chance, all draws are one.
    let draws = if !target.has_inputs() && jitter == 0 { DrawsArgs { draws: 1 } } else { draws };
    let machine = launch.options();
    let drive: Drive = Arc::new({
        let target = target.clone();
        move |device: &mut dyn Device, seed| launch.drive(device, &target, seed).map(drop)
    });
    let run = |choices: &Vec<Choice>| -> Result<Run> {
        let name = format!("{} with {}", target.name, text(&regions, choices));
        let options = Options { choices: by_region(&regions, choices), ..options.clone() };
        let elf = predict(elf, &options).with_context(|| name.clone())?.elf;
        Ok(Run::of(name, elf.into(), shape.clone(), drive.clone()))
    };
    let cycles = |programs: &[Vec<Choice>]| -> Result<Vec<Vec<u64>>> {
        let runs = programs.iter().map(run).collect::<Result<Vec<Run>>>()?;
        let of_draws = |draws: Vec<Summary>| draws.iter().map(|summary| summary.cycles).collect();
        Ok(draws::all_as(&runs, draws, &machine, None, &interrupt)?.into_iter().map(of_draws).collect())
    };
    let tuned = search(&asked, shape.lanes, cycles)?;
    let before = tuned.tried[0].cycles.clone();
    let row = |(at, tried): (usize, Tried)| Row::new(tried, &before, at == tuned.chosen);
    let tried = tuned.tried.into_iter().enumerate().map(row).collect();
    Ok(Tuning { core: shape.options(), draws: draws.draws, regions, tried })
}

/// The core asked for, with convergence barriers, and with jitter where memory is simulated.
fn shape(args: &ShapeArgs, barriers: u32) -> Result<Shape> {
    let jitter = |timing: Timing| if timing.jitter == 0 { draws::JITTER } else { timing.jitter };
    let memory_model = args.memory_model.map(|timing| Timing { jitter: jitter(timing), ..timing });
    ShapeArgs { convergence_barriers: Some(barriers), memory_model, ..args.clone() }.shape()
}

fn named(regions: Vec<(Region, Choice, String)>) -> Vec<Named> {
    let names: Vec<String> = regions.iter().map(|(region, ..)| region.name.clone()).collect();
    let named = |(region, _, place): (Region, Choice, String)| {
        let alone = names.iter().filter(|name| **name == region.name).count() == 1;
        let title = if alone { region.name.clone() } else { format!("{} at {place}", region.name) };
        Named { region, place, title }
    };
    regions.into_iter().map(named).collect()
}

fn by_region(regions: &[Named], choices: &[Choice]) -> BTreeMap<Region, Choice> {
    regions.iter().map(|named| named.region.clone()).zip(choices.iter().copied()).collect()
}

/// The regions that wait: `nuclide: 8, bounce: all`.
fn text(regions: &[Named], choices: &[Choice]) -> String {
    let waits = regions.iter().zip(choices).filter(|(_, choice)| **choice != Choice::Alone);
    let waits: Vec<String> = waits.map(|(named, choice)| format!("{}: {choice}", named.title)).collect();
    if waits.is_empty() { "no region".into() } else { waits.join(", ") }
}

impl Row {
    fn new(Tried { choices, cycles }: Tried, before: &[u64], chosen: bool) -> Row {
        let values = |cycles: &[u64]| cycles.iter().map(|&cycles| cycles as f64).collect::<Vec<f64>>();
        let Gain { mean, least, greatest } = Gain::paired(&values(&cycles), &values(before));
        Row { choices, cycles, speedup: mean, speedup_range: [least, greatest], chosen }
    }

    fn gain(&self) -> Gain {
        let [least, greatest] = self.speedup_range;
        Gain { mean: self.speedup, least, greatest }
    }

    fn cycles(&self) -> f64 {
        self.cycles.iter().map(|&cycles| cycles as f64).sum::<f64>() / self.cycles.len() as f64
    }
}

impl Tuning {
    /// What threads wait for in the program that was chosen.
    pub fn choices(&self) -> BTreeMap<Region, Choice> {
        let chosen = self.tried.iter().find(|row| row.chosen).map_or(&[][..], |row| &row.choices);
        by_region(&self.regions, chosen)
    }

    /// As a table, and what came of it.
    pub fn text(&self) -> String {
        let heading = ["threads that are waited for", "cycles", "speedup", "least … greatest", ""];
        let line = |row: &Row| {
            let chosen = if row.chosen { "chosen" } else { "" };
            let cycles = format!("{:.0}", row.cycles());
            [text(&self.regions, &row.choices), cycles, row.gain().text(), row.gain().range(), chosen.into()]
        };
        let lines = [heading.map(String::from)].into_iter().chain(self.tried.iter().map(line)).map(Vec::from);
        let core = if self.core.is_empty() { "the default core" } else { &self.core };
        let plural = if self.draws == 1 { "" } else { "s" };
        let mut text = format!("{core}, {} draw{plural}\n{}", self.draws, plain(&lines.collect::<Vec<_>>(), 1));
        if self.choices().values().all(|&choice| choice == Choice::Alone) {
            text.push_str("nothing is faster in every draw than the program without regions: none is placed\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use heddle_testbench::Program;
    use heddle_testbench::kernels::{Kernel, KernelError, Output, find};

    fn tuning(chosen: usize) -> Tuning {
        let region =
            |name: &str, point: u32| (Region { name: name.into(), point }, Choice::All, format!("main+{point:#x}"));
        let tried = [(Choice::Alone, Choice::Alone, [1000, 3000]), (Choice::Threads(8), Choice::All, [500, 2000])];
        let row = |(at, (one, other, cycles)): (usize, (Choice, Choice, [u64; 2]))| {
            let tried = Tried { choices: vec![Choice::Alone, one, other], cycles: cycles.to_vec() };
            Row::new(tried, &[1000, 3000], at == chosen)
        };
        Tuning {
            core: "--lanes 16".into(),
            draws: 2,
            regions: named(vec![region("body", 4), region("body", 8), region("step", 12)]),
            tried: tried.into_iter().enumerate().map(row).collect(),
        }
    }

    #[test]
    fn a_table_says_what_was_tried_and_what_was_chosen() {
        let text = tuning(1).text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "--lanes 16, 2 draws");
        let words = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(lines[2]), "no region 2000 +0.0 % +0.0 … +0.0 %");
        assert_eq!(words(lines[3]), "body at main+0x8: 8, step: all 1250 +73.2 % +50.0 … +100.0 % chosen");
        assert_eq!(lines.len(), 4);
        assert_eq!(tuning(1).choices()[&Region { name: "body".into(), point: 8 }], Choice::Threads(8));
        assert!(tuning(0).text().ends_with("than the program without regions: none is placed\n"));
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        launch: Launch,
        #[command(flatten)]
        draws: DrawsArgs,
    }

    #[test]
    fn a_result_that_is_wrong_is_an_error() {
        fn wrong(_: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
            Err(KernelError::Wrong { array: "sums", index: 3, want: seed as u32, got: 0 })
        }
        static WRONG: Kernel = Kernel {
            name: "wrong",
            about: "",
            elf: &[],
            debug: &[],
            small_elf: None,
            small_debug: None,
            needs: &[],
            drive: wrong,
            drive_unasked: wrong,
        };
        let elf = find("loop_merge").unwrap().elf;
        let program = Program::parse(elf).unwrap();
        let target = Target {
            name: WRONG.name.into(),
            program,
            elf: elf.into(),
            kernel: Some(&WRONG),
            described: None,
            grid: None,
        };
        let line = "tune --lanes 2 --warps 1 --draws 1 --engine interpreter";
        let Line { launch, draws } = Line::try_parse_from(line.split(' ')).unwrap();
        let error = tune(target, elf, &Options::default(), launch, draws).err().unwrap();
        let text = format!("{error:#}");
        assert!(text.starts_with("wrong with "), "{text}");
        assert!(text.ends_with(": wrong result: sums[3] is 0x0 (0), should be 0x1 (1)"), "{text}");
    }

    #[test]
    fn json_has_a_choice_for_each_region() {
        let json = serde_json::to_value(tuning(1)).unwrap();
        assert_eq!(json["regions"][1], serde_json::json!({"name": "body", "point": 8, "place": "main+0x8"}));
        assert_eq!(json["tried"][1]["choices"], serde_json::json!(["none", "8", "all"]));
        assert_eq!((&json["tried"][1]["chosen"], &json["tried"][0]["speedup"]), (&true.into(), &1.0.into()));
    }
}
