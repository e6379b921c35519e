//! `studies/area.md`.

mod figures;

use super::cores::{
    COMPARED, MECHANISMS, Mechanism, PRICED, SIZES, UNITS, board, boards, compared, priced, simty, with,
};
use super::results::{Module, Outcome, Results, Total, total};
use super::{Nows, Of, Part, goals};
use crate::study::table::markdown;
use anyhow::Result;
pub use figures::{Figures, row, table};
use figures::{more, number, others};
use heddle_check::synth::tools::YOSYS;
use heddle_check::synth::{Board, Cells};
use std::collections::BTreeSet;
use std::fmt::Write as _;

pub struct Page<'a> {
    pub results: &'a Results,
    pub now: &'a Nows,
    pub parts: &'a [Part],
}

/// What Simty's paper has, read off its plots, ± 250 LE: threads of a warp, logic elements, MHz. Path tables, 8 warps,
/// RV32I without multiplier, Cyclone IV. (`path-lists-simty.txt`, Figure 4)
pub const SIMTY: [(u32, u32, u32); 5] =
    [(4, 7400, 60), (8, 11500, 57), (16, 19400, 55), (32, 36500, 48), (64, 67000, 28)];
/// What it says of 64 threads on the arbiter, which could not be routed.
pub const SIMTY_ARBITER: u32 = 91000;
/// Logic elements of the control of its cold context table, at 2 and 64 threads.
const SIMTY_CCT: [(u32, u32); 2] = [(2, 316), (64, 633)];

/// The modules of a core, and whether they are of an older one.
type Known<'a> = (&'a [Module], bool);

