//! The `heddle` command: one file a subcommand, and what they share. As a library it is the same command with more
//! mechanisms for divergence than the project's own: [`main_with`].
//!
//! Results go to standard output, messages and progress to standard error. Every failure is one line and a non-zero
//! exit: 1 for what was asked, 2 for how it was asked, 130 for Ctrl-C or SIGTERM.

mod bench;
mod board;
mod build;
mod cosim;
mod cover;
mod debug;
mod diff;
mod docs;
mod drawing;
mod engine;
mod folder;
mod r#gen;
mod grid;
mod hash;
mod host;
mod image;
mod interrupt;
mod kernels;
mod launch;
mod limit;
mod mechanisms;
mod mutate;
mod new;
mod outcome;
mod output;
#[cfg(test)]
mod pages;
mod predict;
mod profile;
mod profiler;
mod progress;
mod prove;
mod reconverge;
mod report;
mod run;
mod saves;
mod shape;
mod size;
mod study;
mod sweep;
mod synth;
mod target;
mod timed;
mod timeline;
mod trace;
mod tune;
mod viewers;

use crate::output::tell;
use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use heddle_simt::divergence::Mechanism;
use heddle_testbench::kernels::KernelError;
use heddle_testbench::machine::MachineError;
use std::io;
use std::process::ExitCode;

/// A configurable RISC-V SIMT core, simulated, as Verilog, and proven equal.
#[derive(Parser)]
#[command(name = "heddle", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  heddle run mandelbrot                             a program on the default core, 8 lanes and 8 warps
  heddle run mandelbrot --lanes 32 --warps 4 --json
  heddle new mine && heddle run mine                a kernel of your own: built, run, its results checked
  heddle build kernel.c                             C to a program
  heddle profile nqueens --html nqueens.html        which source lines cost how many cycles, and why
  heddle gen --lanes 16 --warps 4 --out build/      that core as Verilog
  heddle host --port /dev/ttyUSB0 collatz           a program on a board
  heddle cosim mandelbrot                           simulation and Verilog in lock-step
  heddle kernels                                    the built-in programs
  heddle study simtight                             how busy the lanes are, beside published figures
  heddle sweep FILE.toml                            any options as lists, all combinations in parallel
  heddle diff BEFORE.json AFTER.json                what changed between two results, beyond the spread";

#[derive(Subcommand)]
enum Command {
    New(new::New),
    Build(build::Build),
    Run(run::Run),
    Profile(profiler::Profiler),
    Debug(debug::Debug),
    Gen(r#gen::Gen),
    Hash(hash::Hash),
    Synth(synth::Synth),
    Host(host::Host),
    Board(board::BoardArgs),
    Cosim(cosim::Cosim),
    Cover(cover::CoverArgs),
    Kernels(kernels::Kernels),
    Bench(bench::Bench),
    Docs(docs::Docs),
    Prove(prove::Prove),
    Mutate(mutate::Mutate),
    Reconverge(reconverge::Reconverge),
    Predict(predict::Predict),
    Study(study::Study),
    Sweep(sweep::Sweep),
    Diff(diff::Diff),
}

/// The command, with these mechanisms beside the project's own: every option `--divergence` has them, and a host may
/// tell them. Mechanisms must differ in name and in number.
pub fn main_with(mechanisms: &[&'static dyn Mechanism]) -> ExitCode {
    std::panic::set_hook(Box::new(|panic| {
        let message = panic.payload_as_str().unwrap_or("no message").replace('\n', " ");
        let place = panic.location().map_or_else(String::new, |place| format!(" ({place})"));
        tell(&format!("error: a defect of heddle itself: {message}{place}\n"));
    }));
    if let Err(error) = mechanisms::add(mechanisms) {
        tell(&format!("error: {error}\n"));
        return ExitCode::from(2);
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let result = match cli.command {
        Command::New(command) => command.run(),
        Command::Build(command) => command.run(),
        Command::Run(command) => command.run(),
        Command::Profile(command) => command.run(),
        Command::Debug(command) => command.run(),
        Command::Gen(command) => command.run(),
        Command::Hash(command) => command.run(),
        Command::Synth(command) => command.run(),
        Command::Host(command) => command.run(),
        Command::Board(command) => command.run(),
        Command::Cosim(command) => command.run(),
        Command::Cover(command) => command.run(),
        Command::Kernels(command) => command.run(),
        Command::Bench(command) => command.run(),
        Command::Docs(command) => command.run(),
        Command::Prove(command) => command.run(),
        Command::Mutate(command) => command.run(),
        Command::Reconverge(command) => command.run(),
        Command::Predict(command) => command.run(),
        Command::Study(command) => command.run(),
        Command::Sweep(command) => command.run(),
        Command::Diff(command) => command.run(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            let message = format!("{error:#}");
            if is_commit_mismatch(&error) {
                tell(&format!("error: {message}\n"));
            } else {
                tell(&format!("error: {}\n", one_line(&message)));
            }
            interrupt::exit_code(&error)
        }
    }
}

/// Prints help as it is, and errors without the lines on usage that clap adds.
fn usage(error: &clap::Error) -> ExitCode {
    let help = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    if !error.use_stderr() || error.kind() == help {
        let _ = error.print();
        return if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS };
    }
    tell(&format!("error: {}; try --help\n", usage_line(error)));
    ExitCode::from(2)
}

/// What clap says is wrong with arguments, without its lines on usage.
fn usage_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let message: Vec<&str> =
        text.lines().take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more")).collect();
    let line = one_line(&message.join("\n"));
    line.strip_prefix("error: ").map_or(line.clone(), String::from)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the core did otherwise than the instruction-set simulator takes several lines to say.
fn is_commit_mismatch(error: &anyhow::Error) -> bool {
    matches!(device_error(error), Some(MachineError::Commit(_)))
}

/// The error of a machine or model, if that is why a command failed.
fn device_error<E: std::error::Error + Send + Sync + 'static>(error: &anyhow::Error) -> Option<&E> {
    match error.downcast_ref() {
        Some(KernelError::Device(device)) => device.downcast_ref(),
        _ => error.downcast_ref(),
    }
}

/// Whoever reads standard output has seen enough.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let kinds = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>().map(io::Error::kind));
    kinds.into_iter().any(|kind| kind == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn arguments_are_consistent() {
        Cli::command().debug_assert();
    }
}
