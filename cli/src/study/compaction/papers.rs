//! What the two papers compare, on what, and what they found.

use clap::ValueEnum;
use heddle_check::model::Mechanism;
use heddle_simt::{Capt, Compaction as Waits, Divergence, History, Schedule};
use serde::Serialize;

/// A configuration's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    TbcPaper,
    CapriPaper,
    /// As tbc-paper, on kernels that have points of likely convergence.
    LikelyPoints,
    /// As tbc-paper, with a second level of the cache.
    SecondLevel,
    /// As that, with an eighth of it.
    SmallSecondLevel,
}

impl Name {
    pub fn text(self) -> &'static str {
        match self {
            Name::TbcPaper => "tbc-paper",
            Name::CapriPaper => "capri-paper",
            Name::LikelyPoints => "likely-points",
            Name::SecondLevel => "second-level",
            Name::SmallSecondLevel => "small-second-level",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Set {
    Divergent,
    Coherent,
}

impl Set {
    pub const ALL: [Set; 2] = [Set::Divergent, Set::Coherent];

    pub fn text(self) -> &'static str {
        match self {
            Set::Divergent => "divergent",
            Set::Coherent => "coherent",
        }
    }
}

/// What is compared in a paper, and on what.
pub struct Configuration {
    pub name: Name,
    /// Cycles that a warp's instruction takes of the paper's ALUs.
    pub issue_interval: u32,
    /// Sizes of the data cache that its second level has, unless an option says otherwise.
    pub second_level: Option<u32>,
    pub variants: &'static [Variant],
    pub kernels: &'static [Studied],
}

/// A core.
pub struct Variant {
    pub name: &'static str,
    /// What forms warps in the cycle model that stands for a core. It has the never of its own.
    pub model: Option<Mechanism>,
    pub divergence: Divergence,
    pub schedule: Schedule,
    pub likely: bool,
    pub waits: Waits,
    pub capt: Capt,
    pub slack: u32,
    /// Memory has no jitter, as that of a cycle model.
    pub steady: bool,
    /// The paper's IPC over that of never: harmonic means of the divergent and the coherent set.
    pub published: [Option<f64>; 2],
    /// The paper's cycles without an issue over those of never: the mean of all kernels.
    pub published_idle: Option<f64>,
}

/// A kernel, and the paper's of its structure.
pub struct Studied {
    pub name: &'static str,
    pub paper: &'static str,
    pub set: Set,
    /// Entries of a block's stack in Table 3 of the paper on thread block compaction.
    pub entries: Option<u32>,
    /// SIMD utilisation in Table 2 of CAPRI's paper: of a stack per warp.
    pub utilisation: Option<f64>,
}

const fn divergent(name: &'static str, paper: &'static str, entries: Option<u32>) -> Studied {
    Studied { name, paper, set: Set::Divergent, entries, utilisation: None }
}

const fn coherent(name: &'static str, paper: &'static str, entries: Option<u32>) -> Studied {
    Studied { set: Set::Coherent, ..divergent(name, paper, entries) }
}

const fn using(utilisation: f64, studied: Studied) -> Studied {
    Studied { utilisation: Some(utilisation), ..studied }
}

/// Which way kernels go on a variant, by the text of the paper.
pub struct Said {
    pub config: Name,
    pub variant: &'static str,
    /// What it is compared with.
    pub over: &'static str,
    pub kernels: &'static [&'static str],
    pub faster: bool,
}

