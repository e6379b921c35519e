//! A run of a sweep in a process of its own: this command, with `--json`.

use super::command::Command;
use super::store::Store;
use crate::interrupt::{EXIT, Interrupt};
use anyhow::{Context, Result};
use heddle_testbench::machine::MachineError;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value as Json;
use std::fs::File;
use std::io::{Read, Seek};
use std::process::{self, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::Duration;

const MOMENT: Duration = Duration::from_millis(10);

/// The result, or why there is none. An error is none of the command's. A study keeps runs of its cores where results are,
/// so that one that was ended goes on.
pub fn run(command: Command, words: &[String], store: &Store, interrupt: &Interrupt) -> Result<(Json, Option<String>)> {
    let (mut out, mut err) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let program = std::env::current_exe().context("cannot tell where this command is")?;
    let mut child = process::Command::new(program);
    let child = child.arg(command.name()).args(words).arg("--json").stdin(Stdio::null());
    let child = if command == Command::Study { child.arg("--results").arg(store.folder()) } else { child };
    let mut child =
        child.stdout(out.try_clone()?).stderr(err.try_clone()?).spawn().context("cannot start a command")?;
    let status = wait(&mut child, interrupt)?;
    if interrupt.poll().is_break() || status.code() == Some(EXIT.into()) {
        return Err(MachineError::Interrupted.into());
    }
    let (text, message) = (text(&mut out)?, text(&mut err)?);
    let message = message.trim().strip_prefix("error: ").unwrap_or(message.trim()).to_string();
    let result = serde_json::from_str(&text).map(only);
    Ok(match (status.success(), result) {
        (true, Ok(result)) => (result, None),
        (true, Err(error)) => (Json::Null, Some(format!("no JSON: {error}"))),
        (false, result) => {
            (result.unwrap_or_default(), Some(if message.is_empty() { status.to_string() } else { message }))
        }
    })
}

/// To its end. At Ctrl-C it is ended, too.
fn wait(child: &mut process::Child, interrupt: &Interrupt) -> Result<ExitStatus> {
    let mut told = false;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if !told && interrupt.poll().is_break() {
            told = true;
            let _ = kill_process(Pid::from_child(child), Signal::TERM);
        }
        sleep(MOMENT);
    }
}

fn text(file: &mut File) -> Result<String> {
    let mut text = String::new();
    file.rewind()?;
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// The one element of an array, or what is no array.
fn only(result: Json) -> Json {
    match result {
        Json::Array(mut rows) if rows.len() == 1 => rows.remove(0),
        other => other,
    }
}
