//! Pages that name parts of the core: what they name is there.

use anyhow::{Result, bail};
use heddle_check::coverage;
use heddle_check::prove::proofs;
use heddle_hdl::mutate::mutants;
use heddle_simt::{Divergence, Shape};
use heddle_testbench::machine::design;
use std::collections::BTreeSet;

/// A page, the command that writes it, and what it names.
pub struct Names {
    pub page: &'static str,
    pub command: &'static str,
    named: fn(&str) -> BTreeSet<String>,
    there: fn() -> Result<BTreeSet<String>>,
}

pub const ALL: [Names; 3] = [
    // Proofs: what is said to be proven, and at which shape.
    Names {
        page: "evidence/proofs.md",
        command: "heddle prove --docs docs",
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
    },
    // Covers.
    Names {
        page: "evidence/coverage.md",
        command: "heddle cover --docs docs",
        named: |text| {
            let rows = ["## Not hit", "## Hit"].into_iter();
            let rows = rows.flat_map(|heading| section(text, heading).filter_map(cells).skip(1));
            rows.map(|row| format!("{}.{}", row[0], row[1])).collect()
        },
        there: || {
            let names = coverage::names(&coverage::shapes())?.into_iter();
            Ok(names.map(|(module, name)| format!("{module}.{name}")).collect())
        },
    },
    // Modules with mutants.
    Names {
        page: "evidence/mutation.md",
        command: "heddle mutate --sample 400 --docs docs",
        named: |text| {
            let table = section(text, "## Modules").filter_map(cells).skip(1).map(|row| row[0].to_string());
            // Names of mutants begin with the module's.
            let code = text.split('`').skip(1).step_by(2).filter(|code| !code.contains([' ', '=']));
            table.chain(code.filter_map(|code| Some(code.split_once(':')?.0.to_string()))).collect()
        },
        there: || Ok(mutants(&design(&Shape::new(4, 2))?).into_iter().map(|mutant| mutant.module).collect()),
    },
];

impl Names {
    /// What the text names that is not there. A page that names next to nothing was not understood.
    pub fn gone(&self, text: &str) -> Result<Vec<String>> {
        let named = (self.named)(text);
        if named.len() <= 10 {
            bail!("{} names only {named:?}: it is not as `{}` writes it", self.page, self.command);
        }
        Ok(named.difference(&(self.there)()?).cloned().collect())
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
