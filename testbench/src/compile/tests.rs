//! What a compiler is told, and that it makes programs.

use super::*;
use crate::Program;
use crate::iss::Iss;
use crate::kernels::Device;
use heddle_simt::Shape;
use std::fs;
use std::io::Write as _;

/// A kernel whose division of 64 bits is libgcc's.
const HALVES: &str = "#include \"heddle.h\"\nint twice(int);\nHEDDLE_ARG(uint64_t, all, 90);\nHEDDLE_BUFFER(uint32_t, out, 64);\n\
                      int main(void) { out[heddle_thread()] = twice(all / (heddle_thread() + 2)); return 0; }\n";
const TWICE: &str = "int twice(int x);\nint twice(int x) { return 2 * x; }\n";

fn job<'a>(sources: &'a [PathBuf], flags: &'a [String]) -> Job<'a> {
    Job { files: Path::new("F"), sources, flags, objects: Path::new(""), out: Path::new("k.elf") }
}

fn typed(compiler: &Compiler, sources: &[&str], flags: &[&str]) -> Vec<String> {
    let sources: Vec<PathBuf> = sources.iter().map(PathBuf::from).collect();
    let flags: Vec<String> = flags.iter().map(|flag| flag.to_string()).collect();
    compiler.steps(&job(&sources, &flags)).unwrap().iter().map(Step::to_string).collect()
}

/// The files in a folder of their own, and a compiler; `None`, said aloud, without one.
fn place(what: &str, sources: &[(&str, &str)]) -> Option<(tempfile::TempDir, Compiler)> {
    let compiler = match Compiler::find() {
        Ok(compiler) => compiler,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "SKIPPED: {what}: {error}");
            return None;
        }
    };
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("include")).unwrap();
    FILES.iter().chain(sources).for_each(|(name, text)| fs::write(folder.path().join(name), text).unwrap());
    Some((folder, compiler))
}

fn build(folder: &Path, compiler: &Compiler, sources: &[&str], flags: &[&str]) -> Result<Vec<u8>, CompileError> {
    let sources: Vec<PathBuf> = sources.iter().map(|source| folder.join(source)).collect();
    let flags: Vec<String> = flags.iter().map(|flag| flag.to_string()).collect();
    let out = folder.join("out.elf");
    compiler.build(&Job { files: folder, sources: &sources, flags: &flags, objects: folder, out: &out })?;
    Ok(fs::read(out).unwrap())
}

#[test]
fn flags_are_words_without_comments() {
    assert_eq!(words("# no\n-a -b # c\n\n-d\n").collect::<Vec<_>>(), ["-a", "-b", "-d"]);
    assert!(compile_flags().any(|flag| flag == "-march=rv32ima") && compile_flags().all(|flag| flag.starts_with('-')));
    assert!(link_flags().any(|flag| flag == "-Wl,--emit-relocs"));
}

#[test]
fn each_source_is_compiled_and_all_are_linked() {
    let typed = typed(&Compiler::Gcc("echo".into()), &["a.c", "b/a.c", "x.S", "y.o"], &["-DN=it's", "-Wl,-x"]);
    assert_eq!(typed.len(), 5);
    assert!(typed[3].starts_with("echo -march=rv32ima ") && typed[3].ends_with(" -c F/crt0.S -o crt0.o"));
    assert!(typed[1].ends_with(r" -g -I F/include '-DN=it'\''s' -c b/a.c -o a-1.o"), "{}", typed[1]);
    assert!(typed[4].contains(" -Wl,--emit-relocs ") && typed[4].contains(" -Wl,-x "), "{}", typed[4]);
    assert!(typed[4].ends_with(" -T F/heddle.ld crt0.o a.o a-1.o x.o y.o -o k.elf"), "{}", typed[4]);
}

#[test]
fn clang_is_told_the_same_in_its_own_words() {
    let typed = typed(&Compiler::Clang("echo".into()), &["a.c"], &["-DN", "-Wl,-a,b"]);
    let compiles = "echo --target=riscv32-unknown-elf -mrelax -march=rv32ima -mabi=ilp32 -O2 -mllvm \
                    -disable-block-placement -ffreestanding -std=gnu11";
    assert!(typed[0].starts_with(compiles) && typed[0].contains(" -save-temps=obj "), "{}", typed[0]);
    assert!(!typed[1].contains("-save-temps"), "{}", typed[1]);
    let links = "ld.lld -nostdlib -static --build-id=none -z max-page-size=256 --fatal-warnings --emit-relocs --no-relax -a b \
                 -T F/heddle.ld crt0.o a.o -o k.elf";
    assert_eq!(typed[2], links);
}

