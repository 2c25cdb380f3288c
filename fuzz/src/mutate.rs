//! A deterministic mutator of byte strings.

/// Makes new inputs out of seeds. The same start value gives the same inputs.
#[derive(Debug, Clone)]
pub struct Mutator {
    state: u64,
}

impl Mutator {
    /// The longest input that is made, in bytes.
    pub const MAX_BYTES: usize = 4096;
    /// The most changes between a seed and an input.
    const MAX_CHANGES: usize = 8;

    /// Creates a mutator with a start value.
    pub fn new(start: u64) -> Self {
        // The state of xorshift must not be zero.
        Self {
            state: start.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    fn next(&mut self) -> u64 {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state
    }

    /// Returns a number below `end`, or 0 if `end` is 0.
    fn below(&mut self, end: usize) -> usize {
        (self.next() >> 16) as usize % end.max(1)
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len()))
    }

    /// Returns a random range of at most `length` bytes.
    fn range(&mut self, length: usize) -> std::ops::Range<usize> {
        let start = self.below(length + 1);
        let end = start + self.below((length - start).min(32) + 1);
        start..end
    }

    /// Returns a seed with some changes: bytes and tokens that are replaced, inserted, deleted or
    /// repeated, and pieces of other seeds.
    pub fn mutate(&mut self, seeds: &[Vec<u8>], tokens: &[&str]) -> Vec<u8> {
        let mut input = self.pick(seeds).cloned().unwrap_or_default();
        for _ in 0..=self.below(Self::MAX_CHANGES) {
            self.change(&mut input, seeds, tokens);
        }
        input.truncate(Self::MAX_BYTES);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>, seeds: &[Vec<u8>], tokens: &[&str]) {
        let at = self.range(input.len());
        match self.below(9) {
            0 => {
                if let Some(byte) = input.get_mut(at.start) {
                    *byte ^= 1 << (self.state & 7);
                }
            }
            1 => input.insert(at.start, self.next() as u8),
            2 => input.insert(at.start, b' ' + self.below(95) as u8),
            3 => drop(input.drain(at)),
            4 => {
                let piece = input[at.clone()].to_vec();
                drop(input.splice(at.start..at.start, piece));
            }
            5 => {
                let other = self.pick(seeds).map_or(&[][..], Vec::as_slice);
                let piece = other[self.range(other.len())].to_vec();
                drop(input.splice(at, piece));
            }
            6 => {
                let token = self.pick(tokens).map_or("", |token| token);
                drop(input.splice(at, token.bytes()));
            }
            _ => {
                let token = self.pick(tokens).map_or("", |token| token);
                drop(input.splice(at.start..at.start, token.bytes()));
            }
        }
    }
}
