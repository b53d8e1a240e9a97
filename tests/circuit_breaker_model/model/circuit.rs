use tower_sluice::circuit_breaker::{CircuitState, TransitionReason};

use super::{Closed, Model, Open, Told};
use crate::rules::{FALLBACK, Function, NEVER, OpenTime};

impl Model {
    pub(super) fn enter(
        &mut self,
        at: u64,
        to: CircuitState,
        until: Option<u64>,
        reason: TransitionReason,
    ) {
        use TransitionReason::{Consecutive, FailureRate, SlowRate};
        let tripped = matches!(reason, Consecutive | FailureRate | SlowRate);
        self.tripped = if tripped { self.in_window() } else { (0, 0, 0) };
        let from = std::mem::replace(&mut self.state, to);
        self.until = until;
        self.reason = Some(reason);
        self.epoch += 1;
        self.run = 0;
        self.outcomes.clear();
        self.watched.clear();
        self.out.clear();
        self.successes = 0;
        self.since = at;
        self.by_time = false;
        self.ramp = None;
        self.tell_transition(from, reason);
    }

    pub(super) fn tell_transition(&mut self, from: CircuitState, reason: TransitionReason) {
        self.told.push(Told::Transition {
            from,
            to: self.state,
            reason,
            epoch: self.epoch,
            trips: self.trips,
            counts: self.counts(),
            left: self.retry_after(),
        });
    }

    pub(super) fn trip(&mut self, reason: TransitionReason, floor: u64) {
        let held = self.now.saturating_sub(self.since) >= self.last_open;
        if held && self.last_open < NEVER {
            (self.attempts, self.grown) = (0, None);
        }
        self.arrivals = 0;
        self.open(self.now, reason, floor, true);
    }

    /// `asking`: a reader, who asks no function, knows no time in its place.
    pub(super) fn open(&mut self, at: u64, reason: TransitionReason, floor: u64, asking: bool) {
        self.trips += 1;
        self.attempts += 1;
        let floor = floor.min(self.rules.retry_after_cap);
        let time = match self.rules.open_time {
            None => None,
            Some(OpenTime::Growing { .. }) => self.grow().map(|time| time.max(floor)),
            Some(OpenTime::Asked(function)) if asking => {
                let time = self.ask(function, self.attempts, reason);
                Some(time.max(floor).max(1))
            }
            Some(OpenTime::Asked(_)) => Some(NEVER),
        };
        self.last_open = time.unwrap_or(0);
        self.enter(at, Open, end_of(at, time), reason);
    }

    /// The next open time, before anything else is asked of it.
    fn grow(&mut self) -> Option<u64> {
        let Some(OpenTime::Growing {
            first,
            percent,
            cap,
        }) = self.rules.open_time
        else {
            return None;
        };
        let grown = match self.grown {
            None => first,
            Some(last) => {
                let grown = u128::from(last) * u128::from(percent) / 100;
                u64::try_from(grown).unwrap_or(NEVER).clamp(first, cap)
            }
        };
        self.grown = Some(grown);
        self.grown
    }

    fn ask(&mut self, function: Function, trips: u32, reason: TransitionReason) -> u64 {
        let answer = function.ask(trips, reason);
        match answer {
            None if self.unwinding => self.caught += 1,
            None => self.panicked = true,
            Some(_) => {}
        }
        answer.unwrap_or(FALLBACK)
    }

    pub(super) fn close(&mut self, reason: TransitionReason) {
        self.enter(self.now, Closed, None, reason);
        let recovered = reason == TransitionReason::Recovered;
        let ramp = self.rules.ramp_up.filter(|_| recovered);
        self.ramp = ramp.map(|length| (length, 900_000));
    }

    /// An open state that has no end gets the one that it would have had.
    pub(super) fn end_open_time(&mut self) {
        let time = match self.rules.open_time {
            None => return,
            Some(OpenTime::Growing { .. }) => {
                self.grown = None;
                self.grow()
            }
            Some(OpenTime::Asked(function)) => {
                let reason = self.reason.expect("it was opened");
                Some(self.ask(function, self.attempts, reason).max(1))
            }
        };
        self.last_open = time.unwrap_or(0);
        self.until = end_of(self.since, time);
    }

    /// Makes happen what the time alone has decided.
    pub(super) fn settle(&mut self) {
        self.settle_probes(true);
        while let Some(oldest) = self.overdue() {
            self.watched.retain(|watched| *watched != oldest);
            self.count(false, true, 0);
        }
    }

    fn overdue(&self) -> Option<(u64, u64)> {
        let threshold = self.rules.slow_threshold?;
        let oldest = self.watched.iter().min().copied();
        let is_overdue = |start: u64| {
            let deadline = start.saturating_add(threshold);
            deadline < NEVER && deadline <= self.now
        };
        oldest.filter(|(start, _)| self.rules.count_overdue && is_overdue(*start))
    }

    pub(super) fn settle_probes(&mut self, asking: bool) {
        let now = self.now;
        let over = |deadline: u64| deadline < NEVER && deadline <= now;
        self.out
            .retain(|probe| !(probe.reserved && over(probe.deadline)));
        let deadlines = self.out.iter().map(|probe| probe.deadline);
        if let Some(late) = deadlines.min().filter(|&late| over(late)) {
            self.open(late, TransitionReason::ProbeTimedOut, 0, asking);
        }
    }
}

fn end_of(at: u64, time: Option<u64>) -> Option<u64> {
    let until = at.saturating_add(time?);
    (until < NEVER).then_some(until)
}
