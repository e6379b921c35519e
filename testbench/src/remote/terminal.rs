//! A pseudo-terminal: its other end looks like a serial port, so a program that opens one can be given a simulation.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// This end of it.
#[derive(Debug)]
pub struct Terminal {
    ours: File,
    path: PathBuf,
    /// While this is open, nothing is lost when somebody closes the other end, and the next one can open it.
    _theirs: File,
}

impl Terminal {
    /// A new one, on which bytes pass as they are.
    pub fn new() -> io::Result<Terminal> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let path = PathBuf::from(std::ffi::OsString::from_vec(ptsname(&ours, Vec::new())?.into_bytes()));
        let flags = OFlags::NOCTTY.bits() as i32;
        let theirs = OpenOptions::new().read(true).write(true).custom_flags(flags).open(&path)?;
        let mut termios = tcgetattr(&theirs)?;
        termios.make_raw();
        tcsetattr(&theirs, OptionalActions::Now, &termios)?;
        fcntl_setfl(&ours, fcntl_getfl(&ours)? | OFlags::NONBLOCK)?;
        Ok(Terminal { ours: ours.into(), path, _theirs: theirs })
    }

    /// The other end.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until something has come; false if nothing does in time.
    pub fn wait(&self, within: Duration) -> io::Result<bool> {
        let within = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: within.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.ours, PollFlags::IN)], Some(&within)) {
            Err(Errno::INTR) => Ok(false),
            ready => Ok(ready? > 0),
        }
    }

    /// What has come.
    pub fn take(&self) -> io::Result<Vec<u8>> {
        let mut buffer = vec![0; 4096];
        match (&self.ours).read(&mut buffer) {
            Ok(count) => {
                buffer.truncate(count);
                Ok(buffer)
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    /// Sends bytes; those for which there is no room are lost, as on a line to which nobody listens.
    pub fn put(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match (&self.ours).write(bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
