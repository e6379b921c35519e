//! `heddle debug`: the simulated core under gdb.
//!
//! gdb's threads are the core's hardware threads, each with the registers, pc and memory that its instructions have left
//! so far: those of the instruction-set simulator that follows the core, instruction by instruction, as the
//! [commit check](heddle_check::commit) does. So they are exact, whatever is under way in the pipeline; and the core stops
//! if the two differ.
//!
//! | file | what it has |
//! |---|---|
//! | `session.rs` | looks at every cycle: whether to stop there, and what gdb wants then |
//! | `core.rs` | what gdb sees of a core that has stopped |
//! | `line.rs` | the bytes from and to gdb |

mod core;
mod line;
mod session;

use crate::launch::Launch;
use crate::output::tell;
use crate::size::SizeArgs;
use crate::target::{TARGET, Target};
use anyhow::{Context, Result};
use clap::Args;
use heddle_testbench::machine::Machine;
use line::Waiting;
use session::Session;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

/// Run a program on the simulated core under gdb.
///
/// Waits until gdb connects, then runs the launches of the program as `heddle run` does. The hardware threads of the core
/// are gdb's threads, with block, warp and lane beside them; a thread's instruction counts as done when it takes effect on
/// the core. Breakpoints, watchpoints, steps of one thread's instruction, and backwards to any earlier cycle, by running
/// again from the start. `monitor help` in gdb lists what only a SIMT core has, such as `monitor paths`. The core is
/// looked at, not changed: gdb cannot write registers or memory. docs/guide/debug.md has a session.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle debug kernel.c --lanes 4 --warps 2 &
  gdb-multiarch -ex 'target remote localhost:3333'
  heddle debug mine --listen 127.0.0.1:0                   any free port, which it prints
  gdb-multiarch -ex 'set remotetimeout 60' -ex 'target remote | heddle debug gcd --lanes 4 --warps 1 --stdio'
  heddle debug prog.elf --divergence stack --max-cycles 100000")]
pub struct Debug {
    /// A built-in kernel (`heddle kernels` lists them), an RV32IMA ELF file, C and assembly, or a folder with a host
    /// description
    #[arg(value_name = TARGET, required = true)]
    target: Vec<String>,
    #[command(flatten)]
    size: SizeArgs,
    #[command(flatten)]
    launch: Launch,
    /// Where gdb connects; who can reach it can read what this process can give of the core
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:3333")]
    listen: SocketAddr,
    /// Talk to gdb over standard input and output instead
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,
    /// More flags for the compiler
    #[arg(last = true, value_name = "FLAG")]
    flags: Vec<String>,
}

impl Debug {
    pub fn run(self) -> Result<()> {
        let target = self.size.of(Target::built(&self.target, &self.flags)?)?;
        let (target, shape) = self.launch.on_core(target, &self.size)?;
        let waiting = if self.stdio { Waiting::standard() } else { Waiting::at(self.listen, &target.name)? };
        let mut machine = Machine::new(&shape, target.program.clone(), &self.launch.options())
            .with_context(|| target.name.clone())?;
        let session = Rc::new(RefCell::new(Session::new(&shape, &target, waiting)?));
        loop {
            machine.load(target.program.clone())?;
            let directory = machine.simulation().directory().clone();
            let followed = Session::begin(&session, &directory, &target.program)?;
            machine.attach(followed.monitor);
            let result = self.launch.drive(&mut machine, &target, self.launch.shape.seed);
            let mut session = session.borrow_mut();
            session.connected()?;
            if result.is_err() && !session.goes_back() && !session.is_over() {
                session.fails(machine.simulation().engine(), followed.check.borrow().iss());
            }
            if session.goes_back() {
                continue;
            }
            tell(&machine.printed().text());
            if session.is_over() {
                return Ok(());
            }
            session.ended(result.is_ok());
            return result.map(|_| ()).context(target.name);
        }
    }
}
