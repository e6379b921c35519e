//! Arithmetic on words of any width, made of nodes of at most 64 bits.

use super::builder::Builder;
use super::{Id, Word, limb_width, limbs};

impl Builder {
    pub fn word_width(&self, word: &[Id]) -> u32 {
        word.iter().map(|&limb| self.width(limb)).sum()
    }

    /// Bits of a word, at most 64.
    pub fn word_slice(&mut self, word: &[Id], low: u32, width: u32) -> Id {
        let mut parts = Vec::new();
        let mut at = low;
        while at < low + width {
            let limb = word[at as usize / 64];
            let from = at % 64;
            let take = (low + width - at).min(self.width(limb) - from);
            parts.push(self.slice(limb, from, take));
            at += take;
        }
        self.cat(&parts)
    }

    /// Cut or widened by zeros.
    pub fn word_resize(&mut self, word: &[Id], width: u32) -> Word {
        let have = self.word_width(word);
        (0..limbs(width))
            .map(|k| {
                let want = limb_width(width, k);
                match have.saturating_sub(k * 64).min(64) {
                    0 => self.constant(0, want),
                    n if n < want => self.zext(word[k as usize], want),
                    _ => self.slice(word[k as usize], 0, want),
                }
            })
            .collect()
    }

    /// Widened by copies of the sign.
    pub fn word_sext(&mut self, word: &[Id], width: u32) -> Word {
        let top = *word.last().expect("words are not empty");
        let sign = self.slice(top, self.width(top) - 1, 1);
        (0..limbs(width))
            .map(|k| {
                let want = limb_width(width, k);
                match word.get(k as usize) {
                    Some(&limb) => self.sext(limb, want),
                    None => self.sext(sign, want),
                }
            })
            .collect()
    }

    pub fn word_add(&mut self, a: &[Id], b: &[Id]) -> Word {
        let mut carry = None;
        a.iter()
            .zip(b)
            .map(|(&a, &b)| {
                let sum = self.add(a, b);
                let over = self.lt(sum, a);
                let (sum, over) = self.carried(sum, over, carry);
                carry = Some(over);
                sum
            })
            .collect()
    }

    /// A sum and whether it overflowed, with one more carry.
    fn carried(&mut self, sum: Id, over: Id, carry: Option<Id>) -> (Id, Id) {
        let Some(carry) = carry else { return (sum, over) };
        let carry = self.zext(carry, self.width(sum));
        let total = self.add(sum, carry);
        let again = self.lt(total, sum);
        (total, self.or(over, again))
    }

    pub fn word_sub(&mut self, a: &[Id], b: &[Id]) -> Word {
        let mut borrow: Option<Id> = None;
        a.iter()
            .zip(b)
            .map(|(&a, &b)| {
                let difference = self.sub(a, b);
                let under = self.lt(a, b);
                let Some(before) = borrow else {
                    borrow = Some(under);
                    return difference;
                };
                let before = self.zext(before, self.width(difference));
                let again = self.lt(difference, before);
                borrow = Some(self.or(under, again));
                self.sub(difference, before)
            })
            .collect()
    }

    /// The product modulo 2^`width`; the operands may be narrower.
    pub fn word_mul(&mut self, a: &[Id], b: &[Id], width: u32) -> Word {
        let count = limbs(width) as usize;
        let (a, b) = (self.whole_limbs(a), self.whole_limbs(b));
        let zero = self.constant(0, 64);
        let mut sum = vec![zero; count];
        for (i, &x) in a.iter().enumerate().take(count) {
            let mut carry = zero;
            for (j, &y) in b.iter().enumerate().take(count - i) {
                let (low, high) = (self.mul(x, y), self.mul_high(x, y, false));
                let first = self.add(sum[i + j], low);
                let over = self.lt(first, low);
                let second = self.add(first, carry);
                let again = self.lt(second, carry);
                sum[i + j] = second;
                let (over, again) = (self.zext(over, 64), self.zext(again, 64));
                let high = self.add(high, over);
                carry = self.add(high, again);
            }
            if let Some(next) = sum.get_mut(i + b.len()) {
                *next = carry;
            }
        }
        self.word_resize(&sum, width)
    }

    /// The signed product, as wide as both operands together.
    pub fn word_mul_signed(&mut self, a: &[Id], b: &[Id]) -> Word {
        let width = self.word_width(a) + self.word_width(b);
        if let ([a], [b]) = (a, b) {
            let (a, b) = (self.sext(*a, 64), self.sext(*b, 64));
            let product = [self.mul(a, b), self.mul_high(a, b, true)];
            return self.word_resize(&product, width);
        }
        let (a, b) = (self.word_sext(a, width), self.word_sext(b, width));
        self.word_mul(&a, &b, width)
    }

    /// The same with the top limb widened to 64 bits.
    fn whole_limbs(&mut self, word: &[Id]) -> Word {
        self.word_resize(word, word.len() as u32 * 64)
    }

    pub fn word_eq(&mut self, a: &[Id], b: &[Id]) -> Id {
        let mut all = self.constant(1, 1);
        for (&a, &b) in a.iter().zip(b) {
            let equal = self.eq(a, b);
            all = self.and(all, equal);
        }
        all
    }

    pub fn word_lt(&mut self, a: &[Id], b: &[Id], signed: bool) -> Id {
        let mut less = self.constant(0, 1);
        for (k, (&x, &y)) in a.iter().zip(b).enumerate() {
            let here = if signed && k + 1 == a.len() { self.lt_signed(x, y) } else { self.lt(x, y) };
            let equal = self.eq(x, y);
            let below = self.and(equal, less);
            less = self.or(here, below);
        }
        less
    }

