//! One operation on a strip.

use super::{LEAST_BITS, Part};
use crate::compiled::lower::Lower;
use crate::flat::{Id, Op, container};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, I8, I8X16, I32, I64};
use cranelift_codegen::ir::{Endianness, InstBuilder, MemFlagsData, Value};
use heddle_hdl::bits::low_mask;

/// Rows and columns of the matrices of bits that are exchanged.
const ROWS: usize = 16;
const LANES: u32 = 8;

impl Lower<'_, '_> {
    /// A strip of a node of several bits per lane.
    pub(super) fn strip_of(&mut self, id: Id, strip: u32) -> Part {
        let node = self.flat.node(id);
        let (width, own) = (node.width, container(node.width));
        let args = &node.args;
        let first_width = args.first().map_or(width, |&a| self.width(a));
        match &node.op {
            Op::Not => {
                let ones = self.splat(low_mask(width), own);
                let part = self.part(args[0], strip, own);
                part.into_iter().zip(ones).map(|(v, ones)| self.b.ins().bxor(v, ones)).collect()
            }
            Op::And => self.two(id, strip, |lower, a, b| lower.b.ins().band(a, b)),
            Op::AndNot => self.two(id, strip, |lower, a, b| lower.b.ins().band_not(a, b)),
            Op::Or => self.two(id, strip, |lower, a, b| lower.b.ins().bor(a, b)),
            Op::Xor => self.two(id, strip, |lower, a, b| lower.b.ins().bxor(a, b)),
            Op::Add => {
                let sum = self.two(id, strip, |lower, a, b| lower.b.ins().iadd(a, b));
                self.mask_part(sum, width)
            }
            Op::Sub => {
                let difference = self.two(id, strip, |lower, a, b| lower.b.ins().isub(a, b));
                self.mask_part(difference, width)
            }
            Op::Mul => {
                let product = self.two(id, strip, |lower, a, b| lower.b.ins().imul(a, b));
                self.mask_part(product, width)
            }
            Op::Shl | Op::Shr | Op::Sar if self.lanes(args[1]) == 1 => self.shift_all(id, strip),
            Op::Shl if own == 32 && self.width(args[1]) <= 32 && cfg!(target_arch = "x86_64") => {
                self.shift_left(id, strip)
            }
            Op::Eq | Op::Ne | Op::Lt | Op::LtSigned => {
                let part = self.comparison(id, strip);
                let part = match (part.len(), own) {
                    (1, 64) => self.widen(part[0], true),
                    (2, 32) => vec![self.narrow(&part)],
                    _ => part,
                };
                self.mask_part(part, width)
            }
            Op::Blend => {
                let selector = self.part(args[0], strip, own);
                self.choose(&selector, args[1], args[2], strip, own)
            }
            Op::Mux => {
                let ones = self.copies(args[0], strip, own);
                self.choose(&ones, args[1], args[2], strip, own)
            }
            Op::Slice(low) => {
                let from = container(first_width);
                let part = self.part(args[0], strip, from);
                let part: Part = match low {
                    0 => part,
                    _ => part.into_iter().map(|v| self.b.ins().ushr_imm_u(v, i64::from(*low))).collect(),
                };
                let part = if from > own { vec![self.narrow(&part)] } else { part };
                if low + width == first_width { part } else { self.mask_part(part, width) }
            }
            Op::Cat if own == 32 && width >= LEAST_BITS && args.len() == width as usize => self.word_of_bits(id, strip),
            Op::Cat => {
                let mut at = 0;
                let mut all: Option<Part> = None;
                for &arg in args {
                    let part = self.part(arg, strip, own);
                    let up: Part = match at {
                        0 => part,
                        _ => part.into_iter().map(|v| self.b.ins().ishl_imm_u(v, i64::from(at))).collect(),
                    };
                    at += self.width(arg);
                    all = Some(match all {
                        None => up,
                        Some(all) => all.into_iter().zip(up).map(|(a, b)| self.b.ins().bor(a, b)).collect(),
                    });
                }
                all.expect("a concatenation has parts")
            }
            Op::ZExt => self.part(args[0], strip, own),
            Op::SExt if first_width == 1 => {
                let ones = self.copies(args[0], strip, own);
                self.mask_part(ones, width)
            }
            Op::SExt => {
                let part = self.part(args[0], strip, container(first_width));
                let part = self.signed_part(part, first_width);
                let part = if container(first_width) < own { self.widen(part[0], true) } else { part };
                self.mask_part(part, width)
            }
            Op::Read { memory, low, .. } if self.lanes(args[0]) == 1 => self.load_words(id, *memory, *low, strip),
            _ => {
                let lanes = self.lane_by_lane(id, strip);
                self.side_by_side(&lanes, own)
            }
        }
    }

