use crate::clock::Nanos;
use crate::sync::{AtomicU64, Ordering};

const WAY_BITS: u32 = 3;
const WAY: u64 = (1 << WAY_BITS) - 1;
const REFUSE_UNTIL: u64 = 2;
/// Up to a time that never comes, told apart so that no call compares for it.
const REFUSE_FOREVER: u64 = 5;

/// What an arriving call may go by without the lock: one word that only transitions write, so
/// that every core keeps its own copy of the line while the circuit stays as it is.
#[derive(Debug)]
pub(super) struct Gate {
    /// The epoch, and the way in the lowest bits.
    word: AtomicU64,
    /// With `Way::RefuseUntil`, until when. Written before the word and read after it.
    until: AtomicU64,
}

/// What is to become of calls that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Pass, counted.
    Pass,
    /// Pass, not counted.
    PassUncounted,
    /// Refuse up to a time; ask from then on.
    RefuseUntil(Nanos),
    /// Refuse: forced open.
    RefuseForced,
    /// Take the lock and ask the state machine.
    Ask,
}

impl Gate {
    pub(super) fn new() -> Self {
        Self {
            word: AtomicU64::new(0),
            until: AtomicU64::new(0),
        }
    }

    /// Under the state machine's lock only.
    pub(super) fn set(&self, epoch: u64, way: Way) {
        let bits = match way {
            Way::Pass => 0,
            Way::PassUncounted => 1,
            Way::RefuseUntil(Nanos::MAX) => REFUSE_FOREVER,
            Way::RefuseUntil(until) => {
                self.until.store(until.as_u64(), Ordering::Release);
                REFUSE_UNTIL
            }
            Way::RefuseForced => 3,
            Way::Ask => 4,
        };
        self.word.store(epoch << WAY_BITS | bits, Ordering::Release);
    }

    /// The epoch, if calls pass and are counted.
    #[inline]
    pub(super) fn passing(&self) -> Option<u64> {
        let word = self.word.load(Ordering::Acquire);
        (word & WAY == 0).then_some(word >> WAY_BITS)
    }

    /// Until when calls are refused, if they are up to a time that comes.
    #[inline]
    pub(super) fn refusing_until(&self) -> Option<Nanos> {
        let word = self.word.load(Ordering::Acquire);
        if word & WAY != REFUSE_UNTIL {
            return None;
        }
        match self.refuse_until(word) {
            Way::RefuseUntil(until) => Some(until),
            _ => None,
        }
    }

    /// The epoch and the way that belongs to it.
    #[inline]
    pub(super) fn read(&self) -> (u64, Way) {
        let word = self.word.load(Ordering::Acquire);
        let way = match word & WAY {
            0 => Way::Pass,
            1 => Way::PassUncounted,
            REFUSE_UNTIL => self.refuse_until(word),
            3 => Way::RefuseForced,
            REFUSE_FOREVER => Way::RefuseUntil(Nanos::MAX),
            _ => Way::Ask,
        };
        (word >> WAY_BITS, way)
    }

    /// The time that belongs to `word`. One of a later open state is never taken for it: between
    /// the two the word was written, and the acquiring load here makes that write seen.
    #[inline]
    fn refuse_until(&self, word: u64) -> Way {
        let until = self.until.load(Ordering::Acquire);
        if self.word.load(Ordering::Relaxed) == word {
            Way::RefuseUntil(Nanos::new(until))
        } else {
            Way::Ask
        }
    }

    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        self.word.load(Ordering::Acquire) >> WAY_BITS
    }
}

#[cfg(all(test, not(sluice_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_way_reads_as_it_was_set_and_only_a_time_that_comes_is_waited_for() {
        let soon = Nanos::new(7);
        for (way, until) in [
            (Way::Pass, None),
            (Way::PassUncounted, None),
            (Way::RefuseUntil(soon), Some(soon)),
            (Way::RefuseUntil(Nanos::MAX), None),
            (Way::RefuseForced, None),
            (Way::Ask, None),
        ] {
            let gate = Gate::new();
            gate.set(3, way);
            assert_eq!(gate.read(), (3, way));
            assert_eq!(gate.refusing_until(), until, "{way:?}");
            let passing = (way == Way::Pass).then_some(3);
            assert_eq!(gate.passing(), passing, "{way:?}");
        }
    }
}