#[test]
fn other_files_are_refused() {
    let sources = [PathBuf::from("a.cpp")];
    let error = Compiler::Gcc("gcc".into()).steps(&job(&sources, &[])).unwrap_err().to_string();
    assert_eq!(error, "a.cpp: wanted is a source, .c, .S or .s, or what a compiler made of one, .o or .a");
    assert!(["a.c", "x/b.S", "s.s", "o.o", "l.a"].iter().all(|name| is_source(Path::new(name))));
    assert!(["a", "c", ".c", "a.elf", "a.h"].iter().all(|name| !is_source(Path::new(name))));
}

/// What the first four threads leave in `out`.
fn left(elf: &[u8]) -> Vec<u32> {
    let mut iss = Iss::new(&Program::parse(elf).unwrap(), &Shape::new(2, 2)).unwrap();
    iss.launch().unwrap();
    (&mut iss as &mut dyn Device).read_words("out", 4).unwrap()
}

#[test]
fn a_program_of_several_files_runs() {
    let Some((folder, compiler)) = place("a program of two files", &[("k.c", HALVES), ("t.c", TWICE)]) else { return };
    if let Compiler::Clang(_) = compiler {
        return;
    }
    assert_eq!(left(&build(folder.path(), &compiler, &["k.c", "t.c"], &[]).unwrap()), [90, 60, 44, 36]);
}

/// By every compiler that is there.
#[test]
fn a_program_has_debug_information_and_can_be_laid_out_again() {
    let source = "#include \"heddle.h\"\nint twice(int);\nHEDDLE_BUFFER(uint32_t, out, 64);\n\
                  int main(void) { uint32_t n = heddle_thread(), s = 0;\n\
                  for (uint32_t k = 0; k < n + 2; k++) if (k & 1) s += twice(k); else s ^= n;\n\
                  out[n] = s; return 0; }\n";
    let Some((folder, compiler)) = place("a program with branches", &[("k.c", source), ("t.c", TWICE)]) else { return };
    let want: Vec<u32> =
        (0..4).map(|n| (0..n + 2).fold(0, |sum, k| if k % 2 == 1 { sum + 2 * k } else { sum ^ n })).collect();
    let clang = Some(Compiler::Clang(CLANG.into())).filter(|_| is_there(CLANG) && is_there(LLD));
    for compiler in [Some(compiler), clang].into_iter().flatten() {
        let elf = build(folder.path(), &compiler, &["k.c", "t.c"], &[]).unwrap();
        assert!(
            [".debug_line", ".rela.text"].iter().all(|name| elf.windows(name.len()).any(|at| at == name.as_bytes()))
        );
        let options = crate::predict::Options { pdom: true, ..Default::default() };
        let predicted = crate::predict::predict(&elf, &options).unwrap();
        assert!(predicted.inserted > 0, "{compiler:?}");
        assert_eq!(left(&elf), want, "{compiler:?}");
        assert_eq!(left(&predicted.elf), want, "{compiler:?}");
    }
}

#[test]
fn what_does_not_compile_or_link_is_said_by_the_compiler() {
    let sources = [("wrong.c", "int main(void) { return none; }\n"), ("k.c", HALVES), ("t.c", TWICE)];
    let Some((folder, compiler)) = place("sources that do not compile", &sources) else { return };
    let fails = |sources: &[&str], flags: &[&str]| match build(folder.path(), &compiler, sources, flags) {
        Err(CompileError::Failed { what, output, .. }) => (what, output),
        other => panic!("{other:?}"),
    };
    let (what, output) = fails(&["wrong.c"], &[]);
    assert!(what.ends_with("wrong.c does not compile") && output.contains("none"), "{what}: {output}");
    let (what, output) = fails(&["k.c"], &[]);
    assert!(what.ends_with("k.c cannot be linked") && output.contains("twice"), "{what}: {output}");
    let (what, output) = fails(&["k.c", "t.c"], &["-nonsense"]);
    assert!(what.ends_with("k.c does not compile") && output.contains("-nonsense"), "{what}: {output}");
    let (_, output) = fails(&["k.c", "t.c"], &["-Wno-such-thing", "-DHEDDLE_H", "-Werror"]);
    assert!(!output.is_empty());
    let missing = build(folder.path(), &compiler, &["gone.c"], &[]).unwrap_err().to_string();
    assert!(missing.starts_with("cannot read ") && missing.contains("gone.c: No such file"), "{missing}");
}

#[test]
fn functions_of_atomics_are_there_for_who_asks() {
    let source = "#include \"heddle.h\"\n#include <stdatomic.h>\n_Atomic uint8_t byte;\n\
                  int main(void) { atomic_fetch_add(&byte, 1); return 0; }\n";
    let Some((folder, compiler)) = place("atomic bytes", &[("b.c", source)]) else { return };
    build(folder.path(), &compiler, &["b.c", "atomics.S"], &[]).unwrap();
    let elsewhere = folder.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let sources = [folder.path().join("b.c"), elsewhere.join("atomics.S")];
    let out = elsewhere.join("out.elf");
    compiler
        .build(&Job { files: folder.path(), sources: &sources, flags: &[], objects: &elsewhere, out: &out })
        .unwrap();
}
