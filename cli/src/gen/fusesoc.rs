//! A FuseSoC core file (CAPI2): the files of the Verilog, and targets that lint and map them.

use crate::folder::Entry;
use std::fmt::Write as _;

/// Families for which there is a target `synth-FAMILY`: Edalize's names for Yosys.
const FAMILIES: [&str; 2] = ["ecp5", "ice40"];

/// The core file: all names are of files beside it, `images` those that the Verilog reads.
pub fn entry(top: &str, description: &str, sources: &[String], images: &[String]) -> Entry {
    Entry { name: "heddle.core".into(), text: core(top, description, sources, images) }
}

fn core(top: &str, description: &str, sources: &[String], images: &[String]) -> String {
    let mut text = format!(
        "CAPI=2:\n\nname: ::heddle:{}\ndescription: \"{description}\"\n\nfilesets:\n  rtl:\n    file_type: verilogSource\n    files:\n",
        env!("CARGO_PKG_VERSION")
    );
    for name in sources {
        let _ = writeln!(text, "      - {name}");
    }
    let mut filesets = "[rtl]";
    if !images.is_empty() {
        filesets = "[rtl, images]";
        text += "  images:\n    file_type: user\n    files:\n";
        for name in images {
            // Where the tool runs, which is where $readmemh looks.
            let _ = writeln!(text, "      - {name}: {{copyto: {name}}}");
        }
    }
    let mut target = |name: &str, flow: &[&str]| {
        let _ = writeln!(text, "  {name}:\n    filesets: {filesets}\n    toplevel: {top}");
        flow.iter().for_each(|line| _ = writeln!(text, "    {line}"));
    };
    target("default", &[]);
    let lint = ["flow: lint", "flow_options:", "  tool: verilator", "  verilator_options: [-Wall]"];
    target("lint", &lint);
    for family in FAMILIES {
        let arch = format!("  arch: {family}");
        target(
            &format!("synth-{family}"),
            &["flow: generic", "flow_options:", "  tool: yosys", &arch, "  output_format: json"],
        );
    }
    text.replacen("  default:\n", "\ntargets:\n  default:\n", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn files_and_targets_are_listed() {
        let text = core("heddle", "Heddle: 1 lane", &names(&["alu.v", "heddle.v"]), &[]);
        assert!(text.starts_with("CAPI=2:\n\nname: ::heddle:"), "{text}");
        assert!(text.contains("    files:\n      - alu.v\n      - heddle.v\n\ntargets:\n  default:\n"), "{text}");
        let targets: Vec<&str> = text.lines().filter(|line| line.starts_with("  ") && line.ends_with(':')).collect();
        assert_eq!(
            targets[..6],
            ["  rtl:", "    files:", "  default:", "  lint:", "    flow_options:", "  synth-ecp5:"]
        );
        assert_eq!(text.matches("    toplevel: heddle\n").count(), 4);
        assert_eq!(text.matches("filesets: [rtl]\n").count(), 4);
        let text = core("heddle", "", &names(&["a.v"]), &names(&["a_words.hex"]));
        assert!(
            text.contains("  images:\n    file_type: user\n    files:\n      - a_words.hex: {copyto: a_words.hex}\n")
        );
        assert_eq!(text.matches("filesets: [rtl, images]\n").count(), 4);
    }
}
