use super::*;
use heddle_sim::Sim;

/// Every warp is started once, in order, at the entry of the launch, whenever the core is ready; then `done` comes with
/// the first idle cycle and stays until the next launch.
#[test]
fn the_launcher_starts_each_warp_once() {
    for (warps, seed) in [(1, 1), (2, 2), (8, 3), (64, 4)] {
        println!("{warps} warps, seed {seed}");
        let s = Shape::new(4, warps);
        let mut r = fastrand::Rng::with_seed(seed);
        let mut t = Sim::new(&launcher(&s).check().unwrap());
        t.reset();
        for launch in 0..3 {
            let entry = r.u32(..1 << s.pc_bits());
            let mut poke = |t: &mut Sim<_, _>, launches: bool, ready: bool, idle: bool| {
                // The entry counts only in the cycle of the launch.
                let entry = if launches { entry } else { r.u32(..1 << s.pc_bits()) };
                let inputs = LauncherIn {
                    launch: launches.into(),
                    entry: entry.into(),
                    start_ready: ready.into(),
                    idle: idle.into(),
                };
                Sim::<LauncherIn<Width>, LauncherOut<Signal>>::poke(t, inputs);
            };
            poke(&mut t, false, true, true);
            let out = t.peek();
            assert_eq!((out.start.valid, out.done == 1), (0u32.into(), launch > 0));
            poke(&mut t, true, true, true);
            assert_eq!(t.peek().restart, 1);
            t.step();
            let mut started = vec![];
            for cycle in 0..4 * warps + 8 {
                // A launch while one is under way does nothing; idleness counts only once all are started.
                let ready = cycle % 3 != 1;
                poke(&mut t, cycle % 5 == 2, ready, (started.len() as u32) < warps && cycle % 2 == 0);
                let out = t.peek();
                assert_eq!((out.restart, out.done), (0u32.into(), 0u32.into()));
                if out.start.valid == 1 && ready {
                    assert_eq!((out.start.pc.low_u64(), out.start.mask.low_u64()), (entry.into(), 0b1111));
                    started.push(out.start.slot.low_u64());
                }
                t.step();
            }
            assert_eq!(started, (0..u64::from(warps)).collect::<Vec<_>>());
            poke(&mut t, false, true, true);
            t.step();
            assert_eq!(t.peek().done, 1);
        }
    }
}
