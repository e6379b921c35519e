//! Memories: an array, its writes and synchronous reads in clocked blocks from which tools infer RAM.

use crate::Options;
use crate::emit::Text;
use crate::values::{literal, range};
use heddle_hdl::Bits;
use heddle_hdl::netlist::{Collision, Memory, MemoryStyle, ReadPort, ReadTiming, WritePort};
use std::fmt::Write;
use std::path::Path;

/// Contents up to this many words are written in the module; longer ones in a file beside it, if there may be one.
const INLINE_WORDS: usize = 32;

/// The contents of a memory that are in a file beside the module.
pub(crate) fn in_file<'m>(memory: &'m Memory, options: &Options) -> Option<&'m [Bits]> {
    let may = !options.cosim && !options.one_text;
    memory.init.as_deref().filter(|words| may && words.len() > INLINE_WORDS)
}

/// The file of a memory's contents.
pub(crate) fn image_file(module: &str, memory: &str) -> String {
    // No name has a dot, so no two are the same.
    format!("{module}.{memory}.hex")
}

/// Declares the array, and the data of its reads.
pub(crate) fn declare(text: &mut Text, index: usize) {
    let memory = &text.m.memories[index];
    let mut style = match memory.style {
        MemoryStyle::Auto => String::new(),
        MemoryStyle::Block => "(* ram_style = \"block\" *)\n  ".to_string(),
        MemoryStyle::Distributed => "(* ram_style = \"distributed\" *)\n  ".to_string(),
    };
    let never = |r: &ReadPort| matches!(r.timing, ReadTiming::Sync { collision: Collision::Never, .. });
    if !memory.reads.is_empty() && memory.reads.iter().all(never) {
        style.push_str("(* no_rw_check *)\n  ");
    }
    let last = (1u64 << memory.address_width) - 1;
    let _ = writeln!(text.out, "  {style}reg  {}{} [0:{last}];", range(memory.width), memory.name);
    for read in &memory.reads {
        text.declare(read.out);
        let name = text.names.identifier(read.out).expect("reads have identifiers");
        let kind = if read.timing == ReadTiming::Async { "wire" } else { "reg " };
        if !text.m.outputs.iter().any(|p| p.name == name) {
            let _ = writeln!(text.out, "  {kind} {}{name};", range(memory.width));
        }
    }
}

/// What the memory does.
pub(crate) fn behave(text: &mut Text, index: usize) {
    let m = text.m;
    let memory = &m.memories[index];
    let name = &memory.name;
    let value = |id| text.names.value(id);
    let mut body = String::new();
    for write in &memory.writes {
        let address = value(write.address);
        for (granule, low, width) in granules(memory.width, m.node(write.enable).width) {
            let enable = granule_enable(&value(write.enable), m.node(write.enable).width, granule);
            let (place, data) = match m.node(write.enable).width {
                1 => (format!("{name}[{address}]"), value(write.data)),
                _ => (
                    format!("{name}[{address}][{}:{low}]", low + width - 1),
                    format!("{}[{}:{low}]", value(write.data), low + width - 1),
                ),
            };
            let _ = writeln!(body, "    if ({enable} && !rst) {place} <= {data};");
        }
    }
    let mut reads = String::new();
    let mut after = String::new();
    for read in &memory.reads {
        let data = text.names.identifier(read.out).expect("reads have identifiers").to_string();
        let address = value(read.address);
        let ReadTiming::Sync { enable, collision, or_zero } = read.timing else {
            let _ = writeln!(after, "  assign {data} = {name}[{address}];");
            continue;
        };
        let mut lines = vec![format!("{data} <= {name}[{address}];")];
        if collision == Collision::ReadNew {
            memory.writes.iter().for_each(|w| lines.extend(bypass(text, memory.width, &data, &address, w)));
        }
        let condition = enable.map_or_else(String::new, |e| format!("if ({}) ", value(e)));
        let _ = match &lines[..] {
            [one] => writeln!(reads, "    {condition}{one}"),
            many => writeln!(reads, "    {condition}begin\n      {}\n    end", many.join("\n      ")),
        };
        if or_zero && enable.is_some() {
            let _ = writeln!(reads, "    else {data} <= {};", literal(&Bits::ZERO, memory.width));
        }
    }
    if !body.is_empty() || !reads.is_empty() {
        let _ = write!(text.out, "  always @(posedge clk) begin\n{body}{reads}  end\n");
    }
    text.out.push_str(&after);
    contents(text, index);
}

/// Each enabled part of a word: number, low bit, width.
fn granules(width: u32, enables: u32) -> impl Iterator<Item = (u32, u32, u32)> {
    let part = width / enables;
    (0..enables).map(move |g| (g, g * part, part))
}

fn granule_enable(enable: &str, width: u32, granule: u32) -> String {
    if width == 1 { enable.to_string() } else { format!("{enable}[{granule}]") }
}

