//! Programs that this one starts, which end when it is asked to, and folders for their files, which go with it.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::thread::sleep;
use std::time::Duration;

/// How often a wait looks.
pub(crate) const MOMENT: Duration = Duration::from_millis(20);

/// Waits until the child ends, true; or ends it (sby ends what it started, then) because `stop` says so, false. False,
/// too, if `stop` says so when the child has ended: Ctrl-C reaches both.
pub(crate) fn wait(child: &mut Child, stop: &dyn Fn() -> bool) -> io::Result<bool> {
    while child.try_wait()?.is_none() {
        if stop() {
            if let Some(pid) = Pid::from_raw(child.id() as i32) {
                let _ = kill_process(pid, Signal::TERM);
            }
            child.wait()?;
            return Ok(false);
        }
        sleep(MOMENT);
    }
    Ok(!stop())
}

/// A folder that goes away with its owner.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub fn create(path: PathBuf) -> io::Result<Folder> {
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
