//! Counters of what the second level did since the launch, for simulation: probes of its module `metrics`.
//!
//! | probe | what |
//! |---|---|
//! | as of the [first level](mod@super::super::cache) | the same, of its requests |
//! | `write_backs` | lines that were written and were replaced |
//! | `channel` | cycles in which the channel was taken |

use super::super::cache::metrics::{Visit, count, visits};
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MetricsIn<T> {
    /// All counters go to 0.
    pub restart: T,
    pub answered: Visit<T>,
    pub silent: Visit<T>,
    pub waited: T,
    pub full: T,
    pub write_back: T,
    pub channel: T,
}

pub fn metrics() -> TypedModule<MetricsIn<Width>, Vec<Signal>> {
    let visit = Visit { hit: 1, missed: 1, joined: 1 };
    let inputs =
        MetricsIn { restart: 1, answered: visit, silent: visit, waited: 1, full: 1, write_back: 1, channel: 1 };
    module("second_level_metrics", inputs, |m, i| {
        m.doc("Counters of what the second level did; for simulation.");
        visits(m, i.restart, i.answered, i.silent);
        count(m, i.restart, &[("waited", i.waited), ("full", i.full)]);
        count(m, i.restart, &[("write_backs", i.write_back), ("channel", i.channel)]);
        vec![]
    })
}
