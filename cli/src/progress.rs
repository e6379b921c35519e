//! What a long run shows on standard error, if that is a terminal: cycles, speed, live threads, SIMT efficiency, time
//! left; and where the threads of each warp are.

use crate::interrupt::Interrupt;
use crate::report::si;
use crate::study::table::share;
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::machine::{self, Watch};
use heddle_testbench::paths::{Path, Together};
use indicatif::{HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// A line that appears once a run takes longer than a moment, and vanishes when it is dropped.
pub struct Progress {
    bar: ProgressBar,
    started: Instant,
    launch: u32,
    threads: u32,
    lanes: u32,
    interrupt: Interrupt,
    warps: Option<Warps>,
}

/// A line a warp below that of the run, from the beginning.
struct Warps {
    program: Program,
    lines: Vec<ProgressBar>,
    /// Holds the lines.
    _all: MultiProgress,
}

/// A bar of steps, with what is under way and the time so far.
pub fn steps(count: u64) -> ProgressBar {
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} {msg} ({elapsed})");
    ProgressBar::new(count).with_style(style.expect("the template is well-formed"))
}

const MOMENT: Duration = Duration::from_secs(1);

impl Progress {
    /// A bar towards `limit`, the cycles after which a launch is given up, or a spinner.
    pub fn new(shape: &Shape, limit: Option<u64>, interrupt: &Interrupt) -> Progress {
        let bar = ProgressBar::with_draw_target(limit, ProgressDrawTarget::hidden()).with_style(style(limit.is_some()));
        let (threads, lanes, interrupt) = (shape.threads(), shape.lanes, interrupt.clone());
        Progress { bar, started: Instant::now(), launch: 1, threads, lanes, interrupt, warps: None }
    }

    /// The same with a line a warp.
    pub fn by_warp(mut self, shape: &Shape, program: &Program) -> Progress {
        let all = MultiProgress::new();
        self.bar = all.add(self.bar.clone());
        let style = ProgressStyle::with_template("{msg}").expect("the template is well-formed");
        let line = |_| all.add(ProgressBar::new_spinner().with_style(style.clone()));
        let lines = (0..shape.warps).map(line).collect();
        self.warps = Some(Warps { program: program.clone(), lines, _all: all });
        self
    }
}

/// Paths beyond these have no character of their own.
const PATHS: &[u8] = b"123456789abcdefghijklmnopqrstuvwxyz";
/// Places that a line names at most.
const NAMED: usize = 3;

fn place(program: &Program, pc: u32) -> String {
    format!("{pc:#x}{}", program.named(pc))
}

/// A character a lane, lane 0 first: the number of its path, `.` if its thread has ended; then where the first paths are.
fn line(warp: usize, lanes: u32, paths: &[Path], program: &Program) -> String {
    let mut cells = vec![b'.'; lanes as usize];
    for (number, path) in paths.iter().enumerate() {
        let cell = PATHS.get(number).copied().unwrap_or(b'+');
        path.mask.iter_ones().for_each(|lane| cells[lane] = cell);
    }
    let waits = |path: &Path| if path.waits { " at a barrier" } else { "" };
    let places = paths.iter().take(NAMED).map(|path| format!("{}{}", place(program, path.pc), waits(path)));
    let mut places = places.collect::<Vec<_>>().join(", ");
    if paths.len() > NAMED {
        let _ = write!(places, ", and {} more", paths.len() - NAMED);
    }
    format!("{warp:>4}  {}  {places}", String::from_utf8_lossy(&cells))
}

/// Static warps of a block beyond these have no character of their own.
const WARPS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// Lines of the slots of a block whose first slot is `first`: a character a lane, lane 0 first, of which of the block's
/// static warps the thread is that runs there, `.` if none does; on the first line, where most of those wait that do not.
fn lines_of_block(first: u32, lanes: u32, block: &Together, program: &Program) -> Vec<String> {
    let mut waiting: BTreeMap<(u32, bool), u32> = BTreeMap::new();
    block.parked.iter().for_each(|one| *waiting.entry((one.pc, one.waits)).or_default() += 1);
    let mut places: Vec<_> = waiting.into_iter().collect();
    places.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named = places.iter().take(NAMED).map(|((pc, at_barrier), count)| {
        format!("{count} at {}{}", place(program, *pc), if *at_barrier { " at a barrier" } else { "" })
    });
    let mut waits = named.collect::<Vec<_>>().join(", ");
    if places.len() > NAMED {
        let _ = write!(waits, ", and {} more places", places.len() - NAMED);
    }
    let line = |(slot, threads): (u32, &Vec<Option<u32>>)| {
        let of = |thread: u32| *WARPS.get((thread / lanes - first) as usize).unwrap_or(&b'+');
        let cell = |lane: u32| threads.get(lane as usize).copied().flatten().map_or('.', |thread| of(thread).into());
        let cells: String = (0..lanes).map(cell).collect();
        let waits = if slot == first && !waits.is_empty() { format!("waiting: {waits}") } else { String::new() };
        format!("{slot:>4}  {cells}  {waits}")
    };
    (first..).zip(&block.slots).map(line).collect()
}

