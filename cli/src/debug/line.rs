//! The bytes from and to gdb: a connection of TCP, or standard input and output.

use anyhow::{Context, Result};
use gdbstub::conn::{Connection, ConnectionExt};
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

/// Where gdb connects.
pub struct Listener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Listener {
    pub fn bind(address: SocketAddr) -> Result<Listener> {
        let listener = TcpListener::bind(address).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => {
                anyhow::anyhow!("the port is in use: choose another, or 0 for any that is free")
            }
            _ => error.into(),
        });
        let listener = listener.with_context(|| format!("--listen {address}"))?;
        let address = listener.local_addr().with_context(|| format!("--listen {address}"))?;
        Ok(Listener { listener, address })
    }

    /// With the port that was free, if any would do.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Waits for gdb; nobody else can connect then.
    pub fn accept(self) -> Result<Line> {
        let (stream, _) = self.listener.accept().context("gdb cannot connect")?;
        stream.set_nodelay(true).context("gdb cannot connect")?;
        let from = stream.try_clone().context("gdb cannot connect")?;
        Ok(Line::new(from, Box::new(stream)))
    }
}

/// The bytes.
pub struct Line {
    from: Receiver<u8>,
    peeked: Option<u8>,
    to: BufWriter<Box<dyn Write>>,
}

impl Line {
    pub fn standard() -> Line {
        Line::new(io::stdin(), Box::new(io::stdout()))
    }

    /// A thread reads: so that who simulates can ask whether anything came.
    fn new(from: impl Read + Send + 'static, to: Box<dyn Write>) -> Line {
        let (send, receive) = channel();
        thread::spawn(move || {
            let bytes = BufReader::new(from).bytes();
            bytes.map_while(io::Result::ok).try_for_each(|byte| send.send(byte))
        });
        Line { from: receive, peeked: None, to: BufWriter::new(to) }
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
        self.peeked.take().map_or_else(|| self.from.recv().map_err(|_| closed()), Ok)
    }

    fn peek(&mut self) -> io::Result<Option<u8>> {
        if self.peeked.is_none() {
            self.peeked = match self.from.try_recv() {
                Ok(byte) => Some(byte),
                Err(TryRecvError::Empty) => None,
                Err(TryRecvError::Disconnected) => return Err(closed()),
            };
        }
        Ok(self.peeked)
    }
}
