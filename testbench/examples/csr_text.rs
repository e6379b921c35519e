//! Writes the C header and the docs table that are made from the CSR map.

use std::{fs, io, path::Path};

use heddle_testbench::csr_text;

fn main() -> io::Result<()> {
    let testbench = Path::new(env!("CARGO_MANIFEST_DIR"));
    fs::write(testbench.join("programs/include/heddle_csr.h"), csr_text::header())?;
    let path = testbench.join("../docs/reference/programs.md");
    let page = csr_text::page_with_table(&fs::read_to_string(&path)?)
        .ok_or_else(|| io::Error::other("docs/reference/programs.md lacks a marker line"))?;
    fs::write(path, page)
}
