//! Start values: what a register without a reset, a memory without contents and a read register hold before the
//! first clock edge.
//!
//! Every engine, and the Verilog in Verilator, takes them from here: a value depends only on the seed, the path of the
//! register or memory in the hierarchy ([`crate::directory::Directory`]), the word's address (0 for registers), and the
//! number of the 64-bit limb. Two engines that start with one seed are therefore equal from cycle 0.

use heddle_hdl::Bits;
use heddle_hdl::bits::low_mask;

/// A path as a number, to be computed once for each register or memory (FNV-1a).
pub fn path_hash(path: &str) -> u64 {
    path.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x100_0000_01b3))
}

/// Limb `limb` (64 bits, 0 is the lowest) of word `index`. The bits above the word's width are to be masked off.
pub fn limb(seed: u64, path_hash: u64, index: u64, limb: u64) -> u64 {
    [path_hash, index, limb].iter().fold(mix(seed), |hash, &part| mix(hash ^ part))
}

/// Word `index`, `width` bits wide.
pub fn word(seed: u64, path_hash: u64, index: u64, width: u32) -> Bits {
    if width <= 64 {
        return Bits::from(limb(seed, path_hash, index, 0) & low_mask(width));
    }
    let limbs: Vec<u64> = (0..width.div_ceil(64) as u64).map(|k| limb(seed, path_hash, index, k)).collect();
    Bits::from_limbs(&limbs).truncate(width)
}

/// The step and finaliser of splitmix64.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_part_matters() {
        let mut seen = HashSet::new();
        for seed in 0..4 {
            for path in ["pc", "lane[0].x", "lane[1].x", ""] {
                for index in 0..4 {
                    for k in 0..4 {
                        assert!(seen.insert(limb(seed, path_hash(path), index, k)));
                    }
                }
            }
        }
    }

    #[test]
    fn words_fit_their_width_and_are_made_of_limbs() {
        let path = path_hash("ram");
        for width in [1, 7, 63, 64, 65, 128, 200] {
            let value = word(3, path, 5, width);
            assert_eq!(value.truncate(width), value);
            assert_eq!(value.limb(0), limb(3, path, 5, 0) & low_mask(width));
        }
    }
}
