//! The host: carries out what comes as frames over a stream of bytes, and answers each. `docs/reference/host.md` has
//! the protocol.
//!
//! | file | what |
//! |---|---|
//! | [`protocol`] | what hardware and software must know of it |
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
pub mod protocol;
#[cfg(test)]
mod tests;
pub mod uart;

use crate::divergence::Divergence;
use crate::memory::port::Load;
use crate::metrics::Counts;
use crate::pipeline::resolve::{Exit, Fault};
use crate::shape::{Backing, Metrics, Shape, SlaveModel, Timing};
use crate::system::{LoadSide, SystemIn};
use failures::{FailuresIn, failures};
use heddle_hdl::{case, prelude::*, select, unpack};
use protocol::{
    DATA_WORDS, ESCAPE, FLAG, FLIP, FRAME_WORDS, IDENTIFY_WORDS, LEAST_WORDS, POLYNOMIAL, REPLY, RESIDUE, STATUS_WORDS,
    VERSION, command, feature, paths, reason,
};
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

/// What identify tells, beside the shape.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Identity {
    /// Of the clock; 0 if it is not known.
    pub clock_khz: u32,
}

/// What the host does in a cycle, 5 bits.
mod state {
    /// Takes bytes.
    pub const RECEIVE: u32 = 0;
    /// The buffer gives the header next.
    pub const FETCH: u32 = 1;
    /// The buffer gives this word of the frame.
    pub const HEADER: u32 = 2;
    pub const ADDRESS: u32 = 3;
    pub const COUNT: u32 = 4;
    /// It is done or refused, as is known now.
    pub const CHECK: u32 = 5;
    /// Writes a word to memory.
    pub const WRITE: u32 = 6;
    /// Writes an entry of the side table, whose low word is held; holds the next low word.
    pub const SIDE: u32 = 7;
    pub const SIDE_LOW: u32 = 8;
    pub const LAUNCH: u32 = 9;
    pub const RESET: u32 = 10;
    /// Offers a flag, before or after a reply.
    pub const SEND_FLAG: u32 = 11;
    /// The header is the word to send.
    pub const BEGIN: u32 = 12;
    /// Asks memory, or the buffer, for a word; it becomes the word to send.
    pub const ACCESS: u32 = 13;
    pub const TAKE: u32 = 14;
    /// Offers a byte, and then shifts it away.
    pub const SEND_BYTE: u32 = 15;
    pub const SHIFT: u32 = 16;
    /// The CRC becomes the word to send.
    pub const TRAILER: u32 = 17;
    /// A checksum goes to the buffer.
    pub const KEEP: u32 = 18;
    /// Between count and check: everything is known but whether to do it; the buffer gives the fourth word.
    pub const JUDGE: u32 = 19;
    pub const BITS: u32 = 5;
}

/// Which part of a reply goes out, 2 bits.
mod part {
    pub const HEADER: u32 = 0;
    pub const PAYLOAD: u32 = 1;
    pub const TRAILER: u32 = 2;
    pub const END: u32 = 3;
}

/// Frames of [`FRAME_WORDS`].
const POINTER: Width = FRAME_WORDS.ilog2();

/// The host of a shape.
pub fn host(s: &Shape, identity: Identity) -> TypedModule<HostIn<Width>, HostOut<Signal>> {
    module("host", HostIn::shape(s), |m, i| described(m, s, identity, i))
}

