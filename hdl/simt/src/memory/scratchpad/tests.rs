use super::*;
use crate::isa::Atomic;
use crate::pipeline::testing::{fields, packed};
use heddle_sim::Sim;

/// Requests of all kinds, each bank with a line of its own, and answers that wait: as if the words were an array.
#[test]
fn banks_are_an_array() {
    for (lanes, scratchpad, atomics, seed) in
        [(1, 64, true, 1), (4, 256, false, 2), (8, 1024, true, 3), (64, 512, true, 4)]
    {
        println!("{lanes} lanes, {scratchpad} bytes, seed {seed}");
        let s = Shape { scratchpad, atomics, ..Shape::new(lanes, 1) };
        let bits = s.scratchpad_line_bits();
        let mut r = fastrand::Rng::with_seed(seed);
        let mut t = Sim::new(&super::scratchpad(&s).check().unwrap());
        t.reset();
        let lines = scratchpad / 4 / lanes;
        let mut words: Vec<Option<u32>> = vec![None; (scratchpad / 4) as usize];
        // Tag and words of the answer that waits; None where nobody asked, or the word is not known.
        let mut answer: Option<(u32, Vec<Option<u32>>)> = None;
        for _ in 0..4000 {
            let kinds = if atomics { 4 } else { 2 };
            let operation = Operation::ALL[r.usize(..kinds)];
            let (valid, taken, tag) = (r.u8(..4) > 0, answer.is_some() && r.u8(..3) > 0, r.u32(..s.loads));
            let at: Vec<u32> = (0..lanes).map(|_| r.u32(..lines.min(4))).collect();
            let data: Vec<u32> = (0..lanes).map(|_| r.u32(..)).collect();
            let enables: Vec<u32> = (0..lanes)
                .map(|_| match operation {
                    Operation::Store => r.u32(..16),
                    _ => {
                        if r.bool() {
                            15
                        } else {
                            0
                        }
                    }
                })
                .collect();
            t.poke(ScratchpadIn {
                request: ScratchpadRequest {
                    valid: valid.into(),
                    operation: operation.into(),
                    function: Atomic::Add.into(),
                    tag: tag.into(),
                    lines: fields(&at, bits),
                    enables: fields(&enables, 4),
                    data: packed(&data),
                },
                response_ready: taken.into(),
            });
            let out = t.peek();
            assert_eq!(out.response.valid == 1, answer.is_some());
            if let Some((tag, words)) = &answer {
                assert_eq!(out.response.tag, u64::from(*tag));
                for (k, word) in (0..).zip(words) {
                    let got = out.response.data.extract(32 * k, 32).low_u64() as u32;
                    assert!(word.is_none_or(|word| word == got), "bank {k}: {got:#x}, should be {word:x?}");
                }
            }
            let ready = answer.is_none() || taken;
            assert_eq!(out.ready == 1, ready);
            if taken {
                answer = None;
            }
            if valid && ready {
                let place = |k: usize| (at[k] * lanes) as usize + k;
                if operation.answers() {
                    let wanted = (0..lanes as usize).map(|k| words[place(k)].filter(|_| enables[k] != 0));
                    answer = Some((tag, wanted.collect()));
                }
                for k in (0..lanes as usize).filter(|&k| enables[k] != 0 && operation != Operation::Load) {
                    let word = &mut words[place(k)];
                    *word = match (operation, enables[k]) {
                        (Operation::Store, 15) => Some(data[k]),
                        (Operation::Store, enables) => word.map(|word| {
                            let mask = (0..4).filter(|b| enables >> b & 1 == 1).fold(0, |m, b| m | 0xff << (8 * b));
                            (word & !mask) | (data[k] & mask)
                        }),
                        _ => word.map(|word| word.wrapping_add(data[k])),
                    };
                }
            }
            t.step();
        }
        assert!(t.cover_hits("answer_waits") > 0);
    }
}