const fn said(config: Name, variant: &'static str, kernels: &'static [&'static str], faster: bool) -> Said {
    Said { config, variant, over: "never", kernels, faster }
}

/// `thread-block-compaction.txt` §2.4 and §6; `capri.txt` §5.3 and, of what gains most, §5.4.
pub const SAID: [Said; 10] = [
    said(Name::TbcPaper, "tbc", &["bfs", "face_detection", "suffix", "suffix_array", "work_queue"], true),
    said(Name::TbcPaper, "dwf", &["bfs", "face_detection", "suffix", "suffix_array"], true),
    said(Name::TbcPaper, "dwf", &["hotspot", "laplace3d"], false),
    said(Name::TbcPaper, "dwf-wb", &["hotspot", "laplace3d", "work_queue"], true),
    said(Name::TbcPaper, "dwf-wb", &["suffix_array"], false),
    said(Name::CapriPaper, "tbc", &["laplace3d", "backprop", "two_point"], false),
    said(Name::CapriPaper, "tbc+", &["laplace3d", "backprop", "two_point"], false),
    said(Name::CapriPaper, "tbc+", &["bfs", "suffix"], true),
    said(Name::CapriPaper, "capri-latest-32", &["bfs", "suffix"], true),
    Said { over: "tbc", ..said(Name::TbcPaper, "dwf-wb", &["hotspot", "laplace3d", "work_queue"], true) },
];

const TBC_KERNELS: [Studied; 14] = [
    divergent("bfs", "BFS2", Some(3)),
    divergent("face_detection", "FCDT", Some(5)),
    divergent("hotspot", "HOTSP", Some(2)),
    divergent("laplace3d", "LPS", Some(5)),
    divergent("suffix", "MUM", Some(13)),
    divergent("suffix_array", "MUMpp", Some(14)),
    divergent("work_queue", "NVRT", Some(5)),
    coherent("backprop", "BACKP", Some(2)),
    coherent("md5", "for AES", None),
    coherent("monte_carlo", "LIB", Some(1)),
    coherent("fft", "-", None),
    coherent("quasi_random", "-", None),
    coherent("particle_filter", "-", None),
    coherent("cfd", "-", None),
];

const CAPRI_KERNELS: [Studied; 11] = [
    using(0.29, divergent("bfs", "BFS", None)),
    using(0.23, divergent("suffix", "MUM", None)),
    using(0.28, divergent("suffix_array", "MUM++", None)),
    using(0.74, divergent("laplace3d", "LPS", None)),
    using(0.83, divergent("backprop", "BACKP", None)),
    using(0.81, divergent("two_point", "TPACF", None)),
    using(1.0, coherent("monte_carlo", "LIB", None)),
    using(0.99, coherent("particle_filter", "PFLT", None)),
    using(0.96, coherent("cfd", "CFD", None)),
    using(0.91, coherent("fft", "FFT", None)),
    using(0.95, coherent("quasi_random", "QSRDM", None)),
];

/// Those that have branches with a point of likely convergence which may diverge: first what stands for the paper's two
/// (§4).
const LIKELY_KERNELS: [Studied; 4] = [
    divergent("suffix", "MUM", None),
    divergent("work_queue", "NVRT", None),
    divergent("pathtracer", "-", None),
    using(0.91, coherent("raytrace", "RAY", None)),
];

/// A stack per warp without likely points.
const NEVER: Variant = Variant {
    name: "never",
    model: None,
    divergence: Divergence::STACK,
    schedule: Schedule::LooseRoundRobin,
    likely: false,
    waits: Waits::SkipUniform,
    capt: Capt::DEFAULT,
    slack: 1,
    steady: false,
    published: [Some(1.0), Some(1.0)],
    published_idle: None,
};

const PATH_TABLE: Variant =
    Variant { name: "path-table", divergence: Divergence::PATH_TABLE, published: [None, None], ..NEVER };

const TBC: Variant = Variant {
    name: "tbc",
    divergence: Divergence::BLOCK_STACK,
    schedule: Schedule::BlockAge,
    likely: true,
    published: [Some(1.22), None],
    ..NEVER
};

/// Never in the order of thread block compaction's warps.
const IN_ITS_ORDER: Variant =
    Variant { name: "never, block-age", schedule: Schedule::BlockAge, published: [None, None], ..NEVER };

/// The same with likely points, too: all of thread block compaction but the compaction.
const ALL_BUT_COMPACTION: Variant = Variant { name: "never, block-age, likely", likely: true, ..IN_ITS_ORDER };

const TBC_VARIANTS: [Variant; 10] = [
    NEVER,
    IN_ITS_ORDER,
    ALL_BUT_COMPACTION,
    // What waiting costs.
    Variant {
        name: "wait",
        divergence: Divergence::BLOCK_STACK,
        schedule: Schedule::BlockAge,
        likely: true,
        waits: Waits::Off,
        published: [None, None],
        ..NEVER
    },
    // §6; of the coherent set it has no number.
    TBC,
    PATH_TABLE,
    STEADY,
    model(MODEL_NEVER, Mechanism::Stack, None),
    // §6: 4 % over PDOM; and TBC is 6 % faster than it.
    model("dwf", Mechanism::Formation, Some(1.04)),
    model("dwf-wb", Mechanism::WarpBarriers, Some(1.22 / 1.06)),
];

pub const MODEL_NEVER: &str = "model-never";

/// What the model's never is compared with.
pub const STEADY_NEVER: &str = "never, steady";

const STEADY: Variant = Variant { name: STEADY_NEVER, steady: true, published: [None, None], ..NEVER };

/// A cycle model, of whose paper only the divergent set has a number.
const fn model(name: &'static str, mechanism: Mechanism, published: Option<f64>) -> Variant {
    Variant { name, model: Some(mechanism), steady: true, published: [published, None], ..NEVER }
}

/// One of the variants of CAPRI's paper, in all of which the last block goes first.
const fn sticky(variant: Variant) -> Variant {
    Variant { schedule: Schedule::BlockSticky, ..variant }
}

const fn compacting(name: &'static str, waits: Waits, published: [Option<f64>; 2]) -> Variant {
    sticky(Variant { name, divergence: Divergence::BLOCK_STACK, waits, published, ..NEVER })
}

const fn capri(name: &'static str, entries: u32, history: History, published: [Option<f64>; 2]) -> Variant {
    Variant { capt: Capt { entries, history }, ..compacting(name, Waits::Predict, published) }
}

/// CAPRI whose warps may be more than one basic block ahead.
const fn with_slack(name: &'static str, slack: u32) -> Variant {
    Variant { slack, ..capri(name, 32, History::Latest, [None, None]) }
}

/// With how many more cycles are idle, says the paper. (`capri.txt` §5.2)
const fn idling(over_never: f64, variant: Variant) -> Variant {
    Variant { published_idle: Some(over_never), ..variant }
}

pub const CAPRI_VARIANTS: [Variant; 15] = [
    sticky(NEVER),
    // §5.3 and abstract: CAPRI over PDOM, over TBC and over TBC+.
    idling(1.864, compacting("tbc", Waits::Every, [Some(1.126 / 1.076), Some(0.899)])),
    idling(1.622, compacting("tbc+", Waits::SkipUniform, [Some(1.126 / 1.072), Some(0.911)])),
    idling(1.091, capri("capri-latest-32", 32, History::Latest, [Some(1.126), None])),
    idling(1.137, capri("capri-sticky-32", 32, History::Sticky, [None, None])),
    capri("capri-counter-32", 32, History::Counter, [None, None]),
    capri("capri-latest-1", 1, History::Latest, [None, None]),
    capri("capri-latest-2", 2, History::Latest, [None, None]),
    capri("capri-latest-4", 4, History::Latest, [None, None]),
    capri("capri-latest-8", 8, History::Latest, [None, None]),
    capri("capri-latest-16", 16, History::Latest, [None, None]),
    with_slack("capri-slack-2", 2),
    with_slack("capri-slack-3", 3),
    with_slack("capri-slack-4", 4),
    sticky(PATH_TABLE),
];

/// §4, Figure 11.
const LIKELY_VARIANTS: [Variant; 6] = [
    NEVER,
    IN_ITS_ORDER,
    ALL_BUT_COMPACTION,
    Variant { name: "never, likely", likely: true, published: [None, None], ..NEVER },
    Variant { name: "tbc, no likely", likely: false, published: [None, None], ..TBC },
    Variant { published: [None, None], ..TBC },
];

/// §6 and §6.4, Figure 17, with the paper's means of thread block compaction, of the same in the order of round robin, and
/// of the models.
const fn with_second_level(tbc: f64, in_turn: Option<f64>, models: [Option<f64>; 2]) -> [Variant; 6] {
    [
        NEVER,
        Variant { published: [Some(tbc), None], ..TBC },
        Variant { name: "tbc, round robin", schedule: Schedule::BlockRoundRobin, published: [in_turn, None], ..TBC },
        model(MODEL_NEVER, Mechanism::Stack, None),
        model("dwf", Mechanism::Formation, models[0]),
        model("dwf-wb", Mechanism::WarpBarriers, models[1]),
    ]
}

static SECOND_LEVEL_VARIANTS: [Variant; 6] = with_second_level(1.22, None, [Some(1.04), Some(1.22 / 1.06)]);
static SMALL_SECOND_LEVEL_VARIANTS: [Variant; 6] = with_second_level(1.135, Some(1.15), [None, None]);

/// The table of what one thing alone brings: a variant over another.
pub const ALONE: [(Name, &str, &str); 7] = [
    (Name::TbcPaper, "never, block-age", "never"),
    (Name::TbcPaper, "wait", "never, block-age, likely"),
    (Name::TbcPaper, "tbc", "wait"),
    (Name::TbcPaper, "tbc", "never, block-age, likely"),
    (Name::LikelyPoints, "never, likely", "never"),
    (Name::LikelyPoints, "tbc", "tbc, no likely"),
    (Name::LikelyPoints, "tbc", "never, block-age, likely"),
];

/// Table 2 of the paper on thread block compaction: warps of 32 threads, 8 ALUs.
const TBC_PAPER: Configuration = Configuration {
    name: Name::TbcPaper,
    issue_interval: 4,
    second_level: None,
    variants: &TBC_VARIANTS,
    kernels: &TBC_KERNELS,
};

pub static CONFIGURATIONS: [Configuration; 5] = [
    TBC_PAPER,
    Configuration {
        name: Name::CapriPaper,
        issue_interval: 1,
        variants: &CAPRI_VARIANTS,
        kernels: &CAPRI_KERNELS,
        ..TBC_PAPER
    },
    Configuration { name: Name::LikelyPoints, variants: &LIKELY_VARIANTS, kernels: &LIKELY_KERNELS, ..TBC_PAPER },
    // The paper's has 8 times 1 MB behind 30 caches of 32 KB, then 128 KB.
    Configuration { name: Name::SecondLevel, second_level: Some(8), variants: &SECOND_LEVEL_VARIANTS, ..TBC_PAPER },
    Configuration {
        name: Name::SmallSecondLevel,
        second_level: Some(1),
        variants: &SMALL_SECOND_LEVEL_VARIANTS,
        ..TBC_PAPER
    },
];
