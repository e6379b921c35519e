//! One thread alone, instruction by instruction: RV32IM as the manual has it, without cycles.

use std::collections::HashMap;

pub struct Thread {
    pub registers: [u32; 32],
    /// Bytes that were stored.
    pub memory: HashMap<u32, u8>,
    pub number: u32,
}

impl Thread {
    pub fn new(number: u32) -> Thread {
        Thread { registers: [0; 32], memory: HashMap::new(), number }
    }

    /// Runs from address 0 to `ecall`. `mhartid` is the only CSR.
    pub fn run(&mut self, program: &[u32]) {
        let mut pc = 0u32;
        for _ in 0..100_000 {
            match self.step(program[(pc / 4) as usize], pc) {
                Some(next) => pc = next,
                None => return,
            }
        }
        panic!("thread {} does not end", self.number);
    }

    fn step(&mut self, word: u32, pc: u32) -> Option<u32> {
        let (rd, funct3, funct7) = ((word >> 7 & 31) as usize, word >> 12 & 7, word >> 25);
        let a = self.registers[(word >> 15 & 31) as usize];
        let b = self.registers[(word >> 20 & 31) as usize];
        let imm_i = ((word as i32) >> 20) as u32;
        let mut next = pc + 4;
        let result = match word & 0x7f {
            0x37 => Some(word & !0xfff),
            0x17 => Some(pc.wrapping_add(word & !0xfff)),
            0x6f => {
                let offset = (word >> 21 & 0x3ff) << 1 | (word >> 20 & 1) << 11 | (word >> 12 & 0xff) << 12;
                next = pc.wrapping_add(offset | if word >> 31 == 1 { 0xfff0_0000 } else { 0 });
                Some(pc + 4)
            }
            0x67 => {
                next = a.wrapping_add(imm_i) & !1;
                Some(pc + 4)
            }
            0x63 => {
                let holds = match funct3 {
                    0 => a == b,
                    1 => a != b,
                    4 => (a as i32) < b as i32,
                    5 => a as i32 >= b as i32,
                    6 => a < b,
                    _ => a >= b,
                };
                let offset = (word >> 8 & 15) << 1 | (word >> 25 & 63) << 5 | (word >> 7 & 1) << 11;
                if holds {
                    next = pc.wrapping_add(offset | if word >> 31 == 1 { 0xffff_f000 } else { 0 });
                }
                None
            }
            0x03 => {
                let at = a.wrapping_add(imm_i);
                let bytes = [0, 1, 2, 3].map(|k| self.memory.get(&(at + k)).copied().unwrap_or(0));
                let word = u32::from_le_bytes(bytes);
                Some(match funct3 {
                    0 => word as i8 as u32,
                    1 => word as i16 as u32,
                    4 => word & 0xff,
                    5 => word & 0xffff,
                    _ => word,
                })
            }
            0x23 => {
                let at = a.wrapping_add(imm_i & !31 | rd as u32);
                self.memory.extend((0..1 << funct3).map(|k| (at + k, (b >> (8 * k)) as u8)));
                None
            }
            0x13 => Some(compute(funct3, funct3 == 5 && funct7 == 0x20, a, imm_i)),
            0x33 if funct7 == 1 => Some(multiply(funct3, a, b)),
            0x33 => Some(compute(funct3, funct7 == 0x20, a, b)),
            0x73 if word == 0x73 => return None,
            _ => Some(self.number),
        };
        if let Some(value) = result.filter(|_| rd != 0) {
            self.registers[rd] = value;
        }
        Some(next)
    }
}

fn compute(funct3: u32, alternative: bool, a: u32, b: u32) -> u32 {
    match (funct3, alternative) {
        (0, true) => a.wrapping_sub(b),
        (0, _) => a.wrapping_add(b),
        (1, _) => a << (b & 31),
        (2, _) => u32::from((a as i32) < b as i32),
        (3, _) => u32::from(a < b),
        (4, _) => a ^ b,
        (5, true) => ((a as i32) >> (b & 31)) as u32,
        (5, _) => a >> (b & 31),
        (6, _) => a | b,
        _ => a & b,
    }
}

fn multiply(funct3: u32, a: u32, b: u32) -> u32 {
    let (sa, sb) = (a as i32, b as i32);
    match funct3 {
        0 => a.wrapping_mul(b),
        1 => ((i64::from(sa) * i64::from(sb)) >> 32) as u32,
        2 => ((i64::from(sa) * i64::from(b)) >> 32) as u32,
        3 => ((u64::from(a) * u64::from(b)) >> 32) as u32,
        4 if b == 0 => u32::MAX,
        4 => sa.wrapping_div(sb) as u32,
        5 => a.checked_div(b).unwrap_or(u32::MAX),
        6 if b == 0 => a,
        6 => sa.wrapping_rem(sb) as u32,
        _ => a.checked_rem(b).unwrap_or(a),
    }
}
