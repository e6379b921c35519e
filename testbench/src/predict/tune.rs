//! What the threads of each region should wait for, found by running. The paper leaves it open (§4.6, Figure 9).
//!
//! First each region is tried alone, then the program as its directives have it. From the fastest of these on, one
//! region at a time is changed, until no change of one region makes the program faster (coordinate descent).

use serde::{Serialize, Serializer};
use std::fmt;

/// A region, by its name and the instruction where its threads wait.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Region {
    /// The directives', or what it was found as.
    pub name: String,
    /// Address in the input.
    pub point: u32,
}

/// What its threads wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Choice {
    /// For nothing: the region is left alone.
    Alone,
    /// For so many threads.
    Threads(u32),
    /// For all of the region.
    All,
}

impl Choice {
    /// As directives have it.
    pub(super) fn of_threshold(threshold: u32) -> Choice {
        if threshold == 0 { Choice::All } else { Choice::Threads(threshold) }
    }

    /// As [`Choice::of_threshold`]; none if nothing is placed.
    pub(super) fn threshold(self) -> Option<u32> {
        match self {
            Choice::Alone => None,
            Choice::Threads(threads) => Some(threads),
            Choice::All => Some(0),
        }
    }

    /// Of a warp with so many threads: as many as there are is all.
    fn of_warp(self, lanes: u32) -> Choice {
        match self {
            Choice::Threads(threads) if threads >= lanes => Choice::All,
            other => other,
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Alone => f.write_str("none"),
            Choice::Threads(threads) => write!(f, "{threads}"),
            Choice::All => f.write_str("all"),
        }
    }
}

impl Serialize for Choice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// A program that was run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// For each region.
    pub choices: Vec<Choice>,
    /// In each draw.
    pub cycles: Vec<u64>,
}

/// What the search came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuned {
    /// In order, first the program without regions.
    pub tried: Vec<Tried>,
    /// The fastest of those that are faster than that in every draw, or that itself.
    pub chosen: usize,
}

/// Searches for the fastest program. `asked` is what directives say, for each region; `run` gives for each program its
/// cycles in each draw, and is asked for many at a time, none of them twice.
pub fn search<E>(
    asked: &[Choice],
    lanes: u32,
    mut run: impl FnMut(&[Vec<Choice>]) -> Result<Vec<Vec<u64>>, E>,
) -> Result<Tuned, E> {
    let asked: Vec<Choice> = asked.iter().map(|asked| asked.of_warp(lanes)).collect();
    let ladders: Vec<Vec<Choice>> = asked.iter().map(|&asked| ladder(asked, lanes)).collect();
    let changed = |from: &[Choice], region: usize| -> Vec<Vec<Choice>> {
        let with = |&choice: &Choice| {
            let mut choices = from.to_vec();
            choices[region] = choice;
            choices
        };
        ladders[region].iter().map(with).collect()
    };
    let alone = vec![Choice::Alone; asked.len()];
    let each = (0..asked.len()).flat_map(|region| changed(&alone, region));
    let first = [alone.clone()].into_iter().chain(each).chain([asked.clone()]).collect();
    let mut tried = Vec::new();
    let mut best = try_all(&mut tried, first, &mut run)?;
    loop {
        let before = best;
        for region in 0..asked.len() {
            let wanted = changed(&tried[best].choices, region);
            best = try_all(&mut tried, wanted, &mut run)?;
        }
        if best == before {
            break;
        }
    }
    let gains = |(_, one): &(usize, &Tried)| one.cycles.iter().zip(&tried[0].cycles).all(|(now, before)| now < before);
    let chosen = fastest(tried.iter().enumerate().filter(gains)).unwrap_or(0);
    Ok(Tuned { tried, chosen })
}

/// Runs those that have not been run, and says which is the fastest of all.
fn try_all<E>(
    tried: &mut Vec<Tried>,
    wanted: Vec<Vec<Choice>>,
    run: &mut impl FnMut(&[Vec<Choice>]) -> Result<Vec<Vec<u64>>, E>,
) -> Result<usize, E> {
    let mut new: Vec<Vec<Choice>> = Vec::new();
    for choices in wanted {
        if !new.contains(&choices) && !tried.iter().any(|tried| tried.choices == choices) {
            new.push(choices);
        }
    }
    if !new.is_empty() {
        let cycles = run(&new)?;
        tried.extend(new.into_iter().zip(cycles).map(|(choices, cycles)| Tried { choices, cycles }));
    }
    Ok(fastest(tried.iter().enumerate()).unwrap_or(0))
}

/// What is tried for a region: nothing, 2, 4, 8 … threads, all, and what was asked for.
fn ladder(asked: Choice, lanes: u32) -> Vec<Choice> {
    let thresholds = (1..).map(|power| 1 << power).take_while(|&threads| threads < lanes).map(Choice::Threads);
    let mut ladder: Vec<Choice> = thresholds.chain([Choice::Alone, Choice::All, asked]).collect();
    ladder.sort();
    ladder.dedup();
    ladder
}

