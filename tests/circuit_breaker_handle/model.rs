//! What a breaker must do, said plainly: one thread, one list of outcomes counted anew each time.

use tower_sluice::circuit_breaker::{
    CallEnd, Cancel, CircuitOpenReason, CircuitState, Command, Recorded, TransitionReason,
};

use crate::rules::Rules;

/// What listeners must hear.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    Transition(CircuitState, CircuitState, TransitionReason),
    Refused(CircuitOpenReason, Option<u64>),
    WouldHaveRefused(CircuitOpenReason),
    Completed(CallEnd, bool, u64),
    Discarded(CallEnd, bool, u64),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Counted,
    Uncounted,
    Probe,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    pub(crate) id: u64,
    kind: Kind,
    epoch: u64,
    start: u64,
}

#[derive(Debug)]
pub(crate) struct Model {
    pub(crate) rules: Rules,
    pub(crate) now: u64,
    pub(crate) state: CircuitState,
    pub(crate) reason: Option<TransitionReason>,
    pub(crate) epoch: u64,
    pub(crate) trips: u64,
    pub(crate) told: Vec<Told>,
    pub(crate) run: u32,
    /// Every outcome counted since the window was emptied: its bucket, whether failed, slow.
    outcomes: Vec<(u64, bool, bool)>,
    tripped: (u64, u64, u64),
    newest: u64,
    commands: [bool; 3],
    since: u64,
    pub(crate) until: Option<u64>,
    by_time: bool,
    arrivals: u64,
    pub(crate) successes: usize,
    /// Probes in flight, with their deadlines.
    pub(crate) out: Vec<(u64, u64)>,
    attempts: u32,
    grown: Option<u64>,
    last_open: u64,
    ramp: Option<u64>,
    /// Calls in flight that were not found overdue yet, by start.
    watched: Vec<(u64, u64)>,
    next_id: u64,
}

use CircuitState::{Closed, HalfOpen, Open};

