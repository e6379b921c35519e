mod random;
mod read;

use super::*;
use crate::{Options, Sim};
use heddle_hdl::{Bits, Bundle, Design, Signal, Width, all, module, wire};
use read::Read;

#[derive(Bundle, Clone, Copy)]
struct Step<T> {
    by: T,
}
#[derive(Bundle, Clone, Copy)]
struct Count<T> {
    total: T,
}

/// Two counters side by side that count by `by`.
fn design() -> Design<Step<Width>, Count<Signal>> {
    let counter = module("counter", Step { by: 70 }, |m, i| {
        let count = m.reg("count", 70).reset(0u32);
        wire!(next = count.q + i.by);
        count.next(next);
        Count { total: count.q }
    });
    let top = module("top", Step { by: 70 }, |m, i| m.replicate("lane", 2, &counter, Step { by: all(i.by) }));
    top.check().unwrap()
}

fn file(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("heddle-{}-{name}", std::process::id()))
}

fn run(path: &Path) {
    let mut t = Sim::with(&design(), &Options { wave: Some(path.to_path_buf()), ..Options::default() });
    t.poke(Step { by: Bits::from(3u32) });
    t.reset();
    t.steps(4);
}

#[test]
fn both_formats_have_the_hierarchy_and_the_values() {
    for name in ["a.vcd", "a.fst"] {
        let path = file(name);
        run(&path);
        let read = Read::of(&path);
        assert_eq!((read.end, read.widths["top.lane[1].count"]), (50, 70));
        assert_eq!(read.changes["top.clk"].iter().filter(|(_, value)| value == "1").count(), 6);
        assert_eq!(read.changes["top.rst"], [(0, "1".into()), (10, "0".into())]);
        let counts = &read.changes["top.lane[1].count"];
        let expected = [(10, 0), (20, 3), (30, 6), (40, 9)].map(|(t, v)| (t, format!("{v:070b}")));
        assert_eq!(counts[1..], expected, "the first is the random start");
        assert_eq!(counts, &read.changes["top.lane[1].total"], "the port has another name for the register");
        assert!(read.changes.contains_key("top.lane[0].next"));
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_waveform_goes_on_when_the_simulation_starts_again() {
    for name in ["again.vcd", "again.fst"] {
        let path = file(name);
        let options = Options { wave: Some(path.clone()), ..Options::default() };
        let mut simulation = crate::Simulation::new(&design().netlist, &options).unwrap();
        simulation.step().unwrap();
        simulation.start(2);
        simulation.reset().unwrap();
        simulation.finish().unwrap();
        let read = Read::of(&path);
        assert_eq!((read.end, &read.changes["top.rst"][..]), (20, &[(0, "0".into()), (10, "1".into())][..]));
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn a_waveform_without_cycles_is_one() {
    let directory = Directory::new(&design().netlist);
    for name in ["none.vcd", "none.fst"] {
        let path = file(name);
        Wave::create(&path, &directory).unwrap().finish().unwrap();
        assert!(Read::of(&path).changes["top.lane[1].count"].is_empty());
        std::fs::remove_file(path).unwrap();
    }
}

#[test]
fn bad_names_and_places_leave_nothing() {
    let directory = Directory::new(&design().netlist);
    let error = |path: &Path| Wave::create(path, &directory).err().unwrap().to_string();
    let bad = file("a.txt");
    assert_eq!(error(&bad), format!("waveform {}: the name must end in .vcd or .fst", bad.display()));
    assert!(!bad.exists());
    let nowhere = file("no-such-folder").join("a.vcd");
    assert!(error(&nowhere).starts_with(&format!("cannot write waveform {}: ", nowhere.display())));

    let folder = file("folder.vcd");
    std::fs::create_dir(&folder).unwrap();
    let wave = Wave::create(&folder, &directory).unwrap();
    assert!(wave.finish().is_err(), "a folder cannot be replaced");
    assert!(!wave_partial(&folder).exists());
    std::fs::remove_dir(folder).unwrap();
}

/// One variable of each width, in blocks of a few changes; the first takes the same values as the second.
#[test]
fn fst_has_blocks() {
    let widths = [8, 8, 1, 1, 7, 63, 64, 65, 70, 126, 128, 200];
    let path = file("blocks.fst");
    let mut header = fst::Header::create(&path).unwrap();
    header.scope("top", "module");
    for (k, &width) in widths.iter().enumerate() {
        header.variable(&format!("v{k}"), width, None);
    }
    header.up();
    let mut body = header.finish().unwrap();
    body.most = 100;
    let mut expected = vec![Vec::new(); widths.len()];
    for time in 0..300_u64 {
        body.time(time).unwrap();
        for (k, &width) in widths.iter().enumerate() {
            if time > 0 && !(time + k as u64 / 2).is_multiple_of(width as u64 % 5 + 2) {
                continue;
            }
            let limb = |limb: u64| (time + limb).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let value = Bits::from_limbs(&[0, 1, 2, 3].map(limb)).truncate(width);
            let limbs: Vec<u64> = (0..width.div_ceil(64) as usize).map(|k| value.limb(k)).collect();
            match limbs.as_slice() {
                &[limb] => body.narrow(k as u32, limb).unwrap(),
                limbs => body.wide(k as u32, limbs).unwrap(),
            }
            let digits: String = (0..width).rev().map(|bit| if value.bit(bit) { '1' } else { '0' }).collect();
            if expected[k].last().is_none_or(|(_, last)| *last != digits) {
                expected[k].push((time, digits));
            }
        }
    }
    body.finish().unwrap();
    let read = Read::of(&path);
    for (k, changes) in expected.iter().enumerate() {
        assert_eq!(&read.changes[&format!("top.v{k}")], changes, "{} bits", widths[k]);
    }
    std::fs::remove_file(path).unwrap();
}

/// As on a disk that is full.
#[cfg(target_os = "linux")]
#[test]
fn an_error_while_writing_ends_the_waveform_with_one_message() {
    for name in ["full.vcd", "full.fst"] {
        let path = file(name);
        let partial = wave_partial(&path);
        std::os::unix::fs::symlink("/dev/full", &partial).unwrap();
        let design = design();
        let made = crate::Simulation::new(&design.netlist, &Options { wave: Some(path.clone()), ..Options::default() });
        let run = made.and_then(|mut simulation| {
            simulation.run(1_000_000, None)?;
            simulation.finish()
        });
        let message = format!("cannot write waveform {}: No space left on device (os error 28)", path.display());
        assert_eq!(run.unwrap_err().to_string(), message);
        assert!(!path.exists() && partial.symlink_metadata().is_err());
    }
}

fn wave_partial(path: &Path) -> PathBuf {
    PathBuf::from(format!("{}.partial", path.display()))
}
