//! The typed front for tests of hardware blocks: inputs and outputs are the bundles of the description with values in
//! them, and whatever goes wrong panics with the path, the cycle and the seed. The example at the root of the crate
//! uses it.

use crate::mutant;
use crate::simulation::{Options, Simulation, SimulationError};
use heddle_hdl::netlist::Port;
use heddle_hdl::{Bits, Bundle, Design, Signals, Width};

/// A design under test. Everything that names a path panics if there is no such path.
pub struct Sim<I, O> {
    simulation: Simulation,
    shape: std::marker::PhantomData<I>,
    outputs: O,
}

impl<I, O> Sim<I, O>
where
    I: Bundle<Width> + Clone,
    I::With<Bits>: Bundle<Bits>,
    O: Signals,
{
    /// With [`Options::default`].
    pub fn new(design: &Design<I, O>) -> Sim<I, O> {
        Sim::with(design, &Options::default())
    }

    /// Panics if the waveform cannot be written. With the feature `mutants`, the environment may ask for a mistake in
    /// the design: [`crate::MUTANT`].
    pub fn with(design: &Design<I, O>, options: &Options) -> Sim<I, O> {
        let asks = cfg!(feature = "mutants");
        let netlist = if asks { mutant::of_environment(&design.netlist) } else { design.netlist.clone() };
        let simulation = Simulation::new(&netlist, options).unwrap_or_else(|e| panic!("{e}"));
        Sim { simulation, shape: std::marker::PhantomData, outputs: design.outputs.clone() }
    }

    /// Sets all inputs. Panics if a value does not fit its port.
    pub fn poke(&mut self, inputs: I::With<Bits>) {
        let directory = self.simulation.directory().clone();
        let mut ports = directory.top.inputs.iter().enumerate();
        inputs.visit("", &mut |name, value| {
            let (index, port) = ports.next().unwrap_or_else(|| panic!("there is no input `{name}`"));
            self.set(index, port, value);
        });
        assert!(ports.next().is_none(), "not all inputs are given: a list is too short");
    }

    /// Sets one input by the name of its port. Panics if the value does not fit.
    pub fn poke_port(&mut self, name: &str, value: impl Into<Bits>) {
        let directory = self.simulation.directory().clone();
        let index = found(directory.inputs.find(name), "input", name);
        self.set(index, &directory.top.inputs[index], &value.into());
    }

    fn set(&mut self, index: usize, port: &Port, value: &Bits) {
        let fits = value.bit_length() <= port.width;
        assert!(fits, "input `{}` has {} bits, and {value} does not fit", port.name, port.width);
        self.simulation.engine().poke(index, value);
    }

    /// Computes the outputs from the inputs and the state. `peek` and `probe` do it by themselves.
    pub fn settle(&mut self) {
        self.simulation.engine().settle();
    }

    /// The outputs for the present inputs and state.
    pub fn peek(&mut self) -> O::With<Bits> {
        let engine = self.simulation.engine();
        engine.settle();
        let mut index = 0;
        self.outputs.clone().map("", &mut |_, _| {
            index += 1;
            engine.peek(index - 1)
        })
    }

    /// One clock edge. Panics if an assertion fails.
    #[track_caller]
    pub fn step(&mut self) {
        self.try_step().unwrap_or_else(|e| panic!("{e}"));
    }

    /// One clock edge, or what went wrong at it.
    pub fn try_step(&mut self) -> Result<(), SimulationError> {
        self.simulation.step()
    }

    /// `n` clock edges with the same inputs.
    #[track_caller]
    pub fn steps(&mut self, n: u64) {
        (0..n).for_each(|_| self.step());
    }

    /// Clock edges until output `stop` is not 0 at an edge; returns their number. Panics after `max_cycles`.
    #[track_caller]
    pub fn run_until(&mut self, stop: &str, max_cycles: u64) -> u64 {
        let output = found(self.simulation.directory().outputs.find(stop), "output", stop);
        let end = self.simulation.run(max_cycles, Some(output)).unwrap_or_else(|e| panic!("{e}"));
        assert!(end.why != crate::engine::Why::Limit, "`{stop}` stayed 0 for {max_cycles} cycles");
        end.cycles
    }

    /// One clock edge with reset on.
    #[track_caller]
    pub fn reset(&mut self) {
        self.simulation.reset().unwrap_or_else(|e| panic!("{e}"));
    }

    /// A probe anywhere in the design, for the present inputs and state.
    #[track_caller]
    pub fn probe(&mut self, path: &str) -> Bits {
        let probe = found(self.simulation.directory().probes.find(path), "probe", path);
        self.simulation.engine().settle();
        self.simulation.engine().probe(probe)
    }

    /// A register anywhere in the design, after the last edge. Engines that cannot show registers panic.
    #[track_caller]
    pub fn register(&mut self, path: &str) -> Bits {
        let register = found(self.simulation.directory().registers.find(path), "register", path);
        self.simulation.engine().register(register)
    }

    /// The word of a memory at an address. Panics if the address is beyond the memory.
    #[track_caller]
    pub fn memory_read(&mut self, path: &str, address: u64) -> Bits {
        let memory = found(self.simulation.directory().memories.find(path), "memory", path);
        self.simulation.engine().memory_read(memory, address)
    }

    /// Writes the word of a memory at once, without an edge. The value is masked to the word's width; an address beyond
    /// the memory panics.
    #[track_caller]
    pub fn memory_write(&mut self, path: &str, address: u64, value: impl Into<Bits>) {
        let memory = found(self.simulation.directory().memories.find(path), "memory", path);
        self.simulation.engine().memory_write(memory, address, &value.into());
    }

    /// How many edges a cover was 1 at.
    #[track_caller]
    pub fn cover_hits(&mut self, path: &str) -> u64 {
        let property = found(self.simulation.directory().properties.find(path), "property", path);
        self.simulation.engine().cover_hits(property)
    }

    /// Clock edges so far.
    pub fn cycle(&mut self) -> u64 {
        self.simulation.engine().cycle()
    }

    /// For everything else.
    pub fn simulation(&mut self) -> &mut Simulation {
        &mut self.simulation
    }
}

#[track_caller]
fn found(number: Option<usize>, what: &str, path: &str) -> usize {
    number.unwrap_or_else(|| panic!("there is no {what} `{path}`"))
}

#[cfg(test)]
mod tests;
