use super::Tally;
use crate::circuit_breaker::policy::Counts;

/// Two bits a call: failed, slow.
const PER_WORD: usize = 32;

/// Counts over the last calls, in the order they were recorded. All memory is taken at once; a
/// record touches one word and the totals, whatever the size.
#[derive(Clone, Debug, Default)]
pub(crate) struct CountWindow {
    words: Box<[u64]>,
    capacity: usize,
    /// Where the next call goes: the oldest one's place, once the ring is full.
    next: usize,
    total: Counts,
}

impl CountWindow {
    pub(crate) fn new(capacity: u32) -> Self {
        let capacity = capacity as usize;
        Self {
            words: vec![0; capacity.div_ceil(PER_WORD)].into(),
            capacity,
            next: 0,
            total: Counts::default(),
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Counts one call in the place of the oldest.
    #[inline]
    pub(crate) fn add(&mut self, tally: Tally) {
        if self.capacity == 0 {
            return;
        }
        let shift = 2 * (self.next % PER_WORD);
        let word = &mut self.words[self.next / PER_WORD];
        if self.total.calls == self.capacity as u64 {
            let oldest = *word >> shift;
            self.total.calls -= 1;
            self.total.failures -= oldest & 1;
            self.total.slow -= oldest >> 1 & 1;
        }
        let bits = u64::from(tally.failed) | u64::from(tally.slow) << 1;
        *word = *word & !(0b11 << shift) | bits << shift;
        self.total.add(tally);
        self.next += 1;
        if self.next == self.capacity {
            self.next = 0;
        }
    }

    pub(crate) fn total(&self) -> Counts {
        self.total
    }

    /// Empties the ring; the bits stay, as a place that no call was counted for is never read.
    pub(crate) fn clear(&mut self) {
        self.next = 0;
        self.total = Counts::default();
    }
}
