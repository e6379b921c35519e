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

pub fn metrics() -> TypedModule<MetricsIn<Width>, Vec<Signal>> {
    let visit = Visit { hit: 1, missed: 1, joined: 1 };
    module("cache_metrics", MetricsIn { restart: 1, answered: visit, silent: visit, waited: 1, full: 1 }, |m, i| {
        m.doc("Counters of what the cache did; for simulation.");
        let zero = m.lit(0u32, 48);
        let count = |name: &str, event: Signal| {
            let counter = m.reg(&format!("count_{name}"), 48).reset(0u32);
            counter.next_if(i.restart | event, i.restart.mux(zero, counter.q + 1));
            m.probe(name, counter.q);
        };
        count("hits", i.answered.hit);
        count("misses", i.answered.missed);
        count("joined", i.answered.joined);
        count("silent_hits", i.silent.hit);
        count("silent_misses", i.silent.missed);
        count("silent_joined", i.silent.joined);
        count("waited", i.waited);
        count("full", i.full);
        vec![]
    })
}
