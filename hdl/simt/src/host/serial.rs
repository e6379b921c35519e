//! Between bytes and words: everything passes one word and the CRC, a bit a cycle. Flags and escapes are told from the
//! bytes of a frame here, and put in.

use super::progress::{Part, Progress, State};
use super::protocol::{ESCAPE, FLAG, FLIP, POLYNOMIAL};
use super::uart::Byte;
use heddle_hdl::prelude::*;

/// The word, and where it is on its way through.
pub struct Serial {
    m: Builder,
    /// The word that everything passes, and the CRC of what has passed.
    pub word: Reg<Signal>,
    pub crc: Reg<Signal>,
    /// The number of the bit that passes, in its word.
    pub bit: Reg<Signal>,
    /// 1 bit: the byte before was an escape; while sending, the escape of the byte has gone.
    pub escaped: Reg<Signal>,
    /// 1 bit each: the bit that passes is the last.
    pub last_of_byte: Signal,
    pub last_of_word: Signal,
}

/// Of the byte that comes, 1 bit each.
pub struct Received {
    /// There is one, and the host receives; it ends a frame; it is an escape.
    pub comes: Signal,
    pub ends: Signal,
    is_escape: Signal,
    /// A bit of it is shifted in; that bit.
    pub shifts_in: Signal,
    bit_in: Signal,
    /// It is taken.
    pub ready: Signal,
}

/// Of the byte that goes.
pub struct Sending {
    pub tx: Byte<Signal>,
    /// 1 bit each: it is offered, or taken, and is not a flag; it is the escape before one that is special.
    sending_byte: Signal,
    taken: Signal,
    escapes: Signal,
    /// 1 bit each: a byte of the word was taken; a flag was; the flag behind the reply was.
    pub sent: Signal,
    pub flag_sent: Signal,
    pub over: Signal,
}

/// What passes.
pub struct Passing {
    /// 1 bit: the word is shifted.
    pub shifts: Signal,
    /// The word then.
    pub shifted: Signal,
}

impl Serial {
    pub fn new(m: Builder) -> Serial {
        let word = m.reg("word", 32);
        let crc = m.reg("crc", 32).reset(!0u32);
        let bit = m.reg("bit_number", 5).reset(0u32);
        wire!(last_of_byte = bit.q.slice(0, 3).all());
        wire!(last_of_word = bit.q.all());
        let escaped = m.reg("escaped", 1).reset(0u32);
        Serial { m, word, crc, bit, escaped, last_of_byte, last_of_word }
    }

    /// What the byte that comes is.
    pub fn receive(&self, progress: &Progress, rx: Byte<Signal>) -> Received {
        let Serial { bit, escaped, last_of_byte, .. } = self;
        wire!(is_flag = rx.data.eq(u32::from(FLAG)));
        wire!(is_escape = rx.data.eq(u32::from(ESCAPE)) & !escaped.q);
        wire!(comes = progress.receiving & rx.valid);
        wire!(ends = comes & is_flag);
        wire!(shifts_in = comes & !is_flag & !is_escape);
        wire!(rx_ready = progress.receiving & (is_flag | is_escape | *last_of_byte));
        let flips = escaped.q & bit.q.slice(0, 3).eq(FLIP.ilog2());
        wire!(bit_in = rx.data.select(bit.q.slice(0, 3), 1) ^ flips);
        Received { comes, ends, is_escape: is_escape & !is_flag, shifts_in, bit_in, ready: rx_ready }
    }

    /// The byte that goes: a flag, an escape, or the lowest of the word.
    pub fn send(&self, progress: &Progress, tx_ready: Signal) -> Sending {
        let Serial { word, escaped, .. } = self;
        wire!(sending_flag = progress.at(State::SendFlag));
        wire!(sending_byte = progress.at(State::SendByte));
        let low = word.q.slice(0, 8);
        wire!(special = low.eq(u32::from(FLAG)) | low.eq(u32::from(ESCAPE)));
        wire!(escapes = special & !escaped.q);
        let flipped = low ^ low.literal(u32::from(FLIP)).only_if(special);
        let byte = |value: u8| low.literal(u32::from(value));
        let tx = Byte {
            valid: sending_flag | sending_byte,
            data: pick([(sending_flag, byte(FLAG)), (escapes, byte(ESCAPE))], flipped),
        };
        wire!(sent = sending_byte & tx_ready & !escapes);
        wire!(flag_sent = sending_flag & tx_ready);
        wire!(over = flag_sent & progress.part.q.eq(Part::End));
        Sending { tx, sending_byte, taken: sending_byte & tx_ready, escapes, sent, flag_sent, over }
    }

    /// A bit passes the word and the CRC, which begins anew with a frame, a reply and a sum.
    pub fn pass(&self, progress: &Progress, received: &Received, sending: &Sending) -> Passing {
        let Serial { m, word, crc, bit, escaped, .. } = self;
        let &Received { comes, ends, is_escape, shifts_in, bit_in, ready } = received;
        let &Sending { sending_byte, taken, escapes, over, .. } = sending;
        wire!(shifts = shifts_in | progress.at(State::Shift) | progress.keeping);
        wire!(feeds = progress.receiving.mux(bit_in, word.q.bit(0)));
        wire!(shifted = cat(&[word.q.from_bit(1), feeds]));
        let escaped_next = pick([(comes, is_escape), (taken, escapes)], escaped.q);
        escaped.next_if(comes & ready | sending_byte, escaped_next);
        bit.next_if(shifts | ends, ends.mux(bit.q.literal(0u32), bit.q + 1));
        let polynomial = crc.q.literal(POLYNOMIAL).only_if(crc.q.bit(0) ^ feeds);
        let passed = cat(&[crc.q.from_bit(1), m.lit(0u32, 1)]) ^ polynomial;
        wire!(fresh = ends | over | progress.checking | progress.at(State::Begin));
        crc.next_if(fresh | shifts, fresh.mux(crc.q.literal(!0u32), passed));
        Passing { shifts, shifted }
    }

    /// The word is shifted, or is another: one of memory or of a reply that is `taken`; the header of the `reply`; the
    /// CRC; or one that the buffer gives, which is held.
    pub fn renew(
        &self,
        progress: &Progress,
        passing: &Passing,
        (taken, reply): (Signal, Signal),
        (holds, out): (Signal, Signal),
    ) {
        let taking = progress.taking;
        let [begins, trailer] = [State::Begin, State::Trailer].map(|which| progress.at(which));
        let &Passing { shifts, shifted } = passing;
        let word_next = pick([(taking, taken), (begins, reply), (trailer, !self.crc.q), (holds, out)], shifted);
        self.word.next_if(taking | begins | trailer | holds | shifts, word_next);
    }
}
