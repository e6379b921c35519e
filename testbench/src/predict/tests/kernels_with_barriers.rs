//! Programs with directives, compiled: their results stay, and their threads come together.

use super::compile::{self, Compiler};
use super::{warps, with_all};
use crate::Program;
use crate::iss::Iss;
use crate::kernels;
use crate::predict::{Choice, Deconflict, Options, PredictError, Prediction, Soft, predict};
use heddle_simt::Shape;

const LANES: u32 = 8;
const WARPS: u32 = 2;

/// Iteration delay: few turns take the expensive side.
const DELAY: &str = r#"
#include "heddle.h"
HEDDLE_BUFFER(uint32_t, out, 4096);
static inline __attribute__((always_inline)) uint32_t next(uint32_t x) { x ^= x << 13; x ^= x >> 17; return x ^ x << 5; }
int main(void) {
  uint32_t t = heddle_thread(), x = t * 2654435761u + 1, sum = 0;
  HEDDLE_PREDICT(L1 THRESHOLD);
  for (int i = 0; i < 40; i++) {
    x = next(x);
    if (x % 5 == 0) {
      HEDDLE_RECONVERGE(L1);
      for (int k = 0; k < 20; k++) { sum = sum * 31 + (x >> k); sum ^= sum >> 3; }
    }
    sum += x;
  }
  out[t] = sum;
  return 0;
}
"#;

/// Loop merge: the inner loop's turns differ by thread and turn of the outer loop.
const MERGE: &str = r#"
#include "heddle.h"
HEDDLE_BUFFER(uint32_t, out, 4096);
int main(void) {
  uint32_t t = heddle_thread(), x = t * 2654435761u + 1, sum = 0;
  HEDDLE_PREDICT(inner THRESHOLD);
  for (int i = 0; i < 20; i++) {
    x = x * 1664525 + 1013904223;
    for (uint32_t n = 2 + (x >> 27) * (x >> 31); n > 0; n--) {
      HEDDLE_RECONVERGE(inner);
      sum = sum * 31 + (x >> (n & 31)); sum ^= sum >> 3; sum += n * x; sum ^= sum << 5; sum *= 77; sum ^= x;
    }
    sum += x;
  }
  out[t] = sum;
  return 0;
}
"#;

/// Common call: both sides call the same function.
const CALL: &str = r#"
#include "heddle.h"
HEDDLE_BUFFER(uint32_t, out, 4096);
__attribute__((noinline, noclone)) uint32_t work(uint32_t x) {
  for (int k = 0; k < 30; k++) { x = x * 31 + k; x ^= x >> 7; }
  return x;
}
int main(void) {
  uint32_t t = heddle_thread(), sum = 0;
  for (uint32_t i = 0; i < 5; i++) {
    HEDDLE_PREDICT_FUNCTION(work THRESHOLD);
    if ((t * 7 + i) & 2) sum += work(t + i) * 3; else sum ^= work(t ^ i) + 1;
  }
  out[t] = sum;
  return 0;
}
"#;

/// The same, with all turns in one region.
fn calls_in_a_loop() -> String {
    let begin = "  HEDDLE_PREDICT_FUNCTION(work THRESHOLD);\n";
    let text = CALL.replace(&format!("  {begin}"), "");
    text.replace("  for (uint32_t i = 0; i < 5", &format!("{begin}  for (uint32_t i = 0; i < 5"))
}

fn source(text: &str, threshold: u32) -> String {
    text.replace(" THRESHOLD", &if threshold > 0 { format!(", {threshold}") } else { String::new() })
}

/// What the threads write, as the plain simulator has it.
fn results(elf: &[u8]) -> Vec<u8> {
    let shape = with_all(LANES, WARPS);
    let mut iss = Iss::new(&Program::parse(elf).unwrap(), &shape).unwrap();
    iss.run().unwrap();
    out(&iss, elf)
}

fn out(iss: &Iss, elf: &[u8]) -> Vec<u8> {
    let address = Program::parse(elf).unwrap().symbol("out").unwrap().address as usize;
    iss.memory()[address..address + 4 * (LANES * WARPS) as usize].to_vec()
}

