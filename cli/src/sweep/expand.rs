//! Lists of values become combinations.

use super::file::{Dimension, File, Group, Value};
use anyhow::{Result, bail};
use std::collections::HashSet;
use std::fmt;

/// An option a value, in the order of the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Combination(pub Vec<(String, Value)>);

/// More are a mistake.
const MOST: usize = 100_000;

impl Combination {
    pub fn value(&self, key: &str) -> Option<&Value> {
        self.0.iter().find(|(other, _)| other == key).map(|(_, value)| value)
    }

    /// Whether it has one of the values of each of these options.
    pub fn has(&self, options: &[Dimension]) -> bool {
        options.iter().all(|Dimension { key, values, .. }| {
            self.value(key).is_some_and(|has| values.iter().any(|value| value.it.to_string() == has.to_string()))
        })
    }

    /// The same whatever order the options are in.
    fn identity(&self) -> Vec<String> {
        let mut options: Vec<String> = self.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        options.sort();
        options
    }

    /// Whether each of its options but these is as the other has it.
    pub fn agrees(&self, other: &Combination, but: &[Dimension]) -> bool {
        let is_one_of_these = |key: &str| but.iter().any(|dimension| dimension.key == key);
        self.0.iter().all(|(key, value)| is_one_of_these(key) || other.value(key) == Some(value))
    }
}

impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let options: Vec<String> = self.0.iter().map(|(key, value)| format!("{key}={value}")).collect();
        f.write_str(&options.join(" "))
    }
}

/// Every combination of each group, the last option changing fastest, without those that are excluded and without those
/// that were there. `name` is the file's, for messages.
pub fn expand(name: &str, file: &File) -> Result<Vec<Combination>> {
    let size = |group: &Group| group.iter().fold(1, |all: usize, dimension| all.saturating_mul(dimension.values.len()));
    if file.groups.iter().map(size).fold(0, usize::saturating_add) > MOST {
        bail!("{name}: there are more than {MOST} combinations");
    }
    let (mut all, mut seen) = (Vec::new(), HashSet::new());
    let mut used = vec![false; file.excludes.len()];
    for combination in file.groups.iter().flat_map(product) {
        let excluded: Vec<bool> = file.excludes.iter().map(|exclude| combination.has(exclude)).collect();
        used.iter_mut().zip(&excluded).for_each(|(used, excluded)| *used |= excluded);
        if !excluded.contains(&true) && seen.insert(combination.identity()) {
            all.push(combination);
        }
    }
    if let Some(exclude) = file.excludes.iter().zip(used).find_map(|(exclude, used)| (!used).then_some(exclude)) {
        let line = exclude.first().map_or(0, |dimension| dimension.line);
        bail!("{name}:{line}: exclude: no combination has {}", text(exclude));
    }
    if all.is_empty() {
        bail!("{name}: no combination is left");
    }
    Ok(all)
}

fn text(options: &[Dimension]) -> String {
    let values = |dimension: &Dimension| {
        dimension.values.iter().map(|value| value.it.to_string()).collect::<Vec<_>>().join(" or ")
    };
    options.iter().map(|dimension| format!("{} = {}", dimension.key, values(dimension))).collect::<Vec<_>>().join(", ")
}

fn product(group: &Group) -> Vec<Combination> {
    let start = vec![Combination(Vec::new())];
    group.iter().fold(start, |all, Dimension { key, values, .. }| {
        let with = |combination: Combination| {
            let each = values.iter().map(|value| {
                Combination(combination.0.iter().cloned().chain([(key.clone(), value.it.clone())]).collect())
            });
            each.collect::<Vec<_>>()
        };
        all.into_iter().flat_map(with).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn combinations(text: &str) -> Result<Vec<String>> {
        let file = File::parse("s.toml", &format!("command = \"run\"\n{text}")).unwrap();
        Ok(expand("s.toml", &file)?.iter().map(Combination::to_string).collect())
    }

    #[test]
    fn a_list_is_a_dimension_and_the_last_changes_fastest() {
        let all = combinations("[options]\nkernel = [\"a\", \"b\"]\nwarps = 2\nlanes = [8, 16]\n").unwrap();
        let wanted = ["kernel=a warps=2 lanes=8", "kernel=a warps=2 lanes=16"];
        assert_eq!(all[..2], wanted);
        assert_eq!((all.len(), all[3].as_str()), (4, "kernel=b warps=2 lanes=16"));
    }

    #[test]
    fn groups_are_a_union() {
        let all = combinations(
            "[[options]]\na = [1, 2]\n[[options]]\na = [2, 3]\n[[options]]\nb = 1\na = 1\n\
             [[options]]\na = 1\nb = 1\n",
        );
        assert_eq!(all.unwrap(), ["a=1", "a=2", "a=3", "b=1 a=1"]);
    }

    #[test]
    fn what_is_excluded_is_left_out() {
        let options = "[options]\na = [1, 2]\nb = [\"x\", \"y\"]\n";
        let all = combinations(&format!("{options}[[exclude]]\na = 1\nb = [\"x\", \"z\"]\n")).unwrap();
        assert_eq!(all, ["a=1 b=y", "a=2 b=x", "a=2 b=y"]);
        let error = |text: &str| combinations(&format!("{options}{text}")).unwrap_err().to_string();
        assert_eq!(error("[[exclude]]\na = 3\nb = \"x\"\n"), "s.toml:6: exclude: no combination has a = 3, b = x");
        assert_eq!(error("[exclude]\na = [1, 2]\n"), "s.toml: no combination is left");
    }

    #[test]
    fn too_many_are_refused_before_they_are_made() {
        let list = (0..100).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
        let options: String = (0..40).map(|n| format!("o{n} = [{list}]\n")).collect();
        let error = combinations(&format!("[options]\n{options}")).unwrap_err().to_string();
        assert_eq!(error, "s.toml: there are more than 100000 combinations");
    }
}
