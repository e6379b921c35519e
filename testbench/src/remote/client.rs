//! The other end of the [host](heddle_simt::host)'s protocol: one request after the other, each until it has its reply.

use super::line::{Line, Patience};
use super::reply::{Refusal, Status};
use heddle_simt::host::protocol::{
    Command, DATA_WORDS, Decoder, FLAG, IDENTIFY_WORDS, REPLY, Reason, STATUS_WORDS, VERSION, encode,
};
use heddle_simt::host::{Identity, counts_words, identified, identify, told_counts};
use heddle_simt::metrics::Counts;
use heddle_simt::{Divergence, Shape};
use std::time::Duration;
use std::{fmt, io};
use thiserror::Error;

/// Why a request could not be done. One line each.
#[derive(Debug, Error)]
#[allow(missing_docs)] // the message says what each field is
pub enum ClientError {
    #[error("the line failed: {0}")]
    Line(#[from] io::Error),
    #[error("no answer to `{request}` after {attempts} attempts: {last}")]
    Lost { request: Request, attempts: u32, last: Trouble },
    #[error("the line is never quiet: is there something else that sends, or is the baud rate wrong?")]
    Babble,
    #[error("the host refuses to {request}: {refusal}")]
    Refused { request: Request, refusal: Refusal },
    #[error("the host answers `{request}` with {got} words, not {wanted}: another version of the protocol?")]
    Odd { request: Request, got: usize, wanted: usize },
    #[error("the host speaks version {got} of the protocol, this is version {wanted}")]
    Version { got: u32, wanted: u32 },
    #[error("the core on the line has {field} {got}, not {wanted}")]
    Shape { field: &'static str, got: u32, wanted: u32 },
    #[error("the host tells of a core that cannot be: {0}")]
    Impossible(String),
    #[error("{address:#010x} is no address of a word")]
    Misaligned { address: u32 },
}

/// What went wrong with the last attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Trouble {
    /// Nothing came in time.
    #[error("nothing came")]
    Nothing,
    /// A frame came that was damaged.
    #[error("the reply was damaged")]
    Reply,
    /// The host told that what came to it was.
    #[error("the request was damaged")]
    Request,
}

/// A command, as messages name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request(pub Command);

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Command::Identify => "identify",
            Command::Status => "tell the status",
            Command::Read => "read memory",
            Command::Write => "write memory",
            Command::Fill => "fill memory",
            Command::Checksum => "sum up memory",
            Command::SideTable => "write the side table",
            Command::Launch => "launch",
            Command::Metrics => "tell what the core counts",
            Command::Reset => "reset",
        })
    }
}

/// Bytes in which a reply must have come; more is somebody else's. The longest frame has 2 KiB, if all of it is
/// escaped.
const MOST_BYTES: usize = 8192;

/// How many times as long as a line is quiet it may take to become so.
const MOST_QUIETS: u32 = 200;

/// Cycles that the host takes for a word of a checksum or a fill, at most.
const CYCLES_A_WORD: u64 = 40;

/// Words of the smallest part of what is read or written, unless there are fewer.
const LEAST_PART: u32 = 8;

/// Attempts of one request that failed.
#[derive(Default)]
struct Failures {
    count: u32,
}

impl Failures {
    /// One more; an error if that is too many.
    fn add(&mut self, command: Command, last: Trouble, patience: Patience) -> Result<(), ClientError> {
        self.count += 1;
        let attempts = patience.attempts;
        if self.count < attempts {
            Ok(())
        } else {
            Err(ClientError::Lost { request: Request(command), attempts, last })
        }
    }
}

/// A host at the other end of a line.
pub struct Client<L> {
    line: L,
    patience: Patience,
    sequence: u8,
    /// Of the last launch.
    launches: u8,
    /// Words of the next part of what is read or written, at most.
    part: u32,
    /// What identify told.
    told: [u32; IDENTIFY_WORDS as usize],
    /// The mechanisms of which the core may have one.
    known: Vec<Divergence>,
    retries: u64,
}

impl<L: Line> Client<L> {
    /// Gets into step with the host of a core of this shape.
    pub fn connect(line: L, patience: Patience, shape: &Shape) -> Result<Client<L>, ClientError> {
        let client = Client::meet(line, patience, &[shape.divergence])?;
        client.check(shape)?;
        Ok(client)
    }

    /// Gets into step with the host of whatever core there is, whose mechanism is one of `known`.
    pub fn meet(line: L, patience: Patience, known: &[Divergence]) -> Result<Client<L>, ClientError> {
        let mut client = Client {
            line,
            patience,
            sequence: 0,
            launches: 0,
            part: DATA_WORDS,
            told: Default::default(),
            known: known.to_vec(),
            retries: 0,
        };
        client.resynchronise()?;
        let told = client.ask(Command::Identify, 0, &[], IDENTIFY_WORDS)?;
        client.told.copy_from_slice(&told);
        let got = client.told[0] & 0xff;
        if got != VERSION {
            return Err(ClientError::Version { got, wanted: VERSION });
        }
        client.launches = client.status()?.launches;
        Ok(client)
    }

