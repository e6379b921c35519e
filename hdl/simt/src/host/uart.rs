//! A UART: bytes over two pins, 8 bits, no parity, one stop bit.
//!
//! A bit takes `divisor` clock cycles. A start bit counts if the line is still low in its middle, and each bit is what
//! the line is in its middle, so both sides' clocks may differ by some percent. A byte without a stop bit is dropped,
//! and nothing begins before the line is high again: so a line that stays low gives nothing.
//!
//! What it does not do: no queue. A byte that comes while the one before has not been taken is dropped; there is room
//! for one beside the one on the line. No flow control: CRC and retries of the frames above take care of what is lost.

use heddle_hdl::prelude::*;

/// A byte of a stream. It goes over in a cycle in which `valid` and the other side's ready are 1, and stays until then.
#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct Byte<T> {
    pub valid: T,
    /// 8 bits.
    pub data: T,
}

impl Byte<Width> {
    pub const SHAPE: Byte<Width> = Byte { valid: 1, data: 8 };
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct UartIn<T> {
    /// The pin, which has nothing to do with the clock.
    pub rx: T,
    /// The byte that came is taken.
    pub received_ready: T,
    /// A byte to send.
    pub send: Byte<T>,
}

#[derive(Bundle, Clone, Copy, PartialEq, Debug)]
pub struct UartOut<T> {
    /// The pin; 1 when there is nothing to send.
    pub tx: T,
    pub received: Byte<T>,
    /// A byte to send would be taken.
    pub send_ready: T,
}

/// The least divisor: below it, the middle of a bit is not inside it.
pub const LEAST_DIVISOR: u32 = 4;

/// Bits of a byte on the line.
const BITS: u32 = 10;

/// A UART whose bits take so many cycles, at least [`LEAST_DIVISOR`].
pub fn uart(divisor: u32) -> TypedModule<UartIn<Width>, UartOut<Signal>> {
    assert!(divisor >= LEAST_DIVISOR, "a bit of a UART takes {LEAST_DIVISOR} cycles or more");
    module("uart", UartIn { rx: 1, received_ready: 1, send: Byte::SHAPE }, |m, i| {
        m.doc(&format!("UART: 8 bits, no parity, one stop bit, {divisor} cycles a bit."));
        let width = count_width(divisor - 1);

        // Receiving. In reset, the line is taken as low, so that nothing begins before it is high.
        let line = m.reg("rx_line", 2).reset(0u32);
        line.next(cat(&[line.q.bit(1), i.rx]));
        wire!(high = line.q.bit(0));
        let rx_wait = m.reg("rx_wait", width);
        let rx_left = m.reg("rx_left", count_width(BITS)).reset(0u32);
        let armed = m.reg("rx_armed", 1).reset(0u32);
        wire!(idle = !rx_left.q.any());
        wire!(is_stop = rx_left.q.eq(1));
        armed.next(high & (idle | is_stop));
        wire!(begins = idle & armed.q & !high);
        wire!(samples = !idle & !rx_wait.q.any());
        wire!(is_start = rx_left.q.eq(BITS));
        let full = rx_wait.q.literal(divisor - 1);
        // From the cycle after the edge is seen to the middle of the start bit.
        let half = rx_wait.q.literal(divisor / 2 - 1);
        rx_wait.next_if(begins | !idle, pick([(begins, half), (samples, full)], rx_wait.q - 1));
        let less = (samples & is_start & high).mux(rx_left.q.literal(0u32), rx_left.q - 1);
        rx_left.next_if(begins | samples, begins.mux(rx_left.q.literal(BITS), less));
        let shifted = m.reg("rx_shifted", 8);
        shifted.next_if(samples & !is_stop, cat(&[shifted.q.from_bit(1), high]));
        wire!(arrives = samples & is_stop & high);
        let waits = m.reg("rx_waits", 1).reset(0u32);
        wire!(kept = arrives & (!waits.q | i.received_ready));
        waits.next((waits.q & !i.received_ready) | arrives);
        let data = m.pipe_if("rx_data", kept, shifted.q);
        m.cover("a_byte_is_dropped", arrives & !kept);
        m.cover("no_stop_bit", samples & is_stop & !high);
        m.cover("a_start_bit_is_too_short", samples & is_start & high);

        // Sending: the stop bit comes from above.
        let tx_wait = m.reg("tx_wait", width);
        let tx_left = m.reg("tx_left", count_width(BITS)).reset(0u32);
        wire!(send_ready = !tx_left.q.any());
        wire!(sends = i.send.valid & send_ready);
        wire!(next_bit = !send_ready & !tx_wait.q.any());
        tx_wait.next_if(sends | !send_ready, (sends | next_bit).mux(tx_wait.q.literal(divisor - 1), tx_wait.q - 1));
        tx_left.next_if(sends | next_bit, sends.mux(tx_left.q.literal(BITS), tx_left.q - 1));
        let bits = m.reg("tx_bits", 9).reset(0x1ffu32);
        let one = m.lit(1u32, 1);
        let start = cat(&[m.lit(0u32, 1), i.send.data]);
        bits.next_if(sends | next_bit, sends.mux(start, cat(&[bits.q.from_bit(1), one])));
        UartOut { tx: bits.q.bit(0), received: Byte { valid: waits.q, data }, send_ready }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::cases;
    use heddle_sim::Sim;
    use std::collections::VecDeque;

    type Uart = Sim<UartIn<Width>, UartOut<Signal>>;

    fn built(divisor: u32) -> Uart {
        let mut t = Sim::new(&uart(divisor).check().unwrap());
        t.poke(UartIn {
            rx: true.into(),
            received_ready: false.into(),
            send: Byte { valid: false.into(), data: 0u32.into() },
        });
        t.reset();
        t.steps(4);
        t
    }

    /// The line of these bytes, each bit `bit` cycles long, with so many idle bits after each.
    fn line(bytes: &[u8], bit: f64, idle: impl Fn(usize) -> u32) -> Vec<bool> {
        let mut levels = Vec::new();
        let mut time = 0.0;
        let mut put = |level, bits: u32| {
            time += bit * f64::from(bits);
            while (levels.len() as f64) < time {
                levels.push(level);
            }
        };
        put(true, 2);
        for (at, byte) in bytes.iter().enumerate() {
            put(false, 1);
            (0..8).for_each(|k| put(byte >> k & 1 == 1, 1));
            put(true, 1 + idle(at));
        }
        put(true, 3);
        levels
    }

    /// What comes of a line, if it is taken where `ready` says so.
    fn receive(t: &mut Uart, line: &[bool], mut ready: impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        for &level in line {
            t.poke_port("rx", level);
            let ready = ready();
            t.poke_port("received_ready", ready);
            let Byte { valid, data } = t.peek().received;
            if ready && valid == 1 {
                bytes.push(data.low_u64() as u8);
            }
            t.step();
        }
        bytes
    }

    fn random(r: &mut fastrand::Rng, count: usize) -> Vec<u8> {
        (0..count).map(|_| r.u8(..)).collect()
    }

    #[test]
    fn bytes_come_at_once_or_late_from_clocks_that_differ() {
        for divisor in [LEAST_DIVISOR, 5, 8, 16, 50, 217] {
            let mut t = built(divisor);
            let mut r = fastrand::Rng::with_seed(divisor.into());
            let bytes = random(&mut r, cases(90));
            // Half a bit at the end of ten: less than 5 %, and less still where a bit has few cycles.
            let differs = if divisor < 16 { 0.01 } else { 0.04 };
            for factor in [1.0, 1.0 + differs, 1.0 - differs] {
                let pauses: Vec<u32> = bytes.iter().map(|_| if r.bool() { 0 } else { r.u32(..3) }).collect();
                let line = line(&bytes, f64::from(divisor) * factor, |at| pauses[at]);
                assert_eq!(receive(&mut t, &line, || true), bytes, "divisor {divisor} × {factor}");
            }
        }
    }

    #[test]
    fn a_byte_waits_and_the_next_that_finds_no_room_is_dropped() {
        let mut t = built(8);
        let line = line(&[1, 2, 3, 4], 8.0, |_| 0);
        assert_eq!(receive(&mut t, &line[..line.len() - 100], || false), []);
        assert_eq!(receive(&mut t, &line[line.len() - 100..], || true), [1, 4]);
        assert!(t.cover_hits("a_byte_is_dropped") > 0);
    }

    #[test]
    fn what_is_no_byte_gives_none() {
        let mut t = built(16);
        let mut noisy = vec![false; 5];
        noisy.extend([true; 40]);
        assert_eq!(receive(&mut t, &noisy, || true), [], "too short for a start bit");
        let mut low = vec![false; 16 * 35];
        low.extend([true; 40]);
        assert_eq!(receive(&mut t, &low, || true), [], "a line that stays low");
        assert_eq!(receive(&mut t, &line(&[0xa5], 16.0, |_| 0), || true), [0xa5], "and the next is right");
        assert!(t.cover_hits("no_stop_bit") > 0 && t.cover_hits("a_start_bit_is_too_short") > 0);
    }

    #[test]
    fn a_line_that_is_low_from_the_reset_on_gives_nothing() {
        let mut t = Sim::new(&uart(8).check().unwrap());
        t.reset();
        assert_eq!(receive(&mut t, &[false; 300], || true), []);
        assert_eq!(receive(&mut t, &line(&[0x42], 8.0, |_| 0), || true), [0x42]);
    }

    /// What it sends, another receives, in no more time than the bits take.
    #[test]
    fn bytes_that_are_sent_come() {
        for divisor in [LEAST_DIVISOR, 7, 16] {
            let (mut from, mut to) = (built(divisor), built(divisor));
            let mut r = fastrand::Rng::with_seed(divisor.into());
            for idle in [false, true] {
                let bytes = random(&mut r, cases(150));
                let (mut left, mut got) = (VecDeque::from(bytes.clone()), Vec::new());
                let before = from.cycle();
                let mut offers = false;
                while got.len() < bytes.len() {
                    offers = !left.is_empty() && (offers || !idle || r.u8(..40) == 0);
                    let data = left.front().copied().unwrap_or(0);
                    from.poke_port("send_valid", offers);
                    from.poke_port("send_data", u32::from(data));
                    let out = from.peek();
                    if offers && out.send_ready == 1 {
                        left.pop_front();
                        offers = false;
                    }
                    let level = [out.tx == 1];
                    from.step();
                    got.extend(receive(&mut to, &level, || true));
                    assert!(from.cycle() < 1_000_000, "{} of {}", got.len(), bytes.len());
                }
                assert_eq!(got, bytes, "divisor {divisor}");
                let least = u64::from(BITS * divisor) * bytes.len() as u64;
                assert!(idle || from.cycle() - before < least + least / 40 + 50, "{}", from.cycle() - before);
            }
        }
    }
}
