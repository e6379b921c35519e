//! One operation on values of one lane.

use super::{Lower, value_type};
use crate::flat::{Id, Op};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Type, Value};
use heddle_hdl::bits::low_mask;

impl Lower<'_, '_> {
    /// Zero-extended or cut.
    pub fn convert(&mut self, value: Value, ty: Type) -> Value {
        match (self.b.func.dfg.value_type(value), ty) {
            (from, to) if from == to => value,
            (from, to) if from.bits() > to.bits() => self.b.ins().ireduce(to, value),
            (_, to) => self.b.ins().uextend(to, value),
        }
    }

    pub fn mask(&mut self, value: Value, width: u32) -> Value {
        let ty = self.b.func.dfg.value_type(value);
        if width == ty.bits() {
            return value;
        }
        let mask = self.constant(low_mask(width), ty);
        self.b.ins().band(value, mask)
    }

    /// The value with copies of the sign above its width.
    pub fn signed(&mut self, value: Value, width: u32) -> Value {
        let shift = self.b.func.dfg.value_type(value).bits() - width;
        if shift == 0 {
            return value;
        }
        let up = self.b.ins().ishl_imm_u(value, shift as i64);
        self.b.ins().sshr_imm_u(up, shift as i64)
    }

    fn compare(&mut self, condition: IntCC, a: Value, b: Value) -> Value {
        self.b.ins().icmp(condition, a, b)
    }

    /// Anything that is neither a branch nor computed strip by strip.
    pub(super) fn operation(&mut self, id: Id) -> Value {
        let node = self.flat.node(id);
        match &node.op {
            Op::Const(value) => self.constant(*value, value_type(node.width)),
            Op::Cell { cell, lane, low } => self.load_cell(id, *cell, *lane, *low),
            Op::Kept { table, offset } => self.load_kept(id, *table, *offset),
            Op::Read { memory, lane, low } => self.load_word(id, *memory, *lane, *low),
            Op::Lane(_) | Op::Pick | Op::OrLanes | Op::Consts(_) => self.value_of_vector(id),
            Op::Pack | Op::Unpack => self.value(node.args[0]),
            _ if node.lanes > 1 => self.packed_logic(id),
            op => {
                let args: Vec<Value> = node.args.iter().map(|&a| self.value(a)).collect();
                let widths: Vec<u32> = node.args.iter().map(|&a| self.width(a)).collect();
                self.apply(op, node.width, &args, &widths)
            }
        }
    }

    /// An operation on values of one lane and of these widths.
    pub fn apply(&mut self, op: &Op, width: u32, args: &[Value], widths: &[u32]) -> Value {
        let ty = value_type(width);
        let arg_width = widths[0];
        match op {
            Op::Not => {
                let ones = self.constant(low_mask(width), ty);
                self.b.ins().bxor(args[0], ones)
            }
            Op::And => self.b.ins().band(args[0], args[1]),
            Op::AndNot => self.b.ins().band_not(args[0], args[1]),
            Op::Or => self.b.ins().bor(args[0], args[1]),
            Op::Xor => self.b.ins().bxor(args[0], args[1]),
            Op::Add => {
                let sum = self.b.ins().iadd(args[0], args[1]);
                self.mask(sum, width)
            }
            Op::Sub => {
                let difference = self.b.ins().isub(args[0], args[1]);
                self.mask(difference, width)
            }
            Op::Mul => {
                let product = self.b.ins().imul(args[0], args[1]);
                self.mask(product, width)
            }
            Op::MulHigh => self.b.ins().umulhi(args[0], args[1]),
            Op::MulHighSigned => self.b.ins().smulhi(args[0], args[1]),
            Op::Shl | Op::Shr | Op::Sar => self.shift(op, width, args[0], args[1], widths[1]),
            Op::Eq => self.compare(IntCC::Equal, args[0], args[1]),
            Op::Ne => self.compare(IntCC::NotEqual, args[0], args[1]),
            Op::Lt => self.compare(IntCC::UnsignedLessThan, args[0], args[1]),
            Op::LtSigned => {
                let (a, b) = (self.signed(args[0], arg_width), self.signed(args[1], arg_width));
                self.compare(IntCC::SignedLessThan, a, b)
            }
            Op::Mux => self.b.ins().select(args[0], args[1], args[2]),
            Op::Case(labels) => {
                let subject = self.b.func.dfg.value_type(args[0]);
                labels.iter().zip(&args[2..]).fold(args[1], |value, (&label, &arm)| {
                    let label = self.constant(label, subject);
                    let hit = self.b.ins().icmp(IntCC::Equal, args[0], label);
                    self.b.ins().select(hit, arm, value)
                })
            }
            Op::Slice(low) => {
                let down = if *low > 0 { self.b.ins().ushr_imm_u(args[0], *low as i64) } else { args[0] };
                let down = if low + width == arg_width || width == ty.bits() { down } else { self.mask(down, width) };
                self.convert(down, ty)
            }
            Op::Cat => {
                let mut at = 0;
                let mut all: Option<Value> = None;
                for (&part, &arg) in widths.iter().zip(args) {
                    let wide = self.convert(arg, ty);
                    let up = if at > 0 { self.b.ins().ishl_imm_u(wide, at as i64) } else { wide };
                    at += part;
                    all = Some(all.map_or(up, |all| self.b.ins().bor(all, up)));
                }
                all.expect("a concatenation has parts")
            }
            Op::ZExt => self.convert(args[0], ty),
            Op::SExt if arg_width == 1 => {
                let copies = self.b.ins().bmask(ty, args[0]);
                self.mask(copies, width)
            }
            Op::SExt => {
                let signed = self.signed(args[0], arg_width);
                let wide =
                    if self.b.func.dfg.value_type(signed) == ty { signed } else { self.b.ins().sextend(ty, signed) };
                self.mask(wide, width)
            }
            Op::Parity => {
                let ones = self.b.ins().popcnt(args[0]);
                let odd = self.mask(ones, 1);
                self.convert(odd, ty)
            }
            Op::CountOnes => {
                let ones = self.b.ins().popcnt(args[0]);
                self.convert(ones, ty)
            }
            Op::Reverse => {
                let reversed = self.b.ins().bitrev(args[0]);
                match ty.bits() - width {
                    0 => reversed,
                    rest => self.b.ins().ushr_imm_u(reversed, i64::from(rest)),
                }
            }
            other => unreachable!("{other:?} is no operation on values of one lane"),
        }
    }

    fn shift(&mut self, op: &Op, width: u32, value: Value, amount: Value, amount_width: u32) -> Value {
        let ty = self.b.func.dfg.value_type(value);
        // Whether the amount can be too large for the machine's shift.
        let far = amount_width >= 32 || (1 << amount_width) > ty.bits();
        let amount_type = self.b.func.dfg.value_type(amount);
        if *op == Op::Sar {
            let value = self.signed(value, width);
            let amount = if far {
                let most = self.constant(ty.bits() as u64 - 1, amount_type);
                self.b.ins().umin(amount, most)
            } else {
                amount
            };
            let shifted = self.b.ins().sshr(value, amount);
            return self.mask(shifted, width);
        }
        let shifted = if *op == Op::Shl { self.b.ins().ishl(value, amount) } else { self.b.ins().ushr(value, amount) };
        let shifted = if *op == Op::Shl { self.mask(shifted, width) } else { shifted };
        if !far {
            return shifted;
        }
        let limit = self.constant(width as u64, amount_type);
        let inside = self.b.ins().icmp(IntCC::UnsignedLessThan, amount, limit);
        let zero = self.constant(0, ty);
        self.b.ins().select(inside, shifted, zero)
    }
}
