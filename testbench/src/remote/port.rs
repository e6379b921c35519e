//! A serial port: what the system calls one, whether there is a cable behind it or a simulation.
//!
//! It is locked as files are (`flock`), so that two of these never share it; a lock that outlives a program that was
//! killed, as the exclusive mode of terminals does, would leave the port busy.

use super::line::{Line, Patience};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::termios::{ControlModes, OptionalActions, QueueSelector, tcflush, tcgetattr, tcsetattr};
use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Why a port cannot be used. One line each.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum PortError {
    #[error("there is no port {path}{}", beside(.others), path = .path.display())]
    Missing { path: PathBuf, others: Vec<PathBuf> },
    #[error("{path} is busy: another program has it open", path = .0.display())]
    Busy(PathBuf),
    #[error(
        "{path}: permission denied; on Debian, serial ports are for users of the group `dialout`",
        path = .0.display()
    )]
    Denied(PathBuf),
    #[error("{path} is no serial port", path = .0.display())]
    NoTerminal(PathBuf),
    #[error("{path} cannot have {baud} baud: {error}", path = .path.display())]
    Baud { path: PathBuf, baud: u32, error: io::Error },
    #[error("cannot open {path}: {error}", path = .path.display())]
    Open { path: PathBuf, error: io::Error },
}

fn beside(ports: &[PathBuf]) -> String {
    let names: Vec<String> = ports.iter().map(|path| path.display().to_string()).collect();
    if names.is_empty() { String::new() } else { format!("; there are {}", names.join(", ")) }
}

/// How long [`Line::send`] waits for a port that takes nothing.
const SEND: Duration = Duration::from_secs(5);

/// A serial port that is open: 8 bits, no parity, one stop bit, no flow control.
#[derive(Debug)]
pub struct Port {
    file: File,
    path: PathBuf,
    opened: Instant,
    came: VecDeque<u8>,
}

impl Port {
    /// Opens a port, and forgets what came before.
    pub fn open(path: &Path, baud: u32) -> Result<Port, PortError> {
        let owned = path.to_path_buf();
        let flags = OFlags::NOCTTY | OFlags::NONBLOCK;
        let file = OpenOptions::new().read(true).write(true).custom_flags(flags.bits() as i32).open(path);
        let file = file.map_err(|error| match (error.kind(), Errno::from_io_error(&error)) {
            (ErrorKind::NotFound, _) | (_, Some(Errno::NXIO | Errno::NODEV)) => {
                PortError::Missing { path: owned.clone(), others: ports() }
            }
            (ErrorKind::PermissionDenied, _) => PortError::Denied(owned.clone()),
            (_, Some(Errno::BUSY)) => PortError::Busy(owned.clone()),
            // A pseudo-terminal whose other end has gone.
            (_, Some(Errno::IO)) => PortError::Missing { path: owned.clone(), others: ports() },
            (ErrorKind::IsADirectory, _) => PortError::NoTerminal(owned.clone()),
            _ => PortError::Open { path: owned.clone(), error },
        })?;
        let mut termios = tcgetattr(&file).map_err(|_| PortError::NoTerminal(owned.clone()))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(PortError::Busy(owned)),
            Err(TryLockError::Error(error)) => return Err(PortError::Open { path: owned, error }),
        }
        termios.make_raw();
        termios.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
        termios.control_modes -= ControlModes::CRTSCTS | ControlModes::CSTOPB;
        termios
            .set_speed(baud)
            .and_then(|()| tcsetattr(&file, OptionalActions::Now, &termios))
            .and_then(|()| tcflush(&file, QueueSelector::IOFlush))
            .map_err(|error| PortError::Baud { path: owned.clone(), baud, error: error.into() })?;
        Ok(Port { file, path: owned, opened: Instant::now(), came: VecDeque::new() })
    }

    /// Waits until the port can be read or written; false if it cannot in time.
    fn ready(&self, what: PollFlags, within: Duration) -> io::Result<bool> {
        let within = Timespec { tv_sec: within.as_secs() as i64, tv_nsec: within.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&self.file, what)], Some(&within)) {
            Err(Errno::INTR) => Ok(false),
            ready => Ok(ready? > 0),
        }
    }

    fn gone(&self) -> io::Error {
        let path = self.path.display();
        io::Error::new(ErrorKind::UnexpectedEof, format!("{path} has gone: unplugged, or its other end was closed"))
    }

    /// What a failed access means.
    fn failed(&self, error: io::Error) -> io::Error {
        match Errno::from_io_error(&error) {
            Some(Errno::IO | Errno::NXIO | Errno::NODEV | Errno::PIPE) => self.gone(),
            _ => error,
        }
    }
}

