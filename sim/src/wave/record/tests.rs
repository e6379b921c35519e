use super::*;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A file that takes cycles only while nobody holds `gate`, and none after `most`.
struct Slow {
    gate: Arc<Mutex<()>>,
    most: u64,
}

impl Format for Slow {
    fn time(&mut self, time: u64) -> io::Result<()> {
        let _open = self.gate.lock().unwrap();
        if time >= self.most * PERIOD { Err(io::Error::other("no more")) } else { Ok(()) }
    }

    fn narrow(&mut self, _: u32, _: u64) -> io::Result<()> {
        Ok(())
    }

    fn wide(&mut self, _: u32, _: &[u64]) -> io::Result<()> {
        Ok(())
    }

    fn finish(self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_file_holds_the_simulation_up() {
    const ALL: u64 = 100 * CYCLES as u64;
    let gate = Arc::new(Mutex::new(()));
    let closed = gate.lock().unwrap();
    let slow = Slow { gate: gate.clone(), most: u64::MAX / PERIOD };
    let mut recorder = Recorder::start(slow, &[], 0).unwrap();
    let made = Arc::new(AtomicU64::new(0));
    let simulation = std::thread::spawn({
        let made = made.clone();
        move || {
            for cycle in 0..ALL {
                assert!(recorder.cycle(cycle * PERIOD, false));
                made.fetch_add(1, Ordering::Relaxed);
            }
            recorder.finish().unwrap();
        }
    });
    let mut before = 0;
    // Until it makes no more.
    loop {
        std::thread::sleep(Duration::from_millis(50));
        let now = made.load(Ordering::Relaxed);
        if now == before && now > 0 {
            break;
        }
        before = now;
    }
    assert!(before <= (WAITING as u64 + 2) * CYCLES as u64, "{before}");
    drop(closed);
    simulation.join().unwrap();
    assert_eq!(made.load(Ordering::Relaxed), ALL);
}

#[test]
fn an_error_is_told_once_and_soon() {
    let mut recorder = Recorder::start(Slow { gate: Arc::default(), most: 10 }, &[], 0).unwrap();
    let went_well = (0..).take_while(|&cycle| recorder.cycle(cycle * PERIOD, false)).count();
    assert!(went_well < (WAITING + 3) * CYCLES, "{went_well}");
    assert_eq!(recorder.finish().unwrap_err().to_string(), "no more");
}
