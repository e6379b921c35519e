//! Formal proofs: a few shapes of each block, or all with `HEDDLE_LONG`; and a proof must be able to fail.

use heddle_check::prove::verilog::verilog;
use heddle_check::prove::{Proof, Proven, Stopped, Tools, Verdict, proofs, prove, prove_all};
use heddle_simt::Divergence;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

const WAVES: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/counterexamples");

/// The provers, ready to be used, and their version; or nothing and a note.
fn tools() -> Option<(Tools, String)> {
    match Tools::find() {
        Ok(tools) => {
            let version = tools.version(&|| false).unwrap();
            Some((tools, version))
        }
        Err(missing) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: formal proofs: {missing}");
            None
        }
    }
}

fn find(name: &str) -> Proof {
    proofs(Divergence::ALL).unwrap().into_iter().find(|proof| proof.name == name).unwrap()
}

/// Proves with one text in the Verilog replaced by another.
fn mutated(tools: &Tools, name: &str, from: &str, to: &str) -> Proven {
    let text = verilog(&find(name).harness);
    assert_eq!(text.matches(from).count(), 1, "{from}\n{text}");
    prove(&find(name), &text.replace(from, to), tools, None, Path::new(WAVES), &|| false).unwrap()
}

/// The proofs of a block hold.
fn holds(block: &str) {
    let Some((tools, version)) = tools() else { return };
    let long = std::env::var_os("HEDDLE_LONG").is_some();
    let of_block = |proof: &Proof| proof.block == block && (proof.quick || long);
    let chosen: Vec<Proof> = proofs(Divergence::ALL).unwrap().into_iter().filter(of_block).collect();
    let results = prove_all(&chosen, &tools, Some(&version), None, Path::new(WAVES), &|| false, &|_, _| {});
    for (proof, result) in chosen.iter().zip(results) {
        let proven = result.unwrap_or_else(|stopped| panic!("{stopped}"));
        let _ = writeln!(std::io::stderr(), "{}: {} in {:.0} s", proof.name, proven.verdict, proven.seconds);
        assert_eq!(proven.verdict, Verdict::Holds, "{}", proof.name);
    }
}

macro_rules! blocks {
    ($($name:ident: $file:literal;)*) => {
        const BLOCKS: &[&str] = &[$($file),*];
        $(#[test] fn $name() { holds($file); })*
    };
}

blocks! {
    ccs: "divergence/path_table/ccs.rs";
    cold_table: "divergence/path_table/cct.rs";
    path_table: "divergence/path_table.rs";
    convergence: "divergence/path_table/convergence.rs";
    fairness: "divergence/fairness.rs";
    arbiter: "divergence/arbiter.rs";
    stack: "divergence/stack.rs";
    dual_path: "divergence/dual_path.rs";
    compactor: "divergence/block_stack/compactor.rs";
    capt: "divergence/block_stack/capt.rs";
    block_stack: "divergence/block_stack.rs";
    scoreboard: "scoreboard.rs";
    dual_scoreboard: "scoreboard/dual.rs";
    resolve: "pipeline/resolve.rs";
    distributor: "distributor.rs";
    barrier: "barrier.rs";
    cache: "memory/cache.rs";
    second_level: "memory/second_level.rs";
    wishbone: "memory/wishbone.rs";
}

#[test]
fn every_proof_is_of_a_block_above() {
    for proof in proofs(Divergence::ALL).unwrap() {
        assert!(BLOCKS.contains(&proof.block), "{}: {}", proof.name, proof.block);
    }
}

/// A scoreboard that lets an early release take away the mark of an issue in the same cycle.
#[test]
fn a_changed_operator_is_found() {
    let Some((tools, _)) = tools() else { return };
    let proven =
        mutated(&tools, "scoreboard-2x2", "(pending & (~released)) | set", "(pending | set) & (~(early | late))");
    let Verdict::Fails(run) = proven.verdict else { panic!("{}", proven.verdict) };
    assert!(run.assertion.starts_with("pending_is_owed") || run.assertion.starts_with("never"), "{}", run.assertion);
    let wave = std::fs::read_to_string(&run.waveform).unwrap();
    assert!(wave.contains("$enddefinitions"), "{}", run.waveform.display());
}

/// A cold table that keeps its head where a path returns: only an induction step may find it, or a run from reset.
#[test]
fn a_lost_return_is_found() {
    let Some((tools, _)) = tools() else { return };
    let proven = mutated(&tools, "path-table-4x1", "(insert | back) | to_cct_start", "insert | to_cct_start");
    assert!(proven.verdict.waveform().is_some_and(Path::exists), "{}", proven.verdict);
}

/// A stack that forgets who waits where a branch meets, if the other side is there already.
#[test]
fn a_lost_group_is_found() {
    let Some((tools, _)) = tools() else { return };
    let proven = mutated(&tools, "stack-2x1", "parts & ((~same_group) | both_stay)", "parts & both_stay");
    assert!(proven.verdict.waveform().is_some_and(Path::exists), "{}", proven.verdict);
}

/// A dual-path unit that steers one of two sides that begin at a branch.
#[test]
fn a_lost_steer_is_found() {
    let Some((tools, _)) = tools() else { return };
    let proven = mutated(&tools, "dual-path-4x1b", "wire owes = both_go | ", "wire owes = ");
    assert!(proven.verdict.waveform().is_some_and(Path::exists), "{}", proven.verdict);
}

/// A harness whose block never gets a valid input proves nothing.
#[test]
fn an_empty_proof_is_found() {
    let Some((tools, _)) = tools() else { return };
    let proven = mutated(&tools, "scoreboard-2x1", "always @(posedge clk) running <= 1'b1;", "");
    assert!(matches!(&proven.verdict, Verdict::Unreached(covers) if covers.len() == 2), "{}", proven.verdict);
}

/// What takes longer than it may is neither proven nor refuted, and stops nobody else.
#[test]
fn a_proof_ends_at_its_limit() {
    let Some((tools, _)) = tools() else { return };
    let (chosen, limit) = ([find("ccs-1x1"), find("ccs-2x1")], Duration::from_millis(1));
    let results = prove_all(&chosen, &tools, None, Some(limit), Path::new(WAVES), &|| false, &|_, _| {});
    for result in results {
        let Proven { verdict, covers, kept, .. } = result.unwrap();
        assert_eq!((verdict, covers.0, kept), (Verdict::NoEnd { after: limit, cycles: None }, 0, false));
    }
    // It holds for some of its cycles after these seconds, and has more than a hundred: it would take very long.
    let bounded = Proof { depth: 200, ..find("block-stack-1x2") };
    let limit = Duration::from_secs(12);
    let verdict = prove(&bounded, &verilog(&bounded.harness), &tools, Some(limit), Path::new(WAVES), &|| false);
    let verdict = verdict.unwrap().verdict;
    assert!(matches!(&verdict, Verdict::NoEnd { after, cycles: Some(1..200) } if *after == limit), "{verdict}");
    let stopped = prove_all(&chosen, &tools, None, Some(limit), Path::new(WAVES), &|| true, &|_, _| {});
    assert!(stopped.iter().all(|result| matches!(result, Err(Stopped::Interrupted))));
}
