//! From the flat netlist to Cranelift's instructions.
//!
//! A single bit is an `i8`, a value of up to 32 bits an `i32`, a wider one an `i64`; bits above its width are 0. Values
//! with lanes are in `vector.rs`, memories in `access.rs`.
//!
//! Loads give the state from before the edge: before an action changes a memory, everything that is still to be read
//! from it is read. A cell is loaded anew wherever it is used, because that costs no more than keeping it on the stack;
//! only when an action changes it while its old value is still needed is that value kept.

mod action;
mod operation;
mod tables;

use super::layout::Layout;
use super::order::{Object, loaded, order};
use super::regions::{Gating, Group, Region, Regions};
use super::shared::Literal;
use super::tables::Tables;
use super::vector::{Strip, Vectors};
use crate::flat::cells::Cells;
use crate::flat::{Flat, Id, Op};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I8, I32, I64};
use cranelift_codegen::ir::{Block, BlockArg, InstBuilder, Type, Value};
use cranelift_frontend::{FunctionBuilder, Switch};
use std::collections::HashMap;

/// Makes the body of a function with the parameters (state, most edges, tables) that returns the edges made.
pub fn lower(
    whole: &Flat,
    tables: &Tables,
    cells: &Cells,
    layout: &Layout,
    gating: Gating,
    vectors: Vectors,
    b: &mut FunctionBuilder,
) {
    let flat = &tables.without_cones(whole);
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
    let [state, most, kept] = *b.block_params(entry) else { unreachable!("three parameters") };
    let nodes = flat.nodes.len();
    let lowering = Lower {
        flat,
        whole,
        tables,
        kept,
        entries: Vec::new(),
        cells,
        layout,
        vectors,
        regions,
        loads,
        users,
        b,
        state,
        values: vec![None; nodes],
        strip: Strip::default(),
        seen: vec![0; nodes],
        round: 0,
        done: 0,
        held: Vec::new(),
    };
    lowering.function(&order, most);
}

/// Who uses a cell's value.
enum User {
    Node(Id),
    /// The how-manieth action, from 1.
    Action(usize),
    /// The condition of a group.
    Group(usize),
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
    for (k, group) in regions.groups.iter().enumerate().filter(|(_, group)| is_cell(group.condition.bit)) {
        users.entry(group.condition.bit).or_default().push(User::Group(k));
    }
    users
}

pub struct Lower<'a, 'b> {
    pub flat: &'a Flat,
    /// The same with the cones that tables keep the results of.
    whole: &'a Flat,
    tables: &'a Tables,
    /// Where the tables are.
    kept: Value,
    /// Of each table, where the entry in hand is.
    entries: Vec<Value>,
    cells: &'a Cells,
    pub layout: &'a Layout,
    pub vectors: Vectors,
    regions: Regions,
    /// The needed nodes that load from an object.
    loads: HashMap<Object, Vec<Id>>,
    users: HashMap<Id, Vec<User>>,
    pub b: &'a mut FunctionBuilder<'b>,
    pub state: Value,
    /// One value for a node of one lane or of 1 bit per lane (packed); otherwise one or two for each strip of lanes.
    pub values: Vec<Option<Vec<Value>>>,
    /// What has been made for the strips in hand.
    pub strip: Strip,
    /// The last round of [`Lower::ensure`] that came across a node.
    seen: Vec<u32>,
    round: u32,
    /// How many actions have been begun.
    done: usize,
    /// Cells whose values are kept while the effects of an action happen.
    held: Vec<Id>,
}

/// Of a value of one lane.
pub fn value_type(width: u32) -> Type {
    match width {
        1 => I8,
        0..=32 => I32,
        _ => I64,
    }
}

