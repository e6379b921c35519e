//! Loads and stores: cells and memories, of one lane or of all.

use super::layout::{Form, access_bytes};
use super::lower::{Lower, value_type};
use super::vector::Part;
use crate::flat::{Id, Part as Written, limb_width, limbs};
use cranelift_codegen::ir::types::{I8, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Type, Value};
use heddle_hdl::bits::low_mask;

impl Lower<'_, '_> {
    /// Base and offset, the offset small enough for an instruction.
    fn reach(&mut self, base: Value, offset: usize) -> (Value, i32) {
        match i32::try_from(offset) {
            Ok(offset) => (base, offset),
            Err(_) => (self.b.ins().iadd_imm_u(base, offset as i64), 0),
        }
    }

    pub fn load(&mut self, base: Value, offset: usize, bytes: usize, ty: Type) -> Value {
        let flags = MemFlagsData::trusted();
        let (base, offset) = self.reach(base, offset);
        match bytes {
            _ if ty == I8 || ty.is_vector() => self.b.ins().load(ty, flags, base, offset),
            1 => self.b.ins().uload8(ty, flags, base, offset),
            2 => self.b.ins().uload16(ty, flags, base, offset),
            4 if ty == I64 => self.b.ins().uload32(flags, base, offset),
            _ => self.b.ins().load(ty, flags, base, offset),
        }
    }

    pub fn store(&mut self, base: Value, offset: usize, bytes: usize, value: Value) {
        let flags = MemFlagsData::trusted();
        let (base, offset) = self.reach(base, offset);
        match bytes {
            1 if self.b.func.dfg.value_type(value) != I8 => self.b.ins().istore8(flags, value, base, offset),
            2 => self.b.ins().istore16(flags, value, base, offset),
            _ => self.b.ins().store(flags, value, base, offset),
        };
    }

    fn cell_form(&self, cell: u32) -> Form {
        self.layout.cells[cell as usize]
    }

    fn memory_form(&self, memory: u32) -> Form {
        self.layout.memories[memory as usize]
    }

    /// How many bytes a part of a value in this form has.
    fn bytes(form: &Form, width: u32) -> usize {
        match form.shape.lanes {
            1 => access_bytes(form.shape.width, form.stride, width),
            _ if width == form.shape.width => form.lane,
            _ => access_bytes(form.shape.width, 8, width),
        }
    }

    /// The offset of the part from bit `low` on in a word in this form.
    fn within(form: &Form, low: u32) -> usize {
        low as usize / 64 * form.limb + low as usize % 64 / 8
    }

    /// The offset of the part from bit `low` on in lane 0 of a cell.
    pub fn cell_at(&self, cell: u32, low: u32) -> usize {
        let form = self.cell_form(cell);
        form.offset + Self::within(&form, low)
    }

    /// What a node of one lane, or of packed bits, loads from a cell.
    pub fn load_cell(&mut self, id: Id, cell: u32, lane: u32, low: u32) -> Value {
        let node = self.flat.node(id);
        let form = self.cell_form(cell);
        let ty = value_type(node.width);
        if form.has_packed_bits() {
            let all = self.load(self.state, form.offset, form.stride, value_type(form.shape.lanes));
            if node.lanes > 1 {
                return all;
            }
            let down = if lane > 0 { self.b.ins().ushr_imm_u(all, i64::from(lane)) } else { all };
            let bit = self.mask(down, 1);
            return self.convert(bit, I8);
        }
        self.load(self.state, form.at(0, lane) + Self::within(&form, low), Self::bytes(&form, node.width), ty)
    }

    /// A strip of a cell.
    pub fn load_strip(&mut self, cell: u32, low: u32, strip: u32) -> Part {
        let form = self.cell_form(cell);
        self.load_vectors(self.state, form.offset, &form, low, strip)
    }

    fn load_vectors(&mut self, base: Value, offset: usize, form: &Form, low: u32, strip: u32) -> Part {
        let ty = self.vector(8 * form.lane as u32);
        let at = offset + Self::within(form, low) + (strip * self.strip.size) as usize * form.lane;
        let bytes = ty.bytes() as usize;
        (0..form.lane / 4).map(|k| self.load(base, at + bytes * k, bytes, ty)).collect()
    }

