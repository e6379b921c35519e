//! The pages in `docs` that commands write tell of the core as it is: what they name is there. Figures are as old as the
//! page, but a page that tells of what is gone is to be written anew, and studies of an older core say so.

use crate::study::{age, area};
use heddle_hdl::mutate::mutants;
use heddle_simt::{Divergence, Shape};
use heddle_testbench::coverage;
use heddle_testbench::machine::design;
use heddle_testbench::prove::proofs;
use std::collections::BTreeSet;
use std::path::Path;

mod links;

fn page(name: &str) -> String {
    let file = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs")).join(name);
    std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

/// What is marked as code.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
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

/// Fails with all names that are not there, and with the command that writes the page.
fn all_there(page: &str, named: BTreeSet<String>, there: &BTreeSet<String>, command: &str) {
    assert!(named.len() > 10, "docs/{page} names only {named:?}");
    let gone: Vec<&String> = named.difference(there).collect();
    assert!(gone.is_empty(), "docs/{page} tells of what there is not any more, `{command}` writes it anew: {gone:?}");
}

#[test]
fn the_page_on_mutants_names_modules_of_the_core() {
    let text = page("evidence/mutation.md");
    let core = design(&Shape::new(4, 2)).unwrap();
    let there = mutants(&core).into_iter().map(|mutant| mutant.module).collect();
    let table = section(&text, "## Modules").filter_map(cells).skip(1).map(|row| row[0].to_string());
    // Names of mutants begin with the module's.
    let code = code(&text).filter(|code| !code.contains([' ', '=']));
    let named = table.chain(code.filter_map(|code| Some(code.split_once(':')?.0.to_string()))).collect();
    all_there("evidence/mutation.md", named, &there, "heddle mutate --sample 400 --docs docs");
}

#[test]
fn studies_of_an_older_core_say_so() {
    for name in age::PAGES {
        let text = page(name);
        let (_, now) = age::now(&text).unwrap_or_else(|error| panic!("docs/{name}: {error:#}"));
        assert!(
            age::marked(&text, &now) == text,
            "docs/{name} does not say which core it is of: `heddle study age --docs docs` has it say so"
        );
    }
}

/// Each row of the page says whether it is of the core as it is.
#[test]
fn the_page_on_area_says_which_rows_are_of_an_older_core() {
    let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs"));
    let old = area::outdated(docs).unwrap();
    assert!(
        old.is_empty(),
        "docs/{} is not what docs/{} says of the core as it is: `heddle study age --docs docs` writes it anew",
        old[0],
        area::RESULTS
    );
}

/// What is said to be proven, and at which shape, is what the proof says.
#[test]
fn the_page_on_proofs_tells_of_proofs_that_there_are() {
    let text = page("evidence/proofs.md");
    let line = |heading: &str, cells: &[&str]| format!("{heading} {}", cells.join(", "));
    let there = proofs(Divergence::ALL).unwrap().into_iter().map(|proof| {
        let heading = format!("**`{}`.** {}", proof.block, proof.says);
        line(&heading, &[&proof.name, &proof.shape, proof.method.name(), &proof.depth.to_string()])
    });
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
    all_there("evidence/proofs.md", named, &there.collect(), "heddle prove --docs docs");
}

#[test]
fn the_page_on_coverage_names_covers_of_the_core() {
    let text = page("evidence/coverage.md");
    let there =
        coverage::names(&coverage::shapes()).unwrap().into_iter().map(|(module, name)| format!("{module}.{name}"));
    let rows =
        ["## Not hit", "## Hit"].into_iter().flat_map(|heading| section(&text, heading).filter_map(cells).skip(1));
    let named = rows.map(|row| format!("{}.{}", row[0], row[1])).collect();
    all_there("evidence/coverage.md", named, &there.collect(), "heddle cover --docs docs");
}
