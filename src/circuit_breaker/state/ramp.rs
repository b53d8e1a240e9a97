use std::time::Duration;

use crate::clock::Nanos;

/// Shares are parts of this whole.
const WHOLE: u64 = 1_000_000;
/// Where the share begins: at nothing the first calls after a recovery would all be refused.
const FIRST: u64 = WHOLE / 10;

/// The gentle return: a share of calls that grows evenly with time.
#[derive(Clone, Debug)]
pub(crate) struct Ramp {
    begins: Nanos,
    length: Duration,
    /// Parts of the next admission that earlier arrivals have paid: each adds the share of its
    /// moment, a whole admits, so that refusals lie evenly between admissions.
    paid: u64,
}

impl Ramp {
    pub(super) fn new(begins: Nanos, length: Duration) -> Self {
        // As if one were paid all but the first share: the first call is admitted.
        let paid = WHOLE - FIRST;
        Self {
            begins,
            length,
            paid,
        }
    }

    pub(crate) fn is_over(&self, now: Nanos) -> bool {
        now.since(self.begins) >= self.length
    }

    /// Whether a call that arrives at `now` is admitted.
    pub(super) fn admits(&mut self, now: Nanos) -> bool {
        self.paid += self.share(now);
        let admitted = self.paid >= WHOLE;
        if admitted {
            self.paid -= WHOLE;
        }
        admitted
    }

    /// From `FIRST` at the beginning to `WHOLE` at the end.
    fn share(&self, now: Nanos) -> u64 {
        let passed = now.since(self.begins).min(self.length).as_nanos();
        let grown = passed * u128::from(WHOLE - FIRST) / self.length.as_nanos().max(1);
        FIRST + grown as u64 // at most WHOLE, as `passed` is at most `length`
    }
}
