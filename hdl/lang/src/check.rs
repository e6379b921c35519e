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
    /// The top module and all below it, as plain data: what engines and back ends read.
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
            crate::foreign::check(&netlist, &mut errors);
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
///
/// Children are shared before their parents, and `Arc<T: Eq>` compares addresses first, so that comparing two parents
/// does not descend into children that are equal.
fn share(top: &Arc<Module>, errors: &mut Vec<Diagnostic>) -> Arc<Module> {
    let mut by_name: HashMap<String, Arc<Module>> = HashMap::new();
    let mut shared: HashMap<*const Module, Arc<Module>> = HashMap::new();
    let mut reported: HashSet<String> = HashSet::new();
    for module in top.modules() {
        let with_shared_children = share_children(&module, &shared);
        let known = by_name.entry(module.name.clone()).or_insert_with(|| with_shared_children.clone()).clone();
        if known != with_shared_children && reported.insert(module.name.clone()) {
            errors.push(two_contents(&known, &with_shared_children));
        }
        shared.insert(Arc::as_ptr(&module), known);
    }
    shared[&Arc::as_ptr(top)].clone()
}

fn share_children(module: &Arc<Module>, shared: &HashMap<*const Module, Arc<Module>>) -> Arc<Module> {
    let child = |m: &Arc<Module>| shared[&Arc::as_ptr(m)].clone();
    if module.instances.iter().all(|i| Arc::ptr_eq(&child(&i.module), &i.module)) {
        return module.clone();
    }
    let mut copy = (**module).clone();
    copy.instances.iter_mut().for_each(|i| i.module = child(&i.module));
    Arc::new(copy)
}

/// The error for two modules of one name, with a port or register that differs, if it is as simple as that.
fn two_contents(a: &Module, b: &Module) -> Diagnostic {
    let widths = |m: &Module| -> Vec<(String, u32)> {
        let ports = m.inputs.iter().chain(&m.outputs).map(|p| (p.name.clone(), p.width));
        ports.chain(m.registers.iter().map(|r| (r.name.clone(), r.width))).collect()
    };
    let different = widths(a).into_iter().zip(widths(b)).find(|(x, y)| x != y);
    let why = match different {
        Some(((x, n), (y, m))) if x == y => format!("`{x}` has {n} and {m} bits"),
        Some(((x, _), (y, _))) => format!("one has `{x}` where the other has `{y}`"),
        None if a.foreign != b.foreign => {
            "what they stand for differs in name, ports, parameters or attributes".to_string()
        }
        None => "with the same ports and other contents".to_string(),
    };
    let message = format!("two different modules are called `{}`: {why}; put what differs into the name", a.name);
    Diagnostic { loc: b.inputs.iter().chain(&b.outputs).map(|p| p.loc).next(), message }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::module;

    /// 2^24 instances in 24 levels, every definition made twice: only comparing addresses first makes this feasible.
    #[test]
    fn sharing_does_not_compare_whole_trees() {
        let mut twins = [(); 2].map(|_| module("level", [8], |_, [x]| [!x]));
        for n in 0..24 {
            twins = [(); 2].map(|_| {
                module(&format!("level{n}"), [8], |m, x| {
                    let y = m.instance("one", &twins[0], x);
                    m.instance("two", &twins[1], y)
                })
            });
        }
        let mut errors = Vec::new();
        let top = share(&twins[0].netlist, &mut errors);
        assert!(errors.is_empty());
        assert_eq!(top.modules().len(), 25);
    }
}
