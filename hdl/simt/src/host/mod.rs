//! The host: carries out what comes as frames over a stream of bytes, and answers each. `docs/reference/host.md` has
//! the protocol.
//!
//! | file | what |
//! |---|---|
//! | [`protocol`] | what hardware and software must know of it |
//! | `serial` | bytes to words and back, flags and escapes, the CRC |
//! | `frame` | the buffer of a frame's words |
//! | `judge` | what a frame asks for, and whether it is done |
//! | `range` | address and count: what it is about |
//! | `launch` | the launch, as the host knows it |
//! | `reply` | the words of replies |
//! | `identity` | what identify tells of a core, and what software makes of it |
//! | `progress` | the state, and what comes next |
//! | [`failures`](mod@failures) | counts threads that failed |
//! | [`uart`](mod@uart) | a stream of bytes over two pins |
//!
//! A frame's words are kept in a buffer until its end, and nothing is done before its CRC was right. Everything passes
//! one word, a bit a cycle: bytes that come are shifted in, words that go are shifted out, and the CRC takes each bit
//! as it passes; a checksum of memory is words that go nowhere. So there is no shifter and no choice of bytes.
//!
//! A frame passes these states, and then its reply does; a word to send or to sum up is a round of what is in brackets.
//!
//! | | states |
//! |---|---|
//! | the frame comes; a runt is forgotten | receive |
//! | what it asks for; a reply that came back is forgotten | fetch, header, address, count, judge, check |
//! | write, fill | write … |
//! | side table | side, side low, side … |
//! | launch; reset | launch; reset |
//! | checksum | (access, take, shift) …, trailer, keep |
//! | header | send flag, begin, (send byte, shift) × 4 |
//! | payload, if there is some | (access, take, (send byte, shift) × 4) … |
//! | CRC | trailer, (send byte, shift) × 4, send flag |

pub mod failures;
mod frame;
mod identity;
mod judge;
mod launch;
mod progress;
pub mod protocol;
mod range;
mod reply;
mod serial;
#[cfg(test)]
mod tests;
pub mod uart;

use crate::memory::port::Load;
use crate::metrics::Counts;
use crate::pipeline::resolve::{Exit, Fault};
use crate::shape::{Metrics, Shape};
use crate::system::{LoadSide, SystemIn};
use frame::Frame;
use heddle_hdl::{prelude::*, unpack};
pub use identity::{Identity, counts_words, identified, identify, told_counts};
use judge::{Asked, judge};
use launch::Launch;
use progress::{Progress, State};
use range::Range;
use reply::Reply;
use serial::Serial;
use uart::Byte;

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
#[widths(s: &Shape)]
pub struct HostIn<T> {
    /// A byte that comes.
    #[width(Byte::SHAPE)]
    pub rx: Byte<T>,
    /// The byte that goes is taken.
    pub tx_ready: T,
    /// No thread is live, none is still to be started, and nothing is under way.
    pub idle: T,
    /// The launch has ended; the core has stopped. See [`crate::system::SystemOut`].
    pub done: T,
    pub fault: Fault<T>,
    pub exit: Exit<T>,
    /// The line that a read of `load` was for, from the next cycle on until the next access, 32 bits per bank; unless
    /// memory is on a bus.
    #[width(32 * s.lanes)]
    #[when(s.bus_width().is_none())]
    pub line: Option<T>,
    /// What the core did since the launch, if it is [built](Metrics::Built) with counters.
    #[when(s.metrics == Metrics::Built)]
    pub counts: Option<Counts<T>>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct HostOut<T> {
    /// The byte that comes is taken.
    pub rx_ready: T,
    /// A byte that goes.
    pub tx: Byte<T>,
    /// Memory is written or read.
    pub load: Load<T>,
    pub load_side: Option<LoadSide<T>>,
    /// See [`SystemIn`].
    pub launch: T,
    pub entry: T,
    pub blocks: T,
    pub block_threads: T,
    pub program_end: T,
    /// Everything but the host is to be reset in this cycle.
    pub resets: T,
}

/// The host of a shape.
pub fn host(s: &Shape, identity: Identity) -> TypedModule<HostIn<Width>, HostOut<Signal>> {
    module("host", HostIn::shape(s), |m, i| described(m, s, identity, i))
}

fn described(m: Builder, s: &Shape, identity: Identity, i: HostIn<Signal>) -> HostOut<Signal> {
    m.doc("Carries out what comes as frames over a stream of bytes, and answers each.");
    let (progress, serial, frame, launch) = (Progress::new(m), Serial::new(m), Frame::new(m), Launch::new(m));

    // Bytes come and go, and words of a frame are kept.
    let received = serial.receive(&progress, i.rx);
    let ended = frame.ended(&serial, &received);
    let sending = serial.send(&progress, i.tx_ready);
    let passing = serial.pass(&progress, &received, &sending);
    let out = frame.out(&progress, &serial, &ended, &passing);

    // What the frame asks for, and whether to do it.
    let asked = Asked::decode(m, s, &i, progress.at(State::Header), (ended.good, out), &launch);
    let range = Range::new(m, s, &progress, out);
    let verdict = judge(m, s, &i, &progress, (&frame, ended.good, out), (&asked, &range, &launch));
    let goes = verdict.goes;

    // Doing it.
    range.update_count(s, &progress, &asked, goes, out);
    frame.step(&progress, (&received, &sending), &ended, (&asked, &range, goes));
    let launched = launch.update(s, &i, &progress, out);

    // The reply.
    let reply = Reply { m, s, i: &i, asked: &asked, launch: &launch };
    let taken = reply.payload(identity, &progress, (&frame, &range), &launched, out);
    let holds = progress.judging | (progress.at(State::Write) & asked.writes) | progress.at(State::SideLow);
    serial.renew(&progress, &passing, (taken, reply.header(&verdict)), (holds, out));
    progress.proceed(&ended, (&asked, &range, goes), &serial, &sending);

    let (address, word) = (range.address.q, serial.word.q);
    let load = load(m, s, &i, &progress, &asked, (address, word));
    m.assert("memory_only_without_a_launch", !launch.running.q | !load.valid);
    let SystemIn { block_threads, entry, .. } = SystemIn::shape(s);
    HostOut {
        rx_ready: received.ready,
        tx: sending.tx,
        load,
        load_side: load_side(s, &progress, address, cat(&[word, out])),
        launch: launched.launch,
        entry: address.slice(0, entry),
        blocks: word,
        block_threads: range.count.q.slice(0, block_threads),
        program_end: launched.program_end,
        resets: launched.resets,
    }
}

/// The memory port: the word is written, or one is read.
fn load(
    m: Builder,
    s: &Shape,
    i: &HostIn<Signal>,
    progress: &Progress,
    asked: &Asked,
    (address, word): (Signal, Signal),
) -> Load<Signal> {
    let accesses = progress.at(State::Access) & (asked.reads | progress.summing.q);
    let stores = progress.at(State::Write);
    Load {
        valid: stores | (if s.bus_width().is_some() { m.lit(0u32, 1) } else { accesses }),
        address: cat(&[m.lit(0u32, 2), address]),
        word,
        read: i.line.map(|_| !stores),
    }
}

/// The port of the side table: an entry, whose `words` are two, is written.
fn load_side(s: &Shape, progress: &Progress, address: Signal, words: Signal) -> Option<LoadSide<Signal>> {
    SystemIn::shape(s).load_side.map(|shape| {
        let entry = words.slice(0, width_of(&shape.entry));
        LoadSide { valid: progress.at(State::Side), pc: address.slice(0, shape.pc), entry: unpack(shape.entry, entry) }
    })
}
