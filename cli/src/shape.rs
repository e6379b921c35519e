//! The options that choose a core, shared by all subcommands that build one.

use crate::mechanisms::mechanisms;
use crate::usage_line;
use anyhow::{Result, anyhow, bail, ensure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use heddle_simt::divergence::Divergence;
use heddle_simt::{
    Backing, BankAddress, Cache, Capt, Coalescing, Compaction, History, Merge, Metrics, Order, PathScheduler, Replay,
    Schedule, Scoreboard, SecondLevel, Shape, SlaveModel, Timing,
};
use heddle_testbench::described::CoreOption;
use heddle_testbench::nearest::{nearest, suggestion};

/// Options of the core's shape.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "The core")]
pub struct ShapeArgs {
    /// First, since what is read of the command line is taken from it.
    #[command(flatten)]
    pub given: Given,
    /// Threads of a warp: 1, 2, 4 … 64 [default: 8]
    #[arg(long, value_name = "N")]
    pub lanes: Option<u32>,
    /// Warps of the core: 1, 2, 4 … 64 [default: 8]
    #[arg(long, value_name = "N")]
    pub warps: Option<u32>,
    /// What decides which threads of a warp run when they disagree
    #[arg(long, default_value = Divergence::default().name(), value_name = "NAME", value_parser = mechanism())]
    pub divergence: Divergence,
    /// Levels of a warp's stack under --divergence stack or dual-path: 1 … lanes - 1
    /// [default: lanes - 1, always enough]; of a block's under block-stack: 1 … threads - 1
    /// [default: 128, or as many as can be needed]
    #[arg(long, value_name = "N")]
    pub levels: Option<u32>,
    /// Under --divergence dual-path, the paths of a warp that are considered for issue: `full`, both, each as if it were
    /// a warp; `side-first`, both, one of them for the warp; `constrained`, one, until it issues an instruction that
    /// takes long; `constrained-miss`, the same, but of accesses only those take long that miss the cache [default:
    /// full]
    #[arg(long, value_name = "NAME", value_parser = choice(PathScheduler::ALL))]
    pub path_scheduler: Option<PathScheduler>,
    /// Whether, under --divergence dual-path, a suspended path runs beside the one that is left of the two above it
    /// [default: off]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub path_forwarding: Option<bool>,
    /// Under --divergence dual-path, control instructions of a warp that may be unresolved: 1, or 2, of which the second is a
    /// conditional branch of the other path, issued again if the first suspends that [default: 1]
    #[arg(long, value_name = "N")]
    pub unresolved: Option<u32>,
    /// What makes one of two paths of a warp wait for a register, under --divergence dual-path: `shadows`, a write of its own
    /// side, or one of the other side from before the paths last changed; `exact`, a write to one of its threads, for studies,
    /// with --replay serialise [default: shadows]
    #[arg(long, value_name = "NAME", value_parser = choice(Scoreboard::ALL))]
    pub scoreboard: Option<Scoreboard>,
    /// Under --divergence block-stack, where the warps of a block wait for each other to form new ones: `every`, at
    /// every branch and jump; `always`, at every conditional branch; `skip-uniform`, at those that may diverge the block;
    /// `predict`, where it was worth it before; `off`, as skip-uniform, but threads stay in their warps [default:
    /// skip-uniform]
    #[arg(long, value_name = "NAME", value_parser = choice(Compaction::ALL))]
    pub compaction: Option<Compaction>,
    /// The prediction table of --compaction predict: branches that it holds, 1 … 32, and what it knows of each, such as
    /// 8 or 8,history=counter: `latest`, `sticky` or `counter` [default: 32,history=latest]
    #[arg(long, value_name = "N[,history=NAME]", value_parser = capt)]
    pub capt: Option<Capt>,
    /// Basic blocks that a warp may be ahead of its block under --compaction predict, 1 … 4: it passes branches and
    /// jumps that the side table calls uniform, but for calls and returns [default: 1, it passes none]
    #[arg(long, value_name = "N")]
    pub slack: Option<u32>,
    /// Whether threads also reconverge at likely-convergence points, under --divergence stack or block-stack
    /// [default: off]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub likely: Option<bool>,
    /// Bits of the call depth that paths are sorted by: 1 … 16 [default: 8]
    #[arg(long, value_name = "N")]
    pub depth_bits: Option<u32>,
    /// Convergence barriers of a warp under --divergence path-table: 0 … 16 [default: 0, their instructions do nothing]
    #[arg(long, value_name = "N")]
    pub convergence_barriers: Option<u32>,
    /// Outcomes of a warp without an arrival after which threads that wait at a convergence barrier go on, and after
    /// which paths give way to others, with these or --fair: a power of two, 2 … 65536 [default: 4096]
    #[arg(long, value_name = "N")]
    pub patience: Option<u32>,
    /// Whether paths of a warp give way to each other and warps take turns, so that threads may wait for others of their
    /// warp, as at a lock; under --divergence path-table and arbiter [default: off]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub fair: Option<bool>,
    /// Where paths of a warp become one: `pc`, where they have the same pc and call depth; `barriers`, at convergence
    /// barriers only, as on hardware that does not compare pcs, with --replay serialise [default: pc]
    #[arg(long, value_name = "NAME", value_parser = choice(Merge::ALL))]
    pub merge: Option<Merge>,
    /// Which of a warp's paths runs, under --divergence path-table: `depth-pc`, the one at the greatest call depth, of
    /// these the one at the least pc; `pc`, the one at the least pc; `swap`, `minority`, `majority`, of a branch the side
    /// at the lesser pc, with fewer or with more threads, before what was there: they and `breadth-first`, each after the
    /// other and with --fair on, bring threads together only at convergence barriers [default: depth-pc]
    #[arg(long, value_name = "NAME", value_parser = choice(Order::ALL))]
    pub order: Option<Order>,
    /// Entries of a warp's instruction buffer: 4, 8 or 16 [default: 4]
    #[arg(long, value_name = "N")]
    pub buffer: Option<u32>,
    /// Cycles from one issue to the next: 1, 2, 4 or 8, for studies: a warp of 32 threads takes 4 on a core of 8 ALUs
    /// [default: 1]
    #[arg(long, value_name = "N")]
    pub issue_interval: Option<u32>,
    /// Cycles from an instruction of the ALU or the multiplier to the first that needs its result: 6 … 64, for studies of
    /// cores with longer pipelines [default: 6]
    #[arg(long, value_name = "N")]
    pub alu_latency: Option<u32>,
    /// The warp that issues when several could: `loose-round-robin`, the next after the last one; `greedy-then-oldest`,
    /// the last one until it stalls, then the one that was started first; `sticky`, the last one until it stalls, then
    /// the next; `block-age`, one of the block that was started first; `block-round-robin`, of another block every
    /// cycle; `block-sticky`, of the last block until all of it stalls
    #[arg(long, value_name = "NAME", value_parser = choice(Schedule::ALL))]
    pub schedule: Option<Schedule>,
    /// The address of a register bank: `shared`, one for all lanes; `per-lane`, one per lane
    #[arg(long, value_name = "NAME", value_parser = choice(BankAddress::ALL))]
    pub bank_address: Option<BankAddress>,
    /// Whether the core has multiplier and divider, RV32M [default: on]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub multiply: Option<bool>,
    /// Bytes of memory, with K or M, a power of two; unless given, enough for 256K and all stacks
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub memory: Option<u32>,
    /// Bytes of instruction memory, a power of two; unless given, 64K, or all memory if that is less
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub program: Option<u32>,
    /// Bytes of stack per thread, a power of two
    #[arg(long, default_value = "1K", value_name = "BYTES", value_parser = bytes)]
    pub stack: u32,
    /// Lanes that go to memory together: `aligned`, each to its own bank or with the first lane; `full`, all within a
    /// line
    #[arg(long, value_name = "NAME", value_parser = choice(Coalescing::ALL))]
    pub coalescing: Option<Coalescing>,
    /// The lanes that do not: `split`, their path splits off; `serialise`, they follow while the warp runs on, as it
    /// must under --divergence stack and block-stack [default: split; serialise for stack, dual-path and block-stack]
    #[arg(long, value_name = "NAME", value_parser = choice(Replay::ALL))]
    pub replay: Option<Replay>,
    /// Loads that may be under way at once: a power of two, 2 … 64 [default: 8]
    #[arg(long, value_name = "N")]
    pub loads: Option<u32>,
    /// Memory instructions that may wait for memory: a power of two, 2 … 64
    #[arg(long, value_name = "N")]
    pub requests: Option<u32>,
    /// Bytes of memory shared by the threads of a block, for all resident blocks together, a power of two; 0 for none
    /// [default: 64 a thread, at least 8K]
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    pub scratchpad: Option<u32>,
    /// Whether the core has atomic memory operations [default: on]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub atomics: Option<bool>,
    /// Whether the core has `lr.w` and `sc.w`, which need atomic memory operations [default: off]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub reservations: Option<bool>,
    /// Whether the core has votes and shuffles among the threads of a warp, and `sync`, by which they wait for each other
    /// under path tables with --convergence-barriers [default: off]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub warp_primitives: Option<bool>,
    /// Whether the core has the `barrier` instruction [default: on]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub barriers: Option<bool>,
    /// Whether programs can read counters of cycles and instructions [default: on]
    #[arg(long, value_name = "on|off", value_parser = on_or_off)]
    pub counters: Option<bool>,
    /// A data cache of so many bytes, such as 4K or 4K,ways=4,line=2,misses=8; a line in memory lines of `lanes` words
    /// [ways: 4, line: 2, misses: 4]
    #[arg(long, value_name = "BYTES[,FIELD=N]…", value_parser = cache)]
    pub cache: Option<Cache>,
    /// A second level of so many bytes behind it and before --memory-model, for simulation, such as 64K or
    /// 1M,ways=64,line=1,latency=100,misses=32: least recently used, write-back; cycles from a request to a response that
    /// is there; what is not takes memory's cycles more, and only that takes its interval
    /// [ways: 8, line: 1, latency: 20, misses: 16]
    #[arg(long, value_name = "BYTES[,FIELD=N]…", value_parser = second_level)]
    pub second_level: Option<SecondLevel>,
    /// Memory outside, on a Wishbone B4 bus (pipelined) of so many data bits: a power of two, 32 … 32 × lanes. In
    /// simulations there is a memory on it, whose timing --memory-model says
    #[arg(long, value_name = "BITS")]
    pub bus: Option<u32>,
    /// Memory that answers later, for simulation, such as latency=100 or latency=80,jitter=31,interval=2,seed=7: cycles
    /// to a response, random cycles more at most, cycles from one request to the next
    /// [latency: 1, jitter: 0, interval: 1, seed: 1]
    #[arg(long, value_name = "FIELD=N,…", value_parser = timing)]
    pub memory_model: Option<Timing>,
    /// Seed of random start values and of kernels' inputs
    #[arg(long, default_value_t = 1, value_name = "N")]
    pub seed: u64,
}

/// Those options of the core that stand on the command line, as they stand there.
#[derive(Clone, Debug, Default)]
pub struct Given(Vec<String>);

impl FromArgMatches for Given {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Given, clap::Error> {
        let mut words = Vec::new();
        for argument in ShapeArgs::augment_args(Command::new("core")).get_arguments() {
            let id = argument.get_id().as_str();
            if matches.value_source(id) != Some(ValueSource::CommandLine) {
                continue;
            }
            if let (Some(name), Some(values)) = (argument.get_long(), matches.get_raw(id)) {
                words.extend(values.map(|value| format!("--{name}={}", value.to_string_lossy())));
            }
        }
        Ok(Given(words))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Given::from_arg_matches(matches)?;
        Ok(())
    }
}

/// It has no options of its own.
impl Args for Given {
    fn augment_args(command: Command) -> Command {
        command
    }

    fn augment_args_for_update(command: Command) -> Command {
        command
    }
}

/// What a core that is built may have beside its [shape](ShapeArgs).
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "The core")]
pub struct HardwareArgs {
    /// Build the counters of what the core does into it, as simulations have them: instructions, where issue slots
    /// went, paths … A host tells them, and `heddle host` reports them as `heddle run` does
    #[arg(long)]
    pub metrics: bool,
}

