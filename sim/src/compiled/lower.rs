//! From the flat netlist to Cranelift's instructions.
//!
//! A single bit is an `i8`, a value of up to 32 bits an `i32`, a wider one an `i64`; bits above its width are 0.
//!
//! Loads give the state from before the edge: before an action changes a memory, everything that is still to be read
//! from it is read. A cell is loaded anew wherever it is used, because that costs no more than keeping it on the stack;
//! only when an action changes it while its old value is still needed is that value kept.

use super::layout::{Layout, access_bytes};
use super::order::{Object, changed, loaded, order};
use super::regions::{Gating, Region, Regions};
use crate::flat::cells::Cells;
use crate::flat::{Action, Effect, Flat, Id, Op};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, MemFlagsData, Type, Value};
use cranelift_frontend::{FunctionBuilder, Switch};
use heddle_hdl::bits::low_mask;
use std::collections::HashMap;

/// Makes the body of a function with the parameters (state, most edges) that returns the edges made.
pub fn lower(flat: &Flat, cells: &Cells, layout: &Layout, gating: Gating, b: &mut FunctionBuilder) {
    let regions = Regions::new(flat, gating);
    let mut loads: HashMap<Object, Vec<Id>> = HashMap::new();
    for (k, node) in flat.nodes.iter().enumerate() {
        let id = Id(k as u32);
        if let (Some(object), Some(_)) = (loaded(&node.op), regions.owner(id)) {
            loads.entry(object).or_default().push(id);
        }
    }
    let order = order(flat, |id| regions.owner(id).is_some());
    let users = cell_users(flat, &order, &regions);
    let entry = b.create_block();
    b.append_block_params_for_function_params(entry);
    b.switch_to_block(entry);
    let [state, most] = *b.block_params(entry) else { unreachable!("two parameters") };
    let nodes = flat.nodes.len();
    let lowering = Lower {
        flat,
        cells,
        layout,
        regions,
        loads,
        users,
        b,
        state,
        values: vec![None; nodes],
        seen: vec![0; nodes],
        round: 0,
        done: 0,
    };
    lowering.function(&order, most);
}

/// Who uses a cell's value.
enum User {
    Node(Id),
    /// The how-manieth action, from 1.
    Action(usize),
}

/// The needed users of each node that is a cell.
fn cell_users(flat: &Flat, order: &[usize], regions: &Regions) -> HashMap<Id, Vec<User>> {
    let is_cell = |id: Id| matches!(flat.node(id).op, Op::Cell { .. });
    let mut users: HashMap<Id, Vec<User>> = HashMap::new();
    for (k, node) in flat.nodes.iter().enumerate() {
        let user = Id(k as u32);
        if regions.owner(user).is_some() {
            node.args.iter().filter(|a| is_cell(**a)).for_each(|&a| users.entry(a).or_default().push(User::Node(user)));
        }
    }
    let actions = order.iter().flat_map(|&list| &flat.actions[list]).chain(&flat.late);
    for (k, action) in actions.enumerate() {
        for id in action.operands().into_iter().chain(action.guard).filter(|&id| is_cell(id)) {
            users.entry(id).or_default().push(User::Action(k + 1));
        }
    }
    users
}

struct Lower<'a, 'b> {
    flat: &'a Flat,
    cells: &'a Cells,
    layout: &'a Layout,
    regions: Regions,
    /// The needed nodes that load from an object.
    loads: HashMap<Object, Vec<Id>>,
    users: HashMap<Id, Vec<User>>,
    b: &'a mut FunctionBuilder<'b>,
    state: Value,
    values: Vec<Option<Value>>,
    /// The last round of [`Lower::ensure`] that came across a node.
    seen: Vec<u32>,
    round: u32,
    /// How many actions have been begun.
    done: usize,
}

fn value_type(width: u32) -> Type {
    match width {
        1 => I8,
        0..=32 => I32,
        _ => I64,
    }
}

