//! The page on mutants.

use super::reasons::reason;
use super::report::{Counts, Outcome, Report};
use std::fmt::Write as _;

pub const PAGE: &str = "evidence/mutation.md";

const ABOUT: &str = "\
A check that never fails proves little. So the core is changed on purpose, one small mistake at a time, and every layer of checks is
asked whether it notices. A *mutant* is the core with one such mistake in one module, hence in all its instances: another operator, a
constant one off, a condition that is inverted, ignored or always true, arms of a choice exchanged, a register or a write that is never
or always enabled, another reset value or none, a slice one bit off, parts or inputs exchanged. Mutants are made from the netlist,
automatically; mistakes in logic that reaches only assertions, probes or counters that no output shows are not made. What would make a combinational loop is left out.

| layer | what it is asked |
|---|---|
| assertions | does an assertion of the description fail while programs run? Their results do not count |
| block tests | does a unit test fail of those in `hdl/simt/src` whose design has the module? |
| the run | does an instruction of a program do other than in the instruction-set simulator (the commit stream), is a result wrong, does the core fault or never end? Assertions are off |
| lock-step | does an output or a probe differ from the unchanged core's in some cycle of a program? |

A mutant *changes behaviour* if any layer notices it, or, for the rest, if the changed module alone gives another output on random inputs
that keep to its assumptions; a field of an output whose `valid` is 0 does not count. Lock-step compares with the very thing that the mistake is not in, which nobody has who writes a new core: so
the figure that counts is what the other three catch together. The goal is 95 %.

`heddle mutate --list` has the names of all mutants: module, source line, operation, mistake. `HEDDLE_MUTANT=NAME cargo test -p heddle-simt --lib`
runs the block tests on one. Programs run until they end or for some thousand cycles of a launch. Where a mutant makes the test bench itself panic, because it gets
what no core gives, the run and lock-step notice it, and assertions do not.
";

pub fn page(report: &Report) -> String {
    let all = Counts::of(report.outcomes.iter());
    let mut text = format!(
        "# Checks that are checked: mutants\n\n{ABOUT}\n## Result\n\n\
         Written by `{}` in {:.0} minutes: {} of the {} mutants, seed {}; lanes × warps {}; programs: {}. {} of them change behaviour.\n\n\
         | layer | catches | of those that change behaviour |\n|---|---|---|\n",
        command(),
        report.seconds / 60.0,
        all.examined,
        report.mutants,
        report.seed,
        report.shapes.join(" and "),
        report.workload,
        all.change,
    );
    for (layer, caught) in all.layers() {
        let _ = writeln!(text, "| {layer} | {caught} | {:.1} % |", all.percent(caught));
    }
    if let Some((tried, same)) = report.verilog {
        let _ = writeln!(
            text,
            "\nOf {tried} mutants, Verilog was made too and run in Verilator: in {same}, the same signal differs in the same cycle."
        );
    }
    text.push_str(
        "\n## Modules\n\n| module | examined | change behaviour | assertions | block tests | the run | any of these | lock-step |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    for (module, c) in report.by_module() {
        let _ = writeln!(
            text,
            "| `{module}` | {} | {} | {} | {} | {} | {} | {} |",
            c.examined, c.change, c.assertions, c.block_tests, c.run, c.caught, c.lockstep
        );
    }
    text.push_str(
        "\n## Survivors\n\nMutants that change behaviour and that only lock-step with the unchanged core, or the block alone, tells from it.\n\n\
         | mutant | signal | how it differs, and why nothing else notices |\n|---|---|---|\n",
    );
    for o in report.outcomes.iter().filter(|o| o.survives()) {
        let _ = writeln!(text, "| `{}` | `{}` | {} |", o.mutant.name, o.mutant.signal, o.seen());
    }
    let named = |o: &Outcome| {
        let why = reason(&o.mutant).map_or(String::new(), |why| format!(" ({why})"));
        format!("`{}`{why}", o.mutant.name)
    };
    let same: Vec<String> = report.outcomes.iter().filter(|o| !o.changes()).map(named).collect();
    let _ = write!(
        text,
        "\n## No difference found\n\n{} mutants that nothing here tells from the unchanged core, most of them because they are equal \
         to it: {}.\n",
        same.len(),
        same.join(", ")
    );
    text
}

/// The command line, without the place of the block tests' binary.
fn command() -> String {
    let mut words: Vec<String> = ["heddle".to_string()].into_iter().chain(std::env::args().skip(1)).collect();
    if let Some(at) = words.iter().position(|word| word == "--tests") {
        words.drain(at..(at + 2).min(words.len()));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::example;
    use super::*;

    #[test]
    fn a_page_has_the_layers_the_modules_and_the_survivors() {
        let report = example();
        let text = page(&report);
        assert!(text.contains("| any of these | 2 | 66.7 % |\n"), "{text}");
        assert!(text.contains("| `adder` | 4 | 3 | 1 | 1 | 2 | 2 | 2 |\n"), "{text}");
        let survivor = &report.outcomes[2].mutant.name;
        assert!(text.contains(&format!("| `{survivor}` | `out_1` | differs in out_0 in cycle 3 of gcd |\n")), "{text}");
        assert!(text.contains(&format!("equal to it: `{}`.\n", report.outcomes[3].mutant.name)), "{text}");
    }
}