    /// The core as far as the host tells: what is not told is as usual, and changes no result.
    pub fn shape(&self) -> Result<Shape, ClientError> {
        identified(&self.told, &self.known).map_err(ClientError::Impossible)
    }

    /// Field by field, what the host is and should be.
    fn check(&self, shape: &Shape) -> Result<(), ClientError> {
        let want = identify(shape, Identity { clock_khz: self.clock_khz() });
        let byte = |word: u32, k: u32| word >> (8 * k) & 0xff;
        let fields = [
            ("lanes:", byte(self.told[0], 1), byte(want[0], 1)),
            ("warps:", byte(self.told[0], 2), byte(want[0], 2)),
            ("the divergence unit number", byte(self.told[0], 3), byte(want[0], 3)),
            ("bytes of memory:", self.told[1], want[1]),
            ("bytes of instruction memory:", self.told[2], want[2]),
            ("the logarithm of its stacks", byte(self.told[4], 0), byte(want[4], 0)),
            ("the logarithm of its scratchpad", byte(self.told[4], 1), byte(want[4], 1)),
            ("convergence barriers:", byte(self.told[4], 2), byte(want[4], 2)),
            ("the features", byte(self.told[4], 3), byte(want[4], 3)),
        ];
        match fields.into_iter().find(|(_, got, wanted)| got != wanted) {
            Some((field, got, wanted)) => Err(ClientError::Shape { field, got, wanted }),
            None => Ok(()),
        }
    }

    /// The host's clock; 0 if it does not know.
    pub fn clock_khz(&self) -> u32 {
        self.told[3]
    }

    /// Attempts that failed and were followed by others.
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// Waits so long from now on.
    pub fn set_patience(&mut self, patience: Patience) {
        self.patience = patience;
    }

    /// The line.
    pub fn line(&mut self) -> &mut L {
        &mut self.line
    }

    /// What a request waits for beside its bytes: the host's work on so many words.
    fn work(&self, words: u32) -> Duration {
        // A host that does not tell its clock has one of 1 MHz, as far as patience goes.
        let khz = if self.clock_khz() == 0 { 1000 } else { self.clock_khz() };
        Duration::from_micros(u64::from(words) * CYCLES_A_WORD * 1000 / u64::from(khz))
    }

    /// Sends a request until it has its reply: the words after the header, as many as there should be.
    fn ask(&mut self, command: Command, number: u8, arguments: &[u32], wanted: u32) -> Result<Vec<u32>, ClientError> {
        let work = self.work(if matches!(command, Command::Fill | Command::Checksum) { arguments[1] } else { 0 });
        let mut failed = Failures::default();
        loop {
            match self.attempt(command, number, arguments, wanted, work, &failed)? {
                Ok(words) => return Ok(words),
                Err(trouble) => failed.add(command, trouble, self.patience)?,
            }
        }
    }

    /// Asks for so many words or entries, in parts of at most `most`, each until it has its reply. Where requests fail,
    /// parts become smaller: a short frame comes through where a long one does not. `of` gives the arguments of a part
    /// from its first item and their number, and the words of its reply; these go to `got`.
    fn in_parts(
        &mut self,
        command: Command,
        total: u32,
        most: u32,
        of: impl Fn(u32, u32) -> (Vec<u32>, u32),
        mut got: impl FnMut(Vec<u32>),
    ) -> Result<(), ClientError> {
        let mut at = 0;
        let mut failed = Failures::default();
        while at < total {
            let count = self.part.min(most).min(total - at);
            let (arguments, wanted) = of(at, count);
            match self.attempt(command, 0, &arguments, wanted, self.work(count), &failed)? {
                Ok(words) => {
                    got(words);
                    at += count;
                    failed = Failures::default();
                    self.part = (self.part + LEAST_PART).min(DATA_WORDS);
                }
                Err(trouble) => {
                    failed.add(command, trouble, self.patience)?;
                    self.part = (self.part / 2).max(LEAST_PART);
                }
            }
        }
        Ok(())
    }

    /// Sends a request once.
    fn attempt(
        &mut self,
        command: Command,
        number: u8,
        arguments: &[u32],
        wanted: u32,
        work: Duration,
        failed: &Failures,
    ) -> Result<Result<Vec<u32>, Trouble>, ClientError> {
        let (request, wanted) = (Request(command), wanted as usize);
        if failed.count > 0 {
            self.retries += 1;
            self.resynchronise()?;
        }
        self.sequence = self.sequence.wrapping_add(1);
        let header = u32::from(self.sequence) | (command as u32) << 8 | u32::from(number) << 16;
        let frame = encode(&[&[header], arguments].concat());
        self.line.send(&frame)?;
        let on_line = self.patience.byte * frame.len() as u32;
        let words = match self.reply(command, self.patience.reply + on_line + work)? {
            Err(trouble) => return Ok(Err(trouble)),
            Ok(words) => words,
        };
        let (refused, got) = (words[0] >> 16 & 0xff, words.len() - 1);
        match () {
            () if refused != 0 => Err(ClientError::Refused { request, refusal: Refusal(refused) }),
            () if got != wanted => Err(ClientError::Odd { request, got, wanted }),
            () => Ok(Ok(words[1..].to_vec())),
        }
    }

