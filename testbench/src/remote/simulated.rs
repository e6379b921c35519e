//! Lines to a simulated host. Time is the simulation's: a millisecond is as many cycles as the clock has in it.

use super::line::Line;
use heddle_sim::engine::Why;
use heddle_sim::simulation::{Simulation, SimulationError};
use std::collections::VecDeque;
use std::io;
use std::time::Duration;

/// Cycles that a host may take for a byte before the line counts as broken; a checksum of the largest memory takes half
/// of it.
const MOST_CYCLES: u64 = 1 << 31;

fn broken(error: SimulationError) -> io::Error {
    io::Error::other(error.to_string())
}

fn cycles(time: Duration, clock_khz: u32) -> u64 {
    (time.as_nanos() * u128::from(clock_khz) / 1_000_000).max(1) as u64
}

fn time(simulation: &mut Simulation, clock_khz: u32) -> Duration {
    Duration::from_nanos((u128::from(simulation.engine().cycle()) * 1_000_000 / u128::from(clock_khz)) as u64)
}

/// The numbers of inputs, outputs and registers.
fn places<const N: usize>(names: [&str; N], find: impl Fn(&str) -> Option<usize>) -> [usize; N] {
    names.map(|name| find(name).unwrap_or_else(|| panic!("a hosted system has `{name}`")))
}

/// A line to the streams of [`heddle_simt::hosted::hosted`].
pub struct Streams {
    simulation: Simulation,
    clock_khz: u32,
    rx: [usize; 2],
    rx_ready: usize,
    tx: [usize; 2],
    tx_ready: usize,
    /// Bytes that came while others were sent.
    came: VecDeque<u8>,
}

impl Streams {
    /// Over a simulation that is at its start.
    pub fn new(mut simulation: Simulation, clock_khz: u32) -> Result<Streams, SimulationError> {
        simulation.reset()?;
        let directory = simulation.directory().clone();
        let [rx_valid, rx_data, tx_ready] =
            places(["rx_valid", "rx_data", "tx_ready"], |name| directory.inputs.find(name));
        let [rx_ready, tx_valid, tx_data] =
            places(["rx_ready", "tx_valid", "tx_data"], |name| directory.outputs.find(name));
        let (rx, tx) = ([rx_valid, rx_data], [tx_valid, tx_data]);
        Ok(Streams { simulation, clock_khz, rx, rx_ready, tx, tx_ready, came: VecDeque::new() })
    }

    /// The simulation.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    /// Takes the byte that is offered, if there is one.
    fn take(&mut self) -> Result<Option<u8>, SimulationError> {
        let engine = self.simulation.engine();
        engine.settle();
        if engine.peek_u64(self.tx[0]) == 0 {
            return Ok(None);
        }
        let byte = engine.peek_u64(self.tx[1]) as u8;
        engine.poke_u64(self.tx_ready, 1);
        self.simulation.step()?;
        self.simulation.engine().poke_u64(self.tx_ready, 0);
        Ok(Some(byte))
    }
}

