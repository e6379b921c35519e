//! A mistake in the design under test, on request: so that `heddle mutate` sees whether a test notices.
//!
//! Tests build designs of their own, so the request comes through the environment. What was done is told on standard
//! error, past the capture of the test harness, in lines that begin with the variable's name. Only with the feature
//! `mutants`, which the tests of `heddle-simt` have.

use heddle_hdl::mutate::{NotHere, apply};
use heddle_hdl::netlist::Module;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// The variable that names a mutant (see [`heddle_hdl::mutate`]); every [`crate::Sim`] of a design that has its module
/// gets the design with that mistake. With [`SURVEY`], the modules of every design are told instead.
///
/// A design of another shape may lack the place of the mistake, or it would make a combinational loop there; then the
/// design is as it was, which is told.
pub const MUTANT: &str = "HEDDLE_MUTANT";

/// The value of [`MUTANT`] that asks for a line `HEDDLE_MUTANT: TEST has MODULE MODULE …` a design.
pub const SURVEY: &str = "?";

/// The design, or its mutant if the environment asks for one. Panics if what is asked for cannot be a mutant's name.
pub fn of_environment(design: &Arc<Module>) -> Arc<Module> {
    static WANTED: OnceLock<Option<String>> = OnceLock::new();
    match WANTED.get_or_init(|| std::env::var(MUTANT).ok()) {
        None => design.clone(),
        Some(wanted) if wanted == SURVEY => {
            let modules: Vec<String> = design.modules().iter().map(|m| m.name.clone()).collect();
            tell(&format!("{} has {}", std::thread::current().name().unwrap_or("?"), modules.join(" ")));
            design.clone()
        }
        Some(name) => wanted_mutant(design, name),
    }
}

fn wanted_mutant(design: &Arc<Module>, name: &str) -> Arc<Module> {
    /// Told once, not for every design.
    static TOLD: AtomicBool = AtomicBool::new(false);
    match apply(design, name) {
        Ok(mutant) => {
            if !TOLD.swap(true, Ordering::Relaxed) {
                tell(&format!("{name} is in the design"));
            }
            mutant
        }
        Err(NotHere::NoModule(_)) => design.clone(),
        Err(error @ NotHere::NoName(_)) => panic!("{MUTANT}: {error}"),
        Err(error) => {
            tell(&error.to_string());
            design.clone()
        }
    }
}

fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{MUTANT}: {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_hdl::module;
    use heddle_hdl::mutate::mutants;

    #[test]
    fn a_design_gets_the_mutant_if_it_has_the_module() {
        let adder = module("adder", [8, 8], |_, [a, b]| [a + b]).check().unwrap().netlist;
        let other = module("other", [8, 8], |_, [a, b]| [a + b]).check().unwrap().netlist;
        let name = mutants(&adder)[0].name.clone();
        assert!(name.ends_with(":add:sub"), "{name}");
        assert_ne!(wanted_mutant(&adder, &name), adder);
        assert_eq!(wanted_mutant(&other, &name), other);
        assert_eq!(wanted_mutant(&adder, "adder:none.rs:1:add:sub"), adder);
    }

    #[test]
    #[should_panic(expected = "HEDDLE_MUTANT: `adder` is no name of a mutant")]
    fn what_is_no_name_panics() {
        let adder = module("adder", [8, 8], |_, [a, b]| [a + b]).check().unwrap().netlist;
        wanted_mutant(&adder, "adder");
    }
}