impl Page<'_> {
    pub fn text(&self) -> Result<String> {
        let mut text = self.head();
        for part in self.parts {
            text += "\n";
            text += &match part {
                Part::Goals => goals::section(|core| self.figures(board(), core)),
                Part::Lanes => self.lanes(),
                Part::Mechanisms => self.mechanisms()?,
                Part::Units => self.units(),
                Part::Options => self.options(),
                Part::Boards => self.boards(),
            };
        }
        Ok(text)
    }

    fn figures(&self, board: &'static Board, core: &str) -> Figures<'_> {
        Figures::of(self.results, self.now, board, core)
    }

    fn head(&self) -> String {
        let Board { name, device, family, .. } = board();
        format!(
            "# Area and clock

What the core takes of an FPGA and how fast it is there: by lanes, by mechanism for divergence, by option, by board. Written by
`heddle study area --docs docs` from `area.json`, which has a line for each measurement; a later call goes on with what is missing.

LUTs, cells and the harness are as [synthesis](../reference/synthesis.md#what-is-built-and-counted) says: a carry cell counts as two LUTs, a distributed RAM as six; behind the plus is block RAM of
main and instruction memory. Of a board `{name}` (`{device}`), unless another is named; {yosys}, {nextpnr}. The clock is the median of three runs of
place and route, one above 16 lanes, with their range behind it. A clock without a range is that of a single run: another may differ by as much as the ranges show.

A row that says *of an older core* is one whose core, by the [hash of its hardware](../reference/verilog.md#the-same-machine), or tools have changed since.
It is compared with no other row, and no chart has it.
",
            yosys = YOSYS.title(),
            nextpnr = family.nextpnr.title(),
        )
    }

    fn lanes(&self) -> String {
        let mut lines = vec![row([
            "lanes",
            "unit",
            "LUTs",
            "in `core`",
            "flip-flops",
            "distributed RAM",
            "block RAM",
            "clock",
            "Simty: LE",
            "clock",
            "",
        ])];
        for lanes in SIZES {
            for unit in UNITS {
                let found = self.figures(board(), &simty(lanes, unit));
                let [ff, ram, bram, _] = others(found.flat);
                let theirs = SIMTY.iter().find(|(threads, ..)| *threads == lanes);
                let (le, mhz) = match (unit, lanes, theirs) {
                    ("arbiter", 64, _) => (format!("≈ {SIMTY_ARBITER}"), "not routed".to_string()),
                    ("path-table", _, Some((_, le, mhz))) => (format!("≈ {le}"), format!("{mhz} MHz")),
                    _ => Default::default(),
                };
                lines.push(vec![
                    lanes.to_string(),
                    format!("`{unit}`"),
                    number(found.flat.map(|flat| flat.cells.luts)),
                    number(found.flat.map(|flat| flat.core_luts)),
                    ff,
                    ram,
                    bram,
                    found.clock(board()),
                    le,
                    mhz,
                    found.note(true),
                ]);
            }
        }
        format!(
            "## Lanes

8 warps, path tables against the [arbiter](../reference/arbiter.md), without multiplication, barriers, atomics and scratchpad: as little as Simty has. `heddle synth {} --seeds 3`, and with other lanes.
Simty's figures are read off Figure 4 of *Path lists* (Collange and Brunie), ± 250: logic elements of a Cyclone IV, each a table of four inputs and a flip-flop, with 50 MHz as
what place and route aims at. They are its core's after place and route; LUTs `in core`, which stand beside them, are counted after synthesis.
Of its arbiter the text has one figure.

{}

![LUTs by lanes](area.svg)

![clock by lanes](area-clock.svg)

{}",
            simty(8, UNITS[0]),
            self.arbiter(),
            table(&lines, "lanes")
        )
    }

    /// What the paper says of the arbiter, and what was found, of cores as they are.
    fn arbiter(&self) -> String {
        let found = |lanes, unit| Some(self.figures(board(), &simty(lanes, unit))).filter(|found| !found.is_older());
        let both = |lanes: &u32| found(*lanes, UNITS[0]).zip(found(*lanes, UNITS[1]));
        let over = |value: &dyn Fn(&Figures) -> Option<f64>| {
            let of = |lanes: &u32| {
                let (tables, arbiter) = both(lanes)?;
                Some(format!("{:+.0} % with {lanes}", 100.0 * (value(&arbiter)? / value(&tables)? - 1.0)))
            };
            let all: Vec<String> = SIZES.iter().filter_map(of).collect();
            if all.is_empty() { "not known of both as they are".to_string() } else { all.join(", ") }
        };
        format!(
            "The paper has the arbiter's overhead significant from 8 threads a warp on, in logic above all, and its clock below the 50 MHz (§3.3).\n\
             Over path tables with as many lanes, the arbiter here has LUTs `in core`: {}; and clock: {}.",
            over(&|found| found.flat.map(|flat| f64::from(flat.core_luts))),
            over(&|found| found.mhz())
        )
    }

    fn mechanisms(&self) -> Result<String> {
        let mut text = "## Mechanisms\n\nEvery [mechanism for divergence](../../README.md#the-core), with what it offers. Each needs something of the rest of the core: \
                        stacks a [replay that serialises](../reference/memory.md), so path tables have a row with it.\n"
            .to_string();
        for size @ (lanes, warps) in COMPARED {
            let shape = compared(size);
            let _ = write!(text, "\n### {lanes} lanes, {warps} warps\n\n`heddle synth {shape} OPTIONS --seeds 3`:\n\n");
            text += &self.priced(&shape, &mut MECHANISMS.into_iter().map(|(_, options)| options), true, "mechanisms");
            let _ = write!(
                text,
                "\nModule by module, LUTs of each with all that is in it, `heddle synth --modules {shape} OPTIONS`: the hierarchy is kept, so the sum is not that of the flat core.\n\n"
            );
            text += &self.by_module(&shape);
        }
        Ok(text)
    }

    /// A row an option; the first is what the others are compared with.
    fn priced(&self, shape: &str, options: &mut dyn Iterator<Item = &str>, clock: bool, part: &str) -> String {
        let mut lines = vec![row([
            "options",
            "LUTs",
            "in `core`",
            "flip-flops",
            "distributed RAM",
            "block RAM",
            "multipliers",
            "clock",
            "critical path",
            "",
        ])];
        let (mut luts, mut mhz) = (None, None);
        for options in options {
            let found = self.figures(board(), &with(shape, options));
            let own = found.flat.map(|flat| flat.cells.luts);
            let [ff, ram, bram, dsp] = others(found.flat);
            // A core as it is and one as it was differ in more than an option.
            let comparable = !found.is_older();
            if lines.len() == 1 && comparable {
                (luts, mhz) = (own, found.mhz());
            }
            let slower = match (found.mhz().filter(|_| comparable), mhz) {
                (Some(own), Some(than)) if own != than => format!(", {:+.0} %", 100.0 * (own / than - 1.0)),
                _ => String::new(),
            };
            lines.push(vec![
                if options.is_empty() { "none".into() } else { format!("`{options}`") },
                own.map_or_else(String::new, |own| format!("{own}{}", more(own, luts.filter(|_| comparable)))),
                number(found.flat.map(|flat| flat.core_luts)),
                ff,
                ram,
                bram,
                dsp,
                found.clock(board()) + &slower,
                found.path(),
                found.note(clock),
            ]);
        }
        table(&lines, part)
    }

    /// The modules of a core on the board.
    fn modules(&self, core: &str) -> Option<Known<'_>> {
        let key = super::Key { board: board().name.into(), core: core.into(), of: Of::Modules };
        let found = self.results.find(&key)?;
        match &found.outcome {
            Outcome::Modules(modules) => {
                Some((modules, found.hash != self.now[&(board().name, core.to_string())].hash(Of::Modules)))
            }
            _ => None,
        }
    }

    /// A column a mechanism, a row a module that is in `core` itself.
    fn by_module(&self, shape: &str) -> String {
        let columns: Vec<(Mechanism, Option<Known>)> =
            MECHANISMS.into_iter().map(|m| (m, self.modules(&with(shape, m.1)))).collect();
        let core = |modules: &[Module]| modules.iter().find(|m| m.row.module == "core").cloned();
        let names: BTreeSet<String> = columns
            .iter()
            .filter_map(|(_, modules)| core(modules.as_ref()?.0))
            .flat_map(|core| core.within.into_keys())
            .filter(|name| !is_unit(name))
            .collect();
        let mut lines = vec![
            [vec!["module".to_string()], columns.iter().map(|((name, _), _)| name.to_string()).collect()].concat(),
        ];
        let mut line = |name: String, luts: &dyn Fn(&[Module], &Module) -> Option<u32>| {
            let cell = |modules: &Option<Known>| {
                let modules = modules.as_ref()?.0;
                luts(modules, &core(modules)?)
            };
            lines.push([vec![name], columns.iter().map(|(_, modules)| number(cell(modules))).collect()].concat());
        };
        let in_core = |modules: &[Module], core: &Module, name: &str| {
            let copies = *core.within.get(name)?;
            Some(copies * total(modules, name)?.cells.luts)
        };
        line("divergence unit".into(), &|modules, core| {
            let unit = core.within.keys().find(|name| is_unit(name))?;
            in_core(modules, core, unit)
        });
        for name in &names {
            line(format!("`{name}`"), &|modules, core| in_core(modules, core, name));
        }
        line("`core` itself".into(), &|_, core| Some(core.row.cells.luts));
        line("**all**".into(), &|modules, _| Some(total(modules, "core")?.cells.luts));
        let note = |((name, _), modules): &(Mechanism, Option<Known>)| match modules {
            None => Some(format!("{name}: not measured")),
            Some((_, true)) => Some(format!("{name}: of an older core")),
            Some(_) => None,
        };
        let notes: Vec<String> = columns.iter().filter_map(note).collect();
        let mut text = markdown(&lines);
        if !notes.is_empty() {
            let _ =
                writeln!(text, "\n{}. `heddle study area --part mechanisms --docs docs` finds them.", notes.join("; "));
        }
        text
    }

    fn units(&self) -> String {
        let mut lines = vec![row([
            "unit",
            "core",
            "LUTs",
            "of them RAM",
            "flip-flops",
            "block RAM",
            "bits of registers",
            "bits of memories",
            "the paper",
            "",
        ])];
        let mut line = |name: &str, of: &str, core: &str, paper: &str| {
            let modules = self.modules(core);
            let found: Option<Total> = modules.and_then(|(modules, _)| total(modules, name));
            let note = match (modules, found) {
                (None, _) => "not measured",
                (Some((_, true)), _) => "of an older core",
                (_, None) => "the core has none",
                _ => "",
            };
            let cell = |of: &dyn Fn(&Total) -> u64| found.as_ref().map_or_else(String::new, |t| of(t).to_string());
            lines.push(vec![
                format!("`{name}`"),
                of.to_string(),
                cell(&|t| t.cells.luts.into()),
                cell(&|t| (6 * t.cells.distributed_ram).into()),
                cell(&|t| t.cells.ff.into()),
                cell(&|t| t.cells.bram.into()),
                cell(&|t| t.registers),
                cell(&|t| t.memories),
                paper.to_string(),
                note.to_string(),
            ]);
        };
        for lanes in SIZES {
            let paper = SIMTY_CCT.iter().find(|(threads, _)| *threads == lanes);
            let paper = paper.map_or_else(String::new, |(_, le)| format!("{le} LE for its control"));
            line("cct", &format!("{lanes} lanes"), &simty(lanes, "path-table"), &paper);
        }
        for (unit, module) in [("path-table", "path_table"), ("arbiter", "arbiter")] {
            for lanes in SIZES {
                line(module, &format!("{lanes} lanes"), &simty(lanes, unit), "");
            }
        }
        let of = |options: &str| with(PRICED[0], options);
        let [serialised, stack, dual, capri] = [1, 5, 7, 11].map(|k| of(MECHANISMS[k].1));
        for (name, at, core, paper) in [
            ("stack", "stack", &stack, "an entry of 96 bits"),
            ("dual_path", "dual path", &dual, "an entry of 160 bits, fewer of them: \"negligible overhead\""),
            ("scoreboard", "path tables, serialised", &serialised, ""),
            ("scoreboard", "stack", &stack, ""),
            ("dual_scoreboard", "dual path", &dual, "\"roughly doubles\""),
            ("issue", "stack", &stack, ""),
            ("issue", "dual path", &dual, "the scheduler \"roughly doubles\""),
            ("block_stack", "CAPRI", &capri, ""),
            ("compactor", "CAPRI", &capri, "priority encoders: \"negligible\""),
            ("capt", "CAPRI", &capri, "8 entries of 34 bits: 272 bits"),
        ] {
            line(name, at, core, paper);
        }
        format!(
            "## Units

Units alone, as their papers quote them: each with all modules in it, `heddle synth --modules` of the cores of [lanes](#lanes), and with 8 lanes and 8 warps of [options](#options). Logic is LUTs
without those of RAM. The papers: *Path lists* for `cct`, *Dual-path execution* (Rhu and Erez) for stacks and scoreboards, *Thread block compaction* (Fung and Aamodt) for
the compactor, *CAPRI* (Rhu and Erez) for the prediction table.

{}",
            table(&lines, "units")
        )
    }

    fn options(&self) -> String {
        let [cells, clock] = PRICED;
        format!(
            "## Options

A difference of a few hundred LUTs between two rows may be how Yosys mapped them. `heddle synth {cells} OPTIONS --seeds 0`:

{}
`heddle synth {clock} OPTIONS --seeds 3`:

{}",
            self.priced(cells, &mut priced(), false, "options"),
            self.priced(clock, &mut priced(), true, "options"),
        )
    }

    fn boards(&self) -> String {
        let mut lines = vec![row([
            "board",
            "core",
            "LUTs",
            "in `core`",
            "flip-flops",
            "distributed RAM",
            "block RAM",
            "multipliers",
            "clock",
            "",
        ])];
        for (board, core) in boards() {
            let found = self.figures(board, &core);
            let [ff, ram, bram, dsp] = others(found.flat);
            let over = found.flat.and_then(|flat| flat.over(board)).map(|over| format!("does not fit: {over}"));
            lines.push(vec![
                format!("`{}`", board.name),
                format!("`{core}`"),
                number(found.flat.map(|flat| flat.cells.luts)),
                number(found.flat.map(|flat| flat.core_luts)),
                ff,
                ram,
                bram,
                dsp,
                found.clock(board),
                match over {
                    Some(over) if found.is_older() => format!("of an older core; {over}"),
                    Some(over) => over,
                    None => found.note(true),
                },
            ]);
        }
        let usual = self.modules(PRICED[0]).map_or_else(String::new, |(modules, older)| {
            let title = if older { ", of an older core" } else { "" };
            format!(
                "\n## Modules\n\nCells of each module of the core, without those in it, `heddle synth --modules {}`{title}:\n\n{}",
                PRICED[0],
                every_module(modules)
            )
        });
        format!(
            "## Boards

The core of each [board](../reference/synthesis.md#boards), `heddle synth --board NAME OPTIONS --seeds 3`; a clock with `<` is a bound and no more, since nextpnr leaves paths out there:

{}{usual}",
            table(&lines, "boards")
        )
    }
}

/// Whether the module is a divergence unit.
fn is_unit(name: &str) -> bool {
    heddle_simt::Divergence::ALL.iter().any(|unit| unit.name().replace('-', "_") == name)
}

fn every_module(modules: &[Module]) -> String {
    let mut lines = vec![row([
        "module",
        "copies",
        "LUTs",
        "LUT4",
        "carry",
        "flip-flops",
        "distributed RAM",
        "block RAM",
        "multipliers",
    ])];
    for Module { row, .. } in modules {
        let Cells { luts, lut4, carry, ff, distributed_ram, bram, dsp } = row.cells;
        let numbers = [row.copies, luts, lut4, carry, ff, distributed_ram, bram, dsp].map(|n| n.to_string());
        lines.push([vec![format!("`{}`", row.module)], numbers.to_vec()].concat());
    }
    markdown(&lines)
}

#[cfg(test)]
mod tests {
    use super::super::results::tests::module;
    use super::super::tests::{flat, nows, timing};
    use super::super::{Key, Part};
    use super::*;

    fn page(results: &Results, part: Part) -> String {
        Page { results, now: &nows(), parts: &[part] }.text().unwrap()
    }

    fn key(core: &str, of: Of) -> Key {
        Key { board: board().name.into(), core: core.into(), of }
    }

    /// The cells of the rows that begin so.
    fn rows<'a>(text: &'a str, begin: &str) -> Vec<Vec<&'a str>> {
        let lines = text.lines().filter(|line| line.starts_with(begin));
        lines.map(|line| line.trim_matches('|').split('|').map(str::trim).collect()).collect()
    }

    #[test]
    fn a_row_has_median_and_range_and_says_what_is_missing() {
        let mut results = Results::default();
        let core = simty(8, "path-table");
        results.set(&key(&core, Of::Cells), "now", flat(9000));
        for (seed, mhz) in (1..).zip([50.0, 40.0, 45.0]) {
            results.set(&key(&core, Of::Seed(seed)), "now", timing(mhz));
        }
        results.set(&key(&simty(8, "arbiter"), Of::Cells), "before", flat(9500));
        let text = page(&results, Part::Lanes);
        let found = rows(&text, "| 8 |");
        assert_eq!(found[0][2..6], ["9000", "8900", "10", "0"]);
        assert_eq!(found[0][6..], ["0+80", "45.0 MHz (40.0 … 50.0)", "≈ 11500", "57 MHz", ""]);
        assert_eq!((found[1][2], found[1].last()), ("9500", Some(&"of an older core; clock not measured")));
        assert!(
            text.contains("LUTs `in core`: not known of both as they are; and clock: not known of both as they are."),
            "{text}"
        );
        results.set(&key(&simty(8, "arbiter"), Of::Cells), "now", flat(9890));
        assert!(
            page(&results, Part::Lanes)
                .contains("LUTs `in core`: +10 % with 8; and clock: not known of both as they are.")
        );
        assert_eq!(rows(&text, "| 64 |")[1][8..], ["≈ 91000", "not routed", "not measured"]);
        assert!(text.contains("`heddle study area --part lanes --docs docs` finds"));
    }

    #[test]
    fn figures_of_two_cores_are_not_mixed() {
        let mut results = Results::default();
        let core = simty(2, "arbiter");
        results.set(&key(&core, Of::Cells), "before", flat(3000));
        results.set(&key(&core, Of::Seed(1)), "before", timing(70.0));
        results.set(&key(&core, Of::Seed(2)), "now", timing(80.0));
        let row = |results: &Results| rows(&page(results, Part::Lanes), "| 2 |")[1].join("|");
        assert_eq!(row(&results), "2|`arbiter`||||||80.0 MHz|||not measured");
        results.set(&key(&core, Of::Seed(2)), "long before", timing(80.0));
        assert_eq!(row(&results), "2|`arbiter`|3000|2900|10|0|0+80|70.0 MHz|||of an older core");
    }

    #[test]
    fn options_are_compared_with_none() {
        let mut results = Results::default();
        let of = |options: &str| with(PRICED[1], options);
        for (options, luts, mhz) in [("", 10000, 50.0), ("--divergence arbiter", 11000, 45.0)] {
            results.set(&key(&of(options), Of::Cells), "now", flat(luts));
            results.set(&key(&of(options), Of::Seed(1)), "now", timing(mhz));
        }
        results.set(&key(&of("--divergence stack"), Of::Cells), "now", Outcome::Failed("no".into()));
        let text = page(&results, Part::Options);
        let small = text.split(PRICED[1]).nth(1).unwrap();
        assert_eq!(rows(small, "| none |")[0][1..3], ["10000", "9900"]);
        let arbiter = &rows(small, "| `--divergence arbiter` |")[0];
        assert_eq!((arbiter[1], arbiter[7]), ("11000 (+10 %)", "45.0 MHz, -10 %"));
        assert_eq!(arbiter[8], "`core.issue` → `core.fetch`");
        assert_eq!(rows(small, "| `--divergence stack` |")[0].last(), Some(&"failed: no"));
    }

    #[test]
    fn modules_are_told_with_all_that_is_in_them() {
        let mut results = Results::default();
        let core = |unit: &str| {
            vec![
                module("core", 7, &[(unit, 1), ("alu", 4), ("issue", 1)]),
                module(unit, 100, &[("cct", 1)]),
                module("cct", 20, &[]),
                module("alu", 5, &[]),
                module("issue", 50, &[("scoreboard", 1)]),
                module("scoreboard", 30, &[]),
            ]
        };
        let of = |k: usize| with(PRICED[0], MECHANISMS[k].1);
        results.set(&key(&of(0), Of::Modules), "now", Outcome::Modules(core("path_table")));
        results.set(&key(&of(5), Of::Modules), "before", Outcome::Modules(core("stack")));
        let text = page(&results, Part::Mechanisms);
        assert_eq!(rows(&text, "| divergence unit |")[0][..7], ["divergence unit", "120", "", "", "", "", "120"]);
        assert_eq!(rows(&text, "| `alu` |")[0][1], "20");
        assert_eq!(rows(&text, "| `issue` |")[0][1], "80");
        assert_eq!(rows(&text, "| **all** |")[0][1], "227");
        assert!(text.contains("arbiter: not measured; stack: of an older core;"), "{text}");
        let text = page(&results, Part::Units);
        let boards = &rows(&text, "| `scoreboard` |");
        assert_eq!(boards[1][..3], ["`scoreboard`", "stack", "30"]);
        assert_eq!(boards[1].last(), Some(&"of an older core"));
        assert_eq!(rows(&text, "| `capt` |")[0].last(), Some(&"not measured"));
        assert_eq!(rows(&page(&results, Part::Boards), "| `cct` |")[0][1..4], ["1", "20", "20"]);
    }
}