impl Line for Streams {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        for &byte in bytes {
            let mut cycles = 0;
            loop {
                let engine = self.simulation.engine();
                engine.poke_u64(self.rx[0], 1);
                engine.poke_u64(self.rx[1], byte.into());
                let end = self.simulation.run(16, Some(self.rx_ready)).map_err(broken)?;
                self.simulation.engine().poke_u64(self.rx[0], 0);
                if end.why == Why::Stop {
                    break;
                }
                // It does not take a byte while it has one to give.
                let came = self.take().map_err(broken)?;
                self.came.extend(came);
                cycles += end.cycles;
                if cycles > MOST_CYCLES {
                    return Err(io::Error::new(io::ErrorKind::TimedOut, "the host takes no byte"));
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, within: Duration) -> io::Result<Option<u8>> {
        if let Some(byte) = self.came.pop_front() {
            return Ok(Some(byte));
        }
        self.simulation.run(cycles(within, self.clock_khz), Some(self.tx[0])).map_err(broken)?;
        self.take().map_err(broken)
    }

    fn now(&mut self) -> Duration {
        time(&mut self.simulation, self.clock_khz)
    }
}

/// A line to the pins of [`heddle_simt::hosted::over_uart`]: what a serial port does, in software.
pub struct Pins {
    simulation: Simulation,
    clock_khz: u32,
    divisor: u32,
    rx: usize,
    tx: usize,
    /// Of the byte that comes: cycles until the middle of its next bit, and the bits so far; None while the line is
    /// idle.
    coming: Option<(u32, Vec<bool>)>,
    came: VecDeque<u8>,
    /// The register that says whether a launch is under way.
    running: usize,
    /// Registers that are 0 while host and UART wait for a frame: the host's state, bits to send and to receive, a byte
    /// that waits.
    at_work: [usize; 4],
}

impl Pins {
    /// Over a simulation that is at its start.
    pub fn new(mut simulation: Simulation, clock_khz: u32, divisor: u32) -> Result<Pins, SimulationError> {
        let directory = simulation.directory().clone();
        let [rx] = places(["rx"], |name| directory.inputs.find(name));
        let [tx] = places(["tx"], |name| directory.outputs.find(name));
        let [running] = places(["system.host_unit.running"], |name| directory.registers.find(name));
        let at_work = ["system.host_unit.state", "uart.tx_left", "uart.rx_left", "uart.rx_waits"];
        let at_work = places(at_work, |name| directory.registers.find(name));
        simulation.engine().poke_u64(rx, 1);
        simulation.reset()?;
        Ok(Pins { simulation, clock_khz, divisor, rx, tx, coming: None, came: VecDeque::new(), running, at_work })
    }

    /// The simulation.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }

    /// Whether nothing is on the line, nor will be before something is sent.
    pub fn is_quiet(&mut self) -> bool {
        let engine = self.simulation.engine();
        self.coming.is_none() && self.at_work.iter().all(|&register| engine.register(register).is_zero())
    }

    /// Whether a launch is under way.
    pub fn is_running(&mut self) -> bool {
        !self.simulation.engine().register(self.running).is_zero()
    }

    /// Lets so many cycles pass while the line [is quiet](Pins::is_quiet).
    pub fn pass(&mut self, cycles: u64) -> io::Result<()> {
        self.simulation.run(cycles, None).map(drop).map_err(broken)
    }

    /// What has come without being asked for.
    pub fn take(&mut self) -> impl Iterator<Item = u8> {
        self.came.drain(..)
    }

    /// A cycle, with a look at the pin: each bit is what it is in its middle.
    pub fn cycle(&mut self) -> io::Result<()> {
        let engine = self.simulation.engine();
        engine.settle();
        let level = engine.peek_u64(self.tx) == 1;
        match &mut self.coming {
            None if !level => self.coming = Some((self.divisor / 2, Vec::new())),
            None => {}
            Some((0, bits)) => {
                bits.push(level);
                // Start, eight bits, stop.
                if bits.len() == 10 {
                    let byte = bits[1..9].iter().rev().fold(0, |byte, &bit| byte << 1 | u8::from(bit));
                    self.came.extend((!bits[0] && bits[9]).then_some(byte));
                    self.coming = None;
                } else {
                    self.coming = Some((self.divisor - 1, std::mem::take(bits)));
                }
            }
            Some((wait, _)) => *wait -= 1,
        }
        self.simulation.step().map_err(broken)
    }
}

impl Line for Pins {
    fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        for byte in bytes {
            let bits = std::iter::once(false).chain((0..8).map(|k| byte >> k & 1 == 1)).chain([true]);
            for level in bits {
                self.simulation.engine().poke_u64(self.rx, level.into());
                for _ in 0..self.divisor {
                    self.cycle()?;
                }
            }
        }
        Ok(())
    }

    fn receive(&mut self, within: Duration) -> io::Result<Option<u8>> {
        // A byte that begins in time has come a byte's time later.
        let most = cycles(within, self.clock_khz) + 10 * u64::from(self.divisor);
        for _ in 0..most {
            if let Some(byte) = self.came.pop_front() {
                return Ok(Some(byte));
            }
            self.cycle()?;
        }
        Ok(self.came.pop_front())
    }

    fn now(&mut self) -> Duration {
        time(&mut self.simulation, self.clock_khz)
    }
}
