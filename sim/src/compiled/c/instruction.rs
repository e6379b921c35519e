//! The value of one instruction.

use super::{Base, Writer, signed_name, type_name};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{Inst, InstructionData, Opcode, Type, Value};

fn list<T: ToString>(values: impl IntoIterator<Item = T>) -> String {
    values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>().join(", ")
}

/// A vector constant, out of its bytes.
fn vector(ty: Type, bytes: &[u8]) -> String {
    let size = ty.lane_type().bytes() as usize;
    let lanes = bytes.chunks(size).map(|lane| {
        let value = lane.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
        format!("{value}u{}", if size == 8 { "ll" } else { "" })
    });
    format!("({}){{ {} }}", type_name(ty), list(lanes))
}

/// The operator of a comparison, and whether it is one of signed numbers.
fn comparison(condition: IntCC) -> (&'static str, bool) {
    match condition {
        IntCC::Equal => ("==", false),
        IntCC::NotEqual => ("!=", false),
        IntCC::UnsignedLessThan => ("<", false),
        IntCC::UnsignedGreaterThanOrEqual => (">=", false),
        IntCC::UnsignedGreaterThan => (">", false),
        IntCC::UnsignedLessThanOrEqual => ("<=", false),
        IntCC::SignedLessThan => ("<", true),
        IntCC::SignedGreaterThanOrEqual => (">=", true),
        IntCC::SignedGreaterThan => (">", true),
        IntCC::SignedLessThanOrEqual => ("<=", true),
    }
}

impl Writer<'_> {
    /// What is on the right side of the assignment to `result`.
    pub(super) fn value(&mut self, inst: Inst, data: &InstructionData, arguments: &[Value], result: Value) -> String {
        let ty = self.ty(result);
        let name = type_name(ty);
        let a = arguments.first().map(Value::to_string).unwrap_or_default();
        let b = arguments.get(1).map(Value::to_string).unwrap_or_default();
        let from = arguments.first().map_or(ty, |&value| self.ty(value));
        let infix = |operator: &str| format!("{a} {operator} {b}");
        // The amount counts modulo the width of a lane.
        let amount = format!("({b} & {})", ty.lane_bits() - 1);
        match data.opcode() {
            Opcode::Iconst => {
                let InstructionData::UnaryImm { imm, .. } = data else { unreachable!("a constant's format") };
                let bits = imm.bits() as u64 & u64::MAX >> (64 - ty.bits());
                format!("{bits}u{}", if ty.bits() == 64 { "ll" } else { "" })
            }
            Opcode::Vconst => {
                let InstructionData::UnaryConst { constant_handle, .. } = data else {
                    unreachable!("a constant's format")
                };
                vector(ty, self.function.dfg.constants.get(*constant_handle).as_slice())
            }
            Opcode::Iadd => infix("+"),
            Opcode::Isub => infix("-"),
            Opcode::Imul => infix("*"),
            Opcode::Band => infix("&"),
            Opcode::Bor => infix("|"),
            Opcode::Bxor => infix("^"),
            Opcode::Bnot => format!("~{a}"),
            Opcode::Ishl => format!("{a} << {amount}"),
            Opcode::Ushr => format!("{a} >> {amount}"),
            Opcode::Sshr => format!("({name})(({}){a} >> {amount})", signed_name(ty)),
            Opcode::Umulhi => format!("(u64)((unsigned __int128){a} * {b} >> 64)"),
            Opcode::Smulhi => format!("(u64)((__int128)(i64){a} * (i64){b} >> 64)"),
            Opcode::Umin => format!("{a} < {b} ? {a} : {b}"),
            Opcode::Icmp => {
                let InstructionData::IntCompare { cond, .. } = data else { unreachable!("a comparison's format") };
                let (operator, signed) = comparison(*cond);
                let cast = if signed { format!("({})", signed_name(from)) } else { String::new() };
                format!("({name})({cast}{a} {operator} {cast}{b})")
            }
            Opcode::Select => format!("{a} ? {b} : {}", arguments[2]),
            Opcode::Bitselect => format!("{a} & {b} | ~{a} & {}", arguments[2]),
            Opcode::Bmask => format!("({name})0 - ({a} != 0)"),
            Opcode::Ireduce | Opcode::Uextend => format!("({name}){a}"),
            Opcode::Sextend => format!("({name})({}){a}", signed_name(from)),
            Opcode::Popcnt => format!("__builtin_popcountll({a})"),
            Opcode::Bitrev => format!("reverse{}({a})", ty.bits()),
            Opcode::Splat => format!("({name}){{ {} }}", list(vec![&a; ty.lane_count() as usize])),
            Opcode::ScalarToVector => format!("({name}){{ {a} }}"),
            Opcode::Extractlane => {
                let InstructionData::BinaryImm8 { imm, .. } = data else { unreachable!("a lane's format") };
                format!("{a}[{imm}]")
            }
            Opcode::Insertlane => {
                let InstructionData::TernaryImm8 { imm, .. } = data else { unreachable!("a lane's format") };
                self.line(&format!("{result} = {a}; {result}[{imm}] = {b};"));
                result.to_string()
            }
            Opcode::Shuffle => {
                let InstructionData::Shuffle { imm, .. } = data else { unreachable!("a shuffle's format") };
                let order = self.function.dfg.immediates.get(*imm).expect("an order of bytes").as_slice();
                format!("__builtin_shufflevector({a}, {b}, {})", list(order))
            }
            Opcode::Bitcast => format!("({name}){a}"),
            Opcode::X86Cvtt2dq => format!("whole_{}({a})", type_name(from)),
            Opcode::VhighBits => format!("high_bits_{}({a})", type_name(from)),
            Opcode::Uunarrow => format!("narrow_{}({a}, {b})", type_name(from)),
            Opcode::UwidenLow => format!("widen_low_{}({a})", type_name(from)),
            Opcode::UwidenHigh => format!("widen_high_{}({a})", type_name(from)),
            Opcode::SwidenLow => format!("widen_low_{}({a})", signed_name(from)),
            Opcode::SwidenHigh => format!("widen_high_{}({a})", signed_name(from)),
            Opcode::StackAddr => {
                let InstructionData::StackAddr { stack_slot, offset, .. } = data else {
                    unreachable!("a stack address's format")
                };
                self.bases.insert(result, Base::Slot(*stack_slot));
                format!("{}", i32::from(*offset))
            }
            other => unreachable!("{other} ({inst}) is not used"),
        }
    }
}