impl Lower<'_, '_> {
    fn function(mut self, order: &[usize], most: Value) {
        let zero = self.b.ins().iconst(I64, 0);
        let head = self.block_with(I64);
        self.b.ins().jump(head, &[BlockArg::Value(zero)]);
        self.b.switch_to_block(head);
        let count = self.b.block_params(head)[0];

        let flat = self.flat;
        for &list in order {
            for (k, action) in flat.actions[list].iter().enumerate() {
                self.action(action, self.regions.action(list, k));
            }
        }
        for action in &flat.late {
            self.action(action, Region::ROOT);
        }

        let made = self.b.ins().iadd_imm_u(count, 1);
        let (go_on, end) = (self.b.create_block(), self.b.create_block());
        let [stopped, failed] = [self.cells.stopped, self.cells.failed]
            .map(|cell| self.load(self.state, self.layout.cells[cell as usize], 1, I8));
        let over = self.b.ins().bor(stopped, failed);
        self.b.ins().brif(over, end, &[], go_on, &[]);
        self.b.switch_to_block(go_on);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, made, most);
        self.b.ins().brif(more, head, &[BlockArg::Value(made)], end, &[]);
        self.b.switch_to_block(end);
        self.b.ins().return_(&[made]);
    }

    fn block_with(&mut self, parameter: Type) -> Block {
        let block = self.b.create_block();
        self.b.append_block_param(block, parameter);
        block
    }

    fn constant(&mut self, value: u64, ty: Type) -> Value {
        let value = if ty == I64 { value as i64 } else { value as u32 as i64 };
        self.b.ins().iconst(ty, value)
    }

    fn width(&self, id: Id) -> u32 {
        self.flat.node(id).width
    }

    /// The value of a node that has been computed, of a cell, or of a constant.
    fn value(&mut self, id: Id) -> Value {
        match (self.values[id.index()], &self.flat.node(id).op) {
            (Some(value), _) => value,
            (None, Op::Const(_) | Op::Cell { .. }) => self.operation(id),
            (None, op) => unreachable!("{op:?} is computed before its users"),
        }
    }

    /// Computes nodes, and what they need, here.
    fn ensure(&mut self, ids: &[Id]) {
        self.round += 1;
        let mut found = Vec::new();
        let mut stack = ids.to_vec();
        while let Some(id) = stack.pop() {
            if self.seen[id.index()] == self.round || self.values[id.index()].is_some() {
                continue;
            }
            self.seen[id.index()] = self.round;
            let node = self.flat.node(id);
            if matches!(node.op, Op::Const(_) | Op::Cell { .. }) {
                continue;
            }
            found.push(id);
            if self.regions.arm(id, 0).is_some() {
                stack.push(node.args[0]);
                for arm in 0..node.args.len() - 1 {
                    stack.extend(self.regions.externals(self.regions.arm(id, arm).expect("all arms are regions")));
                }
            } else {
                stack.extend(&node.args);
            }
        }
        found.sort();
        found.into_iter().for_each(|id| self.compute(id));
    }

    fn compute(&mut self, id: Id) {
        let value = match (&self.flat.node(id).op, self.regions.arm(id, 0)) {
            (Op::Mux, Some(_)) => self.branch(id),
            (Op::Case(labels), gated) if gated.is_some() || labels.len() > 4 => self.switch(id, labels),
            _ => self.operation(id),
        };
        self.values[id.index()] = Some(value);
    }

    /// Computes what belongs to a region that has been entered.
    fn region(&mut self, region: Region) {
        for k in 0..self.regions.nodes(region).len() {
            let id = self.regions.nodes(region)[k];
            if self.values[id.index()].is_none() && !matches!(self.flat.node(id).op, Op::Cell { .. }) {
                self.compute(id);
            }
        }
    }

    /// Computes an arm of a choice in its own block and goes on to `join` with its value.
    fn arm(&mut self, id: Id, arm: usize, block: Block, join: Block) {
        self.b.switch_to_block(block);
        if let Some(region) = self.regions.arm(id, arm) {
            self.region(region);
        }
        let value = self.value(self.flat.node(id).args[arm + 1]);
        self.b.ins().jump(join, &[BlockArg::Value(value)]);
    }

    /// A mux as a branch.
    fn branch(&mut self, id: Id) -> Value {
        let node = self.flat.node(id);
        let selector = self.value(node.args[0]);
        let join = self.block_with(value_type(node.width));
        let (on, off) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(selector, on, &[], off, &[]);
        self.arm(id, 0, on, join);
        self.arm(id, 1, off, join);
        self.b.switch_to_block(join);
        self.b.block_params(join)[0]
    }

    /// A case as a jump table.
    fn switch(&mut self, id: Id, labels: &[u64]) -> Value {
        let node = self.flat.node(id);
        let selector = self.value(node.args[0]);
        let join = self.block_with(value_type(node.width));
        let default = self.b.create_block();
        let mut switch = Switch::new();
        // Labels with one value share a block.
        let mut blocks: Vec<(Id, usize, Block)> = Vec::new();
        for (k, &label) in labels.iter().enumerate() {
            let arm = node.args[k + 2];
            let block = match blocks.iter().find(|(other, ..)| *other == arm) {
                Some((.., block)) => *block,
                None => {
                    let block = self.b.create_block();
                    blocks.push((arm, k + 1, block));
                    block
                }
            };
            switch.set_entry(label as u128, block);
        }
        switch.emit(self.b, selector, default);
        self.arm(id, 0, default, join);
        for (_, arm, block) in blocks {
            self.arm(id, arm, block, join);
        }
        self.b.switch_to_block(join);
        self.b.block_params(join)[0]
    }

    /// Zero-extended or cut.
    fn convert(&mut self, value: Value, ty: Type) -> Value {
        match (self.b.func.dfg.value_type(value), ty) {
            (from, to) if from == to => value,
            (from, to) if from.bits() > to.bits() => self.b.ins().ireduce(to, value),
            (_, to) => self.b.ins().uextend(to, value),
        }
    }

    fn mask(&mut self, value: Value, width: u32) -> Value {
        let ty = self.b.func.dfg.value_type(value);
        if width == ty.bits() {
            return value;
        }
        let mask = self.constant(low_mask(width), ty);
        self.b.ins().band(value, mask)
    }

    /// The value with copies of the sign above its width.
    fn signed(&mut self, value: Value, width: u32) -> Value {
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

    /// Anything that is not a branch.
    fn operation(&mut self, id: Id) -> Value {
        let node = self.flat.node(id);
        let (width, ty) = (node.width, value_type(node.width));
        match &node.op {
            Op::Const(value) => return self.constant(*value, ty),
            Op::Cell { cell, low } => {
                let all = self.cells.widths[*cell as usize];
                let bytes = access_bytes(all, if all <= 32 { 4 } else { 8 }, width);
                return self.load(self.state, self.layout.cells[*cell as usize] + *low as usize / 8, bytes, ty);
            }
            Op::Read { memory, low } => {
                let place = self.layout.memories[*memory as usize];
                let address = self.value(node.args[0]);
                let (base, offset) = self.word(*memory, node.args[0], address);
                let bytes = access_bytes(place.width, place.stride, width);
                return self.load(base, offset + *low as usize / 8, bytes, ty);
            }
            _ => {}
        }
        let args: Vec<Value> = node.args.iter().map(|&a| self.value(a)).collect();
        let arg_width = self.width(node.args[0]);
        match &node.op {
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
            Op::Shl | Op::Shr | Op::Sar => self.shift(&node.op, width, args[0], args[1], self.width(node.args[1])),
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
                for (&part, &arg) in node.args.iter().zip(&args) {
                    let wide = self.convert(arg, ty);
                    let up = if at > 0 { self.b.ins().ishl_imm_u(wide, at as i64) } else { wide };
                    at += self.width(part);
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
            Op::Const(_) | Op::Cell { .. } | Op::Read { .. } => unreachable!("handled above"),
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

    /// A base address and offset of a memory word.
    fn word(&mut self, memory: u32, address: Id, value: Value) -> (Value, usize) {
        let place = self.layout.memories[memory as usize];
        if let Some(address) = self.flat.constant(address) {
            return (self.state, place.offset + address as usize * place.stride);
        }
        let index = self.convert(value, I64);
        let distance = match place.stride {
            1 => index,
            stride if stride.is_power_of_two() => self.b.ins().ishl_imm_u(index, stride.trailing_zeros() as i64),
            stride => self.b.ins().imul_imm_u(index, stride as i64),
        };
        (self.b.ins().iadd(self.state, distance), place.offset)
    }

    /// Base and offset, the offset small enough for an instruction.
    fn reach(&mut self, base: Value, offset: usize) -> (Value, i32) {
        match i32::try_from(offset) {
            Ok(offset) => (base, offset),
            Err(_) => (self.b.ins().iadd_imm_u(base, offset as i64), 0),
        }
    }

    fn load(&mut self, base: Value, offset: usize, bytes: usize, ty: Type) -> Value {
        let flags = MemFlagsData::trusted();
        let (base, offset) = self.reach(base, offset);
        match bytes {
            _ if ty == I8 => self.b.ins().load(I8, flags, base, offset),
            1 => self.b.ins().uload8(ty, flags, base, offset),
            2 => self.b.ins().uload16(ty, flags, base, offset),
            4 if ty == I64 => self.b.ins().uload32(flags, base, offset),
            _ => self.b.ins().load(ty, flags, base, offset),
        }
    }

    fn store(&mut self, base: Value, offset: usize, bytes: usize, value: Value) {
        let flags = MemFlagsData::trusted();
        let (base, offset) = self.reach(base, offset);
        match bytes {
            _ if self.b.func.dfg.value_type(value) == I8 => self.b.ins().store(flags, value, base, offset),
            1 => self.b.ins().istore8(flags, value, base, offset),
            2 => self.b.ins().istore16(flags, value, base, offset),
            _ => self.b.ins().store(flags, value, base, offset),
        };
    }

    /// Changes state. `region` is where its operands belong if it is guarded.
    fn action(&mut self, action: &Action, region: Region) {
        let mut needed: Vec<Id> = action.guard.into_iter().collect();
        if region == Region::ROOT {
            needed.extend(action.operands());
        } else {
            needed.extend(self.regions.externals(region));
        }
        self.ensure(&needed);
        self.keep_old(action, region);

        let Some(guard) = action.guard else { return self.effects(&action.effects) };
        let guard = self.value(guard);
        let (on, join) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(guard, on, &[], join, &[]);
        self.b.switch_to_block(on);
        if region != Region::ROOT {
            self.region(region);
        }
        self.effects(&action.effects);
        self.b.ins().jump(join, &[]);
        self.b.switch_to_block(join);
    }

    /// Reads what an action in `region` is about to change, where something outside it still needs the old value.
    fn keep_old(&mut self, action: &Action, region: Region) {
        self.done += 1;
        for effect in &action.effects {
            for k in 0..self.loads.get(&changed(effect)).map_or(0, Vec::len) {
                let id = self.loads[&changed(effect)][k];
                if self.values[id.index()].is_some() {
                    continue;
                }
                let inside = |region: Region, id: Id, regions: &Regions| {
                    region != Region::ROOT && regions.is_inside(regions.owner(id).expect("it is needed"), region)
                };
                if !matches!(self.flat.node(id).op, Op::Cell { .. }) {
                    if !inside(region, id, &self.regions) {
                        self.ensure(&[id]);
                    }
                    continue;
                }
                let needed = self.users.get(&id).is_some_and(|users| {
                    users.iter().any(|user| match *user {
                        User::Node(user) => self.values[user.index()].is_none() && !inside(region, user, &self.regions),
                        User::Action(place) => place > self.done,
                    })
                });
                if needed {
                    let value = self.operation(id);
                    self.values[id.index()] = Some(value);
                }
            }
        }
    }

    /// All operands are evaluated before anything changes.
    fn effects(&mut self, effects: &[Effect]) {
        let ready: Vec<Vec<Value>> =
            effects.iter().map(|effect| effect.operands().into_iter().map(|id| self.value(id)).collect()).collect();
        effects.iter().zip(ready).for_each(|(effect, operands)| self.effect(effect, &operands));
    }

    /// `values` are those of the operands.
    fn effect(&mut self, effect: &Effect, values: &[Value]) {
        match effect {
            Effect::Store { cell, low, value } => {
                let all = self.cells.widths[*cell as usize];
                let bytes = access_bytes(all, if all <= 32 { 4 } else { 8 }, self.width(*value));
                self.store(self.state, self.layout.cells[*cell as usize] + *low as usize / 8, bytes, values[0]);
            }
            Effect::Count { cell, .. } => {
                let value = self.convert(values[0], I64);
                let offset = self.layout.cells[*cell as usize];
                let old = self.load(self.state, offset, 8, I64);
                let new = self.b.ins().iadd(old, value);
                self.store(self.state, offset, 8, new);
            }
            Effect::Check { cell, .. } => {
                let (failed, join) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(values[0], join, &[], failed, &[]);
                self.b.set_cold_block(failed);
                self.b.switch_to_block(failed);
                let (off, on) = (self.constant(0, I64), self.constant(1, I8));
                self.store(self.state, self.layout.cells[*cell as usize], 8, off);
                self.store(self.state, self.layout.cells[self.cells.failed as usize], 1, on);
                self.b.ins().jump(join, &[]);
                self.b.switch_to_block(join);
            }
            Effect::Write { memory, address, parts } => {
                let place = self.layout.memories[*memory as usize];
                let (base, offset) = self.word(*memory, *address, values[0]);
                let mut values = values[1..].iter().copied();
                for part in parts {
                    let bytes = access_bytes(place.width, place.stride, self.width(part.data));
                    let data = values.next().expect("every part has data");
                    let mask = part.mask.and_then(|_| values.next());
                    self.write(base, offset + part.low as usize / 8, bytes, data, mask);
                }
            }
            Effect::ReadNew { memory, address, cell } => {
                let place = self.layout.memories[*memory as usize];
                let (base, offset) = self.word(*memory, *address, values[0]);
                let to = self.layout.cells[*cell as usize];
                for limb in 0..crate::flat::limbs(place.width) {
                    let width = crate::flat::limb_width(place.width, limb);
                    let ty = value_type(width);
                    let at = limb as usize * 8;
                    let value = self.load(base, offset + at, access_bytes(place.width, place.stride, width), ty);
                    self.store(self.state, to + at, ty.bytes() as usize, value);
                }
            }
        }
    }

    /// Writes a part of a memory word.
    fn write(&mut self, base: Value, offset: usize, bytes: usize, data: Value, mask: Option<Value>) {
        let new = match mask {
            None => data,
            Some(mask) => {
                let old = self.load(base, offset, bytes, self.b.func.dfg.value_type(data));
                let kept = self.b.ins().band_not(old, mask);
                let taken = self.b.ins().band(data, mask);
                self.b.ins().bor(kept, taken)
            }
        };
        self.store(base, offset, bytes, new);
    }
}
