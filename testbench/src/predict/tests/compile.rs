//! Programs that tests compile, if there is a cross compiler.

use crate::compile::{compile_flags, link_flags};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

const CC: &str = "riscv64-unknown-elf-gcc";
/// Which a program must have to be laid out again.
pub const RELOCATABLE: [&str; 2] = ["-Wl,--emit-relocs", "-Wl,--no-relax"];

pub struct Compiler {
    folder: PathBuf,
}

impl Drop for Compiler {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// The compiler; `None`, said aloud, if there is none.
pub fn compiler(what: &str) -> Option<Compiler> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    if Command::new(CC).arg("--version").output().is_err() {
        let _ = writeln!(std::io::stderr(), "SKIPPED: {what}, which needs {CC}");
        return None;
    }
    let name = format!("heddle-predict-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let folder = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&folder).unwrap();
    Some(Compiler { folder })
}

fn programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs")
}

impl Compiler {
    /// A kernel's source with more flags.
    pub fn kernel(&self, name: &str, flags: &[&str]) -> Vec<u8> {
        self.build(&programs().join(format!("kernels/{name}.c")), flags, &RELOCATABLE)
    }

    pub fn program(&self, source: &str, flags: &[&str]) -> Vec<u8> {
        self.linked(source, flags, &RELOCATABLE)
    }

    pub fn linked(&self, source: &str, flags: &[&str], link: &[&str]) -> Vec<u8> {
        let path = self.folder.join("source.c");
        std::fs::write(&path, source).unwrap();
        self.build(&path, flags, link)
    }

    fn build(&self, source: &Path, flags: &[&str], link: &[&str]) -> Vec<u8> {
        let programs = programs();
        let libgcc = ["-march=rv32im", "-mabi=ilp32", "-misa-spec=2.2", "-print-libgcc-file-name"];
        let libgcc = Command::new(CC).args(libgcc).output().unwrap().stdout;
        let out = self.folder.join("program.elf");
        let output = Command::new(CC)
            .args(compile_flags().chain(["-std=gnu11"]))
            .args(link_flags().filter(|flag| !RELOCATABLE.contains(flag)))
            .args(flags)
            .arg("-I")
            .arg(programs.join("include"))
            .arg(programs.join("crt0.S"))
            .arg(source)
            .arg(String::from_utf8(libgcc).unwrap().trim())
            .args(link)
            .arg("-T")
            .arg(programs.join("heddle.ld"))
            .arg("-o")
            .arg(&out)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        std::fs::read(out).unwrap()
    }

    /// What a tool of the compiler's says of a file.
    pub fn run(&self, tool: &str, arguments: &[&str], elf: &[u8]) -> String {
        let path = self.folder.join("of.elf");
        std::fs::write(&path, elf).unwrap();
        let output = Command::new(CC.replace("gcc", tool)).args(arguments).arg(path).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}
