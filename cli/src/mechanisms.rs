//! The mechanisms that the command knows by name: the project's own, and what [`main_with`](crate::main_with) adds.

use heddle_simt::Divergence;
use heddle_simt::divergence::Mechanism;
use std::sync::OnceLock;

static ALL: OnceLock<Vec<Divergence>> = OnceLock::new();

/// The project's own come first.
pub fn mechanisms() -> &'static [Divergence] {
    ALL.get().map_or(Divergence::ALL, Vec::as_slice)
}

/// Has the command know these, too, from its start on.
pub fn add(mechanisms: &[&'static dyn Mechanism]) -> Result<(), String> {
    let all = with(mechanisms)?;
    ALL.set(all).map_err(|_| "the command was started twice in one process".into())
}

/// All that there are then. Refuses a name or number that another one has.
fn with(mechanisms: &[&'static dyn Mechanism]) -> Result<Vec<Divergence>, String> {
    let mut all = Divergence::ALL.to_vec();
    for mechanism in mechanisms.iter().map(|&mechanism| Divergence::new(mechanism)) {
        let (name, number) = (mechanism.name(), mechanism.number());
        if all.contains(&mechanism) {
            return Err(format!("there are two mechanisms `{name}`: give one of them another name"));
        }
        if let Some(other) = all.iter().find(|other| other.number() == number) {
            let other = other.name();
            return Err(format!(
                "the mechanisms `{other}` and `{name}` have the number {number}: give one of them another"
            ));
        }
        all.push(mechanism);
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_hdl::{Signal, TypedModule, Width};
    use heddle_simt::Shape;
    use heddle_simt::divergence::inspect::{Path, State};
    use heddle_simt::divergence::{UnitIn, UnitOut};

    /// The stack under another name and number.
    struct Named(&'static str, u8);

    impl Mechanism for Named {
        fn name(&self) -> &'static str {
            self.0
        }

        fn number(&self) -> u8 {
            self.1
        }

        fn unit(&self, s: &Shape) -> TypedModule<UnitIn<Width>, UnitOut<Signal>> {
            Divergence::STACK.mechanism().unit(s)
        }

        fn paths(&self, s: &Shape, state: &State, warp: u32) -> Vec<Path> {
            Divergence::STACK.mechanism().paths(s, state, warp)
        }
    }

    #[test]
    fn mechanisms_differ_in_name_and_number() {
        let all = with(&[&Named("mine", 255), &Named("other", 100)]).unwrap();
        let names: Vec<&str> = all[Divergence::ALL.len()..].iter().map(|mechanism| mechanism.name()).collect();
        assert_eq!(names, ["mine", "other"]);
        let same_name = "there are two mechanisms `stack`: give one of them another name";
        assert_eq!(with(&[&Named("stack", 255)]).unwrap_err(), same_name);
        let same_number = "the mechanisms `mine` and `other` have the number 255: give one of them another";
        assert_eq!(with(&[&Named("mine", 255), &Named("other", 255)]).unwrap_err(), same_number);
    }

    /// Hosts on boards tell them.
    #[test]
    fn the_project_s_own_keep_their_numbers() {
        let numbers = Divergence::ALL.iter().map(|mechanism| (mechanism.number(), mechanism.name()));
        let were = [(0, "path-table"), (1, "arbiter"), (2, "stack"), (3, "dual-path"), (4, "block-stack")];
        assert_eq!(numbers.take(were.len()).collect::<Vec<_>>(), were);
        assert!(with(&[]).is_ok());
    }
}
