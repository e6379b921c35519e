//! Stage 7, behind the ALUs: where in the core's memories a lane's access goes ([`crate::address`]), and what is wrong
//! with it.
//!
//! A *place* is a 32-bit address that two lanes share exactly if they access the same byte: of main memory the byte
//! address there, of the scratchpad [`SCRATCHPAD`] and the byte address in the whole scratchpad memory. Behind this
//! stage nobody knows stacks or blocks. The address of an access that is wrong stays as it is, to be reported.

use crate::address::{SCRATCHPAD, STACK};
use crate::shape::Shape;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct PlaceIn<T> {
    /// The result of the ALU, 32 bits.
    #[width(32)]
    pub computed: T,
    /// It is an address; of an access that writes.
    pub accesses: T,
    pub writes: T,
    /// Bytes of the access, as a power of two; 2 bits.
    #[width(2)]
    pub size: T,
    /// The lane's static warp.
    #[width(s.warp_bits())]
    pub slot: T,
    /// The lane's number.
    #[width(s.lane_bits())]
    pub number: T,
    /// Bits of a warp number that differ among the warps of a block: ones at the bottom, `warp_bits`.
    #[width(s.warp_bits())]
    pub group: T,
    /// First byte address that may be written, a multiple of 256; 32 bits.
    #[width(32)]
    pub program_end: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct PlaceOut<T> {
    /// The place, if it is an address; else the result.
    pub result: T,
    pub wrong: Wrong<T>,
}

/// What is wrong with an access, one bit per lane each.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Wrong<T> {
    pub misaligned: T,
    /// Outside all that [`crate::address`] lists.
    pub outside: T,
    /// It writes into the program.
    pub in_program: T,
}

impl Wrong<Width> {
    pub fn shape(lanes: u32) -> Wrong<Width> {
        Wrong { misaligned: lanes, outside: lanes, in_program: lanes }
    }
}

/// One lane.
pub fn place(s: &Shape) -> TypedModule<PlaceIn<Width>, PlaceOut<Signal>> {
    module("place", PlaceIn::shape(s), |m, i| {
        m.doc("Where one lane's access goes.");
        let address = i.computed;
        wire!(misaligned = (i.size.eq(1) & address.bit(0)) | (i.size.eq(2) & address.slice(0, 2).any()));
        wire!(in_main = !address.from_bit(s.address_bits()).any());
        let stack_bits = s.stack.ilog2();
        wire!(in_stack = address.from_bit(stack_bits).eq(STACK >> stack_bits));
        // Of addresses in main memory; all are if the program ends behind it.
        let page = |address: Signal| address.slice(8, s.address_bits() - 8);
        let all_program = i.program_end.from_bit(s.address_bits()).any();
        wire!(in_program = i.writes & in_main & (all_program | page(address).lt(page(i.program_end))));

        // The lines of a warp's stacks follow each other, those of the last warp at the top of memory.
        let (warp_bits, lane_bits) = (s.warps.ilog2(), s.lanes.ilog2());
        let mut parts = vec![address.slice(0, 2)];
        parts.extend((lane_bits > 0).then_some(i.number));
        parts.push(address.slice(2, stack_bits - 2));
        parts.extend((warp_bits > 0).then_some(i.slot));
        let above = s.address_bits() - stack_bits - lane_bits - warp_bits;
        parts.push(m.lit(Bits::ones(above), above));
        wire!(in_region = cat(&parts).zext(32));

        let (in_scratchpad, of_block) = in_scratchpad(s, m, &i);
        let outside = !(in_main | in_stack | in_scratchpad);
        let good = i.accesses & !misaligned;
        let result = pick([(good & in_stack, in_region), (good & in_scratchpad, of_block)], address);
        m.cover("accesses_its_stack", good & in_stack);
        let wrong = Wrong { misaligned, outside, in_program };
        PlaceOut { result, wrong: wrong.map("", &mut |_, w| w & i.accesses) }
    })
}

/// Whether the address is in the block's share of the scratchpad, and the place there.
fn in_scratchpad(s: &Shape, m: Builder, i: &PlaceIn<Signal>) -> (Signal, Signal) {
    if s.scratchpad == 0 {
        return (m.lit(0u32, 1), i.computed);
    }
    let (bits, warp_bits) = (s.scratchpad.ilog2(), s.warps.ilog2());
    wire!(in_window = i.computed.from_bit(bits).eq(SCRATCHPAD >> bits));
    if warp_bits == 0 {
        return (in_window, i.computed);
    }
    // The share of a warp has this many address bits; above them, a block's bits count up to its size.
    let low = bits - warp_bits;
    let part = i.computed.slice(low, warp_bits);
    wire!(in_share = in_window & !(part & !i.group).any());
    wire!(of_block = cat(&[i.computed.slice(0, low), part | (i.slot & !i.group), i.computed.from_bit(bits)]));
    m.cover("accesses_the_scratchpad", i.accesses & in_share);
    m.cover("outside_the_share", i.accesses & in_window & !in_share);
    (in_share, of_block)
}

#[cfg(test)]
mod tests;
