//! Requests that wait for a memory that does not take one in every cycle.
//!
//! Only under [`Replay::Split`] and before such a memory ([`Shape::memory_stalls`]): there an access has its lanes
//! chosen when it leaves the pipeline, and waits here. Issue takes a place beforehand.
//!
//! [`Replay::Split`]: crate::shape::Replay::Split

use crate::memory::port::Request;
use crate::queue::Queue;
use crate::shape::Shape;
use heddle_hdl::prelude::*;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct RequestQueueIn<T> {
    /// From stage 9; always taken.
    pub sent: Request<T>,
    /// Memory takes the first request, if it is valid, in this cycle.
    pub ready: T,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct RequestQueueOut<T> {
    /// The first request, until `ready`.
    pub request: Request<T>,
    pub empty: T,
}

pub fn request_queue(s: &Shape) -> TypedModule<RequestQueueIn<Width>, RequestQueueOut<Signal>> {
    module("request_queue", RequestQueueIn::shape(s), |m, i| {
        m.doc("Requests that wait for memory.");
        let queue = Queue::new(m, "queue", Request::shape(s), s.requests, i.sent.valid, i.sent);
        queue.leaves(queue.waits & i.ready);
        m.cover("full", queue.full);
        m.cover("waits_for_memory", queue.waits & !i.ready);
        RequestQueueOut { request: Request { valid: queue.waits, ..queue.head }, empty: !queue.waits }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use heddle_sim::Sim;
    use std::collections::VecDeque;

    /// Requests leave in order, each once, when memory is ready.
    #[test]
    fn first_in_first_out() {
        for (requests, seed) in [(2, 1), (8, 2), (64, 3)] {
            println!("{requests} places, seed {seed}");
            let s = Shape { requests, ..Shape::new(2, 2) };
            let mut r = fastrand::Rng::with_seed(seed);
            let mut t = Sim::new(&request_queue(&s).check().unwrap());
            t.reset();
            let mut waiting: VecDeque<u32> = VecDeque::new();
            for _ in 0..3000 {
                let comes = (waiting.len() < requests as usize && r.u8(..4) > 0).then(|| r.u32(..1 << s.line_bits()));
                let ready = r.bool();
                let zero = Request::shape(&s).map("", &mut |_, _| Bits::ZERO);
                let sent = Request { valid: comes.is_some().into(), line: comes.unwrap_or(0).into(), ..zero };
                t.poke(RequestQueueIn { sent, ready: ready.into() });
                let out = t.peek();
                assert_eq!(out.empty == 1, waiting.is_empty());
                assert_eq!(out.request.valid == 1, !waiting.is_empty());
                if let Some(&line) = waiting.front() {
                    assert_eq!(out.request.line, u64::from(line));
                    if ready {
                        waiting.pop_front();
                    }
                }
                waiting.extend(comes);
                t.step();
            }
            assert!(t.cover_hits("full") > 0);
        }
    }
}