fn style(limited: bool) -> ProgressStyle {
    let template = match limited {
        true => "{wide_bar} {cycles}/{limit} cycles, {speed}/s, {msg}, at most {left} left",
        false => "{spinner} {cycles} cycles, {speed}/s, {msg}, {elapsed}",
    };
    let style = ProgressStyle::with_template(template).expect("the template is well-formed");
    style
        .with_key("cycles", |state: &ProgressState, w: &mut dyn Write| put(w, si(state.pos() as f64)))
        .with_key("limit", |state: &ProgressState, w: &mut dyn Write| put(w, si(state.len().unwrap_or(0) as f64)))
        .with_key("speed", |state: &ProgressState, w: &mut dyn Write| put(w, si(state.per_sec())))
        .with_key("left", |state: &ProgressState, w: &mut dyn Write| {
            put(w, format!("{:#}", HumanDuration(state.eta())))
        })
}

/// Writes to a line in memory, which cannot fail.
fn put(line: &mut dyn Write, text: String) {
    let _ = line.write_str(&text);
}

impl Watch for Progress {
    fn progress(&mut self, progress: machine::Progress) -> ControlFlow<()> {
        let machine::Progress { launch, cycles, live_threads, warp_instructions, thread_instructions } = progress;
        if launch != self.launch {
            self.launch = launch;
            self.bar.reset_eta();
        }
        if self.bar.is_hidden() && self.started.elapsed() >= MOMENT {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        let launch = if launch == 1 { String::new() } else { format!(" in launch {launch}") };
        let of_lanes = thread_instructions as f64 / (warp_instructions.max(1) * u64::from(self.lanes)) as f64;
        let live = format!("{live_threads}/{} threads live{launch}", self.threads);
        self.bar.set_message(format!("{live}, SIMT efficiency {}", share(of_lanes)));
        self.bar.set_position(cycles);
        self.interrupt.poll()
    }

    fn wants_paths(&self) -> bool {
        self.warps.is_some()
    }

    fn paths(&mut self, warps: Vec<Vec<Path>>) {
        let Some(Warps { program, lines, .. }) = &self.warps else { return };
        for (number, (bar, paths)) in lines.iter().zip(&warps).enumerate() {
            bar.set_message(line(number, self.lanes, paths, program));
        }
    }

    fn together(&mut self, blocks: Vec<Together>) {
        let Some(Warps { program, lines, .. }) = &self.warps else { return };
        let mut bars = lines.iter();
        for block in &blocks {
            let first = lines.len() - bars.len();
            let lines = lines_of_block(first as u32, self.lanes, block, program);
            lines.into_iter().zip(&mut bars).for_each(|(line, bar)| bar.set_message(line));
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.warps.iter().flat_map(|warps| &warps.lines).for_each(ProgressBar::finish_and_clear);
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bitvec::prelude::*;
    use heddle_testbench::kernels::find;
    use heddle_testbench::paths::Parked;

    #[test]
    fn a_line_says_which_lanes_are_together_and_where() {
        let program = Program::parse(find("gcd").unwrap().elf).unwrap();
        let path =
            |mask: &BitSlice<u64>, pc, waits| Path { place: String::new(), depth: 0, pc, mask: mask.into(), waits };
        let entry = program.entry();
        let paths =
            [path(bits![u64, Lsb0; 0, 1, 1, 0], entry, false), path(bits![u64, Lsb0; 1, 0, 0, 0], entry + 4, true)];
        let text = line(7, 4, &paths, &program);
        let place = place(&program, entry);
        assert!(text.starts_with(&format!("   7  211.  {place}, ")) && text.ends_with(" at a barrier"), "{text}");
        assert_eq!(line(0, 4, &[], &program).trim_end(), "   0  ....");
        let many = vec![paths[0].clone(); 5];
        assert!(line(0, 4, &many, &program).ends_with(", and 2 more"));
    }

    #[test]
    fn lines_of_a_block_say_whose_threads_run_and_where_others_wait() {
        let program = Program::parse(find("gcd").unwrap().elf).unwrap();
        let pc = program.entry();
        // The slots 4 to 7 of a core with 4 lanes, of which the second and the last have no warp.
        let slots = vec![vec![Some(16), Some(25), None, Some(19)], vec![], vec![None, Some(17), None, None], vec![]];
        let parked = |thread, pc, waits| Parked { thread, waits, pc };
        let parked = vec![parked(18, pc + 4, false), parked(20, pc, true), parked(21, pc, true)];
        let text = lines_of_block(4, 4, &Together { slots, parked }, &program);
        let (two, one) = (place(&program, pc), place(&program, pc + 4));
        assert_eq!(text[0], format!("   4  02.0  waiting: 2 at {two} at a barrier, 1 at {one}"));
        assert_eq!(text[1..], ["   5  ....  ", "   6  .0..  ", "   7  ....  "]);
    }
}