    fn store_vectors(&mut self, base: Value, offset: usize, form: &Form, low: u32, strip: u32, part: &[Value]) {
        let at = offset + Self::within(form, low) + (strip * self.strip.size) as usize * form.lane;
        for (k, &vector) in part.iter().enumerate() {
            let bytes = self.b.func.dfg.value_type(vector).bytes() as usize;
            self.store(base, at + bytes * k, bytes, vector);
        }
    }

    /// The base address of a memory's word, and the offset of its lane 0 from there.
    fn word(&mut self, memory: u32, address: Id) -> (Value, usize) {
        let form = self.memory_form(memory);
        if let Some(address) = self.flat.constant(address) {
            assert!(address < form.words, "address {address:#x} is beyond its memory");
            return (self.state, form.at(address, 0));
        }
        let value = self.value(address);
        self.word_at(&form, value, self.width(address))
    }

    /// The same for the address that a lane has of its own.
    fn own_word(&mut self, form: &Form, address: Id, lane: u32) -> (Value, usize) {
        let value = self.lane_of(address, lane);
        self.word_at(form, value, self.width(address))
    }

    fn word_at(&mut self, form: &Form, address: Value, width: u32) -> (Value, usize) {
        // That the code touches nothing but the state rests on this.
        assert!(low_mask(width) < form.words, "an address of {width} bits for {} words", form.words);
        let index = self.convert(address, I64);
        let distance = match form.stride {
            1 => index,
            stride if stride.is_power_of_two() => self.b.ins().ishl_imm_u(index, i64::from(stride.trailing_zeros())),
            stride => self.b.ins().imul_imm_u(index, stride as i64),
        };
        (self.b.ins().iadd(self.state, distance), form.offset)
    }

    /// What a node of one lane loads from a memory.
    pub fn load_word(&mut self, id: Id, memory: u32, lane: u32, low: u32) -> Value {
        let node = self.flat.node(id);
        let form = self.memory_form(memory);
        let (base, offset) = self.word(memory, node.args[0]);
        let at = offset + lane as usize * form.lane + Self::within(&form, low);
        self.load(base, at, Self::bytes(&form, node.width), value_type(node.width))
    }

    /// A strip of a word at an address that is the same in all lanes.
    pub fn load_words(&mut self, id: Id, memory: u32, low: u32, strip: u32) -> Part {
        let address = self.flat.node(id).args[0];
        let (base, offset) = match self.strip.words.get(&id) {
            Some(&word) => word,
            None => {
                let word = self.word(memory, address);
                self.strip.words.insert(id, word);
                word
            }
        };
        let form = self.memory_form(memory);
        self.load_vectors(base, offset, &form, low, strip)
    }

    /// What one lane loads from its own address.
    pub fn load_lane(&mut self, id: Id, memory: u32, low: u32, lane: u32) -> Value {
        let node = self.flat.node(id);
        let form = self.memory_form(memory);
        let (base, offset) = self.own_word(&form, node.args[0], lane);
        let at = offset + lane as usize * form.lane + Self::within(&form, low);
        self.load(base, at, Self::bytes(&form, node.width), value_type(node.width))
    }

    /// Bits from `low` on of a cell become the value: in one lane or in all.
    pub fn store_cell(&mut self, cell: u32, lane: Option<u32>, low: u32, value: Id) {
        let form = self.cell_form(cell);
        match lane {
            None if form.shape.lanes > 1 && form.has_packed_bits() => {
                let packed = self.packed(value, form.shape.lanes);
                self.store(self.state, form.offset, form.stride, packed);
            }
            None if form.shape.lanes > 1 => {
                self.strip.forget();
                self.enter(form.shape.lanes);
                for strip in 0..self.strips(form.shape.lanes) {
                    let part = self.part(value, strip, 8 * form.lane as u32);
                    self.store_vectors(self.state, form.offset, &form, low, strip, &part);
                }
            }
            Some(lane) if form.has_packed_bits() => {
                let value = self.value(value);
                self.store_packed_bit(&form, lane, value);
            }
            _ => {
                let at = form.at(0, lane.unwrap_or(0)) + Self::within(&form, low);
                let bytes = Self::bytes(&form, self.width(value));
                let value = self.value(value);
                self.store(self.state, at, bytes, value);
            }
        }
    }

