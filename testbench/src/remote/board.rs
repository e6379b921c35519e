//! A core behind a host as a device: loads a program, launches it, says how it went.

use super::client::{Client, ClientError};
use super::line::{Line, Patience};
use super::reply::{Failed, Status, StoppedBy};
use crate::StackOverflow;
use crate::grid::Grid;
use crate::kernels::{Device, DeviceError};
use crate::printed::Printed;
use crate::program::{Program, ProgramError, from_bytes};
use crate::reconverge::{self, ReconvergeError};
use crate::summary::{Counted, Summary};
use heddle_hdl::Bits;
use heddle_simt::host::protocol::crc32;
use heddle_simt::isa::FaultCause;
use heddle_simt::{LaneMask, Metrics, Shape, ShapeError};
use std::time::Duration;
use thiserror::Error;

/// Why a board cannot be used, or a launch failed. One line each.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum BoardError {
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Shape(#[from] ShapeError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("{0}")]
    Reconverge(#[from] ReconvergeError),
    #[error(
        "memory from {address:#010x} on does not hold what was written: its checksum is {got:#010x}, not {wanted:#010x}"
    )]
    Checksum { address: u32, got: u32, wanted: u32 },
    #[error("{what} at {pc:#010x}{} in warp {slot}, lanes {}{}", at(.symbol), Bits::from(.mask.as_bitslice()), access(.address, .overflow))]
    Fault {
        what: &'static str,
        pc: u32,
        symbol: Option<String>,
        slot: u32,
        mask: LaneMask,
        address: Option<u32>,
        overflow: Option<StackOverflow>,
    },
    #[error("bus error: the memory on the bus refused the access to {address:#010x}")]
    Bus { address: u32 },
    #[error("exit code not 0: hardware thread {thread} (warp {warp}, lane {lane}) with {code}{}", more(*.count))]
    ExitCode { thread: u32, warp: u32, lane: u32, code: i32, count: u64 },
    #[error("the program did not end in {0:?}; the core was reset")]
    Endless(Duration),
    #[error("the launch neither runs nor has ended: was the core reset?")]
    Vanished,
    #[error("{start:#010x}..{end:#010x} is outside memory of {memory} bytes")]
    OutsideMemory { start: u32, end: u64, memory: u32 },
}

fn at(symbol: &Option<String>) -> String {
    symbol.as_ref().map_or_else(String::new, |s| format!(" ({s})"))
}

fn access(address: &Option<u32>, overflow: &Option<StackOverflow>) -> String {
    let overflow = overflow.map_or_else(String::new, |overflow| overflow.to_string());
    address.map_or_else(String::new, |a| format!(": address {a:#010x}{overflow}"))
}

fn more(count: u64) -> String {
    if count > 1 { format!(" and {} more", count - 1) } else { String::new() }
}

/// A core behind a host, with a program loaded.
pub struct Board<L> {
    client: Client<L>,
    shape: Shape,
    patience: Patience,
    program: Program,
    cycles: u64,
    launches: u32,
    /// What the core counts, if it tells.
    counted: Option<Counted>,
    printed: Printed,
}

impl<L: Line> Board<L> {
    /// Loads a program into a core of this shape, which is reset.
    pub fn new(line: L, patience: Patience, shape: &Shape, program: Program) -> Result<Board<L>, BoardError> {
        program.check(shape)?;
        Board::over(Client::connect(line, patience, shape)?, patience, shape, program)
    }

    /// The same of a client that has met the core, which is of this shape as far as a program can tell.
    pub fn over(
        client: Client<L>,
        patience: Patience,
        shape: &Shape,
        program: Program,
    ) -> Result<Board<L>, BoardError> {
        program.check(shape)?;
        let shape = shape.clone();
        let mut board = Board {
            client,
            shape,
            patience,
            program,
            cycles: 0,
            launches: 0,
            counted: None,
            printed: Printed::default(),
        };
        board.reload()?;
        Ok(board)
    }

    /// Starts over with another program.
    pub fn load(&mut self, program: Program) -> Result<(), BoardError> {
        program.check(&self.shape)?;
        self.program = program;
        self.reload()
    }

    /// What threads printed since the program was loaded.
    pub fn printed(&self) -> &Printed {
        &self.printed
    }

