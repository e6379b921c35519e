//! One instruction of several threads at once, as a warp executes it: looked up once, and carried out for one thread after
//! the other, in the order in which they are given.

use super::decode::Kind;
use super::{Access, Fault, Hart, Iss, Operation, State, atomic};

/// The most threads that execute an instruction together.
pub const MOST: usize = 64;

/// What an instruction did for several threads. Room for all that is asked for, to be used again.
#[derive(Clone, Debug)]
pub struct Together {
    /// The register written, 1 to 31.
    pub rd: Option<u8>,
    /// By place in the list of threads: its value.
    pub values: [u32; MOST],
    /// Whether those are [of a counter](super::Step::counter).
    pub counter: bool,
    /// By place in the list of threads: the access, if the instruction makes one.
    pub accesses: Vec<Access>,
}

impl Default for Together {
    fn default() -> Together {
        Together { rd: None, values: [0; MOST], counter: false, accesses: Vec::with_capacity(MOST) }
    }
}

impl Iss {
    /// Carries out one instruction of the threads of these harts, which run and are at one pc, as [`Iss::step`] for one
    /// after the other would. False if threads do not decide alone what it does, or if it ends or stops them: nothing is
    /// done then. A fault comes with the place of its thread in the list; those before have executed the instruction.
    pub fn step_together(&mut self, harts: &[u32], together: &mut Together) -> Result<bool, (usize, Fault)> {
        let pc = self.harts[harts[0] as usize].pc;
        let Some(&instruction) = self.instructions.get(pc as usize / 4) else { return Ok(false) };
        together.rd = Some(instruction.rd).filter(|&rd| rd != 0);
        together.counter = false;
        together.accesses.clear();
        let (rs1, rs2) = (instruction.rs1 as usize, instruction.rs2 as usize);
        let next = pc.wrapping_add(4);
        match instruction.kind {
            Kind::Compute(operation) => {
                self.compute(harts, together, next, |hart| operation(hart.registers[rs1], hart.registers[rs2]));
            }
            Kind::ComputeImmediate(operation, immediate) => {
                self.compute(harts, together, next, |hart| operation(hart.registers[rs1], immediate));
            }
            Kind::AddToPc(immediate) => self.compute(harts, together, next, |_| pc.wrapping_add(immediate)),
            Kind::Jump(offset) if pc.wrapping_add(offset).is_multiple_of(4) => {
                self.compute(harts, together, pc.wrapping_add(offset), |_| next);
            }
            Kind::Branch(condition, offset) if pc.wrapping_add(offset).is_multiple_of(4) => {
                together.rd = None;
                for &hart in harts {
                    let hart = &mut self.harts[hart as usize];
                    let taken = condition(hart.registers[rs1], hart.registers[rs2]);
                    hart.pc = if taken { pc.wrapping_add(offset) } else { next };
                }
            }
            Kind::JumpRegister(_) | Kind::Load { .. } | Kind::Store { .. } | Kind::Atomic(_) | Kind::Csr(_) => {
                self.one_by_one(harts, together)?;
                return Ok(true);
            }
            _ => return Ok(false),
        }
        self.executed += harts.len() as u64;
        Ok(true)
    }

    /// What cannot fail and only writes a register.
    fn compute(&mut self, harts: &[u32], together: &mut Together, next: u32, value: impl Fn(&Hart) -> u32) {
        for (&hart, result) in harts.iter().zip(&mut together.values) {
            let hart = &mut self.harts[hart as usize];
            debug_assert!(hart.state == State::Running);
            *result = value(hart);
            if let Some(rd) = together.rd {
                hart.registers[rd as usize] = *result;
            }
            hart.pc = next;
        }
    }

    /// What may fail or accesses memory.
    fn one_by_one(&mut self, harts: &[u32], together: &mut Together) -> Result<(), (usize, Fault)> {
        for (place, &number) in harts.iter().enumerate() {
            let hart = &self.harts[number as usize];
            let (pc, thread) = (hart.pc, hart.thread);
            let (step, next) =
                self.execute(number, super::Given::default()).map_err(|cause| (place, Fault { cause, pc, thread }))?;
            if let Some(access) = step.access {
                self.carry_out(access);
                together.accesses.push(access);
            }
            let hart = &mut self.harts[number as usize];
            match step.rd {
                Some((rd, value)) => {
                    together.values[place] = value;
                    hart.registers[rd as usize] = value;
                }
                None => together.rd = None,
            }
            together.counter = step.counter;
            hart.pc = next;
            self.executed += 1;
        }
        Ok(())
    }

    /// What a load, store or atomic that is no `lr.w` does to memory.
    pub(super) fn carry_out(&mut self, access: Access) {
        let Access { operation, place, bytes, value, .. } = access;
        match operation {
            Operation::Load | Operation::Failed => {}
            Operation::Store => self.write_memory(place, bytes, value),
            Operation::Atomic { funct5, old } => {
                let new = atomic(funct5, old, value).expect("what is executed exists");
                self.write_memory(place, bytes, new);
            }
        }
    }
}

#[cfg(test)]
mod tests;
