use std::time::Duration;

use super::plan::Plan;
use super::standing::{Standing, Way};
use crate::clock::Nanos;
use crate::sync::{AtomicU64, Ordering};

/// What calls may go by without the lock: words that only changes write, so that every core keeps
/// its own copy of the line while the circuit stays as it is.
#[derive(Debug)]
pub(super) struct Gate {
    standing: AtomicU64,
    /// With `Way::RefuseInTime`, until when. Written before the word and read after it.
    until: AtomicU64,
    /// The longest that a call may take and not be slow, in nanoseconds.
    longest: AtomicU64,
}

impl Gate {
    pub(super) fn new() -> Self {
        let nothing = Standing::new(0, Way::Ask, Plan::from_bits(0), false);
        Self {
            standing: AtomicU64::new(nothing.word()),
            until: AtomicU64::new(0),
            longest: AtomicU64::new(u64::MAX),
        }
    }

    /// The time that calls are refused up to, told by the next [`set`](Self::set). Under the state
    /// machine's lock only, as that is.
    pub(super) fn set_until(&self, until: Nanos) {
        self.until.store(until.as_u64(), Ordering::Release);
    }

    pub(super) fn set(&self, standing: Standing) {
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

    /// Until when calls are refused by `standing`, if they are up to a time that comes. Never a
    /// time of before it; one of a later open state, where that is about to be set or was since:
    /// whoever reads the clock after this tells the truth.
    #[inline]
    pub(super) fn refusing_until(&self, standing: Standing) -> Option<Nanos> {
        let until = || Nanos::new(self.until.load(Ordering::Acquire));
        standing.refuses_in_time().then(until)
    }
}

#[cfg(all(test, not(sluice_loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_way_reads_as_it_was_set_and_only_a_time_that_comes_is_waited_for() {
        let soon = Nanos::new(7);
        let plan = Plan::from_bits(Plan::TIMED);
        for way in [
            Way::Pass,
            Way::PassUncounted,
            Way::RefuseInTime,
            Way::RefuseForEver,
            Way::RefuseForced,
            Way::Ask,
        ] {
            let gate = Gate::new();
            gate.set_until(soon);
            gate.set(Standing::new(3, way, plan, false));
            let standing = gate.standing();
            assert_eq!((standing.epoch(), standing.way()), (3, way));
            assert_eq!(standing.plan(), plan);
            let until = (way == Way::RefuseInTime).then_some(soon);
            assert_eq!(gate.refusing_until(standing), until, "{way:?}");
            assert_eq!(standing.is_plain(), way == Way::Pass, "{way:?}");
        }
    }
}
