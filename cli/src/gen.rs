//! `heddle gen`: the core as Verilog.

mod fusesoc;
mod rust_hdl;

use crate::folder::{Entry, write_folder};
use crate::image;
use crate::output::print;
use crate::shape::{HardwareArgs, ShapeArgs, buildable};
use crate::target::{TARGET, Target};
use anyhow::{Context, Result};
use clap::Args;
use heddle_hdl::{Bits, width_of};
use heddle_simt::Shape;
use heddle_simt::host::Identity;
use heddle_simt::hosted::hosted;
use heddle_simt::reconvergence::Reconvergence;
use heddle_simt::system::system;
use heddle_testbench::grid::Grid;
use heddle_testbench::reconverge;
use std::fmt::Write;
use std::path::PathBuf;

/// Write the core as Verilog-2005.
///
/// One file a module and the list of them, heddle.f, whose paths are relative to the present folder. Other files in the
/// folder stay. What memory holds at the launch of a program (a kernel's inputs included) comes too, for $readmemh:
/// instructions.hex for the top's memory `instructions`, and bank_K.hex for `memory.main.bank[K].replica.words`; with
/// --bus, memory.hex for the memory that is on the bus, a word of 32 bits per line; with --divergence stack,
/// side_table.hex for the top's memory `side_table`: where the threads of each branch reconverge; and with --slack,
/// uniform.hex for its copy of what is uniform, `uniform`.
///
/// With --fusesoc comes heddle.core, of a core `heddle` for FuseSoC, with the targets `lint` (Verilator) and
/// `synth-ecp5`, `synth-ice40` (Yosys); with --rust-hdl heddle.rs, the core as a struct for designs in rust-hdl.
#[derive(Args)]
#[command(after_help = "Examples:
  heddle gen --lanes 16 --warps 4 --out build/
  verilator --lint-only -Wall -f build/heddle.f
  heddle gen mandelbrot --out build/ --single-file
  heddle gen --out build/ --host 50000 --metrics
  heddle gen --out build/ --rust-hdl
  heddle gen --out build/ --fusesoc
  fusesoc --cores-root build run --target=lint heddle")]
pub struct Gen {
    /// The program of the memory images
    #[arg(value_name = TARGET, default_value = "mandelbrot")]
    target: String,
    /// The folder, made if it is not there
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// All modules in one file, heddle.v
    #[arg(long)]
    single_file: bool,
    /// With a host that drives the core over a stream of bytes (docs/reference/host.md), and tells that its clock has
    /// so many kHz: the top is `heddle_host`, and the memories are below its instance `heddle`
    #[arg(long, value_name = "KHZ")]
    host: Option<u32>,
    /// Write heddle.core, too, a core file for FuseSoC
    #[arg(long)]
    fusesoc: bool,
    /// Write heddle.rs, too, by which designs in rust-hdl 0.46 instantiate the core
    #[arg(long)]
    rust_hdl: bool,
    #[command(flatten)]
    shape: ShapeArgs,
    #[command(flatten)]
    hardware: HardwareArgs,
}

/// The list of files.
const LIST: &str = "heddle.f";

impl Gen {
    pub fn run(self) -> Result<()> {
        buildable(self.shape.second_level.is_some(), self.shape.memory_model.is_some())?;
        let target = Target::find(&self.target)?;
        let shape = self.shape.over(&target.core())?.shape()?;
        let start = image::start(&target, &shape, self.shape.seed).with_context(|| target.name.clone())?;
        let hardware = self.hardware.of(&shape);
        // FuseSoC runs tools in folders of its own.
        let images_in = if self.fusesoc { String::new() } else { self.out.display().to_string() };
        let options = heddle_gen::Options { images: images_in, ..Default::default() };
        let netlist = match self.host {
            Some(clock_khz) => hosted(&hardware, Identity { clock_khz }).check()?.netlist,
            None => system(&hardware).check()?.netlist,
        };
        let files = heddle_gen::verilog(&netlist, &options);
        let entry = |(name, text): (String, String)| Entry { name, text };
        let sources = match self.single_file {
            true => vec![Entry { name: "heddle.v".into(), text: files.single() }],
            false => files.sources.into_iter().map(entry).collect(),
        };
        let list = self.list(&shape, &target, start.grid, &sources);
        let images = images(&target, &shape, &start.words)?;
        let names = |entries: &[Entry]| entries.iter().map(|entry| entry.name.clone()).collect::<Vec<_>>();
        let readable: Vec<Entry> = files.images.into_iter().map(entry).collect();
        let core =
            self.fusesoc.then(|| fusesoc::entry(&netlist.name, &about(&shape), &names(&sources), &names(&readable)));
        let wrapper = self.rust_hdl.then(|| rust_hdl::entry(&netlist, &about(&shape)));
        let count = if self.single_file { "1 file".to_string() } else { format!("{} files", sources.len()) };
        let extra = core.into_iter().chain(wrapper).chain([list]);
        let entries: Vec<Entry> = sources.into_iter().chain(readable).chain(images).chain(extra).collect();
        write_folder(&self.out, &entries)?;
        print(&format!("{count} of Verilog, listed in {}\n", self.out.join(LIST).display()))
    }

    fn list(&self, shape: &Shape, target: &Target, grid: Option<Grid>, sources: &[Entry]) -> Entry {
        let mut text = format!("// {}\n", about(shape));
        let (entry, end) = (target.program.entry() / 4, target.program.program_end());
        let grid = grid.map(|Grid { blocks, threads }| format!(", blocks = {blocks}, block_threads = {threads}"));
        let _ = writeln!(text, "// {}: entry = {entry}, program_end = {end}{}", target.name, grid.unwrap_or_default());
        for Entry { name, .. } in sources {
            let _ = writeln!(text, "{}", self.out.join(name).display());
        }
        Entry { name: LIST.into(), text }
    }
}

/// What core it is, in a line.
fn about(shape: &Shape) -> String {
    let Shape { lanes, warps, memory, divergence, .. } = shape;
    format!("Heddle: {lanes} lanes, {warps} warps, {memory} bytes of memory, {}", divergence.name())
}

/// What memory holds at the launch, for `$readmemh`.
fn images(target: &Target, shape: &Shape, words: &[u32]) -> Result<Vec<Entry>> {
    let instructions = target.program.instruction_image(shape)?;
    let mut entries = vec![Entry { name: "instructions.hex".into(), text: image::hex(instructions.into_iter()) }];
    if shape.divergence.capabilities().reconverges {
        let analysis = reconverge::analyse(&target.program).with_context(|| target.name.clone())?;
        let mut words = analysis.side_image(shape);
        words.resize(1 << shape.pc_bits(), Bits::from(0u32));
        let digits = width_of(&Reconvergence::shape(shape)).div_ceil(4) as usize;
        let text = words.iter().map(|word| format!("{word:0digits$x}\n")).collect();
        entries.push(Entry { name: "side_table.hex".into(), text });
        if shape.passes() {
            let uniform = |word: &Bits| format!("{}\n", u8::from(word.bit(Reconvergence::uniform_bit(shape))));
            entries.push(Entry { name: "uniform.hex".into(), text: words.iter().map(uniform).collect() });
        }
    }
    if shape.bus_width().is_some() {
        entries.push(Entry { name: "memory.hex".into(), text: image::hex(words.iter().copied()) });
        return Ok(entries);
    }
    let lanes = shape.lanes as usize;
    for bank in 0..lanes {
        let column = words.iter().skip(bank).step_by(lanes).copied();
        entries.push(Entry { name: format!("bank_{bank}.hex"), text: image::hex(column) });
    }
    Ok(entries)
}
