//! Counters of what the second level did since the launch, for simulation: probes of its module `metrics`.
//!
//! | probe | what |
//! |---|---|
//! | as of the [first level](mod@super::super::cache) | the same, of its requests |
//! | `write_backs` | lines that were written and were replaced |
//! | `channel` | cycles in which the channel was taken |

use super::super::cache::metrics::{MetricsIn as OfRequests, count, counted};
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct MetricsIn<T> {
    /// As the first level's.
    pub requests: OfRequests<T>,
    pub write_back: T,
    pub channel: T,
}

pub fn metrics() -> TypedModule<MetricsIn<Width>, Vec<Signal>> {
    let inputs = MetricsIn { requests: OfRequests::shape(), write_back: 1, channel: 1 };
    module("second_level_metrics", inputs, |m, i| {
        m.doc("Counters of what the second level did; for simulation.");
        counted(m, i.requests);
        count(m, i.requests.restart, &[("write_backs", i.write_back), ("channel", i.channel)]);
        vec![]
    })
}