/// Assignments that give a read the word of a write at the same edge.
fn bypass(text: &Text, width: u32, data: &str, address: &str, write: &WritePort) -> Vec<String> {
    let m = text.m;
    let enables = m.node(write.enable).width;
    let (enable, to) = (text.names.value(write.enable), text.names.value(write.address));
    granules(width, enables)
        .map(|(granule, low, part)| {
            let on = granule_enable(&enable, enables, granule);
            let from = text.names.value(write.data);
            let (place, from) = match enables {
                1 => (data.to_string(), from),
                _ => (format!("{data}[{}:{low}]", low + part - 1), format!("{from}[{}:{low}]", low + part - 1)),
            };
            format!("if ({on} && !rst && {to} == {address}) {place} <= {from};")
        })
        .collect()
}

/// First contents; in co-simulation everything that has none starts as the other engine's.
fn contents(text: &mut Text, index: usize) {
    let memory = &text.m.memories[index];
    let (name, width) = (&memory.name, memory.width);
    if text.options.cosim {
        let words = 1u64 << memory.address_width;
        let place = text.names.fresh(&format!("{name}_place"));
        let handle = text.names.fresh(&format!("{name}_handle"));
        let word = start_word(width, &handle, &place);
        let _ = write!(
            text.out,
            "  int {handle}, {place};\n  initial begin\n    {handle} = heddle_open($sformatf(\"%m.{name}\"));\n    \
             for ({place} = 0; {place} < {words}; {place} = {place} + 1) {name}[{place}] = {word};\n  end\n"
        );
        let next = text.names.fresh(&format!("{name}_next"));
        let limbs = width.div_ceil(32);
        let report: String = (0..limbs)
            .map(|k| {
                let low = k * 32;
                let part = (width - low).min(32);
                let bits =
                    if width == 1 { format!("{name}[{next}]") } else { format!("{name}[{next}][{low} +: {part}]") };
                match part {
                    32 => format!("      heddle_report({handle}, {k}, {bits});\n"),
                    _ => format!("      heddle_report({handle}, {k}, {{{}'d0, {bits}}});\n", 32 - part),
                }
            })
            .collect();
        let value = start_word(width, &handle, "-1");
        let _ = write!(
            text.out,
            "  int {next};\n  always @(posedge host) begin\n    {next} = heddle_request({handle});\n    if ({next} >= 0) begin\n{report}      \
             if (heddle_writes({handle}) != 0) {name}[{next}] = {value};\n    end\n  end\n"
        );
        for read in memory.reads.iter().enumerate().filter(|(_, r)| r.timing != ReadTiming::Async) {
            let (port, read) = read;
            let data = text.names.identifier(read.out).expect("reads have identifiers").to_string();
            let start = start_value(&format!("{name}.read{port}"), width, "0");
            let _ = writeln!(text.out, "  initial {data} = {start};");
        }
        return;
    }
    let Some(words) = &memory.init else {
        if memory.writes.is_empty() {
            // Nothing ever writes it here; the contents are to come from whoever instantiates the memory.
            let place = text.names.fresh(&format!("{name}_place"));
            let last = (1u64 << memory.address_width) - 1;
            let _ = write!(
                text.out,
                "  integer {place};\n  initial begin\n    for ({place} = 0; {place} <= {last}; {place} = {place} + 1) {name}[{place}] = {width}'d0;\n  end\n"
            );
        }
        return;
    };
    if in_file(memory, text.options).is_some() {
        let file = Path::new(&text.options.images).join(image_file(&text.m.name, name));
        let file = file.display();
        let _ = writeln!(text.out, "  initial $readmemh(\"{file}\", {name});");
        return;
    }
    let all = 1usize << memory.address_width;
    let mut body = String::new();
    for place in 0..all {
        let word = words.get(place).cloned().unwrap_or_default();
        let _ = writeln!(body, "    {name}[{place}] = {};", literal(&word, width));
    }
    let _ = write!(text.out, "  initial begin\n{body}  end\n");
}

/// The start value of state in co-simulation: asked from the host by path, 32 bits at a time.
pub(crate) fn start_value(path: &str, width: u32, index: &str) -> String {
    start_word(width, &format!("heddle_open($sformatf(\"%m.{path}\"))"), index)
}

fn start_word(width: u32, handle: &str, index: &str) -> String {
    let limbs = width.div_ceil(32);
    let limb = |k: u32| match width - k * 32 {
        32.. => format!("heddle_word({handle}, {index}, {k})"),
        part => format!("{part}'(heddle_word({handle}, {index}, {k}))"),
    };
    let parts: Vec<String> = (0..limbs).rev().map(limb).collect();
    if parts.len() == 1 { parts[0].clone() } else { format!("{{{}}}", parts.join(", ")) }
}
