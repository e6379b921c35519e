//! Driver of `suffix`: a random text and the tree of its suffixes; queries are random, or pieces of the text with some letters
//! changed. The host looks for the matches in the text itself.

use fastrand::Rng;

use super::{Device, KernelError, Output, check};

const TEXT: usize = 512;
const LETTERS: u8 = 4;
const QUERIES: usize = 192;
const LENGTH: usize = 48;
const SHORTEST: usize = 16;

pub(super) fn drive(device: &mut dyn Device, seed: u64) -> Result<Output, KernelError> {
    let mut rng = Rng::with_seed(seed);
    let text: Vec<u8> = (0..TEXT).map(|_| rng.u8(..LETTERS)).collect();
    let mut queries = vec![0; QUERIES * LENGTH];
    let mut lengths = Vec::new();
    for query in queries.chunks_mut(LENGTH) {
        let length = rng.usize(SHORTEST..=LENGTH);
        let copied = rng.usize(..TEXT - length);
        for (place, letter) in query[..length].iter_mut().enumerate() {
            *letter = if rng.u32(..6) == 0 { rng.u8(..LETTERS) } else { text[copied + place] };
        }
        lengths.push(length as u32);
    }
    device.write_bytes("text", &text)?;
    device.write_bytes("nodes", &Tree::of(&text).bytes())?;
    device.write_bytes("queries", &queries)?;
    device.write_words("lengths", &lengths)?;
    device.launch()?;
    let mut want = vec![0; QUERIES * LENGTH];
    for ((query, results), &length) in queries.chunks(LENGTH).zip(want.chunks_mut(LENGTH)).zip(&lengths) {
        let query = &query[..length as usize];
        for (start, result) in results[..query.len()].iter_mut().enumerate() {
            *result = longest(&text, &query[start..]) as u32;
        }
    }
    check("matched", &want, &device.read_words("matched", want.len())?)?;
    Ok(Output::checked(lengths.iter().sum::<u32>() as usize))
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
