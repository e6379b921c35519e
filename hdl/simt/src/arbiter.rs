//! Loose round robin: the way stages choose among slots.

use heddle_hdl::*;

/// A one-hot choice among `requests`: the first that is on at or above the last choice's successor, else the lowest.
///
/// `after` has a bit on for every place above the last choice ([`places_above`] of it).
#[track_caller]
pub fn round_robin(requests: Signal, after: Signal) -> Signal {
    let above = requests & after;
    above.any().mux(above.lowest_one(), requests.lowest_one())
}

/// A bit on for every place above the only one that is on in `one_hot`.
#[track_caller]
pub fn places_above(one_hot: Signal) -> Signal {
    let mut seen = one_hot.literal(0u32).slice(0, 1);
    let mut bits = Vec::new();
    for bit in elements(one_hot, 1) {
        bits.push(seen);
        seen = seen | bit;
    }
    cat(&bits)
}
