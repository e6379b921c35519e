//! `heddle mutate`: do the checks notice mistakes?

mod alone;
mod blocks;
mod page;
mod reasons;
mod report;
mod workload;

use crate::docs::age::Stamp;
use crate::docs::evidence::of_cores;
use crate::docs::tree;
use crate::interrupt::Interrupt;
use crate::output::{print, print_json};
use crate::shape::ShapeArgs;
use alone::differs_alone;
use anyhow::{Result, bail};
use blocks::Blocks;
use clap::Args;
use heddle_hdl::mutate::{Mutant, mutants};
use heddle_hdl::netlist::Module;
use heddle_simt::Shape;
use heddle_testbench::machine::{MachineError, design};
use indicatif::{ProgressBar, ProgressStyle};
pub use page::PAGE;
use report::{Outcome, Report};
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use workload::Bench;

/// How many mutants a run examines unless it is told.
/// Lanes and warps of the cores that run programs, unless one is asked for; mutants are made of the first.
pub const SHAPES: [(u32, u32); 2] = [(4, 2), (8, 4)];
const SAMPLE: u32 = 400;

/// Put mistakes into the core, one at a time, and report which checks notice.
///
/// A mutant is the core with one small change: another operator or constant, a condition inverted or ignored, a
/// register that is never enabled, a slice one bit off. Every mutant meets four layers of checks: the description's
/// assertions while programs run; the unit tests of the block that has the change; the runs themselves, where every
/// instruction is compared with the instruction-set simulator; and lock-step with the unchanged core. What no layer
/// sees is compared with the unchanged block alone, on random inputs.
///
/// Ctrl-C ends it with the report so far; the exit code is then 130.
#[derive(Args)]
#[command(
    after_help = "Examples:
  heddle mutate                              a sample of 400 mutants of all modules
  heddle mutate --module ccs --all           every mutant of one module
  heddle mutate --mutant cct:scan:no_reset   one, by its name
  heddle mutate --list --module ccs          the names
  heddle mutate --docs docs                  a page with the results",
    mut_arg("lanes", |arg| arg.help("Threads of a warp; with neither this nor --warps: 4 × 2 and 8 × 4")),
    mut_arg("warps", |arg| arg.help("Warps of the core")),
    mut_arg("seed", |arg| arg.help("Seed of the sample, of random start values and of kernels' inputs")),
)]
pub struct Mutate {
    /// Only mutants of these modules
    #[arg(long = "module", value_name = "NAME", num_args = 1..)]
    modules: Vec<String>,
    /// Only this mutant
    #[arg(long, value_name = "NAME", conflicts_with_all = ["modules", "sample", "all"])]
    mutant: Vec<String>,
    /// How many mutants, of every module its share [default: 400; of --list, all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    sample: Option<u32>,
    /// All mutants; takes hours
    #[arg(long, conflicts_with = "sample")]
    all: bool,
    /// List the mutants and do no more
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    shape: ShapeArgs,
    /// Mutants at a time
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    jobs: u32,
    /// So many mutants in Verilator too, to see that their Verilog differs as the Rust simulation does
    #[arg(long, default_value_t = 0, value_name = "N")]
    verilog: u32,
    /// The test binary of the blocks, instead of the one that cargo builds
    #[arg(long, value_name = "FILE")]
    tests: Option<PathBuf>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    json: bool,
    /// Write evidence/mutation.md into this folder, too, unless interrupted; it is of all modules
    #[arg(long, value_name = "DIR", conflicts_with_all = ["modules", "mutant"])]
    docs: Option<PathBuf>,
}

