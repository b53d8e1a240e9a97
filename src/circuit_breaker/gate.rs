use std::time::Duration;

use super::plan::Plan;
use super::standing::Standing;
use crate::clock::Nanos;
use crate::sync::{AtomicU64, Ordering};

const PASS_UNCOUNTED: u64 = 1;
const REFUSE_UNTIL: u64 = 2;
const REFUSE_FORCED: u64 = 3;
const ASK: u64 = 4;
/// Up to a time that never comes, told apart so that no call compares for it.
const REFUSE_FOREVER: u64 = 5;

/// What calls may go by without the lock: words that only changes write, so that every core keeps
/// its own copy of the line while the circuit stays as it is.
#[derive(Debug)]
pub(super) struct Gate {
    standing: AtomicU64,
    /// With `Way::RefuseUntil`, until when. Written before the word and read after it.
    until: AtomicU64,
    /// The longest that a call may take and not be slow, in nanoseconds.
    longest: AtomicU64,
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
        let nothing = Standing::new(0, ASK, Plan::from_bits(0), false);
        Self {
            standing: AtomicU64::new(nothing.word()),
            until: AtomicU64::new(0),
            longest: AtomicU64::new(u64::MAX),
        }
    }

    /// Under the state machine's lock only.
    pub(super) fn set(&self, epoch: u64, way: Way, plan: Plan, row: bool) {
        let bits = match way {
            Way::Pass => Standing::PASS,
            Way::PassUncounted => PASS_UNCOUNTED,
            Way::RefuseUntil(Nanos::MAX) => REFUSE_FOREVER,
            Way::RefuseUntil(until) => {
                self.until.store(until.as_u64(), Ordering::Release);
                REFUSE_UNTIL
            }
            Way::RefuseForced => REFUSE_FORCED,
            Way::Ask => ASK,
        };
        let standing = Standing::new(epoch, bits, plan, row);
        self.standing.store(standing.word(), Ordering::Release);
    }

    /// From here on calls are slow that take as long as `threshold`.
    pub(super) fn set_slow(&self, threshold: Option<Duration>) {
        // One nanosecond below the threshold, so that the end of time, which is none, asks for no
        // comparison of its own.
        let longest = match threshold.map_or(Nanos::MAX, Nanos::saturating) {
            Nanos::MAX => u64::MAX,
            threshold => threshold.as_u64().saturating_sub(1),
        };
        self.longest.store(longest, Ordering::Relaxed);
    }

    /// Whether a call is slow that took `elapsed` nanoseconds. Without a threshold none is.
    #[inline]
    pub(super) fn is_slow(&self, elapsed: u64) -> bool {
        elapsed > self.longest.load(Ordering::Relaxed)
    }

    #[inline]
    pub(super) fn standing(&self) -> Standing {
        Standing::from_word(self.standing.load(Ordering::Acquire))
    }

    #[inline]
    pub(super) fn epoch(&self) -> u64 {
        self.standing().epoch()
    }

    /// Until when calls are refused by `standing`, if they are up to a time that comes.
    #[inline]
    pub(super) fn refusing_until(&self, standing: Standing) -> Option<Nanos> {
        if standing.way() != REFUSE_UNTIL {
            return None;
        }
        match self.refuse_until(standing) {
            Way::RefuseUntil(until) => Some(until),
            _ => None,
        }
    }

    /// How the breaker stands, and the way that belongs to it.
    #[inline]
    pub(super) fn read(&self) -> (Standing, Way) {
        let standing = self.standing();
        let way = match standing.way() {
            Standing::PASS => Way::Pass,
            PASS_UNCOUNTED => Way::PassUncounted,
            REFUSE_UNTIL => self.refuse_until(standing),
            REFUSE_FORCED => Way::RefuseForced,
            REFUSE_FOREVER => Way::RefuseUntil(Nanos::MAX),
            _ => Way::Ask,
        };
        (standing, way)
    }

    /// The time that belongs to `standing`. One of a later open state is never taken for it:
    /// between the two the word was written, and the acquiring load here makes that write seen.
    #[inline]
    fn refuse_until(&self, standing: Standing) -> Way {
        let until = self.until.load(Ordering::Acquire);
        if self.standing.load(Ordering::Relaxed) == standing.word() {
            Way::RefuseUntil(Nanos::new(until))
        } else {
            Way::Ask
        }
    }
}

#[cfg(all(test, not(sluice_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_way_reads_as_it_was_set_and_only_a_time_that_comes_is_waited_for() {
        let soon = Nanos::new(7);
        let plan = Plan::from_bits(Plan::TIMED);
        for (way, until) in [
            (Way::Pass, None),
            (Way::PassUncounted, None),
            (Way::RefuseUntil(soon), Some(soon)),
            (Way::RefuseUntil(Nanos::MAX), None),
            (Way::RefuseForced, None),
            (Way::Ask, None),
        ] {
            let gate = Gate::new();
            gate.set(3, way, plan, false);
            let (standing, seen) = gate.read();
            assert_eq!((standing.epoch(), seen), (3, way));
            assert_eq!(standing.plan(), plan);
            assert_eq!(gate.refusing_until(standing), until, "{way:?}");
            assert_eq!(standing.is_plain(), way == Way::Pass, "{way:?}");
        }
    }
}
