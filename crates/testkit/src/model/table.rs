//! The set of states met so far: numbered in the order of meeting, found by hash. One index of four bytes a slot.

use std::hash::{Hash, Hasher};

/// States by number and by value.
pub(crate) struct Table<S> {
    states: Vec<S>,
    slots: Vec<u32>,
}

const FREE: u32 = u32::MAX;

impl<S: Eq + Hash> Table<S> {
    pub(crate) fn new() -> Self {
        Self { states: Vec::new(), slots: vec![FREE; 1 << 12] }
    }

    pub(crate) fn len(&self) -> usize {
        self.states.len()
    }

    pub(crate) fn state(&self, number: u32) -> &S {
        &self.states[index(number)]
    }

    pub(crate) fn states(&self) -> &[S] {
        &self.states
    }

    /// The number of `state`, and whether it is new.
    pub(crate) fn number(&mut self, state: S) -> (u32, bool) {
        if self.states.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mut slot = self.slot_of(&state);
        loop {
            match self.slots[slot] {
                FREE => break,
                number if self.states[index(number)] == state => return (number, false),
                _ => slot = (slot + 1) % self.slots.len(),
            }
        }
        let number =
            u32::try_from(self.states.len()).expect("the checker's limit is below four billion states");
        self.slots[slot] = number;
        self.states.push(state);
        (number, true)
    }

    fn grow(&mut self) {
        self.slots = vec![FREE; self.slots.len() * 2];
        for number in 0..self.states.len() {
            let mut slot = self.slot_of(&self.states[number]);
            while self.slots[slot] != FREE {
                slot = (slot + 1) % self.slots.len();
            }
            self.slots[slot] = u32::try_from(number).expect("was a number before");
        }
    }

    fn slot_of(&self, state: &S) -> usize {
        let mut hasher = Mixer(0);
        state.hash(&mut hasher);
        let folded = hasher.finish();
        usize::try_from(folded % self.slots.len() as u64).expect("below the length of a vector")
    }
}

fn index(number: u32) -> usize {
    number as usize
}

/// A quick hash for small fields; the standard one is made for hostile keys and costs several times as much.
struct Mixer(u64);

impl Mixer {
    fn mix(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517C_C1B7_2722_0A95);
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.mix(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.mix(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.mix(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.mix(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.mix(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.mix(value.cast_unsigned() as u64);
    }

    fn finish(&self) -> u64 {
        let folded = (self.0 ^ (self.0 >> 32)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        folded ^ (folded >> 29)
    }
}
