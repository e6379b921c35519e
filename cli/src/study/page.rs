//! A study's page and its charts, `studies/NAME.md`, and `studies/NAME.svg` or, where there are several,
//! `studies/NAME-CHART.svg`.

use crate::docs::tree;
use anyhow::{Result, bail};
use std::path::Path;

/// Of the page and of charts, the first of which may have no name of its own.
fn names<'a>(study: &str, charts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let chart = |name: &str| match name {
        "" => format!("studies/{study}.svg"),
        name => format!("studies/{study}-{name}.svg"),
    };
    [format!("studies/{study}.md")].into_iter().chain(charts.map(chart)).collect()
}

/// Fails if they cannot be written into the tree of pages, or if some options of the core are given: a page is of the
/// usual one, and names the command that writes it without them.
pub fn check(docs: &Path, given: &[String], study: &str, charts: &[&str]) -> Result<()> {
    if let [first, ..] = given {
        bail!("--docs writes the page of the usual core: leave {first} away, or --docs");
    }
    tree::check(docs, names(study, charts.iter().copied()).iter().map(String::as_str))
}

/// Writes page and charts, by their names, each whole or not at all.
pub fn write(docs: &Path, study: &str, page: &str, charts: &[(&str, String)]) -> Result<()> {
    let names = names(study, charts.iter().map(|(name, _)| *name));
    let texts = [page].into_iter().chain(charts.iter().map(|(_, chart)| chart.as_str()));
    tree::write(docs, names.iter().map(String::as_str).zip(texts))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Templates of pages, and the numbers in their prose that no run decides: what a paper says, or a machine is.
    const TEMPLATES: [(&str, &str, &[&str]); 10] = [
        ("blocks", include_str!("blocks/page.md"), &[]),
        (
            "compaction",
            include_str!("compaction/page.md"),
            &[
                "30 SMs of 32 warps of 32 threads",
                "one of 32 threads does on the paper's 8 ALUs",
                "a 2-bit counter",
                "coherent at 91 % in the paper",
                "On 4 lanes,",
                "bring NVRT 30 % with compaction and 14 % without, and MUM 2 %\nand 5 %",
                "has 8 MB behind 30 caches of 32 KB each, and 1 MB in",
            ],
        ),
        (
            "dual-path",
            include_str!("dual_path/page.md"),
            &[
                "15 SMs of 48 warps of 32 threads",
                "On a stack AvgPath is 1.",
                "h = (AvgPath − 1) / 2 of",
                "h / (1 − h)",
                "the paper's is +20 %",
                "they fall by 19 %, but rise by 5 % on MUMpp, as misses do by 2 %",
                "11 and 7\nentries",
                "have 32 bits each",
            ],
        ),
        ("locks", include_str!("locks/page.md"), &[]),
        ("mechanisms", include_str!("mechanisms/page.md"), &[]),
        ("order", include_str!("order/page.md"), &["of 1000 warp instructions", "log2(n)"]),
        ("per-area", include_str!("per_area/page.md"), &["for 1000 LUTs", "program and data of 32 KiB"]),
        ("simtight", include_str!("simtight/page.md"), &["core of 32 lanes and 64 warps", "(± 1)"]),
        (
            "speculative",
            include_str!("speculative/page.md"),
            &["V100", "no more than 256 threads", "most on 32 lanes", "up to\n  64 warps", "range from 10 % to 3×"],
        ),
        ("warp", include_str!("warp/page.md"), &["the core with 8 lanes"]),
    ];

    /// Words with a digit, but code, places of links, what is filled in, and numbers of a paper's figures and sections.
    fn numbers(text: &str) -> Vec<String> {
        let prose: String = text.split("```").step_by(2).collect();
        let prose: String = prose.split('`').step_by(2).collect::<Vec<_>>().join(" ");
        let without = |text: &str, open: &str, close: char| {
            let mut parts = text.split(open);
            let first = parts.next().unwrap_or_default().to_string();
            parts.fold(first, |text, part| text + part.split_once(close).map_or("", |(_, rest)| rest))
        };
        let prose = without(&without(&prose, "](", ')'), "{", '}');
        let mut of_paper = false;
        let mut found = Vec::new();
        for word in prose.split_whitespace() {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
            let has_digit = word.contains(|c: char| c.is_ascii_digit());
            if has_digit && !of_paper && !word.contains('§') {
                found.push(word.to_string());
            }
            let names = ["Figure", "Figures", "Table", "Tables", "Equation"];
            let goes_on = (has_digit && !word.contains('§') && !word.ends_with([';', '.', ':'])) || bare == "and";
            of_paper = names.contains(&bare) || (of_paper && goes_on);
        }
        found
    }

    #[test]
    fn what_a_run_decides_is_not_typed_into_a_page() {
        assert_eq!(
            numbers("LU gains 30.5 %, `--warps 4`, {core} in [five](a4.md) (Figures 5 and 6(b), §3.1); 7 of 9."),
            ["30.5", "7", "9."]
        );
        for (name, template, known) in TEMPLATES {
            let mut text = template.to_string();
            for number in known {
                assert!(text.contains(number), "{name}: no {number}");
                text = text.replace(number, "");
            }
            assert_eq!(numbers(&text), [""; 0], "{name}: a figure comes from the command that writes the page");
        }
    }

    #[test]
    fn page_and_charts_are_written() {
        let folder = tempfile::tempdir().unwrap();
        check(folder.path(), &[], "x", &["", "y"]).unwrap();
        write(folder.path(), "x", "# X", &[("", "<svg/>".into()), ("y", "<svg></svg>".into())]).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join("studies").join(name)).unwrap();
        assert_eq!((read("x.svg").as_str(), read("x.md").as_str()), ("<svg/>", "# X"));
        assert_eq!(read("x-y.svg"), "<svg></svg>");
    }
}