/// The first with the least geometric mean of cycles.
fn fastest<'a>(tried: impl Iterator<Item = (usize, &'a Tried)>) -> Option<usize> {
    let mean = |tried: &Tried| tried.cycles.iter().map(|&cycles| (cycles as f64).ln()).sum::<f64>();
    tried.min_by(|(_, one), (_, other)| mean(one).total_cmp(&mean(other))).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::Choice::*;
    use super::*;
    use std::collections::BTreeSet;
    use std::convert::Infallible;

    /// Searches with a function in place of runs. No program may be asked for twice.
    fn tuned(asked: &[Choice], lanes: u32, cycles: impl Fn(&[Choice]) -> Vec<u64>) -> Tuned {
        let mut seen = BTreeSet::new();
        let run = |programs: &[Vec<Choice>]| -> Result<Vec<Vec<u64>>, Infallible> {
            assert!(!programs.is_empty() && programs.iter().all(|program| seen.insert(program.clone())));
            Ok(programs.iter().map(|program| cycles(program)).collect())
        };
        let Ok(tuned) = search(asked, lanes, run);
        assert_eq!(tuned.tried.len(), seen.len());
        tuned
    }

    fn chosen(tuned: &Tuned) -> &[Choice] {
        &tuned.tried[tuned.chosen].choices
    }

    #[test]
    fn a_ladder_goes_up_to_the_warp() {
        assert_eq!(ladder(All, 1), [Alone, All]);
        assert_eq!(ladder(All, 2), [Alone, All]);
        assert_eq!(ladder(Threads(4), 8), [Alone, Threads(2), Threads(4), All]);
        assert_eq!(ladder(Threads(5), 8), [Alone, Threads(2), Threads(4), Threads(5), All]);
        assert_eq!(ladder(All, 64).len(), 7);
        assert_eq!([Threads(7), Threads(8), Threads(64), All].map(|c| c.of_warp(8)), [Threads(7), All, All, All]);
    }

    #[test]
    fn the_fastest_threshold_of_one_region_is_found_in_one_round_of_runs() {
        let cycles = |choices: &[Choice]| match choices[0] {
            Alone => vec![100, 200],
            Threads(4) => vec![50, 150],
            Threads(_) => vec![90, 150],
            All => vec![200, 300],
        };
        let tuned = tuned(&[All], 16, cycles);
        assert_eq!(chosen(&tuned), [Threads(4)]);
        let order: Vec<Choice> = tuned.tried.iter().map(|tried| tried.choices[0]).collect();
        assert_eq!(order, [Alone, Threads(2), Threads(4), Threads(8), All]);
        assert_eq!(tuned.tried[4].cycles, [200, 300]);
    }

    /// The mean decides among those that gain in every draw.
    #[test]
    fn what_gains_in_some_draws_only_is_not_chosen() {
        let some = |choices: &[Choice]| match choices[0] {
            Alone => vec![100, 100],
            Threads(_) => vec![10, 101],
            All => vec![80, 90],
        };
        assert_eq!(chosen(&tuned(&[All], 4, some)), [All]);
        let none = |choices: &[Choice]| if choices[0] == Alone { vec![100, 100] } else { vec![10, 100] };
        let tuned = tuned(&[Threads(3)], 4, none);
        assert_eq!((chosen(&tuned), tuned.chosen), (&[Alone][..], 0));
        assert_eq!(tuned.tried.len(), 4);
    }

    /// What the second region should wait for depends on the first, and the other way round.
    #[test]
    fn regions_are_changed_until_nothing_gets_faster() {
        let cycles = |choices: &[Choice]| {
            vec![match choices {
                [Threads(2), Alone] => 90,
                [Threads(2), Threads(4)] => 70,
                [Threads(8), Threads(4)] => 60,
                [Threads(8), All] => 40,
                [Alone, All] => 95,
                _ => 100,
            }]
        };
        assert_eq!(chosen(&tuned(&[All, All], 16, cycles)), [Threads(8), All]);
    }

    /// Each region alone costs, both together gain: only the directives lead there.
    #[test]
    fn what_directives_say_is_where_the_search_may_begin() {
        let cycles = |choices: &[Choice]| {
            let waiting = choices.iter().filter(|&&choice| choice != Alone).count();
            vec![match (waiting, choices) {
                (2, [Threads(2), _]) => 70,
                (2, _) => 80,
                (waiting, _) => 100 + waiting as u64,
            }]
        };
        let tuned = tuned(&[Threads(3), All], 8, cycles);
        assert_eq!(chosen(&tuned), [Threads(2), All]);
    }

    #[test]
    fn without_regions_there_is_one_program() {
        let tuned = tuned(&[], 8, |_| vec![7]);
        assert_eq!((tuned.tried.len(), tuned.chosen), (1, 0));
    }

    #[test]
    fn a_run_that_fails_ends_the_search() {
        let fails = |programs: &[Vec<Choice>]| if programs.is_empty() { Ok(vec![]) } else { Err("wrong") };
        assert_eq!(search(&[All], 8, fails), Err("wrong"));
    }
}