impl Mutate {
    pub fn run(self) -> Result<()> {
        let shapes = self.shapes();
        let shape = shapes[0].shape()?;
        let top = design(&shape)?;
        let chosen = self.choose(&top)?;
        if self.list {
            let line = |m: &Mutant| format!("{}  {}\n", m.name, m.signal);
            return print(&chosen.iter().map(line).collect::<String>());
        }
        self.docs.as_deref().map(|docs| tree::check(docs, [PAGE])).transpose()?;
        let interrupt = Interrupt::catch()?;
        let started = Instant::now();
        let progress = progress(chosen.len());
        progress.set_message("the unchanged core");
        let seeds = self.shape.seed..;
        let bench = |(s, seed): (&ShapeArgs, u64)| interrupt.or(Bench::new(&s.shape()?, seed));
        let benches = shapes.iter().zip(seeds).map(bench).collect::<Result<_>>()?;
        let blocks = Blocks::find(self.tests.clone(), shape.divergence, &interrupt)?;

        let hook = take_hook();
        // Mutants make the machine panic now and then.
        set_hook(Box::new(|_| {}));
        let campaign = Campaign { top, benches, blocks, seed: self.shape.seed };
        let outcomes = self.outcomes(&campaign, &chosen, &progress, &interrupt);
        set_hook(hook);
        progress.finish_and_clear();

        let interrupted = interrupt.poll().is_break();
        let verilog = if interrupted { None } else { campaign.verilog(&outcomes, self.verilog as usize)? };
        let report = Report {
            interrupted,
            shapes: campaign.benches.iter().map(|b| format!("{} × {}", b.shape.lanes, b.shape.warps)).collect(),
            workload: campaign.benches[0].names(),
            seed: self.shape.seed,
            mutants: mutants(&campaign.top).len(),
            seconds: started.elapsed().as_secs_f64(),
            verilog,
            outcomes,
        };
        if let (Some(docs), false) = (&self.docs, interrupted) {
            let shapes: Vec<Shape> = campaign.benches.iter().map(|bench| bench.shape.clone()).collect();
            let stamp = Stamp::now(docs, of_cores(&shapes)?, None);
            tree::write(docs, [(PAGE, stamp.on(&page::page(&report)).as_str())])?;
        }
        if self.json {
            print_json(&report.json())?
        } else {
            print(&report.text())?
        }
        if interrupted { Err(MachineError::Interrupted.into()) } else { Ok(()) }
    }

    fn shapes(&self) -> Vec<ShapeArgs> {
        let shape = |lanes, warps| ShapeArgs { lanes: Some(lanes), warps: Some(warps), ..self.shape.clone() };
        match (self.shape.lanes, self.shape.warps) {
            (None, None) => SHAPES.into_iter().map(|(lanes, warps)| shape(lanes, warps)).collect(),
            (lanes, warps) => vec![shape(lanes.unwrap_or(4), warps.unwrap_or(2))],
        }
    }

    /// The mutants asked for, in the order of the design.
    fn choose(&self, top: &Arc<Module>) -> Result<Vec<Mutant>> {
        let mut all = mutants(top);
        for name in &self.modules {
            if all.iter().all(|m| m.module != *name) {
                let known: Vec<String> = top.modules().iter().map(|m| m.name.clone()).collect();
                bail!("there are no mutants of `{name}`; modules are {}", known.join(", "));
            }
        }
        for name in &self.mutant {
            if all.iter().all(|m| m.name != *name) {
                bail!("there is no mutant `{name}`; `heddle mutate --list` has all");
            }
        }
        all.retain(|m| self.modules.is_empty() || self.modules.contains(&m.module));
        all.retain(|m| self.mutant.is_empty() || self.mutant.contains(&m.name));
        if self.all || !self.mutant.is_empty() || (self.list && self.sample.is_none()) {
            return Ok(all);
        }
        Ok(sample(all, self.sample.unwrap_or(SAMPLE) as usize, self.shape.seed))
    }

