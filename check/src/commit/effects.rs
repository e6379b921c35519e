//! What threads did, for a debugger.

use heddle_testbench::iss::{Access, Iss, Operation};

/// A thread starts, or an instruction of it took effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Effect {
    /// Number of the hardware thread.
    pub thread: u32,
    /// Byte address of the instruction; none if the thread starts.
    pub pc: Option<u32>,
    /// Where the thread is then, unless it has ended.
    pub next: Option<u32>,
    /// What the instruction did to memory.
    pub touch: Option<Touch>,
}

/// A load, store or atomic, that of an `sc.w` which failed among them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touch {
    /// First byte, as the program says.
    pub address: u32,
    /// 1, 2 or 4.
    pub bytes: u32,
    /// It loads.
    pub reads: bool,
    /// It stores.
    pub writes: bool,
}

impl Touch {
    /// Of an access, `lr.w` and `sc.w` do one of the two.
    pub(super) fn of(access: Access, is_conditional: bool) -> Touch {
        let Access { operation, address, bytes, .. } = access;
        let (reads, writes) = match operation {
            Operation::Load => (true, false),
            Operation::Store | Operation::Failed => (false, true),
            Operation::Atomic { .. } => (!is_conditional, true),
        };
        Touch { address, bytes, reads, writes }
    }
}

/// Of a thread that has executed its instruction, if effects are `told`.
pub(super) fn tell(told: &mut Option<Vec<Effect>>, iss: &Iss, thread: u32, pc: u32, touch: Option<Touch>) {
    if let Some(told) = told {
        let hart = iss.hart(thread);
        told.push(Effect { thread, pc: Some(pc), next: hart.is_live().then(|| hart.pc()), touch });
    }
}