impl HardwareArgs {
    /// The core of this shape as it is built.
    pub fn of(self, shape: &Shape) -> Shape {
        if self.metrics { Shape { metrics: Metrics::Built, ..shape.clone() } } else { shape.hardware() }
    }
}

impl ShapeArgs {
    /// The one shape that lanes or warps are given of; with neither, one for each of `usual`.
    pub fn or(&self, usual: &[(u32, u32)]) -> Result<Vec<Shape>> {
        if self.lanes.is_some() || self.warps.is_some() {
            return Ok(vec![self.shape()?]);
        }
        let shape = |&(lanes, warps)| ShapeArgs { lanes: Some(lanes), warps: Some(warps), ..self.clone() }.shape();
        usual.iter().map(shape).collect()
    }

    /// Those of these options that stand on the command line: `--lanes=4`.
    pub fn given(&self) -> &[String] {
        &self.given.0
    }

    /// These options, if the command line has any of them but the seed, which is no option of the core.
    pub fn asked(&self) -> Option<&ShapeArgs> {
        self.given.0.iter().any(|option| !option.starts_with("--seed=")).then_some(self)
    }

    /// These options, and those of a host description where the command line has none.
    pub fn over(&self, core: &[CoreOption]) -> Result<ShapeArgs> {
        if core.is_empty() {
            return Ok(self.clone());
        }
        let command = || {
            let command = Command::new("core").no_binary_name(true).args_override_self(true);
            ShapeArgs::augment_args(command)
        };
        let options = command();
        let names =
            || options.get_arguments().filter_map(|argument| argument.get_long()).filter(|name| *name != "seed");
        let mut words = Vec::new();
        for CoreOption { key, value, place } in core {
            if key == "seed" {
                bail!("{place}: the seed is no option of the core: it is `--seed` of the run");
            }
            if !names().any(|name| name == key) {
                bail!("{place}: the core has no option `{key}`{}", suggestion(nearest(key, names())));
            }
            let word = format!("--{key}={value}");
            command().try_get_matches_from([&word]).map_err(|error| anyhow!("{place}: {}", usage_line(&error)))?;
            words.push(word);
        }
        let with = |words: &[String]| -> Result<ShapeArgs> {
            let matches = command().try_get_matches_from(words.iter().chain(&self.given.0))?;
            Ok(ShapeArgs { seed: self.seed, ..ShapeArgs::from_arg_matches(&matches)? })
        };
        let all = with(&words)?;
        let Err(why) = all.shape() else { return Ok(all) };
        // It is the option without which there is a core.
        for (at, CoreOption { place, .. }) in core.iter().enumerate() {
            let others = [&words[..at], &words[at + 1..]].concat();
            if with(&others).is_ok_and(|others| others.shape().is_ok()) {
                bail!("{place}: {why:#}");
            }
        }
        Ok(all)
    }

