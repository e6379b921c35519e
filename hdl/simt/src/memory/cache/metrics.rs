//! Counters of what the cache did since the launch, for simulation.
//!
//! All are probes of the module `metrics` of the cache. Every request counts once, when it has been first:
//!
//! | probe | what |
//! |---|---|
//! | `hits`, `misses`, `joined` | loads and atomic operations with a response: found; not; found to be under way |
//! | `silent_hits`, `silent_misses`, `silent_joined` | stores and atomic operations without one |
//! | `waited` | cycles in which the first request could not go on |
//! | `full` | those of them in which it is a miss, and as many as there can be are under way |

use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MetricsIn<T> {
    /// All counters go to 0.
    pub restart: T,
    pub answered: Visit<T>,
    pub silent: Visit<T>,
    pub waited: T,
    pub full: T,
}

/// What a request found.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Visit<T> {
    pub hit: T,
    pub missed: T,
    pub joined: T,
}

impl MetricsIn<Width> {
    pub fn shape() -> MetricsIn<Width> {
        let visit = Visit { hit: 1, missed: 1, joined: 1 };
        MetricsIn { restart: 1, answered: visit, silent: visit, waited: 1, full: 1 }
    }
}

pub fn metrics() -> TypedModule<MetricsIn<Width>, Vec<Signal>> {
    module("cache_metrics", MetricsIn::shape(), |m, i| {
        m.doc("Counters of what the cache did; for simulation.");
        counted(m, i);
        vec![]
    })
}

/// Counts what requests of a cache find.
pub fn counted(m: Builder, i: MetricsIn<Signal>) {
    let MetricsIn { restart, answered, silent, waited, full } = i;
    count(m, restart, &[("hits", answered.hit), ("misses", answered.missed), ("joined", answered.joined)]);
    count(
        m,
        restart,
        &[("silent_hits", silent.hit), ("silent_misses", silent.missed), ("silent_joined", silent.joined)],
    );
    count(m, restart, &[("waited", waited), ("full", full)]);
}

/// Counts the cycles with each event since the restart, in a probe of its name.
pub fn count(m: Builder, restart: Signal, events: &[(&str, Signal)]) {
    let zero = m.lit(0u32, 48);
    for &(name, event) in events {
        let counter = m.reg(&format!("count_{name}"), 48).reset(0u32);
        counter.next_if(restart | event, restart.mux(zero, counter.q + 1));
        m.probe(name, counter.q);
    }
}