    /// Several mutants at a time, in random order, so that Ctrl-C leaves a sample too. Those that were begun before it
    /// and not finished are left out.
    fn outcomes(
        &self,
        campaign: &Campaign,
        chosen: &[Mutant],
        progress: &ProgressBar,
        interrupt: &Interrupt,
    ) -> Vec<Outcome> {
        let mut order: Vec<usize> = (0..chosen.len()).collect();
        fastrand::Rng::with_seed(self.shape.seed).shuffle(&mut order);
        let next = AtomicUsize::new(0);
        let outcomes = Mutex::new(Vec::new());
        let work = || {
            while interrupt.poll().is_continue() {
                let Some(&at) = order.get(next.fetch_add(1, Ordering::Relaxed)) else { break };
                let mutant = &chosen[at];
                progress.set_message(mutant.name.clone());
                let outcome = campaign.examine(mutant);
                if interrupt.poll().is_continue() {
                    outcomes.lock().expect("no worker panics while it holds the list").push((at, outcome));
                }
                progress.inc(1);
            }
        };
        std::thread::scope(|scope| (0..self.jobs).for_each(|_| _ = scope.spawn(work)));
        let mut outcomes = outcomes.into_inner().expect("no worker panics while it holds the list");
        outcomes.sort_by_key(|(at, _)| *at);
        outcomes.into_iter().filter_map(|(_, outcome)| outcome).collect()
    }
}

/// `count` mutants in the order of the list: of every module its share of them, rounded up where most is left over, and
/// within a module any.
fn sample(all: Vec<Mutant>, count: usize, seed: u64) -> Vec<Mutant> {
    let total = all.len();
    let mut modules: Vec<(&str, usize)> = Vec::new();
    for mutant in &all {
        match modules.iter_mut().find(|(name, _)| *name == mutant.module) {
            Some((_, size)) => *size += 1,
            None => modules.push((&mutant.module, 1)),
        }
    }
    let sizes: Vec<usize> = modules.iter().map(|(_, size)| *size).collect();
    let mut random = fastrand::Rng::with_seed(seed);
    let mut chosen = HashSet::new();
    for ((name, _), share) in modules.iter().zip(shares(&sizes, count.min(total))) {
        let of_module = all.iter().enumerate().filter(|(_, mutant)| mutant.module == *name).map(|(place, _)| place);
        chosen.extend(random.choose_multiple(of_module, share));
    }
    all.into_iter().enumerate().filter(|(place, _)| chosen.contains(place)).map(|(_, mutant)| mutant).collect()
}

/// Whole parts of `count`, which is at most their sum, in proportion to the sizes: rounded down, then up where the
/// remainder is largest.
fn shares(sizes: &[usize], count: usize) -> Vec<usize> {
    let total = sizes.iter().sum::<usize>().max(1);
    let mut shares: Vec<usize> = sizes.iter().map(|size| size * count / total).collect();
    let mut by_remainder: Vec<usize> = (0..sizes.len()).collect();
    by_remainder.sort_by_key(|&k| std::cmp::Reverse(sizes[k] * count % total));
    let left = count - shares.iter().sum::<usize>();
    by_remainder.into_iter().take(left).for_each(|k| shares[k] += 1);
    shares
}

