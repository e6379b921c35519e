//! Values that instructions compute, and the immediates they hold.

/// The result of an RV32M operation.
pub fn multiply_or_divide(funct3: u32, a: u32, b: u32) -> u32 {
    let (signed_a, signed_b) = (a as i32, b as i32);
    match funct3 {
        0 => a.wrapping_mul(b),
        1 => ((signed_a as i64 * signed_b as i64) >> 32) as u32,
        2 => ((signed_a as i64 * b as i64) >> 32) as u32,
        3 => ((a as u64 * b as u64) >> 32) as u32,
        4 if b == 0 => u32::MAX,
        4 => signed_a.wrapping_div(signed_b) as u32,
        5 => a.checked_div(b).unwrap_or(u32::MAX),
        6 if b == 0 => a,
        6 => signed_a.wrapping_rem(signed_b) as u32,
        _ => a.checked_rem(b).unwrap_or(a),
    }
}

/// What an atomic operation leaves in memory; `None` if there is no such operation. `funct5` is bits 31..27 of the
/// instruction.
pub fn atomic(funct5: u32, old: u32, operand: u32) -> Option<u32> {
    Some(match funct5 {
        0b00000 => old.wrapping_add(operand),
        0b00001 => operand,
        0b00100 => old ^ operand,
        0b01000 => old | operand,
        0b01100 => old & operand,
        0b10000 => (old as i32).min(operand as i32) as u32,
        0b10100 => (old as i32).max(operand as i32) as u32,
        0b11000 => old.min(operand),
        0b11100 => old.max(operand),
        _ => return None,
    })
}

/// Bits `high..=low` of a word, moved to the bottom.
fn bits(word: u32, high: u32, low: u32) -> u32 {
    word >> low & ((1 << (high - low + 1)) - 1)
}

/// A value of `width` bits, sign-extended.
fn sign_extend(value: u32, width: u32) -> u32 {
    ((value << (32 - width)) as i32 >> (32 - width)) as u32
}

pub fn immediate_s(word: u32) -> u32 {
    sign_extend(bits(word, 31, 25) << 5 | bits(word, 11, 7), 12)
}

pub fn immediate_b(word: u32) -> u32 {
    let high = bits(word, 31, 31) << 12 | bits(word, 7, 7) << 11;
    sign_extend(high | bits(word, 30, 25) << 5 | bits(word, 11, 8) << 1, 13)
}

pub fn immediate_j(word: u32) -> u32 {
    let high = bits(word, 31, 31) << 20 | bits(word, 19, 12) << 12;
    sign_extend(high | bits(word, 20, 20) << 11 | bits(word, 30, 21) << 1, 21)
}
