//! Values: unsigned integers of any size, without a width.
//!
//! A [`Bits`] is what a signal carries. The width belongs to the signal; whoever stores a value masks it to that width
//! first ([`Bits::truncate`]), so a value never has bits above the width of the signal it belongs to.

use bitvec::order::{BitOrder, Lsb0};
use bitvec::slice::BitSlice;
use bitvec::store::BitStore;
use bitvec::vec::BitVec;
use num_bigint::BigUint;
use std::fmt;

/// An unsigned integer of any size. Values up to 64 bits are stored inline.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Bits(Repr);

/// `Big` holds only values that do not fit in 64 bits, so equal values have equal representations, and the derived
/// order (`Small` before `Big`) is the numeric one.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Repr {
    Small(u64),
    Big(BigUint),
}

impl Bits {
    /// 0, which fits every width.
    pub const ZERO: Bits = Bits(Repr::Small(0));

    /// `width` ones.
    pub fn ones(width: u32) -> Bits {
        if width <= 64 {
            Bits(Repr::Small(low_mask(width)))
        } else {
            Bits::from_big((BigUint::from(1u8) << width) - 1u8)
        }
    }

    /// From 64-bit limbs, least significant first.
    pub fn from_limbs(limbs: &[u64]) -> Bits {
        if limbs.iter().skip(1).all(|&l| l == 0) {
            return Bits(Repr::Small(limbs.first().copied().unwrap_or(0)));
        }
        let halves = limbs.iter().flat_map(|&l| [l as u32, (l >> 32) as u32]).collect();
        Bits::from_big(BigUint::new(halves))
    }

    /// The 64-bit limb number `index`, 0 above the value's size.
    pub fn limb(&self, index: usize) -> u64 {
        match &self.0 {
            Repr::Small(v) => {
                if index == 0 {
                    *v
                } else {
                    0
                }
            }
            Repr::Big(v) => v.iter_u64_digits().nth(index).unwrap_or(0),
        }
    }

    /// The value if it fits in 64 bits.
    pub fn to_u64(&self) -> Option<u64> {
        match self.0 {
            Repr::Small(v) => Some(v),
            Repr::Big(_) => None,
        }
    }

    /// The low 64 bits.
    pub fn low_u64(&self) -> u64 {
        self.limb(0)
    }

    /// As an integer of `num-bigint`.
    pub fn to_big(&self) -> BigUint {
        match &self.0 {
            Repr::Small(v) => BigUint::from(*v),
            Repr::Big(v) => v.clone(),
        }
    }

    /// From an integer of `num-bigint`.
    pub fn from_big(value: BigUint) -> Bits {
        match u64::try_from(&value) {
            Ok(small) => Bits(Repr::Small(small)),
            Err(_) => Bits(Repr::Big(value)),
        }
    }

    /// The low `width` bits as a list of them, the lowest first.
    pub fn to_bitvec(&self, width: u32) -> BitVec<u64, Lsb0> {
        let mut bits: BitVec<u64, Lsb0> = (0..width.div_ceil(64)).map(|limb| self.limb(limb as usize)).collect();
        bits.truncate(width as usize);
        bits
    }

    /// How many bits the value needs: 0 for zero.
    pub fn bit_length(&self) -> u32 {
        match &self.0 {
            Repr::Small(v) => 64 - v.leading_zeros(),
            Repr::Big(v) => v.bits() as u32,
        }
    }

    /// Bit `index`, false above the value's size.
    pub fn bit(&self, index: u32) -> bool {
        self.limb(index as usize / 64) >> (index % 64) & 1 == 1
    }

    /// The low `width` bits.
    pub fn truncate(&self, width: u32) -> Bits {
        self.extract(0, width)
    }

    /// Bits `low .. low + width`.
    pub fn extract(&self, low: u32, width: u32) -> Bits {
        match &self.0 {
            Repr::Small(v) => Bits(Repr::Small(if low >= 64 { 0 } else { v >> low & low_mask(width) })),
            Repr::Big(v) => Bits::from_big((v >> low) & Bits::ones(width).to_big()),
        }
    }

    /// Whether no bit is set.
    pub fn is_zero(&self) -> bool {
        self.0 == Repr::Small(0)
    }

    /// How many bits are set.
    pub fn count_ones(&self) -> u32 {
        match &self.0 {
            Repr::Small(v) => v.count_ones(),
            Repr::Big(v) => v.count_ones() as u32,
        }
    }
}

/// The low `width` bits set, for `width` up to 64 (and all 64 above).
pub fn low_mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

macro_rules! from_unsigned {
    ($($t:ty),*) => { $(impl From<$t> for Bits {
        fn from(v: $t) -> Bits {
            Bits(Repr::Small(v as u64))
        }
    })* };
}
from_unsigned!(bool, u8, u16, u32, u64, usize);

impl From<&Bits> for Bits {
    fn from(v: &Bits) -> Bits {
        v.clone()
    }
}

impl From<u128> for Bits {
    fn from(v: u128) -> Bits {
        Bits::from_limbs(&[v as u64, (v >> 64) as u64])
    }
}

/// The first bit of the list is the lowest.
impl<T: BitStore, O: BitOrder> From<&BitSlice<T, O>> for Bits {
    fn from(bits: &BitSlice<T, O>) -> Bits {
        let limbs: Vec<u64> = bits.chunks(64).map(|limb| limb.iter_ones().map(|bit| 1 << bit).sum()).collect();
        Bits::from_limbs(&limbs)
    }
}

impl PartialEq<u64> for Bits {
    fn eq(&self, other: &u64) -> bool {
        self.0 == Repr::Small(*other)
    }
}

impl Default for Bits {
    fn default() -> Bits {
        Bits::ZERO
    }
}

impl fmt::LowerHex for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Small(v) => fmt::LowerHex::fmt(v, f),
            Repr::Big(v) => fmt::LowerHex::fmt(v, f),
        }
    }
}

impl fmt::Binary for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Small(v) => fmt::Binary::fmt(v, f),
            Repr::Big(v) => fmt::Binary::fmt(v, f),
        }
    }
}

impl fmt::Debug for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#x}")
    }
}

impl fmt::Display for Bits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:#x}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_and_big_meet_at_64_bits() {
        let big = Bits::from_limbs(&[u64::MAX, 1]);
        assert_eq!(big.truncate(64), Bits::from(u64::MAX));
        assert_eq!(big.extract(64, 1), Bits::from(1u64));
        assert_eq!(big.bit_length(), 65);
        assert_eq!(big.cmp(&Bits::from(u64::MAX)), std::cmp::Ordering::Greater);
        assert_eq!(Bits::from_limbs(&[7, 0, 0]), Bits::from(7u64));
        assert_eq!(Bits::ones(65), big);
    }

    #[test]
    fn lists_of_bits_are_values_and_back() {
        let big = Bits::from_limbs(&[0x8000_0000_0000_0001, 2]);
        assert_eq!(big.to_bitvec(66).iter_ones().collect::<Vec<_>>(), [0, 63, 65]);
        for width in [0, 1, 64, 65, 66, 200] {
            let bits = big.to_bitvec(width);
            assert_eq!((bits.len(), Bits::from(bits.as_bitslice())), (width as usize, big.truncate(width)));
        }
        assert_eq!(Bits::from(bitvec::bits![u8, bitvec::order::Msb0; 0, 1, 1]), Bits::from(6u8));
    }
}