    /// A strip of a concatenation of single bits, whose values in all lanes are there packed: rows and columns of a
    /// matrix of bits are exchanged. A byte of each row, which is eight lanes, goes into a vector, of which the highest
    /// bits of all bytes are a column.
    fn word_of_bits(&mut self, id: Id, strip: u32) -> Part {
        let own = strip * self.strip.size..(strip + 1) * self.strip.size;
        let words: Vec<Value> =
            (own.start / LANES..own.end.div_ceil(LANES)).flat_map(|group| self.words_of_bits(id, group)).collect();
        let first = (own.start % LANES) as usize;
        self.side_by_side(&words[first..first + own.len()], 32)
    }

    /// The words of eight lanes, from a multiple of eight on.
    fn words_of_bits(&mut self, id: Id, group: u32) -> Vec<Value> {
        if let Some(words) = self.strip.of_bits.get(&(id, group)) {
            return words.clone();
        }
        let node = self.flat.node(id);
        let mut words: Vec<Option<Value>> = vec![None; LANES as usize];
        for (part, rows) in node.args.chunks(ROWS).enumerate() {
            let mut matrix = self.vconst(vec![0; ROWS], I8X16);
            for (at, &row) in (0..).zip(rows) {
                let packed = self.packed(row, node.lanes);
                let down = if group == 0 { packed } else { self.b.ins().ushr_imm_u(packed, i64::from(group * LANES)) };
                let byte = self.convert(down, I8);
                matrix = self.b.ins().insertlane(matrix, byte, at);
            }
            for word in words.iter_mut().rev() {
                let column = self.b.ins().vhigh_bits(I32, matrix);
                matrix = self.b.ins().iadd(matrix, matrix);
                *word = Some(match *word {
                    None => column,
                    Some(below) => {
                        let up = self.b.ins().ishl_imm_u(column, (part * ROWS) as i64);
                        self.b.ins().bor(below, up)
                    }
                });
            }
        }
        let words: Vec<Value> = words.into_iter().flatten().collect();
        self.strip.of_bits.insert((id, group), words.clone());
        words
    }

    fn two(&mut self, id: Id, strip: u32, op: fn(&mut Self, Value, Value) -> Value) -> Part {
        let node = self.flat.node(id);
        let own = container(node.width);
        let (a, b) = (self.part(node.args[0], strip, own), self.part(node.args[1], strip, own));
        a.into_iter().zip(b).map(|(a, b)| op(self, a, b)).collect()
    }

    fn choose(&mut self, selector: &[Value], on: Id, off: Id, strip: u32, own: u32) -> Part {
        let zero = |id: Id| self.flat.constant(id) == Some(0);
        let (no_on, no_off) = (zero(on), zero(off));
        let (on, off) = (self.part(on, strip, own), self.part(off, strip, own));
        let choice = |lower: &mut Self, k: usize| match (no_on, no_off) {
            (_, true) => lower.b.ins().band(selector[k], on[k]),
            (true, _) => lower.b.ins().band_not(off[k], selector[k]),
            _ => lower.b.ins().bitselect(selector[k], on[k], off[k]),
        };
        (0..selector.len()).map(|k| choice(self, k)).collect()
    }

    /// All bits of each lane on where the comparison holds, in the container of what is compared.
    pub(super) fn comparison(&mut self, id: Id, strip: u32) -> Part {
        let node = self.flat.node(id);
        let width = self.width(node.args[0]);
        let own = container(width);
        let (mut a, mut b) = (self.part(node.args[0], strip, own), self.part(node.args[1], strip, own));
        let condition = match node.op {
            Op::Eq => IntCC::Equal,
            Op::Ne => IntCC::NotEqual,
            // Narrow values are not negative.
            Op::Lt if width < own => IntCC::SignedLessThan,
            Op::Lt => IntCC::UnsignedLessThan,
            _ => IntCC::SignedLessThan,
        };
        if node.op == Op::LtSigned && width < own {
            let up = |lower: &mut Self, v| lower.b.ins().ishl_imm_u(v, i64::from(own - width));
            a = a.into_iter().map(|v| up(self, v)).collect();
            b = b.into_iter().map(|v| up(self, v)).collect();
        }
        a.into_iter().zip(b).map(|(a, b)| self.b.ins().icmp(condition, a, b)).collect()
    }