fn progress(mutants: usize) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} ({elapsed}, {eta} left)");
    ProgressBar::new(mutants as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// What mutants are held against.
struct Campaign {
    top: Arc<Module>,
    benches: Vec<Bench>,
    blocks: Blocks,
    seed: u64,
}

impl Campaign {
    /// What every layer says of a mutant. None if it makes a combinational loop.
    fn examine(&self, mutant: &Mutant) -> Option<Outcome> {
        let mutated = mutant.apply(&self.top).ok()?;
        // The mutant in every shape that has the place.
        let cores: Vec<(&Bench, Arc<Module>)> = self
            .benches
            .iter()
            .filter_map(|b| Some((b, heddle_hdl::mutate::apply(&b.design, &mutant.name).ok()?)))
            .collect();
        let first = |layer: &dyn Fn(&Bench, &Arc<Module>) -> Option<String>| {
            cores.iter().find_map(|(bench, core)| layer(bench, core))
        };
        let mut outcome = Outcome {
            mutant: mutant.clone(),
            // A panic is no assertion of the description.
            assertions: first(&|bench, core| unless_panic(|| bench.assertions(core)).unwrap_or(None)),
            blocks: self.blocks.test(mutant),
            run: first(&|bench, core| unless_panic(|| bench.run(core)).unwrap_or_else(Some)),
            lockstep: first(&|bench, core| unless_panic(|| bench.lockstep(core)).unwrap_or_else(Some)),
            alone: None,
        };
        if !outcome.changes() {
            let differs = || differs_alone(&self.top, &mutated, &mutant.module, self.seed);
            outcome.alone = unless_panic(differs).unwrap_or_else(Some);
        }
        Some(outcome)
    }

    /// The first mutants that differ in lock-step, with their Verilog in Verilator: how many were tried, and how many
    /// differ in the same signal and cycle.
    fn verilog(&self, outcomes: &[Outcome], count: usize) -> Result<Option<(usize, usize)>> {
        let differing: Vec<&Outcome> = outcomes.iter().filter(|o| o.lockstep.is_some()).collect();
        let tried = fastrand::Rng::with_seed(self.seed).choose_multiple(differing, count);
        let mut same = 0;
        for outcome in &tried {
            let bench = &self.benches[0];
            let mutated = outcome.mutant.apply(&self.top)?;
            same += usize::from(bench.verilog(&mutated)? == bench.lockstep(&mutated));
        }
        Ok((count > 0).then_some((tried.len(), same)))
    }
}

/// What a layer says, or the message of the panic that it ended in.
fn unless_panic(layer: impl FnOnce() -> Option<String>) -> Result<Option<String>, String> {
    catch_unwind(AssertUnwindSafe(layer)).map_err(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
        format!("panic: {}", text.and_then(|text| text.lines().next()).unwrap_or("no message"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_in_proportion() {
        assert_eq!(shares(&[10, 20, 70], 10), [1, 2, 7]);
        assert_eq!(shares(&[1, 1, 1], 2), [1, 1, 0]);
        assert_eq!(shares(&[5, 95], 10), [1, 9], "a half is rounded up once");
        assert_eq!(shares(&[3, 5], 8), [3, 5]);
        assert_eq!(shares(&[], 0), [0; 0]);
    }

    #[test]
    fn a_sample_has_its_share_of_every_module() {
        let all = mutants(&design(&heddle_simt::Shape::new(4, 2)).unwrap());
        let names = |seed| sample(all.clone(), 400, seed).into_iter().map(|m| m.name).collect::<Vec<_>>();
        let count = |names: &[String], module: &str| names.iter().filter(|n| n.starts_with(module)).count() as f64;
        let every: Vec<String> = all.iter().map(|m| m.name.clone()).collect();
        let chosen = names(1);
        assert_eq!(chosen.len(), 400);
        assert_eq!(every.iter().filter(|name| chosen.contains(name)).cloned().collect::<Vec<_>>(), chosen, "in order");
        for module in ["ccs:", "decode:", "resolve:", "ram:", "launcher:"] {
            let share = 400.0 * count(&every, module) / every.len() as f64;
            assert!((count(&chosen, module) - share).abs() < 1.0, "{module} {share}");
        }
        assert_eq!(chosen, names(1));
        assert_ne!(chosen, names(2));
        assert_eq!(sample(all.clone(), usize::MAX, 1).len(), all.len());
    }

    #[test]
    fn a_panic_is_told_from_what_a_layer_says() {
        assert_eq!(unless_panic(|| Some("wrong".into())), Ok(Some("wrong".into())));
        let hook = take_hook();
        set_hook(Box::new(|_| {}));
        let panics = [unless_panic(|| panic!("a reason")), unless_panic(|| panic!("{} reasons\nof many", 2))];
        set_hook(hook);
        assert_eq!(panics, [Err("panic: a reason".into()), Err("panic: 2 reasons".into())]);
    }
}
