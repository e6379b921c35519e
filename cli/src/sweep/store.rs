//! The folder of results: a JSON file each, named by the hash of all that it depends on.
//!
//! A file is written aside and renamed, so there is none of half a result. Whoever computes a result holds a lock on its
//! name in the folder `.locks`; the lock goes with the process. So several sweeps may use one folder, and none computes
//! what another is at.

use crate::output::ResultFile;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use std::fs::{self, File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What a run came to.
#[derive(Clone, Serialize, Deserialize, PartialEq, Debug)]
pub struct Record {
    /// Of what is in this file and what its name is a hash of.
    pub schema: u32,
    /// The command line that does the same alone.
    pub command: String,
    /// As the sweep's file has them.
    pub options: Map<String, Json>,
    pub draw: Option<u32>,
    /// The canonical hash of the hardware.
    pub design: String,
    pub ok: bool,
    /// Why it is not.
    pub error: Option<String>,
    /// The command's JSON; of a run that failed, as far as it came.
    pub result: Json,
}

/// Raised when results of the same options, design and program mean something else.
pub const SCHEMA: u32 = 6;

pub struct Store {
    folder: PathBuf,
}

/// The right to compute a result, as long as it is not dropped.
pub struct Claim {
    /// None where the file system has no locks.
    lock: Option<(File, PathBuf)>,
}

impl Store {
    /// The folder may be missing until something is written.
    pub fn new(folder: &Path) -> Store {
        Store { folder: folder.to_path_buf() }
    }

    /// Makes the folder, so that one that cannot be made is refused before any work.
    pub fn create(&self) -> Result<()> {
        let locks = self.locks();
        fs::create_dir_all(&locks).with_context(|| format!("cannot write folder {}", self.folder.display()))
    }

    /// It has no results.
    pub fn is_empty(&self) -> bool {
        let is_result = |path: &Path| path.extension().is_some_and(|extension| extension == "json");
        let files = |folder: fs::ReadDir| folder.flatten().any(|file| is_result(&file.path()));
        !self.folder.exists() || fs::read_dir(&self.folder).is_ok_and(|folder| !files(folder))
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn locks(&self) -> PathBuf {
        self.folder.join(".locks")
    }

    /// A file that cannot be read is as good as none.
    pub fn read(&self, key: &str) -> Option<Record> {
        let record: Record = serde_json::from_slice(&fs::read(self.path(key)).ok()?).ok()?;
        (record.schema == SCHEMA).then_some(record)
    }

    pub fn write(&self, key: &str, record: &Record) -> Result<()> {
        let mut file = ResultFile::create(&self.path(key))?;
        let mut text = serde_json::to_vec_pretty(record)?;
        text.push(b'\n');
        file.writer().write_all(&text).with_context(|| format!("cannot write {}", self.path(key).display()))?;
        file.finish()
    }

    /// None if another process computes it.
    pub fn claim(&self, key: &str) -> Option<Claim> {
        let path = self.locks().join(key);
        let Ok(file) = File::create(&path) else { return Some(Claim { lock: None }) };
        match file.try_lock() {
            Ok(()) => Some(Claim { lock: Some((file, path)) }),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Error(_)) => Some(Claim { lock: None }),
        }
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder.join(format!("{key}.json"))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.lock {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
pub mod testing {
    use super::*;

    /// A record with these options, draw and result.
    pub fn record(options: &[(&str, &str)], draw: u32, result: Json) -> Record {
        let option = |(key, value): &(&str, &str)| (key.to_string(), Json::from(*value));
        Record {
            schema: SCHEMA,
            command: "heddle run gcd".into(),
            options: options.iter().map(option).collect(),
            draw: Some(draw),
            design: "0".into(),
            ok: true,
            error: None,
            result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::record;
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_is_found_by_its_key_and_half_of_one_is_none() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::new(&place.path().join("a/b"));
        assert_eq!(store.read("k"), None);
        store.create().unwrap();
        let written = record(&[("lanes", "8")], 1, json!({ "cycles": 5 }));
        store.write("k", &written).unwrap();
        assert_eq!(store.read("k"), Some(written.clone()));
        assert_eq!(store.read("l"), None);
        let text = fs::read_to_string(store.path("k")).unwrap();
        fs::write(store.path("k"), &text[..text.len() / 2]).unwrap();
        assert_eq!(store.read("k"), None);
        store.write("k", &Record { schema: SCHEMA + 1, ..written }).unwrap();
        assert_eq!(store.read("k"), None);
    }

    #[test]
    fn a_claim_is_one_s_own_until_it_is_dropped() {
        let place = tempfile::tempdir().unwrap();
        let store = Store::new(place.path());
        store.create().unwrap();
        let claim = store.claim("k").unwrap();
        assert!(store.claim("k").is_none());
        assert!(store.claim("l").is_some());
        drop(claim);
        assert!(store.claim("k").is_some());
        assert_eq!(fs::read_dir(store.locks()).unwrap().count(), 0);
    }
}
