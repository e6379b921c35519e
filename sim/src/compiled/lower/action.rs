//! What an edge does: stores, writes, checks and counts, behind their guards.

use super::{Lower, User};
use crate::compiled::order::changed;
use crate::compiled::regions::{Region, Regions};
use crate::flat::{Action, Effect, Id, Op};
use cranelift_codegen::ir::InstBuilder;
use cranelift_codegen::ir::types::I8;

impl Lower<'_, '_> {
    /// Changes state. `region` is where its operands belong if it is guarded.
    pub(super) fn action(&mut self, action: &Action, region: Region) {
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
                        User::Group(group) => !self.is_computed(group),
                    })
                });
                if needed {
                    let values = self.all_values(id);
                    self.values[id.index()] = Some(values);
                }
            }
        }
    }

    /// All operands are evaluated before anything changes.
    fn effects(&mut self, effects: &[Effect]) {
        for effect in effects {
            for id in effect.operands() {
                if self.values[id.index()].is_none() && self.flat.constant(id).is_none() {
                    self.held.push(id);
                    let values = self.all_values(id);
                    self.values[id.index()] = Some(values);
                }
            }
        }
        effects.iter().for_each(|effect| self.effect(effect));
        for id in std::mem::take(&mut self.held) {
            self.values[id.index()] = None;
        }
    }

    fn effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Store { cell, lane, low, value } => self.store_cell(*cell, *lane, *low, *value),
            Effect::Write { memory, lane, address, enable, parts } => {
                self.write_word(*memory, *lane, *address, *enable, parts);
            }
            Effect::ReadNew { memory, lane, address, enable, cell } => {
                self.read_new(*memory, *lane, *address, *enable, *cell);
            }
            Effect::Count { cell, lane, value } => self.count(*cell, *lane, *value),
            Effect::Check { cell, lane, value } => {
                let ok = self.holds_everywhere(*value);
                let (failed, join) = (self.b.create_block(), self.b.create_block());
                self.b.ins().brif(ok, join, &[], failed, &[]);
                self.b.set_cold_block(failed);
                self.b.switch_to_block(failed);
                self.clear_where_off(*cell, *lane, *value);
                let on = self.constant(1, I8);
                self.store(self.state, self.layout.cells[self.cells.failed as usize].offset, 1, on);
                self.b.ins().jump(join, &[]);
                self.b.switch_to_block(join);
            }
        }
    }
}
