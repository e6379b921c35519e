//! What identify tells, and the words of counters: made here, and read by software.

use super::protocol::{IDENTIFY_WORDS, VERSION, feature, paths};
use crate::divergence::Divergence;
use crate::metrics::Counts;
use crate::shape::{Backing, Metrics, Shape, SlaveModel, Timing};
use heddle_hdl::prelude::*;

/// What identify tells, beside the shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// Of the clock; 0 if it is not known.
    pub clock_khz: u32,
}

/// The words that identify tells.
pub fn identify(s: &Shape, identity: Identity) -> [u32; IDENTIFY_WORDS as usize] {
    let bytes = |bytes: [u32; 4]| {
        assert!(bytes.iter().all(|&byte| byte < 256), "identify tells bytes");
        bytes.iter().rev().fold(0, |word, byte| word << 8 | byte)
    };
    let log2 = |bytes: u32| bytes.checked_ilog2().unwrap_or(0);
    let features = [
        (s.atomics, feature::ATOMICS),
        (s.barriers, feature::BARRIERS),
        (s.multiply, feature::MULTIPLY),
        (s.divergence.capabilities().reconverges, feature::SIDE_TABLE),
        (s.bus_width().is_some(), feature::BUS),
        (s.metrics == Metrics::Built, feature::METRICS),
        (s.counters, feature::COUNTERS),
        (s.reservations, feature::RESERVATIONS),
    ];
    let features = features.iter().filter(|(has, _)| *has).map(|(_, bit)| bit).sum();
    [
        bytes([VERSION, s.lanes, s.warps, s.divergence.number().into()]),
        s.memory,
        s.program,
        identity.clock_khz,
        bytes([
            log2(s.stack),
            log2(s.scratchpad),
            s.convergence_barriers
                | (u32::from(s.fair) * paths::FAIR)
                | (u32::from(s.warp_primitives) * paths::WARP_PRIMITIVES),
            features,
        ]),
    ]
}

/// Words that tell the counters of a core that is [built](Metrics::Built) with them.
pub fn counts_words(s: &Shape) -> u32 {
    2 * Counts::number(s)
}

/// What these words tell.
///
/// # Panics
/// If they are not [`counts_words`].
pub fn told_counts(s: &Shape, words: &[u32]) -> Counts<u64> {
    assert_eq!(words.len(), counts_words(s) as usize, "words of counters");
    let mut counters = words.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
    Counts::shape(s).map("", &mut |_, _| counters.next().expect("two words a counter"))
}

/// The shape of which [`identify`] tells, as far as it tells: the rest is as usual. Its mechanism is one of `known`.
/// Refuses what cannot be.
pub fn identified(words: &[u32; IDENTIFY_WORDS as usize], known: &[Divergence]) -> Result<Shape, String> {
    let byte = |word: usize, k: u32| words[word] >> (8 * k) & 0xff;
    let has = |bit: u32| byte(4, 3) & bit != 0;
    let bytes = |log: u32| 1u32.checked_shl(log).ok_or_else(|| format!("2^{log} bytes"));
    let number = byte(0, 3);
    let divergence = known.iter().find(|divergence| u32::from(divergence.number()) == number);
    let divergence = divergence.ok_or_else(|| format!("divergence unit number {number}"))?;
    let on_bus = Backing::Wishbone { width: 32, slave: SlaveModel { timing: Timing::FASTEST, error: None } };
    let shape = Shape {
        lanes: byte(0, 1),
        warps: byte(0, 2),
        memory: words[1],
        program: words[2],
        stack: bytes(byte(4, 0))?,
        scratchpad: if byte(4, 1) == 0 { 0 } else { bytes(byte(4, 1))? },
        convergence_barriers: byte(4, 2) & !paths::FAIR & !paths::WARP_PRIMITIVES,
        fair: byte(4, 2) & paths::FAIR != 0,
        warp_primitives: byte(4, 2) & paths::WARP_PRIMITIVES != 0,
        atomics: has(feature::ATOMICS),
        barriers: has(feature::BARRIERS),
        multiply: has(feature::MULTIPLY),
        counters: has(feature::COUNTERS),
        reservations: has(feature::RESERVATIONS),
        metrics: if has(feature::METRICS) { Metrics::Built } else { Metrics::Off },
        backing: if has(feature::BUS) { on_bus } else { Backing::OnChip },
        ..Shape::default()
    };
    let shape = shape.with_divergence(*divergence);
    shape.check().map_err(|error| error.to_string())?;
    Ok(shape)
}
