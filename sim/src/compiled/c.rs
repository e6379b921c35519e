//! A function that was made for Cranelift, as C: blocks become labels, values variables.
//!
//! A system's compiler takes a hundred times as long as Cranelift and makes better code of it.
//!
//! What it may assume beyond the instructions: cells, memories and tables do not overlap, so a write to a memory or to a
//! table changes no cell. The pointer to the state is therefore not a number in the C code; addresses are distances from it, and each
//! access says in which of them it is.

mod instruction;

use cranelift_codegen::ir::{self, Block, BlockArg, BlockCall, Inst, InstructionData, Opcode, Type, Value};
use std::collections::HashMap;
use std::fmt::Write;

/// Where an address leads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Base {
    State,
    /// Beyond what an instruction's offset can name: a memory.
    Far,
    Tables,
    Slot(ir::StackSlot),
}

/// The text of a function `cycle(state, most, tables)`, and a constant `table_bytes` that says how large the tables are.
/// Memories begin at byte `memories` of the state.
pub fn source(function: &ir::Function, memories: usize, table_bytes: usize) -> String {
    let mut writer = Writer { function, memories, bases: HashMap::new(), text: String::from(PRELUDE) };
    let _ = writeln!(writer.text, "\nconst u64 table_bytes = {table_bytes};");
    writer.function();
    writer.text
}

/// Types, and what has no operator.
const PRELUDE: &str = include_str!("c/prelude.h");

struct Writer<'a> {
    function: &'a ir::Function,
    memories: usize,
    /// Of values that are addresses.
    bases: HashMap<Value, Base>,
    text: String,
}

/// A name for the type, as the prelude defines it.
fn type_name(ty: Type) -> String {
    let lane = ty.lane_type();
    let kind = if lane.is_float() { 'f' } else { 'u' };
    match ty.lane_count() {
        1 => format!("{kind}{}", lane.bits()),
        lanes => format!("{kind}{}x{lanes}", lane.bits()),
    }
}

fn signed_name(ty: Type) -> String {
    type_name(ty).replacen('u', "i", 1)
}

