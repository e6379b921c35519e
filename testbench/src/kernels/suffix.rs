//! Driver of `suffix`: a random text and the tree of its suffixes; queries are random, or pieces of the text with some
//! letters changed. The host looks for the matches in the text itself.

use std::ops::RangeInclusive;

use fastrand::Rng;

use super::{Device, KernelError, Output, check};

const TEXT: usize = 512;
const LETTERS: u8 = 4;
const QUERIES: usize = 192;
const LENGTHS: RangeInclusive<usize> = 16..=32;
const THREADS: u32 = 256;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let text = text(&mut rng, TEXT);
    let most = device.capacity("lengths")?;
    let queries = Queries::random(&mut rng, &text, device.items(QUERIES, most), LENGTHS);
    device.write_bytes("text", &text)?;
    device.write_bytes("nodes", &Tree::of(&text).bytes())?;
    device.write_bytes("queries", &by_place(&queries.letters, most))?;
    device.write_words("lengths", &queries.lengths)?;
    let count = queries.lengths.len();
    device.write_word("count", count as u32)?;
    let grid = device.grid_of(count, THREADS);
    device.launch_grid(grid)?;
    let want = by_place(&queries.matched(&text), most);
    check("matched", &want, &device.read_bytes("matched", want.len())?)?;
    Ok(Output::checked(queries.starts()))
}

/// The first byte of all queries, then the second, each with room for the most.
fn by_place(by_query: &[u8], most: usize) -> Vec<u8> {
    let mut bytes = vec![0; LENGTHS.end() * most];
    for (number, query) in by_query.chunks(*LENGTHS.end()).enumerate() {
        (0..).zip(query).for_each(|(place, &byte): (usize, _)| bytes[place * most + number] = byte);
    }
    bytes
}

/// Random letters.
pub(super) fn text(rng: &mut Rng, letters: usize) -> Vec<u8> {
    (0..letters).map(|_| rng.u8(..LETTERS)).collect()
}

/// Pieces of a text with some letters changed.
pub(super) struct Queries {
    /// Of all queries, each with room for the longest.
    pub letters: Vec<u8>,
    pub lengths: Vec<u32>,
}

impl Queries {
    pub fn random(rng: &mut Rng, text: &[u8], count: usize, lengths: RangeInclusive<usize>) -> Queries {
        let mut queries = Queries { letters: vec![0; count * lengths.end()], lengths: Vec::new() };
        for query in queries.letters.chunks_mut(*lengths.end()) {
            let length = rng.usize(lengths.clone());
            let copied = rng.usize(..text.len() - length);
            for (place, letter) in query[..length].iter_mut().enumerate() {
                *letter = if rng.u32(..6) == 0 { rng.u8(..LETTERS) } else { text[copied + place] };
            }
            queries.lengths.push(length as u32);
        }
        queries
    }

    /// Places in all queries.
    pub fn starts(&self) -> usize {
        self.lengths.iter().sum::<u32>() as usize
    }

    /// For each place in each query, the letters that match.
    pub fn matched(&self, text: &[u8]) -> Vec<u8> {
        let mut matched = vec![0; self.letters.len()];
        let room = self.letters.len() / self.lengths.len();
        let all = self.letters.chunks(room).zip(matched.chunks_mut(room)).zip(&self.lengths);
        for ((query, results), &length) in all {
            let query = &query[..length as usize];
            for (start, result) in results[..query.len()].iter_mut().enumerate() {
                *result = longest(text, &query[start..]) as u8;
            }
        }
        matched
    }
}

/// Letters of the longest beginning that is anywhere in the text.
fn longest(text: &[u8], wanted: &[u8]) -> usize {
    let common = |suffix: &[u8]| suffix.iter().zip(wanted).take_while(|(a, b)| a == b).count();
    (0..text.len()).map(|from| common(&text[from..])).max().unwrap_or(0)
}

/// The C's `struct node`.
#[derive(Clone, Default)]
struct Node {
    start: usize,
    depth: usize,
    link: usize,
    child: [usize; LETTERS as usize],
}

/// The tree of a text's suffixes; node 0 is the root. A suffix that occurs elsewhere, too, may end on an edge.
struct Tree(Vec<Node>);

impl Tree {
    fn of(text: &[u8]) -> Tree {
        let mut tree = Tree(vec![Node::default()]);
        (0..text.len()).for_each(|from| tree.insert(text, from));
        for number in 1..tree.0.len() {
            let Node { start, depth, .. } = tree.0[number];
            tree.0[number].link = tree.last_on_the_way(&text[start + 1..start + depth]);
        }
        tree
    }

    fn insert(&mut self, text: &[u8], from: usize) {
        let suffix = &text[from..];
        let mut above = 0;
        while let Some(&letter) = suffix.get(self.0[above].depth) {
            let below = self.0[above].child[letter as usize];
            if below == 0 {
                self.0[above].child[letter as usize] = self.0.len();
                self.0.push(Node { start: from, depth: suffix.len(), ..Node::default() });
                return;
            }
            let Node { start, depth, .. } = self.0[below];
            let common = suffix.iter().zip(&text[start..start + depth]).take_while(|(a, b)| a == b).count();
            if common == suffix.len() {
                return;
            }
            above = if common < depth {
                let mut child = [0; LETTERS as usize];
                child[text[start + common] as usize] = below;
                self.0[above].child[letter as usize] = self.0.len();
                self.0.push(Node { start, depth: common, link: 0, child });
                self.0.len() - 1
            } else {
                below
            };
        }
    }

    /// The deepest node on the way from the root by these letters.
    fn last_on_the_way(&self, letters: &[u8]) -> usize {
        let mut above = 0;
        while let Some(&letter) = letters.get(self.0[above].depth) {
            let below = self.0[above].child[letter as usize];
            if self.0[below].depth > letters.len() {
                break;
            }
            above = below;
        }
        above
    }

    fn bytes(&self) -> Vec<u8> {
        let halfwords = |node: &Node| {
            let [a, b, c, d] = node.child;
            [node.start, node.depth, node.link, a, b, c, d, 0].map(|number| number as u16)
        };
        self.0.iter().flat_map(halfwords).flat_map(u16::to_le_bytes).collect()
    }
}
