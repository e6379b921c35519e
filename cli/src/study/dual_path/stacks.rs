//! What the stack of a warp takes: bits of a level, and levels in use. (`dual-path-execution.txt` §6.5)

use super::{DUAL_PATH, Row, STACK, units};
use anyhow::Result;
use heddle_simt::Shape;
use heddle_testbench::machine::design;
use serde::Serialize;

/// The stack of a warp of a core.
#[derive(Serialize)]
pub struct Stack {
    divergence: &'static str,
    /// Bits of what runs, and of a level below it.
    top_bits: u32,
    level_bits: u32,
    /// Levels that a warp of any of the kernels had in use at most.
    most_levels: u64,
    /// What the paper has: bits of an entry, and entries in use at most.
    published: [u32; 2],
}

impl Stack {
    /// All that was in use.
    fn bits(&self) -> u64 {
        u64::from(self.top_bits) + self.most_levels * u64::from(self.level_bits)
    }
}

/// Of the units that the paper counts, with their modules' names. Entries are of 96 and 160 bits: a pc and a mask of 32
/// bits each a path, and an rpc.
const PUBLISHED: [(&str, &str, [u32; 2]); 2] = [(STACK, "stack", [96, 11]), (DUAL_PATH, "dual_path", [160, 7])];

/// Of cores of these shapes, one a unit.
pub fn of(shapes: &[Shape], rows: &[Row]) -> Result<Vec<Stack>> {
    let stack = |&(variant, module, published): &(&'static str, &str, [u32; 2])| {
        let unit = units(&[]).iter().position(|unit| unit.name == variant).expect("it is a unit");
        let modules = design(&shapes[unit])?.modules();
        let module = modules.iter().find(|found| found.name == module).expect("the core has its unit");
        // With one lane there are no levels.
        let bits = |name: &str| module.memories.iter().find(|memory| memory.name == name).map_or(0, |m| m.width);
        let of_unit = rows.iter().filter(|row| row.of.variant == variant);
        let levels = of_unit.filter_map(|row| Some(row.figures.as_ref()?.most_levels));
        let (top_bits, level_bits) = (bits("tops"), bits("levels"));
        let divergence = shapes[unit].divergence.name();
        Ok(Stack { divergence, top_bits, level_bits, most_levels: levels.max().unwrap_or(0), published })
    };
    PUBLISHED.iter().map(stack).collect()
}

/// Title and lines.
pub fn table(stacks: &[Stack]) -> (&'static str, Vec<Vec<String>>) {
    let headings = ["", "", "bits of the top", "of a level", "levels below it", "bits in use"];
    let mut lines = vec![headings.map(String::from).to_vec()];
    for stack in stacks {
        let Stack { divergence, top_bits, level_bits, most_levels, published: [bits, entries] } = *stack;
        let line = |of: &str, name: &str, figures: [String; 4]| {
            [of.to_string(), name.to_string()].into_iter().chain(figures).collect::<Vec<String>>()
        };
        let ours = [top_bits.to_string(), level_bits.to_string(), most_levels.to_string(), stack.bits().to_string()];
        lines.push(line(divergence, "here", ours));
        let theirs = [bits, bits, entries - 1, bits * entries].map(|figure| figure.to_string());
        lines.push(line("", "paper", theirs));
    }
    ("the stack of a warp, at most, of all kernels", lines)
}

#[cfg(test)]
mod tests {
    use super::super::tests::example;
    use super::*;

    #[test]
    fn bits_are_those_of_the_description() {
        let shapes: Vec<Shape> =
            units(&[]).iter().map(|unit| Shape::new(4, 2).with_divergence(unit.divergence)).collect();
        let mut rows = example().rows;
        let levels = |row: &mut Row, levels| row.figures.as_mut().unwrap().most_levels = levels;
        rows.iter_mut().filter(|row| row.of.variant == STACK).for_each(|row| levels(row, 3));
        levels(&mut rows[0], 2);
        let [stack, dual] = &of(&shapes, &rows).unwrap()[..] else { panic!("there are two") };
        // A pc, a call depth, a mask, and two more each; the top has one rpc: valid, returns, known, pc and depth.
        let (pc, depth, mask) = (shapes[0].pc_bits(), shapes[0].depth_bits, 4);
        let rpc = 3 + pc + depth;
        assert_eq!(stack.top_bits, pc + depth + mask + rpc);
        assert_eq!(stack.level_bits, 1 + pc + depth + mask + 1 + mask + rpc);
        assert_eq!(dual.top_bits, 2 * (1 + pc + depth + mask) + rpc);
        assert_eq!(dual.level_bits, stack.level_bits + 1);
        assert_eq!((stack.most_levels, dual.most_levels), (3, 0));
        assert_eq!(stack.bits(), u64::from(stack.top_bits + 3 * stack.level_bits));
    }

    #[test]
    fn the_paper_s_are_below_ours() {
        let stack = Stack { divergence: STACK, top_bits: 50, level_bits: 70, most_levels: 2, published: [96, 11] };
        let lines: Vec<String> = table(&[stack]).1.iter().map(|line| line.join(" ")).collect();
        assert_eq!(lines[1..], ["stack here 50 70 2 190", " paper 96 96 10 1056"]);
    }
}
