//! What the pages point to is there: files and headings that they link to, sources that they name, commands that they
//! show.

use crate::Cli;
use clap::CommandFactory;
use clap::error::ErrorKind;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Stands for a name that the reader chooses.
const PLACEHOLDER: &str = "NAME";

/// Stand for several options.
const OPTIONS: [&str; 2] = ["OPTIONS", "CORE"];

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Every page, with its path from the root.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(ROOT);
    let mut paths = entries(root);
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        let (inner, files): (Vec<_>, Vec<_>) = entries(&folder).into_iter().partition(|path| path.is_dir());
        folders.extend(inner);
        paths.extend(files);
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    paths.sort();
    let read = |path: PathBuf| fs::read_to_string(&path).map(|text| (path, text));
    paths.into_iter().map(read).collect::<Result<_, _>>().expect("pages are text")
}

/// What is marked as code.
fn code(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| entry.expect("it can be read").path()).collect()
}

/// The lines outside blocks of code, and those in blocks of this language.
fn lines<'a>(text: &'a str, language: Option<&'a str>) -> impl Iterator<Item = &'a str> {
    let mut block: Option<&str> = None;
    text.lines().filter(move |line| match (line.trim_start().strip_prefix("```"), block) {
        (Some(_), Some(_)) => {
            block = None;
            false
        }
        (Some(name), None) => {
            block = Some(name.trim());
            false
        }
        (None, inside) => inside == language,
    })
}

/// The name of a heading in links.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn headings(text: &str) -> BTreeSet<String> {
    lines(text, None).filter(|line| line.starts_with('#')).map(anchor).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut lost = Vec::new();
    let mut count = 0;
    for (path, text) in pages() {
        for line in lines(&text, None) {
            for rest in line.split("](").skip(1) {
                let Some((link, _)) = rest.split_once(')') else { continue };
                if link.contains("://") {
                    continue;
                }
                count += 1;
                let (file, heading) =
                    link.split_once('#').map_or((link, None), |(file, heading)| (file, Some(heading)));
                let to =
                    if file.is_empty() { path.clone() } else { path.parent().expect("it is in a folder").join(file) };
                let is_there = match heading {
                    None => to.exists(),
                    Some(heading) => fs::read_to_string(&to).is_ok_and(|text| headings(&text).contains(heading)),
                };
                if !is_there {
                    lost.push(format!("{}: {link}", path.display()));
                }
            }
        }
    }
    assert!(count > 100, "only {count} links");
    assert!(lost.is_empty(), "{lost:#?}");
}

#[test]
fn sources_that_pages_name_are_there() {
    let is_source = |code: &&str| {
        let folder = code.split('/').next().unwrap_or_default();
        let ends = [".rs", ".md", ".c", ".S", ".ld", ".sh", ".h", ".v", "/"];
        ["hdl", "sim", "gen", "testbench", "check", "cli", "docs"].contains(&folder)
            && code.contains('/')
            && !code.contains([' ', '*', '{', '<'])
            && !code.contains(PLACEHOLDER)
            && ends.iter().any(|end| code.ends_with(end))
    };
    let mut lost = BTreeSet::new();
    let mut count = 0;
    for (path, text) in pages() {
        for code in lines(&text, None).flat_map(code).filter(is_source) {
            count += 1;
            if !Path::new(ROOT).join(code).exists() {
                lost.insert(format!("{}: {code}", path.display()));
            }
        }
    }
    assert!(count > 50, "only {count} sources");
    assert!(lost.is_empty(), "{lost:#?}");
}

/// The words of a line of a shell up to a comment, a pipe or the next command; None if it is no plain command.
fn words(line: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (c, quote) {
            (c, Some(end)) if c == end => quote = None,
            ('\'' | '"', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('#' | '|' | '>' | '&' | ';' | '<', None) if word.is_none() => break,
            ('$' | '*' | '\\' | '…', _) => return None,
            (' ', None) => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    Some(words)
}

#[test]
fn commands_that_pages_show_are_commands() {
    let cli = Cli::command();
    let mut wrong = BTreeSet::new();
    let mut count = 0;
    for (path, text) in pages() {
        let in_prose = lines(&text, None).flat_map(code).map(|code| (code, false));
        let shown = lines(&text, Some("sh")).map(|line| (line, true));
        for (line, is_whole) in shown.chain(in_prose) {
            let line = line.trim_start().replacen("cargo run --release -- ", "heddle ", 1);
            let Some(mut words) = words(&line).filter(|words| words.first().is_some_and(|first| first == "heddle"))
            else {
                continue;
            };
            words.retain(|word| !OPTIONS.contains(&word.as_str()));
            count += 1;
            let Err(error) = cli.clone().try_get_matches_from(&words) else { continue };
            // In prose, arguments may be left out.
            let is_unknown = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand);
            if is_unknown || (is_whole && error.use_stderr()) {
                let error = error.to_string();
                wrong.insert(format!("{}: {line}: {}", path.display(), error.lines().next().unwrap_or_default()));
            }
        }
    }
    assert!(count > 100, "only {count} commands");
    assert!(wrong.is_empty(), "{wrong:#?}");
}
