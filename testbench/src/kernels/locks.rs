//! Drivers of the lock programs, whose threads wait for other threads of their warp. Each computes what the sums under
//! a lock come to, whatever the order in which threads had it.

use super::{Device, KernelError, Output, check};
use crate::grid::Grid;

/// Turns of a thread, rounds of a block.
const TURNS: u32 = 4;
const ROUNDS: u32 = 3;

/// Puts zeros into arrays.
fn clear(device: &mut dyn Device, names: &[&str]) -> Result<(), KernelError> {
    for name in names {
        let zeros = vec![0; device.capacity(name)?];
        device.write_words(name, &zeros)?;
    }
    Ok(())
}

/// Launches a thread for each of the core's, and compares arrays with what they should hold.
fn launch(device: &mut dyn Device, expected: &[(&'static str, Vec<u32>)]) -> Result<Output, KernelError> {
    device.launch()?;
    compare(device, expected)
}

fn compare(device: &mut dyn Device, expected: &[(&'static str, Vec<u32>)]) -> Result<Output, KernelError> {
    for (name, want) in expected {
        check(name, want, &device.read_words(name, want.len())?)?;
    }
    Ok(Output::checked(expected.iter().map(|(_, want)| want.len()).sum()))
}

/// Gives the counter its first value, and what it comes to when each of so many threads has added its number, counted
/// from 1, `TURNS` times.
fn count(device: &mut dyn Device, seed: u64, threads: u32) -> Result<u32, KernelError> {
    let first = start(device, "counter", seed)?;
    Ok((1..=threads).fold(first, |sum, number| sum.wrapping_add(TURNS * number)))
}

/// Gives a variable a value by the seed.
fn start(device: &mut dyn Device, name: &str, seed: u64) -> Result<u32, KernelError> {
    let value = fastrand::Rng::with_seed(seed).u32(..);
    device.write_word(name, value)?;
    Ok(value)
}

/// Threads that take part: those that the program has a place for in an array.
fn threads(device: &dyn Device, array: &str) -> Result<u32, KernelError> {
    Ok(device.threads().min(device.capacity(array)? as u32))
}

pub(super) mod spin_lock {
    use super::*;

    pub fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
        clear(device, &["lock"])?;
        let threads = device.threads();
        let want = count(device, seed, threads)?;
        launch(device, &[("counter", vec![want]), ("lock", vec![0])])
    }
}

pub(super) mod ticket_lock {
    use super::*;

    pub fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
        clear(device, &["tickets", "served"])?;
        let threads = device.threads();
        let (want, tickets) = (count(device, seed, threads)?, TURNS * threads);
        launch(device, &[("counter", vec![want]), ("tickets", vec![tickets]), ("served", vec![tickets])])
    }
}

pub(super) mod mcs_lock {
    use super::*;

    pub fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
        clear(device, &["tail"])?;
        let threads = threads(device, "behind")?;
        let want = count(device, seed, threads)?;
        launch(device, &[("counter", vec![want]), ("tail", vec![0])])
    }
}

pub(super) mod producer_consumer {
    use super::*;

    const ITEMS: u32 = 8;

    pub fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
        clear(device, &["full", "sums"])?;
        let first = start(device, "first", seed)?;
        let item = |pair: u32, k| first.wrapping_add(7 * k + pair);
        let sum = |pair| (0..ITEMS).fold(0, |sum: u32, k| sum.wrapping_add(item(pair, k)));
        // A thread without a partner sums nothing up.
        let sums =
            (0..device.threads().div_ceil(2)).map(|pair| if 2 * pair + 1 < device.threads() { sum(pair) } else { 0 });
        let sums = sums.collect();
        launch(device, &[("sums", sums)])
    }
}

pub(super) mod nested_locks {
    use super::*;

    const ACCOUNTS: u32 = 16;

