//! The kernels of a study.

use anyhow::{Result, bail};
use heddle_testbench::kernels::{Kernel, find};

/// Those that are asked for, or all of the study's, each with its place among these.
pub fn chosen(asked: &[String], all: &[&'static str]) -> Result<Vec<(usize, &'static Kernel)>> {
    let place = |name: &str| match (all.iter().position(|other| *other == name), find(name)) {
        (Some(place), Ok(kernel)) => Ok((place, kernel)),
        (None, Ok(_)) => bail!("{name} is no kernel of this study; those are {}", all.join(", ")),
        (_, Err(unknown)) => {
            bail!("{unknown}{}", if unknown.nearest.is_some() { "" } else { "; `heddle kernels` lists them" })
        }
    };
    match asked {
        [] => all.iter().map(|name| place(name)).collect(),
        asked => asked.iter().map(|name| place(name)).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_are_those_asked_for_or_all() {
        let all = ["gcd", "bfs"];
        let places = |asked: &[&str]| {
            let asked: Vec<String> = asked.iter().map(|name| name.to_string()).collect();
            chosen(&asked, &all).map(|kernels| kernels.iter().map(|(place, kernel)| (*place, kernel.name)).collect())
        };
        let good = |asked: &[&str]| -> Vec<(usize, &str)> { places(asked).unwrap() };
        assert_eq!(good(&[]), [(0, "gcd"), (1, "bfs")]);
        assert_eq!(good(&["bfs"]), [(1, "bfs")]);
        let error = places(&["vecadd"]).unwrap_err().to_string();
        assert_eq!(error, "vecadd is no kernel of this study; those are gcd, bfs");
    }
}