fn described(m: Builder, s: &Shape, identity: Identity, i: HostIn<Signal>) -> HostOut<Signal> {
    m.doc("Carries out what comes as frames over a stream of bytes, and answers each.");
    let state = m.reg("state", state::BITS).reset(state::RECEIVE);
    let at = |which: u32| state.q.eq(which);
    wire!(receiving = at(state::RECEIVE));
    wire!(judging = at(state::JUDGE));
    wire!(checking = at(state::CHECK));
    wire!(taking = at(state::TAKE));
    wire!(keeping = at(state::KEEP));

    // The word that everything passes, and the CRC of what has passed.
    let word = m.reg("word", 32);
    let crc = m.reg("crc", 32).reset(!0u32);
    let bit = m.reg("bit_number", 5).reset(0u32);
    wire!(last_of_byte = bit.q.slice(0, 3).all());
    wire!(last_of_word = bit.q.all());

    // Receiving. While sending, `escaped` says that the escape of the byte has gone.
    let escaped = m.reg("escaped", 1).reset(0u32);
    wire!(is_flag = i.rx.data.eq(u32::from(FLAG)));
    wire!(is_escape = i.rx.data.eq(u32::from(ESCAPE)) & !escaped.q);
    wire!(comes = receiving & i.rx.valid);
    wire!(ends = comes & is_flag);
    wire!(shifts_in = comes & !is_flag & !is_escape);
    wire!(rx_ready = receiving & (is_flag | is_escape | last_of_byte));
    let flips = escaped.q & bit.q.slice(0, 3).eq(FLIP.ilog2());
    wire!(bit_in = i.rx.data.select(bit.q.slice(0, 3), 1) ^ flips);

    // Words that have come; one more than the longest frame has stands for all that are too many.
    let length = m.reg("length", POINTER + 1).reset(0u32);
    wire!(too_long = length.q.gt(FRAME_WORDS));
    wire!(complete = shifts_in & last_of_word);
    wire!(runt = length.q.lt(LEAST_WORDS));
    wire!(frame_ends = ends & !runt);
    let undamaged = crc.q.eq(RESIDUE) & !too_long & !bit.q.any() & !escaped.q;
    let good = m.pipe_if("good", frame_ends, undamaged);

    // What is sent.
    let part = m.reg("part", 2);
    wire!(sending_flag = at(state::SEND_FLAG));
    wire!(sending_byte = at(state::SEND_BYTE));
    let low = word.q.slice(0, 8);
    wire!(special = low.eq(u32::from(FLAG)) | low.eq(u32::from(ESCAPE)));
    wire!(escapes = special & !escaped.q);
    let flipped = low ^ low.literal(u32::from(FLIP)).only_if(special);
    let byte = |value: u8| low.literal(u32::from(value));
    let tx = Byte {
        valid: sending_flag | sending_byte,
        data: pick([(sending_flag, byte(FLAG)), (escapes, byte(ESCAPE))], flipped),
    };
    wire!(sent = sending_byte & i.tx_ready & !escapes);
    wire!(flag_sent = sending_flag & i.tx_ready);
    wire!(over = flag_sent & part.q.eq(part::END));

    wire!(shifts = shifts_in | at(state::SHIFT) | keeping);
    wire!(feeds = receiving.mux(bit_in, word.q.bit(0)));
    wire!(shifted = cat(&[word.q.from_bit(1), feeds]));
    let escaped_next = pick([(comes, is_escape & !is_flag), (sending_byte & i.tx_ready, escapes)], escaped.q);
    escaped.next_if(comes & rx_ready | sending_byte, escaped_next);
    bit.next_if(shifts | ends, ends.mux(bit.q.literal(0u32), bit.q + 1));
    let polynomial = crc.q.literal(POLYNOMIAL).only_if(crc.q.bit(0) ^ feeds);
    let passed = cat(&[crc.q.from_bit(1), m.lit(0u32, 1)]) ^ polynomial;
    wire!(fresh = ends | over | checking | at(state::BEGIN));
    crc.next_if(fresh | shifts, fresh.mux(crc.q.literal(!0u32), passed));

    // The buffer.
    let pointer = m.reg("pointer", POINTER);
    let buffer = m.memory("buffer", 32, POINTER).style(MemoryStyle::Block);
    buffer.write((complete & !length.q.msb()) | (keeping & last_of_word), length.q.slice(0, POINTER), shifted);
    wire!(out = buffer.read_sync_if(!receiving & !keeping, pointer.q, Collision::Never));

    // What the frame asks for.
    let header = at(state::HEADER);
    wire!(is_reply = header & good & out.bit(15));
    let sequence = m.pipe_if("asked_number", header, out.slice(0, 8).only_if(good));
    let asked = m.pipe_if("asked", header, out.slice(8, 7).only_if(good));
    let launches = m.reg("launches", 8).reset(0u32);
    let number = out.slice(16, 8);
    let is_next = m.pipe_if("is_next", header, number.eq(launches.q + 1));
    let is_last = m.pipe_if("is_last", header, number.eq(launches.q));
    let is = |which: u32| asked.eq(which);
    wire!(reads = is(command::READ));
    wire!(writes = is(command::WRITE));
    wire!(fills = is(command::FILL));
    wire!(sums = is(command::CHECKSUM));
    wire!(sides = if s.divergence.capabilities().reconverges { is(command::SIDE_TABLE) } else { m.lit(0u32, 1) });
    wire!(launching = is(command::LAUNCH));
    let resetting = is(command::RESET);
    let identifies = is(command::IDENTIFY);
    let tells = is(command::STATUS);
    let counts = i.counts.map(|counts| (is(command::METRICS), counts.leaves()));
    let asks_counts = counts.as_ref().map(|(asks, _)| *asks);
    wire!(has_range = reads | writes | fills | sums | sides);

    // A word's number in memory, and a count: words, entries, or threads.
    let words = s.address_bits() - 2;
    let address = m.reg("address", words);
    let count = m.reg("count", words + 1);
    wire!(steps = at(state::WRITE) | at(state::SIDE) | taking);
    address.next_if(at(state::ADDRESS) | steps, steps.mux(address.q + 1, out.slice(2, words)));
    let address_bad = out.slice(0, 2).any() | out.from_bit(words + 2).any();
    let address_bad = m.pipe_if("address_bad", at(state::ADDRESS), address_bad);
    let above = if words + 1 < 32 { out.from_bit(words + 1).any() } else { m.lit(0u32, 1) };
    let count_above = m.pipe_if("count_above", at(state::COUNT), above);
    let count_bad = count_above | !count.q.any();

    // Whether to do it.
    let running = m.reg("running", 1).reset(0u32);
    let wide = words + 2;
    wire!(range_end = address.q.zext(wide) + count.q.zext(wide));
    let bus = s.bus_width().is_some();
    let in_program = sides | (if bus { writes | fills } else { m.lit(0u32, 1) });
    wire!(outside = in_program.mux(beyond(range_end, s.program / 4), beyond(range_end, s.memory / 4)));
    // What is written is in the frame; what is read must fit one.
    let low = count.q.slice(0, POINTER);
    wire!(too_many = reads & (count.q.from_bit(POINTER).any() | low.gt(DATA_WORDS)));
    let no_entry = address.q.zext(words + 1).from_bit(s.pc_bits()).any();
    let no_block = beyond(count.q, s.threads());
    wire!(no_launch = launching & (no_entry | no_block | !out.any()));
    let counted = has_range | launching;
    wire!(range = (counted & (address_bad | count_bad)) | (has_range & outside) | too_many | no_launch);
    // Words after header, two arguments and the CRC; fewer than none for those that have no arguments.
    wire!(behind = length.q - 4);
    let exactly = |words: u32| behind.literal(words);
    let wanted = pick(
        [
            (writes, count.q.slice(0, behind.width())),
            (sides, cat(&[m.lit(0u32, 1), low])),
            (reads | sums, exactly(0)),
            (fills, exactly(1)),
            (launching, exactly(2)),
        ],
        exactly((1 << behind.width()) - 2),
    );
    // More than a frame holds, of which `wanted` lacks upper bits: an entry of the side table is two words.
    let beyond_a_frame = |least: Width| count_above | count.q.from_bit(least).any();
    let too_long_a_list = (writes & beyond_a_frame(POINTER)) | (sides & beyond_a_frame(POINTER - 1));
    wire!(mismatch = behind.ne(wanted) | too_long_a_list);
    let known = has_range | launching | resetting | identifies | tells;
    let known = asks_counts.map_or(known, |asks| known | asks);
    let launched = running.q | i.done | i.fault.valid;
    wire!(again = launching & is_last & launched);
    wire!(busy = !i.idle | running.q | (launching & i.fault.valid));
    let code = |value: u32| m.lit(value, 3);
    let reasons = [
        (!good, code(reason::DAMAGED)),
        (!known, code(reason::COMMAND)),
        (mismatch, code(reason::LENGTH)),
        (if bus { reads | sums } else { m.lit(0u32, 1) }, code(reason::BUS)),
        (range, code(reason::RANGE)),
        ((has_range | launching) & busy & !again, code(reason::BUSY)),
        (launching & !is_next & !again, code(reason::NUMBER)),
    ];
    wire!(refused = pick(reasons, code(0)));
    let refusal = m.pipe_if("refusal", judging, refused);
    // Only the host launches, so what is idle stays so.
    let goes = m.pipe_if("goes", judging, !refused.any() & !again);

    // Doing it.
    wire!(begins_sum = checking & goes & sums);
    let summing = m.reg("summing", 1).reset(0u32);
    summing.next_if(checking | keeping, begins_sum);
    wire!(last = count.q.eq(1));
    let none = count.q.literal(0u32);
    let payload = [
        (!goes | resetting, none),
        (identifies, count.q.literal(IDENTIFY_WORDS)),
        (tells, count.q.literal(STATUS_WORDS)),
    ];
    let payload_of_counts = asks_counts.map(|asks| (asks, count.q.literal(counts_words(s))));
    let payload = pick(payload.into_iter().chain(payload_of_counts), count.q);
    let count_next = pick(
        [
            (checking, payload),
            (at(state::COUNT), out.slice(0, words + 1)),
            (at(state::LAUNCH), none),
            (keeping, count.q.literal(1u32)),
        ],
        count.q - 1,
    );
    count.next_if(checking | at(state::COUNT) | at(state::LAUNCH) | keeping | steps, count_next);
    let told_from_0 = identifies | tells;
    let told_from_0 = asks_counts.map_or(told_from_0, |asks| told_from_0 | asks);
    let restarts = ends | (checking & goes & told_from_0);
    let pointer_next =
        pick([(restarts, pointer.q.literal(0u32)), (keeping, length.q.slice(0, POINTER))], pointer.q + 1);
    let bursts = at(state::FETCH) | header | at(state::ADDRESS) | at(state::COUNT) | checking | at(state::SIDE_LOW);
    pointer.next_if(restarts | keeping | bursts | steps, pointer_next);
    let length_next = too_long.mux(length.q, length.q + 1);
    wire!(forgets = over | (ends & runt) | is_reply);
    length.next_if(complete | forgets, forgets.mux(length.q.literal(0u32), length_next));

    wire!(launch = at(state::LAUNCH));
    wire!(resets = at(state::RESET));
    let program_end = m.pipe_if("program_end", launch, out);
    launches.next_if(launch | resets, resets.mux(launches.q.literal(0u32), launches.q + 1));
    running.next_if(launch | resets | i.done | i.fault.valid, launch);
    let cycles = m.reg("cycles", 48).reset(0u32);
    cycles.next_if(launch | resets | running.q, (launch | resets).mux(cycles.q.literal(0u32), cycles.q + 1));
    let failed = m.instance("failures", &failures(s), FailuresIn { restart: launch | resets, exit: i.exit });

    // The words of replies.
    let flags = cat(&[running.q, i.done, i.fault.valid]).zext(8);
    let reply = cat(&[sequence, asked, m.lit(REPLY >> 7, 1), refusal.zext(8), flags]);
    let told = select(&identify(s, identity).map(|word| m.lit(word, 32)), pointer.q.slice(0, 3));
    let fault = i.fault;
    let kinds = cat(&[running.q, i.done, fault.valid, failed.any, fault.cause]);
    let address_of = |pc: Signal| cat(&[m.lit(0u32, 2), pc]).zext(32);
    let mask = fault.mask.zext(64);
    let status = [
        cat(&[launches.q, kinds, fault.slot.zext(8), m.lit(0u32, 8)]),
        address_of(fault.pc),
        mask.slice(0, 32),
        mask.slice(32, 32),
        fault.address,
        failed.count,
        failed.thread,
        failed.code,
        cycles.q.slice(0, 32),
        cycles.q.from_bit(32).zext(32),
    ];
    assert!(status.len() == STATUS_WORDS as usize, "the page and the software count on {STATUS_WORDS} words");
    let status = select(&status, pointer.q.slice(0, 4));
    let bank = address.q.slice(0, s.lanes.ilog2().max(1));
    let in_memory = i.line.map(|line| if s.lanes == 1 { line } else { line.select(bank, 32) });
    let asks_memory = reads | summing.q;
    // A counter has two words, the low one first.
    let counted = counts.map(|(asks, counters)| {
        let words = counters.iter().flat_map(|counter| [counter.slice(0, 32), counter.from_bit(32).zext(32)]);
        let words: Vec<Signal> = words.collect();
        (asks, select(&words, pointer.q.slice(0, index_width(words.len() as u32))))
    });
    let other = pick([(identifies, told), (tells, status)].into_iter().chain(counted), out);
    let taken = in_memory.map_or(other, |line| asks_memory.mux(line, other));
    let holds = judging | (at(state::WRITE) & writes) | at(state::SIDE_LOW);
    let word_next =
        pick([(taking, taken), (at(state::BEGIN), reply), (at(state::TRAILER), !crc.q), (holds, out)], shifted);
    word.next_if(taking | at(state::BEGIN) | at(state::TRAILER) | holds | shifts, word_next);

    let part_next = pick(
        [(checking, part.q.literal(part::HEADER)), (at(state::ACCESS), part.q.literal(part::PAYLOAD))],
        at(state::TRAILER).mux(part.q.literal(part::TRAILER), part.q.literal(part::END)),
    );
    wire!(word_over = at(state::SHIFT) & last_of_word);
    wire!(reply_ends = word_over & !summing.q & part.q.eq(part::TRAILER));
    part.next_if(checking | at(state::ACCESS) | at(state::TRAILER) | keeping | reply_ends, part_next.only_if(!keeping));

    // What comes next.
    let to = |which: u32| m.lit(which, state::BITS);
    let does = [
        (!goes, to(state::SEND_FLAG)),
        (writes | fills, to(state::WRITE)),
        (sides, to(state::SIDE)),
        (sums, to(state::ACCESS)),
        (launching, to(state::LAUNCH)),
        (resetting, to(state::RESET)),
    ];
    let after_word = pick(
        [(!summing.q & part.q.eq(part::TRAILER), to(state::SEND_FLAG)), (count.q.any(), to(state::ACCESS))],
        to(state::TRAILER),
    );
    let or_stay = |leaves: Signal, next: u32| leaves.mux(to(next), state.q);
    let next = case(
        state.q,
        &[
            (state::RECEIVE, or_stay(frame_ends, state::FETCH)),
            (state::FETCH, to(state::HEADER)),
            (state::HEADER, is_reply.mux(to(state::RECEIVE), to(state::ADDRESS))),
            (state::ADDRESS, to(state::COUNT)),
            (state::COUNT, to(state::JUDGE)),
            (state::JUDGE, to(state::CHECK)),
            (state::CHECK, pick(does, to(state::SEND_FLAG))),
            (state::WRITE, or_stay(last, state::SEND_FLAG)),
            (state::SIDE, last.mux(to(state::SEND_FLAG), to(state::SIDE_LOW))),
            (state::SIDE_LOW, to(state::SIDE)),
            (state::SEND_FLAG, flag_sent.mux(over.mux(to(state::RECEIVE), to(state::BEGIN)), state.q)),
            (state::BEGIN, to(state::SEND_BYTE)),
            (state::ACCESS, to(state::TAKE)),
            (state::TAKE, summing.q.mux(to(state::SHIFT), to(state::SEND_BYTE))),
            (state::SEND_BYTE, or_stay(sent, state::SHIFT)),
            (state::SHIFT, pick([(word_over, after_word), (last_of_byte & !summing.q, to(state::SEND_BYTE))], state.q)),
            (state::TRAILER, summing.q.mux(to(state::KEEP), to(state::SEND_BYTE))),
            (state::KEEP, or_stay(last_of_word, state::SEND_FLAG)),
        ],
        to(state::SEND_FLAG),
    );
    state.next(next);

    let accesses = at(state::ACCESS) & asks_memory;
    let stores = at(state::WRITE);
    let load = Load {
        valid: stores | (if bus { m.lit(0u32, 1) } else { accesses }),
        address: cat(&[m.lit(0u32, 2), address.q]),
        word: word.q,
        read: i.line.map(|_| !stores),
    };
    let SystemIn { block_threads, entry, .. } = SystemIn::shape(s);
    let load_side = SystemIn::shape(s).load_side.map(|shape| {
        let entry = cat(&[word.q, out]).slice(0, width_of(&shape.entry));
        LoadSide { valid: at(state::SIDE), pc: address.q.slice(0, shape.pc), entry: unpack(shape.entry, entry) }
    });
    m.assert("memory_only_without_a_launch", !running.q | !load.valid);
    m.assert("one_launch_at_a_time", !launch | (i.idle & !i.fault.valid));
    m.assert("a_count_does_not_pass_0", !steps | count.q.any());
    m.cover("runt", ends & runt & length.q.any());
    m.cover("reply_came_back", is_reply);
    m.cover("frame_too_long", frame_ends & too_long);
    m.cover("ends_in_an_escape", frame_ends & escaped.q);
    m.cover("launched_again", judging & again & !refused.any());
    m.cover("busy_for_a_fault", judging & launching & i.fault.valid & refused.eq(reason::BUSY));
    HostOut {
        rx_ready,
        tx,
        load,
        load_side,
        launch,
        entry: address.q.slice(0, entry),
        blocks: word.q,
        block_threads: count.q.slice(0, block_threads),
        program_end,
        resets,
    }
}