    /// The shape, if it can be built.
    pub fn shape(&self) -> Result<Shape> {
        let Shape { lanes, warps, .. } = Shape::default();
        let (lanes, warps) = (self.lanes.unwrap_or(lanes), self.warps.unwrap_or(warps));
        let scratchpad = Shape::default_scratchpad(lanes, warps);
        let most = Shape { lanes, warps, stack: self.stack, memory: MOST_MEMORY, scratchpad, ..Shape::default() };
        let most = most.with_divergence(self.divergence);
        if self.memory.is_none() {
            most.check()?;
        }
        let memory = self.memory.unwrap_or_else(|| Shape::default_memory(lanes, warps, self.stack));
        let memory = if self.memory.is_none() { memory.min(MOST_MEMORY) } else { memory };
        let program = self.program.unwrap_or_else(|| most.program.min(memory));
        let order = self.order.unwrap_or(most.order);
        let shape = Shape {
            memory,
            program,
            levels: self.levels,
            path_scheduler: self.path_scheduler.unwrap_or(most.path_scheduler),
            path_forwarding: self.path_forwarding.unwrap_or(most.path_forwarding),
            unresolved: self.unresolved.unwrap_or(most.unresolved),
            scoreboard: self.scoreboard.unwrap_or(most.scoreboard),
            compaction: self.compaction.unwrap_or(most.compaction),
            capt: self.capt.unwrap_or(most.capt),
            slack: self.slack.unwrap_or(most.slack),
            likely: self.likely.unwrap_or(most.likely),
            depth_bits: self.depth_bits.unwrap_or(most.depth_bits),
            convergence_barriers: self.convergence_barriers.unwrap_or(most.convergence_barriers),
            patience: self.patience.unwrap_or(most.patience),
            fair: self.fair.unwrap_or(most.fair || order.takes_turns()),
            merge: self.merge.unwrap_or(most.merge),
            order,
            buffer: self.buffer.unwrap_or(most.buffer),
            issue_interval: self.issue_interval.unwrap_or(most.issue_interval),
            alu_latency: self.alu_latency.unwrap_or(most.alu_latency),
            schedule: self.schedule.unwrap_or(most.schedule),
            bank_address: self.bank_address.unwrap_or(most.bank_address),
            multiply: self.multiply.unwrap_or(most.multiply),
            coalescing: self.coalescing.unwrap_or(most.coalescing),
            replay: self.replay.unwrap_or(most.replay),
            loads: self.loads.unwrap_or(most.loads),
            requests: self.requests.unwrap_or(most.requests),
            scratchpad: self.scratchpad.unwrap_or(most.scratchpad),
            atomics: self.atomics.unwrap_or(most.atomics),
            reservations: self.reservations.unwrap_or(most.reservations),
            warp_primitives: self.warp_primitives.unwrap_or(most.warp_primitives),
            barriers: self.barriers.unwrap_or(most.barriers),
            counters: self.counters.unwrap_or(most.counters),
            cache: self.cache,
            second_level: self.second_level,
            backing: self.backing(),
            ..most
        };
        shape.check()?;
        Ok(shape)
    }

