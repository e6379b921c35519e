//! What is compared: programs made of a kernel's, on units for divergence.

use anyhow::Result;
use heddle_simt::{Divergence, Merge, Shape};
use heddle_testbench::predict::{Automatic, Deconflict, Options, Profile, predict};

/// Where programs run, and what a kernel is there without prediction.
pub struct Unit {
    /// The baseline's name.
    pub name: &'static str,
    pub divergence: Divergence,
    pub merge: Merge,
    /// Threads meet only where the pass has placed barriers at post-dominators.
    pub pdom: bool,
    /// Of memory, instead of what the options say.
    pub latency: Option<u32>,
    /// Which programs run there, besides the baseline.
    pub programs: Programs,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    /// All.
    All,
    /// The prediction as the directives have it.
    Predict,
}

pub static PATH_TABLE: Unit = USUAL;

const USUAL: Unit = Unit {
    name: "path-table",
    divergence: Divergence::PATH_TABLE,
    merge: Merge::Pc,
    pdom: false,
    latency: None,
    programs: Programs::All,
};

/// A unit without convergence barriers, on which hints only cost.
const fn without(name: &'static str, divergence: Divergence) -> Unit {
    Unit { name, divergence, programs: Programs::Predict, ..USUAL }
}

/// Hardware that does not compare pcs.
pub const VOLTA: &str = "volta";
/// Path tables with a memory that answers at once.
pub const NEAR: &str = "path-table-near";
pub const PATH_TABLES: &str = USUAL.name;

pub static UNITS: [Unit; 7] = [
    Unit { name: VOLTA, merge: Merge::Barriers, pdom: true, ..USUAL },
    USUAL,
    // What is left where memory is no reason to wait.
    Unit { name: NEAR, latency: Some(1), programs: Programs::Predict, ..USUAL },
    without("stack", Divergence::STACK),
    without("block-stack", Divergence::BLOCK_STACK),
    without("dual-path", Divergence::DUAL_PATH),
    without("arbiter", Divergence::ARBITER),
];

impl Unit {
    /// Those that have convergence barriers.
    pub fn predicts(&self) -> bool {
        self.divergence == Divergence::PATH_TABLE
    }

    /// The core of an option's shape with this unit.
    pub fn shape(&self, shape: &Shape) -> Result<Shape> {
        let levels = shape.levels.filter(|_| self.divergence.capabilities().reconverges);
        let usual = Shape::default();
        let (convergence_barriers, patience) =
            if self.predicts() { (shape.convergence_barriers, shape.patience) } else { (0, usual.patience) };
        let shape = Shape { levels, convergence_barriers, patience, merge: self.merge, ..shape.clone() };
        let mut shape = shape.with_divergence(self.divergence);
        if let Some(latency) = self.latency {
            shape.backing = shape.backing.with_latency(latency);
        }
        shape.check()?;
        Ok(shape)
    }
}

/// A program made of a kernel's.
pub struct Variant {
    pub name: String,
    pub threshold: Option<u32>,
    make: Make,
}

type Make = Box<dyn Fn(&[u8]) -> Result<Vec<u8>>>;

pub const BASELINE: &str = "baseline";
pub const PREDICT: &str = "predict";
pub const AUTO: &str = "auto";
pub const AUTO_PROFILE: &str = "auto-profile";
pub const STATIC: &str = "predict-static";
pub const REJOIN: &str = "predict-rejoin";

/// The name of a variant with a threshold.
pub fn soft(threshold: u32) -> String {
    format!("soft-{threshold}")
}

impl Variant {
    fn new(name: impl Into<String>, make: impl Fn(&[u8]) -> Result<Vec<u8>> + 'static) -> Variant {
        Variant { name: name.into(), threshold: None, make: Box::new(make) }
    }

    fn predicted(name: impl Into<String>, options: Options) -> Variant {
        let threshold = options.threshold;
        Variant { threshold, ..Variant::new(name, move |elf| Ok(predict(elf, &options)?.elf)) }
    }

    /// The program.
    pub fn elf(&self, kernel: &[u8]) -> Result<Vec<u8>> {
        (self.make)(kernel)
    }
}

/// How many threads a kernel's directives wait for, as its program says; none if for all.
pub fn own_threshold(kernel: &[u8]) -> Option<u32> {
    let prediction = predict(kernel, &Options::default()).expect("kernels of the study have directives");
    prediction.placements.iter().map(|placement| placement.threshold).max().filter(|&threshold| threshold > 0)
}

