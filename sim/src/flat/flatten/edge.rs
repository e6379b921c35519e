//! What happens at a clock edge: registers, read ports, writes and properties, each with a guard.

use super::{Flatten, Parts};
use crate::checks::Checks;
use crate::flat::builder::Builder;
use crate::flat::cells::CellShape;
use crate::flat::{Action, Effect, Flat, Id, Op, Part, Word, limb_width, limbs};
use heddle_hdl::bits::low_mask;
use heddle_hdl::netlist::{Collision, NodeId, PropertyKind, ReadTiming};
use std::collections::HashMap;

impl Flatten<'_> {
    /// What happens at a clock edge.
    pub(super) fn edge(&mut self, flat: &mut Flat, reset: bool, checks: Checks) {
        let stop = self.stop();
        let effects = vec![Effect::Store { cell: self.cells.stopped, lane: None, low: 0, value: stop }];
        flat.actions.push(vec![Action { guard: None, effects }]);
        // Guarded changes of one guard go together.
        let mut guarded: HashMap<Id, usize> = HashMap::new();
        let mut add = |flat: &mut Flat, guard: Option<Id>, effects: Vec<Effect>| {
            if let Some(&list) = guard.and_then(|g| guarded.get(&g)) {
                flat.actions[list][0].effects.extend(effects);
            } else {
                guard.map(|g| guarded.insert(g, flat.actions.len()));
                flat.actions.push(vec![Action { guard, effects }]);
            }
        };
        if !reset {
            let looked_at = |&k: &usize| checks.look_at(self.directory.property_kind(k));
            let properties: Vec<usize> = (0..self.directory.properties.len()).filter(looked_at).collect();
            for k in properties {
                if let Some((guard, effect)) = self.property(k) {
                    add(flat, guard, vec![effect]);
                }
            }
        }
        for k in 0..self.directory.registers.len() {
            if let Some((guard, effects)) = self.register(k, reset) {
                add(flat, guard, effects);
            }
        }
        for k in 0..self.directory.read_registers.len() {
            for (guard, effect) in self.read_port(k) {
                match effect {
                    ReadEffect::Late(effect) => flat.late.push(Action { guard, effects: vec![effect] }),
                    ReadEffect::Stores(effects) => add(flat, guard, effects),
                }
            }
        }
        if reset {
            return;
        }
        for memory in 0..self.directory.memories.len() {
            let list = self.writes(memory);
            if !list.is_empty() {
                flat.actions.push(list);
            }
        }
    }

    /// An enable as a guard; None if it is never on.
    fn guard(&mut self, scope: usize, enable: Option<NodeId>) -> Option<Guard> {
        let enable = match enable {
            Some(enable) => self.bit(scope, enable),
            None => self.b.constant(1, 1),
        };
        self.guarded_by(enable)
    }

    fn guarded_by(&mut self, enable: Id) -> Option<Guard> {
        match self.b.value(enable) {
            Some(0) => None,
            Some(_) => Some(Guard { any: None, lanes: None }),
            None if self.b.lanes(enable) == 1 => Some(Guard { any: Some(enable), lanes: None }),
            None => {
                let packed = self.b.pack(enable, self.b.lanes(enable));
                let any = self.b.any(packed);
                Some(Guard { any: (self.b.value(any) != Some(1)).then_some(any), lanes: Some(enable) })
            }
        }
    }

    /// What a synchronous read port does; nothing if it never reads, or is made with another lane's.
    fn read_port(&mut self, read_register: usize) -> Vec<(Option<Id>, ReadEffect)> {
        let entry = &self.directory.read_registers[read_register];
        if self.is_made_elsewhere(entry.scope) {
            return Vec::new();
        }
        let scope = &self.directory.scopes[entry.scope];
        let read = &scope.module.memories[entry.index].reads[entry.port];
        let ReadTiming::Sync { enable, collision, or_zero } = read.timing else {
            unreachable!("{} is registered", entry.path)
        };
        let address = self.address(entry.scope, read.address);
        let memory = self.cells.memories[scope.memories.start + entry.index];
        let place = self.cells.read_registers[read_register];
        let lane = self.one_lane(entry.scope, place);
        let always = Guard { any: None, lanes: None };
        if collision == Collision::ReadNew {
            let mut effects = Vec::new();
            if or_zero {
                let zero: Word =
                    (0..limbs(entry.width)).map(|l| self.b.constant(0, limb_width(entry.width, l))).collect();
                effects.push((always.any, ReadEffect::Stores(self.stores(place.number, lane, &zero))));
            }
            let (memory, cell) = (memory.number, place.number);
            effects.extend(self.guard(entry.scope, enable).map(|guard| {
                (guard.any, ReadEffect::Late(Effect::ReadNew { memory, lane, address, enable: guard.lanes, cell }))
            }));
            return effects;
        }
        let present = enable.filter(|_| or_zero).map(|enable| self.bit(entry.scope, enable));
        let Some(guard) = (if or_zero { Some(always) } else { self.guard(entry.scope, enable) }) else {
            return Vec::new();
        };
        let mut word: Word = (0..limbs(entry.width))
            .map(|l| self.read(entry.scope, memory, address, l * 64, limb_width(entry.width, l)))
            .collect();
        if let Some(present) = present {
            let or_zero = |part| {
                let zero = self.b.constant(0, self.b.width(part));
                self.b.mux(present, part, zero)
            };
            word = word.into_iter().map(or_zero).collect();
        }
        if let Some(enable) = guard.lanes {
            let now: Word = (0..limbs(entry.width))
                .map(|l| self.cell(entry.scope, place, l * 64, limb_width(entry.width, l)))
                .collect();
            word = word.iter().zip(now).map(|(&new, now)| self.b.mux(enable, new, now)).collect();
        }
        vec![(guard.any, ReadEffect::Stores(self.stores(place.number, lane, &word)))]
    }

    /// The guard and the effect of a property; None if it cannot fail, or be hit, or is made with another lane's.
    fn property(&mut self, property: usize) -> Option<(Option<Id>, Effect)> {
        let entry = &self.directory.properties[property];
        if self.is_made_elsewhere(entry.scope) {
            return None;
        }
        let value = self.bit(entry.scope, self.directory.scopes[entry.scope].module.properties[entry.index].node);
        let place = self.cells.properties[property];
        let (cell, lane) = (place.number, self.one_lane(entry.scope, place));
        if self.directory.property_kind(property) == PropertyKind::Cover {
            let guard = self.guarded_by(value)?;
            let value = if guard.lanes.is_some() { value } else { self.b.constant(1, 1) };
            return Some((guard.any, Effect::Count { cell, lane, value }));
        }
        if self.b.value(value) == Some(1) {
            return None;
        }
        // "If a, then b" is not (a and not b): b is of interest only if a.
        let args = |b: &Builder, id: Id| b.args(id).to_vec();
        if *self.b.op(value) == Op::Not && self.b.lanes(value) == 1 {
            let inner = args(&self.b, value)[0];
            match *self.b.op(inner) {
                Op::AndNot => {
                    let (guard, value) = (args(&self.b, inner)[0], args(&self.b, inner)[1]);
                    return Some((Some(guard), Effect::Check { cell, lane, value }));
                }
                Op::And => {
                    let (guard, off) = (args(&self.b, inner)[0], args(&self.b, inner)[1]);
                    let value = self.b.not(off);
                    return Some((Some(guard), Effect::Check { cell, lane, value }));
                }
                _ => {}
            }
        }
        Some((None, Effect::Check { cell, lane, value }))
    }

    /// Whether the output that the cell [`Cells::stop`] names is on.
    fn stop(&mut self) -> Id {
        let on: Vec<Id> = (0..self.directory.outputs.len())
            .map(|k| {
                let word = self.word(0, self.directory.top.outputs[k].node);
                self.b.word_any(&word)
            })
            .collect();
        let which = self.b.node(Op::Cell { cell: self.cells.stop, lane: 0, low: 0 }, 32, &[]);
        let off = self.b.constant(0, 1);
        self.b.case(which, (1..=on.len() as u64).collect(), off, on)
    }

    /// The guard and the stores of a register; None if it keeps its value, or is made with another lane's.
    fn register(&mut self, register: usize, reset: bool) -> Option<(Option<Id>, Vec<Effect>)> {
        let entry = &self.directory.registers[register];
        if self.is_made_elsewhere(entry.scope) {
            return None;
        }
        let r = self.directory.register(register);
        let place = self.cells.registers[register];
        let (cell, lane) = (place.number, self.one_lane(entry.scope, place));
        let shape = self.cells.shapes[cell as usize];
        // A packed value that is kept in lanes.
        let packed = place.lane.is_none() && shape.lanes > 1;
        if let Some(value) = r.reset.as_ref().filter(|_| reset) {
            let word = if packed {
                let part = |b: &mut Builder, k| {
                    let bits = value.extract(k * shape.width, shape.width).low_u64();
                    b.constant(bits, shape.width)
                };
                let values: Vec<Id> = (0..shape.lanes).map(|k| part(&mut self.b, k)).collect();
                vec![self.b.gather(&values)]
            } else {
                let limb = |k| self.b.constant(value.limb(k as usize), limb_width(r.width, k));
                (0..limbs(r.width)).map(limb).collect()
            };
            return Some((None, self.stores(cell, lane, &word)));
        }
        let mut guard = self.guard(entry.scope, r.enable)?;
        let mut value = |node| {
            if !packed {
                return self.word(entry.scope, node);
            }
            let CellShape { width, lanes } = shape;
            vec![self.spread(entry.scope, node, Parts { low: 0, width, stride: width, lanes })]
        };
        let (mut next, now) = (value(r.next), value(r.out));
        while let Some((selector, taken)) = self.held(&next, &now) {
            guard.any = Some(guard.any.map_or(selector, |g| self.b.and(g, selector)));
            next = taken;
        }
        if let Some(enable) = guard.lanes {
            next = next.iter().zip(&now).map(|(&next, &now)| self.b.mux(enable, next, now)).collect();
        }
        (next != now).then(|| (guard.any, self.stores(cell, lane, &next)))
    }

    /// If `next` is a choice between the present value and another: when it is the other, and the other.
    fn held(&mut self, next: &[Id], now: &[Id]) -> Option<(Id, Word)> {
        if *self.b.op(next[0]) != Op::Mux {
            return None;
        }
        let selector = self.b.args(next[0])[0];
        let arm = |b: &Builder, arm: usize| -> Option<Word> {
            let of = |&id: &Id| (*b.op(id) == Op::Mux && b.args(id)[0] == selector).then(|| b.args(id)[arm]);
            next.iter().map(of).collect()
        };
        let (on, off) = (arm(&self.b, 1)?, arm(&self.b, 2)?);
        if off == now {
            Some((selector, on))
        } else if on == now {
            Some((self.b.not(selector), off))
        } else {
            None
        }
    }

    /// The write ports of a memory.
    fn writes(&mut self, memory: usize) -> Vec<Action> {
        let entry = &self.directory.memories[memory];
        if self.is_made_elsewhere(entry.scope) {
            return Vec::new();
        }
        let description = self.directory.memory(memory);
        let place = self.cells.memories[memory];
        let lane = self.one_lane(entry.scope, place);
        let mut list = Vec::new();
        for port in &description.writes {
            let granules = self.node(entry.scope, port.enable).width;
            let enable = self.word(entry.scope, port.enable);
            let any = self.b.word_any(&enable);
            let Some(mut guard) = self.guarded_by(any) else { continue };
            if let ([enable], true) = (&enable[..], guard.lanes.is_some()) {
                guard.any = self.early_guard(*enable).or(guard.any);
            }
            let address = self.address(entry.scope, port.address);
            let data = self.word(entry.scope, port.data);
            let parts = (0..data.len() as u32)
                .map(|k| {
                    let width = limb_width(entry.width, k);
                    let mask =
                        (granules > 1).then(|| self.granule_mask(&enable, entry.width / granules, k * 64, width));
                    let mask = mask.filter(|&m| self.b.value(m) != Some(low_mask(width)));
                    Part { low: k * 64, data: data[k as usize], mask }
                })
                .collect();
            let enable = guard.lanes.filter(|_| granules == 1);
            let write = Effect::Write { memory: place.number, lane, address, enable, parts };
            list.push(Action { guard: guard.any, effects: vec![write] });
        }
        list
    }

    /// Of an enable in lanes that takes arithmetic to find: whether some lane has all that is known without. What is
    /// written has the enable in its mask anyhow.
    fn early_guard(&mut self, enable: Id) -> Option<Id> {
        let mut all = Vec::new();
        self.conditions(enable, &mut all);
        let count = all.len();
        all.retain(|&condition| !self.b.takes_arithmetic(condition));
        if all.len() == count {
            return None;
        }
        let early = all.into_iter().reduce(|a, b| self.b.and(a, b))?;
        self.guarded_by(early)?.any
    }

    /// Bits that are all on where some bit of the value is.
    fn conditions(&mut self, value: Id, all: &mut Vec<Id>) {
        let args = self.b.args(value).to_vec();
        match self.b.op(value) {
            Op::And => args.into_iter().for_each(|a| self.conditions(a, all)),
            Op::AndNot if self.b.width(value) == 1 => {
                self.conditions(args[0], all);
                all.push(self.b.not(args[1]));
            }
            Op::Blend if self.b.value(args[2]) == Some(0) => {
                args[..2].iter().for_each(|&a| self.conditions(a, all));
            }
            // Copies of a bit.
            Op::SExt if self.b.width(args[0]) == 1 => self.conditions(args[0], all),
            op if op.is_comparison() => all.push(self.b.slice(value, 0, 1)),
            _ if self.b.width(value) == 1 => all.push(value),
            _ => all.push(self.b.any(value)),
        }
    }

    /// Bits of the mask in which every enable stands `size` times.
    fn granule_mask(&mut self, enable: &[Id], size: u32, low: u32, width: u32) -> Id {
        let mut parts = Vec::new();
        let mut at = low;
        while at < low + width {
            let granule = at / size;
            let take = ((granule + 1) * size).min(low + width) - at;
            let bit = self.b.word_slice(enable, granule, 1);
            parts.push(self.b.sext(bit, take));
            at += take;
        }
        self.b.cat(&parts)
    }
}

/// When something happens.
struct Guard {
    /// If this bit, of one lane, is on; None for always.
    any: Option<Id>,
    /// Only in the lanes in which this bit is on; `any` is whether there are such.
    lanes: Option<Id>,
}

enum ReadEffect {
    Stores(Vec<Effect>),
    /// After all writes.
    Late(Effect),
}