/// Whether a value is greater than a power of two, without a comparator.
fn beyond(value: Signal, power: u32) -> Signal {
    let bit = power.ilog2();
    let above = (value.width() > bit + 1).then(|| value.from_bit(bit + 1).any());
    let at = value.bit(bit) & if bit == 0 { value.bit(0).literal(0u32) } else { value.slice(0, bit).any() };
    above.map_or(at, |above| above | at)
}

/// The words that identify tells.
pub fn identify(s: &Shape, identity: Identity) -> [u32; IDENTIFY_WORDS as usize] {
    let bytes = |bytes: [u32; 4]| {
        assert!(bytes.iter().all(|&byte| byte < 256), "identify tells bytes");
        bytes.iter().rev().fold(0, |word, byte| word << 8 | byte)
    };
    let log2 = |bytes: u32| bytes.checked_ilog2().unwrap_or(0);
    let features = [
        (s.atomics, feature::ATOMICS),
        (s.barriers, feature::BARRIERS),
        (s.multiply, feature::MULTIPLY),
        (s.divergence.capabilities().reconverges, feature::SIDE_TABLE),
        (s.bus_width().is_some(), feature::BUS),
        (s.metrics == Metrics::Built, feature::METRICS),
        (s.counters, feature::COUNTERS),
        (s.reservations, feature::RESERVATIONS),
    ];
    let features = features.iter().filter(|(has, _)| *has).map(|(_, bit)| bit).sum();
    [
        bytes([VERSION, s.lanes, s.warps, s.divergence.number().into()]),
        s.memory,
        s.program,
        identity.clock_khz,
        bytes([
            log2(s.stack),
            log2(s.scratchpad),
            s.convergence_barriers
                | (u32::from(s.fair) * paths::FAIR)
                | (u32::from(s.warp_primitives) * paths::WARP_PRIMITIVES),
            features,
        ]),
    ]
}