/// All that run on a unit with so many barriers, the baseline first.
pub fn of(unit: &Unit, barriers: u32, thresholds: &[u32]) -> Vec<Variant> {
    let predict = Options { barriers, pdom: unit.pdom, ..Options::default() };
    let baseline = match unit.pdom {
        true => Variant::predicted(BASELINE, Options { directives: false, ..predict.clone() }),
        false => Variant::new(BASELINE, |elf| Ok(elf.to_vec())),
    };
    let mut variants = vec![baseline, Variant::predicted(PREDICT, predict.clone())];
    if unit.programs == Programs::All {
        // Without barriers at post-dominators, nothing is in conflict.
        if unit.pdom {
            let with = |deconflict| Options { deconflict, ..predict.clone() };
            variants.push(Variant::predicted(STATIC, with(Deconflict::Static)));
            variants.push(Variant::predicted(REJOIN, with(Deconflict::Rejoin)));
        }
        let asked = thresholds.iter().map(|&threshold| Options { threshold: Some(threshold), ..predict.clone() });
        variants
            .extend(asked.zip(thresholds).map(|(options, &threshold)| Variant::predicted(soft(threshold), options)));
    }
    variants
}

/// Those that no directive asks for, the baseline first.
pub fn automatic(barriers: u32, profile: Profile) -> [Variant; 3] {
    let [baseline, auto] = in_the_graph(barriers);
    [baseline, auto, found(AUTO_PROFILE, barriers, Some(profile))]
}

/// Those of them that need no profile.
pub fn in_the_graph(barriers: u32) -> [Variant; 2] {
    [Variant::new(BASELINE, |elf| Ok(elf.to_vec())), found(AUTO, barriers, None)]
}

fn found(name: &str, barriers: u32, profile: Option<Profile>) -> Variant {
    let automatic = Some(Automatic { profile });
    let options = Options { barriers, directives: false, automatic, ..Options::default() };
    // Where nothing is found the program is the kernel's.
    Variant::new(name, move |elf| {
        let prediction = predict(elf, &options)?;
        Ok(if prediction.placements.is_empty() { elf.to_vec() } else { prediction.elf })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_testbench::kernels::find;

    fn names(unit: &Unit, thresholds: &[u32]) -> Vec<String> {
        of(unit, 16, thresholds).into_iter().map(|variant| variant.name).collect()
    }

    #[test]
    fn the_baseline_comes_first_and_conflicts_are_resolved_where_there_are_some() {
        let [volta, path_table, near, others @ ..] = &UNITS;
        assert_eq!(
            names(volta, &[4, 8]),
            ["baseline", "predict", "predict-static", "predict-rejoin", "soft-4", "soft-8"]
        );
        assert_eq!(names(path_table, &[4]), ["baseline", "predict", "soft-4"]);
        for unit in std::iter::once(near).chain(others) {
            assert_eq!(names(unit, &[4]), ["baseline", "predict"]);
        }
    }

    #[test]
    fn a_kernels_own_threshold_is_that_of_its_directive() {
        let own = |name| own_threshold(find(name).unwrap().elf);
        assert_eq!(["mcgpu", "rsbench", "common_call"].map(own), [Some(8), None, None]);
    }

    #[test]
    fn every_variant_is_another_program() {
        let kernel = find("loop_merge").unwrap();
        let elves = |unit: &Unit| -> Vec<Vec<u8>> {
            of(unit, 16, &[8]).iter().map(|variant| variant.elf(kernel.elf).unwrap()).collect()
        };
        let [volta, path_table, ..] = &UNITS;
        assert_eq!(elves(path_table)[0], kernel.elf);
        for elves in [elves(volta), elves(path_table)] {
            for (at, elf) in elves.iter().enumerate() {
                assert!(!elves[..at].contains(elf), "variant {at}");
            }
        }
    }

    #[test]
    fn a_units_core_has_barriers_only_on_path_tables() {
        let shape = Shape { convergence_barriers: 16, patience: 64, ..Shape::new(4, 2) };
        for unit in &UNITS {
            let shape = unit.shape(&Shape { replay: heddle_simt::Replay::Serialise, ..shape.clone() }).unwrap();
            assert_eq!((shape.convergence_barriers > 0, shape.patience == 64), (unit.predicts(), unit.predicts()));
            assert_eq!((shape.divergence, shape.merge), (unit.divergence, unit.merge));
        }
    }
}
