//! The option that gives a launch up.

use clap::Args;
use heddle_testbench::machine::MachineOptions;

#[derive(Args)]
pub struct Limit {
    /// Give up after so many cycles of a launch [default: 100000000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_cycles: Option<u64>,
}

impl Limit {
    /// The cycles given, or else the machine's usual limit.
    pub fn cycles(&self) -> u64 {
        self.max_cycles.unwrap_or(MachineOptions::default().max_cycles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_as_the_help_says() {
        let usual = Limit { max_cycles: None };
        let command = Limit::augment_args(clap::Command::new("heddle"));
        let help = command.get_arguments().find(|a| a.get_id() == "max_cycles").and_then(|a| a.get_help()).unwrap();
        assert!(help.to_string().ends_with(&format!("[default: {}]", usual.cycles())), "{help}");
    }
}