/// Words that tell the counters of a core that is [built](Metrics::Built) with them.
pub fn counts_words(s: &Shape) -> u32 {
    2 * Counts::number(s)
}

/// What these words tell.
///
/// # Panics
/// If they are not [`counts_words`].
pub fn told_counts(s: &Shape, words: &[u32]) -> Counts<u64> {
    assert_eq!(words.len(), counts_words(s) as usize, "words of counters");
    let mut counters = words.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
    Counts::shape(s).map("", &mut |_, _| counters.next().expect("two words a counter"))
}

/// The shape of which [`identify`] tells, as far as it tells: the rest is as usual. Its mechanism is one of `known`.
/// Refuses what cannot be.
pub fn identified(words: &[u32; IDENTIFY_WORDS as usize], known: &[Divergence]) -> Result<Shape, String> {
    let byte = |word: usize, k: u32| words[word] >> (8 * k) & 0xff;
    let has = |bit: u32| byte(4, 3) & bit != 0;
    let bytes = |log: u32| 1u32.checked_shl(log).ok_or_else(|| format!("2^{log} bytes"));
    let number = byte(0, 3);
    let divergence = known.iter().find(|divergence| u32::from(divergence.number()) == number);
    let divergence = divergence.ok_or_else(|| format!("divergence unit number {number}"))?;
    let on_bus = Backing::Wishbone { width: 32, slave: SlaveModel { timing: Timing::FASTEST, error: None } };
    let shape = Shape {
        lanes: byte(0, 1),
        warps: byte(0, 2),
        memory: words[1],
        program: words[2],
        stack: bytes(byte(4, 0))?,
        scratchpad: if byte(4, 1) == 0 { 0 } else { bytes(byte(4, 1))? },
        convergence_barriers: byte(4, 2) & !paths::FAIR & !paths::WARP_PRIMITIVES,
        fair: byte(4, 2) & paths::FAIR != 0,
        warp_primitives: byte(4, 2) & paths::WARP_PRIMITIVES != 0,
        atomics: has(feature::ATOMICS),
        barriers: has(feature::BARRIERS),
        multiply: has(feature::MULTIPLY),
        counters: has(feature::COUNTERS),
        reservations: has(feature::RESERVATIONS),
        metrics: if has(feature::METRICS) { Metrics::Built } else { Metrics::Off },
        backing: if has(feature::BUS) { on_bus } else { Backing::OnChip },
        ..Shape::default()
    };
    let shape = shape.with_divergence(*divergence);
    shape.check().map_err(|error| error.to_string())?;
    Ok(shape)
}
