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