    fn backing(&self) -> Backing {
        match (self.bus, self.memory_model) {
            (None, None) => Backing::OnChip,
            (None, Some(timing)) => Backing::Model(timing),
            (Some(width), timing) => {
                let timing = timing.unwrap_or(Timing::FASTEST);
                Backing::Wishbone { width, slave: SlaveModel { timing, error: None } }
            }
        }
    }
}

/// Refuses to build a core with these options.
pub fn buildable(second_level: bool, memory_model: bool) -> Result<()> {
    ensure!(!second_level, "--second-level is for simulations only: it has times and no data, so nothing to build");
    ensure!(!memory_model, "--memory-model is for simulations only: a model of a slow memory is nothing to build");
    Ok(())
}

/// The largest memory that a shape may have.
const MOST_MEMORY: u32 = 64 << 20;

/// One of the mechanisms.
fn mechanism() -> impl TypedValueParser<Value = Divergence> {
    choice(mechanisms().iter().map(|mechanism| (mechanism.name(), *mechanism)).collect::<Vec<_>>())
}

/// One of the choices that the list names.
fn choice<T, L>(all: L) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
    L: AsRef<[(&'static str, T)]> + Clone + Send + Sync + 'static,
{
    let names: Vec<&str> = all.as_ref().iter().map(|(name, _)| *name).collect();
    let find = move |name: String| all.as_ref().iter().find(|(other, _)| *other == name).map(|(_, choice)| *choice);
    PossibleValuesParser::new(names).try_map(move |name| find(name).ok_or("not in the list"))
}

/// A number of bytes: `65536`, `64K`, `1M`.
fn bytes(text: &str) -> Result<u32, String> {
    let (digits, unit) = match text.strip_suffix(['K', 'k']) {
        Some(digits) => (digits, 1 << 10),
        None => text.strip_suffix(['M', 'm']).map_or((text, 1), |digits| (digits, 1 << 20)),
    };
    let wanted = "wanted is a number of bytes such as 65536, 64K or 1M";
    let number: u64 = digits.parse().map_err(|_| wanted.to_string())?;
    let bytes = number.checked_mul(unit).and_then(|bytes| u32::try_from(bytes).ok());
    bytes.ok_or_else(|| "more than any memory may have, which is 64M".to_string())
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("wanted is `on` or `off`".into()),
    }
}

/// A cache: `4K,ways=2`.
fn cache(text: &str) -> Result<Cache, String> {
    let (size, rest) = text.split_once(',').unwrap_or((text, ""));
    let mut cache = Cache { size: bytes(size)?, ways: 4, line: 2, misses: 4 };
    let fields = [("ways", &mut cache.ways), ("line", &mut cache.line), ("misses", &mut cache.misses)];
    set_fields(rest, fields)?;
    Ok(cache)
}

/// A second level of so many bytes, the rest of it as it is unless said otherwise.
pub fn second_level_of(size: u32) -> SecondLevel {
    SecondLevel { cache: Cache { size, ways: 8, line: 1, misses: 16 }, latency: 20 }
}

/// A second level: `64K,latency=40`.
fn second_level(text: &str) -> Result<SecondLevel, String> {
    let (size, rest) = text.split_once(',').unwrap_or((text, ""));
    let mut level = second_level_of(bytes(size)?);
    let SecondLevel { cache: Cache { ways, line, misses, .. }, latency } = &mut level;
    set_fields(rest, [("ways", ways), ("line", line), ("latency", latency), ("misses", misses)])?;
    Ok(level)
}

/// A prediction table: `8,history=counter`.
fn capt(text: &str) -> Result<Capt, String> {
    let (entries, history) = text.split_once(",history=").unwrap_or((text, History::Latest.name()));
    let entries = entries.parse().map_err(|_| format!("`{entries}`: wanted is a number of branches, such as 8"))?;
    let found = History::ALL.iter().find(|(name, _)| *name == history);
    let names = History::ALL.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
    let (_, history) = found.ok_or_else(|| format!("history: `{history}` is none of {names}"))?;
    Ok(Capt { entries, history: *history })
}

/// The timing of a model: `latency=100,jitter=15`.
fn timing(text: &str) -> Result<Timing, String> {
    let mut t = Timing::FASTEST;
    let fields =
        [("latency", &mut t.latency), ("jitter", &mut t.jitter), ("interval", &mut t.interval), ("seed", &mut t.seed)];
    set_fields(text, fields)?;
    Ok(t)
}

/// Sets those of the fields that a text such as `ways=4,line=2` names.
fn set_fields<const N: usize>(text: &str, fields: [(&str, &mut u32); N]) -> Result<(), String> {
    let mut fields = Vec::from(fields);
    let wanted = fields.iter().map(|(name, _)| format!("{name}=N")).collect::<Vec<_>>().join(", ");
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (name, number) = part.split_once('=').ok_or_else(|| format!("`{part}`: wanted is {wanted}"))?;
        let field = fields.iter_mut().find(|(field, _)| *field == name);
        let (_, field) = field.ok_or_else(|| format!("there is no field `{name}`: wanted is {wanted}"))?;
        **field = number.parse().map_err(|_| format!("{name}: `{number}` is no number"))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[test]
    fn bytes_have_units() {
        assert_eq!(bytes("4096"), Ok(4096));
        assert_eq!(bytes("64K"), Ok(65536));
        assert_eq!(bytes("2m"), Ok(2 << 20));
        for wrong in ["", "K", "1G", "-1", "1.5M", "64 K", "0x100"] {
            assert!(bytes(wrong).unwrap_err().starts_with("wanted"), "{wrong}");
        }
        assert!(bytes("99999999999M").unwrap_err().contains("64M"));
        assert!(bytes("18446744073709551615M").unwrap_err().contains("64M"));
    }

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        shape: ShapeArgs,
    }

    fn options(text: &str) -> Result<ShapeArgs, String> {
        let line = Line::try_parse_from(std::iter::once("heddle").chain(text.split_whitespace()));
        line.map(|line| line.shape).map_err(|error| error.to_string())
    }

    fn args(lanes: u32, warps: u32, memory: Option<u32>, stack: u32) -> ShapeArgs {
        ShapeArgs { lanes: Some(lanes), warps: Some(warps), memory, stack, ..options("").unwrap() }
    }

    #[test]
    fn the_memory_system_is_chosen() {
        let shape = |text: &str| options(text).unwrap().shape().unwrap();
        assert_eq!(shape(""), Shape::default());
        let s = shape("--coalescing full --replay serialise --requests 16 --scratchpad 4K --atomics on");
        assert_eq!((s.coalescing, s.replay, s.requests), (Coalescing::Full, Replay::Serialise, 16));
        assert_eq!((s.scratchpad, s.atomics), (4096, true));
        assert!(!shape("--atomics off").atomics);
        assert!(shape("--reservations on").reservations);
        assert_eq!(shape("--cache 8K").cache, Some(Cache { size: 8192, ways: 4, line: 2, misses: 4 }));
        let s = shape("--cache 4K,ways=1,line=8,misses=2 --memory-model latency=80,jitter=31,interval=2,seed=7");
        assert_eq!(s.cache, Some(Cache { size: 4096, ways: 1, line: 8, misses: 2 }));
        let timing = Timing { latency: 80, jitter: 31, interval: 2, seed: 7 };
        assert_eq!(s.backing, Backing::Model(timing));
        let s = shape("--second-level 32K,ways=16,latency=60,misses=32 --memory-model latency=80");
        let second = Cache { size: 32768, ways: 16, line: 1, misses: 32 };
        assert_eq!(s.second_level, Some(SecondLevel { cache: second, latency: 60 }));
        let on_a_bus = |width, timing| Backing::Wishbone { width, slave: SlaveModel { timing, error: None } };
        assert_eq!(shape("--bus 64").backing, on_a_bus(64, Timing::FASTEST));
        let s = shape("--bus 32 --memory-model latency=80,jitter=31,interval=2,seed=7");
        assert_eq!(s.backing, on_a_bus(32, timing));
    }

    #[test]
    fn the_options_of_a_shape_choose_it() {
        let cache = Some(Cache { size: 8192, ways: 2, line: 1, misses: 8 });
        let backing = Backing::Model(Timing { latency: 80, jitter: 31, interval: 2, seed: 7 });
        let other = Shape { depth_bits: 4, buffer: 8, loads: 16, requests: 4, stack: 512, ..Shape::small(32, 2) };
        let other = Shape { coalescing: Coalescing::Full, replay: Replay::Serialise, cache, backing, ..other };
        let other = Shape { schedule: Schedule::Sticky, issue_interval: 4, alu_latency: 20, ..other };
        let other = Shape { bank_address: BankAddress::PerLane, multiply: false, program: 8192, ..other };
        let slave = SlaveModel { timing: Timing { latency: 9, ..Timing::FASTEST }, error: None };
        let on_a_bus = Shape { backing: Backing::Wishbone { width: 64, slave }, ..Shape::default() };
        let stack = Shape { levels: Some(3), likely: true, ..Shape::default().with_divergence(Divergence::STACK) };
        let dual_path = Shape::default().with_divergence(Divergence::DUAL_PATH);
        let path_scheduler = PathScheduler::Constrained;
        let exact = Shape { scoreboard: Scoreboard::Exact, unresolved: 2, ..dual_path.clone() };
        let dual_path = Shape { path_scheduler, path_forwarding: true, replay: Replay::Split, ..dual_path };
        let second = Cache { size: 16384, ways: 64, line: 2, misses: 8 };
        let second_level = Shape { second_level: Some(SecondLevel { cache: second, latency: 9 }), ..other.clone() };
        let shapes =
            [Shape::default(), Shape::new(64, 1), Shape::small(1, 1), other, on_a_bus, stack, exact, dual_path];
        for shape in shapes.into_iter().chain([second_level]) {
            assert_eq!(options(&shape.options()).unwrap().shape().unwrap(), shape, "{}", shape.options());
        }
    }

    #[test]
    fn mistakes_in_fields_name_the_option_and_the_field() {
        let error = |text: &str| options(text).err().unwrap_or_else(|| panic!("{text} is accepted"));
        for (text, option, what) in [
            ("--cache 4K,way=2", "--cache", "there is no field `way`: wanted is ways=N, line=N, misses=N"),
            ("--cache 4K,2", "--cache", "`2`: wanted is ways=N"),
            ("--cache ways=2", "--cache", "wanted is a number of bytes"),
            ("--second-level 64K,way=2", "--second-level", "wanted is ways=N, line=N, latency=N, misses=N"),
            ("--memory-model latency=many", "--memory-model", "latency: `many` is no number"),
            ("--memory-model 100", "--memory-model", "`100`: wanted is latency=N"),
            ("--atomics yes", "--atomics", "wanted is `on` or `off`"),
            ("--replay later", "--replay", "split, serialise"),
        ] {
            let error = error(text);
            assert!(error.contains(option) && error.contains(what), "{text}: {error}");
        }
        let error = |text: &str| options(text).unwrap().shape().unwrap_err().to_string();
        assert!(error("--cache 4K,ways=3").starts_with("cache.ways = 3: must be a power of two"));
        let second = |text: &str| error(&format!("--second-level {text} --memory-model latency=9"));
        assert!(second("64K,ways=3").starts_with("second_level.ways = 3: must be a power of two from 1 to 64"));
        assert!(second("64K,latency=0").starts_with("second_level.latency = 0: must be from 1 to 4096"));
        assert!(second("64K,misses=128").starts_with("second_level.misses = 128: must be a power of two from 1 to 64"));
        let half = "second_level.size = 524288: must be a power of two from 256 to 262144, a set and half of memory";
        assert_eq!(second("512K"), half);
        let sets = "second_level.size = 262144: must be a power of two from 4 to 16384, a set and 4096 sets";
        assert_eq!(second("256K,ways=1 --lanes 1 --memory 1M"), sets);
        assert!(error("--second-level 64K").starts_with("second_level = 65536: needs the model of a memory"));
        assert!(error("--second-level 64K --bus 64").starts_with("second_level = 65536: there is none before a bus"));
        assert!(error("--memory-model latency=0").starts_with("model.latency = 0: must be from 1 to 4096"));
        assert!(error("--likely on").starts_with("likely = on: divergence = path-table has no"));
        assert!(error("--path-forwarding on").starts_with("path_forwarding = on: divergence = path-table has no"));
        assert!(error("--requests 3").starts_with("requests = 3: "));
        assert_eq!(error("--bus 512"), "wishbone.width = 512: must be a power of two from 32 to 256");
    }

    #[test]
    fn memory_grows_with_the_shape_and_the_program_shrinks_with_memory() {
        assert_eq!(args(8, 8, None, 1024).shape().unwrap(), Shape::default());
        assert_eq!(args(64, 64, None, 1024).shape().unwrap(), Shape::new(64, 64));
        let small = args(1, 1, Some(4096), 1024).shape().unwrap();
        assert_eq!((small.memory, small.program), (4096, 4096));
    }

    #[test]
    fn a_description_has_options_and_the_command_line_wins() {
        let core =
            |key: &str, value: &str| CoreOption { key: key.into(), value: value.into(), place: "h.toml:3".into() };
        let file = [core("lanes", "4"), core("warps", "2"), core("cache", "4K,ways=2"), core("divergence", "stack")];
        let over = |text: &str| options(text).unwrap().over(&file).unwrap();
        let of_file = over("");
        assert_eq!((of_file.lanes, of_file.warps, of_file.seed), (Some(4), Some(2), 1));
        assert_eq!((of_file.cache.map(|cache| cache.ways), of_file.divergence.name()), (Some(2), "stack"));
        let of_line = over("--lanes 8 --divergence path-table --seed 7");
        assert_eq!((of_line.lanes, of_line.warps, of_line.seed), (Some(8), Some(2), 7));
        assert_eq!(of_line.divergence, Divergence::default());
        let error = |key: &str, value: &str| options("").unwrap().over(&[core(key, value)]).unwrap_err().to_string();
        assert_eq!(error("lane", "4"), "h.toml:3: the core has no option `lane`; did you mean `lanes`?");
        assert_eq!(error("seed", "4"), "h.toml:3: the seed is no option of the core: it is `--seed` of the run");
        assert!(error("lanes", "3").starts_with("h.toml:3: "), "{}", error("lanes", "3"));
        let of_line = options("--lanes 3").unwrap().over(&[core("warps", "4")]).unwrap();
        assert!(of_line.shape().is_err());
        assert!(error("lanes", "x").starts_with("h.toml:3: invalid value 'x' for '--lanes <N>'"));
    }

    #[test]
    fn errors_name_the_option() {
        let error = |args: ShapeArgs| args.shape().unwrap_err().to_string();
        assert_eq!(error(args(3, 8, None, 1024)), "lanes = 3: must be a power of two from 1 to 64");
        assert_eq!(error(args(8, 128, None, 1024)), "warps = 128: must be a power of two from 1 to 64");
        assert!(error(args(u32::MAX, u32::MAX, None, u32::MAX)).starts_with("lanes = "));
        assert!(error(args(64, 64, None, 1 << 20)).starts_with("memory = "));
        assert!(error(args(8, 8, Some(5000), 1024)).starts_with("memory = 5000"));
    }
}
