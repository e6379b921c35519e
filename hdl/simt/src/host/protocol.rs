//! The frames between the host and whoever drives it: what hardware and software both must know.
//! `docs/reference/host.md` is the page.

use heddle_hdl::Code;
use std::iter::once;

/// Of the protocol; identify tells it.
pub const VERSION: u32 = 1;
/// Ends a frame, and begins it.
pub const FLAG: u8 = 0x7e;
/// The byte after it has [`FLIP`] changed.
pub const ESCAPE: u8 = 0x7d;
/// The bit that is changed in a byte that may not stand for itself.
pub const FLIP: u8 = 0x20;
/// Words of the longest frame, header and CRC included.
pub const FRAME_WORDS: u32 = 256;
/// Words that one frame can read or write.
pub const DATA_WORDS: u32 = 252;
/// Words that a frame has at least: header and CRC.
pub const LEAST_WORDS: u32 = 2;
/// Of the header's command: the frame is a reply.
pub const REPLY: u32 = 0x80;

/// What a request asks for.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
#[code(width = 7)]
pub enum Command {
    Identify = 1,
    Status = 2,
    Read = 3,
    Write = 4,
    Fill = 5,
    Checksum = 6,
    SideTable = 7,
    Launch = 8,
    Reset = 9,
    Metrics = 10,
}

/// Why a request was refused; 0 if it was not.
#[derive(Code, Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    Damaged = 1,
    Command = 2,
    Length = 3,
    Range = 4,
    Busy = 5,
    Bus = 6,
    Number = 7,
}

/// Bits of a reply's last byte of the header.
pub mod state {
    pub const RUNNING: u32 = 1;
    pub const DONE: u32 = 2;
    pub const FAULT: u32 = 4;
}

/// Bits of the last byte of identify's word 4.
pub mod feature {
    pub const ATOMICS: u32 = 1;
    pub const BARRIERS: u32 = 2;
    pub const MULTIPLY: u32 = 4;
    pub const SIDE_TABLE: u32 = 8;
    pub const BUS: u32 = 16;
    /// The host tells what the core counts.
    pub const METRICS: u32 = 32;
    /// Programs can read counters of cycles and instructions.
    pub const COUNTERS: u32 = 64;
    /// `lr.w` and `sc.w`.
    pub const RESERVATIONS: u32 = 128;
}

/// Beside the number of convergence barriers, in word 4 of identify.
pub mod paths {
    /// [`crate::shape::Shape::fair`].
    pub const FAIR: u32 = 128;
    /// [`crate::shape::Shape::warp_primitives`].
    pub const WARP_PRIMITIVES: u32 = 64;
}

/// Words of the replies.
pub const IDENTIFY_WORDS: u32 = 5;
pub const STATUS_WORDS: u32 = 10;

/// The CRC's polynomial, its bits reflected: bit 31 is the coefficient of x^0.
pub const POLYNOMIAL: u32 = 0xedb8_8320;
/// What the register of the CRC holds after a frame and its CRC.
pub const RESIDUE: u32 = 0xdebb_20e3;

/// The CRC-32 of bytes.
pub fn crc32(bytes: impl IntoIterator<Item = u8>) -> u32 {
    !bytes.into_iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { POLYNOMIAL } else { 0 })
    })
}

/// A frame of these words, with CRC and flags.
pub fn encode(words: &[u32]) -> Vec<u8> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let crc = crc32(bytes.iter().copied()).to_le_bytes();
    let stuffed = bytes.into_iter().chain(crc).flat_map(|byte| match byte {
        FLAG | ESCAPE => vec![ESCAPE, byte ^ FLIP],
        _ => vec![byte],
    });
    once(FLAG).chain(stuffed).chain(once(FLAG)).collect()
}

/// Finds frames among bytes.
#[derive(Clone, Debug, Default)]
pub struct Decoder {
    bytes: Vec<u8>,
    escaped: bool,
}

/// A frame whose CRC or length is wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Damaged;

impl Decoder {
    /// The words of the frame that this byte ends, without the CRC. Less than a frame's least is nothing.
    pub fn push(&mut self, byte: u8) -> Option<Result<Vec<u32>, Damaged>> {
        match byte {
            FLAG => {
                let (bytes, escaped) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.escaped));
                (bytes.len() >= 4 * LEAST_WORDS as usize).then(|| words(&bytes, escaped))
            }
            ESCAPE if !self.escaped => {
                self.escaped = true;
                None
            }
            _ => {
                // One word more than the longest is enough to see that it is too long.
                if self.bytes.len() <= 4 * FRAME_WORDS as usize {
                    self.bytes.push(byte ^ if self.escaped { FLIP } else { 0 });
                }
                self.escaped = false;
                None
            }
        }
    }
}

fn words(bytes: &[u8], escaped: bool) -> Result<Vec<u32>, Damaged> {
    let (data, crc) = bytes.split_at(bytes.len() - 4);
    let fits = bytes.len().is_multiple_of(4) && bytes.len() <= 4 * FRAME_WORDS as usize;
    if escaped || !fits || crc32(data.iter().copied()).to_le_bytes() != crc {
        return Err(Damaged);
    }
    Ok(data.chunks_exact(4).map(|w| u32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_crc_is_the_usual_one() {
        assert_eq!(crc32(*b"123456789"), 0xcbf4_3926);
        let with_crc = b"123456789".iter().copied().chain(0xcbf4_3926u32.to_le_bytes());
        assert_eq!(!crc32(with_crc), RESIDUE);
    }

    /// Frames of random words come back; one bit or byte that is changed, lost or doubled is noticed.
    #[test]
    fn frames_come_back_and_damage_is_noticed() {
        let mut r = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            let most = if r.u8(..10) == 0 { 256 } else { 6 };
            let count = r.usize(1..most);
            let special = [0x7e7e_7e7e, 0x7d7d_7d7d, 0x5e7d_7e5d, 0];
            let words: Vec<u32> =
                (0..count).map(|_| if r.bool() { r.u32(..) } else { special[r.usize(..4)] }).collect();
            let mut d = Decoder::default();
            let frame = encode(&words);
            assert_eq!(frame.iter().filter_map(|&byte| d.push(byte)).collect::<Vec<_>>(), [Ok(words.clone())]);
            let mut damaged = frame.clone();
            let at = r.usize(1..frame.len() - 1);
            match r.u8(..3) {
                0 => damaged[at] ^= 1 << r.u8(..8),
                1 => drop(damaged.remove(at)),
                _ => damaged.insert(at, r.u8(..)),
            }
            let found: Vec<_> = damaged.iter().filter_map(|&byte| d.push(byte)).collect();
            assert!(damaged == frame || !found.contains(&Ok(words)), "{frame:x?} {damaged:x?}");
            d.push(FLAG);
            assert_eq!(encode(&[7]).iter().filter_map(|&byte| d.push(byte)).collect::<Vec<_>>(), [Ok(vec![7])]);
        }
    }

    #[test]
    fn no_frame_is_longer_than_the_longest() {
        let found = |words: u32| {
            let mut d = Decoder::default();
            encode(&vec![5; words as usize]).iter().filter_map(|&b| d.push(b)).collect::<Vec<_>>()
        };
        assert_eq!(found(FRAME_WORDS - 1), [Ok(vec![5; FRAME_WORDS as usize - 1])]);
        assert_eq!(found(FRAME_WORDS), [Err(Damaged)]);
        assert_eq!(found(3 * FRAME_WORDS), [Err(Damaged)]);
    }
}