    /// The reply to the last request; or why it should be sent again.
    fn reply(&mut self, command: Command, first: Duration) -> Result<Result<Vec<u32>, Trouble>, ClientError> {
        let mut decoder = Decoder::default();
        let mut within = first;
        for _ in 0..MOST_BYTES {
            let Some(byte) = self.line.receive(within)? else { return Ok(Err(Trouble::Nothing)) };
            within = self.patience.reply;
            match decoder.push(byte) {
                None => {}
                Some(Err(_)) => return Ok(Err(Trouble::Reply)),
                Some(Ok(words)) => {
                    let (sequence, answered) = (words[0] as u8, words[0] >> 8 & 0xff);
                    if answered == REPLY && words[0] >> 16 & 0xff == Reason::Damaged as u32 {
                        return Ok(Err(Trouble::Request));
                    }
                    // Others are of attempts before.
                    if sequence == self.sequence && answered == REPLY | command as u32 {
                        return Ok(Ok(words));
                    }
                }
            }
        }
        Ok(Err(Trouble::Reply))
    }

    /// Ends whatever frame the host is in, and waits until the line is quiet.
    fn resynchronise(&mut self) -> Result<(), ClientError> {
        self.line.send(&[FLAG])?;
        let end = self.line.now() + MOST_QUIETS * self.patience.quiet;
        for _ in 0..MOST_BYTES {
            if self.line.receive(self.patience.quiet)?.is_none() {
                return Ok(());
            }
            if self.line.now() > end {
                break;
            }
        }
        Err(ClientError::Babble)
    }

    /// How the last launch is, or went.
    pub fn status(&mut self) -> Result<Status, ClientError> {
        Ok(Status::of(&self.ask(Command::Status, 0, &[], STATUS_WORDS)?))
    }

    /// What the core counts since the last launch, if it is [built](heddle_simt::Metrics::Built) with counters.
    pub fn counts(&mut self) -> Result<Counts<u64>, ClientError> {
        let shape = self.shape()?;
        Ok(told_counts(&shape, &self.ask(Command::Metrics, 0, &[], counts_words(&shape))?))
    }

    /// Stops everything; memory stays.
    pub fn reset(&mut self) -> Result<(), ClientError> {
        self.ask(Command::Reset, 0, &[], 0)?;
        self.launches = 0;
        Ok(())
    }

    /// Reads so many words.
    pub fn read(&mut self, address: u32, count: u32) -> Result<Vec<u32>, ClientError> {
        let (address, mut words) = (aligned(address)?, Vec::with_capacity(count as usize));
        let of = |at, count| (vec![address + 4 * at, count], count);
        self.in_parts(Command::Read, count, DATA_WORDS, of, |part| words.extend(part))?;
        Ok(words)
    }

    /// Writes words.
    pub fn write(&mut self, address: u32, words: &[u32]) -> Result<(), ClientError> {
        let address = aligned(address)?;
        let of = |at: u32, count: u32| {
            let part = &words[at as usize..(at + count) as usize];
            ([&[address + 4 * at, count], part].concat(), 0)
        };
        self.in_parts(Command::Write, words.len() as u32, DATA_WORDS, of, drop)
    }

    /// Writes one word to so many places.
    pub fn fill(&mut self, address: u32, count: u32, word: u32) -> Result<(), ClientError> {
        if count > 0 {
            self.ask(Command::Fill, 0, &[aligned(address)?, count, word], 0)?;
        }
        Ok(())
    }

    /// The CRC-32 of at least one word's bytes.
    pub fn checksum(&mut self, address: u32, count: u32) -> Result<u32, ClientError> {
        Ok(self.ask(Command::Checksum, 0, &[aligned(address)?, count], 1)?[0])
    }

    /// Writes entries of the side table, from that of the instruction at an address on.
    pub fn write_side_table(&mut self, address: u32, entries: &[u64]) -> Result<(), ClientError> {
        let address = aligned(address)?;
        let of = |at: u32, count: u32| {
            let part = &entries[at as usize..(at + count) as usize];
            let words = part.iter().flat_map(|&entry| [entry as u32, (entry >> 32) as u32]);
            ([address + 4 * at, count].into_iter().chain(words).collect(), 0)
        };
        // A frame holds half as many as words.
        self.in_parts(Command::SideTable, entries.len() as u32, DATA_WORDS / 2, of, drop)
    }

    /// Begins a launch of blocks of so many threads each, once, however often it has to be asked for.
    pub fn launch(&mut self, entry: u32, threads: u32, blocks: u32, program_end: u32) -> Result<(), ClientError> {
        let number = self.launches.wrapping_add(1);
        self.ask(Command::Launch, number, &[entry, threads, blocks, program_end], 0)?;
        self.launches = number;
        Ok(())
    }
}

fn aligned(address: u32) -> Result<u32, ClientError> {
    if address.is_multiple_of(4) { Ok(address) } else { Err(ClientError::Misaligned { address }) }
}
