//! Driver of `bfs`: a random graph as the generator of Rodinia's inputs makes it; the host searches with a queue.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use fastrand::Rng;

use super::{Device, KernelError, Output, check};

const NODES: usize = 1000;
const THREADS: u32 = 256;
/// Edges that begin at a node. Each leads both ways, so that twice as many are at a node on average.
const EDGES: RangeInclusive<usize> = 2..=4;
const UNKNOWN: u32 = u32::MAX;

/// Values of `phase`.
const EXPAND: u32 = 0;
const ADVANCE: u32 = 1;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let nodes = device.items(NODES, device.capacity("distance")?);
    let source = rng.usize(..nodes);
    let mut neighbours = vec![Vec::new(); nodes];
    for node in 0..nodes {
        for _ in 0..rng.usize(EDGES) {
            let other = rng.usize(..nodes);
            neighbours[node].push(other as u32);
            neighbours[other].push(node as u32);
        }
    }
    let target = neighbours.concat();
    let ends = neighbours.iter().scan(0, |end, of_node| {
        *end += of_node.len() as u32;
        Some(*end)
    });
    let first: Vec<u32> = std::iter::once(0).chain(ends).collect();
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
