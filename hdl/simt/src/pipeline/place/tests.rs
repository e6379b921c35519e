use super::*;
use heddle_sim::Sim;

/// A lane's access.
#[derive(Clone, Copy, Debug)]
struct Access {
    address: u32,
    writes: bool,
    size: u32,
    slot: u32,
    lane: u32,
    /// Warps of a block.
    block: u32,
    program_end: u32,
}

const PROGRAM_END: u32 = 0x300;

/// What [`crate::address`] says: the place, or what is wrong (misaligned, outside, program).
fn model(s: &Shape, a: &Access) -> Result<u32, [bool; 3]> {
    let misaligned = !a.address.is_multiple_of(1 << a.size);
    let share = s.scratchpad / s.warps * a.block;
    let first = a.slot / a.block * a.block;
    let place = match a.address {
        main if main < s.memory => Some(main),
        stack if stack >= STACK && stack - STACK < s.stack => {
            let (word, byte) = ((stack - STACK) / 4, stack % 4);
            let region = s.memory - s.threads() * s.stack;
            Some(region + ((a.slot * (s.stack / 4) + word) * s.lanes + a.lane) * 4 + byte)
        }
        pad if pad >= SCRATCHPAD && pad - SCRATCHPAD < share => Some(pad + first * (s.scratchpad / s.warps)),
        _ => None,
    };
    let program = a.writes && a.address < a.program_end.min(s.memory);
    match place {
        Some(place) if !misaligned && !program => Ok(place),
        _ => Err([misaligned, place.is_none(), program]),
    }
}

fn check(s: &Shape, t: &mut Sim<PlaceIn<Width>, PlaceOut<Signal>>, a: &Access) {
    let inputs = PlaceIn {
        computed: a.address.into(),
        accesses: true.into(),
        writes: a.writes.into(),
        size: a.size.into(),
        slot: a.slot.into(),
        number: a.lane.into(),
        group: (a.block - 1).into(),
        program_end: a.program_end.into(),
    };
    t.poke(inputs.clone());
    let out = t.peek();
    let wrong = [out.wrong.misaligned, out.wrong.outside, out.wrong.in_program].map(|w| w == 1);
    match model(s, a) {
        Ok(place) => assert_eq!((wrong, out.result), ([false; 3], place.into()), "{a:x?}"),
        Err(why) => {
            assert_eq!(wrong, why, "{a:x?}");
            assert_eq!(out.result, u64::from(a.address), "{a:x?}");
        }
    }
    t.poke(PlaceIn { accesses: false.into(), ..inputs });
    let out = t.peek();
    assert_eq!(out.result, u64::from(a.address), "what is no address passes");
    assert_eq!(out.wrong.map("", &mut |_, w| w.low_u64()), Wrong { misaligned: 0, outside: 0, in_program: 0 });
}

#[test]
fn places_are_those_of_the_map() {
    for (lanes, warps, scratchpad, seed) in
        [(1, 1, 0, 1), (1, 1, 64, 2), (4, 8, 1024, 3), (2, 4, 0, 4), (64, 64, 1 << 16, 5)]
    {
        println!("{lanes} lanes, {warps} warps, {scratchpad} bytes of scratchpad, seed {seed}");
        let s = Shape { scratchpad, stack: 256, ..Shape::new(lanes, warps) };
        s.check().unwrap();
        let mut r = fastrand::Rng::with_seed(seed);
        let mut t = Sim::new(&place(&s).check().unwrap());
        for _ in 0..20_000 {
            let block = 1 << r.u32(..=warps.ilog2());
            let edge = |base: u32, length: u32, r: &mut fastrand::Rng| match r.u8(..8) {
                0 => base.wrapping_sub(1 + r.u32(..4)),
                1 => base.wrapping_add(length).wrapping_add(r.u32(..4)),
                2 => base.wrapping_add(length).wrapping_sub(1 + r.u32(..4)),
                _ => base.wrapping_add(r.u32(..length.max(1))),
            };
            let share = scratchpad / warps * block;
            let program_end = [0, PROGRAM_END, s.memory - 256, s.memory][r.usize(..4)];
            let address = match r.u8(..5) {
                0 => edge(0, s.memory, &mut r),
                1 => edge(STACK, s.stack, &mut r),
                2 => edge(SCRATCHPAD, share, &mut r),
                3 => edge(0, program_end, &mut r),
                _ => r.u32(..),
            };
            let (slot, lane) = (r.u32(..warps), r.u32(..lanes));
            let (writes, size) = (r.bool(), r.u32(..3));
            check(&s, &mut t, &Access { address, writes, size, slot, lane, block, program_end });
        }
    }
}

/// Different bytes of different threads' stacks are different bytes of the region, and fill it.
#[test]
fn stacks_fill_their_region() {
    let s = Shape { stack: 64, ..Shape::new(2, 4) };
    let places = (0..4).flat_map(|slot| (0..2).map(move |lane| (slot, lane)));
    let all = places.flat_map(|(slot, lane)| (0..64).map(move |at| (slot, lane, at)));
    let mut places: Vec<u32> = all
        .map(|(slot, lane, at)| {
            let address = STACK + at;
            model(&s, &Access { address, writes: true, size: 0, slot, lane, block: 1, program_end: PROGRAM_END })
                .unwrap()
        })
        .collect();
    places.sort_unstable();
    assert!(places.into_iter().eq(s.memory - 8 * 64..s.memory));
}