    pub fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
        clear(device, &["locks"])?;
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut balances: Vec<u32> = (0..ACCOUNTS).map(|_| rng.u32(..)).collect();
        device.write_words("balances", &balances)?;
        for (thread, turn) in (0..device.threads()).flat_map(|thread| (0..TURNS).map(move |turn| (thread, turn))) {
            let (from, to) = ((5 * thread + 3 * turn) % ACCOUNTS, (7 * thread + 11 * turn + 1) % ACCOUNTS);
            let amount = thread % 9 + 1;
            balances[from as usize] = balances[from as usize].wrapping_sub(amount);
            balances[to as usize] = balances[to as usize].wrapping_add(amount);
        }
        launch(device, &[("balances", balances), ("locks", vec![0; ACCOUNTS as usize])])
    }
}

pub(super) mod lock_in_loop {
    use super::*;

    pub fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
        clear(device, &["lock", "alone"])?;
        let first = start(device, "counter", seed)?;
        // What a thread adds, with the lock or without.
        let of = |thread: u32, locked: u32| {
            (0..=thread % 7).filter(move |k| (thread + k) & 1 == locked).map(|k| k + 1).sum::<u32>()
        };
        let threads = 0..device.threads();
        let counter = threads.clone().fold(first, |sum, thread| sum.wrapping_add(of(thread, 1)));
        let alone = threads.map(|thread| of(thread, 0)).collect();
        launch(device, &[("counter", vec![counter]), ("alone", alone)])
    }
}

pub(super) mod lock_and_barrier {
    use super::*;

    /// Threads of a block, where the core has as many.
    const THREADS: u32 = 64;

    pub fn drive(device: &mut dyn Device, _: u64) -> Result<Output, KernelError> {
        clear(device, &["locks", "sums", "wrong"])?;
        let threads = device.block_threads(THREADS);
        let blocks = (device.threads() / threads).min(device.capacity("locks")? as u32);
        device.launch_grid(Grid { blocks, threads })?;
        let sums = vec![ROUNDS * (threads * (threads + 1) / 2); blocks as usize];
        compare(device, &[("sums", sums), ("wrong", vec![0])])
    }
}

pub(super) mod cas_queue {
    use super::*;

    pub fn drive(device: &mut dyn Device, _: u64) -> Result<Output, KernelError> {
        clear(device, &["head", "tail", "behind", "taken"])?;
        device.launch()?;
        // Each number is taken out once, by whom, nobody knows.
        let threads = threads(device, "taken")?;
        let mut taken = device.read_words("taken", threads as usize)?;
        taken.sort_unstable();
        check("taken", &(1..=threads).collect::<Vec<_>>(), &taken)?;
        Ok(Output::checked(taken.len()))
    }
}

pub(super) mod hash_table {
    use super::*;

    const KEYS: u32 = 4;
    const DISTINCT: u32 = 61;

    pub fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
        clear(device, &["keys", "counts"])?;
        let salt = start(device, "salt", seed)?;
        device.launch()?;
        let mut want = vec![0; DISTINCT as usize];
        for (thread, k) in (0..device.threads()).flat_map(|thread| (0..KEYS).map(move |k| (thread, k))) {
            want[((7 * thread + 13 * k).wrapping_add(salt) % DISTINCT) as usize] += 1;
        }
        // A key may be in any place, but in one only.
        let places = device.capacity("keys")?;
        let (keys, counts) = (device.read_words("keys", places)?, device.read_words("counts", places)?);
        let count_of =
            |key: u32| -> u32 { keys.iter().position(|&found| found == key).map_or(0, |place| counts[place]) };
        check("counts", &want, &(1..=DISTINCT).map(count_of).collect::<Vec<_>>())?;
        check("keys", &[places as u32], &[(keys.iter().filter(|&&key| key == 0).count() + distinct(&keys)) as u32])?;
        Ok(Output::checked(want.len()))
    }

    /// How many keys there are, each counted once.
    fn distinct(keys: &[u32]) -> usize {
        let mut keys: Vec<u32> = keys.iter().copied().filter(|&key| key != 0).collect();
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    }
}