impl Model {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            now: 0,
            state: Closed,
            reason: None,
            epoch: 0,
            trips: 0,
            told: Vec::new(),
            run: 0,
            outcomes: Vec::new(),
            tripped: (0, 0, 0),
            newest: 0,
            commands: [false; 3],
            since: 0,
            until: None,
            by_time: false,
            arrivals: 0,
            successes: 0,
            out: Vec::new(),
            attempts: 0,
            grown: None,
            last_open: 0,
            ramp: None,
            watched: Vec::new(),
            next_id: 0,
        }
    }

    fn bucket(&self, now: u64) -> u64 {
        self.rules.window.map_or(0, |w| now / w.div_ceil(10))
    }

    /// Calls, failures, slow calls in the window.
    pub(crate) fn counts(&self) -> (u64, u64, u64) {
        match self.state {
            Open => return self.tripped,
            HalfOpen => return (0, 0, 0),
            Closed => {}
        }
        let newest = self.bucket(self.now).max(self.newest);
        let mut kept: Vec<_> = self.outcomes.clone();
        if self.rules.window.is_some() {
            kept.retain(|(bucket, ..)| bucket + 10 > newest);
        } else {
            let calls = self.rules.window_calls.unwrap_or(0) as usize;
            kept.drain(..kept.len().saturating_sub(calls));
        }
        let failed = kept.iter().filter(|(_, failed, _)| *failed).count();
        let slow = kept.iter().filter(|(.., slow)| *slow).count();
        (kept.len() as u64, failed as u64, slow as u64)
    }

    fn enter(&mut self, at: u64, to: CircuitState, reason: TransitionReason) {
        use TransitionReason::{Consecutive, FailureRate, SlowRate};
        let tripped = matches!(reason, Consecutive | FailureRate | SlowRate);
        self.tripped = if tripped { self.counts() } else { (0, 0, 0) };
        self.told.push(Told::Transition(self.state, to, reason));
        self.state = to;
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
    }

    fn open(&mut self, at: u64, reason: TransitionReason) {
        self.trips += 1;
        self.attempts += 1;
        let grown = self.rules.open_for.map(|first| match self.grown {
            None => first,
            Some(last) => (last * 2).min(self.rules.open_cap),
        });
        self.grown = grown;
        self.last_open = grown.unwrap_or(0);
        self.enter(at, Open, reason);
        self.until = grown.map(|grown| at + grown);
    }

    fn close(&mut self, reason: TransitionReason) {
        self.enter(self.now, Closed, reason);
        let recovered = reason == TransitionReason::Recovered;
        self.ramp = self.rules.ramp_up.filter(|_| recovered).map(|_| 900_000);
    }

    fn settle(&mut self) {
        let late = self.out.iter().map(|(_, deadline)| *deadline).min();
        if let Some(late) = late.filter(|late| *late <= self.now) {
            self.open(late, TransitionReason::ProbeTimedOut);
        }
        while let Some((id, start)) = self.watched.first().copied() {
            if start + self.rules.slow_threshold.unwrap() > self.now {
                break;
            }
            self.watched.retain(|(other, _)| *other != id);
            self.count(false, true);
        }
    }

    fn count(&mut self, failed: bool, slow: bool) {
        self.newest = self.newest.max(self.bucket(self.now));
        self.outcomes.push((self.newest, failed, slow));
        let failing = failed || slow;
        let rows = failing && self.rules.consecutive.is_some();
        self.run = if rows { self.run + 1 } else { 0 };
        let (calls, failures, slows) = self.counts();
        let met = |rate: Option<u64>, part: u64| {
            calls >= self.rules.min_calls && rate.is_some_and(|rate| part * 100 >= rate * calls)
        };
        let reason = if self.rules.consecutive.is_some_and(|n| self.run >= n) {
            TransitionReason::Consecutive
        } else if met(self.rules.failure_rate, failures) {
            TransitionReason::FailureRate
        } else if met(self.rules.slow_rate, slows) {
            TransitionReason::SlowRate
        } else {
            return;
        };
        if failing {
            if self.now.saturating_sub(self.since) >= self.last_open {
                (self.attempts, self.grown) = (0, None);
            }
            self.arrivals = 0;
            self.open(self.now, reason);
        }
    }

    /// The refusal of a call that is the `arrivals`-th, unless a probe is due.
    fn not_due(&self) -> Option<(CircuitOpenReason, Option<u64>)> {
        let by_time = self.by_time || self.until.is_some_and(|until| until <= self.now);
        let by_count = self.rules.recover_every.is_some_and(|n| self.arrivals >= n);
        let room = self.out.len() + self.successes < self.rules.probes;
        if room && (by_time || (by_count && self.out.is_empty())) {
            None
        } else if by_time || !self.out.is_empty() {
            Some((CircuitOpenReason::ProbesOut, None))
        } else {
            let left = self.until.map(|until| until.saturating_sub(self.now));
            Some((CircuitOpenReason::Open, left))
        }
    }

    pub(crate) fn retry_after(&self) -> Option<u64> {
        let until = self.until.filter(|_| self.state == Open);
        until.map(|until| until.saturating_sub(self.now))
    }

    pub(crate) fn command(&self) -> Option<Command> {
        let [open, closed, off] = self.commands;
        let forced = closed.then_some(Command::ForceClose);
        let forced = if open {
            Some(Command::ForceOpen)
        } else {
            forced
        };
        forced.or(off.then_some(Command::Disable))
    }

    pub(crate) fn arrive(&mut self) -> Result<Call, (CircuitOpenReason, Option<u64>)> {
        self.settle();
        let refused = if self.command() == Some(Command::ForceOpen) {
            Some((CircuitOpenReason::Forced, None))
        } else if self.command() == Some(Command::ForceClose) {
            return Ok(self.admit(Kind::Uncounted));
        } else if self.state == Closed {
            self.ramp_refuses()
        } else {
            self.arrivals += 1;
            self.not_due()
        };
        if let Some(refused) = refused {
            if self.command() == Some(Command::Disable) {
                self.told.push(Told::WouldHaveRefused(refused.0));
                return Ok(self.admit(Kind::Uncounted));
            }
            self.told.push(Told::Refused(refused.0, refused.1));
            return Err(refused);
        }
        if self.state == Closed {
            return Ok(self.admit(Kind::Counted));
        }
        let by_time = self.until.is_some_and(|until| until <= self.now);
        if self.state == Open && by_time {
            self.enter(self.now, HalfOpen, TransitionReason::OpenTimeOver);
        } else if self.state == Open {
            self.enter(self.now, HalfOpen, TransitionReason::ArrivalsReached);
        }
        self.by_time |= by_time;
        self.arrivals = 0;
        let call = self.admit(Kind::Probe);
        self.out
            .push((call.id, self.now + self.rules.probe_timeout));
        Ok(call)
    }

    fn ramp_refuses(&mut self) -> Option<(CircuitOpenReason, Option<u64>)> {
        let (paid, length) = (self.ramp?, self.rules.ramp_up?);
        let passed = self.now.saturating_sub(self.since);
        if passed >= length {
            self.ramp = None;
            return None;
        }
        let paid = paid + 100_000 + 900_000 * passed / length;
        self.ramp = Some(paid % 1_000_000);
        (paid < 1_000_000).then_some((CircuitOpenReason::RampingUp, None))
    }

    fn admit(&mut self, kind: Kind) -> Call {
        let id = self.next_id;
        self.next_id += 1;
        if kind == Kind::Counted && self.rules.count_overdue {
            self.watched.push((id, self.now));
        }
        Call {
            id,
            kind,
            epoch: self.epoch,
            start: self.now,
        }
    }

    pub(crate) fn end(&mut self, call: Call, end: CallEnd) -> Recorded {
        let elapsed = self.now.saturating_sub(call.start);
        let slow = self.rules.slow_threshold.is_some_and(|t| elapsed >= t);
        let (failed, counts) = match (end, self.rules.cancel) {
            (CallEnd::Success, _) => (false, true),
            (CallEnd::Failure | CallEnd::Panicked, _) => (true, true),
            (CallEnd::Cancelled, Cancel::Failure) => (true, true),
            (CallEnd::Cancelled, Cancel::SlowIfOverdue) => (false, slow),
            _ => (false, false),
        };
        if call.kind == Kind::Uncounted {
            self.told.push(Told::Completed(end, slow, elapsed));
            return Recorded::Uncounted;
        }
        // What neither fails nor is watched needs no decision, and makes none.
        let plain = call.kind == Kind::Counted && !self.rules.count_overdue;
        if !plain || (counts && (failed || slow)) {
            self.settle();
        }
        if call.epoch != self.epoch {
            self.told.push(Told::Discarded(end, slow, elapsed));
            return Recorded::Stale;
        }
        self.told.push(Told::Completed(end, slow, elapsed));
        let watched = self.watched.iter().any(|(id, _)| *id == call.id);
        self.watched.retain(|(id, _)| *id != call.id);
        if call.kind == Kind::Probe {
            self.end_probe(call, failed || slow, counts);
        } else if counts && (watched || !self.rules.count_overdue) {
            self.count(failed, slow);
        }
        Recorded::Counted
    }

    fn end_probe(&mut self, call: Call, failing: bool, counts: bool) {
        self.out.retain(|(id, _)| *id != call.id);
        if counts && failing {
            self.open(self.now, TransitionReason::ProbeFailed);
        } else if counts {
            self.successes += 1;
            if self.successes == self.rules.probes {
                self.close(TransitionReason::Recovered);
            }
        }
    }

    fn forget(&mut self) {
        (self.attempts, self.grown) = (0, None);
        (self.last_open, self.arrivals) = (0, 0);
    }

    pub(crate) fn force_open(&mut self) {
        self.settle();
        if !std::mem::replace(&mut self.commands[0], true) {
            self.forget();
            self.enter(self.now, Open, TransitionReason::ForcedOpen);
            self.until = None;
        }
    }

    pub(crate) fn force_close(&mut self) {
        self.settle();
        if !std::mem::replace(&mut self.commands[1], true) && !self.commands[0] {
            self.forget();
            self.close(TransitionReason::ForcedClosed);
        }
    }

    pub(crate) fn disable(&mut self) {
        self.settle();
        let new = !std::mem::replace(&mut self.commands[2], true);
        if new && self.command() == Some(Command::Disable) {
            let reason = TransitionReason::Disabled;
            self.told
                .push(Told::Transition(self.state, self.state, reason));
        }
    }

    pub(crate) fn release(&mut self) {
        self.settle();
        if std::mem::take(&mut self.commands) != [false; 3] {
            self.forget();
            self.close(TransitionReason::Released);
        }
    }

    pub(crate) fn reset(&mut self) {
        self.settle();
        self.forget();
        if !self.commands[0] {
            self.close(TransitionReason::Reset);
        }
    }

    /// As a reader sees it: what the time has decided is seen, though nothing made it happen.
    pub(crate) fn seen(&self) -> Self {
        let mut seen = Self {
            rules: self.rules.clone(),
            told: Vec::new(),
            outcomes: self.outcomes.clone(),
            out: self.out.clone(),
            watched: Vec::new(),
            ..*self
        };
        seen.settle();
        seen
    }
}
