//! Driver of `bfs`: a random graph of uneven degrees, in which some nodes are not reached; the host searches with a
//! queue.

use std::collections::VecDeque;

use fastrand::Rng;

use super::{Device, KernelError, Output, check};

const NODES: usize = 1000;
const THREADS: u32 = 256;
const MOST_NEIGHBOURS: usize = 6;
const UNKNOWN: u32 = u32::MAX;

/// Values of `phase`.
const EXPAND: u32 = 0;
const ADVANCE: u32 = 1;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let nodes = device.items(NODES, device.capacity("distance")?);
    let source = rng.usize(..nodes);
    let mut first = vec![0];
    let mut target = Vec::new();
    for node in 0..nodes {
        // The source has neighbours whatever the seed.
        let least = if node == source { MOST_NEIGHBOURS } else { 0 };
        target.extend((0..rng.usize(least..=MOST_NEIGHBOURS)).map(|_| rng.u32(..nodes as u32)));
        first.push(target.len() as u32);
    }
    let mut only_source = vec![0; nodes];
    only_source[source] = 1;
    let mut distance = vec![UNKNOWN; nodes];
    distance[source] = 0;
    device.write_word("nodes", nodes as u32)?;
    device.write_words("first", &first)?;
    device.write_words("target", &target)?;
    device.write_bytes("frontier", &only_source)?;
    device.write_bytes("visited", &only_source)?;
    device.write_words("distance", &distance)?;

    let grid = device.grid_of(nodes, THREADS);
    for _level in 0..nodes {
        device.write_word("phase", EXPAND)?;
        device.launch_grid(grid)?;
        device.write_word("phase", ADVANCE)?;
        device.write_word("found", 0)?;
        device.launch_grid(grid)?;
        if device.read_words("found", 1)? == [0] {
            break;
        }
    }

    let mut queue = VecDeque::from([source]);
    while let Some(node) = queue.pop_front() {
        for &neighbour in &target[first[node] as usize..first[node + 1] as usize] {
            if distance[neighbour as usize] == UNKNOWN {
                distance[neighbour as usize] = distance[node] + 1;
                queue.push_back(neighbour as usize);
            }
        }
    }
    check("distance", &distance, &device.read_words("distance", nodes)?)?;
    Ok(Output::checked(nodes))
}
