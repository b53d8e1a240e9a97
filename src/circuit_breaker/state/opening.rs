use std::time::Duration;

use super::machine::{Machine, Phase, Rules};
use super::{Transition, TransitionReason};
use crate::circuit_breaker::policy::OpenTime;
use crate::clock::Nanos;

/// The open state.
#[derive(Clone, Debug)]
pub(crate) struct Open {
    pub(super) since: Nanos,
    /// When a probe is due by time; the end of time where that never is, or is not known yet.
    pub(super) until: Nanos,
    /// The question whose answer sets `until`, where the user's function is asked.
    pub(super) asked: Option<Asked>,
}

/// What the user's open-time function is to be asked, outside of all locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    pub(crate) epoch: u64,
    pub(crate) trips: u32,
    pub(crate) reason: TransitionReason,
    /// No open time below this.
    floor: Duration,
}

impl Asked {
    pub(super) fn new(epoch: u64, trips: u32, reason: TransitionReason) -> Self {
        Self {
            epoch,
            trips,
            reason,
            floor: Duration::ZERO,
        }
    }
}

impl Open {
    pub(crate) fn until(&self) -> Nanos {
        self.until
    }
}

impl Machine {
    /// Closed to open: a condition was met at `now`. `floor` is the least open time that an
    /// upstream asked for.
    pub(crate) fn trip(
        &mut self,
        now: Nanos,
        reason: TransitionReason,
        floor: Duration,
        rules: Rules<'_>,
    ) -> Transition {
        if self.has_held(now) {
            self.attempts = 0;
            self.grown = None;
        }
        self.arrivals = 0;
        self.open(now, reason, floor, rules)
    }

    /// To open at `at`, by the circuit's own doing. Deliberately leaves the count of arrivals: of
    /// those that arrive while open every n-th is a probe, whether or not a probe just failed.
    pub(super) fn open(
        &mut self,
        at: Nanos,
        reason: TransitionReason,
        floor: Duration,
        rules: Rules<'_>,
    ) -> Transition {
        self.trips += 1;
        self.attempts = self.attempts.saturating_add(1);
        let floor = floor.min(rules.policy.retry_after_cap);
        let epoch = self.epoch + 1;
        let mut open = Open {
            since: at,
            until: Nanos::MAX,
            asked: None,
        };
        match &rules.policy.open_time {
            None => self.last_open = Duration::ZERO,
            Some(OpenTime::Growing(growing)) => {
                let base = growing.next(self.grown);
                self.grown = Some(base);
                self.last_open = growing.jittered(base, draw(rules.seed, epoch)).max(floor);
                open.until = at.plus(self.last_open);
            }
            Some(OpenTime::Function(_)) => {
                open.asked = Some(Asked {
                    epoch,
                    trips: self.attempts,
                    reason,
                    floor,
                });
            }
        }
        self.enter(Phase::Open(open), reason)
    }

    /// What the user's function must be asked now, if anything.
    pub(crate) fn asked(&self) -> Option<Asked> {
        match &self.phase {
            Phase::Open(open) => open.asked,
            _ => None,
        }
    }

    /// Takes the answer to `asked`, unless the state it was asked for is gone. Says whether it
    /// was taken.
    pub(crate) fn answer(&mut self, asked: Asked, time: Duration) -> bool {
        match &mut self.phase {
            Phase::Open(open) if open.asked == Some(asked) => {
                let time = time.max(asked.floor).max(Duration::from_nanos(1));
                open.asked = None;
                open.until = open.since.plus(time);
                self.last_open = time;
                true
            }
            _ => false,
        }
    }
}

/// A seed for one draw: the breaker's own, stirred by the epoch.
pub(super) fn draw(seed: u64, epoch: u64) -> u64 {
    seed ^ epoch.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
