//! The instruction-set simulator with the discipline of a reconvergence stack for all threads of a block: what the
//! analysis says must be enough for it, and must be true.
//!
//! * At an instruction that is said to be uniform, no threads diverge.
//! * Threads that part meet at the RPC, all at one address, with the call depth they had, or return to one address.
//! * A thread comes to every RPC in the activation where it passed the branch, unless it ends.

use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::grid::Grid;
use heddle_testbench::iss::Iss;
use heddle_testbench::kernels::{Device, DeviceError};
use heddle_testbench::reconverge::instruction::{Flow, Instruction};
use heddle_testbench::reconverge::{Analysis, Reconvergence, analyse};
use std::collections::BTreeSet;

/// Where paths reconverge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Points {
    Rpc,
    RpcAndLikely,
}

/// A place at a call depth.
type Place = (u32, i64);

pub struct StackMachine {
    iss: Iss,
    pub analysis: Analysis,
    points: Points,
    /// How often threads diverged.
    pub parted: usize,
}

/// An entry of the stack. Its threads are those that are in it and in none above.
struct Entry {
    threads: Vec<u32>,
    /// Where its path ends: the RPC of the branch that made it, and the depth there.
    rpc: Option<(Reconvergence, i64)>,
    /// The likely-convergence point, and the entry that collects threads there.
    likely: Option<(Place, usize)>,
}

/// What the check knows of a thread.
#[derive(Clone, Default)]
struct Thread {
    depth: i64,
    /// RPCs that it has yet to come to.
    owed: BTreeSet<Place>,
}

impl StackMachine {
    pub fn new(program: &Program, shape: &Shape, points: Points) -> StackMachine {
        StackMachine { iss: Iss::new(program, shape).unwrap(), analysis: analyse(program).unwrap(), points, parted: 0 }
    }

    fn block(&mut self, all: Vec<u32>) -> Result<(), String> {
        let mut threads = vec![Thread::default(); self.iss.shape().threads() as usize];
        let mut stack = vec![Entry { threads: all, rpc: None, likely: None }];
        while let Some(top) = stack.last_mut() {
            top.threads.retain(|&hart| self.iss.hart(hart).is_live());
            let Some(&first) = top.threads.first() else {
                stack.pop();
                continue;
            };
            let place = |hart: u32| (self.iss.hart(hart).pc(), threads[hart as usize].depth);
            let (pc, depth) = place(first);
            if let Some(&other) = top.threads.iter().find(|&&hart| place(hart) != (pc, depth)) {
                return Err(format!("threads meet at {pc:#010x} and {:#010x}", place(other).0));
            }
            let arrived = match top.rpc {
                Some((Reconvergence::At(rpc), at)) => (rpc, at) == (pc, depth),
                Some((Reconvergence::Return, at)) => depth == at - 1,
                None => false,
            };
            if arrived {
                stack.pop();
                continue;
            }
            if let Some((likely, collects)) = top.likely.filter(|&(likely, _)| likely == (pc, depth)) {
                assert_eq!(likely, (pc, depth));
                let come = stack.pop().expect("there is a top").threads;
                stack[collects + 1..].iter_mut().for_each(|entry| entry.threads.retain(|hart| !come.contains(hart)));
                stack[collects].threads.extend(come);
                continue;
            }
            self.step(&mut stack, &mut threads, (pc, depth))?;
        }
        Ok(())
    }

    /// One instruction of the top's threads.
    fn step(&mut self, stack: &mut Vec<Entry>, threads: &mut [Thread], (pc, depth): Place) -> Result<(), String> {
        let top = stack.last().expect("there is a top");
        let mut flow = Flow::Next;
        for &hart in &top.threads {
            let thread = &mut threads[hart as usize];
            thread.owed.remove(&(pc, depth));
            let step = self.iss.step(hart).map_err(|fault| format!("{fault}"))?;
            flow = Instruction { pc, word: step.word }.flow();
            match flow {
                Flow::Call { .. } | Flow::IndirectCall => thread.depth += 1,
                Flow::Return => {
                    thread.depth -= 1;
                    if let Some((rpc, _)) = thread.owed.iter().find(|(_, at)| *at == depth) {
                        return Err(format!("a thread returns at {pc:#010x} without having come to {rpc:#010x}"));
                    }
                }
                _ => {}
            }
        }
        if top.threads.iter().any(|&hart| self.iss.hart(hart).waits()) {
            return Err(format!("some threads wait at the barrier at {pc:#010x}"));
        }
        let live: Vec<u32> = top.threads.iter().copied().filter(|&hart| self.iss.hart(hart).is_live()).collect();
        let branch = match flow {
            Flow::Next | Flow::End => return Ok(()),
            _ => self.analysis.branch(pc).ok_or_else(|| format!("{pc:#010x} is executed and was not found"))?,
        };
        if let Reconvergence::At(rpc) = branch.rpc {
            live.iter().for_each(|&hart| {
                threads[hart as usize].owed.insert((rpc, depth));
            });
        }
        let next: BTreeSet<u32> = live.iter().map(|&hart| self.iss.hart(hart).pc()).collect();
        if next.len() < 2 {
            return Ok(());
        }
        if branch.uniform {
            return Err(format!("threads part at {pc:#010x}, which is uniform"));
        }
        self.parted += 1;
        let (above, mut likely) = (stack.len(), top.likely);
        if let (Points::RpcAndLikely, Some(point)) = (self.points, branch.likely) {
            let point = (point, depth);
            if likely.is_none_or(|(present, _)| present != point) {
                stack.push(Entry { threads: Vec::new(), rpc: Some((branch.rpc, depth)), likely });
                likely = Some((point, above));
            }
        }
        for pc in next {
            let side = live.iter().copied().filter(|&hart| self.iss.hart(hart).pc() == pc).collect();
            stack.push(Entry { threads: side, rpc: Some((branch.rpc, depth)), likely });
        }
        Ok(())
    }
}

impl Device for StackMachine {
    fn program(&self) -> &Program {
        self.iss.program()
    }

    fn shape(&self) -> &Shape {
        self.iss.shape()
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.iss.write(address, bytes)
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        self.iss.read(address, length)
    }

    /// Blocks one after another.
    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        self.iss.begin(grid)?;
        for block in 0..grid.blocks {
            for warp in 0..grid.warps(self.iss.shape()) {
                self.iss.start_warp(warp, block).expect("the block before has ended");
            }
            self.block((0..grid.threads).collect())?;
        }
        Ok(())
    }
}
