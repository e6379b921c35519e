//! Loose round robin: the way stages choose among slots.

use heddle_hdl::prelude::*;

/// A one-hot choice among `requests`: the first that is on at or above the last choice's successor, else the lowest.
///
/// `after` has a bit on for every place above the last choice ([`places_above`] of it).
#[track_caller]
pub fn round_robin(requests: Signal, after: Signal) -> Signal {
    let above = requests & after;
    above.any().mux(above.lowest_one(), requests.lowest_one())
}

/// A bit on for every place above the only one that is on in `one_hot`; none if there is none.
#[track_caller]
pub fn places_above(one_hot: Signal) -> Signal {
    one_hot.any_below()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_sim::Sim;

    #[derive(Bundle, Clone, Copy, PartialEq, Debug)]
    struct In<T> {
        requests: T,
    }

    #[derive(Bundle, Clone, Copy, PartialEq, Debug)]
    struct Out<T> {
        choice: T,
    }

    fn arbiter(places: u32) -> TypedModule<In<Width>, Out<Signal>> {
        module("arbiter", In { requests: places }, |m, In { requests }| {
            let after = m.reg("after", places).reset(0u32);
            let choice = round_robin(requests, after.q);
            after.next_if(choice.any(), places_above(choice));
            Out { choice }
        })
    }

    /// The next place after the last choice that requests, around the circle.
    fn model(places: u32, requests: u64, last: &mut u32) -> u64 {
        let order = (1..=places).map(|k| (*last + k) % places);
        match order.into_iter().find(|&place| requests >> place & 1 == 1) {
            Some(place) => {
                *last = place;
                1 << place
            }
            None => 0,
        }
    }

    #[derive(Bundle, Clone, Copy, PartialEq, Debug)]
    struct First<T> {
        lowest: T,
        above: T,
    }

    /// In short vectors and in long ones, which are built in another way.
    #[test]
    fn the_first_place_and_those_above() {
        for places in [1, 2, 3, 8, 15, 16, 17, 64] {
            let first = module("first", In { requests: places }, |_, In { requests }| First {
                lowest: requests.lowest_one(),
                above: requests.any_below(),
            });
            let mut t = Sim::new(&first.check().unwrap());
            let mut r = fastrand::Rng::with_seed(places.into());
            let all = u64::MAX >> (64 - places);
            for k in 0..200 {
                let requests = if k < places { 1 << k } else { r.u64(..) & r.u64(..) & all };
                t.poke(In { requests: requests.into() });
                t.settle();
                let lowest = requests & requests.wrapping_neg();
                let above = if lowest == 0 { 0 } else { !(lowest | (lowest - 1)) & all };
                assert_eq!(t.peek(), First { lowest: lowest.into(), above: above.into() }, "{places}: {requests:b}");
            }
        }
    }

    #[test]
    fn every_request_after_every_choice() {
        for places in [1, 2, 3, 4, 5] {
            let mut t = Sim::new(&arbiter(places).check().unwrap());
            for (first, requests) in (0..places).flat_map(|f| (0..1u64 << places).map(move |r| (f, r))) {
                t.reset();
                t.poke(In { requests: (1u64 << first).into() });
                t.step();
                t.poke(In { requests: requests.into() });
                let mut last = first;
                assert_eq!(t.peek().choice, model(places, requests, &mut last), "{places}: {requests:b} after {first}");
            }
        }
    }

    /// Whoever requests all the time is chosen within as many cycles as there are places.
    #[test]
    fn nobody_starves() {
        let (places, seed) = (64, 7);
        println!("seed {seed}");
        let mut random = fastrand::Rng::with_seed(seed);
        let mut t = Sim::new(&arbiter(places).check().unwrap());
        t.reset();
        let (mut waits, mut last) = (vec![0; places as usize], places - 1);
        let steady = random.u64(..);
        for _ in 0..2000 {
            let requests = steady | random.u64(..);
            t.poke(In { requests: requests.into() });
            let choice = t.peek().choice;
            assert_eq!(choice, model(places, requests, &mut last));
            for (place, wait) in waits.iter_mut().enumerate() {
                let served = choice.bit(place as u32) || steady >> place & 1 == 0;
                *wait = if served { 0 } else { *wait + 1 };
                assert!(*wait < places, "place {place} starves");
            }
            t.step();
        }
    }
}
