//! The bytes from and to gdb: a connection of TCP, or standard input and output.

use crate::output::tell;
use anyhow::{Context, Result};
use gdbstub::conn::{Connection, ConnectionExt};
use std::collections::VecDeque;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

/// Where gdb will be.
pub enum Waiting {
    /// It connects.
    Port { listener: TcpListener, what: String },
    /// It is there.
    Standard(Line),
}

impl Waiting {
    /// Takes a port, so that it is refused before a core is built. `what` waits for gdb.
    pub fn at(address: SocketAddr, what: &str) -> Result<Waiting> {
        let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                anyhow::anyhow!("the port is in use: choose another, or 0 for any that is free")
            }
            io::ErrorKind::AddrNotAvailable => anyhow::anyhow!("this machine has no such address"),
            io::ErrorKind::PermissionDenied => anyhow::anyhow!("not permitted: choose a port from 1024 on"),
            _ => error.into(),
        });
        Ok(Waiting::Port { listener: listener.with_context(|| format!("--listen {address}"))?, what: what.into() })
    }

    pub fn standard() -> Waiting {
        Waiting::Standard(Line::new(io::stdin(), Box::new(io::stdout())))
    }

    /// Waits for gdb; nobody else can connect then.
    pub fn connected(self) -> Result<Line> {
        let cannot = "gdb cannot connect";
        match self {
            Waiting::Port { listener, what } => {
                tell(&format!("{what} waits for gdb: target remote {}\n", listener.local_addr().context(cannot)?));
                let (stream, _) = listener.accept().context(cannot)?;
                stream.set_nodelay(true).context(cannot)?;
                let from = stream.try_clone().context(cannot)?;
                Ok(Line::new(from, Box::new(stream)))
            }
            Waiting::Standard(mut line) => {
                line.drop_repeated();
                Ok(line)
            }
        }
    }
}

/// The bytes.
pub struct Line {
    from: Receiver<u8>,
    /// Came, and is still to be read.
    ahead: VecDeque<u8>,
    to: BufWriter<Box<dyn Write>>,
}

impl Line {
    /// A thread reads: so that who simulates can ask whether anything came.
    fn new(from: impl Read + Send + 'static, to: Box<dyn Write>) -> Line {
        let (send, receive) = channel();
        thread::spawn(move || {
            let bytes = BufReader::new(from).bytes();
            bytes.map_while(io::Result::ok).try_for_each(|byte| send.send(byte))
        });
        Line { from: receive, ahead: VecDeque::new(), to: BufWriter::new(to) }
    }

    /// Of what came while nobody answered, leaves the last packet: gdb has sent the first again.
    fn drop_repeated(&mut self) {
        self.ahead.extend(self.from.try_iter());
        if let Some(last) = self.ahead.iter().rposition(|byte| *byte == b'$') {
            self.ahead.drain(..last);
        }
    }
}

/// gdb has closed it.
fn closed() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

impl Connection for Line {
    type Error = io::Error;

    fn write(&mut self, byte: u8) -> io::Result<()> {
        self.to.write_all(&[byte])
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

impl ConnectionExt for Line {
    fn read(&mut self) -> io::Result<u8> {
        self.ahead.pop_front().map_or_else(|| self.from.recv().map_err(|_| closed()), Ok)
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.ahead.is_empty() {
            match self.from.try_recv() {
                Ok(byte) => self.ahead.push_back(byte),
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => return Err(closed()),
            }
        }
        Ok(self.ahead.front().copied())
    }
}