impl Line for Port {
    fn send(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.file.write(bytes) {
                Ok(0) => return Err(self.gone()),
                Ok(sent) => bytes = &bytes[sent..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if !self.ready(PollFlags::OUT, SEND)? {
                        let path = self.path.display();
                        return Err(io::Error::new(ErrorKind::TimedOut, format!("{path} takes no bytes")));
                    }
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
        Ok(())
    }

    fn receive(&mut self, within: Duration) -> io::Result<Option<u8>> {
        let begun = Instant::now();
        loop {
            if let Some(byte) = self.came.pop_front() {
                return Ok(Some(byte));
            }
            let mut buffer = [0; 4096];
            match self.file.read(&mut buffer) {
                Ok(0) => return Err(self.gone()),
                Ok(count) => self.came.extend(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let left = within.saturating_sub(begun.elapsed());
                    if left.is_zero() {
                        return Ok(None);
                    }
                    self.ready(PollFlags::IN, left)?;
                }
                Err(error) => return Err(self.failed(error)),
            }
        }
    }

    fn now(&mut self) -> Duration {
        self.opened.elapsed()
    }
}

/// How long to wait for answers over such a port at this rate.
pub fn patience(baud: u32, reply: Duration, launch: Duration) -> Patience {
    Patience {
        reply,
        byte: Duration::from_secs(10) / baud,
        // Adapters for USB keep bytes for up to 16 ms.
        quiet: Duration::from_millis(50),
        attempts: 4,
        launch,
        poll: Duration::from_millis(20),
    }
}

/// The serial ports of USB that are there.
fn ports() -> Vec<PathBuf> {
    let names = |entry: &fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap_or_default();
        ["ttyUSB", "ttyACM", "cu.usb"].iter().any(|prefix| name.starts_with(prefix))
    };
    let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.filter(names).map(|entry| entry.path()).collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::remote::terminal::Terminal;

    const SOON: Duration = Duration::from_millis(500);

    /// All 256 bytes pass both ways as they are, and nothing comes back.
    #[test]
    fn bytes_pass_as_they_are() {
        let terminal = Terminal::new().unwrap();
        let mut port = Port::open(terminal.path(), 115_200).unwrap();
        let all: Vec<u8> = (0..=255).collect();
        port.send(&all).unwrap();
        let mut got = Vec::new();
        while got.len() < all.len() && terminal.wait(SOON).unwrap() {
            got.extend(terminal.take().unwrap());
        }
        assert_eq!(got, all);
        assert_eq!(port.receive(Duration::ZERO).unwrap(), None);
        terminal.put(&all).unwrap();
        let back: Vec<u8> = std::iter::from_fn(|| port.receive(SOON).unwrap()).take(all.len()).collect();
        assert_eq!(back, all);
    }

    #[test]
    fn ports_that_cannot_be_used() {
        let error = |path: &Path| Port::open(path, 115_200).unwrap_err().to_string();
        assert!(error(Path::new("/dev/none")).starts_with("there is no port /dev/none"));
        assert_eq!(error(Path::new("/dev/null")), "/dev/null is no serial port");
        assert_eq!(error(Path::new("/dev")), "/dev is no serial port");
        let terminal = Terminal::new().unwrap();
        let first = Port::open(terminal.path(), 115_200).unwrap();
        assert!(error(terminal.path()).ends_with(" is busy: another program has it open"));
        drop(first);
        let mut next = Port::open(terminal.path(), 115_200).unwrap();
        let path = terminal.path().to_path_buf();
        drop(terminal);
        let gone = format!("{} has gone: unplugged, or its other end was closed", path.display());
        assert_eq!(next.receive(SOON).unwrap_err().to_string(), gone);
        assert_eq!(next.send(&[1]).unwrap_err().to_string(), gone);
        drop(next);
        // Another program may have a terminal of that number by then.
        let again = Port::open(&path, 115_200);
        assert!(again.is_err_and(|error| error.to_string().starts_with("there is no port ")) || path.exists());
    }
}