    /// The bit of one lane in a cell of packed bits becomes the value.
    fn store_packed_bit(&mut self, form: &Form, lane: u32, value: Value) {
        let ty = value_type(form.shape.lanes);
        let old = self.load(self.state, form.offset, form.stride, ty);
        let bit = self.constant(1 << lane, ty);
        let others = self.b.ins().band_not(old, bit);
        let value = self.convert(value, ty);
        let up = self.b.ins().ishl_imm_u(value, i64::from(lane));
        let new = self.b.ins().bor(others, up);
        self.store(self.state, form.offset, form.stride, new);
    }

    /// A memory word takes parts: see `Effect::Write`.
    pub fn write_word(&mut self, memory: u32, lane: Option<u32>, address: Id, enable: Option<Id>, parts: &[Written]) {
        let form = self.memory_form(memory);
        if lane.is_some() || form.shape.lanes == 1 {
            let (base, offset) = self.word(memory, address);
            let offset = offset + lane.unwrap_or(0) as usize * form.lane;
            for part in parts {
                let (data, mask) = (self.value(part.data), part.mask.map(|mask| self.value(mask)));
                self.write_part(base, offset, &form, part, data, mask);
            }
        } else if self.lanes(address) == 1 {
            self.strip.forget();
            self.enter(form.shape.lanes);
            let (base, offset) = self.word(memory, address);
            for strip in 0..self.strips(form.shape.lanes) {
                for part in parts {
                    let own = 8 * form.lane as u32;
                    let mut masks = Vec::new();
                    if let Some(mask) = part.mask {
                        masks.push(self.part(mask, strip, own));
                    }
                    if let Some(enable) = enable {
                        masks.push(self.copies(enable, strip, own));
                    }
                    let data = self.part(part.data, strip, own);
                    let mask = masks
                        .into_iter()
                        .reduce(|a, b| a.into_iter().zip(b).map(|(a, b)| self.b.ins().band(a, b)).collect::<Vec<_>>());
                    let new = match mask {
                        None => data,
                        Some(mask) => {
                            let old = self.load_vectors(base, offset, &form, part.low, strip);
                            (0..old.len()).map(|k| self.b.ins().bitselect(mask[k], data[k], old[k])).collect()
                        }
                    };
                    self.store_vectors(base, offset, &form, part.low, strip, &new);
                }
            }
        } else {
            for lane in 0..form.shape.lanes {
                self.if_on(enable, lane, |lower| {
                    let (base, offset) = lower.own_word(&form, address, lane);
                    let offset = offset + lane as usize * form.lane;
                    for part in parts {
                        let data = lower.lane_of(part.data, lane);
                        let mask = part.mask.map(|mask| lower.lane_of(mask, lane));
                        lower.write_part(base, offset, &form, part, data, mask);
                    }
                });
            }
        }
    }

    /// Does something only if a bit, if there is one, is on in a lane.
    fn if_on(&mut self, enable: Option<Id>, lane: u32, act: impl FnOnce(&mut Self)) {
        let Some(enable) = enable else { return act(self) };
        let bit = self.lane_of(enable, lane);
        let (on, join) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(bit, on, &[], join, &[]);
        self.b.switch_to_block(on);
        act(self);
        self.b.ins().jump(join, &[]);
        self.b.switch_to_block(join);
    }

    /// Writes a part of a word of one lane.
    fn write_part(
        &mut self,
        base: Value,
        offset: usize,
        form: &Form,
        part: &Written,
        data: Value,
        mask: Option<Value>,
    ) {
        let at = offset + Self::within(form, part.low);
        let bytes = Self::bytes(form, self.width(part.data));
        let new = match mask {
            None => data,
            Some(mask) => {
                let old = self.load(base, at, bytes, self.b.func.dfg.value_type(data));
                let kept = self.b.ins().band_not(old, mask);
                let taken = self.b.ins().band(data, mask);
                self.b.ins().bor(kept, taken)
            }
        };
        self.store(base, at, bytes, new);
    }