    /// Whether any bit is set.
    pub fn word_any(&mut self, word: &[Id]) -> Id {
        let mut any = self.constant(0, 1);
        for &limb in word {
            let here = self.any(limb);
            any = self.or(any, here);
        }
        any
    }

    /// Whether all bits are set.
    pub fn word_all(&mut self, word: &[Id]) -> Id {
        let mut all = self.constant(1, 1);
        for &limb in word {
            let ones = self.constant(u64::MAX, self.width(limb));
            let here = self.eq(limb, ones);
            all = self.and(all, here);
        }
        all
    }

    /// Whether an odd number of bits is set.
    pub fn word_parity(&mut self, word: &[Id]) -> Id {
        let mut odd = self.constant(0, 1);
        for &limb in word {
            let here = self.parity(limb);
            odd = self.xor(odd, here);
        }
        odd
    }

    /// How many bits are set, `width` bits wide.
    pub fn word_count_ones(&mut self, word: &[Id], width: u32) -> Word {
        let narrow = width.min(64);
        let mut count = self.constant(0, narrow);
        for &limb in word {
            let here = self.count_ones(limb, narrow);
            count = self.add(count, here);
        }
        self.word_resize(&[count], width)
    }

    /// An amount as one node of at most 64 bits; amounts that do not fit become all ones.
    pub fn amount(&mut self, amount: &[Id]) -> Id {
        let [low, high @ ..] = amount else { unreachable!("words are not empty") };
        let beyond = self.word_any(high);
        let most = self.constant(u64::MAX, self.width(*low));
        self.mux(beyond, most, *low)
    }

    pub fn word_shl(&mut self, a: &[Id], amount: &[Id]) -> Word {
        let width = self.word_width(a);
        let amount = self.amount(amount);
        if let [a] = a {
            return vec![self.shl(*a, amount)];
        }
        let zero = self.constant(0, 64);
        let word = self.whole_limbs(a);
        let moved = self.shift_limbs(&word, amount, |k, by| k.checked_sub(by), zero);
        let (bits, rest) = self.amounts_in_limb(amount);
        let shifted: Word = (0..moved.len())
            .map(|k| {
                let high = self.shl(moved[k], bits);
                let low = if k > 0 { moved[k - 1] } else { zero };
                let low = self.shr(low, rest);
                self.or(high, low)
            })
            .collect();
        let shifted = self.word_resize(&shifted, width);
        self.unless_beyond(&shifted, amount, width, zero)
    }

    /// Right, with zeros or copies of the sign.
    pub fn word_shr(&mut self, a: &[Id], amount: &[Id], signed: bool) -> Word {
        let width = self.word_width(a);
        let amount = self.amount(amount);
        if let [a] = a {
            return vec![if signed { self.sar(*a, amount) } else { self.shr(*a, amount) }];
        }
        let (word, fill) = if signed {
            let top = a[a.len() - 1];
            let sign = self.slice(top, self.width(top) - 1, 1);
            (self.word_sext(a, a.len() as u32 * 64), self.sext(sign, 64))
        } else {
            (self.whole_limbs(a), self.constant(0, 64))
        };
        let moved = self.shift_limbs(&word, amount, |k, by| Some(k + by), fill);
        let (bits, rest) = self.amounts_in_limb(amount);
        let shifted: Word = (0..moved.len())
            .map(|k| {
                let low = self.shr(moved[k], bits);
                let high = moved.get(k + 1).copied().unwrap_or(fill);
                let high = self.shl(high, rest);
                self.or(low, high)
            })
            .collect();
        let shifted = self.word_resize(&shifted, width);
        self.unless_beyond(&shifted, amount, width, fill)
    }

    /// Moves whole limbs by `amount / 64`, one bit of it after the other. `from(k, by)` says which limb comes to place
    /// k in a move by `by`.
    fn shift_limbs(&mut self, word: &[Id], amount: Id, from: fn(usize, usize) -> Option<usize>, fill: Id) -> Word {
        let mut word = word.to_vec();
        let mut bit = 6;
        while bit < self.width(amount) && (1 << (bit - 6)) < word.len() {
            let selector = self.slice(amount, bit, 1);
            let by = 1 << (bit - 6);
            word = (0..word.len())
                .map(|k| {
                    let source = from(k, by).and_then(|s| word.get(s)).copied().unwrap_or(fill);
                    self.mux(selector, source, word[k])
                })
                .collect();
            bit += 1;
        }
        word
    }

    /// `amount % 64`, and 64 minus that: 7 bits each.
    fn amounts_in_limb(&mut self, amount: Id) -> (Id, Id) {
        let bits = self.word_resize(&[amount], self.width(amount).min(6));
        let bits = self.zext(bits[0], 7);
        let limb = self.constant(64, 7);
        (bits, self.sub(limb, bits))
    }

    /// `word`, or `fill` everywhere if the amount is the width or more.
    fn unless_beyond(&mut self, word: &[Id], amount: Id, width: u32, fill: Id) -> Word {
        if self.width(amount) < 32 && width >= 1 << self.width(amount) {
            return word.to_vec();
        }
        let limit = self.constant(width as u64, self.width(amount));
        let inside = self.lt(amount, limit);
        word.iter()
            .map(|&limb| {
                let fill = self.slice(fill, 0, self.width(limb));
                self.mux(inside, limb, fill)
            })
            .collect()
    }
}
