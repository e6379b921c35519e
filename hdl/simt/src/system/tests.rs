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

/// Words are loaded from outside; then a load reads a line, and bytes are stored one by one.
#[test]
fn the_ram_answers_in_the_next_cycle() {
    for (lanes, seed) in [(1, 1), (4, 2), (64, 3)] {
        println!("{lanes} lanes, seed {seed}");
        let s = Shape { memory: 64 << 10, stack: 64, ..Shape::new(lanes, 1) };
        let mut r = fastrand::Rng::with_seed(seed);
        let mut t = Sim::new(&ram(&s).check().unwrap());
        // A load during reset is not answered.
        t.poke_port("request_valid", true);
        t.reset();
        assert_eq!(t.peek().response.valid, 0);
        let bytes = 4 * lanes as usize;
        let mut lines: Vec<Vec<u8>> = (0..4).map(|_| (0..bytes).map(|_| r.u8(..)).collect()).collect();
        let quiet = Request::shape(&s).map("", &mut |_, _| Bits::ZERO);
        let idle = Load::shape(&s).map("", &mut |_, _| Bits::ZERO);
        for (line, content) in lines.iter().enumerate() {
            for (k, word) in content.chunks(4).enumerate() {
                let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
                let load = Load { valid: true.into(), address: (line * bytes + 4 * k).into(), word: word.into() };
                t.poke(RamIn { request: quiet.clone(), load });
                t.step();
            }
        }
        let mut answer: Option<(u32, Vec<u8>)> = None;
        for _ in 0..300 {
            let line = r.usize(..4);
            let store = r.bool();
            let enabled: Vec<bool> = (0..bytes).map(|_| store && r.bool()).collect();
            let data: Vec<u8> = (0..bytes).map(|_| r.u8(..)).collect();
            let tag = r.u32(..8);
            let pack = |v: &[u8]| {
                let words: Vec<u64> =
                    v.chunks(8).map(|c| c.iter().rev().fold(0, |w, &b| w << 8 | u64::from(b))).collect();
                Bits::from_limbs(&words)
            };
            let enables: Vec<u64> =
                enabled.chunks(64).map(|c| c.iter().rev().fold(0, |w, &on| w << 1 | u64::from(on))).collect();
            let request = Request {
                valid: true.into(),
                store: store.into(),
                tag: tag.into(),
                line: line.into(),
                enables: Bits::from_limbs(&enables),
                data: pack(&data),
            };
            t.poke(RamIn { request, load: idle.clone() });
            let out = t.peek().response;
            assert_eq!(out.valid == 1, answer.is_some());
            if let Some((tag, line)) = &answer {
                assert_eq!((out.tag, out.data), (Bits::from(*tag), pack(line)));
            }
            answer = (!store).then(|| (tag, lines[line].clone()));
            t.step();
            for k in (0..bytes).filter(|&k| enabled[k]) {
                lines[line][k] = data[k];
            }
        }
    }
}
