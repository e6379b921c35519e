//! Tables: the entry in hand is found at the start of an edge, and its results are loaded where they are used.

use super::{Lower, value_type};
use crate::compiled::tables::{ENTRIES, Table, bits, bytes};
use crate::flat::Id;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{InstBuilder, Value};

impl Lower<'_, '_> {
    /// Finds the entries for the registers' values from before the edge. Registers change only after this.
    pub(super) fn look_up(&mut self) {
        for table in &self.tables.all {
            let entry = self.entry(table);
            self.entries.push(entry);
        }
    }

    /// Where a table's entry for its register's value is; it is made there if it was another's.
    fn entry(&mut self, table: &Table) -> Value {
        // 2^32 divided by the golden ratio: multiples of it are far apart in their upper bits.
        const MIX: i64 = 0x9e37_79b1;
        let word = self.value(table.register);
        let mixed = self.b.ins().imul_imm_u(word, MIX);
        let index = self.b.ins().ushr_imm_u(mixed, i64::from(u32::BITS - ENTRIES.trailing_zeros()));
        let index = self.convert(index, I64);
        let distance = self.b.ins().ishl_imm_u(index, i64::from(table.stride.trailing_zeros()));
        let first = self.b.ins().iadd_imm_u(self.kept, table.at as i64);
        let entry = self.b.ins().iadd(first, distance);
        let wide = self.convert(word, I64);
        let key = self.b.ins().bor_imm_u(wide, 1 << u32::BITS);
        let found = self.load(entry, 0, 8, I64);
        let hit = self.b.ins().icmp(IntCC::Equal, found, key);
        let (miss, join) = (self.b.create_block(), self.b.create_block());
        self.b.ins().brif(hit, join, &[], miss, &[]);
        self.b.set_cold_block(miss);
        self.b.switch_to_block(miss);
        self.fill(table, entry);
        self.store(entry, 0, 8, key);
        self.b.ins().jump(join, &[]);
        self.b.switch_to_block(join);
        entry
    }

    /// Computes the cone here and puts its results into the entry.
    fn fill(&mut self, table: &Table, entry: Value) {
        let rest = std::mem::replace(&mut self.flat, self.whole);
        self.compute_all(&table.cone);
        for &(id, offset) in &table.results {
            let value = self.value(id);
            self.store(entry, offset as usize, bytes(self.flat.node(id)) as usize, value);
        }
        table.cone.iter().for_each(|id| self.values[id.index()] = None);
        self.flat = rest;
    }

    /// A result.
    pub(super) fn load_kept(&mut self, id: Id, table: u32, offset: u32) -> Value {
        let node = self.flat.node(id);
        self.load(self.entries[table as usize], offset as usize, bytes(node) as usize, value_type(bits(node)))
    }
}