    /// A shift by the same amount in all lanes.
    fn shift_all(&mut self, id: Id, strip: u32) -> Part {
        let node = self.flat.node(id);
        let (width, own) = (node.width, container(node.width));
        let amount_width = self.width(node.args[1]);
        let amount = self.value(node.args[1]);
        let part = self.part(node.args[0], strip, own);
        // Whether the amount can be too large for the machine's shift.
        let far = amount_width >= 32 || (1 << amount_width) > own;
        let ty = self.b.func.dfg.value_type(amount);
        if node.op == Op::Sar {
            let part = self.signed_part(part, width);
            let most = self.constant(u64::from(own) - 1, ty);
            let amount = if far { self.b.ins().umin(amount, most) } else { amount };
            let part = part.into_iter().map(|v| self.b.ins().sshr(v, amount)).collect();
            return self.mask_part(part, width);
        }
        let left = node.op == Op::Shl;
        let shifted: Part = part
            .into_iter()
            .map(|v| if left { self.b.ins().ishl(v, amount) } else { self.b.ins().ushr(v, amount) })
            .collect();
        let shifted = if left { self.mask_part(shifted, width) } else { shifted };
        if !far {
            return shifted;
        }
        let limit = self.constant(u64::from(width), ty);
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, amount, limit);
        let (one, all) = (if own == 32 { I32 } else { I64 }, self.vector(own));
        let ones = self.b.ins().bmask(one, inside);
        let ones = self.b.ins().splat(all, ones);
        shifted.into_iter().map(|v| self.b.ins().band(v, ones)).collect()
    }

    /// A shift to the left by an amount in each lane, as a product with a power of two, which is made as the exponent
    /// of a floating-point number.
    fn shift_left(&mut self, id: Id, strip: u32) -> Part {
        const EXPONENT: i64 = 23;
        const ONE: u64 = 127 << EXPONENT;
        let node = self.flat.node(id);
        let (width, amount_width) = (node.width, self.width(node.args[1]));
        let amount = self.part(node.args[1], strip, 32)[0];
        let exponent = self.b.ins().ishl_imm_u(amount, EXPONENT);
        let one = self.splat(ONE, 32)[0];
        let power = self.b.ins().iadd(exponent, one);
        let flags = MemFlagsData::new().with_endianness(Endianness::Little);
        let (whole, float) = (self.vector(32), F32.by(self.strip.size).expect("a power of two"));
        let power = self.b.ins().bitcast(float, flags, power);
        // 2^31 is out of range, for which the machine gives its bits all the same.
        let power = self.b.ins().x86_cvtt2dq(whole, power);
        let shifted = if self.flat.constant(node.args[0]) == Some(1) {
            power
        } else {
            let value = self.part(node.args[0], strip, 32)[0];
            self.b.ins().imul(value, power)
        };
        let shifted = self.mask_part(vec![shifted], width);
        if amount_width <= 5 {
            return shifted;
        }
        let limit = self.splat(u64::from(width), 32)[0];
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, amount, limit);
        vec![self.b.ins().band(shifted[0], inside)]
    }

    /// The values of a node in the lanes of a strip, each computed by itself.
    pub(super) fn lane_by_lane(&mut self, id: Id, strip: u32) -> Vec<Value> {
        let node = self.flat.node(id);
        let size = self.strip.size;
        let lanes = strip * size..((strip + 1) * size).min(node.lanes);
        let widths: Vec<u32> = node.args.iter().map(|&a| self.width(a)).collect();
        lanes
            .map(|lane| match &node.op {
                Op::Gather => self.value(node.args[lane as usize]),
                Op::Read { memory, low, .. } => self.load_lane(id, *memory, *low, lane),
                op => {
                    let args: Vec<Value> = node.args.iter().map(|&a| self.lane_of(a, lane)).collect();
                    self.apply(op, node.width, &args, &widths)
                }
            })
            .collect()
    }
}
