//! Texts made from the CSR map: the C header that kernels include, and the table in `docs/reference/programs.md`.
//!
//! Both are committed. `cargo run -p heddle-testbench --example csr_text` writes them anew; tests here say when that is
//! due.

use std::fmt::Write;

use heddle_simt::csr::MAP;

/// The text of `testbench/programs/include/heddle_csr.h`.
pub fn header() -> String {
    let mut text = String::from(
        "/* CSR addresses. Generated from hdl/simt/src/csr.rs by `cargo run -p heddle-testbench --example csr_text`. */\n\
         #ifndef HEDDLE_CSR_H\n#define HEDDLE_CSR_H\n\n",
    );
    for csr in MAP {
        let name = csr.name.to_uppercase();
        let _ = writeln!(text, "#define HEDDLE_CSR_{name} {:#05x} /* {} */", csr.address, csr.doc);
    }
    text.push_str("\n#endif\n");
    text
}

/// The table of `docs/reference/programs.md`, in Markdown.
pub fn table() -> String {
    let mut text = String::from("| address | name | value |\n|---|---|---|\n");
    for csr in MAP {
        let doc = csr.doc.replace('*', "×");
        let _ = writeln!(text, "| {:#05x} | `{}` | {doc} |", csr.address, csr.name);
    }
    text
}

/// A page with the lines between its two marker lines replaced by [`table`]; `None` if a marker is missing.
pub fn page_with_table(page: &str) -> Option<String> {
    const BEGIN: &str = "<!-- CSR table: begin -->\n";
    const END: &str = "<!-- CSR table: end -->\n";
    let begin = page.find(BEGIN)? + BEGIN.len();
    let end = begin + page[begin..].find(END)?;
    Some(format!("{}{}{}", &page[..begin], table(), &page[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOW: &str = "out of date: run `cargo run -p heddle-testbench --example csr_text`";

    #[test]
    fn committed_header_is_up_to_date() {
        let committed = include_str!("../programs/include/heddle_csr.h");
        assert!(committed == header(), "heddle_csr.h is {HOW}");
    }

    #[test]
    fn table_in_the_docs_is_up_to_date() {
        let page = include_str!("../../docs/reference/programs.md");
        let fresh = page_with_table(page).expect("docs/reference/programs.md has the two markers");
        assert!(page == fresh, "docs/reference/programs.md is {HOW}");
    }
}
