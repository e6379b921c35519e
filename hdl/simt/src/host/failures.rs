//! Threads whose exit code is not 0: how many there are, and the first.

use crate::pipeline::resolve::Exit;
use crate::shape::Shape;
use heddle_hdl::{elements, prelude::*};

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct FailuresIn<T> {
    /// None has failed.
    pub restart: T,
    pub exit: Exit<T>,
}

/// Of the threads that have ended since the restart.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct FailuresOut<T> {
    /// One has failed.
    pub any: T,
    /// How many, modulo 2^32.
    pub count: T,
    /// With `any`: the number of the first's hardware thread, and its code, 32 bits each. Of several in one cycle, the
    /// lowest lane's is the first.
    pub thread: T,
    pub code: T,
}

/// Counts the failures of a shape's threads.
pub fn failures(s: &Shape) -> TypedModule<FailuresIn<Width>, FailuresOut<Signal>> {
    module("host_failures", FailuresIn::shape(s), |m, FailuresIn { restart, exit }| {
        m.doc("Threads whose exit code is not 0.");
        let codes = elements(exit.codes, 32);
        let not_0 = cat(&codes.iter().map(|code| code.any()).collect::<Vec<_>>());
        wire!(failing = (exit.mask & not_0).only_if(exit.valid));
        wire!(lane = failing.lowest_one());
        let any = m.reg("any", 1).reset(0u32);
        any.next((any.q | failing.any()) & !restart);
        let count = m.reg("count", 32).reset(0u32);
        let more = count.q + failing.count_ones().zext(32);
        count.next_if(restart | failing.any(), restart.mux(count.q.literal(0u32), more));
        let slot = exit.homes.map_or(exit.slot, |homes| select_one_hot(&elements(homes, s.warp_bits()), lane));
        let number = if s.lanes == 1 { slot } else { cat(&[lane.one_hot_index(), slot]) };
        wire!(first = failing.any() & !any.q);
        FailuresOut {
            any: any.q,
            count: count.q,
            thread: m.pipe_if("first_thread", first, number).zext(32),
            code: m.pipe_if("first_code", first, select_one_hot(&codes, lane)),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::divergence::Divergence;
    use crate::testing::cases;
    use heddle_sim::Sim;

    #[test]
    fn failures_are_counted_and_the_first_is_kept() {
        let mixed = Shape::new(4, 4).with_divergence(Divergence::BLOCK_STACK);
        for (k, s) in [Shape::new(1, 1), Shape::new(1, 4), Shape::new(4, 1), Shape::new(8, 8), mixed].iter().enumerate()
        {
            println!("{} × {}, seed {k}", s.lanes, s.warps);
            let mut r = fastrand::Rng::with_seed(k as u64);
            let mut t = Sim::new(&failures(s).check().unwrap());
            t.reset();
            let (mut count, mut first) = (0u32, None);
            for cycle in 0..cases(3000) {
                let restart = cycle == 0 || r.u8(..30) == 0;
                let slot = r.u32(..s.warps);
                let mask = r.u64(..) & (u64::MAX >> (64 - s.lanes));
                let homes: Vec<u32> = (0..s.lanes).map(|_| if s.mixes() { r.u32(..s.warps) } else { slot }).collect();
                let codes: Vec<u32> = (0..s.lanes).map(|_| if r.u8(..4) == 0 { r.u32(..) } else { 0 }).collect();
                let valid = r.u8(..3) == 0;
                let out = t.peek();
                if cycle > 0 {
                    assert_eq!((out.any, out.count), (u32::from(first.is_some()).into(), Bits::from(count)));
                    if let Some((thread, code)) = first {
                        assert_eq!((out.thread, out.code), (Bits::from(thread), Bits::from(code)), "cycle {cycle}");
                    }
                }
                let limbs = |bits: u32, list: &[u32]| {
                    list.iter()
                        .rev()
                        .fold(Bits::ZERO.to_big(), |big, &word| (big << bits as usize) | Bits::from(word).to_big())
                };
                t.poke(FailuresIn {
                    restart: restart.into(),
                    exit: Exit {
                        valid: valid.into(),
                        slot: slot.into(),
                        mask: mask.into(),
                        homes: s.homes_bits().map(|_| Bits::from_big(limbs(s.warp_bits(), &homes))),
                        codes: Bits::from_big(limbs(32, &codes)),
                    },
                });
                t.step();
                if valid {
                    for lane in (0..s.lanes as usize).filter(|&lane| mask >> lane & 1 == 1 && codes[lane] != 0) {
                        count += 1;
                        first = first.or(Some((homes[lane] * s.lanes + lane as u32, codes[lane])));
                    }
                }
                if restart {
                    (count, first) = (0, None);
                }
            }
        }
    }
}
