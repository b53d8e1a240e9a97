use tower_sluice::circuit_breaker::{
    CallEnd, Cancel, CircuitOpenReason, Command, Recorded, TransitionReason,
};

use super::{Closed, HalfOpen, Model, Open, Probe, Refusal, Told};
use crate::rules::NEVER;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Counted,
    Watched,
    Uncounted,
    Probe,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Call {
    id: u64,
    kind: Kind,
    epoch: u64,
    /// `None` where nothing asked for the time as it began.
    start: Option<u64>,
    waited: u64,
}

impl Call {
    pub(super) fn epoch(self) -> u64 {
        self.epoch
    }
}

/// What a call that arrives gets: `None` where the user's function panicked before it was decided
/// on.
pub(crate) type Arrived = Option<Result<Call, Refusal>>;

impl Model {
    /// `polled`: whether the inner service of the instance it arrives at was.
    pub(crate) fn arrive(&mut self, polled: bool) -> Arrived {
        self.settle();
        if self.panicked {
            return None;
        }
        let timed = self.is_timed();
        let refused = match self.command() {
            Some(Command::ForceOpen) => Some((CircuitOpenReason::Forced, None)),
            _ if self.state == Closed && !polled => Some(NOT_READY),
            Some(Command::ForceClose) => return Some(Ok(self.admit(Kind::Uncounted, timed))),
            _ if self.state == Closed => self.ramp_refuses(),
            _ => {
                self.arrivals += u64::from(self.rules.recover_every.is_some());
                let refused = self.not_due(self.arrivals);
                refused.or((!polled).then_some(NOT_READY))
            }
        };
        if let Some(refused) = refused {
            if self.is_shadow() && polled {
                self.told.push(Told::WouldHaveRefused(refused.0));
                return Some(Ok(self.admit(Kind::Uncounted, true)));
            }
            self.told.push(Told::Refused(refused.0, refused.1));
            return Some(Err(refused));
        }
        Some(Ok(match self.state {
            Closed if self.rules.count_overdue => self.admit(Kind::Watched, true),
            Closed => self.admit(Kind::Counted, timed),
            _ => self.send_probe(false),
        }))
    }

    /// Whether anything asks for the time of a call that is admitted now.
    fn is_timed(&self) -> bool {
        let rules = &self.rules;
        let asked = rules.window.is_some() || rules.slow_threshold.is_some();
        asked || self.heard || self.ramp.is_some()
    }

    /// The refusal of a call that is the `arrivals`-th, unless a probe is due.
    pub(super) fn not_due(&self, arrivals: u64) -> Option<Refusal> {
        let by_time = self.by_time || self.until.is_some_and(|until| until <= self.now);
        let by_count = self.rules.recover_every.is_some_and(|n| arrivals >= n);
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

    pub(super) fn send_probe(&mut self, reserved: bool) -> Call {
        let by_time = self.until.is_some_and(|until| until <= self.now);
        if self.state == Open {
            let reason = match by_time {
                true => TransitionReason::OpenTimeOver,
                false => TransitionReason::ArrivalsReached,
            };
            self.enter(self.now, HalfOpen, self.until, reason);
        }
        self.by_time |= by_time;
        self.arrivals = 0;
        let call = self.admit(Kind::Probe, true);
        self.out.push(Probe {
            id: call.id,
            deadline: self.now.saturating_add(self.rules.probe_timeout),
            reserved,
        });
        call
    }

    fn ramp_refuses(&mut self) -> Option<Refusal> {
        let (length, paid) = self.ramp?;
        let passed = self.now.saturating_sub(self.since);
        if passed >= length {
            self.ramp = None;
            return None;
        }
        let grown = 900_000 * u128::from(passed) / u128::from(length);
        let paid = paid + 100_000 + grown as u64;
        self.ramp = Some((length, paid % 1_000_000));
        (paid < 1_000_000).then_some((CircuitOpenReason::RampingUp, None))
    }

    fn admit(&mut self, kind: Kind, timed: bool) -> Call {
        let id = self.next_id;
        self.next_id += 1;
        if kind == Kind::Watched {
            self.watched.push((self.now, id));
        }
        Call {
            id,
            kind,
            epoch: self.epoch,
            start: timed.then_some(self.now),
            waited: 0,
        }
    }

    pub(crate) fn end(&mut self, call: Call, end: CallEnd, floor: u64) -> Recorded {
        let elapsed = self.now.saturating_sub(call.start.unwrap_or(self.now));
        // The end of time never comes, even to a clock that reads it.
        let threshold = self.rules.slow_threshold.filter(|&t| t < NEVER);
        let slow = threshold.is_some_and(|t| elapsed >= t);
        let (failed, counts) = match (end, self.rules.cancel) {
            (CallEnd::Success, _) => (false, true),
            (CallEnd::Failure | CallEnd::Panicked, _) => (true, true),
            (CallEnd::Cancelled, Cancel::Failure) => (true, true),
            (CallEnd::Cancelled, Cancel::SlowIfOverdue) => (false, slow),
            _ => (false, false),
        };
        let failing = counts && (failed || slow);
        // What does not fail and is not watched needs no decision, and makes none.
        if matches!(call.kind, Kind::Watched | Kind::Probe)
            || (call.kind == Kind::Counted && failing)
        {
            self.settle();
        }
        if call.kind != Kind::Uncounted && !self.is_current(call) {
            let discarded = Told::Discarded(end, slow, elapsed, call.waited);
            self.told.push(discarded);
            return Recorded::Stale;
        }
        let completed = Told::Completed(end, slow, elapsed, call.waited);
        self.told.push(completed);
        let watched = self.watched.iter().any(|(_, id)| *id == call.id);
        self.watched.retain(|(_, id)| *id != call.id);
        match call.kind {
            Kind::Uncounted => return Recorded::Uncounted,
            Kind::Probe => self.end_probe(call, failing, counts, floor),
            Kind::Watched if !watched => {}
            _ if counts => self.count(failed, slow, floor),
            _ => {}
        }
        Recorded::Counted
    }

    /// Whether the state it was admitted in lasts and, if it is a probe, its place is held.
    pub(super) fn is_current(&self, call: Call) -> bool {
        let holds = |probe: &Probe| probe.id == call.id;
        call.epoch == self.epoch && (call.kind != Kind::Probe || self.out.iter().any(holds))
    }

    fn end_probe(&mut self, call: Call, failing: bool, counts: bool, floor: u64) {
        self.free(call);
        if failing {
            self.open(self.now, TransitionReason::ProbeFailed, floor, true);
        } else if counts {
            self.successes += 1;
            if self.successes == self.rules.probes {
                self.close(TransitionReason::Recovered);
            }
        }
    }

    pub(super) fn free(&mut self, call: Call) {
        self.out.retain(|probe| probe.id != call.id);
    }

    /// A place that was held becomes a call that begins now.
    pub(super) fn begin(&mut self, call: Call) -> Call {
        for probe in self.out.iter_mut().filter(|probe| probe.id == call.id) {
            probe.reserved = false;
            probe.deadline = self.now.saturating_add(self.rules.probe_timeout);
        }
        Call {
            start: Some(self.now),
            ..call
        }
    }

    pub(super) fn after_waiting(call: Call, waited: u64) -> Call {
        Call { waited, ..call }
    }
}

/// The inner service was left alone: the probe stays due.
const NOT_READY: Refusal = (CircuitOpenReason::NotReady, Some(0));
