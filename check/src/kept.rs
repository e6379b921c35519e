//! Results that took long to find, kept in the cache folder under a hash of all that they depend on.

use heddle_sim::verilator::cache;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;

/// Where a result is kept.
pub(crate) struct Kept(PathBuf);

impl Kept {
    /// `folder` is one of the cache folder; `name` is for whoever looks into it.
    pub fn of(folder: &str, name: &str, key: impl Hash) -> Kept {
        let mut hasher = DefaultHasher::new();
        key.hash(&mut hasher);
        Kept(cache().join(folder).join(format!("{name}-{:016x}.json", hasher.finish())))
    }

    /// The result, if it is there. A file that cannot be read is as good as none.
    pub fn read<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&fs::read(&self.0).ok()?).ok()
    }

    /// Keeps it. A folder that cannot be written to costs only time.
    pub fn write(&self, result: &impl Serialize) {
        let Ok(text) = serde_json::to_vec(result) else { return };
        // Written aside, so that nobody reads half of it.
        let aside = self.0.with_extension(std::process::id().to_string());
        let folder = self.0.parent().map_or(Ok(()), fs::create_dir_all);
        let _ = folder.and_then(|()| fs::write(&aside, text)).and_then(|()| fs::rename(&aside, &self.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_key_finds_it_and_no_other() {
        let at = |name: &str, key: (&str, u32)| Kept::of("proofs", name, key).0;
        let first = at("ccs", ("text", 1));
        assert_eq!(first, at("ccs", ("text", 1)));
        for another in [at("cct", ("text", 1)), at("ccs", ("Text", 1)), at("ccs", ("text", 2))] {
            assert_ne!(first, another);
        }
    }

    #[test]
    fn what_is_kept_is_whole_and_what_is_damaged_is_not_there() {
        let folder = std::env::temp_dir().join(format!("heddle-kept-{}", std::process::id()));
        let kept = Kept(folder.join("a.json"));
        assert_eq!(kept.read::<Vec<f64>>(), None);
        kept.write(&vec![2.5, 48.7]);
        assert_eq!(kept.read(), Some(vec![2.5, 48.7]));
        assert_eq!(kept.read::<Vec<String>>(), None, "of another type");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::write(&kept.0, "[2.5, 48").unwrap();
        assert_eq!(kept.read::<Vec<f64>>(), None);
        fs::remove_dir_all(folder).unwrap();
    }
}