    /// A cell takes a memory word: see `Effect::ReadNew`.
    pub fn read_new(&mut self, memory: u32, lane: Option<u32>, address: Id, enable: Option<Id>, cell: u32) {
        let (from, to) = (self.memory_form(memory), self.cell_form(cell));
        if lane.is_some() || from.shape.lanes == 1 {
            let (base, offset) = self.word(memory, address);
            return self.copy_lane(base, offset, &from, &to, lane.unwrap_or(0));
        }
        if self.lanes(address) > 1 {
            for lane in 0..from.shape.lanes {
                self.if_on(enable, lane, |lower| {
                    let (base, offset) = lower.own_word(&from, address, lane);
                    lower.copy_lane(base, offset, &from, &to, lane);
                });
            }
            return;
        }
        self.strip.forget();
        self.enter(from.shape.lanes);
        let (base, offset) = self.word(memory, address);
        if to.has_packed_bits() {
            for lane in 0..from.shape.lanes {
                self.if_on(enable, lane, |lower| lower.copy_lane(base, offset, &from, &to, lane));
            }
            return;
        }
        for strip in 0..self.strips(from.shape.lanes) {
            for limb in 0..limbs(from.shape.width) {
                let mut part = self.load_vectors(base, offset, &from, limb * 64, strip);
                if let Some(enable) = enable {
                    let on = self.copies(enable, strip, 8 * to.lane as u32);
                    let old = self.load_vectors(self.state, to.offset, &to, limb * 64, strip);
                    part = (0..part.len()).map(|k| self.b.ins().bitselect(on[k], part[k], old[k])).collect();
                }
                self.store_vectors(self.state, to.offset, &to, limb * 64, strip, &part);
            }
        }
    }

    /// Copies a memory word of one lane into a cell's.
    fn copy_lane(&mut self, base: Value, offset: usize, from: &Form, to: &Form, lane: u32) {
        let width = from.shape.width;
        for limb in 0..limbs(width) {
            let ty = value_type(limb_width(width, limb));
            let at = offset + lane as usize * from.lane + limb as usize * from.limb;
            let value = self.load(base, at, Self::bytes(from, limb_width(width, limb)), ty);
            if to.has_packed_bits() {
                self.store_packed_bit(to, lane, value);
            } else {
                let at = to.at(0, lane) + limb as usize * to.limb;
                self.store(self.state, at, ty.bytes() as usize, value);
            }
        }
    }

    /// A 64-bit cell counts up by a bit: in one lane or in all.
    pub fn count(&mut self, cell: u32, lane: Option<u32>, value: Id) {
        let form = self.cell_form(cell);
        if lane.is_some() || form.shape.lanes == 1 {
            let at = form.at(0, lane.unwrap_or(0));
            let value = self.value(value);
            let value = self.convert(value, I64);
            let old = self.load(self.state, at, 8, I64);
            let new = self.b.ins().iadd(old, value);
            return self.store(self.state, at, 8, new);
        }
        self.strip.forget();
        self.enter(form.shape.lanes);
        for strip in 0..self.strips(form.shape.lanes) {
            let old = self.load_vectors(self.state, form.offset, &form, 0, strip);
            let ones = self.copies(value, strip, 64);
            // All bits on is -1.
            let new: Part = (0..2).map(|k| self.b.ins().isub(old[k], ones[k])).collect();
            self.store_vectors(self.state, form.offset, &form, 0, strip, &new);
        }
    }

    /// A 64-bit cell becomes 0 where a bit is off: in one lane or in all.
    pub fn clear_where_off(&mut self, cell: u32, lane: Option<u32>, value: Id) {
        let form = self.cell_form(cell);
        if lane.is_some() || form.shape.lanes == 1 {
            let zero = self.constant(0, I64);
            return self.store(self.state, form.at(0, lane.unwrap_or(0)), 8, zero);
        }
        self.strip.forget();
        self.enter(form.shape.lanes);
        for strip in 0..self.strips(form.shape.lanes) {
            let old = self.load_vectors(self.state, form.offset, &form, 0, strip);
            let ones = self.copies(value, strip, 64);
            let new: Part = (0..2).map(|k| self.b.ins().band(old[k], ones[k])).collect();
            self.store_vectors(self.state, form.offset, &form, 0, strip, &new);
        }
    }
}
