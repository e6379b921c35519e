//! What memory holds when a program is launched, as text that Verilog's `$readmemh` reads.

use anyhow::Result;
use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{Device, DeviceError};
use heddle_testbench::program::from_bytes;

use crate::target::Target;

/// Memory as a driver leaves it for the first launch.
struct Recorder {
    program: Program,
    shape: Shape,
    memory: Vec<u8>,
    launched: Option<Grid>,
}

impl Recorder {
    fn range(&self, address: u32, length: usize) -> Result<std::ops::Range<usize>, DeviceError> {
        let end = address as usize + length;
        if end > self.memory.len() {
            return Err(format!("{address:#010x}..{end:#010x} is outside memory").into());
        }
        Ok(address as usize..end)
    }
}

impl Device for Recorder {
    fn program(&self) -> &Program {
        &self.program
    }

    fn shape(&self) -> &Shape {
        &self.shape
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        let range = self.range(address, bytes.len())?;
        self.memory[range].copy_from_slice(bytes);
        Ok(())
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        Ok(self.memory[self.range(address, length)?].to_vec())
    }

    /// Ends the recording: the driver gives up.
    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        self.launched = Some(grid);
        Err("recorded".into())
    }
}

/// What a driver does before it waits for the first launch.
pub struct Start {
    /// All words of memory, inputs included.
    pub words: Vec<u32>,
    /// What is launched; nothing if the driver launches nothing.
    pub grid: Option<Grid>,
}

/// Everything before the first launch.
pub fn start(target: &Target, shape: &Shape, seed: u64) -> Result<Start> {
    let memory = target.program.memory_image(shape)?;
    let mut recorder = Recorder { program: target.program.clone(), shape: shape.clone(), memory, launched: None };
    match target.drive(&mut recorder, seed) {
        Err(error) if recorder.launched.is_none() => return Err(error.into()),
        _ => {}
    }
    Ok(Start { words: from_bytes(&recorder.memory), grid: recorder.launched })
}

/// A word per line, the first at address 0.
pub fn hex(words: impl Iterator<Item = u32>) -> String {
    words.map(|word| format!("{word:08x}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_of_the_driver_are_in_memory() {
        let target = Target::find("vecadd").unwrap();
        let Start { words, grid } = start(&target, &Shape::default(), 1).unwrap();
        assert_eq!(grid, Some(Grid { blocks: 1, threads: 64 }));
        assert_eq!(words.len() * 4, Shape::default().memory as usize);
        assert_eq!(words[0], target.program.word(0).unwrap());
        let a = target.program.symbol("a").unwrap().address as usize / 4;
        assert!(words[a..a + 64].iter().any(|&word| word != 0));
        assert_ne!(words, start(&target, &Shape::default(), 2).unwrap().words);
    }

    #[test]
    fn words_are_lines() {
        assert_eq!(hex([1, 0xdead_beef].into_iter()), "00000001\ndeadbeef\n");
    }
}