fn in_warps(elf: &[u8]) -> (Vec<u8>, warps::Report) {
    let mut iss = Iss::new(&Program::parse(elf).unwrap(), &with_all(LANES, WARPS)).unwrap();
    let report = warps::run(&mut iss, LANES, WARPS);
    (out(&iss, elf), report)
}

fn explained(prediction: &Prediction) -> String {
    prediction.placements.iter().map(|placement| placement.text()).collect()
}

fn all_options() -> Vec<Options> {
    let mut all = Vec::new();
    for pdom in [false, true] {
        for deconflict in [Deconflict::Static, Deconflict::Dynamic, Deconflict::Rejoin] {
            for soft in [Soft::Wait, Soft::Count] {
                for barriers in [2, 16] {
                    all.push(Options { pdom, deconflict, soft, barriers, ..Options::default() });
                }
            }
        }
    }
    all
}

fn checked(elf: &[u8], options: &Options) -> Prediction {
    let prediction = predict(elf, options).unwrap_or_else(|error| panic!("{options:?}: {error}"));
    assert_eq!(results(elf), results(&prediction.elf), "{options:?}");
    prediction
}

#[test]
fn programs_with_directives_keep_their_results_and_nobody_waits_in_vain() {
    let Some(compiler) = compile::compiler("programs with directives") else { return };
    for text in [DELAY, MERGE, CALL, &calls_in_a_loop()] {
        for threshold in [0, 1, 5, 64] {
            let elf = compiler.program(&source(text, threshold), &[]);
            let (want, before) = in_warps(&elf);
            for options in all_options() {
                let prediction = checked(&elf, &options);
                let (got, after) = in_warps(&prediction.elf);
                assert_eq!(want, got, "{options:?}");
                assert_eq!(after.stalls, 0, "threshold {threshold}, {options:?}: {}", explained(&prediction));
                // Three barriers that count take a count's place only if there are three.
                if threshold != 1 && options.barriers == 16 {
                    assert!(after.releases > 0, "{options:?}");
                    assert!(after.efficiency(LANES) > before.efficiency(LANES), "{options:?}: {before:?} {after:?}");
                }
            }
        }
    }
}

/// What the paper promises: threads that execute the expensive part execute it together.
#[test]
fn regions_without_a_threshold_fill_the_lanes() {
    let Some(compiler) = compile::compiler("programs with directives") else { return };
    for (text, gain) in [(DELAY, 1.5), (MERGE, 1.2), (CALL, 1.5)] {
        let elf = compiler.program(&source(text, 0), &[]);
        let (_, before) = in_warps(&elf);
        let (_, after) = in_warps(&predict(&elf, &Options::default()).unwrap().elf);
        let ratio = after.efficiency(LANES) / before.efficiency(LANES);
        println!("{:.3} {:.3}", before.efficiency(LANES), after.efficiency(LANES));
        assert!(ratio > gain, "{ratio}: {before:?} {after:?}");
    }
}

