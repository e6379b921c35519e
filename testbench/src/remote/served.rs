//! A simulated board behind a pseudo-terminal.

use super::line::Line;
use super::simulated::Pins;
use super::terminal::Terminal;
use std::io;
use std::time::Duration;

/// Cycles between two looks at the terminal, while something is on the line and while nothing is.
const ON_LINE: u64 = 64;
const QUIET: u64 = 4096;

/// How long to wait for a byte where nothing happens before one, between two looks at `stop`.
const MOMENT: Duration = Duration::from_millis(50);

/// Carries bytes between the terminal and the pins until `stop`. While the core has nothing to do, no time passes for
/// it.
pub fn serve(pins: &mut Pins, terminal: &Terminal, stop: &dyn Fn() -> bool) -> io::Result<()> {
    while !stop() {
        let came = terminal.take()?;
        pins.send(&came)?;
        match () {
            () if !pins.is_quiet() => (0..ON_LINE).try_for_each(|_| pins.cycle())?,
            () if pins.is_running() => pins.pass(QUIET)?,
            () => {
                terminal.wait(MOMENT)?;
            }
        }
        let sent: Vec<u8> = pins.take().collect();
        terminal.put(&sent)?;
    }
    Ok(())
}
