use std::collections::BTreeSet;
use std::time::Duration;

use crate::clock::Nanos;

/// The calls in flight that may yet run past the slow threshold, by when they began: the oldest
/// is overdue first, whatever threshold a later policy sets, and however the clock moved between
/// them. Holds calls in flight and nothing else, so one that hangs keeps no other here.
#[derive(Debug, Default)]
pub(super) struct Overdue {
    next: u64,
    running: BTreeSet<(Nanos, u64)>,
}

impl Overdue {
    /// Notes a call that begins at `start`, and gives its number.
    pub(super) fn begin(&mut self, start: Nanos) -> u64 {
        let number = self.next;
        self.next += 1;
        self.running.insert((start, number));
        number
    }

    /// Takes a call out that ended. Says whether it was still to be counted.
    pub(super) fn end(&mut self, start: Nanos, number: u64) -> bool {
        self.running.remove(&(start, number))
    }

    /// Takes the oldest call out if by `now` it has run for `threshold`.
    pub(super) fn take(&mut self, now: Nanos, threshold: Duration) -> bool {
        let overdue = self
            .deadline(threshold)
            .is_some_and(|deadline| deadline <= now);
        if overdue {
            self.running.pop_first();
        }
        overdue
    }

    /// When the oldest call has run for `threshold`.
    pub(super) fn deadline(&self, threshold: Duration) -> Option<Nanos> {
        let (start, _) = self.running.first()?;
        Some(start.plus(threshold)).filter(|&deadline| deadline < Nanos::MAX)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Forgets all calls: they belong to an epoch that is over.
    pub(super) fn clear(&mut self) {
        self.running.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Duration = Duration::from_nanos(2);

    fn begin(overdue: &mut Overdue, start: u64) -> (Nanos, u64) {
        let start = Nanos::new(start);
        (start, overdue.begin(start))
    }

    fn end(overdue: &mut Overdue, (start, number): (Nanos, u64)) -> bool {
        overdue.end(start, number)
    }

    #[test]
    fn each_call_is_taken_once_by_its_end_or_by_its_deadline() {
        let mut overdue = Overdue::default();
        let calls = [1, 3, 7].map(|start| begin(&mut overdue, start));
        assert!(!overdue.take(Nanos::new(2), TWO), "none is overdue yet");
        assert!(end(&mut overdue, calls[1]), "it ended in time");
        assert!(overdue.take(Nanos::new(5), TWO), "the first");
        assert!(!end(&mut overdue, calls[0]), "it was counted");
        assert!(!overdue.take(Nanos::new(8), TWO), "the second had ended");
        assert_eq!(overdue.deadline(TWO), Some(Nanos::new(9)));
        assert!(end(&mut overdue, calls[2]));
        assert!(overdue.is_empty(), "nothing is left behind");
    }

    #[test]
    fn calls_of_an_epoch_that_is_over_are_not_mistaken_for_later_ones() {
        let mut overdue = Overdue::default();
        let old = begin(&mut overdue, 1);
        overdue.clear();
        let new = begin(&mut overdue, 1);
        assert!(!end(&mut overdue, old));
        assert!(end(&mut overdue, new));
    }

    #[test]
    fn one_call_that_hangs_keeps_none_of_those_that_ended_after_it() {
        let mut overdue = Overdue::default();
        begin(&mut overdue, 0);
        for start in 1..10_000 {
            let call = begin(&mut overdue, start);
            assert!(end(&mut overdue, call));
            assert_eq!(overdue.running.len(), 1, "the one in flight");
        }
    }

    #[test]
    fn a_call_that_began_after_the_clock_went_back_is_overdue_in_its_own_time() {
        let mut overdue = Overdue::default();
        begin(&mut overdue, 100);
        begin(&mut overdue, 50);
        assert!(overdue.take(Nanos::new(52), TWO), "not after the other");
        assert!(!overdue.take(Nanos::new(52), TWO));
        assert!(!overdue.take(Nanos::MAX, Duration::MAX), "never");
    }
}