/// Compilers copy regions: each copy has a barrier.
#[test]
fn copies_of_regions_have_barriers_of_their_own() {
    let Some(compiler) = compile::compiler("copies of regions") else { return };
    let predicted = |prediction: &Prediction| {
        prediction.placements.iter().filter(|placement| placement.what.starts_with("the barrier of ")).count()
    };
    let copies = |text: &str, flags: &[&str]| {
        let elf = compiler.program(text, flags);
        let prediction = checked(&elf, &Options::default());
        assert_eq!(in_warps(&prediction.elf).1.stalls, 0, "{flags:?}");
        (predicted(&prediction), prediction)
    };
    // Inlined twice.
    let inlined = MERGE.replace(" THRESHOLD", "").replace("int main(void) {\n  uint32_t t = heddle_thread(), x = t * 2654435761u + 1, sum = 0;",
        "static inline __attribute__((always_inline)) uint32_t f(uint32_t x, uint32_t sum) {")
        .replace("  out[t] = sum;\n  return 0;\n}", "  return sum;\n}\nint main(void) { uint32_t t = heddle_thread(); uint32_t a = f(t * 7919, 1); out[t] = f(a, 2); return 0; }");
    assert_eq!(copies(&inlined, &[]).0, 2);
    // The inner loop unrolled: its points are in one copy, and the first dominates.
    let unrolled = source(MERGE, 0)
        .replace("uint32_t n = 2 + (x >> 27) * (x >> 31); n > 0; n--", "uint32_t n = x; n & 7; n = n / 3");
    assert_eq!(copies(&unrolled, &["-funroll-all-loops"]).0, 1);
    let records = directives(&compiler.program(&unrolled, &["-funroll-all-loops"]));
    assert!(records > directives(&compiler.program(&unrolled, &[])), "{records}");
    // If it is a count of turns, what is left over comes first, and no point dominates.
    let counted = compiler.program(&source(MERGE, 0), &["-funroll-all-loops"]);
    let line = predict(&counted, &Options::default()).unwrap_err().to_string();
    assert!(line.ends_with("of one region, and every thread passes none of them first: name one place"), "{line}");
    // Peeled and unswitched.
    let peeled = r#"
#include "heddle.h"
HEDDLE_BUFFER(uint32_t, out, 4096);
volatile int which;
int main(void) {
  uint32_t t = heddle_thread(), x = t * 2654435761u + 1, sum = 0;
  int k = which;
  HEDDLE_PREDICT(L);
  #pragma GCC unroll 1
  for (uint32_t i = 0; i < 20; i++) {
    x = x * 1664525 + 1013904223;
    if (k) sum += x / 3; else sum ^= x * 5;
    if (x >> 30) continue;
    HEDDLE_RECONVERGE(L);
    sum = sum * 31 + x; sum ^= sum >> 3;
  }
  out[t] = sum;
  return 0;
}
"#;
    let (unswitched, prediction) = copies(peeled, &["-O3", "-funswitch-loops"]);
    assert_eq!(unswitched, 2, "{}", explained(&prediction));
    let (count, prediction) = copies(peeled, &["-O3", "-fpeel-loops", "-fno-unswitch-loops"]);
    assert!(count >= 1, "{}", explained(&prediction));
}

fn directives(elf: &[u8]) -> usize {
    crate::predict::directives::read(&crate::predict::linked::Linked::read(elf).unwrap()).unwrap().len()
}

/// Without directives too: the barriers of post-dominators on all kernels.
#[test]
fn kernels_with_post_dominators_barriers_give_their_results() {
    let mut placed = 0;
    for kernel in kernels::ALL {
        for barriers in [3, 16] {
            let options = Options { pdom: true, barriers, ..Options::default() };
            let prediction = predict(kernel.elf, &options).unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
            placed += prediction.placements.len();
            let shape = Shape { program: 256 << 10, ..with_all(4, 2) };
            let mut iss = Iss::new(&Program::parse(&prediction.elf).unwrap(), &shape).unwrap();
            (kernel.drive)(&mut iss, 1).unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        }
    }
    assert!(placed > 200, "{placed}");
}

