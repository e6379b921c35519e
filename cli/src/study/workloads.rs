//! What kernels give a core to do: how full the warps are that threads start in, how many of them the core has at a time,
//! how well the lanes of issued instructions are used, and what keeps more from being under way in memory.

use super::table::share;
use heddle_testbench::machine::Summary;
use serde::Serialize;

/// A kernel whose SIMT efficiency on a stack per warp is less is divergent. (`thread-block-compaction.txt` §2.2.2)
pub const DIVERGENT_ON_STACK: f64 = 0.76;

/// The launches of a kernel on a core.
#[derive(Clone, Copy, Serialize, Default, Debug)]
pub struct Workload {
    pub launches: u32,
    /// Of all launches.
    pub blocks: u64,
    pub threads: u64,
    /// Threads, of the lanes of their warps: what is missing is empty from the start.
    pub full_lanes: f64,
    /// The most warps on the core at a time.
    pub resident_warps: u32,
    /// Blocks of a launch over those on the core at a time, rounded up: the most of any launch.
    pub waves: u32,
    /// Cycles, of all, in which an access waited for an entry of the load queue (`--loads`).
    pub waits_for_loads: f64,
    /// Those in which a request waited as the cache had as many misses under way as it can have.
    pub waits_for_misses: f64,
}

impl Workload {
    /// What a core of so many lanes did.
    pub fn new(s: &Summary, lanes: u32) -> Workload {
        let &Summary { launches, blocks, threads, launched_warps, resident_warps, waves, .. } = s;
        let full_lanes = threads as f64 / (launched_warps.max(1) * u64::from(lanes)) as f64;
        let of_cycles = |cycles: u64| cycles as f64 / s.cycles.max(1) as f64;
        let [waits_for_loads, waits_for_misses] = [s.memory_limits.loads, s.memory_limits.misses].map(of_cycles);
        Workload { launches, blocks, threads, full_lanes, resident_warps, waves, waits_for_loads, waits_for_misses }
    }
}

/// A kernel of a paper's structure.
pub struct Line {
    pub kernel: &'static str,
    pub paper: &'static str,
    /// As the paper has it.
    pub set: &'static str,
    pub workload: Workload,
    /// SIMT efficiency on a stack per warp; and the paper's.
    pub efficiency: f64,
    pub published: Option<f64>,
}

/// The set that a SIMT efficiency on a stack per warp makes of a kernel.
pub fn measured_set(efficiency: f64) -> &'static str {
    if efficiency < DIVERGENT_ON_STACK { "divergent" } else { "coherent" }
}

/// A line a kernel on a core of so many warps, the first of them headings.
pub fn table(warps: u32, lines: &[Line]) -> Vec<Vec<String>> {
    let heads =
        ["kernel", "paper's", "set", "launches", "blocks", "threads of a block", "full lanes", "resident warps"];
    let heads = heads.into_iter().chain(["waves", "waits for `--loads`", "for misses"]);
    let heads = heads.chain(["SIMT efficiency", "paper", "set by it"]);
    let line = |line: &Line| {
        let Workload {
            launches,
            blocks,
            threads,
            full_lanes,
            resident_warps,
            waves,
            waits_for_loads,
            waits_for_misses,
        } = line.workload;
        let numbers = [launches.to_string(), blocks.to_string(), format!("{:.0}", threads as f64 / blocks as f64)];
        let of_core = [share(full_lanes), format!("{resident_warps} of {warps}"), waves.to_string()];
        let of_memory = [waits_for_loads, waits_for_misses].map(share);
        let published = line.published.map_or("-".into(), |part| format!("{:.0} %", 100.0 * part));
        let used = [share(line.efficiency), published, measured_set(line.efficiency).into()];
        let names = [line.kernel, line.paper, line.set].map(String::from);
        names.into_iter().chain(numbers).chain(of_core).chain(of_memory).chain(used).collect()
    };
    std::iter::once(heads.map(String::from).collect()).chain(lines.iter().map(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_simt::Shape;
    use heddle_testbench::grid::Grid;
    use heddle_testbench::machine::MemoryLimits;

    #[test]
    fn a_line_says_how_much_of_the_core_a_kernel_fills() {
        let shape = Shape::new(32, 16);
        let cells = |grids: &[Grid], efficiency| {
            let memory_limits = MemoryLimits { loads: 50, misses: 120, second_level: 0 };
            let mut summary = Summary { cycles: 1000, memory_limits, ..Summary::default() };
            grids.iter().for_each(|&grid| summary.add_grid(&shape, grid));
            let workload = Workload::new(&summary, shape.lanes);
            let line = Line { kernel: "k", paper: "K", set: "coherent", workload, efficiency, published: Some(0.23) };
            table(shape.warps, &[line])[1][3..].join(" ")
        };
        let grid = |blocks, threads| Grid { blocks, threads };
        assert_eq!(cells(&[grid(1, 256)], 0.76), "1 1 256 100.0 % 8 of 16 1 5.0 % 12.0 % 76.0 % 23 % coherent");
        // Half the lanes of each warp; 12 of 16 warps.
        assert_eq!(cells(&[grid(12, 16)], 0.75), "1 12 16 50.0 % 12 of 16 1 5.0 % 12.0 % 75.0 % 23 % divergent");
        // Blocks of 3 warps take the room of 4; 9 of them come in 3 waves, after a launch of one warp.
        let two = [grid(1, 32), grid(9, 96)];
        assert_eq!(cells(&two, 0.5), "2 10 90 100.0 % 12 of 16 3 5.0 % 12.0 % 50.0 % 23 % divergent");
    }
}
