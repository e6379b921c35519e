//! Results of proofs that held, kept in the cache folder under a hash of all that they depend on: the text, what is asked
//! of the provers, and their version. A proof that fails is run again.

use super::list::Proof;
use super::run::{Proven, Verdict};
use heddle_sim::verilator::cache;
use serde::{Deserialize, Serialize};
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// What is kept of a proof that held.
#[derive(Serialize, Deserialize)]
struct Held {
    seconds: f64,
    covers: (usize, usize),
}

/// Where the result of a proof is kept.
pub(super) struct Kept(PathBuf);

impl Kept {
    pub fn of(proof: &Proof, verilog: &str, version: &str) -> Kept {
        let mut hasher = DefaultHasher::new();
        (verilog, proof.method.name(), proof.depth, proof.cover_depth, version).hash(&mut hasher);
        Kept(cache().join("proofs").join(format!("{}-{:016x}.json", proof.name, hasher.finish())))
    }

    /// The result, if the proof held.
    pub fn read(&self) -> Option<Proven> {
        let Held { seconds, covers } = serde_json::from_slice(&fs::read(&self.0).ok()?).ok()?;
        Some(Proven { seconds, covers, verdict: Verdict::Holds, kept: true })
    }

    /// Keeps it if it held. A folder that cannot be written to costs only time.
    pub fn write(&self, proven: &Proven) {
        if proven.verdict != Verdict::Holds {
            return;
        }
        let held = Held { seconds: proven.seconds, covers: proven.covers };
        let text = serde_json::to_vec(&held).expect("numbers can be written");
        // Written aside, so that nobody reads half of it.
        let aside = self.0.with_extension(std::process::id().to_string());
        let folder = self.0.parent().map_or(Ok(()), fs::create_dir_all);
        let _ = folder.and_then(|()| fs::write(&aside, text)).and_then(|()| fs::rename(&aside, &self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prove::proofs;

    #[test]
    fn only_the_same_proof_is_found_again() {
        let proof = proofs().unwrap().remove(0);
        let other = Proof { depth: proof.depth + 1, ..proof.clone() };
        let at = |proof: &Proof, text: &str, version: &str| Kept::of(proof, text, version).0;
        let first = at(&proof, "text", "1");
        assert_eq!(first, at(&proof, "text", "1"));
        for another in [at(&proof, "Text", "1"), at(&proof, "text", "2"), at(&other, "text", "1")] {
            assert_ne!(first, another);
        }
    }

    #[test]
    fn what_held_is_kept_and_what_failed_is_not() {
        let folder = std::env::temp_dir().join(format!("heddle-kept-{}", std::process::id()));
        let kept = Kept(folder.join("a.json"));
        let held = Proven { seconds: 2.5, covers: (3, 3), verdict: Verdict::Holds, kept: false };
        kept.write(&Proven { verdict: Verdict::Unreached(vec!["c".into()]), ..held.clone() });
        assert!(kept.read().is_none());
        kept.write(&held);
        let found = kept.read().unwrap();
        assert_eq!((found.seconds, found.covers, found.verdict, found.kept), (2.5, (3, 3), Verdict::Holds, true));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
