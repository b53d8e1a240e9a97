use std::collections::VecDeque;

use crate::clock::Nanos;

/// The calls in flight that may yet run past the slow threshold, in the order they began. Only
/// the oldest is looked at: no later one can be overdue before it.
#[derive(Debug, Default)]
pub(super) struct Overdue {
    /// The number of the oldest.
    first: u64,
    running: VecDeque<Running>,
}

#[derive(Debug)]
struct Running {
    deadline: Nanos,
    ended: bool,
}

impl Overdue {
    /// Notes a call that is overdue at `deadline`, and gives its number.
    pub(super) fn begin(&mut self, deadline: Nanos) -> u64 {
        self.running.push_back(Running {
            deadline,
            ended: false,
        });
        self.first + self.running.len() as u64 - 1
    }

    /// Takes a call out that ended. Says whether it was still to be counted.
    pub(super) fn end(&mut self, number: u64) -> bool {
        let place = number.checked_sub(self.first);
        let Some(call) = place.and_then(|place| self.running.get_mut(place as usize)) else {
            return false;
        };
        call.ended = true;
        self.drop_ended();
        true
    }

    /// Takes the oldest call out if it is overdue at `now`.
    pub(super) fn take(&mut self, now: Nanos) -> bool {
        let overdue = self.deadline().is_some_and(|deadline| deadline <= now);
        if overdue {
            self.pop();
            self.drop_ended();
        }
        overdue
    }

    /// When the oldest call is overdue.
    pub(super) fn deadline(&self) -> Option<Nanos> {
        self.running.front().map(|call| call.deadline)
    }

    /// Forgets all calls: they belong to an epoch that is over.
    pub(super) fn clear(&mut self) {
        self.first += self.running.len() as u64;
        self.running.clear();
    }

    fn drop_ended(&mut self) {
        while self.running.front().is_some_and(|call| call.ended) {
            self.pop();
        }
    }

    fn pop(&mut self) {
        self.running.pop_front();
        self.first += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_call_is_taken_once_by_its_end_or_by_its_deadline() {
        let mut overdue = Overdue::default();
        let calls = [3, 5, 9].map(|deadline| overdue.begin(Nanos::new(deadline)));
        assert!(!overdue.take(Nanos::new(2)), "none is overdue yet");
        assert!(overdue.end(calls[1]), "it ended in time");
        assert!(overdue.take(Nanos::new(5)), "the first");
        assert!(!overdue.end(calls[0]), "it was counted");
        assert!(!overdue.take(Nanos::new(8)), "the second had ended");
        assert_eq!(overdue.deadline(), Some(Nanos::new(9)));
        assert!(overdue.end(calls[2]));
        assert!(overdue.running.is_empty(), "nothing is left behind");
    }

    #[test]
    fn calls_of_an_epoch_that_is_over_are_not_mistaken_for_later_ones() {
        let mut overdue = Overdue::default();
        let old = overdue.begin(Nanos::new(1));
        overdue.clear();
        let new = overdue.begin(Nanos::new(2));
        assert!(!overdue.end(old));
        assert!(overdue.end(new));
    }
}
