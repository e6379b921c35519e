//! Reconvergence information: what stacks must know of a branch, beside the instruction.
//!
//! An analysis on the host finds it; it lies in a side table, one entry an instruction, so that one unmodified program
//! runs on every divergence unit. Instructions that cannot diverge need none; any entry is safe, since it only says
//! where threads may be waited for.

use crate::shape::Shape;
use heddle_hdl::prelude::*;

/// An entry of the side table. [`Reconvergence::shape`] has the widths; the first field lies lowest.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct Reconvergence<T> {
    /// The reconvergence pc: an instruction number, `pc_bits`, at the branch's call depth.
    #[width(s.pc_bits())]
    pub rpc: T,
    /// 1 bit: instead of at `rpc`, threads reconverge where the function returns to.
    pub returns: T,
    /// 1 bit: all threads of a block take the same direction.
    pub uniform: T,
    /// 1 bit: there is a likely-convergence point, and its instruction number, `pc_bits`.
    pub likely: T,
    #[width(s.pc_bits())]
    pub likely_pc: T,
}

/// Where the threads of a branch meet again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meet {
    /// At an instruction, at the call depth of the branch.
    At(u32),
    /// Where the function returns to.
    Return,
}

impl Reconvergence<u64> {
    /// An entry, of instruction numbers.
    pub fn new(meet: Meet, uniform: bool, likely: Option<u32>) -> Reconvergence<u64> {
        let (rpc, returns) = match meet {
            Meet::At(pc) => (pc, false),
            Meet::Return => (0, true),
        };
        Reconvergence {
            rpc: rpc.into(),
            returns: returns.into(),
            uniform: uniform.into(),
            likely: likely.is_some().into(),
            likely_pc: likely.unwrap_or(0).into(),
        }
    }

    /// The bit of an entry's word that says that it is uniform.
    pub fn uniform_bit(s: &Shape) -> Width {
        s.pc_bits() + 1
    }

    /// The word that the table holds.
    pub fn encode(&self, s: &Shape) -> Bits {
        let Reconvergence { rpc, returns, uniform, likely, likely_pc } = *self;
        let pc = s.pc_bits();
        let word = u128::from(rpc)
            | u128::from(returns) << pc
            | u128::from(uniform) << Self::uniform_bit(s)
            | u128::from(likely) << (pc + 2)
            | u128::from(likely_pc) << (pc + 3);
        Bits::from_limbs(&[word as u64, (word >> 64) as u64])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_hdl::unpack;
    use heddle_sim::Sim;

    /// The hardware's fields of a word are what was encoded.
    #[test]
    fn the_word_has_the_fields() {
        for program in [1 << 10, 64 << 10, 16 << 20] {
            let s = Shape { program, memory: 16 << 20, ..Shape::new(1, 1) };
            let word = width_of(&Reconvergence::shape(&s));
            let fields = module("fields", [word], |_, [word]: [Signal; 1]| unpack(Reconvergence::shape(&s), word));
            let mut t = Sim::new(&fields.check().unwrap());
            let last = (1 << s.pc_bits()) - 1;
            for meet in [Meet::At(0), Meet::At(5), Meet::At(last), Meet::Return] {
                for (uniform, likely) in [(false, None), (true, None), (false, Some(7)), (true, Some(last))] {
                    let entry = Reconvergence::new(meet, uniform, likely);
                    t.poke([entry.encode(&s)]);
                    let out = t.peek();
                    let read = [&out.rpc, &out.returns, &out.uniform, &out.likely, &out.likely_pc];
                    let Reconvergence { rpc, returns, uniform, likely, likely_pc } = entry;
                    assert_eq!(read.map(|b| b.low_u64()), [rpc, returns, uniform, likely, likely_pc], "{meet:?}");
                }
            }
        }
    }
}
