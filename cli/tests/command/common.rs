//! Runs the built command in an empty folder of its own.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

pub struct Place {
    folder: TempDir,
    shared_cache: bool,
    program: PathBuf,
}

impl Place {
    pub fn new() -> Place {
        let program = env!("CARGO_BIN_EXE_heddle").into();
        Place { folder: tempfile::tempdir().unwrap(), shared_cache: false, program }
    }

    /// Its commands are of another program.
    pub fn running(self, program: PathBuf) -> Place {
        Place { program, ..self }
    }

    /// Its commands keep models where tests of other crates do, so that Verilator's runtime is compiled once for all.
    pub fn with_shared_cache() -> Place {
        Place { shared_cache: true, ..Place::new() }
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    pub fn file(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path().join(name), bytes).unwrap();
    }

    pub fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let mut names: Vec<String> = entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.current_dir(self.path()).args(arguments.split_whitespace());
        if !self.shared_cache {
            command.env("HEDDLE_CACHE", concat!(env!("CARGO_TARGET_TMPDIR"), "/models"));
        }
        command
    }

    /// A command that may have so many kilobytes of address space.
    pub fn limited(&self, kilobytes: u64, arguments: &[OsString]) -> Command {
        let mut command = Command::new("sh");
        let limited = format!("ulimit -v {kilobytes} && exec \"$0\" \"$@\"");
        command.args(["-c", &limited, env!("CARGO_BIN_EXE_heddle")]).args(arguments).current_dir(self.path());
        command
    }

    pub fn run(&self, arguments: &str) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Standard output of a run that succeeds and says nothing on standard error.
    #[track_caller]
    pub fn good(&self, arguments: &str) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{arguments}: {error}");
        assert_eq!(error, "", "{arguments}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The message of a run that fails: one line, nothing on standard output, nothing new in the folder.
    #[track_caller]
    pub fn bad(&self, arguments: &str) -> String {
        self.bad_command(&mut self.command(arguments))
    }

    #[track_caller]
    pub fn bad_command(&self, command: &mut Command) -> String {
        let before = self.names();
        let output = command.output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(matches!(output.status.code(), Some(1 | 2)), "{command:?}: {}: {error}", output.status);
        assert_eq!(error.lines().count(), 1, "{command:?}: {error}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), "", "{command:?}");
        assert_eq!(self.names(), before, "{command:?} left files");
        error.strip_prefix("error: ").expect("messages begin with `error: `").trim_end().to_string()
    }
}

/// Offsets of fields in the file that [`elf`] makes.
pub mod field {
    pub const CLASS: usize = 4;
    pub const TYPE: usize = 16;
    pub const MACHINE: usize = 18;
    pub const ENTRY: usize = 24;
    pub const SEGMENT_FLAGS: usize = 52 + 24;
    pub const SEGMENT_ADDRESS: usize = 52 + 8;
    pub const SEGMENT_SIZE: usize = 52 + 20;
}

/// An ELF file with one read-only, executable segment at address 4, where it starts.
pub fn elf(code: &[u32]) -> Vec<u8> {
    let bytes = 4 * code.len() as u32;
    let mut file = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    let mut half = |value: u16| file.extend(value.to_le_bytes());
    half(2); // a linked executable
    half(243); // RISC-V
    let mut word = |value: u32| file.extend(value.to_le_bytes());
    word(1); // version
    word(4); // entry
    word(52); // program headers follow this header
    word(0); // no sections
    word(0); // flags
    let mut half = |value: u16| file.extend(value.to_le_bytes());
    for size in [52, 32, 1, 40, 0, 0] {
        half(size);
    }
    let mut word = |value: u32| file.extend(value.to_le_bytes());
    for value in [1, 84, 4, 4, bytes, bytes, 5, 4] {
        word(value); // load, offset, addresses, sizes, read and execute, alignment
    }
    code.iter().for_each(|instruction| word(*instruction));
    file
}

/// `file` with a half word replaced.
pub fn patched(mut file: Vec<u8>, at: usize, value: u16) -> Vec<u8> {
    file[at..at + 2].copy_from_slice(&value.to_le_bytes());
    file
}

/// `file` with a word replaced.
pub fn patched_word(mut file: Vec<u8>, at: usize, value: u32) -> Vec<u8> {
    file[at..at + 4].copy_from_slice(&value.to_le_bytes());
    file
}

pub const LOOP: u32 = 0x0000_006f;
pub const ECALL: u32 = 0x0000_0073;
pub const EBREAK: u32 = 0x0010_0073;

/// `addi rd, x0, value`.
pub const fn li(rd: u32, value: u32) -> u32 {
    value << 20 | rd << 7 | 0x13
}

/// `csrr rd, mhartid`.
pub const fn thread_number(rd: u32) -> u32 {
    0xf14 << 20 | 2 << 12 | rd << 7 | 0x73
}

/// Registers of the exit convention.
pub const A0: u32 = 10;
pub const A7: u32 = 17;

/// Ends a command whose tool has written its own number into the file `process`, and then waits for ever: that tool is
/// gone, too.
pub fn interrupted(mut child: Child, process: &Path, tool: &str, ends: fn(&Child)) -> Output {
    while !process.exists() {
        assert_eq!(child.try_wait().unwrap(), None, "it ended before it began");
        sleep(Duration::from_millis(10));
    }
    ends(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "error: interrupted\n");
    let process = fs::read_to_string(process).unwrap();
    assert!(!Path::new("/proc").join(process.trim()).exists(), "{tool} runs on");
    output
}

/// A program that never ends and counts, so that it is not known to: `addi x5, x5, 1`, and a jump back to it.
pub fn endless() -> Vec<u8> {
    elf(&[0x0012_8293, 0xffdf_f06f])
}

/// What Ctrl-C sends.
pub fn interrupt(child: &Child) {
    let kill = format!("kill -INT {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// What `kill` sends.
pub fn terminate(child: &Child) {
    let kill = format!("kill -TERM {}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// What Ctrl-C at a terminal sends, to a child that leads a process group and to its own children.
pub fn interrupt_group(child: &Child) {
    let kill = format!("kill -INT -{}", child.id());
    assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
}

/// Whether the examples in a subcommand's help name what is there: with `--list` each succeeds.
#[track_caller]
pub fn examples(place: &Place, subcommand: &str) {
    let help = place.good(&format!("{subcommand} --help"));
    let lines = help.lines().filter_map(|line| line.strip_prefix("  heddle "));
    let examples: Vec<&str> = lines.map(|line| line.split("  ").next().unwrap_or(line)).collect();
    assert!(examples.len() > 3, "{help}");
    for example in examples {
        let list = if example.contains("--list") { "" } else { " --list" };
        place.good(&format!("{example}{list}"));
    }
}

/// A program whose threads end with code 0.
pub fn ends() -> Vec<u8> {
    elf(&[li(A0, 0), li(A7, 93), ECALL])
}
