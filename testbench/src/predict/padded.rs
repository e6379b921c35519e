//! A program with nops at every instruction and on every edge, to test that laying out anew changes nothing but time.

use super::PredictError;
use super::layout::{Edits, Layout};
use super::linked::Linked;
use super::write::write;
use crate::asm::NOP;

fn everywhere(linked: &Linked, nops: usize) -> Edits {
    let mut edits = Edits::default();
    for block in linked.analysis.functions.iter().flat_map(|function| &function.blocks) {
        for pc in (block.start..block.end).step_by(4) {
            edits.before.insert(pc, vec![NOP; nops]);
        }
        for &next in &block.next {
            edits.edges.insert((block.end - 4, next), vec![NOP; nops]);
        }
    }
    edits
}

/// The file with so many nops in each place, and the names of sections that it no longer has.
pub fn padded(elf: &[u8], nops: usize) -> Result<(Vec<u8>, Vec<String>), PredictError> {
    let linked = Linked::read(elf)?;
    let layout = Layout::of(&linked, &everywhere(&linked, nops))?;
    write(linked, &layout)
}
