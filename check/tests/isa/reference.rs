//! What the manual says that instructions compute, on integers without end. Shares nothing with core and simulator.

/// A word as a signed integer.
pub fn signed(word: u32) -> i128 {
    let value = i128::from(word);
    if value < 1 << 31 { value } else { value - (1 << 32) }
}

/// The lower 32 bits.
fn low(value: i128) -> u32 {
    value.rem_euclid(1 << 32) as u32
}

/// The 32 bits above.
fn high(value: i128) -> u32 {
    low(value.div_euclid(1 << 32))
}

/// Of each bit of the operands.
fn bitwise(a: u32, b: u32, f: impl Fn(bool, bool) -> bool) -> u32 {
    let bit = |word: u32, k: u32| word & 1 << k != 0;
    (0..32).filter(|&k| f(bit(a, k), bit(b, k))).map(|k| 1 << k).sum()
}

/// 2 to the power of the lower five bits.
fn power(b: u32) -> i128 {
    1 << (b % 32)
}

/// The quotient rounded towards zero and the remainder with the sign of the dividend; by zero, −1 and the dividend.
fn divide(a: i128, b: i128) -> (i128, i128) {
    if b == 0 { (-1, a) } else { (a / b, a % b) }
}

/// Name, funct7 and funct3 (of opcode 0x33), and what it computes.
pub type Operation = (&'static str, u32, u32, fn(u32, u32) -> u32);

pub const REGISTER: [Operation; 18] = [
    ("add", 0x00, 0, |a, b| low(i128::from(a) + i128::from(b))),
    ("sub", 0x20, 0, |a, b| low(i128::from(a) - i128::from(b))),
    ("sll", 0x00, 1, |a, b| low(i128::from(a) * power(b))),
    ("slt", 0x00, 2, |a, b| u32::from(signed(a) < signed(b))),
    ("sltu", 0x00, 3, |a, b| u32::from(i128::from(a) < i128::from(b))),
    ("xor", 0x00, 4, |a, b| bitwise(a, b, |a, b| a != b)),
    ("srl", 0x00, 5, |a, b| low(i128::from(a) / power(b))),
    ("sra", 0x20, 5, |a, b| low(signed(a).div_euclid(power(b)))),
    ("or", 0x00, 6, |a, b| bitwise(a, b, |a, b| a || b)),
    ("and", 0x00, 7, |a, b| bitwise(a, b, |a, b| a && b)),
    ("mul", 0x01, 0, |a, b| low(i128::from(a) * i128::from(b))),
    ("mulh", 0x01, 1, |a, b| high(signed(a) * signed(b))),
    ("mulhsu", 0x01, 2, |a, b| high(signed(a) * i128::from(b))),
    ("mulhu", 0x01, 3, |a, b| high(i128::from(a) * i128::from(b))),
    ("div", 0x01, 4, |a, b| low(divide(signed(a), signed(b)).0)),
    ("divu", 0x01, 5, |a, b| low(divide(i128::from(a), i128::from(b)).0)),
    ("rem", 0x01, 6, |a, b| low(divide(signed(a), signed(b)).1)),
    ("remu", 0x01, 7, |a, b| low(divide(i128::from(a), i128::from(b)).1)),
];

/// The operation of a name.
pub fn operation(name: &str) -> fn(u32, u32) -> u32 {
    REGISTER.iter().find(|o| o.0 == name).expect("the name of an operation").3
}

/// Name, funct5, and what an atomic operation leaves in memory of what was there and the operand.
pub type Atomic = (&'static str, u32, fn(u32, u32) -> u32);

pub const ATOMIC: [Atomic; 9] = [
    ("amoadd", 0b00000, |old, b| low(i128::from(old) + i128::from(b))),
    ("amoswap", 0b00001, |_, b| b),
    ("amoxor", 0b00100, |old, b| bitwise(old, b, |a, b| a != b)),
    ("amoor", 0b01000, |old, b| bitwise(old, b, |a, b| a || b)),
    ("amoand", 0b01100, |old, b| bitwise(old, b, |a, b| a && b)),
    ("amomin", 0b10000, |old, b| if signed(old) < signed(b) { old } else { b }),
    ("amomax", 0b10100, |old, b| if signed(old) > signed(b) { old } else { b }),
    ("amominu", 0b11000, |old, b| if i128::from(old) < i128::from(b) { old } else { b }),
    ("amomaxu", 0b11100, |old, b| if i128::from(old) > i128::from(b) { old } else { b }),
];

/// Name, funct3, whether it is taken.
pub type Condition = (&'static str, u32, fn(u32, u32) -> bool);

pub const BRANCH: [Condition; 6] = [
    ("beq", 0, |a, b| a == b),
    ("bne", 1, |a, b| a != b),
    ("blt", 4, |a, b| signed(a) < signed(b)),
    ("bge", 5, |a, b| signed(a) >= signed(b)),
    ("bltu", 6, |a, b| i128::from(a) < i128::from(b)),
    ("bgeu", 7, |a, b| i128::from(a) >= i128::from(b)),
];

/// What a load of `bytes` bytes gives from a word's byte `offset` on.
pub fn loaded(word: u32, offset: u32, bytes: u32, is_signed: bool) -> u32 {
    let range = 1i128 << (8 * bytes);
    let value = (i128::from(word) >> (8 * offset)).rem_euclid(range);
    low(if is_signed && value >= range / 2 { value - range } else { value })
}

/// The word with `bytes` bytes from `offset` on replaced by the lower ones of `data`.
pub fn stored(word: u32, offset: u32, bytes: u32, data: u32) -> u32 {
    let mut image = word.to_le_bytes();
    let (start, end) = (offset as usize, (offset + bytes) as usize);
    image[start..end].copy_from_slice(&data.to_le_bytes()[..bytes as usize]);
    u32::from_le_bytes(image)
}

/// Values at the edges of what instructions tell apart.
pub const EDGES: [u32; 30] = [
    0,
    1,
    2,
    3,
    31,
    32,
    33,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0x8000,
    0x8001,
    0xffff,
    0x1_0000,
    0x3fff_ffff,
    0x4000_0001,
    0x5555_5555,
    0x7fff_fffe,
    0x7fff_ffff,
    0x8000_0000,
    0x8000_0001,
    0xaaaa_aaaa,
    0xc000_0000,
    0xffff_0000,
    0xffff_8000,
    0xffff_ff80,
    0xffff_fffe,
    0xffff_ffff,
];

/// All pairs of edges, and every power of two and its neighbours with edges that turn.
pub fn pairs() -> Vec<(u32, u32)> {
    let mut pairs: Vec<_> = EDGES.iter().flat_map(|&a| EDGES.map(|b| (a, b))).collect();
    for k in 0..32 {
        let power = 1u32 << k;
        for (n, value) in [power.wrapping_sub(1), power, power.wrapping_add(1)].into_iter().enumerate() {
            let edge = EDGES[(3 * k as usize + n) % EDGES.len()];
            pairs.extend([(value, edge), (edge, value), (value, value), (value, power)]);
        }
    }
    // Not in order, so that the lanes of a warp have operands of every kind.
    fastrand::Rng::with_seed(1).shuffle(&mut pairs);
    pairs
}

#[test]
fn the_tables_of_the_manual() {
    let (least, most, minus) = (0x8000_0000, 0x7fff_ffff, |n: i32| -n as u32);
    let rows = [
        // Division by zero and overflow: table 7.1 of the manual.
        ("divu", most, 0, u32::MAX),
        ("remu", most, 0, most),
        ("div", minus(5), 0, minus(1)),
        ("rem", minus(5), 0, minus(5)),
        ("div", 0, 0, minus(1)),
        ("rem", 0, 0, 0),
        ("div", least, minus(1), least),
        ("rem", least, minus(1), 0),
        // Towards zero; the remainder has the sign of the dividend.
        ("div", minus(7), 2, minus(3)),
        ("rem", minus(7), 2, minus(1)),
        ("div", 7, minus(2), minus(3)),
        ("rem", 7, minus(2), 1),
        ("divu", minus(7), 2, 0x7fff_fffc),
        ("divu", least, minus(1), 0),
        ("remu", least, minus(1), least),
        ("mul", least, minus(1), least),
        ("mulh", least, least, 0x4000_0000),
        ("mulh", minus(1), minus(1), 0),
        ("mulh", minus(1), 1, minus(1)),
        ("mulhsu", minus(1), minus(1), minus(1)),
        ("mulhsu", least, minus(1), least),
        ("mulhsu", 1, minus(1), 0),
        ("mulhu", minus(1), minus(1), minus(2)),
        ("mulhu", least, 2, 1),
        ("add", most, 1, least),
        ("add", minus(1), 1, 0),
        ("sub", least, 1, most),
        ("sub", 0, 1, minus(1)),
        // Of a shift amount, the lower five bits count.
        ("sll", 1, 31, least),
        ("sll", 3, 32, 3),
        ("sll", 3, 33, 6),
        ("srl", least, 31, 1),
        ("srl", minus(1), 32, minus(1)),
        ("sra", least, 31, minus(1)),
        ("sra", least, 33, 0xc000_0000),
        ("sra", most, 31, 0),
        ("slt", least, most, 1),
        ("slt", most, least, 0),
        ("sltu", least, most, 0),
        ("sltu", 0, minus(1), 1),
        ("slt", 0, minus(1), 0),
        ("xor", 0x5555_5555, minus(1), 0xaaaa_aaaa),
        ("or", 0x5555_0000, 0xaaaa, 0x5555_aaaa),
        ("and", 0x5555_5555, 0xffff, 0x5555),
    ];
    for (name, a, b, want) in rows {
        assert_eq!(operation(name)(a, b), want, "{name} {a:#x}, {b:#x}");
    }
    assert_eq!(loaded(0x1234_80ff, 0, 1, true), minus(1));
    assert_eq!(loaded(0x1234_80ff, 0, 1, false), 0xff);
    assert_eq!(loaded(0x1234_80ff, 0, 2, true), 0xffff_80ff);
    assert_eq!(loaded(0x1234_80ff, 2, 2, true), 0x1234);
    assert_eq!(stored(0x1234_5678, 1, 1, 0xabcd), 0x1234_cd78);
    assert_eq!(stored(0x1234_5678, 2, 2, 0xabcd), 0xabcd_5678);
}