impl Writer<'_> {
    fn line(&mut self, line: &str) {
        self.text.push_str("    ");
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn ty(&self, value: Value) -> Type {
        self.function.dfg.value_type(value)
    }

    fn function(&mut self) {
        let function = self.function;
        let entry = function.layout.entry_block().expect("a function has blocks");
        self.text
            .push_str("\nstatic u64 body(u8 *restrict cells, u8 *restrict words, u8 *restrict tables, u64 most) {\n");
        let [state, most, kept] = *function.dfg.block_params(entry) else { unreachable!("three parameters") };
        self.bases.extend([(state, Base::State), (kept, Base::Tables)]);
        self.line(&format!("const u64 {state} = 0, {most} = most, {kept} = 0;"));
        for (slot, data) in function.sized_stack_slots.iter() {
            let bytes = data.size;
            self.line(&format!("unsigned char {slot}[{bytes}] __attribute__((aligned(64)));"));
        }
        self.declare(entry);
        for block in function.layout.blocks() {
            let _ = writeln!(self.text, "{block}:;");
            for inst in function.layout.block_insts(block) {
                self.instruction(inst);
            }
        }
        self.text.push_str("}\n\nu64 cycle(void *state, u64 most, void *tables) {\n");
        self.text.push_str("    return body(state, state, tables, most);\n}\n");
    }

    /// All values but the entry's parameters.
    fn declare(&mut self, entry: Block) {
        let function = self.function;
        let mut by_type: HashMap<Type, Vec<Value>> = HashMap::new();
        for block in function.layout.blocks() {
            let parameters = function.dfg.block_params(block).iter().filter(|_| block != entry);
            let results = function.layout.block_insts(block).flat_map(|inst| function.dfg.inst_results(inst));
            for &value in parameters.chain(results) {
                by_type.entry(self.ty(value)).or_default().push(value);
            }
        }
        let mut by_type: Vec<(Type, Vec<Value>)> = by_type.into_iter().collect();
        by_type.sort_by_key(|(ty, _)| type_name(*ty));
        for (ty, values) in by_type {
            for values in values.chunks(16) {
                let names: Vec<String> = values.iter().map(Value::to_string).collect();
                self.line(&format!("{} {};", type_name(ty), names.join(", ")));
            }
        }
    }

    /// A jump: the target's parameters take their values all at once.
    fn jump(&self, call: &BlockCall) -> String {
        let pool = &self.function.dfg.value_lists;
        let target = call.block(pool);
        let parameters = self.function.dfg.block_params(target);
        let values: Vec<Value> = call
            .args(pool)
            .map(|argument| match argument {
                BlockArg::Value(value) => self.function.dfg.resolve_aliases(value),
                other => unreachable!("{other:?} is of exceptions"),
            })
            .collect();
        assert!(!values.iter().any(|value| parameters.contains(value)), "a block passes its parameters to itself");
        let mut text = String::from("{ ");
        for (parameter, value) in parameters.iter().zip(values) {
            let _ = write!(text, "{parameter} = {value}; ");
        }
        let _ = write!(text, "goto {target}; }}");
        text
    }

    /// The address of an access.
    fn place(&self, address: Value, offset: i32) -> String {
        let base = self.bases.get(&address).unwrap_or_else(|| panic!("{address} is no address"));
        let pointer = match base {
            Base::State if (offset as usize) < self.memories => "cells".to_owned(),
            Base::State | Base::Far => "words".to_owned(),
            Base::Tables => "tables".to_owned(),
            Base::Slot(slot) => slot.to_string(),
        };
        format!("{pointer} + {address} + {offset}")
    }

    fn instruction(&mut self, inst: Inst) {
        let dfg = &self.function.dfg;
        let data = dfg.insts[inst];
        let arguments: Vec<Value> = dfg.inst_args(inst).iter().map(|&value| dfg.resolve_aliases(value)).collect();
        let result = dfg.inst_results(inst).first().copied();
        self.follow(data.opcode(), &arguments, result);
        let line = match data {
            InstructionData::Jump { destination, .. } => self.jump(&destination),
            InstructionData::Brif { blocks, .. } => {
                let cold = |call: &BlockCall| self.function.layout.is_cold(call.block(&dfg.value_lists));
                let condition = match (cold(&blocks[0]), cold(&blocks[1])) {
                    (true, false) => format!("__builtin_expect({} != 0, 0)", arguments[0]),
                    (false, true) => format!("__builtin_expect({} != 0, 1)", arguments[0]),
                    _ => arguments[0].to_string(),
                };
                format!("if ({condition}) {} else {}", self.jump(&blocks[0]), self.jump(&blocks[1]))
            }
            InstructionData::BranchTable { table, .. } => {
                let table = &dfg.jump_tables[table];
                let mut text = format!("switch ({}) {{ ", arguments[0]);
                for (label, call) in table.as_slice().iter().enumerate() {
                    let _ = write!(text, "case {label}: {} ", self.jump(call));
                }
                let _ = write!(text, "default: {} }}", self.jump(&table.default_block()));
                text
            }
            InstructionData::Load { opcode, offset, .. } => {
                let result = result.expect("a load has a result");
                let ty = match opcode {
                    Opcode::Load => type_name(self.ty(result)),
                    Opcode::Uload8 => "u8".to_owned(),
                    Opcode::Uload16 => "u16".to_owned(),
                    Opcode::Uload32 => "u32".to_owned(),
                    other => unreachable!("{other} is not used"),
                };
                format!("{result} = *(const {ty} *)({});", self.place(arguments[0], offset.into()))
            }
            InstructionData::Store { opcode, offset, .. } => {
                let ty = match opcode {
                    Opcode::Store => type_name(self.ty(arguments[0])),
                    Opcode::Istore8 => "u8".to_owned(),
                    Opcode::Istore16 => "u16".to_owned(),
                    Opcode::Istore32 => "u32".to_owned(),
                    other => unreachable!("{other} is not used"),
                };
                format!("*({ty} *)({}) = {};", self.place(arguments[1], offset.into()), arguments[0])
            }
            InstructionData::MultiAry { opcode: Opcode::Return, .. } => format!("return {};", arguments[0]),
            _ => {
                let result = result.unwrap_or_else(|| panic!("{} has no result", data.opcode()));
                format!("{result} = {};", self.value(inst, &data, &arguments, result))
            }
        };
        self.line(&line);
    }

    /// Keeps track of addresses.
    fn follow(&mut self, opcode: Opcode, arguments: &[Value], result: Option<Value>) {
        let Some(result) = result else { return };
        if opcode == Opcode::Iadd {
            let far = |value: &Value| self.constant(*value).is_some_and(|by| by >= self.memories as u64);
            let base = arguments.iter().find_map(|value| self.bases.get(value).copied());
            if let Some(base) = base {
                let base = if base == Base::State && arguments.iter().any(far) { Base::Far } else { base };
                self.bases.insert(result, base);
            }
        }
    }

    fn constant(&self, value: Value) -> Option<u64> {
        let inst = self.function.dfg.value_def(value).inst()?;
        match self.function.dfg.insts[inst] {
            InstructionData::UnaryImm { opcode: Opcode::Iconst, imm } => Some(imm.bits() as u64),
            _ => None,
        }
    }
}