impl Lower<'_, '_> {
    fn function(mut self, order: &[usize], most: Value) {
        let zero = self.b.ins().iconst(I64, 0);
        let head = self.block_with(&[I64]);
        self.b.ins().jump(head, &[BlockArg::Value(zero)]);
        self.b.switch_to_block(head);
        let count = self.b.block_params(head)[0];
        self.look_up();

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
            .map(|cell| self.load(self.state, self.layout.cells[cell as usize].offset, 1, I8));
        let over = self.b.ins().bor(stopped, failed);
        self.b.ins().brif(over, end, &[], go_on, &[]);
        self.b.switch_to_block(go_on);
        let more = self.b.ins().icmp(IntCC::UnsignedLessThan, made, most);
        self.b.ins().brif(more, head, &[BlockArg::Value(made)], end, &[]);
        self.b.switch_to_block(end);
        self.b.ins().return_(&[made]);
    }

    fn block_with(&mut self, parameters: &[Type]) -> Block {
        let block = self.b.create_block();
        parameters.iter().for_each(|&parameter| _ = self.b.append_block_param(block, parameter));
        block
    }

    pub fn constant(&mut self, value: u64, ty: Type) -> Value {
        let value = if ty == I64 { value as i64 } else { value as u32 as i64 };
        self.b.ins().iconst(ty, value)
    }

    pub fn width(&self, id: Id) -> u32 {
        self.flat.node(id).width
    }

    pub fn lanes(&self, id: Id) -> u32 {
        self.flat.node(id).lanes
    }

    /// The value of a node of one lane, or the packed one of a node of 1 bit per lane.
    pub fn value(&mut self, id: Id) -> Value {
        match (&self.values[id.index()], &self.flat.node(id).op) {
            (Some(values), _) => values[0],
            (None, op) if op.is_at_hand() => self.operation(id),
            (None, op) => unreachable!("{op:?} is computed before its users"),
        }
    }

    /// All values of a node.
    fn all_values(&mut self, id: Id) -> Vec<Value> {
        match &self.values[id.index()] {
            Some(values) => values.clone(),
            None if self.is_vector(id) => self.whole_vector(id),
            None => vec![self.value(id)],
        }
    }

    /// Computes nodes, and what they need, here.
    fn ensure(&mut self, ids: &[Id]) {
        while let Some(group) = self.missing_group(ids) {
            self.enter_group(group);
        }
        self.round += 1;
        let mut found = Vec::new();
        let mut stack = ids.to_vec();
        while let Some(id) = stack.pop() {
            if self.seen[id.index()] == self.round || self.values[id.index()].is_some() {
                continue;
            }
            self.seen[id.index()] = self.round;
            let node = self.flat.node(id);
            if node.op.is_at_hand() {
                continue;
            }
            found.push(id);
            self.push_needs(id, &mut stack);
        }
        found.sort();
        self.compute_all(&found);
    }

    /// A group, not yet computed, that has one of these nodes or something that they need.
    fn missing_group(&mut self, ids: &[Id]) -> Option<usize> {
        self.round += 1;
        let mut stack = ids.to_vec();
        while let Some(id) = stack.pop() {
            if self.seen[id.index()] == self.round || self.values[id.index()].is_some() {
                continue;
            }
            self.seen[id.index()] = self.round;
            if let Some(group) = self.regions.group(id) {
                return Some(group);
            }
            self.push_needs(id, &mut stack);
        }
        None
    }

    /// What a node needs before it is computed here.
    fn push_needs(&self, id: Id, stack: &mut Vec<Id>) {
        let node = self.flat.node(id);
        if self.regions.arm(id, 0).is_none() {
            return stack.extend(&node.args);
        }
        stack.push(node.args[0]);
        for arm in 0..node.args.len() - 1 {
            stack.extend(self.regions.externals(self.regions.arm(id, arm).expect("all arms are regions")));
        }
    }

