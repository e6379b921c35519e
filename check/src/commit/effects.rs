//! What threads did, for whoever follows them: a debugger.

use super::Committed;
use heddle_testbench::iss::Iss;
use heddle_testbench::program::Program;

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

/// Those of an instruction of several threads that has not been executed yet.
pub(super) fn of<'a>(iss: &'a Iss, program: &Program, commit: Committed<'a>) -> impl Iterator<Item = Effect> + 'a {
    let Committed { pc, threads } = commit;
    let word = program.word(pc);
    threads.iter().map(move |&thread| {
        let touch = word.and_then(|word| touch(iss, thread, word));
        Effect { thread, pc: Some(pc), next: None, touch }
    })
}

fn touch(iss: &Iss, thread: u32, word: u32) -> Option<Touch> {
    let base = iss.hart(thread).register((word >> 15 & 31) as u8);
    let bytes = 1 << (word >> 12 & 3);
    let (offset, reads, writes) = match word & 0x7f {
        0x03 => (word as i32 >> 20, true, false),
        0x23 => ((word as i32 >> 25) << 5 | (word >> 7 & 31) as i32, false, true),
        // `lr.w` and `sc.w` do one of the two.
        0x2f => (0, word >> 27 != 3, word >> 27 != 2),
        _ => return None,
    };
    Some(Touch { address: base.wrapping_add_signed(offset), bytes, reads, writes })
}