    /// Waits so long from now on.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
        self.client.set_patience(patience);
    }

    /// Memory is the program's, and zeros; then the side table.
    fn reload(&mut self) -> Result<(), BoardError> {
        (self.cycles, self.launches) = (0, 0);
        self.printed = Printed::default();
        self.counted = (self.shape.metrics == Metrics::Built).then(Counted::default);
        self.client.reset()?;
        let on_bus = self.shape.bus_width().is_some();
        let filled = if on_bus { self.shape.program } else { self.shape.memory };
        self.client.fill(0, filled / 4, 0)?;
        let image = self.program.memory_image(&self.shape)?;
        // Memory on a bus is filled by who has it; instructions are the host's.
        let segments = self.program.segments().iter().filter(|segment| !on_bus || !segment.writable);
        for segment in segments.filter(|segment| !segment.data.is_empty()) {
            let start = segment.address & !3;
            let end = (segment.address + segment.data.len() as u32).next_multiple_of(4);
            let bytes = &image[start as usize..end as usize];
            let words = from_bytes(bytes);
            self.client.write(start, &words)?;
            if !on_bus {
                let (got, wanted) = (self.client.checksum(start, words.len() as u32)?, crc32(bytes.iter().copied()));
                if got != wanted {
                    return Err(BoardError::Checksum { address: start, got, wanted });
                }
            }
        }
        if self.shape.divergence.capabilities().reconverges {
            let entries = reconverge::analyse(&self.program)?.side_image(&self.shape);
            let entries: Vec<u64> = entries.iter().map(|entry| entry.low_u64()).collect();
            self.client.write_side_table(0, &entries)?;
        }
        Ok(())
    }

    /// Cycles of all launches of the program, by the host's counter.
    pub fn cycles(&self) -> u64 {
        self.cycles
    }

    /// Launches of the program that have begun.
    pub fn launches(&self) -> u32 {
        self.launches
    }

    /// What the core did in all launches of the program that have ended, if it is [built](Metrics::Built) with
    /// counters.
    pub fn summary(&self) -> Option<Summary> {
        self.counted.map(|counted| counted.summary)
    }

    /// The client.
    pub fn client(&mut self) -> &mut Client<L> {
        &mut self.client
    }

    /// Runs a launch to its end.
    fn run(&mut self, grid: Grid) -> Result<(), BoardError> {
        self.client.launch(self.program.entry(), grid.threads, grid.blocks, self.program.program_end())?;
        self.launches += 1;
        let begun = self.client.line().now();
        loop {
            let status = self.client.status()?;
            if !status.running {
                self.cycles += status.cycles;
                if let Some(counted) = &mut self.counted {
                    counted.add(&self.shape, grid, status.cycles, &self.client.counts()?);
                }
                return self.ended(&status);
            }
            if self.client.line().now() - begun >= self.patience.launch {
                self.client.reset()?;
                return Err(BoardError::Endless(self.patience.launch));
            }
            // Nothing should come.
            self.client.line().receive(self.patience.poll).map_err(ClientError::from)?;
        }
    }

    fn ended(&mut self, status: &Status) -> Result<(), BoardError> {
        if let Some(StoppedBy { cause, slot, pc, mask, address }) = status.fault.clone() {
            // Memory can be read after a reset only.
            self.client.reset()?;
            return Err(match cause {
                Some(FaultCause::BusError) => BoardError::Bus { address },
                _ => BoardError::Fault {
                    what: FaultCause::describe_told(cause),
                    pc,
                    symbol: self.program.nearest_symbol(pc),
                    slot,
                    mask,
                    address: cause.is_none_or(FaultCause::has_address).then_some(address),
                    overflow: StackOverflow::of(&self.shape, cause, address),
                },
            });
        }
        if !status.done {
            return Err(BoardError::Vanished);
        }
        match status.failed {
            None => Ok(()),
            Some(Failed { count, thread, code }) => {
                let (warp, lane) = (thread / self.shape.lanes, thread % self.shape.lanes);
                Err(BoardError::ExitCode { thread, warp, lane, code: code as i32, count })
            }
        }
    }

    /// The words that hold a range of bytes, by the first's address and their number.
    fn words(&self, address: u32, length: usize) -> Result<(u32, u32), BoardError> {
        let end = u64::from(address) + length as u64;
        if end > u64::from(self.shape.memory) {
            return Err(BoardError::OutsideMemory { start: address, end, memory: self.shape.memory });
        }
        let start = address & !3;
        Ok((start, (end as u32).div_ceil(4) - start / 4))
    }
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

impl<L: Line> Device for Board<L> {
    fn program(&self) -> &Program {
        &self.program
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn write(&mut self, address: u32, data: &[u8]) -> Result<(), DeviceError> {
        let (start, count) = self.words(address, data.len())?;
        if count == 0 {
            return Ok(());
        }
        let before = (address - start) as usize;
        let mut whole = vec![0; 4 * count as usize];
        // Of words at the ends that are written in part, the rest stays.
        for at in [0, count - 1] {
            let (first, end) = (4 * at as usize, 4 * at as usize + 4);
            if first < before || end > before + data.len() {
                whole[first..end].copy_from_slice(&bytes(&self.client.read(start + 4 * at, 1)?));
            }
        }
        whole[before..before + data.len()].copy_from_slice(data);
        let words = from_bytes(&whole);
        Ok(self.client.write(start, &words)?)
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        let (start, count) = self.words(address, length)?;
        let before = (address - start) as usize;
        let read = bytes(&self.client.read(start, count)?);
        Ok(read[before..before + length].to_vec())
    }

    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        grid.check(&self.shape, self.program.scratchpad())?;
        let result = self.run(grid);
        let printed = Printed::taken(self).map(|printed| self.printed.add(printed));
        result?;
        printed
    }
}
