//! Profiles that no run made: they are refused in a line, or barriers are placed by them, in little time.

use crate::*;
use heddle_testbench::kernels::find;
use heddle_testbench::predict::{Automatic, Issue, Profile, Recording};
use serde_json::{Value, json};
use std::time::Instant;

const KERNELS: [&str; 4] = ["loop_merge", "iteration_delay", "mcgpu", "quicksort"];

/// Of a run in which each thread executes each instruction some times, by itself.
fn profile(elf: &[u8]) -> Value {
    let program = Program::parse(elf).unwrap();
    let mut recording = Recording::new(&program, 8);
    let mut cycle = 0;
    for pc in (0..program.program_end()).step_by(4) {
        for thread in 0..8 {
            for _ in 0..1 + (pc / 4 * 7 + thread * 13) % 16 {
                cycle += 3;
                recording.issued(Issue { cycle, warp: 0, pc, block: 0 }, [thread].into_iter());
            }
        }
    }
    serde_json::to_value(recording.profile()).unwrap()
}

#[derive(Clone, Debug)]
enum Edit {
    /// A field of all, and what it becomes.
    Field(usize, Value),
    /// A count of an instruction.
    Count(Index, usize, Value),
    /// Counts for an address.
    Address(Value, [u64; 4]),
    /// An instruction or a field is missing.
    Gone(Index),
}

#[derive(Clone, Debug)]
struct Damage {
    kernel: usize,
    edits: Vec<Edit>,
    bytes: Vec<(Index, u8)>,
    cut: Option<Index>,
}

const FIELDS: [&str; 3] = ["lanes", "code", "instructions"];
const COUNTS: [&str; 4] = ["issues", "lanes", "least", "cycles"];

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..100, extremes().prop_map(u64::from), any::<u64>(), Just(u64::MAX)]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        16 => number().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => prop_oneof![any::<String>().prop_map(Value::from), Just(Value::Null), Just(json!([1, {"a": []}])), Just(json!({}))],
    ]
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        1 => (0..3usize, value()).prop_map(|(field, value)| Edit::Field(field, value)),
        3 => (0u32..70).prop_map(|lanes| Edit::Field(0, lanes.into())),
        1 => any::<String>().prop_map(|code| Edit::Field(1, code.into())),
        4 => (any::<Index>(), 0..4usize, value()).prop_map(|(at, count, value)| Edit::Count(at, count, value)),
        2 => (value(), [number(), number(), number(), number()]).prop_map(|(address, counts)| Edit::Address(address, counts)),
        1 => any::<Index>().prop_map(Edit::Gone),
    ]
}

fn damage() -> impl Strategy<Value = Damage> {
    let edits = prop::collection::vec(edit(), 0..4);
    let bytes = prop::collection::vec((any::<Index>(), any::<u8>()), 0..2);
    let bytes = prop_oneof![4 => Just(vec![]), 1 => bytes];
    let cut = prop::option::weighted(0.1, any::<Index>());
    (0..KERNELS.len(), edits, bytes, cut).prop_map(|(kernel, edits, bytes, cut)| Damage { kernel, edits, bytes, cut })
}

impl Damage {
    fn text(&self, of_kernels: &[Value]) -> Vec<u8> {
        let mut profile = of_kernels[self.kernel].clone();
        for edit in &self.edits {
            let field = if let Edit::Field(field, _) = edit { *field } else { 2 };
            if let Edit::Field(_, value) = edit {
                profile[FIELDS[field]] = value.clone();
                continue;
            }
            let Some(counts) = profile.get_mut(FIELDS[2]).and_then(Value::as_object_mut) else { continue };
            let keys: Vec<String> = counts.keys().cloned().collect();
            match edit {
                Edit::Count(at, count, value) if !keys.is_empty() => {
                    let of_instruction = &mut counts[&keys[at.index(keys.len())]];
                    of_instruction[COUNTS[*count]] = value.clone();
                }
                Edit::Address(address, [issues, lanes, least, cycles]) => {
                    let key = address.as_str().map_or_else(|| address.to_string(), String::from);
                    counts.insert(key, json!({"issues": issues, "lanes": lanes, "least": least, "cycles": cycles}));
                }
                Edit::Gone(at) if !keys.is_empty() => _ = counts.remove(&keys[at.index(keys.len())]),
                _ => {}
            }
        }
        let mut text = profile.to_string().into_bytes();
        for (at, value) in &self.bytes {
            let at = at.index(text.len());
            text[at] = *value;
        }
        if let Some(cut) = self.cut {
            text.truncate(cut.index(text.len()));
        }
        text
    }
}

#[test]
fn damaged_profiles_are_refused_or_taken() {
    limit_memory();
    let of_kernels = KERNELS.map(|kernel| profile(find(kernel).unwrap().elf));
    let [malformed, impossible, other, taken] = [0; 4].map(Cell::new);
    let count = |of: &Cell<u32>| of.set(of.get() + 1);
    let result = TestRunner::new(cases(1500)).run(&damage(), |damage| {
        let profile: Profile = match serde_json::from_slice(&damage.text(&of_kernels)) {
            Ok(profile) => profile,
            Err(error) => {
                count(&malformed);
                return one_line(&error);
            }
        };
        let elf = find(KERNELS[damage.kernel]).unwrap().elf;
        let automatic = Some(Automatic { profile: Some(profile) });
        let started = Instant::now();
        let options = Options { directives: false, automatic, ..Options::default() };
        match place_barriers(elf, &options)? {
            Ok(_) => count(&taken),
            Err(error) if error.to_string().contains("another program") => count(&other),
            Err(error) => {
                prop_assert!(error.to_string().starts_with("the profile has "), "{}", error);
                count(&impossible);
            }
        }
        prop_assert!(started.elapsed().as_secs() < 5, "{:?}", started.elapsed());
        Ok(())
    });
    result.unwrap_or_else(|error| panic!("{error}"));
    for (what, of) in [("malformed", malformed), ("impossible", impossible), ("other", other), ("taken", taken)] {
        eprintln!("{what}: {}", of.get());
        assert!(of.get() > 5, "{what}: only {}", of.get());
    }
}
