//! Why mutants survive that do: what the signal is for, in a few words.

use heddle_hdl::mutate::Mutant;

/// Module, signal, how the mutant's name ends, and why the mistake goes unnoticed.
const REASONS: &[(&str, &str, &str, &str)] = &[
    ("cct", "index", "", "where the sorter goes on in the cold table: a slower sort, the same paths"),
    ("arbiter", "outcomes", "", HOLD),
    ("arbiter", "put_off", "", HOLD),
    ("path_table", "outcomes", "", HOLD),
    ("path_table", "put_off", "", HOLD),
    ("stack", "hold", "", HOLD),
    ("stack", "outcomes", "", HOLD),
    ("stack", "put_off", "", HOLD),
    ("dual_path", "hold", "", HOLD),
    ("dual_path", "outcomes", "", HOLD),
    ("dual_path", "put_off", "", HOLD),
    ("steer", "preferred", "", "which of two slots fetches first: a few cycles"),
    ("decode", "last", "", "more instructions than needed wait for their outcome: a few cycles"),
    ("scoreboard", "row.set_registers", ":const:high_bit", "the pending bit of x0, which nothing asks for"),
    ("execute", "s8_result", ":always_enabled", HELD),
    ("multiplier", "low_2", ":always_enabled", HELD),
    ("resolve", "s9_access_own", ":without_first", "data of lanes that are not served"),
    ("resolve", "s9_outcome_call", "", DEPTH),
    ("resolve", "s9_exit_slot", ":always_enabled", HELD),
    ("resolve", "s9_outcome_rest_mask", "", "an `ecall` that is a jump or an access too, which decode never makes"),
    ("resolve", "s9_access_bank", "", "data of a request that does not take place"),
    ("writeback", "write_rd", "", "the register of a write to no lane"),
    ("core", "multiply_2", "", "what the multiplier computes while it has no operation; nothing is written"),
    ("core", "cycles", "", COUNTER),
    ("core", "instructions", "", COUNTER),
    ("core", "committed", "", COUNTER),
    ("core", "first_fault", ":without_first", "what is kept of a fault before there is one"),
    ("core", "held_fault_pc", "", SECOND_FAULT),
    ("core", "held_fault_cause", "", SECOND_FAULT),
    ("core", "issue", ".hold_control:and_next_input", HOLD),
    ("core", "resolve", ".executed_instruction_decoded_call:and_next_input", DEPTH),
    ("heddle", "instructions", "", "the host fills instruction memory only while nothing is fetched"),
];

const COUNTER: &str = "the simulator takes the value of counters from the core; `check/tests/core` notices";

const HELD: &str = "what a stage holds while nothing is in it";

const DEPTH: &str = "call depths: paths run in another order, results stay; `check/tests/core` notices";

const SECOND_FAULT: &str = "no program here has a second fault right after the first; `check/tests/core` has";

const HOLD: &str = "when issue holds back control instructions so that a waiting update gets its turn: a few cycles";

/// The known reason of a survivor.
pub fn reason(mutant: &Mutant) -> Option<&'static str> {
    let of = |(module, signal, end, why): &(&str, &str, &str, &'static str)| {
        (*module == mutant.module && *signal == mutant.signal && mutant.name.ends_with(end)).then_some(*why)
    };
    REASONS.iter().find_map(of)
}
