//! A device that measures how long launches take, without the host's work on inputs and results.

use heddle_simt::Shape;
use heddle_testbench::Program;
use heddle_testbench::grid::Grid;
use heddle_testbench::kernels::{Device, DeviceError};
use std::time::{Duration, Instant};

pub struct Timed<'a> {
    device: &'a mut dyn Device,
    /// Wall time of all launches.
    pub time: Duration,
}

impl<'a> Timed<'a> {
    pub fn new(device: &'a mut dyn Device) -> Timed<'a> {
        Timed { device, time: Duration::ZERO }
    }
}

impl Device for Timed<'_> {
    fn program(&self) -> &Program {
        self.device.program()
    }

    fn shape(&self) -> &Shape {
        self.device.shape()
    }

    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), DeviceError> {
        self.device.write(address, bytes)
    }

    fn read(&mut self, address: u32, length: usize) -> Result<Vec<u8>, DeviceError> {
        self.device.read(address, length)
    }

    fn launch_grid(&mut self, grid: Grid) -> Result<(), DeviceError> {
        let started = Instant::now();
        let result = self.device.launch_grid(grid);
        self.time += started.elapsed();
        result
    }
}
