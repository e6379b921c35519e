//! Reservations of `lr.w`, by word and exact: one is lost by its thread's next `lr.w` or `sc.w`, and by whoever writes
//! its word.

use super::memory::Place;
use std::collections::HashMap;

/// Those of all harts.
#[derive(Clone, Debug, Default)]
pub struct Reservations {
    /// By hart: its word.
    words: HashMap<u32, Place>,
    /// By word: the harts that have reserved it.
    harts: HashMap<Place, Vec<u32>>,
}

impl Reservations {
    /// The word that a hart has reserved.
    pub fn of(&self, hart: u32) -> Option<Place> {
        self.words.get(&hart).copied()
    }

    /// Its `lr.w`.
    pub fn make(&mut self, hart: u32, word: Place) {
        self.end(hart);
        self.words.insert(hart, word);
        self.harts.entry(word).or_default().push(hart);
    }

    /// Its `sc.w`.
    pub fn end(&mut self, hart: u32) {
        let Some(word) = self.words.remove(&hart) else { return };
        let harts = self.harts.get_mut(&word).expect("who has reserved a word is among those of the word");
        harts.retain(|&other| other != hart);
        if harts.is_empty() {
            self.harts.remove(&word);
        }
    }

    /// Something in this word is written.
    pub fn written(&mut self, word: Place) {
        if self.harts.is_empty() {
            return;
        }
        for hart in self.harts.remove(&word).unwrap_or_default() {
            self.words.remove(&hart);
        }
    }
}
