//! What threads print: `printf` of `heddle.h`, formatted by the host.
//!
//! A program that prints has a buffer `heddle_printed`: words that are taken, records that found no room, then records of
//! the address of the format, the number of arguments and above it the thread's in its block, the block, and the
//! arguments, a word each. A thread takes its words by one atomic addition, so records are whole, in the order of the
//! additions. A thread that finds no room only counts: none waits for the host, which empties the buffer between launches.

use crate::kernels::{Device, DeviceError};
use crate::program::from_bytes;
use serde::Serialize;
use sprintf::{Printf, vsprintf};

/// The buffer's name in programs.
const BUFFER: &str = "heddle_printed";

/// Words before the records, and of a record before its arguments.
const HEAD: usize = 2;
const RECORD: usize = 3;

/// Bytes of a text that are shown; width and precision of a conversion, too, are at most that.
const MOST_TEXT: usize = 4096;

/// What a thread printed by one call.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Print {
    /// The thread's block.
    pub block: u32,
    /// Its number in that.
    pub thread: u32,
    /// Formatted, without a line feed at its end.
    pub text: String,
}

/// What was printed.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Printed {
    /// In the order of the calls, launch after launch.
    pub lines: Vec<Print>,
    /// Calls that found no room.
    pub dropped: u64,
}

impl Printed {
    /// Nothing was printed.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty() && self.dropped == 0
    }

    /// A line for each, the thread first; of a text of several lines, before each.
    pub fn text(&self) -> String {
        let several = self.lines.iter().any(|print| print.block > 0);
        let mut text = String::new();
        for Print { block, thread, text: printed } in &self.lines {
            let who = if several { format!("block {block} thread {thread}") } else { format!("thread {thread}") };
            let lines = printed.split('\n').map(|line| format!("{who}: {line}\n"));
            text += &lines.collect::<String>();
        }
        if self.dropped > 0 {
            text += &format!(
                "{} calls of printf found no room (HEDDLE_PRINT_WORDS in the program makes more)\n",
                self.dropped
            );
        }
        text
    }

    /// What is in the buffer of the program that is loaded, which is empty then. A program begins with an empty one.
    pub fn taken(device: &mut dyn Device) -> Result<Printed, DeviceError> {
        let mut printed = Printed::default();
        let Some((address, words)) = place(device) else { return Ok(printed) };
        let head = read_words(device, address, HEAD)?;
        if head[0] == 0 {
            return Ok(printed);
        }
        printed.dropped = head[1].into();
        let used = (head[0] as usize).min(words - HEAD);
        let words = read_words(device, address + 4 * HEAD as u32, used)?;
        device.write(address, &vec![0; 4 * (HEAD + used)])?;
        let mut rest = words.as_slice();
        // A record is there if its format is; at the end of the buffer may be the place of one that found no room.
        while let [format, thread, block, arguments @ ..] = rest
            && *format != 0
        {
            let count = (thread & 0xff) as usize;
            let Some((arguments, behind)) = arguments.split_at_checked(count) else { break };
            let format = read_text(device, *format);
            let mut text = formatted(device, &format, arguments);
            if text.ends_with('\n') {
                text.pop();
            }
            printed.lines.push(Print { block: *block, thread: thread >> 8, text });
            rest = behind;
        }
        Ok(printed)
    }

    /// Adds what was printed after it.
    pub fn add(&mut self, later: Printed) {
        self.lines.extend(later.lines);
        self.dropped += later.dropped;
    }
}

/// Address and words of the buffer, if the program has one.
fn place(device: &dyn Device) -> Option<(u32, usize)> {
    let symbol = device.program().symbol(BUFFER)?;
    let words = symbol.size as usize / 4;
    (words >= HEAD + RECORD).then_some((symbol.address, words))
}

fn read_words(device: &mut dyn Device, address: u32, words: usize) -> Result<Vec<u32>, DeviceError> {
    let bytes = device.read(address, 4 * words)?;
    Ok(from_bytes(&bytes))
}

/// Up to its zero; what is outside memory ends it, too.
fn read_text(device: &mut dyn Device, address: u32) -> String {
    let mut bytes = Vec::new();
    while bytes.len() < MOST_TEXT {
        let at = address.wrapping_add(bytes.len() as u32);
        // Words, as boards have them.
        let Ok(word) = device.read(at & !3, 4) else { break };
        let part = &word[(at & 3) as usize..];
        let end = part.iter().position(|&byte| byte == 0);
        bytes.extend_from_slice(&part[..end.unwrap_or(part.len())]);
        if end.is_some() {
            break;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The text of a format. A conversion that is none of C's for a word, or has no argument, stays as it is.
fn formatted(device: &mut dyn Device, format: &str, arguments: &[u32]) -> String {
    let mut arguments = arguments.iter().copied();
    let mut text = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('%') {
        text += &rest[..at];
        let behind = &rest[at + 1..];
        let Some(end) = behind.find(|c: char| !"-+ #0123456789.*hlzt".contains(c)) else {
            rest = &rest[at..];
            break;
        };
        let length = behind[end..].chars().next().map_or(0, char::len_utf8);
        let whole = &rest[at..at + 1 + end + length];
        text += &converted(device, whole, &mut arguments).unwrap_or_else(|| whole.into());
        rest = &rest[whole.len() + at..];
    }
    text + rest
}

/// One conversion.
fn converted(device: &mut dyn Device, whole: &str, arguments: &mut impl Iterator<Item = u32>) -> Option<String> {
    let kind = whole.chars().last()?;
    let sized = &whole[..whole.len() - kind.len_utf8()];
    if kind == '%' {
        return (sized == "%").then(|| "%".into());
    }
    let flags = sized.trim_end_matches(['h', 'l', 'z', 't']);
    let size = &sized[flags.len()..];
    if size == "ll" {
        return None;
    }
    let widths: Vec<i32> =
        flags.matches('*').map(|_| arguments.next().map(|word| word as i32)).collect::<Option<_>>()?;
    let word = arguments.next()?;
    let written = flags.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    let mut wide = written.map(|digits| digits.parse::<usize>().map_or(true, |digits| digits > MOST_TEXT));
    if wide.any(|wide| wide) || widths.iter().any(|width| width.unsigned_abs() as usize > MOST_TEXT) {
        return None;
    }
    let value: Box<dyn Printf> = match (kind, size) {
        ('d' | 'i', "hh") => Box::new(i32::from(word as i8)),
        ('d' | 'i', "h") => Box::new(i32::from(word as i16)),
        ('d' | 'i', _) => Box::new(word as i32),
        ('u' | 'o' | 'x' | 'X', "hh") => Box::new(u32::from(word as u8)),
        ('u' | 'o' | 'x' | 'X', "h") => Box::new(u32::from(word as u16)),
        ('u' | 'o' | 'x' | 'X' | 'p', _) => Box::new(word),
        ('c', _) => Box::new(char::from(word as u8)),
        ('s', _) => Box::new(read_text(device, word)),
        _ => return None,
    };
    let spec = match kind {
        'p' => format!("%#{}x", &flags[1..]),
        // In C, zero has no prefix.
        'x' | 'X' if word == 0 => format!("{}{kind}", flags.replace('#', "")),
        _ => format!("{flags}{kind}"),
    };
    let mut values: Vec<&dyn Printf> = widths.iter().map(|width| width as &dyn Printf).collect();
    values.push(value.as_ref());
    vsprintf(&spec, &values).ok()
}
