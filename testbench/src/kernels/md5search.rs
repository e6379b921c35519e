//! Driver of `md5search`: searches of unequal length, many of them short. The digests are of messages that the host
//! chose, so that it knows what is found; of some searches, the message is not among the candidates.

use fastrand::Rng;

use super::{Device, KernelError, Output, check, from_bytes};

const OF_WORKER: usize = 8;
const STEPS: usize = 64;
const CANDIDATES: u32 = 1 << 16;
/// Candidates of a search have at most so many bits.
const ROOM_BITS: u32 = 4;
/// One of so many messages is not among the candidates.
const ABSENT: u32 = 8;

struct Search {
    first: u32,
    candidates: u32,
    message: u32,
}

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let grid = device.coarse_grid();
    let most = device.capacity("first")?;
    let searches: Vec<Search> = (0..device.pieces(OF_WORKER).min(most)).map(|_| Search::random(&mut rng)).collect();
    let mut digests = vec![0; 4 * most];
    for (number, search) in searches.iter().enumerate() {
        let digest = from_bytes(&md5::compute(letters(search.message)).0);
        (0..4).for_each(|word| digests[word * most + number] = digest[word]);
    }
    let sines: Vec<u32> = (1..=STEPS).map(|step| ((step as f64).sin().abs() * 2f64.powi(32)) as u32).collect();
    let of_all = |number: fn(&Search) -> u32| searches.iter().map(number).collect::<Vec<u32>>();
    device.write_words("sines", &sines)?;
    device.write_words("digests", &digests)?;
    device.write_words("first", &of_all(|search| search.first))?;
    device.write_words("candidates", &of_all(|search| search.candidates))?;
    device.write_word("count", searches.len() as u32)?;
    device.launch_grid(grid)?;
    let want = of_all(|search| (search.message - search.first).min(search.candidates));
    check("rejected", &want, &device.read_words("rejected", want.len())?)?;
    Ok(Output::checked(want.len()))
}

impl Search {
    fn random(rng: &mut Rng) -> Search {
        let bits = rng.u32(1..=ROOM_BITS);
        let candidates = rng.u32(1..=1 << bits);
        let first = rng.u32(..CANDIDATES - 2 * candidates);
        let absent = rng.u32(..ABSENT) == 0;
        let message = first + rng.u32(..candidates) + if absent { candidates } else { 0 };
        Search { first, candidates, message }
    }
}

/// Four letters, 'a' to 'p'; the lowest four bits are the first.
fn letters(candidate: u32) -> [u8; 4] {
    [0, 4, 8, 12].map(|shift| b'a' + (candidate >> shift & 15) as u8)
}
