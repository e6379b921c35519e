//! Elaboration: from a module to a design that every back end may rely on.

use crate::diagnostic::{Diagnostic, Errors};
use crate::module::TypedModule;
use crate::netlist::Module;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A checked design: its netlist has no width errors, nothing undriven, no combinational loops, and one definition per
/// module name.
#[derive(Clone)]
pub struct Design<I, O> {
    pub netlist: Arc<Module>,
    /// The shape of the input ports.
    pub inputs: I,
    /// Signals of the top module: their structure and widths are those of the output ports.
    pub outputs: O,
}

impl<I: Clone, O: Clone> TypedModule<I, O> {
    /// The design, or everything that is wrong with it.
    pub fn check(&self) -> Result<Design<I, O>, Errors> {
        let mut errors = self.errors.clone();
        if errors.is_empty() {
            let netlist = share(&self.netlist, &mut errors);
            if errors.is_empty() {
                match crate::order::order(&netlist) {
                    Ok(_) => return Ok(Design { netlist, inputs: self.inputs.clone(), outputs: self.outputs.clone() }),
                    Err(cycle) => errors.push(Diagnostic { loc: None, message: cycle.to_string() }),
                }
            }
        }
        Err(Errors(errors))
    }

    /// The shape of the input ports.
    pub fn inputs(&self) -> &I {
        &self.inputs
    }
}

/// Makes equal definitions of one name one definition; reports different ones.
fn share(top: &Arc<Module>, errors: &mut Vec<Diagnostic>) -> Arc<Module> {
    let mut by_name: HashMap<String, Arc<Module>> = HashMap::new();
    let mut shared: HashMap<*const Module, Arc<Module>> = HashMap::new();
    let mut reported: HashSet<String> = HashSet::new();
    for module in top.modules() {
        let mut copy = (*module).clone();
        for instance in &mut copy.instances {
            instance.module = shared[&Arc::as_ptr(&instance.module)].clone();
        }
        let known = by_name.entry(copy.name.clone()).or_insert_with(|| Arc::new(copy.clone()));
        if **known != copy && reported.insert(copy.name.clone()) {
            let message = format!("two different modules are called `{}`; put what differs into the name", copy.name);
            errors.push(Diagnostic { loc: None, message });
        }
        shared.insert(Arc::as_ptr(&module), known.clone());
    }
    shared[&Arc::as_ptr(top)].clone()
}
