//! The options that choose a core, shared by all subcommands that build one.

use anyhow::Result;
use clap::Args;
use clap::builder::PossibleValuesParser;
use heddle_simt::Shape;
use heddle_simt::divergence::Divergence;

/// Options of the core's shape.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "The core")]
pub struct ShapeArgs {
    /// Threads of a warp: 1, 2, 4 … 64 [default: 8]
    #[arg(long, value_name = "N")]
    pub lanes: Option<u32>,
    /// Warps of the core: 1, 2, 4 … 64 [default: 8]
    #[arg(long, value_name = "N")]
    pub warps: Option<u32>,
    /// What decides which threads of a warp run when they disagree
    #[arg(long, default_value = default_divergence(), value_name = "NAME", value_parser = divergence_names())]
    pub divergence: String,
    /// Bytes of memory, with K or M, a power of two; unless given, enough for 256K and all stacks
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub memory: Option<u32>,
    /// Bytes of instruction memory, a power of two; unless given, 64K, or all memory if that is less
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub program: Option<u32>,
    /// Bytes of stack a thread, a power of two
    #[arg(long, default_value = "1K", value_name = "BYTES", value_parser = bytes)]
    pub stack: u32,
    /// Seed of random start values and of kernels' inputs
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
}

impl ShapeArgs {
    /// The shape, if it can be built.
    pub fn shape(&self) -> Result<Shape> {
        let divergence = Divergence::ALL.iter().find(|(name, _)| *name == self.divergence);
        let divergence = divergence.map_or_else(Divergence::default, |(_, divergence)| *divergence);
        let Shape { lanes, warps, .. } = Shape::default();
        let (lanes, warps) = (self.lanes.unwrap_or(lanes), self.warps.unwrap_or(warps));
        let most = Shape { lanes, warps, stack: self.stack, memory: MOST_MEMORY, ..Shape::default() };
        if self.memory.is_none() {
            most.check()?;
        }
        let memory = self.memory.unwrap_or_else(|| Shape::default_memory(lanes, warps, self.stack));
        let memory = if self.memory.is_none() { memory.min(MOST_MEMORY) } else { memory };
        let program = self.program.unwrap_or_else(|| most.program.min(memory));
        let shape = Shape { memory, program, divergence, ..most };
        shape.check()?;
        Ok(shape)
    }
}

/// The largest memory that a shape may have.
const MOST_MEMORY: u32 = 64 << 20;

/// The name of a mechanism on the command line.
pub fn divergence_name(divergence: Divergence) -> &'static str {
    Divergence::ALL.iter().find(|(_, d)| *d == divergence).map_or("?", |(name, _)| name)
}

fn default_divergence() -> &'static str {
    divergence_name(Divergence::default())
}

fn divergence_names() -> PossibleValuesParser {
    PossibleValuesParser::new(Divergence::ALL.iter().map(|(name, _)| *name))
}

/// A number of bytes: `65536`, `64K`, `1M`.
fn bytes(text: &str) -> Result<u32, String> {
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix(['M', 'm']).map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    let wanted = "wanted is a number of bytes such as 65536, 64K or 1M";
    let number: u64 = digits.parse().map_err(|_| wanted.to_string())?;
    let bytes = number.checked_mul(unit).and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| "more than any memory may have, which is 64M".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("64K"), Ok(65536));
        assert_eq!(bytes("2m"), Ok(2 << 20));
        for wrong in ["", "K", "1G", "-1", "1.5M", "64 K", "0x100"] {
            assert!(bytes(wrong).unwrap_err().starts_with("wanted"), "{wrong}");
        }
        assert!(bytes("99999999999M").unwrap_err().contains("64M"));
        assert!(bytes("18446744073709551615M").unwrap_err().contains("64M"));
    }

    fn args(lanes: u32, warps: u32, memory: Option<u32>, stack: u32) -> ShapeArgs {
        let divergence = default_divergence().into();
        ShapeArgs { lanes: Some(lanes), warps: Some(warps), divergence, memory, program: None, stack, seed: 1 }
    }

    #[test]
    fn memory_grows_with_the_shape_and_the_program_shrinks_with_memory() {
        assert_eq!(args(8, 8, None, 1024).shape().unwrap(), Shape::default());
        assert_eq!(args(64, 64, None, 1024).shape().unwrap(), Shape::new(64, 64));
        let small = args(1, 1, Some(4096), 1024).shape().unwrap();
        assert_eq!((small.memory, small.program), (4096, 4096));
    }

    #[test]
    fn errors_name_the_option() {
        let error = |args: ShapeArgs| args.shape().unwrap_err().to_string();
        assert_eq!(error(args(3, 8, None, 1024)), "lanes = 3: must be a power of two from 1 to 64");
        assert_eq!(error(args(8, 128, None, 1024)), "warps = 128: must be a power of two from 1 to 64");
        assert!(error(args(u32::MAX, u32::MAX, None, u32::MAX)).starts_with("lanes = "));
        assert!(error(args(64, 64, None, 1 << 20)).starts_with("memory = "));
        assert!(error(args(8, 8, Some(5000), 1024)).starts_with("memory = 5000"));
    }
}