#[test]
fn misused_directives_are_one_line() {
    let Some(compiler) = compile::compiler("misused directives") else { return };
    let main = |body: &str| {
        let text = format!(
            "#include \"heddle.h\"\nHEDDLE_BUFFER(uint32_t, out, 4096);\n\
             __attribute__((noinline)) uint32_t f(uint32_t x) {{ return x * out[x & 7]; }}\n\
             int main(void) {{ uint32_t t = heddle_thread(); {body} out[t] += 1; return 0; }}"
        );
        compiler.program(&text, &[])
    };
    let line = |body: &str| predict(&main(body), &Options::default()).unwrap_err().to_string();
    let ends = |body: &str, end: &str| {
        let line = line(body);
        assert!(line.ends_with(end) && !line.contains('\n'), "{line}");
    };
    ends("", "nothing to place: the program has no HEDDLE_PREDICT, and neither --auto nor --pdom was asked for");
    ends("HEDDLE_PREDICT(a);", "leads to no HEDDLE_RECONVERGE(a)");
    ends("HEDDLE_RECONVERGE(a);", "is reached from no HEDDLE_PREDICT(a)");
    ends("HEDDLE_RECONVERGE(a); out[t + 1] = 3; HEDDLE_PREDICT(a);", "leads to no HEDDLE_RECONVERGE(a)");
    ends(
        "HEDDLE_PREDICT(a, 65); out[t] = 3; HEDDLE_RECONVERGE(a);",
        "has a threshold of 65: wanted is 1 to 64, or none",
    );
    ends("HEDDLE_PREDICT_FUNCTION(g);", "names no function of the program: was it inlined?");
    ends("out[t] = f(t); HEDDLE_PREDICT_FUNCTION(f);", "begins a region that calls f nowhere");
    let twice = "HEDDLE_PREDICT(a); for (int i = 0; i < (int)out[t]; i++) { if (out[i] & 1) { HEDDLE_RECONVERGE(a); out[i] = f(i); } \
                 else { HEDDLE_RECONVERGE(a); out[i] += f(t + i); } }";
    ends(twice, "of one region, and every thread passes none of them first: name one place");
    let options =
        |options: Options| predict(&main("HEDDLE_PREDICT(a); f(t); HEDDLE_RECONVERGE(a);"), &options).map(|_| ());
    assert_eq!(options(Options::default()), Ok(()));
    let line = |o: Options| options(o).unwrap_err().to_string();
    assert_eq!(line(Options { barriers: 17, ..Options::default() }), "17 barriers a warp: wanted is 1 to 16");
    assert_eq!(line(Options { threshold: Some(65), ..Options::default() }), "a threshold of 65: wanted is 1 to 64");
}

/// A barrier lives across a call only if what is called does not use its number.
/// What is chosen for a region comes before its directive, and before the threshold of all.
#[test]
fn a_region_waits_for_what_is_chosen_for_it() {
    let with = kernels::ALL.iter().filter(|kernel| predict(kernel.elf, &Options::default()).is_ok());
    let mut count = 0;
    for kernel in with {
        let predicted = |choice: Option<Choice>, threshold| {
            let Prediction { regions, .. } = predict(kernel.elf, &Options::default()).unwrap();
            assert_eq!(regions.len(), 1, "{}", kernel.name);
            let choices = choice.map(|choice| (regions[0].0.clone(), choice)).into_iter().collect();
            predict(kernel.elf, &Options { choices, threshold, ..Options::default() }).unwrap()
        };
        let threshold = |prediction: &Prediction| {
            let of_region = prediction.placements.iter().find(|placement| !placement.what.contains("behind"));
            of_region.unwrap().threshold
        };
        for (choice, wanted) in [(Choice::Threads(5), 5), (Choice::All, 0)] {
            for of_all in [None, Some(7)] {
                let prediction = predicted(Some(choice), of_all);
                assert_eq!(threshold(&prediction), wanted, "{}", kernel.name);
                // What was asked for is told all the same.
                let asked = predicted(None, of_all);
                assert_eq!(prediction.regions, asked.regions, "{}", kernel.name);
                let own = if threshold(&asked) == 0 { Choice::All } else { Choice::Threads(threshold(&asked)) };
                assert_eq!(asked.regions[0].1, own, "{}", kernel.name);
            }
        }
        let alone = predicted(Some(Choice::Alone), None);
        assert_eq!((alone.placements.as_slice(), alone.inserted), (&[][..], 0), "{}", kernel.name);
        assert_eq!(Program::parse(&alone.elf), Program::parse(kernel.elf), "{}", kernel.name);
        count += 1;
    }
    assert!(count > 8, "{count} kernels have directives");
    let kernel = kernels::find("loop_merge").unwrap();
    let region = predict(kernel.elf, &Options::default()).unwrap().regions[0].0.clone();
    let choices = [(region, Choice::Threads(65))].into();
    let refused = predict(kernel.elf, &Options { choices, ..Options::default() });
    assert_eq!(refused, Err(PredictError::ThresholdAsked { threshold: 65 }));
}

