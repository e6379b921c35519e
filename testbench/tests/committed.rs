//! The committed ELF files are what `programs/build.sh` makes of the sources, byte for byte.

use std::{fs, io::Write, path::Path, process::Command};

#[test]
fn committed_programs_are_what_the_sources_build() {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let committed = programs.join("elf");
    let wanted = fs::read_to_string(committed.join("COMPILER")).unwrap();
    let version = Command::new("riscv64-unknown-elf-gcc").arg("--version").output();
    let present = version.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).into_owned());
    let present = present.lines().next().unwrap_or("no cross compiler");
    if present != wanted.trim() {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: rebuild of the kernels, which needs {}; found: {present}",
            wanted.trim()
        );
        return;
    }

    let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("elf");
    let _ = fs::remove_dir_all(&fresh);
    let status = Command::new(programs.join("build.sh")).arg(&fresh).status();
    assert!(status.unwrap().success());
    let names = |folder: &Path| {
        let in_folder = |name: &str| {
            let entries = fs::read_dir(folder.join(name)).unwrap();
            let files = entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
            files.map(|path| path.strip_prefix(folder).unwrap().to_path_buf()).collect::<Vec<_>>()
        };
        let mut names = ["", "small", "debug", "debug/small"].map(in_folder).concat();
        names.sort();
        names
    };
    assert_eq!(names(&fresh), names(&committed));
    for name in names(&fresh) {
        let same = fs::read(fresh.join(&name)).unwrap() == fs::read(committed.join(&name)).unwrap();
        assert!(same, "{name:?} is out of date: run testbench/programs/build.sh");
    }
}