    /// Computes a group's nodes if its condition holds; if not, its results are 0, and nobody looks at them.
    fn enter_group(&mut self, group: usize) {
        let Group { condition, region, results } = &self.regions.groups[group];
        let (Literal { bit, on }, region, results) = (*condition, *region, results.clone());
        let mut needed = self.regions.externals(region).to_vec();
        needed.push(bit);
        self.ensure(&needed);
        let types: Vec<Vec<Type>> = results.iter().map(|&id| self.types(id)).collect();
        let selector = self.value(bit);
        let join = self.block_with(&types.concat());
        let (holds, other) = (self.b.create_block(), self.b.create_block());
        let (if_on, if_off) = if on { (holds, other) } else { (other, holds) };
        self.b.ins().brif(selector, if_on, &[], if_off, &[]);
        self.b.switch_to_block(other);
        let zeros: Vec<BlockArg> = types.concat().into_iter().map(|ty| BlockArg::Value(self.zero(ty))).collect();
        self.b.ins().jump(join, &zeros);
        self.b.switch_to_block(holds);
        self.region(region);
        let values: Vec<BlockArg> = results.iter().flat_map(|&id| self.all_values(id)).map(BlockArg::Value).collect();
        self.b.ins().jump(join, &values);
        self.b.switch_to_block(join);
        let mut values = self.b.block_params(join).to_vec().into_iter();
        for (id, types) in results.into_iter().zip(types) {
            self.values[id.index()] = Some(values.by_ref().take(types.len()).collect());
        }
    }

    fn is_computed(&self, group: usize) -> bool {
        self.regions.groups[group].results.iter().any(|id| self.values[id.index()].is_some())
    }

    fn zero(&mut self, ty: Type) -> Value {
        if ty.is_vector() { self.vconst(vec![0; ty.bytes() as usize], ty) } else { self.constant(0, ty) }
    }

    /// Computes nodes that are not yet, in this order; but what is computed strip by strip waits for others of its
    /// kind, as long as nobody needs it.
    fn compute_all(&mut self, ids: &[Id]) {
        for &id in ids {
            if self.values[id.index()].is_some() || self.flat.node(id).op.is_at_hand() {
                continue;
            }
            let gated = self.regions.arm(id, 0).is_some();
            if !gated && self.goes_by_strips(id) {
                self.add_to_strips(id);
                continue;
            }
            let waits = |arg: &Id| self.strip.holds(*arg);
            if gated || matches!(self.flat.node(id).op, Op::Case(_)) || self.flat.node(id).args.iter().any(waits) {
                self.finish_strips();
            }
            self.compute(id);
        }
        self.finish_strips();
    }

    fn compute(&mut self, id: Id) {
        let node = self.flat.node(id);
        let values = match (&node.op, self.regions.arm(id, 0)) {
            (Op::Mux, Some(_)) => self.branch(id),
            (Op::Case(labels), gated) if gated.is_some() || labels.len() > 4 || node.lanes > 1 => {
                self.switch(id, labels)
            }
            _ => vec![self.operation(id)],
        };
        self.values[id.index()] = Some(values);
    }

    /// Computes what belongs to a region that has been entered.
    fn region(&mut self, region: Region) {
        let ids = self.regions.nodes(region).to_vec();
        self.compute_all(&ids);
    }

    /// Computes an arm of a choice in its own block and goes on to `join` with its value.
    fn arm(&mut self, id: Id, arm: usize, block: Block, join: Block) {
        self.b.switch_to_block(block);
        if let Some(region) = self.regions.arm(id, arm) {
            self.region(region);
        }
        let values = self.values_like(self.flat.node(id).args[arm + 1], id);
        let values: Vec<BlockArg> = values.into_iter().map(BlockArg::Value).collect();
        self.b.ins().jump(join, &values);
    }

    /// A mux as a branch.
    fn branch(&mut self, id: Id) -> Vec<Value> {
        let selector = self.value(self.flat.node(id).args[0]);
        let join = self.block_with(&self.types(id));
        let (on, off) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(selector, on, &[], off, &[]);
        self.arm(id, 0, on, join);
        self.arm(id, 1, off, join);
        self.b.switch_to_block(join);
        self.b.block_params(join).to_vec()
    }

    /// A case as a jump table.
    fn switch(&mut self, id: Id, labels: &[u64]) -> Vec<Value> {
        let node = self.flat.node(id);
        let selector = self.value(node.args[0]);
        let join = self.block_with(&self.types(id));
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
        self.b.block_params(join).to_vec()
    }
}