#[test]
fn functions_called_in_regions_have_other_numbers() {
    let Some(compiler) = compile::compiler("numbers of barriers") else { return };
    let text = nested(&compiler);
    let prediction = checked(&text, &Options::default());
    let number = |what: &str| prediction.placements.iter().find(|p| p.what.ends_with(what)).unwrap().numbers[0];
    let all =
        [number("barrier of outer"), number("region of outer"), number("barrier of inner"), number("region of inner")];
    assert!((0..4).all(|a| (0..a).all(|b| all[a] != all[b])), "{all:?}");
    let few = checked(&text, &Options { barriers: 3, ..Options::default() });
    assert_eq!(few.placements.len(), 3);
    let dropped =
        few.notes.iter().filter(|note| note.ends_with("not placed, because no barrier is left for it")).count();
    assert_eq!(dropped, 1, "{:?}", few.notes);
}

fn nested(compiler: &Compiler) -> Vec<u8> {
    let text = r#"
#include "heddle.h"
HEDDLE_BUFFER(uint32_t, out, 4096);
__attribute__((noinline)) uint32_t f(uint32_t x) {
  HEDDLE_PREDICT(inner);
  for (uint32_t i = 0; i < 9; i++) {
    x = x * 1664525 + 1013904223;
    if (x >> 30 == 0) { HEDDLE_RECONVERGE(inner); x ^= x / 7; }
  }
  return x;
}
int main(void) {
  uint32_t t = heddle_thread(), x = t;
  HEDDLE_PREDICT(outer);
  for (uint32_t i = 0; i < 9; i++) {
    x = x * 22695477 + t;
    if (x >> 31) { HEDDLE_RECONVERGE(outer); x += f(x); }
    x ^= i;
  }
  out[t] = x;
  return 0;
}
"#;
    compiler.program(text, &[])
}

#[test]
fn no_barrier_stays_live_across_recursion() {
    let Some(compiler) = compile::compiler("recursion") else { return };
    let text = r#"
#include "heddle.h"
HEDDLE_BUFFER(uint32_t, out, 4096);
__attribute__((noinline)) uint32_t f(uint32_t x, uint32_t depth) {
  uint32_t sum = x;
  HEDDLE_PREDICT(L);
  for (uint32_t i = 0; i < 3; i++) {
    x = x * 1664525 + 1013904223;
    if (x >> 31) { HEDDLE_RECONVERGE(L); sum += depth > 0 ? f(x, depth - 1) : x; }
  }
  return sum;
}
int main(void) { uint32_t t = heddle_thread(); out[t] = f(t, 3); return 0; }
"#;
    let prediction = checked(&compiler.program(text, &["-fno-optimize-sibling-calls"]), &Options::default());
    assert!(prediction.placements.is_empty(), "{}", explained(&prediction));
    let because = prediction.notes.iter().filter(|note| note.ends_with("because it would be live across recursion"));
    assert_eq!(because.count(), 2, "{:?}", prediction.notes);
}

/// Listing 1 in `docs/reference/predict.md`, and what is said of it there.
#[test]
fn listing_1_is_explained_as_the_page_says() {
    let Some(compiler) = compile::compiler("the page's listing") else { return };
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference/predict.md");
    let page = std::fs::read_to_string(page).unwrap();
    let between = |from: &str| page.split_once(from).unwrap().1.split_once("```").unwrap().0.to_string();
    let elf = compiler.program(&between("```c\n"), &[]);
    let prediction = checked(&elf, &Options::default());
    assert_eq!(prediction.notes, [""; 0]);
    assert_eq!(explained(&prediction), between("--explain` says\n\n```\n"));
    let (_, before) = in_warps(&elf);
    let (_, after) = in_warps(&prediction.elf);
    assert!(after.stalls == 0 && after.efficiency(LANES) > 1.3 * before.efficiency(LANES), "{before:?} {after:?}");
}
