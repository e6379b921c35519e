//! The pages of evidence: of which cores or proofs their figures are, and that what they name is there.

use crate::{bench, cover, mutate, prove};
use anyhow::{Result, bail};
use heddle_check::coverage;
use heddle_check::prove::proofs;
use heddle_hdl::canonical;
use heddle_hdl::mutate::mutants;
use heddle_simt::proof::Proof;
use heddle_simt::{Divergence, Shape};
use heddle_testbench::machine::design;
use std::collections::BTreeSet;

/// A page, and the command that writes it.
pub struct Evidence {
    pub page: &'static str,
    pub command: &'static str,
    /// The hash of what its figures come from, as it is.
    pub now: fn() -> Result<String>,
    names: Option<Names>,
}

/// What a page names, and what there is.
struct Names {
    named: fn(&str) -> BTreeSet<String>,
    there: fn() -> Result<BTreeSet<String>>,
}

pub const ALL: [Evidence; 4] = [
    Evidence {
        page: prove::PAGE,
        command: "heddle prove --docs docs",
        now: || of_proofs(&proofs(Divergence::ALL)?),
        // What is said to be proven, and at which shape.
        names: Some(Names {
            named: |text| {
                let mut heading = "";
                let mut named = BTreeSet::new();
                for text in text.lines() {
                    match cells(text) {
                        Some(row) if row.len() == 7 && row[0] != "proof" => _ = named.insert(line(heading, &row[..4])),
                        Some(_) => {}
                        None if text.starts_with("**`") => heading = text,
                        None => {}
                    }
                }
                named
            },
            there: || {
                let proofs = proofs(Divergence::ALL)?.into_iter().map(|proof| {
                    let heading = format!("**`{}`.** {}", proof.block, proof.says);
                    line(&heading, &[&proof.name, &proof.shape, proof.method.name(), &proof.depth.to_string()])
                });
                Ok(proofs.collect())
            },
        }),
    },
    Evidence {
        page: cover::PAGE,
        command: "heddle cover --docs docs",
        now: || of_cores(&coverage::shapes()),
        names: Some(Names {
            named: |text| {
                let rows = ["## Not hit", "## Hit"].into_iter();
                let rows = rows.flat_map(|heading| section(text, heading).filter_map(cells).skip(1));
                rows.map(|row| format!("{}.{}", row[0], row[1])).collect()
            },
            there: || {
                let names = coverage::names(&coverage::shapes())?.into_iter();
                Ok(names.map(|(module, name)| format!("{module}.{name}")).collect())
            },
        }),
    },
    Evidence {
        page: mutate::PAGE,
        command: "heddle mutate --docs docs",
        now: || of_cores(&mutate::SHAPES.map(|(lanes, warps)| Shape::new(lanes, warps))),
        // Modules with mutants.
        names: Some(Names {
            named: |text| {
                let table = section(text, "## Modules").filter_map(cells).skip(1).map(|row| row[0].to_string());
                // Names of mutants begin with the module's.
                let code = text.split('`').skip(1).step_by(2).filter(|code| !code.contains([' ', '=']));
                table.chain(code.filter_map(|code| Some(code.split_once(':')?.0.to_string()))).collect()
            },
            there: || Ok(mutants(&design(&Shape::new(4, 2))?).into_iter().map(|mutant| mutant.module).collect()),
        }),
    },
    Evidence {
        page: bench::PAGE,
        command: "heddle bench sim --docs docs",
        now: || of_cores(&bench::cores()),
        names: None,
    },
];

/// The hash of cores.
pub fn of_cores(shapes: &[Shape]) -> Result<String> {
    let mut hash = md5::Context::new();
    for shape in shapes {
        hash.consume(canonical::hash(&design(shape)?)?.to_le_bytes());
    }
    Ok(format!("{:x}", hash.finalize()))
}

/// The hash of what proofs are of.
pub fn of_proofs(proofs: &[Proof]) -> Result<String> {
    let mut hash = md5::Context::new();
    for proof in proofs {
        hash.consume(canonical::hash_with_properties(&proof.harness)?.to_le_bytes());
        hash.consume(format!("{} {} {}", proof.name, proof.method.name(), proof.depth));
    }
    Ok(format!("{:x}", hash.finalize()))
}

impl Evidence {
    /// What the text names that is not there. A page that names next to nothing was not understood.
    pub fn gone(&self, text: &str) -> Result<Vec<String>> {
        let Some(names) = &self.names else { return Ok(Vec::new()) };
        let named = (names.named)(text);
        if named.len() <= 10 {
            bail!("{} names only {named:?}: it is not as `{}` writes it", self.page, self.command);
        }
        Ok(named.difference(&(names.there)()?).cloned().collect())
    }
}

fn line(heading: &str, cells: &[&str]) -> String {
    format!("{heading} {}", cells.join(", "))
}

/// The cells of a line of a table, without the marks of code.
fn cells(line: &str) -> Option<Vec<&str>> {
    let row = line.strip_prefix("| ")?.strip_suffix(" |")?;
    Some(row.split(" | ").map(|cell| cell.trim_matches('`')).collect())
}

/// The lines under a heading, up to the next.
fn section<'a>(text: &'a str, heading: &str) -> impl Iterator<Item = &'a str> {
    text.lines().skip_while(move |line| *line != heading).skip(1).take_while(|line| !line.starts_with("## "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_is_named() {
        let rows: String = (0..12).map(|k| format!("| `core` | `cover_{k}` | 1 | some |\n")).collect();
        let page = format!(
            "# Coverage\n\n## Not hit\n\n## Hit\n\n| module | cover | hits | shapes |\n|---|---|---|---|\n{rows}"
        );
        let coverage = &ALL[1];
        assert_eq!(coverage.gone(&page).unwrap().len(), 12);
        assert!(coverage.gone("# Coverage\n").unwrap_err().to_string().contains("names only {}"));
    }
}
